"""Counting under `strict`: replies to cells, a cell being a (variant, task, dataset).

Every item that was asked and has a usable reference counts, whatever became of its reply; how a request ended and why
a reply could not be read are kept as what they are.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, NULL, AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.variants import read_varied
from sonogauge.items import Item
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.counters import COUNTERS, Counter
from sonogauge.score.replies import Reply

CHUNK: Final = 16_384
_ENDED: Final = {"missing": "missing", "error": "error", "truncated": "truncated"}

Sink = Callable[[dict[str, Any]], None]
CellKey = tuple[str, str, str]


@dataclass
class Cell:
    """Counts and sums of one (variant, task, dataset).

    n: items scored, failures included. why_null: why there are no sums (a form without a scorer).
    abstention: outcomes on items whose reference is "not measurable".
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
    values: dict[str, list[float]] = field(default_factory=dict)
    strata: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    why_null: str | None = None

    @property
    def key(self) -> CellKey:
        """(variant, task, dataset)."""
        return self.variant, self.task, self.dataset


class CellCounter:
    """Streams judged replies into the sums of one cell; memory grows with groups, not with items.

    The one exception are order statistics (the median), which keep a number per item.
    """

    _ORDERED: Final = ("absolute_errors",)

    def __init__(self, cell: Cell, item: Item, parameters: dict[str, Any]) -> None:
        self.cell = cell
        self._counter: Counter | None = None
        if item.answer.form in COUNTERS:
            try:
                self._counter = COUNTERS[item.answer.form](replace(item.answer, options=cell.options), parameters)
            except ValueError as error:
                raise BadInput(str(error), field="answer", fix=f"mend item {item.item_id} of the benchmark") from error
        else:
            cell.why_null = f"answer form '{item.answer.form}' has no scorer in this version"
        self._strata: list[str] = []
        self._groups: list[str] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item with a usable reference."""
        cell = self.cell
        cell.n += 1
        cell.valid += parsed.valid
        cell.chance += item.chance or 0.0
        if parsed.reason is not None:
            cell.reasons[parsed.reason] += 1
        for reference in (item.reference.get("choices") or item.reference.get("places") or ())[:1]:
            cell.references[str(reference)] += 1
        if self._counter is None:
            return {}
        try:
            values = self._counter.add(item, parsed)
        except (KeyError, IndexError, TypeError) as error:
            raise BadInput(
                f"reference {dict(item.reference)} does not fit the answer form '{item.answer.form}'",
                field="reference",
                fix=f"mend item {item.item_id} of the benchmark",
            ) from error
        self._strata.append(item.source)
        self._groups.append(item.group)
        if len(self._groups) >= CHUNK:
            self.flush()
        return values

    def flush(self) -> None:
        """Move what was collected into the cell's sums."""
        if self._counter is None or not self._groups:
            return
        for name, statistics in self._counter.take().items():
            if name in self._ORDERED:
                self.cell.values.setdefault(name, []).extend(statistics[:, 0].tolist())
                self.cell.strata.extend(self._strata)
                self.cell.groups.extend(self._groups)
                continue
            batch = GroupSums.from_items(self._strata, self._groups, statistics)
            have = self.cell.sums.get(name)
            self.cell.sums[name] = batch if have is None else have.merge(batch)
        self._strata, self._groups = [], []


def judge(reply: Reply, spec: AnswerSpec, form: AnswerForm | None) -> Parsed:
    """Read a reply strictly; one that ended badly is never parsed.

    Raises:
        BadInput: a box or point in pixels without the size of the image as sent.
    """
    if reply.status in _ENDED:
        return Parsed(None, _ENDED[reply.status])
    if form is None:
        return Parsed(reply.text, None)
    if not reply.variant:
        return form.parse(reply.text or "", spec)
    try:
        return read_varied(reply.text or "", spec, reply.item_id, reply.variant, reply.size)
    except ValueError as error:
        raise BadInput(
            f"{error} ({reply.item_id}, variant {reply.variant})", field="image_size", fix="give [width, height]"
        ) from error


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
) -> dict[CellKey, Cell]:
    """Count replies into cells.

    Args:
        pairs: items with their replies, from `replies.join`.
        options: of each (task, dataset), from `cell_options`.
        model: name for the score_items rows.
        parameters: `tolerance` (absolute, scaled), `failure_error` ("worst" or "one").
        sink: receives one score_items row per reply.
    """
    counters: dict[CellKey, CellCounter] = {}
    parsers: dict[CellKey, _CachedParser] = {}
    for item, reply in pairs:
        key = (reply.variant, item.task, item.dataset)
        if key not in counters:
            cell = Cell(*key, item.answer.form, item.determinable, options[item.task, item.dataset])
            counters[key] = CellCounter(cell, item, parameters)
            parsers[key] = _CachedParser(item.answer.form)
        counter = counters[key]
        parsed = parsers[key](reply, item.answer)
        excluded = None if item.reference_state == "ok" else item.reference_state
        if excluded is None:
            if parsed.value == NULL:
                # "Cannot be measured" about something that was measured: a failure, though well put.
                parsed = Parsed(None, "none")
            values = counter.add(item, parsed)
        else:
            values = {}
            counter.cell.excluded[excluded] += 1
            if excluded == "null":
                counter.cell.abstention[_abstained(parsed)] += 1
        if sink is not None:
            sink(_row(item, reply, parsed, values, excluded, model))
    for counter in counters.values():
        counter.flush()
    return {key: counter.cell for key, counter in counters.items()}


class _CachedParser:
    """Parses with a bounded memory of replies already seen: many replies of a benchmark are the same few words."""

    _SIZE: Final = 4096

    def __init__(self, form: str) -> None:
        self._form = FORMS.load(form) if form in FORMS else None
        self._seen: dict[tuple[AnswerSpec, str], Parsed] = {}

    def __call__(self, reply: Reply, spec: AnswerSpec) -> Parsed:
        if reply.status != "ok" or reply.text is None or reply.variant or len(reply.text) > 200:
            return judge(reply, spec, self._form)
        key = (spec, reply.text)
        parsed = self._seen.get(key)
        if parsed is None:
            parsed = judge(reply, spec, self._form)
            if len(self._seen) < self._SIZE:
                self._seen[key] = parsed
        return parsed


def _abstained(parsed: Parsed) -> str:
    if parsed.valid:
        return "null" if parsed.value == NULL else "number"
    return parsed.reason or "none"


def _row(
    item: Item, reply: Reply, parsed: Parsed, values: dict[str, float], excluded: str | None, model: str
) -> dict[str, Any]:
    return {
        "protocol": "strict",
        "item_id": item.item_id,
        "variant": reply.variant,
        "epoch": reply.epoch,
        "rater_id": reply.rater_id,
        "model": model,
        "task": item.task,
        "dataset": item.dataset,
        "source": item.source,
        "group": item.group,
        "status": reply.status,
        "prediction": prediction_row(item, parsed.value) if parsed.valid else None,
        "reason": parsed.reason,
        "excluded": excluded,
        "values": sorted(values.items()),
    }


def prediction_row(item: Item, value: Any) -> dict[str, Any]:
    """Return the VALUE struct of a prediction."""
    form = item.answer.form
    name = FORMS.load(form).field if form in FORMS else "texts"
    if isinstance(value, str):
        # A word where a number or a shape was asked for: "null", "not visible".
        return {{"number": "texts", "boxes": "places", "points": "places"}.get(name, name): [value]}
    if name == "boxes":
        left, top, right, bottom = value
        return {"boxes": [{"category": "", "x": left, "y": top, "w": right - left, "h": bottom - top}]}
    if name == "points":
        return {"points": [{"name": "", "x": value[0], "y": value[1]}]}
    return {name: value if name == "number" else list(value)}
