from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.answers.base import AnswerSpec
from sonogauge.folders import Folder, Manifest, new_folder
from sonogauge.items import Item, ItemImage
from sonogauge.tables import ITEMS
from tests.made_rows import full_row

pytestmark = pytest.mark.part("tables")

TEXT = st.text(max_size=8)
SPECS = st.builds(
    AnswerSpec,
    form=st.sampled_from(["choice", "number", "text", "place"]),
    options=st.lists(TEXT, max_size=4).map(tuple),
    letters=st.lists(TEXT, max_size=4).map(tuple),
    low=st.none() | st.floats(-1e6, 1e6),
    high=st.none() | st.floats(-1e6, 1e6),
    unit=TEXT,
    tolerance=st.none() | st.floats(0, 1),
)
REFERENCES = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(TEXT).map(tuple),
        "number": st.floats(allow_nan=False),
        "texts": st.lists(TEXT).map(tuple),
        "ranking": st.lists(TEXT).map(tuple),
    },
)
ITEM = st.builds(
    Item,
    item_id=st.text(min_size=1, max_size=8),
    task=TEXT,
    dataset=TEXT,
    source=TEXT,
    group=TEXT,
    split=st.sampled_from(["train", "test"]),
    images=st.lists(
        st.builds(ItemImage, TEXT, st.sampled_from(["image", "frame"]), st.none() | st.integers(0, 99))
    ).map(tuple),
    question=TEXT,
    prompt_id=TEXT,
    answer=SPECS,
    reference=REFERENCES,
    reference_state=st.sampled_from(["ok", "absent", "null", "error"]),
    chance=st.none() | st.floats(0, 1),
    anatomy=TEXT,
    determinable=st.sampled_from(["yes", "partly", "no"]),
    variables=st.dictionaries(TEXT, TEXT, max_size=3),
    meta=st.dictionaries(TEXT, TEXT, max_size=3),
)


@given(ITEM)
def test_an_item_is_its_row(item: Item) -> None:
    assert Item.from_row(item.to_row()) == item


@given(ITEM)
def test_an_item_fills_every_column_and_no_other(item: Item) -> None:
    assert list(item.to_row()) == ITEMS.names == [field.name for field in _in_row_order()]


def _in_row_order() -> list[object]:
    by_name = {field.name: field for field in fields(Item)}
    return [by_name[name] for name in ITEMS.names]


def test_items_survive_the_file(tmp_path: Path) -> None:
    item = Item(
        item_id="bus/1",
        task="DD",
        dataset="23",
        source="bus",
        group="bus/p1",
        split="test",
        images=(ItemImage("a"), ItemImage("b", "frame", 12)),
        question="Which?\n超声",
        prompt_id="u2bench/dd-23@1",
        answer=AnswerSpec("choice", ("benign", "malignant"), ("A", "B")),
        reference={"choices": ("benign",), "number": 0.1},
        reference_state="ok",
        chance=0.5,
        variables={"z": "1", "a": "2"},
        meta={"row": "17"},
    )
    with new_folder(tmp_path / "b") as folder:
        folder.table("items").write([item.to_row()])
        folder.finish(Manifest(kind="benchmark", maker="test"))
    assert [Item.from_row(row) for row in Folder(tmp_path / "b").rows("items")] == [item]


def test_columns_that_were_not_read_keep_their_defaults() -> None:
    needed = ("item_id", "task", "dataset", "source", "group", "images", "answer", "reference_state")
    row = full_row("items")
    item = Item.from_row({name: row[name] for name in needed})
    assert item.reference == {}
    assert (item.split, item.question, item.determinable, item.chance) == ("test", "", "yes", None)
