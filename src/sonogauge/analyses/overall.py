"""Analyses 1 and 2: accuracy of each task and overall, micro and macro, beside what needs no image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sonogauge.analyses.formulas import (
    Array,
    best_letter,
    chance_corrected,
    letter_of,
    letter_scores,
    majority_scores,
    majority_test,
    prior_scores,
    random_exact,
    random_scores,
    random_simulated,
)
from sonogauge.analyses.study import Record, Study, question_of
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.items import Item
from sonogauge.stats.intervals import Estimate, combine, difference

NO_TRAIN: Final = "no train questions of this task"
_TIE: Final = 1e-12
TITLES: Final = {
    "random": "random, exact",
    "majority": "majority, train",
    "prior": "prior (offered option most frequent in train)",
    "letter": "constant letter",
}


def overall(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return accuracy by task with n, interval, parse failures, chance-corrected score and verdict; micro and macro."""
    rows, parts, counted = [], [], []
    for task in study.tasks:
        records = study.of("", task)
        one = study.accuracy(records)
        parts.append(one)
        counted += study.counted(records)
        expected = random_exact([len(record.item.answer.options) for record in records])[0]
        rows.append(
            {
                "task": task,
                "n": len(study.counted(records)),
                "accuracy": shown(one),
                "failed": sum(record.choice is None for record in records) / len(records),
                "chance": expected,
                "corrected": shown(corrected(one, expected)),
                **verdict(study, records, one),
            }
        )
    tables = [
        table(
            "overall_tasks",
            f"Accuracy by task, {study.label}",
            [
                column("task", "task"),
                column("n", "n", "count"),
                column("accuracy", "accuracy", "percent"),
                column("failed", "not readable", "percent"),
                column("chance", "random, exact", "percent"),
                column("corrected", "chance-corrected", "plain"),
                column("baseline", "best baseline"),
                column("difference", "difference", "percent"),
                column("verdict", "verdict"),
            ],
            rows,
            "chance-corrected = (accuracy - E)/(1 - E), E = mean of 1/k. verdict: interval of the difference to the "
            "best baseline that reads no image, on the same questions.",
            *_no_answer_note(study),
        )
    ]
    micro = study.accuracy(counted)
    macro = combine(parts, lambda values: np.asarray(values.mean(axis=-1)), names=study.tasks)
    totals = [
        {"total": "Overall, micro (all questions alike)", "n": len(counted), "value": shown(micro)},
        {"total": "Overall, macro (all tasks alike)", "n": len(counted), "value": shown(macro)},
    ]
    columns = [column("total", "total"), column("n", "n", "count"), column("value", "accuracy", "percent")]
    told = f"micro = right answers / questions; macro = mean over {', '.join(study.tasks)}."
    return [*tables, table("overall", f"Overall, {study.label}", columns, totals, told)]


def _no_answer_note(study: Study) -> list[str]:
    if study.on_no_answer == "wrong":
        return ["An answer that cannot be read counts as wrong."]
    return ["Answers that cannot be read are left out of accuracies, not of the share not readable."]


def corrected(one: Estimate, chance: float) -> Estimate:
    """Return the chance-corrected score of an accuracy with its interval; chance is fixed by the questions."""
    if one.value is None or chance >= 1:
        why = one.why_null or "one option only"
        return Estimate(None, None, None, one.groups, one.df, False, why)
    ends = [None if end is None else chance_corrected(end, chance) for end in (one.low, one.high)]
    draws = None if one.draws is None else (one.draws - chance) / (1 - chance)
    return Estimate(
        chance_corrected(one.value, chance), ends[0], ends[1], one.groups, one.df, one.reliable, one.why_null, draws
    )


def baseline_rows(study: Study, items: Sequence[Item], task: str) -> dict[str, Array | None]:
    """Return the score of each baseline on each question; None where it needs train questions that are not there."""
    questions = [question_of(item) for item in items]
    train: Mapping[str, int] = study.train.get(task, {})
    return {
        "random": random_scores(questions),
        "majority": majority_scores(questions, train) if train else None,
        "prior": prior_scores(questions, train) if train else None,
        "letter": letter_scores(questions, best_letter(questions)),
    }


def verdict(study: Study, records: Sequence[Record], accuracy: Estimate) -> dict[str, Any]:
    """Judge a task against the best baseline that reads no image: above, below or not distinguishable."""
    counted = study.counted(records)
    if not counted:
        return {"baseline": "", "difference": shown(accuracy), "verdict": "no answer"}
    items = [one.item for one in counted]
    scores = baseline_rows(study, items, items[0].task)
    best, values = max(
        ((name, found) for name, found in scores.items() if found is not None), key=lambda one: float(one[1].mean())
    )
    gap = difference(accuracy, study.mean(counted, values.tolist()), names=("model", best))
    return {
        "baseline": f"{TITLES[best]} ({100 * float(values.mean()):.1f}%)",
        "difference": shown(gap),
        "verdict": _word(gap, accuracy, float(values.mean())),
    }


def _word(gap: Estimate, accuracy: Estimate, floor: float) -> str:
    low, high = gap.low, gap.high
    if gap.value is not None and abs(gap.value) < _TIE:
        # Answers that are those of the baseline, question by question, have no spread.
        return "not distinguishable"
    if (low is None or high is None) and accuracy.low is not None and accuracy.high is not None:
        # No spread of the difference between groups: the interval of the accuracy against the baseline's value.
        low, high = accuracy.low - floor, accuracy.high - floor
    if low is None or high is None:
        return "no interval"
    return "above" if low > 0 else "below" if high < 0 else "not distinguishable"


def baselines(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of what needs no image, by task, with the model below."""
    draws, state = int(options.get("simulations", 10_000)), int(options.get("random_state", 0))
    rows = []
    for task in study.tasks:
        items = [item for item in study.items if item.task == task]
        questions = [question_of(item) for item in items]
        sizes = [len(one.options) for one in questions]
        expected, deviation = random_exact(sizes)
        simulated = random_simulated(sizes, draws, state)
        facts = {"task": task, "n": len(items), "note": ""}
        rows.append(
            {
                **facts,
                "row": TITLES["random"],
                "value": _plain(expected),
                "note": f"sd {deviation:.4f}, k {_sizes(sizes)}",
            }
        )
        rows.append(
            {
                **facts,
                "row": "random, simulated",
                "value": {"value": simulated.mean, "low": simulated.low, "high": simulated.high, "why_null": None},
                "note": f"{draws} draws, random state {state}; 2.5 and 97.5 percentiles",
            }
        )
        for name, scores in baseline_rows(study, items, task).items():
            if name == "random":
                continue
            note = f"always {letter_of(best_letter(questions))}" if name == "letter" else ""
            value = _plain(float(scores.mean())) if scores is not None else _plain(None, NO_TRAIN)
            rows.append({**facts, "row": TITLES[name], "value": value, "note": note})
        bound = majority_test(questions)
        rows.append(
            {**facts, "row": "majority, test (upper bound)", "value": _plain(bound), "note": "needs the answers"}
        )
        own = study.of("", task)
        rows.append({**facts, "n": len(own), "row": study.label, "value": shown(study.accuracy(own))})
    columns = [
        column("task", "task"),
        column("row", "row"),
        column("n", "n", "count"),
        column("value", "accuracy", "percent"),
        column("note", "note"),
    ]
    return [table("baselines", "What needs no image", columns, rows)]


def _plain(value: float | None, why: str | None = None) -> dict[str, Any]:
    # Fixed by the questions, so there is no interval and no reason to give one.
    return {"value": value, "why_null": why}


def _sizes(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return str(low) if low == high else f"{low} to {high}"
