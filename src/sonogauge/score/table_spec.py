"""What a table is scored as: its answer form with options or range, checked, and the metrics that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, Task
from sonogauge.metrics.clinical.modality import CLINICAL
from sonogauge.score.scales import tolerance_of
from sonogauge.score.table_rows import LARGEST, TableColumns

TASK: Final = "table"
FORMS: Final = ("choice", "multi_choice", "number", "text")
_METRICS: Final[dict[str, tuple[str, ...]]] = {
    "choice": ("accuracy", "balanced_accuracy", "macro_f1", "macro_precision", "macro_recall", "kappa"),
    "multi_choice": ("accuracy",),
    "number": ("mae", "rmse", "median_error", "bias", "loa_low", "loa_high", "icc", "pearson", "spearman"),
    "text": ("bleu4", "bleu_sacre", "rouge_l", "rouge_l_beta1"),
}
_SCALED: Final = ("rmse_scaled", "mae_scaled", "std_scaled", "bias_scaled", "within_tolerance")
_OUT_OF_RANGE: Final = ("reference_out_of_range", "prediction_out_of_range")
# Options that speak of some forms alone, with what they are worth where nobody gave them.
_OF_NUMBERS: Final[dict[str, Any]] = {"low": None, "high": None, "unit": "", "measure": None}
_OF_CHOICES: Final[dict[str, Any]] = {"positive": (), "ordinal": (), "prevalence": None}


def answer_spec(columns: TableColumns, options: Sequence[str], given: Mapping[str, Any]) -> AnswerSpec:
    """Return the answer that the predictions are read as.

    given: by name `low`, `high`, `unit`, `tolerance` and `measure` of a number, `positive`, `ordinal` and `prevalence`
    of a choice, `clinical` of a text; those of another form must be as nobody gave them.

    Raises:
        BadInput: no such form, an option of another form, a range that is none, doubled options.
    """
    if columns.form not in FORMS:
        raise BadInput(f"no answer form '{columns.form}' for tables", field="answer", fix="use " + ", ".join(FORMS))
    _refuse_misplaced(columns.form, options, given)
    if columns.form == "number":
        return _number(given["low"], given["high"], given["unit"], given["tolerance"])
    if columns.form == "text":
        return AnswerSpec("text")
    chosen = tuple(options) or columns.options()
    doubled = sorted({one for one in chosen if chosen.count(one) > 1})
    if doubled:
        raise BadInput(f"the option '{doubled[0]}' stands twice", field="options", fix="name each option once")
    letters = chosen if all(len(one) == 1 and one.isascii() and one.isupper() for one in chosen) else ()
    return AnswerSpec(columns.form, chosen, letters)


def _refuse_misplaced(form: str, options: Sequence[str], given: Mapping[str, Any]) -> None:
    if form != "number":
        for name, nothing in _OF_NUMBERS.items():
            if given[name] != nothing:
                raise BadInput(f"a {form} answer has no {name}", field=name, fix="leave it out")
    if form != "text" and given["clinical"]:
        raise BadInput(f"a {form} answer has no clinical facts", field="clinical", fix="leave it out")
    if form not in ("choice", "multi_choice") and options:
        raise BadInput(f"a {form} answer has no options", field="options", fix="leave them out")
    if form != "choice":
        for name, nothing in _OF_CHOICES.items():
            if given[name] != nothing:
                raise BadInput(f"a {form} answer has no options", field=name, fix="leave it out")
    if given["prevalence"] is not None and not given["positive"]:
        raise BadInput("a prevalence of what?", field="prevalence", fix="name the positive options with --positive")


def _number(low: float | None, high: float | None, unit: str, tolerance: float) -> AnswerSpec:
    ends = [one for one in (low, high) if one is not None]
    if len(ends) == 1 or any(not math.isfinite(one) or abs(one) > LARGEST for one in ends) or ends != sorted(set(ends)):
        raise BadInput(f"no range from {low} to {high}", field="low", fix="give --low and --high, low below high")
    if not 0 <= tolerance <= 1:
        raise BadInput(f"no tolerance: {tolerance}", field="tolerance", fix="give a share of the range, 0 to 1")
    return AnswerSpec("number", low=low, high=high, unit=unit, tolerance=tolerance)


def table_scenario(spec: AnswerSpec, given: Mapping[str, Any]) -> Scenario:
    """Return the one scenario of a table, with its positive options, its ordinal scale and its measure.

    Raises:
        BadInput: positive or ordinal options that are none, a scale of one grade or with one twice, a measure without a
            tolerance or in another unit.
    """
    for name in ("positive", "ordinal"):
        for one in given[name]:
            if one not in spec.options:
                raise BadInput(
                    f"'{one}' is no option", field=name, fix="the options are " + ", ".join(spec.options[:30])
                )
    if len(set(given["ordinal"])) < len(given["ordinal"]) or len(given["ordinal"]) == 1:
        raise BadInput(
            "no scale: " + ", ".join(given["ordinal"]),
            field="ordinal",
            fix="name two or more options, each once, in their order",
        )
    if given["positive"] and set(spec.options) <= set(given["positive"]):
        raise BadInput("every option is positive", field="positive", fix="leave at least one out")
    scenario = Scenario(
        task=TASK,
        dataset=TASK,
        options=spec.options,
        low=spec.low,
        high=spec.high,
        unit=spec.unit,
        positive=tuple(given["positive"]),
        ordinal=tuple(given["ordinal"]),
        extra={} if given["measure"] is None else {"measure": given["measure"]},
    )
    tolerance_of(scenario)
    return scenario


def table_benchmark(columns: TableColumns, spec: AnswerSpec, scenario: Scenario, clinical: bool) -> BenchmarkSpec:
    """Return the benchmark of one task that a table is, with its metrics."""
    metrics = _METRICS[columns.form]
    if columns.letters:
        # A letter stands for another option in each row, so classes have no meaning across rows.
        metrics = ("accuracy",)
    elif columns.form == "number" and spec.low is not None:
        metrics = (*_SCALED, *metrics, *_OUT_OF_RANGE)
    elif clinical:
        metrics = (*metrics, *CLINICAL)
    return BenchmarkSpec(
        name="table",
        version="1",
        title=f"predictions of {columns.file.name}",
        tasks={TASK: Task(title="predictions of a table", form=columns.form, metrics=metrics)},
        scenarios=(scenario,),
    )
