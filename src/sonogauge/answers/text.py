"""Free text: reports and captions, taken as they are unless nothing was said."""

from __future__ import annotations

from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.normalise import as_text, clean
from sonogauge.answers.refusals import is_api_error, refusals

# A reply longer than this many words says more than that it refuses.
_REFUSAL_WORDS: Final = 60


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Return the text without thinking and surrounding fence; a pure refusal, an error and nothing are failures.

    A refusal is pure when every sentence of a short reply holds a refusal cue, courtesies apart.

    >>> parse("<think>liver</think> The liver is normal.", AnswerSpec("text")).value
    'The liver is normal.'
    >>> parse("I'm sorry, but I can't provide medical advice.", AnswerSpec("text")).reason
    'refusal_policy'
    """
    text = as_text(reply)
    low = clean(text).lower()
    if not low.strip(" \n.,;:!?\"'()[]-"):
        return Parsed(None, "empty")
    if is_api_error(low):
        return Parsed(None, "error")
    found = refusals(low)
    if found and len(low.split()) <= _REFUSAL_WORDS and len(low) <= 8 * _REFUSAL_WORDS and _only_refuses(low):
        return Parsed(None, found[0].reason)
    return Parsed(text)


def _only_refuses(low: str) -> bool:
    sentences = [part.strip() for part in low.replace("!", ".").replace("\n", ".").split(".")]
    return all(refusals(part) or _is_courtesy(part) for part in sentences if part)


def _is_courtesy(sentence: str) -> bool:
    return sentence.startswith(("sorry", "i'm sorry", "i am sorry", "i apologi", "抱歉", "对不起", "thank")) and (
        len(sentence.split()) <= 4
    )


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: plain text only."""
    return "Reply with plain text only: no headings, no lists, no markup."


FORM: Final = AnswerForm(name="text", parser="text-1", ask=ask, parse=parse, field="texts")
