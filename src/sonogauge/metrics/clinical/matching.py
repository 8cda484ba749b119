"""Facts of a reply against facts of a reference: which belong together, and what is wrong with each.

The rules, in order. Two facts have the same *key* if their findings are equal and their organs and their structures do
not differ (a fact that names no organ or structure agrees with any). No fact belongs to two pairs.

1. Facts of equal content are paired.
2. Facts of the same key are paired, best first: equal polarity before any other, then the more equal details (side,
   place, size, grade) minus the different ones, then organ and structure both named, then the order of the texts.
3. A fact is paired with one of a more general finding (`is` in the lexicon, without the root `abnormality`) of equal
   polarity: "cyst" and "focal lesion".
4. A present fact is paired with an absent one of a more general finding, the root included: "cyst" against "no focal
   lesion" or "normal". Organ and structure must agree as above, sides must not differ, and the denial must be about the
   whole organ or the same structure.
5. A reply fact left over that contradicts any reference fact by key or by rule 4 is a contradiction, so that saying a
   thing and its opposite gains nothing.

Verdicts of a pair: *negation error* (present against absent), *certainty error* (uncertain against either), *side*,
*place*, *size* and *grade error* (both name it and differ; only where the polarity agrees), *less* or *more specific*
(rule 3), else *correct*. Several errors may meet in one pair; only a correct pair counts for precision and recall.
A detail that the reply leaves out is no error of the fact; `detail_recall` counts it. Of facts left over, one that is
present or uncertain is *missed* (reference) or *hallucinated* (reply), an absent one *omitted* or *not in the
reference*.
A hallucinated finding is a present one that the reference does not mention or denies, so a denial turned into a finding
counts both as a negation error and as hallucinated, and a finding turned into a denial as a negation error and missed.
Measurements and grades are no findings: left over they are *omitted* or *not in the reference*.

Sizes, sorted from the largest, agree if each pair of values differs by no more than the lexicon's tolerance (10 % of
the reference, at least 0.5 mm); if the texts name different numbers of values, the largest are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sonogauge.metrics.clinical.facts import DETAILS, Fact
from sonogauge.metrics.clinical.lexicon import ROOT, Lexicon, load_lexicon

Verdict = Literal[
    "correct",
    "negation error",
    "certainty error",
    "side error",
    "place error",
    "size error",
    "grade error",
    "less specific",
    "more specific",
    "missed",
    "omitted",
    "hallucinated",
    "contradiction",
    "not in the reference",
]
_DETAIL_ERRORS: Final[dict[str, Verdict]] = {
    "side": "side error",
    "place": "place error",
    "size_mm": "size error",
    "grade": "grade error",
}
_Rule = Callable[[Fact, Fact], bool]
# Kinds of statement that assert no finding.
NO_FINDING: Final = ("measurement", "grade")


@dataclass(frozen=True, slots=True)
class Match:
    """A reference fact, a reply fact, or a pair of them, with what is right or wrong about it."""

    reference: Fact | None
    reply: Fact | None
    verdicts: tuple[Verdict, ...]

    @property
    def correct(self) -> bool:
        """Whether this is a pair without an error."""
        return self.verdicts == ("correct",)


def sizes_agree(reference: Sequence[float], reply: Sequence[float], lexicon: Lexicon) -> bool:
    """Return whether two sizes in mm agree within the lexicon's tolerance.

    >>> sizes_agree((12.0, 8.0), (8.1, 12.4), load_lexicon()), sizes_agree((5.0,), (50.0,), load_lexicon())
    (True, False)
    """
    ours, theirs = sorted(reference, reverse=True), sorted(reply, reverse=True)
    if len(ours) != len(theirs):
        ours, theirs = ours[:1], theirs[:1]
    return all(
        # The margin keeps a difference of exactly the tolerance within it in binary arithmetic.
        abs(one - other) <= max(lexicon.absolute_tolerance_mm, lexicon.relative_tolerance * one) + 1e-9
        for one, other in zip(ours, theirs, strict=True)
    )


def detail_agrees(name: str, reference: Fact, reply: Fact, lexicon: Lexicon) -> bool | None:
    """Return whether a detail (side, place, size_mm, grade) agrees; None if one of the two does not name it."""
    ours, theirs = getattr(reference, name), getattr(reply, name)
    if not ours or not theirs:
        return None
    return sizes_agree(ours, theirs, lexicon) if name == "size_mm" else bool(ours == theirs)


def match_facts(reference: Sequence[Fact], reply: Sequence[Fact], lexicon: Lexicon | None = None) -> list[Match]:
    """Match the facts of a reply with those of a reference by the rules of this module.

    Returns the matches of the reference facts in their order, then those of the reply facts that have no pair.
    """
    return _Matcher(reference, reply, lexicon if lexicon is not None else load_lexicon()).matches()


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _same_place(ours: Fact, theirs: Fact) -> bool:
    return _agree(ours.organ, theirs.organ) and _agree(ours.structure, theirs.structure)


class _Matcher:
    def __init__(self, reference: Sequence[Fact], reply: Sequence[Fact], lexicon: Lexicon) -> None:
        self.reference, self.reply, self.lexicon = reference, reply, lexicon
        self.pair_of: dict[int, int] = {}
        self.free = set(range(len(reply)))

    def matches(self) -> list[Match]:
        """Return all matches; see `match_facts`."""
        self._equal()
        for rule in (self._by_key, self._related, self._opposed):
            self._best_first(rule)
        result: list[Match] = []
        for number, ours in enumerate(self.reference):
            partner = self.pair_of.get(number)
            if partner is None:
                result.append(Match(ours, None, ("missed" if self._asserts(ours) else "omitted",)))
            else:
                theirs = self.reply[partner]
                result.append(Match(ours, theirs, self._verdicts(ours, theirs)))
        for number in sorted(self.free):
            theirs = self.reply[number]
            if any(self._contradicts(ours, theirs) for ours in self.reference):
                verdict: Verdict = "contradiction"
            else:
                verdict = "hallucinated" if self._asserts(theirs) else "not in the reference"
            result.append(Match(None, theirs, (verdict,)))
        return result

    def _asserts(self, fact: Fact) -> bool:
        return fact.polarity != "absent" and self.lexicon.findings[fact.finding].kind not in NO_FINDING

    def _equal(self) -> None:
        places: dict[tuple[object, ...], list[int]] = {}
        for number, theirs in enumerate(self.reply):
            places.setdefault(theirs.content, []).append(number)
        for number, ours in enumerate(self.reference):
            if places.get(ours.content):
                self._join(number, places[ours.content].pop(0))

    def _join(self, ours: int, theirs: int) -> None:
        self.pair_of[ours] = theirs
        self.free.discard(theirs)

    def _best_first(self, rule: _Rule) -> None:
        """Pair what a rule allows, highest score first, the order of the texts deciding between equals."""
        candidates: list[tuple[tuple[int, int], int, int]] = []
        for number, ours in enumerate(self.reference):
            if number in self.pair_of:
                continue
            for other in sorted(self.free):
                theirs = self.reply[other]
                if _same_place(ours, theirs) and rule(ours, theirs):
                    candidates.append((self._score(ours, theirs), number, other))
        for _, number, other in sorted(candidates, key=lambda one: ((-one[0][0], -one[0][1]), one[1], one[2])):
            if number not in self.pair_of and other in self.free:
                self._join(number, other)

    def _score(self, ours: Fact, theirs: Fact) -> tuple[int, int]:
        details = [detail_agrees(name, ours, theirs, self.lexicon) for name in DETAILS]
        agreement = 4 * (details.count(True) - details.count(False))
        named = (ours.organ == theirs.organ) + (ours.structure == theirs.structure)
        return int(ours.polarity == theirs.polarity), agreement + named

    def _by_key(self, ours: Fact, theirs: Fact) -> bool:
        return ours.finding == theirs.finding

    def _is_a(self, specific: str, general: str) -> bool:
        return self.lexicon.related(general, specific)

    def _related(self, ours: Fact, theirs: Fact) -> bool:
        if ours.polarity != theirs.polarity or ROOT in (ours.finding, theirs.finding):
            return False
        return self._is_a(ours.finding, theirs.finding) or self._is_a(theirs.finding, ours.finding)

    def _opposed(self, ours: Fact, theirs: Fact) -> bool:
        if {ours.polarity, theirs.polarity} != {"present", "absent"} or not _agree(ours.side, theirs.side):
            return False
        present, absent = (ours, theirs) if ours.polarity == "present" else (theirs, ours)
        if absent.structure is not None and absent.structure != present.structure:
            return False  # a normal nipple does not deny a cyst of the breast
        return self._is_a(present.finding, absent.finding)

    def _contradicts(self, ours: Fact, theirs: Fact) -> bool:
        if not _same_place(ours, theirs) or not _agree(ours.side, theirs.side):
            return False
        opposite = {ours.polarity, theirs.polarity} == {"present", "absent"}
        return (opposite and ours.finding == theirs.finding and _agree(ours.place, theirs.place)) or self._opposed(
            ours, theirs
        )

    def _verdicts(self, ours: Fact, theirs: Fact) -> tuple[Verdict, ...]:
        if ours.polarity != theirs.polarity:
            uncertain = "uncertain" in (ours.polarity, theirs.polarity)
            return ("certainty error",) if uncertain else ("negation error",)
        errors: list[Verdict] = []
        if ours.finding != theirs.finding:
            errors.append("less specific" if self._is_a(ours.finding, theirs.finding) else "more specific")
        errors += [
            error for name, error in _DETAIL_ERRORS.items() if detail_agrees(name, ours, theirs, self.lexicon) is False
        ]
        return tuple(errors) if errors else ("correct",)
