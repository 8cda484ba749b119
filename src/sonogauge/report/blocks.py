"""What was scored, place by place: tasks, data sets, slices, failures, signatures; one function for each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sonogauge.report.board import Board, Line, Place
from sonogauge.report.cells import Cell, Column, Fact, Table, arrow, count, metric, text, unit_of

# Suffix of the case-weighted mean beside the unweighted one.
CASES = "_cases"


def _coverage(fact: Fact | None) -> list[Cell]:
    if fact is None or fact.n is None:
        return [text(""), text("")]
    return [text(f"{fact.valid if fact.valid is not None else fact.n}/{fact.n}"), count(fact.excluded or 0)]


_COVERAGE = [Column("Valid/n", right=True), Column("Excl.", right=True, spare=1)]


def _by_cases(board: Board, places: Iterable[Place]) -> bool:
    return any((*place[:3], place[3] + CASES) in line.facts for line in board.lines for place in places)


def _is_by_cases(line: Line, place: Place) -> bool:
    """Whether a row is the case-weighted companion of another row, shown in a column beside it."""
    task, dataset, part, name = place
    return bool(task) and name.endswith(CASES) and (task, dataset, part, name.removesuffix(CASES)) in line.facts


def _case_cell(line: Line, place: Place) -> Cell:
    fact = line.facts.get((*place[:3], place[3] + CASES))
    return metric(fact) if fact else text("")


_CASE_COLUMN = Column("By cases", right=True, spare=3)


def tasks(board: Board) -> Table:
    """The headline of every task: value, coverage, chance, best non-reading baseline and verdict."""
    by_cases = _by_cases(board, [(code, "", "", name) for code, name in board.headlines()])
    columns = [
        Column("Task"),
        *board.model_columns(),
        Column("Metric"),
        Column("Value", right=True),
        *([_CASE_COLUMN] if by_cases else []),
        *_COVERAGE,
        Column("Sets", right=True, spare=6),
        Column("Least n", right=True, spare=5),
        Column("Chance", right=True, spare=4),
        Column("Best non-reading", right=True),
        Column("Difference", right=True, spare=2),
        Column("Verdict"),
    ]
    rows = []
    for code, name in board.headlines():
        for line in board.lines:
            fact = line.facts.get((code, "", "", name))
            sizes = _dataset_sizes(line, code, name)
            shown = arrow(name, fact.direction if fact else "")
            rows.append(
                [
                    text(code),
                    *board.model_cells(line),
                    text(shown),
                    metric(fact),
                    *([_case_cell(line, (code, "", "", name))] if by_cases else []),
                    *_coverage(fact),
                    count(len(sizes) or None),
                    count(min(sizes, default=None)),
                    _chance(fact),
                    _best(board, line, code, "", name),
                    *_verdict(board, line, code, name),
                ]
            )
    titles = [f"{code} {board.spec.tasks[code].title}" for code in board.codes() if code in board.spec.tasks]
    notes = [f"{'; '.join(titles)}."] if titles else []
    notes.append(
        "Value = unweighted mean over the task's data sets, by cases = weighted by their n. "
        "n counts failed replies, not excluded items; valid = replies that could be read; least n = smallest data set."
    )
    if any(board.verdict(line, code) for line in board.lines for code in board.codes()):
        notes.append(
            "Difference to the best baseline that does not look at the image, with its interval; positive is better."
        )
    return Table.of("tasks", "Tasks", columns, rows, notes)


def _dataset_sizes(line: Line, code: str, name: str) -> list[int]:
    return [
        fact.n
        for (task, dataset, part, one), fact in line.facts.items()
        if (task, part, one) == (code, "", name) and dataset and fact.n
    ]


def _chance(fact: Fact | None) -> Cell:
    if fact is None or fact.chance is None:
        return text("")
    cell = metric(fact)
    return Cell(value=fact.chance, unit=cell.unit, aside=True)


def _best(board: Board, line: Line, code: str, dataset: str, name: str) -> Cell:
    best = board.best_baseline(line, code, dataset, name)
    return metric(best, suffix=best.label, bounds=False) if best else text("")


def _verdict(board: Board, line: Line, code: str, name: str) -> list[Cell]:
    verdict = board.verdict(line, code)
    if not verdict:
        return [text(""), text("")]
    word = verdict.get("verdict") or f"none: {verdict.get('why_null') or 'no interval'}"
    difference, low, high = (verdict.get(part) for part in ("difference", "low", "high"))
    return [
        Cell(
            value=difference,
            low=low,
            high=high,
            unit=unit_of(name, code),
            notes=() if difference is not None else (word,),
        ),
        text(word),
    ]


def _listed(board: Board, key: str, title: str, chosen: list[Place], notes: list[str], *, detail: bool) -> Table:
    """One row for each place and model: value and coverage, with the parts of the place that occur."""
    with_dataset = any(dataset for _, dataset, _, _ in chosen)
    with_slice = any(part for _, _, part, _ in chosen)
    by_cases = _by_cases(board, chosen)
    columns = [
        Column("Task"),
        *([Column("Data set")] if with_dataset else []),
        *([Column("Slice")] if with_slice else []),
        *board.model_columns(),
        Column("Metric"),
        Column("Value", right=True),
        *([_CASE_COLUMN] if by_cases else []),
        *_COVERAGE,
    ]
    rows = []
    for place in chosen:
        task, dataset, part, name = place
        for line in board.lines:
            fact = line.facts.get(place)
            rows.append(
                [
                    text(task),
                    *([text(dataset)] if with_dataset else []),
                    *([text(part)] if with_slice else []),
                    *board.model_cells(line),
                    text(arrow(name, fact.direction if fact else "")),
                    metric(fact),
                    *([_case_cell(line, place)] if by_cases else []),
                    *_coverage(fact),
                ]
            )
    return Table.of(key, title, columns, rows, notes, detail=detail)


def _places(board: Board) -> list[Place]:
    """All places with rows: tasks in the order of the benchmark, then data set, slice, metric."""
    order = {code: index for index, code in enumerate(board.codes())}
    found = {place for line in board.lines for place in line.facts if place[0] and not _is_by_cases(line, place)}
    return sorted(found, key=lambda place: (order[place[0]], place))


_JUDGED: Final = ("judge_score", "judge_score_v1")


def _judged_lines(board: Board) -> list[Line]:
    return [line for line in board.lines if line.scores.manifest.parameters.get("judge")]


def judged(board: Board) -> Table:
    """The verdicts of judges on free text, without and with leniency; empty where no scores have verdicts."""
    lines = _judged_lines(board)
    columns = [Column("Task"), *board.model_columns(), Column("Metric"), Column("Value", right=True), *_COVERAGE]
    rows = []
    for place in _places(board):
        if place[1] or place[2] or place[3] not in _JUDGED:
            continue
        for line in lines:
            fact = line.facts.get(place)
            # A way of asking that a task was not asked in has no row.
            if fact is not None and (fact.n or not line.varied):
                cells = [text(arrow(place[3], fact.direction)), metric(fact), *_coverage(fact)]
                rows.append([text(place[0]), *board.model_cells(line), *cells])
    judges = dict.fromkeys(str(line.scores.manifest.parameters["judge"]) for line in lines)
    notes = [
        "Mean verdict, 0 to 1: judge_score without leniency, judge_score_v1 with leniency v1.",
        *(f"By {name}." for name in judges),
    ]
    unjudged = dict.fromkeys(line.label for line in board.lines if line not in lines and not line.varied)
    if lines and unjudged:
        notes.append(f"Without verdicts: {', '.join(unjudged)}.")
    return Table.of("judged", "Free text, judged", columns, rows, notes)


def other_metrics(board: Board) -> Table:
    """All metrics of a task besides its headline, and those of judges where they have a table of their own."""
    heads = set(board.headlines())
    apart = _JUDGED if _judged_lines(board) else ()
    chosen = [
        place
        for place in _places(board)
        if not place[1] and not place[2] and (place[0], place[3]) not in heads and place[3] not in apart
    ]
    return _listed(board, "metrics", "Other metrics", chosen, [], detail=False)


def datasets(board: Board) -> Table:
    """The headline of every data set, beside its own chance and best baseline."""
    heads = set(board.headlines())
    columns = [
        Column("Task"),
        Column("Data set"),
        *board.model_columns(),
        Column("Metric"),
        Column("Value", right=True),
        *_COVERAGE,
        Column("Groups", right=True, spare=5),
        Column("Chance", right=True, spare=4),
        Column("Best non-reading", right=True),
    ]
    rows = []
    for place in _places(board):
        task, dataset, part, name = place
        if not dataset or part or (task, name) not in heads:
            continue
        for line in board.lines:
            fact = line.facts.get(place)
            rows.append(
                [
                    text(task),
                    text(dataset),
                    *board.model_cells(line),
                    text(arrow(name, fact.direction if fact else "")),
                    metric(fact),
                    *_coverage(fact),
                    count(fact.groups if fact else None),
                    _chance(fact),
                    _best(board, line, task, dataset, name),
                ]
            )
    return Table.of("datasets", "Data sets", columns, rows)


def dataset_metrics(board: Board) -> Table:
    """All other metrics of the data sets (long)."""
    heads = set(board.headlines())
    chosen = [place for place in _places(board) if place[1] and not place[2] and (place[0], place[3]) not in heads]
    return _listed(board, "dataset_metrics", "Data sets, other metrics", chosen, [], detail=True)


def _slice_places(board: Board, *, same: bool) -> list[Place]:
    return [
        place for place in _places(board) if place[2] and all(_as_whole(line, place) for line in board.lines) == same
    ]


def _as_whole(line: Line, place: Place) -> bool:
    fact, whole = line.facts.get(place), line.facts.get((*place[:2], "", place[3]))
    return fact is not None and whole is not None and (fact.n, fact.value) == (whole.n, whole.value)


def slices(board: Board) -> Table:
    """Parts of the items: by anatomy, by what one image can tell, without places near a band edge."""
    same = _slice_places(board, same=True)
    notes = ["Slices that hold all items of their task are not repeated."] if same else []
    return _listed(board, "slices", "Slices", _slice_places(board, same=False), notes, detail=False)


def whole_slices(board: Board) -> Table:
    """Slices that hold all items of their task (long)."""
    return _listed(board, "whole_slices", "Slices equal to the whole", _slice_places(board, same=True), [], detail=True)


def failures(board: Board) -> Table:
    """Failed replies by reason, with their share of the scored items."""
    folders = list(dict.fromkeys(line.scores for line in board.lines))
    reasons = sorted({reason for one in folders for reason, number in one.failures.items() if number})
    columns = [Column("Reason"), *(Column(one.label if len(folders) > 1 else "Replies", right=True) for one in folders)]
    single = len(folders) == 1
    # The count of scored items is that of the strict protocol.
    scored = folders[0].counts.get("scored") if single and folders[0].protocol == "strict" else None
    if scored:
        columns.append(Column("Share", right=True))
    rows = []
    for reason in reasons:
        cells = [count(one.failures.get(reason, 0)) for one in folders]
        share = [Cell(value=folders[0].failures.get(reason, 0) / scored, unit="percent")] if scored else []
        rows.append([text(reason), *cells, *share])
    notes = ["A failed reply counts as wrong under the strict protocol."] if folders[0].protocol == "strict" else []
    if scored:
        notes.append(f"Share of {scored} scored items.")
    if any(line.varied for line in board.lines):
        notes.append("Counts are of the unvaried run.")
    return Table.of("failures", "Failed replies", columns, rows, notes)


def left_out(board: Board) -> Table:
    """Items that count nowhere, by the state of their reference, and how requests ended."""
    rows = []
    for one in dict.fromkeys(line.scores for line in board.lines):
        label = [text(one.label)] if board.several else []
        for kind, found in (("excluded", one.counts.get("excluded", {})), ("request", one.counts.get("statuses", {}))):
            for state, number in sorted(found.items()):
                if number:
                    rows.append([*label, text(kind), text(str(state)), count(int(number))])
    columns = [*board.model_columns(), Column("What"), Column("State"), Column("Items", right=True)]
    return Table.of("left_out", "Excluded items and request states", columns, rows)


def abstention(board: Board) -> Table:
    """Items whose reference is "cannot be measured": right if the model says so."""
    rows = []
    for one in dict.fromkeys(line.scores for line in board.lines):
        label = [text(one.label)] if board.several else []
        for place, found in sorted(one.counts.get("abstention", {}).items()):
            pairs = found.items() if isinstance(found, Mapping) else [("", found)]
            for state, number in sorted(pairs):
                rows.append([*label, text(str(place)), text(str(state)), count(int(number))])
    columns = [*board.model_columns(), Column("Where"), Column("Answer"), Column("Items", right=True)]
    notes = ["`null` is right here, a number is wrong. Never part of an error metric."]
    return Table.of("abstention", "Abstention", columns, rows, notes)


def _references(board: Board, key: str, title: str, *, places: bool) -> Table:
    rows = []
    first = board.lines[0].scores
    held = first.counts.get("references", {})
    order = {code: index for index, code in enumerate(board.codes())}
    for where in sorted(held, key=lambda where: (order.get(where.partition("/")[0], len(order)), where)):
        code, _, dataset = where.partition("/")
        task = board.spec.tasks.get(code)
        if (task is not None and task.form == "place") != places:
            continue
        total = sum(held[where].values())
        shares = sorted(held[where].items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{name} {number} ({100 * number / total:.0f}%)" for name, number in shares if number)
        rows.append([text(code), text(dataset), text(shown)])
    columns = [Column("Task"), Column("Data set"), Column("Items with each reference")]
    return Table.of(key, title, columns, rows, detail=not places)


def place_references(board: Board) -> Table:
    """How often each place is the reference: the ten are far from balanced."""
    return _references(board, "place_references", "Places of the references", places=True)


def other_references(board: Board) -> Table:
    """How often each option is the reference (long)."""
    return _references(board, "references", "References", places=False)


def signatures(board: Board) -> Table:
    """How each number was made: one line for each distinct recipe, with the metrics and tasks that share it."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for line in board.lines:
        for place, fact in line.facts.items():
            if fact.signature and not fact.slice and not fact.dataset and not _is_by_cases(line, place):
                recipe = fact.signature.removeprefix(f"{fact.metric}|")
                codes, names = found.setdefault(recipe, ({}, {}))
                codes.setdefault(fact.task or "total")
                names.setdefault(fact.metric)
    rows = [
        [text(", ".join(codes)), text(", ".join(sorted(names))), text(recipe)]
        for recipe, (codes, names) in found.items()
    ]
    return Table.of("signatures", "Signatures", [Column("Tasks"), Column("Metrics"), Column("Recipe")], rows)
