"""What a report says again in vaguer words: "the lesion" after a mass, "a mass" in the impression."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sonogauge.metrics.clinical.facts import DETAILS, Fact, merge
from sonogauge.metrics.clinical.lexicon import Lexicon

# No report says more; a text that does is left as it is, for each fact is held against each other.
_MOST_FACTS: Final = 500


def absorb(facts: list[Fact], lexicon: Lexicon) -> list[Fact]:
    """Drop facts that only repeat another one in vaguer words, and give their details to it.

    Vaguer: a present or uncertain lesion of a more general name than another one of equal polarity ("lesion", "mass"
    and "hemangioma"), or the same finding without an organ; organ, structure and details must not differ. With several
    others a vague fact goes only if it has no details or those of one of them. More than 500 facts stay as they are.
    The result does not depend on the order of the sentences but for spans.
    """
    if len(facts) > _MOST_FACTS:
        return facts
    kept = list(facts)
    for vague in sorted(facts, key=lambda fact: str(fact.content)):
        others = [fact for fact in kept if fact is not vague and _says_more(fact, vague, lexicon)]
        if not others or not any(fact is vague for fact in kept):
            continue
        if len(others) == 1:
            kept = [_with_details(fact, vague) if fact is others[0] else fact for fact in kept if fact is not vague]
        elif any(_has_details(fact, vague) for fact in others):
            kept = [fact for fact in kept if fact is not vague]
    return merge(kept) if len(kept) < len(facts) else facts


def _says_more(fact: Fact, vague: Fact, lexicon: Lexicon) -> bool:
    if fact.polarity != vague.polarity:
        return False
    if fact.finding == vague.finding:
        if vague.organ is not None or vague.structure is not None or fact.organ is None or fact.structure == "lesion":
            return False
    elif (
        vague.polarity == "absent"
        or lexicon.findings[vague.finding].kind != "lesion"
        or not lexicon.related(vague.finding, fact.finding)
    ):
        return False
    details = ((getattr(fact, name), getattr(vague, name)) for name in ("organ", "structure", *DETAILS))
    return all(not ours or not theirs or ours == theirs for ours, theirs in details)


def _with_details(fact: Fact, vague: Fact) -> Fact:
    names = ("organ", "structure", *DETAILS)
    return replace(fact, **{name: getattr(fact, name) or getattr(vague, name) for name in names})


def _has_details(fact: Fact, vague: Fact) -> bool:
    return all(getattr(vague, name) in (None, (), getattr(fact, name)) for name in DETAILS)
