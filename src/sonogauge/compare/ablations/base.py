"""What the ablations share: their input, their tables as data, and right answers compared item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.compare.pairs import PairRules
from sonogauge.compare.sides import Counted, Ground, Outcome, Side
from sonogauge.items import Item
from sonogauge.metrics import load_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.models.groups import Cards
from sonogauge.stats.intervals import Estimate, difference, estimate
from sonogauge.stats.paired import PairedSums, mcnemar, swap_test

ALL = "all"


@dataclass(frozen=True)
class Ablation:
    """The input of an ablation.

    tasks: those asked for, empty = its own choice. sizes: model to billions of parameters, before those of the cards.
    """

    ground: Ground
    sides: Sequence[Side]
    testing: PairRules
    tasks: tuple[str, ...]
    cards: Cards
    sizes: Mapping[str, float]

    def chosen_tasks(self, preferred: str, forms: tuple[str, ...]) -> list[str]:
        """Return the tasks asked for; else the preferred one; else all with one of these answer forms.

        Raises:
            BadInput: an unknown task, or one of another form.
        """
        spec = self.ground.spec
        present = {item.task for item in self.ground.items}
        usable = [task for task, facts in spec.tasks.items() if facts.form in forms and task in present]
        for task in self.tasks:
            if task not in usable:
                raise BadInput(f"no task '{task}' for this ablation", field="tasks", fix="use " + ", ".join(usable))
        if not usable:
            raise BadInput(f"no task with the answer form {' or '.join(forms)}", file=self.ground.bench.path)
        return list(self.tasks) or ([preferred] if preferred in usable else usable)

    def with_variant(self, wanted: Callable[[str], bool], name: str) -> tuple[list[Side], list[str]]:
        """Return the models that have such a variant, and a note for each that has not.

        Raises:
            BadInput: none has it.
        """
        have = [side for side in self.sides if any(wanted(one) for one in side.variants)]
        if not have:
            raise BadInput(
                f"no reply in a variant '{name}'",
                file=self.sides[0].source.path,
                fix=f"run with --vary {name} into the same folder",
            )
        return have, [f"{side.label} has no replies to '{name}'." for side in self.sides if side not in have]


def column(key: str, title: str, unit: str = "") -> dict[str, str]:
    """Return a column of a table: key in the rows, title, unit of its numbers (as `report.cells.Unit`; "" = text)."""
    return {"key": key, "title": title, "unit": unit}


def table(
    key: str, title: str, columns: Sequence[dict[str, str]], rows: Sequence[Mapping[str, Any]], *notes: str
) -> dict[str, Any]:
    """Return a table as data: rows hold texts, numbers, or values with intervals (`shown`)."""
    return {
        "key": key,
        "title": title,
        "columns": list(columns),
        "rows": [dict(row) for row in rows],
        "notes": [*notes],
    }


def shown(one: Estimate) -> dict[str, Any]:
    """Return a value with its interval as data, and whether that rests on enough groups."""
    facts: dict[str, Any] = {"value": one.value, "low": one.low, "high": one.high, "why_null": one.why_null}
    return facts | ({} if one.low is None else {"reliable": one.reliable})


def p_value(p: float | None, why: str | None) -> dict[str, Any]:
    """Return a p-value as data; without one, the reason."""
    return {"value": p, "low": None, "high": None, "why_null": why if p is None else None}


def share_sums(ground: Ground, shares: Mapping[tuple[str, int], float]) -> GroupSums:
    """Return the statistic [share, 1] per patient of items (item id, epoch) with a value from 0 to 1 each."""
    items = {item.item_id: item for item in ground.items}
    keys = sorted(shares)
    owners = [items[item_id] for item_id, _ in keys]
    statistics = np.array([[shares[key], 1.0] for key in keys], dtype=np.float64).reshape(-1, 2)
    return GroupSums.from_items([one.source for one in owners], [one.group for one in owners], statistics)


def share(ground: Ground, shares: Mapping[tuple[str, int], float]) -> Estimate:
    """Estimate a mean of values from 0 to 1 over items, with its clustered interval."""
    return estimate(load_metric("accuracy"), share_sums(ground, shares), ground.resampler)


def right(model: Counted, keep: Callable[[Outcome], bool]) -> dict[tuple[str, int], bool]:
    """Return whether each reply was right, for the replies that `keep` takes."""
    return {key: one.correct for key, one in model.outcomes.items() if one.correct is not None and keep(one)}


def compare_hits(
    ablation: Ablation, first: Mapping[tuple[str, int], bool], second: Mapping[tuple[str, int], bool]
) -> dict[str, Any] | None:
    """Compare right answers on the same items, pooled: accuracies, difference, b, c, McNemar, swapped-patient p.

    Only items in both count; None without any.
    """
    keys = sorted(first.keys() & second.keys())
    if not keys:
        return None
    ground, accuracy = ablation.ground, load_metric("accuracy")
    a = share_sums(ground, {key: float(first[key]) for key in keys})
    b = share_sums(ground, {key: float(second[key]) for key in keys})
    ours, theirs = (estimate(accuracy, one, ground.resampler) for one in (a, b))
    test = swap_test([PairedSums(accuracy, a, b)], swaps=ablation.testing.swaps, seed=ablation.testing.seed)
    found = mcnemar(
        sum(first[key] and not second[key] for key in keys), sum(second[key] and not first[key] for key in keys)
    )
    return {
        "n": len(keys),
        "patients": ours.groups,
        "with": shown(ours),
        "without": shown(theirs),
        "difference": shown(difference(ours, theirs, names=("with", "without"))),
        "p": p_value(test.p, test.why_null),
        "mcnemar": asdict(found),
        "b": found.b,
        "c": found.c,
        "chi2": found.statistic,
        "p_mcnemar": p_value(found.p, None),
        "p_exact": p_value(found.p_exact, None),
    }


HIT_COLUMNS = (
    column("n", "n", "count"),
    column("patients", "patients", "count"),
    column("with", "with", "percent"),
    column("without", "without", "percent"),
    column("difference", "difference", "percent"),
    column("p", "p", "p"),
    column("b", "b", "count"),
    column("c", "c", "count"),
    column("chi2", "McNemar chi-square", "plain"),
    column("p_mcnemar", "p McNemar", "p"),
    column("p_exact", "p exact", "p"),
)
HIT_NOTES = (
    "b: right only with; c: right only without. p: replies exchanged within patients. McNemar (uncorrected, exact): "
    "reproduction, items independent.",
)


def items_of(ground: Ground, tasks: Sequence[str]) -> dict[str, Item]:
    """Return the items of some tasks by id."""
    return {item.item_id: item for item in ground.items if item.task in tasks}
