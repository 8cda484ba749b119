"""Whole models side by side: totals, leaderboard, baselines, models trained in-domain, published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonogauge.report.board import Board, Place
from sonogauge.report.cells import Column, Fact, Table, arrow, count, metric, text
from sonogauge.report.document import task_order

DETERMINABLE = (("determinable!=no", "determinable or partly"), ("determinable=yes", "determinable"))


def totals(board: Board) -> Table:
    """Composites with intervals, over all scenarios and over the determinable ones, with their formula."""
    slices = [
        (key, title)
        for key, title in DETERMINABLE
        if any(("", "", key, name) in line.facts for line in board.lines for name in board.composites())
    ]
    columns = [
        *board.model_columns(),
        Column("Total"),
        Column("All scenarios", right=True),
        *(Column(title.capitalize(), right=True) for _, title in slices),
        Column("n", right=True),
    ]
    rows = []
    for name in board.composites():
        for line in board.lines:
            whole = line.facts.get(("", "", "", name))
            cells = [metric(line.facts.get(("", "", key, name))) for key, _ in slices]
            size = count(whole.n if whole else None)
            rows.append([*board.model_cells(line), text(name), metric(whole), *cells, size])
    notes = [
        f"{name} = {board.spec.composites[name].formula}"
        for name in board.composites()
        if name in board.spec.composites
    ]
    for table in dict.fromkeys(
        declared.weights for name in board.composites() if (declared := board.spec.composites.get(name))
    ):
        weights = board.spec.weights.get(table, {})
        shown = [f"{code} {weights[code]:.4g}" for code in task_order(board.spec) if code in weights]
        notes.append(f"weights {table}: " + ", ".join(shown))
    return Table.of("totals", "Totals", columns, rows, notes)


def _standings(
    board: Board,
    key: str,
    title: str,
    lines: Sequence[tuple[str, Mapping[Place, Fact]]],
    notes: list[str],
    *,
    missing: str = "not scored",
    bounds: bool = True,
) -> Table:
    """One row for each model, one column for each total and each task's headline."""
    placed = [("", name) for name in board.composites()] + board.headlines()
    places = [
        (task, name)
        for task, name in placed
        if any((task, "", "", name) in facts for _, facts in lines)
        and (task or name == placed[0][1])  # one total is enough here, the others have their own table
    ]
    columns = [Column("Model")]
    columns += [Column(arrow(task or name, board.direction(task, name)), right=True) for task, name in places]
    held: dict[str, list[str]] = {}
    for task, name in places:
        if task:
            held.setdefault(name, []).append(task)
    if held:
        notes = [
            "Headlines: " + "; ".join(f"{name} ({', '.join(codes)})" for name, codes in held.items()) + ".",
            *notes,
        ]
    rows = [
        [
            text(label),
            *(metric(facts.get((task, "", "", name)), missing=missing, bounds=bounds) for task, name in places),
        ]
        for label, facts in lines
    ]
    return Table.of(key, title, columns, rows if places else [], notes)


def leaderboard(board: Board) -> Table | None:
    """The models side by side, the best total first."""
    if not board.several:
        return None
    lines = [(line.label, line.facts) for line in board.lines]
    if names := board.composites():
        first = names[0]

        def rank(line: tuple[str, Mapping[Place, Fact]]) -> tuple[bool, float]:
            fact = line[1].get(("", "", "", first))
            return (fact is None or fact.value is None, -(fact.value if fact and fact.value is not None else 0.0))

        lines.sort(key=rank)
    notes = ["Overlapping intervals do not prove equality: use sonogauge compare for paired differences."]
    return _standings(board, "leaderboard", "Side by side", lines, notes)


def baselines(board: Board) -> Table:
    """What can be had without looking: the baselines on the same items."""
    lines = [(name, facts) for name, facts in board.baseline_facts().items()]
    return _standings(board, "baselines", "Baselines on the same items", lines, [], bounds=False)


def in_domain(board: Board) -> Table:
    """Models trained on the benchmark's own train part, in a block of their own."""
    lines = [(line.label, line.facts) for line in board.reference_lines]
    notes = ["Trained in-domain on the benchmark's own train part: what can be learned, not a zero-shot score."]
    return _standings(board, "in_domain", "Trained in-domain", lines, notes)


def _published(board: Board) -> dict[str, dict[Place, Fact]]:
    result: dict[str, dict[Place, Fact]] = {}
    for one in board.scores:
        for fact in one.published:
            result.setdefault(fact.label, {}).setdefault(fact.place, fact)
    return result


def published(board: Board) -> Table:
    """Published numbers beside the computed ones, marked, with every doubt."""
    found = _published(board)
    sources = list(dict.fromkeys(fact.source for facts in found.values() for fact in facts.values() if fact.source))
    notes = ["Published numbers, not computed here: no intervals, and data sets may differ between models."]
    if any(one.counts.get("partial") for one in board.scores):
        notes.append("The scores above are partial: their totals are not comparable with these.")
    if sources:
        notes.append(f"Source: {'; '.join(sources)}.")
    return _standings(
        board, "published", "Published (not computed here)", list(found.items()), notes, missing="not published"
    )


def published_metrics(board: Board) -> Table:
    """All other published numbers (long)."""
    heads = {("", name) for name in board.composites()[:1]} | set(board.headlines())
    rows = [
        [text(label), text(fact.task), text(arrow(fact.metric, fact.direction)), metric(fact)]
        for label, facts in _published(board).items()
        for place, fact in sorted(facts.items())
        if (place[0], place[3]) not in heads
    ]
    columns = [Column("Model"), Column("Task"), Column("Metric"), Column("Value", right=True)]
    return Table.of("published_metrics", "Published, other metrics", columns, rows, detail=True)
