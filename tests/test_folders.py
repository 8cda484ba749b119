import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge._errors import BadInput
from sonogauge.folders import MANIFEST, Folder, Input, Manifest, new_folder, read_manifest, write_bytes
from sonogauge.hashes import canonical_hash, canonical_json, hash_rows
from sonogauge.tables import SCHEMAS, TABLE_VERSION
from tests.made_rows import TABLES, bare_row, full_row

pytestmark = pytest.mark.part("tables")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def make(out: Path, *, rows: int = 3, overwrite: bool = False, **facts: Any) -> Manifest:
    with new_folder(out, overwrite=overwrite) as folder:
        folder.table("items").write(full_row("items", seed) | {"item_id": f"i{seed}"} for seed in range(rows))
        return folder.finish(Manifest(**({"kind": "benchmark", "maker": "test"} | facts)))


def rewrite(file: Path, change: Any) -> None:
    table = pq.read_table(file)
    pq.write_table(change(table), file)


def test_a_finished_folder_holds_its_files_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    manifest = make(tmp_path / "deep" / "out", name="n", version="2", counts={"rows": 3})
    assert os.listdir(tmp_path / "deep") == ["out"]
    assert sorted(os.listdir(tmp_path / "deep" / "out")) == ["items.parquet", MANIFEST]
    assert read_manifest(tmp_path / "deep" / "out") == manifest
    assert Folder.open(tmp_path / "deep" / "out", "benchmark").manifest.counts == {"rows": 3}


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    make(tmp_path / "a")
    make(tmp_path / "b")
    for name in ("items.parquet", MANIFEST):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_exception_inside_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "out") as folder:
        folder.table("items").write([full_row("items")])
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_an_exception_inside_leaves_the_old_folder(tmp_path: Path) -> None:
    before = make(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out", overwrite=True) as folder:
        folder.table("items").write([full_row("items", 9)])
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["out"]
    assert read_manifest(tmp_path / "out") == before


def test_a_folder_that_was_never_finished_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="finish"), new_folder(tmp_path / "out") as folder:
        folder.table("items").write([full_row("items")])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("finished", [False, True])
def test_a_killed_writer_leaves_no_target(tmp_path: Path, finished: bool) -> None:
    program = f"""
import os, signal
from sonogauge.folders import Manifest, new_folder
from tests.made_rows import full_row
with new_folder({str(tmp_path / "out")!r}) as folder:
    folder.table("items").write([full_row("items")])
    if {finished}:
        folder.finish(Manifest(kind="benchmark", maker="test"))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    make(tmp_path / "out")
    assert Folder(tmp_path / "out").manifest.tables["items"].rows == 3


def test_an_existing_folder_of_ours_is_replaced_only_on_request(tmp_path: Path) -> None:
    make(tmp_path / "out", rows=1)
    with pytest.raises(BadInput, match=r"out: exists already; pass --overwrite"):
        make(tmp_path / "out", rows=2)
    assert read_manifest(tmp_path / "out").tables["items"].rows == 1
    (tmp_path / "out" / "left over").touch()
    make(tmp_path / "out", rows=2, overwrite=True)
    assert os.listdir(tmp_path) == ["out"]
    assert sorted(os.listdir(tmp_path / "out")) == ["items.parquet", MANIFEST]
    assert read_manifest(tmp_path / "out").tables["items"].rows == 2


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("manifest", [None, '{"name": "a web app", "icons": []}', "[1]", "not json"])
def test_a_foreign_folder_is_never_replaced(tmp_path: Path, overwrite: bool, manifest: str | None) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    if manifest is not None:
        (out / MANIFEST).write_text(manifest)
    with pytest.raises(BadInput, match="exists already; choose another"):
        make(out, overwrite=overwrite)
    assert (out / "thesis.txt").read_text() == "years of work"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_never_replaced_but_an_empty_folder_is(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(BadInput, match="exists already"):
        make(tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "kept"
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty", overwrite=overwrite)
    assert read_manifest(tmp_path / "empty").kind == "benchmark"


def test_a_link_that_leads_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "unplugged disk")
    with pytest.raises(BadInput, match="exists already; choose another"):
        make(tmp_path / "out", overwrite=True)
    assert os.listdir(tmp_path) == ["out"]


def test_what_appears_while_a_folder_is_written_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="exists already"), new_folder(tmp_path / "out") as folder:
        folder.finish(Manifest(kind="benchmark", maker="slow"))
        make(tmp_path / "out", maker="quick")
    assert os.listdir(tmp_path) == ["out"]
    assert read_manifest(tmp_path / "out").maker == "quick"


def test_a_place_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        make(tmp_path / "file" / "out")


def test_a_row_group_ends_at_its_rows_or_its_bytes_of_images(tmp_path: Path) -> None:
    sizes = [10, 10, 90, 200, 0, 0, 0, 0, 5]
    rows = [
        bare_row("cases") | {"case_id": f"c{n}", "image": {"bytes": b"x" * size, "path": None} if size else None}
        for n, size in enumerate(sizes)
    ]
    with new_folder(tmp_path / "f") as folder:
        folder.table("cases", 4, 100).write(rows)
        folder.finish(Manifest(kind="cases", maker="test"))
    metadata = pq.ParquetFile(tmp_path / "f" / "cases.parquet").metadata
    # 10 + 10 + 90 reach 100 bytes, 200 does alone, then four rows without an image, then the rest.
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [3, 1, 4, 1]
    assert [row["case_id"] for row in Folder(tmp_path / "f").rows("cases")] == [row["case_id"] for row in rows]


@pytest.mark.parametrize("name", TABLES)
def test_the_hash_does_not_depend_on_row_groups_or_writing_chunks(name: str, tmp_path: Path) -> None:
    rows = [full_row(name, seed) if seed % 3 else bare_row(name, seed) for seed in range(25)]
    hashes = set()
    for size, step in ((1, 25), (2, 1), (7, 3), (2048, 25)):
        with new_folder(tmp_path / f"{size}") as folder:
            writer = folder.table(name, rows_per_group=size)
            for start in range(0, len(rows), step):
                writer.write(rows[start : start + step])
            facts = folder.finish(Manifest(kind="test", maker="test")).tables[name]
        assert facts.rows == 25
        hashes.add(facts.hash)
    assert len(hashes) == 1


def test_the_hash_sees_every_column_the_order_and_the_number_of_rows() -> None:
    import hashlib

    def of(rows: list[dict[str, Any]]) -> str:
        digest = hashlib.sha256()
        hash_rows(pa.Table.from_pylist(rows, schema=SCHEMAS["cases"]), digest)
        return digest.hexdigest()

    first, second = full_row("cases"), full_row("cases", 5)
    changed = [
        [first | {column: second[column]}] for column in SCHEMAS["cases"].names if first[column] != second[column]
    ]
    hashes = [of(one) for one in ([first], [second], [first, second], [second, first], [first, first], *changed)]
    assert len(changed) >= 25
    assert len(set(hashes)) == len(hashes)


@given(JSON)
def test_canonical_json_is_json_and_ignores_the_order_of_keys(value: Any) -> None:
    def turned(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: turned(one[key]) for key in reversed(one)}
        return [turned(each) for each in one] if isinstance(one, list) else one

    assert json.loads(canonical_json(value)) == value
    assert canonical_json(turned(value)) == canonical_json(value)


def test_media_enter_a_hash_and_other_objects_are_refused() -> None:
    assert canonical_hash({"bytes": b"a"}) != canonical_hash({"bytes": b"b"})
    with pytest.raises(TypeError, match="not a JSON value: set"):
        canonical_json({1, 2})
    assert len(canonical_hash("\ud800")) == 64


def test_a_manifest_hash_covers_content_but_neither_path_nor_maker() -> None:
    def of(**facts: Any) -> str:
        one = Input(role="bench", path=str(facts.pop("path", "/a")), hash=str(facts.pop("hash", "1")))
        return Manifest(**({"kind": "run", "maker": "x", "inputs": [one]} | facts)).hash

    assert of() == of(path="/elsewhere") == of(maker="sonogauge 9") == of(notices=["hello"])
    changed = [of(), of(hash="2"), of(kind="scores"), of(name="n"), of(version="2"), of(parameters={"seed": 1})]
    assert len(set(changed)) == len(changed)


def test_inputs_are_found_by_role() -> None:
    manifest = Manifest(kind="run", maker="x", inputs=[Input(role="bench", path="/b", hash="1")])
    assert manifest.input("bench") == manifest.inputs[0]
    assert manifest.input("other") is None


def test_no_such_folder_and_a_folder_without_manifest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere: no such folder$"):
        Folder(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"no manifest\.json, so not a folder of sonogauge$"):
        Folder(tmp_path)


def test_another_kind_than_wanted(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with pytest.raises(BadInput, match="this is a folder of benchmark, not of run"):
        Folder(tmp_path / "out", "run")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"kind": "x"}',
        '{"format_version": "new"}',
        '{"format_version": null}',
        '{"format_version": 1e999}',
        '"\\ud800"',
        "[" * 100_000,
    ],
    ids=range(10),
)
def test_a_broken_manifest_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"manifest\.json: broken manifest; make the folder again"):
        read_manifest(tmp_path)


def test_a_manifest_that_is_not_text_is_broken(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\xff\xfe{}")
    with pytest.raises(BadInput, match="broken manifest"):
        read_manifest(tmp_path)


def test_a_field_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    make(tmp_path / "out")
    file = tmp_path / "out" / MANIFEST
    raw = json.loads(file.read_text())
    raw["tables"]["items"]["rows"] = "many"
    file.write_text(json.dumps(raw))
    with pytest.raises(BadInput, match=r"field 'tables\.items\.rows'"):
        read_manifest(tmp_path / "out")


def test_a_newer_manifest_and_a_newer_table_ask_for_an_upgrade(tmp_path: Path) -> None:
    wanted = f"written in format {TABLE_VERSION + 1}, this sonogauge reads up to {TABLE_VERSION}; upgrade sonogauge"
    make(tmp_path / "a", format_version=TABLE_VERSION + 1)
    with pytest.raises(BadInput, match=f"manifest.json: {wanted}"):
        Folder(tmp_path / "a")
    make(tmp_path / "b")
    newer = {b"sonogauge.version": str(TABLE_VERSION + 1).encode()}
    rewrite(tmp_path / "b" / "items.parquet", lambda t: t.replace_schema_metadata({**t.schema.metadata, **newer}))
    with pytest.raises(BadInput, match=f"items.parquet: {wanted}"):
        Folder(tmp_path / "b").table("items")


def test_a_table_with_a_version_that_is_no_number(tmp_path: Path) -> None:
    make(tmp_path / "out")
    odd = {b"sonogauge.version": b"one"}
    rewrite(tmp_path / "out" / "items.parquet", lambda t: t.replace_schema_metadata({**t.schema.metadata, **odd}))
    with pytest.raises(BadInput, match=r"items\.parquet: no version but b'one' in its metadata"):
        Folder(tmp_path / "out").table("items")


def test_a_table_of_another_name_a_missing_table_and_a_missing_column(tmp_path: Path) -> None:
    make(tmp_path / "out")
    folder = Folder(tmp_path / "out")
    with pytest.raises(BadInput, match=r"cases\.parquet: no cases table"):
        folder.table("cases")
    (tmp_path / "out" / "items.parquet").rename(tmp_path / "out" / "cases.parquet")
    with pytest.raises(BadInput, match="this is a table of items, not of cases"):
        folder.table("cases")
    (tmp_path / "out" / "cases.parquet").rename(tmp_path / "out" / "items.parquet")
    rewrite(tmp_path / "out" / "items.parquet", lambda t: t.drop_columns(["group"]))
    with pytest.raises(BadInput, match=r"field 'group': column missing in the items table"):
        list(folder.rows("items"))


def test_a_column_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    make(tmp_path / "out")
    at = SCHEMAS["items"].names.index("chance")
    words = pa.array(["a", "b", "c"])
    rewrite(tmp_path / "out" / "items.parquet", lambda t: t.set_column(at, "chance", words))
    for read in (Folder(tmp_path / "out").table, lambda name: list(Folder(tmp_path / "out").rows(name))):
        with pytest.raises(BadInput, match=r"items\.parquet, field 'chance'"):
            read("items")


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -200])
def test_a_truncated_table_is_one_clear_line(tmp_path: Path, keep: int) -> None:
    make(tmp_path / "out", rows=50)
    file = tmp_path / "out" / "items.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:keep])
    with pytest.raises(BadInput, match=r"items\.parquet: not a readable Parquet file"):
        Folder(tmp_path / "out").table("items")


def test_a_table_damaged_in_the_middle_is_bad_input(tmp_path: Path) -> None:
    make(tmp_path / "out", rows=50)
    file = tmp_path / "out" / "items.parquet"
    whole = bytearray(file.read_bytes())
    whole[4:900] = bytes(896)
    file.write_bytes(bytes(whole))
    for read in (Folder(tmp_path / "out").table, lambda name: list(Folder(tmp_path / "out").rows(name))):
        with pytest.raises(BadInput, match=r"items\.parquet: not a readable Parquet file"):
            read("items")


def test_an_unknown_column_of_a_row_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="colour"), new_folder(tmp_path / "out") as folder:
        folder.table("items").write([{**full_row("items"), "colour": "red"}])
    assert os.listdir(tmp_path) == []


def test_columns_are_read_as_asked_and_batches_are_bounded(tmp_path: Path) -> None:
    make(tmp_path / "out", rows=5)
    folder = Folder(tmp_path / "out")
    assert folder.table("items", ["item_id", "task"]).column_names == ["item_id", "task"]
    assert [batch.num_rows for batch in folder.batches("items", ["item_id"], size=2)] == [2, 2, 1]
    assert [row["item_id"] for row in folder.rows("items", ["item_id"])] == [f"i{at}" for at in range(5)]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "deep" / "a.txt"
    write_bytes(file, b"one")
    write_bytes(file, b"two")
    assert file.read_bytes() == b"two"
    assert file.stat().st_mode & 0o777 == 0o644

    def full_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(file, b"three")
    assert file.read_bytes() == b"two"
    assert os.listdir(file.parent) == ["a.txt"]


def test_a_null_in_a_key_column_is_named(tmp_path: Path) -> None:
    make(tmp_path / "out")
    ids = pa.array(["a", None, "c"])
    rewrite(tmp_path / "out" / "items.parquet", lambda t: t.set_column(0, "item_id", ids))
    with pytest.raises(BadInput, match=r"items\.parquet, field 'item_id'"):
        Folder(tmp_path / "out").table("items", ["item_id"])
