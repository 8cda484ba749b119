"""Verdicts that need no judge: nothing was answered, the words are those of a reference, a plain yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sonogauge.answers import FORMS, AnswerSpec, Parsed
from sonogauge.answers.normalise import fold
from sonogauge.items import Item

RULES: Final = "rules-1"
_YES_NO: Final = AnswerSpec("choice", ("yes", "no"))


@dataclass(frozen=True)
class Ruled:
    """A verdict by rule; status "rule" or "no_answer"."""

    verdict: float
    status: str
    rationale: str


def references_of(item: Item) -> tuple[str, ...]:
    """Return the accepted answers of an item."""
    return tuple(str(one) for one in item.reference.get("texts") or ())


def rule_verdict(item: Item, parsed: Parsed) -> Ruled | None:
    """Return the verdict that follows from rules alone, None where a judge is needed.

    No answer, a refusal or a reply that ended badly is 0; a reference or synonym word for word is 1; to a judgement
    (references are yes or no) a reply with one clear polarity is 1 or 0.
    """
    if not parsed.valid:
        return Ruled(0.0, "no_answer", parsed.reason or "none")
    answer = str(parsed.value)
    references = references_of(item)
    known = {fold(one) for one in references}
    if fold(answer) in known:
        return Ruled(1.0, "rule", "the words of a reference")
    if known and known <= {"yes", "no"} and len(known) == 1:
        said = _polarity(answer)
        if said is not None:
            return Ruled(float(said in known), "rule", f"says {said}")
    return None


def _polarity(answer: str) -> str | None:
    found = FORMS.load("choice").parse(answer, _YES_NO)
    if not found.valid:
        return None
    value: Sequence[str] = found.value if not isinstance(found.value, str) else (found.value,)
    return value[0] if len(value) == 1 else None
