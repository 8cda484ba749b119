"""What the forms that draw count under `strict`: pixels, answers with their pixels, reports with their pixels.

References: `masks` = the masks whose union is the evidence (none = no target), `texts` = the answer, and of a report
`sentences` with the ids of their masks. `meta` of an item: `width`, `height`, `spacing_x`, `spacing_y` (mm),
`category` (whose vocabulary is used, see `benchmarks.ultrag.vocabulary`), `answer_type`, `requires_grounding` ("1"),
`finding_types` (JSON list, one per sentence), and `image_items`, `image_masked`, `image_grounded`: how many items of
the same task and image there are, have a mask, need evidence. With these, values are means over images of the mean of
their items; the `_items` metrics beside them weigh every item the same.

A failed reply scores 0 everywhere, on an empty reference too. A report sentence whose mask cannot be read loses its
grounding alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec, Parsed
from sonogauge.answers.drawn import Drawn
from sonogauge.answers.mask import MARK
from sonogauge.benchmarks.ultrag import semantics, text_scores
from sonogauge.benchmarks.ultrag.vocabulary import vocabulary_of
from sonogauge.items import Item
from sonogauge.metrics.grounded import ANSWER_TYPES, FLAGS
from sonogauge.metrics.masks import ERRORS, THRESHOLDS, iou_dice, overlaps, pair_statistics, union_row
from sonogauge.metrics.surfaces import TOLERANCE

Array = npt.NDArray[np.float64]

# Which items of an image share its weight, by statistic; the others count every item the same.
_SHARES: Final = {
    **dict.fromkeys(("giou", "hd95", "nsd", "mask_errors", "acc", "seg_mark"), "image_items"),
    **dict.fromkeys(("iou", "dice", "pointing", "false_null"), "image_masked"),
    **{f"recall_{round(100 * threshold)}": "image_masked" for threshold in THRESHOLDS},
    **dict.fromkeys(("grounding",), "image_grounded"),
    **{f"g_acc_{round(100 * threshold)}": "image_grounded" for threshold in THRESHOLDS},
}


class Rows:
    """Collects statistics of items; one that an item lacks is zero there. widths: of every statistic of the form."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._widths = widths
        self._items: list[dict[str, list[float]]] = []

    def add(self, item: Item, found: Mapping[str, list[float]]) -> None:
        """Add the statistics of one item, weighed by the items of its image."""
        self._items.append(
            {
                name: [value / max(1.0, float(item.meta.get(_SHARES[name], 1))) for value in row]
                if name in _SHARES
                else row
                for name, row in found.items()
            }
        )

    def take(self) -> dict[str, Array]:
        """Return all statistics, (items, k) each, and forget them."""
        items, self._items = self._items, []
        out: dict[str, Array] = {name: np.zeros((len(items), width)) for name, width in self._widths.items()}
        for position, found in enumerate(items):
            for name, row in found.items():
                out[name][position] = row
        return out


def reference_masks(item: Item) -> list[Mapping[str, Any]]:
    """Return the masks of an item's reference.

    Raises:
        KeyError: the reference holds no list of masks.
    """
    masks = item.reference.get("masks")
    if masks is None:
        raise KeyError("masks")
    return list(masks)


def image_size(item: Item) -> tuple[int, int]:
    """Return (width, height) of an item's image.

    Raises:
        BadInput: neither its meta nor a reference mask says so.
    """
    size = item.image_size
    if size is None:
        raise BadInput(f"no image size for item {item.item_id}", field="meta", fix="build the benchmark again")
    return size


def _union(item: Item, masks: list[Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return union_row(masks, image_size(item))
    except ValueError as error:
        raise BadInput(f"{error} (item {item.item_id})", field="masks", fix="build the benchmark again") from error


_PIXELS: Final = {
    **dict.fromkeys(("iou", "dice", "giou", "ciou", "null_hits", "false_null", "hd95", "hd95_mm", "nsd"), 2),
    **dict.fromkeys(("pointing", "coords", "iou_items", "dice_items"), 2),
    **{f"recall_{round(100 * threshold)}": 2 for threshold in THRESHOLDS},
    "lesions": 3,
    "mask_errors": len(ERRORS) + 1,
}
_ANSWERS: Final = {
    **dict.fromkeys(("acc", "acc_items", "g_acc_items"), 2),
    **{f"acc_{kind}": 2 for kind in ANSWER_TYPES},
    **{f"g_acc_{round(100 * threshold)}": 2 for threshold in THRESHOLDS},
    "grounding": 5,
}
_REPORTS: Final = {
    **dict.fromkeys(("sem_acc", "rouge_l_beta1", "meteor_exact", "report_grounding", "report_recall_50", "coords"), 2),
    **{f"sem_{flag}": 2 for flag in FLAGS},
    **{f"bleu_{order}": 2 for order in (1, 2, 3, 4)},
    **dict.fromkeys(("finding_types", "report_categories", "report_cells"), 3),
}


class MaskCounter:
    """Statistics of `metrics.masks` for the union of the targets, and `seg_mark`."""

    widths: Mapping[str, int] = {**_PIXELS, "seg_mark": 2}

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._tolerance = float(parameters.get("nsd_tol", TOLERANCE))
        self._rows = Rows(self.widths)

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item."""
        found = self._pixels(item, parsed)
        has_target = bool(reference_masks(item))
        marked = parsed.valid and (MARK in parsed.value.answer) == has_target
        found["seg_mark"] = [float(marked), 1.0]
        self._rows.add(item, found)
        return _shown(found)

    def _pixels(self, item: Item, parsed: Parsed) -> dict[str, list[float]]:
        reference = _union(item, reference_masks(item))
        drawn: Drawn | None = parsed.value if parsed.valid else None
        found = pair_statistics(
            reference,
            drawn.mask if drawn else None,
            explicit_null=drawn.empty if drawn else False,
            hint=drawn.hint if drawn else False,
            points=drawn.points if drawn else (),
            spacing=item.spacing,
            tolerance=self._tolerance,
        )
        if drawn is not None and drawn.outside[1]:
            found["coords"] = [float(number) for number in drawn.outside]
        return found | {f"{name}_items": found[name] for name in ("iou", "dice")}

    def take(self) -> dict[str, Array]:
        """Return the statistics since the last call."""
        return self._rows.take()


def _shown(found: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the values of one item for the score_items table; an error kind shows as `error_KIND`."""
    values = {name: found[name][0] / found[name][1] for name in ("iou", "dice") if found[name][1]}
    values |= {"giou": found["giou"][0], "hd95": found["hd95"][0], "nsd": found["nsd"][0]}
    values |= {f"error_{name}": 1.0 for name, hit in zip(ERRORS, found["mask_errors"], strict=False) if hit}
    return values


class GroundedCounter(MaskCounter):
    """An answer and its evidence: statistics of pixels over all items, `acc`, `grounding` and its sweep.

    An item that needs evidence and has none is a fault of the data: it counts in `acc`, not in `grounding`.
    """

    widths: Mapping[str, int] = {**_PIXELS, **_ANSWERS}

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item."""
        kind = item.meta.get("answer_type", "open")
        reference = str(item.reference["texts"][0])
        right = parsed.valid and semantics.answer_right(
            kind, reference, parsed.value.answer, vocabulary_of(item.meta), strict=True
        )
        found = self._pixels(item, parsed)
        found["acc"] = found["acc_items"] = [float(right), 1.0]
        if kind in ANSWER_TYPES:
            found[f"acc_{kind}"] = [float(right), 1.0]
        values = {"correct": float(right)} | _shown(found)
        if item.meta.get("requires_grounding", "1") == "1" and reference_masks(item):
            iou = found["iou"][0]
            seen = iou > 0.5
            found["grounding"] = [*(float(cell == (right, seen)) for cell in _CELLS), 1.0]
            found["g_acc_items"] = [float(right and seen), 1.0]
            for threshold in THRESHOLDS:
                found[f"g_acc_{round(100 * threshold)}"] = [float(right and iou > threshold), 1.0]
            values["grounded"] = float(right and seen)
            if right != seen:
                values["error_right_wrong_pixels" if right else "error_wrong_right_pixels"] = 1.0
        self._rows.add(item, found)
        return values


# Columns of `grounding`: (answer right, pixels right).
_CELLS: Final = ((True, True), (True, False), (False, True), (False, False))


class ReportCounter:
    """A report: its text against the reference's, its flags, its grounding sentence by sentence."""

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._extent = int(parameters.get("semacc_flags", 4)) == 5
        self._rows = Rows(_REPORTS)

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one report."""
        types = finding_types(item)
        reference = semantics.Text(
            tuple((str(one["text"]), kind) for one, kind in zip(item.reference["sentences"], types, strict=True))
        )
        own = parsed.value.sentences if parsed.valid else ()
        predicted = semantics.Text(tuple((one.text, one.finding_type) for one in own))
        found = _text_rows(reference, predicted)
        found |= self._flag_rows(item, reference, predicted, parsed.valid)
        found |= _grounding_rows(item, types, own)
        if parsed.valid and parsed.value.outside[1]:
            found["coords"] = [float(number) for number in parsed.value.outside]
        self._rows.add(item, found)
        values = {name: row[0] / row[1] for name, row in found.items() if name in _PER_REPORT and row[1]}
        return values | {f"error_{fault}": 1.0 for one in own if (fault := one.drawn.fault)}

    def _flag_rows(
        self, item: Item, reference: semantics.Text, predicted: semantics.Text, valid: bool
    ) -> dict[str, list[float]]:
        words = vocabulary_of(item.meta)
        flags = semantics.flags(reference, predicted, words, strict=True, extent=self._extent)
        if not valid:
            flags = dict.fromkeys(flags, False)
        found = {f"sem_{name}": [float(right), 1.0] for name, right in flags.items()}
        if flags:
            found["sem_acc"] = [sum(flags.values()) / len(flags), 1.0]
        theirs, ours = reference.whole, predicted.whole
        found["report_categories"] = _set_counts(words.named(theirs), words.named(ours))
        found["report_cells"] = _set_counts(semantics.region_cells(theirs, words), semantics.region_cells(ours, words))
        return found

    def take(self) -> dict[str, Array]:
        """Return the statistics since the last call."""
        return self._rows.take()


_PER_REPORT: Final = frozenset(
    {"rouge_l_beta1", "sem_acc", "report_grounding", "report_recall_50", *(f"sem_{flag}" for flag in FLAGS)}
)


def finding_types(item: Item) -> list[str]:
    """Return the finding type of each reference sentence.

    Raises:
        KeyError: the item does not say them, one per sentence.
    """
    types = json.loads(item.meta.get("finding_types", "null"))
    if not isinstance(types, list) or len(types) != len(item.reference["sentences"]):
        raise KeyError("finding_types")
    return [str(one) for one in types]


def _text_rows(reference: semantics.Text, predicted: semantics.Text) -> dict[str, list[float]]:
    theirs, ours = reference.whole, predicted.whole
    found = {
        "rouge_l_beta1": [text_scores.rouge_l(theirs, ours), 1.0],
        "meteor_exact": [text_scores.meteor(theirs, ours), 1.0],
        "finding_types": _set_counts(
            frozenset(kind for _, kind in reference.parts if kind),
            frozenset(kind for _, kind in predicted.parts if kind),
        ),
    }
    return found | {f"bleu_{n}": [value, 1.0] for n, value in enumerate(text_scores.bleu(theirs, ours), start=1)}


def _set_counts(wanted: frozenset[Any], given: frozenset[Any]) -> list[float]:
    return [float(len(wanted & given)), float(len(given - wanted)), float(len(wanted - given))]


def _grounding_rows(item: Item, types: list[str], own: tuple[Any, ...]) -> dict[str, list[float]]:
    """Return grounding over the reference sentences of a spatial finding type with evidence, by finding type."""
    masks = {str(mask["mask_id"]): mask for mask in reference_masks(item)}
    # Of several predicted sentences of one type the last one wins.
    drawn = {one.finding_type: one.drawn for one in own}
    scores = []
    for sentence, kind in zip(item.reference["sentences"], types, strict=True):
        cited = [str(name) for name in sentence["mask_ids"] or ()]
        if missing := [name for name in cited if name not in masks]:
            raise BadInput(
                f"sentence cites mask '{missing[0]}', which item {item.item_id} does not have",
                field="sentences",
                fix="build the benchmark again from whole annotations",
            )
        if not cited or not semantics.is_spatial(kind):
            continue
        found = drawn.get(kind)
        if found is None or found.fault:
            scores.append(0.0)
            continue
        union = _union(item, [masks[name] for name in cited])
        scores.append(float(iou_dice(overlaps([union], [found.mask]))[0][0]))
    if not scores:
        return {}
    return {
        "report_grounding": [sum(scores) / len(scores), 1.0],
        "report_recall_50": [sum(one > 0.5 for one in scores) / len(scores), 1.0],
    }
