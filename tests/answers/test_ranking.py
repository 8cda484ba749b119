"""Reading an order of options: lists of every kind, prose, hostile replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.answers.ranking import parse
from sonogauge.tables import REASONS

pytestmark = pytest.mark.part("multi-choice and rankings")

SPEC = AnswerSpec(
    "ranking", options=("melanoma", "nevus", "basal cell carcinoma", "wart"), letters=("A", "B", "C", "D")
)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("1. Melanoma\n2. Nevus", ("melanoma", "nevus")),
        ("1) B\n2) A\n3) D", ("nevus", "melanoma", "wart")),
        ("1. **Nevus** - symmetrical\n2. Basal cell carcinoma (less likely)", ("nevus", "basal cell carcinoma")),
        ("Final answer: B > C", ("nevus", "basal cell carcinoma")),
        ("B, C, A", ("nevus", "basal cell carcinoma", "melanoma")),
        ('["wart", "nevus"]', ("wart", "nevus")),
        ("- wart\n- nevus", ("wart", "nevus")),
        ("melanoma\nnevus", ("melanoma", "nevus")),
        ("The picture shows a dark spot.\nmelanoma\nnevus", ("melanoma", "nevus")),
        ("1. Ringworm\n2. Nevus", ("ringworm", "nevus")),
        ("A. melanoma", ("melanoma",)),
        ("1. Probably a nevus\n2. Melanoma", ("nevus", "melanoma")),
        ('{"ranking": ["nevus", "melanoma"]}', ("nevus", "melanoma")),
        ("B > A. Because the lesion is brown.", ("nevus",)),
        ("1. B. nevus\n2. A. melanoma", ("nevus", "melanoma")),
        ("I would say melanoma.", ("melanoma",)),
        ("First idea: 1. wart 2. nevus\nFinal answer: 1. nevus 2. wart", ("nevus", "wart")),
        ("1. nevus\n2. wart\n\nOn reflection:\n1. wart\n2. nevus", ("wart", "nevus")),
    ],
)
def test_lists(reply: str, value: tuple[str, ...]) -> None:
    assert parse(reply, SPEC).value == value


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("1. nevus\n2. nevus", "ambiguous"),
        ("It could be melanoma and it could be a nevus or a wart", "ambiguous"),
        ("A, B or C", "ambiguous"),
        ("1. A or B", "ambiguous"),
        ("1. nevus or melanoma\n2. wart", "ambiguous"),
        ("The differential diagnosis includes melanoma, nevus, and wart.", "ambiguous"),
        ("1st: nevus, 2nd: melanoma", "ambiguous"),
        ("Not melanoma.", "negated"),
        ("Hello there", "none"),
        ("I cannot give medical advice.", "refusal_policy"),
    ],
)
def test_what_is_no_order(reply: str, reason: str) -> None:
    assert parse(reply, SPEC) == (None, reason)


@given(st.text(max_size=300))
def test_never_raises(reply: str) -> None:
    parsed = parse(reply, SPEC)
    assert (parsed.value is None) == (parsed.reason in REASONS)


def test_hundred_kilobytes_are_read() -> None:
    assert parse("1. nevus\n" * 10_000, SPEC).value == ("nevus",)
    parse("[" * 100_000, SPEC)
    parse("1. " * 30_000, SPEC)


@given(st.permutations(SPEC.options))
def test_what_is_asked_for_reads_back(order: list[str]) -> None:
    letters = dict(zip(SPEC.options, SPEC.letters, strict=True))
    for names in (order, [letters[one] for one in order]):
        reply = "\n".join(f"{place}. {name}" for place, name in enumerate(names, start=1))
        assert FORMS.load("ranking").parse(reply, SPEC).value == tuple(order)
