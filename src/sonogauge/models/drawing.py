"""The baselines of the forms that draw: the oracle, the empty mask and the middle of the image.

| baseline    | mask                          | grounded                    | grounded_report                  |
|-------------|-------------------------------|-----------------------------|----------------------------------|
| oracle      | the reference masks as runs   | with the reference's answer | sentence by sentence             |
| not-visible | null, "No target is visible." | null, "No."                 | one sentence that says so, null  |
| constant    | the middle ninth              | the same, "Yes."            | one sentence with the same mask  |

The others are not defined for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sonogauge.answers.mask import MARK
from sonogauge.items import Item

DRAWING: Final = frozenset({"mask", "grounded", "grounded_report"})
# A cell needs no coordinates, so that it is read the same under every convention.
_MIDDLE: Final = {"type": "cell", "cell": "middle-central"}
_NOTHING: Final = "No target is visible."
_SOMETHING: Final = "A target is visible in the middle-central part of the image."


def drawing_reply(name: str, item: Item) -> str | None:
    """Return the reply of a baseline to an item of a form that draws, None where it is not defined."""
    if name == "oracle":
        return _oracle(item) if item.reference_state == "ok" else ""
    if name == "not-visible":
        return _reply(item, _NOTHING, "No.", None)
    if name == "constant":
        return _reply(item, f"{_SOMETHING} {MARK}", "Yes.", _MIDDLE)
    return None


def mask_json(masks: list[Mapping[str, Any]]) -> Any:
    """Return masks as a model may write them: nothing is null, several are a `multi`."""
    parts = [{"type": "rle", "size": list(one["size"]), "counts": one["counts"]} for one in masks]
    if len(parts) > 1:
        return {"type": "multi", "masks": parts}
    return parts[0] if parts else None


def _reply(item: Item, text: str, answer: str, mask: Any) -> str:
    if item.answer.form == "grounded_report":
        kind = "organ_presence" if mask else "absence"
        sentence = {"section": "Findings", "text": text.replace(MARK, "").strip(), "finding_type": kind}
        return json.dumps({"report": [{**sentence, "predicted_mask": mask}]})
    return json.dumps({"answer": answer if item.answer.form == "grounded" else text, "predicted_mask": mask})


def _oracle(item: Item) -> str:
    reference = item.reference
    masks = list(reference.get("masks") or ())
    if item.answer.form != "grounded_report":
        texts = reference.get("texts") or ("",)
        return json.dumps({"answer": texts[0], "predicted_mask": mask_json(masks)})
    by_id = {one["mask_id"]: one for one in masks}
    types = json.loads(item.meta.get("finding_types", "[]"))
    sections = json.loads(item.meta.get("sections", "[]"))
    rows = [
        {
            "section": sections[number] if number < len(sections) else "Findings",
            "text": one["text"],
            "finding_type": types[number] if number < len(types) else "",
            "predicted_mask": mask_json([by_id[name] for name in one["mask_ids"] or () if name in by_id]),
        }
        for number, one in enumerate(reference.get("sentences") or ())
    ]
    return json.dumps({"report": rows})
