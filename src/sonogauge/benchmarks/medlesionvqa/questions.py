"""From annotations to a balanced set of questions: splits by group, target shares per ability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.annotations import Annotation
from sonogauge.benchmarks.medlesionvqa.candidates import Asker, Rules
from sonogauge.benchmarks.medlesionvqa.schema import ABILITIES, Question
from sonogauge.benchmarks.medlesionvqa.vocabulary import Vocabularies

# Published: the first three abilities 61 % together, the other four 39 %; the split within is ours.
TARGET_SHARES: Final[dict[str, float]] = {
    **dict.fromkeys(("LR", "LO", "AR"), 0.61 / 3),
    **dict.fromkeys(("SR", "LE", "DD", "ST"), 0.39 / 4),
}
VAL_SHARE: Final = 1499 / (1499 + 18344)


def quotas(available: Mapping[str, int], shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Return how many questions of each ability to take: by target share, what is missing spread over the others.

    Raises:
        BadInput: a share of no ability, negative, or all zero.

    >>> quotas({"LR": 10, "DD": 2}, {"LR": 0.5, "DD": 0.5}, 8)
    {'LR': 6, 'DD': 2}
    """
    unknown = set(shares) - set(ABILITIES)
    if unknown or any(share < 0 for share in shares.values()) or not sum(shares.values()):
        raise BadInput("target shares must be of the seven abilities and not negative", field="shares")
    taken = dict.fromkeys(available, 0)
    left = min(total, sum(available[name] for name in available if shares.get(name, 0.0) > 0))
    while left:
        open_ = {name: shares.get(name, 0.0) for name in available if taken[name] < available[name]}
        open_ = {name: share for name, share in open_.items() if share > 0}
        whole = sum(open_.values())
        exact = {name: left * share / whole for name, share in open_.items()}
        more = {name: math.floor(value) for name, value in exact.items()}
        # Largest remainder; ties by the order of the abilities.
        order = sorted(open_, key=lambda name: -(exact[name] - more[name]))
        for name in order[: left - sum(more.values())]:
            more[name] += 1
        for name, count in more.items():
            taken[name] += min(count, available[name] - taken[name])
        left = min(total, sum(available[name] for name in available if shares.get(name, 0.0) > 0)) - sum(taken.values())
    return taken


def split_groups(annotations: Sequence[Annotation], val_share: float, seed: int) -> dict[str, str]:
    """Return the split of each group: stated ones are kept, the rest drawn; a group is never on both sides.

    Raises:
        BadInput: a group with annotations of both splits.
    """
    stated: dict[str, str] = {}
    for one in annotations:
        if one.split is not None and stated.setdefault(one.group, one.split) != one.split:
            raise BadInput(f"{one.group} is in both splits", field="split", fix="keep a patient in one split")
    free = sorted({one.group for one in annotations} - set(stated))
    Random(f"{seed}/split").shuffle(free)
    count = round(val_share * len(free))
    if val_share > 0 and not stated and len(free) > 1:
        count = max(count, 1)
    return {**stated, **{group: "val" if place < count else "test" for place, group in enumerate(free)}}


def build_questions(
    annotations: Sequence[Annotation],
    words: Vocabularies,
    rules: Rules,
    *,
    shares: Mapping[str, float] = TARGET_SHARES,
    total: int | None = None,
    val_share: float = VAL_SHARE,
) -> tuple[list[Question], dict[str, int]]:
    """Return the questions, sorted by id, and how many could have been asked of each ability.

    shares: targets, used when `total` asks for fewer than there are; in each split apart. total: None = all.
    """
    splits = split_groups(annotations, val_share, rules.seed)
    found = [question for one in annotations for question in Asker(one, words, rules, splits[one.group]).questions()]
    available: Counter[str] = Counter(one.ability for one in found)
    if total is not None:
        kept: list[Question] = []
        of_val = round(total * val_share) if any(one.split == "val" for one in found) else 0
        for split, count in (("val", of_val), ("test", total - of_val)):
            own = [one for one in found if one.split == split]
            by_ability = {name: [one for one in own if one.ability == name] for name in ABILITIES}
            wanted = quotas({name: len(ones) for name, ones in by_ability.items()}, shares, count)
            for name, ones in by_ability.items():
                Random(f"{rules.seed}/{split}/{name}").shuffle(ones)
                kept += ones[: wanted[name]]
        found = kept
    return sorted(found, key=lambda one: one.question_id), {name: available[name] for name in ABILITIES}
