"""The switches of the agent, with honest defaults; `published` sets them as the authors' release does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args, get_type_hints

from sonogauge._errors import BadInput

_WORDS: Final = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True, slots=True)
class Switches:
    """How the agent works; all of it is part of a run's identity.

    vocab_source: whose categories the planner sees. "test_annotations" is the published leak: plain models do not know
        which categories occur in the test part.
    task_forced: the request says which task it is; else the planner decides.
    compose_style: "benchmark_template" writes like the references, which raises text scores without better sight.
    compose_mode: "deterministic" writes from the facts alone, "hybrid" lets the planner write and geometry correct it,
        "api" lets the planner write.
    score_threshold: candidates below are dropped; None = an absent target still gets a mask.
    top_k: candidates of each phrase. min_area (pixels), max_area_ratio: candidates outside are dropped.
    remove_overlap: of two candidates of different targets with IoU above 0.5 only the better stays.
    cell: what lies in the named ninth of the image: the middle of the box, as in references, or the mask's centroid.
    box: the box for segmenters without text: of the "planner", of the "fan" of the scan, or "auto" = the planner's
        where it wrote one, else the fan's. Never a reference box.
    coord_space, box_order: how the planner writes boxes.
    planner_failure: "error" = the question fails and can be asked again; "rule" = the rule planner takes over.
    """

    vocab_source: Literal["none", "train", "dataset_card", "test_annotations"] = "train"
    task_forced: bool = True
    compose_style: Literal["neutral", "benchmark_template"] = "neutral"
    compose_mode: Literal["deterministic", "hybrid", "api"] = "hybrid"
    score_threshold: float | None = 0.5
    top_k: int = 1
    min_area: int = 0
    max_area_ratio: float = 1.0
    remove_overlap: bool = False
    cell: Literal["box", "centroid"] = "box"
    box: Literal["auto", "planner", "fan"] = "auto"
    coord_space: Literal["pixel", "sent_pixel", "unit", "mille"] = "pixel"
    box_order: Literal["xywh", "xyxy", "yxyx"] = "xyxy"
    planner_failure: Literal["error", "rule"] = "error"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Switches:
        """Return the switches of a name's options; `preset=published` sets those of the authors' release first.

        Raises:
            BadInput: no such switch or value.

        >>> Switches.read({"preset": "published", "score_threshold": "0.3"}).score_threshold
        0.3
        """
        chosen: dict[str, Any] = {}
        rest = dict(given)
        preset = rest.pop("preset", None)
        if preset == "published":
            chosen = dict(_PUBLISHED)
        elif preset not in (None, "honest"):
            raise BadInput(f"no preset '{preset}'", field="preset", fix="use honest or published")
        hints = get_type_hints(cls)
        for key, value in rest.items():
            if key not in hints:
                raise BadInput(f"no switch '{key}'", field="model", fix="known: " + ", ".join(sorted(hints)))
            chosen[key] = _read(key, value, hints[key])
        made = cls(**chosen)
        if made.top_k < 1 or made.min_area < 0 or not 0 < made.max_area_ratio <= 1:
            raise BadInput("top_k must be 1 or more, min_area 0 or more, max_area_ratio above 0 and at most 1")
        return made

    def told(self) -> dict[str, Any]:
        """Return all switches for manifests and traces."""
        return asdict(self)


# Section 6 of the specification, column "Published".
_PUBLISHED: Final[Mapping[str, Any]] = {
    "vocab_source": "test_annotations",
    "compose_style": "benchmark_template",
    "compose_mode": "hybrid",
    "score_threshold": None,
    "top_k": 1,
    "cell": "centroid",
    "planner_failure": "rule",
}
NAMES: Final = frozenset(one.name for one in fields(Switches)) | {"preset"}


def _read(key: str, value: Any, hint: Any) -> Any:
    text = value.strip().lower() if isinstance(value, str) else value
    if isinstance(text, str) and text in _WORDS and hint is not str:
        named = get_args(hint)
        text = text if text in named else _WORDS[text]
    kinds = get_args(hint)
    if kinds and all(isinstance(one, str) for one in kinds):
        if text not in kinds:
            raise BadInput(f"no {key} '{value}'", field=key, fix="use " + ", ".join(kinds))
        return text
    try:
        if hint is bool:
            if not isinstance(text, bool):
                raise ValueError
            return text
        if text is None and type(None) in kinds:
            return None
        return int(text) if hint is int else float(text)
    except (TypeError, ValueError):
        raise BadInput(f"not a value of {key}: '{value}'", field=key) from None
