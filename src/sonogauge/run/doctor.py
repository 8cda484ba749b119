"""One image to a model, and what is wrong if no answer comes back."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.models import Model, Outcome, Reader, Request, load_model
from sonogauge.models.base import EncodedImage
from sonogauge.run.images import ImageFault, open_image
from sonogauge.run.loop import run_async

QUESTION: Final = "Which colour fills this image: red, green or blue? Reply with one word."
_COLOURS: Final = {"red": (200, 30, 30), "green": (30, 160, 30), "blue": (30, 30, 200)}
_ADVICE: Final = {
    "connection": "start the server, or correct the address (--base-url)",
    "url": "correct the address (--base-url)",
    "key": "correct the key (--api-key, or the variable of the provider)",
    "quota": "the account has no credit left",
    "model": "correct the name of the model",
    "no_vision": "choose a model that reads images",
    "too_large": "send smaller images: --image-policy max:1024",
    "request": "an option that the server does not know? Leave it out with --generation NAME=null",
    "timeout": "the server is slow or stuck: raise it with --model-option timeout=600",
    "rate_limit": "the key works, but the limit of requests is reached: wait, or lower --max-connections",
}


@dataclass(frozen=True)
class Diagnosis:
    """What one image to a model showed: fit for a run or not, and why in lines."""

    fit: bool
    lines: tuple[str, ...]


def doctor(
    model: str | Model | Reader,
    *,
    model_options: Mapping[str, Any] | None = None,
    generation: Mapping[str, Any] | None = None,
    image: Path | str | None = None,
    size: int = 512,
) -> Diagnosis:
    """Send one image to a model and say what is wrong: address, key, name, no vision, too large an image.

    Args:
        model: as for `run`.
        model_options: of the model ("base_url", "api_key", …).
        generation: options of the call, as for `run`.
        image: a file to send; by default a square of one colour, so that the reply shows whether the model sees.
        size: side of that square in pixels.

    Raises:
        BadInput: no such provider, option or image file; anything beyond that is told in the diagnosis.
    """
    answerer = load_model(model, **(model_options or {})) if isinstance(model, str) else model
    if isinstance(answerer, Reader):
        return Diagnosis(True, (f"{answerer.name} answers from the benchmark itself; nothing to check",))
    colour = None if image is not None else "blue"
    sent = _square(size) if image is None else _file(Path(image))
    options = {"temperature": 0.0, **(generation or {})}
    request = Request(
        "doctor",
        "",
        0,
        QUESTION,
        (sent,),
        generation={key: value for key, value in options.items() if value is not None},
    )
    outcome = run_async(_ask(answerer, request))
    where = f"{answerer.name} at {answerer.endpoint}" if answerer.endpoint else f"{answerer.name}, in this process"
    what = f"sent {sent.media_type}, {sent.width} x {sent.height} pixels, {len(sent.data)} bytes"
    return _diagnose(outcome, (where, what), colour)


async def _ask(model: Model, request: Request) -> Outcome:
    try:
        return await model.answer(request)
    finally:
        await model.close()


def _diagnose(outcome: Outcome, head: tuple[str, ...], colour: str | None) -> Diagnosis:
    if outcome.status == "error":
        kind, _, detail = (outcome.error or "unknown").partition(": ")
        advice = (f"what to do: {_ADVICE[kind]}",) if kind in _ADVICE else ()
        return Diagnosis(False, (*head, f"failed, {kind}: {detail}", *advice))
    lines = [*head, f"replied in {outcome.latency or 0:.1f} s: {' '.join(outcome.text.split())[:200]!r}"]
    if outcome.status == "truncated":
        lines.append("the reply was cut off: raise max_tokens")
    if not outcome.text.strip():
        lines.append("the reply is empty: a reasoning model may have spent all its tokens on thinking")
    if colour is not None:
        named = {name for name in _COLOURS if name in outcome.text.lower()}
        if named == {colour}:
            lines.append("it sees images: it named the colour")
        else:
            lines.append(f"it may not see images: the image is {colour}, and it did not say so")
    return Diagnosis(outcome.status == "ok" and bool(outcome.text.strip()), tuple(lines))


def _square(size: int) -> EncodedImage:
    from PIL import Image

    if size < 1:
        raise BadInput(f"no image of {size} pixels", fix="give a size of at least 1")
    stream = io.BytesIO()
    Image.new("RGB", (size, size), _COLOURS["blue"]).save(stream, "PNG")
    data = stream.getvalue()
    return EncodedImage(data, "image/png", size, size, hashlib.sha256(data).hexdigest())


def _file(path: Path) -> EncodedImage:
    from PIL import Image

    if not path.is_file():
        raise BadInput("no such image", file=path)
    data = path.read_bytes()
    try:
        width, height = open_image(data).size
    except ImageFault as error:
        raise BadInput(str(error), file=path) from error
    kind = Image.open(io.BytesIO(data)).get_format_mimetype() or "application/octet-stream"
    return EncodedImage(data, kind, width, height, hashlib.sha256(data).hexdigest())
