"""Sentences of a report as tokens and mentions of the lexicon, and what their cues deny or doubt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sonogauge.metrics.clinical.lexicon import Lexicon, Term, Token

PRESENT: Final = 0
UNCERTAIN: Final = 1
ABSENT: Final = 2
_CUES: Final = frozenset({"deny", "deny_next", "deny_before", "doubt", "doubt_before"})
# Reaches in tokens: they keep the work linear in the length of any text.
_REACH, _LIST_REACH, _NEXT_REACH = 60, 40, 5
# A longer sentence is cut: relations inside a sentence are looked for pair by pair.
_LONGEST: Final = 150
_STOPS: Final = frozenset(";:()")
_BOUNDARIES: Final = frozenset(",、;()")


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase of the lexicon in a sentence: tokens start to stop - 1."""

    term: Term
    start: int
    stop: int


@dataclass(slots=True)
class Sentence:
    """Tokens of one sentence, its mentions by kind, and for each token its clause and certainty.

    segment: number of the clause between commas, semicolons, brackets and contrasting words.
    certainty: PRESENT, UNCERTAIN or ABSENT by the cues that reach the token.
    """

    number: int
    tokens: list[Token]
    words: list[str]
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    segment: list[int] = field(default_factory=list)
    certainty: list[int] = field(default_factory=list)
    has_number: bool = False

    def of(self, kind: str) -> list[Mention]:
        """Return the mentions of a kind, in order."""
        return self.mentions.get(kind, [])


def split(text: str, tokens: list[Token], lexicon: Lexicon) -> list[list[Token]]:
    """Cut tokens into sentences: at . ! ? and at line breaks, unless the next line goes on in lower case."""
    abbreviations = lexicon.words["abbreviations"]
    result: list[list[Token]] = []
    current: list[Token] = []
    for position, (word, start, end) in enumerate(tokens):
        ends = len(current) >= _LONGEST
        if word == "\n":
            following = tokens[position + 1] if position + 1 < len(tokens) else None
            goes_on = following is not None and text[following[1]].isascii() and text[following[1]].islower()
            ends = ends or not goes_on or (bool(current) and current[-1][0] == ":")
        elif word in "!?":
            ends = True
        elif word == ".":
            inner = text[start] == "." and end < len(text) and text[end].isascii() and text[end].isalnum()
            ends = ends or (not inner and not (current and current[-1][0] in abbreviations))
        else:
            current.append((word, start, end))
        if ends and current:
            result.append(current)
            current = []
    if current:
        result.append(current)
    return result


def read_sentence(number: int, tokens: list[Token], lexicon: Lexicon) -> Sentence:
    """Find the mentions of a sentence and mark what its cues reach."""
    sentence = Sentence(number, tokens, [word for word, _, _ in tokens])
    at: dict[int, Mention] = {}
    for term, start, stop in lexicon.find(tokens):
        mention = Mention(term, start, stop)
        sentence.mentions.setdefault(term.kind, []).append(mention)
        at[start] = mention
    segment = 0
    contrasts = {mention.start for mention in sentence.of("contrast")}
    for position, word in enumerate(sentence.words):
        if word in _BOUNDARIES or position in contrasts:
            segment += 1
        sentence.segment.append(segment)
        if "0" <= word[0] <= "9":
            sentence.has_number = True
    sentence.certainty = [PRESENT] * len(tokens)
    if any(kind in _CUES for kind in sentence.mentions):
        _mark(sentence, at, lexicon)
    return sentence


def _mark(sentence: Sentence, at: dict[int, Mention], lexicon: Lexicon) -> None:
    certainty = sentence.certainty
    for kind, value in (("doubt", UNCERTAIN), ("deny", ABSENT), ("deny_next", ABSENT)):
        for cue in sentence.of(kind):
            stop = _forward(sentence, at, cue, lexicon, _NEXT_REACH if kind == "deny_next" else _REACH)
            for position in _reached(sentence, cue.stop, stop, lexicon):
                certainty[position] = max(certainty[position], value)
    for kind, value in (("doubt_before", UNCERTAIN), ("deny_before", ABSENT)):
        for cue in sentence.of(kind):
            for position in range(_backward(sentence, at, cue, lexicon), cue.start):
                # "No mass is unlikely" stays a denial; "cannot be excluded" softens what nothing else denies.
                certainty[position] = max(certainty[position], value)


def _reached(sentence: Sentence, start: int, stop: int, lexicon: Lexicon) -> Iterator[int]:
    """Yield the tokens that a cue speaks of: not those of "behind the mass", up to the next comma or "or"."""
    words, grammar = sentence.words, lexicon.words
    known = False
    for position in range(start, stop):
        word = words[position]
        if word in ",、" or word in grammar["conjunctions"]:
            known = False
        elif word in grammar["definite"] and position > start and words[position - 1] in grammar["prepositions"]:
            known = True
        if not known:
            yield position


def _forward(sentence: Sentence, at: dict[int, Mention], cue: Mention, lexicon: Lexicon, reach: int) -> int:
    """Return the token at which the reach of a cue ends."""
    words, grammar = sentence.words, lexicon.words
    narrow = reach == _NEXT_REACH
    end = min(len(words), cue.stop + reach)
    for position in range(cue.stop, end):
        word, mention = words[position], at.get(position)
        following = words[position + 1] if position + 1 < len(words) else ""
        if word in _STOPS:
            return position
        if mention is not None and (mention.term.kind == "contrast" or mention.term.kind in ("deny", "deny_next")):
            return position
        if word == "," and (narrow or not _list_goes_on(sentence, at, position, lexicon)):
            return position
        if word == "and" and (narrow or following in grammar["openers"]):
            return position
        if word in grammar["closers"] and following not in grammar["conjunctions"]:
            return position + 1
    return end


def _list_goes_on(sentence: Sentence, at: dict[int, Mention], comma: int, lexicon: Lexicon) -> bool:
    """Return whether a comma stands inside a list that an "or" or "and" ends: "no mass, cyst or stone"."""
    words, grammar = sentence.words, lexicon.words
    opens = True
    for position in range(comma + 1, min(len(words), comma + _LIST_REACH)):
        word, mention = words[position], at.get(position)
        if word in grammar["conjunctions"]:
            if words[min(position + 1, len(words) - 1)] in grammar["openers"] - {"a", "an", "the"}:
                return False
            # "No calcification, posterior enhancement and smooth margin": the last one is no finding.
            last = bisect_right(sentence.segment, sentence.segment[position])
            return not any(one in at and at[one].term.kind == "qualifier" for one in range(position, last))
        if word in _STOPS or word in grammar["verbs"] or (opens and word in grammar["openers"]):
            return False
        if mention is not None and (mention.term.kind in _CUES or mention.term.kind in ("contrast", "qualifier")):
            return False
        opens = word == ","
    return False


def _backward(sentence: Sentence, at: dict[int, Mention], cue: Mention, lexicon: Lexicon) -> int:
    """Return the first token that a cue behind its findings reaches: "cysts and stones are not seen"."""
    words, grammar = sentence.words, lexicon.words
    single = cue.start > 0 and words[cue.start - 1] in ("is", "was")
    first_verb = cue.start - 1
    listed = False
    for position in range(cue.start - 1, max(-1, cue.start - _REACH), -1):
        word, mention = words[position], at.get(position)
        if word in _STOPS or (mention is not None and mention.term.kind == "contrast"):
            return position + 1
        if word in grammar["verbs"] and position < first_verb:
            return position + 1
        if word == "and" and (single or words[position + 1] in grammar["openers"]):
            return position + 1
        if word == ",":
            listed = listed or words[position + 1] in grammar["conjunctions"]
            if not listed:
                return position + 1
        if word in grammar["conjunctions"]:
            listed = True
    return max(0, cue.start - _REACH + 1)
