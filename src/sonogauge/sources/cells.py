"""Cells that hold a written Python or JSON value, read without ever running them."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any, Final

MAX_CHARACTERS: Final = 100_000
MAX_DEPTH: Final = 16

# Outside label columns these say that there is no value.
_MISSING: Final = frozenset({"", "nan", "NaN", "None", "null"})
_NAMES: Final[dict[str, Any]] = {
    "None": None,
    "null": None,
    "nan": math.nan,
    "NaN": math.nan,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
}
# Only these tokens may occur, so nothing that could be run or that nests out of sight ever reaches the parser.
_TOKEN: Final = re.compile(
    r"""(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<number>[-+]?(?:\d{1,64}\.?\d{0,64}|\.\d{1,64})(?:[eE][-+]?\d{1,3})?(?![\w.]))"""
    r"""|(?P<name>[A-Za-z]+(?!\w))"""
    r"""|(?P<open>[\[{(])|(?P<close>[\]})])|(?P<rest>[,:]|\s+)"""
)
# A backslash that starts no escape stays a backslash, as Python has it, but without a warning.
_LONE_BACKSLASH: Final = re.compile(
    r"""\\(?:(?P<known>[\\'"nrtbf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|)"""
)


class CellError(ValueError):
    """Text that is no written value, or one too large or too deep."""


def is_missing(cell: str) -> bool:
    """Whether a cell outside the label columns says that there is no value.

    >>> is_missing("nan"), is_missing("None"), is_missing("0")
    (True, True, False)
    """
    return cell.strip() in _MISSING


def parse_cell(cell: str) -> Any:
    """Return the value written in a cell: dict, list, string, number, bool or None.

    Both quote styles, tuples (as lists), `nan`, and JSON's `null`, `true` and `false` are read. Keys become strings.

    Raises:
        CellError: not a literal, a key twice in one dict, over MAX_CHARACTERS or MAX_DEPTH.

    >>> parse_cell("{'lesion': [0.5, 0.25, 0.1, 0.1]}")
    {'lesion': [0.5, 0.25, 0.1, 0.1]}
    >>> parse_cell('[{"a": null}, {"b": true}]')
    [{'a': None}, {'b': True}]
    """
    text = cell.strip()
    if len(text) > MAX_CHARACTERS:
        raise CellError(f"longer than {MAX_CHARACTERS} characters")
    plain = _checked(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except CellError:
        raise
    except ValueError:
        value = _parse_python(plain)
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise CellError("half a character") from error
    return value


def _checked(text: str) -> str:
    depth = 0
    position = 0
    parts: list[str] = []
    before = ""
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise CellError(f"unreadable at character {position + 1}")
        position = token.end()
        kind, part = token.lastgroup, token.group()
        if kind == "open":
            depth += 1
            if depth > MAX_DEPTH:
                raise CellError(f"nested deeper than {MAX_DEPTH}")
        elif kind == "close":
            depth -= 1
        elif kind == "name" and part not in _NAMES:
            raise CellError(f"unknown word at character {token.start() + 1}")
        elif kind == "string":
            if before == "string":  # Python would join the two
                raise CellError(f"comma missing at character {token.start() + 1}")
            part = _LONE_BACKSLASH.sub(lambda found: found.group() if found["known"] else r"\\", part)
        elif kind == "rest" and part.isspace():
            part, kind = " ", before
        before = kind or ""
        parts.append(part)
    return "".join(parts)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise CellError(f"key {key!r} twice")
        found[key] = value
    return found


def _parse_python(text: str) -> Any:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CellError("not a written value") from error
    return _value(tree.body)


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.UnaryOp(op=ast.UAdd(), operand=ast.Constant(value=int() | float() as value)):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part) for part in parts]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return _unique([(str(_value(key)), _value(value)) for key, value in pairs if key is not None])
    raise CellError("not a written value")


def bare_text(cell: str) -> str:
    """Strip brackets and quotes around a single word that is not written as a value.

    >>> bare_text("[benign]"), bare_text("'benign'"), bare_text("['4A'")
    ('benign', 'benign', '4A')
    """
    return cell.strip().strip("[]").strip().strip("'\"").strip()
