"""How far judges agree with physicians, beside how far physicians agree with each other, and the score this corrects.

The judged answers that physicians checked are split by patient into a development part, on which a prompt may be tuned,
and a test part, which alone says how good the judge is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.metrics.base import Array, Interval, Metric, complex_step, safe_ratio
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.judging.leniency import LENIENCIES
from sonogauge.score.judging.verdict import LEVELS
from sonogauge.stats.agreement import Agreement, agreement, disagreement_weights
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler

QUESTION: Final = "verdict"  # of the table of votes
PANEL: Final = "median"
PARTS: Final = ("all", "development", "test")
_ITEM_COLUMNS: Final = ["item_id", "task", "dataset", "source", "group", "split", "images", "answer", "meta"]

Weights = Literal["linear", "quadratic"]
Level = int  # place in LEVELS


@dataclass(frozen=True)
class PartAgreement:
    """One judge against the physicians, on one part of the checked answers.

    attribute: the one asked, empty = all. confusion: pairs (3, 3), rows = judge, columns = physician. items: checked by
    a physician and judged. off_level: items left out since the median of an even number of judges lies between levels.
    raw_agreement: share of pairs that agree. kappa: weighted, pairs of all physicians in one table. difference: judge
    minus physician. false_lenient: share of pairs in which the judge gives more, where the physician gave less than 1.
    ceiling: the physicians among themselves on the same items, None where no item has two.
    """

    judge: str
    leniency: str
    part: str
    attribute: str
    items: int
    off_level: int
    confusion: list[list[int]]
    raw_agreement: Estimate
    kappa: Estimate
    difference: Estimate
    false_lenient: Estimate
    ceiling: Agreement | None


@dataclass(frozen=True)
class Corrected:
    """The mean verdict of a judge corrected by physicians.

    judged: mean verdict as the judge gave it. checked: answers behind the correction. part: of the checked answers.
    """

    judge: str
    leniency: str
    part: str
    judged: float
    checked: int
    estimate: Estimate


@dataclass(frozen=True)
class JudgeAgreement:
    """All tables, and how they came about."""

    agreements: list[PartAgreement]
    corrected: list[Corrected]
    signature: str


@dataclass(frozen=True)
class _Answer:
    """A judged reply: verdict of each judge by leniency, levels given by physicians."""

    item: Item
    by_rule: bool
    verdicts: Mapping[tuple[str, str], float]
    failed: frozenset[str]
    levels: tuple[tuple[str, Level], ...]
    part: str

    @property
    def attribute(self) -> str:
        return self.item.meta.get("attribute_asked", "")


def judge_agreement(
    verdicts: Path | str,
    votes: Path | str | Iterable[Mapping[str, Any]],
    *,
    bench: Path | str | None = None,
    weights: Weights = "quadratic",
    development: float = 0.5,
    draws: int = 2000,
    seed: int = 0,
) -> JudgeAgreement:
    """Compare the stored verdicts of judges with the votes of physicians on the same answers.

    Args:
        verdicts: folder of verdicts.
        votes: folder of votes, or its rows; those on the question "verdict" count, "0", "0.5" or "1".
        bench: benchmark folder, if it moved.
        weights: of kappa.
        development: share of patients in the development part.
        draws: of the bootstrap.
        seed: of the bootstrap and of the split into parts.

    Raises:
        BadInput: no vote on a judged answer, a vote that is no verdict, or votes on another run.
    """
    if not 0.0 <= development < 1.0:
        raise BadInput(f"{development} is no share", field="development", fix="use a number from 0 to below 1")
    folder = Folder(verdicts, "verdicts")
    answers = _answers(folder, _levels(votes, folder), _items(folder, bench), development, seed)
    if not any(one.levels for one in answers):
        raise BadInput("no vote on an answer that was judged", field="votes", fix="export with --for verdict")
    judges = [one["name"] for one in folder.manifest.parameters["judges"]]
    names = [*judges, *([PANEL] if len(judges) > 1 else [])]
    attributes = sorted({one.attribute for one in answers if one.levels} | {""})
    agreements, corrected = [], []
    for name in names:
        for leniency in LENIENCIES:
            for part in PARTS:
                inside = [one for one in answers if part in ("all", one.part)]
                for attribute in attributes:
                    chosen = [one for one in inside if attribute in ("", one.attribute)]
                    found = _agreement(name, leniency, part, attribute, chosen, weights, draws, seed)
                    if found is not None:
                        agreements.append(found)
            corrected += [_corrected(name, leniency, part, answers, draws, seed) for part in ("all", "test")]
    parts = [f"weights:{weights}", "pairs:pooled", f"development:{development:g}", f"draws:{draws}", f"seed:{seed}"]
    prompt = folder.manifest.parameters["prompt_hash"][:12]
    return JudgeAgreement(agreements, corrected, "|".join(["judge_agreement", f"prompt:{prompt}", *parts]))


def _items(folder: Folder, bench: Path | str | None) -> dict[str, Item]:
    given = folder.manifest.input("benchmark")
    if given is None:
        raise BadInput("its manifest names no benchmark", file=folder.path, fix="judge again")
    found = Folder(bench if bench is not None else given.path, "benchmark")
    if found.manifest.hash != given.hash:
        raise BadInput(f"verdicts on another benchmark than {found.path}", file=folder.path, fix="name it with --bench")
    return {row["item_id"]: Item.from_row(row) for row in found.rows("items", _ITEM_COLUMNS)}


def _levels(votes: Path | str | Iterable[Mapping[str, Any]], verdicts: Folder) -> dict[str, dict[str, Level]]:
    rows: Iterable[Mapping[str, Any]]
    if isinstance(votes, (str, Path)):
        folder = Folder(votes, "votes")
        about, judged = folder.manifest.input("replies"), verdicts.manifest.input("replies")
        if about is not None and judged is not None and about.hash != judged.hash:
            raise BadInput(
                "votes on the replies of another run", file=folder.path, fix="judge the run that was checked"
            )
        rows = folder.rows("votes")
    else:
        rows = votes
    found: dict[str, dict[str, Level]] = {}
    words = {f"{level:g}": place for place, level in enumerate(LEVELS)}
    for row in rows:
        if row["question"] != QUESTION or row["vote"] is None:
            continue
        if row["vote"] not in words:
            raise BadInput(
                f"{row['reviewer']} gave '{row['vote']}' to {row['item_id']}", field="vote", fix="use 0, 0.5 or 1"
            )
        own = found.setdefault(row["item_id"], {})
        if row["reviewer"] in own:
            raise BadInput(f"two verdicts of {row['reviewer']} on {row['item_id']}", field="reviewer")
        own[row["reviewer"]] = words[row["vote"]]
    return found


def _answers(
    folder: Folder,
    levels: Mapping[str, Mapping[str, Level]],
    items: Mapping[str, Item],
    development: float,
    seed: int,
) -> list[_Answer]:
    by_item: dict[str, list[dict[str, Any]]] = {}
    for row in folder.rows("verdicts"):
        # Physicians see the plain reply to an item; repeats and variants are not shown to them.
        if not row["variant"] and not row["rater_id"] and row["epoch"] == 0:
            by_item.setdefault(row["item_id"], []).append(row)
    answers = []
    for item_id, rows in sorted(by_item.items()):
        item = items[item_id]
        given = {(row["judge"], row["leniency"]): float(row["verdict"]) for row in rows}
        failed = frozenset(row["judge"] for row in rows if row["status"] == "judge_failed")
        for leniency in LENIENCIES:
            own = [value for (judge, word), value in given.items() if word == leniency and judge not in failed]
            given[PANEL, leniency] = float(median(own)) if own else 0.0
        judges = {row["judge"] for row in rows}
        answers.append(
            _Answer(
                item,
                all(row["status"] in ("rule", "no_answer") for row in rows),
                given,
                failed | (frozenset((PANEL,)) if judges <= failed else frozenset()),
                tuple(sorted(levels.get(item_id, {}).items())),
                "development" if _draw(seed, item) < development else "test",
            )
        )
    return answers


def _draw(seed: int, item: Item) -> float:
    digest = hashlib.sha256(f"{seed}|{item.source}|{item.group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def _agreement(
    name: str,
    leniency: str,
    part: str,
    attribute: str,
    answers: Sequence[_Answer],
    weights: Weights,
    draws: int,
    seed: int,
) -> PartAgreement | None:
    checked = [one for one in answers if one.levels and not one.by_rule and name not in one.failed]
    on_level = [one for one in checked if one.verdicts[name, leniency] in LEVELS]
    if not on_level:
        return None
    size = len(LEVELS)
    tables = np.zeros((len(on_level), size, size))
    for place, one in enumerate(on_level):
        for _, level in one.levels:
            tables[place, LEVELS.index(one.verdicts[name, leniency]), level] += 1.0
    flat = tables.reshape(len(on_level), -1)
    apart = disagreement_weights(size, weights)
    places = np.arange(size)
    step = (places[:, None] - places[None, :]) / (size - 1.0)
    above = (step > 0).reshape(-1).astype(np.float64)
    below_one = np.tile(places < size - 1, size).astype(np.float64)

    def over(rows: Array, kind: Interval, function: Callable[[Any], Any], unit: str = "fraction") -> Estimate:
        return _estimate(f"judge_{kind}", rows, on_level, function, kind, unit, draws, seed)

    def share(part_of: Array, of: Array) -> Array:
        return np.stack([flat @ part_of, flat @ of], axis=1)

    every = np.ones(size * size)
    return PartAgreement(
        name,
        leniency,
        part,
        attribute,
        len(on_level),
        len(checked) - len(on_level),
        tables.sum(axis=0).astype(int).tolist(),
        over(share(np.eye(size).reshape(-1), every), "proportion", _first_by_second),
        over(flat, "standard_error", lambda sums: weighted_kappa(sums, apart), "agreement"),
        over(share(step.reshape(-1), every), "studentised", _first_by_second, "range"),
        over(share(above, below_one), "proportion", _first_by_second),
        _ceiling(on_level, weights, draws, seed),
    )


def weighted_kappa(sums: Any, apart: Array) -> Any:
    """Return kappa = 1 - sum(w O) / sum(w E) of tables (..., k * k), E from the margins; NaN where not defined.

    Source: Cohen 1968, doi:10.1037/h0026256.
    """
    size = len(apart)
    table = np.reshape(sums, (*np.shape(sums)[:-1], size, size))
    count = table.sum(axis=(-2, -1))
    expected = ((table.sum(axis=-1) @ apart) * table.sum(axis=-2)).sum(axis=-1)
    return 1.0 - safe_ratio(count * (table * apart).sum(axis=(-2, -1)), expected)


def _first_by_second(sums: Any) -> Any:
    return safe_ratio(sums[..., 0], sums[..., 1])


def _ceiling(answers: Sequence[_Answer], weights: Weights, draws: int, seed: int) -> Agreement | None:
    physicians = sorted({name for one in answers for name, _ in one.levels})
    if max(len(one.levels) for one in answers) < 2:
        return None
    ratings = np.full((len(answers), len(physicians)), -1, dtype=np.int64)
    for place, one in enumerate(answers):
        for name, level in one.levels:
            ratings[place, physicians.index(name)] = level
    return agreement(
        ratings,
        [f"{level:g}" for level in LEVELS],
        groups=[f"{one.item.source}|{one.item.group}" for one in answers],
        weights=weights,
        level="interval",
        draws=draws,
        seed=seed,
    )


def _corrected(name: str, leniency: str, part: str, answers: Sequence[_Answer], draws: int, seed: int) -> Corrected:
    """Correct the mean verdict by the checked answers.

    theta = mean(f) + (share of answers that went to a judge) * mean over checked ones of (y - f), f = verdict,
    y = mean verdict of its physicians: the prediction-powered mean of Angelopoulos et al. 2023, Science 382:669,
    doi:10.1126/science.adi6000, on the judged answers, rules taken as right. The interval resamples patients, so an
    answer that is both judged and checked counts as one. It holds where the checked answers are a random draw of those
    that went to the judge.
    """
    rows = []
    for one in answers:
        verdict = 0.0 if name in one.failed else one.verdicts[name if not one.by_rule else "rule", leniency]
        checked = bool(one.levels) and not one.by_rule and part in ("all", one.part)
        physicians = float(np.mean([LEVELS[level] for _, level in one.levels])) if checked else 0.0
        rows.append((verdict, 1.0, float(not one.by_rule), physicians - verdict if checked else 0.0, float(checked)))
    sums = np.array(rows)
    found = _estimate("judge_corrected", sums, answers, _prediction_powered, "studentised", "fraction", draws, seed)
    return Corrected(name, leniency, part, float(sums[:, 0].mean()), int(sums[:, 4].sum()), found)


def _prediction_powered(sums: Any) -> Any:
    judged = safe_ratio(sums[..., 0], sums[..., 1])
    return judged + safe_ratio(sums[..., 2], sums[..., 1]) * safe_ratio(sums[..., 3], sums[..., 4])


def _estimate(
    name: str,
    rows: Array,
    answers: Sequence[_Answer],
    function: Callable[[Any], Any],
    interval: Interval,
    unit: str,
    draws: int,
    seed: int,
) -> Estimate:
    metric = Metric(
        name=name,
        statistic=name,
        direction="up",
        identity=1.0,
        unit=unit,
        kind="sum",
        interval=interval,
        function=lambda sums: np.asarray(function(np.asarray(sums, dtype=np.float64))),
        gradient=complex_step(function),
        source="medlesionvqa specification, section 9",
        undefined="not defined: no checked answer tells it",
    )
    if np.isnan(metric.function(rows.sum(axis=0))):
        return Estimate(None, None, None, len({one.item.group for one in answers}), 0.0, False, metric.undefined)
    sums = GroupSums.from_items([one.item.source for one in answers], [one.item.group for one in answers], rows)
    found = estimate(metric, sums, Resampler.for_sums(sums, draws=draws, seed=seed))
    # Kappa ends at 1 and, with these weights, at -1.
    return found.within(-1.0, 1.0) if unit == "agreement" else found
