"""What the table of UltraBench sets says (`ultrabench_sets.yaml`), and the record and the parts that follow from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sonogauge._errors import BadInput
from sonogauge.export.scan_masks import STEPS, Step
from sonogauge.sources.layout import Value
from sonogauge.sources.readers.rows import plain
from sonogauge.sources.readers.tree import Template
from sonogauge.tables import from_facts

TABLE: Final = "ultrabench_sets.yaml"
TEST_SHARE: Final = 0.2
PARTS: Final = ("train_val", "test")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Key(_Strict):
    """The value of one key of a record.

    A text of the facts (`value`, see `sources.layout.Value`) as what it is: `typed` gives a number where it reads as
    one; `contains` asks whether the text holds a word, `same` whether two numbers agree. Or the path of the image or
    of a mask, the boxes, the size of the image. Null where there is none; with `missing_text` an empty text.
    """

    value: Value | None = None
    kind: Literal["text", "int", "typed"] = Field(default="text", alias="as")
    contains: str | None = None
    same: tuple[str, str] | None = None
    missing_text: bool = False
    image: bool = False
    size: bool = False
    mask: str | None = None
    boxes: Literal["labels", "corners"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _value_beside(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"value": given}
        own = {name: given[name] for name in ("value", "map") if name in given}
        return {**{name: one for name, one in given.items() if name != "map"}, **({"value": own} if own else {})}


class MaskFile(_Strict):
    """A kind of mask: index -> categories. always: an empty one where an image has none; empty: where facts say so."""

    classes: dict[int, tuple[str, ...]]
    folder: str | None = None
    suffix: str = ""
    always: bool = False
    empty: dict[str, str] = Field(default_factory=dict)


class Split(_Strict):
    """official: part of the case -> part of the set; else a splitter by image or by group with its random state.

    numbers: groups are numbers, and so sorted as such before the random choice.
    """

    official: dict[str, str] | None = None
    by: Literal["image", "group"] | None = None
    group: str | None = None
    numbers: bool = False
    stratify: str | None = None
    random_state: int = 42


class UltraBenchSet(_Strict):
    """One set of the table. layout: the one of the source that its cases have to be imported with."""

    source: str
    id: str
    file: str
    record: dict[str, Key]
    split: Split
    scan: tuple[Step, ...]
    image: Literal["png", "jpg"] = "png"
    scan_ending: Literal["png", "jpg"] = "png"
    colour: bool = False
    layout: str | None = None
    order: str | None = None
    facts: dict[str, Value] = Field(default_factory=dict)
    only: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    once: str | None = None
    needs: str | None = None
    masks: dict[str, MaskFile] = Field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> UltraBenchSet:
        re.compile(self.id)
        steps = {step if isinstance(step, str) else next(iter(step)) for step in self.scan}
        masks = {key.mask for key in self.record.values() if key.mask} - {"scan"}
        if unknown := (steps - STEPS.keys()) | (masks - self.masks.keys()):
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        return self

    def facts_of(self, row: Mapping[str, Any]) -> dict[str, str] | None:
        """Return the facts of a case, None where it does not belong to the set."""
        found = re.fullmatch(self.id, row["case_id"].partition("/")[2])
        if found is None:
            return None
        given: dict[str, Any] = {name: row[name] for name in ("patient", "view", "split", "width", "height", "frame")}
        if row["frame"] is not None:
            given["frame_from_1"] = row["frame"] + 1
        for one in (*(row["labels"] or ()), *(row["measurements"] or ())):
            given.setdefault(f"{'measured' if 'unit' in one else 'label'} {one['name']}", one["value"])
        given |= {f"meta {name}": value for name, value in from_facts(row["meta"]).items()}
        given |= {f"who {name}": value for name, value in from_facts(row["demographics"]).items()}
        facts = {name: plain(value) for name, value in {**given, **found.groupdict()}.items() if value is not None}
        facts |= {name: rule.of(facts) or "" for name, rule in self.facts.items()}
        return facts if all(facts.get(name) in allowed for name, allowed in self.only.items()) else None


@lru_cache(maxsize=1)
def ultrabench_sets() -> dict[str, UltraBenchSet]:
    """Return the sets by name."""
    text = (resources.files("sonogauge.export") / TABLE).read_text("utf-8")
    return {name: UltraBenchSet.model_validate(given) for name, given in yaml.safe_load(text).items()}


def filled(template: str, facts: Mapping[str, str], where: str) -> str:
    """Return a template filled with facts; raise BadInput where one is missing."""
    text = Template(template).fill(facts, empty=True)
    if text is None:
        missing = next(name for name in Template(template).fields if name not in facts)
        raise BadInput(f"case '{where}' has no '{missing}'", field=missing, fix="import the source again, as a whole")
    return text


def parts_of(split: Split, facts: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Return the part of each case: the official one, or what scikit-learn's splitter gives for the random state.

    facts, names: of the cases in the order of the set. Source: dataset specification of UltraBench, section 1.1.

    Raises:
        BadInput: a fact that the rule needs is missing, a part that is not known, too few cases to split.
    """
    import numpy as np

    if split.official is not None:
        own = [split.official.get(one.get("split", "")) for one in facts]
        if None in own:
            raise BadInput(f"case '{names[own.index(None)]}' has no official part", field="split")
        return [str(part) for part in own]
    from sklearn.model_selection import GroupShuffleSplit, train_test_split

    places = np.arange(len(facts))
    try:
        if split.by == "group":
            groups: Any = [filled(split.group or "", one, name) for one, name in zip(facts, names, strict=True)]
            groups = np.array([int(one) for one in groups] if split.numbers else groups)
            splitter = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=split.random_state)
            _, test = next(splitter.split(places, groups=groups))
        else:
            strata = None
            if split.stratify is not None:
                strata = [filled(split.stratify, one, name) for one, name in zip(facts, names, strict=True)]
            _, test = train_test_split(
                places, test_size=TEST_SHARE, random_state=split.random_state, shuffle=True, stratify=strata
            )
    except ValueError as error:
        raise BadInput(f"cannot be split ({error})", field="split", fix="import the whole source") from error
    chosen = {int(place) for place in test}
    return ["test" if place in chosen else "train_val" for place in range(len(facts))]


def record_of(
    one: UltraBenchSet, facts: Mapping[str, str], row: Mapping[str, Any], image: str, masks: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the record of a case. image, masks: paths within the set, None where an image has no such mask."""
    return {name: _value(key, facts, row, image, masks) for name, key in one.record.items()}


def _value(
    key: Key, facts: Mapping[str, str], row: Mapping[str, Any], image: str, masks: Mapping[str, str | None]
) -> Any:
    if key.image:
        return image
    if key.mask is not None:
        return masks[key.mask]
    if key.size:
        return [row["width"], row["height"]]
    if key.boxes == "labels":
        return [box["category"] for box in row["boxes"]]
    if key.boxes == "corners":
        sides = [(box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"]) for box in row["boxes"]]
        return [[_typed(plain(side)) for side in box] for box in sides]
    if key.same is not None:
        first, second = (Template(text).fill(facts) for text in key.same)
        return None if first is None or second is None else int(first) == int(second)
    text = key.value.of(dict(facts)) if key.value is not None else None
    if key.contains is not None:
        return key.contains in (text or "").lower()
    if text is None:
        return "" if key.missing_text else None
    if key.kind == "int":
        return _int(text, row)
    return _typed(text) if key.kind == "typed" else text


def _int(text: str, row: Mapping[str, Any]) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadInput(f"case '{row['case_id']}': '{text}' is no whole number") from error


def _typed(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
