"""Groups of models: adapted models against their bases, and group means with the model as unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from sonogauge.benchmarks.composite import part
from sonogauge.compare.ablations.base import Ablation, column, p_value, table
from sonogauge.compare.pairs import PairRules, Place, task_difference
from sonogauge.compare.sides import count, refuse_other_items
from sonogauge.metrics.base import Array
from sonogauge.models.groups import GROUPINGS, UNKNOWN, Cards, base_pairs, group_of
from sonogauge.report.published import published_rows
from sonogauge.stats.corrections import holm

LEAST_MODELS: Final = 6
FEW: Final = f"fewer than {LEAST_MODELS} models a group"


def groups_ablation(ablation: Ablation) -> dict[str, Any]:
    """Compare adapted models with their bases, patient by patient, and groups of models with the model as unit."""
    ground, cards = ablation.ground, ablation.cards
    models = [count(ground, side, "") for side in ablation.sides]
    refuse_other_items(models, [side.source for side in ablation.sides])
    by_label = {model.label: model for model in models}
    names = {side.label: side.source.model for side in ablation.sides}
    labels_of: dict[str, list[str]] = {}
    for label, name in names.items():
        labels_of.setdefault(name, []).append(label)
    pairs = [
        (ours, theirs)
        for adapted, base in base_pairs(labels_of, cards)
        for ours in labels_of[adapted]
        for theirs in labels_of[base]
    ]
    gaps = []
    for ours, theirs in pairs:
        for slice_name, task in by_label[ours].values.tasks:
            if not slice_name:
                gaps.append(task_difference(ground, by_label[ours], by_label[theirs], Place(task), ablation.testing))
    adapted_rows = [
        {
            "adapted": gap.first,
            "base": gap.second,
            "task": gap.task,
            "metric": gap.metric,
            "n": gap.n,
            "difference": {
                "value": gap.d_difference,
                "low": gap.d_low,
                "high": gap.d_high,
                "why_null": gap.why_null,
                "reliable": gap.reliable or gap.d_low is None,
            },
            "p": p_value(gap.p, gap.why_no_p),
            "p_holm": p_value(adjusted, gap.why_no_p),
        }
        for gap, adjusted in zip(gaps, holm([gap.p for gap in gaps]), strict=True)
    ]
    d: dict[str, dict[str, float]] = {}
    for model in models:
        for (slice_name, task), metrics in model.values.tasks.items():
            metric = ground.spec.tasks[task].headline
            value = metrics[metric].estimate.value
            if not slice_name and value is not None:
                d.setdefault(model.label, {})[task] = float(part(metric, value))
    unknown = [label for label, name in names.items() if cards.of(name) == cards.of("")]
    notes = [f"No card, counted as {UNKNOWN}: {', '.join(unknown)}."] if unknown else []
    return {
        "definition": "the model is the unit of group means; d: higher is better",
        "tables": [
            table(
                "adapted",
                "Adapted models against their bases",
                [
                    *(column(name, name) for name in ("adapted", "base", "task", "metric")),
                    column("n", "n", "count"),
                    column("difference", "difference (d)", "plain"),
                    column("p", "p", "p"),
                    column("p_holm", "p Holm", "p"),
                ],
                adapted_rows,
                *([] if adapted_rows else ["No model is here together with the one it was adapted from."]),
            ),
            *group_tables(d, names, cards, ablation.testing, notes),
            *_published_tables(ablation),
        ],
    }


def _published_tables(ablation: Ablation) -> list[dict[str, Any]]:
    """The same tables of published results, each model once: its leaderboard row, else that of a paper."""
    spec = ablation.ground.spec
    headlines = {(task, facts.headline) for task, facts in spec.tasks.items()}
    d: dict[str, dict[str, float]] = {}
    for row in sorted(published_rows(spec.name), key=lambda row: str(row["variant"]), reverse=True):
        if (row["task"], row["metric"]) in headlines and row["model_group"] != "baseline" and not row["doubt"]:
            d.setdefault(row["model"], {})[row["task"]] = float(part(row["metric"], row["value"]))
    if not d:
        return []
    ordered = {model: {task: own[task] for task in spec.tasks if task in own} for model, own in sorted(d.items())}
    notes = ["Published by others under their own protocol, not computed here; doubtful figures are left out."]
    return group_tables(
        ordered,
        {name: name for name in ordered},
        ablation.cards,
        ablation.testing,
        notes,
        "published",
        "Published results",
    )


def group_tables(
    d: Mapping[str, Mapping[str, float]],
    names: Mapping[str, str],
    cards: Cards,
    testing: PairRules,
    notes: Sequence[str] = (),
    key: str = "groups",
    title: str = "Groups of models",
) -> list[dict[str, Any]]:
    """Return, for each grouping, means by group and task, and differences of groups.

    d: label of a model to task to d. names: label to the model's name. p: models exchanged between the groups, two-
    sided; none below six models a group.
    """
    tasks = sorted({task for own in d.values() for task in own})
    means: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    for grouping in GROUPINGS:
        groups: dict[str, list[str]] = {}
        for label in d:
            groups.setdefault(group_of(names[label], grouping, cards), []).append(label)
        known = [name for name in sorted(groups) if name != UNKNOWN]
        if len(known) < 2:
            continue
        for name in [*known, *([UNKNOWN] if UNKNOWN in groups else [])]:
            row: dict[str, Any] = {"grouping": grouping, "group": name, "models": len(groups[name])}
            for task in tasks:
                values = [d[label][task] for label in groups[name] if task in d[label]]
                row[task] = p_value(float(np.mean(values)) if values else None, "no model with this task")
            means.append(row)
        # A family is seldom more than a few sizes of one model; its mean is shown, but tested against nothing.
        tested = [name for name in known if grouping != "family" and len(groups[name]) > 1]
        for first, second in combinations(tested, 2):
            for task in tasks:
                ours, theirs = (
                    np.array([d[label][task] for label in groups[name] if task in d[label]], dtype=np.float64)
                    for name in (first, second)
                )
                gaps.append(
                    {
                        "grouping": grouping,
                        "first": first,
                        "second": second,
                        "task": task,
                        "models": f"{len(ours)} + {len(theirs)}",
                        **_gap(ours, theirs, testing),
                    }
                )
    lead = [column("grouping", "by")]
    return [
        table(
            key,
            f"{title} (mean d, model as unit)",
            [
                *lead,
                column("group", "group"),
                column("models", "models", "count"),
                *(column(task, task, "plain") for task in tasks),
            ],
            means,
            *notes,
            *([] if means else ["No grouping has two known groups here."]),
        ),
        table(
            f"{key}_gaps",
            f"{title}: differences",
            [
                *lead,
                *(column(name, name) for name in ("first", "second", "task", "models")),
                column("difference", "difference (d)", "plain"),
                column("p", "p", "p"),
            ],
            gaps,
            "Models are no random sample, and those of a family are alike: read p with care.",
        ),
    ]


def _gap(ours: Array, theirs: Array, testing: PairRules) -> dict[str, Any]:
    if not len(ours) or not len(theirs):
        why = "no model with this task in one group"
        return {"difference": p_value(None, why), "p": p_value(None, why)}
    seen = float(ours.mean() - theirs.mean())
    p = group_p(ours, theirs, testing.swaps, testing.seed)
    return {"difference": p_value(seen, None), "p": p_value(p, FEW)}


def group_p(ours: Array, theirs: Array, swaps: int, seed: int) -> float | None:
    """Return the two-sided p of a difference of means when models change groups at random; None below six a group.

    Source: Fisher's permutation test of two samples, random permutations counted as Phipson & Smyth 2010 do.
    """
    if min(len(ours), len(theirs)) < LEAST_MODELS:
        return None
    both = np.concatenate([ours, theirs])
    seen = abs(ours.mean() - theirs.mean())
    orders = np.random.default_rng(seed).permuted(np.tile(both, (swaps, 1)), axis=1)
    moved = np.abs(orders[:, : len(ours)].mean(axis=1) - orders[:, len(ours) :].mean(axis=1))
    return float((1 + (moved >= seen - 1e-12 * max(1.0, seen)).sum()) / (swaps + 1))
