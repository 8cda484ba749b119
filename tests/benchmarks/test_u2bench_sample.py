"""The traps of a real folder in the release layout: whatever its rows hold, the prompts come out clean."""

from __future__ import annotations

import ast
import csv

import pytest
from tests.shared import shared_data

from sonogauge.benchmarks.prompts import answer_for, render_question
from sonogauge.benchmarks.spec import load_spec
from sonogauge.benchmarks.vocabulary import DIAGNOSIS, map_anatomy, map_keypoint, map_structure

EXPECTED = {
    "DD/23": {"breast"},
    "LL/23": {"breast"},
    "OD/31": {"fetus"},
    "KD/48": {"fetus"},
    "CVE/31": {"fetus"},
    "CG/10": {"breast"},
    "RG/39": {"breast"},
    "VRA/anatomy": {"breast", "fetus"},
}


def first_key(cell: str) -> str:
    """The name in a dict string, or the cell itself where it cannot be read."""
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell
    return next(iter(value[0] if isinstance(value, list) else value))


@pytest.mark.real
@pytest.mark.part("prompts")
def test_prompts_of_the_sample() -> None:
    spec = load_spec("u2bench")
    folder = shared_data("u2_sample")
    csv.field_size_limit(1 << 28)
    anatomies: dict[str, set[str]] = {}
    unusable = 0
    for task, facts in spec.tasks.items():
        for file in sorted((folder / facts.folder).glob("*.tsv")):
            scenario = spec.scenario(task, file.stem)
            assert scenario is not None
            with file.open(encoding="utf-8", newline="") as lines:
                rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["patient_id"] and row["img_data"]]
            for row in rows:
                if row["img_data"] == "base64 encoded image":
                    continue
                word = map_anatomy(row["anatomy_location"], scenario, spec)
                anatomies.setdefault(f"{task}/{file.stem}", set()).add(word)
                keypoint = map_keypoint(first_key(row["keypoints"]), scenario) if task == "KD" else "unused"
                if keypoint is None:
                    unusable += 1
                    continue
                values = {
                    "anatomy": word,
                    "structure": map_structure(row["seg_channel_name"].strip("[]'\""), scenario),
                    "keypoint": keypoint,
                    "pixel_size_mm": "0.07",
                }
                assert task != "OD" or values["structure"] == "fetal head"
                question, _ = render_question(spec, scenario, answer_for(spec, scenario), values)
                assert not DIAGNOSIS.search(question.splitlines()[0])
                assert " nan" not in question.casefold()
                assert "{" not in question
    assert anatomies == EXPECTED
    assert unusable == 1
