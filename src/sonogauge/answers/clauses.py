"""What the words before an option do to it: negation in its clause, doubt and supposition; words that say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sonogauge.answers import cues

_FILLERS: Final = cues.words(cues.FILLERS, cues.CONNECTORS)
_FILLER_ONE: Final = frozenset(word for word in _FILLERS if re.fullmatch(r"\w+", word))
_FILLER_MANY: Final = re.compile(
    cues.any_of(tuple(word for word in _FILLERS if word[0] > "\u2e7f" or word not in _FILLER_ONE))
)
_FILLER_FIRST: Final = frozenset(re.split(r"\W", word)[0] for word in _FILLERS if word not in _FILLER_ONE)
_WORD: Final = re.compile(r"\w+")
_BREAKS: Final = cues.words(cues.BREAKS)
_BREAK_MARKS: Final = (";", ",", "!", "?", "\n", " - ", *(f" {word} " for word in _BREAKS if word.isascii()))
_ALL_BREAK_MARKS: Final = (*_BREAK_MARKS, *(word for word in _BREAKS if not word.isascii()))
_AROUND_WORD: Final = "\"'()[],.;:!?-/\x00"
_NEGATE: Final = cues.words(cues.NEGATE)
_NEGATE_ONE: Final = frozenset(word for word in _NEGATE if " " not in word)
_NEGATE_MANY: Final = tuple(f" {word} " for word in _NEGATE if " " in word)
_NEGATE_CLOSE: Final = cues.words(cues.NEGATE_CLOSE)
_NEGATE_NOT: Final = re.compile(cues.any_of(cues.words(cues.NEGATE_NOT)))
_NEGATE_MANY_LAST: Final = frozenset(word.split()[-1] for word in _NEGATE if " " in word)
_SUPPOSE_WORDS: Final = cues.words(cues.SUPPOSE)
_SUPPOSE: Final = frozenset(word for word in _SUPPOSE_WORDS if word.isascii())
_SUPPOSE_CLOSE: Final = tuple(word for word in _SUPPOSE_WORDS if " " in word or not word.isascii())
_DOUBT: Final = frozenset(cues.words(cues.DOUBT))
_THAT: Final = frozenset(("that", "if", "whether"))
_DETERMINERS: Final = frozenset(("the", "a", "your", "my", "that", "this"))
NEGATION_WINDOW: Final = 72
SUPPOSITION_WINDOW: Final = 32
# One of these words is in any ASCII text with a negation (or "n't" is), or with a supposition.
_NEGATION_WORDS: Final = frozenset(word.split()[0] for word in _NEGATE)
_SUPPOSITION_WORDS: Final = frozenset(word.split()[-1] for word in _SUPPOSE)


def may_negate(low: str, words: list[str]) -> bool:
    """Whether a negation can stand in an ASCII text, given its words (runs of letters, digits and underscores)."""
    return not _NEGATION_WORDS.isdisjoint(words) or "n't" in low


def may_suppose(words: list[str]) -> bool:
    """Whether a supposition can stand in an ASCII text, given its words."""
    return not _SUPPOSITION_WORDS.isdisjoint(words)


def whole_words(low: str, at: int, window: int, count: int) -> bool:
    """Whether the last words of the window before a position are whole: the window's edge may cut the first one."""
    return at <= window or low.count(" ", at - window, at) > count


def _clause(window: str) -> str:
    """Return what stands behind the last clause break of a text."""
    cut = 0
    for mark in _BREAK_MARKS if window.isascii() else _ALL_BREAK_MARKS:
        cut = max(cut, window.rfind(mark) + len(mark)) if mark in window else cut
    at = window.rfind(".", cut)
    while at >= 0 and window[at + 1 : at + 2].isdigit():
        at = window.rfind(".", cut, at)
    return window[max(cut, at + 1) :]


def _last_words(text: str, count: int) -> list[str]:
    """Return the last words of a text without the punctuation around them; a hyphenated word is one word."""
    return [word.strip(_AROUND_WORD) for word in text.rsplit(None, count)[-count:]]


def negated_at(low: str, at: int, blank: Sequence[tuple[int, int]] = ()) -> bool:
    """Whether a negation stands up to four words before a position, in the same clause; `blank` spans do not count."""
    window = low[max(0, at - NEGATION_WINDOW) : at]
    # Most mentions have no negation near them: look for one before looking for the clause.
    if not _holds_negation(_last_words(window, 5)) and (
        window.isascii() or not any(cue in window[-6:] for cue in _NEGATE_CLOSE)
    ):
        return False
    for first, last in blank:
        first = max(first - (at - len(window)), 0)
        last -= at - len(window)
        if 0 < last <= len(window):
            window = window[:first] + "\x00" * (last - first) + window[last:]
    clause = _NEGATE_NOT.sub(" ", _clause(" " + window))
    return _holds_negation(_last_words(clause, 5)) or (
        not clause.isascii() and any(cue in clause[-6:] for cue in _NEGATE_CLOSE)
    )


def _holds_negation(tokens: list[str]) -> bool:
    """Whether the last four of up to five words hold a negation; one of two words may begin with the fifth."""
    last = tokens[-4:]
    if not _NEGATE_ONE.isdisjoint(last):
        return True
    for token in last:
        if token.endswith("n't"):
            return True
    if _NEGATE_MANY_LAST.isdisjoint(tokens[1:]):
        return False
    joined = f" {' '.join(tokens)} "
    return any(phrase in joined for phrase in _NEGATE_MANY)


def doubted(low: str, at: int) -> bool:
    """Whether a negated verb of opinion stands directly before a position ("I do not think it is")."""
    tokens = _last_words(low[max(0, at - NEGATION_WINDOW) : at], 5)
    while tokens and tokens[-1] in _THAT:
        tokens.pop()
    return bool(tokens) and tokens[-1] in _DOUBT and _holds_negation(tokens[:-1])


def supposed(low: str, at: int) -> bool:
    """Whether a word of supposition ("if", "whether") stands directly before a position."""
    window = low[max(0, at - SUPPOSITION_WINDOW) : at]
    for word in _SUPPOSE_WORDS:
        if word in window:
            break
    else:
        return False
    tokens = _last_words(window, 3)
    while tokens and tokens[-1] in _DETERMINERS:
        tokens.pop()
    return (bool(tokens) and tokens[-1] in _SUPPOSE) or window.rstrip().endswith(_SUPPOSE_CLOSE)


def filler_end(low: str, at: int) -> int:
    """Return the end of the filler word at a position, the position itself where there is none."""
    word = _WORD.match(low, at)
    if word is None:
        return at
    if low[at] < "\u2e80" and word[0] not in _FILLER_FIRST:
        return word.end() if word[0] in _FILLER_ONE else at
    filler = _FILLER_MANY.match(low, at)
    return filler.end() if filler else word.end() if word[0] in _FILLER_ONE else at
