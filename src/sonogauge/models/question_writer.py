"""Any model as the writer of UltraG questions (`benchmarks.ultrag.writer.QuestionWriter`)."""

from __future__ import annotations

import hashlib
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.writer import TEMPERATURE
from sonogauge.models.addresses import is_loopback
from sonogauge.models.base import EncodedImage, Model, Reader, Request


class ModelWriter:
    """Writes by asking a model, at temperature 0.2 unless `generation` says otherwise.

    allow_upload: let private images leave this machine.

    Raises:
        BadInput: a baseline, which cannot write.
    """

    def __init__(self, model: Model | Reader, *, allow_upload: bool = False, **generation: Any) -> None:
        if isinstance(model, Reader):
            raise BadInput(f"'{model.name}' cannot write questions", field="writer", fix="name a language model")
        self._model: Model = model
        self._allow_upload = allow_upload
        self._generation = {"temperature": TEMPERATURE, **generation}

    @property
    def name(self) -> str:
        """The model's name, with its revision where it is known."""
        return "@".join(part for part in (self._model.name, self._model.revision) if part)

    @property
    def away(self) -> str:
        """The address of a model on another machine, unless private images may leave for it."""
        away = bool(self._model.endpoint) and not is_loopback(self._model.endpoint) and not self._allow_upload
        return self._model.endpoint if away else ""

    async def write(self, prompt: str, image: bytes, media_type: str, size: tuple[int, int]) -> str:
        """Return the reply to a prompt and an image.

        Raises:
            ValueError: the request failed or was cut off.
        """
        digest = hashlib.sha256(image).hexdigest()
        sent = EncodedImage(image, media_type, size[0], size[1], digest)
        request = Request(digest[:16], "", 0, prompt, (sent,), generation=self._generation)
        outcome = await self._model.answer(request)
        if outcome.status != "ok":
            raise ValueError(outcome.error or f"the reply is {outcome.status}")
        return outcome.text
