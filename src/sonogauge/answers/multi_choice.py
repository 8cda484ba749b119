"""Any number of options out of several, all of them right together."""

from __future__ import annotations

from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.choice import option_lines, vocabulary_of
from sonogauge.answers.engine import read


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read the options that a reply names; the value is a tuple of option strings in the order of `spec.options`.

    The rules are those of one choice; a list joined by "or" names no set and is `ambiguous`.

    >>> spec = AnswerSpec("multi_choice", options=("cyst", "mass", "duct"), letters=("A", "B", "C"))
    >>> parse("ANSWER: A, and C", spec).value
    ('cyst', 'duct')
    """
    reading = read(reply, vocabulary_of(spec.options, spec.letters), several=True)
    if reading.reason is not None:
        return Parsed(None, reading.reason)
    return Parsed(tuple(spec.options[index] for index in sorted(reading.found)))


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: the options and the demand for all that apply."""
    what = "the letters" if spec.letters else "the exact texts"
    return (
        f"Options:\n{option_lines(spec)}\nOne or more options are right. "
        f"Reply with {what} of all right options, separated by commas, and nothing else."
    )


FORM: Final = AnswerForm(name="multi_choice", parser="multi_choice-1", ask=ask, parse=parse, field="choices")
