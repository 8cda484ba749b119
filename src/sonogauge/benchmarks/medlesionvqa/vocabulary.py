"""Versioned vocabularies: terms with a name, synonyms and a parent, read from YAML files.

The vocabularies of the paper are not available. A small set of our own (`demo-1`) ships for demonstrations; real work
brings its own folder with the same four files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.schema import ATTRIBUTES

KINDS: Final = ("body_parts", "lesions", "attributes", "diseases")
MOST_LEVELS: Final = 4
DEMONSTRATION: Final = "demo-1"


class Term(BaseModel):
    """One term; `parent` is the id of the term above it, of an attribute value the attribute.

    mimics: ids of terms that are easily taken for it, the closest first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    synonyms: tuple[str, ...] = ()
    parent: str = ""
    mimics: tuple[str, ...] = ()


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: str
    licence: str = ""
    terms: list[Term] = Field(min_length=1)


def fold(text: str) -> str:
    """Return a text as terms are compared: without case and odd spaces.

    >>> fold("  Basal  Cell carcinoma ")
    'basal cell carcinoma'
    """
    return " ".join(text.casefold().split())


@dataclass(frozen=True)
class Vocabulary:
    """The terms of one kind."""

    kind: str
    version: str
    terms: tuple[Term, ...]
    _by_id: dict[str, Term] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {one.id: one for one in self.terms})

    def __contains__(self, name: object) -> bool:
        return name in self._by_id

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def term(self, name: str) -> Term:
        """Return the term with an id; raise BadInput if there is none."""
        if name not in self._by_id:
            raise BadInput(f"no term '{name}' in the vocabulary {self.kind} {self.version}", fix="use the id of a term")
        return self._by_id[name]

    @cached_property
    def _words(self) -> dict[str, str]:
        return {fold(word): one.id for one in self.terms for word in (one.id, one.name, *one.synonyms)}

    def resolve(self, text: str) -> str:
        """Return the id that an id, a name or a synonym stands for; raise BadInput for an unknown word."""
        found = self._words.get(fold(text))
        if found is None:
            raise BadInput(f"'{text}' is not in the vocabulary {self.kind} {self.version}", fix="add it as a synonym")
        return found

    def path(self, name: str) -> tuple[str, ...]:
        """Return the ids from the root to a term."""
        found = [self.term(name)]
        while found[-1].parent in self._by_id:
            found.append(self._by_id[found[-1].parent])
        return tuple(one.id for one in reversed(found))

    def at_level(self, name: str, level: int) -> str:
        """Return the ancestor of a term at a level (root = 1), the term itself if it lies above that."""
        path = self.path(name)
        return path[min(level, len(path)) - 1]

    def distance(self, a: str, b: str) -> int:
        """Return the number of steps between two terms of the tree, through a common root above all roots."""
        first, second = self.path(a), self.path(b)
        shared = 0
        for one, other in zip(first, second, strict=False):
            if one != other:
                break
            shared += 1
        return len(first) + len(second) - 2 * shared

    def related(self, a: str, b: str) -> bool:
        """Tell whether one term lies above the other or is it."""
        return a in self.path(b) or b in self.path(a)


@dataclass(frozen=True)
class Vocabularies:
    """The four vocabularies of a benchmark."""

    body_parts: Vocabulary
    lesions: Vocabulary
    attributes: Vocabulary
    diseases: Vocabulary

    @property
    def versions(self) -> dict[str, str]:
        """Version of each, for the manifest."""
        return {kind: getattr(self, kind).version for kind in KINDS}


def read_vocabulary(file: Path | Traversable, kind: str) -> Vocabulary:
    """Read and check one vocabulary.

    Raises:
        BadInput: no such file, an id or a word that stands twice, an unknown parent, a circle, too many levels; of
            attributes a parent that is none of the six.
    """
    if not file.is_file():
        raise BadInput("no such vocabulary", file=str(file), fix="write version and terms: id, name, synonyms, parent")
    try:
        found = _File.model_validate(yaml.safe_load(file.read_text("utf-8")))
    except (ValueError, yaml.YAMLError, ValidationError) as error:
        raise BadInput(f"not a vocabulary ({error})", file=str(file)) from error
    vocabulary = Vocabulary(kind, found.version, tuple(found.terms))
    for what in _faults(vocabulary):
        raise BadInput(what, file=str(file), field="terms")
    return vocabulary


def _faults(vocabulary: Vocabulary) -> Iterator[str]:
    words: dict[str, str] = {}
    for row, one in enumerate(vocabulary.terms):
        if any(other.id == one.id for other in vocabulary.terms[:row]):
            yield f"the id '{one.id}' stands there twice"
        if vocabulary.kind == "attributes":
            if one.parent not in ATTRIBUTES:
                yield f"'{one.id}' belongs to no attribute (parent '{one.parent}')"
        elif one.parent and one.parent not in vocabulary:
            yield f"'{one.id}' has an unknown parent '{one.parent}'"
        # Values of different attributes may share a word ("large" patches, a large size).
        scope = one.parent if vocabulary.kind == "attributes" else ""
        for word in {fold(word) for word in (one.id, one.name, *one.synonyms)}:
            if words.setdefault(f"{scope}/{word}", one.id) != one.id:
                yield f"'{word}' stands for '{words[f'{scope}/{word}']}' and for '{one.id}'"
        for mimic in one.mimics:
            if mimic not in vocabulary:
                yield f"'{one.id}' names an unknown mimic '{mimic}'"
    yield from _tree_faults(vocabulary)


def _tree_faults(vocabulary: Vocabulary) -> Iterator[str]:
    parents: dict[str, str] = {one.id: one.parent for one in vocabulary.terms}
    for name in parents:
        seen: list[str] = []
        at = name
        while at in parents and at not in seen:
            seen.append(at)
            at = parents[at]
        if at in seen:
            yield f"'{name}' lies above itself"
        elif len(seen) > MOST_LEVELS:
            yield f"'{name}' lies at level {len(seen)}; {MOST_LEVELS} at most"


def load_vocabularies(folder: Path | None = None) -> Vocabularies:
    """Return the vocabularies of a folder, by default those for demonstration."""
    base: Any = (
        folder if folder is not None else files("sonogauge.benchmarks.medlesionvqa") / "vocabulary" / DEMONSTRATION
    )
    return Vocabularies(**{kind: read_vocabulary(base / f"{kind}.yaml", kind) for kind in KINDS})
