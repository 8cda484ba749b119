"""From scores folders to the tables of a report; every format is made from this one view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sonogauge.hashes import canonical_json
from sonogauge.report import blocks, standings
from sonogauge.report.board import Board
from sonogauge.report.cells import Table, View
from sonogauge.report.document import document
from sonogauge.report.load import Scores

SIMULATED_NOTICE = "Simulated, not clinical."
SOURCES_NOTICE = "Intervals (95 %) speak of new patients from the same sources, not of other hospitals or devices."

# Parameters that have a line of their own.
_SHOWN: Final = frozenset({"model", "scenario_set", "draws", "seed", "protocols"})


def build_view(scores: Sequence[Scores]) -> View:
    """Return the view of one or several scores folders of one benchmark, shown under one protocol."""
    board = Board.of(scores)
    builders = (
        standings.totals,
        standings.leaderboard,
        blocks.tasks,
        blocks.judged,
        blocks.other_metrics,
        blocks.datasets,
        blocks.dataset_metrics,
        blocks.slices,
        blocks.whole_slices,
        blocks.failures,
        blocks.left_out,
        blocks.abstention,
        blocks.place_references,
        blocks.other_references,
        standings.baselines,
        standings.in_domain,
        standings.published,
        standings.published_metrics,
        blocks.signatures,
    )
    tables = [table for table in (build(board) for build in builders) if isinstance(table, Table) and table.rows]
    return View(
        title=board.spec.title,
        facts=_facts(scores),
        notices=_notices(board),
        tables=tuple(tables),
        documents=tuple(document(one) for one in scores),
        paths=tuple(one.path for one in scores),
        protocol=scores[0].protocol,
    )


def _facts(scores: Sequence[Scores]) -> tuple[tuple[str, str], ...]:
    first = scores[0]
    parameters = first.manifest.parameters
    facts = [
        ("model", ", ".join(one.label for one in scores)),
        ("benchmark", f"{first.manifest.name} {first.manifest.version}"),
        ("protocol", first.protocol),
        ("scenarios", ", ".join(dict.fromkeys(one.scenario_set for one in scores))),
    ]
    if "draws" in parameters:
        facts.append(("intervals", f"95 %, {parameters['draws']} draws, seed {parameters.get('seed', 0)}"))
    hashes = dict.fromkeys(source.hash[:12] for one in scores if (source := one.manifest.input("benchmark")))
    if hashes:
        facts.append(("data", ", ".join(hashes)))
    rest = [
        f"{name} {value if isinstance(value, str) else canonical_json(value)}"
        for name, value in sorted(parameters.items())
        if name not in _SHOWN and value is not None
    ]
    if rest:
        facts.append(("parameters", "; ".join(rest)))
    return tuple(facts)


def _notices(board: Board) -> tuple[str, ...]:
    scores, spec = board.scores, board.spec
    notices: list[str] = []
    notices.extend(_told(scores, _gaps))
    notices.extend(
        f"{one.label} was trained in-domain, on this benchmark's own train part." for one in scores if one.in_domain
    )
    if len({source.hash for one in scores if (source := one.manifest.input("benchmark"))}) > 1:
        notices.append("The folders score different builds of the benchmark; differences may come from the data.")
    if len({one.scenario_set for one in scores}) > 1:
        notices.append("The folders score different scenario sets; totals are not comparable.")
    differing = sorted(
        name
        for name in {name for one in scores for name in one.manifest.parameters} - {"model"}
        if len({canonical_json(one.manifest.parameters.get(name)) for one in scores}) > 1
    )
    if differing:
        notices.append(f"The folders were scored with different parameters: {', '.join(differing)}.")
    notices.extend(spec.notices)
    notices.extend(_told(scores, lambda one: one.manifest.notices))
    if licence := spec.licence or "; ".join(scores[0].manifest.licences):
        notices.append(f"Licence of the data: {licence}.")
    if any(fact.low is not None for one in scores for fact in one.own):
        notices.append(SOURCES_NOTICE)
    if spec.simulated:
        # Said once, first and in these words, however benchmark and scorer put it.
        notices = [SIMULATED_NOTICE, *(one for one in notices if not one.casefold().startswith("simulated"))]
    return tuple(_distinct(notices))


def _gaps(one: Scores) -> list[str]:
    """What a partial score leaves out."""
    gaps = []
    if one.counts.get("partial"):
        why = "; ".join(str(reason) for reason in one.counts.get("partial_why", ()))
        gaps.append(f"Partial{': ' + why if why else ''}.")
    missing = [pair if isinstance(pair, str) else "/".join(map(str, pair)) for pair in one.counts.get("missing", ())]
    if missing:
        gaps.append(f"Missing: {', '.join(missing)}.")
    return gaps


def _told(scores: Sequence[Scores], notices: Callable[[Scores], Sequence[str]]) -> list[str]:
    """Notices of the folders; one that does not hold for all of them names its models."""
    holders: dict[str, list[str]] = {}
    for one in scores:
        for notice in notices(one):
            holders.setdefault(notice, []).append(one.label)
    return [
        notice if len(labels) == len(scores) else f"{', '.join(labels)}: {notice}" for notice, labels in holders.items()
    ]


def _distinct(notices: list[str]) -> list[str]:
    # The scorer and the specification may state the same thing; letters alone decide.
    kept: dict[str, str] = {}
    for notice in notices:
        line = " ".join(notice.split())
        kept.setdefault("".join(character for character in line.casefold() if character.isalnum()), line)
    return [line for key, line in kept.items() if key]
