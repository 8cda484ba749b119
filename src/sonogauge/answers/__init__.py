"""The answer forms: each knows how to ask, how to parse a reply and what its values look like."""

from __future__ import annotations

from typing import Final

from sonogauge._registry import Registry
from sonogauge.answers.base import NULL, AnswerForm, AnswerSpec, Parsed

FORMS: Final[Registry[AnswerForm]] = Registry(
    "answer form",
    {
        "choice": "sonogauge.answers.choice:FORM",
        "multi_choice": "sonogauge.answers.multi_choice:FORM",
        "ranking": "sonogauge.answers.ranking:FORM",
        "place": "sonogauge.answers.place:FORM",
        "number": "sonogauge.answers.number:FORM",
        "text": "sonogauge.answers.text:FORM",
        "box": "sonogauge.answers.box:FORM",
        "point": "sonogauge.answers.point:FORM",
        "mask": "sonogauge.answers.mask:FORM",
        "grounded": "sonogauge.answers.grounded:FORM",
        "grounded_report": "sonogauge.answers.grounded_report:FORM",
    },
    group="sonogauge.answers",
)

__all__ = ["FORMS", "NULL", "AnswerForm", "AnswerSpec", "Parsed"]
