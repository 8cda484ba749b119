"""From votes to decisions: unanimous, by majority, or by an adjudicator where reviewers disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sonogauge._errors import BadInput
from sonogauge.review.forms import ADJUDICATOR, CORRECTION

Rule = Literal["majority", "unanimous"]
RULES: Final = ("majority", "unanimous")


@dataclass(frozen=True)
class Decision:
    """What was decided on one item, role and question.

    vote: None while open. how: unanimous, majority, adjudicated, open (a disagreement) or short (too few views).
    votes: of the reviewers, by name. causes, comments: of those who hold the deciding vote, of all while open.
    signed_off: by how many reviewers.
    """

    item_id: str
    role: str
    question: str
    vote: str | None
    how: str
    votes: Mapping[str, str]
    causes: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    signed_off: int = 0


def decide(votes: Iterable[Mapping[str, Any]], *, rule: Rule = "majority", views: int = 1) -> list[Decision]:
    """Decide every (item, role, question) of a table of votes, sorted.

    An adjudicator's vote ("adjudicator:ROLE") settles what that role left open. A correction is decided among those who
    gave one; it is never open by their number.

    Args:
        votes: rows of the votes table, of one or several folders.
        rule: "majority" (more than half) or "unanimous".
        views: fewest votes of different reviewers that can decide.

    Raises:
        BadInput: an unknown rule, or a reviewer who voted twice on the same.
    """
    if rule not in RULES:
        raise BadInput(f"no rule '{rule}'", field="rule", fix="known: " + ", ".join(RULES))
    given: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for row in votes:
        if row["vote"] is None:
            continue
        cell = given.setdefault((row["item_id"], row["role"], row["question"]), {})
        if row["reviewer"] in cell:
            raise BadInput(
                f"{row['reviewer']} voted twice on {row['item_id']} as {row['role']} on '{row['question']}'",
                field="reviewer",
                fix="keep one vote for each reviewer, item, role and question",
            )
        cell[row["reviewer"]] = row
    decisions = []
    for (item_id, role, question), rows in sorted(given.items()):
        if not role.startswith(ADJUDICATOR):
            settled = given.get((item_id, ADJUDICATOR + role, question), {})
            decisions.append(_decision(item_id, role, question, rows, settled, rule, views))
    return decisions


def _decision(
    item_id: str,
    role: str,
    question: str,
    rows: Mapping[str, Mapping[str, Any]],
    settled: Mapping[str, Mapping[str, Any]],
    rule: Rule,
    views: int,
) -> Decision:
    votes = {name: row["vote"] for name, row in sorted(rows.items())}
    counts = Counter(votes.values())
    first, most = max(counts.items(), key=lambda one: (one[1], one[0]))
    vote: str | None
    if len({row["vote"] for row in settled.values()}) == 1:
        vote, how = next(iter(settled.values()))["vote"], "adjudicated"
    elif len(votes) < views and question != CORRECTION:
        vote, how = None, "short"
    elif len(counts) == 1:
        vote, how = first, "unanimous"
    elif rule == "majority" and 2 * most > len(votes):
        vote, how = first, "majority"
    else:
        vote, how = None, "open"
    behind = [row for row in (*rows.values(), *settled.values()) if vote is None or row["vote"] == vote]
    return Decision(
        item_id,
        role,
        question,
        vote,
        how,
        votes,
        tuple(dict.fromkeys(row["cause"] for row in behind if row.get("cause"))),
        tuple(dict.fromkeys(row["comment"] for row in behind if row.get("comment"))),
        sum(bool(row.get("signed_off")) for row in rows.values()),
    )


def is_open(decision: Decision) -> bool:
    """Whether somebody must still decide; corrections alone hold nothing up."""
    return decision.vote is None and decision.question != CORRECTION
