"""Runs side by side: differences against naive loops, families, ranks, slices, and every kind of bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests
from tests.compare.made import WEIGHTS, made_bench, made_run, small_items, small_spec
from tests.score.small import write_bench, write_replies
from typer.testing import CliRunner

import sonogauge
from sonogauge import BadInput
from sonogauge.cli import app
from sonogauge.compare import compare, read_comparison, view_comparison
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.metrics.base import Array
from sonogauge.report.formats import render
from sonogauge.stats.resample import Resampler

pytestmark = pytest.mark.part("comparison")


class World:
    """A benchmark with three models on it and the comparison of them all."""

    def __init__(self, path: Path) -> None:
        self.bench, self.items = made_bench(path)
        self.runs = [made_run(path, self.items, skill, seed) for seed, skill in ((1, 0.4), (2, 0.6), (3, 0.8))]
        self.found = compare(self.runs, bench=self.bench, by="device", draws=400, swaps=999, margin=0.1)

    def difference(self, first: int, second: int, **place: str) -> dict[str, Any]:
        wanted = {"first": f"made/{first}", "second": f"made/{second}", "task": "", "dataset": "", "level": ""} | place
        rows = [one for one in self.found.document["differences"] if all(one[key] == wanted[key] for key in wanted)]
        assert len(rows) == 1, (wanted, len(rows))
        return dict(rows[0])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield World(tmp_path_factory.mktemp("compare"))


def told(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["item_id"]: row["text"] for row in rows}


def scores(item: Item, text: str) -> float:
    """Hit, or squared scaled error of a number."""
    if item.task == "CVE":
        low, high = item.answer.low, item.answer.high
        assert low is not None and high is not None
        return float(((item.reference["number"] - float(text)) / (high - low)) ** 2)
    reference = item.reference["choices"] if item.task == "DD" else item.reference["places"]
    return float(text in reference)


def naive_value(items: list[Item], texts: dict[str, str], weight: dict[tuple[str, str], float]) -> dict[str, float]:
    """Headlines and total, item by item: DD = mean of its two data sets, LL, CVE = RMSE."""
    sums: dict[tuple[str, str], list[float]] = {}
    for item in items:
        own = weight[item.source, item.group]
        cell = sums.setdefault((item.task, item.dataset), [0.0, 0.0])
        cell[0] += own * scores(item, texts[item.item_id])
        cell[1] += own
    value = {key: hits / n for key, (hits, n) in sums.items()}
    out = {
        "DD": (value["DD", "21"] + value["DD", "32"]) / 2,
        "LL": value["LL", "32"],
        "CVE": value["CVE", "50"] ** 0.5,
    }
    out[""] = WEIGHTS["DD"] * out["DD"] + WEIGHTS["LL"] * out["LL"] + WEIGHTS["CVE"] * (1 - out["CVE"])
    return out


def naive_differences(world: World, first: int, second: int) -> tuple[dict[str, float], dict[str, Array]]:
    groups: dict[str, set[str]] = {}
    for item in world.items:
        groups.setdefault(item.source, set()).add(item.group)
    resampler = Resampler({source: sorted(own) for source, own in groups.items()}, draws=400, seed=0)
    weights = {source: resampler.weights(source) for source in groups}
    texts = [told(world.runs[number - 1]) for number in (first, second)]
    ones = {(source, group): 1.0 for source, own in groups.items() for group in own}
    a, b = (naive_value(world.items, one, ones) for one in texts)
    draws: dict[str, list[float]] = {name: [] for name in a}
    for draw in range(400):
        weight = {
            (source, group): float(weights[source][draw, place])
            for source, own in groups.items()
            for place, group in enumerate(sorted(own))
        }
        ours, theirs = (naive_value(world.items, one, weight) for one in texts)
        for name in draws:
            draws[name].append(ours[name] - theirs[name])
    return {name: a[name] - b[name] for name in a}, {name: np.array(own) for name, own in draws.items()}


def test_differences_and_intervals_equal_a_naive_loop(world: World) -> None:
    values, draws = naive_differences(world, 2, 1)
    for task in ("DD", "LL", "CVE", ""):
        found = world.difference(1, 2, task=task)
        half = (found["high"] - found["low"]) / 2
        # Patients with many items widen it a little: tests/stats shows by how much, to rounding.
        assert 1.0 - 1e-12 <= half / (student.ppf(0.975, found["df"]) * draws[task].std()) < 1.1
        expected = (-values[task], -values[task] - half, -values[task] + half)
        assert (found["difference"], found["low"], found["high"]) == pytest.approx(expected, abs=1e-12)
        down = task == "CVE"
        flipped = (values[task], values[task] - half, values[task] + half)
        assert (found["d_difference"], found["d_low"], found["d_high"]) == pytest.approx(
            flipped if down else expected, abs=1e-12
        )
        assert found["direction"] == ("down" if down else "up")


@pytest.mark.parametrize("task", ["LL", "CVE", "DD", ""])
def test_p_values_equal_a_naive_loop_over_all_swaps(world: World, tmp_path: Path, task: str) -> None:
    # Few patients, so that all patterns can be tried; DD/32 and LL/32 share theirs.
    items = small_items(patients=3, frames=4)
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [made_run(tmp_path, items, skill, seed) for seed, skill in ((1, 0.45), (2, 0.7))]
    (found,) = (one for one in compare(runs, bench=bench, draws=200).document["differences"] if one["task"] == task)
    texts = [told(run) for run in runs]
    ones = {(item.source, item.group): 1.0 for item in items}
    keys = sorted({(item.source, item.group) for item in items if task in ("", item.task)})
    gaps = []
    for flips in product((False, True), repeat=len(keys)):
        swapped = {key for key, flip in zip(keys, flips, strict=True) if flip}
        mixed: list[dict[str, str]] = [{}, {}]
        for item in items:
            order = (1, 0) if (item.source, item.group) in swapped else (0, 1)
            for side in (0, 1):
                mixed[side][item.item_id] = texts[order[side]][item.item_id]
        a, b = (naive_value(items, one, ones)[task] for one in mixed)
        gaps.append(a - b)
    assert found["exact"]
    assert found["p"] == pytest.approx(np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-12), abs=1e-12)


def test_mcnemar_counts_the_items_that_one_model_alone_got_right(world: World) -> None:
    ours, theirs = (told(world.runs[number]) for number in (0, 2))
    pairs = [
        (scores(item, ours[item.item_id]), scores(item, theirs[item.item_id]))
        for item in world.items
        if item.task == "DD"
    ]
    found = world.difference(1, 3, task="DD")["mcnemar"]
    assert (found["b"], found["c"]) == (sum(a > b for a, b in pairs), sum(a < b for a, b in pairs))
    assert world.difference(1, 3, task="CVE")["mcnemar"] is None


def test_p_are_adjusted_within_declared_families(world: World) -> None:
    families = world.found.document["families"]
    assert families == world.found.manifest.parameters["families"]
    assert {name: one["tests"] for name, one in families.items()} == {"tasks": 9, "totals": 3, "by device": 18}
    assert families["tasks"]["members"] == ["DD", "CVE", "LL"] or set(families["tasks"]["members"]) == {
        "DD",
        "LL",
        "CVE",
    }
    for name in families:
        rows = [one for one in world.found.document["differences"] if one["family"] == name]
        p = [one["p"] for one in rows]
        assert [one["p_holm"] for one in rows] == pytest.approx(list(multipletests(p, method="holm")[1]))
        assert [one["p_bh"] for one in rows] == pytest.approx(list(multipletests(p, method="fdr_bh")[1]))


def test_detectable_difference_and_margin(world: World) -> None:
    found = world.difference(1, 3, task="DD")
    error = (found["high"] - found["low"]) / 2 / student.ppf(0.975, found["df"])
    # Power 80 % needs a little more than the t quantiles of 97.5 % and 80 % together.
    rough = error * (student.ppf(0.975, found["df"]) + student.ppf(0.8, found["df"]))
    assert found["detectable"] == pytest.approx(rough, rel=0.02)
    assert found["standing"] == "inferior"
    assert world.difference(1, 2, task="CVE")["standing"] in ("superior", "non-inferior", "inconclusive", "inferior")


def test_a_level_of_a_column_is_compared_as_if_alone(world: World, tmp_path: Path) -> None:
    items = [item for item in world.items if item.meta["device"] == "d0"]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [
        write_replies(
            tmp_path / run.name,
            [
                {"item_id": item.item_id, "text": told(run)[item.item_id], "model": f"made/{run.stem[1:]}"}
                for item in items
            ],
        )
        for run in world.runs[:2]
    ]
    alone = compare(runs, bench=bench, draws=400)
    for task in ("DD", "LL", "CVE"):
        found = world.difference(1, 2, task=task, level="d0")
        (expected,) = (one for one in alone.document["differences"] if one["task"] == task)
        for name in ("difference", "n", "groups", "differing_groups", "mcnemar"):
            assert found[name] == expected[name], name


def test_items_without_a_level_have_one_of_their_own_and_levels_are_bounded(tmp_path: Path) -> None:
    items = [
        replace(item, meta={"side": "left"} if number % 2 else {"number": str(number)})
        for number, item in enumerate(small_items(patients=60, frames=2))
    ]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [made_run(tmp_path, items, 0.5, seed) for seed in (1, 2)]
    document = compare(runs, bench=bench, by="side", draws=100, swaps=99).document
    assert {one["level"] for one in document["levels"]} == {"", "left"}
    for format in ("md", "csv"):
        assert "(none)" in render(view_comparison(document), format)
    with pytest.raises(BadInput, match="column 'number' has 241 levels, more than 200"):
        compare(runs, bench=bench, by="number", draws=100, swaps=99)


def test_a_list_of_items_narrows_the_comparison(world: World, tmp_path: Path) -> None:
    ids = [item.item_id for item in world.items if item.dataset == "21"][:7]
    chosen = tmp_path / "ids.txt"
    chosen.write_text("# seven\n" + "\n".join(ids) + "\n", "utf-8")
    found = sonogauge.compare(world.runs[:2], bench=world.bench, items=chosen, draws=200, swaps=199)
    (one,) = (row for row in found.document["differences"] if row["task"])
    assert (one["task"], one["n"], found.document["items"]) == ("DD", 7, 7)
    assert any(notice.startswith("Partial: 1 of 4 scenarios") for notice in found.document["notices"])
    for text, message in (("DD/21/9999", "no item 'DD/21/9999'"), ("\n", "no item id in it")):
        chosen.write_text(text, "utf-8")
        with pytest.raises(BadInput, match=message):
            compare(world.runs[:2], bench=world.bench, items=chosen)
    chosen.write_bytes(b"\xff\xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        compare(world.runs[:2], bench=world.bench, items=chosen)
    with pytest.raises(BadInput, match="cannot be read"):
        compare(world.runs[:2], bench=world.bench, items=tmp_path / "none.txt")


def test_a_fixed_set_with_a_missing_data_set_has_no_task_value(world: World, tmp_path: Path) -> None:
    items = [item for item in world.items if item.dataset != "21"]
    bench = write_bench(tmp_path / "bench", items, small_spec())
    runs = [made_run(tmp_path, items, 0.5, seed) for seed in (1, 2)]
    found = compare(runs, bench=bench, scenarios="all", draws=100, swaps=99).document
    rows = {one["task"]: one for one in found["differences"]}
    assert rows["LL"]["p"] is not None
    for task, why in (("DD", "missing data sets: 21"), ("", "missing tasks: DD")):
        assert rows[task]["difference"] is None and rows[task]["p"] is None and rows[task]["mcnemar"] is None
        assert (
            why in rows[task]["why_null"]
            and why in found["totals"]["total"]["made/1"]["why_null"] + rows[task]["why_no_p"]
        )
    assert {one["task"] for one in found["ranks"]} == {"", "LL", "CVE"}
    assert found["ranking"]["weights"] == pytest.approx({"LL": 0.6, "CVE": 0.4})


def test_ranks_wins_and_left_out_sets(world: World) -> None:
    ranks = {(one["label"], one["task"]): one for one in world.found.document["ranks"]}
    assert [ranks[f"made/{number}", ""]["rank"] for number in (1, 2, 3)] == [3, 2, 1]
    assert sum(ranks[f"made/{number}", "DD"]["win"] for number in (1, 2, 3)) == pytest.approx(1.0)
    for one in ranks.values():
        assert one["low"] <= one["high"]
    left = world.found.document["left_out"]
    assert {(one["task"], one["dataset"]) for one in left} == {("DD", "21"), ("DD", "32"), ("LL", "32"), ("CVE", "50")}
    texts = [told(run) for run in world.runs]
    kept = [item for item in world.items if item.dataset != "21"]
    totals = []
    for own in texts:
        hits = {task: np.mean([scores(i, own[i.item_id]) for i in kept if i.task == task]) for task in WEIGHTS}
        hits["CVE"] = 1 - hits["CVE"] ** 0.5
        totals.append(sum(WEIGHTS[task] * hits[task] for task in WEIGHTS))
    (without,) = (one["ranks"] for one in left if one["dataset"] == "21")
    assert [without[f"made/{number}"] for number in (1, 2, 3)] == (3 - np.argsort(np.argsort(totals))).tolist()


def test_against_compares_all_with_one_and_the_same_input_gives_the_same_bytes(world: World, tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("a", "b")]
    for out in outs:
        found = compare(
            world.runs, bench=world.bench, against=world.runs[0], by="dataset", out=out, draws=200, swaps=199
        )
    pairs = {(one["first"], one["second"]) for one in found.document["differences"]}
    assert pairs == {("made/2", "made/1"), ("made/3", "made/1")}
    assert {one["level"] for one in found.document["differences"] if one["family"] == "by dataset"} == {
        "21",
        "32",
        "50",
    }
    texts = [(out / "comparison.json").read_bytes() for out in outs]
    assert texts[0] == texts[1]
    assert (outs[0] / "manifest.json").read_bytes() == (outs[1] / "manifest.json").read_bytes()
    folder = Folder(outs[0], "comparison")
    assert read_comparison(outs[0]).document == json.loads(texts[0])
    (outs[1] / "comparison.json").write_text("{", "utf-8")
    with pytest.raises(BadInput, match="compare again"):
        read_comparison(outs[1])
    assert [one.role for one in folder.manifest.inputs] == ["benchmark", "replies", "replies", "replies"]
    with pytest.raises(BadInput, match="exists already"):
        compare(world.runs, bench=world.bench, out=outs[0], draws=200, swaps=199)


@pytest.mark.parametrize("format", ["md", "csv", "latex", "json"])
def test_every_format_shows_the_numbers(world: World, format: str) -> None:
    text = render(view_comparison(world.found.document), format)
    value = world.difference(1, 3, task="DD")["difference"]
    shown = repr(value) if format in ("csv", "json") else f"{100 * value:.1f}"
    assert shown in text
    if format == "json":
        assert json.loads(text) == json.loads(json.dumps(world.found.document))


def test_the_command_prints_tables_or_one_json_object(world: World, tmp_path: Path) -> None:
    runner = CliRunner()
    call = ["compare", *map(str, world.runs), "--bench", str(world.bench), "--draws", "200", "--swaps", "199"]
    shown = runner.invoke(app, call)
    assert shown.exit_code == 0, shown.output
    for title in ("Differences by task", "Differences of totals", "McNemar", "Ranks"):
        assert title in shown.stdout
    as_json = runner.invoke(app, [*call, "--json", "--out", str(tmp_path / "out")])
    document = json.loads(as_json.stdout)
    assert document == json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert document["models"] == ["made/1", "made/2", "made/3"]
    assert "\\begin{table}" in runner.invoke(app, [*call, "--format", "latex"]).stdout
