"""One of ten places in an image: nine sectors and "not visible"; how replies name them and where points lie."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.engine import read
from sonogauge.answers.vocabulary import Vocabulary, compile_vocabulary

PLACES: Final = (
    "upper left",
    "upper center",
    "upper right",
    "middle left",
    "center",
    "middle right",
    "lower left",
    "lower center",
    "lower right",
    "not visible",
)
NOT_VISIBLE: Final = "not visible"
# Borders of the middle row and column as fractions of the image: a band is half-open, [start, end).
LOW_EDGE: Final = 0.45
HIGH_EDGE: Final = 0.55

_ROWS: Final = (("upper", "top"), ("middle", "mid", "center", "centre", "central"), ("lower", "bottom"))
_COLUMNS: Final = (("left",), ("center", "centre", "central", "middle"), ("right",))
# "left of center" is not the center; which place it is the words do not say.
_BESIDE: Final = ("left of", "right of", "above", "below", "off")


def _synonyms() -> dict[str, int]:
    found = {"centre": 4, "central": 4, "not-visible": 9}
    for row, column in product(range(3), range(3)):
        for pair in product(_ROWS[row], _COLUMNS[column]):
            for phrase in (pair, pair[::-1]):
                for joint in (" ", "-"):
                    found[joint.join(phrase)] = 3 * row + column
    return found


@lru_cache(maxsize=16)
def _vocabulary(options: tuple[str, ...]) -> Vocabulary:
    keep = {PLACES.index(option): index for index, option in enumerate(options) if option in PLACES}
    synonyms = {phrase: keep[place] for phrase, place in _synonyms().items() if place in keep}
    for beside, article, joint in product(_BESIDE, ("", "the "), (" ", "-")):
        synonyms |= {f"{beside}{joint}{article}{center}": len(options) for center in _COLUMNS[1][:2]}
    return compile_vocabulary(options, synonyms=synonyms)


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read the one place that a reply names; synonyms and swapped word order count, the longest phrase wins.

    >>> parse("Bottom-center", AnswerSpec("place")).value
    'lower center'
    """
    options = spec.options or PLACES
    reading = read(reply, _vocabulary(options))
    if reading.reason is not None:
        return Parsed(None, reading.reason)
    (index,) = reading.found
    return Parsed(options[index]) if index < len(options) else Parsed(None, "none")


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: the ten places and the demand for one of them."""
    options = "\n".join(spec.options or PLACES)
    return f"Options:\n{options}\nReply with exactly one of these options, in one or two words, and nothing else."


def _band(fraction: float) -> int:
    return 0 if fraction < LOW_EDGE else 1 if fraction < HIGH_EDGE else 2


def place_of(x: float, y: float) -> str:
    """Return the place of a point given as fractions of image width and height (section 5.2).

    >>> place_of(0.1, 0.2), place_of(0.5, 0.5), place_of(0.55, 0.45)
    ('upper left', 'center', 'middle right')
    """
    return PLACES[3 * _band(y) + _band(x)]


def is_near_edge(x: float, y: float, margin: float = 0.02) -> bool:
    """Whether a coordinate lies within `margin` (a fraction) of a band edge, so that the place is a close call."""
    # The tolerance keeps 0.43, which is 0.02 away in decimal but not in binary, on the near side.
    return any(abs(value - edge) <= margin + 1e-9 for value in (x, y) for edge in (LOW_EDGE, HIGH_EDGE))


def band_distance(one: str, other: str) -> int | None:
    """Return the Manhattan distance of two places in bands (rows plus columns), None if one is "not visible".

    >>> band_distance("upper left", "lower center"), band_distance("center", "not visible")
    (3, None)
    """
    if NOT_VISIBLE in (one, other):
        return None
    first, second = PLACES.index(one), PLACES.index(other)
    return abs(first // 3 - second // 3) + abs(first % 3 - second % 3)


FORM: Final = AnswerForm(name="place", parser="place-1", ask=ask, parse=parse, field="places")
