"""Physicians as models: levels, raters, overlap, the gap on the same questions; the two-way interval by simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyses.lesions import bench, human_scores, items_of, replies, scored

from sonogauge import BadInput
from sonogauge.analyses import analyse
from sonogauge.analyses.physicians import RaterItems, read_levels, two_way
from sonogauge.folders import Folder
from sonogauge.stats.resample import Resampler

pytestmark = pytest.mark.part("physicians")

RATERS = {
    **{f"p{number}": ("primary", 0.55 + 0.02 * number) for number in range(5)},
    **{f"s{number}": ("senior", 0.75 + 0.02 * number) for number in range(5)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bench(tmp_path_factory.mktemp("physicians"))


@pytest.fixture(scope="module")
def humans(folder: Path) -> Path:
    rows = list(replies(items_of(folder, "val"), RATERS, share=0.8))
    return human_scores(folder, folder.parent / "humans", rows, "val")


@pytest.fixture(scope="module")
def models(folder: Path) -> list[Path]:
    return [scored(folder, folder.parent / f"val-{name}", name, "val") for name in ("random", "majority")]


def rows_of(found: Any, key: str) -> list[dict[str, Any]]:
    return found.table(key)["rows"]


def test_levels_and_spread(folder: Path, humans: Path, models: list[Path]) -> None:
    found = analyse(humans, "physicians", beside=models, draws=300)
    rows = {row["level"]: row for row in rows_of(found, "physicians")}
    assert set(rows) == {"primary", "senior"} and {row["split"] for row in rows.values()} == {"val"}
    raters = rows_of(found, "raters")
    for level, row in rows.items():
        own = [one for one in raters if one["level"] == level]
        weights = [one["n"] for one in own]
        assert row["score"]["value"] == pytest.approx(np.average([one["score"] for one in own], weights=weights))
        assert row["spread"] == pytest.approx(np.std([one["score"] for one in own], ddof=1))
        assert row["lowest"] == min(one["score"] for one in own) and row["highest"] == max(one["score"] for one in own)
        assert row["score"]["low"] < row["score"]["value"] < row["score"]["high"]
        assert row["raters"] == 5 and row["overlap"] == 0
        low, high = (int(one) for one in row["questions"].split("(")[1].rstrip(")").split("-"))
        assert (low, high) == (min(weights), max(weights))
    assert rows["senior"]["score"]["value"] > rows["primary"]["score"]["value"]


def test_the_gap_is_on_the_same_questions(humans: Path, models: list[Path]) -> None:
    found = analyse(humans, "physicians", beside=models, draws=300)
    for row in rows_of(found, "gaps"):
        assert row["model"] == "baseline/majority"
        level = next(one for one in rows_of(found, "physicians") if one["level"] == row["level"])
        assert row["gap"]["value"] == pytest.approx(level["score"]["value"] - row["model_score"])
        assert row["gap"]["low"] < row["gap"]["value"] < row["gap"]["high"]


def test_val_physicians_are_not_compared_with_test_models(folder: Path, humans: Path) -> None:
    test_scores = scored(folder, folder.parent / "test-majority", "majority")
    found = analyse(humans, "physicians", beside=[test_scores], draws=300)
    for row in rows_of(found, "gaps"):
        assert row["gap"]["value"] is None and "val questions of these raters" in row["gap"]["why_null"]


def test_who_annotated_is_flagged(folder: Path, models: list[Path]) -> None:
    rows = list(replies(items_of(folder, "val"), {"a1": ("senior", 0.9), "x": ("senior", 0.8)}))
    scores = human_scores(folder, folder.parent / "flagged", rows, "val")
    # Said where the replies are loaded already.
    assert any("FLAGGED: a1 annotated this benchmark" in one for one in Folder(scores).manifest.notices)
    found = analyse(scores, "physicians", beside=models, draws=300)
    (row,) = rows_of(found, "physicians")
    assert row["overlap"] == 1
    assert found.table("physicians")["notes"][0].startswith("FLAGGED")
    assert {one["rater"]: one["flag"] for one in rows_of(found, "raters")} == {"a1": "annotated it", "x": ""}


def test_one_rater_has_no_interval(folder: Path) -> None:
    scores = human_scores(
        folder, folder.parent / "one", list(replies(items_of(folder, "val"), {"z": ("senior", 0.9)})), "val"
    )
    (row,) = rows_of(analyse(scores, "physicians", draws=300), "physicians")
    assert row["score"]["low"] is None and "one rater" in row["score"]["why_null"]


def test_no_humans_and_bad_levels(folder: Path, models: list[Path], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no human answers"):
        analyse(models[0], "physicians")
    file = tmp_path / "raters.jsonl"
    lines = [{"rater_id": "a", "level": "primary"}, {"rater_id": "a", "level": "senior"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(BadInput, match=r"row 2.*'a' is primary and senior"):
        read_levels(file)
    file.write_text("[1]\n", "utf-8")
    with pytest.raises(BadInput, match="not a JSON object"):
        read_levels(file)


def _scores(rng: np.random.Generator, raters: int, groups: int) -> RaterItems:
    """Scores with an effect of the rater, of the group, and noise; the true mean is 0.5."""
    skill, ease = rng.normal(0, 0.08, raters), rng.normal(0, 0.15, groups)
    sums = 0.5 + skill[:, None] + ease[None, :] + rng.normal(0, 0.1, (raters, groups))
    names = tuple(f"g{number:03d}" for number in range(groups))
    return RaterItems(tuple(f"r{number}" for number in range(raters)), ("s",) * groups, names, sums, np.ones_like(sums))


def test_the_interval_covers_raters_and_items() -> None:
    covered, alone = 0, 0
    trials = 120
    for trial in range(trials):
        scores = _scores(np.random.default_rng(trial), 8, 30)
        resampler = Resampler({"s": list(scores.groups)}, draws=300, seed=trial)
        found, _ = two_way(scores, resampler, trial)
        covered += found.low <= 0.5 <= found.high
        # Items alone, as if the raters were all there are.
        means = scores.sums.mean(axis=0)
        half = 2.05 * means.std(ddof=1) / np.sqrt(len(means))
        alone += abs(means.mean() - 0.5) <= half
    assert covered >= 0.92 * trials
    assert alone < covered


def test_the_variance_is_that_of_the_two_way_layout() -> None:
    scores = _scores(np.random.default_rng(5), 10, 40)
    resampler = Resampler({"s": list(scores.groups)}, draws=4000, seed=1)
    found, draws = two_way(scores, resampler, 1)
    rows, columns = scores.sums.mean(axis=1), scores.sums.mean(axis=0)
    expected = rows.var(ddof=1) / 10 + columns.var(ddof=1) / 40
    assert np.nanvar(draws) == pytest.approx(expected, rel=0.2)
    assert found.value == pytest.approx(scores.sums.mean())


def test_equal_models_have_no_gap() -> None:
    scores = _scores(np.random.default_rng(2), 6, 20)
    model = scores.sums.mean(axis=0), np.ones(20)
    found, _ = two_way(scores, Resampler({"s": list(scores.groups)}, draws=200), 0, model)
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert found.low < 0 < found.high
