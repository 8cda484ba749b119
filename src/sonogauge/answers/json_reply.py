"""JSON in replies: the object a reply holds, whatever stands around it, or why there is none."""

from __future__ import annotations

import json
from typing import Any, Final

from sonogauge.answers.base import Parsed
from sonogauge.answers.normalise import as_text, clean
from sonogauge.answers.refusals import is_api_error, refusals

LONGEST: Final = 16 * 2**20  # characters; a picture of a mask takes a thousandth of it


def read_object(reply: str) -> Parsed:
    """Read the JSON object of a reply: as a whole, without a code fence, else from the first brace to the last.

    A failure is `empty`, `error` (a failed request), a refusal, `size` (a reply of over 16 million characters), or
    `format` (no JSON, or JSON that is no object).

    >>> read_object('Here: {"answer": "yes"} as asked.').value
    {'answer': 'yes'}
    >>> read_object("[1, 2]").reason
    'format'
    """
    if len(reply) > LONGEST:
        return Parsed(None, "size")
    text = as_text(reply)
    if not text:
        return Parsed(None, "empty")
    value = _loads(text)
    if value is None:
        start, end = text.find("{"), text.rfind("}")
        value = _loads(text[start : end + 1]) if 0 <= start < end else None
    if isinstance(value, dict):
        return Parsed(value)
    # Only the edges of a long text can be an apology.
    low = clean(text if len(text) < 20_000 else text[:10_000]).lower()
    if is_api_error(low):
        return Parsed(None, "error")
    refused = refusals(low) if "{" not in text else []
    return Parsed(None, refused[0].reason if refused else "format")


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def plain_text(value: Any) -> str | None:
    """Return a JSON value that stands for a text: a string, a number, yes or no; None for anything else.

    >>> plain_text(" a "), plain_text(True), plain_text(2), plain_text(None)
    ('a', 'yes', '2', None)
    """
    if isinstance(value, str):
        # Half a character (a lone surrogate) fits in no table.
        return value.encode("utf-8", "replace").decode("utf-8").strip()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, (int, float)) and abs(value) < 1e15 else None
