"""Hashes of values and rows: equal content gives equal digits, whatever file it lies in."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def canonical_hash(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a value, as hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def hash_rows(table: pa.Table, digest: Any) -> None:
    """Feed the rows of a table to a hash, one canonical JSON line each."""
    # Few at a time, because they come with their images.
    for batch in table.to_batches(max_chunksize=64):
        for row in batch.to_pylist():
            digest.update(canonical_json(row).encode("utf-8", "surrogatepass"))
            digest.update(b"\n")
