"""What was scored, place by place: tasks, data sets, slices, failures, signatures; one function for each table."""

from __future__ import annotations

from collections.abc import Mapping

from sonogauge.report.board import Board, Line, Place
from sonogauge.report.cells import Cell, Column, Fact, Table, arrow, count, metric, text
from sonogauge.report.load import BASELINE_PREFIX

# Suffix of the case-weighted mean beside the unweighted one.
CASES = "_cases"


def _coverage(fact: Fact | None) -> list[Cell]:
    if fact is None or fact.n is None:
        return [text(""), text("")]
    return [text(f"{fact.valid if fact.valid is not None else fact.n}/{fact.n}"), count(fact.excluded or 0)]


_COVERAGE = [Column("Valid/n", right=True), Column("Excluded", right=True)]


def _by_cases(board: Board) -> bool:
    return any(_is_by_cases(line, place) for line in board.lines for place in line.facts)


def _is_by_cases(line: Line, place: Place) -> bool:
    """Whether a row is the case-weighted companion of another row, shown in a column beside it."""
    task, dataset, part, name = place
    return name.endswith(CASES) and (task, dataset, part, name.removesuffix(CASES)) in line.facts


def _case_columns(board: Board) -> list[Column]:
    return [Column("By cases", right=True)] if _by_cases(board) else []


def _case_cells(board: Board, line: Line, task: str, part: str, name: str) -> list[Cell]:
    if not _by_cases(board):
        return []
    fact = line.facts.get((task, "", part, name + CASES))
    return [metric(fact) if fact else text("")]


def tasks(board: Board) -> Table:
    """The headline of every task: value, coverage, chance, best non-reading baseline and verdict."""
    columns = [
        Column("Task"),
        *board.model_columns(),
        Column("Metric"),
        Column("Value", right=True),
        *_case_columns(board),
        *_COVERAGE,
        Column("Sets", right=True),
        Column("Smallest n", right=True),
        Column("Chance", right=True),
        Column("Best non-reading", right=True),
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
                    *_case_cells(board, line, code, "", name),
                    *_coverage(fact),
                    count(len(sizes)) if sizes else text(""),
                    count(min(sizes)) if sizes else text(""),
                    _chance(fact),
                    _best(board, line, code, "", name),
                    text(_verdict(board, line, code)),
                ]
            )
    titles = [f"{code} {board.spec.tasks[code].title}" for code in board.codes() if code in board.spec.tasks]
    notes = [f"{'; '.join(titles)}."] if titles else []
    notes.append(
        "Value = unweighted mean over the task's data sets, by cases = weighted by their n. "
        "n counts failed replies, not excluded items; valid = replies that could be read."
    )
    if any(board.verdict(line, code) for line in board.lines for code in board.codes()):
        notes.append("Verdict: difference to the best baseline that does not look at the image, with its interval.")
    return Table.of("tasks", "Tasks", columns, rows, notes)


def _dataset_sizes(line: Line, code: str, name: str) -> list[int]:
    return [
        fact.n
        for (task, dataset, part, one), fact in line.facts.items()
        if (task, part, one) == (code, "", name) and dataset and fact.n is not None
    ]


def _chance(fact: Fact | None) -> Cell:
    if fact is None or fact.chance is None:
        return text("")
    cell = metric(fact)
    return Cell(value=fact.chance, unit=cell.unit)


def _best(board: Board, line: Line, code: str, dataset: str, name: str) -> Cell:
    best = board.best_baseline(line, code, dataset, name)
    return metric(best, suffix=best.label, bounds=False) if best else text("")


def _verdict(board: Board, line: Line, code: str) -> str:
    verdict = board.verdict(line, code)
    if not verdict:
        return ""
    shown = str(verdict.get("verdict") or f"none: {verdict.get('why_null') or 'no interval'}")
    if verdict.get("baseline"):
        shown += f" {str(verdict['baseline']).removeprefix(BASELINE_PREFIX)}"
    difference, low, high = (verdict.get(part) for part in ("difference", "low", "high"))
    if difference is not None:
        shown += f" ({difference:+.3f}"
        shown += f" [{low:+.3f}, {high:+.3f}])" if low is not None and high is not None else ")"
    return shown


def _listed(board: Board, key: str, title: str, chosen: list[Place], notes: list[str], *, detail: bool) -> Table:
    """One row for each place and model: value and coverage, with the parts of the place that occur."""
    with_dataset = any(dataset for _, dataset, _, _ in chosen)
    with_slice = any(part for _, _, part, _ in chosen)
    columns = [
        Column("Task"),
        *([Column("Data set")] if with_dataset else []),
        *([Column("Slice")] if with_slice else []),
        *board.model_columns(),
        Column("Metric"),
        Column("Value", right=True),
        *([] if with_dataset else _case_columns(board)),
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
                    *([] if with_dataset else _case_cells(board, line, task, part, name)),
                    *_coverage(fact),
                ]
            )
    return Table.of(key, title, columns, rows, notes, detail=detail)


def _places(board: Board) -> list[Place]:
    """All places with rows: tasks in the order of the benchmark, then data set, slice, metric."""
    order = {code: index for index, code in enumerate(board.codes())}
    found = {place for line in board.lines for place in line.facts if place[0] and not _is_by_cases(line, place)}
    return sorted(found, key=lambda place: (order[place[0]], place))


def other_metrics(board: Board) -> Table:
    """All metrics of a task besides its headline."""
    heads = set(board.headlines())
    chosen = [place for place in _places(board) if not place[1] and not place[2] and (place[0], place[3]) not in heads]
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
        Column("Groups", right=True),
        Column("Chance", right=True),
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
                    count(fact.groups) if fact and fact.groups is not None else text(""),
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


def slices(board: Board) -> Table:
    """Headlines of parts of the items: by anatomy, by what one image can tell, without places near a band edge."""
    heads = set(board.headlines())
    chosen = [place for place in _places(board) if place[2] and not place[1] and (place[0], place[3]) in heads]
    return _listed(board, "slices", "Slices", chosen, [], detail=False)


def failures(board: Board) -> Table:
    """Failed replies by reason, with their share of the scored items."""
    folders = list(dict.fromkeys(line.scores for line in board.lines))
    reasons = sorted({reason for one in folders for reason in one.failures})
    columns = [Column("Reason"), *(Column(one.label if len(folders) > 1 else "Replies", right=True) for one in folders)]
    single = len(folders) == 1
    scored = folders[0].counts.get("scored") if single else None
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
    return Table.of("abstention", "Abstention", columns, rows, ["Never part of an error metric."])


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
