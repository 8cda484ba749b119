"""Clinical content of texts as counts per item, the statistic "clinical", and as a table of facts for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sonogauge.metrics.base import Array
from sonogauge.metrics.clinical.extraction import Reading, read
from sonogauge.metrics.clinical.facts import DETAILS, Fact
from sonogauge.metrics.clinical.lexicon import Lexicon, load_lexicon
from sonogauge.metrics.clinical.matching import NO_FINDING, Match, detail_agrees, match_facts

# The columns of the statistic "clinical"; each is a count.
COLUMNS: Final = (
    "items",
    "reference_facts",
    "reply_facts",
    "correct",
    "polarity_compared",
    "negation_errors",
    "side_compared",
    "side_errors",
    "place_compared",
    "place_errors",
    "size_compared",
    "size_errors",
    "grade_compared",
    "grade_errors",
    "certainty_errors",
    "specificity_errors",
    "hallucinated",
    "missed",
    "reference_details",
    "details_right",
    "sections_required",
    "sections_missing",
)
_SHOWN: Final = (
    "reference_facts",
    "reply_facts",
    "correct",
    "negation_errors",
    "side_errors",
    "place_errors",
    "size_errors",
    "grade_errors",
    "hallucinated",
    "missed",
    "sections_missing",
)
_COMPARED: Final = {"side": "side", "place": "place", "size_mm": "size", "grade": "grade"}


def required_sections(reference: str, lexicon: Lexicon | None = None) -> frozenset[str]:
    """Return the sections a reply must have: those declared for the main organ that the reference itself has.

    The main organ is the one the reference names most often. So a reference is never found incomplete against itself;
    what a report lacks against the declaration alone is `missing_sections`.
    """
    lexicon = lexicon if lexicon is not None else load_lexicon()
    reading = read(reference, lexicon)
    return _declared(reading, lexicon) & reading.sections


def missing_sections(text: str, organ: str | None = None, lexicon: Lexicon | None = None) -> list[str]:
    """Return the sections declared for an organ (by default the main organ of the text) that a text lacks, sorted.

    >>> missing_sections("The liver is normal in size and shape, with smooth border. No focal lesion.")
    ['echotexture', 'impression']
    """
    lexicon = lexicon if lexicon is not None else load_lexicon()
    reading = read(text, lexicon)
    declared = _declared(reading, lexicon) if organ is None else _sections_of(organ, lexicon)
    return sorted(declared - reading.sections)


def _declared(reading: Reading, lexicon: Lexicon) -> frozenset[str]:
    return _sections_of(reading.organs[0] if reading.organs else "default", lexicon)


def _sections_of(organ: str, lexicon: Lexicon) -> frozenset[str]:
    return frozenset(lexicon.required_sections.get(organ, lexicon.required_sections["default"]))


def clinical_counts(reference: str, reply: str, lexicon: Lexicon | None = None) -> dict[str, float]:
    """Count the facts of one reply against one reference; keys are `COLUMNS`.

    polarity_compared: pairs in which neither side is uncertain, and contradictions; negation_errors: those that differ.
    side_, place_, size_, grade_compared: pairs of equal polarity in which both texts name it. reference_details: sides,
    places, sizes and grades of all reference facts; details_right: those that the paired fact repeats.
    hallucinated, missed: see `matching`.

    >>> counts = clinical_counts("A 5 mm cyst in the left breast.", "A 5 cm cyst in the right breast.")
    >>> [counts[name] for name in ("correct", "side_errors", "size_errors", "negation_errors")]
    [0.0, 1.0, 1.0, 0.0]
    """
    lexicon = lexicon if lexicon is not None else load_lexicon()
    ours, theirs = read(reference, lexicon), read(reply, lexicon)
    counts = dict.fromkeys(COLUMNS, 0.0)
    counts["items"] = 1.0
    counts["reference_facts"], counts["reply_facts"] = float(len(ours.facts)), float(len(theirs.facts))
    for match in match_facts(ours.facts, theirs.facts, lexicon):
        _count(match, counts, lexicon)
    required = required_sections(reference, lexicon)
    counts["sections_required"] = float(len(required))
    counts["sections_missing"] = float(len(required - theirs.sections))
    return counts


def _count(match: Match, counts: dict[str, float], lexicon: Lexicon) -> None:
    reference, reply, verdicts = match.reference, match.reply, match.verdicts
    counts["correct"] += match.correct
    counts["certainty_errors"] += "certainty error" in verdicts
    counts["specificity_errors"] += "less specific" in verdicts or "more specific" in verdicts
    if reference is not None:
        counts["reference_details"] += sum(bool(getattr(reference, name)) for name in DETAILS)
        counts["missed"] += _asserted(reference, reply, lexicon)
    if reply is not None:
        counts["hallucinated"] += _asserted(reply, reference, lexicon)
    if "contradiction" in verdicts:
        counts["polarity_compared"] += 1
        counts["negation_errors"] += 1
    if reference is None or reply is None:
        return
    if "uncertain" not in (reference.polarity, reply.polarity):
        counts["polarity_compared"] += 1
        counts["negation_errors"] += "negation error" in verdicts
    if reference.polarity == reply.polarity:
        for name, column in _COMPARED.items():
            agrees = detail_agrees(name, reference, reply, lexicon)
            if agrees is not None:
                counts[f"{column}_compared"] += 1
                counts[f"{column}_errors"] += not agrees
                counts["details_right"] += agrees


def _asserted(fact: Fact, other: Fact | None, lexicon: Lexicon) -> bool:
    """Return whether a fact asserts a finding that the other text does not mention or denies."""
    if lexicon.findings[fact.finding].kind in NO_FINDING:
        return False
    if other is None:
        return fact.polarity != "absent"
    return fact.polarity == "present" and other.polarity == "absent"


def best_reference(
    references: Sequence[str], reply: str, lexicon: Lexicon | None = None
) -> tuple[str, dict[str, float]]:
    """Return the reference with the highest F1 of facts, the first of equal ones, and its counts.

    Raises:
        ValueError: no reference.
    """
    if not references:
        raise ValueError("an item without a reference")
    best: tuple[str, dict[str, float]] | None = None
    for reference in references:
        counts = clinical_counts(reference, reply, lexicon)
        if best is None or _f1(counts) > _f1(best[1]):
            best = (reference, counts)
    assert best is not None
    return best


def _f1(counts: dict[str, float]) -> float:
    facts = counts["reference_facts"] + counts["reply_facts"]
    return 2 * counts["correct"] / facts if facts else 1.0


def clinical_statistics(
    references: Sequence[Sequence[str]], texts: Sequence[str], lexicon: Lexicon | None = None
) -> dict[str, Array]:
    """Count the facts of each text, the statistic "clinical", shape (n, 22), columns `COLUMNS`.

    Of several references the one with the highest F1 counts. A failed reply is an empty text: it has no fact, so it
    lowers recall and F1 and lacks every section, but makes no error of side or negation: read these beside the recall.
    Raises ValueError if the two differ in length or an item has no reference.
    """
    if len(references) != len(texts):
        raise ValueError(f"{len(references)} reference lists for {len(texts)} texts")
    rows = []
    for several, text in zip(references, texts, strict=True):
        counts = best_reference(several, text, lexicon)[1]
        rows.append([counts[name] for name in COLUMNS])
    return {"clinical": np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))}


def item_values(counts: dict[str, float]) -> dict[str, float]:
    """Return the per-item values of counts: `fact_f1` (1 where neither text has a fact) and facts and errors."""
    shown = {name: counts[name] for name in _SHOWN}
    # Not "correct": of other forms that is the whole answer, here it is a number of facts.
    return {
        "fact_f1": _f1(counts),
        **{name: value for name, value in shown.items() if name != "correct"},
        "correct_facts": shown["correct"],
    }


def clinical_item(references: Sequence[str], text: str, lexicon: Lexicon | None = None) -> dict[str, float]:
    """Return the per-item values of one reply against its best reference; see `item_values`.

    >>> clinical_item(["No cyst in the liver."], "A cyst in the liver.")["negation_errors"]
    1.0
    """
    return item_values(best_reference(references, text, lexicon)[1])


def fact_table(reference: str, reply: str, lexicon: Lexicon | None = None) -> list[dict[str, Any]]:
    """Return the facts of a pair of texts as rows for the page, JSON types only.

    Keys: `fact` (organ, structure and finding), `in_reference` and `in_reply` (the fact as a phrase, or None),
    `reference_span` and `reply_span` (characters [start, end] of the finding, or None), `verdict` (the verdicts of
    `matching`, joined by "; "), `correct`. Reference facts in their order, then those of the reply alone.

    >>> [(row["in_reference"], row["in_reply"], row["verdict"]) for row in fact_table("No stone.", "A stone. A cyst.")]
    [('no stone', 'stone', 'negation error'), (None, 'cyst', 'hallucinated')]
    """
    lexicon = lexicon if lexicon is not None else load_lexicon()
    rows: list[dict[str, Any]] = []
    for match in match_facts(read(reference, lexicon).facts, read(reply, lexicon).facts, lexicon):
        one = match.reference if match.reference is not None else match.reply
        assert one is not None
        where = " ".join(part for part in (one.organ, one.structure) if part)
        rows.append(
            {
                "fact": f"{where}: {one.finding}" if where else one.finding,
                "in_reference": None if match.reference is None else str(match.reference),
                "in_reply": None if match.reply is None else str(match.reply),
                "reference_span": None if match.reference is None else list(match.reference.span),
                "reply_span": None if match.reply is None else list(match.reply.span),
                "verdict": "; ".join(match.verdicts),
                "correct": match.correct,
            }
        )
    return rows
