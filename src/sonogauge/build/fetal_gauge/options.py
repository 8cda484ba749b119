"""The options of a question: the right label and distractors from a declared pool, in a declared order."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from sonogauge.benchmarks.fetal_gauge.parameters import Parameters
from sonogauge.build.fetal_gauge.drafts import overlap
from sonogauge.build.stages.splits import draw


class Pools:
    """The labels that occur, by task and source."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, task: str, source: str, label: str) -> None:
        """Note a label."""
        self._labels[task, source].add(label)

    def of(self, task: str | None, source: str | None) -> list[str]:
        """Return the labels of a task and source, sorted; None stands for all."""
        return sorted(
            {
                label
                for (one, other), labels in self._labels.items()
                if task in (None, one) and source in (None, other)
                for label in labels
            }
        )


def pick_options(
    question_id: str, task: str, source: str, right: str, pools: Pools, parameters: Parameters
) -> tuple[tuple[str, ...], str]:
    """Return the options in the order shown and the name of the pool they were drawn from.

    No two options overlap. A pool too small for `n_options` is filled up from that of the task ("source+task"), and
    then there are fewer options. Draw and order depend on question id and random_state alone.
    """
    dice = random.Random(int(draw(parameters.random_state, "options", question_id) * 2**53))
    wanted = parameters.n_options[task]
    chosen, used = [right], []
    for name, own_task, own_source in _widths(task, source, parameters):
        # "All labels" means all of the first pool that offers a choice at all.
        if len(chosen) >= wanted > 0 or (wanted == 0 and len(chosen) > 1):
            break
        before = len(chosen)
        candidates = pools.of(own_task, own_source)
        dice.shuffle(candidates)
        for label in candidates:
            if (wanted == 0 or len(chosen) < wanted) and not _clashes(label, chosen, parameters.overlaps):
                chosen.append(label)
        if len(chosen) > before:
            used.append(name)
    chosen.sort()
    if parameters.shuffle != "fixed":
        dice.shuffle(chosen)
    return tuple(chosen), "+".join(used)


def _clashes(label: str, chosen: Sequence[str], overlaps: Sequence[Sequence[str]]) -> bool:
    return any(overlap(label, one, overlaps) for one in chosen)


def has_choice(task: str, source: str, right: str, pools: Pools, parameters: Parameters) -> bool:
    """Tell whether a label has a distractor at all."""
    return any(
        not _clashes(label, [right], parameters.overlaps)
        for _, own_task, own_source in _widths(task, source, parameters)
        for label in pools.of(own_task, own_source)
    )


def _widths(task: str, source: str, parameters: Parameters) -> list[tuple[str, str | None, str | None]]:
    """Return name, task and source of the pools to draw from, in their order; None stands for all."""
    wide: dict[str, list[tuple[str, str | None, str | None]]] = {
        "source": [("source", task, source), ("task", task, None)],
        "task": [("task", task, None)],
        "global": [("global", None, None)],
    }
    return wide[parameters.distractor_pool]
