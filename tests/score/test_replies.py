"""Replies made elsewhere: what is read, and the one line for what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.score.small import u2_item, value_of, write_bench, write_replies

from sonogauge import BadInput, run, score
from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.spec import load_spec
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.score.inputs import Sharing
from sonogauge.score.replies import Reply, ReplySource, check_ids, join, read_jsonl
from sonogauge.tables import key_of

pytestmark = pytest.mark.part("score strict")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    items = [u2_item("DD", "21", number, {"choices": ("benign",)}) for number in range(1, 4)]
    return write_bench(tmp_path / "bench", items)


def _rows(count: int = 3) -> list[dict]:
    return [{"item_id": f"DD/21/{number:04d}", "text": "benign"} for number in range(1, count + 1)]


BAD_ROWS = [
    ([*_rows(), {"item_id": "DD/21/0001", "text": "x"}], "row 4, field 'item_id': a second reply to 'DD/21/0001'"),
    ([*_rows(), {"item_id": "DD/21/0009", "text": "x"}], "row 4, field 'item_id': no item 'DD/21/0009'"),
    ([{"item_id": "q1", "text": "x"}], "none of its 1 item ids is in the benchmark"),
    ([{"text": "x"}], "row 1, field 'item_id': no item id"),
    ([{"item_id": "DD/21/0001"}], "row 1, field 'text': no reply text"),
    ([{"item_id": "DD/21/0001", "text": None}], "row 1, field 'text': null text"),
    ([{"item_id": "DD/21/0001", "text": ["a"]}], "row 1, field 'text': not a text but list"),
    ([{"item_id": "DD/21/0001", "text": "a", "status": "fine"}], "row 1, field 'status': unknown status 'fine'"),
    ([{"item_id": "DD/21/0001", "text": "a", "epoch": "1"}], "row 1, field 'epoch': not a count"),
    ([{"item_id": "DD/21/0001", "text": "a", "epoch": 2**40}], "row 1, field 'epoch': not a count"),
    ([{"item_id": "DD/21/0001", "text": "a", "image_sha256": "0" * 64}], "field 'image_sha256': reply to another"),
    ([{**_rows()[0], "model": "a"}, {**_rows()[1], "model": "b"}, *_rows()[2:]], "replies of 2 models"),
    ([{"item_id": "DD/21/0001", "text": "a", "rater_id": ["a"]}], "row 1, field 'rater_id': not a name but list"),
    ([{"item_id": "DD/21/0001", "text": "a", "variant": True}], "row 1, field 'variant': not a name but bool"),
    *(
        ([{"item_id": "DD/21/0001", "text": "a", "option_probabilities": {"benign": odd}}], "'option_probabilities'")
        for odd in (-0.1, float("nan"), float("inf"), 10**400, 1e308)
    ),
    ([], "no replies in it"),
]


def test_an_empty_run_is_told_as_empty(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no replies in it"):
        check_ids(ReplySource("m", [], "", tmp_path), {}, tmp_path / "bench")


@pytest.mark.parametrize(("rows", "line"), BAD_ROWS, ids=[line for _, line in BAD_ROWS])
def test_bad_rows_name_file_row_and_field(tmp_path: Path, bench: Path, rows: list[dict], line: str) -> None:
    file = write_replies(tmp_path / "r.jsonl", rows)
    with pytest.raises(BadInput) as error:
        score(file, bench=bench, out=tmp_path / "out", scenarios="present")
    assert line in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"bench", "r.jsonl"}


@pytest.mark.parametrize("line", ["{", "[1]", '"text"', "\xff", "[" * 100_000])
def test_lines_that_are_no_objects(tmp_path: Path, bench: Path, line: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(_rows()[0]) + "\n" + line + "\n", "latin-1")
    with pytest.raises(BadInput, match="row 2: not "):
        score(file, bench=bench)


def test_other_names_of_the_columns_and_numbers_as_text(tmp_path: Path) -> None:
    items = [u2_item("DD", "44", number, {"choices": (str(number),)}) for number in (1, 2, 3)]
    bench = write_bench(tmp_path / "bench", items)
    rows = [
        {"id": "DD/44/0001", "reply": "1"},
        {"item_id": "DD/44/0002", "response": 2},
        {"item_id": "DD/44/0003", "prediction": "3"},
    ]
    scores = score(write_replies(tmp_path / "r.jsonl", rows), bench=bench, scenarios="present", draws=200)
    assert value_of(scores.metrics, "accuracy", "DD", "44")["value"] == 1.0


def test_rater_nought_is_not_the_model(tmp_path: Path) -> None:
    file = write_replies(tmp_path / "r.jsonl", [{**_rows(1)[0], "rater_id": rater} for rater in (None, 0, 1)])
    assert [reply.rater_id for reply in read_jsonl(file).replies] == ["", "0", "1"]


def test_replies_of_a_model_and_of_raters_in_one_file_are_told(tmp_path: Path, bench: Path) -> None:
    rows = [*_rows(), {"item_id": "DD/21/0001", "text": "malignant", "rater_id": "dr-a"}]
    mixed = score(write_replies(tmp_path / "mixed.jsonl", rows), bench=bench).manifest.notices
    assert any("1 raters" in line and "score them apart" in line for line in mixed)
    for apart in (rows[:-1], rows[-1:]):
        told = score(write_replies(tmp_path / "apart.jsonl", apart), bench=bench).manifest.notices
        assert not any("score them apart" in line for line in told)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [("counts", {"asked": "all"}, "'asked'"), ("tables", {}, "'tables'"), ("name", "\ud800", "broken manifest")],
)
def test_a_manifest_with_other_things_in_it_is_told_in_one_line(
    tmp_path: Path, bench: Path, field: str, value: object, told: str
) -> None:
    run(bench, "baseline/majority", tmp_path / "run")
    file = tmp_path / "run/manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(BadInput, match=told):
        score(tmp_path / "run")


def test_ended_badly_is_never_parsed(tmp_path: Path, bench: Path) -> None:
    rows = [
        {"item_id": "DD/21/0001", "text": "benign", "status": "truncated"},
        {"item_id": "DD/21/0002", "text": "benign", "status": "error"},
        {"item_id": "DD/21/0003", "text": "benign"},
    ]
    scores = score(write_replies(tmp_path / "r.jsonl", rows), bench=bench, scenarios="present", draws=200)
    assert value_of(scores.metrics, "accuracy", "DD", "21")["value"] == pytest.approx(1 / 3)
    assert scores.manifest.counts["failures"]["strict"] == {"error": 1, "truncated": 1}


def test_a_run_of_another_benchmark_is_refused(tmp_path: Path, bench: Path) -> None:
    other = write_bench(tmp_path / "other", [u2_item("DD", "21", 1, {"choices": ("malignant",)})])
    run(bench, "baseline/constant", tmp_path / "run")
    with pytest.raises(BadInput, match="a run of another benchmark than"):
        score(tmp_path / "run", bench=other)


def test_a_moved_benchmark_is_named(tmp_path: Path, bench: Path) -> None:
    run(bench, "baseline/constant", tmp_path / "run")
    bench.rename(tmp_path / "moved")
    with pytest.raises(BadInput, match="no such folder"):
        score(tmp_path / "run")
    scores = score(tmp_path / "run", bench=tmp_path / "moved", scenarios="present", draws=200)
    assert value_of(scores.metrics, "accuracy", "DD", "21")["value"] == 1.0


def test_a_limited_run_is_scored_on_what_was_asked(tmp_path: Path, bench: Path) -> None:
    run(bench, "baseline/oracle", tmp_path / "run", limit=2)
    scores = score(tmp_path / "run", scenarios="present", draws=200)
    row = value_of(scores.metrics, "accuracy", "DD", "21")
    assert (row["value"], row["n"]) == (1.0, 2)
    assert scores.manifest.counts["partial"] is True
    assert "the run asked 2 items" in scores.manifest.counts["partial_why"]


@pytest.mark.parametrize("path", ["nowhere", "bench", "r.jsonl"])
def test_paths_that_are_no_run(tmp_path: Path, bench: Path, path: str) -> None:
    write_replies(tmp_path / "r.jsonl", _rows())
    with pytest.raises(BadInput, match=path):
        score(tmp_path / path)


def test_a_benchmark_without_published_protocol_gives_the_reason(tmp_path: Path) -> None:
    spec = load_spec("u2bench").model_copy(update={"protocols": {}, "no_published": "nobody published a scorer"})
    bench = write_bench(tmp_path / "bench", [u2_item("DD", "21", 1, {"choices": ("benign",)})], spec)
    file = write_replies(tmp_path / "r.jsonl", _rows(1))
    with pytest.raises(BadInput, match="nobody published a scorer"):
        score(file, bench=bench, protocol="published")


def test_variants_and_epochs_are_scored_apart_and_together(tmp_path: Path, bench: Path) -> None:
    rows = [
        *({**row, "epoch": epoch} for row in _rows() for epoch in (0, 1)),
        {"item_id": "DD/21/0001", "variant": "no_image", "text": "benign"},
        {"item_id": "DD/21/0002", "variant": "no_image", "text": "malignant"},
    ]
    scores = score(
        write_replies(tmp_path / "r.jsonl", rows), bench=bench, out=tmp_path / "s", scenarios="present", draws=200
    )
    assert value_of(scores.metrics, "accuracy", "DD", "21")["n"] == 6
    varied = value_of(scores.metrics, "accuracy", "DD", "21", variant="no_image")
    # the third item has no reply in the variant: missing, wrong
    assert (varied["value"], varied["n"], varied["valid"]) == (pytest.approx(1 / 3), 3, 2)
    assert len(list(Folder(tmp_path / "s").rows("score_items"))) == 2 * 9


def test_half_a_character_in_a_reply_is_replaced_and_in_a_name_refused(tmp_path: Path, bench: Path) -> None:
    rows = _rows()
    rows[1]["text"] = "benign \ud800"
    score(write_replies(tmp_path / "r.jsonl", rows), bench=bench, out=tmp_path / "out", scenarios="present", draws=100)
    kept = [row for row in Folder(tmp_path / "out").rows("score_items") if row["protocol"] == "published"]
    assert [row["prediction"]["choices"] for row in kept] == [["benign"], ["benign \ufffd"], ["benign"]]
    rows[2]["model"] = "m\udfff"
    file = write_replies(tmp_path / "q.jsonl", rows)
    with pytest.raises(BadInput, match="row 3, field 'model': half a character"):
        score(file, bench=bench, out=tmp_path / "never", scenarios="present")
    assert not (tmp_path / "never").exists()


def test_a_byte_order_mark_is_no_fault(tmp_path: Path, bench: Path) -> None:
    file = write_replies(tmp_path / "r.jsonl", _rows())
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    scores = score(file, bench=bench, scenarios="present", draws=200)
    assert value_of(scores.metrics, "accuracy", "DD", "21")["value"] == 1.0


def _source(replies: list[Reply], asked: frozenset[str] | None = None) -> ReplySource:
    return ReplySource("m", replies, "hash", Path("r.jsonl"), asked)


def _with_options(number: int, count: int) -> Item:
    item = u2_item("DD", "21", number, {"choices": ("a",)})
    return replace(item, answer=AnswerSpec("choice", tuple("abcdef"[:count]), tuple("ABCDEF"[:count])))


def test_a_rotation_is_missing_only_where_the_question_has_it() -> None:
    two, four, silent = _with_options(1, 2), _with_options(2, 4), _with_options(3, 3)
    turns = ((two, (1,)), (four, (1, 2, 3)))
    replies = [Reply(item.item_id, "", 0, "", "ok", "A") for item in (two, four, silent)]
    replies += [Reply(item.item_id, f"circular={turn}", 0, "", "ok", "A") for item, own in turns for turn in own]
    found = [(reply.item_id, reply.variant, reply.status) for _, reply in join(_source(replies), [four, silent, two])]
    # The third question was not rotated, and lacks both of its rotations, but not a third one.
    lacking = [(name, variant) for name, variant, status in found if status == "missing"]
    assert lacking == [(silent.item_id, "circular=1"), (silent.item_id, "circular=2")]
    assert found == sorted(found) and len(found) == len(replies) + 2


def test_replies_come_in_the_order_of_their_keys_with_the_missing_between() -> None:
    items = [_with_options(number, 3) for number in (3, 1, 2)]
    ids = sorted(item.item_id for item in items)
    replies = [
        Reply(ids[2], "", 1, "", "ok", "A"),
        Reply(ids[0], "shuffle", 0, "", "ok", "B"),
        Reply(ids[2], "", 0, "reader", "ok", "C"),
    ]
    keys = [reply[:5] for _, reply in join(_source(replies, frozenset(ids[::2])), items)]
    assert keys == sorted(keys)
    assert keys == [
        (ids[0], "", 1, "", "missing"),
        (ids[0], "shuffle", 0, "", "ok"),
        (ids[2], "", 0, "reader", "ok"),
        (ids[2], "", 1, "", "ok"),
        (ids[2], "shuffle", 0, "", "missing"),
    ]


def test_varied_replies_to_other_scenarios_than_those_scored_are_passed_over(tmp_path: Path) -> None:
    kept = {one.key for one in load_spec("u2bench").scenario_set("fifty")}
    assert ("DD", "21") in kept and ("CG", "11") not in kept
    items = [u2_item("DD", "21", number, {"choices": ("benign",)}) for number in range(1, 4)]
    items += [u2_item("CG", "11", number, {"texts": ("benign",)}) for number in range(1, 4)]
    bench = write_bench(tmp_path / "bench", items)
    rows = [
        {"item_id": item.item_id, "text": "benign", "variant": variant}
        for item in items
        for variant in ("", "no_image")
    ]
    scores = score(write_replies(tmp_path / "r.jsonl", rows), bench=bench, scenarios="fifty", draws=200)
    found = {
        (row["variant"], row["dataset"]) for row in scores.metrics if row["dataset"] and row["origin"] == "computed"
    }
    assert {dataset for _, dataset in found} == {"21"}
    assert {variant for variant, _ in found} == {"", "no_image"}


def test_rows_of_both_protocols_are_written_in_the_order_of_their_keys(tmp_path: Path) -> None:
    items = [u2_item("DD", "21", number, {"choices": ("benign",)}) for number in (2, 1, 3)]
    bench = write_bench(tmp_path / "bench", items)
    rows = [
        {"item_id": item.item_id, "text": "benign", "variant": variant}
        for variant in ("shuffle", "")
        for item in items[::-1]
    ]
    score(write_replies(tmp_path / "r.jsonl", rows), bench=bench, scenarios="present", draws=200, out=tmp_path / "s")
    keys = [tuple(row[name] for name in key_of("score_items")) for row in Folder(tmp_path / "s").rows("score_items")]
    assert keys == sorted(keys) and {key[0] for key in keys} == {"published", "strict"} and len(keys) == 12


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.text(max_size=3)), max_size=5))
def test_shared_facts_are_equal_to_a_dict(metas: list[dict[str, str]]) -> None:
    share = Sharing()
    for meta in metas:
        item = replace(u2_item("DD", "21", 1, {"choices": ("benign",)}), meta=meta)
        shared = share(item)
        assert shared.meta == meta and dict(shared.meta) == meta and list(shared.meta) == list(meta)
        assert shared.meta.get("nothing") is None and ("a" in shared.meta) == ("a" in meta)
        assert shared == item
