"""An ordered list of options, the likeliest first: a differential diagnosis.

The value is a tuple of option strings in the order given. Entries are read one by one: a numbered list, a JSON list, or
one line joined by ">", ";", "," or line breaks. An entry that names no option keeps its place as it was written, so
that it cannot move the later ones up. Nothing is taken from prose that names several options in no stated order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.choice import option_lines, vocabulary_of
from sonogauge.answers.engine import read
from sonogauge.answers.normalise import clean

# Longer lists are babble; the bound keeps hostile replies cheap.
MOST_ENTRIES: Final = 50
_LONGEST_ENTRY: Final = 120
_MOST_WORDS: Final = 8
_MARKER: Final = re.compile(
    r"(?:final )?(?:answer|ranking|differential(?: diagnos[ie]s)?|ranked list|order)\s*(?:is|:|=)\s*", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"(?m)^[ \t]*(?:rank\s*)?(\d{1,2})\s*[.):\]-]\s+(\S.*)$", re.IGNORECASE)
_INLINE: Final = re.compile(r"(?:^|[\s,;])\(?(\d{1,2})[.)]\s+")
_BULLET: Final = re.compile(r"(?m)^[ \t]*[-*\u2022]\s+(\S.*)$")
_EXPLAINED: Final = re.compile(r"\s+[-\u2013\u2014]\s+|\s*[:(]\s*|,\s+(?=because|since|as|due)")
_EDGES: Final = " \t\r\n.,;:*_`\"'()[]{}"


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    r"""Read the order that a reply gives; the last stated one wins.

    An option named twice is `ambiguous`, and so is prose with several options; nothing named is `none`.

    >>> spec = AnswerSpec("ranking", options=("melanoma", "nevus", "wart"), letters=("A", "B", "C"))
    >>> parse("1. Nevus - even colour\n2. Melanoma", spec).value
    ('nevus', 'melanoma')
    >>> parse("ANSWER: C > A > B", spec).value
    ('wart', 'melanoma', 'nevus')
    """
    if not reply.strip():
        return Parsed(None, "empty")
    text = clean(reply)
    markers = list(_MARKER.finditer(text))
    tails = [text[markers[-1].end() :], text] if markers else [text]
    for tail in tails:
        entries = _entries(tail.strip())
        pairs = [(entry, _option(entry, spec)) for entry in entries.texts]
        loose = {entry: _mentions(entry, spec) for entry, name in pairs if name is None}
        if not any(name is not None for _, name in pairs) and not (entries.counted and any(loose.values())):
            continue
        if entries.counted:
            # "1. Probably a nevus" names one option, "1. A or B" does not say which.
            if any(len(found) > 1 for found in loose.values()):
                return Parsed(None, "ambiguous")
            pairs = [(entry, name or next(iter(loose[entry]), None)) for entry, name in pairs]
        elif any(loose.values()):
            break
        else:
            # A sentence before or after a bare list takes no place in it.
            pairs = [(entry, name) for entry, name in pairs if name is not None or not _is_sentence(entry)]
        known = [name for _, name in pairs if name is not None]
        if len(set(known)) < len(known):
            return Parsed(None, "ambiguous")
        return Parsed(tuple(dict.fromkeys(name or _plain(entry) for entry, name in pairs)))
    return _from_prose(reply, spec)


def _from_prose(reply: str, spec: AnswerSpec) -> Parsed:
    """Read a reply that is no list: one option alone is an order of one; a refusal stays one."""
    reading = read(reply, vocabulary_of(spec.options, spec.letters), several=True)
    if reading.reason is not None:
        return Parsed(None, reading.reason)
    if len(reading.found) > 1:
        return Parsed(None, "ambiguous")
    return Parsed(tuple(spec.options[index] for index in reading.found))


class _Entries(NamedTuple):
    """The entries of a list as written, and whether numbers or brackets set them apart from prose."""

    texts: list[str]
    counted: bool


def _entries(text: str) -> _Entries:
    found = _json_list(text)
    if found is None:
        pieces = _INLINE.split(text)
        runs = (
            _numbered(_NUMBERED.findall(text)),
            _numbered(list(zip(pieces[1::2], pieces[2::2], strict=True))),
        )
        # Numbers within a line make more entries than the one at its start.
        found = max((run for run in runs if run is not None), key=len, default=None)
    counted = found is not None
    if found is None:
        bullets = _BULLET.findall(text)
        found = bullets if len(bullets) > 1 else None
    if found is None:
        lines = [line for line in text.splitlines() if line.strip()]
        mark = next((mark for mark in (">", ";", ",") if len(lines) == 1 and mark in lines[0]), None)
        found = lines[0].split(mark) if mark else lines
    return _Entries([entry[:_LONGEST_ENTRY] for entry in found[:MOST_ENTRIES] if entry.strip(_EDGES)], counted)


def _is_sentence(entry: str) -> bool:
    return entry.rstrip().endswith((".", ":", "!", "?")) or len(entry.split()) > _MOST_WORDS


def _numbered(pairs: Sequence[tuple[str, str]]) -> list[str] | None:
    """Return the entries of the last run that counts 1, 2, 3, …; None if nothing counts from 1."""
    run: list[str] = []
    for number, entry in pairs:
        if int(number) == 1:
            run = [entry]
        elif run and int(number) == len(run) + 1:
            run.append(entry)
    return run or None


def _json_list(text: str) -> list[str] | None:
    start, end = text.find("["), text.rfind("]")
    if not 0 <= start < end or end - start > MOST_ENTRIES * _LONGEST_ENTRY:
        return None
    try:
        found = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else None


def _plain(text: str) -> str:
    return " ".join(text.strip(_EDGES).split()).casefold()


def _option(entry: str, spec: AnswerSpec) -> str | None:
    """Return the option that an entry is, whole or before its explanation; None if it is none or several."""
    for candidate in (entry, _EXPLAINED.split(entry.strip(_EDGES), maxsplit=1)[0]):
        word = _plain(candidate)
        for option in spec.options:
            if word == _plain(option):
                return option
        for letter, option in zip(spec.letters, spec.options, strict=False):
            if word == letter.casefold() or word in (
                f"{letter} {option}".casefold(),
                f"{letter}. {option}".casefold(),
                f"{letter}) {option}".casefold(),
            ):
                return option
    return None


def _mentions(entry: str, spec: AnswerSpec) -> frozenset[str]:
    """Return the options that an entry speaks of though it is none of them; both of "A or B"."""
    low = f" {_plain(re.sub(r'[^0-9A-Za-z]+', ' ', entry))} "
    texts = {option for option in spec.options if f" {_plain(re.sub(r'[^0-9A-Za-z]+', ' ', option))} " in low}
    words = entry.strip(_EDGES).replace("/", " or ").split()
    if "or" in words:
        letters = dict(zip(spec.letters, spec.options, strict=False))
        texts |= {letters[word] for word in words if word in letters}
    return frozenset(texts)


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction: the options and the demand for an order."""
    what = "letters" if spec.letters else "exact texts"
    return (
        f"Options:\n{option_lines(spec)}\nRank the options that come into question, the most likely first, at most "
        f"three. Reply with their {what} as a numbered list, one a line, and nothing else."
    )


FORM: Final = AnswerForm(name="ranking", parser="ranking-1", ask=ask, parse=parse, field="ranking")
