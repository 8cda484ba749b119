"""Model scale: one family at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.benchmarks.composite import part
from sonogauge.compare.ablations.base import Ablation, column, p_value, shown, table
from sonogauge.compare.pairs import Difference, Place, task_difference, total_differences
from sonogauge.compare.sides import Counted, Ground, count, refuse_other_items
from sonogauge.metrics.base import Array
from sonogauge.models.groups import folded
from sonogauge.score.compose import composite_values
from sonogauge.stats.corrections import holm
from sonogauge.stats.intervals import Estimate, combine

LEAST_FOR_P: Final = 6
NO_FAMILY: Final = "one family, as given"


def scale_ablation(ablation: Ablation) -> dict[str, Any]:
    """Tell how the headlines and the first total go with size: values, slope per doubling, neighbours, Spearman.

    Sizes come from `sizes`, else from the models' cards; families from the cards. Models without a size are left out
    and named. p of neighbours are Holm-adjusted over all neighbours and measures of a family.

    Raises:
        BadInput: no family with two sizes.
    """
    ground = ablation.ground
    sizes = model_sizes(ablation)
    missing = [side.label for side in ablation.sides if side.label not in sizes]
    families: dict[str, list[str]] = {}
    given = {folded(name) for name in ablation.sizes}
    for side in ablation.sides:
        if side.label in sizes:
            own = ablation.cards.of(side.source.model).family
            stated = folded(side.source.model) in given or folded(side.label) in given
            families.setdefault(own or (NO_FAMILY if stated else side.label), []).append(side.label)
    families = {name: labels for name, labels in families.items() if len({sizes[one] for one in labels}) > 1}
    if not families:
        raise BadInput(
            "no family of models with two sizes",
            field="size",
            fix="give sizes in billions of parameters (--size MODEL=7), or families in a models.yaml",
        )
    rows: list[dict[str, Any]] = []
    slopes: list[dict[str, Any]] = []
    neighbours: list[dict[str, Any]] = []
    for family, labels in families.items():
        sides = [side for side in ablation.sides if side.label in labels]
        sides.sort(key=lambda side: (sizes[side.label], side.label))
        models = [count(ground, side, "") for side in sides]
        refuse_other_items(models, [side.source for side in sides])
        values = [measures(ground, one) for one in models]
        names = [name for name in values[0] if any(one[name].value is not None for one in values)]
        for model, measured in zip(models, values, strict=True):
            facts = {name: shown(measured[name]) for name in names}
            rows.append({"family": family, "model": model.label, "size": sizes[model.label], **facts})
        steps = np.log2([sizes[one.label] for one in models])
        for name in names:
            slopes.append({"family": family, **_slope(name, steps, [one[name] for one in values])})
        neighbours += _neighbours(ablation, family, models, sizes)
    lead = [column("family", "family")]
    shown_names = list(dict.fromkeys(name for row in rows for name in row if name not in ("family", "model", "size")))
    value_columns = [column(name, name, _unit(name)) for name in shown_names]
    notes = [f"No size known, left out: {', '.join(missing)}."] if missing else []
    return {
        "definition": "slope = ordinary least squares of d on log2(size); d: higher is better",
        "tables": [
            table(
                "scale",
                "Model scale",
                [*lead, column("model", "model"), column("size", "size (B)", "natural"), *value_columns],
                rows,
                *notes,
            ),
            table(
                "slopes",
                "Gain per doubling of size",
                [
                    *lead,
                    column("measure", "measure"),
                    column("models", "models", "count"),
                    column("slope", "d per doubling", "plain"),
                    column("spearman", "Spearman", "plain"),
                    column("p", "p Spearman", "p"),
                ],
                slopes,
                "d: higher is better; the interval speaks of new patients, not of new models.",
            ),
            table(
                "neighbours",
                "Neighbouring sizes",
                [
                    *lead,
                    column("larger", "larger"),
                    column("smaller", "smaller"),
                    column("measure", "measure"),
                    column("difference", "difference (d)", "plain"),
                    column("p", "p", "p"),
                    column("p_holm", "p Holm", "p"),
                ],
                neighbours,
                "p: replies exchanged within patients; Holm over all rows of the family.",
            ),
        ],
    }


def read_sizes(texts: Sequence[str]) -> dict[str, float]:
    """Read sizes written MODEL=BILLIONS.

    Raises:
        BadInput: no "=", no number, a model twice.

    >>> read_sizes(["local/small=3", "local/large=7.5B"])
    {'local/small': 3.0, 'local/large': 7.5}
    """
    sizes: dict[str, float] = {}
    for one in texts:
        name, equals, size = one.rpartition("=")
        try:
            value = float(size.strip().removesuffix("B").removesuffix("b"))
        except ValueError:
            value = 0.0
        if not equals or not name or not value > 0 or name in sizes:
            raise BadInput(
                f"not a size: '{one}'", field="size", fix="write MODEL=BILLIONS once a model, for example a=7"
            )
        sizes[name] = value
    return sizes


def model_sizes(ablation: Ablation) -> dict[str, float]:
    """Return the size of each model that has one, by label.

    Raises:
        BadInput: a size for a model that is not there, or one that is not positive.
    """
    given = {}
    for name, size in ablation.sizes.items():
        owners = [s.label for s in ablation.sides if folded(name) in (folded(s.source.model), folded(s.label))]
        if not owners:
            labels = ", ".join(side.label for side in ablation.sides)
            raise BadInput(f"no model '{name}' among the runs", field="size", fix=f"they are {labels}")
        if not (size > 0 and np.isfinite(size)):
            raise BadInput(f"not a size: {size}", field="size", fix="write billions of parameters, for example 7")
        given.update(dict.fromkeys(owners, float(size)))
    for side in ablation.sides:
        size_b = ablation.cards.of(side.source.model).size_b
        if size_b is not None:
            given.setdefault(side.label, size_b)
    return given


def measures(ground: Ground, model: Counted) -> dict[str, Estimate]:
    """Return the headline of each task and the first total of the benchmark, by name ("DD accuracy", "u2")."""
    out = {}
    for (slice_name, task), metrics in model.values.tasks.items():
        if not slice_name:
            metric = ground.spec.tasks[task].headline
            out[f"{task} {metric}"] = metrics[metric].estimate
    total = _total_name(ground)
    if total is not None:
        out[total] = composite_values(ground.spec, model.values, {})["", total].estimate
    return out


def _total_name(ground: Ground) -> str | None:
    return next((name for name, facts in ground.spec.composites.items() if not facts.skill), None)


def _unit(name: str) -> str:
    return "total" if " " not in name else "metric"


def _slope(name: str, steps: Array, values: Sequence[Estimate]) -> dict[str, Any]:
    metric = name.partition(" ")[2] or name
    known = [number for number, one in enumerate(values) if one.value is not None]
    facts: dict[str, Any] = {"measure": name, "models": len(known)}
    usable = steps[known]
    if len(set(usable.tolist())) < 2:
        return {
            **facts,
            **dict.fromkeys(("slope", "spearman", "p"), p_value(None, "fewer than two sizes with a value")),
        }
    centred = usable - usable.mean()
    found = combine(
        [values[number] for number in known],
        partial(_weighted, metric, centred / float(centred @ centred)),
    )
    d = part(metric, np.array([values[number].value for number in known], dtype=np.float64))
    rho, p = spearman(usable, d)
    return {**facts, "slope": shown(found), "spearman": rho, "p": p}


def _weighted(metric: str, weights: Array, values: Array) -> Array:
    return np.asarray(part(metric, values) @ weights)


def spearman(sizes: Array, values: Array) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Spearman's correlation and its p as data; no p below six models, none of both where one is constant."""
    from scipy.stats import spearmanr

    if len(set(sizes.tolist())) < 2 or len(set(values.tolist())) < 2:
        why = "all values are equal"
        return p_value(None, why), p_value(None, why)
    found: Any = spearmanr(sizes.tolist(), values.tolist())
    p = float(found.pvalue) if len(sizes) >= LEAST_FOR_P else None
    return p_value(float(found.statistic), None), p_value(p, f"fewer than {LEAST_FOR_P} models")


def _neighbours(
    ablation: Ablation, family: str, models: Sequence[Counted], sizes: Mapping[str, float]
) -> list[dict[str, Any]]:
    ground = ablation.ground
    total = _total_name(ground)
    found: list[tuple[str, Difference]] = []
    for smaller, larger in pairwise(models):
        if sizes[smaller.label] == sizes[larger.label]:
            continue
        for slice_name, task in larger.values.tasks:
            if not slice_name:
                gap = task_difference(ground, larger, smaller, Place(task), ablation.testing)
                found.append((f"{task} {gap.metric}", gap))
        totals = total_differences(ground, larger, smaller, ablation.testing)
        found += [(one.metric, one) for one in totals if one.metric == total and one.difference is not None]
    rows = []
    for (name, gap), adjusted in zip(found, holm([gap.p for _, gap in found]), strict=True):
        rows.append(
            {
                "family": family,
                "larger": gap.first,
                "smaller": gap.second,
                "measure": name,
                "difference": {
                    "value": gap.d_difference,
                    "low": gap.d_low,
                    "high": gap.d_high,
                    "why_null": gap.why_null,
                    "reliable": gap.reliable or gap.low is None,
                },
                "p": p_value(gap.p, gap.why_no_p),
                "p_holm": p_value(adjusted, gap.why_no_p),
            }
        )
    return rows
