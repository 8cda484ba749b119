"""One item as the code sees it: a row of the items table, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sonogauge.answers.base import AnswerSpec
from sonogauge.tables import from_facts, to_facts


@dataclass(frozen=True, slots=True)
class ItemImage:
    """One image of an item: which case, in which role, which frame (None = a still)."""

    case_id: str
    role: str = "image"
    frame: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One question put to a model, with its reference.

    reference: the non-null fields of `tables.VALUE` ({"choices": ("benign",)}); empty unless `reference_state` is "ok".
    """

    item_id: str
    task: str
    dataset: str
    source: str
    group: str
    split: str
    images: tuple[ItemImage, ...]
    question: str
    prompt_id: str
    answer: AnswerSpec
    reference: Mapping[str, Any]
    reference_state: str
    chance: float | None = None
    anatomy: str = ""
    determinable: str = "yes"
    variables: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def image_size(self) -> tuple[int, int] | None:
        """(Width, height) of its image in pixels: of `meta`, else of its reference masks; None if neither says."""
        if "width" in self.meta and "height" in self.meta:
            return int(self.meta["width"]), int(self.meta["height"])
        for mask in self.reference.get("masks") or ():
            return int(mask["size"][1]), int(mask["size"][0])
        return None

    @property
    def spacing(self) -> tuple[float, float] | None:
        """Mm per pixel along x and y; None where `meta` does not say."""
        if "spacing_x" in self.meta and "spacing_y" in self.meta:
            return float(self.meta["spacing_x"]), float(self.meta["spacing_y"])
        return None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Item:
        """Build from a row of the items table; columns that were not read keep their defaults."""
        reference = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in (row.get("reference") or {}).items()
            if value is not None
        }
        return cls(
            item_id=row["item_id"],
            task=row["task"],
            dataset=row["dataset"],
            source=row["source"],
            group=row["group"],
            split=row.get("split") or "test",
            images=tuple(
                ItemImage(image["case_id"], image["role"] or "image", image["frame"]) for image in row["images"] or ()
            ),
            question=row.get("question") or "",
            prompt_id=row.get("prompt_id") or "",
            answer=AnswerSpec.from_row(row["answer"]),
            reference=reference,
            reference_state=row.get("reference_state") or "absent",
            chance=row.get("chance"),
            anatomy=row.get("anatomy") or "",
            determinable=row.get("determinable") or "yes",
            variables=from_facts(row.get("variables")),
            meta=from_facts(row.get("meta")),
        )

    def to_row(self) -> dict[str, Any]:
        """Return the row of the items table."""
        return {
            "item_id": self.item_id,
            "task": self.task,
            "dataset": self.dataset,
            "source": self.source,
            "group": self.group,
            "split": self.split,
            "images": [{"case_id": image.case_id, "role": image.role, "frame": image.frame} for image in self.images],
            "question": self.question,
            "prompt_id": self.prompt_id,
            "variables": to_facts(self.variables),
            "answer": {
                "form": self.answer.form,
                "options": list(self.answer.options),
                "letters": list(self.answer.letters),
                "low": self.answer.low,
                "high": self.answer.high,
                "unit": self.answer.unit,
                "tolerance": self.answer.tolerance,
            },
            "reference": {
                name: list(value) if isinstance(value, tuple) else value for name, value in self.reference.items()
            },
            "reference_state": self.reference_state,
            "chance": self.chance,
            "anatomy": self.anatomy,
            "determinable": self.determinable,
            "meta": to_facts(self.meta),
        }
