"""The rows of a prediction file: columns found, two files joined by id, truths checked, one row at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.score.table_files import ID_COLUMN, VALUE_COLUMN, Chunk, TableFile, open_table

_VLMEVALKIT: Final = ("index", "answer", "prediction")
_LETTERS: Final = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# More distinct truths than this are no options.
_MOST_OPTIONS: Final = 1000
STRATUM: Final = "table"
# Squares of squares of larger numbers leave the range of a double.
LARGEST: Final = 1e50


class Row(NamedTuple):
    """One prediction with its truth, checked.

    truth: an option, a tuple of options, a number, or a tuple with a text. prediction: None = there is none.
    options: of this row alone, in the order of the letters; empty where all rows share theirs.
    """

    truth: Any
    prediction: Any
    group: str
    stratum: str
    parts: Mapping[str, str]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableColumns:
    """Which columns of which file hold what.

    letters: option columns of a VLMEvalKit result file. where: (column, value) pairs to keep.
    """

    file: Path
    table: TableFile
    form: str
    truth: str
    prediction: str
    group: str | None
    stratum: str | None
    by: tuple[str, ...]
    id: str | None
    truths: TableFile | None
    where: tuple[tuple[str, str], ...]
    letters: tuple[str, ...]
    vlmevalkit: bool

    @classmethod
    def find(
        cls,
        file: Path,
        truth: str | None,
        prediction: str | None,
        answer: str | None,
        options: Sequence[str],
        group: str | None,
        stratum: str | None,
        by: Sequence[str],
        id: str | None,
        truth_file: Path | str | None,
        where: Sequence[str],
    ) -> TableColumns:
        """Open the files and find the columns.

        Raises:
            BadInput: a column that is not there or was not named, a filter that is none.
        """
        table = open_table(file)
        truths = open_table(truth_file) if truth_file is not None else None
        known = truths is None and set(_VLMEVALKIT) <= set(table.columns)
        letters: tuple[str, ...] = ()
        if known and not options and answer in (None, "choice") and truth in (None, "answer"):
            letters = _run_of_letters(table.columns)
        recognised = known and bool(letters) and prediction in (None, "prediction")
        if recognised:
            truth, prediction, answer, id = "answer", "prediction", "choice", id or "index"
        else:
            letters = ()
        if truths is not None:
            id = id or (ID_COLUMN if ID_COLUMN in table.columns and ID_COLUMN in truths.columns else None)
            if id is None:
                raise BadInput("two files are joined by id", field="id", fix="name the column with --id")
            prediction = prediction or (VALUE_COLUMN if VALUE_COLUMN in table.columns else None)
            truth = truth or (VALUE_COLUMN if VALUE_COLUMN in truths.columns else None)
        for name, given in (("truth", truth), ("prediction", prediction), ("answer", answer)):
            if given is None:
                raise BadInput(f"--{name} is missing", file=file, field=name, fix="name it; columns: " + _some(table))
        assert truth is not None and prediction is not None and answer is not None
        found = cls(
            file=file,
            table=table,
            form=answer,
            truth=truth,
            prediction=prediction,
            group=group,
            stratum=stratum,
            by=tuple(by),
            id=id,
            truths=truths,
            where=tuple(_condition(one) for one in where),
            letters=letters,
            vlmevalkit=recognised,
        )
        found._check()
        return found

    def _check(self) -> None:
        home = self.truths or self.table
        home.require(self.truth, "truth")
        self.table.require(self.prediction, "prediction")
        if self.id is not None:
            self.table.require(self.id, "id")
            home.require(self.id, "id")
        for name, column in (("group", self.group), ("stratum", self.stratum), *(("by", one) for one in self.by)):
            if column is not None and not (self.truths and column in self.table.columns):
                home.require(column, name)
        for column, _ in self.where:
            if not (self.truths and column in self.table.columns):
                home.require(column, "where")

    @property
    def facts(self) -> list[str]:
        """The columns beside truth, prediction and options, each once."""
        wanted = [self.group, self.stratum, *self.by, *(column for column, _ in self.where)]
        return list(dict.fromkeys(column for column in wanted if column is not None))

    def options(self) -> tuple[str, ...]:
        """Return the distinct truths, sorted: the options where none were named.

        Raises:
            BadInput: too many for options.
        """
        if self.letters:
            return self.letters
        seen: set[str] = set()
        home = self.truths or self.table
        kept = [column for column, _ in self.where if column in home.columns]
        for chunk in home.chunks([self.truth, *kept]):
            for number, value in enumerate(chunk[self.truth]):
                if all(
                    as_text(chunk[column][number]) == wanted for column, wanted in self.where if column in home.columns
                ):
                    seen.update(_several(value) if self.form == "multi_choice" else [as_text(value)])
            if len(seen) > _MOST_OPTIONS:
                raise BadInput(
                    f"more than {_MOST_OPTIONS} different truths",
                    file=home.path,
                    field=self.truth,
                    fix="give --options",
                )
        return tuple(sorted(one for one in seen if one))


def _run_of_letters(columns: Sequence[str]) -> tuple[str, ...]:
    count = next((number for number, letter in enumerate(_LETTERS) if letter not in columns), len(_LETTERS))
    return _LETTERS[:count] if count >= 2 else ()


def _some(table: TableFile) -> str:
    return ", ".join(table.columns[:30])


def _condition(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not equals or not column:
        raise BadInput(f"not a condition: '{text}'", field="where", fix="write COLUMN=VALUE")
    return column, value


def as_text(value: Any) -> str:
    """Return a cell as the text it shows: whole floats without a decimal part, no value as an empty text.

    >>> as_text(1.0), as_text(None), as_text(" a "), as_text(True)
    ('1', '', 'a', 'True')
    """
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def read_rows(columns: TableColumns, spec: AnswerSpec) -> Iterator[Row]:
    """Yield the rows to score, in the order of the file with the truths.

    Raises:
        BadInput: naming file, row and field of a missing, doubled or unknown id, a truth outside the options or that
            is no number, a missing group.
    """
    truth_of = _Truth(columns, spec)
    options = frozenset(spec.options)
    home = columns.truths or columns.table
    predictions = _predictions(columns) if columns.truths is not None else None
    wanted = list(
        dict.fromkeys(
            [
                columns.truth,
                *([columns.prediction] if predictions is None else []),
                *([columns.id] if columns.id is not None else []),
                *(column for column in columns.facts if column in home.columns),
                *columns.letters,
            ]
        )
    )
    simple = spec.form == "choice" and not columns.letters
    seen: set[str] = set()
    number = 0
    for chunk in home.chunks(wanted):
        for at, value in enumerate(chunk[columns.truth]):
            number += 1
            said: Any = None
            extra: Mapping[str, Any] = {}
            if columns.id is not None:
                item_id = _checked_id(chunk[columns.id][at], seen, home, number, columns.id)
                if predictions is not None:
                    said, extra = predictions.pop(item_id, _NONE)
            if predictions is None:
                said = chunk[columns.prediction][at]
            if columns.where and not _kept(columns, chunk, at, extra):
                continue
            own: tuple[str, ...] = ()
            if simple and isinstance(value, str) and value in options:
                truth: Any = value
            else:
                truth, own = truth_of(value, chunk, at, number)
            group = (
                f"row {number}" if columns.group is None else _fact(columns, columns.group, chunk, at, extra, number)
            )
            stratum = STRATUM if columns.stratum is None else _fact(columns, columns.stratum, chunk, at, extra, number)
            parts = {
                column: as_text(chunk[column][at] if column in chunk else extra.get(column)) for column in columns.by
            }
            yield Row(truth, said, group, stratum, parts, own)
    if predictions:
        raise BadInput(
            f"a prediction for '{next(iter(predictions))}', which has no truth",
            file=columns.file,
            field=columns.id,
            fix=f"remove it, or add it to {home.path}",
        )


_NONE: Final[tuple[Any, Mapping[str, Any]]] = (None, {})


def _kept(columns: TableColumns, chunk: Chunk, at: int, extra: Mapping[str, Any]) -> bool:
    return all(
        as_text(chunk[column][at] if column in chunk else extra.get(column)) == wanted
        for column, wanted in columns.where
    )


def _fact(columns: TableColumns, column: str, chunk: Chunk, at: int, extra: Mapping[str, Any], number: int) -> str:
    value = as_text(chunk[column][at] if column in chunk else extra.get(column))
    if not value:
        raise BadInput(
            "no value",
            file=columns.file,
            row=number,
            field=column,
            fix="fill it in, or leave --group and --stratum out",
        )
    return value


def _checked_id(value: Any, seen: set[str], home: TableFile, number: int, column: str) -> str:
    item_id = as_text(value)
    if not item_id:
        raise BadInput("no id", file=home.path, row=number, field=column, fix="give every row an id of its own")
    if item_id in seen:
        raise BadInput(
            f"the id '{item_id}' stands twice", file=home.path, row=number, field=column, fix="keep one row for each id"
        )
    seen.add(item_id)
    return item_id


def _predictions(columns: TableColumns) -> dict[str, tuple[Any, Mapping[str, Any]]]:
    assert columns.id is not None
    home = columns.truths
    facts = [column for column in columns.facts if home is not None and column not in home.columns]
    found: dict[str, tuple[Any, Mapping[str, Any]]] = {}
    seen: set[str] = set()
    number = 0
    for chunk in columns.table.chunks(list(dict.fromkeys([columns.id, columns.prediction, *facts]))):
        for at, value in enumerate(chunk[columns.id]):
            number += 1
            item_id = _checked_id(value, seen, columns.table, number, columns.id)
            found[item_id] = chunk[columns.prediction][at], {column: chunk[column][at] for column in facts}
    return found


class _Truth:
    """Reads and checks the truth of a row."""

    def __init__(self, columns: TableColumns, spec: AnswerSpec) -> None:
        self._columns = columns
        self._spec = spec
        self._home = columns.truths or columns.table

    def __call__(self, value: Any, chunk: Chunk, at: int, number: int) -> tuple[Any, tuple[str, ...]]:
        text = "" if isinstance(value, list | tuple) else as_text(value)
        if not text and not isinstance(value, list | tuple):
            raise self._bad("no truth", number, "fill it in or remove the row")
        form = self._spec.form
        if form == "number":
            return self._number(text, number), ()
        if form == "text":
            return (str(value),), ()
        if form == "multi_choice":
            several = tuple(_several(value))
            for one in several:
                self._option(one, number)
            if not several:
                raise self._bad("no truth", number, "name at least one right option")
            return several, ()
        if self._columns.letters:
            return self._of_row(text, chunk, at, number)
        return self._option(text, number), ()

    def _bad(self, what: str, number: int, fix: str) -> BadInput:
        return BadInput(what, file=self._home.path, row=number, field=self._columns.truth, fix=fix)

    def _number(self, text: str, number: int) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or "_" in text:
            raise self._bad(f"not a number: '{text[:40]}'", number, "write a plain decimal number or remove the row")
        if abs(found) > LARGEST:
            raise self._bad(f"a number beyond {LARGEST:g}: '{text[:40]}'", number, "check it, or use a larger unit")
        return found

    def _option(self, text: str, number: int) -> str:
        if text not in self._spec.options:
            shown = ", ".join(self._spec.options[:10])
            raise self._bad(f"the truth '{text[:40]}' is none of the options {shown}", number, "mend it or --options")
        return text

    def _of_row(self, text: str, chunk: Chunk, at: int, number: int) -> tuple[str, tuple[str, ...]]:
        shown = [as_text(chunk[letter][at]) for letter in self._columns.letters]
        while shown and (not shown[-1] or shown[-1].lower() == "nan"):
            shown.pop()
        letters = self._columns.letters[: len(shown)]
        if text in letters:
            return text, tuple(shown)
        if text in shown:
            return letters[shown.index(text)], tuple(shown)
        raise self._bad(
            f"the truth '{text[:40]}' is none of the options of its row", number, "give the letter of an option"
        )


def _several(value: Any) -> list[str]:
    """Return the options that a truth of several names: a list, JSON, or options joined by comma or semicolon."""
    if isinstance(value, list | tuple):
        return [as_text(one) for one in value]
    text = as_text(value)
    if text.startswith("["):
        try:
            return [as_text(one) for one in json.loads(text)]
        except ValueError:
            pass  # An option may begin with a bracket; it is then checked as a plain list.
    return [one.strip() for one in text.replace(";", ",").split(",") if one.strip()]
