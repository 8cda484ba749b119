"""Reading stored replies strictly, and predictions as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerForm, AnswerSpec, Parsed
from sonogauge.answers.drawn import Drawn
from sonogauge.answers.grounded_report import DrawnReport
from sonogauge.answers.variants import read_varied
from sonogauge.items import Item
from sonogauge.score.replies import Reply

_ENDED: Final = {"missing": "missing", "error": "error", "truncated": "truncated"}


def judge(reply: Reply, spec: AnswerSpec, form: AnswerForm | None) -> Parsed:
    """Read a reply strictly; one that ended badly is never parsed.

    Raises:
        BadInput: a box or point in pixels without the size of the image as sent.
    """
    if reply.status in _ENDED:
        return Parsed(None, _ENDED[reply.status])
    if form is None:
        return Parsed(reply.text, None)
    if not reply.variant:
        return form.parse(reply.text or "", spec)
    try:
        return read_varied(reply.text or "", spec, reply.item_id, reply.variant, reply.size)
    except ValueError as error:
        raise BadInput(
            f"{error} ({reply.item_id}, variant {reply.variant})", field="image_size", fix="give [width, height]"
        ) from error


class ReplyParser:
    """Parses with a bounded memory of replies already seen: many replies of a benchmark are the same few words."""

    _SIZE: Final = 4096

    def __init__(self) -> None:
        self._seen: dict[tuple[AnswerSpec, str], Parsed] = {}
        self._forms: dict[str, AnswerForm | None] = {}

    def __call__(self, reply: Reply, spec: AnswerSpec) -> Parsed:
        """Read one reply strictly."""
        if spec.form not in self._forms:
            self._forms[spec.form] = FORMS.load(spec.form) if spec.form in FORMS else None
        form = self._forms[spec.form]
        if reply.status != "ok" or reply.text is None or reply.variant or len(reply.text) > 40:
            return judge(reply, spec, form)
        key = (spec, reply.text)
        parsed = self._seen.get(key)
        if parsed is None:
            parsed = judge(reply, spec, form)
            if len(self._seen) >= self._SIZE:
                self._seen.clear()
            self._seen[key] = parsed
        return parsed


def prediction_row(item: Item, value: Any) -> dict[str, Any]:
    """Return the VALUE struct of a prediction."""
    if isinstance(value, (Drawn, DrawnReport)):
        return value.as_row()
    form = item.answer.form
    name = FORMS.load(form).field if form in FORMS else "texts"
    if isinstance(value, str):
        # A word where a number or a shape was asked for: "null", "not visible".
        return {{"number": "texts", "boxes": "places", "points": "places"}.get(name, name): [value]}
    if name == "boxes":
        left, top, right, bottom = value
        return {"boxes": [{"category": "", "x": left, "y": top, "w": right - left, "h": bottom - top}]}
    if name == "points":
        return {"points": [{"name": "", "x": value[0], "y": value[1]}]}
    return {name: value if name == "number" else list(value)}


def item_row(
    item: Item,
    reply: Reply,
    model: str,
    protocol: str,
    prediction: Any,
    reason: str | None,
    excluded: str | None,
    values: Mapping[str, float],
) -> dict[str, Any]:
    """Return the row of the score_items table for a reply.

    prediction: None where nothing could be read. excluded: why it does not count.
    """
    return {
        "protocol": protocol,
        "item_id": item.item_id,
        "variant": reply.variant,
        "epoch": reply.epoch,
        "rater_id": reply.rater_id,
        "model": model,
        "task": item.task,
        "dataset": item.dataset,
        "source": item.source,
        "group": item.group,
        "status": reply.status,
        "prediction": None if prediction is None else prediction_row(item, prediction),
        "reason": reason,
        "excluded": excluded,
        "values": sorted(values.items()),
    }
