"""What an answer form is: how to ask, how to read a reply, what a reference of it looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# The word a number item may offer for "cannot be measured"; a valid answer, not a number.
NULL: Final = "null"


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """What an item accepts as an answer (the `answer` column of the items table).

    options: exact option strings, in the order shown; letters: shown beside them, empty = none shown.
    low, high: declared range of a number in `unit`; tolerance: absolute, on the scaled value.
    """

    form: str
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    unit: str = ""
    tolerance: float | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AnswerSpec:
        """Build from the `answer` struct of an items row."""
        return cls(
            form=row["form"],
            options=tuple(row.get("options") or ()),
            letters=tuple(row.get("letters") or ()),
            low=row.get("low"),
            high=row.get("high"),
            unit=row.get("unit") or "",
            tolerance=row.get("tolerance"),
        )


class Parsed(NamedTuple):
    """A parsed reply: a value, or None with the reason (one of `tables.REASONS`)."""

    value: Any
    reason: str | None = None

    @property
    def valid(self) -> bool:
        """Whether the reply could be read."""
        return self.reason is None


@dataclass(frozen=True)
class AnswerForm:
    """One kind of answer.

    parser: name and version of the strict parser, part of every signature ("choice-1").
    ask: output instruction for an item, without a trailing newline.
    parse: strict parser of a reply; never raises.
    field: which field of `tables.VALUE` holds references and predictions of this form.
    settle: of a form that draws: turns a parsed value into pixels of the original image, once the (width, height) of
        the image and of the image as sent (None = unchanged) are known; never raises.
    """

    name: str
    parser: str
    ask: Callable[[AnswerSpec], str]
    parse: Callable[[str, AnswerSpec], Parsed]
    field: str
    settle: Callable[[Any, AnswerSpec, tuple[int, int], tuple[int, int] | None], Parsed] | None = None
