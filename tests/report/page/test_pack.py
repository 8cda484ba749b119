from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.report.page.pack import Strings, script_json, short

pytestmark = pytest.mark.part("page")

TEXTS = st.text(st.characters(exclude_categories=()))


@given(st.dictionaries(TEXTS, st.lists(st.one_of(TEXTS, st.integers(), st.none()))))
def test_any_text_survives_and_none_can_end_the_script(value: dict[str, list[object]]) -> None:
    written = script_json(value)
    assert json.loads(written) == value
    assert "<" not in written
    written.encode("utf-8")


@pytest.mark.parametrize("text", ["</script>", "<!--", "<script", "]]>", "\u2028", "\x00", "\ud83d"])
def test_what_breaks_scripts_is_escaped_or_harmless(text: str) -> None:
    written = script_json({"reply": text})
    assert json.loads(written)["reply"] == text
    assert "</" not in written and "<!--" not in written and "\x00" not in written


def test_a_number_that_is_not_finite_is_null() -> None:
    assert [short(one) for one in (float("inf"), float("nan"), None, 0.1 + 0.2, -0.0, 123456789.0)] == [
        None,
        None,
        None,
        0.3,
        0,
        123457000,
    ]


@given(st.lists(TEXTS))
def test_strings_are_kept_once_and_found_by_number(texts: list[str]) -> None:
    strings = Strings()
    numbers = [strings(text) for text in texts]
    assert [strings.all[number] for number in numbers] == texts
    assert len(set(strings.all)) == len(strings.all)
