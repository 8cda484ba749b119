"""Tables of facts: csv in any delimiter, xlsx, JSON, JSON lines, `key: value` files, plain lists; rows of text."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput

MAX_CELL: Final = 1_000_000
MAX_TABLE_BYTES: Final = 512 * 1024 * 1024
FORMATS: Final = ("csv", "tsv", "xlsx", "json", "jsonl", "lists", "entries", "keys", "list")
_ENDINGS: Final = {"csv": "csv", "tsv": "tsv", "xlsx": "xlsx", "json": "json", "jsonl": "jsonl", "cfg": "keys"}
_MAX_DEPTH: Final = 8

Row = dict[str, str]


def read_rows(
    data: bytes,
    name: str,
    *,
    kind: str | None = None,
    delimiter: str | None = None,
    columns: Sequence[str] = (),
    sheet: str | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table as text by column; names and cells lose the spaces around them.

    Args:
        data: the file.
        name: how messages call it; its ending tells the format where `kind` does not.
        kind: one of FORMATS. `keys` is one row of `key: value` lines, `list` has cells between white space, `lists` is
            a JSON object of lists whose entries become rows of `list` (its key) and `entry`, `entries` a JSON object
            of objects, each a row with its key as `entry`.
        delimiter: of csv; without it the one of `,`, `;` and tab that the header has most of.
        columns: names of the columns of a file without a header.
        sheet: of xlsx; names are compared in their first 31 characters, without it the first sheet.

    Raises:
        BadInput: not such a table, a cell over MAX_CELL characters, a column twice.
    """
    kind = kind or _ENDINGS.get(name.rpartition(".")[2].lower(), "list" if columns else "")
    if kind not in FORMATS:
        raise BadInput(f"not a table of a known kind '{kind}'", file=name, fix="known: " + ", ".join(FORMATS))
    if kind == "xlsx":
        yield from _xlsx(data, name, sheet)
        return
    text = _text(data, name)
    if kind in ("csv", "tsv"):
        yield from _csv(text, name, delimiter or ("\t" if kind == "tsv" else None), columns)
    elif kind == "json":
        yield from _json(text, name)
    elif kind == "lists":
        yield from _lists(text, name)
    elif kind == "entries":
        yield from _entries(text, name)
    elif kind == "jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield flatten(_loads(line, name, number), name)
    elif kind == "keys":
        yield _keys(text, name)
    else:
        for line in text.splitlines():
            if cells := line.split():
                yield {column: _checked(cell, name, column) for column, cell in zip(columns, cells, strict=False)}


def _text(data: bytes, name: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput("encoded as UTF-16", file=name, fix="save it as UTF-8")
    if data.startswith(b"version https://git-lfs"):
        raise BadInput("a Git LFS pointer, not the data", file=name, fix="download the file itself")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Spreadsheets of Western systems; every byte has a meaning there.
        return data.decode("cp1252", "replace")


def _checked(cell: str, name: str, column: str, row: int | None = None) -> str:
    if len(cell) > MAX_CELL:
        raise BadInput(
            f"a cell over {MAX_CELL} characters", file=name, row=row, field=column, fix="look for an open quote"
        )
    return cell.strip()


def _csv(text: str, name: str, delimiter: str | None, columns: Sequence[str]) -> Iterator[Row]:
    first = text.partition("\n")[0]
    mark = delimiter or max(",;\t", key=first.count)
    before = csv.field_size_limit(MAX_CELL + 1)
    number = 0
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        header = [one.strip() for one in columns or next(lines, [])]
        named = [one for one in header if one]
        if not named:
            raise BadInput("no header", file=name)
        if len(set(named)) < len(named):
            twice = next(one for one in named if named.count(one) > 1)
            raise BadInput("column twice", file=name, field=twice)
        for number, cells in enumerate(lines, 1):
            if not any(cell.strip() for cell in cells):
                continue
            pairs = zip(header, cells, strict=False)
            yield {column: _checked(cell, name, column, number) for column, cell in pairs if column}
    except csv.Error as error:
        large = "field larger" in str(error)
        reason = f"a cell over {MAX_CELL} characters" if large else f"{error}"
        raise BadInput(reason, file=name, row=number + 1, fix="look for a quote left open") from error
    finally:
        csv.field_size_limit(before)


def _xlsx(data: bytes, name: str, sheet: str | None) -> Iterator[Row]:
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(one.file_size for one in archive.infolist()) > MAX_TABLE_BYTES:
                raise BadInput("unpacks to more than a table should", file=name)
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except BadInput:
        raise
    except Exception as error:  # openpyxl raises nearly anything on hostile bytes
        raise BadInput("not a readable xlsx file", file=name) from error
    try:
        sheets = {one.title: one for one in book.worksheets}
        wanted = next((one for title, one in sheets.items() if sheet is not None and title == sheet[:31]), None)
        if sheet is not None and wanted is None:
            raise BadInput(f"no sheet '{sheet}'", file=name, fix="it has: " + ", ".join(sheets))
        rows = (wanted or book.worksheets[0]).iter_rows(values_only=True)
        header = ["" if cell is None else str(cell).strip() for cell in next(rows, ())]
        for number, cells in enumerate(rows, 1):
            row = {
                column: _checked(_cell(cell), name, column, number)
                for column, cell in zip(header, cells, strict=False)
                if column
            }
            if any(row.values()):
                yield row
    finally:
        book.close()


def _cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _loads(text: str, name: str, row: int | None = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("not JSON", file=name, row=row) from error


def _json(text: str, name: str) -> Iterator[Row]:
    value = _loads(text, name)
    for one in value if isinstance(value, list) else [value]:
        yield flatten(one, name)


def _lists(text: str, name: str) -> Iterator[Row]:
    value = _loads(text, name)
    if not isinstance(value, dict) or not all(isinstance(one, list) for one in value.values()):
        raise BadInput("not a JSON object of lists", file=name)
    for key, entries in value.items():
        for entry in entries:
            yield {"list": str(key), "entry": _checked(plain(entry), name, "entry")}


def _entries(text: str, name: str) -> Iterator[Row]:
    value = _loads(text, name)
    if not isinstance(value, dict):
        raise BadInput("not a JSON object of objects", file=name)
    for key, entry in value.items():
        yield {**flatten(entry, name), "entry": _checked(str(key), name, "entry")}


def flatten(value: Any, name: str) -> Row:
    """Return a JSON object as text by dotted key; lists stay JSON.

    Raises:
        BadInput: no object, or one nested too deeply.

    >>> flatten({"meta": {"sex": "f", "age": 31, "pair": [1, 2]}}, "a.json")
    {'meta.sex': 'f', 'meta.age': '31', 'meta.pair': '[1, 2]'}
    """
    if not isinstance(value, dict):
        raise BadInput("not a JSON object", file=name)
    found: Row = {}

    def visit(part: Mapping[str, Any], before: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise BadInput(f"nested deeper than {_MAX_DEPTH}", file=name)
        for key, one in part.items():
            column = f"{before}{str(key).strip()}"
            if isinstance(one, dict):
                visit(one, f"{column}.", depth + 1)
            else:
                found[column] = _checked(plain(one), name, column)

    visit(value, "", 0)
    return found


def plain(value: Any) -> str:
    """Return a JSON scalar as text, "" for null, and anything else as JSON.

    >>> plain(None), plain(True), plain(2.0), plain([1])
    ('', 'true', '2', '[1]')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _keys(text: str, name: str) -> Row:
    row: Row = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip():
            row[key.strip()] = _checked(value, name, key.strip())
    return row
