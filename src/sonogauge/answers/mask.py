"""A mask as the answer: `{"answer": text, "predicted_mask": MASK or null}`, in any form of `shapes`.

Parsing gives a `Grounded` (what was written); `settle` gives a `Drawn` on the pixels of an image, or the failure
that only the image can show: a run-length code of another size. `AnswerSpec.unit` declares the coordinates, see
`convention`; `[SEG]` in the answer says that a target is present.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.convention import SPACES, Size, read_convention
from sonogauge.answers.drawn import Shown, draw_shown, read_shown
from sonogauge.answers.json_reply import plain_text, read_object

MARK: Final = "[SEG]"
MASK_MEANING: Final = (
    '{"type": "polygon", "points": [[x, y], ...]}, {"type": "bbox", "bbox_xywh": [x, y, width, height]}, '
    '{"type": "multi", "masks": [...]} for several parts, or null'
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """An answer with the mask that supports it, as written."""

    answer: str
    shown: Shown


def read_grounded(reply: str, *, need_answer: bool) -> Parsed:
    """Read answer and mask; a mask that cannot be read stays in the value as its fault.

    need_answer: a reply without an answer text is a failure (`none`).
    """
    found = read_object(reply)
    if not found.valid:
        return found
    answer = plain_text(found.value.get("answer"))
    if answer is None and need_answer:
        return Parsed(None, "none")
    return Parsed(Grounded(answer or "", read_shown(found.value)))


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read a mask with its text; a mask that cannot be read is a failure of the reply.

    >>> parse('{"answer": "[SEG]", "predicted_mask": {"bbox": [0, 0, 4, 4]}}', AnswerSpec("mask")).value.answer
    '[SEG]'
    >>> parse('{"answer": "[SEG]"}', AnswerSpec("mask")).reason
    'none'
    """
    return whole(read_grounded(reply, need_answer=False))


def whole(found: Parsed) -> Parsed:
    """Return a failure in place of a `Grounded` whose mask has a fault."""
    return Parsed(None, found.value.shown.fault) if found.valid and found.value.shown.fault else found


def settle(value: Any, spec: AnswerSpec, size: Size, sent: Size | None = None) -> Parsed:
    """Draw a `Grounded` on an image of (width, height) `size`: a `Drawn`, or why that fails.

    >>> found = parse('{"answer": "", "predicted_mask": {"size": [2, 2], "counts": [1, 3]}}', AnswerSpec("mask"))
    >>> settle(found.value, AnswerSpec("mask"), (3, 2)).reason
    'size'
    """
    drawn = draw_shown(value.shown, value.answer, size, read_convention(spec.unit), sent)
    return Parsed(None, drawn.fault) if drawn.fault else Parsed(drawn)


def ask_coordinates(spec: AnswerSpec) -> str:
    """Return the sentence that says how coordinates are counted."""
    return f"Coordinates are {SPACES[read_convention(spec.unit).space]}, from the upper left corner, x first."


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction."""
    return (
        'Reply with JSON only: {"answer": "...", "predicted_mask": MASK}. Write [SEG] in the answer if the target is '
        f"present. MASK is {MASK_MEANING} if there is no target. {ask_coordinates(spec)}"
    )


FORM: Final = AnswerForm(name="mask", parser="mask-1", ask=ask, parse=parse, field="masks", settle=settle)
