"""Parquet that `datasets.load_dataset` opens with its images, a data card, and all that is needed to come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec
from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.folders import FolderWriter, write_bytes
from sonogauge.tables import CASES, ITEMS, STRING

CARD: Final = "README.md"
_IMAGE: Final = pa.struct([("bytes", pa.binary()), ("path", STRING)])
_FEATURES: Final = {
    "info": {
        "features": {"image": {"_type": "Image"}, "more_images": {"feature": {"_type": "Image"}, "_type": "Sequence"}}
    }
}
_ROWS: Final = 64


def item_schema() -> pa.Schema:
    """Return the schema of the exported items: first image, further images, the item's columns, hash and canary."""
    fields = [
        pa.field("item_id", STRING),
        pa.field("image", _IMAGE),
        pa.field("more_images", pa.list_(_IMAGE)),
        *(field.with_nullable(True) for field in ITEMS if field.name != "item_id"),
        pa.field("item_hash", STRING),
        pa.field("canary", STRING),
    ]
    return pa.schema(fields)


def case_schema() -> pa.Schema:
    """Return the schema of the exported cases: all but the image, which stands with the items."""
    return pa.schema([field.with_nullable(True) for field in CASES if field.name != "image"])


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write data/PART.parquet, cases.parquet, benchmark.json and the card; return the rows of each file."""
    schema = item_schema()
    names = [field.name for field in schema]
    # Named features must be complete: the others follow from the types.
    features = _features(schema)
    schema = schema.with_metadata({b"huggingface": json.dumps(features).encode()})
    writers: dict[str, pq.ParquetWriter] = {}
    pending: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, int] = {}
    (folder.path / "data").mkdir()
    for item in content.items():
        split = item["split"] or "test"
        if split not in writers:
            path = folder.path / "data" / f"{split}.parquet"
            writers[split] = pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False)
            pending[split], files[f"data/{split}.parquet"] = [], 0
        pending[split].append({name: value for name, value in _row(content, item).items() if name in names})
        files[f"data/{split}.parquet"] += 1
        if len(pending[split]) >= _ROWS:
            writers[split].write_table(pa.Table.from_pylist(pending[split], schema=schema))
            pending[split] = []
    for split, writer in writers.items():
        if pending[split]:
            writer.write_table(pa.Table.from_pylist(pending[split], schema=schema))
        writer.close()
    files["cases.parquet"] = _write_cases(content, folder)
    write_bytes(folder.path / SPEC_FILE, dump_spec(content.spec).encode("utf-8"))
    data = [{"split": split, "path": f"data/{split}.parquet"} for split in sorted(writers)]
    configs: list[dict[str, Any]] = [{"config_name": "items", "default": True, "data_files": data}] if data else []
    if files["cases.parquet"]:
        configs.append({"config_name": "cases", "data_files": [{"split": "cases", "path": "cases.parquet"}]})
    write_bytes(folder.path / CARD, write_card(content, configs).encode("utf-8"))
    return files


def _features(schema: pa.Schema) -> dict[str, Any]:
    known: dict[str, Any] = _FEATURES["info"]["features"]
    return {"info": {"features": {field.name: known.get(field.name) or _feature(field.type) for field in schema}}}


def _feature(kind: pa.DataType) -> Any:
    """Return the feature of a type as `datasets` writes it."""
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return (
            {"feature": _feature(kind.value_type), "_type": "Sequence"}
            if not pa.types.is_struct(kind.value_type)
            else [_feature(kind.value_type)]
        )
    names = {
        pa.float64(): "float64",
        pa.bool_(): "bool",
        pa.int32(): "int32",
        pa.int64(): "int64",
        pa.string(): "string",
    }
    return {"dtype": names[kind], "_type": "Value"}


def _row(content: Content, item: dict[str, Any]) -> dict[str, Any]:
    images = [
        {"bytes": content.image(one["case_id"]), "path": content.file_name(one["case_id"])} for one in item["images"]
    ]
    return {
        **item,
        "image": images[0] if images else None,
        "more_images": images[1:],
        "item_hash": content.hash(item),
        "canary": content.canary,
    }


def _write_cases(content: Content, folder: FolderWriter) -> int:
    schema = case_schema()
    rows = 0
    with pq.ParquetWriter(folder.path / "cases.parquet", schema, compression="zstd") as writer:
        for batch in open_cases(content, schema.names):
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            rows += batch.num_rows
    return rows


def open_cases(content: Content, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the cases that may be passed on and are asked about."""
    for batch in content.folder.batches("cases", columns, size=256):
        wanted = [case_id in content.open_cases for case_id in batch.column("case_id").to_pylist()]
        kept = batch.filter(pa.array(wanted, type=pa.bool_()))
        if kept.num_rows:
            yield kept
