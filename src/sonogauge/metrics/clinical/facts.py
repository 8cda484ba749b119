"""A fact of a report: what is said of what, how surely, where, how large."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

Polarity = Literal["present", "absent", "uncertain"]
DETAILS: Final = ("side", "place", "size_mm", "grade")


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of a report.

    Args:
        organ: organ of the lexicon, None if the text names none.
        structure: part of the organ, or "lesion" for how a lesion looks; None for the organ as a whole.
        finding: finding of the lexicon, "measurement", or a grading system.
        polarity: present, absent or uncertain; "normal size" is `abnormal size`, absent.
        side: left, right, bilateral or None.
        place: place in the image or the organ, or None.
        size_mm: sizes in mm in the order of the text, empty if none.
        grade: value of a grading system, or a severity word; None if none.
        span: characters (start, end) of the finding in the text.
        sentence: number of its sentence, from 0.
    """

    organ: str | None
    structure: str | None
    finding: str
    polarity: Polarity
    side: str | None
    place: str | None
    size_mm: tuple[float, ...]
    grade: str | None
    span: tuple[int, int]
    sentence: int

    @property
    def content(self) -> tuple[object, ...]:
        """Everything but where it stands: two facts of equal content say the same."""
        return (
            self.organ,
            self.structure,
            self.finding,
            self.polarity,
            self.side,
            self.place,
            self.size_mm,
            self.grade,
        )

    def __str__(self) -> str:
        """Return the fact as a short phrase.

        >>> print(Fact("breast", None, "cyst", "absent", "left", None, (), None, (0, 4), 0))
        breast: no cyst, left
        """
        where = " ".join(part for part in (self.organ, self.structure) if part)
        word = {"present": "", "absent": "no ", "uncertain": "possible "}[self.polarity]
        size = " x ".join(f"{value:g}" for value in self.size_mm)
        details = [part for part in (self.side, self.place, f"{size} mm" if size else None) if part]
        grade = f" {self.grade}" if self.grade else ""
        return (f"{where}: " if where else "") + ", ".join([f"{word}{self.finding}{grade}", *details])


def merge(facts: Iterable[Fact]) -> list[Fact]:
    """Say each thing once, in the order of the text.

    Facts of the same organ, structure, finding and polarity become one if none of their details (side, place, size,
    grade) differ; otherwise only those go that say nothing beyond another one of them. The result does not depend on
    the order of the sentences but for spans.
    """
    groups: dict[tuple[object, ...], list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.organ, fact.structure, fact.finding, fact.polarity].append(fact)
    result: list[Fact] = []
    for group in groups.values():
        distinct = list({fact.content: fact for fact in reversed(group)}.values())[::-1]
        if len(distinct) > 1:
            known = {name: {getattr(fact, name) for fact in distinct} - {None, ()} for name in DETAILS}
            if all(len(values) <= 1 for values in known.values()):
                first = distinct[0]
                distinct = [replace(first, **{name: next(iter(values)) for name, values in known.items() if values})]
            else:
                distinct = _undominated(distinct)
        result.extend(distinct)
    return sorted(result, key=_order)


def _order(fact: Fact) -> tuple[object, ...]:
    return (fact.span, fact.finding, fact.organ or "", fact.place or "", fact.size_mm, fact.polarity)


def _undominated(facts: list[Fact]) -> list[Fact]:
    """Return the facts whose details are not all among those of another one."""
    details = [tuple((name, getattr(fact, name)) for name in DETAILS if getattr(fact, name)) for fact in facts]
    less = {part for one in details for length in range(len(one)) for part in combinations(one, length)}
    return [fact for fact, one in zip(facts, details, strict=True) if one not in less]
