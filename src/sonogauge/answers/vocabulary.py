"""The options of an item, compiled for reading: phrases, letters and which of them count where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sonogauge.answers import cues
from sonogauge.answers.normalise import clean, fold, strip_edges

# Rule 5: these count only as a whole reply or behind an explicit declaration.
_NEVER_IN_PASSING: Final = frozenset({"none", "other"})
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NEGATION: Final = re.compile(r"\b(?:" + "|".join(map(re.escape, cues.words(cues.NEGATE))) + r")\b")


@dataclass(frozen=True)
class Vocabulary:
    """What a reply to one kind of item may say.

    options: exact option strings; exact: option string -> index; whole: folded reply -> index.
    phrases: (lower-case phrase, index, counts in passing), longest first; phrases_from: the same by first character.
    passing: the phrases that count in passing; letters: lower-case letter -> index; starts: first characters of all.
    negative: whether a phrase holds a negation of its own ("not visible").
    """

    options: tuple[str, ...]
    exact: Mapping[str, int]
    whole: Mapping[str, int]
    phrases: tuple[tuple[str, int, bool], ...]
    phrases_from: Mapping[str, tuple[tuple[str, int, bool], ...]]
    passing: tuple[tuple[str, int], ...]
    letters: Mapping[str, int]
    starts: frozenset[str]
    letter_pattern: re.Pattern[str] | None
    negative: bool


def spellings(option: str) -> set[str]:
    """Return the lower-case spellings of an option that differ only in hyphens, inner spaces and slashes.

    >>> sorted(spellings("noninfected"))
    ['non infected', 'non-infected', 'noninfected']
    """
    plain = strip_edges(clean(option).lower()) or clean(option).lower()
    found = {plain, strip_edges(_CAMEL.sub(" ", clean(option)).lower()) or plain}
    if plain.startswith("non-") or plain.startswith("non "):
        found |= {"non" + plain[4:], "non " + plain[4:], "non-" + plain[4:]}
    elif re.match(r"non[a-z]{4}", plain):
        found |= {"non " + plain[3:], "non-" + plain[3:]}
    if re.search(r"[a-z]-[a-z]", plain):
        found.add(re.sub(r"(?<=[a-z])-(?=[a-z])", " ", plain))
    for one in list(found):
        if "+" in one or "/" in one:
            found.add(re.sub(r" ?([+/]) ?", r" \1 ", one))
    return {one for one in found if one}


def compile_vocabulary(
    options: Iterable[str], letters: Iterable[str] = (), synonyms: Mapping[str, int] | None = None
) -> Vocabulary:
    """Compile options, the letters shown beside them, and further phrases for them.

    A spelling that two options share names neither of them, except as their exact text. A synonym may carry the index
    `len(options)`: it masks its words and means something that is not on offer.
    """
    options = tuple(options)
    owners: dict[str, set[int]] = {}
    for index, option in enumerate(options):
        for phrase in spellings(option):
            owners.setdefault(phrase, set()).add(index)
    for phrase, index in (synonyms or {}).items():
        owners.setdefault(phrase, set()).add(index)
    known = {phrase: next(iter(found)) for phrase, found in owners.items() if len(found) == 1}
    phrases = tuple(
        (phrase, index, len(phrase) > 1 and phrase not in _NEVER_IN_PASSING)
        for phrase, index in sorted(known.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    )
    by_letter = {letter.lower(): index for index, letter in enumerate(letters) if index < len(options)}
    whole: dict[str, set[int]] = {}
    for phrase, index in (*by_letter.items(), *known.items()):
        for spelling in (phrase, phrase.replace(" ", "_"), phrase.replace(" ", "-")):
            whole.setdefault(fold(spelling), set()).add(index)
    pattern = None
    if by_letter:
        named = "".join(sorted(re.escape(letter.upper()) for letter in by_letter if len(letter) == 1))
        lower = named.lower()
        # Letters of scripts without word spaces may touch an option letter ("选B"), other letters may not.
        left, right = r"(?<![^\W\u2e80-\uffff])(?<!['&\-.])", r"(?![^\W\u2e80-\uffff])(?!['&]|[-.]\w|\+(?!\w))"
        before = "|".join(cues.words(cues.LETTER_WORD))
        pattern = re.compile(
            rf"{left}[{named}]{right}|(?<=\()[{lower}](?=\))|^[{lower}](?=[):])"
            rf"|(?i:(?:{before}) ?[(\"']?(?P<named>[{named}])){right}",
            re.MULTILINE,
        )
    return Vocabulary(
        options=options,
        exact={option: index for index, option in enumerate(options)},
        whole={key: next(iter(found)) for key, found in whole.items() if key and len(found) == 1},
        phrases=phrases,
        phrases_from={first: tuple(one for one in phrases if one[0][0] == first) for first in {p[0] for p in known}},
        passing=tuple((phrase, index) for phrase, index, in_passing in phrases if in_passing),
        letters=by_letter,
        starts=frozenset({phrase[0] for phrase in known} | set(by_letter)),
        letter_pattern=pattern,
        negative=any(_NEGATION.search(phrase) or "non" in phrase for phrase in known),
    )
