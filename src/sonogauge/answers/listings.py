"""Options named one after another in a reply: where a phrase, a letter, an option or a run of them stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from sonogauge.answers import cues
from sonogauge.answers.cues import is_word
from sonogauge.answers.vocabulary import Vocabulary

_OR: Final = cues.any_of(cues.words(cues.JOIN_OR))
_AND: Final = cues.any_of(cues.words(cues.JOIN_AND))
JOINER: Final = re.compile(
    rf"[\"')\]. ]{{0,4}}(?P<joiner>(?:[,/&+\-;] ?|(?P<alternative>{_OR}) ?|(?:{_AND}) ?){{1,4}})[\"'(\[ ]{{0,4}}"
)
_OPTION_WORD: Final = re.compile(r"(?:option|choice|letter)s? ")
LIST_END: Final = re.compile(r"[\"')\] ]{0,4}(?:[.,;:!?\n]|$)")
NEGATE_SUFFIX: Final = cues.words(cues.NEGATE_SUFFIX)
_COMPOUND: Final = re.compile(r"[ -]?(?:" + cues.any_of(cues.words(cues.LETTER_COMPOUND)) + ")")
_AFTER_LETTER: Final = re.compile(r" ?(?:" + cues.any_of(cues.words(cues.AFTER_LETTER)) + ")")
_BEHIND_LETTER: Final = re.compile(r"[\"'\]).:=\- (]{1,6}")
_LETTER_END: Final = re.compile(r"[\"'\]]{0,2} ?(?:$|[).,:;\]!?\n/&+=(]|- )")
NUMBER_TAIL: Final = re.compile(r"[.,]\d|%| ?(?:mm|cm|m|µm|%|percent|weeks?|years?|days?|ml|hz|mhz|out)\b")
_NOT_THE_OPTION: Final = re.compile(r" (?:of|than)\b")
_LETTER_AFTER_TEXT: Final = re.compile(r" ?\((?:option )?([a-z])\)")


@dataclass(slots=True)
class Listing:
    """A run of options in a reply: their places, whether "or" joins them, and where the run ends."""

    found: list[tuple[int, int]] = field(default_factory=list)
    alternative: bool = False
    end: int = 0

    @property
    def distinct(self) -> set[int]:
        """Indices of the options named."""
        return {index for _, index in self.found}


def phrase_at(low: str, at: int, vocabulary: Vocabulary) -> tuple[int, int] | None:
    """Return (end, option) of the longest option text that starts at a position."""
    if at and is_word(low[at - 1]) and is_word(low[at : at + 1] or " "):
        return None
    for phrase, index, in_passing in vocabulary.phrases_from.get(low[at : at + 1], ()):
        if not low.startswith(phrase, at):
            continue
        end = at + len(phrase)
        if end < len(low) and is_word(low[end]) and is_word(phrase[-1]):
            continue
        if phrase[0].isdigit() and at and low[at - 1] in "-." and not (at > 1 and low[at - 2].isalnum()):
            continue
        if phrase[-1].isdigit() and NUMBER_TAIL.match(low, end):
            continue
        if not in_passing and _NOT_THE_OPTION.match(low, end):
            continue
        if low.startswith(NEGATE_SUFFIX, end):
            continue
        return end, index
    return None


def letter_at(low: str, at: int, vocabulary: Vocabulary) -> tuple[int, int] | None:
    """Return (end, option) of the letter that stands alone at a position and is no article or pronoun."""
    letter = low[at : at + 1]
    index = vocabulary.letters.get(letter)
    if index is None or (at and is_word(low[at - 1])):
        return None
    end = at + 1
    if end < len(low) and (is_word(low[end]) or re.match(r"'\w|[.\-]\w", low[end : end + 2])):
        return None
    if low.startswith("+", end) and not low[end + 1 : end + 2].isalnum():
        return None
    if _LETTER_END.match(low, end):
        return end, index
    after = phrase_at(low, end + 1, vocabulary) if low.startswith(" ", end) else None
    if after is not None and after[1] == index:
        return end, index
    if letter == "i" or _COMPOUND.match(low, end):
        return None
    if letter in "aeoy" and low[end] < "\u2e80" and not _AFTER_LETTER.match(low, end):
        return None
    return end, index


def option_at(low: str, at: int, vocabulary: Vocabulary) -> tuple[int, list[tuple[int, int]]] | None:
    """Return (end, [(position, option), ...]) of one option: a letter, its text, or both together."""
    text = phrase_at(low, at, vocabulary)
    letter = letter_at(low, at, vocabulary) if vocabulary.letters else None
    if text is None and letter is None:
        return None
    if text is not None and letter is not None and text[0] == letter[0] and text[1] != letter[1]:
        # The letter of one option is the text of another.
        return text[0], [(at, text[1]), (at, letter[1])]
    if text is not None and (letter is None or text[0] > letter[0]):
        end, index = text
        found = [(at, index)]
        behind = _LETTER_AFTER_TEXT.match(low, end) if vocabulary.letters else None
        if behind and behind[1] in vocabulary.letters:
            found.append((behind.start(1), vocabulary.letters[behind[1]]))
            end = behind.end()
        return end, found
    assert letter is not None
    end, index = letter
    found = [(at, index)]
    after = _BEHIND_LETTER.match(low, end)
    if after:
        own = phrase_at(low, after.end(), vocabulary)
        if own is not None and (own[1] == index or LIST_END.match(low, own[0])):
            found.append((after.end(), own[1]))
            end = own[0]
    return end, found


def listing_at(low: str, at: int, vocabulary: Vocabulary) -> Listing:
    """Read one option, or several joined by commas, "and" or "or", from a position."""
    listing = Listing(end=at)
    comma_only: list[int] = []
    while True:
        one = option_at(low, at, vocabulary)
        if one is None:
            break
        listing.end, places = one
        listing.found += places
        if listing.end + 1 >= len(low):
            break
        joiner = JOINER.match(low, listing.end)
        if joiner is None:
            break
        at = joiner.end()
        word = _OPTION_WORD.match(low, at)
        at = word.end() if word else at
        following = option_at(low, at, vocabulary)
        if following is None:
            break
        # "B, A shows ..." is no list: behind a bare comma an option counts only where the list or sentence ends.
        if joiner["joiner"].strip() in (",", ";", "-", "+") and not (
            LIST_END.match(low, following[0]) or JOINER.match(low, following[0])
        ):
            break
        comma_only.append(at)
        listing.alternative |= joiner["alternative"] is not None or "/" in joiner["joiner"]
    return listing
