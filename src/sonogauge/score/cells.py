"""Counting under `strict`: replies to cells, a cell being a (variant, task, dataset).

Every item that was asked and has a usable reference counts, whatever became of its reply; how a request ended and why
a reply could not be read are kept as what they are.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, NULL, Parsed
from sonogauge.benchmarks.spec import Scenario
from sonogauge.items import Item
from sonogauge.metrics.base import Array
from sonogauge.metrics.sums import Accumulator, GroupSums
from sonogauge.score.counters import COUNTERS, Counter
from sonogauge.score.drawing import declared_coords, settle
from sonogauge.score.judging.use import STATISTICS, ItemVerdict, VerdictCounter, Verdicts
from sonogauge.score.reading import ReplyParser, item_row
from sonogauge.score.replies import Reply
from sonogauge.score.scales import probability_row, scenario_counters, tolerance_of

CHUNK: Final = 16_384
_CHUNK_CELLS: Final = 4_000_000

Sink = Callable[[dict[str, Any]], None]
CellKey = tuple[str, str, str]


@dataclass
class Ordered:
    """Values of an order statistic, one row an item, with the stratum and group of each."""

    values: list[list[float]] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


@dataclass
class Cell:
    """Counts and sums of one (variant, task, dataset).

    n: items scored, failures included. why_null: why there are no sums (a form without a scorer); nulls: why a single
    statistic has none.
    abstention: outcomes on items whose reference is "not measurable".
    counted: by statistic, the items that entered it and those of them with a valid reply.
    facts: by statistic or metric, how it was counted, for signatures.
    """

    variant: str
    task: str
    dataset: str
    form: str
    determinable: str
    options: tuple[str, ...] = ()
    n: int = 0
    valid: int = 0
    excluded: Tally[str] = field(default_factory=Tally)
    reasons: Tally[str] = field(default_factory=Tally)
    references: Tally[str] = field(default_factory=Tally)
    abstention: Tally[str] = field(default_factory=Tally)
    chance: float = 0.0
    sums: dict[str, GroupSums] = field(default_factory=dict)
    values: dict[str, Ordered] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    why_null: str | None = None
    nulls: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> CellKey:
        """(variant, task, dataset)."""
        return self.variant, self.task, self.dataset

    @property
    def members(self) -> frozenset[tuple[str, str]]:
        """The (stratum, group) pairs with a scored item; every statistic knows them all."""
        first = next(iter(self.sums.values()), None)
        return frozenset() if first is None else frozenset(zip(first.strata, first.groups, strict=True))


class CellCounter:
    """Streams judged replies into the sums of one cell; memory grows with groups, not with items.

    The one exception are order statistics (the median and the like), which keep a row per item.
    """

    _ORDERED: Final = ("absolute_errors", "number_pairs", "scores")

    def __init__(
        self,
        cell: Cell,
        item: Item,
        parameters: dict[str, Any],
        scenario: Scenario | None = None,
        verdicts: Verdicts | None = None,
    ) -> None:
        self.cell = cell
        self._judged: VerdictCounter | None = None
        if item.answer.form == "text":
            self._expect_verdicts(verdicts)
        self._counters: list[Counter] = []
        self._sums: dict[str, Accumulator] = {}
        self._keys: list[tuple[str, str]] = []
        self._reasons: list[str | None] = []
        self._chances: list[float] = []
        self._references: list[str] = []
        self._positive = frozenset(scenario.positive) if scenario is not None else frozenset()
        self._option_of = {option: position for position, option in enumerate(cell.options)}
        self._probabilities: list[tuple[int, list[float], int]] = []
        # A matrix of all options for each item of a chunk: wide scales take fewer items at a time.
        self._chunk = min(CHUNK, max(256, _CHUNK_CELLS // (len(cell.options) + 1) ** 2))
        if item.answer.form not in COUNTERS:
            cell.why_null = f"answer form '{item.answer.form}' has no scorer in this version"
            return
        try:
            self._counters.append(COUNTERS[item.answer.form](replace(item.answer, options=cell.options), parameters))
        except ValueError as error:
            raise BadInput(str(error), field="answer", fix=f"mend item {item.item_id} of the benchmark") from error
        if item.answer.form == "number":
            tolerance = item.answer.tolerance if item.answer.tolerance is not None else parameters.get("tolerance", 0.1)
            cell.facts["scaled_errors"] = f"failures:{parameters.get('failure_error', 'worst')}"
            cell.facts["within_tolerance"] = f"tolerance:{tolerance:g}"
        form = FORMS.load(item.answer.form) if item.answer.form in FORMS else None
        if form is not None and form.settle is not None:
            for counter in self._counters:
                cell.facts |= dict.fromkeys(counter.take(), declared_coords(item, parameters))
        if scenario is not None:
            self._counters += scenario_counters(scenario)
            clinical = tolerance_of(scenario)
            if clinical is not None:
                cell.facts["within_clinical"] = clinical.facts
        if parameters.get("bertscore_encoder") is not None:
            name = Path(parameters["bertscore_encoder"]).resolve().name
            cell.facts["bertscore"] = f"model:{name},layer:{parameters['bertscore_layer']}"
        if parameters.get("clinical"):
            from sonogauge.metrics.clinical import load_lexicon

            lexicon = load_lexicon()
            cell.facts["clinical"] = f"lexicon:{lexicon.version},{lexicon.digest[:12]}"

    def _expect_verdicts(self, verdicts: Verdicts | None) -> None:
        cell = self.cell
        if verdicts is not None and cell.task in verdicts.tasks:
            self._judged = VerdictCounter(verdicts.coverage)
            cell.facts |= dict.fromkeys(STATISTICS, verdicts.facts)
        else:
            cell.nulls |= dict.fromkeys(STATISTICS, "no verdicts: `sonogauge judge`, then score with --verdicts")

    def add(
        self,
        item: Item,
        parsed: Parsed,
        probabilities: tuple[tuple[str, float], ...] | None = None,
        verdict: ItemVerdict | None = None,
    ) -> dict[str, float]:
        """Count one item with a usable reference; `probabilities` are those the reply puts on the options.

        verdict: of judges on the reply, where its cell expects one.

        Raises:
            BadInput: a reference that does not fit its form, or no verdict on a reply of a judged cell.
        """
        references: Sequence[str] = item.reference.get("choices") or item.reference.get("places") or ()
        values: dict[str, float] = {}
        try:
            for counter in self._counters:
                values |= counter.add(item, parsed)
            if probabilities and self.cell.form == "choice" and self._counters:
                place = self._option_of[references[0]]
                row = probability_row(probabilities, self.cell.options, item)
                self._probabilities.append((len(self._keys), row, place))
        except (KeyError, IndexError, TypeError) as error:
            raise BadInput(
                f"reference {dict(item.reference)} does not fit the answer form '{item.answer.form}'",
                field="reference",
                fix=f"mend item {item.item_id} of the benchmark",
            ) from error
        if self._judged is not None:
            if verdict is None:
                raise BadInput(f"no verdict on the reply to '{item.item_id}'", fix="give the judge command again")
            values |= self._judged.add(verdict)
        # Everything else is counted a chunk at a time.
        self._keys.append((item.source, item.group))
        self._reasons.append(parsed.reason)
        self._chances.append(item.chance or 0.0)
        if references:
            self._references.append(references[0])
        if len(self._keys) >= self._chunk:
            self._flush()
        return values

    def finish(self) -> Cell:
        """Return the cell with all that was counted."""
        self._flush()
        self.cell.sums = {name: sums.sums() for name, sums in self._sums.items()}
        why = self._judged.why_null() if self._judged is not None else None
        if why is not None:
            for name in STATISTICS:
                del self.cell.sums[name]
                self.cell.nulls[name] = why
        return self.cell

    def _flush(self) -> None:
        if not self._keys:
            return
        cell = self.cell
        valid = np.array([reason is None for reason in self._reasons])
        cell.n += len(valid)
        cell.valid += int(valid.sum())
        cell.chance += sum(self._chances)
        cell.reasons.update(reason for reason in self._reasons if reason is not None)
        cell.references.update(self._references)
        keys, self._keys, self._reasons, self._chances, self._references = self._keys, [], [], [], []
        place: dict[tuple[str, str], int] = {}
        index: NDArray[np.intp] = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.intp)
        statistics = {name: rows for counter in self._counters for name, rows in counter.take().items()}
        statistics |= self._take_probabilities(len(keys))
        if self._judged is not None:
            statistics |= self._judged.take()
        for name, rows in statistics.items():
            if name in self._ORDERED:
                kept = ~np.isnan(rows).any(axis=1)
                ordered = cell.values.setdefault(name, Ordered())
                ordered.values.extend(rows[kept].tolist())
                ordered.strata.extend(keys[position][0] for position in np.flatnonzero(kept))
                ordered.groups.extend(keys[position][1] for position in np.flatnonzero(kept))
            else:
                kept = rows.reshape(len(rows), -1).any(axis=1)
                batch = np.zeros((len(place), *np.shape(rows)[1:]))
                np.add.at(batch, index, rows)
                strata, groups = zip(*place, strict=True)
                self._sums.setdefault(name, Accumulator()).add(strata, groups, batch)
            n, answered = cell.counted.get(name, (0, 0))
            cell.counted[name] = n + int(kept.sum()), answered + int((kept & valid).sum())

    def _take_probabilities(self, items: int) -> dict[str, Array]:
        if not self._probabilities:
            return {}
        from sonogauge.metrics.probability import brier_statistics, calibration_statistics, normalised

        at: NDArray[np.intp] = np.array([row for row, _, _ in self._probabilities], dtype=np.intp)
        p = normalised([row for _, row, _ in self._probabilities])
        right: NDArray[np.int64] = np.array([place for _, _, place in self._probabilities], dtype=np.int64)
        self._probabilities = []
        out = {"brier": np.zeros((items, 2)), "calibration": np.zeros((items, 10, 3))}
        out["brier"][at] = brier_statistics(p, right)
        out["calibration"][at] = calibration_statistics(p, right)
        if self._positive:
            ill = np.array([option in self._positive for option in self.cell.options])
            out["scores"] = np.full((items, 2), np.nan)
            out["scores"][at] = np.stack([p[:, ill].sum(axis=1), ill[right].astype(np.float64)], axis=-1)
        return out


def coordinate_notices(cells: Iterable[Cell]) -> list[str]:
    """Return a warning where more than half of the coordinates lie outside their declared range.

    They are read as declared all the same: nothing is rescaled on a guess.
    """
    parts = [cell.sums["coords"].total() for cell in cells if "coords" in cell.sums]
    beyond, total = sum((part for part in parts), start=np.zeros(2))
    if not total or beyond <= total / 2:
        return []
    return [
        f"{beyond:.0f} of {total:.0f} coordinates lie outside their declared range: "
        "does the model count otherwise? Declare it with --coords"
    ]


def cell_options(items: Iterable[Item]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the options of each (task, dataset), united over its items in order of appearance."""
    united: dict[tuple[str, str], dict[str, None]] = {}
    for item in items:
        united.setdefault((item.task, item.dataset), {}).update(dict.fromkeys(item.answer.options))
    return {key: tuple(options) for key, options in united.items()}


def count_strict(
    pairs: Iterable[tuple[Item, Reply]],
    options: Mapping[tuple[str, str], tuple[str, ...]],
    model: str,
    parameters: dict[str, Any],
    sink: Sink | None = None,
    scenarios: Iterable[Scenario] = (),
) -> dict[CellKey, Cell]:
    """Count replies into cells.

    Args:
        pairs: items with their replies, from `replies.join`.
        options: of each (task, dataset), from `cell_options`.
        model: name for the score_items rows.
        parameters: `tolerance` (absolute, scaled), `failure_error` ("worst" or "one").
        sink: receives one score_items row per reply.
        scenarios: those whose ordinal scale, positive classes or measure shall be counted too.
    """
    return count_slices(pairs, options, model, parameters, sink, scenarios)[""]


def count_slices(
    pairs: Iterable[tuple[Item, Reply]],
    options: Mapping[tuple[str, str], tuple[str, ...]],
    model: str,
    parameters: dict[str, Any],
    sink: Sink | None = None,
    scenarios: Iterable[Scenario] = (),
    slices_of: Callable[[Item], Iterable[str]] | None = None,
    verdicts: Verdicts | None = None,
) -> dict[str, dict[CellKey, Cell]]:
    """Count replies into cells, over all items ("") and over the slices that `slices_of` names for an item.

    verdicts: of judges on the replies, for the cells whose task was judged.
    """
    parse = ReplyParser()
    coords = str(parameters.get("coords") or "")
    judged = ((item, reply, settle(item, reply, parse(reply, item.answer), coords)) for item, reply in pairs)
    return count_judged(judged, options, model, parameters, sink, scenarios, slices_of, verdicts)


def count_judged(
    judged: Iterable[tuple[Item, Reply, Parsed]],
    options: Mapping[tuple[str, str], tuple[str, ...]],
    model: str,
    parameters: dict[str, Any],
    sink: Sink | None = None,
    scenarios: Iterable[Scenario] = (),
    slices_of: Callable[[Item], Iterable[str]] | None = None,
    verdicts: Verdicts | None = None,
) -> dict[str, dict[CellKey, Cell]]:
    """Count replies that were read already; see `count_slices`."""
    facts = {one.key: one for one in scenarios}
    counters: dict[str, dict[CellKey, CellCounter]] = {"": {}}

    def counter_of(part: str, key: CellKey, item: Item) -> CellCounter:
        cell = Cell(*key, item.answer.form, item.determinable, options[item.task, item.dataset])
        scenario = facts.get((item.task, item.dataset))
        return counters[part].setdefault(key, CellCounter(cell, item, parameters, scenario, verdicts))

    whole = counters[""]
    for item, reply, parsed in judged:
        key = (reply.variant, item.task, item.dataset)
        counter = whole.get(key) or counter_of("", key, item)
        excluded = None if item.reference_state == "ok" else item.reference_state
        if excluded is None and parsed.value == NULL and item.answer.form == "number":
            # "Cannot be measured" about something that was measured: a failure, though well put.
            parsed = Parsed(None, "none")
        verdict = verdicts.found.get(reply[:4]) if verdicts is not None else None
        values = _count(counter, item, reply, parsed, excluded, verdict)
        for part in slices_of(item) if slices_of is not None else ():
            own = counters.setdefault(part, {})
            _count(own.get(key) or counter_of(part, key, item), item, reply, parsed, excluded, verdict)
        if sink is not None:
            read = parsed.value if parsed.valid else None
            known = (read, parsed.reason, excluded, values)
            sink(item_row(item, reply, model, "strict", *known))
    return {part: {key: one.finish() for key, one in found.items()} for part, found in counters.items()}


def _count(
    counter: CellCounter,
    item: Item,
    reply: Reply,
    parsed: Parsed,
    excluded: str | None,
    verdict: ItemVerdict | None,
) -> dict[str, float]:
    if excluded is None:
        return counter.add(item, parsed, reply.probabilities, verdict)
    counter.cell.excluded[excluded] += 1
    if excluded == "null":
        counter.cell.abstention[_abstained(parsed)] += 1
    return {}


def _abstained(parsed: Parsed) -> str:
    if parsed.valid:
        return "null" if parsed.value == NULL else "number"
    return parsed.reason or "none"
