"""Published rows: facts of the package's file, checked against the shared collection and the specification."""

from __future__ import annotations

import csv

import pytest
from tests.shared import shared_data

from sonogauge.benchmarks.spec import load_spec
from sonogauge.report import published_rows
from sonogauge.tables import METRICS, key_of

pytestmark = pytest.mark.part("report")


@pytest.mark.parametrize("bench", ["u2bench", "ultrag"])
def test_rows_have_the_columns_of_the_metrics_table_and_distinct_keys(bench: str) -> None:
    rows = published_rows(bench)
    assert all(set(one) == set(METRICS.names) for one in rows)
    assert {one["origin"] for one in rows} == {"published"}
    assert all(one["low"] is None and one["high"] is None for one in rows)
    assert all(0.0 <= one["value"] <= 1.0 for one in rows)
    assert all(one["source"] for one in rows)
    keys = [tuple(one[name] for name in key_of("metrics")) for one in rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("model", "parts", "total"),
    # Acceptance rows of the specification, section 6: accuracies, RMSE, BLEU-4 times 100.
    [
        ("GPT-4o", (0.4928, 0.1504, 0.1161, 0.0850, 0.0840, 0.3712, 2.68, 33.77), 0.2253),
        ("Qwen-2.5-VL-7B-Instruct", (0.4821, 0.2181, 0.0750, 0.0704, 0.1000, 0.4646, 3.71, 29.44), 0.2235),
    ],
)
def test_known_rows(model: str, parts: tuple[float, ...], total: float) -> None:
    held = {
        (one["task"], one["metric"]): one["value"]
        for one in published_rows("u2bench")
        if one["model"] == model and not one["variant"]
    }
    places = [(code, "accuracy") for code in ("DD", "VRA", "LL", "OD", "KD")]
    places += [("CVE", "rmse_scaled"), ("RG", "bleu4"), ("CG", "bleu4")]
    assert [held[place] for place in places] == pytest.approx([*parts[:6], parts[6] / 100, parts[7] / 100])
    assert held["", "u2"] == total


@pytest.mark.part("ultrag")
@pytest.mark.parametrize(("model", "mean"), [("Claude-4.5", 0.318), ("GPT-5.4", 0.342), ("Qwen3-VL-4B", 0.191)])
def test_the_flags_of_ultrag_have_the_mean_that_the_specification_names(model: str, mean: float) -> None:
    rows = [one for one in published_rows("ultrag") if one["model"] == model]
    flags = {f"sem_{name}" for name in ("presence", "category", "location", "size")}
    held = [one["value"] for one in rows if one["metric"] in flags]
    assert len(held) == 4 and sum(held) / 4 == pytest.approx(mean, abs=5e-4)
    # Not equal: a flag counts in the reports alone to which it applies.
    (total,) = (one["value"] for one in rows if one["metric"] == "sem_acc")
    assert 0 < abs(total - mean) < 0.02
    known = {name: set(task.metrics) for name, task in load_spec("ultrag").tasks.items()}
    assert all(one["metric"] in known[one["task"]] and one["doubt"] for one in rows)


def test_doubts_are_kept() -> None:
    doubts = {one["doubt"] for one in published_rows("u2bench") if one["model"] == "Phi-4-Multimodal-Instruct"}
    assert doubts == {"CVE set 27 rests on one valid reply"}


def test_no_file_no_rows() -> None:
    assert published_rows("synthetic") == []
    assert published_rows("../u2bench") == []


@pytest.mark.real
def test_every_shared_number_is_there() -> None:
    with (shared_data().parent / "published" / "published.csv").open(encoding="utf-8", newline="") as stream:
        shared = [one for one in csv.DictReader(stream) if one["benchmark"] == "u2bench"]
    scale = {True: 100.0, False: 1.0}
    wanted = sorted(
        (
            one["model"],
            one["task"].replace("all", ""),
            one["metric"].removesuffix("_percent"),
            round(float(one["value"]) / scale[one["metric"].endswith("_percent")], 8),
            one["source"],
            one["doubt"],
        )
        for one in shared
    )
    held = sorted(
        (one["model"], one["task"], one["metric"], one["value"], one["source"], one["doubt"] or "")
        for one in published_rows("u2bench")
    )
    assert held == wanted
