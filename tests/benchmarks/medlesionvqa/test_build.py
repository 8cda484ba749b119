"""The benchmark folder: items as questions say, baselines that meet their expectations, the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.medlesionvqa.made import annotation, question, write

from sonogauge import BadInput, build, run, score
from sonogauge.benchmarks.medlesionvqa.build import make_parameters
from sonogauge.benchmarks.spec import load_spec, read_spec
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.metrics.multi_choice import expected_random_subset
from sonogauge.models.baselines import baseline_replies
from sonogauge.score.reading import ReplyParser
from sonogauge.score.replies import Reply

pytestmark = pytest.mark.part("medlesionvqa")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bench")
    write(root / "data" / "annotations.jsonl", [annotation(root / "data", number) for number in range(16)])
    build("medlesionvqa", root / "data", root / "bench", parameters={"val_share": 0.25})
    return root / "bench"


def items(folder: Path) -> list[Item]:
    return [Item.from_row(row) for row in Folder(folder, "benchmark").rows("items")]


def values(folder: Path) -> dict[str, dict[str, float]]:
    found = score(folder, draws=100, baselines=False)
    out: dict[str, dict[str, float]] = {}
    for row in found.metrics:
        if not row["dataset"] and not row["slice"]:
            out.setdefault(row["task"], {})[row["metric"]] = row["value"]
    return out


@pytest.mark.parametrize("split", ["val", "test"])
def test_the_oracle_is_right_everywhere(bench: Path, tmp_path: Path, split: str) -> None:
    run(bench, "baseline/oracle", tmp_path / "run", split=split)
    found = values(tmp_path / "run")
    spec = read_spec(bench)
    assert set(found) == set(spec.tasks) == set(load_spec("medlesionvqa").tasks)
    for task, metrics in found.items():
        assert metrics[spec.tasks[task].headline] == 1.0, task
    assert found["multi_choice"]["answer_size_ratio"] == found["multi_choice"]["set_f1"] == 1.0
    assert found["ranking"]["ndcg"] == pytest.approx(1.0) and found["ranking"]["mrr"] == 1.0


def test_random_sets_meet_their_expectation(bench: Path) -> None:
    chosen = [one for one in items(bench) if one.answer.form == "multi_choice"]
    parse = ReplyParser()
    got, expected = [], []
    from sonogauge.metrics.multi_choice import set_score_of

    for seed in range(60):
        for item, text in zip(chosen, baseline_replies("random", chosen, [], seed), strict=True):
            parsed = parse(Reply(item.item_id, "", 0, "", "ok", text), item.answer)
            assert parsed.valid
            got.append(set_score_of(parsed.value, item.reference["choices"]))
            expected.append(expected_random_subset(len(item.answer.options), len(item.reference["choices"])))
    assert np.mean([item.chance for item in chosen]) == pytest.approx(np.mean(expected))
    assert abs(np.mean(got) - np.mean(expected)) < 5 * np.std(got) / np.sqrt(len(got))


def test_ability_and_type_are_two_axes(bench: Path) -> None:
    pairs = {(item.task, item.dataset) for item in items(bench)}
    assert {(one.task, one.dataset) for one in read_spec(bench).scenarios} == pairs
    assert {task for task, ability in pairs if ability == "DD"} == {"multi_choice", "short_answer", "ranking"}
    assert {ability for task, ability in pairs if task == "multi_choice"} == {"LR", "AR", "LE", "DD"}


def test_the_question_shows_its_options_and_never_its_answer_alone(bench: Path) -> None:
    for item in items(bench):
        for letter, option in zip(item.answer.letters, item.answer.options, strict=False):
            assert f"{letter}. {option}" in item.question
        assert item.prompt_id == f"medlesionvqa/{item.task}@1"
        for text in item.reference.get("texts") or ():
            assert text.casefold() not in item.question.casefold()


def test_the_same_data_give_the_same_benchmark(bench: Path, tmp_path: Path) -> None:
    again = build("medlesionvqa", bench.parent / "data", tmp_path / "again", parameters={"val_share": 0.25})
    first = Folder(bench, "benchmark").manifest
    assert again.hash == first.hash and again.tables == first.tables
    other = build("medlesionvqa", bench.parent / "data", tmp_path / "other", parameters={"val_share": 0.25}, seed=7)
    assert other.tables["items"].hash != first.tables["items"].hash


def test_ties_that_wait_for_a_third_physician_are_not_scored(bench: Path, tmp_path: Path) -> None:
    manifest = build("medlesionvqa", bench.parent / "data", tmp_path / "bench", parameters={"tie_rule": "adjudicate"})
    assert manifest.counts["fusion"]["undecided"] == 16 and manifest.counts["fusion"]["several_first"] == 16
    ranked = [one for one in items(tmp_path / "bench") if one.task == "ranking"]
    assert ranked and {one.reference_state for one in ranked} == {"absent"}
    assert not [one for one in items(tmp_path / "bench") if one.dataset == "DD" and one.task != "ranking"]
    senior = build("medlesionvqa", bench.parent / "data", tmp_path / "senior", parameters={"tie_rule": "senior_first"})
    assert senior.counts["fusion"]["undecided"] == 0
    ranked = [one for one in items(tmp_path / "senior") if one.task == "ranking"]
    assert {one.reference["ranking"] for one in ranked} == {("psoriasis", "eczema")}
    assert {one.meta["ranks"] for one in ranked} == {"1 2"}


def test_questions_made_elsewhere(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        question(tmp_path, 1),
        question(tmp_path, 2, type="single_choice", gold=["B"]),
        question(tmp_path, 3, type="judgement", options=[], gold=["yes"], ability="LE"),
        question(tmp_path, 4, type="short_answer", options=[], gold=["nevus", "mole"], ability="DD"),
        question(tmp_path, 5, type="ranking", gold=["C", "A"], ability="DD"),
    ]
    write(tmp_path / "questions.jsonl", rows)
    build("medlesionvqa", tmp_path / "questions.jsonl", tmp_path / "bench")
    found = {one.item_id: one for one in items(tmp_path / "bench")}
    assert found["q1"].reference == {"choices": ("macule", "ulcer")}
    assert found["q5"].reference == {"ranking": ("ulcer", "macule")} and found["q5"].meta["weights"] == "1 0.5"
    replies = [
        {"item_id": "q1", "text": "A"},
        {"item_id": "q2", "text": "The answer is B."},
        {"item_id": "q3", "text": "No."},
        {"item_id": "q4", "text": "A mole."},
        {"item_id": "q5", "text": "1. A\n2. C"},
    ]
    file = write(tmp_path / "replies.jsonl", replies)
    score(file, bench=tmp_path / "bench", out=tmp_path / "scores", draws=100, baselines=False)
    rows = list(Folder(tmp_path / "scores", "scores").rows("score_items"))
    by = {row["item_id"]: dict(row["values"]) for row in rows}
    assert by["q1"]["set_score"] == 0.5 and by["q1"]["under_answer"] == 1.0
    assert by["q2"]["correct"] == 1.0 and by["q3"]["correct"] == 0.0 and by["q4"]["text_match"] == 1.0
    assert by["q5"]["top_1"] == 0.0 and by["q5"]["top_3"] == 1.0 and by["q5"]["reciprocal_rank"] == 0.5


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"tie_rule": "first"}, "tie_rule"),
        ({"options": 1}, "options"),
        ({"colour": "red"}, "colour"),
        ({"distractors": {"LR": "nearest"}}, "no distractor rule 'nearest'"),
        ({"vocabulary": "nowhere"}, "no such vocabulary"),
    ],
)
def test_wrong_parameters_are_named(bench: Path, tmp_path: Path, parameters: dict[str, Any], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        build("medlesionvqa", bench.parent / "data", tmp_path / "bench", parameters=parameters)


def test_parameters_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_text("tie_rule: alphabetical\nshares: {LR: 1}\n", "utf-8")
    chosen = make_parameters(file)
    assert chosen.tie_rule == "alphabetical" and chosen.shares == {"LR": 1.0} and chosen.options == 4
    file.write_text("- 1\n", "utf-8")
    with pytest.raises(BadInput, match="names with values"):
        make_parameters(file)


def test_nothing_to_build_from(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder"):
        build("medlesionvqa", tmp_path / "absent", tmp_path / "bench")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"no questions.jsonl, no annotations.jsonl and no cases"):
        build("medlesionvqa", tmp_path / "empty", tmp_path / "bench")
    write(tmp_path / "bare" / "annotations.jsonl", [])
    with pytest.raises(BadInput, match="nothing in it"):
        build("medlesionvqa", tmp_path / "bare", tmp_path / "bench")


def test_published_has_a_reason(bench: Path, tmp_path: Path) -> None:
    run(bench, "baseline/constant", tmp_path / "run")
    with pytest.raises(BadInput, match="not public"):
        score(tmp_path / "run", protocol="published")


def test_the_manifest_says_how_it_was_made(bench: Path) -> None:
    manifest = Folder(bench, "benchmark").manifest
    assert manifest.parameters["vocabularies"]["diseases"] == "demo-1"
    assert manifest.counts["fusion"]["tie_rule"] == "shared"
    assert json.dumps(manifest.counts["annotators"]) == '{"names": ["a1", "a2"]}'
    assert sum(manifest.counts["splits"].values()) == manifest.counts["questions"]


def test_a_third_physician_decides_ties(tmp_path: Path) -> None:
    rows = [annotation(tmp_path / "data", number) for number in range(4)]
    # The lists tie eczema and psoriasis; on two images a third physician orders them.
    for row, first in zip(rows, ("psoriasis", "eczema", None, None), strict=True):
        if first is not None:
            row["decision"] = {"rater_id": "a3", "ranked": [first, "eczema" if first == "psoriasis" else "psoriasis"]}
    write(tmp_path / "data" / "annotations.jsonl", rows)
    manifest = build(
        "medlesionvqa", tmp_path / "data", tmp_path / "bench", parameters={"tie_rule": "adjudicate", "val_share": 0}
    )
    assert manifest.counts["fusion"]["undecided"] == 2 and manifest.counts["fusion"]["with_ties"] == 4
    assert manifest.counts["annotators"]["names"] == ["a1", "a2", "a3"]
    ranked = {one.item_id.split("/")[1]: one for one in items(tmp_path / "bench") if one.task == "ranking"}
    assert {name: one.reference.get("ranking") for name, one in ranked.items()} == {
        "image0": ("psoriasis", "eczema"),
        "image1": ("eczema", "psoriasis"),
        "image2": None,
        "image3": None,
    }
    choices = [one for one in items(tmp_path / "bench") if (one.task, one.dataset) == ("single_choice", "DD")]
    assert sorted(one.reference["choices"] for one in choices) == [("eczema",), ("psoriasis",)]
    rows[0]["decision"]["rater_id"] = "a2"
    write(tmp_path / "data" / "annotations.jsonl", rows)
    with pytest.raises(BadInput, match=r"row 1, field 'decision': image0: 'a2' decides on a list of their own"):
        build("medlesionvqa", tmp_path / "data", tmp_path / "no")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"differentials": [{"rater_id": "a", "ranked": [["eczema", "wart"]]}]}, "eczema and wart share a rank"),
        ({"differentials": [{"rater_id": "a", "ranked": ["eczema", "eczema"]}]}, "stands twice in one differential"),
        ({"split": "val", "patient_id": "p0"}, "made:p0 is in both splits, row 1 is test"),
        ({"raters": [{"rater_id": "a1", "role": "test_senior"}]}, "'a1' is annotator and test_senior"),
    ],
)
def test_a_fault_of_annotations_is_named_with_its_row(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    rows = [annotation(tmp_path, 0, split="test", raters=[]), annotation(tmp_path, 2, **{"raters": [], **changes})]
    file = write(tmp_path / "annotations.jsonl", rows)
    with pytest.raises(BadInput, match=rf"annotations.jsonl, row 2.*{what}"):
        build("medlesionvqa", file.parent, tmp_path / "bench")


def test_a_patient_in_both_splits_is_told(tmp_path: Path) -> None:
    rows = [question(tmp_path, 1, patient_id="p"), question(tmp_path, 2, patient_id="p", split="val")]
    manifest = build("medlesionvqa", write(tmp_path / "q.jsonl", rows), tmp_path / "bench")
    assert any("in both splits, the first medlesionvqa:p" in one for one in manifest.notices)
    rows = [question(tmp_path, 1, patient_id="p"), question(tmp_path, 2, patient_id="r", split="val")]
    manifest = build("medlesionvqa", write(tmp_path / "q.jsonl", rows), tmp_path / "other")
    assert not any("in both splits" in one for one in manifest.notices)


def test_who_ranked_a_differential_made_the_reference(tmp_path: Path) -> None:
    lists = {"lists": [{"rater_id": "dr-9", "ranked": ["wart"]}]}
    rows = [question(tmp_path, 1, disease=lists)]
    manifest = build("medlesionvqa", write(tmp_path / "q.jsonl", rows), tmp_path / "bench")
    assert manifest.counts["annotators"]["names"] == ["dr-9"]
    rows.append(question(tmp_path, 2, raters=[{"rater_id": "dr-9", "role": "test_primary"}]))
    with pytest.raises(BadInput, match="'dr-9' is annotator and test_primary"):
        build("medlesionvqa", write(tmp_path / "q.jsonl", rows), tmp_path / "no")


def test_private_images_are_marked_and_stay(tmp_path: Path) -> None:
    rows = [annotation(tmp_path / "data", number, private=True, redistributable=True) for number in range(2)]
    write(tmp_path / "data" / "annotations.jsonl", rows)
    build("medlesionvqa", tmp_path / "data", tmp_path / "bench", parameters={"val_share": 0})
    assert all(row["private"] for row in Folder(tmp_path / "bench").rows("cases"))
    with pytest.raises(BadInput, match="private"):
        run(
            tmp_path / "bench",
            "openai-api/away/m",
            tmp_path / "run",
            model_options={"base_url": "http://192.0.2.1:1", "api_key": "k"},
        )
