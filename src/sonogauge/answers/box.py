"""A box or a point as the answer to "where": read strictly, turned into its place.

`AnswerSpec.unit` declares the coordinates: `mille` (0 to 1000 of width and height), `unit` (0 to 1) or `pixel` (of the
image as sent). The origin is the upper left corner. A value is a tuple of numbers in that unit, or "not visible".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.normalise import as_text, clean, fold
from sonogauge.answers.place import NOT_VISIBLE, place_of
from sonogauge.answers.refusals import is_api_error, refusals

Value = tuple[float, ...] | str

_LARGEST: Final = {"mille": 1000.0, "unit": 1.0}
UNIT_MEANINGS: Final = {
    "mille": "thousandths of the image width and height, from 0 to 1000",
    "unit": "fractions of the image width and height, from 0 to 1",
    "pixel": "pixels of the image",
}
_NUMBER: Final = r"[-+]?\d+(?:\.\d+)?"
_LISTS: Final = re.compile(rf"[\[(]\s*({_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*[\])]")
_CORNERS: Final = re.compile(
    rf"[\[(]\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\])]\s*,?\s*[\[(]\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\])]"
)
_BARE: Final = re.compile(rf"\s*({_NUMBER}(?:\s*[,\s]\s*{_NUMBER})+)\s*\.?\s*")
_NOTHING: Final = frozenset({"not visible", "not-visible", "null", "none", ""})


def parse_coordinates(reply: str, spec: AnswerSpec, count: int) -> Parsed:
    """Read the one list of `count` numbers in a reply.

    A failure is `none` (no list), `format` (another count, a box with its corners swapped), `range` (outside the unit),
    `ambiguous` (several different lists), `empty`, `error` or a refusal.
    """
    text = as_text(reply)
    low = clean(reply).lower()
    if not text:
        return Parsed(None, "empty")
    if is_api_error(low):
        return Parsed(None, "error")
    if fold(reply) in _NOTHING:
        return Parsed(NOT_VISIBLE)
    if count == 4:
        text = _CORNERS.sub(r"[\1, \2, \3, \4]", text)
    found = {_numbers(hit[1]) for hit in _LISTS.finditer(text)}
    if not found and (bare := _BARE.fullmatch(text)):
        found = {_numbers(bare[1])}
    if not found:
        refused = refusals(low)
        return Parsed(None, refused[0].reason if refused else "none")
    fitting = {numbers for numbers in found if len(numbers) == count}
    if len(fitting) != 1:
        return Parsed(None, "ambiguous" if fitting else "format")
    (numbers,) = fitting
    if count == 4 and not (numbers[0] < numbers[2] and numbers[1] < numbers[3]):
        return Parsed(None, "format")
    if min(numbers) < 0 or max(numbers) > _LARGEST.get(spec.unit, float("inf")):
        return Parsed(None, "range")
    return Parsed(numbers)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in re.findall(_NUMBER, text))


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    r"""Read a box [x1, y1, x2, y2], or that nothing is visible.

    >>> parse('```json\n{"bbox_2d": [100, 200, 300, 400]}\n```', AnswerSpec("box", unit="mille")).value
    (100.0, 200.0, 300.0, 400.0)
    >>> parse("[300, 200, 100, 400]", AnswerSpec("box", unit="mille")).reason
    'format'
    """
    return parse_coordinates(reply, spec, 4)


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: one box in the declared unit."""
    return (
        "Reply with one box [x1, y1, x2, y2] around it, upper left corner first, in "
        f"{UNIT_MEANINGS[spec.unit or 'mille']}, or with {NOT_VISIBLE} if it cannot be seen, and nothing else."
    )


def place_of_value(value: Value, unit: str, size: tuple[int, int] | None = None) -> str | None:
    """Return the place of a point, or of the centre of a box; None if it lies outside the image.

    unit: see the module. size: (width, height) of the image as sent, needed for pixels.

    >>> place_of_value((0.0, 0.0, 200.0, 300.0), "mille"), place_of_value((0.5, 0.5), "unit")
    ('upper left', 'center')
    """
    if isinstance(value, str):
        return NOT_VISIBLE
    x, y = _centre(value)
    if unit == "pixel":
        if size is None:
            raise ValueError("a place in pixels needs the size of the image as sent")
        x, y = x / size[0], y / size[1]
    else:
        x, y = x / _LARGEST[unit or "mille"], y / _LARGEST[unit or "mille"]
    return place_of(x, y) if 0 <= x <= 1 and 0 <= y <= 1 else None


def _centre(value: Sequence[float]) -> tuple[float, float]:
    if len(value) == 4:
        return (value[0] + value[2]) / 2, (value[1] + value[3]) / 2
    return value[0], value[1]


FORM: Final = AnswerForm(name="box", parser="box-1", ask=ask, parse=parse, field="boxes")
