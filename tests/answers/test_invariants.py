"""What holds for every reply: no parser raises, values are options, an option means itself, markup changes nothing."""

# ruff: noqa: RUF001
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.answers import FORMS, NULL, AnswerSpec
from sonogauge.answers import refusals as refusals_module
from sonogauge.answers.place import PLACES
from sonogauge.answers.refusals import refusals
from sonogauge.benchmarks.spec import load_spec
from sonogauge.tables import REASONS

pytestmark = pytest.mark.part("answers")

OPTION_SETS = sorted({one.options for one in load_spec("u2bench").scenarios if one.options and one.options != PLACES})
SPECS = [
    *(AnswerSpec("choice", options=options) for options in OPTION_SETS),
    *(AnswerSpec("choice", options=one, letters=tuple("ABCDEFGHIJKLMN"[: len(one)])) for one in OPTION_SETS),
    *(AnswerSpec("multi_choice", options=one, letters=tuple("ABCDEFGHIJKLMN"[: len(one)])) for one in OPTION_SETS),
    AnswerSpec("place"),
    AnswerSpec("place", options=PLACES),
    AnswerSpec("number", low=100.0, high=400.0, unit="mm"),
    AnswerSpec("number", options=(NULL,), low=0.3, high=1.5, unit="mm"),
    AnswerSpec("number", low=10.0, high=75.0, unit="%"),
    AnswerSpec("number"),
    AnswerSpec("text"),
]
CHOICES = [spec for spec in SPECS if spec.form == "choice"]
# Pieces that steer a parser into its corners, mixed with any text.
PIECES = st.sampled_from(
    [
        "answer",
        ": ",
        "is ",
        "it is ",
        "not ",
        "no ",
        "A",
        "b",
        "I",
        " or ",
        ", ",
        ".",
        "-",
        "4A",
        "2",
        "0.5",
        "12,5",
        "mm",
        "%",
        "benign",
        "malignant",
        "Not-visible",
        "upper left",
        "center",
        "<think>",
        "</think>",
        "<answer>",
        "\\boxed{",
        "}",
        "**",
        "```",
        "$",
        "cannot ",
        "determine ",
        "答案",
        "是",
        "不",
        "无法判断",
        "。",
        "\n",
        "\x00",
        "�",
        "İ",
        "ß",
        "if ",
        "between ",
        " to ",
        "±",
        "null",
        "nan",
        "1e999",
        "&lt;",
        "²",
        "option ",
        "(",
        ")",
        "[",
        "error",
        "'",
        '"',
    ]
)
REPLIES = st.one_of(
    st.text(st.characters(), max_size=80),
    st.lists(PIECES, max_size=30).map("".join),
    st.lists(st.one_of(PIECES, st.text(st.characters(), max_size=6)), max_size=20).map(" ".join),
)


def _is_value(value: Any, spec: AnswerSpec) -> bool:
    if spec.form == "choice":
        return value in spec.options
    if spec.form == "place":
        return value in PLACES
    if spec.form == "multi_choice":
        return bool(value) and list(value) == [option for option in spec.options if option in value]
    if spec.form == "number":
        return (value == NULL and NULL in spec.options) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, str) and bool(value)


@given(st.sampled_from(SPECS), REPLIES)
@settings(max_examples=1500, deadline=None)
def test_a_parser_never_raises_and_never_invents(spec: AnswerSpec, reply: str) -> None:
    found = FORMS.load(spec.form).parse(reply, spec)
    if found.reason is None:
        assert _is_value(found.value, spec)
    else:
        assert found.value is None
        assert found.reason in REASONS


@pytest.mark.parametrize("spec", CHOICES, ids=lambda spec: f"{spec.options[0]}-{len(spec.letters)}")
def test_an_option_means_itself(spec: AnswerSpec) -> None:
    for option in spec.options:
        assert FORMS.load("choice").parse(option, spec) == (option, None)
    for letter, option in zip(spec.letters, spec.options, strict=False):
        assert FORMS.load("choice").parse(letter, spec) == (option, None)


@given(st.text(st.characters(), min_size=1, max_size=12), st.text(st.characters(), min_size=1, max_size=12))
def test_any_string_may_be_an_option(one: str, other: str) -> None:
    spec = AnswerSpec("choice", options=(one, other))
    assert FORMS.load("choice").parse(one, spec).value == one


WRAPPERS: list[Callable[[str], str]] = [
    str.upper,
    str.lower,
    lambda text: f"  {text}\n",
    lambda text: f"**{text}**",
    lambda text: f"`{text}`",
    lambda text: f'"{text}".',
    lambda text: f"“{text}”。",
    lambda text: f"[{text}]",
    lambda text: f"<b>{text}</b>",
    lambda text: f"<answer>{text}</answer>",
    lambda text: f"\\boxed{{{text}}}",
    lambda text: f"$\\boxed{{\\text{{{text}}}}}$",
    lambda text: f"<think>the other one</think>\n{text}",
    lambda text: f"```text\n{text}\n```",
    lambda text: f"Answer: {text}",
    lambda text: f"答案：{text}。",
    lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
    lambda text: text.replace(" ", "  "),
    lambda text: f"- {text}",
]


@pytest.mark.parametrize("spec", CHOICES, ids=lambda spec: f"{spec.options[0]}-{len(spec.letters)}")
@pytest.mark.parametrize("number", range(len(WRAPPERS)))
def test_markup_case_and_space_change_nothing(spec: AnswerSpec, number: int) -> None:
    for option in spec.options:
        assert FORMS.load("choice").parse(WRAPPERS[number](option), spec) == (option, None)


@pytest.mark.parametrize("number", range(len(WRAPPERS)))
def test_markup_changes_no_place_and_no_number(number: int) -> None:
    for place in PLACES:
        assert FORMS.load("place").parse(WRAPPERS[number](place), AnswerSpec("place")) == (place, None)
    if number != len(WRAPPERS) - 1:  # "- 12.5" may be a bullet or a sign
        spec = AnswerSpec("number", low=1.0, high=20.0, unit="mm")
        assert FORMS.load("number").parse(WRAPPERS[number]("12.5"), spec) == (12.5, None)


HOSTILE = {
    "words": "benign not " * 9_000,
    "spaces": " " * 100_000 + "x",
    "stars": "*" * 100_000,
    "backslashes": "\\" * 100_000,
    "boxed": "\\boxed{" * 14_000,
    "tags": "<think>" * 14_000,
    "open": "<" * 100_000,
    "letters": "a" * 100_000,
    "listing": "A, B or C and " * 7_000,
    "answers": "answer answer: is the " * 5_000,
    "digits": "9" * 100_000,
    "dots": "1." * 50_000,
    "minus": "-" * 100_000,
    "numbers": "answer: 1 or 2 to " * 5_000,
    "refusals": "I cannot determine the thing. " * 3_300,
    "almost": "I cannot provide a very long " * 3_300,
    "errors": "error " * 16_000,
    "modules": "a." * 50_000,
    "brackets": "[" * 100_000,
    "links": "[a](" * 25_000,
    "quotes": "'\"" * 50_000,
    "lines": "\n" * 100_000 + "x",
    "amps": "&amp" * 25_000 + ";",
    "hyphens": "4a-" * 33_000,
    "it is": "it is " * 16_000,
    "chinese": "无法不是答案" * 16_000,
    "html": "<a " * 33_000,
    "comments": "<!-- " * 20_000,
    "latex": "\\text{" * 16_000,
    "fences": "``` " * 25_000,
    "units": "5 mm " * 20_000,
    "colons": "answer" + ":" * 100_000,
}


# An expression that backtracks would run for hours here.
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_reply_of_100_kb_ends(name: str) -> None:
    for spec in (CHOICES[0], CHOICES[-1], SPECS[-7], SPECS[-4], SPECS[-1]):
        found = FORMS.load(spec.form).parse(HOSTILE[name], spec)
        assert found.reason is None or found.reason in REASONS


@given(st.sampled_from(refusals_module._refusals()).flatmap(lambda pair: st.from_regex(pair[1])))
@settings(max_examples=300, deadline=None)
def test_the_quick_look_for_refusals_misses_none(text: str) -> None:
    low = text.lower()
    if any(pattern.search(low) for _, pattern in refusals_module._refusals()):
        assert refusals(low)


@given(st.floats(-1e6, 1e6, allow_nan=False))
def test_a_written_number_is_read_back(number: float) -> None:
    spec = AnswerSpec("number", low=-1e6, high=1e6, unit="mm")
    parse = FORMS.load("number").parse
    for text in (repr(number), f"{number!r} mm", f"Answer: {number!r}", f"The value is {number!r} mm."):
        assert parse(text, spec) == (number, None)
    assert parse(f"{number!r} cm", spec).value == pytest.approx(10 * number)
