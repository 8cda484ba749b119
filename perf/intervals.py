"""Clustered intervals of U2-Score: 10,000 resamples of 7,241 items, against scipy.stats.bootstrap and a naive loop.

usage: python perf/intervals.py [--draws 10000]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from sonogauge.metrics import load_metric
from sonogauge.metrics.base import Array
from sonogauge.metrics.choice import hit_statistics
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.sums import GroupSums
from sonogauge.metrics.text import bleu4
from sonogauge.stats.resample import Resampler

SECONDS_GOAL, ITEMS_GOAL, GROUPS_GOAL, TOLERANCE = 1.0, 100.0, 10.0, 1e-12
# Items of each task over the numbers of its data sets (of 40 sources): 7,241 in all.
TASKS = {
    "DD": (1411, 14, 0.20),
    "VRA": (1588, 11, 0.20),
    "LL": (503, 5, 0.07),
    "OD": (1918, 16, 0.27),
    "KD": (500, 2, 0.07),
    "CVE": (521, 5, 0.07),
    "RG": (600, 2, 0.08),
    "CG": (200, 1, 0.04),
}
SOURCES, PATIENTS = 40, 100
FUNCTIONS = {
    "CVE": load_metric("rmse_scaled").function,
    "RG": bleu4,
    "CG": bleu4,
}
ACCURACY = load_metric("accuracy").function


class Cell:
    """Items of one task in one source: statistics (n, k) and the patient number of each."""

    def __init__(self, task: str, source: int, items: int, rng: np.random.Generator) -> None:
        self.task, self.source = task, source
        self.patients = rng.integers(PATIENTS, size=items)
        if task == "CVE":
            self.statistics = scaled_error_statistics(rng.normal(0.0, 0.3, size=items).clip(-1, 1), 0.1)
        elif task in ("RG", "CG"):
            length = rng.integers(20, 60, size=items)[:, None] - np.arange(4)
            matches = rng.binomial(length, 0.4)
            ends = np.stack([length[:, 0], rng.integers(20, 60, size=items)], axis=-1)
            self.statistics = np.concatenate([matches, length, ends], axis=-1).astype(np.float64)
        else:
            self.statistics = hit_statistics(rng.random(items) < 0.5)
        self.sums = GroupSums.from_items(
            [name(source)] * items, [patient(number) for number in self.patients], self.statistics
        )


def name(source: int) -> str:
    return f"{source:02d}"


def patient(number: int) -> str:
    return f"patient-{number:04d}"


def make_cells(seed: int = 0) -> list[Cell]:
    rng = np.random.default_rng(seed)
    cells = []
    for task, (items, datasets, _) in TASKS.items():
        chosen = rng.choice(SOURCES, size=datasets, replace=False)
        shares = np.full(datasets, items // datasets)
        shares[: items % datasets] += 1
        cells += [Cell(task, int(source), int(share), rng) for source, share in zip(chosen, shares, strict=True)]
    return cells


def u2(totals: list[tuple[str, Array]]) -> Array:
    """U2-Score of the totals of all cells: macro over data sets, 1 - RMSE, clipped, weighted."""
    score: Array = np.zeros(())
    for task, (_, _, weight) in TASKS.items():
        function = FUNCTIONS.get(task, ACCURACY)
        value = np.mean([function(total) for code, total in totals if code == task], axis=0)
        score = score + weight * np.clip(1 - value if task == "CVE" else value, 0.0, 1.0)
    return score


def ours(cells: list[Cell], draws: int) -> tuple[Array, Resampler]:
    groups = {name(source): [patient(number) for number in range(PATIENTS)] for source in range(SOURCES)}
    resampler = Resampler(groups, draws=draws)
    return u2([(cell.task, resampler.totals(cell.sums)) for cell in cells]), resampler


def naive(cells: list[Cell], resampler: Resampler, draws: int) -> list[float]:
    """Recompute from the items, one draw at a time, under the resampler's weights."""
    weights = {cell.source: resampler.weights(name(cell.source)) for cell in cells}
    scores = []
    for draw in range(draws):
        totals = []
        for cell in cells:
            total = np.zeros(cell.statistics.shape[1])
            for row, number in zip(cell.statistics, cell.patients, strict=True):
                total = total + weights[cell.source][draw, number] * row
            totals.append((cell.task, total))
        scores.append(float(u2(totals)))
    return scores


def scipy_seconds(cells: list[Cell], resamples: int, from_items: bool) -> float:
    """Return the seconds of scipy.stats.bootstrap over patients, recomputing from items or from patient sums."""
    from scipy import stats

    units = SOURCES * PATIENTS
    if from_items:
        rows_of: list[list[list[int]]] = []
        for cell in cells:
            rows: list[list[int]] = [[] for _ in range(units)]
            for row, number in enumerate(cell.patients):
                rows[cell.source * PATIENTS + int(number)].append(row)
            rows_of.append(rows)

        def statistic(drawn: Array) -> float:
            totals = []
            for cell, rows in zip(cells, rows_of, strict=True):
                picked = [row for unit in drawn for row in rows[int(unit)]]
                totals.append((cell.task, cell.statistics[picked].sum(axis=0)))
            return float(u2(totals))
    else:
        tables = []
        for cell in cells:
            table = np.zeros((units, cell.statistics.shape[1]))
            np.add.at(table, cell.source * PATIENTS + cell.patients, cell.statistics)
            tables.append(table)
        joined = np.concatenate(tables, axis=1)
        edges = np.cumsum([table.shape[1] for table in tables])[:-1]

        def statistic(drawn: Array) -> float:
            total = joined[drawn.astype(np.int64)].sum(axis=0)
            parts = np.split(total, edges)
            return float(u2([(cell.task, part) for cell, part in zip(cells, parts, strict=True)]))

    start = time.perf_counter()
    stats.bootstrap((np.arange(units),), statistic, n_resamples=resamples, vectorized=False, method="percentile", rng=1)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    draws = parser.parse_args().draws
    cells = make_cells()
    items, patients = sum(len(cell.patients) for cell in cells), SOURCES * PATIENTS

    seconds = np.inf
    for _ in range(3):
        start = time.perf_counter()
        scores, resampler = ours(cells, draws)
        seconds = min(seconds, time.perf_counter() - start)
    print(f"U2-Score, {items} items, {patients} patients, {draws} resamples: {seconds:.2f} s (goal {SECONDS_GOAL:g} s)")

    few, some = max(1, draws // 500), max(1, draws // 50)
    slow = scipy_seconds(cells, few, from_items=True) * draws / few
    print(
        f"scipy.stats.bootstrap from items: {slow:.0f} s (extrapolated from {few} resamples): "
        f"{slow / seconds:.0f}x (goal {ITEMS_GOAL:g}x)"
    )
    summed = scipy_seconds(cells, some, from_items=False) * draws / some
    print(
        f"scipy.stats.bootstrap on patient sums: {summed:.1f} s (extrapolated from {some} resamples): "
        f"{summed / seconds:.1f}x (goal {GROUPS_GOAL:g}x)"
    )
    checked = min(draws, 20)
    gap = float(np.abs(scores[:checked] - naive(cells, resampler, checked)).max())
    print(f"naive loop under the same weights, {checked} draws: largest difference {gap:.1e} (goal {TOLERANCE:g})")
    worst = min(
        SECONDS_GOAL / seconds,
        slow / seconds / ITEMS_GOAL,
        summed / seconds / GROUPS_GOAL,
        TOLERANCE / max(gap, 1e-300),
    )
    print(f"ratio intervals: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
