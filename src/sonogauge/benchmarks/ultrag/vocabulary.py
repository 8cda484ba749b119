"""The 13 categories as data: targets with their aliases and types, sources with their split rule and known faults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from sonogauge._errors import BadInput

PATHOLOGIES: Final = ("benign", "malignant", "unspecified", "not_applicable", "conflicting")
_NOT_WORD: Final = re.compile(r"[^a-z0-9]+")


def normalise(text: str) -> str:
    """Return a text in lower case with each run of other characters than a-z and 0-9 as one space, trimmed.

    >>> normalise(" The B-line, (2)! ")
    'the b line 2'
    """
    return _NOT_WORD.sub(" ", text.lower()).strip()


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Target(_Strict):
    """A canonical region: its type, its other names, and whether it can be benign or malignant."""

    type: str
    aliases: tuple[str, ...] = ()
    pathology: bool = False


class SourceFacts(_Strict):
    """A source: how it was split, which known source of `sonogauge import` it is, what its mask values mean."""

    split: Literal["image", "patient", "volume", "own"] = "image"
    pooled: bool = False  # has an own split, which the published one discards
    sources: tuple[str, ...] = Field(default=(), alias="import")
    values: dict[str, str] = Field(default_factory=dict)
    rename: dict[str, str] = Field(default_factory=dict)  # canonical name as labelled -> what the masks show
    # Labels by which a case says that it shows no target; without masks and without such a label it is unlabelled.
    negatives: dict[str, tuple[str, ...]] = Field(default={"pathology": ("normal",)})
    unseen: bool = False  # not in the training data of UltraSAM3
    known_issues: tuple[str, ...] = ()


class Category(_Strict):
    """One anatomical category."""

    name: str
    organ: str
    anatomy: str
    style: Literal["lesions", "organs"]
    sources: dict[str, SourceFacts]
    targets: dict[str, Target]

    def canonical(self, raw: str, source: str = "") -> str | None:
        """Return the canonical region of a raw name, None for an unknown one.

        A pathology in the raw name ("malignant tumor") is no part of the region.

        >>> load_category("Breast").canonical("Malignant_Tumor"), load_category("Breast").canonical("rib")
        ('breast lesion', None)
        """
        facts = self.sources.get(source)
        raw = (facts.values.get(raw.strip(), raw) if facts else raw).strip()
        words = [word for word in normalise(raw).split() if word not in ("benign", "malignant")]
        key = " ".join(words)
        if not key:
            # A name that is a pathology alone belongs to the one region that has pathologies.
            ill = [name for name, target in self.targets.items() if target.pathology]
            name = ill[0] if raw and len(ill) == 1 else None
        else:
            name = self._names.get(key)
        return facts.rename.get(name, name) if facts and name else name

    @cached_property
    def _names(self) -> dict[str, str]:
        names = {normalise(name): name for name in self.targets}
        for name, target in self.targets.items():
            for alias in target.aliases:
                names.setdefault(normalise(alias), name)
        return names

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # The longest name first, so that "thyroid" inside "thyroid nodule" is not the gland.
        names = sorted(self._names, key=lambda name: (-len(name), name))
        return re.compile(r"\b(?:" + "|".join(re.escape(name) for name in names) + r")\b")

    def mentions(self, text: str) -> list[tuple[int, int, str]]:
        """Return where a normalised text names regions: (start, end, canonical name), in order, longest name first.

        >>> [name for _, _, name in load_category("Thyroid").mentions("a thyroid nodule in the gland")]
        ['thyroid nodule', 'thyroid']
        """
        return [(hit.start(), hit.end(), self._names[hit[0]]) for hit in self._pattern.finditer(text)]

    def named(self, text: str) -> frozenset[str]:
        """Return the canonical regions that a text names."""
        return frozenset(name for _, _, name in self.mentions(normalise(text)))


@lru_cache(maxsize=1)
def load_categories() -> Mapping[str, Category]:
    """Return all categories by name, in alphabetical order.

    >>> len(load_categories()), sum(len(one.sources) for one in load_categories().values())
    (13, 40)
    """
    folder = files("sonogauge.benchmarks.ultrag") / "categories"
    found = [
        Category.model_validate(yaml.safe_load(one.read_text("utf-8")))
        for one in folder.iterdir()
        if one.name.endswith(".yaml")
    ]
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


@lru_cache(maxsize=1)
def all_categories() -> Mapping[str, Category]:
    """Return the 13 categories and those that are no part of the benchmark (`others/`: the simulated images)."""
    folder = files("sonogauge.benchmarks.ultrag") / "others"
    others = [Category.model_validate(yaml.safe_load(one.read_text("utf-8"))) for one in folder.iterdir()]
    return {**load_categories(), **{one.name: one for one in sorted(others, key=lambda one: one.name)}}


def load_category(name: str) -> Category:
    """Return a category; raise BadInput for an unknown name."""
    found = all_categories().get(name)
    if found is None:
        raise BadInput(f"no category '{name}'", fix="known: " + ", ".join(all_categories()))
    return found


def category_of_source(name: str) -> tuple[Category, str] | None:
    """Return the category and the UltraG name of a source: of an UltraG source, or of a known source of `import`.

    >>> category, name = category_of_source("hc18")
    >>> category.name, name
    ('Fetal', 'HC')
    """
    key = normalise(name)
    for category in all_categories().values():
        for source, facts in category.sources.items():
            if key == normalise(source) or key in map(normalise, facts.sources):
                return category, source
    return None


@dataclass(frozen=True)
class AnyCategory:
    """The regions of all categories at once, for an item that does not say its category."""

    organ: str = ""
    parts: Mapping[str, Category] = field(default_factory=load_categories)

    def mentions(self, text: str) -> list[tuple[int, int, str]]:
        """See `Category.mentions`."""
        found: list[tuple[int, int, str]] = []
        for one in self.parts.values():
            found += one.mentions(text)
        # Of overlapping names the longest stays.
        kept: list[tuple[int, int, str]] = []
        for start, end, name in sorted(found, key=lambda hit: (hit[0] - hit[1], hit[0], hit[2])):
            if all(end <= left or start >= right for left, right, _ in kept):
                kept.append((start, end, name))
        return sorted(kept)

    def named(self, text: str) -> frozenset[str]:
        """See `Category.named`."""
        return frozenset(name for _, _, name in self.mentions(normalise(text)))


def vocabulary_of(facts: Mapping[str, Any]) -> Category | AnyCategory:
    """Return the vocabulary of an item's meta (`category`), that of all categories where it names none."""
    name = facts.get("category")
    return load_category(str(name)) if name else AnyCategory()
