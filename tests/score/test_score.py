"""Scores of small benchmarks worked out by hand, and the invariants of scoring."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score
from tests.score.small import u2_item, value_of, write_bench, write_replies

from sonogauge import BadInput
from sonogauge.benchmarks.spec import load_spec
from sonogauge.benchmarks.u2bench import u2_score
from sonogauge.folders import Folder
from sonogauge.models.baselines import baseline_replies
from sonogauge.report import report
from sonogauge.score import score
from sonogauge.score.compose import composite_values
from sonogauge.score.values import ModelValues, Value
from sonogauge.stats.intervals import Estimate

REFUSAL = "I cannot determine this from the image."
DRAWS = 400


def _garbage() -> tuple[list, dict[str, str | None]]:
    """Ten items in five cells each; three of ten replies are garbage."""
    cells = {
        ("DD", "23"): (
            [{"choices": ("normal",)}] * 2 + [{"choices": ("benign",)}] * 4 + [{"choices": ("malignant",)}] * 4,
            ["normal", "benign", "benign", "benign", "benign", "malignant", "malignant", "asdf", "", REFUSAL],
        ),
        ("DD", "44"): (
            [{"choices": (label,)} for label in "0001112233"],
            ["0", "0", "0", "1", "1", "2", "3", "white lung", "", "n/a"],
        ),
        ("CVE", "18"): (
            [{"number": 42.5}] * 10,
            ["42.5"] * 5 + ["45.75", "39.25", "", "normal function", REFUSAL],
        ),
        ("LL", "23"): (
            [{"places": ("upper left",)}] * 10,
            ["upper left"] * 5 + ["Upper left.", "top left", "somewhere", "", "lower center or center"],
        ),
        ("CG", "10"): ([{"texts": ("a b c d e",)}] * 10, ["a b c d e"] * 7 + [None] * 3),
    }
    items, replies = [], {}
    for (task, dataset), (references, texts) in cells.items():
        for number, (reference, text) in enumerate(zip(references, texts, strict=True), start=1):
            item = u2_item(task, dataset, number, reference)
            items.append(item)
            replies[item.item_id] = text
    return items, replies


@pytest.fixture(scope="module")
def garbage(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("garbage")
    items, replies = _garbage()
    bench = write_bench(root / "bench", items)
    file = write_replies(root / "replies.jsonl", replies)
    return score(file, bench=bench, out=root / "scores", scenarios="present", draws=DRAWS), root


# Worked out by hand in the comments beside; three garbage replies of ten in each cell.
STRICT_AND_PUBLISHED = [
    # 1 + 3 + 1 right of 10; strings that are no option are wrong in both
    ("accuracy", "DD", "23", 0.5, 0.5),
    # F1 2/3, 3/4, 1/3 over three options; the reference averages over six strings
    ("macro_f1", "DD", "23", 1.75 / 3, 1.75 / 6),
    # int() fails on the garbage, which leaves the denominator
    ("accuracy", "DD", "44", 0.5, 5 / 7),
    # errors 0 x 5, .05 x 2; failures .5 x 3 or dropped
    ("rmse_scaled", "CVE", "18", math.sqrt(0.755 / 10), math.sqrt(0.005 / 7)),
    ("within_tolerance", "CVE", "18", 0.7, 1.0),
    # "Upper left." and "top left" are right in strict, no equal string in published
    ("accuracy", "LL", "23", 0.7, 0.5),
    # 35 of 50 words: brevity exp(1 - 50/35); failed requests leave the published mean
    ("bleu4", "CG", "10", math.exp(1 - 50 / 35), 1.0),
    ("rouge_l", "CG", "10", 0.7, 1.0),
]


@pytest.mark.part("score strict")
@pytest.mark.part("score published")
@pytest.mark.parametrize(("metric", "task", "dataset", "strict", "published"), STRICT_AND_PUBLISHED)
def test_garbage_by_hand(garbage, metric, task, dataset, strict, published) -> None:
    rows = garbage[0].metrics
    assert value_of(rows, metric, task, dataset)["value"] == pytest.approx(strict, abs=1e-9)
    assert value_of(rows, metric, task, dataset, protocol="published")["value"] == pytest.approx(published, abs=1e-9)


def test_coverage_stands_beside_every_number(garbage) -> None:
    scores = garbage[0]
    row = value_of(scores.metrics, "accuracy", "DD", "44")
    assert (row["n"], row["valid"], row["excluded"]) == (10, 7, 0)
    published = value_of(scores.metrics, "accuracy", "DD", "44", protocol="published")
    assert (published["n"], published["valid"]) == (10, 7)
    reasons = scores.manifest.counts["failures"]["strict"]
    # 15 of 50: "Upper left." and "top left" are read
    assert reasons == {"ambiguous": 1, "empty": 4, "error": 3, "none": 5, "refusal_insufficient": 2}
    assert scores.manifest.counts["statuses"] == {"error": 3, "ok": 47}


def test_macro_f1_agrees_with_scikit_learn(garbage) -> None:
    items, replies = _garbage()
    truth = [one.reference["choices"][0] for one in items if one.item_id.startswith("DD/23")]
    said = [replies[one.item_id] for one in items if one.item_id.startswith("DD/23")]
    options = ["normal", "benign", "malignant"]
    expected = f1_score(truth, [x if x in options else "?" for x in said], labels=options, average="macro")
    assert value_of(garbage[0].metrics, "macro_f1", "DD", "23")["value"] == pytest.approx(expected, abs=1e-12)


def test_a_task_is_the_mean_of_its_datasets(garbage) -> None:
    rows = garbage[0].metrics
    assert value_of(rows, "accuracy", "DD")["value"] == pytest.approx(0.5)
    assert value_of(rows, "accuracy", "DD", protocol="published")["value"] == pytest.approx((0.5 + 5 / 7) / 2)


def test_missing_tasks_leave_no_total_in_strict_and_zero_in_published(garbage) -> None:
    rows = garbage[0].metrics
    total = value_of(rows, "u2", "")
    assert total["value"] is None
    assert total["why_null"] == "missing tasks: VRA, OD, KD, RG"
    tasks = {"DD": (0.5 + 5 / 7) / 2, "LL": 0.5, "CVE": 1 - math.sqrt(0.005 / 7), "CG": 1.0}
    expected = u2_score(tasks | dict.fromkeys(["VRA", "OD", "KD", "RG"], 0.0), "published")
    assert value_of(rows, "u2", "", protocol="published")["value"] == pytest.approx(expected, abs=1e-9)


def test_a_missing_dataset_gives_no_task_value_and_says_so(tmp_path: Path) -> None:
    items, replies = _garbage()
    bench = write_bench(tmp_path / "bench", items)
    scores = score(write_replies(tmp_path / "r.jsonl", replies), bench=bench, draws=DRAWS)
    row = value_of(scores.metrics, "accuracy", "DD")
    assert row["value"] is None
    assert row["why_null"].startswith("missing data sets: 21, 25, 28")
    assert value_of(scores.metrics, "accuracy", "DD", "23")["value"] == 0.5
    assert scores.manifest.counts["partial"] is True
    assert "DD/21" in scores.manifest.counts["missing"]


def test_items_without_reply_are_failures(tmp_path: Path) -> None:
    items = [u2_item("DD", "21", number, {"choices": ("benign",)}) for number in range(1, 5)]
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", {items[0].item_id: "benign", items[1].item_id: "benign"})
    scores = score(file, bench=bench, out=tmp_path / "scores", scenarios="present", draws=DRAWS)
    row = value_of(scores.metrics, "accuracy", "DD", "21")
    assert (row["value"], row["n"], row["valid"]) == (0.5, 4, 2)
    assert scores.manifest.counts["failures"]["strict"] == {"missing": 2}
    kept = [row for row in Folder(tmp_path / "scores").rows("score_items") if row["protocol"] == "strict"]
    assert [(row["status"], row["reason"]) for row in kept] == [("ok", None)] * 2 + [("missing", "missing")] * 2


def test_null_references_go_to_the_abstention_table(tmp_path: Path) -> None:
    items = [
        u2_item("CVE", "27", 1, None, state="null"),
        u2_item("CVE", "27", 2, None, state="null"),
        u2_item("CVE", "27", 3, None, state="null"),
        u2_item("CVE", "27", 4, {"number": 0.9}),
        u2_item("CVE", "27", 5, {"number": 0.9}),
    ]
    bench = write_bench(tmp_path / "bench", items)
    texts = dict(zip([one.item_id for one in items], ["null", "0.8", "", "null", "0.9"], strict=True))
    scores = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS)
    row = value_of(scores.metrics, "rmse_scaled", "CVE", "27")
    # null for a real value is a failure: worst error max(.5, .5)
    assert row["value"] == pytest.approx(math.sqrt(0.25 / 2))
    assert (row["n"], row["valid"], row["excluded"]) == (2, 1, 3)
    assert scores.manifest.counts["abstention"] == {"CVE/27": {"empty": 1, "null": 1, "number": 1}}
    assert scores.manifest.counts["failures"]["strict"] == {"none": 1}


def test_numbers_outside_the_range_are_clipped_and_counted(tmp_path: Path) -> None:
    items = [u2_item("CVE", "31", number, {"number": value}) for number, value in enumerate([44.3, 100.0, 225.0], 1)]
    bench = write_bench(tmp_path / "bench", items)
    texts = dict(zip([one.item_id for one in items], ["44.3", "-3", "22.5 cm"], strict=True))
    scores = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS)
    assert value_of(scores.metrics, "rmse_scaled", "CVE", "31")["value"] == 0.0
    kept = score(write_replies(tmp_path / "q.jsonl", texts), bench=bench, out=tmp_path / "s", scenarios="present")
    rows = {row["item_id"]: row for row in Folder(tmp_path / "s").rows("score_items") if row["protocol"] == "strict"}
    assert rows["CVE/31/0002"]["prediction"]["number"] == -3.0
    assert rows["CVE/31/0003"]["prediction"]["number"] == 225.0
    assert kept.manifest.counts["valid"] == 3


def test_any_box_of_the_target_counts_and_the_first_alone_beside_it(tmp_path: Path) -> None:
    items = [u2_item("LL", "23", number, {"places": ("upper left", "center")}) for number in (1, 2, 3, 4)]
    bench = write_bench(tmp_path / "bench", items)
    texts = dict(zip([one.item_id for one in items], ["upper left", "center", "center", "lower left"], strict=True))
    file = write_replies(tmp_path / "r.jsonl", texts)
    scores = score(file, bench=bench, out=tmp_path / "s", scenarios="present", draws=DRAWS)
    assert value_of(scores.metrics, "accuracy", "LL", "23")["value"] == 0.75
    values = [dict(row["values"]) for row in Folder(tmp_path / "s").rows("score_items") if row["protocol"] == "strict"]
    assert [one["correct_first"] for one in values] == [1.0, 0.0, 0.0, 0.0]
    assert value_of(scores.metrics, "accuracy", "LL", "23", protocol="published")["value"] == 0.25


def test_one_group_and_zero_hits_give_the_documented_rows(tmp_path: Path) -> None:
    one = [u2_item("DD", "21", number, {"choices": ("benign",)}, patient="same") for number in range(1, 6)]
    none = [u2_item("DD", "25", number, {"choices": ("benign",)}) for number in range(1, 31)]
    bench = write_bench(tmp_path / "bench", [*one, *none])
    texts = {item.item_id: "benign" for item in one} | {item.item_id: "malignant" for item in none}
    scores = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS)
    row = value_of(scores.metrics, "accuracy", "DD", "21")
    assert (row["value"], row["low"], row["high"], row["why_null"]) == (1.0, None, None, "one group")
    assert row["reliable"] is False
    row = value_of(scores.metrics, "accuracy", "DD", "25")
    assert (row["value"], row["low"]) == (0.0, 0.0)
    assert 0.08 < row["high"] < 0.15  # Wilson with 30 groups and t(29): t^2/(n + t^2)
    assert row["high"] == pytest.approx(2.0452296**2 / (30 + 2.0452296**2), abs=1e-6)
    task = value_of(scores.metrics, "accuracy", "DD")
    assert task["low"] is None
    assert "one group" in task["why_null"]


def test_order_of_replies_and_of_items_does_not_matter(tmp_path: Path) -> None:
    items, replies = _garbage()
    bench = write_bench(tmp_path / "bench", items)
    lines = write_replies(tmp_path / "a.jsonl", replies).read_text().splitlines()
    random.Random(1).shuffle(lines)
    (tmp_path / "b.jsonl").write_text("\n".join(lines) + "\n")
    first = score(tmp_path / "a.jsonl", bench=bench, model="m", scenarios="present", draws=DRAWS)
    second = score(tmp_path / "b.jsonl", bench=bench, model="m", scenarios="present", draws=DRAWS)
    assert first.metrics == second.metrics


def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    items, replies = _garbage()
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", replies)
    for name in ("one", "two"):
        score(file, bench=bench, out=tmp_path / name, scenarios="present", draws=DRAWS)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["benchmark.json", "manifest.json", "metrics.parquet", "score_items.parquet"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_total_is_the_stated_function_of_its_parts(tmp_path: Path) -> None:
    items, texts = [], {}
    generator = np.random.default_rng(0)
    cells = [("DD", "21"), ("VRA", "18"), ("LL", "04"), ("OD", "09"), ("KD", "48")]
    for task, dataset in cells:
        for number in range(1, 41):
            item = u2_item(task, dataset, number, {})
            options = item.answer.options
            field = "choices" if task in ("DD", "VRA") else "places"
            item = u2_item(task, dataset, number, {field: (options[int(generator.integers(len(options)))],)})
            items.append(item)
            texts[item.item_id] = options[int(generator.integers(2))]
    for number in range(1, 41):
        items.append(u2_item("CVE", "18", number, {"number": float(generator.uniform(10, 75))}))
        texts[items[-1].item_id] = "40"
        for task, dataset in (("RG", "39"), ("CG", "10")):
            items.append(u2_item(task, dataset, number, {"texts": (f"the {number} liver is of normal size",)}))
            texts[items[-1].item_id] = "the liver is of normal size today"
    bench = write_bench(tmp_path / "bench", items)
    scores = score(write_replies(tmp_path / "r.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS)
    rows = scores.metrics
    headline = {"CVE": "rmse_scaled", "RG": "bleu4", "CG": "bleu4"}
    d = {
        task: value_of(rows, headline.get(task, "accuracy"), task)["value"] for task in ("DD", "VRA", "LL", "OD", "KD")
    }
    d |= {task: value_of(rows, headline[task], task)["value"] for task in headline}
    d["CVE"] = 1 - d["CVE"]
    for name, weights in (("u2", "published"), ("u2_n_t", "n_t")):
        row = value_of(rows, name, "")
        assert row["value"] == pytest.approx(u2_score(d, weights), abs=1e-12)
        assert row["low"] < row["value"] < row["high"]
    skill = value_of(rows, "u2_skill", "")["value"]
    best = {}
    for task in d:
        metric = headline.get(task, "accuracy")
        found = [
            value_of(rows, metric, task, model=f"baseline/{name}", origin="baseline")["value"]
            for name in ("prior", "majority", "constant")
        ]
        best[task] = max(1 - x if task == "CVE" else x for x in found)
    weights_of = scores.spec.weights["published"]
    assert skill == pytest.approx(sum(weights_of[t] * (d[t] - best[t]) / (1 - best[t]) for t in d), abs=1e-12)
    # the published reading of the same replies differs only where the spec says: KD and places need no repair here
    assert {one.task for one in scores.verdicts} == set(d)


def test_json_holds_what_other_tools_rely_on(garbage) -> None:
    found = json.loads(report([garbage[1] / "scores"], format="json"))
    assert found["benchmark"] == "u2bench"
    assert found["protocol"] == "strict"
    assert found["partial"] is True
    task = found["tasks"]["CVE"]
    assert task["metrics"]["rmse_scaled"]["value"] == pytest.approx(math.sqrt(0.0755))
    assert "protocol:strict" in task["metrics"]["rmse_scaled"]["signature"]
    assert task["datasets"]["18"]["n"] == 10
    assert found["composites"]["u2"]["value"] is None
    assert set(found["baselines"]) == {"random", "majority", "prior", "constant", "not-visible"}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"protocol": "strikt"}, "no protocol"),
        ({"scenarios": "sixty"}, "no scenario set 'sixty'"),
        ({"weights": "mine"}, "no weights 'mine'"),
        ({"draws": 5}, "too few"),
        ({"tolerance": -0.1}, "-0.1 is no tolerance"),
        ({"tolerance": math.nan}, "nan is no tolerance"),
        ({"failure_error": "best"}, "unknown failure error"),
        ({"model": "m\udcff"}, "not a name"),
    ],
)
def test_options_that_cannot_be_used(garbage, options, what) -> None:
    root = garbage[1]
    with pytest.raises(BadInput, match=what):
        score(root / "replies.jsonl", bench=root / "bench", out=root / "never", **options)
    assert not (root / "never").exists()


@pytest.mark.part("score published")
def test_the_random_row_stands_beside_the_published_total(tmp_path: Path) -> None:
    items, replies = _garbage()
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", replies)
    rows = score(file, bench=bench, scenarios="present", draws=DRAWS).metrics
    texts = dict(zip([item.item_id for item in items], baseline_replies("random", items, []), strict=True))
    own = score(write_replies(tmp_path / "q.jsonl", texts), bench=bench, scenarios="present", draws=DRAWS).metrics
    for metric, task in (("u2", ""), ("accuracy", "DD"), ("rmse_scaled", "CVE")):
        beside = value_of(rows, metric, task, protocol="published", model="baseline/random", origin="baseline")
        assert beside["value"] == value_of(own, metric, task, protocol="published")["value"]
        assert beside["low"] is None
    assert {row["model"] for row in rows if (row["protocol"], row["origin"]) == ("published", "baseline")} == {
        "baseline/random"
    }
    bare = score(file, bench=bench, scenarios="present", draws=DRAWS, baselines=False).metrics
    assert {row["origin"] for row in bare} == {"computed"}


@pytest.mark.part("score published")
def test_published_rows_are_those_of_metrics_the_reference_knows(garbage) -> None:
    rows = [row for row in garbage[0].metrics if row["protocol"] == "published" and row["task"] and not row["dataset"]]
    shown = {(row["task"], row["metric"]) for row in rows if row["value"] is not None}
    assert {metric for task, metric in shown if task == "DD"} == {
        "accuracy",
        "macro_f1",
        "macro_precision",
        "macro_recall",
    }
    # a task without items keeps its headline and says so
    assert {row["metric"]: row["why_null"] for row in rows if row["task"] == "VRA"} == {
        "accuracy": "no data set of this task"
    }
    assert ("DD", "kappa") not in {(row["task"], row["metric"]) for row in rows}


def test_a_baseline_perfect_to_rounding_leaves_no_room_for_skill() -> None:
    spec = load_spec("u2bench")
    draws = np.full(DRAWS, 0.5)
    draws[0] = 1.0 - 1e-12  # BLEU-4 of a perfect text
    values, floor = ModelValues(), ModelValues()
    for task, facts in spec.tasks.items():
        best = 0.0 if facts.headline == "rmse_scaled" else 1.0 - 1e-11
        own = Estimate(best, None, None, 30, 29.0, True, None, np.full(DRAWS, best))
        values.tasks["", task] = {facts.headline: Value(facts.headline, own, 30, 30, 0)}
        other = Estimate(
            0.5, None, None, 30, 29.0, True, None, draws if facts.headline == "bleu4" else np.full(DRAWS, 0.5)
        )
        floor.tasks["", task] = {facts.headline: Value(facts.headline, other, 30, 30, 0)}
    skill = composite_values(spec, values, {"prior": floor})["", "u2_skill"].estimate
    assert skill.value == pytest.approx(1.0, abs=1e-9)
    assert skill.low is None or skill.high - skill.low < 1e-6


def test_a_tolerance_asked_for_replaces_that_of_the_items(tmp_path: Path) -> None:
    items = [u2_item("CVE", "18", number, {"number": 42.5}) for number in range(1, 5)]
    assert items[0].answer.tolerance is None
    items = [replace(one, answer=replace(one.answer, tolerance=0.1)) for one in items]
    bench = write_bench(tmp_path / "bench", items)
    # scaled errors 0, .05, .15, .25
    texts = dict(zip([one.item_id for one in items], ["42.5", "45.75", "52.25", "58.75"], strict=True))
    file = write_replies(tmp_path / "r.jsonl", texts)
    for tolerance, share in ((None, 0.5), (0.2, 0.75), (0.0, 0.25), (1.0, 1.0)):
        rows = score(file, bench=bench, scenarios="present", draws=DRAWS, tolerance=tolerance).metrics
        row = value_of(rows, "within_tolerance", "CVE", "18")
        assert row["value"] == share
        assert f"failures:worst,tolerance:{0.1 if tolerance is None else tolerance:g}|" in row["signature"]
        assert "tolerance" not in value_of(rows, "rmse_scaled", "CVE", "18")["signature"]
