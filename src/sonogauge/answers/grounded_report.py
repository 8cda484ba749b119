"""A report whose sentences show their pixels: `{"report": [{"section", "text", "finding_type", "predicted_mask"}]}`.

The list may also be called `sentences`. Parsing gives a `GroundedReport`, `settle` a `DrawnReport`. A sentence whose
mask cannot be read stays, with the fault: its text counts, its grounding is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.convention import Size, read_convention
from sonogauge.answers.drawn import Drawn, Shown, draw_shown, read_shown
from sonogauge.answers.json_reply import plain_text, read_object
from sonogauge.answers.mask import MASK_MEANING, ask_coordinates

SECTIONS: Final = ("Findings", "Assessment", "Impression")
MOST_SENTENCES: Final = 200


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as written. A mask that was left out is an empty one: not every sentence has pixels."""

    section: str
    text: str
    finding_type: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class GroundedReport:
    """A report as written."""

    sentences: tuple[Sentence, ...]

    @property
    def text(self) -> str:
        """All sentences, joined by spaces."""
        return " ".join(one.text for one in self.sentences)


@dataclass(frozen=True, slots=True)
class DrawnSentence:
    """One sentence with its mask on the image; `drawn.fault` says why a mask could not be read."""

    section: str
    text: str
    finding_type: str
    drawn: Drawn


@dataclass(frozen=True, slots=True)
class DrawnReport:
    """A report on the pixels of an image."""

    sentences: tuple[DrawnSentence, ...]

    @property
    def text(self) -> str:
        """All sentences, joined by spaces."""
        return " ".join(one.text for one in self.sentences)

    @property
    def outside(self) -> tuple[int, int]:
        """(Coordinates outside the declared range, coordinates), over all sentences."""
        parts = [one.drawn.outside for one in self.sentences]
        return sum(beyond for beyond, _ in parts), sum(total for _, total in parts)

    def as_row(self) -> dict[str, Any]:
        """Return the VALUE struct of this prediction."""
        sentences, masks = [], []
        for one in self.sentences:
            shows = not (one.drawn.empty or one.drawn.hint or one.drawn.fault)
            sentences.append({"text": one.text, "mask_ids": [one.drawn.mask["mask_id"]] if shows else []})
            masks += [dict(one.drawn.mask)] if shows else []
        return {"texts": [self.text], "sentences": sentences, "masks": masks}


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read a report; a reply without a list of sentences is a failure (`none`, `format`).

    >>> text = '{"report": [{"section": "Findings", "text": "A nodule.", "finding_type": "organ_presence"}]}'
    >>> parse(text, AnswerSpec("grounded_report")).value.text
    'A nodule.'
    """
    found = read_object(reply)
    if not found.valid:
        return found
    rows = found.value.get("report", found.value.get("sentences"))
    if rows is None:
        return Parsed(None, "none")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Parsed(None, "format")
    if len(rows) > MOST_SENTENCES:
        return Parsed(None, "size")
    sentences = tuple(
        Sentence(
            plain_text(row.get("section")) or "",
            plain_text(row.get("text")) or "",
            plain_text(row.get("finding_type")) or "",
            read_shown({"predicted_mask": None, **row}),
        )
        for row in rows
    )
    if not any(one.text for one in sentences):
        return Parsed(None, "none")
    return Parsed(GroundedReport(sentences))


def settle(value: Any, spec: AnswerSpec, size: Size, sent: Size | None = None) -> Parsed:
    """Draw the masks of a `GroundedReport` on an image of (width, height) `size`: a `DrawnReport`."""
    convention = read_convention(spec.unit)
    return Parsed(
        DrawnReport(
            tuple(
                DrawnSentence(
                    one.section,
                    one.text,
                    one.finding_type,
                    draw_shown(one.shown, one.text, size, convention, sent, f"predicted-{number}"),
                )
                for number, one in enumerate(value.sentences, start=1)
            )
        )
    )


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction."""
    return (
        'Reply with JSON only: {"report": [{"section": "...", "text": "...", "finding_type": "...", '
        f'"predicted_mask": MASK}}, ...]}}. Sections are {", ".join(SECTIONS)}. MASK marks the pixels a sentence '
        f"speaks of: {MASK_MEANING} if it speaks of none. {ask_coordinates(spec)}"
    )


FORM: Final = AnswerForm(
    name="grounded_report", parser="grounded-report-1", ask=ask, parse=parse, field="sentences", settle=settle
)
