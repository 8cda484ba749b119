"""One number with an optional unit: the answer of measurement tasks."""

# ruff: noqa: RUF001
from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from sonogauge.answers import cues
from sonogauge.answers.base import NULL, AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.cues import is_word
from sonogauge.answers.normalise import clean, strip_edges, without_thinking
from sonogauge.answers.refusals import is_api_error
from sonogauge.answers.refusals import refusals as find_refusals

# Millimetres per unit of length.
_LENGTHS: Final = {"mm": Decimal(1), "cm": Decimal(10), "dm": Decimal(100), "m": Decimal(1000), "µm": Decimal("0.001")}
_UNIT_NAMES: Final = {
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres", "毫米", "公厘", "ミリ", "ミリメートル"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres", "厘米", "公分", "センチ", "センチメートル"),
    "dm": ("dm", "decimeter", "decimeters", "decimetre", "decimetres", "分米"),
    "m": ("m", "meter", "meters", "metre", "metres", "米"),
    "µm": ("µm", "um", "micron", "microns", "micrometer", "micrometers", "micrometre", "micrometres", "微米"),
    "%": ("%", "percent", "per cent", "pct", "percentage points"),
}
_CANONICAL: Final = {name: unit for unit, names in _UNIT_NAMES.items() for name in names}
_FOREIGN_UNITS: Final = (
    *("kg", "g", "mg", "µg", "lb", "lbs", "ml", "l", "cl", "dl", "cc", "bpm", "hz", "khz", "mhz", "s", "ms", "sec"),
    *(
        "seconds",
        "min",
        "minutes",
        "hours",
        "h",
        "days",
        "day",
        "weeks",
        "week",
        "wk",
        "wks",
        "months",
        "years",
        "year",
    ),
    *("db", "mmhg", "kpa", "cm/s", "m/s", "mm/s", "inch", "inches", "feet", "ft", "px", "pixel", "pixels", "degrees"),
    *("°", "°c", "cm2", "cm3", "mm2", "mm3", "m2", "ml/min", "nm", "km", "gram", "grams", "kilograms", "milliliters"),
    *("cm^2", "cm^3", "mm^2", "mm^3", "cm²", "mm²", "cm³", "mm³", "mg/dl", "ml/m2", "kg/m2", "points"),
    *("公斤", "千克", "克", "毫升", "升", "像素", "周", "岁", "秒", "分钟", "英寸", "度", "平方厘米", "平方毫米"),
)
_UNIT: Final = re.compile(
    r" ?-?(?P<unit>"
    + "|".join(map(re.escape, sorted({*_CANONICAL, *_FOREIGN_UNITS}, key=lambda name: (-len(name), name))))
    + r")(?![^\W\u2e80-\uffff]|[/^]\w)"
)
# Digits with everything that may make them something else than a plain decimal number.
_NUMBER: Final = re.compile(
    r"(?P<sign>[+\-\u2212]?)(?P<digits>(?:\d|\.\d)(?:[\d]|[.,:/'^](?=\d))*(?:e[+\-]?\d{1,4}(?![\w.]))?)(?P<tail>\.?)"
)
_PLAIN: Final = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+\-]?\d+)?\Z")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+\.\d+\Z|\d{1,3}(?:,\d{3}){2,}\Z")
_RANGE_JOINT: Final = re.compile(
    r" ?(?:-{1,2}|~|to|up to|through|至|到|±|\+/-|\+-|\.\.\.?|and(?= ?\d)) ?(?=[+\-]?\.?\d)"
)
_SPREAD: Final = re.compile(r" ?(?:±|\+/-|\+-|plus or minus|plus/minus) ?(?=\.?\d)")
_BETWEEN: Final = re.compile(r"(?:between|from|zwischen|entre|介于|在) ?$")
_TIMES: Final = re.compile(r" ?(?:[x×*^](?= ?\d)|/(?= \d))")
_BOUND: Final = re.compile("(?:[<>≤≥]=? ?|(?:" + cues.any_of(cues.words(cues.BOUNDS)) + ") ?)$")
_JOINER: Final = re.compile(
    r" ?(?:[,/] ?)?(?:"
    + cues.any_of(cues.words(cues.JOIN_OR, cues.JOIN_AND))
    + r"|,|/|&) ?(?:about |around |~|≈)?(?=[+\-]?\.?\d)"
)
_CONNECTOR: Final = re.compile(r"[\"')\] ]{0,4}(?:[:=≈~]|" + cues.any_of(cues.words(cues.CONNECTORS)) + ")")
_FILLER: Final = re.compile(cues.any_of(cues.words(cues.FILLERS, cues.CONNECTORS)))
_SEPARATORS: Final = re.compile(r"[ :=\"'(\[≈~]{0,8}\n{0,3}[ \"'(\[≈~]{0,8}")
_NULL: Final = re.compile(cues.any_of(cues.words(cues.NULL_WORDS)))
_NOT_FINITE: Final = re.compile(r"(?<![a-z])(?:" + "|".join(cues.words(cues.NOT_FINITE)) + r")(?![a-z])")
_SENTENCE_END: Final = re.compile(r"[!?\n;]|\.(?=\s|$)|" + cues.any_of(("but", "however", "但", "不过")))
# NFKC would turn these into plain digits of another value.
_ODD_DIGITS: Final = re.compile(r"\d[⁰¹²³⁴-⁹₀-₉]|[¼-¾⅐-⅞⁄]")
_DOUBLE_SIGN: Final = re.compile(r"(?<![\w)%])[+\-\u2212][+\-\u2212]")
_WINDOW: Final = 24


class _Token(NamedTuple):
    """A number in a text: its place, value in the unit of the item, and what is wrong with it."""

    start: int
    end: int
    value: float
    fault: str | None


@lru_cache(maxsize=64)
def _canonical(unit: str) -> str:
    name = clean(unit).lower()
    return _CANONICAL.get(name, name)


def _decimal(digits: str) -> str | None:
    """Return the digits as a plain decimal literal, None where they are no unambiguous decimal number."""
    if _PLAIN.match(digits):
        return digits
    return digits.replace(",", "") if _THOUSANDS.match(digits) else None


def _convert(literal: str, unit: str | None, wanted: str) -> tuple[float, str | None]:
    number = float(literal)
    if not math.isfinite(number) or abs(number) > 1e100:
        return 0.0, "format"
    if unit is None or unit == wanted:
        return number, None
    if unit in _LENGTHS and wanted in _LENGTHS:
        return float(Decimal(literal) * _LENGTHS[unit] / _LENGTHS[wanted]), None
    return number, "unit"


def _token_at(low: str, match: re.Match[str], spec: AnswerSpec) -> _Token | None:
    """Return the number of a match with its fault, None where the digits belong to a word."""
    start, end = match.start("digits"), match.end("digits")
    sign = match["sign"]
    before = match.start() - 1 if sign else start - 1
    if sign and before >= 0 and (is_word(low[before]) or low[before] in ")."):
        # "IMT-3" or the second half of a range: a joint, not a sign.
        sign = ""
        if is_word(low[before]) and not low[before].isdigit():
            return None
    elif not sign and before >= 0 and (is_word(low[before]) or (low[before] == "-" and start > 1)):
        return None
    wanted = _canonical(spec.unit)
    digits = match["digits"]
    unit = _UNIT.match(low, end)
    name: str | None = None
    if unit:
        name = _CANONICAL.get(unit["unit"], unit["unit"])
        end = unit.end()
    elif low[max(0, start - 4) : start].rstrip() == "百分之":
        name = "%"
    elif end < len(low) and (is_word(low[end]) or (low[end] == "-" and low[end + 1 : end + 2].isalpha())):
        return None
    literal = _decimal(digits)
    if literal is None:
        return _Token(match.start(), end, 0.0, "format")
    value, fault = _convert(("-" if sign in ("-", "\u2212") and sign else "") + literal, name, wanted)
    if fault is None and wanted == "%" and name is None and 0.0 < abs(value) < 1.0 and (spec.high or 100.0) > 1.0:
        fault = "format"
    if fault is None and (_TIMES.match(low, end) or (low[end : end + 1] == "." and low[end + 1 : end + 2].isdigit())):
        fault = "format"
    if fault is None and (_hanging_sign(low, start, sign) or (match["sign"] and _DOUBLE_SIGN.match(low, before))):
        fault = "format"
    return _Token(match.start(), end, value, fault)


def _hanging_sign(low: str, start: int, sign: str) -> bool:
    # "- 3" alone may be a bullet or a sign.
    return (
        not sign and low[max(0, start - 2) : start] in ("- ", "\u2212 ") and not low[: max(0, start - 2)].strip(" \n")
    )


def _tokens(low: str, spec: AnswerSpec, start: int = 0) -> list[_Token]:
    found = (_token_at(low, match, spec) for match in _NUMBER.finditer(low, start))
    return [token for token in found if token is not None]


def _is_range(low: str, token: _Token) -> bool:
    """Whether a range, a spread or a bound starts at a number."""
    joint = _SPREAD.match(low, token.end) or _RANGE_JOINT.match(low, token.end)
    if joint is not None:
        return (
            joint[0].strip() != "and" or _BETWEEN.search(low[max(0, token.start - _WINDOW) : token.start]) is not None
        )
    return _BOUND.search(low[max(0, token.start - _WINDOW) : token.start]) is not None


def _declared(low: str, spec: AnswerSpec, null_allowed: bool) -> Parsed | None:
    """Return what the last declaration says, None where there is none."""
    best: Parsed | None = None
    best_at = -1
    cue_kinds = [(cue, True) for cue in cues.words(cues.DECLARE_NUMBER, cues.DECLARE_NOUN)]
    cue_kinds += [(cue, False) for cue in cues.words(cues.DECLARE)]
    for cue, needs_connector in cue_kinds:
        at = low.find(cue)
        while at >= 0:
            end = at + len(cue)
            alone = not (at and is_word(low[at - 1]) and is_word(cue[0])) and not (
                end < len(low) and is_word(low[end]) and is_word(cue[-1])
            )
            position = _value_position(low, end, needs_connector) if alone else None
            if position is not None and position > best_at:
                said = _said_at(low, position, spec, null_allowed)
                if said is not None:
                    best, best_at = said, position
            at = low.find(cue, end)
    return best


def _value_position(low: str, end: int, needs_connector: bool) -> int | None:
    """Return where the value behind a cue must start; None where its connector is missing."""
    aside = re.compile(r" \([a-z]{1,6}\)").match(low, end)
    end = aside.end() if aside else end
    if needs_connector:
        connector = _CONNECTOR.match(low, end)
        if connector is None:
            return None
        end = connector.end()
    for _ in range(8):
        separators = _SEPARATORS.match(low, end)
        end = separators.end() if separators else end
        filler = _FILLER.match(low, end)
        if filler is None or filler.end() == end:
            break
        end = filler.end()
    return end


def _said_at(low: str, position: int, spec: AnswerSpec, null_allowed: bool) -> Parsed | None:
    if null_allowed and _NULL.match(low, position):
        return Parsed(NULL)
    if _NOT_FINITE.match(low, position) or _NOT_FINITE.match(low, position + 1):
        return Parsed(None, "format")
    for lead in ("between ", "from ", *(f"{word} " for word in cues.words(cues.BOUNDS))):
        if low.startswith(lead, position):
            position += len(lead)
            break
    match = (
        _NUMBER.match(low, position)
        or (_NUMBER.match(low, position + 1) if low[position : position + 1] in "<>≤≥-" else None)
        or (_NUMBER.match(low, position + 2) if low[position : position + 2] == "- " else None)
    )
    token = _token_at(low, match, spec) if match else None
    if token is None:
        return None
    return _judge(low, [token, *_joined(low, token, spec)])


def _joined(low: str, token: _Token, spec: AnswerSpec) -> list[_Token]:
    """Return further numbers that "or", "and" or a comma joins to a declared one."""
    found: list[_Token] = []
    while len(found) < 8:
        joiner = _JOINER.match(low, token.end)
        match = _NUMBER.match(low, joiner.end()) if joiner else None
        following = _token_at(low, match, spec) if match else None
        if following is None:
            break
        found.append(following)
        token = following
    return found


def _judge(low: str, tokens: list[_Token]) -> Parsed:
    """Return the one number of a list, or why it is none."""
    first = tokens[0]
    if _is_range(low, first):
        joint = _SPREAD.match(low, first.end) or _RANGE_JOINT.match(low, first.end)
        # A range uses up two numbers; anything beyond it is one more answer.
        return Parsed(None, "range" if len(tokens) <= (2 if joint else 1) else "ambiguous")
    if len(tokens) > 1:
        same = {token.value for token in tokens if token.fault is None}
        if len(same) == 1 and all(token.fault is None for token in tokens):
            return Parsed(first.value) if not any(_is_range(low, token) for token in tokens) else Parsed(None, "range")
        return Parsed(None, "ambiguous")
    return Parsed(first.value) if first.fault is None else Parsed(None, first.fault)


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read the one number of a reply, in the unit of the item; the sign is kept, the limits are not enforced.

    Lengths are converted, any other unit is `unit`; a range, a spread or a bound is `range`; a decimal comma and a
    fraction in place of a percentage are `format`; `null` is `answers.NULL` where the options of the item allow it.

    >>> spec = AnswerSpec("number", low=100.0, high=400.0, unit="mm")
    >>> parse("12.5 cm", spec).value, parse("10-20", spec).reason, parse("12,5", spec).reason
    (125.0, 'range', 'format')
    """
    raw = without_thinking(reply) if "<" in reply or "[" in reply else reply
    text = clean(reply)
    low = text.lower()
    core = strip_edges(low)
    null_allowed = NULL in spec.options
    if not core and not low.strip(" \n\"'.,;:!?()[]-"):
        return Parsed(None, "empty")
    if null_allowed and _NULL.fullmatch(core):
        return Parsed(NULL)
    if _NOT_FINITE.fullmatch(core.lstrip("+-")):
        return Parsed(None, "format")
    if is_api_error(low):
        return Parsed(None, "error")
    if _ODD_DIGITS.search(raw):
        return Parsed(None, "format")
    declared = _declared(low, spec, null_allowed)
    if declared is not None:
        return declared
    refusals = find_refusals(low)
    scopes = [
        (span.start, end.start() if (end := _SENTENCE_END.search(low, span.end)) else len(low)) for span in refusals
    ]
    tokens = [
        token for token in _tokens(low, spec) if not any(start <= token.start < end for start, end in scopes[:64])
    ]
    if tokens:
        return _judge(low, tokens)
    if null_allowed and _NULL.search(low):
        return Parsed(NULL)
    if refusals:
        return Parsed(None, refusals[0].reason)
    return Parsed(None, "format" if _NOT_FINITE.search(low) else "none")


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: range, unit, one bare number, and `null` where it is allowed."""
    unit = {"%": "percent"}.get(spec.unit, spec.unit)
    lines = []
    if spec.low is not None and spec.high is not None:
        lines.append(f"The value lies between {spec.low:g} and {spec.high:g}{f' {unit}' if unit else ''}.")
    what = f"one bare number in {unit}, without the unit" if unit else "one bare number"
    null = f", or with the word {NULL} if it cannot be measured," if NULL in spec.options else ""
    lines.append(f"Reply with {what}{null or ','} and nothing else.".replace(", and", " and" if not null else ", and"))
    return "\n".join(lines)


FORM: Final = AnswerForm(name="number", parser="number-1", ask=ask, parse=parse, field="number")
