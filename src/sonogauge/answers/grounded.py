"""An answer with its evidence: `{"answer": text, "predicted_mask": MASK or null}`, the text being the answer."""

from __future__ import annotations

from typing import Final

from sonogauge.answers.base import AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.mask import MASK_MEANING, ask_coordinates, read_grounded, settle, whole


def parse(reply: str, spec: AnswerSpec) -> Parsed:
    """Read an answer with its mask: a `mask.Grounded`; a mask that cannot be read is a failure of the reply.

    >>> parse('{"answer": "yes", "predicted_mask": null}', AnswerSpec("grounded")).value.shown.is_null
    True
    >>> parse('{"predicted_mask": null}', AnswerSpec("grounded")).reason
    'none'
    """
    return whole(read_grounded(reply, need_answer=True))


def ask(spec: AnswerSpec) -> str:
    """Return the output instruction."""
    return (
        'Reply with JSON only: {"answer": "...", "predicted_mask": MASK}. MASK marks the pixels that support the '
        f"answer: {MASK_MEANING} if no visible evidence is needed. {ask_coordinates(spec)}"
    )


FORM: Final = AnswerForm(name="grounded", parser="grounded-1", ask=ask, parse=parse, field="masks", settle=settle)
