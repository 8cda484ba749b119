"""Answers that show their pixels, counted: unit values of the specification under both protocols, weights, faults."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerSpec, Parsed
from sonogauge.benchmarks.spec import Scenario, load_spec
from sonogauge.benchmarks.ultrag.published import score_cell
from sonogauge.cases.geometry import encode_mask
from sonogauge.items import Item
from sonogauge.metrics import load_metric
from sonogauge.score.cells import count_strict
from sonogauge.score.counters import COUNTERS
from sonogauge.score.published import count_published
from sonogauge.score.replies import Reply
from sonogauge.score.values import equal_shares

pytestmark = pytest.mark.part("ultrag")
SPEC = load_spec("ultrag")
WIDTH, HEIGHT = 40, 30


def mask(left: int, top: int, right: int, bottom: int, name: str = "m1") -> dict[str, Any]:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=bool)
    pixels[top:bottom, left:right] = True
    return encode_mask(pixels, name, "breast lesion")


def item(task: str, masks: list[dict[str, Any]], number: int = 1, **more: Any) -> Item:
    meta = {"width": str(WIDTH), "height": str(HEIGHT), "category": "Breast", "sample_id": f"s{number}"}
    reference = {"masks": tuple(masks), "texts": ("yes",), **more.pop("reference", {})}
    form = SPEC.tasks[task].form
    return Item(
        item_id=f"{task}-{number}",
        task=task,
        dataset="BUSI",
        source="BUSI",
        group=f"g{number}",
        split="test",
        images=(),
        question="",
        prompt_id="",
        answer=AnswerSpec(form, unit=more.pop("unit", "")),
        reference=reference,
        reference_state="ok",
        meta={**meta, **more.pop("meta", {})},
    )


def answer(text: str, shown: Any) -> str:
    return json.dumps({"answer": text, "predicted_mask": shown})


def strict(pairs: list[tuple[Item, str | None]], status: str = "ok", **parameters: Any) -> dict[str, float]:
    """Return every metric of the only cell."""
    replies = [(one, Reply(one.item_id, "", 0, "", status, text)) for one, text in pairs]
    cells = count_strict(replies, {(pairs[0][0].task, "BUSI"): ()}, "m", parameters)
    (cell,) = cells.values()
    out = {}
    for name in SPEC.tasks[pairs[0][0].task].metrics:
        metric = load_metric(name)
        out[name] = float(metric.function(cell.sums[metric.statistic].total()))
    return out


def published(pairs: list[tuple[Item, str | None]], status: str = "ok") -> dict[str, float | None]:
    task = pairs[0][0].task
    cell = score_cell(
        SPEC.tasks[task], Scenario(task=task, dataset="BUSI"), [(one, status, text) for one, text in pairs]
    )
    return dict(cell.metrics)


BOX, HALF = {"bbox": [0, 0, 8, 8]}, {"bbox": [0, 0, 8, 16]}


def test_g_acc_at_exactly_one_half_is_no_hit() -> None:
    one = item("VQA", [mask(0, 0, 8, 8)], meta={"answer_type": "yes_no"})
    found = strict([(one, answer("yes", HALF))])
    assert found["iou"] == 0.5 and found["acc"] == 1.0 and found["g_acc"] == 0.0 and found["g_acc_30"] == 1.0
    assert found["right_wrong_pixels"] == 1.0 and found["acc_grounded"] - found["g_acc"] == 1.0
    assert published([(one, answer("yes", HALF))])["g_acc"] == 0.0
    assert strict([(one, answer("yes", BOX))])["g_acc"] == published([(one, answer("yes", BOX))])["g_acc"] == 1.0


def test_the_table_of_answers_against_pixels() -> None:
    own = [item("VQA", [mask(0, 0, 8, 8)], number, meta={"answer_type": "yes_no"}) for number in range(4)]
    said = [answer("yes", BOX), answer("yes", None), answer("no", BOX), answer("no", HALF)]
    found = strict(list(zip(own, said, strict=True)))
    names = ("g_acc", "right_wrong_pixels", "wrong_right_pixels", "wrong_wrong_pixels")
    assert [found[name] for name in names] == [0.25] * 4
    assert found["acc_grounded"] == 0.5 and found["missed_rate"] == 0.25


def test_published_has_the_extra_metrics_with_its_own_failures() -> None:
    meta = {"answer_type": "yes_no", "spacing_x": "0.5", "spacing_y": "0.5"}
    own = [item("VQA", [mask(0, 0, 8, 8)], number, meta=meta) for number in range(5)]
    none = item("VQA", [], 5, meta={**meta, "requires_grounding": "0"})
    said = [answer("yes", BOX), answer("yes", HALF), answer("no", BOX), answer("yes", None), "no JSON"]
    found = published([*zip(own, said, strict=True), (none, answer("yes", {"type": "circle"}))])
    # Four replies count; the one without JSON does not, and of the item without a target the mask is empty.
    pixels = [(64, 64), (64, 128), (64, 64), (0, 64)]
    assert found["ciou"] == sum(both for both, _ in pixels) / sum(either for _, either in pixels)
    outlines = [item("SEG", [mask(0, 0, 8, 8)], number) for number in range(5)]
    parts = published(list(zip(outlines, said, strict=True)))
    assert parts["lesion_f1"] == 2 * 2 / (2 * 2 + 1 + 2)  # IoU of exactly one half is no match
    names = ("g_acc", "right_wrong_pixels", "wrong_right_pixels", "wrong_wrong_pixels")
    assert [found[name] for name in names] == [0.25, 0.5, 0.25, 0.0]
    assert found["acc_grounded"] == 0.75 and found["g_acc_30"] == 0.5
    assert (found["recall_30"], found["recall_50"], found["pointing"]) == (0.75, 0.5, 0.5)
    assert found["null_accuracy"] == 0.0 and found["false_null_rate"] == 0.25
    # HD95: 0, the half's eight rows, 0, the diagonal, and 0 of two empty masks.
    high = own[0].image_size
    assert high is not None
    diagonal = (high[0] ** 2 + high[1] ** 2) ** 0.5
    assert found["hd95"] == pytest.approx((0 + 8 / diagonal + 0 + 1 + 0) / 5)
    assert strict([(own[0], answer("yes", BOX))])["hd95"] == 0.0


def test_unreadable_against_empty() -> None:
    none = item("SEG", [])
    bad = answer("No target.", {"type": "circle"})
    assert published([(none, bad)])["iou"] == 1.0
    found = strict([(none, bad)])
    assert found["giou"] == 0.0 and found["null_accuracy"] == 0.0 and found["format_rate"] == 1.0
    assert strict([(none, answer("No target.", None))])["giou"] == 1.0
    hint = strict([(none, answer("There.", {"type": "points", "points": [[1, 1, 1]]}))])
    assert hint["giou"] == 0.0 and hint["null_accuracy"] == 0.0 and hint["format_rate"] == 0.0


def test_failures_leave_the_published_mean_and_count_in_strict() -> None:
    own = [item("SEG", [mask(0, 0, 8, 8)], number) for number in range(2)]
    pairs = [(own[0], answer("[SEG]", BOX)), (own[1], "no JSON")]
    assert published(pairs)["iou"] == 1.0 and strict(pairs)["iou"] == 0.5
    missing = [(own[0], answer("[SEG]", BOX)), (own[1], '{"answer": "[SEG]"}')]
    assert published(missing)["iou"] == 0.5 and strict(missing)["iou"] == 0.5
    assert published([(own[0], None)], "error") == {}
    assert strict([(own[0], None)], "error")["format_rate"] == 1.0


def test_published_reads_no_points_cells_or_pictures() -> None:
    one = item("SEG", [mask(0, 0, 13, 10)])
    cell = answer("[SEG]", {"type": "cell", "cell": "upper-left"})
    assert published([(one, cell)])["iou"] == 0.0 and strict([(one, cell)])["iou"] == 1.0


def test_coordinates_as_the_item_or_the_user_declares_them() -> None:
    said = answer("[SEG]", {"box": [0, 0, 200, 1000 * 8 / 30]})
    assert strict([(item("SEG", [mask(0, 0, 8, 8)], unit="mille"), said)])["iou"] == 1.0
    plain = item("SEG", [mask(0, 0, 8, 8)])
    found = strict([(plain, said)])
    assert found["iou"] < 0.1 and found["coords_outside"] == 0.5
    assert strict([(plain, said)], coords="mille")["iou"] == 1.0
    assert strict([(plain, said)], coords="mille")["coords_outside"] == 0.0


def test_images_weigh_the_same_and_items_beside_them() -> None:
    right, wrong = answer("[SEG]", BOX), answer("[SEG]", {"bbox": [20, 20, 5, 5]})
    shares = {"image_items": "3", "image_masked": "3"}
    many = [item("SEG", [mask(0, 0, 8, 8)], 1, meta=shares) for _ in range(3)]
    alone = item("SEG", [mask(0, 0, 8, 8)], 2, meta={"image_items": "1", "image_masked": "1"})
    found = strict([*((one, right) for one in many), (alone, wrong)])
    assert found["iou"] == found["dice"] == 0.5 and found["iou_items"] == 0.75
    assert published([*((one, right) for one in many), (alone, wrong)])["iou"] == 0.5


def test_an_item_that_needs_evidence_and_has_none_is_left_out_of_grounding() -> None:
    fault = item("VQA", [], 1, meta={"answer_type": "yes_no", "requires_grounding": "1"})
    whole = item("VQA", [mask(0, 0, 8, 8)], 2, meta={"answer_type": "yes_no", "requires_grounding": "1"})
    found = strict([(fault, answer("yes", None)), (whole, answer("yes", BOX))])
    assert found["g_acc"] == 1.0 and found["acc"] == 1.0


def report_item(masks: list[dict[str, Any]], sentences: list[tuple[str, str, list[str]]]) -> Item:
    return item(
        "RPT",
        masks,
        reference={"sentences": tuple({"text": text, "mask_ids": ids} for text, _, ids in sentences)},
        meta={"finding_types": json.dumps([kind for _, kind, _ in sentences])},
    )


SENTENCES = [
    ("A breast lesion is visible in the upper-left part.", "breast_lesion_presence_location", ["m1"]),
    ("The largest target, a breast lesion, measures 8 x 8 pixels.", "largest_target_extent", ["m1", "m2"]),
    ("Outlined breast lesion.", "segmentation_impression", ["m1"]),
]


def report(*rows: tuple[str, str, Any]) -> str:
    return json.dumps(
        {"report": [{"section": "Findings", "text": a, "finding_type": b, "predicted_mask": c} for a, b, c in rows]}
    )


@pytest.mark.parametrize("protocol", [strict, published])
def test_grounding_of_a_report_by_hand(protocol: Any) -> None:
    one = report_item([mask(0, 0, 8, 8), mask(20, 0, 28, 8, "m2")], SENTENCES)
    # The first sentence is said twice: the last one wins. The second has half of its union. The third is not spatial.
    said = report(
        (SENTENCES[0][0], SENTENCES[0][1], {"bbox": [30, 20, 5, 5]}),
        (SENTENCES[0][0], SENTENCES[0][1], BOX),
        (SENTENCES[1][0], SENTENCES[1][1], BOX),
    )
    found = protocol([(one, said)])
    assert found["report_grounding"] == pytest.approx(0.75) and found["report_recall_50"] == 0.5
    assert found["sem_acc"] == 1.0
    assert found["finding_recall"] == pytest.approx(2 / 3) and found["finding_precision"] == 1.0


def test_a_report_that_cannot_be_read() -> None:
    one = report_item([mask(0, 0, 8, 8), mask(20, 0, 28, 8, "m2")], SENTENCES)
    found = strict([(one, '{"report": "text"}')])
    for name in ("sem_acc", "sem_presence", "rouge_l_beta1", "report_grounding", "finding_f1"):
        assert found[name] == 0.0
    assert published([(one, '{"report": "text"}')]) == {}
    unreadable = report((SENTENCES[0][0], SENTENCES[0][1], {"type": "circle"}))
    assert strict([(one, unreadable)])["report_grounding"] == published([(one, unreadable)])["report_grounding"] == 0.0
    assert strict([(one, unreadable)])["sem_presence"] == 1.0


def test_extent_is_a_fifth_flag_on_demand() -> None:
    one = report_item([mask(0, 0, 8, 8)], [("The breast lesion covers 20 % of the image.", "organ_extent", ["m1"])])
    said = report(("The breast lesion covers 40 % of the image.", "organ_extent", BOX))
    assert strict([(one, said)])["sem_acc"] == 1.0
    five = strict([(one, said)], semacc_flags=5)
    assert five["sem_extent"] == 0.0 and five["sem_acc"] == pytest.approx(2 / 3)


def test_a_sentence_that_cites_a_missing_mask_stops_scoring() -> None:
    one = report_item([mask(0, 0, 8, 8)], SENTENCES)
    with pytest.raises(BadInput, match="cites mask 'm2', which item RPT-1 does not have"):
        strict([(one, report(("a", "b", None)))])


def test_a_reference_of_another_size_stops_scoring() -> None:
    wrong = item("SEG", [encode_mask(np.ones((3, 3), dtype=bool), "m", "x")])
    with pytest.raises(BadInput, match="the image"):
        strict([(wrong, answer("[SEG]", None))])
    unknown = item("SEG", [])
    unknown = Item(**{**{name: getattr(unknown, name) for name in unknown.__slots__}, "meta": {}})
    with pytest.raises(BadInput, match="no image size"):
        strict([(unknown, answer("", None))])


def test_statistics_are_finite_whatever_the_reply() -> None:
    own = item("VQA", [mask(0, 0, 8, 8)])
    form = FORMS.load("grounded")
    assert form.settle is not None
    for shown in (None, BOX, {"bbox": [1e6, 1e6, 1, 1]}, {"type": "points", "points": [[-5, 1e6, 1]]}):
        parsed = form.parse(answer("x", shown), own.answer)
        counter = COUNTERS["grounded"](own.answer, {})
        counter.add(own, form.settle(parsed.value, own.answer, (WIDTH, HEIGHT), None))
        counter.add(own, Parsed(None, "format"))
        assert all(np.isfinite(rows).all() and len(rows) == 2 for rows in counter.take().values())
        assert all(len(rows) == 0 for rows in counter.take().values())


def test_sources_weigh_by_category() -> None:
    named = [("a", {"category": "X"}), ("b", {"category": "X"}), ("c", {"category": "Y"}), ("d", {})]
    scenarios = [Scenario(task="SEG", dataset=name, extra=extra) for name, extra in named]
    assert equal_shares(scenarios, ["a", "b", "c"]) == pytest.approx([0.25, 0.25, 0.5])
    assert equal_shares(scenarios, ["a", "c"]) == pytest.approx([0.5, 0.5])
    assert equal_shares(scenarios[3:], ["d"]) == pytest.approx([1.0])


@pytest.mark.parametrize(("pooling", "value"), [("image", 0.75), ("category", 0.5), ("", 0.5)])
def test_published_pooling_is_a_declared_parameter(pooling: str, value: float) -> None:
    right, wrong = answer("[SEG]", BOX), answer("[SEG]", {"bbox": [20, 20, 5, 5]})
    own = [item("SEG", [mask(0, 0, 8, 8)], number) for number in range(3)]
    other = replace(item("SEG", [mask(0, 0, 8, 8)], 9), dataset="HC")
    pairs = [(one, Reply(one.item_id, "", 0, "", "ok", right)) for one in own]
    pairs.append((other, Reply(other.item_id, "", 0, "", "ok", wrong)))
    spec = SPEC.model_copy(update={"parameters": {"category_pooling": pooling}})
    scenarios = [one for one in SPEC.scenarios if one.task == "SEG" and one.dataset in ("BUSI", "HC")]
    values, _, _ = count_published(spec, scenarios, pairs, score_cell, "m")
    assert values.tasks["", "SEG"]["iou"].estimate.value == pytest.approx(value)
