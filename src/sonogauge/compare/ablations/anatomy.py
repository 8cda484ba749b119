"""The anatomy in the prompt: the same questions with and without the anatomy's name."""

from __future__ import annotations

from typing import Any, Final

from sonogauge.compare.ablations.base import (
    ALL,
    HIT_COLUMNS,
    HIT_NOTES,
    Ablation,
    column,
    compare_hits,
    items_of,
    right,
    table,
)
from sonogauge.compare.sides import count

VARIANT: Final = "anatomy=off"


def anatomy_ablation(ablation: Ablation) -> dict[str, Any]:
    """Tell what naming the anatomy adds, by model and organ, on diagnosis (DD) or the tasks asked for.

    Raises:
        BadInput: no run has the variant `anatomy=off`.
    """
    ground = ablation.ground
    tasks = ablation.chosen_tasks("DD", ("choice", "multi_choice", "place"))
    items = items_of(ground, tasks)
    sides, notes = ablation.with_variant(lambda one: one == VARIANT, VARIANT)
    rows = []
    for side in sides:
        told, untold = count(ground, side, ""), count(ground, side, VARIANT)
        organs = sorted({items[key[0]].anatomy for key in untold.outcomes if key[0] in items})
        for organ in [*organs, *([ALL] if len(organs) > 1 else [])]:
            hits = [
                right(one, lambda o, organ=organ: o.item_id in items and organ in (ALL, items[o.item_id].anatomy))  # type: ignore[misc]
                for one in (told, untold)
            ]
            facts = compare_hits(ablation, *hits)
            if facts is not None:
                rows.append({"model": side.label, "organ": organ or "not named", **facts})
    columns = [column("model", "model"), column("organ", "organ"), *HIT_COLUMNS]
    title = f"Anatomy in the prompt, {', '.join(tasks)}"
    return {
        "definition": f"with = the question as it is, without = variant {VARIANT}; cases pooled over data sets",
        "tables": [table("anatomy", title, columns, rows, *HIT_NOTES, *notes)],
    }
