"""Without the image: published losses and shares, guessing, questions that give themselves away."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from tests.analyses.lesions import bench, items_of

from sonogauge import BadInput, score
from sonogauge.analyses import analyse
from sonogauge.analyses.text_only import (
    LEAST,
    blind_runs,
    is_blind,
    loss,
    raw_ratio,
    share_kept,
    solved,
    tail,
    text_solvable,
)
from sonogauge.models.baselines import baseline_replies

pytestmark = pytest.mark.part("text-only ablation")


@pytest.mark.parametrize(
    ("seen", "unseen", "expected", "ratio"),
    [(0.4904, 0.3478, 0.143, 0.709), (0.4790, 0.3636, 0.115, 0.759), (0.4938, 0.3089, 0.185, 0.626)],
)
def test_published_averages(seen: float, unseen: float, expected: float, ratio: float) -> None:
    assert round(loss(seen, unseen), 3) == expected
    assert round(raw_ratio(seen, unseen), 3) == ratio


@pytest.mark.parametrize(
    ("seen", "unseen", "change"), [(0.8246, 0.8124, -0.012), (0.7963, 0.8014, 0.005), (0.8216, 0.8140, -0.008)]
)
def test_published_advice_hardly_needs_the_image(seen: float, unseen: float, change: float) -> None:
    assert round(-loss(seen, unseen), 3) == change


def test_share_kept_corrects_for_chance() -> None:
    assert share_kept(0.75, 0.25, 0.25) == 0.0
    assert share_kept(0.75, 0.75, 0.25) == 1.0
    assert share_kept(0.25, 0.5, 0.25) is None
    assert raw_ratio(0.0, 0.1) is None


def test_guessing_flags_what_the_specification_says() -> None:
    assert round(tail(LEAST, 3, 0.25), 2) == 0.16
    assert tail(LEAST, 3, 0.5) == 0.5


@given(st.integers(1, 8), st.floats(0.01, 0.99), st.data())
def test_tail_equals_scipy(runs: int, chance: float, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, runs))
    assert tail(hits, runs, chance) == pytest.approx(float(binom.sf(hits - 1, runs, chance)), abs=1e-9)


def test_solved_needs_more_than_luck() -> None:
    assert not solved([1.0], 0.25) and not solved([1.0, 1.0], 0.25) and solved([1.0] * 3, 0.25)
    assert not solved([1.0] * 4, 0.5) and solved([1.0] * 5, 0.5)
    assert solved([1.0, 1.0, 1.0, 1.0, 0.0], 0.25) and not solved([1.0, 1.0, 1.0, 0.0], 0.25)
    assert not solved([0.0, 0.0], 0.0) and solved([1.0], 0.0)
    # A part of a set is not a solved question.
    assert not solved([0.5] * 10, 0.1)


def test_the_scored_model_does_not_choose_its_own_questions() -> None:
    hit, miss = [1.0] * 4, [0.0] * 4
    runs = {"a": {"q": hit, "r": hit}, "b": {"q": hit, "r": miss}, "c": {"q": miss, "r": hit}}
    chances = {"q": 0.25, "r": 0.25}
    assert text_solvable(runs, chances) == {"q", "r"}
    assert text_solvable(runs, chances, leave_out="a") == frozenset()
    assert text_solvable(runs, chances, leave_out="b") == {"r"}
    assert text_solvable(runs, chances, leave_out="a", least=1) == {"q", "r"}
    with pytest.raises(BadInput, match="2 other models"):
        text_solvable(runs, chances, least=3, leave_out="a")


def test_variants_without_image() -> None:
    assert is_blind("blank_image") and not is_blind("circular=2")
    item = SimpleNamespace(item_id="q")
    given_ = [
        SimpleNamespace(item=item, variant=variant, rater_id="", score=value, reason=None)
        for variant, value in (("no_image", 1.0), ("", 0.0), ("circular=1+no_image", 0.5))
    ]
    assert blind_runs(given_) == {"q": [1.0, 0.5]}


def test_tables_from_scores(tmp_path: Path) -> None:
    import json

    folder = bench(tmp_path)
    items = items_of(folder, "test")
    right, constant = baseline_replies("oracle", items, []), baseline_replies("constant", items, [])
    paths = []
    for name, keep in (("a", 2), ("b", 2), ("c", 3), ("d", 2)):
        rows = []
        for place, item in enumerate(items):
            rows.append({"item_id": item.item_id, "text": right[place], "model": name})
            for epoch in range(5):
                said = right[place] if place % keep == 0 else constant[place]
                rows.append(
                    {"item_id": item.item_id, "text": said, "variant": "no_image", "epoch": epoch, "model": name}
                )
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        score(file, bench=folder, out=tmp_path / f"scores-{name}", draws=200, baselines=False)
        paths.append(tmp_path / f"scores-{name}")
    found = analyse(paths[0], "text_only", beside=paths[1:], draws=200)
    rows = {(row["model"], row["ability"]): row for row in found.table("text_only_test")["rows"]}
    whole = rows["a", "all"]
    assert whole["with"]["value"] == 1.0 and 0.4 < whole["without"]["value"] < 0.9
    assert whole["loss"]["value"] == pytest.approx(1.0 - whole["without"]["value"])
    expected = share_kept(whole["with"]["value"], whole["without"]["value"], whole["chance"])
    assert whole["kept"]["value"] == pytest.approx(expected)
    assert whole["ratio"] == pytest.approx(whole["without"]["value"])
    solvable = {row["model"]: row for row in found.table("text_solvable")["rows"]}
    # Every second question is told by two others at least, whichever model is scored.
    assert all(row["flagged"] >= len(items) // 2 for row in solvable.values())
    assert solvable["a"]["flagged"] + solvable["a"]["kept_n"] == solvable["a"]["n"] == len(items)
    with pytest.raises(BadInput, match="no answers without the image"):
        from tests.analyses.lesions import scored

        analyse(scored(folder, tmp_path / "plain", "random"), "text_only")
