"""One option out of several: the answer of classification tasks."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.engine import read
from sonogauge.answers.vocabulary import Vocabulary, compile_vocabulary


@lru_cache(maxsize=512)
def vocabulary_of(options: tuple[str, ...], letters: tuple[str, ...]) -> Vocabulary:
    """Return the compiled vocabulary of options and letters; made once for each combination."""
    return compile_vocabulary(options, letters)


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read the one option that a reply names; the value is the option string exactly as in `spec.options`.

    Rules: section 5.1 of the U2-BENCH specification. Never raises, never guesses.

    >>> spec = AnswerSpec("choice", options=("benign", "malignant"))
    >>> parse("The answer is: **Malignant**.", spec).value
    'malignant'
    >>> parse("not malignant", spec).reason
    'negated'
    """
    reading = read(reply, vocabulary_of(spec.options, spec.letters))
    if reading.reason is not None:
        return Parsed(None, reading.reason)
    (index,) = reading.found
    return Parsed(spec.options[index])


def option_lines(spec: AnswerSpec) -> str:
    """Return the options, one a line, string by string, with their letters where letters are shown."""
    if spec.letters:
        return "\n".join(f"{letter}. {option}" for letter, option in zip(spec.letters, spec.options, strict=True))
    return "\n".join(spec.options)


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: the options and the demand for one of them and nothing else."""
    if spec.letters:
        wish = "Reply with the letter of one option and nothing else."
    elif all(option.isascii() and option.isdigit() for option in spec.options):
        wish = "Reply with one of these integers and nothing else."
    else:
        wish = "Reply with the exact text of one option and nothing else."
    return f"Options:\n{option_lines(spec)}\n{wish}"


FORM: Final = AnswerForm(name="choice", parser="choice-1", ask=ask, parse=parse, field="choices")
