"""Reading one of several options out of a reply: whole reply, last declaration, mentions, or a reason.

The rules are section 5.1 of the U2-BENCH specification; they are the same for every model and never guess. All steps
are linear in the length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sonogauge.answers import cues
from sonogauge.answers.clauses import (
    NEGATION_WINDOW,
    SUPPOSITION_WINDOW,
    doubted,
    filler_end,
    may_negate,
    may_suppose,
    negated_at,
    supposed,
    whole_words,
)
from sonogauge.answers.cues import is_word
from sonogauge.answers.listings import JOINER, LIST_END, NEGATE_SUFFIX, NUMBER_TAIL, Listing, letter_at, listing_at
from sonogauge.answers.normalise import clean, strip_edges
from sonogauge.answers.refusals import is_api_error
from sonogauge.answers.refusals import refusals as find_refusals
from sonogauge.answers.vocabulary import Vocabulary

_SEPARATORS: Final = re.compile(r"[ \n:=\"'(\[>\-,.]{0,12}")
_CONNECTOR: Final = re.compile(r"[\"')\] ]{0,4}(?:[:=]|" + cues.any_of(cues.words(cues.CONNECTORS)) + ")")
_SENTENCE_END: Final = re.compile(
    r"[!?\n;]|\.(?=\s|$)|" + cues.any_of(("but", "however", "nevertheless", "that said", "但", "然而", "不过"))
)

_NEGATE_AFTER: Final = re.compile(
    r"[\"')\]]{0,4}(?: [a-z-]{1,15}){0,2}? "
    r"(?:is|are|was|were|seems|appears|looks|can be|could be|would be|has been|being) (?:[a-z]{1,12} )?(?:"
    + cues.any_of(cues.words(cues.NEGATE_AFTER))
    + ")"
)
_BEFORE_NEGATE_AFTER: Final = frozenset(" \"')]")
_FOREIGN_LETTER: Final = re.compile(r"[\"'(\[ ]{0,3}[a-z](?=[\"')\]]{0,2}(?:[.,;:!?\n)]|$))")


# More refusals or cues of one kind than this in one reply are babble; the bounds keep the reading fast.
_MOST_REFUSALS: Final = 64
_MOST_CUES: Final = 64
_DIRECT, _NOUN, _WEAK = "direct", "noun", "weak"


_CUES: Final = tuple(
    (cue, kind)
    for table, kind in ((cues.DECLARE, _DIRECT), (cues.DECLARE_NOUN, _NOUN), (cues.DECLARE_WEAK, _WEAK))
    for cue in cues.words(table)
)
# In ASCII text a cue stands between characters of no word, so its first word, perhaps with "s" behind it, is among the
# words of the text: a look that rules out nearly all cues at once.
_WORD: Final = re.compile(r"\w+")
# A table of all 128 characters: a dictionary without the letters would be asked for each of them in vain.
_NO_WORD: Final = "".join(chr(code) if is_word(chr(code)) else " " for code in range(128))


def _cues_by_word() -> dict[str, tuple[int, ...]]:
    groups: dict[str, list[int]] = {}
    for number, (cue, _) in enumerate(_CUES):
        first = _WORD.match(cue)
        if cue.isascii() and first is not None:
            for word in (first[0], f"{first[0]}s"):
                groups.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in groups.items()}


_CUES_OF: Final = _cues_by_word()
_CUE_WORDS: Final = frozenset(_CUES_OF)


def _cues_in(low: str, words: list[str] | None) -> list[tuple[str, str]]:
    """Return the declaration cues that a lower-case text may hold, in the order of the tables."""
    if words is None:
        return [one for one in _CUES if one[0] in low]
    found = _CUE_WORDS.intersection(words)
    if not found:
        return []
    return [_CUES[number] for number in sorted({number for word in found for number in _CUES_OF[word]})]


class Reading(NamedTuple):
    """What a reply says: indices of the options it names, or the reason why it names none."""

    found: frozenset[int]
    reason: str | None = None


class _Reader:
    """One reply being read."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text = text
        self.low = text.lower()
        self.vocabulary = vocabulary
        # The words of ASCII text rule out most cues at once; None for other text.
        self.words = self.low.translate(_NO_WORD).split() if text.isascii() else None
        self.may_negate = self.words is None or may_negate(self.low, self.words)
        self.may_suppose = self.words is None or may_suppose(self.words)
        self.refusals = find_refusals(self.low)
        self.scopes = (
            [(span.start, self._sentence_end(span.end)) for span in self.refusals[:_MOST_REFUSALS]]
            if self.refusals
            else []
        )
        # Positions of options that a supposition or a negated declaration takes back.
        self.void: set[int] = set()
        self.void_reason: str | None = None

    def _sentence_end(self, at: int) -> int:
        found = _SENTENCE_END.search(self.low, at)
        return found.start() if found else len(self.low)

    def _refused(self, at: int) -> bool:
        return bool(self.scopes) and any(start <= at < end for start, end in self.scopes)

    def declared(self) -> Listing | None:
        """Return the last explicit declaration, None without one; an empty listing names a letter not on offer."""
        low = self.low
        best: Listing | None = None
        best_at = -1
        for cue, kind in _cues_in(low, self.words):
            at = low.rfind(cue)
            for _ in range(_MOST_CUES):
                if at < 0:
                    break
                listing = self._declaration(cue, kind, at)
                if listing is not None:
                    if listing.end > best_at:
                        best, best_at = listing, listing.end
                    break
                at = low.rfind(cue, 0, at)
        return best

    def _declaration(self, cue: str, kind: str, at: int) -> Listing | None:
        low, vocabulary = self.low, self.vocabulary
        end = at + len(cue)
        if at and is_word(low[at - 1]) and is_word(cue[0]):
            return None
        if end < len(low) and is_word(low[end]) and is_word(cue[-1]):
            if low[end] != "s" or (end + 1 < len(low) and is_word(low[end + 1])):
                return None
            end += 1
        if kind == _NOUN:
            connector = _CONNECTOR.match(low, end)
            if connector is None:
                return None
            end = connector.end()
        position = end
        for _ in range(8):
            separators = _SEPARATORS.match(low, position)
            position = separators.end() if separators else position
            if low[position : position + 1] in vocabulary.starts:
                listing = listing_at(low, position, vocabulary)
                if listing.found:
                    return self._accept(listing, kind, at)
            behind = filler_end(low, position)
            if behind == position:
                break
            position = behind
        if (
            kind == _DIRECT
            and vocabulary.letters
            and _FOREIGN_LETTER.match(low, position)
            and "." not in low[end:position]
        ):
            return Listing(end=position + 1)
        return None

    def _accept(self, listing: Listing, kind: str, at: int) -> Listing | None:
        low = self.low
        doubt = doubted(low, at) if kind == _WEAK else self._negated(at)
        if doubt or self._supposed(at):
            self.void.update(position for position, _ in listing.found)
            if doubt:
                self.void_reason = "negated"
            return None
        first = listing.found[0][0]
        if self._refused(first):
            return None
        if kind == _WEAK and low[first].isdigit() and not LIST_END.match(low, listing.end):
            return None
        return None if self._negated_behind(listing.end) else listing

    def _negated(self, at: int, blank: Sequence[tuple[int, int]] = ()) -> bool:
        if not self.may_negate and whole_words(self.low, at, NEGATION_WINDOW, 5):
            return False
        return negated_at(self.low, at, blank)

    def _supposed(self, at: int) -> bool:
        if not self.may_suppose and whole_words(self.low, at, SUPPOSITION_WINDOW, 3):
            return False
        return supposed(self.low, at)

    def _negated_behind(self, end: int) -> bool:
        return self.low[end : end + 1] in _BEFORE_NEGATE_AFTER and _NEGATE_AFTER.match(self.low, end) is not None

    def mentions(self) -> list[tuple[int, int, int]]:
        """Return (start, end, option) of all whole-phrase mentions, longest phrases first, sorted by position."""
        low, vocabulary = self.low, self.vocabulary
        found: list[tuple[int, int, int]] = []
        taken: bytearray | None = None
        for phrase, index in vocabulary.passing:
            at = low.find(phrase)
            while at >= 0:
                end = at + len(phrase)
                if self._stands_alone(at, end, phrase) and (taken is None or taken.find(1, at, end) < 0):
                    if taken is None:
                        taken = bytearray(len(low))
                    taken[at:end] = b"\x01" * (end - at)
                    found.append((at, end, index))
                    at = end - 1
                at = low.find(phrase, at + 1)
        if vocabulary.letter_pattern is not None:
            for match in vocabulary.letter_pattern.finditer(self.text):
                at = match.start("named") if match["named"] else match.start()
                if taken is not None and taken[at]:
                    continue
                letter = letter_at(low, at, vocabulary)
                if letter is not None:
                    found.append((at, letter[0], letter[1]))
        found.sort()
        return found

    def _stands_alone(self, at: int, end: int, phrase: str) -> bool:
        low = self.low
        if end < len(low) and is_word(low[end]) and is_word(phrase[-1]):
            return False
        if at and is_word(phrase[0]):
            before = low[at - 1]
            if is_word(before):
                return False
            # A hyphen makes another word ("semi-solid"), except in a run of options ("4A-4B").
            if before == "-" and at > 1 and is_word(low[at - 2]):
                stem = low[: at - 1][-40:]
                return stem.endswith("non") or stem.endswith(tuple(one for one, _, _ in self.vocabulary.phrases))
        return not (phrase[-1].isdigit() and NUMBER_TAIL.match(low, end))

    def kept_mentions(self) -> tuple[Listing, int]:
        """Return the mentions that no negation, doubt or refusal takes back, and how many were negated."""
        low = self.low
        mentions = self.mentions()
        blank = [(start, end) for start, end, _ in mentions] if self.vocabulary.negative else []
        kept = Listing()
        negated = 0
        for number, (start, end, index) in enumerate(mentions):
            if self._refused(start):
                continue
            near = blank[max(0, number - 8) : number]
            if start in self.void:
                negated += self.void_reason is not None
            elif self._negated(start, near) or low.startswith(NEGATE_SUFFIX, end) or self._negated_behind(end):
                negated += 1
            else:
                if kept.found and index != kept.found[-1][1]:
                    joiner = JOINER.match(low, kept.end)
                    kept.alternative |= joiner is not None and joiner.end() == start and bool(joiner["alternative"])
                kept.found.append((start, index))
                kept.end = end
        return kept, negated


def read(reply: str, vocabulary: Vocabulary, *, several: bool = False) -> Reading:
    """Read the option, or with `several` the options, that a reply names."""
    exact = vocabulary.exact.get(reply)
    if exact is not None:
        return Reading(frozenset((exact,)))
    text = clean(reply)
    low = text.lower()
    core = strip_edges(low)
    whole = vocabulary.whole.get(core)
    if whole is None:
        whole = vocabulary.exact.get(text)
    if whole is not None:
        return Reading(frozenset((whole,)))
    if not core:
        return Reading(frozenset(), "empty")
    if is_api_error(low):
        return Reading(frozenset(), "error")
    if core[0] in vocabulary.starts and len(core) < 400:
        listing = listing_at(core, 0, vocabulary)
        if listing.found and listing.end == len(core):
            return _verdict(listing, several)
    reader = _Reader(text, vocabulary)
    declared = reader.declared()
    if declared is not None:
        return _verdict(declared, several)
    kept, negated = reader.kept_mentions()
    if kept.found and (len(kept.distinct) == 1 or several):
        return _verdict(kept, several)
    if reader.refusals:
        return Reading(frozenset(), reader.refusals[0].reason)
    if kept.found:
        return Reading(frozenset(), "ambiguous")
    return Reading(frozenset(), "negated" if negated else "none")


def _verdict(listing: Listing, several: bool) -> Reading:
    found = listing.distinct
    if not found:
        return Reading(frozenset(), "none")
    if len(found) > 1 and (not several or listing.alternative):
        return Reading(frozenset(), "ambiguous")
    return Reading(frozenset(found))
