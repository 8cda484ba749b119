"""Sizes, clock positions and grades in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sonogauge.metrics.clinical.lexicon import Lexicon, Term
from sonogauge.metrics.clinical.sentences import Mention, Sentence

_ROMAN: Final = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"}
_RANGE: Final = frozenset({"-", "~", "to", "至", "到"})
# Larger than anything an ultrasound image shows; also keeps odd numbers out.
_LARGEST_MM: Final = 1000.0
_FILLERS, _VALUES, _NEAR = 4, 4, 3


@dataclass(frozen=True, slots=True)
class Size:
    """A size in mm and the tokens it stands on."""

    values: tuple[float, ...]
    start: int
    stop: int


def _is_number(word: str) -> bool:
    return word[0].isdigit() and word.isascii()


def _unit(words: list[str], position: int, lexicon: Lexicon) -> tuple[float, int] | None:
    """Return the factor to mm of the unit at a token, and the token after it."""
    for length in (2, 1):
        factor = lexicon.units.get("".join(words[position : position + length]))
        if factor is not None and position + length <= len(words):
            return factor, position + length
    return None


def sizes(sentence: Sentence, lexicon: Lexicon) -> list[Size]:
    """Return the sizes of a sentence: "12 x 8 mm", "1.2cm*0.8cm", "3-5 mm"; no distances, depths, speeds or areas."""
    words, tokens, grammar = sentence.words, sentence.tokens, lexicon.words
    result: list[Size] = []
    position = 0 if sentence.has_number else len(words)
    while position < len(words):
        if not _is_number(words[position]):
            position += 1
            continue
        start = position
        numbers: list[tuple[float, float | None]] = []
        while position < len(words) and _is_number(words[position]) and len(numbers) < _VALUES:
            value = float(words[position])
            position += 1
            unit = _unit(words, position, lexicon)
            factor: float | None = None
            if unit is not None:
                factor, position = unit
            numbers.append((value, factor))
            between = words[position] if position < len(words) else ""
            if (between in grammar["times"] or between in _RANGE) and position + 1 < len(words):
                if not _is_number(words[position + 1]):
                    break
                position += 1
            else:
                break
        if numbers[-1][1] is None:
            continue
        factor = None
        values: list[float] = []
        for value, own in reversed(numbers):  # a number without a unit has that of the next one
            factor = own if own is not None else factor
            values.append(round(value * (factor or 1.0), 3))
        following = words[position] if position < len(words) else ""
        touching = position < len(words) and tokens[position][1] == tokens[position - 1][2]
        before = words[max(0, start - _NEAR) : start]
        if (
            following == "/"
            or (touching and following in ("2", "3", "²", "³", "^"))
            or following in grammar["distance_after"]
            or any(word in grammar["distance_before"] for word in before)
            or not all(0 < value <= _LARGEST_MM for value in values)
        ):
            continue
        result.append(Size(tuple(reversed(values)), start, position))
    return result


def clock_positions(sentence: Sentence) -> list[Mention]:
    """Return clock positions as places: "3 o'clock", "3点", "3:00 position"."""
    words = sentence.words
    result: list[Mention] = []
    for position, word in enumerate(words if sentence.has_number else ()):
        if not (word.isascii() and word.isdigit() and len(word) <= 2 and 1 <= int(word) <= 12):
            continue
        after = words[position + 1 : position + 4]
        length = 0
        if after[:2] == ["o", "clock"]:
            length = 3
        elif after[:1] in (["oclock"], ["点"]):
            length = 2
        elif after[:2] == [":", "00"]:
            length = 3
        if length:
            result.append(Mention(Term("place", f"{int(word)} o'clock"), position, position + length))
    return result


def grade_value(sentence: Sentence, mention: Mention, lexicon: Lexicon) -> str | None:
    """Return the value behind a grading system, None without an allowed one.

    "BI-RADS category 4A" and "BI-RADS: IVa" are "4a"; a letter belongs to the number it touches.
    """
    words, tokens = sentence.words, sentence.tokens
    position = mention.stop
    limit = min(len(words), position + _FILLERS)
    while position < limit and words[position] in lexicon.words["fillers"]:
        position += 1
    if position >= len(words):
        return None
    word = words[position]
    value = _ROMAN.get(word, word)
    if len(word) > 1 and word[-1] in "abc" and word[:-1] in _ROMAN:
        value = _ROMAN[word[:-1]] + word[-1]
    allowed = lexicon.grade_values[mention.term.name]
    if position + 1 < len(words) and tokens[position + 1][1] == tokens[position][2]:
        longer = value + words[position + 1]
        if longer in allowed:
            return longer
    return value if value in allowed else None
