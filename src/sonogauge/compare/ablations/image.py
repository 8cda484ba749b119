"""Image against no image: what of a score is left when the model cannot look."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sonogauge.compare.ablations.base import Ablation, column, p_value, shown, table
from sonogauge.compare.pairs import Place, task_difference
from sonogauge.compare.sides import Counted, Ground, count, value_cells
from sonogauge.score.values import Value, null
from sonogauge.stats.intervals import NO_VARIATION, Estimate, t_quantile

VARIANTS: Final = ("no_image", "blank_image")


def image_ablation(ablation: Ablation) -> dict[str, Any]:
    """Compare the headlines with and without the image, and give the share of the score that is kept without it.

    share kept = (without - chance) / (with - chance), for tasks with a chance level, where the score with the image is
    above chance.

    Raises:
        BadInput: no run has the variant `no_image` or `blank_image`.
    """
    ground = ablation.ground
    sides, notes = ablation.with_variant(lambda one: one in VARIANTS, VARIANTS[0])
    rows = []
    for side in sides:
        for variant in (one for one in VARIANTS if one in side.variants):
            seen, unseen = _shared(ground, count(ground, side, ""), count(ground, side, variant))
            for (slice_name, task), metrics in seen.values.tasks.items():
                if slice_name or (ablation.tasks and task not in ablation.tasks):
                    continue
                metric = ground.spec.tasks[task].headline
                with_image, without = metrics[metric], unseen.values.tasks["", task][metric]
                gap = task_difference(ground, seen, unseen, Place(task), ablation.testing)
                found = gap.mcnemar
                rows.append(
                    {
                        "model": side.label,
                        "variant": variant,
                        "task": task,
                        "metric": metric,
                        "n": with_image.n,
                        "with": shown(with_image.estimate),
                        "without": shown(without.estimate),
                        "chance": p_value(with_image.chance, "no chance level"),
                        "difference": {
                            "value": gap.difference,
                            "low": gap.low,
                            "high": gap.high,
                            "why_null": gap.why_null,
                            "reliable": gap.reliable or gap.low is None,
                        },
                        "p": p_value(gap.p, gap.why_no_p),
                        "kept": shown(share_kept(with_image, without)),
                        "b": found.b if found else None,
                        "c": found.c if found else None,
                    }
                )
    columns = [
        *(column(name, name) for name in ("model", "variant", "task", "metric")),
        column("n", "n", "count"),
        column("with", "with", "metric"),
        column("without", "without", "metric"),
        column("chance", "chance", "metric"),
        column("difference", "difference", "metric"),
        column("p", "p", "p"),
        column("kept", "share kept", "percent"),
    ]
    definition = "share kept without the image = (without - chance) / (with - chance)"
    return {
        "definition": definition,
        "tables": [table("image", "Image against no image", columns, rows, definition + ".", *notes)],
    }


def _shared(ground: Ground, seen: Counted, unseen: Counted) -> tuple[Counted, Counted]:
    # A variant holds the data sets it was asked on; both sides are cut to them.
    keys = {key for key in unseen.cells if key in seen.cells}
    out = []
    for one in (seen, unseen):
        cells = {key: cell for key, cell in one.cells.items() if key in keys}
        label = f"{one.label} {one.variant or 'with image'}"
        out.append(Counted(label, one.variant, cells, value_cells(ground, cells), one.outcomes, one.asked, {}))
    return out[0], out[1]


def share_kept(seen: Value, unseen: Value) -> Estimate:
    """Estimate (without - chance) / (with - chance) under the shared draws; null where it has no meaning."""
    chance = seen.chance
    if chance is None:
        return null("no chance level")
    if seen.estimate.value is None or unseen.estimate.value is None:
        return null(seen.estimate.why_null or unseen.estimate.why_null or "not scored")
    if seen.estimate.low is None or seen.estimate.low <= chance:
        return null("with the image not above chance")
    found = fieller(unseen.estimate, seen.estimate, chance)
    return found if found is not None else null("with the image not above chance")


def fieller(above: Estimate, below: Estimate, zero: float) -> Estimate | None:
    """Estimate (above - zero) / (below - zero) under the shared draws, or None where the denominator may be 0.

    The 95 % interval holds the ratios k for which (above - zero) - k (below - zero) lies within t standard errors of
    0, with variances and covariance of the draws, inflated as those of the two values are. Source: Fieller 1954,
    JRSS B 16:175-185.
    """
    assert above.value is not None and below.value is not None
    a, b = above.value - zero, below.value - zero
    groups, df = max(above.groups, below.groups), max(1.0, min(above.df, below.df))
    if above.draws is None or below.draws is None:
        return Estimate(a / b, None, None, groups, df, False, above.why_null or below.why_null)
    usable = ~(np.isnan(above.draws) | np.isnan(below.draws))
    scales = np.array([above.inflation, below.inflation])
    (var_a, cov), (_, var_b) = np.cov(above.draws[usable], below.draws[usable], bias=True) * np.outer(scales, scales)
    square = t_quantile(df) ** 2
    lead = b * b - square * var_b
    if b <= 0 or lead <= 0:
        return None
    middle = a * b - square * cov
    root = np.sqrt(max(middle * middle - lead * (a * a - square * var_a), 0.0))
    low, high = float((middle - root) / lead), float((middle + root) / lead)
    reliable = above.reliable and below.reliable
    if high - low <= 1e-12:
        return Estimate(a / b, None, None, groups, df, reliable, NO_VARIATION)
    return Estimate(a / b, low, high, groups, df, reliable, None, None, "Fieller, bootstrap variances, t")
