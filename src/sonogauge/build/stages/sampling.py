"""Sampling: at most so many items of a patient and of a scenario, rare values likelier by a declared factor."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from sonogauge.build.recipe import SamplingRule
from sonogauge.build.stages.splits import draw
from sonogauge.items import Item


def sample(
    items: Sequence[Item], rule_of: Callable[[str], SamplingRule], seed: int
) -> tuple[list[Item], dict[str, dict[str, int]]]:
    """Return the items kept, in their order, and per "task/dataset/split" what was asked, kept, and left out why.

    Each item draws a number from the seed and its id, u ** (1 / weight); the highest are kept, first within a group,
    then within the scenario. So an item's luck does not depend on the others, and no item is kept twice. Source:
    Efraimidis & Spirakis 2006, "Weighted random sampling with a reservoir", algorithm A.
    """
    cells: dict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for item in items:
        cells[item.task, item.dataset, item.split].append(item)
    kept: set[str] = set()
    counts: dict[str, dict[str, int]] = {}
    for (task, dataset, split), inside in sorted(cells.items()):
        rule = rule_of(task)
        order = sorted(inside, key=lambda item: (-luck(item, rule, seed), item.item_id))
        groups: Counter[str] = Counter()
        chosen, crowded, surplus = 0, 0, 0
        for item in order:
            if rule.per_group is not None and groups[item.group] >= rule.per_group:
                crowded += 1
            elif rule.per_scenario is not None and chosen >= rule.per_scenario:
                surplus += 1
            else:
                groups[item.group] += 1
                chosen += 1
                kept.add(item.item_id)
        counts[f"{task}/{dataset}/{split}"] = {
            "asked": len(inside),
            "kept": chosen,
            "over the number of a group": crowded,
            "over the number of the scenario": surplus,
        }
    return [item for item in items if item.item_id in kept], counts


def luck(item: Item, rule: SamplingRule, seed: int) -> float:
    """Return the number by which an item is ranked, in (0, 1)."""
    answers = item.reference.get("choices") or item.reference.get("places") or ()
    weight = max((rule.weights.get(answer, 1.0) for answer in answers), default=1.0)
    return float(draw(seed, "sample", item.item_id) ** (1.0 / weight)) if weight > 0 else -1.0
