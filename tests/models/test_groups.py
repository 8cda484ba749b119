"""Facts of models: the packaged file, a user's file over it, spellings, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonogauge import BadInput
from sonogauge.models.groups import GROUPINGS, base_pairs, folded, group_of, load_cards
from sonogauge.report.published import published_rows

pytestmark = pytest.mark.part("groups of models")


def test_every_published_model_has_a_card() -> None:
    cards = load_cards()
    published = {row["model"] for row in published_rows("u2bench") if row["model_group"] != "baseline"}
    assert published and published <= set(cards)
    # Sizes written in a name are those of its card.
    assert (cards["Qwen-2.5-VL-32B-Instruct"].size_b, cards["LLaVA-1.5-13B"].size_b) == (32, 13)
    assert cards["GPT-4o"].size_b is None and cards["GPT-4o"].access == "closed"


@pytest.mark.parametrize("name", ["gpt-4o", "openai/GPT-4o", "openai-api/x/gpt_4o"])
def test_a_model_is_found_however_it_is_spelled(name: str) -> None:
    assert load_cards().of(name).family == "GPT"


@pytest.mark.parametrize("name", ["gpt-4o-2024", "4o", "", "unheard/of"])
def test_nothing_is_guessed(name: str) -> None:
    assert load_cards().of(name).family is None
    assert group_of(name, "family", load_cards()) == "unknown"


def test_a_users_file_adds_models_and_overrides_single_facts(tmp_path: Path) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(
        "models:\n"
        "  openai/gpt-4o: {size_b: 200, contamination: [seen in a forum]}\n"
        "  our/echo-vlm: {access: closed, family: echo, size_b: 7, base_model: GPT-4o, date: 2026-01,\n"
        "    ultrasound: 'yes'}\n",
        "utf-8",
    )
    cards = load_cards(file)
    assert (cards.of("GPT-4o").size_b, cards.of("GPT-4o").access) == (200, "closed")
    assert cards.of("echo-vlm").date == "2026-01"
    assert base_pairs(["our/echo-vlm", "openai/gpt-4o", "GPT-5"], cards) == [("our/echo-vlm", "openai/gpt-4o")]
    assert [group_of("our/echo-vlm", one, cards) for one in GROUPINGS] == ["unknown", "closed", "echo", "yes"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: {m: {sise_b: 7}}", "model 'm'.*field|field 'sise_b'"),
        ("models: {m: {size_b: -7}}", "field 'size_b'"),
        ("models: {m: {size_b: .inf}}", "field 'size_b'"),
        ("models: {m: {access: leaked}}", "field 'access'"),
        ("models: {m: {date: yesterday}}", "field 'date'"),
        ("models: {a: {aliases: [x]}, b: {aliases: [X]}}", "'X' names both 'a' and 'b'"),
        ("models: [m]", "no models in it"),
        ("models: {m: 7}", "no models in it"),
        ("- m", "no models in it"),
        ("models: {", "not YAML"),
        ("models: !!python/object/apply:os.system [echo]", "not YAML"),
        ("\x00", "not YAML"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=message) as caught:
        load_cards(file)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        load_cards(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(BadInput, match="not YAML"):
        load_cards(broken)
    with pytest.raises(BadInput, match="cannot be grouped by 'price'"):
        group_of("GPT-4o", "price", load_cards())


@given(st.text())
def test_any_name_has_a_card(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert load_cards().of(name) is not None
