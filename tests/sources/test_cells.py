import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge.sources.cells import MAX_CHARACTERS, CellError, bare_text, is_missing, parse_cell

pytestmark = [pytest.mark.part("u2bench import"), pytest.mark.lookalike]

_PLAIN = st.characters(exclude_categories=["Cs"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e6, 1e6, allow_nan=False).map(lambda one: round(one, 6))
    | st.text(_PLAIN, max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(_PLAIN, max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_python_and_json_writing_are_read_back(value: object) -> None:
    assert parse_cell(repr(value)) == value
    assert parse_cell(json.dumps(value)) == value
    assert parse_cell(json.dumps(value, ensure_ascii=False)) == value


@given(st.text(max_size=60) | st.text("[]{}(),:'\"\\ 0.1e-+nanNoetrulfsx", max_size=60))
def test_nothing_but_its_own_error_is_raised(text: str) -> None:
    with contextlib.suppress(CellError):
        json.dumps(parse_cell(text), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('x')",
        "[1 for _ in (1,)]",
        "1 + 1",
        "{'a': 1} | {'b': 2}",
        "lambda: 0",
        "{1, 2}",
        "b'x'",
        "f'{1}'",
        "",
        "{'a': [0.5, ",
        "['a' 'b']",
        "{'a': [1, 2], 'a': [3, 4]}",
        '{"a": 1, "a": 2}',
        r'"\ud83d"',
        "[" * 100 + "]" * 100,
        "-" * 5000 + "1",
        "'" + "x" * MAX_CHARACTERS + "'",
        "9" * 5000,
    ],
)
def test_what_is_no_written_value_is_refused(text: str) -> None:
    with pytest.raises(CellError):
        parse_cell(text)


def test_both_quote_styles_tuples_and_missing_numbers() -> None:
    assert parse_cell("""{"it's": (1, 2.5)}""") == {"it's": [1, 2.5]}
    assert parse_cell("{'a': null, \"b\": None}") == {"a": None, "b": None}
    assert math.isnan(parse_cell("{'IMT': [nan]}")["IMT"][0])
    assert parse_cell(r"'a\_b'") == r"a\_b"
    assert parse_cell(r'"\ud83d\ude00"') == "\U0001f600"


def test_missing_words_and_bare_labels() -> None:
    assert all(is_missing(cell) for cell in ("", "  ", "nan", "NaN", "None", "null"))
    assert not any(is_missing(cell) for cell in ("none", "0", "[]", "NAN"))
    assert bare_text("[benign]") == bare_text("['benign'") == "benign"
