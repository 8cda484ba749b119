"""Size of the patient swap test, and of plain McNemar beside it, on models that do not differ.

usage: python perf/size.py [--studies 4000] [--swaps 999]

Two models are equally good over all patients of three hospitals, but each has patients of its own that suit it, and all
images of a patient share that luck. A test at 5 % should call a difference in 5 % of the studies.
Goals: 4 to 6 % for the swap test; the same studies make plain McNemar, which takes images for independent, reject in
18 % and more.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from sonogauge.metrics import load_metric
from sonogauge.metrics.base import Array
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats.paired import PairedSums, mcnemar, swap_test

LEVEL, HALF_BAND, MCNEMAR_GOAL = 0.05, 0.01, 0.18
# Patients of each study size in the three hospitals.
SIZES = {24: (12, 7, 5), 55: (27, 17, 11), 200: (100, 60, 40)}
HOSPITALS = ("a", "b", "c")
# Of each hospital: median number of images a patient and share of right answers.
IMAGES, RIGHT = (5, 9, 3), (0.75, 0.60, 0.45)
# How alike the answers of one model to the images of one patient are, beyond what the patient does to both models.
OWN_LUCK, SHARED = 0.25, 0.10


def draw_patients(size: int, rng: np.random.Generator) -> tuple[Array, Array, int, int]:
    """Return hits and images of both models per patient, (patients, 2) each, and the discordant images b and c."""
    ours, theirs, first_only, second_only = [], [], 0, 0
    for patients, median, right in zip(SIZES[size], IMAGES, RIGHT, strict=True):
        strength, own = 1.0 / SHARED - 1.0, 1.0 / OWN_LUCK - 1.0
        mean = rng.beta(right * strength, (1.0 - right) * strength, patients).clip(0.01, 0.99)
        shares = rng.beta(mean * own, (1.0 - mean) * own, (2, patients))
        images = np.clip(np.rint(np.exp(rng.normal(np.log(median), 0.7, patients))), 1, 120).astype(np.int64)
        both = rng.binomial(images, shares[0] * shares[1])
        rest = images - both
        a_only = rng.binomial(rest, shares[0] * (1.0 - shares[1]) / (1.0 - shares[0] * shares[1]).clip(1e-12))
        none = (1.0 - shares[0]) * (1.0 - shares[1])
        b_given = shares[1] * (1.0 - shares[0])
        b_only = rng.binomial(rest - a_only, b_given / (b_given + none).clip(1e-12))
        ours.append(np.stack([both + a_only, images], axis=-1))
        theirs.append(np.stack([both + b_only, images], axis=-1))
        first_only += int(a_only.sum())
        second_only += int(b_only.sum())
    return np.concatenate(ours).astype(float), np.concatenate(theirs).astype(float), first_only, second_only


def rejections(size: int, studies: int, swaps: int, seed: int) -> tuple[float, float]:
    """Return the shares of studies in which the swap test and plain McNemar reject."""
    accuracy = load_metric("accuracy")
    strata = tuple(hospital for hospital, patients in zip(HOSPITALS, SIZES[size], strict=True) for _ in range(patients))
    groups = tuple(f"p{number:03d}" for number in range(sum(SIZES[size])))
    swap, plain = 0, 0
    for number in range(studies):
        ours, theirs, b, c = draw_patients(size, np.random.default_rng([seed, size, number]))
        part = PairedSums(accuracy, GroupSums(strata, groups, ours), GroupSums(strata, groups, theirs))
        found = swap_test([part], swaps=swaps, seed=number)
        swap += found.p is not None and found.p <= LEVEL
        plain += mcnemar(b, c).p <= LEVEL
    return swap / studies, plain / studies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=4_000, help="simulated studies of each size")
    parser.add_argument("--swaps", type=int, default=999)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    worst = np.inf
    for size in SIZES:
        swap, plain = rejections(size, arguments.studies, arguments.swaps, arguments.seed)
        # Whole studies are counted: a gap is known to one of them at best.
        gap = max(abs(swap - LEVEL), 1.0 / arguments.studies)
        worst = min(worst, HALF_BAND / gap, plain / MCNEMAR_GOAL)
        print(
            f"{size} patients, equal models: swap test rejects {swap:.1%} (goal 4%-6%), "
            f"plain McNemar {plain:.1%} (at least {MCNEMAR_GOAL:.0%})"
        )
    print(f"ratio size: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
