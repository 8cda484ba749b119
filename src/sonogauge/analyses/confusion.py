"""Analysis 7: what is taken for what, and whether one letter or one label is answered whatever the image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge.analyses.formulas import letter_of
from sonogauge.analyses.study import Record, Study
from sonogauge.compare.ablations.base import column, table

NO_ANSWER: Final = "(no answer)"
FLAG: Final = 0.80
# A label offered fewer times than this is not flagged: naming it each time may be chance, or right.
LEAST_OFFERED: Final = 10
MOST_LABELS: Final = 30


def confusion(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a confusion matrix for each task, and the distributions of answered letters and labels.

    A letter, or a label, that takes more than 80 % of the readable answers of a task is flagged. Letters are places
    in the order shown, so they exist without letters too. A label is flagged too if it takes more than 80 % of the
    answers where it is offered, and is not right that often: drawn options hide a favourite label from all answers.
    """
    tables, letters, labels = [], [], []
    for task in study.tasks:
        records = study.of("", task)
        tables.append(_matrix(study, task, records))
        letters += _letters(task, records)
        labels += _labels(task, records)
    columns = [
        column("task", "task"),
        column("letter", "letter"),
        column("n", "answered", "count"),
        column("share", "share of answers", "percent"),
        column("expected", "share of right answers", "percent"),
        column("flag", "flag"),
    ]
    note = f"flag: more than {FLAG:.0%} of the readable answers of a task."
    named = [column("label", "label") if one["key"] == "letter" else one for one in columns[:-1]]
    named += [
        column("offered", "offered", "count"),
        column("chosen", "answered where offered", "percent"),
        column("right", "right where offered", "percent"),
        columns[-1],
    ]
    offered = (
        f"where offered: of the readable answers to questions that offer the label; flag: over {FLAG:.0%} of them, "
        f"{LEAST_OFFERED} or more, though the label is not right that often."
    )
    return [
        table("letters", f"Answered letters, {study.label}", columns, letters, note),
        table("labels", f"Answered labels, {study.label}", named, labels, note, offered),
        *tables,
    ]


def _matrix(study: Study, task: str, records: Sequence[Record]) -> dict[str, Any]:
    counts = Counter((one.answer, one.choice or NO_ANSWER) for one in records)
    right = Counter(one.answer for one in records)
    given = Counter(one.choice or NO_ANSWER for one in records)
    names = sorted({*right, *given} - {NO_ANSWER})
    if len(names) > MOST_LABELS:
        # A wide matrix is no table: the commonest pairs tell as much.
        pairs = sorted(counts, key=lambda pair: (-counts[pair], pair))[: 2 * MOST_LABELS]
        rows = [{"right": answer, "answered": choice, "n": counts[answer, choice]} for answer, choice in pairs]
        columns = [column("right", "right"), column("answered", "answered"), column("n", "n", "count")]
        return table(f"confusion_{task}", f"Commonest pairs, {task}, {study.label}", columns, rows)
    shown = [*names, NO_ANSWER]
    keys = {name: f"c{number}" for number, name in enumerate(shown)}
    rows = [
        {"right": name, "n": right[name], **{keys[other]: counts[name, other] for other in shown}}
        for name in names
        if right[name]
    ]
    columns = [column("right", "right \\ answered"), column("n", "n", "count")]
    columns += [column(keys[name], name, "count") for name in shown]
    return table(f"confusion_{task}", f"Confusion, {task}, {study.label}", columns, rows)


def _letters(task: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    read = [one for one in records if one.choice is not None]
    given = Counter(one.shown.index(one.choice) for one in read if one.choice is not None)
    right = Counter(one.shown.index(one.answer) for one in records)
    return [
        {"task": task, "letter": letter_of(place), **_shares(given[place], len(read), right[place], len(records))}
        for place in range(max(len(one.shown) for one in records))
    ]


def _labels(task: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    read = [one for one in records if one.choice is not None]
    given, right = Counter(str(one.choice) for one in read), Counter(one.answer for one in records)
    offered = Counter(option for one in read for option in one.shown)
    answers = Counter(one.answer for one in read)
    return [
        {
            "task": task,
            "label": name,
            **_shares(given[name], len(read), right[name], len(records)),
            **_offered(given[name], offered[name], answers[name], len(read)),
        }
        for name in sorted({*given, *right})
    ]


def _offered(given: int, offered: int, right: int, read: int) -> dict[str, Any]:
    chosen, due = (given / offered, right / offered) if offered else (None, None)
    found: dict[str, Any] = {"offered": offered, "chosen": chosen, "right": due}
    if chosen is not None and due is not None and chosen > FLAG >= due and offered >= LEAST_OFFERED:
        found["flag"] = "over 80 %" if given / read > FLAG else "over 80 % where offered"
    return found


def _shares(given: int, read: int, right: int, n: int) -> dict[str, Any]:
    share = given / read if read else 0.0
    return {"n": given, "share": share, "expected": right / n, "flag": "over 80 %" if share > FLAG else ""}
