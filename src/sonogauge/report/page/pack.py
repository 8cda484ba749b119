"""Compact data for a page: columns with shared strings, and JSON that no text can break out of."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

DIGITS: Final = 6
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Strings:
    """Distinct strings by number; the empty string is 0.

    >>> strings = Strings()
    >>> strings("a"), strings(""), strings("a"), strings.all
    (1, 0, 1, ['', 'a'])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def __call__(self, value: str | None) -> int:
        """Return the number of a string, a new one for a new string; None counts as empty."""
        return self._numbers.setdefault(value or "", len(self._numbers))

    @property
    def all(self) -> list[str]:
        """The strings by number."""
        return list(self._numbers)


def short(value: float | None) -> float | int | None:
    """Return a number with six significant digits, a whole one without its point; not finite = None.

    >>> short(0.12345678), short(3.0), short(float("nan"))
    (0.123457, 3, None)
    """
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return rows as columns."""
    return {name: [row[name] for row in rows] for name in names}


def script_json(value: Any) -> str:
    r"""Return JSON for a `<script type="application/json">` element.

    Every `<` is escaped, so that no text can end the element or open a comment; half a surrogate pair, which UTF-8
    cannot hold, is escaped too.

    >>> script_json({"reply": "</script><!--\ud800"})
    '{"reply":"\\u003c/script>\\u003c!--\\ud800"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
