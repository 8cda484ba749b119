"""Analysis 11: physicians as models. Human answers are replies with a rater and a level, scored like any other.

Their mean has an interval over raters **and** items: each draw weights raters and groups of items independently
(Owen 2007, doi:10.1214/07-AOAS122, the pigeonhole bootstrap, which is conservative). The gap to the best model is on
the very questions that the raters answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.analyses.panel import FEW, Given, Panel, told, why_unjudged
from sonogauge.compare.ablations.base import column, table
from sonogauge.folders import Folder
from sonogauge.score.values import null
from sonogauge.stats.intervals import Estimate, t_quantile
from sonogauge.stats.resample import Resampler

Array = NDArray[np.float64]
NO_LEVEL: Final = "unstated"
PUBLISHED: Final = "published: 15 primary and 15 senior physicians on 1,499 val questions, .6144 and .7321; no spread"
_STREAM: Final = 0x7A7E


@dataclass(frozen=True)
class RaterItems:
    """Scores of raters: sums and counts by (rater, group of items), the strata of the groups."""

    raters: tuple[str, ...]
    strata: tuple[str, ...]
    groups: tuple[str, ...]
    sums: Array
    counts: Array

    @classmethod
    def of(cls, given: Sequence[Given]) -> RaterItems:
        """Sum scores by rater and group."""
        raters = sorted({one.rater_id for one in given})
        keys = sorted({(one.item.source, one.item.group) for one in given})
        row, place = ({name: at for at, name in enumerate(names)} for names in (raters, keys))
        sums, counts = np.zeros((2, len(raters), len(keys)))
        for one in given:
            at = row[one.rater_id], place[one.item.source, one.item.group]
            sums[at] += one.score
            counts[at] += 1.0
        return cls(tuple(raters), tuple(key[0] for key in keys), tuple(key[1] for key in keys), sums, counts)

    @property
    def rater_means(self) -> Array:
        """Mean score of each rater."""
        means: Array = self.sums.sum(axis=1) / self.counts.sum(axis=1)
        return means


def two_way(
    scores: RaterItems, resampler: Resampler, seed: int, model: tuple[Array, Array] | None = None
) -> tuple[Estimate, Array | None]:
    """Estimate the mean over raters and items, or its gap to a model, with the draws.

    resampler: of the groups of items, shared with the models. model: [sums, counts] of a model per group of `scores`,
    whose mean is taken off in every draw, under the same weights of items.
    Weights of raters: R - 1 of R with replacement times R/(R - 1), as those of groups. Interval: t with the fewer
    degrees of freedom of raters and groups. One rater: the spread between raters is unknown, so no interval.
    """
    value = float(scores.sums.sum() / scores.counts.sum())
    if model is not None:
        value -= float(model[0].sum() / model[1].sum())
    raters, groups = scores.counts.shape
    if raters < 2 or groups < 2:
        why = "one rater" if raters < 2 else "one group of items"
        return Estimate(value, None, None, groups, 0.0, False, f"{why}: no interval over raters and items"), None
    items = _item_weights(scores, resampler)
    random = np.random.default_rng([_STREAM, seed, raters])
    drawn = random.integers(raters, size=(resampler.draws, raters - 1))
    weights = np.zeros((resampler.draws, raters))
    np.add.at(weights, (np.arange(resampler.draws)[:, None], drawn), raters / (raters - 1))
    total = np.einsum("dr,rg,dg->d", weights, scores.sums, items, optimize=True)
    count = np.einsum("dr,rg,dg->d", weights, scores.counts, items, optimize=True)
    usable = count > 0
    draws = np.divide(total, count, out=np.full_like(total, np.nan), where=usable)
    if model is not None:
        seen, n = items @ model[0], items @ model[1]
        draws -= np.divide(seen, n, out=np.full_like(seen, np.nan), where=n > 0)
    df = float(min(raters - 1, groups - len(set(scores.strata))) or 1)
    half = t_quantile(max(df, 1.0)) * float(np.nanstd(draws))
    method = "raters and items resampled, t"
    reliable = groups >= 20 and raters >= 10
    found = Estimate(value, value - half, value + half, groups, df, reliable, None, draws, method)
    return found.within(0.0 if model is None else -1.0, 1.0), draws


def _item_weights(scores: RaterItems, resampler: Resampler) -> Array:
    """Return the weight of each group of items in each draw, (draws, groups)."""
    weights = np.zeros((resampler.draws, len(scores.groups)))
    for stratum in dict.fromkeys(scores.strata):
        columns = [at for at, name in enumerate(scores.strata) if name == stratum]
        units = resampler.units(stratum, [scores.groups[at] for at in columns])
        weights[:, columns] = resampler.weights(stratum)[:, units]
    return weights


def read_levels(path: Path) -> dict[str, str]:
    """Return the level of each rater from a file of replies, a run folder or a file of raters (JSON lines).

    Raises:
        BadInput: no such file, a line that is no object, a rater with two levels.
    """
    rows: Iterable[Mapping[str, Any]]
    if path.is_dir():
        rows = Folder(path, "run").rows("replies", ["rater_id", "level"])
    elif path.is_file():
        try:
            rows = [json.loads(line) for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
        except ValueError as error:
            raise BadInput(f"not JSON lines ({error})", file=path) from error
    else:
        raise BadInput("no such file of raters", file=path, fix="name the replies with --raters")
    levels: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise BadInput("not a JSON object", file=path, row=number)
        rater, level = str(row.get("rater_id") or ""), str(row.get("level") or "")
        if rater and level and levels.setdefault(rater, level) != level:
            raise BadInput(f"rater '{rater}' is {levels[rater]} and {level}", file=path, row=number, field="level")
    return levels


def physicians(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the human rows: levels, raters, gaps to the best model on the same questions.

    options: `raters`, a file that says who is of which level, else the replies that were scored.

    Raises:
        BadInput: no human answers.
    """
    humans = [one for given in panel.answers.values() for one in given if one.rater_id and not one.variant]
    if not humans:
        raise BadInput("no human answers: no reply has a rater_id", fix="score replies with rater_id and level")
    levels = _levels(panel, options.get("raters"))
    annotators = frozenset((panel.bench.manifest.counts.get("annotators") or {}).get("names") or ())
    by_split: dict[tuple[str, str], list[Given]] = {}
    for one in humans:
        by_split.setdefault((one.item.split, levels.get(one.rater_id, NO_LEVEL)), []).append(one)
    order = sorted(by_split, key=lambda key: (key[0] != "val", key))
    rows, gaps = [], []
    for split, level in order:
        own = RaterItems.of(by_split[split, level])
        why = why_unjudged(by_split[split, level])
        estimate = null(why) if why else two_way(own, panel.resampler, panel.seed)[0]
        rows.append(_level_row(split, level, own, estimate, annotators))
        gaps.append(_gap_row(panel, split, level, by_split[split, level], own))
    return [_level_table(rows), _gap_table(gaps), _rater_table(by_split, order, annotators)]


def _levels(panel: Panel, file: Path | str | None) -> dict[str, str]:
    if file is not None:
        return read_levels(Path(file))
    levels: dict[str, str] = {}
    for manifest in panel.manifests.values():
        source = manifest.input("replies")
        if source is not None and Path(source.path).exists():
            levels |= read_levels(Path(source.path))
    return levels


def _level_row(
    split: str, level: str, own: RaterItems, estimate: Estimate, annotators: frozenset[str]
) -> dict[str, Any]:
    means, counts = own.rater_means, own.counts.sum(axis=1)
    return {
        "split": split,
        "level": level,
        "raters": len(own.raters),
        "questions": f"{counts.mean():.1f} ({counts.min():.0f}-{counts.max():.0f})",
        "score": _shown(estimate),
        "spread": float(np.std(means, ddof=1)) if len(means) > 1 else None,
        "lowest": float(means.min()),
        "highest": float(means.max()),
        "overlap": len(annotators.intersection(own.raters)),
    }


def _level_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = [
        column("split", "split"),
        column("level", "level"),
        column("raters", "raters", "count"),
        column("questions", "questions per rater"),
        column("score", "score", "percent"),
        column("spread", "SD between raters", "percent"),
        column("lowest", "lowest rater", "percent"),
        column("highest", "highest rater", "percent"),
        column("overlap", "who annotated too", "count"),
    ]
    notes = ["Intervals over raters and items.", f"Beside it, {PUBLISHED}."]
    if any(row["overlap"] for row in rows):
        notes.insert(0, "FLAGGED: raters who annotated the benchmark answered it too; their scores are no yardstick.")
    return table("physicians", "Physicians by level", columns, rows, *notes)


def _gap_row(panel: Panel, split: str, level: str, given: Sequence[Given], own: RaterItems) -> dict[str, Any]:
    """Compare with the model that does best on the very questions these raters answered."""
    ids = {one.item.item_id for one in given}
    best: tuple[float, str] | None = None
    for label in panel.labels:
        shared = [one for one in panel.plain(label) if one.item.item_id in ids]
        if why_unjudged(shared) is None and {one.item.item_id for one in shared} == ids:
            score = sum(one.score for one in shared) / len(shared)
            best = max(best, (score, label)) if best else (score, label)
    row: dict[str, Any] = {"split": split, "level": level, "n": len(ids), "model": "", "model_score": None}
    if best is None:
        why = f"no model answered all {len(ids)} {split} questions of these raters"
        return {**row, "gap": told(null(why))}
    if lacking := why_unjudged(given):
        return {**row, "gap": told(null(lacking))}
    label = best[1]
    place = {key: at for at, key in enumerate(zip(own.strata, own.groups, strict=True))}
    sums, counts = np.zeros((2, len(own.groups)))
    # A question weighs as often as raters answered it, so that both sides speak of the same mix.
    asked: dict[str, int] = {}
    for one in given:
        asked[one.item.item_id] = asked.get(one.item.item_id, 0) + 1
    for one in panel.plain(label):
        if (weight := asked.get(one.item.item_id)) is not None:
            at = place[one.item.source, one.item.group]
            sums[at] += weight * one.score
            counts[at] += weight
    gap, _ = two_way(own, panel.resampler, panel.seed, (sums, counts))
    return {**row, "model": label, "model_score": float(sums.sum() / counts.sum()), "gap": _shown(gap)}


def _shown(one: Estimate) -> dict[str, Any]:
    found = told(one)
    if found["why_null"] == FEW:
        found["why_null"] = "fewer than 20 groups of items or 10 raters: unreliable"
    return found


def _gap_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = [
        column("split", "split"),
        column("level", "level"),
        column("n", "questions", "count"),
        column("model", "best model on them"),
        column("model_score", "its score", "percent"),
        column("gap", "physicians - model", "percent"),
    ]
    note = "The best model is the one with the highest score on these questions; choosing it favours the models."
    return table("gaps", "Gap to the best model on the same questions", columns, rows, note)


def _rater_table(
    by_split: Mapping[tuple[str, str], Sequence[Given]],
    order: Sequence[tuple[str, str]],
    annotators: frozenset[str],
) -> dict[str, Any]:
    rows = []
    for split, level in order:
        own = RaterItems.of(by_split[split, level])
        for rater, mean, count in zip(own.raters, own.rater_means, own.counts.sum(axis=1), strict=True):
            flag = "annotated it" if rater in annotators else ""
            rows.append(
                {"split": split, "level": level, "rater": rater, "n": int(count), "score": float(mean), "flag": flag}
            )
    columns = [
        column("split", "split"),
        column("level", "level"),
        column("rater", "rater"),
        column("n", "questions", "count"),
        column("score", "score", "percent"),
        column("flag", "flag"),
    ]
    return table("raters", "Raters", columns, rows)
