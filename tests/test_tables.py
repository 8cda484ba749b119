import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sonogauge.folders import Folder, Manifest, new_folder, sort_rows
from sonogauge.table_writer import TableWriter
from sonogauge.tables import SCHEMAS, TABLE_VERSION, VALUE, key_of
from tests.made_rows import TABLES, bare_row, full_row

pytestmark = pytest.mark.part("tables")


@pytest.mark.parametrize("name", TABLES)
def test_a_schema_names_its_table_version_and_key(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema.metadata[b"sonogauge.table"].decode() == name
    assert int(schema.metadata[b"sonogauge.version"]) == TABLE_VERSION
    assert len(set(schema.names)) == len(schema.names)
    key = key_of(name)
    assert key
    assert {field.name for field in schema if not field.nullable} == set(key)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_round_trips_with_all_columns_filled_and_all_null(name: str, tmp_path: Path) -> None:
    rows = [full_row(name), bare_row(name, seed=7)]
    with new_folder(tmp_path / "out") as folder:
        folder.table(name).write(rows)
        folder.finish(Manifest(kind="test", maker="test"))
    opened = Folder(tmp_path / "out", "test")
    assert list(opened.rows(name)) == rows
    assert opened.table(name).to_pylist() == rows
    assert opened.table(name).schema.equals(SCHEMAS[name], check_metadata=False)
    assert opened.manifest.tables[name].rows == 2


@given(
    number=st.none() | st.floats(allow_nan=False),
    texts=st.none() | st.lists(st.none() | st.text()),
    counts=st.lists(st.text(st.characters(min_codepoint=48, max_codepoint=111))),
)
def test_any_value_survives_arrow(number: float | None, texts: list[str | None] | None, counts: list[str]) -> None:
    masks = [{"mask_id": str(at), "category": None, "size": [2, 3], "counts": one} for at, one in enumerate(counts)]
    value = {**dict.fromkeys(field.name for field in VALUE), "number": number, "texts": texts, "masks": masks}
    stored = io.BytesIO()
    pq.write_table(pa.table({"value": pa.array([value], VALUE)}), stored)
    assert pq.read_table(stored).to_pylist() == [{"value": value}]


def test_a_null_in_a_key_column_is_refused(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "items.parquet", "items")
    writer.write([{**bare_row("items"), "item_id": None}])
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        writer.close()


def test_rows_are_sorted_by_their_key() -> None:
    rows = [{"item_id": item, "variant": "", "epoch": epoch, "rater_id": ""} for item in "ba" for epoch in (10, 9)]
    assert [(row["item_id"], row["epoch"]) for row in sort_rows(rows, "replies")] == [
        ("a", 9),
        ("a", 10),
        ("b", 9),
        ("b", 10),
    ]


def test_huggingface_datasets_shows_the_images_of_cases(tmp_path: Path) -> None:
    from datasets import Image as ImageFeature
    from datasets import Value, load_dataset

    png = io.BytesIO()
    Image.new("L", (5, 3), 200).save(png, "PNG")
    rows = [
        {**full_row("cases", seed), "case_id": f"c{seed}", "image": {"bytes": png.getvalue(), "path": f"{seed}.png"}}
        for seed in range(3)
    ]
    with new_folder(tmp_path / "bench") as folder:
        folder.table("cases", rows_per_group=2).write(rows)
        folder.finish(Manifest(kind="test", maker="test"))
    data = load_dataset(
        "parquet",
        data_files=str(tmp_path / "bench" / "cases.parquet"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert isinstance(data.features["image"], ImageFeature)
    assert data.features["case_id"] == Value("string")
    assert data["case_id"][:] == ["c0", "c1", "c2"]
    assert data[2]["image"].size == (5, 3)
    assert data[2]["image"].getpixel((4, 2)) == 200
    assert data[1]["labels"] == rows[1]["labels"]


def test_the_features_named_for_datasets_are_columns() -> None:
    named = json.loads(SCHEMAS["cases"].metadata[b"huggingface"])["info"]["features"]
    assert set(named) <= set(SCHEMAS["cases"].names)
