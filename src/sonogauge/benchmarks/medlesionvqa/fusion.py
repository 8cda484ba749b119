"""Several ranked differentials made one: score(d) = sum over physicians of 1/rank(d).

The formula is published; what happens on ties, which are common, is not, and so is a declared rule. Scores are exact
fractions until the end, so that a tie is a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from sonogauge._errors import BadInput

TieRule = Literal["shared", "best_rank", "senior_first", "alphabetical", "adjudicate"]
Normalise = Literal["none", "physicians", "sum"]
TiedRanks = Literal["error", "average"]
Entry = str | Sequence[str]

TIE_RULES: Final[tuple[TieRule, ...]] = ("shared", "best_rank", "senior_first", "alphabetical", "adjudicate")
MOST_RANKED: Final = 3


@dataclass(frozen=True)
class Placed:
    """A disease of the fused list; diseases that stay tied share the better rank (1, 1, 3)."""

    id: str
    score: float
    rank: int


@dataclass(frozen=True)
class Fused:
    """A fused differential.

    ties: groups of diseases with equal scores, before the rule. first: ids at rank 1, the references.
    scored: False while a tie waits for a third physician.
    """

    placed: tuple[Placed, ...]
    ties: int
    tie_rule: TieRule
    scored: bool = True

    @property
    def first(self) -> tuple[str, ...]:
        """Ids at rank 1."""
        return tuple(one.id for one in self.placed if one.rank == 1)


def fuse(
    lists: Sequence[Sequence[Entry]],
    *,
    tie_rule: TieRule = "shared",
    senior: int | None = None,
    decided: Sequence[str] | None = None,
    resolve: Callable[[str], str] | None = None,
    normalise: Normalise = "none",
    tied_ranks: TiedRanks = "error",
    keep_top: int | None = None,
) -> Fused:
    """Fuse ranked lists, the likeliest first.

    Args:
        lists: one list of disease ids per physician, one to three each; ids that share a rank in a list of their own.
        tie_rule: see TIE_RULES; ties that remain are shared.
        senior: which list is the senior's, for "senior_first".
        decided: the order of a third physician, for "adjudicate".
        resolve: maps synonyms to ids before fusion; None = off.
        normalise: divide scores by the number of physicians, or by the sum of scores.
        tied_ranks: "average" gives tied ids of one list their average rank.
        keep_top: keep ranks up to this one only; None = all.

    Raises:
        BadInput: an empty or too long list, a disease named twice in one list, tied ranks where they are an error.

    >>> [(one.id, one.score, one.rank) for one in fuse([["x", "y", "z"], ["y", "w"]]).placed]
    [('y', 1.5, 1), ('x', 1.0, 2), ('w', 0.5, 3), ('z', 0.3333333333333333, 4)]
    """
    if tie_rule not in TIE_RULES:
        raise BadInput(f"no tie rule '{tie_rule}'", fix="known: " + ", ".join(TIE_RULES))
    if tie_rule == "senior_first" and (senior is None or not 0 <= senior < len(lists)):
        raise BadInput("the tie rule senior_first needs to know the senior's list", field="senior")
    ranks = [_ranks(one, resolve, tied_ranks) for one in lists]
    if not ranks:
        raise BadInput("no ranked list to fuse", field="lists")
    scores: dict[str, Fraction] = {}
    for own in ranks:
        for name, rank in own.items():
            scores[name] = scores.get(name, Fraction(0)) + 1 / rank
    by_score: dict[Fraction, list[str]] = {}
    for name in sorted(scores):
        by_score.setdefault(scores[name], []).append(name)
    order: list[list[str]] = []
    for value in sorted(by_score, reverse=True):
        order += _split(by_score[value], tie_rule, ranks, senior, decided)
    whole = sum(scores.values(), Fraction(0))
    divisor = {"none": Fraction(1), "physicians": Fraction(len(ranks)), "sum": whole}[normalise]
    placed: list[Placed] = []
    for tied in order:
        place = len(placed) + 1
        placed += [Placed(name, float(scores[name] / divisor), place) for name in tied]
    undecided = any(len(tied) > 1 for tied in order)
    return Fused(
        placed=tuple(one for one in placed if keep_top is None or one.rank <= keep_top),
        ties=sum(len(names) > 1 for names in by_score.values()),
        tie_rule=tie_rule,
        scored=not (tie_rule == "adjudicate" and undecided),
    )


def _ranks(
    entries: Sequence[Entry], resolve: Callable[[str], str] | None, tied_ranks: TiedRanks
) -> dict[str, Fraction]:
    ranks: dict[str, Fraction] = {}
    place = 1
    for entry in entries:
        names = [entry] if isinstance(entry, str) else list(entry)
        if len(names) > 1 and tied_ranks == "error":
            raise BadInput(
                f"{' and '.join(names)} share a rank", field="ranked", fix="order them, or average tied ranks"
            )
        ids = [resolve(name) if resolve is not None else name for name in names]
        # Ranks place, place + 1, … shared by all of them.
        rank = Fraction(2 * place + len(ids) - 1, 2)
        for name in ids:
            if name in ranks:
                raise BadInput(f"'{name}' stands twice in one differential", field="ranked", fix="keep its better rank")
            ranks[name] = rank
        place += len(ids)
    if not 1 <= len(ranks) <= MOST_RANKED:
        raise BadInput(f"a differential of {len(ranks)} diseases", field="ranked", fix=f"name 1 to {MOST_RANKED}")
    return ranks


def _split(
    tied: list[str],
    rule: TieRule,
    ranks: Sequence[Mapping[str, Fraction]],
    senior: int | None,
    decided: Sequence[str] | None,
) -> list[list[str]]:
    """Return diseases of equal score as groups in order; a group of several is a tie that remains."""
    if len(tied) == 1 or rule == "shared":
        return [tied]
    last = Fraction(10**6)
    match rule:
        case "best_rank":
            key = {name: min(own.get(name, last) for own in ranks) for name in tied}
        case "senior_first":
            own = ranks[senior or 0]
            key = {name: own.get(name, last) for name in tied}
        case "alphabetical":
            key = {name: Fraction(place) for place, name in enumerate(sorted(tied))}
        case _:
            places = {name: Fraction(place) for place, name in enumerate(decided or ())}
            key = {name: places.get(name, last) for name in tied}
    groups: dict[Fraction, list[str]] = {}
    for name in tied:
        groups.setdefault(key[name], []).append(name)
    return [groups[value] for value in sorted(groups)]


def fusion_report(found: Iterable[Fused]) -> dict[str, int | str]:
    """Return the counts that stand beside fused lists: ties, several at rank 1, undecided, and the rule.

    >>> fusion_report([fuse([["x", "y"], ["y", "x"]])])
    {'lists': 1, 'with_ties': 1, 'ties': 1, 'several_first': 1, 'undecided': 0, 'tie_rule': 'shared'}
    """
    several = list(found)
    return {
        "lists": len(several),
        "with_ties": sum(one.ties > 0 for one in several),
        "ties": sum(one.ties for one in several),
        "several_first": sum(len(one.first) > 1 for one in several),
        "undecided": sum(not one.scored for one in several),
        "tie_rule": ", ".join(sorted({one.tie_rule for one in several})),
    }
