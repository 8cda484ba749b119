"""Scores of any prediction file of any tool: one table with truths and predictions, no benchmark needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec, Parsed
from sonogauge.benchmarks.spec import Scenario
from sonogauge.items import Item
from sonogauge.score.cells import Cell, CellKey, count_judged
from sonogauge.score.replies import Reply
from sonogauge.score.rows import RowContext, signature
from sonogauge.score.slices import MIN_N, gaps, part_name, refuse_many, sorted_parts
from sonogauge.score.table_classes import class_values
from sonogauge.score.table_facts import check_target, write_facts
from sonogauge.score.table_parse import parse_rows
from sonogauge.score.table_rows import Row, TableColumns, read_rows
from sonogauge.score.table_spec import TASK, answer_spec, table_benchmark, table_scenario
from sonogauge.score.values import SLICES, Value, evaluate
from sonogauge.stats.resample import Resampler

_MOST_SHARED: Final = 50_000


@dataclass(frozen=True)
class TableScores:
    """What scoring a table found.

    values: by metric; classes: by option and precision, recall, f1; parts: by "column=value" and metric;
    gaps: by column and metric.
    """

    file: Path
    form: str
    n: int
    valid: int
    groups: int
    values: dict[str, Value]
    signatures: dict[str, str]
    failures: dict[str, int]
    notices: tuple[str, ...] = ()
    classes: dict[str, dict[str, Value]] = field(default_factory=dict)
    parts: dict[str, dict[str, Value]] = field(default_factory=dict)
    gaps: dict[str, dict[str, Value]] = field(default_factory=dict)
    baselines: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints, with the single task code "table"."""
        task: dict[str, Any] = {
            "n": self.n,
            "valid": self.valid,
            "excluded": 0,
            "metrics": {name: self._one(name, value) for name, value in self.values.items()},
            "datasets": {},
        }
        if self.classes:
            task["classes"] = {
                option: {name: self._one(name, value) for name, value in values.items()}
                for option, values in self.classes.items()
            }
        if self.parts:
            task["slices"] = {
                part: {name: self._one(name, value) for name, value in values.items()}
                for part, values in self.parts.items()
            }
            task["gaps"] = {
                column: {name: self._one(name, value) for name, value in values.items()}
                for column, values in self.gaps.items()
            }
        return {
            "benchmark": None,
            "protocol": "strict",
            "scenarios": TASK,
            "partial": False,
            "tasks": {TASK: task},
            "composites": {},
            "baselines": {name: {TASK: value} for name, value in self.baselines.items()},
            "failures": self.failures,
            "notices": list(self.notices),
        }

    def _one(self, name: str, value: Value) -> dict[str, Any]:
        estimate = value.estimate
        return {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "n": value.n,
            "valid": value.valid,
            "chance": value.chance,
            "groups": estimate.groups,
            "reliable": estimate.reliable,
            "signature": self.signatures.get(f"{name}|{value.facts}", self.signatures.get(name, "")),
            "why_null": estimate.why_null,
            "doubt": estimate.doubt,
        }


def score_table(
    file: Path | str,
    *,
    truth: str | None = None,
    prediction: str | None = None,
    answer: str | None = None,
    options: Sequence[str] = (),
    group: str | None = None,
    stratum: str | None = None,
    by: Sequence[str] = (),
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    tolerance: float = 0.1,
    measure: str | None = None,
    clinical: bool = False,
    facts: Path | str | None = None,
    id: str | None = None,
    truth_file: Path | str | None = None,
    where: Sequence[str] = (),
    positive: Sequence[str] = (),
    ordinal: Sequence[str] = (),
    prevalence: float | None = None,
    min_n: int = MIN_N,
    draws: int = 10_000,
    seed: int = 0,
    processes: int = 1,
) -> TableScores:
    """Score a file of predictions under the strict protocol.

    Args:
        file: csv, tsv, jsonl, json, parquet or xlsx; a result file of VLMEvalKit needs no further argument.
        truth: column with the right answers; for `multi_choice` a list, or options joined by comma.
        prediction: column with the replies, as the model gave them.
        answer: "choice", "multi_choice", "number" or "text".
        options: of a choice; by default the distinct truths. Single capital letters are read as letters.
        group: column with the patient, the unit of resampling; by default each row is its own.
        stratum: column with the source data set.
        by: columns to slice by.
        low: lower end of the range of a number; with `high` it gives scaled errors, and failures their worst error.
        high: upper end.
        unit: of a number.
        tolerance: on the scaled value.
        measure: what a number measures, for the share within the tolerance that careful readers reach on it.
        clinical: of texts, also count facts: precision and recall, errors of negation, side, place, size and grade.
        facts: CSV file for the facts of each row, reference beside reply; with it `clinical` is set.
        id: column that names the row; with it doubled and missing ids are refused.
        truth_file: file with the truths, joined by `id`; an id without a prediction is a failure.
        where: "COLUMN=VALUE", rows to keep.
        positive: options that make a test positive: sensitivity, specificity, likelihood ratios, predictive values.
        ordinal: options in their order: weighted kappa, mean grade error.
        prevalence: at which predictive values are given; by default that of the rows.
        min_n: parts with fewer items take no part in a gap.
        draws: of the bootstrap.
        seed: of the bootstrap.
        processes: that parse; more than one needs a main module that can be imported.

    Raises:
        BadInput: naming file, row, field and what to do.
    """
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    for name, number in (("processes", processes), ("min_n", min_n)):
        if number < 1:
            raise BadInput(f"{number} is too few", field=name, fix="use at least 1")
    by = tuple(dict.fromkeys(by))
    columns = TableColumns.find(
        Path(file), truth, prediction, answer, options, group, stratum, by, id, truth_file, where
    )
    given: dict[str, Any] = {
        "low": low,
        "high": high,
        "unit": unit,
        "tolerance": tolerance,
        "measure": measure,
        "clinical": clinical or facts is not None,
        "positive": tuple(positive),
        "ordinal": tuple(ordinal),
        "prevalence": prevalence,
    }
    spec = answer_spec(columns, options, given)
    if facts is not None:
        check_target(columns, Path(facts))
    scenario = table_scenario(spec, given)
    bench = table_benchmark(columns, spec, scenario, given["clinical"])
    counted = _count(columns, spec, scenario, by, processes, given["clinical"])
    cell = next(iter(counted[""].values()))
    resampler = Resampler.for_sums(next(iter(cell.sums.values())), draws=draws, seed=seed)
    found = {
        part: evaluate(
            bench,
            {(TASK, TASK): one},
            [scenario],
            resampler,
            need_all=False,
            slices={"": SLICES[""]},
            prevalence=prevalence,
        ).cells[TASK, TASK]
        for part, one in ((part, next(iter(counted[part].values()))) for part in ("", *sorted_parts(counted)))
    }
    values = found.pop("")
    classes = {} if columns.letters or columns.form != "choice" else class_values(cell, resampler)
    context = RowContext(bench, "", "strict", "", "table", "computed", draws, seed)
    differences: dict[str, dict[str, Value]] = {}
    for column, value in gaps(found, list(values), min_n):
        differences.setdefault(column, {})[value.metric] = value
    signatures = {name: signature(context, TASK, value, name) for name, value in values.items()}
    signatures |= {
        name: signature(context, TASK, value, name) for own in differences.values() for name, value in own.items()
    }
    signatures |= {
        f"{name}|{value.facts}": signature(context, TASK, value, name)
        for own in classes.values()
        for name, value in own.items()
    }
    if facts is not None:
        write_facts(columns, spec, Path(facts))
    return TableScores(
        file=Path(file),
        form=columns.form,
        n=cell.n,
        valid=cell.valid,
        groups=len(cell.members),
        values=values,
        signatures=signatures,
        failures=dict(sorted(cell.reasons.items())),
        notices=tuple(_notices(columns, options, spec, cell, low is not None)),
        classes=classes,
        parts=found,
        gaps=differences,
        baselines=_majority(cell),
    )


def _count(
    columns: TableColumns, spec: AnswerSpec, scenario: Scenario, by: Sequence[str], processes: int, clinical: bool
) -> dict[str, dict[CellKey, Cell]]:
    parts: dict[str, set[str]] = {column: set() for column in by}

    def slices_of(item: Item) -> list[str]:
        names = [part_name(column, item.meta[column]) for column in by]
        for column, name in zip(by, names, strict=True):
            parts[column].add(name)
            if len(parts[column]) % 64 == 1:
                refuse_many(column, len(parts[column]))
        return names

    parameters = {"tolerance": spec.tolerance, "failure_error": "worst", "open_range": True, "clinical": clinical}
    counted = count_judged(
        _judged(columns, spec, processes),
        {(TASK, TASK): spec.options},
        columns.file.stem,
        parameters,
        None,
        [scenario],
        slices_of if by else None,
    )
    if not counted[""]:
        raise BadInput(
            "no rows to score", file=columns.file, fix="check --where" if columns.where else "the table is empty"
        )
    return counted


def _judged(columns: TableColumns, spec: AnswerSpec, processes: int) -> Iterator[tuple[Item, Reply, Parsed]]:
    reply = Reply("", "", 0, "", "ok", None)
    known = {option: {"choices": (option,)} for option in spec.options}
    chance = 1.0 / len(spec.options) if columns.form == "choice" and spec.options else None
    # Rows of one patient with one truth are one item to the counting; making each anew costs as much as counting it.
    shared = columns.form == "choice" and columns.group is not None and not columns.by and not columns.letters
    items: dict[tuple[str, str, str], Item] = {}
    for row, parsed in parse_rows(read_rows(columns, spec), spec, processes):
        if not shared:
            yield _item(row, spec, known, chance), reply, parsed
            continue
        key = (row.truth, row.group, row.stratum)
        item = items.get(key)
        if item is None:
            if len(items) >= _MOST_SHARED:
                items.clear()
            item = items[key] = _item(row, spec, known, chance)
        yield item, reply, parsed


def _item(row: Row, spec: AnswerSpec, known: Mapping[str, Mapping[str, Any]], chance: float | None) -> Item:
    reference = known[row.truth] if spec.form == "choice" else {_FIELDS[spec.form]: row.truth}
    return Item(
        item_id="",
        task=TASK,
        dataset=TASK,
        source=row.stratum,
        group=row.group,
        split="test",
        images=(),
        question="",
        prompt_id="",
        answer=spec,
        reference=reference,
        reference_state="ok",
        chance=1.0 / len(row.options) if row.options else chance,
        meta=row.parts,
    )


_FIELDS: Final = {"multi_choice": "choices", "number": "number", "text": "texts"}


def _majority(cell: Cell) -> dict[str, float]:
    if cell.form != "choice" or not cell.references:
        return {}
    return {"majority": max(cell.references.values()) / cell.n}


def _notices(
    columns: TableColumns, options: Sequence[str], spec: AnswerSpec, cell: Cell, ranged: bool
) -> Iterable[str]:
    if columns.vlmevalkit:
        yield "Read as a result file of VLMEvalKit: truth `answer`, reply `prediction`, options in columns of letters."
    if columns.group is None:
        yield "No --group: each row counts as a patient of its own, so intervals are a lower bound of the true width."
    if spec.form in ("choice", "multi_choice") and not options and not columns.letters:
        yield (
            "Options taken from the truths: " + ", ".join(spec.options[:20]) + ("" if len(spec.options) < 21 else ", …")
        )
    failed = cell.n - cell.valid
    if failed and spec.form == "number" and not ranged:
        yield f"{failed} predictions could not be read and have no worst error without --low and --high: left out."
    if any(math.isfinite(one) for one in _majority(cell).values()):
        yield "The baseline `majority` is counted on the rows themselves: an upper bound."
