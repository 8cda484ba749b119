"""Masks: IoU and Dice of 100,000 pairs against decode-and-compare in numpy, HD95 against surface-distance.

usage: python perf/masks.py [--pairs 100000] [--decoded 2000] [--surfaces 60]

The pairs are ellipses with a ragged outline in 512 x 512 images; the peer decodes the same run-length codes, on
`--decoded` of the pairs. HD95 is timed in one process on `--surfaces` pairs; the two libraries define the outline
differently, so their values are near each other, not equal. Times are CPU seconds, so a busy machine does not decide.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from pycocotools import mask as coco

from sonogauge.cases.geometry import Mask, encode_mask
from sonogauge.metrics.base import Array
from sonogauge.metrics.masks import Row, iou_dice, overlaps
from sonogauge.metrics.surfaces import hd95

OVERLAP_GOAL, SURFACE_GOAL, TOLERANCE = 15.0, 2.0, 1e-12
SIDE, SHAPES = 512, 120


def make_masks(seed: int = 0) -> list[Mask]:
    """Return ellipses whose radius wavers along the outline, as drawn by hand."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    masks = []
    for _ in range(SHAPES):
        x, y = rng.uniform(150, 362, size=2)
        a, b = rng.uniform(40, 130, size=2)
        angle = np.arctan2((rows - y) / b, (columns - x) / a)
        waver = sum(rng.normal(0, 0.03) * np.cos(n * angle + rng.uniform(0, 6)) for n in range(2, 9))
        masks.append(((columns - x) / a) ** 2 + ((rows - y) / b) ** 2 <= (1 + waver) ** 2)
    return masks


def decode_and_compare(first: list[Row], second: list[Row]) -> Array:
    values = np.empty((len(first), 2))
    for place, (one, two) in enumerate(zip(first, second, strict=True)):
        ours, theirs = (coco.decode(dict(row)).astype(bool) for row in (one, two))
        both, union = np.logical_and(ours, theirs).sum(), np.logical_or(ours, theirs).sum()
        total = ours.sum() + theirs.sum()
        values[place] = (both / union if union else 1.0, 2 * both / total if total else 1.0)
    return values


def seconds_of(function: Callable[[], object], repeats: int = 1) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return float(best)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--decoded", type=int, default=2_000)
    parser.add_argument("--surfaces", type=int, default=60)
    asked = parser.parse_args()
    masks = make_masks()
    rows = [encode_mask(mask, "m", "x") for mask in masks]
    rng = np.random.default_rng(1)
    first, second = rng.integers(SHAPES, size=(2, asked.pairs))
    ones, twos = [rows[place] for place in first], [rows[place] for place in second]

    found = np.stack(iou_dice(overlaps(ones[: asked.decoded], twos[: asked.decoded])), axis=-1)
    gap = float(np.abs(found - decode_and_compare(ones[: asked.decoded], twos[: asked.decoded])).max())
    ours = seconds_of(lambda: iou_dice(overlaps(ones, twos)), 2)
    theirs = seconds_of(lambda: decode_and_compare(ones[: asked.decoded], twos[: asked.decoded]), 2)
    theirs *= asked.pairs / asked.decoded
    overlap = theirs / ours
    print(
        f"IoU and Dice of {asked.pairs} pairs of {SIDE}x{SIDE} masks: {ours:.2f} s; decoded and compared "
        f"{theirs:.1f} s (extrapolated from {asked.decoded}): {overlap:.1f}x (goal {OVERLAP_GOAL:g}x), "
        f"largest difference {gap:.0e}"
    )

    import surface_distance

    pairs = [(masks[first[place]], masks[second[place]]) for place in range(asked.surfaces)]

    def peer() -> list[float]:
        return [
            surface_distance.compute_robust_hausdorff(
                surface_distance.compute_surface_distances(one, two, (1.0, 1.0)), 95
            )
            for one, two in pairs
        ]

    def own() -> list[float]:
        return [hd95(one, two) for one, two in pairs]

    apart = float(np.abs(np.array(own()) - np.array(peer())).max())
    quick, slow = seconds_of(own, 3), seconds_of(peer, 3)
    surface = slow / quick
    print(
        f"HD95 of {asked.surfaces} pairs: {1e3 * quick / asked.surfaces:.2f} ms a pair, surface-distance "
        f"{1e3 * slow / asked.surfaces:.2f} ms: {surface:.1f}x (goal {SURFACE_GOAL:g}x), "
        f"values at most {apart:.2f} px apart"
    )
    worst = min(overlap / OVERLAP_GOAL, surface / SURFACE_GOAL, TOLERANCE / max(gap, 1e-300))
    print(f"ratio masks: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
