"""Batches of cases for the stages of a build."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sonogauge.tables import CASES


def batch_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=CASES)
