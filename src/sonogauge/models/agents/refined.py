"""A finished run whose boxes, points and phrases a segmenter turns into masks: `model + segmenter`, a run of its own.

`agent/refined?run=RUN&segmenter=BACKEND&coords=mille:yxyx`. Nobody is asked again: the replies are those of the run,
which stays as it is beside this one. Polygons, run-length codes, pictures, cells and null are passed on untouched, and
so is a prompt of a kind that the segmenter cannot use.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.answers.convention import Convention, Size, read_convention
from sonogauge.answers.json_reply import read_object
from sonogauge.answers.raster import corners
from sonogauge.answers.shapes import Shape, ShapeFault, read_shapes
from sonogauge.cases.geometry import Mask
from sonogauge.folders import Folder
from sonogauge.models.agents.facts import rle
from sonogauge.models.base import Outcome, ReplyKey, Request
from sonogauge.models.segmenters import Segmenter, SegmenterFault
from sonogauge.models.segmenters.base import Pixels, decode_pixels, describe
from sonogauge.models.segmenters.guard import segment_safely

KEY: Final = "predicted_mask"
_KEY: Final = ("item_id", "variant", "epoch", "rater_id")
_PROMPT_OF: Final = {"box": "box", "points": "point", "phrase": "text"}
_PASSING: Final = ("timeout", "server")


class Refined:
    """The replies of a run, redrawn by a segmenter.

    Args:
        name: as the user wrote it.
        run: the run folder.
        segmenter: what draws.
        coords: how the model of the run counts its coordinates, see `answers.convention`.
        timeout: seconds for one call.

    Raises:
        BadInput: no such run, or unknown coordinates.
    """

    def __init__(self, name: str, run: Path | str, segmenter: Segmenter, coords: str, timeout: float) -> None:
        folder = Folder(run, "run")
        self.name, self._segmenter, self._timeout = name, segmenter, timeout
        self._convention = read_convention(coords)
        self._replies: dict[ReplyKey, tuple[str, str, str, Size | None]] = {}
        for row in folder.rows("replies", [*_KEY, "status", "text", "error", "images_sent"]):
            sent = [(int(one["width"]), int(one["height"])) for one in row["images_sent"] or ()]
            key = (row["item_id"], row["variant"], int(row["epoch"]), row["rater_id"])
            self._replies[key] = (row["status"], row["text"] or "", row["error"] or "", sent[0] if sent else None)
        self.revision = segmenter.weights_id
        self.endpoint = segmenter.endpoint
        manifest = folder.manifest
        self.options: Mapping[str, Any] = {
            "agent": "refined-1",
            "model": manifest.parameters.get("model", manifest.name),
            "run": manifest.hash,
            "coords": str(self._convention),
            "segmenter": {key: value for key, value in describe(segmenter).items() if key != "device"},
        }

    async def close(self) -> None:
        """Hold nothing, free nothing."""

    async def answer(self, request: Request) -> Outcome:
        """Return the reply of the run with its masks redrawn; what failed there fails here with the same words."""
        known = self._replies.get(request.key)
        if known is None:
            return Outcome("error", error="refined_missing: the run has no reply to this item")
        status, text, error, sent = known
        if status == "error":
            return Outcome("error", error=error or "unknown: no reason given")
        found = read_object(text)
        if status != "ok" or not found.valid or len(request.images) != 1:
            return Outcome("truncated" if status == "truncated" else "ok", text=text)
        if request.images[0].policy != "original":
            return Outcome("error", error="refined_image: masks are drawn on original images", fatal=True)
        told: list[dict[str, Any]] = []
        try:
            image = await asyncio.to_thread(decode_pixels, request.images[0].data)
            reply = await asyncio.to_thread(self._redrawn, found.value, image, sent, told)
        except SegmenterFault as fault:
            return Outcome("error", error=f"segmenter_{fault}", retry=fault.kind in _PASSING, trace=self._trace(told))
        changed = any(one["outcome"] in ("drawn", "nothing") for one in told)
        text = json.dumps(reply, ensure_ascii=False) if changed else text
        return Outcome("ok", text=text, trace=self._trace(told))

    def _redrawn(self, reply: dict[str, Any], image: Pixels, sent: Size | None, told: list[dict[str, Any]]) -> Any:
        name = "report" if "report" in reply else "sentences"
        rows = reply.get(name)
        if isinstance(rows, list):
            return {
                **reply,
                name: [self._one(row, image, sent, told) if isinstance(row, dict) else row for row in rows],
            }
        return self._one(reply, image, sent, told)

    def _one(
        self, fields: dict[str, Any], image: Pixels, sent: Size | None, told: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return an object with its mask redrawn where all of it can be asked for."""
        try:
            shapes = read_shapes(fields.get(KEY))
            calls = [self._call(one, image, sent) for one in shapes if one.kind in _PROMPT_OF]
        except ShapeFault as fault:
            told.append({"outcome": "unreadable", "reason": fault.reason})
            return fields
        if not calls:
            return fields
        kinds = {_PROMPT_OF[one.kind] for one in shapes if one.kind in _PROMPT_OF}
        if len(calls) < len(shapes) or not kinds <= self._segmenter.capabilities:
            told.append({"outcome": "untouched", "prompts": sorted(kinds)})
            return fields
        masks: list[Mask] = []
        for call in calls:
            found = segment_safely(self._segmenter, image, timeout=self._timeout, **call)
            masks += [one.mask for one in found]
            told.append({"outcome": "drawn" if found else "nothing", **call, "scores": [one.score for one in found]})
        union = np.asarray(np.logical_or.reduce(masks), dtype=np.bool_) if masks else None
        return {**fields, KEY: rle(union)}

    def _call(self, shape: Shape, image: Pixels, sent: Size | None) -> dict[str, Any]:
        """Return the prompt that a shape is, in pixels of the image."""
        if shape.kind == "phrase":
            return {"text": shape.text}
        by_x, by_y = self._convention.factors((image.shape[1], image.shape[0]), sent)
        if shape.kind == "box":
            left, top, right, bottom = corners(shape, self._convention)
            return {"boxes": [(left * by_x, top * by_y, right * by_x, bottom * by_y)]}
        triples = list(zip(*[iter(shape.numbers)] * 3, strict=True))
        points: Sequence[tuple[float, float]] = [(x * by_x, y * by_y) for x, y, _ in triples]
        return {"points": points, "point_labels": [int(label) for _, _, label in triples]}

    def _trace(self, told: Sequence[Mapping[str, Any]]) -> str:
        causes = Counter(str(one["outcome"]) for one in told)
        return json.dumps({**self.options, "calls": list(told), "causes": dict(sorted(causes.items()))}, sort_keys=True)


def check_refined(given: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (run, segmenter, coordinates) of a name's options.

    Raises:
        BadInput: one is missing or unknown.
    """
    fix = "write agent/refined?run=RUN&segmenter=BACKEND"
    if unknown := set(given) - {"run", "segmenter", "coords", "segmenter_timeout"}:
        raise BadInput(f"agent/refined has no option '{min(unknown)}'", field="model", fix=fix)
    for key in ("run", "segmenter"):
        if not given.get(key):
            raise BadInput(f"agent/refined needs a {key}", field="model", fix=fix)
    return str(given["run"]), str(given["segmenter"]), str(given.get("coords") or Convention().space)
