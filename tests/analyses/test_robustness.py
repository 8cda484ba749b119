"""Robustness and signs of contamination on models whose weakness is known."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.made import items_of, letter, reader, right, write_replies

from sonogauge import BadInput
from sonogauge.analyses import analyse
from sonogauge.analyses.contamination import GIVEN, canary_question, completes
from sonogauge.analyses.robustness import steps
from sonogauge.export.content import canary_of
from sonogauge.folders import read_manifest
from sonogauge.items import Item

pytestmark = pytest.mark.part("robustness")

TURNS = [("", 0), *((f"circular={turn}", 0) for turn in range(1, 4))]


def _by_task(found: Any, key: str) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for row in found.table(key)["rows"]}


def test_a_constant_letter_is_never_right_in_all_rotations(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    replies = write_replies(tmp_path / "a.jsonl", items, lambda item, variant, epoch: "A", TURNS)
    for row in _by_task(analyse(replies, "robustness", bench=bench), "circular").values():
        assert row["always"]["value"] == row["same"]["value"] == 0.0 and row["place"]["value"] == 1.0
        assert row["mean"]["value"] == pytest.approx(1 / 4, abs=0.1)


def test_a_reader_answers_the_same_in_all_rotations(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    replies = write_replies(tmp_path / "r.jsonl", items, reader(0.7), TURNS)
    for task, row in _by_task(analyse(replies, "robustness", bench=bench), "circular").items():
        assert row["same"]["value"] == 1.0 and row["place"]["value"] == 0.0
        assert row["always"]["value"] == row["plain"]["value"] == pytest.approx(row["mean"]["value"])
        assert row["n"] == sum(item.task == task for item in items)


def test_varied_questions_against_the_unvaried(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)

    def answer(item: Item, variant: str, epoch: int) -> str:
        if variant in ("no_image", "blank_image"):
            return letter(item, Random(item.item_id).choice(item.answer.options))
        good = variant != "prompt=2" or int.from_bytes(item.item_id.encode(), "big") % 2 == 0
        return letter(item, right(item) if good else next(o for o in item.answer.options if o != right(item)), variant)

    variants = [("", 0), ("no_image", 0), ("prompt=2", 0), ("shuffle", 0)]
    replies = write_replies(tmp_path / "r.jsonl", items, answer, variants)
    rows = {
        (row["variant"], row["task"]): row
        for row in analyse(replies, "robustness", bench=bench).table("variants")["rows"]
    }
    for task in ("PI", "FO", "VG"):
        own = [item for item in items if item.task == task]
        kept = sum(int.from_bytes(item.item_id.encode(), "big") % 2 == 0 for item in own) / len(own)
        assert rows["prompt=2", task]["difference"]["value"] == pytest.approx(kept - 1)
        assert rows["prompt=2", task]["changed"]["value"] == pytest.approx(1 - kept)
        assert rows["shuffle", task]["changed"]["value"] == 0.0
        assert rows["no_image", task]["varied"]["value"] < 0.5 and rows["no_image", task]["plain"]["value"] == 1.0


def test_repeats_show_range_and_changes(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)

    def answer(item: Item, variant: str, epoch: int) -> str:
        good = epoch < 2
        return letter(item, right(item) if good else next(o for o in item.answer.options if o != right(item)))

    replies = write_replies(tmp_path / "r.jsonl", items, answer, [("repeat", epoch) for epoch in range(3)])
    for row in _by_task(analyse(replies, "robustness", bench=bench), "repeats").values():
        assert (row["runs"], row["low"], row["high"]) == (3, 0.0, 1.0)
        assert row["changed"]["value"] == 1.0 and row["mean"]["value"] == pytest.approx(2 / 3)


def test_drop_per_step_of_a_perturbation(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)
    skill = {"": 1.0, "perturb=jpeg:50": 0.8, "perturb=jpeg:10": 0.5, "perturb=speckle:1": 0.9}

    def answer(item: Item, variant: str, epoch: int) -> str:
        good = Random(item.item_id).random() < skill[variant]
        return letter(item, right(item) if good else next(o for o in item.answer.options if o != right(item)))

    replies = write_replies(tmp_path / "r.jsonl", items, answer, [(variant, 0) for variant in skill])
    rows = analyse(replies, "robustness", bench=bench).table("perturbations")["rows"]
    ladder = [row for row in rows if row["task"] == "VG" and row["perturbation"] == "jpeg"]
    assert [row["level"] for row in ladder] == ["50", "10"]
    first, second = ladder
    assert second["total"]["value"] == pytest.approx(first["step"]["value"] + second["step"]["value"])
    assert first["step"]["value"] == pytest.approx(-0.2, abs=0.08)


def test_levels_run_from_weak_to_strong() -> None:
    found = steps(["", "perturb=gain:-6", "perturb=gain:12", "perturb=gain:6", "perturb=jpeg:5", "perturb=jpeg:90"])
    assert {name: [level for level, _ in own] for name, own in found.items()} == {
        "gain": [6.0, 12.0],
        "gain -": [-6.0],
        "jpeg": [90.0, 5.0],
    }


def test_a_level_that_is_no_number_is_named() -> None:
    with pytest.raises(BadInput, match="no level in 'perturb=gain'"):
        steps(["perturb=gain"])


def test_a_memorising_model_shows_blind_and_by_order(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)

    def answer(item: Item, variant: str, epoch: int) -> str:
        # It has learned the letter of each question by heart.
        return letter(item, right(item))

    replies = write_replies(tmp_path / "r.jsonl", items, answer, [("", 0), ("no_image", 0), ("shuffle", 0)])
    found = analyse(replies, "contamination", bench=bench)
    for row in found.table("blind")["rows"]:
        assert row["blind"]["value"] == 1.0 and row["sign"] == "above every baseline"
    for row in found.table("order")["rows"]:
        assert row["own"]["value"] == 1.0 and row["gain"]["value"] > 0.4
        assert row["sign"] == "its own order is answered better"
    assert found.table("canary")["rows"][0]["sign"] == "none"


def test_a_reader_shows_no_sign(bench: Path, tmp_path: Path) -> None:
    items = items_of(bench)

    def answer(item: Item, variant: str, epoch: int) -> str:
        return letter(item, right(item), variant) if variant != "no_image" else "I need the image to answer."

    replies = write_replies(tmp_path / "r.jsonl", items, answer, [("", 0), ("no_image", 0), ("shuffle", 0)])
    found = analyse(replies, "contamination", bench=bench)
    assert {row["sign"] for key in ("blind", "order") for row in found.table(key)["rows"]} == {"none"}


def test_the_canary_is_asked_for_and_recognised(bench: Path, tmp_path: Path) -> None:
    canary = canary_of(read_manifest(bench).hash)
    digits = canary.rpartition(" ")[2]
    question = canary_question(read_manifest(bench).hash)
    assert question.endswith(digits[:GIVEN]) and digits[GIVEN:] not in question
    replies = write_replies(tmp_path / "r.jsonl", items_of(bench), reader(0.5))
    said = analyse(replies, "contamination", bench=bench, canary=[f"{digits}."]).table("canary")["rows"][0]
    assert said["sign"] == "knows the canary" and said["digits"] == said["of"] == 24
    silent = analyse(replies, "contamination", bench=bench, canary=["I do not know."]).table("canary")["rows"][0]
    assert silent["sign"] == "none"


@given(st.text(max_size=60))
def test_completion_never_fails_and_counts_at_most_all(text: str) -> None:
    canary = canary_of("x")
    assert 0 <= completes(text, canary) <= 24
    assert completes(f"{text} {canary.rpartition(' ')[2]}", canary) == 24


def test_without_any_sign_to_read_it_is_bad_input(bench: Path, tmp_path: Path) -> None:
    import sonogauge

    replies = write_replies(tmp_path / "r.jsonl", items_of(bench), reader(0.5))
    sonogauge.score(replies, bench=bench, out=tmp_path / "scores", draws=100)
    with pytest.raises(BadInput, match="nothing tells of contamination"):
        analyse(tmp_path / "scores", "contamination")
