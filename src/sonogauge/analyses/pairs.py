"""Analysis 6: two runs on the same questions, before and after (a base model and its tuned one, say)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.analyses.domains import held_out
from sonogauge.analyses.study import Record, Study, paired
from sonogauge.compare.ablations.base import column, p_value, shown, table
from sonogauge.metrics import load_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.stats.corrections import holm
from sonogauge.stats.intervals import Estimate, difference
from sonogauge.stats.paired import PairedSums, mcnemar, swap_test

Pairs = list[tuple[Record, Record]]


def pairs(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the paired change by task and overall, on held-out sources, and on rotated options.

    options: against, the study of the run before; swaps, random exchanges of the test.

    Raises:
        BadInput: no run to compare with, another benchmark, or questions that one of the two did not answer.
    """
    before: Study | None = options.get("against")
    if before is None:
        raise BadInput("no run to compare with", field="against", fix="name the run before with --against")
    if before.bench.manifest.hash != study.bench.manifest.hash:
        raise BadInput("runs of different benchmarks", file=before.bench.path, fix="compare runs of one benchmark")
    swaps, seed = int(options.get("swaps", 9_999)), int(options.get("seed", 0))
    whole = match(before.of(), study.of(), before.label, study.label)
    rows = _family(study, whole, swaps, seed)
    columns = [
        column("task", "task"),
        column("n", "n", "count"),
        column("before", "before", "percent"),
        column("after", "after", "percent"),
        column("effect", "after - before", "percent"),
        column("b", "b", "count"),
        column("c", "c", "count"),
        column("p", "p", "p"),
        column("p_holm", "p Holm", "p"),
        column("p_exact", "p McNemar", "p"),
        column("p_exact_holm", "p McNemar Holm", "p"),
    ]
    notes = (
        f"before: {before.label}; after: {study.label}. b: right before, wrong after; c: wrong before, right after.",
        "p: results exchanged within groups. p McNemar: exact, questions taken as independent, for reproduction only: "
        "with many frames a patient it rejects far too often. Holm over the tasks.",
    )
    tables = [table("pairs", "Paired change", columns, rows, *notes)]
    outside = [pair for pair in whole if held_out(study, [pair[1]])]
    if outside and len(outside) < len(whole):
        tables.append(
            table("pairs_held_out", "Paired change, held-out sources", columns, _family(study, outside, swaps, seed))
        )
    turned = [one for one in study.records if one.startswith("circular=") and one in before.records]
    if turned:
        both: Pairs = []
        for variant in turned:
            both += match(before.of(variant), study.of(variant), before.label, study.label)
        tables.append(
            table("pairs_rotated", "Paired change, rotated options", columns, _family(study, both, swaps, seed))
        )
    return tables


def match(before: Sequence[Record], after: Sequence[Record], first: str, second: str) -> Pairs:
    """Return the pairs of two runs on the same questions.

    Raises:
        BadInput: a question that one of the two was not asked.
    """
    apart = {one.key for one in before} ^ {one.key for one in after}
    if apart:
        item_id, epoch = min(apart)
        raise BadInput(
            f"not the same questions: {item_id} (epoch {epoch}) is in one of {first} and {second} only; "
            f"{len(apart)} differ",
            fix="run both on the same questions",
        )
    return list(paired(before, after))


def _family(study: Study, whole: Pairs, swaps: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each task, corrected as one family, and one for all questions."""
    tasks = [task for task in study.tasks if any(pair[0].item.task == task for pair in whole)]
    rows = [_row(study, task, [pair for pair in whole if pair[0].item.task == task], swaps, seed) for task in tasks]
    for key in ("p", "p_exact"):
        for row, adjusted in zip(rows, holm([row[key]["value"] for row in rows]), strict=True):
            row[f"{key}_holm"] = p_value(adjusted, row[key]["why_null"])
    total = _row(study, "all (micro)", whole, swaps, seed)
    alone = p_value(None, "not in the family of the tasks")
    return [*rows, {**total, "p_holm": alone, "p_exact_holm": alone}]


def _row(study: Study, name: str, own: Pairs, swaps: int, seed: int) -> dict[str, Any]:
    first, second = _sums([pair[0] for pair in own]), _sums([pair[1] for pair in own])
    before, after = (
        study.mean([pair[side] for pair in own], [float(pair[side].right) for pair in own]) for side in (0, 1)
    )
    b = sum(one.right and not other.right for one, other in own)
    c = sum(other.right and not one.right for one, other in own)
    test = swap_test([PairedSums(load_metric("accuracy"), first, second)], swaps=swaps, seed=seed)
    change: Estimate = difference(after, before, names=("after", "before"))
    return {
        "task": name,
        "n": len(own),
        "before": shown(before),
        "after": shown(after),
        "effect": shown(change),
        "b": b,
        "c": c,
        "p": p_value(test.p, test.why_null),
        "p_exact": p_value(mcnemar(b, c).p_exact, None),
    }


def _sums(records: Sequence[Record]) -> GroupSums:
    right = np.array([[float(one.right), 1.0] for one in records]).reshape(-1, 2)
    return GroupSums.from_items([one.item.source for one in records], [one.item.group for one in records], right)
