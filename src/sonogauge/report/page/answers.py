"""What the single answers show: confusions, numbers against their reference, anatomy, and whom to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.report.load import Scores
from sonogauge.report.page.pack import short

# As many as the scorer keeps a confusion matrix for, or a table that a screen can hold.
MOST_OPTIONS: Final = 40
# Forms whose answers are measured by degrees; scores made by earlier versions count facts of a text as "correct".
_GRADED: Final = ("text", "grounded_report")
_ITEM_COLUMNS: Final = (
    "item_id",
    "task",
    "dataset",
    "source",
    "group",
    "split",
    "images",
    "question",
    "prompt_id",
    "answer",
    "reference",
    "reference_state",
    "anatomy",
    "determinable",
)
_SCORE_COLUMNS: Final = (
    "protocol",
    "item_id",
    "variant",
    "epoch",
    "rater_id",
    "task",
    "dataset",
    "status",
    "prediction",
    "reason",
    "excluded",
    "values",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's answer to one item, as strict scoring read it.

    outcome: right, wrong, failed (no valid answer, with its reason), graded (a text: neither right nor wrong) or
    excluded (counts nowhere).
    """

    outcome: str
    reason: str
    status: str
    prediction: Mapping[str, Any]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Answers:
    """All answers of a page: items by id, and for each scores folder its answers by item.

    missing: why there is nothing, a sentence for the reader; empty if all is there.
    """

    items: Mapping[str, Item]
    by_scores: Mapping[int, Mapping[str, Answer]]
    bench: Folder | None
    missing: str = ""
    notices: tuple[str, ...] = field(default=())


def offered_paths(scores: Scores, role: str, given: Path | None = None) -> list[Path]:
    """Return where an input of a scores folder may lie now: the given path, else the recorded one and places near.

    A recorded path is relative to where the command ran; a folder tree that moved as a whole is found from its inside.
    Whoever opens one compares its content hash.
    """
    source = scores.manifest.input(role)
    if given is not None or source is None:
        return [given] if given is not None else []
    recorded = Path(source.path)
    parts = [part for part in recorded.parts if part not in (recorded.anchor, "..")]
    near = [
        parent.joinpath(*parts[-count:])
        for count in range(min(3, len(parts)), 0, -1)
        for parent in list(scores.path.resolve().parents)[:4]
    ]
    return [path for path in [recorded, *near] if path.exists()]


def read_answers(scores: list[Scores], bench: Path | None = None) -> Answers:
    """Read the answers of scores folders and the items they belong to.

    Args:
        scores: folders of one benchmark, under strict.
        bench: benchmark folder, if it moved.

    Raises:
        BadInput: `bench` is given and is no benchmark folder or another one than was scored.
    """
    folder, missing = _open_bench(scores, bench)
    if folder is None:
        return Answers({}, {}, None, missing)
    items = {row["item_id"]: Item.from_row(row) for row in folder.rows("items", list(_ITEM_COLUMNS))}
    source = folder.manifest.hash
    by_scores, notices = {}, []
    for index, one in enumerate(scores):
        recorded = one.manifest.input("benchmark")
        if recorded is not None and recorded.hash != source:
            notices.append(
                f"{one.label}: scored on another build of the benchmark, so its single answers are not shown."
            )
            continue
        by_scores[index] = dict(_answers(one, items))
        if not by_scores[index]:
            notices.append(f"{one.label}: no single answers are stored in its scores folder.")
    return Answers(items, by_scores, folder, "", tuple(notices))


def _open_bench(scores: list[Scores], given: Path | None) -> tuple[Folder | None, str]:
    wanted = {source.hash for one in scores if (source := one.manifest.input("benchmark"))}
    for path in dict.fromkeys(path for one in scores for path in offered_paths(one, "benchmark", given)):
        try:
            folder = Folder(path, "benchmark")
        except BadInput:
            # Something else of that name; only a path that was given must be right.
            if given is not None:
                raise
            continue
        if folder.manifest.hash in wanted:
            return folder, ""
        if given is not None:
            raise BadInput(
                f"another benchmark than was scored (content hash {folder.manifest.hash[:12]})",
                file=given,
                fix="name the folder that the scores were made from",
            )
    source = scores[0].manifest.input("benchmark")
    name = Path(source.path).name if source else scores[0].manifest.name
    return None, (
        f"The benchmark folder '{name}' was not found when this page was made, or it has changed since scoring: "
        "questions, references, images and all that is counted from single answers cannot be shown. "
        "Name it with --bench to show them."
    )


def _answers(scores: Scores, items: Mapping[str, Item]) -> Iterable[tuple[str, Answer]]:
    folder = Folder(scores.path, "scores")
    tolerance = scores.manifest.parameters.get("tolerance")
    for batch in folder.batches("score_items", list(_SCORE_COLUMNS)):
        for row in batch.to_pylist():
            # The unvaried run, its first epoch, machines: what the task values beside it speak of.
            first = not row["variant"] and not row["rater_id"] and not row["epoch"]
            if first and row["protocol"] == "strict" and row["item_id"] in items:
                yield row["item_id"], _answer(row, items[row["item_id"]], tolerance)


def _answer(row: Mapping[str, Any], item: Item, tolerance: Any) -> Answer:
    prediction = {name: value for name, value in (row["prediction"] or {}).items() if value is not None}
    values = {name: value for name, value in row["values"] or () if value is not None}
    if row["excluded"]:
        outcome = "excluded"
    elif row["reason"]:
        outcome = "failed"
    elif "correct" in values and item.answer.form not in _GRADED:
        outcome = "right" if values["correct"] >= 1 else "wrong"
    elif "scaled_error" in values:
        allowed = item.answer.tolerance if item.answer.tolerance is not None else tolerance
        outcome = "right" if allowed is not None and abs(values["scaled_error"]) <= allowed else "wrong"
    else:
        outcome = "graded"
    return Answer(outcome, row["reason"] or row["excluded"] or "", row["status"] or "", prediction, values)


def answer_data(answers: Answers, lines: Mapping[int, int]) -> dict[str, Any]:
    """Return confusions, pairs of numbers and the anatomy table; lines: number of a scores folder to its line."""
    cells: dict[tuple[str, str], list[Item]] = {}
    asked = {item_id for found in answers.by_scores.values() for item_id in found}
    for item_id in sorted(asked):
        item = answers.items[item_id]
        if item.reference_state == "ok":
            cells.setdefault((item.task, item.dataset), []).append(item)
    choices, numbers = [], []
    for (task, dataset), items in sorted(cells.items()):
        where = {"task": task, "dataset": dataset, "n": len(items)}
        form = items[0].answer.form
        options = list(dict.fromkeys(option for item in items for option in item.answer.options))
        if form in ("choice", "place") and 1 < len(options) <= MOST_OPTIONS:
            choices.append({**where, "options": options, "models": _confusions(answers, lines, items, options)})
        elif form == "number":
            numbers.append({**where, **_numbers(answers, lines, items)})
    return {"choices": choices, "numbers": numbers, "anatomy": _anatomy(answers, lines)}


def _field(value: Mapping[str, Any]) -> list[str]:
    return list(value.get("choices") or value.get("places") or ())


def _confusions(
    answers: Answers, lines: Mapping[int, int], items: list[Item], options: list[str]
) -> dict[str, list[list[int]]]:
    """Return, by line, counts with a row for each reference and a last column for replies without a valid answer.

    Where several answers are right, a right prediction counts on its own row, a wrong one on that of the first.
    """
    place = {option: index for index, option in enumerate(options)}
    result = {}
    for index, found in answers.by_scores.items():
        counts = [[0] * (len(options) + 1) for _ in options]
        seen = False
        for item in items:
            references = [one for one in _field(item.reference) if one in place]
            answer = found.get(item.item_id)
            if answer is None or answer.outcome == "excluded" or not references:
                continue
            predicted = _field(answer.prediction)
            column = place.get(predicted[0], len(options)) if len(predicted) == 1 else len(options)
            row = predicted[0] if predicted and predicted[0] in references else references[0]
            counts[place[row]][column] += 1
            seen = True
        if seen:
            result[str(lines[index])] = counts
    return result


def _numbers(answers: Answers, lines: Mapping[int, int], items: list[Item]) -> dict[str, Any]:
    pairs = [(item, item.reference.get("number")) for item in items]
    kept = [(item, value) for item, value in pairs if isinstance(value, int | float)]
    first = items[0].answer
    return {
        "unit": first.unit or "",
        "low": short(first.low),
        "high": short(first.high),
        "reference": [short(value) for _, value in kept],
        "models": {
            str(lines[index]): [
                short(answer.prediction.get("number")) if (answer := found.get(item.item_id)) else None
                for item, _ in kept
            ]
            for index, found in answers.by_scores.items()
            if any(item.item_id in found for item, _ in kept)
        },
    }


def _anatomy(answers: Answers, lines: Mapping[int, int]) -> dict[str, dict[str, list[int]]]:
    """Return, by anatomy and line, [right, n] over the items that are right or wrong, failures counted as wrong."""
    result: dict[str, dict[str, list[int]]] = {}
    for index, found in answers.by_scores.items():
        for item_id, answer in found.items():
            item = answers.items[item_id]
            if answer.outcome in ("graded", "excluded") or item.answer.form not in ("choice", "place"):
                continue
            cell = result.setdefault(item.anatomy or "not stated", {}).setdefault(str(lines[index]), [0, 0])
            cell[0] += answer.outcome == "right"
            cell[1] += 1
    return dict(sorted(result.items()))
