"""One full row of every table, every column filled, and one with every column null that may be."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from sonogauge.tables import SCHEMAS


def full_value(kind: pa.DataType, seed: int = 0) -> Any:
    """Return some value of an Arrow type, nested types filled all the way down."""
    if pa.types.is_struct(kind):
        return {field.name: full_value(field.type, seed + place) for place, field in enumerate(kind)}
    if pa.types.is_list(kind):
        return [full_value(kind.value_type, seed), full_value(kind.value_type, seed + 1)]
    if pa.types.is_map(kind):
        return [("key", full_value(kind.item_type, seed)), ("schlüssel", full_value(kind.item_type, seed + 1))]
    if pa.types.is_boolean(kind):
        return seed % 2 == 0
    if pa.types.is_integer(kind):
        return seed + 1
    if pa.types.is_floating(kind):
        return 0.1 + seed / 3
    if pa.types.is_binary(kind):
        return bytes([0, 255, seed % 256])
    return f'wört, "{seed}"\n超声'


def full_row(name: str, seed: int = 0) -> dict[str, Any]:
    """Return a row of a table with every column filled."""
    return {field.name: full_value(field.type, seed + place) for place, field in enumerate(SCHEMAS[name])}


def bare_row(name: str, seed: int = 0) -> dict[str, Any]:
    """Return a row of a table in which every column that may be null is null."""
    return {
        field.name: None if field.nullable else full_value(field.type, seed + place)
        for place, field in enumerate(SCHEMAS[name])
    }


TABLES: Final = sorted(SCHEMAS)
