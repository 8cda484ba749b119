"""U2-BENCH: 51 scenarios of eight tasks as data, and its total."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.composite import composite
from sonogauge.benchmarks.spec import load_spec

U2_TASKS: Final = ("DD", "VRA", "LL", "OD", "KD", "CVE", "RG", "CG")


def u2_score(d: Mapping[str, float | None], weights: str | Mapping[str, float] = "published") -> float | None:
    """Return the U2-Score, the sum of w_t d_t over the eight tasks, not rounded.

    d: task code to a value in 0-1, higher is better: accuracies, 1 - scaled RMSE for CVE, BLEU-4 as a fraction for RG
    and CG; each is cut to [0, 1]. None or no entry = missing task, and then the result is None.
    weights: "published" (fixed constants), "n_t" (rows of the task / 7241), or own weights of the eight tasks.
    Raises BadInput for unknown tasks or weights. Source: Le et al. 2025, arXiv:2505.17779.

    >>> random = {"DD": 0.4143, "VRA": 0.3195, "LL": 0.1118, "OD": 0.0680, "KD": 0.1120, "CVE": 1 - 0.5472}
    >>> round(u2_score(random | {"RG": 0.0, "CG": 0.0}), 4)
    0.2125
    >>> u2_score(random) is None
    True
    """
    if isinstance(weights, str):
        tables = _weights()
        if weights not in tables:
            raise BadInput(f"no weights '{weights}' in u2bench", fix="known: " + ", ".join(tables))
        weights = tables[weights]
    elif set(weights) != set(U2_TASKS):
        raise BadInput("weights must name the eight tasks", fix="tasks: " + ", ".join(U2_TASKS))
    return composite(d, weights)


@cache
def _weights() -> dict[str, dict[str, float]]:
    return load_spec("u2bench").weights
