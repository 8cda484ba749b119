"""A total over tasks: a weighted sum of parts between 0 and 1, for one value or for arrays of resampled values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sonogauge._errors import BadInput

# Errors on the scaled range: 0 is best, so 1 - value is the part that counts.
_SCALED_ERRORS: Final = frozenset({"rmse_scaled", "mae_scaled"})


def part(metric: str, value: ArrayLike) -> NDArray[np.float64]:
    """Turn a headline value into the part d of a total, higher is better.

    `rmse_scaled` and `mae_scaled` become 1 - value, every other metric (accuracy, `bleu4` as a fraction) stays.

    >>> float(part("rmse_scaled", 0.25)), float(part("accuracy", 0.25))
    (0.75, 0.25)
    """
    array = np.asarray(value, dtype=np.float64)
    return 1.0 - array if metric in _SCALED_ERRORS else array


def composite(values: Mapping[str, float | None], weights: Mapping[str, float], *, clip: bool = True) -> float | None:
    """Return the sum of w_t d_t over the tasks of `weights`, not rounded.

    values: task code to part d; None or no entry = missing task, and then there is no total: None.
    clip: cut each d to [0, 1] first; a skill is not cut.
    Raises BadInput for a task without a weight.

    >>> composite({"A": 0.5, "B": 1.2}, {"A": 0.5, "B": 0.5})
    0.75
    >>> composite({"A": 0.5, "B": None}, {"A": 0.5, "B": 0.5}) is None
    True
    """
    unknown = sorted(set(values) - set(weights))
    if unknown:
        raise BadInput(f"no weight for task {', '.join(unknown)}", fix="weighted tasks: " + ", ".join(weights))
    parts = [values.get(task) for task in weights]
    known = [d for d in parts if d is not None and not np.isnan(d)]
    if len(known) < len(parts):
        return None
    return float(composite_draws(np.array(known), np.array(list(weights.values())), clip=clip))


def composite_draws(values: ArrayLike, weights: ArrayLike, *, clip: bool = True) -> NDArray[np.float64]:
    """Return the total of every draw: values of shape (..., tasks), weights (tasks,), result (...).

    A missing part is nan and makes its total nan; `clip` as in `composite`.

    >>> composite_draws([[0.0, 1.0], [0.5, np.nan]], [0.25, 0.75])
    array([0.75,  nan])
    """
    parts = np.asarray(values, dtype=np.float64)
    if clip:
        parts = np.clip(parts, 0.0, 1.0)
    return np.asarray(parts @ np.asarray(weights, dtype=np.float64))
