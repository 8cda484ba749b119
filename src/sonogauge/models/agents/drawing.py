"""The step that draws: each target by phrase or box, candidates filtered, every call cached and timed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.cases.fan import fan_mask
from sonogauge.cases.geometry import box_of_mask
from sonogauge.models.agents.facts import TargetFacts, facts_of, rle
from sonogauge.models.agents.planning import Target
from sonogauge.models.agents.switches import Switches
from sonogauge.models.segmenters.base import XYXY, Instance, Pixels, Segmenter
from sonogauge.models.segmenters.guard import segment_safely

_CACHED: Final = 64  # calls whose masks are kept
_OVERLAP: Final = 0.5


@dataclass(frozen=True)
class Drawn:
    """What was drawn for a target: how it was asked, all candidates, the kept ones and their facts."""

    target: Target
    prompt: dict[str, Any]
    candidates: tuple[Instance, ...]
    kept: tuple[Instance, ...]
    facts: TargetFacts

    def told(self) -> dict[str, Any]:
        """Return all of it as JSON values, masks as run-length codes."""
        kept = {id(one) for one in self.kept}
        return {
            "category": self.target.category,
            "phrase": self.target.phrase,
            "prompt": self.prompt,
            "cause": None if self.kept else ("filtered" if self.candidates else "nothing"),
            "candidates": [
                {
                    "score": one.score,
                    "box_xyxy": list(one.box_xyxy),
                    "area_px": int(one.mask.sum()),
                    "kept": id(one) in kept,
                    "mask": rle(one.mask),
                }
                for one in self.candidates
            ],
            "facts": self.facts.told(),
        }


class Drawer:
    """Draws targets with one segmenter; safe to call from several threads, which wait for each other."""

    def __init__(self, segmenter: Segmenter, switches: Switches, timeout: float) -> None:
        if not segmenter.capabilities & {"text", "box"}:
            raise BadInput(f"segmenter {segmenter.name} takes neither phrases nor boxes", field="segmenter")
        self._segmenter, self._switches, self._timeout = segmenter, switches, timeout
        self._lock = Lock()
        self._cache: OrderedDict[tuple[Any, ...], list[Instance]] = OrderedDict()

    @property
    def takes_text(self) -> bool:
        """Whether targets are asked for by phrase; else by box."""
        return "text" in self._segmenter.capabilities

    def draw(self, image: Pixels, key: str, targets: Sequence[Target]) -> list[Drawn]:
        """Draw all targets of an image.

        key: names the image in the cache.

        Raises:
            UnsupportedPrompt, SegmenterFault: as `segment_safely`.
        """
        asked = [(target, *self._ask(image, key, target)) for target in targets]
        kept = [[one for one in found if self._fits(one, image)] for _, _, found in asked]
        if self._switches.remove_overlap:
            kept = _without_overlap(kept)
        drawn = []
        for (target, prompt, found), chosen in zip(asked, kept, strict=True):
            scores = [one.score for one in chosen if one.score is not None]
            facts = facts_of(
                target.category, [one.mask for one in chosen], max(scores, default=None), self._switches.cell
            )
            drawn.append(Drawn(target, prompt, tuple(found), tuple(chosen), facts))
        return drawn

    def _ask(self, image: Pixels, key: str, target: Target) -> tuple[dict[str, Any], list[Instance]]:
        if self.takes_text:
            return {"text": target.phrase}, self._segment(image, key, text=target.phrase)
        box, source = target.box, "planner"
        if self._switches.box == "fan" or (box is None and self._switches.box == "auto"):
            box, source = fan_box(image), "fan"
        if box is None:
            return {"box": None, "box_source": "planner wrote none"}, []
        return {"box": list(box), "box_source": source}, self._segment(image, key, box=box)

    def _segment(self, image: Pixels, key: str, text: str | None = None, box: XYXY | None = None) -> list[Instance]:
        name = (key, text, box, self._switches.top_k)
        with self._lock:
            if name in self._cache:
                self._cache.move_to_end(name)
                return self._cache[name]
            found = segment_safely(
                self._segmenter,
                image,
                text=text,
                boxes=None if box is None else [box],
                top_k=self._switches.top_k,
                timeout=self._timeout,
            )
            self._cache[name] = found
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
            return found

    def _fits(self, one: Instance, image: Pixels) -> bool:
        switches = self._switches
        if switches.score_threshold is not None and one.score is not None and one.score < switches.score_threshold:
            return False
        area = int(one.mask.sum())
        most = float(switches.max_area_ratio * image.shape[0] * image.shape[1])
        return switches.min_area <= area <= most


def _without_overlap(kept: list[list[Instance]]) -> list[list[Instance]]:
    """Return the instances without those that overlap a better one of another target; no score counts as the best."""
    ranked = sorted(
        ((number, one) for number, found in enumerate(kept) for one in found),
        key=lambda pair: -np.inf if pair[1].score is None else -pair[1].score,
    )
    chosen: list[tuple[int, Instance]] = []
    for number, one in ranked:
        rivals = (better.mask for other, better in chosen if other != number)
        if all(_iou(one.mask, mask) <= _OVERLAP for mask in rivals):
            chosen.append((number, one))
    return [[one for owner, one in chosen if owner == number] for number in range(len(kept))]


def _iou(one: Any, other: Any) -> float:
    return float((one & other).sum()) / max(1, int((one | other).sum()))


def fan_box(image: Pixels) -> XYXY:
    """Return the box of the scan fan, that of the whole image where no fan can be told."""
    box = box_of_mask(fan_mask(image), "fan")
    if box is None:
        return (0.0, 0.0, float(image.shape[1]), float(image.shape[0]))
    return (box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"])
