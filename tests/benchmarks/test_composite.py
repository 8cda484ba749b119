"""Totals over tasks and the U2-Score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge._errors import BadInput
from sonogauge.benchmarks.composite import composite, composite_draws, part
from sonogauge.benchmarks.spec import load_spec
from sonogauge.benchmarks.u2bench import U2_TASKS, u2_score

# Headline values of three rows of the public table; CVE as scaled RMSE, text as BLEU-4 in percent ('-' = 0).
ROWS = {
    "GPT-4o": (0.4928, 0.1504, 0.1161, 0.0850, 0.0840, 0.3712, 2.68, 33.77),
    "Qwen-2.5-VL-7B-Instruct": (0.4821, 0.2181, 0.0750, 0.0704, 0.1000, 0.4646, 3.71, 29.44),
    "Random Guessing": (0.4143, 0.3195, 0.1118, 0.0680, 0.1120, 0.5472, 0.0, 0.0),
}


def parts(row: str) -> dict[str, float | None]:
    d: dict[str, float | None] = dict(zip(U2_TASKS, ROWS[row], strict=True))
    return d | {"CVE": 1 - ROWS[row][5], "RG": ROWS[row][6] / 100, "CG": ROWS[row][7] / 100}


@pytest.mark.part("benchmark registry")
@pytest.mark.parametrize(
    ("row", "published", "unrounded", "n_t"),
    [
        ("GPT-4o", 0.2253, 0.225265, 0.2222),
        ("Qwen-2.5-VL-7B-Instruct", 0.2235, 0.223520, 0.2223),
        ("Random Guessing", 0.2125, 0.212482, 0.2169),
    ],
)
def test_acceptance_rows(row: str, published: float, unrounded: float, n_t: float) -> None:
    fixed, by_rows = u2_score(parts(row), "published"), u2_score(parts(row), "n_t")
    assert fixed is not None
    assert by_rows is not None
    assert round(fixed, 4) == published
    assert fixed == pytest.approx(unrounded, abs=5e-7)
    assert round(by_rows, 4) == n_t
    assert fixed != round(fixed, 4)


def test_the_weighting_alone_changes_the_order() -> None:
    gpt, qwen = parts("GPT-4o"), parts("Qwen-2.5-VL-7B-Instruct")
    assert (u2_score(gpt, "published") or 0) > (u2_score(qwen, "published") or 0)
    assert (u2_score(gpt, "n_t") or 0) < (u2_score(qwen, "n_t") or 0)


def test_missing_task_gives_no_score_and_values_are_cut() -> None:
    full: dict[str, float | None] = dict.fromkeys(U2_TASKS, 1.0)
    assert u2_score(full) == pytest.approx(1.0, abs=1e-12)
    assert u2_score(full | {"CVE": None}) is None
    assert u2_score({task: 1.0 for task in U2_TASKS if task != "CG"}) is None
    assert u2_score(full | {"CG": float("nan")}) is None
    assert u2_score(full | {"CVE": -0.4}) == pytest.approx(0.93, abs=1e-12)
    assert u2_score(full | {"DD": 33.77}) == pytest.approx(1.0, abs=1e-12)


def test_own_weights() -> None:
    weights = dict.fromkeys(U2_TASKS, 0.0) | {"LL": 1.0}
    assert u2_score(parts("GPT-4o"), weights) == 0.1161
    with pytest.raises(BadInput, match="eight tasks"):
        u2_score(parts("GPT-4o"), {"LL": 1.0})
    with pytest.raises(BadInput, match="known: published, n_t"):
        u2_score(parts("GPT-4o"), "fair")
    with pytest.raises(BadInput, match="no weight for task XX"):
        u2_score(parts("GPT-4o") | {"XX": 1.0})


def test_skill_is_not_cut() -> None:
    assert composite({"A": -1.0, "B": 0.5}, {"A": 0.5, "B": 0.5}, clip=False) == -0.25
    assert composite({"A": -1.0, "B": 0.5}, {"A": 0.5, "B": 0.5}) == 0.25


def test_part_turns_only_scaled_errors_round() -> None:
    assert part("mae_scaled", [0.1, 1.2]) == pytest.approx([0.9, -0.2])
    assert part("bleu4", 0.3) == 0.3


@given(st.lists(st.lists(st.floats(-2, 2), min_size=8, max_size=8), min_size=1, max_size=6), st.booleans())
def test_draws_equal_single_totals(draws: list[list[float]], clip: bool) -> None:
    weights = load_spec("u2bench").weights["n_t"]
    ordered = np.array([weights[task] for task in U2_TASKS])
    got = composite_draws(np.array(draws).reshape(len(draws), 1, 8), ordered, clip=clip)
    assert got.shape == (len(draws), 1)
    for draw, total in zip(draws, got[:, 0], strict=True):
        loop = sum(w * (min(max(d, 0.0), 1.0) if clip else d) for w, d in zip(ordered, draw, strict=True))
        assert total == pytest.approx(loop, abs=1e-12)
        assert composite(dict(zip(U2_TASKS, draw, strict=True)), weights, clip=clip) == pytest.approx(total, abs=1e-12)


def test_a_draw_with_a_missing_part_has_no_total() -> None:
    totals = composite_draws([[0.2, 0.4], [np.nan, 0.4]], [0.5, 0.5])
    assert totals[0] == pytest.approx(0.3)
    assert np.isnan(totals[1])
