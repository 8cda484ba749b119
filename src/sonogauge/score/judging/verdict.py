"""Reading the reply of a judge: one JSON object with a verdict of 0, 0.5 or 1, or the reason why there is none."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from sonogauge.answers.normalise import as_text

LEVELS: Final = (0.0, 0.5, 1.0)
# Why a reply of a judge holds no verdict.
FAULTS: Final = ("empty", "format", "level", "contradiction", "size", "truncated", "error")
_LONGEST: Final = 20_000  # characters
_MOST_OBJECTS: Final = 100
_WORDS: Final = {"0": 0.0, "0.0": 0.0, "0.5": 0.5, "1": 1.0, "1.0": 1.0}


class Read(NamedTuple):
    """A verdict with its rationale, or None with one of FAULTS."""

    verdict: float | None
    rationale: str = ""
    fault: str | None = None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written: a key may stand in it twice."""


def read_verdict(reply: str) -> Read:
    """Read the reply of a judge; nothing is guessed from prose.

    Objects without a verdict are passed over; two different verdicts are a contradiction, wherever they stand.

    >>> read_verdict('{"rationale": "same disease", "verdict": 0.5}')
    Read(verdict=0.5, rationale='same disease', fault=None)
    >>> read_verdict("INCORRECT").fault, read_verdict('{"verdict": 0.7}').fault
    ('format', 'level')
    >>> read_verdict('{"verdict": 1} no, {"verdict": 0}').fault
    'contradiction'
    """
    if len(reply) > _LONGEST:
        return Read(None, fault="size")
    text = as_text(reply)
    if not text:
        return Read(None, fault="empty")
    said: list[Any] = []
    rationale = ""
    for pairs in _objects(text):
        own = [value for key, value in pairs if key == "verdict"]
        if own:
            said += own
            words = [value for key, value in pairs if key == "rationale" and isinstance(value, str)]
            rationale = words[-1] if words else ""
    if not said:
        return Read(None, fault="format")
    levels = {_level(value) for value in said}
    if None in levels:
        return Read(None, fault="level")
    if len(levels) > 1:
        return Read(None, fault="contradiction")
    return Read(levels.pop(), rationale.encode("utf-8", "replace").decode("utf-8"))


def _level(value: Any) -> float | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value in LEVELS else None


def _objects(text: str) -> list[_Pairs]:
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    found: list[_Pairs] = []
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            found.append(value)
        start = text.find("{", end)
    return found
