"""Four models that do not read the image, or only large structures: the tables that unmask them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.analyses.made import items_of, letter, reader, right, write_replies

import sonogauge
from sonogauge.analyses import analyse
from sonogauge.analyses.api import view_analysis
from sonogauge.analyses.formulas import commonest
from sonogauge.analyses.sizes import box_of, make_rule
from sonogauge.items import Item
from sonogauge.report.formats import render

pytestmark = pytest.mark.part("analyses")


def _rows(found: Any, key: str) -> dict[tuple[str, ...], dict[str, Any]]:
    table = found.table(key)
    names = [column["key"] for column in table["columns"] if not column["unit"]]
    return {tuple(str(row[name]) for name in names): row for row in table["rows"]}


def test_a_constant_letter_is_flagged_and_no_better_than_its_baseline(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    replies = write_replies(tmp_path / "always-a.jsonl", items, lambda item, variant, epoch: "A")
    letters = analyse(replies, "confusion", bench=bench).table("letters")["rows"]
    for row in letters:
        assert row["share"] == (1.0 if row["letter"] == "A" else 0.0)
        assert row["flag"] == ("over 80 %" if row["letter"] == "A" else "")
        assert 0.05 < row["expected"] < 0.6
    overall = analyse(replies, "overall", bench=bench).table("overall_tasks")["rows"]
    assert overall and all(row["verdict"] != "above" for row in overall)
    # The labels it names are spread, so only the letters tell.
    labels = analyse(replies, "confusion", bench=bench).table("labels")["rows"]
    assert all(not row["flag"] for row in labels)


def test_a_model_that_names_the_commonest_label_is_flagged_by_label(bench: Path, tmp_path: Path) -> None:
    train = items_of(bench, "train")
    common = {
        task: commonest(Counter(right(item) for item in train if item.task == task)) for task in ("PI", "FO", "VG")
    }

    def answer(item: Item, variant: str, epoch: int) -> str:
        offered = common[item.task] in item.answer.options
        return letter(item, common[item.task]) if offered else "I cannot tell from this image."

    replies = write_replies(tmp_path / "commonest.jsonl", items_of(bench), answer)
    found = analyse(replies, "confusion", bench=bench)
    flags = {(row["task"], row["label"]) for row in found.table("labels")["rows"] if row["flag"]}
    assert flags == set(common.items())
    for task, label in common.items():
        rows = found.table(f"confusion_{task}")["rows"]
        keys = {column["title"]: column["key"] for column in found.table(f"confusion_{task}")["columns"]}
        for row in rows:
            assert row[keys[label]] + row[keys["(no answer)"]] == row["n"]


def test_a_favourite_label_is_flagged_where_it_is_offered_though_it_is_seldom_offered(
    bench: Path, tmp_path: Path
) -> None:
    items = [item for item in items_of(bench) if item.task == "PI"]
    favourite = "fetal femur plane"

    def answer(item: Item, variant: str, epoch: int) -> str:
        offered = favourite in item.answer.options
        return letter(item, favourite if offered else Random(item.item_id).choice(item.answer.options))

    found = analyse(write_replies(tmp_path / "favourite.jsonl", items, answer), "confusion", bench=bench)
    rows = {row["label"]: row for row in found.table("labels")["rows"]}
    offered = [item for item in items if favourite in item.answer.options]
    row = rows[favourite]
    assert 10 < len(offered) < 0.8 * len(items) and row["share"] < 0.8
    assert (row["offered"], row["chosen"]) == (len(offered), 1.0)
    assert row["right"] == pytest.approx(sum(right(item) == favourite for item in offered) / len(offered))
    assert {label for label, one in rows.items() if one["flag"]} == {favourite}
    assert row["flag"] == "over 80 % where offered"
    # One that is always right names each label where it is right and no other.
    best = write_replies(tmp_path / "best.jsonl", items, lambda item, variant, epoch: letter(item, right(item)))
    for one in analyse(best, "confusion", bench=bench).table("labels")["rows"]:
        assert one["chosen"] == one["right"] and not one["flag"]


def test_answers_that_cannot_be_read_offer_nothing(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    found = analyse(write_replies(tmp_path / "mute.jsonl", items, lambda *_: "?"), "confusion", bench=bench)
    for one in found.table("labels")["rows"]:
        assert (one["n"], one["offered"], one["chosen"], one["flag"]) == (0, 0, None, "")
    assert "\u2013" in render(view_analysis(found.document), "md")


def test_a_prior_model_equals_its_baseline_and_is_not_above_it(bench: Path, tmp_path: Path) -> None:
    counts: dict[str, Counter[str]] = {}
    for item in items_of(bench, "train"):
        counts.setdefault(item.task, Counter())[right(item)] += 1

    def answer(item: Item, variant: str, epoch: int) -> str:
        known = {one: counts[item.task][one] for one in item.answer.options if counts[item.task][one]}
        return letter(item, commonest(known) if known else item.answer.options[0])

    replies = write_replies(tmp_path / "prior.jsonl", items_of(bench), answer)
    rows = _rows(analyse(replies, "baselines", bench=bench), "baselines")
    for row in analyse(replies, "overall", bench=bench).table("overall_tasks")["rows"]:
        task = row["task"]
        prior = next(one for key, one in rows.items() if key[0] == task and key[1].startswith("prior"))
        assert row["accuracy"]["value"] == pytest.approx(prior["value"]["value"], abs=0.03)
        assert row["verdict"] in ("not distinguishable", "below")


def test_a_model_right_on_large_boxes_only_shows_in_the_bins(bench: Path, tmp_path: Path) -> None:
    items = [item for item in items_of(bench) if item.task == "VG"]
    rule = make_rule("relative", items)

    def answer(item: Item, variant: str, epoch: int) -> str:
        if rule.bin_of(*box_of(item)) == "large":
            return letter(item, right(item))
        wrong = [one for one in item.answer.options if one != right(item)]
        return letter(item, Random(item.item_id).choice(wrong))

    replies = write_replies(tmp_path / "large.jsonl", items, answer)
    found = analyse(replies, "sizes", bench=bench)
    bins = {row["size"]: row for row in found.table("sizes")["rows"]}
    assert bins["large"]["accuracy"]["value"] == 1.0
    assert bins["medium"]["accuracy"]["value"] == bins["small"]["accuracy"]["value"] == 0.0
    assert all(bins[name]["n"] > 0 for name in ("large", "medium", "small"))
    total = bins["all (VG)"]
    assert sum(bins[name]["n"] for name in ("large", "medium", "small")) == total["n"] == len(items)
    # Within a structure the same, so it is size and not structure.
    for row in found.table("sizes_structure")["rows"]:
        if row["n"]:
            assert row["accuracy"]["value"] == (1.0 if row["size"] == "large" else 0.0)
    # The same bins as slices of the scores.
    sliced = sonogauge.score(replies, bench=bench, by=["size_relative", "is_phantom"], baselines=False, draws=200)
    values = {row["slice"]: row for row in sliced.metrics if row["task"] == "VG" and row["metric"] == "accuracy_cases"}
    for name in ("large", "medium", "small"):
        part = values[f"size_relative={name}"]
        assert (part["value"], part["n"]) == (bins[name]["accuracy"]["value"], bins[name]["n"])
    quantile = analyse(replies, "sizes", bench=bench, size_rule="quantile")
    assert "size_rule quantile" in quantile.table("sizes")["notes"][0]
    assert sum(row["n"] for row in quantile.table("sizes")["rows"][:3]) == len(items)


def test_a_reader_stands_above_and_the_report_prints_n(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    replies = write_replies(tmp_path / "reader.jsonl", items, reader(0.9))
    found = analyse(replies, "overall", bench=bench)
    rows = found.table("overall_tasks")["rows"]
    assert {row["verdict"] for row in rows} == {"above"} and sum(row["n"] for row in rows) == len(items)
    micro, macro = found.table("overall")["rows"]
    hits = [reader(0.9)(item, "", 0) == letter(item, right(item)) for item in items]
    assert micro["value"]["value"] == pytest.approx(sum(hits) / len(hits))
    assert macro["value"]["value"] == pytest.approx(sum(row["accuracy"]["value"] for row in rows) / len(rows))
    # The scores of the same replies hold both totals under the names of the benchmark.
    scores = sonogauge.score(replies, bench=bench, out=tmp_path / "scores", draws=500)
    totals = {row["metric"]: row["value"] for row in scores.metrics if not row["task"] and row["origin"] == "computed"}
    assert totals["overall_micro"] == pytest.approx(micro["value"]["value"])
    assert totals["overall_macro"] == pytest.approx(macro["value"]["value"])
    # Read from the scores folder instead of the replies, every analysis says the same.
    for name in ("overall", "baselines", "sizes", "domains", "sources", "confusion"):
        first = analyse(replies, name, bench=bench, draws=200).document
        second = analyse(tmp_path / "scores", name, draws=200).document
        assert first["tables"] == second["tables"]
