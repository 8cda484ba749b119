"""Rows of one table into a Parquet file, streamed, with a hash of their content."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from sonogauge.hashes import hash_rows
from sonogauge.tables import SCHEMAS

_IMAGE_BYTES: Final = "image.bytes"  # of cases


class TableFacts(BaseModel):
    """Rows and content hash of one table of a folder."""

    rows: int
    hash: str


class TableWriter:
    """Streams rows of one table into a Parquet file and keeps its hash; memory is one row group.

    Rows must arrive sorted by the key where the hash is to be comparable between makers.
    """

    def __init__(self, path: Path, name: str, rows_per_group: int = 2048, bytes_per_group: int | None = None) -> None:
        self._schema = SCHEMAS[name]
        self._names = frozenset(self._schema.names)
        # A dictionary of images would be as large as the row group and be decoded whole to read one of them; most
        # image files are compressed already, and Snappy soon gives up on those.
        packing = {column: "snappy" if column == _IMAGE_BYTES else "zstd" for column in _leaf_columns(self._schema)}
        self._writer = pq.ParquetWriter(path, self._schema, compression=packing, use_dictionary=name != "cases")
        self._pending: list[Mapping[str, Any]] = []
        self._size = rows_per_group
        self._most_bytes = bytes_per_group
        self._bytes = 0
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self.rows = 0

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows; a missing column is null, an unknown one is an error of the caller."""
        for row in rows:
            if unknown := row.keys() - self._names:
                raise KeyError(f"no such column: {sorted(unknown)}")
            self._pending.append(row)
            if self._most_bytes is not None:
                self._bytes += len((row.get("image") or {}).get("bytes") or b"")
            if len(self._pending) >= self._size or self._bytes >= (self._most_bytes or math.inf):
                self._flush()

    def _flush(self) -> None:
        if self._pending:
            table = pa.Table.from_pylist(self._pending, schema=self._schema)
            self._pending, self._bytes = [], 0
            self.write_table(table)

    def write_table(self, table: pa.Table) -> None:
        """Append a table of the same schema."""
        # Packing and hashing take about as long as each other, and only hashing needs the interpreter.
        written = self._thread.submit(self._writer.write_table, table)
        hash_rows(table, self._digest)
        written.result()
        self.rows += table.num_rows

    def close(self) -> TableFacts:
        """Finish the file and return its rows and hash."""
        self._flush()
        self._thread.shutdown()
        self._writer.close()
        return TableFacts(rows=self.rows, hash=self._digest.hexdigest())


def _leaf_columns(schema: pa.Schema) -> list[str]:
    """Return the names by which Parquet knows the columns of a schema, nested ones by their paths."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [columns.column(number).path for number in range(len(columns))]
