"""From a parsed mask to pixels, with what scoring alone knows: the size of the image and how the model counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, Parsed
from sonogauge.answers.convention import read_convention
from sonogauge.items import Item
from sonogauge.score.replies import Reply


def declared_coords(item: Item, parameters: Mapping[str, Any]) -> str:
    """Return how coordinates are read, as it stands beside every value: the same numbers may mean other pixels."""
    return f"coords:{read_convention(str(parameters.get('coords') or item.answer.unit))}"


def settle(item: Item, reply: Reply, parsed: Parsed, coords: str = "") -> Parsed:
    """Draw a parsed mask on the pixels of the item's image; any other value stays what it is.

    coords: how the model counts its coordinates ("mille", "unit:yxyx"), in place of what the item asks for.

    Raises:
        BadInput: an item whose image size is not known.
    """
    form = FORMS.load(item.answer.form) if item.answer.form in FORMS else None
    if form is None or form.settle is None or not parsed.valid:
        return parsed
    size = item.image_size
    if size is None:
        raise BadInput(f"no image size for item {item.item_id}", field="meta", fix="build the benchmark again")
    spec = replace(item.answer, unit=coords) if coords else item.answer
    return form.settle(parsed.value, spec, size, reply.size)
