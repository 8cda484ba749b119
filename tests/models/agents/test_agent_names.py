"""Agents by name, their identity and vocabulary, and the planner alone beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.agents.made_agents import (
    NODULE,
    VOCABULARY,
    Drawing,
    Scripted,
    ask,
    both,
    mask_of,
    request,
)

from sonogauge._errors import BadInput
from sonogauge.models import load_model
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.tasks import Task
from sonogauge.models.agents.ultrag import UltraGAgent
from sonogauge.models.agents.vocabulary import make_vocabulary
from sonogauge.models.base import Request

pytestmark = pytest.mark.part("agents")


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
