"""Rows of a table that must be sorted before they are written, kept as Arrow and not as Python objects."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sonogauge.folders import TableWriter
from sonogauge.tables import SCHEMAS, key_of

_ROWS: Final = 2048


class Spool:
    """Takes rows one by one and writes them sorted by the key of their table."""

    def __init__(self, name: str) -> None:
        self._schema, self._keys = SCHEMAS[name], key_of(name)
        self._pending: list[dict[str, Any]] = []
        self._tables: list[pa.Table] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take a row."""
        self._pending.append(row)
        if len(self._pending) >= _ROWS:
            self._pack()

    def _pack(self) -> None:
        self._tables.append(pa.Table.from_pylist(self._pending, schema=self._schema))
        self._pending = []

    def write(self, writer: TableWriter) -> None:
        """Write all rows, sorted."""
        self._pack()
        whole = pa.concat_tables(self._tables)
        order = pc.sort_indices(whole, sort_keys=[(key, "ascending") for key in self._keys])
        for start in range(0, len(order), _ROWS):
            writer.write_table(whole.take(order[start : start + _ROWS]))
