"""An export read back as a benchmark: of what may be passed on, every item is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import SPEC_FILE, read_spec
from sonogauge.export.content import item_hash
from sonogauge.export.jsonl import CASES_FILE, ITEMS_FILE
from sonogauge.folders import Input, Manifest, new_folder, read_manifest, sort_rows, write_bytes
from sonogauge.tables import ITEMS


def build_exported(data: Path, out: Path, *, overwrite: bool = False) -> Manifest:
    """Read an export in the format hf, croissant or jsonl and write it as a benchmark folder.

    Args:
        data: folder of the export.
        out: benchmark folder to write.
        overwrite: replace a benchmark folder at `out`.

    Raises:
        BadInput: no such export, a file missing or damaged, an item whose hash is another than the one it came with.
    """
    exported = read_manifest(data)
    if exported.kind != "export":
        raise BadInput(f"a folder of {exported.kind}, not an export", file=data)
    try:
        return _build(data, out, exported, overwrite)
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise BadInput(f"damaged ({type(error).__name__}: {error})", file=data, fix="export again") from error


def _build(data: Path, out: Path, exported: Manifest, overwrite: bool) -> Manifest:
    spec = read_spec(data)
    jsonl = (data / ITEMS_FILE).is_file()
    items = list(_jsonl_items(data) if jsonl else _parquet_items(data))
    hashes = {row["case_id"]: row["sha256"] for row in _cases(data, jsonl)}
    for item, stated in items:
        found = item_hash(item, [hashes[image["case_id"]] for image in item["images"] or ()])
        if found != stated:
            raise BadInput("the item is not what it was at the export", file=data, field=item["item_id"])
    with new_folder(out, overwrite=overwrite) as folder:
        writer = folder.table("cases", rows_per_group=64)
        images = _images(data, jsonl)
        for row in sorted(_cases(data, jsonl), key=lambda one: str(one["case_id"])):
            image = images(row)
            if hashlib.sha256(image["bytes"]).hexdigest() != row["sha256"]:
                raise BadInput("the image is not what it was at the export", file=data, field=row["case_id"])
            writer.write([{**row, "image": image}])
        folder.table("items").write(sort_rows([item for item, _ in items], "items"))
        write_bytes(folder.path / SPEC_FILE, (data / SPEC_FILE).read_bytes())
        return folder.finish(
            Manifest(
                kind="benchmark",
                maker=f"sonogauge {__version__}",
                name=spec.name,
                version=spec.version,
                inputs=[Input(role="export", path=str(data), hash=exported.hash)],
                counts={"items": len(items), "withheld": exported.counts.get("withheld", 0)},
                licences=exported.licences,
                notices=exported.notices,
            )
        )


def _jsonl_items(data: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for row in _lines(data / ITEMS_FILE):
        yield {name: row[name] for name in ITEMS.names}, row["item_hash"]


def _parquet_items(data: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for file in _parts(data):
        for batch in pq.ParquetFile(file).iter_batches(columns=[*ITEMS.names, "item_hash"]):
            for row in batch.to_pylist():
                yield {name: row[name] for name in ITEMS.names}, row["item_hash"]


def _parts(data: Path) -> list[Path]:
    files = sorted((data / "data").glob("*.parquet"))
    if not files:
        raise BadInput(f"neither data/*.parquet nor {ITEMS_FILE}", file=data)
    return files


def _cases(data: Path, jsonl: bool) -> Iterator[dict[str, Any]]:
    if jsonl:
        for row in _lines(data / CASES_FILE):
            row.pop("image_file")
            yield row
        return
    for batch in pq.ParquetFile(data / "cases.parquet").iter_batches(batch_size=256):
        yield from batch.to_pylist()


def _images(data: Path, jsonl: bool) -> Any:
    """Return a function from a row of cases to its image, read when asked for."""
    if jsonl:
        files = {row["case_id"]: row["image_file"] for row in _lines(data / CASES_FILE)}

        def from_file(row: dict[str, Any]) -> dict[str, Any]:
            path = data / files[row["case_id"]]
            if not path.resolve().is_relative_to(data.resolve()):
                raise BadInput("an image file lies outside the folder", file=path)
            try:
                return {"bytes": path.read_bytes(), "path": path.name}
            except OSError as error:
                raise BadInput(f"cannot be read ({error.strerror})", file=path) from error

        return from_file
    places: dict[str, tuple[Path, int, int]] = {}  # case id -> file, row group, row
    for file in _parts(data):
        parquet = pq.ParquetFile(file)
        for group in range(parquet.metadata.num_row_groups):
            for row, images in enumerate(parquet.read_row_group(group, ["images"]).column(0).to_pylist()):
                if images:
                    places.setdefault(images[0]["case_id"], (file, group, row))
    cache: dict[tuple[Path, int], list[Any]] = {}

    def from_parquet(row: dict[str, Any]) -> dict[str, Any]:
        if row["case_id"] not in places:
            raise BadInput("no image of the case", file=data, field=row["case_id"])
        file, group, at = places[row["case_id"]]
        if (file, group) not in cache:
            cache.clear()
            cache[file, group] = pq.ParquetFile(file).read_row_group(group, ["image"]).column(0).to_pylist()
        found: dict[str, Any] = cache[file, group][at]
        return found

    return from_parquet


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise BadInput("not JSON", file=file, row=number) from error
                yield row
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("cannot be read", file=file) from error
