"""A point as the answer to "where"; units and values as in `box`."""

from __future__ import annotations

from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.box import UNIT_MEANINGS, parse_coordinates
from sonogauge.answers.place import NOT_VISIBLE


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read a point [x, y], or that nothing is visible.

    >>> parse("[512, 300]", AnswerSpec("point", unit="mille")).value
    (512.0, 300.0)
    """
    return parse_coordinates(reply, spec, 2)


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: one point in the declared unit."""
    return (
        f"Reply with one point [x, y] at its centre, in {UNIT_MEANINGS[spec.unit or 'mille']}, "
        f"or with {NOT_VISIBLE} if it cannot be seen, and nothing else."
    )


FORM: Final = AnswerForm(name="point", parser="point-1", ask=ask, parse=parse, field="points")
