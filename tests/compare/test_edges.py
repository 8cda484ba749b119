"""Comparisons at the edge: equal answers, one patient, many models, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.compare.made import made_bench, made_run, replies, small_items, small_spec
from tests.score.small import write_bench, write_replies
from typer.testing import CliRunner

from sonogauge import BadInput
from sonogauge.cli import app
from sonogauge.compare import compare, view_comparison
from sonogauge.report.formats import render

pytestmark = pytest.mark.part("comparison")


def test_equal_answers_give_p_one_and_no_interval(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path)
    runs = []
    for name in ("one", "two"):
        rows = [row | {"model": name} for row in replies(items, 0.6, 5)]
        runs.append(write_replies(tmp_path / f"{name}.jsonl", rows))
    for one in compare(runs, bench=bench, draws=200).document["differences"]:
        assert (one["p"], one["difference"], one["low"], one["exact"]) == (1.0, 0.0, None, True)
        assert one["why_null"] == "both models did the same on every patient"
        assert one["mcnemar"] is None or one["mcnemar"]["p_exact"] == 1.0


def test_fractions_differ_by_one_at_most(tmp_path: Path) -> None:
    items = [item for item in small_items(patients=6, frames=3) if item.task == "LL"]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [made_run(tmp_path, items, skill, seed) for seed, skill in ((1, 1.0), (2, 0.1))]
    (one,) = (row for row in compare(runs, bench=bench, draws=200).document["differences"] if row["task"])
    assert 0.5 < one["difference"] < 1 and (one["high"], one["d_high"]) == (1.0, 1.0)


def test_one_patient_gives_a_value_and_no_p(tmp_path: Path) -> None:
    items = [item for item in small_items(patients=1, frames=12) if item.task == "LL"]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [made_run(tmp_path, items, skill, seed) for seed, skill in ((1, 0.3), (2, 0.9))]
    found = compare(runs, bench=bench, draws=200)
    (one,) = (row for row in found.document["differences"] if row["task"])
    assert one["difference"] is not None and one["p"] is None and one["low"] is None and one["detectable"] is None
    assert one["why_no_p"] == "one group: the spread between groups cannot be told"
    assert "one group" in one["why_null"]
    assert found.document["families"]["tasks"]["tests"] == 0
    json.dumps(found.document, allow_nan=False)
    assert "one group" in render(view_comparison(found.document), "md")


def test_many_models_without_a_reference_are_ranked_only(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    runs = [made_run(tmp_path, items, 0.3 + 0.05 * seed, seed) for seed in range(11)]
    found = compare(runs, bench=bench, draws=100, swaps=99).document
    assert found["differences"] == [] and len([one for one in found["ranks"] if not one["task"]]) == 11
    assert any("11 models make 55 pairs" in notice for notice in found["notices"])


def test_two_runs_of_a_model_are_told_apart_by_folder_or_path(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    runs = []
    for name in ("a/x", "b/x", "c/y"):
        (tmp_path / name).mkdir(parents=True)
        runs.append(write_replies(tmp_path / name / "r.jsonl", replies(items, 0.5, 1)))
    found = compare(runs, bench=bench, draws=100, swaps=99).document
    assert len(set(found["models"])) == 3 and all(one.startswith("made/1 (") for one in found["models"])


def bad(tmp_path: Path, **options: Any) -> BadInput:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    first = made_run(tmp_path, items, 0.5, 1)
    second = made_run(tmp_path, items, 0.5, 2)
    runs = options.pop("runs", [first, second])
    with pytest.raises(BadInput) as caught:
        compare([first if one == 1 else one for one in runs], **({"bench": bench} | options))
    assert "\n" not in str(caught.value)
    return caught.value


def test_one_run_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert "nothing to be compared with" in str(bad(tmp_path, runs=[1]))
    assert "no run" in str(bad(tmp_path / "none", runs=[], ablation="image"))


def test_the_same_run_twice(tmp_path: Path) -> None:
    assert "the same run twice" in str(bad(tmp_path, runs=[1, 1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "colour"}, "no column 'colour'; known: task, dataset, anatomy, determinable, source, device"),
        ({"variant": "no_image"}, "no run has the variant 'no_image'"),
        ({"margin": 0.0}, "no margin between 0 and 1"),
        ({"correction": "sidak"}, "no correction 'sidak'; known: holm, bh"),
        ({"ablation": "weather"}, "no ablation 'weather'; known: anatomy, groups"),
        ({"draws": 10}, "10 draws are too few"),
        ({"swaps": 10}, "10 exchanges"),
        ({"scenarios": "half"}, "no scenario set 'half'"),
        ({"models_file": "nowhere.yaml"}, "nowhere.yaml: cannot be read"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    assert message in str(bad(tmp_path, **options))


def test_other_items_are_refused_by_the_first_that_differs(tmp_path: Path) -> None:
    bench, items = made_bench(tmp_path, patients=3, frames=1)
    full = made_run(tmp_path, items, 0.5, 1)
    again = write_replies(tmp_path / "more.jsonl", replies(items, 0.5, 2, variants=[("", 0, 0.0), ("", 1, 0.0)]))
    with pytest.raises(BadInput, match=r"not the same items: made/2 was asked CVE/50/0001 \(epoch 1\), made/1 was not"):
        compare([full, again], bench=bench, draws=100, swaps=99)


def test_runs_of_other_benchmarks_or_limits_are_refused(tmp_path: Path) -> None:
    runner = CliRunner()
    benches, runs = [], []
    for number, patients in enumerate((3, 4)):
        bench, _ = made_bench(tmp_path / str(number), patients=patients, frames=1)
        benches.append(bench)
        runs.append(tmp_path / f"run{number}")
        made = ["run", str(bench), "--model", "baseline/random", "--out", str(runs[-1])]
        assert runner.invoke(app, made).exit_code == 0
    with pytest.raises(BadInput, match="compare runs of the same benchmark folder"):
        compare(runs)
    short = tmp_path / "short"
    made = ["run", str(benches[0]), "--model", "baseline/constant", "--out", str(short), "--limit", "2"]
    assert runner.invoke(app, made).exit_code == 0
    for order in ([runs[0], short], [short, runs[0]]):
        with pytest.raises(BadInput, match=r"not the same items: baseline/random was asked .* --limit"):
            compare(order)
