"""Coverage of the 95 % intervals of accuracy, macro F1, scaled RMSE and a U2 composite, by simulated studies.

usage: python perf/coverage.py [--studies 2000] [--seeds 1 2] [--figure docs/img/coverage.svg] [--table]

Three hospitals hold many patients each; a study draws some of them, its intervals either hold the value of all
patients or not. Patients are beta-binomial, with an ability that the tasks share, a log-normal number of images, errors
with a bias and a spread of their own, and class mixtures of their own: designs the methods were not tuned on.
The methods were chosen while looking at the first seed; every further one is held out: other patients, other studies.
Goals, for each seed: 93 to 97 % from 24 patients on; below 20 patients every interval is marked unreliable. The stress
case, one patient in twenty missed altogether, is shown beside them and has no goal; with it, how often an RMSE is
marked because a few patients carry most of the error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from sonogauge.benchmarks.composite import composite_draws
from sonogauge.metrics import load_metric
from sonogauge.metrics.base import Array, Metric
from sonogauge.metrics.choice import confusion_statistics
from sonogauge.metrics.numbers import scaled_error_statistics
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats.intervals import Estimate, combine, estimate
from sonogauge.stats.resample import Resampler

NOMINAL, HALF_BAND, RELIABLE_FROM, UNRELIABLE_BELOW = 0.95, 0.02, 24, 20
DRAWS, SEEDS, POPULATION, CLASSES = 1_000, 40, 40_000, 4
# Patients of each study size in the three hospitals.
SIZES = {6: (2, 2, 2), 12: (6, 4, 2), 24: (12, 7, 5), 55: (27, 17, 11), 200: (100, 60, 40)}
HOSPITALS = ("a", "b", "c")
# Of each hospital: median number of images a patient, share of right answers, mean error.
IMAGES, RIGHT, BIAS = (3, 7, 2), (0.75, 0.60, 0.45), (0.03, -0.04, 0.0)
CLASS_SHARES = np.array([0.35, 0.30, 0.20, 0.15])
# Where a wrong answer to each class goes.
WRONG = np.array([[0.0, 0.5, 0.3, 0.2], [0.6, 0.0, 0.2, 0.2], [0.2, 0.6, 0.0, 0.2], [0.3, 0.4, 0.3, 0.0]])
# Parts of the composite: metric, statistic, hospitals (each a data set of its own), weight.
PARTS = (
    ("accuracy", "hits", (0, 1), 0.35),
    ("accuracy", "other_hits", (1, 2), 0.25),
    ("rmse_scaled", "errors", (0, 2), 0.25),
    ("bleu4", "texts", (1,), 0.15),
)
STRESS = "rmse_scaled, stress"
SHOWN = {
    "accuracy": ("accuracy", "hits"),
    "macro_f1": ("macro_f1", "confusion"),
    "rmse_scaled": ("rmse_scaled", "errors"),
    STRESS: ("rmse_scaled", "gross_errors"),
}
WITH_GOAL = ("accuracy", "macro_f1", "rmse_scaled", "u2")
Population = tuple[dict[str, Array], ...]


@dataclass(frozen=True)
class Tally:
    """Of the studies of one size and metric: how many hold the truth, are marked reliable, lack an interval.

    doubted: a few patients carry most of the error; doubted_held: of these, how many hold the truth.
    """

    studies: int = 0
    held: int = 0
    reliable: int = 0
    without: int = 0
    doubted: int = 0
    doubted_held: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.studies + other.studies,
            self.held + other.held,
            self.reliable + other.reliable,
            self.without + other.without,
            self.doubted + other.doubted,
            self.doubted_held + other.doubted_held,
        )

    @property
    def coverage(self) -> float:
        """Share of the intervals that hold the truth."""
        return self.held / max(1, self.studies - self.without)


def make_hospital(number: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the sums of each statistic of all patients of a hospital, (patients, *statistic shape)."""
    ability = rng.standard_normal(POPULATION)

    def share(mean: float, correlation: float) -> Array:
        """Return a beta-distributed share of right answers for each patient, tied to the patient's ability."""
        from scipy.special import betaincinv, ndtr

        strength = 1.0 / correlation - 1.0
        grid = np.linspace(0.0005, 0.9995, 1_000)
        place = ndtr(0.6 * ability + 0.8 * rng.standard_normal(POPULATION))
        quantiles = betaincinv(mean * strength, (1.0 - mean) * strength, grid)
        return np.asarray(np.interp(place, grid, quantiles))

    def images() -> np.ndarray:
        drawn = np.exp(rng.normal(np.log(IMAGES[number]), 0.8, POPULATION))
        return np.clip(np.rint(drawn), 1, 80).astype(np.int64)

    def by_patient(owners: np.ndarray, statistics: Array) -> Array:
        starts = np.flatnonzero(np.r_[True, np.diff(owners) > 0])
        return np.asarray(np.add.reduceat(statistics, starts, axis=0))

    found: dict[str, Array] = {}
    for name, shift in (("hits", 0.0), ("other_hits", 0.1)):
        count = images()
        hits = rng.binomial(count, share(RIGHT[number] + shift, 0.3))
        found[name] = np.stack([hits, count], axis=-1).astype(np.float64)

    count = images()
    owners = np.repeat(np.arange(POPULATION), count)
    mixture = np.cumsum(rng.dirichlet(3.0 * CLASS_SHARES, POPULATION), axis=-1)
    reference = (rng.random(len(owners))[:, None] > mixture[owners, :-1]).sum(axis=-1)
    right = rng.random(len(owners)) < share(RIGHT[number], 0.25)[owners] * (1.0 - 0.1 * (reference == 3))
    elsewhere = (rng.random(len(owners))[:, None] > np.cumsum(WRONG, axis=-1)[reference, :-1]).sum(axis=-1)
    given = np.where(right, reference, np.where(rng.random(len(owners)) < 0.05, -1, elsewhere))
    found["confusion"] = by_patient(owners, confusion_statistics(reference, given, range(CLASSES)))

    count = images()
    owners = np.repeat(np.arange(POPULATION), count)
    bias = BIAS[number] + rng.normal(0.0, 0.08, POPULATION)
    spread = 0.12 * np.exp(rng.normal(0.0, 0.25, POPULATION))
    errors = bias[owners] + spread[owners] * rng.standard_normal(len(owners))
    missed = rng.random(POPULATION) < 0.05
    gross = np.where(missed[owners], rng.uniform(0.6, 1.0, len(owners)), errors)
    found["errors"] = by_patient(owners, scaled_error_statistics(errors.clip(-1.0, 1.0), 0.1))
    found["gross_errors"] = by_patient(owners, scaled_error_statistics(gross.clip(-1.0, 1.0), 0.1))

    count = images()
    owners = np.repeat(np.arange(POPULATION), count)
    lengths = rng.integers(20, 60, len(owners))[:, None] - np.arange(4)
    quality = share(0.55, 0.1)[owners][:, None] ** np.array([1.0, 1.5, 2.0, 2.5])
    ends = np.stack([lengths[:, 0], rng.integers(20, 60, len(owners))], axis=-1)
    texts = np.concatenate([rng.binomial(lengths, quality), lengths, ends], axis=-1)
    found["texts"] = by_patient(owners, texts.astype(np.float64))
    return found


@cache
def population(seed: int) -> Population:
    return tuple(make_hospital(number, np.random.default_rng([seed, number])) for number in range(len(HOSPITALS)))


def names(size: int) -> dict[str, tuple[str, ...]]:
    return {
        hospital: tuple(f"p{number:03d}" for number in range(patients))
        for hospital, patients in zip(HOSPITALS, SIZES[size], strict=True)
    }


@cache
def resampler(size: int, seed: int) -> Resampler:
    return Resampler(names(size), DRAWS, seed)


@cache
def metric(name: str) -> Metric:
    return load_metric(name)


def truths(size: int, seed: int) -> dict[str, float]:
    """Return the value of every metric over all patients, each hospital with its share of a study."""
    hospitals = population(seed)
    shares = SIZES[size]
    found = {}
    for shown, (name, statistic) in SHOWN.items():
        sums = sum(
            patients * hospital[statistic].mean(axis=0) for patients, hospital in zip(shares, hospitals, strict=True)
        )
        found[shown] = float(metric(name).function(np.asarray(sums)))
    tasks = []
    for name, statistic, places, _ in PARTS:
        values = [float(metric(name).function(hospitals[place][statistic].mean(axis=0))) for place in places]
        tasks.append(float(np.mean(values)))
    found["u2"] = float(total(np.array(tasks)))
    return found


def total(tasks: Array) -> Array:
    """Return the composite of task values (..., tasks)."""
    signs = [1.0 - tasks[..., at] if part[0] == "rmse_scaled" else tasks[..., at] for at, part in enumerate(PARTS)]
    return np.asarray(composite_draws(np.stack(signs, axis=-1), np.array([part[-1] for part in PARTS])))


def study(size: int, number: int, seed: int) -> dict[str, Estimate]:
    """Draw the patients of one study and estimate every metric."""
    rng = np.random.default_rng([seed, size, number])
    rows = [rng.integers(POPULATION, size=patients) for patients in SIZES[size]]
    hospitals, ids, draws = population(seed), names(size), resampler(size, number % SEEDS)

    def sums(statistic: str, places: Sequence[int]) -> GroupSums:
        strata = tuple(HOSPITALS[place] for place in places for _ in rows[place])
        groups = tuple(one for place in places for one in ids[HOSPITALS[place]])
        return GroupSums(strata, groups, np.concatenate([hospitals[place][statistic][rows[place]] for place in places]))

    found = {
        shown: estimate(metric(name), sums(statistic, range(3)), draws) for shown, (name, statistic) in SHOWN.items()
    }
    tasks = []
    for name, statistic, places, _ in PARTS:
        cells = [estimate(metric(name), sums(statistic, [place]), draws) for place in places]
        groups = sum(len(rows[place]) for place in places)
        tasks.append(combine(cells, lambda values: np.asarray(values.mean(axis=-1)), groups=groups, proportion=True))
    found["u2"] = combine(tasks, total, groups=sum(SIZES[size]), proportion=True)
    return found


def tally(size: int, start: int, stop: int, seed: int) -> dict[str, Tally]:
    """Run studies and count."""
    truth = truths(size, seed)
    found = dict.fromkeys(truth, Tally())
    for number in range(start, stop):
        for name, one in study(size, number, seed).items():
            held = one.low is not None and one.high is not None and one.low <= truth[name] <= one.high
            doubted = bool(one.doubt)
            counts = Tally(1, int(held), int(one.reliable), int(one.low is None), int(doubted), int(doubted and held))
            found[name] += counts
    return found


def simulate(studies: int, seed: int, processes: int) -> dict[int, dict[str, Tally]]:
    """Run all studies of all sizes; the counts do not depend on the number of processes."""
    jobs = [
        (size, start, min(start + 100, studies), seed)
        for size in sorted(SIZES, reverse=True)
        for start in range(0, studies, 100)
    ]
    found: dict[int, dict[str, Tally]] = {size: {} for size in SIZES}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for (size, *_), part in zip(jobs, pool.map(tally, *zip(*jobs, strict=True)), strict=True):
            for name, counts in part.items():
                found[size][name] = found[size].get(name, Tally()) + counts
    return found


def draw(found: dict[int, dict[str, Tally]], studies: int, path: Path) -> None:
    """Write the figure; the same counts give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    settings = {"svg.hashsalt": "coverage", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
        axes.axhspan(93, 97, color="#d9ead3", label="goal from 24 patients on")
        axes.axhline(95, color="#777777", linewidth=0.8)
        axes.axvspan(4.5, UNRELIABLE_BELOW, color="#eeeeee", label="marked unreliable")
        shapes = {"accuracy": "o-", "macro_f1": "s-", "rmse_scaled": "^-", "u2": "D-", STRESS: "x:"}
        for name, shape in shapes.items():
            line = [100 * found[size][name].coverage for size in SIZES]
            axes.plot(list(SIZES), line, shape, label=name, markersize=5)
        axes.set_xscale("log")
        axes.set_xticks(list(SIZES), [str(size) for size in SIZES])
        axes.minorticks_off()
        axes.set(xlim=(5, 240), ylim=(65, 100), xlabel="patients of a study", ylabel="intervals that hold the truth, %")
        axes.set_title(f"Coverage of 95 % intervals, {studies:,} simulated studies each", fontsize=10)
        axes.legend(loc="lower right", fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


def show_table(found: dict[int, dict[str, Tally]]) -> None:
    """Print the counts as the table of docs/statistics.md."""
    print("| patients | " + " | ".join(next(iter(found.values()))) + " |")
    print("|---|" + "---|" * len(next(iter(found.values()))))
    for size in SIZES:
        print(f"| {size} | " + " | ".join(f"{100 * one.coverage:.1f}" for one in found[size].values()) + " |")


def tell(found: dict[int, dict[str, Tally]], studies: int, which: str) -> float:
    """Print the coverage of one seed; return the worst achieved/goal."""
    worst = np.inf
    for name in (*WITH_GOAL, STRESS):
        shown = ", ".join(f"{size}: {found[size][name].coverage:.1%}" for size in SIZES)
        missing = sum(found[size][name].without for size in SIZES)
        goal = f"goal {NOMINAL - HALF_BAND:.0%}-{NOMINAL + HALF_BAND:.0%} from {RELIABLE_FROM} patients on"
        if name not in WITH_GOAL:
            goal = "no goal, shown as a limit of the method"
        else:
            # Rounded: 97 % exactly is within the goal.
            gaps = [round(abs(found[size][name].coverage - NOMINAL), 9) for size in SIZES if size >= RELIABLE_FROM]
            # Whole studies are counted: a gap is known to one of them at best.
            worst = min(worst, HALF_BAND / max(*gaps, 1.0 / studies))
        print(f"coverage of {name}, {which}: {shown} ({goal}; {missing} studies without an interval)")
    few = [one for size in SIZES if size < UNRELIABLE_BELOW for one in found[size].values()]
    marked = 1.0 - sum(one.reliable for one in few) / sum(one.studies for one in few)
    print(f"intervals of fewer than {UNRELIABLE_BELOW} patients marked unreliable, {which}: {marked:.1%} (goal 100%)")
    for name in ("rmse_scaled", STRESS):
        shown = ", ".join(f"{size}: {_doubts(found[size][name])}" for size in SIZES)
        print(f"{name} said to lie in a few patients, {which}: {shown} (no goal; in brackets coverage with/without)")
    return min(worst, marked)


def _doubts(tally: Tally) -> str:
    with_, without = tally.doubted, tally.studies - tally.doubted
    shares = (tally.doubted_held / with_ if with_ else np.nan, (tally.held - tally.doubted_held) / max(1, without))
    told = "/".join("-" if np.isnan(share) else f"{share:.0%}" for share in shares)
    return f"{with_ / tally.studies:.1%} ({told})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2_000, help="simulated studies of each size")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="the first, then those held out")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--figure", type=Path, help="write the figure of the first seed here (SVG)")
    parser.add_argument("--table", action="store_true", help="also print the counts as a Markdown table")
    arguments = parser.parse_args()
    worst = np.inf
    for place, seed in enumerate(arguments.seeds):
        found = simulate(arguments.studies, seed, arguments.processes)
        worst = min(worst, tell(found, arguments.studies, f"seed {seed}" + (", held out" if place else "")))
        if arguments.table:
            show_table(found)
        if arguments.figure is not None and not place:
            draw(found, arguments.studies, arguments.figure)
    print(f"ratio coverage: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
