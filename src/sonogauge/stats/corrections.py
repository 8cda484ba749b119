"""Adjusted p-values of a declared family of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from sonogauge.metrics.base import Array

PValues = Sequence[float | None]


def holm(p: PValues) -> list[float | None]:
    """Adjust p-values so that the chance of any false rejection stays below the level.

    p: values from 0 to 1; None = no test, which stays None and does not count.
    Source: Holm 1979, Scandinavian Journal of Statistics 6:65-70.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """

    def step_down(ordered: Array) -> Array:
        factors = np.arange(len(ordered), 0, -1)
        return np.maximum.accumulate(ordered * factors)

    return _adjust(p, step_down)


def benjamini_hochberg(p: PValues) -> list[float | None]:
    """Adjust p-values so that the expected share of false ones among the rejections stays below the level.

    p: as in `holm`. Source: Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.

    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """

    def step_up(ordered: Array) -> Array:
        scaled = ordered * len(ordered) / np.arange(1, len(ordered) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjust(p, step_up)


CORRECTIONS: Final[dict[str, Callable[[PValues], list[float | None]]]] = {"holm": holm, "bh": benjamini_hochberg}


def _adjust(p: PValues, ladder: Callable[[Array], Array]) -> list[float | None]:
    tested = [position for position, value in enumerate(p) if value is not None]
    values = np.array([p[position] for position in tested], dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values lie between 0 and 1")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, ladder(values[order]))
    result: list[float | None] = [None] * len(p)
    for position, value in zip(tested, adjusted.tolist(), strict=True):
        result[position] = value
    return result
