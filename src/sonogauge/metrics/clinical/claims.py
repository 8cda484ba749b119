"""What a sentence claims: findings with their polarity, and features that are called normal or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from sonogauge.metrics.clinical.facts import Polarity
from sonogauge.metrics.clinical.lexicon import ROOT, Lexicon
from sonogauge.metrics.clinical.sentences import ABSENT, PRESENT, Mention, Sentence

_POLARITY: Final[tuple[Polarity, ...]] = ("present", "uncertain", "absent")
# Tokens between a feature and the word that calls it normal.
_FEATURE_REACH: Final = 8


class Extent(Protocol):
    """Tokens from start to stop - 1."""

    @property
    def start(self) -> int:
        """First token."""
        ...

    @property
    def stop(self) -> int:
        """Token after the last."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding in a sentence, before it is known of what."""

    finding: str
    polarity: Polarity
    mention: Mention


def distance(one: Extent, other: Extent) -> int:
    """Return the number of tokens between two things of a sentence."""
    return max(0, other.start - one.stop, one.start - other.stop)


def read_claims(sentence: Sentence, lexicon: Lexicon) -> list[Claim]:
    """Return the claims of a sentence in the order of their words."""
    reader = _ClaimReader(sentence, lexicon)
    return sorted([*reader.of_findings(), *reader.of_features()], key=lambda claim: claim.mention.start)


class _ClaimReader:
    def __init__(self, sentence: Sentence, lexicon: Lexicon) -> None:
        self.sentence = sentence
        self.lexicon = lexicon
        self.findings = sentence.of("finding")
        self.finding_starts = {finding.start for finding in self.findings}

    def of_findings(self) -> Iterator[Claim]:
        """Yield what is said of findings."""
        for mention in self.findings:
            if mention.term.name == ROOT and mention.stop in self.finding_starts:
                continue
            certainty = self.sentence.certainty[mention.start]
            polarity = _POLARITY[certainty]
            if mention.term.polarity == "absent" and certainty != PRESENT:
                # "not benign", "possibly benign": the denied finding is not ruled out.
                polarity = "present" if certainty == ABSENT and self._adjacent_denial(mention) else polarity
            elif mention.term.polarity == "absent":
                polarity = "absent"
            yield Claim(mention.term.name, polarity, mention)

    def of_features(self) -> Iterator[Claim]:
        """Yield what is said of features, and by words of normality that no feature takes."""
        qualifiers = self.sentence.of("qualifier")
        taken: set[int] = set()
        for feature in self.sentence.of("feature"):
            finding, section = self.lexicon.features[feature.term.name]
            best: tuple[int, bool, Mention] | None = None
            for qualifier in qualifiers:
                if feature.term.name in self.lexicon.qualifiers[qualifier.term.name].about:
                    gap = self._feature_gap(feature, qualifier)
                    if gap is not None and (best is None or (gap, qualifier.start < feature.start) < best[:2]):
                        best = (gap, qualifier.start < feature.start, qualifier)
            rivals = (
                distance(feature, one)
                for one in self.findings
                if self.lexicon.findings[one.term.name].section == section
                and self.sentence.segment[one.start] == self.sentence.segment[feature.start]
            )
            if best is not None and min(rivals, default=_FEATURE_REACH + 1) >= best[0]:
                taken.add(best[2].start)
                yield Claim(finding, self._qualified(best[2]), feature)
        for qualifier in qualifiers:
            # "no abnormal blood flow" speaks of the flow.
            entry = self.lexicon.qualifiers[qualifier.term.name]
            spare = entry.alone == ROOT and entry.polarity == "present" and qualifier.stop in self.finding_starts
            if qualifier.start not in taken and not spare:
                yield Claim(entry.alone, self._qualified(qualifier), qualifier)

    def _qualified(self, qualifier: Mention) -> Polarity:
        """Return the polarity of what a qualifier says; only a denial right before it turns "normal" around."""
        certainty = self.sentence.certainty[qualifier.start]
        if self.lexicon.qualifiers[qualifier.term.name].polarity == "present":
            return _POLARITY[certainty]
        if self._adjacent_denial(qualifier):
            return "present"
        return "absent" if certainty in (PRESENT, ABSENT) else "uncertain"

    def _adjacent_denial(self, mention: Mention) -> bool:
        return any(0 <= mention.start - cue.stop <= 1 for cue in self.sentence.of("deny_next"))

    def _feature_gap(self, feature: Mention, qualifier: Mention) -> int | None:
        """Return the tokens between a feature and a qualifier, None if they do not belong together.

        A comma between them must close a feature of a list: "size, shape and border are normal".
        """
        gap = distance(feature, qualifier)
        if gap > _FEATURE_REACH:
            return None
        first, second = sorted((feature, qualifier), key=lambda one: one.start)
        ends = {one.stop for one in self.sentence.of("feature")}
        for position in range(first.stop, second.start):
            word = self.sentence.words[position]
            if word in ";:" or (word in ",、" and position not in ends):
                return None
        return gap
