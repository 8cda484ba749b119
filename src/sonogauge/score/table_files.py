"""Reading prediction files of any tool, chunk by chunk: csv, tsv, jsonl, json, parquet, xlsx.

Every reader yields chunks of columns; row numbers in messages count from 1, the header not counted.
"""

from __future__ import annotations

import codecs
import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput

CHUNK: Final = 8_192
# A field longer than this is no reply.
_LARGEST_FIELD: Final = 16_000_000
ID_COLUMN: Final = "id"
VALUE_COLUMN: Final = "value"

Chunk = dict[str, list[Any]]


@dataclass(frozen=True)
class TableFile:
    """A file of rows: its columns, and how to read some of them.

    chunks: wanted columns -> chunks, each column a list of equal length; None = no value.
    """

    path: Path
    columns: tuple[str, ...]
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]

    def require(self, column: str, option: str) -> None:
        """Refuse a column that is not there.

        Raises:
            BadInput: naming the columns that are.
        """
        if column not in self.columns:
            raise BadInput(
                f"no column '{column}'",
                file=self.path,
                field=option,
                fix="it has " + ", ".join(self.columns[:30]) + (", …" if len(self.columns) > 30 else ""),
            )


def open_table(path: Path | str) -> TableFile:
    """Open a file of rows by its ending.

    A `.csv` file whose first line has no comma may be separated by semicolons or tabs. A `.json` file holds {id: value}
    or {id: {column: value}} (columns `id`, `value`), or a list of objects.

    Raises:
        BadInput: no such file, an unknown ending, no columns, two columns of one name.
    """
    file = Path(path)
    if not file.is_file():
        raise BadInput("no such file", file=file)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise BadInput(f"cannot read '{file.suffix}' files", file=file, fix="give " + ", ".join(sorted(_READERS)))
    found = reader(file)
    if not found.columns:
        raise BadInput("no columns in it", file=file)
    doubled = sorted({name for name in found.columns if found.columns.count(name) > 1})
    if doubled:
        raise BadInput("two columns of this name", file=file, field=doubled[0], fix="rename one")
    return found


def _text(path: Path) -> TableFile:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    header = next(_csv_rows(path, delimiter), [])
    if delimiter == "," and len(header) == 1:
        # A table has two columns at least: spreadsheets of many countries separate them by semicolons, some by tabs.
        delimiter = next((other for other in ";\t" if other in header[0]), ",")
        header = next(_csv_rows(path, delimiter), [])
    columns = tuple(header)

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        places = [columns.index(name) for name in wanted]
        rows = _csv_rows(path, delimiter)
        next(rows, None)
        block: list[list[str]] = []
        empty = 0
        for number, row in enumerate(rows, start=1):
            if not row:
                empty = empty or number
                continue
            # Empty lines at the end are no rows; one between rows may be a row that got lost.
            if empty:
                raise BadInput("an empty line", file=path, row=empty, fix="remove it")
            if len(row) != len(columns):
                raise BadInput(
                    f"{len(row)} fields where the header has {len(columns)}",
                    file=path,
                    row=number,
                    fix="quote fields that hold the separator or a line break",
                )
            block.append(row)
            if len(block) >= CHUNK:
                yield {name: [row[place] for row in block] for name, place in zip(wanted, places, strict=True)}
                block = []
        if block:
            yield {name: [row[place] for row in block] for name, place in zip(wanted, places, strict=True)}

    return TableFile(path, columns, chunks)


def _csv_rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(min(sys.maxsize, _LARGEST_FIELD))
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.reader(stream, delimiter=delimiter, strict=True):
                yield row
                number += 1
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 ({_first_fault(path)})", file=path, fix="save it as UTF-8") from error
    except csv.Error as error:
        raise BadInput(f"not a table ({error})", file=path, row=number, fix="quote fields, and close quotes") from error


def _first_fault(path: Path) -> str:
    """Return where a file stops being UTF-8: the decoder reads ahead and knows no line."""
    with path.open("rb") as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "it begins as UTF-16"
        stream.seek(0)
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f"line {number}, byte {error.start + 1}: {error.reason}"
    return "a character is cut off"


def _from_dicts(path: Path, rows: Callable[[], Iterator[Mapping[str, Any]]]) -> TableFile:
    first = next(rows(), None)
    columns = tuple(first) if first is not None else ()

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        block: list[Mapping[str, Any]] = []
        for row in rows():
            block.append(row)
            if len(block) >= CHUNK:
                yield {name: [one.get(name) for one in block] for name in wanted}
                block = []
        if block:
            yield {name: [one.get(name) for one in block] for name in wanted}

    return TableFile(path, columns, chunks)


def _jsonl(path: Path) -> TableFile:
    def rows() -> Iterator[Mapping[str, Any]]:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadInput(f"not JSON ({error})", file=path, row=number) from error
                if not isinstance(row, dict):
                    raise BadInput("not a JSON object", file=path, row=number, fix="write one object a line")
                yield row

    return _from_dicts(path, rows)


def _json(path: Path) -> TableFile:
    def no_double(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            double = next(name for name in names if names.count(name) > 1)
            raise BadInput(f"'{double}' stands in it twice", file=path, fix="keep one")
        return found

    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=no_double)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON ({error})", file=path) from error
    table: list[dict[str, Any]]
    if isinstance(content, dict):
        table = [
            {ID_COLUMN: name, **one} if isinstance(one, dict) else {ID_COLUMN: name, VALUE_COLUMN: one}
            for name, one in content.items()
        ]
    elif isinstance(content, list) and all(isinstance(one, dict) for one in content):
        table = content
    else:
        raise BadInput("neither {id: value} nor a list of objects", file=path)
    return _from_dicts(path, lambda: iter(table))


def _parquet(path: Path) -> TableFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"not Parquet ({error})", file=path) from error

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        try:
            # Without pre_buffer=False the whole file is read ahead.
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=CHUNK, columns=list(wanted)):
                    yield {name: batch.column(name).to_pylist() for name in wanted}
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise BadInput(f"broken Parquet ({error})", file=path) from error

    return TableFile(path, columns, chunks)


def _xlsx(path: Path) -> TableFile:
    def rows() -> Iterator[Sequence[Any]]:
        from openpyxl import load_workbook

        book = None
        try:
            book = load_workbook(path, read_only=True, data_only=True)
            yield from book.worksheets[0].iter_rows(values_only=True)
        except Exception as error:
            # A broken part of a workbook surfaces as whatever the zip, XML or openpyxl code stumbles over.
            raise BadInput(f"not an Excel workbook ({type(error).__name__}: {error})", file=path) from error
        finally:
            if book is not None:
                book.close()

    header = next(iter(rows()), ())
    columns = tuple("" if name is None else str(name) for name in header)
    while columns and not columns[-1]:
        columns = columns[:-1]

    def dicts() -> Iterator[Mapping[str, Any]]:
        found = iter(rows())
        next(found, None)
        for row in found:
            if any(value is not None for value in row):
                yield dict(zip(columns, row, strict=False))

    source = _from_dicts(path, dicts)
    return TableFile(path, columns, source.chunks)


_READERS: Final[dict[str, Callable[[Path], TableFile]]] = {
    ".csv": _text,
    ".tsv": _text,
    ".jsonl": _jsonl,
    ".json": _json,
    ".parquet": _parquet,
    ".xlsx": _xlsx,
}
