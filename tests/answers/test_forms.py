"""What the forms ask, and the geometry of places."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from sonogauge.answers import FORMS, NULL, AnswerSpec
from sonogauge.answers.place import PLACES, band_distance, is_near_edge, place_of
from sonogauge.answers.vocabulary import spellings
from sonogauge.tables import VALUE

pytestmark = pytest.mark.part("answers")


@pytest.mark.parametrize("name", ["choice", "multi_choice", "place", "number", "text"])
def test_a_form_names_its_field_and_its_parser(name: str) -> None:
    form = FORMS.load(name)
    assert form.name == name
    assert form.parser == f"{name}-1"
    assert form.field in VALUE.names


def test_ask_lists_options_string_by_string() -> None:
    options = ("None", "OnlyFetalHead", "SymphysisPubis+FetalHead")
    asked = FORMS.load("choice").ask(AnswerSpec("choice", options=options))
    assert asked.splitlines()[1:-1] == list(options)
    assert "exact text of one option" in asked
    assert "nothing else" in asked


def test_ask_shows_letters_where_they_are_declared() -> None:
    spec = AnswerSpec("choice", options=("cyst", "mass"), letters=("A", "B"))
    assert FORMS.load("choice").ask(spec).splitlines()[1:-1] == ["A. cyst", "B. mass"]
    several = FORMS.load("multi_choice").ask(AnswerSpec("multi_choice", options=spec.options, letters=spec.letters))
    assert "separated by commas" in several


def test_ask_wants_an_integer_where_the_options_are_integers() -> None:
    assert "integers" in FORMS.load("choice").ask(AnswerSpec("choice", options=("0", "1", "2", "3")))
    assert "integers" not in FORMS.load("choice").ask(AnswerSpec("choice", options=("2", "3", "4A")))


def test_ask_of_a_place_lists_the_ten() -> None:
    asked = FORMS.load("place").ask(AnswerSpec("place"))
    assert asked.splitlines()[1:-1] == list(PLACES)
    assert "one or two words" in asked


def test_ask_of_a_number_says_range_unit_and_null() -> None:
    asked = FORMS.load("number").ask(AnswerSpec("number", options=(NULL,), low=0.3, high=1.5, unit="mm"))
    assert asked == (
        "The value lies between 0.3 and 1.5 mm.\n"
        "Reply with one bare number in mm, without the unit, or with the word null if it cannot be measured, "
        "and nothing else."
    )
    plain = FORMS.load("number").ask(AnswerSpec("number", low=10.0, high=75.0, unit="%"))
    assert "percent" in plain
    assert "null" not in plain


@pytest.mark.parametrize(
    ("x", "y", "place"),
    [
        (0.0, 0.0, "upper left"),
        (0.45, 0.449, "upper center"),
        (0.549, 0.45, "center"),
        (0.55, 0.55, "lower right"),
        (0.449, 0.549, "middle left"),
        (0.55, 0.5, "middle right"),  # the place one function of the reference code can never return
        (1.0, 0.0, "upper right"),
        (0.1, 0.9, "lower left"),
        (0.5, 0.9, "lower center"),
    ],
)
def test_place_of_a_point(x: float, y: float, place: str) -> None:
    assert place_of(x, y) == place


@pytest.mark.parametrize(
    ("x", "y", "near"),
    [(0.43, 0.1, True), (0.47, 0.1, True), (0.1, 0.57, True), (0.5, 0.5, False), (0.42, 0.9, False), (0.1, 0.55, True)],
)
def test_near_an_edge(x: float, y: float, near: bool) -> None:
    assert is_near_edge(x, y) is near


def test_band_distance_is_a_metric_on_the_nine_sectors() -> None:
    sectors = PLACES[:-1]
    for one in sectors:
        assert band_distance(one, one) == 0
        assert band_distance(one, "not visible") is None
        for other in sectors:
            there = band_distance(one, other)
            assert there == band_distance(other, one)
            assert there is not None
            assert (there == 0) == (one == other)
    assert max(band_distance(one, other) or 0 for one in sectors for other in sectors) == 4


@pytest.mark.parametrize(
    ("option", "other"),
    [
        ("Not-visible", "not visible"),
        ("SymphysisPubis+FetalHead", "symphysis pubis + fetal head"),
        ("Axial/Transverse Plane", "axial / transverse plane"),
        ("non-pancreas cancer", "nonpancreas cancer"),
    ],
)
def test_spellings(option: str, other: str) -> None:
    assert other in spellings(option)


def test_a_letter_that_is_the_text_of_another_option_names_none() -> None:
    spec = AnswerSpec("choice", options=("b", "a", "x"), letters=("A", "B", "C"))
    assert FORMS.load("choice").parse("(b)", spec).value is None
    assert FORMS.load("choice").parse("C", spec).value == "x"


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        ("  Liver normal.\n", "Liver normal.", None),
        ("<think>x</think>\nLiver normal.", "Liver normal.", None),
        ("```text\nLiver\nnormal.\n```", "Liver\nnormal.", None),
        ("Use `caliper`.", "Use `caliper`.", None),
        ("", None, "empty"),
        ("<think>Liver normal.", None, "empty"),
        ("```\n```", None, "empty"),
        ("Error code: 500 - internal", None, "error"),
        ("I'm sorry. I cannot analyze medical images.", None, "refusal_policy"),
        ("I cannot determine anything from this image.", None, "refusal_insufficient"),
        ("抱歉，我无法提供诊断建议。", None, "refusal_policy"),
        (
            "The margin cannot be assessed. The liver is enlarged.",
            "The margin cannot be assessed. The liver is enlarged.",
            None,
        ),
    ],
)
def test_text(reply: str, value: str | None, reason: str | None) -> None:
    assert tuple(FORMS.load("text").parse(reply, AnswerSpec("text"))) == (value, reason)
