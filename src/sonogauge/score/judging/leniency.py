"""Leniency v1: colours of one family and sizes of one class count as the same, where colour or size was asked.

A judge that compares words is too strict on them (pink against skin tone, pinpoint against millimetre). The tables are
rules of this toolkit; a change of them is a new version. A leniency verdict may only raise the judge's verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from sonogauge.answers.normalise import fold

LENIENCIES: Final = ("none", "v1")
ATTRIBUTES: Final = ("color", "size")

# Family to the words that name it; longer words are looked for first.
COLOURS: Final[Mapping[str, tuple[str, ...]]] = {
    "pink": ("pink", "pinkish", "rose", "rosy", "salmon", "粉红色", "粉红", "粉色", "粉"),
    "red": ("red", "reddish", "erythematous", "crimson", "scarlet", "红色", "红"),
    "skin tone": (
        *("skin tone", "skin toned", "skin colour", "skin color", "skin coloured", "skin colored"),
        *("flesh colour", "flesh color", "flesh coloured", "flesh colored", "flesh tone", "flesh", "肤色", "皮肤色"),
    ),
    "white": ("white", "whitish", "hypopigmented", "depigmented", "白色", "白"),
    "brown": ("brown", "brownish", "tan", "棕褐色", "褐色", "棕色", "褐", "棕"),
    "black": ("black", "blackish", "黑色", "黑"),
    "yellow": ("yellow", "yellowish", "黄色", "黄"),
    "purple": ("purple", "purplish", "violet", "violaceous", "紫色", "紫"),
    "blue": ("blue", "bluish", "蓝色", "蓝"),
    "green": ("green", "greenish", "绿色", "绿"),
    "grey": ("grey", "gray", "greyish", "grayish", "灰色", "灰"),
    "orange": ("orange", "橙色", "橙"),
}
NEIGHBOURS: Final = frozenset(
    frozenset(pair) for pair in (("pink", "skin tone"), ("red", "pink"), ("brown", "black"), ("white", "skin tone"))
)
# Class to its words and its range in mm, [low, high).
SIZES: Final[Mapping[str, tuple[tuple[str, ...], tuple[float, float]]]] = {
    "pinpoint": (("pinpoint", "pin point", "punctate", "pinhead", "针尖", "针头"), (0.0, 2.0)),
    "millimetre": (
        ("millimetre", "millimetres", "millimeter", "millimeters", "mm", "millimetric", "毫米"),
        (1.0, 10.0),
    ),
    "centimetre": (
        ("centimetre", "centimetres", "centimeter", "centimeters", "cm", "centimetric", "厘米"),
        (10.0, 100.0),
    ),
}
_NOT: Final = re.compile(r"\b(?:no|not|non|nor|never|neither|without|rather than|instead of)\b|n't\b|不|非|无|没")
_NUMBER: Final = r"\d+(?:[.,]\d+)?"
_UNITS: Final = r"mm|cm|millimet\w*|centimet\w*|毫米|厘米"
_MEASURE: Final = re.compile(
    rf"({_NUMBER})(?:\s?(?:-|x|\u00d7|to|by|~)\s?({_NUMBER}))?\s?-?({_UNITS})",
    re.IGNORECASE,
)


def lenient_verdict(attribute: str, references: Sequence[str], answer: str) -> float | None:
    """Return the verdict of leniency v1, the best over the references; None where it does not apply.

    Of several colours or sizes on a side each needs its match on the other, so that naming all of them earns nothing.

    >>> lenient_verdict("color", ["skin tone"], "It is pink."), lenient_verdict("color", ["red"], "blue")
    (0.5, None)
    >>> lenient_verdict("size", ["millimetre"], "pinpoint"), lenient_verdict("shape", ["round"], "oval")
    (0.5, None)
    """
    if attribute not in ATTRIBUTES:
        return None
    read, alike = (_colours, _colours_alike) if attribute == "color" else (_sizes, _sizes_alike)
    own = read(answer)
    found = [_both_ways(own, read(one), alike) for one in references if not _both_measured(attribute, one, answer)]
    best = max((one for one in found if one is not None), default=0.0)
    return best or None


def raised(verdict: float, lenient: float | None) -> float:
    """Return a judge's verdict after leniency: never lower than it was."""
    return verdict if lenient is None else max(verdict, lenient)


def _both_ways(ours: frozenset[str], theirs: frozenset[str], alike: Callable[[str, str], float]) -> float | None:
    if not ours or not theirs:
        return None
    return min(
        min(max(alike(one, other) for other in theirs) for one in ours),
        min(max(alike(one, other) for one in ours) for other in theirs),
    )


def _words(text: str, words: Mapping[str, Sequence[str]]) -> frozenset[str]:
    found = set()
    every = sorted(((word, name) for name, own in words.items() for word in own), key=lambda one: -len(one[0]))
    for word, name in every:
        pattern = rf"(?<![a-z]){re.escape(word)}(?![a-z])" if word.isascii() else re.escape(word)
        text, hits = re.subn(pattern, " ", text)
        if hits:
            found.add(name)
    return frozenset(found)


def _plain(text: str) -> str:
    return fold(text[:2000]).replace("-", " ")


def _colours(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset() if _NOT.search(plain) else _words(plain, COLOURS)


def _colours_alike(one: str, other: str) -> float:
    return 1.0 if one == other else 0.5 if frozenset((one, other)) in NEIGHBOURS else 0.0


def _sizes(text: str) -> frozenset[str]:
    # Signs between numbers count here, so hyphens stay until the numbers are read.
    plain = fold(text[:2000])
    if _NOT.search(plain):
        return frozenset()
    found = set()
    for measure in _MEASURE.finditer(plain):
        scale = 10.0 if measure[3].startswith(("c", "厘")) else 1.0
        for number in filter(None, measure.groups()[:2]):
            found.add(_class_of(float(number.replace(",", ".")) * scale))
    rest = _MEASURE.sub(" ", plain).replace("-", " ")
    return (frozenset(found) - {""}) | _words(rest, {name: words for name, (words, _) in SIZES.items()})


def _class_of(millimetres: float) -> str:
    bounds = [0.0, 1.0, 10.0, 100.0]
    for name, (low, high) in zip(SIZES, pairwise(bounds), strict=True):
        if low <= millimetres < high:
            return name
    return ""


def _sizes_alike(one: str, other: str) -> float:
    if one == other:
        return 1.0
    (low, high), (other_low, other_high) = SIZES[one][1], SIZES[other][1]
    return 0.5 if max(low, other_low) < min(high, other_high) else 0.0


def _both_measured(attribute: str, reference: str, answer: str) -> bool:
    # Two numbers can be compared; classes are for words.
    return attribute == "size" and bool(
        _MEASURE.search(fold(reference[:2000])) and _MEASURE.search(fold(answer[:2000]))
    )
