"""Do answers hold when nothing that matters changes? From the variants of a run (`--vary`), for any options.

Each row compares a variant with the unvaried question on the items that have both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.analyses.formulas import random_exact
from sonogauge.analyses.study import Record, Study, paired
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.stats.intervals import difference

KINDS: Final = "circular, shuffle, no_image, prompt=VERSION, repeat=N or perturb=NAME:LEVEL"
# A smaller number means more of the change for these; the unchanged image is at this level.
_FALLING: Final = frozenset({"jpeg"})


def robustness(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return circular consistency, variants against the unvaried question, repeats, and drop per step of perturbations.

    Raises:
        BadInput: the run has no variant.
    """
    tables = [
        *_circular(study),
        *_variants(study),
        *_repeats(study),
        *_perturbed(study),
    ]
    if not tables:
        raise BadInput("no reply in any variant", field="variant", fix=f"run again with --vary {KINDS}")
    return tables


def _circular(study: Study) -> list[dict[str, Any]]:
    turns = rotations(study)
    rows = []
    for task in study.tasks:
        whole = [own for own in turns if own[0].item.task == task]
        if not whole:
            continue
        first = [own[0] for own in whole]
        rows.append(
            {
                "task": task,
                "n": len(whole),
                "plain": shown(study.mean(first, [float(one.right) for one in first])),
                "mean": shown(study.mean(first, [_share(own) for own in whole])),
                "always": shown(study.mean(first, [float(all(one.right for one in own)) for own in whole])),
                "same": shown(study.mean(first, [float(same(own)) for own in whole])),
                "place": shown(study.mean(first, [float(same_place(own)) for own in whole])),
            }
        )
    if not rows:
        return []
    columns = [
        column("task", "task"),
        column("n", "n", "count"),
        column("plain", "unvaried", "percent"),
        column("mean", "mean over rotations", "percent"),
        column("always", "right in all rotations", "percent"),
        column("same", "same option in all", "percent"),
        column("place", "same letter in all", "percent"),
    ]
    note = "The unvaried question and all rotations of its options, over the questions that have every rotation."
    return [table("circular", f"Circular consistency, {study.label}", columns, rows, note)]


def rotations(study: Study) -> list[list[Record]]:
    """Return for each question that has all rotations its records, the unvaried one first."""
    found: dict[str, dict[int, Record]] = {}
    for variant, records in study.records.items():
        kind, _, turn = variant.partition("=")
        if variant == "" or kind == "circular":
            for one in records:
                if one.epoch == 0:
                    found.setdefault(one.item.item_id, {})[int(turn or 0)] = one
    return [
        [own[turn] for turn in sorted(own)]
        for own in found.values()
        if len(own) > 1 and set(own) == set(range(len(next(iter(own.values())).item.answer.options)))
    ]


def _share(records: Sequence[Record]) -> float:
    return sum(one.right for one in records) / len(records)


def same(records: Iterable[Record]) -> bool:
    """Tell whether all name the same option; no answer is one of its own."""
    return len({one.choice for one in records}) == 1


def same_place(records: Sequence[Record]) -> bool:
    """Tell whether all name the option at the same place: the letter answers, not the image."""
    places = {one.shown.index(one.choice) if one.choice is not None else -1 for one in records}
    return len(places) == 1 and -1 not in places


def _variants(study: Study) -> list[dict[str, Any]]:
    rows = []
    for variant in study.records:
        kind = variant.partition("=")[0]
        if kind in ("", "repeat", "perturb"):
            continue
        for task in study.tasks:
            pairs = list(paired(study.of("", task), study.of(variant, task))) if "" in study.records else []
            if pairs:
                rows.append({"variant": variant, "task": task, **against(study, pairs)})
    if not rows:
        return []
    columns = [
        column("variant", "variant"),
        column("task", "task"),
        column("n", "n", "count"),
        column("plain", "unvaried", "percent"),
        column("varied", "varied", "percent"),
        column("difference", "varied - unvaried", "percent"),
        column("changed", "answers changed", "percent"),
        column("chance", "random, exact", "percent"),
    ]
    note = "On the questions that have both. no_image and blank_image should fall to the random row."
    return [table("variants", f"Varied questions, {study.label}", columns, rows, note)]


def against(study: Study, pairs: Sequence[tuple[Record, Record]]) -> dict[str, Any]:
    """Return accuracy of the unvaried and the varied questions, their difference and the share of changed answers."""
    first = [one for one, _ in pairs]
    plain = study.mean(first, [float(one.right) for one in first])
    varied = study.mean(first, [float(other.right) for _, other in pairs])
    return {
        "n": len(pairs),
        "plain": shown(plain),
        "varied": shown(varied),
        "difference": shown(difference(varied, plain, names=("varied", "unvaried"))),
        "changed": shown(study.mean(first, [float(one.choice != other.choice) for one, other in pairs])),
        "chance": random_exact([len(one.item.answer.options) for one in first])[0],
    }


def _repeats(study: Study) -> list[dict[str, Any]]:
    rows = []
    for task in study.tasks:
        own: dict[str, list[Record]] = {}
        for one in study.records.get("repeat", ()):
            if one.item.task == task:
                own.setdefault(one.item.item_id, []).append(one)
        several = [records for records in own.values() if len(records) > 1]
        if not several:
            continue
        first = [records[0] for records in several]
        epochs = sorted({one.epoch for records in several for one in records})
        by_run = [[one.right for records in several for one in records if one.epoch == epoch] for epoch in epochs]
        accuracies = [sum(right) / len(right) for right in by_run]
        rows.append(
            {
                "task": task,
                "n": len(several),
                "runs": len(epochs),
                "mean": shown(study.mean(first, [_share(records) for records in several])),
                "low": min(accuracies),
                "high": max(accuracies),
                "changed": shown(study.mean(first, [float(not same(records)) for records in several])),
            }
        )
    if not rows:
        return []
    columns = [
        column("task", "task"),
        column("n", "n", "count"),
        column("runs", "runs", "count"),
        column("mean", "mean accuracy", "percent"),
        column("low", "lowest run", "percent"),
        column("high", "highest run", "percent"),
        column("changed", "answers changed", "percent"),
    ]
    return [table("repeats", f"The same question again, {study.label}", columns, rows)]


def steps(variants: Iterable[str]) -> dict[str, list[tuple[float, str]]]:
    """Return by perturbation its (level, variant) from the weakest change to the strongest.

    A perturbation of both signs (gain) makes two ladders. Raises BadInput for a level that is no number.

    >>> steps(["perturb=jpeg:10", "perturb=jpeg:50", "perturb=gain:-6", "perturb=gain:6"])["jpeg"]
    [(50.0, 'perturb=jpeg:50'), (10.0, 'perturb=jpeg:10')]
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for variant in variants:
        kind, _, value = variant.partition("=")
        if kind == "perturb":
            name, _, text = value.partition(":")
            try:
                level = float(text)
            except ValueError as error:
                raise BadInput(f"no level in '{variant}'", field="variant", fix="write perturb=NAME:LEVEL") from error
            found.setdefault(name + (" -" if level < 0 else ""), []).append((level, variant))
    return {
        name: sorted(own, key=lambda one: -one[0] if name in _FALLING else abs(one[0]))
        for name, own in sorted(found.items())
    }


def _perturbed(study: Study) -> list[dict[str, Any]]:
    rows = []
    ladders = steps(study.records) if "" in study.records else {}
    for name, ladder in ladders.items():
        for task in study.tasks:
            before: list[Record] = study.of("", task)
            start = before
            for level, variant in ladder:
                after = study.of(variant, task)
                pairs, whole = list(paired(before, after)), list(paired(start, after))
                if not pairs or not whole:
                    continue
                step = against(study, pairs)
                total = against(study, whole)
                rows.append(
                    {
                        "perturbation": name.removesuffix(" -"),
                        "level": f"{level:g}",
                        "task": task,
                        "n": len(whole),
                        "varied": total["varied"],
                        "step": step["difference"],
                        "total": total["difference"],
                        "changed": total["changed"],
                    }
                )
                before = after
    if not rows:
        return []
    columns = [
        column("perturbation", "perturbation"),
        column("level", "level"),
        column("task", "task"),
        column("n", "n", "count"),
        column("varied", "accuracy", "percent"),
        column("step", "change in this step", "percent"),
        column("total", "change from the unvaried", "percent"),
        column("changed", "answers changed", "percent"),
    ]
    note = "Levels from the weakest change to the strongest; the first step starts at the unvaried image."
    return [table("perturbations", f"Perturbed images, {study.label}", columns, rows, note)]
