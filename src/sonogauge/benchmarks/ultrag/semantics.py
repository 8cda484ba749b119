"""What the text of an answer or report says: polarity, cells, sizes, counts, labels, presence, under both protocols.

Every rule is that of the specification, section 5; `published` repeats the faults of the reference scorer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from sonogauge.benchmarks.ultrag.vocabulary import normalise

ROWS: Final = ("upper", "middle", "lower")
COLUMNS: Final = ("left", "central", "right")
GENERIC: Final = ("lesion", "mass", "tumor", "abnormality", "nodule", "target", "structure")
_DEGREES: Final = ("discrete", "definite", "focal", "visible", "labeled", "labelled", "supplied")
_NEGATED: Final = (*GENERIC, "organ")
_LEADING: Final = ("target", "structure", "organ", "lesion", "mass", "tumor", "nodule")
_NO: Final = r"\bno(?: (?:" + "|".join(_DEGREES) + r")){0,3}(?: \w+){0,4}? (?:{names})\b"
_GONE: Final = r"\b(?:{names})(?: is)? (?:not visible|absent|unavailable)\b"
_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_PAIR: Final = re.compile(rf"{_NUMBER}\s*(?:px|pixels?)?\s*(?:x|by)\s*{_NUMBER}")
_PAIR_STRICT: Final = re.compile(rf"{_NUMBER}\s*(?:px|pixels?)?\s*(?:[x×]|by)\s*{_NUMBER}")  # noqa: RUF001
_PERCENT: Final = re.compile(rf"{_NUMBER}\s*(?:%|percent)")
_COUNTS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_SENTENCES: Final = re.compile(r"(?<=[.;!?])\s+|\n+")
NEGATIONS: Final = frozenset({"not", "no", "non"})


class Vocabulary(Protocol):
    """The regions that a text can name."""

    @property
    def organ(self) -> str:
        """The organ of the category."""

    def mentions(self, text: str) -> list[tuple[int, int, str]]:
        """Return (start, end, region) of a normalised text."""

    def named(self, text: str) -> frozenset[str]:
        """Return the regions that a text names."""


def tokens(text: str) -> list[str]:
    """Return the tokens of a normalised text; none for an empty one."""
    return normalise(text).split()


def polarity(text: str, *, strict: bool) -> bool | None:
    """Return yes (True), no (False) or neither (None).

    strict: whole words; with both words present the first token decides. Else a prefix is enough ("Nodule": no).

    >>> polarity("Nodule present", strict=False), polarity("Nodule present", strict=True)
    (False, None)
    """
    words = tokens(text)
    if not strict:
        joined = " ".join(words)
        for word, value in (("yes", True), ("no", False)):
            if joined.startswith(word) or word in words:
                return value
        return None
    said = {word for word in words if word in ("yes", "no")}
    if len(said) == 2:
        return words[0] == "yes" if words[0] in said else None
    return None if not said else said == {"yes"}


def cells(text: str) -> frozenset[str]:
    """Return the cells that a text names: a row and a column as adjacent words.

    >>> sorted(cells("In the upper-left and middle central part."))
    ['middle-central', 'upper-left']
    """
    words = tokens(text)
    return frozenset(f"{row}-{column}" for row, column in pairwise(words) if _is_cell(row, column))


def _is_cell(row: str, column: str) -> bool:
    return row in ROWS and column in COLUMNS


def size_pair(text: str, *, strict: bool) -> tuple[float, float] | None:
    """Return the first "A x B" or "A by B" of a text; strict also reads the multiplication sign.

    >>> size_pair("about 200 by 100 px", strict=False)
    (200.0, 100.0)
    """
    hit = (_PAIR_STRICT if strict else _PAIR).search(text.lower())
    return (float(hit[1]), float(hit[2])) if hit else None


def same_size(reference: tuple[float, float], predicted: tuple[float, float] | None) -> bool:
    """Whether both numbers lie within max(1, 20 %) of the reference, in either order, limits included.

    >>> [same_size((200, 100), pair) for pair in ((100, 200), (240, 120), (241, 100))]
    [True, True, False]
    """
    if predicted is None:
        return False
    # The margin keeps a difference of exactly the tolerance within it in binary arithmetic.
    return any(
        all(abs(ours - ref) <= max(1.0, 0.2 * ref) * (1 + 1e-12) for ref, ours in zip(reference, pair, strict=True))
        for pair in (predicted, predicted[::-1])
    )


def percentage(text: str) -> float | None:
    """Return the first percentage of a text."""
    hit = _PERCENT.search(text.lower())
    return float(hit[1]) if hit else None


def same_extent(reference: float, predicted: float | None) -> bool:
    """Whether two percentages differ by at most max(1.0 point, 15 % of the reference).

    >>> same_extent(20.0, 23.0), same_extent(2.0, 3.1)
    (True, False)
    """
    return predicted is not None and abs(reference - predicted) <= max(1.0, 0.15 * reference) * (1 + 1e-12)


def first_count(text: str) -> int | None:
    """Return the first integer of a text, in digits or as a word from zero to twenty.

    >>> first_count("There are two nodules"), first_count("none")
    (2, None)
    """
    for word in tokens(text):
        if word.isdigit() and len(word) < 10:
            return int(word)
        if word in _COUNTS:
            return _COUNTS.index(word)
    return None


def labels(text: str) -> frozenset[str]:
    """Return benign and malignant where a text claims them: whole words, none within 3 tokens after a negation.

    >>> sorted(labels("malignant, not benign")), sorted(labels("no sign of malignancy"))
    (['malignant'], [])
    """
    words = tokens(text)
    found = set()
    for place, word in enumerate(words):
        label = "benign" if word == "benign" else "malignant" if word.startswith("malignan") else None
        if label and not NEGATIONS & set(words[max(0, place - 3) : place]):
            found.add(label)
    return frozenset(found)


def token_recall(reference: str, predicted: str) -> float:
    """Return the share of distinct reference tokens found in the prediction; 0 for an empty reference."""
    wanted = set(tokens(reference))
    return len(wanted & set(tokens(predicted))) / len(wanted) if wanted else 0.0


def token_f1(reference: str, predicted: str) -> float:
    """Return the F1 of distinct tokens; 0 where either side is empty.

    >>> token_f1("a b", "a c")
    0.5
    """
    wanted, given = set(tokens(reference)), set(tokens(predicted))
    shared = len(wanted & given)
    return 2 * shared / (len(wanted) + len(given)) if shared else 0.0


def presence(text: str, vocabulary: Vocabulary) -> bool | None:
    """Return whether a text says that something is there (True), is not (False) or neither, as published.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> [presence(text, load_category("Breast")) for text in ("No definite focal mass.", "A mass.", "Fine.")]
    [False, True, None]
    """
    plain = normalise(text)
    if "appears normal" in plain or _says_no(plain, _NEGATED, _LEADING):
        return False
    words = set(plain.split())
    organ = normalise(vocabulary.organ)
    named = bool(vocabulary.mentions(plain)) or (bool(organ) and f" {organ} " in f" {plain} ")
    return True if named or words & set(GENERIC) else None


def _says_no(plain: str, negated: Sequence[str], leading: Sequence[str]) -> bool:
    no = _NO.replace("{names}", "|".join(map(re.escape, negated)))
    gone = _GONE.replace("{names}", "|".join(map(re.escape, leading)))
    return bool(re.search(no, plain) or re.search(gone, plain))


def presence_by_region(text: str, vocabulary: Vocabulary) -> dict[str, bool]:
    """Return, per region that a text names, whether it says that the region is there.

    Decided sentence by sentence; a region that one sentence shows and another denies is there.
    """
    found: dict[str, bool] = {}
    for sentence in sentences(text):
        plain = normalise(sentence)
        for start, end, region in vocabulary.mentions(plain):
            name = plain[start:end]
            there = "appears normal" not in plain and not _says_no(plain, (name,), (name,))
            found[region] = found.get(region, False) or there
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [one for one in _SENTENCES.split(text) if one.strip()]


def region_cells(text: str, vocabulary: Vocabulary) -> frozenset[tuple[str, str]]:
    """Return the (region, cell) pairs of a text: a cell belongs to the region named before it in its sentence.

    A cell with no region before it goes to the next one of the sentence; without any, to "".
    """
    found = set()
    for sentence in sentences(text):
        plain = normalise(sentence)
        regions = vocabulary.mentions(plain)
        for hit in re.finditer(rf"(?=\b({'|'.join(ROWS)}) ({'|'.join(COLUMNS)})\b)", plain):
            before = [region for start, _, region in regions if start < hit.start()]
            after = [region for start, _, region in regions if start > hit.start()]
            region = before[-1] if before else after[0] if after else ""
            found.add((region, f"{hit[1]}-{hit[2]}"))
    return frozenset(found)


def answer_right(kind: str, reference: str, predicted: str, vocabulary: Vocabulary, *, strict: bool) -> bool:
    """Whether the answer to a question of an answer type is right.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> breast = load_category("Breast")
    >>> [answer_right("yes_no", "No target", "Nodule present", breast, strict=one) for one in (False, True)]
    [True, False]
    """
    return _right_strict(kind, reference, predicted, vocabulary) if strict else _right(kind, reference, predicted)


def _right(kind: str, reference: str, predicted: str) -> bool:
    if "yes_no" in kind:
        return polarity(reference, strict=False) == polarity(predicted, strict=False)
    if "location" in kind:
        wanted = cells(reference)
        return bool(wanted) and wanted == cells(predicted)
    wanted_labels = {"benign", "malignant"} & set(tokens(reference))
    if wanted_labels and any(name in kind for name in ("classification", "category", "open")):
        return bool(wanted_labels & set(tokens(predicted)))
    return token_recall(reference, predicted) >= 0.5


def _right_strict(kind: str, reference: str, predicted: str, vocabulary: Vocabulary) -> bool:
    if kind == "yes_no":
        said = polarity(predicted, strict=True)
        return said is not None and said == polarity(reference, strict=True)
    if kind == "location":
        wanted = cells(reference)
        if not wanted:
            return not cells(predicted) and presence(predicted, vocabulary) is False
        return wanted == cells(predicted)
    if kind == "count":
        number = first_count(reference)
        return number is not None and number == first_count(predicted)
    if kind == "size":
        pair = size_pair(reference, strict=True)
        if pair is not None:
            return same_size(pair, size_pair(predicted, strict=True))
        share = percentage(reference)
        return token_f1(reference, predicted) >= 0.5 if share is None else same_extent(share, percentage(predicted))
    if {"benign", "malignant"} & set(tokens(reference)):
        return labels(reference) == labels(predicted)
    regions = vocabulary.named(reference)
    if kind in ("category", "classification") and regions:
        return regions == vocabulary.named(predicted)
    return token_f1(reference, predicted) >= 0.5


@dataclass(frozen=True, slots=True)
class Text:
    """A report as sentences: (text, finding type)."""

    parts: tuple[tuple[str, str], ...]

    @property
    def whole(self) -> str:
        """All sentences, joined by spaces."""
        return " ".join(text for text, _ in self.parts)


def flags(
    reference: Text, predicted: Text, vocabulary: Vocabulary, *, strict: bool, extent: bool = False
) -> dict[str, bool]:
    """Return the SemAcc flags that apply to a report: presence, category, location, size, and extent where asked for.

    >>> from sonogauge.benchmarks.ultrag.vocabulary import load_category
    >>> one = Text((("A breast lesion lies in the upper-left part, 20 x 10 pixels.", "organ_presence"),))
    >>> flags(one, one, load_category("Breast"), strict=True)
    {'presence': True, 'category': True, 'location': True, 'size': True}
    """
    found = {}
    ours, theirs = predicted.whole, reference.whole
    state = presence(theirs, vocabulary)
    if state is not None:
        right = presence(ours, vocabulary) is state
        found["presence"] = _same_presence(theirs, ours, state, vocabulary) if strict else right
    regions = vocabulary.named(theirs) if strict else _regions_loose(theirs, vocabulary)
    if regions:
        given = vocabulary.named(ours) if strict else _regions_loose(ours, vocabulary)
        found["category"] = regions == given if strict else regions <= given
    wanted = cells(theirs)
    if wanted:
        if strict:
            found["location"] = region_cells(theirs, vocabulary) == region_cells(ours, vocabulary)
        else:
            found["location"] = wanted == cells(ours)
    pair = size_pair(theirs, strict=strict)
    if pair is not None:
        found["size"] = same_size(pair, _size_strict(reference, predicted) if strict else size_pair(ours, strict=False))
    share = percentage(theirs)
    if extent and share is not None:
        found["extent"] = same_extent(share, percentage(ours))
    return found


def _same_presence(theirs: str, ours: str, state: bool, vocabulary: Vocabulary) -> bool:
    wanted, given = presence_by_region(theirs, vocabulary), presence_by_region(ours, vocabulary)
    overall = presence(ours, vocabulary)
    if not wanted:
        return overall is state
    # A text that denies everything in general terms denies each region.
    return all(
        given.get(region, False if overall is False and not given else None) is there
        for region, there in wanted.items()
    )


def _regions_loose(text: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the regions whose canonical name stands in a text, also inside a longer name."""
    plain = f" {normalise(text)} "
    names = getattr(vocabulary, "targets", None)
    if names is None:
        return vocabulary.named(text)
    return frozenset(name for name in names if f" {normalise(name)} " in plain)


def _size_strict(reference: Text, predicted: Text) -> tuple[float, float] | None:
    kinds = [kind for text, kind in reference.parts if size_pair(text, strict=True)]
    first = [text for text, kind in predicted.parts if kinds and kind == kinds[0]]
    for text in (*first, predicted.whole):
        pair = size_pair(text, strict=True)
        if pair is not None:
            return pair
    return None


_SPATIAL: Final = ("presence", "location", "size", "extent", "area", "pixel", "boundary", "count")
_NOT_SPATIAL: Final = (
    *("not_applicable", "scope", "impression", "summary", "label", "status", "distribution", "unavailable"),
    *("absence", "no_target"),
)


def is_spatial(finding_type: str) -> bool:
    """Whether a finding type speaks of pixels.

    >>> is_spatial("organ_location"), is_spatial("location_not_applicable")
    (True, False)
    """
    return any(word in finding_type for word in _SPATIAL) and not any(word in finding_type for word in _NOT_SPATIAL)
