"""Vocabulary: raw words of the sources to canonical ones, from one mapping file; and the class filter."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.hashes import canonical_hash
from sonogauge.tables import CASES

_COLUMNS: Final = ("raw", "canonical", "source", "field")
_NEEDED: Final = ("raw", "canonical")
# Columns of the cases that hold words, and how the mapping file calls the field.
_LISTS: Final = {"labels": "value", "boxes": "category", "masks": "category", "points": "name"}
_PLAIN: Final = ("view", "anatomy")
RAW: Final = "raw "  # before the field, in the meta of a case whose word was changed


@dataclass(frozen=True)
class Vocabulary:
    """A mapping file.

    words: (field, source, raw word in lower case) -> canonical word; field: a label's name, "category", "point",
    "view", "anatomy" or "" for all; source: "" for all.
    """

    words: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Content hash."""
        return canonical_hash(sorted([*key, word] for key, word in self.words.items()))

    def find(self, name: str, source: str, raw: str) -> str | None:
        """Return the canonical word, None if the file does not name the raw one; the most exact row counts.

        A word of other signs ("fetal-brain") is the word that the file spells with spaces, if it does.
        """
        for folded in dict.fromkeys((" ".join(raw.casefold().split()), without_signs(raw))):
            for key in ((name, source), (name, ""), ("", source), ("", "")):
                if (*key, folded) in self.words:
                    return self.words[*key, folded]
        return None


def without_signs(word: str) -> str:
    """Return a word in lower case with a space for every run of signs.

    >>> without_signs(" Fetal-Head_plane.")
    'fetal head plane'
    """
    return " ".join("".join(sign if sign.isalnum() else " " for sign in word.casefold()).split())


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a mapping file: CSV with the columns raw, canonical, and perhaps source and field.

    Raises:
        BadInput: unreadable, a missing or unknown column, an empty canonical word, one raw word with two meanings.
    """
    words: dict[tuple[str, str, str], str] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            names = reader.fieldnames or []
            if missing := [name for name in _NEEDED if name not in names]:
                raise BadInput("column missing", file=path, field=missing[0], fix="columns: " + ", ".join(_COLUMNS))
            if unknown := sorted(set(names) - set(_COLUMNS)):
                raise BadInput("unknown column", file=path, field=unknown[0], fix="columns: " + ", ".join(_COLUMNS))
            for number, row in enumerate(reader, start=1):
                values = {name: " ".join((row.get(name) or "").split()) for name in _COLUMNS}
                if not values["raw"] or not values["canonical"]:
                    raise BadInput("a word is empty", file=path, row=number)
                key = (values["field"], values["source"], values["raw"].casefold())
                if words.setdefault(key, values["canonical"]) != values["canonical"]:
                    raise BadInput(f"'{values['raw']}' has two meanings", file=path, row=number)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput("not a CSV file in UTF-8", file=path) from error
    return Vocabulary(words)


@dataclass(frozen=True)
class Mapped:
    """What the stage did: how many words were changed, and the raw words that the file does not name."""

    changed: int
    unmapped: Counter[tuple[str, str, str]]  # field, source, raw word


def map_words(batch: pa.RecordBatch, vocabulary: Vocabulary) -> tuple[pa.RecordBatch, Mapped]:
    """Return the batch in canonical words, and what was done; the raw word of a changed one goes to `meta`.

    The batch holds any columns of the cases table, `source` among them.
    """
    rows = batch.select([name for name in batch.schema.names if name != "image"]).to_pylist()
    changed = 0
    unmapped: Counter[tuple[str, str, str]] = Counter()
    raw: list[dict[str, str]] = [{} for _ in rows]
    columns: dict[str, list[Any]] = {}

    def word_of(number: int, name: str, given: str | None) -> str | None:
        nonlocal changed
        if given is None:
            return None
        source = rows[number]["source"]
        word = vocabulary.find(name, source, given)
        if word is None:
            unmapped[name, source, given] += 1
            return given
        if word != given:
            changed += 1
            raw[number].setdefault(f"{RAW}{name}", given)
        return word

    for column, key in _LISTS.items():
        if column in batch.schema.names:
            columns[column] = [
                [{**one, key: word_of(number, _field(column, one), one[key])} for one in row[column] or ()]
                for number, row in enumerate(rows)
            ]
    for column in _PLAIN:
        if column in batch.schema.names:
            columns[column] = [word_of(number, column, row[column]) for number, row in enumerate(rows)]
    if "meta" in batch.schema.names:
        columns["meta"] = [_merge(row["meta"], raw[number]) for number, row in enumerate(rows)]
    arrays = {
        name: pa.array(columns[name], type=CASES.field(name).type) if name in columns else batch.column(name)
        for name in batch.schema.names
    }
    return pa.RecordBatch.from_pydict(arrays, schema=batch.schema), Mapped(changed, unmapped)


def _field(column: str, one: Mapping[str, Any]) -> str:
    if column == "labels":
        return str(one["name"])
    return "point" if column == "points" else "category"


def _merge(meta: list[dict[str, str]] | None, more: Mapping[str, str]) -> list[dict[str, str]]:
    facts = {row["name"]: row["value"] for row in meta or ()}
    return [{"name": name, "value": value} for name, value in sorted({**facts, **more}.items())]


def filtered(row: Mapping[str, Any], drop: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the label by which the class filter leaves a case out, as "name=value", or None."""
    for name, unwanted in drop.items():
        values = {label["value"] for label in row["labels"] or () if label["name"] == name}
        if name in _PLAIN:
            values.add(row[name])
        if hit := sorted(values & set(unwanted)):
            return f"{name}={hit[0]}"
    return None
