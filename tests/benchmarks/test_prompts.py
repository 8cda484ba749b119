"""Prompts: rendering, files and versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge._errors import BadInput
from sonogauge.benchmarks.prompts import (
    answer_for,
    load_prompt,
    placeholders,
    prompt_id,
    render,
    render_question,
    unescape,
)
from sonogauge.benchmarks.spec import Scenario, load_spec

pytestmark = pytest.mark.part("prompts")
SPEC = load_spec("u2bench")


def one(task: str, dataset: str) -> Scenario:
    scenario = SPEC.scenario(task, dataset)
    assert scenario is not None
    return scenario


@pytest.mark.parametrize(
    ("template", "variables", "message"),
    [
        ("{anatomy} {organ}", {"anatomy": "breast"}, "unknown variable 'organ'; known: anatomy"),
        ("{anatomy}", {}, "known: none"),
        ("{anatomy}", {"anatomy": " "}, "field 'anatomy': the prompt variable is empty"),
        ("{anatomy}", {"anatomy": "NaN"}, "field 'anatomy'"),
        ("{pixel_size_mm}", {"pixel_size_mm": "{pixel_size_mm}"}, "holds a placeholder"),
        ("{}", {}, "brace outside a placeholder"),
        ("{anatomy!r}", {"anatomy": "breast"}, "brace outside a placeholder"),
        ("{anatomy.__class__}", {"anatomy": "breast"}, "brace outside a placeholder"),
        (r"{anatomy\_location}", {"anatomy_location": "breast"}, "brace outside a placeholder"),
        ("{anatomy", {"anatomy": "breast"}, "brace outside a placeholder"),
    ],
)
def test_refused(template: str, variables: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        render(template, variables)


def test_render_fills_each_placeholder_once_and_in_place() -> None:
    assert render("{a}{b}{a}", {"a": "x", "b": r"\1", "c": ""}) == r"x\1x"
    assert placeholders("{b} {a} {b}") == ("b", "a")


@given(st.text(alphabet=st.characters(blacklist_characters="{}"), min_size=1).filter(lambda s: s.strip().isalpha()))
def test_a_value_arrives_unchanged(value: str) -> None:
    if value.strip().casefold() not in {"nan", "none", "null", "na", "unknown"}:
        assert render("a {x} b", {"x": value}) == f"a {value} b"


def test_foreign_escapes() -> None:
    foreign = r"An image of the {anatomy\_location}.\n\nYour task is described below."
    text = render(unescape(foreign), {"anatomy_location": "breast"})
    assert text == "An image of the breast.\n\nYour task is described below."


def test_ids_contain_the_scenario_even_where_a_text_is_shared() -> None:
    ids = set()
    for scenario in SPEC.scenarios:
        values = {"anatomy": scenario.anatomy, "structure": scenario.structure, "keypoint": "tip of the valve"}
        question, identity = render_question(
            SPEC, scenario, answer_for(SPEC, scenario), values | {"pixel_size_mm": "0.1"}
        )
        assert identity == f"u2bench/{scenario.task}-{scenario.dataset}@1".lower()
        assert not set("{}") & set(question)
        ids.add(identity)
    assert len(ids) == 51


def test_question_says_what_the_row_says() -> None:
    scenario = one("CVE", "31")
    question, _ = render_question(
        SPEC, scenario, answer_for(SPEC, scenario), {"anatomy": "fetus", "pixel_size_mm": "0.0691"}
    )
    assert "0.0691 mm" in question
    scenario = one("OD", "09")
    question, _ = render_question(
        SPEC, scenario, answer_for(SPEC, scenario), {"anatomy": "kidney", "structure": "renal cortex"}
    )
    assert "kidney" in question.splitlines()[0]
    assert "renal cortex" in question
    with pytest.raises(BadInput, match=r"u2bench/cve-31@1: .*pixel_size_mm"):
        render_question(SPEC, one("CVE", "31"), answer_for(SPEC, one("CVE", "31")), {"anatomy": "fetus"})


def test_the_region_is_not_told_where_it_is_the_question() -> None:
    scenario = one("VRA", "anatomy")
    answer = answer_for(SPEC, scenario)
    plain, _ = render_question(SPEC, scenario, answer, {"anatomy": ""})
    assert render_question(SPEC, scenario, answer, {"anatomy": "breast"})[0] == plain


def test_own_version_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "ll.txt").write_bytes("\ufeffYou are asked.\r\nWhere?\r\n{answer_format}\r\n".encode())
    scenario = one("LL", "23")
    question, identity = render_question(
        SPEC, scenario, answer_for(SPEC, scenario), {}, version="mine", folder=tmp_path
    )
    assert identity == "u2bench/ll-23@mine"
    assert question.startswith("You are asked.\nWhere?\n")
    (tmp_path / "mine" / "ll-23.txt").write_text("Own text.\n", "utf-8")
    assert load_prompt("u2bench", "ll-23", "mine", tmp_path) == "Own text."
    assert load_prompt("u2bench", "ll-04", "mine", tmp_path).startswith("You are asked.")


def test_bad_names_and_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no prompt 'dd-99' of version '1'"):
        load_prompt("u2bench", "dd-99", "1")
    with pytest.raises(BadInput, match="no prompt 'dd-23' of version '2'"):
        load_prompt("u2bench", "dd-23", "2")
    for name, version in (("../1/dd-23", "1"), ("dd-23", ".."), ("", "1"), ("dd-23", "/etc")):
        with pytest.raises(BadInput, match="not a plain name"):
            load_prompt("u2bench", name, version)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "dd-23.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not UTF-8"):
        load_prompt("u2bench", "dd-23", "1", tmp_path)
    assert prompt_id("u2bench", "dd-23", "1") == "u2bench/dd-23@1"
