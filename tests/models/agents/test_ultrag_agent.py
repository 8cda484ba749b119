from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.segmenters.made_images import disc, grey_image, png

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.models import load_model
from sonogauge.models.agents.facts import facts_of
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.tasks import Task
from sonogauge.models.agents.ultrag import UltraGAgent
from sonogauge.models.agents.validate import find_faults
from sonogauge.models.agents.vocabulary import Vocabulary, make_vocabulary
from sonogauge.models.base import EncodedImage, Outcome, Request
from sonogauge.models.segmenters import Instance, SegmenterFault
from sonogauge.models.segmenters.base import make_instance

pytestmark = pytest.mark.part("agents")
NODULE = disc((90, 120), 30, 20, 12)
GLAND = disc((90, 120), 70, 50, 30)
IMAGE = grey_image(NODULE, inside=20, outside=120, noise=15)
VOCABULARY = Vocabulary("train", {"": ["thyroid", "thyroid nodule"]})


class Drawing:
    """A segmenter that knows two masks by name, and does what else the test asks for."""

    name, version, weights_id, licence, device, endpoint = "drawing", "1", "w1", "CC0", "cpu", ""

    def __init__(self, masks: Mapping[str, tuple[np.ndarray, float]], kinds: Sequence[str] = ("text",)) -> None:
        self.masks, self.capabilities = masks, frozenset(kinds)
        self.asked: list[Any] = []
        self.fault: Exception | None = None

    def segment(
        self, image: np.ndarray, text: str | None = None, boxes: Any = None, *rest: Any, **named: Any
    ) -> list[Instance]:
        self.asked.append(text if boxes is None else boxes)
        if self.fault is not None:
            raise self.fault
        if boxes is not None:
            mask = np.zeros(image.shape[:2], dtype=np.bool_)
            x0, y0, x1, y1 = (round(side) for side in boxes[0])
            mask[y0:y1, x0:x1] = True
            made = make_instance(mask, None, "box")
        else:
            known = self.masks.get(text or "")
            made = make_instance(known[0], known[1], f"text: {text}") if known else None
        return [made] if made else []


class Scripted:
    """A planner that says what the test wrote, in turn."""

    name, revision, endpoint, options = "scripted/one", "r1", "http://127.0.0.1:9", {}

    def __init__(self, *replies: str | Outcome) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Outcome:
        self.asked.append(request)
        said = self.replies.pop(0)
        return (
            said if isinstance(said, Outcome) else Outcome("ok", text=said, input_tokens=10, output_tokens=2, cost=0.5)
        )

    async def close(self) -> None:
        pass


def request(prompt: Mapping[str, Any]) -> Request:
    data = png(IMAGE)
    image = EncodedImage(data, "image/png", 120, 90, "hash")
    text = "Rules {not json} first.\n" + json.dumps({"width": 120, "height": 90, **prompt})
    return Request("x-1", "", 0, text, (image,))


def both(kinds: Sequence[str] = ("text",)) -> Drawing:
    return Drawing({"thyroid nodule": (NODULE, 0.9), "thyroid": (GLAND, 0.8)}, kinds)


def ask(agent: UltraGAgent, prompt: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    outcome = asyncio.run(agent.answer(request(prompt)))
    assert outcome.status == "ok", outcome.error
    return json.loads(outcome.text), json.loads(outcome.trace or "null")


def by_rule(segmenter: Any, **switches: Any) -> UltraGAgent:
    return UltraGAgent("agent/ultrag", None, segmenter, VOCABULARY, Switches(**switches))


def mask_of(reply: Mapping[str, Any]) -> np.ndarray:
    return decode_mask(reply["predicted_mask"])


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


WRONG: list[str] = [
    *("agent/other", "agent/ultrag", "agent/ultrag?planner=rule", "agent/ultrag?planner=rule&segmenter=none"),
    *("agent/ultrag?planner=baseline/oracle&segmenter=box-fill&vocab_source=none", "agent/rule?x=1", "agent/plain?x"),
    "agent/ultrag?planner=rule&segmenter=box-fill",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=all",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=none&compose_style",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=none&colour=red",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=none&top_k=0",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=none&segmenter_timeout=soon",
    "agent/ultrag?planner=rule&segmenter=box-fill&vocab_source=train&bench=/no/such/folder",
]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_names_are_told_in_one_line(name: str) -> None:
    with pytest.raises(BadInput) as told:
        load_model(name)
    assert "\n" not in str(told.value)


def test_an_agent_by_name_and_its_identity() -> None:
    name = "agent/ultrag?planner=rule&segmenter=otsu%3Fpolarity=bright&vocab_source=dataset_card&preset=published"
    agent: Any = load_model(name)
    assert agent.options["switches"]["score_threshold"] is None
    assert agent.options["switches"]["vocab_source"] == "dataset_card"
    assert agent.options["segmenter"]["name"] == "otsu?polarity=bright" and agent.endpoint == ""
    defaults = Switches()
    assert (defaults.vocab_source, defaults.compose_style, defaults.score_threshold) == ("train", "neutral", 0.5)
    published = Switches.read({"preset": "published"})
    assert (published.vocab_source, published.compose_style, published.cell) == (
        "test_annotations",
        "benchmark_template",
        "centroid",
    )


def test_images_leave_if_planner_or_segmenter_is_elsewhere() -> None:
    far, near = Scripted(), both()
    far.endpoint = "https://api.example.org"
    near.endpoint = "http://127.0.0.1:8765"
    assert UltraGAgent("a", far, near, VOCABULARY).endpoint == "https://api.example.org"
    near.endpoint = "http://10.0.0.1:8765"
    far.endpoint = "http://localhost:1"
    assert UltraGAgent("a", far, near, VOCABULARY).endpoint == "http://10.0.0.1:8765"


def test_without_a_vocabulary_the_words_of_the_task_are_the_phrase() -> None:
    segmenter = Drawing({"cystic lesion": (NODULE, 0.9)})
    agent = UltraGAgent("a", None, segmenter, make_vocabulary("none", None))
    reply, _ = ask(agent, {"instruction": "Outline the cystic lesion in this image."})
    assert segmenter.asked == ["cystic lesion"] and np.array_equal(mask_of(reply), NODULE)


def test_the_vocabulary_of_a_card_knows_organs() -> None:
    card = make_vocabulary("dataset_card", None)
    assert "thyroid nodule" in card.category("thyroid").targets
    assert "breast lesion" not in card.category("thyroid").targets
    assert len(card.category("").targets) > 20
    assert [one["option_id"] for one in card.listed("thyroid")] == list(range(1, 1 + len(card.listed("thyroid"))))


def test_the_plain_rule_planner_shows_nothing() -> None:
    model: Any = load_model("agent/rule")

    def said(prompt: Mapping[str, Any]) -> Any:
        return json.loads(asyncio.run(model.answer(request(prompt))).text)

    assert said({"question": "Is a nodule visible?"}) == {"answer": "Yes.", "predicted_mask": None}
    assert said({"instruction": "Outline the nodule."})["predicted_mask"] is None
    assert said({"report": "Write."})["report"][0]["predicted_mask"] is None


def test_the_plain_model_gets_the_same_list() -> None:
    from sonogauge.models.agents.plain import WithVocabulary

    planner = Scripted("yes")
    asyncio.run(WithVocabulary("agent/plain", planner, VOCABULARY).answer(request({"question": "Is it there?"})))
    assert '["thyroid", "thyroid nodule"]' in planner.asked[0].prompt


@pytest.mark.parametrize(("prompt", "kind"), [("{", None), ('{"question": 3}', None), ("Outline.", None)])
def test_prompts_without_a_task_leave_it_open(prompt: str, kind: str | None) -> None:
    from sonogauge.models.agents.tasks import read_task

    assert read_task(Request("x", "", 0, prompt)) == Task(kind, prompt)  # type: ignore[arg-type]
    assert read_task(Request("seg-x", "", 0, prompt)).kind == "segmentation"


@pytest.mark.real
@pytest.mark.parametrize("source", ["busi", "hc18"])
def test_real_masks_go_the_whole_way_with_the_oracle(source: str, tmp_path: Path) -> None:
    from tests.shared import shared_data

    from sonogauge import import_cases
    from sonogauge.benchmarks.ultrag.build import build_ultrag
    from sonogauge.compare.agent_grid import agent_grid

    import_cases(source, shared_data(source), tmp_path / "cases")
    build_ultrag(tmp_path / "cases", tmp_path / "bench")
    # The few test images need not name what the train part names: the declared tables are the vocabulary here.
    settings: dict[str, Any] = {"planners": ["rule"], "segmenters": ["box-fill"], "draws": 200}
    grid = agent_grid(tmp_path / "bench", tmp_path / "grid", **settings, switches={"vocab_source": "dataset_card"})
    rows = {(row["role"], row["metric"]): row["value"] for row in grid.document["rows"]}
    assert rows["oracle+neutral", "iou"] == rows["oracle+neutral", "dice"] == 1.0
    assert rows["plain", "g_acc"] == 0.0 and rows["oracle+neutral", "g_acc"] > 0.5
    assert rows["oracle+template", "rouge_l_beta1"] > rows["oracle+neutral", "rouge_l_beta1"]
    gains = {(row["gain"], row["metric"]): row["value"] for row in grid.document["gains"]}
    for metric in ("iou", "g_acc", "rouge_l_beta1"):
        parts = sum(gains[gain, metric] for gain in ("vocabulary", "mask", "template"))
        assert parts == pytest.approx(gains["total", metric], abs=1e-12)
    again = agent_grid(tmp_path / "bench", tmp_path / "grid", **settings, switches={"vocab_source": "dataset_card"})
    assert again.document == grid.document


@pytest.mark.parametrize("name", ["agent/ultrag?planner=rule&segmenter=box-fill", "agent/plain?planner=rule"])
def test_the_benchmark_that_is_asked_gives_the_vocabulary_of_its_train_part(name: str, tmp_path: Path) -> None:
    from sonogauge.benchmarks.synthetic.build import build_synthetic
    from sonogauge.benchmarks.ultrag.build import build_ultrag
    from sonogauge.folders import Folder
    from sonogauge.run import run

    with pytest.raises(BadInput, match="needs the benchmark"):
        load_model(name)
    build_synthetic(tmp_path / "raw", seed=0, patients=6, images_per_patient=2)
    build_ultrag(tmp_path / "raw", tmp_path / "bench")
    run(tmp_path / "bench", name, tmp_path / "run", limit=2)
    options = Folder(tmp_path / "run", "run").manifest.parameters["model_options"]
    assert options["vocabulary"][""] == ["focal lesion", "tube"]
