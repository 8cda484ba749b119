"""The build: questions, options, splits, bad input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.fetal_gauge.made import case, facts_of, hospital, rows_of, sweeps, write_cases

import sonogauge
from sonogauge import BadInput
from sonogauge.benchmarks.fetal_gauge.parameters import Parameters
from sonogauge.benchmarks.spec import load_spec, read_spec
from sonogauge.build.fetal_gauge.build import build_fetal_gauge
from sonogauge.build.fetal_gauge.drafts import overlap
from sonogauge.build.fetal_gauge.options import Pools, pick_options
from sonogauge.folders import read_manifest
from sonogauge.items import Item
from sonogauge.run.vary import question_of

pytestmark = [pytest.mark.part("fetal-gauge build"), pytest.mark.lookalike]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fetal")
    write_cases(folder / "cases" / "clinic", hospital("clinic", 40, 4))
    write_cases(folder / "cases" / "phantom", sweeps("phantom", 12, 10))
    write_cases(folder / "cases" / "tiny", hospital("tiny", 3, 2))
    sonogauge.build(
        "fetal_gauge",
        folder / "cases",
        folder / "bench",
        parameters={"small_source_max_images": 20, "tasks": ["PI", "VC", "FO", "CD", "VG", "VL"]},
    )
    return folder / "bench"


def test_stamped_as_style_and_never_as_the_benchmark(built: Path, tmp_path: Path) -> None:
    spec, manifest = read_spec(built), read_manifest(built)
    assert "Fetal-Gauge-style" in spec.title and manifest.counts["style"] == "Fetal-Gauge-style"
    assert any("not Fetal-Gauge" in notice for notice in manifest.notices)
    assert "Fetal-Gauge-style" in load_spec("fetal_gauge").title
    replies = tmp_path / "r.jsonl"
    replies.write_text(f'{{"item_id": "{rows_of(built)[0]["item_id"]}", "text": "A"}}', "utf-8")
    with pytest.raises(BadInput, match="only Fetal-Gauge-style"):
        sonogauge.score(replies, bench=built, protocol="published")


def test_options_hold_the_answer_once_and_no_two_that_overlap(built: Path) -> None:
    parameters = Parameters()
    for row in rows_of(built):
        if row["answer"]["form"] != "choice":
            continue
        options, (right,) = row["answer"]["options"], row["reference"]["choices"]
        assert options.count(right) == 1 and len(set(options)) == len(options) >= 2
        assert len(options) <= parameters.n_options[row["task"]]
        assert facts_of(row)["k"] == str(len(options)) and row["chance"] == pytest.approx(1 / len(options))
        assert facts_of(row)["distractor_pool"] in ("source", "task", "source+task")
        assert not any(
            overlap(one, other, parameters.overlaps) for one in options for other in options if one is not other
        )
        for letter, option in zip(row["answer"]["letters"], options, strict=True):
            assert f"{letter}. {option}" in row["question"]


def test_no_letter_is_favoured(built: Path) -> None:
    places = Counter(
        row["answer"]["options"].index(row["reference"]["choices"][0])
        for row in rows_of(built)
        if row["task"] == "VG" and len(row["answer"]["options"]) == 4
    )
    total = sum(places.values())
    assert total > 200 and all(abs(places[place] / total - 0.25) < 0.09 for place in range(4))


def test_split_is_patient_safe_and_a_small_source_lies_in_the_test(built: Path) -> None:
    parts: dict[str, set[str]] = {}
    by_source: dict[str, Counter[str]] = {}
    for row in rows_of(built, columns=["group", "split", "source"]):
        parts.setdefault(row["group"], set()).add(row["split"])
        by_source.setdefault(row["source"], Counter())[row["split"]] += 1
    assert all(len(found) == 1 for found in parts.values())
    assert set(by_source["tiny"]) == {"test"}
    for source in ("clinic", "phantom"):
        share = by_source[source]["test"] / by_source[source].total()
        assert 0.1 < share < 0.45
    notice = " ".join(read_manifest(built).notices)
    assert "not checkable" in notice and "phantom 120 of 120" in notice


def test_a_source_that_never_speaks_of_a_fetus_is_named(built: Path, tmp_path: Path) -> None:
    assert not any("never speaks of a fetus" in one for one in read_manifest(built).notices)
    write_cases(tmp_path / "cases" / "clinic", hospital("clinic", 40, 4))
    lumps = [case("breast", str(n), boxes=[(("cyst", "mass")[n % 2], 4, 4, 20, 20)]) for n in range(8)]
    write_cases(tmp_path / "cases" / "breast", [{**one, "anatomy": "breast"} for one in lumps])
    sonogauge.build("fetal_gauge", tmp_path / "cases", tmp_path / "bench")
    told = [one for one in read_manifest(tmp_path / "bench").notices if "never speaks of a fetus" in one]
    assert len(told) == 1 and told[0].startswith("breast: shows breast")


def test_a_task_without_items_is_no_task_and_the_build_says_so(built: Path) -> None:
    spec, manifest = read_spec(built), read_manifest(built)
    assert set(spec.tasks) == {"PI", "FO", "VG", "VL"}
    assert spec.weights["tasks"] == pytest.approx({"PI": 1 / 3, "FO": 1 / 3, "VG": 1 / 3})
    for task in ("CD", "VC"):
        assert f"{task}: no question in the test, so it is no task of this build" in manifest.notices
    assert manifest.counts["left out"]["clinic/CD"] == {"no label": 160}


def test_raw_labels_stay_beside_the_canonical_ones(built: Path) -> None:
    rows = [row for row in rows_of(built) if row["task"] == "FO"]
    assert {facts_of(row)["raw_label"] for row in rows} == {"huvf", "huvb", "hdvf", "hdvb"}
    assert all(facts_of(row)["raw_label"] in row["reference"]["choices"][0] for row in rows)
    assert {facts_of(row)["is_phantom"] for row in rows} == {"true"}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", hospital("clinic", 6, 2))
    first = build_fetal_gauge(tmp_path / "cases", tmp_path / "one")
    second = build_fetal_gauge(tmp_path / "cases", tmp_path / "two")
    assert first.hash == second.hash
    third = build_fetal_gauge(tmp_path / "cases", tmp_path / "three", seed=1)
    assert third.hash != first.hash


@given(st.text("abc", min_size=1, max_size=8), st.integers(2, 7), st.integers(0, 5))
def test_options_depend_on_question_and_state_alone(question: str, count: int, state: int) -> None:
    pools = Pools()
    for number in range(5):
        pools.add("PI", "s", f"plane {number}")
    parameters = Parameters(n_options={"PI": count}, random_state=state)
    options, pool = pick_options(question, "PI", "s", "plane 0", pools, parameters)
    assert (options, pool) == pick_options(question, "PI", "s", "plane 0", pools, parameters)
    assert len(options) == min(count, 5) and "plane 0" in options and pool == "source"


def test_a_small_pool_is_filled_from_the_task_and_then_shows_fewer() -> None:
    pools = Pools()
    for source, label in (("s", "a plane"), ("s", "b plane"), ("t", "c plane")):
        pools.add("PI", source, label)
    options, pool = pick_options("q", "PI", "s", "a plane", pools, Parameters())
    assert set(options) == {"a plane", "b plane", "c plane"} and pool == "source+task"
    options, pool = pick_options("q", "PI", "s", "a plane", pools, Parameters(n_options={"PI": 0}))
    assert set(options) == {"a plane", "b plane"} and pool == "source"
    pools.add("VG", "s", "head")
    options, pool = pick_options("q", "PI", "s", "a plane", pools, Parameters(distractor_pool="global"))
    assert len(options) == 4 and pool == "global"


def test_circular_asks_every_rotation_and_fixed_keeps_the_alphabet(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", hospital("clinic", 4, 5))
    build_fetal_gauge(tmp_path / "cases", tmp_path / "c", parameters={"shuffle": "circular", "tasks": ["PI"]})
    by_case: dict[str, list[list[str]]] = {}
    for row in rows_of(tmp_path / "c"):
        by_case.setdefault(row["images"][0]["case_id"], []).append(row["answer"]["options"])
    for turns in by_case.values():
        first = turns[0]
        assert turns == [first[turn:] + first[:turn] for turn in range(len(first))]
    build_fetal_gauge(tmp_path / "cases", tmp_path / "f", parameters={"shuffle": "fixed", "tasks": ["PI"]})
    assert all(row["answer"]["options"] == sorted(row["answer"]["options"]) for row in rows_of(tmp_path / "f"))


def test_several_templates_are_drawn(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", hospital("clinic", 8, 4))
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"templates": ["1", "2"], "tasks": ["PI"]})
    assert {row["prompt_id"] for row in rows_of(tmp_path / "b")} == {"fetal_gauge/pi@1", "fetal_gauge/pi@2"}


def test_prompts_of_the_user_are_asked_and_varied(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", hospital("clinic", 4, 2))
    (tmp_path / "prompts" / "mine").mkdir(parents=True)
    (tmp_path / "prompts" / "mine" / "pi.txt").write_text("Welche Ebene?\n{answer_format}\n", "utf-8")
    parameters = {"templates": ["mine"], "prompts": str(tmp_path / "prompts"), "tasks": ["PI"]}
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters=parameters)
    rows = rows_of(tmp_path / "b")
    assert all(row["question"].startswith("Welche Ebene?\nOptions:\nA. ") for row in rows)
    assert {row["prompt_id"] for row in rows} == {"fetal_gauge/pi@mine"}
    turned = question_of(Item.from_row(rows[0]), "circular=1", tmp_path / "prompts")
    assert turned.startswith(f"Welche Ebene?\nOptions:\nA. {rows[0]['answer']['options'][1]}\n")
    with pytest.raises(BadInput, match=r"write mine/vg\.txt in that folder"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "c", parameters={**parameters, "tasks": ["VG"]})
    assert not (tmp_path / "c").exists()


def test_sub_planes_go_before_organs_and_words_that_overlap_are_kept_apart(tmp_path: Path) -> None:
    rows = [
        case("s", f"{number:02d}", labels={"plane": plane, **more})
        for number, (plane, more) in enumerate(
            [
                ("Fetal brain", {"brain plane": "Trans-thalamic"}),
                ("Fetal brain", {"brain plane": "Trans-cerebellum"}),
                ("Fetal brain", {"brain plane": "Other"}),
                ("Fetal abdomen", {}),
                ("AC_PLANE", {}),
                ("Other", {}),
            ]
        )
    ]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["PI"]})
    found = {row["images"][0]["case_id"]: row for row in rows_of(tmp_path / "b")}
    answers = {name[2:]: row["reference"]["choices"][0] for name, row in found.items()}
    assert answers == {
        "00": "trans-thalamic plane",
        "01": "trans-cerebellar plane",
        "02": "fetal brain plane",
        "03": "fetal abdomen plane",
        "04": "abdominal circumference plane",
    }
    assert "trans-thalamic plane" not in found["s/02"]["answer"]["options"]
    assert "abdominal circumference plane" not in found["s/03"]["answer"]["options"]
    assert manifest.counts["left out"]["s/PI"] == {"class left out: other": 1}


def test_without_the_vocabulary_raw_words_are_asked(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases", hospital("clinic", 4, 5))
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"use_vocabulary": False, "tasks": ["PI"]})
    assert {row["reference"]["choices"][0] for row in rows_of(tmp_path / "b")} >= {"Fetal abdomen", "Maternal cervix"}


def test_a_label_of_one_source_answers_another_task(tmp_path: Path) -> None:
    rows = [
        case("acouslic-ai", f"{number}", labels={"plane": ("optimal plane", "suboptimal plane", "none")[number % 3]})
        for number in range(6)
    ]
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["PI", "VC"]})
    found = rows_of(tmp_path / "b")
    assert {row["task"] for row in found} == {"VC"} and len(found) == 4


def _pool_of_synonyms(path: Path) -> dict[str, Any]:
    words = ("Fetal-Head", "fetal head", "FETAL  HEAD")
    write_cases(path, [case("s", f"{number}", labels={"plane": words[number % 3]}) for number in range(6)])
    return {"use_vocabulary": False}


def _other_spellings(path: Path) -> dict[str, Any]:
    # One is in the vocabulary as it is, one with other signs, one not at all.
    words = ("Fetal brain", "fetal-brain", "FETAL_BRAIN plane")
    write_cases(path, [case("s", f"{number}", labels={"plane": words[number % 3]}) for number in range(6)])
    return {}


def _one_label(path: Path) -> dict[str, Any]:
    write_cases(path, [case("s", f"{number}", labels={"plane": "Fetal brain"}) for number in range(4)])
    return {}


@pytest.mark.parametrize("make", [_pool_of_synonyms, _other_spellings, _one_label])
def test_a_pool_of_one_label_or_its_synonyms_asks_nothing(make: Any, tmp_path: Path) -> None:
    parameters = make(tmp_path / "cases")
    with pytest.raises(BadInput, match="fewer than two options: the pool holds one label and its synonyms") as error:
        build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters=parameters)
    assert "s/FO: no label" in str(error.value) and "{" not in str(error.value)
    assert not (tmp_path / "b").exists()


def test_fewer_labels_than_options_show_fewer_and_k_is_stored(tmp_path: Path) -> None:
    rows = [case("s", f"{number}", labels={"plane": ("Fetal brain", "Fetal femur")[number % 2]}) for number in range(4)]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b")
    assert manifest.counts["options"] == {"PI, 2 shown": 4}
    assert {facts_of(row)["k"] for row in rows_of(tmp_path / "b")} == {"2"}


def test_a_structure_without_mask_is_not_asked_and_counted(tmp_path: Path) -> None:
    empty = np.zeros((48, 64), dtype=bool)
    small = empty.copy()
    small[10:14, 10:30] = True
    rows = [
        case("s", "0", boxes=[("head", 5, 5, 20, 20)]),
        case("s", "1", boxes=[("abdomen", 5, 5, 20, 20)]),
        case("s", "2"),
        case("s", "3", masks={"head": small}),
        case("s", "4", masks={"head": empty}),
    ]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["VG"]})
    assert len(rows_of(tmp_path / "b")) == 2
    assert manifest.counts["left out"]["s/VG"] == {
        "an empty mask": 1,
        "no mask and no box": 1,
        "box with a side below 8 pixels": 1,
    }


def test_the_device_of_a_case_is_the_scanner_of_its_questions(tmp_path: Path) -> None:
    rows = [
        {**case("s", f"{n}", labels={"plane": plane}, meta=meta), "device": device}
        for n, (plane, device, meta) in enumerate(
            [
                ("Fetal brain", "Voluson E6", {}),
                ("Fetal femur", None, {"scanner": "own"}),
                ("Fetal femur", None, {"centre": "one"}),
            ]
        )
    ]
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["PI"]})
    found = {row["item_id"]: facts_of(row) for row in rows_of(tmp_path / "b")}
    assert [one.get("scanner") for one in found.values()] == ["Voluson E6", "own", None]
    rows = sonogauge.analyse(tmp_path / "b", "datasheet").table("datasheet")["rows"]
    counts = {(row["by"], row["value"]): row["questions"] for row in rows}
    assert counts["scanner", "Voluson E6"] == counts["scanner", "own"] == counts["scanner", "unknown"] == 1
    assert counts["centre", "one"] == 1 and counts["centre", "unknown"] == 2


def test_boxes_that_cannot_be_seen_are_not_asked_and_others_are_cut_at_the_border(tmp_path: Path) -> None:
    rows = [
        case("s", "0", boxes=[("head", -10, -10, 30, 30), ("arm", 100, 10, 20, 20)]),
        case("s", "1", boxes=[("abdomen", 0, 0, 64, 48), ("legs", 50.5, 10, 40, 20)]),
    ]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["VG"]})
    assert [facts_of(row)["box_xywh"] for row in rows_of(tmp_path / "b")] == ["0,0,20,20", "50.5,10,13.5,20"]
    assert manifest.counts["left out"]["s/VG"] == {
        "box as large as the image, so that no line of it is seen": 1,
        "box outside the image": 1,
    }


def test_hostile_labels_stay_one_line_and_placeholders_are_refused(tmp_path: Path) -> None:
    rows = [case("s", "0", labels={"plane": "a\nB. b"}), case("s", "1", labels={"plane": "c"})]
    write_cases(tmp_path / "cases", rows)
    build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["PI"]})
    for row in rows_of(tmp_path / "b"):
        assert sorted(row["answer"]["options"]) == ["a B. b", "c"] and len(row["question"].splitlines()) == 5
    hostile = [case("s", "0", labels={"plane": "c {x}"}), case("s", "1", labels={"plane": "d"})]
    for number, more in enumerate((hostile, [case("s", "0", boxes=[("{x}", 5, 5, 20, 20)])])):
        write_cases(tmp_path / f"{number}", more)
        with pytest.raises(BadInput, match=r"s/0.*a label that no prompt can hold.*holds a placeholder"):
            build_fetal_gauge(tmp_path / f"{number}", tmp_path / "c", parameters={"tasks": ["PI", "VL"]})
