from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.agents.made_agents import (
    GLAND,
    IMAGE,
    NODULE,
    VOCABULARY,
    Drawing,
    Scripted,
    ask,
    both,
    mask_of,
    request,
)

from sonogauge.cases.geometry import decode_mask
from sonogauge.models.agents.facts import facts_of
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.ultrag import UltraGAgent
from sonogauge.models.agents.validate import find_faults
from sonogauge.models.base import Outcome
from sonogauge.models.segmenters import Instance, SegmenterFault
from sonogauge.models.segmenters.base import make_instance

pytestmark = pytest.mark.part("agents")


def by_rule(segmenter: Any, **switches: Any) -> UltraGAgent:
    return UltraGAgent("agent/ultrag", None, segmenter, VOCABULARY, Switches(**switches))


def test_a_segmentation_is_the_union_of_what_was_named() -> None:
    reply, trace = ask(by_rule(both()), {"instruction": "Outline the thyroid nodule."})
    assert "[SEG]" in reply["answer"] and np.array_equal(mask_of(reply), NODULE)
    every, _ = ask(by_rule(both()), {"instruction": "Outline everything: thyroid and thyroid nodule."})
    assert np.array_equal(mask_of(every), NODULE | GLAND)
    assert trace["plan"]["by"] == "rule" and trace["switches"]["vocab_source"] == "train"
    assert [one["category"] for one in trace["targets"]] == ["thyroid nodule"]
    candidate = trace["targets"][0]["candidates"][0]
    assert candidate["kept"] and candidate["score"] == 0.9 and np.array_equal(decode_mask(candidate["mask"]), NODULE)
    assert trace["targets"][0]["facts"]["cell"] == "upper-left"
    assert trace["segmenter"]["licence"] == "CC0" and trace["faults"] == [] and trace["retries"] == 0


ASKED: list[tuple[str, str, str]] = [
    ("Is a thyroid nodule visible?", "Yes.", "nodule"),
    ("Is the thyroid nodule in the lower-right part?", "No.", "nodule"),
    ("Is the thyroid nodule in the upper-left part?", "Yes.", "nodule"),
    ("In which part of the image does the thyroid nodule lie?", "upper-left", "nodule"),
    ("How many thyroid nodules are visible?", "1", "nodule"),
    ("How large is the largest thyroid nodule?", "24 x 24 pixels", "nodule"),
    ("Which share of the image does the thyroid nodule cover?", f"{100 * NODULE.mean():.2f} % of the image", "nodule"),
    ("Which structures can be outlined in this image?", "thyroid and thyroid nodule", "both"),
]


@pytest.mark.parametrize(("question", "answer", "shown"), ASKED)
def test_questions_are_answered_from_the_masks(question: str, answer: str, shown: str) -> None:
    agent = by_rule(both(), compose_style="benchmark_template")
    reply, _ = ask(agent, {"question": question, "organ": "thyroid"})
    assert reply["answer"] == answer
    assert np.array_equal(mask_of(reply), NODULE if shown == "nodule" else NODULE | GLAND)


def test_an_absent_target_gets_no_mask_unless_the_threshold_is_off() -> None:
    weak = Drawing({"thyroid nodule": (NODULE, 0.2)})
    reply, trace = ask(by_rule(weak), {"question": "Is a thyroid nodule visible?"})
    assert reply["predicted_mask"] is None and reply["answer"].startswith("No")
    assert trace["causes"] == {"filtered": 1} and trace["targets"][0]["cause"] == "filtered"
    published = ask(by_rule(weak, score_threshold=None), {"question": "Is a thyroid nodule visible?"})[0]
    assert published["answer"].startswith("Yes") and np.array_equal(mask_of(published), NODULE)
    gone, trace = ask(by_rule(Drawing({})), {"instruction": "Outline the thyroid nodule."})
    assert gone["predicted_mask"] is None and "[SEG]" not in gone["answer"] and trace["causes"] == {"nothing": 1}


@pytest.mark.parametrize("kind", ["timeout", "size", "server", "failed"])
def test_a_segmenter_that_fails_is_an_error_of_its_kind(kind: str) -> None:
    segmenter = both()
    segmenter.fault = SegmenterFault(kind, "as the test wants")
    outcome = asyncio.run(by_rule(segmenter).answer(request({"instruction": "Outline the thyroid."})))
    assert outcome.status == "error" and (outcome.error or "").partition(":")[0] == f"segmenter_{kind}"
    assert outcome.retry == (kind in ("timeout", "server")) and json.loads(outcome.trace or "")["plan"]["targets"]


def test_a_segmenter_that_hangs_or_returns_another_size_is_counted() -> None:
    import time

    class Slow(Drawing):
        def segment(self, *arguments: Any, **named: Any) -> list[Instance]:
            time.sleep(3)
            return []

    class Turned(Drawing):
        def segment(self, image: np.ndarray, *arguments: Any, **named: Any) -> list[Instance]:
            made = make_instance(np.ones(image.shape[::-1], dtype=np.bool_), None, "")
            return [made] if made else []

    for segmenter, kind in ((Slow({}), "timeout"), (Turned({}), "size")):
        agent = UltraGAgent("agent/ultrag", None, segmenter, VOCABULARY, Switches(), segmenter_timeout=0.3)
        outcome = asyncio.run(agent.answer(request({"instruction": "Outline the thyroid."})))
        assert (outcome.error or "").startswith(f"segmenter_{kind}:")


PLAN = {
    "task_type": "segmentation",
    "targets": [{"option_id": 2, "category": "thyroid nodule", "phrase": "thyroid nodule", "reason": "asked for"}],
    "draft_answer": "in the middle-central part",
    "report_outline": ["one nodule"],
}


def planned(*replies: str | Outcome, segmenter: Drawing | None = None, **switches: Any) -> tuple[UltraGAgent, Scripted]:
    planner = Scripted(*replies)
    return UltraGAgent("agent/ultrag", planner, segmenter or both(), VOCABULARY, Switches(**switches)), planner


def test_a_model_plans_and_geometry_overrides_its_draft() -> None:
    agent, planner = planned("```json\n" + json.dumps(PLAN) + "\n```")
    reply, trace = ask(agent, {"question": "How many thyroid nodules are there?"})
    assert reply["answer"] == "1" and trace["plan"]["by"] == "model"
    sent = planner.asked[0]
    assert sent.generation["temperature"] == 0 and sent.generation["max_tokens"] == 512
    assert sent.images[0].media_type == "image/jpeg" and "thyroid nodule" in sent.prompt
    assert trace["replies"][0]["text"].startswith("```json")
    place, _ = ask(planned(json.dumps(PLAN))[0], {"question": "Where does the thyroid nodule lie?"})
    assert place["answer"] == "in the middle-central part"
    geometric, _ = ask(
        planned(json.dumps(PLAN), compose_mode="deterministic")[0], {"question": "Where does the thyroid nodule lie?"}
    )
    assert geometric["answer"] == "upper-left"


@pytest.mark.parametrize("said", ["no idea", "{}", '{"targets": 7}', "{" * 5000, '{"targets": []', ""])
def test_a_plan_that_cannot_be_read_is_made_by_rule_and_counted(said: str) -> None:
    reply, trace = ask(planned(said)[0], {"instruction": "Outline the thyroid nodule."})
    assert np.array_equal(mask_of(reply), NODULE)
    assert trace["plan"]["by"] == "rule" and trace["causes"] == {"planner_format": 1}


def test_bad_targets_are_left_out_and_told() -> None:
    raw = [
        *({"category": "bone", "phrase": "bone"}, "nodule", {"category": "thyroid", "phrase": "word " * 14}),
        *({"category": "thyroid", "phrase": f"thyroid {number}"} for number in range(6)),
    ]
    _, trace = ask(planned(json.dumps({**PLAN, "targets": raw}))[0], {"instruction": "Outline the thyroid."})
    assert len(trace["plan"]["targets"]) == 4 and trace["causes"]["plan_target"] == 5


def test_a_planner_that_fails_fails_the_question_unless_the_rule_takes_over() -> None:
    failure = Outcome("error", error="rate: slow down", retry=True, retry_after=3.0)
    agent, _ = planned(failure)
    outcome = asyncio.run(agent.answer(request({"instruction": "Outline the thyroid."})))
    assert (outcome.error, outcome.retry, outcome.retry_after) == ("planner_rate: slow down", True, 3.0)
    reply, trace = ask(planned(failure, planner_failure="rule")[0], {"instruction": "Outline the thyroid."})
    assert np.array_equal(mask_of(reply), GLAND) and trace["causes"] == {"planner_error": 1}
    fatal, _ = planned(Outcome("error", error="key: wrong", fatal=True), planner_failure="rule")
    assert asyncio.run(fatal.answer(request({"instruction": "Outline the thyroid."}))).fatal


def test_box_segmenters_get_the_box_of_the_fan_or_of_the_planner() -> None:
    from sonogauge.models.agents.drawing import fan_box

    boxed = {**PLAN, "targets": [{**PLAN["targets"][0], "box": [100, 200, 500, 600]}]}  # type: ignore[dict-item]
    written = (12.0, 18.0, 60.0, 54.0)
    fan = fan_box(IMAGE)
    cases: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
        (boxed, {"box": "auto", "coord_space": "mille"}, [written]),
        (boxed, {"box": "fan", "coord_space": "mille"}, [fan]),
        (PLAN, {"box": "auto"}, [fan]),
        (PLAN, {"box": "planner"}, None),
    ]
    for plan, switches, wanted in cases:
        segmenter = both(("box",))
        agent, planner = planned(json.dumps(plan), segmenter=segmenter, **switches)
        _, trace = ask(agent, {"instruction": "Outline the thyroid nodule."})
        assert segmenter.asked == ([wanted] if wanted else [])
        assert '"box"' in planner.asked[0].prompt and trace["targets"][0]["prompt"]["box_source"] != "reference"


def report_of(texts: Sequence[str]) -> str:
    kinds = ["thyroid_nodule_presence_location", "largest_target_extent", "anatomic_summary", "segmentation_impression"]
    rows = [
        {"section": "Findings", "text": text, "finding_type": kind, "targets": ["thyroid nodule"]}
        for text, kind in zip(texts, kinds, strict=True)
    ]
    return json.dumps({"report": rows})


GOOD = ("A nodule in the upper-left part.", "It measures 24 x 24 pixels.", "One nodule.", "A nodule.")


BAD = ("A nodule in the lower-right part.", "It measures 30 x 24 pixels.", "One nodule, 50 %.", "A nodule.")


def test_a_report_with_wrong_facts_is_written_again_once_and_then_by_template() -> None:
    plan = json.dumps({**PLAN, "task_type": "report"})
    prompt = {"report": "Write a report.", "organ": "thyroid"}
    mended, trace = ask(planned(plan, report_of(BAD), report_of(GOOD))[0], prompt)
    assert [row["text"] for row in mended["report"]] == list(GOOD) and trace["retries"] == 1 and not trace["fallback"]
    assert np.array_equal(decode_mask(mended["report"][0]["predicted_mask"]), NODULE)
    told = " ".join(fault["what"] for fault in trace["faults"])
    assert "lower-right" in told and "30 x 24" in told and "50 %" in told
    agent, planner = planned(plan, report_of(BAD), "no JSON")
    fallen, trace = ask(agent, prompt)
    assert trace["fallback"] and "lower-right" not in json.dumps(fallen) and len(planner.asked) == 3
    assert "30 x 24" in planner.asked[2].prompt


def test_styles_differ_in_words_and_agree_in_masks() -> None:
    prompt = {"report": "Write a report.", "organ": "thyroid"}
    neutral, _ = ask(by_rule(both()), prompt)
    template, _ = ask(by_rule(both(), compose_style="benchmark_template"), prompt)
    assert {row["text"] for row in neutral["report"]}.isdisjoint(row["text"] for row in template["report"])
    firsts = [reply["report"][0]["predicted_mask"] for reply in (neutral, template)]
    assert firsts[0] == firsts[1]
    empty, _ = ask(by_rule(Drawing({}), compose_style="benchmark_template"), prompt)
    assert [row["finding_type"] for row in empty["report"]][:2] == ["absence", "location_not_applicable"]
    assert all(row["predicted_mask"] is None for row in empty["report"])


def test_the_check_of_a_report_holds_its_tolerances() -> None:
    from sonogauge.models.agents.compose import Sentence

    facts = [facts_of("thyroid nodule", [NODULE], 0.9, "box")]
    share = round(100 * facts[0].area_ratio, 2)
    said = ["24.05 x 24", "24.06 x 24", f"{share + 0.01:.2f} %", f"{share + 0.02:.2f} %", "upper left", "lower left"]
    faults = [len(find_faults([Sentence("Findings", text, "", ("thyroid nodule",))], facts, [])) for text in said]
    assert faults == [0, 1, 0, 1, 0, 1]


def test_overlapping_targets_and_sizes_can_be_filtered() -> None:
    twice = Drawing({"thyroid nodule": (NODULE, 0.6), "thyroid": (NODULE, 0.9)})
    reply, trace = ask(by_rule(twice, remove_overlap=True), {"instruction": "Outline everything."})
    assert [bool(target["facts"]["has_mask"]) for target in trace["targets"]] == [True, False]
    assert np.array_equal(mask_of(reply), NODULE)
    for switches in ({"min_area": 5000}, {"max_area_ratio": 0.01}):
        assert ask(by_rule(both(), **switches), {"instruction": "Outline everything."})[0]["predicted_mask"] is None


@given(st.text(max_size=300), st.sampled_from(["instruction", "question", "report"]))
def test_no_planner_reply_breaks_the_agent(said: str, key: str) -> None:
    reply, _ = ask(planned(said, said, said)[0], {key: "Outline the thyroid nodule."})
    assert reply.keys() <= {"answer", "predicted_mask", "report"}
