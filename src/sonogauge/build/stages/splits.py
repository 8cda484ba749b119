"""Splits: which cases are for training and which for the test, so that no group is on both sides."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.build.recipe import PublishedSplit, SplitRule

TEST: Final = "test"
TRAIN: Final = "train"


@dataclass(frozen=True, slots=True)
class SplitCase:
    """What a split needs of a case: its unit (group, or group of copies), the source's own split, a label."""

    case_id: str
    source: str
    group: str
    pixels: str
    own: str | None
    label: str = ""


@dataclass
class SplitResult:
    """parts: case id -> train, val or test. rules: source -> how it was split."""

    parts: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def units_of(cases: Sequence[SplitCase], copies: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Return case id -> unit: cases of one group, groups that share an image, and pairs of copies stay together.

    The unit is named by the smallest of its groups.

    >>> a, b = SplitCase("1", "s", "s:a", "x", None), SplitCase("2", "s", "s:b", "x", None)
    >>> units_of([a, b])
    {'1': 's:a', '2': 's:a'}
    """
    parent: dict[str, str] = {}

    def root(group: str) -> str:
        while parent.setdefault(group, group) != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    def join(one: str, other: str) -> None:
        low, high = sorted((root(one), root(other)))
        parent[high] = low

    first: dict[str, str] = {}
    for case in cases:
        join(case.group, first.setdefault(case.pixels, case.group))
    groups = {case.case_id: case.group for case in cases}
    for left, right in copies:
        if left in groups and right in groups:
            join(groups[left], groups[right])
    return {case.case_id: root(case.group) for case in cases}


def split_cases(
    cases: Sequence[SplitCase], rule: SplitRule, seed: int, copies: Sequence[tuple[str, str]] = ()
) -> SplitResult:
    """Split all cases by a rule; see `recipe.SplitRule`. copies: pairs of case ids that show the same.

    Raises:
        BadInput: `official` without a split of a case's source, or a word for a part that the rule does not know.
    """
    result = SplitResult()
    by_source: dict[str, list[SplitCase]] = defaultdict(list)
    for case in cases:
        by_source[case.source].append(case)
    for source, own in sorted(by_source.items()):
        published = rule.published.get(source) if rule.rule == "published" else None
        if published is not None and published.by != "official":
            result.parts |= _random(own, published)
            result.rules[source] = f"published, by {published.by}, random state {published.random_state}"
            if published.by == "image":
                result.notices.append(f"{source}: split by image, so a patient can be on both sides")
            continue
        given = [case for case in own if case.own is not None]
        if len(given) == len(own):
            result.parts |= {case.case_id: _part(case, rule) for case in own}
            result.rules[source] = "the source's own split"
        elif rule.rule == "official" or published is not None:
            raise BadInput(
                f"{len(own) - len(given)} of {len(own)} cases of '{source}' have no split of the source",
                field="split.rule",
                fix="use patient_safe",
            )
        elif len(own) <= rule.small_source:
            result.parts |= dict.fromkeys((case.case_id for case in own), TEST)
            result.rules[source] = f"small source (up to {rule.small_source} cases), wholly in the test"
        else:
            result.parts |= _by_group(own, rule, seed, copies)
            result.rules[source] = f"by group, {rule.test_fraction:g} for the test"
    return result


def _part(case: SplitCase, rule: SplitRule) -> str:
    part = rule.names.get((case.own or "").strip().casefold())
    if part is None:
        raise BadInput(
            f"'{case.own}' is no known part", file=case.case_id, field="split.names", fix="map it to train, val or test"
        )
    return part


def _by_group(
    cases: Sequence[SplitCase], rule: SplitRule, seed: int, copies: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Fill the test with whole units in an order drawn by the seed, stratum by stratum."""
    units = units_of(cases, copies)
    members: dict[str, list[SplitCase]] = defaultdict(list)
    for case in cases:
        members[units[case.case_id]].append(case)
    strata: dict[str, list[str]] = defaultdict(list)
    for unit, inside in members.items():
        # A unit of several labels counts for its commonest, ties by the alphabet.
        labels = Counter(case.label for case in inside)
        strata[min(labels, key=lambda label: (-labels[label], label))].append(unit)
    parts: dict[str, str] = {}
    for stratum in strata.values():
        order = sorted(stratum, key=lambda unit: (draw(seed, "split", unit), unit))
        wanted = rule.test_fraction * sum(len(members[unit]) for unit in order)
        taken = 0
        for unit in order:
            inside = members[unit]
            part = TEST if taken + len(inside) / 2 <= wanted else TRAIN
            taken += len(inside) if part == TEST else 0
            parts |= dict.fromkeys((case.case_id for case in inside), part)
    return parts


def _random(cases: Sequence[SplitCase], rule: PublishedSplit) -> dict[str, str]:
    """Split as `sklearn.model_selection.train_test_split` does, over images or groups in the order of their names."""
    from sklearn.model_selection import train_test_split

    names = sorted({case.group if rule.by == "group" else case.case_id for case in cases})
    label: Mapping[str, str] = {(case.group if rule.by == "group" else case.case_id): case.label for case in cases}
    try:
        _, test = train_test_split(
            names,
            test_size=rule.test_fraction,
            random_state=rule.random_state,
            stratify=[label[name] for name in names] if rule.stratify else None,
        )
    except ValueError as error:
        raise BadInput(f"cannot be split as published ({error})", field=f"split.published.{cases[0].source}") from error
    chosen = set(test)
    return {
        case.case_id: TEST if (case.group if rule.by == "group" else case.case_id) in chosen else TRAIN
        for case in cases
    }


def draw(seed: int, *names: str) -> float:
    """Return a number in (0, 1) that depends on seed and names alone.

    >>> draw(0, "a") == draw(0, "a") != draw(1, "a")
    True
    """
    digest = hashlib.sha256("\x1f".join((str(seed), *names)).encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") + 0.5) / 2**64
