"""What answers that draw show beside their words: kinds of error, sentences with their masks, pixels of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.items import Item
from sonogauge.report.page.answers import Answer, Answers
from sonogauge.report.page.overlays import MOST_PIXELS
from sonogauge.report.page.pack import short

FORMS: Final = frozenset({"mask", "grounded", "grounded_report"})
# In the order of the filter; the last one takes whatever could not be read.
KINDS: Final[Mapping[str, str]] = {
    "wrong_target": "wrong target",
    "missed": "missed",
    "hallucinated": "hallucinated mask",
    "over": "over-segmentation",
    "under": "under-segmentation",
    "right_wrong_pixels": "right answer on wrong pixels",
    "wrong_right_pixels": "wrong answer on right pixels",
    "format": "format",
}
_MARK: Final = "error_"
MOST_SENTENCES: Final = 60
MOST_SENTENCE: Final = 1_000
MOST_FACTS: Final = 100


def kinds_of(item: Item, answer: Answer) -> list[str]:
    """Return the kinds of error of one answer, in the order of `KINDS`; a mask that did not read is one of format.

    An answer of another form has none.
    """
    if item.answer.form not in FORMS or answer.outcome == "excluded":
        return []
    named = {name.removeprefix(_MARK) for name, hit in answer.values.items() if name.startswith(_MARK) and hit}
    found = {name if name in KINDS else "format" for name in named}
    if answer.outcome == "failed":
        found.add("format")
    return [name for name in KINDS if name in found]


def kind_counts(answers: Answers, lines: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return how many of all scored answers show each kind, by line; nothing where no answer draws."""
    counts: dict[str, dict[str, int]] = {name: {} for name in KINDS}
    draws = False
    for index, found in answers.by_scores.items():
        line = str(lines[index])
        for item_id, answer in found.items():
            item = answers.items[item_id]
            draws = draws or item.answer.form in FORMS
            for name in kinds_of(item, answer):
                counts[name][line] = counts[name].get(line, 0) + 1
    return [{"kind": name, "title": KINDS[name], "n": counts[name]} for name in KINDS] if draws else []


def sentences_of(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences of a reference or prediction, each with the ids of its masks."""
    return [
        {"text": str(one["text"] or "")[:MOST_SENTENCE], "masks": [str(name) for name in one["mask_ids"] or ()]}
        for one in list(value.get("sentences") or ())[:MOST_SENTENCES]
    ]


def facts_of(item: Item, answer: Answer) -> list[dict[str, Any]]:
    """Return the clinical facts of a text, reference beside reply, where scoring counted them; else nothing.

    Of several references the one that scoring took; a failed reply is an empty text.
    """
    references = item.reference.get("texts")
    if "negation_errors" not in answer.values or answer.outcome == "excluded" or not references:
        return []
    from sonogauge.metrics.clinical import best_reference, fact_table

    reply = "".join(answer.prediction.get("texts") or ())
    rows = fact_table(best_reference(references, reply)[0], reply)[:MOST_FACTS]
    return [{name: row[name] for name in ("fact", "in_reference", "in_reply", "verdict", "correct")} for row in rows]


def whole_iou(item: Item, answer: Answer, width: int, height: int) -> float | int | None:
    """Return the IoU of all pixels that a report draws with all of its reference; other forms are scored with one.

    Two empty ones agree (1). None where there is no size, no answer, or a mask that cannot be compared.
    """
    if item.answer.form != "grounded_report" or answer.outcome in ("failed", "excluded"):
        return None
    if not 0 < width * height <= MOST_PIXELS:
        return None
    try:
        both = [_union(one.get("masks") or (), width, height) for one in (item.reference, answer.prediction)]
    except BadInput:
        return None
    either = int((both[0] | both[1]).sum())
    return short(float((both[0] & both[1]).sum()) / either) if either else 1


def _union(masks: Iterable[Mapping[str, Any]], width: int, height: int) -> Any:
    import numpy as np

    from sonogauge.cases.geometry import decode_mask

    union = np.zeros((height, width), dtype=bool)
    for mask in masks:
        if list(mask["size"] or ()) != [height, width]:
            raise BadInput(f"a mask of another size than {width} x {height}", field="masks")
        union |= decode_mask(mask).astype(bool)
    return union
