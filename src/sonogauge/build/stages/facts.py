"""The facts of a case as words: what templates of questions and of reference texts may name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge.benchmarks.prompts import placeholders, render
from sonogauge.build.recipe import Sentence
from sonogauge.cases.places import place_of_box

# Words for the share of the image that a structure covers. Source: specification of UltraG-Bench, section 6, step 3.
EXTENTS: Final = ((0.10, "small"), (0.25, "moderate"), (1.01, "broad"))


def name_of(text: str) -> str:
    """Return a name that a template can hold.

    >>> name_of("head circumference"), name_of("2CH view")
    ('head_circumference', 'f_2ch_view')
    """
    name = re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")
    return name if name and not name[0].isdigit() else f"f_{name}"


def boxes_of(row: Mapping[str, Any], category: str) -> list[Mapping[str, Any]]:
    """Return the boxes of a category."""
    return [box for box in row["boxes"] or () if box["category"] == category]


def join_boxes(boxes: Sequence[Mapping[str, Any]], component: str) -> list[dict[str, Any]]:
    """Return one box around all (union), the one of the largest area (largest), or all of them (each).

    >>> two = [{"category": "a", "x": 0, "y": 0, "w": 2, "h": 2}, {"category": "a", "x": 4, "y": 0, "w": 3, "h": 3}]
    >>> [box["w"] for box in join_boxes(two, "union")], [box["w"] for box in join_boxes(two, "largest")]
    ([7], [3])
    """
    if not boxes:
        return []
    if component == "each":
        return [dict(box) for box in boxes]
    if component == "largest":
        return [dict(max(boxes, key=lambda box: box["w"] * box["h"]))]
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right, bottom = max(box["x"] + box["w"] for box in boxes), max(box["y"] + box["h"] for box in boxes)
    return [{"category": boxes[0]["category"], "x": left, "y": top, "w": right - left, "h": bottom - top}]


def facts_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a case.

    Labels by their name; `anatomy`, `view`, `pixel_size_mm`; measurements by their name. For each category C with a
    box: `C_count`, `C_place` (of the union), `C_long_px`, `C_short_px` and, with spacing, `C_long_mm`, `C_short_mm`
    (sides of the largest box); with a mask `C_percent` of the image and `C_extent` (small, moderate, broad).
    """
    facts = {name: row[name] for name in ("anatomy", "view") if row.get(name)}
    facts |= {name_of(label["name"]): label["value"] for label in row["labels"] or ()}
    facts |= {name_of(one["name"]): f"{one['value']:g}" for one in row["measurements"] or ()}
    spacing = row.get("spacing")
    if spacing:
        facts["pixel_size_mm"] = f"{spacing['x']:g}"
    for category in sorted({box["category"] for box in row["boxes"] or ()}):
        facts |= _of_category(row, category, spacing)
    for one in row.get("shares") or ():
        share = one["share"]
        facts[f"{name_of(one['category'])}_percent"] = f"{100 * share:.1f}"
        facts[f"{name_of(one['category'])}_extent"] = next(word for limit, word in EXTENTS if share < limit)
    return facts


def _of_category(row: Mapping[str, Any], category: str, spacing: Mapping[str, float] | None) -> dict[str, str]:
    boxes, name = boxes_of(row, category), name_of(category)
    union, largest = join_boxes(boxes, "union")[0], join_boxes(boxes, "largest")[0]
    sides = sorted((largest["w"], largest["h"]))
    facts = {
        f"{name}_count": str(len(boxes)),
        f"{name}_place": place_of_box(union, row["width"], row["height"]),
        f"{name}_short_px": f"{sides[0]:.0f}",
        f"{name}_long_px": f"{sides[1]:.0f}",
    }
    if spacing:
        short, long = sorted((largest["w"] * spacing["x"], largest["h"] * spacing["y"]))
        facts |= {f"{name}_short_mm": f"{short:.1f}", f"{name}_long_mm": f"{long:.1f}"}
    return facts


def holds(when: Mapping[str, Sequence[str]], facts: Mapping[str, str]) -> bool:
    """Tell whether each fact has one of its values; the value "*" stands for any.

    >>> holds({"pathology": ("benign", "malignant")}, {"pathology": "benign"}), holds({"view": ("*",)}, {})
    (True, False)
    """
    return all(name in facts and (facts[name] in values or "*" in values) for name, values in when.items())


def write_text(sentences: Sequence[Sentence], facts: Mapping[str, str]) -> str:
    """Return the sentences that hold, in their order, joined by a space.

    >>> rules = (Sentence(text="A {size} lesion."), Sentence(text="Normal.", when={"state": ("normal",)}))
    >>> write_text(rules, {"state": "normal"})
    'Normal.'
    """
    return " ".join(
        render(sentence.text, facts)
        for sentence in sentences
        if holds(sentence.when, facts) and all(name in facts for name in placeholders(sentence.text))
    )
