"""Analysis 12: what is left of a score without the image, and which questions give themselves away.

loss = with - without; share kept = (without - chance) / (with - chance), the raw ratio without / with beside it. A
question is `text_solvable` when at least m of M models solve it without the image, the scored model left out; a model
solves it when its repeated and rotated runs hit it more often than guessing would (binomial tail at most `level`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.analyses.abilities import ability_of
from sonogauge.analyses.panel import Given, Panel, told, why_unjudged
from sonogauge.compare.ablations.base import column, table
from sonogauge.compare.ablations.image import fieller
from sonogauge.items import Item
from sonogauge.score.values import null
from sonogauge.stats.intervals import Estimate

BLIND: Final = ("no_image", "blank_image")
LEAST: Final = 2
LEVEL: Final = 0.05
DEFINITION: Final = (
    "Loss = with - without; share kept = (without - chance) / (with - chance); open answers count chance 0. Without: "
    "the same questions, prompts and options."
)


def loss(seen: float, unseen: float) -> float:
    """Return what the image adds.

    >>> round(loss(0.4904, 0.3478), 3)
    0.143
    """
    return seen - unseen


def raw_ratio(seen: float, unseen: float) -> float | None:
    """Return without / with; None where nothing was scored with the image.

    >>> round(raw_ratio(0.4904, 0.3478), 3)
    0.709
    """
    return unseen / seen if seen > 0 else None


def share_kept(seen: float, unseen: float, chance: float) -> float | None:
    """Return the share of the score above chance that is left without the image; None at or below chance.

    >>> round(share_kept(0.75, 0.5, 0.25), 3)
    0.5
    """
    return (unseen - chance) / (seen - chance) if seen > chance else None


def tail(hits: int, runs: int, chance: float) -> float:
    """Return the probability of at least that many hits by guessing.

    >>> tail(2, 2, 0.25)
    0.0625
    """
    return sum(comb(runs, k) * chance**k * (1 - chance) ** (runs - k) for k in range(hits, runs + 1))


def solved(scores: Sequence[float], chance: float, level: float = LEVEL) -> bool:
    """Tell whether runs without the image solve a question: full scores more often than guessing gives.

    Of a question with four options one run never suffices, of yes and no four runs do not.

    >>> solved([1.0], 0.25), solved([1.0, 1.0, 1.0], 0.25), solved([1.0] * 4, 0.5), solved([1.0] * 5, 0.5)
    (False, True, False, True)
    """
    hits = sum(score >= 1.0 for score in scores)
    return hits > 0 and tail(hits, len(scores), chance) <= level


def text_solvable(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    chances: Mapping[str, float],
    *,
    least: int = LEAST,
    leave_out: str | None = None,
    level: float = LEVEL,
) -> frozenset[str]:
    """Return the ids of the questions that at least `least` models solve without the image.

    Args:
        runs: model -> question -> scores of its runs without the image.
        chances: of each question, 0 for open ones.
        least: how many models must solve it.
        leave_out: the model that is being scored, which must not choose its own questions.
        level: largest probability that guessing does as well.

    Raises:
        BadInput: fewer other models than `least`.
    """
    others = [name for name in runs if name != leave_out]
    if least < 1 or len(others) < least:
        raise BadInput(
            f"{len(others)} other models without the image, {least} must solve a question",
            field="least",
            fix="run more models with --vary no_image",
        )
    counts: dict[str, int] = {}
    for name in others:
        for item_id, scores in runs[name].items():
            counts[item_id] = counts.get(item_id, 0) + solved(scores, chances.get(item_id, 0.0), level)
    return frozenset(item_id for item_id, count in counts.items() if count >= least)


def text_only(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the losses by ability, and every score with and without the questions that give themselves away.

    Raises:
        BadInput: no model has answers without the image.
    """
    blind = {label: found for label in panel.labels if (found := blind_runs(panel.answers[label]))}
    if not blind:
        raise BadInput("no answers without the image", field="variant", fix="run again with --vary no_image")
    tables = [_losses(panel, split) for split in panel.splits()]
    tables.append(_solvable(panel, blind, int(options.get("least") or LEAST)))
    return [one for one in tables if one["rows"]]


def is_blind(variant: str) -> bool:
    """Tell whether a variant withholds the image, alone or with its options rotated.

    >>> is_blind("no_image"), is_blind("no_image+circular=1"), is_blind("circular=1")
    (True, True, False)
    """
    return any(part in BLIND for part in variant.split("+"))


def blind_runs(given: Iterable[Given]) -> dict[str, list[float]]:
    """Return the scores of each question over all runs without the image."""
    found: dict[str, list[float]] = {}
    for one in given:
        # A rotation that an item does not have leaves a reply that is "missing"; that is no run.
        if is_blind(one.variant) and not one.rater_id and one.reason != "missing":
            found.setdefault(one.item.item_id, []).append(one.score)
    return found


def _losses(panel: Panel, split: str) -> dict[str, Any]:
    rows = []
    for label in panel.labels:
        for variant in BLIND:
            unseen = {
                (one.item.item_id, one.epoch): one
                for one in panel.answers[label]
                if one.variant == variant and one.item.split == split and not one.rater_id
            }
            ids = {item_id for item_id, _ in unseen}
            seen = [one for one in panel.plain(label) if one.item.item_id in ids]
            names = [*sorted({ability_of(one) for one in seen}), "all"] if seen else []
            for name in names:
                own = [one for one in seen if name in ("all", ability_of(one))]
                kept = {one.item.item_id for one in own}
                rest = [one for (item_id, _), one in sorted(unseen.items()) if item_id in kept]
                rows.append(_row(panel, label, variant, name, own, rest))
    columns = [
        *(column(name, name) for name in ("model", "condition", "ability")),
        column("n", "n", "count"),
        column("with", "with image", "percent"),
        column("without", "without", "percent"),
        column("loss", "loss", "percent"),
        column("chance", "chance", "percent"),
        column("kept", "share kept", "percent"),
        column("ratio", "without / with", "plain"),
    ]
    return table(f"text_only_{split}", f"Without the image, {split}", columns, rows, DEFINITION)


def _row(
    panel: Panel, label: str, variant: str, name: str, seen: Sequence[Given], unseen: Sequence[Given]
) -> dict[str, Any]:
    with_items, without_items = _per_item(seen), _per_item(unseen)
    with_ = panel.mean_of([(item, with_items[item.item_id]) for item in _items_of(seen)])
    without = panel.mean_of([(item, without_items[item.item_id]) for item in _items_of(seen)])
    lost = [(item, loss(with_items[item.item_id], without_items[item.item_id])) for item in _items_of(seen)]
    chance = sum(item.chance or 0.0 for item in _items_of(seen)) / len(with_items)
    row: dict[str, Any] = {"model": label, "condition": variant, "ability": name, "n": len(with_items)}
    if why := why_unjudged([*seen, *unseen]):
        nothing = told(null(why))
        return {**row, **dict.fromkeys(("with", "without", "loss", "kept"), nothing), "chance": chance, "ratio": None}
    assert with_.value is not None and without.value is not None
    return {
        **row,
        "with": told(with_),
        "without": told(without),
        "loss": told(panel.mean_of(lost, change=True)),
        "chance": chance,
        "kept": told(_kept(with_, without, chance)),
        "ratio": raw_ratio(with_.value, without.value),
    }


def _items_of(given: Sequence[Given]) -> list[Item]:
    return list({one.item.item_id: one.item for one in given}.values())


def _per_item(given: Sequence[Given]) -> dict[str, float]:
    """Return the mean score of each question over its repeats."""
    scores: dict[str, list[float]] = {}
    for one in given:
        scores.setdefault(one.item.item_id, []).append(one.score)
    return {item_id: sum(own) / len(own) for item_id, own in scores.items()}


def _kept(seen: Estimate, unseen: Estimate, chance: float) -> Estimate:
    assert seen.value is not None and unseen.value is not None
    if share_kept(seen.value, unseen.value, chance) is None or (seen.low is not None and seen.low <= chance):
        return Estimate(None, None, None, seen.groups, 0.0, False, "with the image not above chance")
    found = fieller(unseen, seen, chance)
    return found or Estimate(None, None, None, seen.groups, 0.0, False, "with the image not above chance")


def _solvable(panel: Panel, blind: Mapping[str, Mapping[str, Sequence[float]]], least: int) -> dict[str, Any]:
    chances = {item.item_id: item.chance or 0.0 for item in panel.items.values()}
    rows = []
    for label in panel.labels:
        try:
            flagged = text_solvable(blind, chances, least=least, leave_out=label)
        except BadInput as error:
            flagged, why = None, str(error)
        for split in panel.splits():
            whole = [one for one in panel.plain(label) if one.item.split == split]
            for name in [*sorted({ability_of(one) for one in whole}), "all"] if whole else []:
                own = [one for one in whole if name in ("all", ability_of(one))]
                row = {"model": label, "split": split, "ability": name, "n": len(own), "score": told(panel.mean(own))}
                if flagged is None:
                    rows.append({**row, "flagged": None, "kept_n": None, "without": told(null(why))})
                    continue
                rest = [one for one in own if one.item.item_id not in flagged]
                counts = {"flagged": len(own) - len(rest), "kept_n": len(rest)}
                rows.append({**row, **counts, "without": told(panel.mean(rest))})
    columns = [
        column("model", "model"),
        column("split", "split"),
        column("ability", "ability"),
        column("n", "n", "count"),
        column("score", "score", "percent"),
        column("flagged", "text_solvable", "count"),
        column("kept_n", "other questions", "count"),
        column("without", "score on the others", "percent"),
    ]
    note = (
        f"text_solvable: at least {least} other models solve it without the image, each more often over its runs than "
        f"guessing does (binomial tail at most {LEVEL:g}); the scored model is left out."
    )
    return table("text_solvable", "Scores without the questions that give themselves away", columns, rows, note)
