"""Answers that change when nothing that matters does: the same question again, and the options in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.compare.ablations.base import Ablation, column, items_of, share, shown, table
from sonogauge.compare.sides import Outcome, Side, count
from sonogauge.hashes import canonical_json

FORMS: Final = ("choice", "multi_choice", "place")
NOTES: Final = (
    "changed = items whose answers are not all the same; a reply that cannot be read is an answer of its own, whatever "
    "its reason. agreement = share of pairs of replies to an item with the same answer.",
)


def repeats_ablation(ablation: Ablation) -> dict[str, Any]:
    """Tell how often answers change when the same question is put again (variant `repeat`, its epochs).

    Raises:
        BadInput: no run has repeats.
    """
    sides, notes = ablation.with_variant(lambda one: one == "repeat", "repeat")
    rows = _rows(ablation, {side.label: (side, ["repeat"]) for side in sides})
    return _tables("repeats", "Answers to the same question again", "epochs of the variant 'repeat'", rows, notes)


def rotations_ablation(ablation: Ablation) -> dict[str, Any]:
    """Tell how often answers change when the options are rotated (variants `circular=1`, … and the unvaried question).

    Raises:
        BadInput: no run has rotations.
    """
    sides, notes = ablation.with_variant(lambda one: one.startswith("circular="), "circular")
    turns = {
        side.label: (side, [one for one in side.variants if one == "" or one.startswith("circular=")]) for side in sides
    }
    definition = "the unvaried question and its rotations 'circular=K'; right always = right in every rotation"
    return _tables("rotations", "Answers to rotated options", definition, _rows(ablation, turns), notes)


def _rows(ablation: Ablation, sides: Mapping[str, tuple[Side, list[str]]]) -> list[dict[str, Any]]:
    ground = ablation.ground
    tasks = list(ablation.tasks) or [task for task, facts in ground.spec.tasks.items() if facts.form in FORMS]
    items = items_of(ground, tasks)
    rows = []
    for label, (side, variants) in sides.items():
        given: dict[str, list[Outcome]] = {}
        for variant in variants:
            for outcome in count(ground, side, variant).outcomes.values():
                if outcome.item_id in items and outcome.correct is not None:
                    given.setdefault(outcome.item_id, []).append(outcome)
        several = {item_id: own for item_id, own in given.items() if len(own) > 1}
        if not several:
            raise BadInput(
                "no item with two replies", file=side.source.path, fix="ask with --vary repeat=N or --vary circular"
            )
        for task in [one for one in tasks if any(items[item_id].task == one for item_id in several)]:
            own = {item_id: found for item_id, found in several.items() if items[item_id].task == task}
            rows.append({"model": label, "task": task, **_facts(ablation, own)})
    return rows


def _facts(ablation: Ablation, given: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    measures: dict[str, dict[tuple[str, int], float]] = {
        name: {} for name in ("changed", "agreement", "right", "always", "ever")
    }
    for item_id, outcomes in given.items():
        answers = [_answer(one) for one in outcomes]
        hits = [bool(one.correct) for one in outcomes]
        size = len(answers)
        same = sum(answers[i] == answers[j] for i in range(size) for j in range(i))
        values = {
            "changed": len(set(answers)) > 1,
            "agreement": same / (size * (size - 1) / 2),
            "right": sum(hits) / size,
            "always": all(hits),
            "ever": any(hits),
        }
        for name, value in values.items():
            measures[name][item_id, 0] = float(value)
    sizes = sorted({len(outcomes) for outcomes in given.values()})
    return {
        "n": len(given),
        "replies": f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}",
        **{name: shown(share(ablation.ground, values)) for name, values in measures.items()},
    }


def _answer(outcome: Outcome) -> str:
    if outcome.reason is not None or outcome.prediction is None:
        return ""
    return canonical_json({name: value for name, value in outcome.prediction.items() if value is not None})


def _tables(key: str, title: str, definition: str, rows: list[dict[str, Any]], notes: Sequence[str]) -> dict[str, Any]:
    columns = [
        column("model", "model"),
        column("task", "task"),
        column("replies", "replies an item"),
        column("n", "n", "count"),
        column("changed", "changed", "percent"),
        column("agreement", "agreement", "percent"),
        column("right", "accuracy", "percent"),
        column("always", "right always", "percent"),
        column("ever", "right ever", "percent"),
    ]
    return {"definition": definition, "tables": [table(key, title, columns, rows, definition + ".", *NOTES, *notes)]}
