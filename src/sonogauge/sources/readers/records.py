"""Rows that carry or name their image: Parquet and JSON lines of Hugging Face datasets, JSON lists, VLMEvalKit TSV."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, Final

from sonogauge._errors import BadInput
from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MAX_BYTES, MediaFault, decode_base64
from sonogauge.sources.readers.files import Masks
from sonogauge.sources.readers.locate import locate
from sonogauge.sources.readers.open import open_still
from sonogauge.sources.readers.pictures import Picture
from sonogauge.sources.readers.rows import Row, flatten, plain
from sonogauge.sources.readers.tree import Tree
from sonogauge.sources.tsv import TsvFile

# Columns that hold the image where the layout names none, in this order.
_IMAGE_COLUMNS: Final = ("image", "img", "image_path", "file_name", "img_data")


class _NoImageColumn(BadInput):
    """A table of something else, or of images under another name."""


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of tables of records; tables without images may lie beside those with.

    Options: `image`, the column of the image (a struct of bytes and path, base64 text, or a path beside the file). The
    other columns become facts; `masks` of the layout may name files in cells.
    """
    spool = _Spool()
    masks = [Masks(tree, rule, log) for rule in layout.masks]
    without: list[_NoImageColumn] = []
    for path, fields in tree.match(*layout.find):
        log.used.add(path)
        name = path.rpartition(".")[0]
        folder = path.rpartition("/")[0]
        for number, facts, image in _with_images(_rows(tree, path, layout, spool), path, without, log):
            log.count("records")
            where = f"{path}, row {number + 1}"
            facts = {**facts, **fields, "row": str(number), "record_file": path, "folder": folder}
            if isinstance(image, str):
                found = locate(tree, image, path) if image else None
                if found is None:
                    log.drop(where, "record without an image file")
                    continue
                log.used.add(found)
                name_of_file = found.rpartition("/")[2]
                facts |= {"path": found, "file": name_of_file, "stem": name_of_file.rpartition(".")[0]}
                finding = Finding(found, found.rpartition(".")[0], facts, partial(open_still, tree, found))
            elif image is None:
                log.drop(where, "record without an image")
                continue
            else:
                finding = Finding(where, f"{name}/{number:06d}", facts, image)
            for mask in masks:
                mask.attach(finding)
            yield finding
    if without and not log.counts["records"]:
        raise without[0]


def _with_images(
    rows: Iterator[tuple[int, Row, Any]], path: str, without: list[_NoImageColumn], log: ReadLog
) -> Iterator[tuple[int, Row, Any]]:
    try:
        yield from rows
    except _NoImageColumn as error:
        without.append(error)
        log.miss(path, "table without an image column")


def _rows(tree: Tree, path: str, layout: Layout, spool: _Spool) -> Iterator[tuple[int, Row, Any]]:
    wanted = layout.options.get("image")
    columns = (str(wanted),) if wanted else _IMAGE_COLUMNS
    kind = path.rpartition(".")[2].lower()
    if kind == "parquet":
        yield from _parquet(tree.file(path), path, columns)
    elif kind == "tsv":
        for row in TsvFile(tree.file(path), name=path):
            cells = dict(row.cells)
            column = next((one for one in columns if cells.get(one)), None)
            yield row.number - 1, _without(cells, columns), _cell_image(cells.get(column or ""), spool)
    elif kind in ("json", "jsonl"):
        for number, value in enumerate(_json(tree.read(path), path, kind == "jsonl")):
            if not isinstance(value, dict):
                raise BadInput("a record that is no object", file=path, row=number + 1)
            column = next((one for one in columns if value.get(one)), None)
            image = value.pop(column, None) if column else None
            yield number, flatten(value, path), _cell_image(image, spool)
    else:
        raise BadInput("not a table of records", file=path, fix="parquet, jsonl, json and tsv are read")


def _without(cells: Mapping[str, str], columns: tuple[str, ...]) -> Row:
    # A base64 image is no fact.
    return {name: cell.strip() for name, cell in cells.items() if name not in columns or len(cell) < 1000}


def _json(data: bytes, path: str, lines: bool) -> Iterator[Any]:
    try:
        if lines:
            for line in data.splitlines():
                if line.strip():
                    yield json.loads(line)
            return
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput("not JSON", file=path) from error
    if not isinstance(value, list):
        raise BadInput("not a list of records", file=path)
    yield from value


def _cell_image(cell: Any, spool: _Spool) -> Any:
    """Return a path, or a function that gives the picture, or None."""
    if isinstance(cell, Mapping):
        return _cell_image(cell.get("bytes") or cell.get("path"), spool)
    if not isinstance(cell, str) or not cell.strip():
        return None
    text = cell.strip()
    if len(text) < 1000 and not text.startswith("data:") and "." in text.rpartition("/")[2]:
        return text
    try:
        return spool.put(decode_base64(text))
    except MediaFault as fault:
        return partial(_faulty, str(fault))


def _faulty(reason: str) -> Picture:
    raise MediaFault(reason)


class _Spool:
    """Image bytes on disk until they are asked for; the file goes with the object."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as its findings
        weakref.finalize(self, self._file.close)
        self._end = 0

    def put(self, data: bytes) -> partial[Picture]:
        self._file.seek(self._end)
        self._file.write(data)
        self._file.flush()
        start, self._end = self._end, self._end + len(data)
        return partial(self._get, start, len(data), hashlib.sha256(data).hexdigest())

    def _get(self, start: int, size: int, digest: str) -> Picture:
        data = os.pread(self._file.fileno(), size, start)
        if hashlib.sha256(data).hexdigest() != digest:
            raise MediaFault("image was lost on the way")
        return Picture(data)


def _parquet(file: Path, path: str, columns: tuple[str, ...]) -> Iterator[tuple[int, Row, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            names = opened.schema_arrow.names
            image = next((one for one in columns if one in names), None)
            if image is None:
                raise _NoImageColumn(
                    f"no image column among {', '.join(names)}", file=path, fix="name it: options.image"
                )
            others = [name for name in names if name != image]
            number = 0
            for group in range(opened.num_row_groups):
                table = opened.read_row_group(group, columns=others) if others else None
                count = opened.metadata.row_group(group).num_rows
                for place in range(count):
                    row = table.slice(place, 1).to_pylist()[0] if table is not None else {}
                    facts = {str(key): _fact(value) for key, value in row.items()}
                    yield number, facts, partial(_parquet_picture, file, image, group, place)
                    number += 1
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"not a readable Parquet file ({error})", file=path) from error


def _fact(value: Any) -> str:
    if isinstance(value, bytes):
        return ""
    if isinstance(value, (dict, list)) and _holds_bytes(value):
        return ""
    try:
        return plain(value)
    except TypeError:
        return str(value)


def _holds_bytes(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return any(isinstance(one, bytes) or (isinstance(one, (dict, list)) and _holds_bytes(one)) for one in parts)


def _parquet_picture(file: Path, column: str, group: int, place: int) -> Picture:
    import pyarrow as pa

    try:
        value = _image_column(file, column, group)[place].as_py()
    except (pa.ArrowException, OSError) as error:
        raise MediaFault("record does not decode") from error
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, str):
        data = decode_base64(data)
    if not isinstance(data, bytes) or not data:
        raise MediaFault("no image in the record")
    if len(data) > MAX_BYTES:
        raise MediaFault("image file is too large")
    return Picture(data)


@lru_cache(maxsize=4)
def _image_column(file: Path, column: str, group: int) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        return opened.read_row_group(group, columns=[column]).column(0).combine_chunks()
