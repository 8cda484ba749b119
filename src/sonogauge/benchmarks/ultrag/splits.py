"""Train and test: as published (mostly by image), or safe for patients; and the audit of what leaks between them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.vocabulary import SourceFacts

SPLITS: Final = ("patient_safe", "published")
TEST_SHARE: Final = 0.2
PUBLISHED_SEED: Final = 42


@dataclass(frozen=True, slots=True)
class Member:
    """What a split needs of an image: its id, its group, whether that is more than the image, own split, label."""

    case_id: str
    group: str
    grouped: bool
    own: str
    label: str = ""


def split_source(members: Sequence[Member], facts: SourceFacts, rule: str, seed: int = 0) -> dict[str, str]:
    """Return "train" or "test" of each image of one source.

    patient_safe: the source's own split where both of its parts are there, else by group. published: the rule of the
    source (`facts.split`); by image at random state 42, stratified by label where every image has one.

    Raises:
        BadInput: no such rule.
    """
    if rule not in SPLITS:
        raise BadInput(f"no split '{rule}'", field="split", fix="known: " + ", ".join(SPLITS))
    own = {one.case_id: "test" if one.own == "test" else "train" for one in members if one.own}
    has_own = len(own) == len(members) and len(set(own.values())) == 2
    kind = facts.split if rule == "published" else "own"
    if kind == "own" and has_own:
        return own
    return _by_image(members) if kind == "image" else _by_group(members, seed)


def _by_image(members: Sequence[Member]) -> dict[str, str]:
    from sklearn.model_selection import train_test_split

    ordered = sorted(members, key=lambda one: one.case_id)
    if len(ordered) < 2:
        return {one.case_id: "test" for one in ordered}
    labels = [one.label for one in ordered]
    counts = Counter(labels)
    test = round(TEST_SHARE * len(ordered))
    # A class of one image, or more classes than images of a part, cannot be stratified.
    stratify = labels if all(labels) and min(counts.values()) > 1 and len(counts) <= max(1, test) else None
    _, chosen = train_test_split(
        [one.case_id for one in ordered], test_size=TEST_SHARE, random_state=PUBLISHED_SEED, stratify=stratify
    )
    return {one.case_id: "test" if one.case_id in set(chosen) else "train" for one in ordered}


def _by_group(members: Sequence[Member], seed: int) -> dict[str, str]:
    # Group by group of each label, in an order that only the group's name decides.
    by_label: dict[str, set[str]] = {}
    for one in sorted(members, key=lambda one: one.case_id):
        if not any(one.group in groups for groups in by_label.values()):
            by_label.setdefault(one.label, set()).add(one.group)
    test: set[str] = set()
    for groups in by_label.values():
        ordered = sorted(groups, key=lambda group: hashlib.sha256(f"{seed}/{group}".encode()).digest())
        test.update(ordered[: round(TEST_SHARE * len(ordered)) or (len(ordered) > 1)])
    if not test:
        test.add(min(one.group for one in members))
    return {one.case_id: "test" if one.group in test else "train" for one in members}


def leakage(members: Sequence[Member], split: dict[str, str]) -> dict[str, Any]:
    """Return how many groups lie in both parts, or that it cannot be checked.

    >>> pair = [Member("a", "p1", True, ""), Member("b", "p1", True, "")]
    >>> leakage(pair, {"a": "train", "b": "test"})
    {'groups': 1, 'in both parts': 1}
    """
    if not all(one.grouped for one in members):
        return {"groups": "cannot be checked", "in both parts": "cannot be checked"}
    parts: dict[str, set[str]] = {}
    for one in members:
        parts.setdefault(one.group, set()).add(split[one.case_id])
    return {"groups": len(parts), "in both parts": sum(len(found) > 1 for found in parts.values())}
