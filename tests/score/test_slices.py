"""Slices by any column of items and cases, and the gap between subgroups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.score.small import u2_item, value_of, write_bench, write_replies

from sonogauge._errors import BadInput
from sonogauge.items import Item
from sonogauge.score import score
from sonogauge.score.slices import gap, part_name
from sonogauge.score.values import Value
from sonogauge.stats.intervals import Estimate

pytestmark = pytest.mark.part("slices")
DRAWS = 300


def bench_items() -> tuple[list[Item], dict[str, str | None]]:
    items, texts = [], {}
    for number in range(1, 61):
        sex = "f" if number <= 36 else "m"
        item = u2_item("DD", "21", number, {"choices": ("benign",)}, patient=(number + 1) // 2, meta={"sex": sex})
        items.append(replace(item, anatomy="breast" if number % 3 else "axilla"))
        # 27 of 36 women right, 6 of 24 men.
        right = number % 4 != 0 if sex == "f" else number % 4 == 0
        texts[item.item_id] = "benign" if right else "malignant"
    return items, texts


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    root = tmp_path_factory.mktemp("slices")
    items, texts = bench_items()
    bench = write_bench(root / "bench", items)
    file = write_replies(root / "r.jsonl", texts)
    scores = score(file, bench=bench, scenarios="present", draws=DRAWS, by=["sex", "anatomy"], out=root / "scores")
    return scores.metrics


def test_each_part_has_its_value_n_and_interval(rows: list[dict[str, Any]]) -> None:
    for name, hits, n in (("sex=f", 27, 36), ("sex=m", 6, 24)):
        row = value_of(rows, "accuracy", "DD", slice=name)
        assert (row["value"], row["n"]) == (pytest.approx(hits / n), n)
        assert row["low"] < row["value"] < row["high"]
        assert row["groups"] == n // 2
    assert value_of(rows, "accuracy", "DD", slice="sex=m")["reliable"] is False
    whole = value_of(rows, "accuracy", "DD")
    assert whole["value"] == pytest.approx(33 / 60)
    assert sum(value_of(rows, "accuracy", "DD", slice=f"anatomy={one}")["n"] for one in ("breast", "axilla")) == 60


def test_gap_is_largest_minus_smallest_with_the_smallest_n(rows: list[dict[str, Any]]) -> None:
    row = value_of(rows, "accuracy_gap", "DD", slice="sex=*")
    assert row["value"] == pytest.approx(27 / 36 - 6 / 24)
    assert (row["n"], row["direction"]) == (24, "down")
    assert 0 < row["low"] < row["value"] < row["high"]
    assert "min_n:20,parts:2 of 2" in row["signature"]


def test_part_without_enough_items_stays_out_of_the_gap_and_says_so(tmp_path: Path) -> None:
    items, texts = bench_items()
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", texts)
    scores = score(file, bench=bench, scenarios="present", draws=DRAWS, by=["sex"], min_n=30, baselines=False)
    row = value_of(scores.metrics, "accuracy_gap", "DD", slice="sex=*")
    assert row["value"] is None
    assert row["why_null"] == "fewer than two parts with a value and at least 30 items"


def test_columns_of_the_case_and_missing_values(tmp_path: Path) -> None:
    items, texts = bench_items()
    items[0] = replace(items[0], meta={})
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "r.jsonl", texts)
    scores = score(file, bench=bench, scenarios="present", draws=DRAWS, by=["sex"], baselines=False)
    assert value_of(scores.metrics, "accuracy", "DD", slice="sex=(missing)")["n"] == 1
    with pytest.raises(BadInput, match=r"field 'by': no item has a value of 'device'; known: .*anatomy.*sex"):
        score(file, bench=bench, scenarios="present", draws=DRAWS, by=["device"])


def estimate(value: float, draws: list[float]) -> Estimate:
    return Estimate(value, None, None, 30, 29.0, True, None, np.array(draws))


def test_gap_under_shared_draws_is_computed_draw_by_draw() -> None:
    # The parts move together, so the gap does not vary with them.
    rng = np.random.default_rng(0)
    common = rng.normal(0, 0.1, size=500)
    members = frozenset(("s", f"p{number}") for number in range(30))
    parts = {
        name: Value("accuracy", estimate(at, list(at + common)), 30, 30, 0, members=members)
        for name, at in (("a=1", 0.5), ("a=2", 0.7), ("a=3", 0.6))
    }
    found = gap(parts, "accuracy")
    assert found.estimate.value == pytest.approx(0.2)
    assert found.estimate.why_null == "no variation between groups"


def test_names_of_parts() -> None:
    assert part_name("age", "") == "age=(missing)"
    assert part_name("age", 3) == "age=3"
