"""How well replies keep to the instruction: exact options, readable ones, and what the rest are."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sonogauge.answers.normalise import fold
from sonogauge.answers.variants import answer_of
from sonogauge.compare.ablations.base import Ablation, column, items_of, share, shown, table
from sonogauge.compare.sides import Side, count
from sonogauge.items import Item
from sonogauge.metrics.base import Array
from sonogauge.stats.intervals import combine

DEFINITION: Final = (
    "exact = the whole reply is one offered option, or its letter where letters are shown, after normalisation "
    "(markup, thinking, letter case, outer punctuation removed); extractable = the strict parser reads one option"
)
MACRO: Final = "macro over data sets"
CASES: Final = "all cases"
# Reasons of a failed parse, by what the table calls them.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "refusal": ("refusal_insufficient", "refusal_policy"),
    "empty": ("empty",),
    "ambiguous": ("ambiguous",),
    "other": ("none", "negated", "unit", "range", "format", "size"),
    "error": ("error", "truncated", "missing"),
}


def instruction_rates(ablation: Ablation) -> dict[str, Any]:
    """Tell, by model and data set, how many replies keep to the instruction and how the others fail."""
    tasks = ablation.chosen_tasks("DD", ("choice",))
    items = items_of(ablation.ground, tasks)
    rows = []
    for side in ablation.sides:
        rows += _rows(ablation, side, items)
    names = {
        "refusal": "refusal",
        "empty": "empty",
        "ambiguous": "ambiguous",
        "other": "unreadable",
        "error": "no reply",
    }
    columns = [
        column("model", "model"),
        column("dataset", "data set"),
        column("n", "n", "count"),
        column("exact", "exact", "percent"),
        column("extractable", "extractable", "percent"),
        *(column(key, title, "percent") for key, title in names.items()),
    ]
    title = f"Instruction following, {', '.join(tasks)}"
    notes = [
        DEFINITION + ".",
        "no reply = request failed, reply cut off or missing. The paper's own definition is not known.",
    ]
    return {"definition": DEFINITION, "tables": [table("instruction", title, columns, rows, *notes)]}


def is_exact(text: str, item: Item, variant: str = "") -> bool:
    """Return whether a reply is an offered option and nothing else, after normalisation.

    A reply that writes the letter before its option ("A. benign") is exact where letters are shown.
    """
    spec = answer_of(item.answer, item.item_id, variant)
    said = fold(text)
    offered = {fold(one) for one in (*spec.options, *spec.letters)}
    offered |= {fold(f"{letter}. {option}") for letter, option in zip(spec.letters, spec.options, strict=False)}
    return bool(said) and said in offered


def _rows(ablation: Ablation, side: Side, items: Mapping[str, Item]) -> list[dict[str, Any]]:
    ground = ablation.ground
    counted = count(ground, side, "")
    texts = {
        (one.item_id, one.epoch): one.text or ""
        for one in side.source.replies
        if one.variant == "" and not one.rater_id and one.status == "ok"
    }
    exact: dict[str, dict[tuple[str, int], float]] = {}
    readable: dict[str, dict[tuple[str, int], float]] = {}
    reasons: dict[str, Tally[str]] = {}
    for key, one in counted.outcomes.items():
        if one.item_id not in items:
            continue
        place = f"{one.task}/{one.dataset}"
        kept = is_exact(texts.get(key, ""), items[one.item_id])
        exact.setdefault(place, {})[key] = float(kept)
        readable.setdefault(place, {})[key] = float(one.reason is None)
        reasons.setdefault(place, Tally())[one.reason or ""] += 1
    places = sorted(exact)
    rows = []
    for place in places:
        values = {"exact": share(ground, exact[place]), "extractable": share(ground, readable[place])}
        rows.append(_row(side.label, place, reasons[place], {name: shown(one) for name, one in values.items()}))
    if len(places) > 1:
        tables = {"exact": exact, "extractable": readable}
        macro = {}
        for name, found in tables.items():
            parts = [share(ground, found[place]) for place in places]
            macro[name] = shown(combine(parts, _mean, names=places, proportion=True))
        rows.append(_row(side.label, MACRO, None, macro, [reasons[place] for place in places]))
        every = {
            name: shown(share(ground, {key: value for own in found.values() for key, value in own.items()}))
            for name, found in tables.items()
        }
        rows.append(_row(side.label, CASES, sum(reasons.values(), Tally()), every))
    return rows


def _row(
    label: str, place: str, reasons: Tally[str] | None, values: Mapping[str, Any], parts: Sequence[Tally[str]] = ()
) -> dict[str, Any]:
    tallies = [reasons] if reasons is not None else list(parts)
    shares = {
        kind: float(np.mean([sum(one[reason] for reason in own) / one.total() for one in tallies]))
        for kind, own in KINDS.items()
    }
    return {"model": label, "dataset": place, "n": sum(one.total() for one in tallies), **values, **shares}


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=-1))
