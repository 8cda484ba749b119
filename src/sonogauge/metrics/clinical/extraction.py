"""Facts of a report, found by the ultrasound lexicon: deterministic, for any text, in time linear in its length.

What is read: findings of the lexicon; a feature (size, shape, border, echotexture) with a word that calls it normal or
not; grading systems; sizes. "Normal" statements deny the finding that they exclude: "normal size" is `abnormal size`,
absent. What is not read: anything the lexicon has no word for, comparison with earlier examinations, and negations that
reach over a sentence.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from sonogauge.metrics.clinical.claims import Claim, distance, read_claims
from sonogauge.metrics.clinical.details import Size, clock_positions, grade_value, sizes
from sonogauge.metrics.clinical.facts import Fact, Polarity, merge
from sonogauge.metrics.clinical.lexicon import Lexicon, Term, load_lexicon, tokenize
from sonogauge.metrics.clinical.redundancy import absorb
from sonogauge.metrics.clinical.sentences import Mention, Sentence, read_sentence, split

# Tokens between things that belong together.
_PHRASE_REACH, _BEFORE_LESION, _BEFORE_SIZE_OWNER = 8, 8, 6
# "Left kidney: …" speaks for the sentences that follow, "a stone in the left kidney" does not.
_AT_THE_FRONT: Final = 2
_ADJECTIVE_JOINS: Final = frozenset({",", "、", "and"})
_COMMAS: Final = frozenset({",", "the"})
_JOINS: Final = frozenset({",", "、", "/", "&", "and", "or", "the", "和", "及", "与"})


@dataclass(frozen=True, slots=True)
class Reading:
    """Facts of a text; the organs it names, most often first; the sections it has."""

    facts: tuple[Fact, ...]
    organs: tuple[str, ...]
    sections: frozenset[str]


@dataclass(slots=True)
class _Context:
    """What the sentences before say of the next one."""

    only_organ: str | None
    organs: tuple[str | None, ...] = (None,)
    side: str | None = None
    lesion: Fact | None = None


def extract(text: str, lexicon: Lexicon | None = None) -> list[Fact]:
    """Return the facts of a report or caption, each once, in the order of the text.

    Never raises, whatever the text. Organs: that of the phrase, else the nearest named in the sentence, else the one of
    the finding ("b-lines": lung), else the only organ of the text or the one last named. Sides and places: the nearest
    in the sentence. Sizes: of the nearest lesion or condition, else a fact `measurement`. Descriptors ("irregular
    margin") beside a lesion have the structure "lesion" and no side, place or size of their own.

    >>> print(*extract("No cyst. A 1.2 cm hypoechoic mass is seen at 3 o'clock of the left breast."), sep="; ")
    breast: no cyst; breast lesion: hypoechoic; breast: mass, left, 3 o'clock, 12 mm
    """
    return list(read(text, lexicon).facts)


def read(text: str, lexicon: Lexicon | None = None) -> Reading:
    """Return the facts, organs and sections of a text."""
    return _read(text, lexicon if lexicon is not None else load_lexicon())


@lru_cache(maxsize=2048)
def _read(text: str, lexicon: Lexicon) -> Reading:
    sentences = [
        read_sentence(number, tokens, lexicon) for number, tokens in enumerate(split(text, tokenize(text), lexicon))
    ]
    named = Counter(mention.term.name for sentence in sentences for mention in sentence.of("organ"))
    for sentence in sentences:
        for mention in (*sentence.of("structure"), *sentence.of("finding")):
            if mention.term.organ is not None:
                named[mention.term.organ] += 1
    context = _Context(next(iter(named)) if len(named) == 1 else None)
    facts: list[Fact] = []
    sections: set[str] = set()
    for sentence in sentences:
        found = list(_SentenceReader(sentence, lexicon, context).facts())
        facts.extend(found)
        sections.update(lexicon.findings[fact.finding].section for fact in found)
        sections.update(lexicon.features[mention.term.name][1] for mention in sentence.of("feature"))
        sections.update(mention.term.name for mention in sentence.of("section"))
    organs = tuple(sorted(named, key=lambda organ: (-named[organ], organ)))
    return Reading(tuple(absorb(merge(facts), lexicon)), organs, frozenset(sections))


class _SentenceReader:
    """Reads one sentence; `context` is what the sentences before it left, and is brought up to date."""

    def __init__(self, sentence: Sentence, lexicon: Lexicon, context: _Context) -> None:
        self.sentence = sentence
        self.lexicon = lexicon
        self.context = context
        self.organs = sentence.of("organ")
        self.structures = sentence.of("structure")
        self.places = sorted([*sentence.of("place"), *clock_positions(sentence)], key=lambda one: one.start)
        self.findings = sentence.of("finding")
        self.stating = {sentence.segment[one.start] for one in (*self.findings, *sentence.of("qualifier"))}
        self.organ_groups = list(self._organ_groups())
        self.describing = {
            position
            for mention in (*self.findings, *self.organs, *sentence.of("qualifier"))
            for position in range(mention.start, mention.stop)
        } | {position for position, word in enumerate(sentence.words) if word in _ADJECTIVE_JOINS}

    def facts(self) -> Iterator[Fact]:
        """Yield the facts of the sentence."""
        if any(section.term.name == "impression" for section in self.sentence.of("section")):
            # The impression speaks of the whole report, not of the organ described last.
            self.context.organs, self.context.side, self.context.lesion = (None,), None, None
        claims = read_claims(self.sentence, self.lexicon)
        lesions = [
            claim
            for claim in claims
            if self.lexicon.findings[claim.finding].kind == "lesion" and claim.polarity != "absent"
        ]
        owned, loose = self._owners(claims, lesions)
        last: Fact | None = None
        for claim in claims:
            for fact in self._facts_of(claim, lesions, owned.get(claim.mention.start, ())):
                yield fact
                if claim in lesions:
                    last = fact
        for size in loose:
            yield self._measurement(size)
        yield from self._grades()
        self._update(last)

    def _organ_groups(self) -> Iterator[list[Mention]]:
        """Yield the organs of the sentence, those of one list together: "liver, spleen and kidneys"."""
        group: list[Mention] = []
        listed = False
        sides = {position for side in self.sentence.of("side") for position in range(side.start, side.stop)}
        for organ in self.organs:
            between = range(group[-1].stop, organ.start) if group else range(0)
            words = {self.sentence.words[at] for at in between if at not in sides}
            if group and not (words and words <= _JOINS):
                yield from self._closed(group, listed)
                group, listed = [], False
            group.append(organ)
            listed = listed or not words.isdisjoint(_JOINS - _COMMAS)
        yield from self._closed(group, listed)

    @staticmethod
    def _closed(group: list[Mention], listed: bool) -> Iterator[list[Mention]]:
        """Yield a list of organs whole if an "and" holds it together, else organ by organ."""
        if listed:
            yield group
        else:
            yield from ([organ] for organ in group)

    def _pick(self, mention: Mention, among: Sequence[Mention], *, segment_only: bool = False) -> Mention | None:
        """Return which of some mentions belongs to one.

        The next one behind a preposition, with no comma and no other finding between; else the last one before; else
        the first one behind, unless in a clause that states something of its own. segment_only: those before and
        behind only from the same clause.
        """
        sentence, lexicon = self.sentence, self.lexicon
        behind = next((one for one in among if one.start >= mention.stop), None)
        if behind is not None and behind.start - mention.stop <= _PHRASE_REACH:
            between = sentence.words[mention.stop : behind.start]
            linked = any(word in lexicon.words["prepositions"] for word in between)
            broken = any(word in ",、;" for word in between) or any(
                mention.stop <= one.start < behind.start for one in self.findings
            )
            if linked and not broken:
                return behind
        before = next((one for one in reversed(among) if one.stop <= mention.start), None)
        same = sentence.segment[mention.start]
        if before is not None and (not segment_only or sentence.segment[before.start] == same):
            return before
        if behind is None:
            return None
        segment = sentence.segment[behind.start]
        return behind if segment == same or not (segment_only or segment in self.stating) else None

    def _structure_of(self, mention: Mention) -> Mention | None:
        segment = self.sentence.segment
        near = [one for one in self.structures if segment[one.start] == segment[mention.start]]
        return self._pick(mention, near)

    def _organs_of(self, mention: Mention, structure: Mention | None, finding: str) -> tuple[str | None, ...]:
        if mention.term.organ is not None:
            return (mention.term.organ,)
        if structure is not None and structure.term.organ is not None:
            return (structure.term.organ,)
        picked = self._pick(mention, self.organs)
        if picked is not None:
            group = next(group for group in self.organ_groups if picked in group)
            return tuple(dict.fromkeys(one.term.name for one in group))
        other = next((one.term.organ for one in self.structures if one.term.organ is not None), None)
        if other is not None:
            return (other,)
        own = self.lexicon.findings[finding].organ
        if own is not None:
            return (own,)
        return (self.context.only_organ,) if self.context.only_organ is not None else self.context.organs

    def _side_of(self, mention: Mention) -> str | None:
        picked = self._pick(mention, self.sentence.of("side"))
        if picked is not None:
            return picked.term.name
        return None if self.organs or self.structures else self.context.side

    def _severity_of(self, mention: Mention) -> str | None:
        near = [
            (distance(one, mention), one.start > mention.start, one.term.name)
            for one in self.sentence.of("severity")
            if distance(one, mention) <= 1
        ]
        return min(near)[2] if near else None

    def _beside_lesion(self, claim: Claim, lesions: Sequence[Claim]) -> bool:
        """Return whether a descriptor speaks of a lesion rather than of the organ."""
        entry = self.lexicon.findings[claim.finding]
        if entry.kind != "descriptor" or entry.section == "size":
            return False
        structure = self._structure_of(claim.mention)
        if structure is not None and not structure.term.region:
            return False
        sentence, here = self.sentence, claim.mention.start
        background = self._in_background(here)
        for lesion in lesions:
            at = lesion.mention.start
            if at > here:
                between = sentence.words[claim.mention.stop : at]
                near = sentence.segment[at] == sentence.segment[here] and len(between) <= _BEFORE_LESION
                if near and not any(word in self.lexicon.words["verbs"] for word in between):
                    return True
                if all(position in self.describing for position in range(claim.mention.stop, at)):
                    return True  # "solid, hypoechoic, lobulated nodule"
            else:
                own_organ = any(
                    at < organ.start < here
                    and sentence.segment[organ.start] != sentence.segment[at]
                    and sentence.segment[organ.start] == sentence.segment[here]
                    for organ in self.organs
                )
                apart = background and sentence.segment[at] != sentence.segment[here]
                if not own_organ and not apart:
                    return True
        alone = not (lesions or self.organs or self.structures)
        return alone and not background and self.context.lesion is not None

    def _in_background(self, here: int) -> bool:
        """Return whether the clause of a token speaks of the tissue around."""
        segment = self.sentence.segment
        first, stop = bisect_left(segment, segment[here]), bisect_right(segment, segment[here])
        return not self.lexicon.words["background"].isdisjoint(self.sentence.words[first:stop])

    def _takes_size(self, claim: Claim) -> bool:
        entry = self.lexicon.findings[claim.finding]
        kinds = ("lesion", "condition")
        return claim.polarity != "absent" and (
            entry.kind in kinds or (entry.kind == "descriptor" and entry.section == "lesion")
        )

    def _owners(self, claims: Sequence[Claim], lesions: Sequence[Claim]) -> tuple[dict[int, list[Size]], list[Size]]:
        """Return the sizes of each claim, by its first token, and those without an owner."""
        candidates = list(lesions) or [claim for claim in claims if self._takes_size(claim)]
        owned: dict[int, list[Size]] = {}
        loose: list[Size] = []
        for size in sizes(self.sentence, self.lexicon):
            best: tuple[int, int] | None = None
            segment = self.sentence.segment[size.start]
            other = any(
                one.start < size.start and self.sentence.segment[one.start] == segment
                for one in (*self.structures, *self.organs)
            )
            for claim in candidates:
                if other and self.sentence.segment[claim.mention.start] != segment:
                    continue  # "stones, wall thickness 2 mm": the clause has a subject of its own
                gap = distance(claim.mention, size)
                if claim.mention.start >= size.stop:
                    between = self.sentence.words[size.stop : claim.mention.start]
                    if gap > _BEFORE_SIZE_OWNER or "with" in between or "and" in between or "," in between:
                        continue
                if best is None or gap < best[0]:
                    best = (gap, claim.mention.start)
            if best is None:
                loose.append(size)
            else:
                owned.setdefault(best[1], []).append(size)
        return owned, loose

    def _facts_of(self, claim: Claim, lesions: Sequence[Claim], owned: Sequence[Size]) -> Iterator[Fact]:
        mention = claim.mention
        entry = self.lexicon.findings[claim.finding]
        first, last = self.sentence.tokens[mention.start], self.sentence.tokens[mention.stop - 1]
        span, number = (first[1], last[2]), self.sentence.number
        if self._beside_lesion(claim, lesions):
            owner = next(iter(lesions), None)
            organs: tuple[str | None, ...]
            if owner is not None:
                organs = self._organs_of(owner.mention, self._structure_of(owner.mention), owner.finding)
            else:
                organs = (self.context.lesion.organ if self.context.lesion is not None else None,)
            for organ in organs:
                yield Fact(organ, "lesion", claim.finding, claim.polarity, None, None, (), None, span, number)
            return
        structure = self._structure_of(mention)
        name = mention.term.structure or (structure.term.name if structure is not None else None)
        organs = self._organs_of(mention, structure, claim.finding)
        if entry.kind == "assessment":
            for organ in organs:
                yield Fact(organ, None, claim.finding, claim.polarity, None, None, (), None, span, number)
            return
        places: list[str | None] = []
        if self.places:
            picked = self._pick(mention, self.places, segment_only=claim.polarity == "absent")
            places = [picked.term.name if picked is not None else None]
            if entry.kind == "lesion" and len(lesions) == 1 and claim.polarity != "absent":
                places = list(dict.fromkeys(place.term.name for place in self.places))
        side, grade = self._side_of(mention), self._severity_of(mention)
        for organ in organs:
            for place in places or [None]:
                for size in owned or (Size((), 0, 0),):
                    yield Fact(
                        organ, name, claim.finding, claim.polarity, side, place, size.values, grade, span, number
                    )

    def _measurement(self, size: Size) -> Fact:
        """Return a size without a finding: of the lesion before, or of the organ or structure of the sentence."""
        tokens = self.sentence.tokens
        span, number = (tokens[size.start][1], tokens[size.stop - 1][2]), self.sentence.number
        before = self.context.lesion
        described = all(self.lexicon.findings[one.term.name].kind == "descriptor" for one in self.findings)
        if before is not None and described and not (self.organs or self.structures):
            return replace(before, size_mm=size.values, span=span, sentence=number)
        mention = Mention(Term("finding", "measurement"), size.start, size.stop)
        structure = self._structure_of(mention)
        organ = self._organs_of(mention, structure, "measurement")[0]
        name = structure.term.name if structure is not None else None
        return Fact(
            organ, name, "measurement", "present", self._side_of(mention), None, size.values, None, span, number
        )

    def _grades(self) -> Iterator[Fact]:
        for mention in self.sentence.of("grade"):
            value = grade_value(self.sentence, mention, self.lexicon)
            if value is not None:
                tokens = self.sentence.tokens
                span = (tokens[mention.start][1], tokens[mention.stop - 1][2])
                organ = self._organs_of(mention, None, mention.term.name)[0]
                polarity: Polarity = "uncertain" if self.sentence.certainty[mention.start] == 1 else "present"
                yield Fact(organ, None, mention.term.name, polarity, None, None, (), value, span, self.sentence.number)

    def _update(self, last: Fact | None) -> None:
        """Leave to the next sentence the organs and side named here, and the lesion spoken of."""
        context = self.context
        if last is not None:
            context.lesion = last
        elif self.organs or self.structures:
            context.lesion = None
        sides = self.sentence.of("side")
        if self.organs:
            context.organs = tuple(dict.fromkeys(one.term.name for one in self.organ_groups[-1]))
            context.side = None
        elif self.structures and self.structures[-1].term.organ is not None:
            context.organs = (self.structures[-1].term.organ,)
            context.side = None
        if sides and sides[0].start <= _AT_THE_FRONT:
            context.side = sides[0].term.name
