from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.run.tiny import PLACES, item

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.models.baselines import (
    BASELINES,
    NON_READING,
    NORMAL_EXAMINATION,
    absence_option,
    baseline_replies,
    format_number,
    is_upper_bound,
)

pytestmark = pytest.mark.part("baselines")


def test_names() -> None:
    assert NON_READING == ("random", "majority", "prior", "constant", "not-visible")
    assert set(BASELINES) - set(NON_READING) == {"oracle"}
    with pytest.raises(BadInput, match="no baseline 'psychic'"):
        baseline_replies("psychic", [item()], [])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("choice", "benign"),
        ("multi_choice", "A, B"),
        ("place", "center"),
        ("number", "12.5"),
        ("text", "Normal liver."),
    ],
)
def test_oracle_answers_with_the_reference(form: str, expected: str) -> None:
    assert baseline_replies("oracle", [item(form=form)], []) == [expected]


@pytest.mark.parametrize(("state", "expected"), [("null", "null"), ("absent", ""), ("error", "")])
def test_oracle_without_a_reference(state: str, expected: str) -> None:
    one = item(form="number", reference={}, reference_state=state)
    assert baseline_replies("oracle", [one], []) == [expected]


@pytest.mark.parametrize(
    ("form", "constant", "nothing"),
    [
        ("choice", "benign", "benign"),
        ("place", "center", "not visible"),
        ("number", "15", "10"),
        ("text", NORMAL_EXAMINATION, "No abnormality is visible."),
    ],
)
def test_constant_and_not_visible(form: str, constant: str, nothing: str) -> None:
    assert baseline_replies("constant", [item(form=form)], []) == [constant]
    assert baseline_replies("not-visible", [item(form=form)], []) == [nothing]


def test_null_where_offered() -> None:
    one = item(form="number", answer=AnswerSpec("number", ("null",), low=0.3, high=1.5, unit="mm"))
    assert baseline_replies("not-visible", [one], []) == ["null"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("Visible", "Not-visible"), "Not-visible"),
        (("non-pancreas cancer", "pancreas cancer"), "non-pancreas cancer"),
        (("infected", "noninfected"), "noninfected"),
        (("Appears abnormal", "Appears normal"), "Appears normal"),
        (("optimal", "none"), "none"),
        (("benign", "normal thyroid"), "normal thyroid"),
        (("Mild OA", "Moderate OA", "No OA"), "No OA"),
        (("0", "1"), "0"),
    ],
)
def test_absence(options: tuple[str, ...], expected: str) -> None:
    assert absence_option(options) == expected


def test_majority_and_prior_count_the_train_part() -> None:
    malignant = {"choices": ("malignant",)}
    train = [
        item(1, split="train", reference=malignant),
        item(2, split="train", reference=malignant),
        item(3, split="train"),
        *(item(n, split="train", dataset="02") for n in range(4, 9)),
    ]
    asked = [item(10), item(11, dataset="02"), item(12, dataset="03")]
    # Data set 03 is unknown to the train part: its own items are counted.
    assert baseline_replies("majority", asked, train) == ["malignant", "benign", "benign"]
    assert baseline_replies("prior", asked, train) == ["benign"] * 3
    assert not is_upper_bound("majority", train)
    assert not is_upper_bound("majority", train, "DD", "02")
    assert is_upper_bound("majority", train, "DD", "03")
    assert not is_upper_bound("prior", train, "DD", "03")
    assert is_upper_bound("majority", [])
    assert not is_upper_bound("random", [])


def test_prior_takes_an_offered_option() -> None:
    train = [item(n, split="train", reference={"choices": ("malignant",)}) for n in range(3)] + [item(3, split="train")]
    one = item(9, answer=AnswerSpec("choice", ("normal", "benign")))
    assert baseline_replies("prior", [one], train) == ["benign"]


def test_numbers_are_medians() -> None:
    train = [item(n, "number", split="train", reference={"number": v}) for n, v in enumerate((11.0, 12.0, 20.0))]
    other = item(9, "number", dataset="02", answer=AnswerSpec("number", low=0.0, high=100.0))
    assert baseline_replies("majority", [item(8, "number")], train) == ["12"]
    assert baseline_replies("constant", [item(8, "number")], train) == ["12"]
    # The task's median scaled value is (12 - 10) / (20 - 10) = 0.2.
    assert baseline_replies("prior", [other], train) == ["20"]
    assert baseline_replies("constant", [other], train) == ["50"]


def test_text_ties_go_to_the_first_in_order() -> None:
    texts = ["b", "a", "b", "a", "c"]
    items = [item(n, "text", reference={"texts": (text,)}) for n, text in enumerate(texts)]
    assert baseline_replies("majority", items, []) == ["a"] * 5
    assert set(baseline_replies("random", items, [replace(one, split="train") for one in items])) <= {"a", "b", "c"}
    assert baseline_replies("random", items, []) == [""] * 5


def test_undefined_forms_have_no_reply() -> None:
    one = item(answer=AnswerSpec("drawing in the sand"))
    assert all(baseline_replies(name, [one], []) == [None] for name in BASELINES)
    # Of the forms that draw only these are defined.
    shown = item(answer=AnswerSpec("mask"), reference={"masks": (), "texts": ("none",)})
    given = {name: baseline_replies(name, [shown], [])[0] for name in BASELINES}
    assert {name for name, text in given.items() if text is not None} == {"constant", "not-visible", "oracle"}
    assert given["oracle"] == '{"answer": "none", "predicted_mask": null}'


@settings(max_examples=25)
@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 5), st.sampled_from(BASELINES))
def test_a_subset_gets_the_same_replies(chosen: set[int], seed: int, name: str) -> None:
    forms = ("choice", "place", "number", "text", "multi_choice")
    items = [item(n, forms[n % 5]) for n in range(61)]
    train = [replace(one, split="train") for one in items[:20]]
    whole = baseline_replies(name, items, train, seed)
    part = baseline_replies(name, [items[n] for n in sorted(chosen)], train, seed)
    assert part == [whole[n] for n in sorted(chosen)]


def test_random_is_uniform_and_seeded() -> None:
    items = [item(n, "place") for n in range(4000)]
    replies = baseline_replies("random", items, [], seed=1)
    counts = [replies.count(place) for place in PLACES]
    # Chi-square with 9 degrees of freedom: 27.9 is the 0.999 quantile.
    assert sum((count - 400) ** 2 / 400 for count in counts) < 27.9
    assert replies != baseline_replies("random", items, [], seed=2)
    numbers = [
        float(reply or "nan") for reply in baseline_replies("random", [item(n, "number") for n in range(500)], [])
    ]
    assert all(10 <= number <= 20 for number in numbers)
    assert max(numbers) > 19 and min(numbers) < 11


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_format_number_reads_back(value: float) -> None:
    text = format_number(value)
    assert float(text) == value
    assert "e" not in text
