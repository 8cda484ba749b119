"""What a Fetal-Gauge-style build refuses, drops or keeps apart, and that it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.fetal_gauge.made import case, facts_of, hospital, rows_of, write_cases

from sonogauge import BadInput
from sonogauge.benchmarks.fetal_gauge.parameters import make_parameters
from sonogauge.build.fetal_gauge.build import build_fetal_gauge

pytestmark = [pytest.mark.part("fetal-gauge build"), pytest.mark.lookalike]


def test_an_image_without_patient_id_is_its_own_group_and_not_checkable(tmp_path: Path) -> None:
    rows = [case("s", f"{number}", labels={"plane": ("Fetal brain", "Fetal femur")[number % 2]}) for number in range(4)]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b")
    assert all("patient_id" not in facts_of(row) for row in rows_of(tmp_path / "b"))
    assert len({row["group"] for row in rows_of(tmp_path / "b")}) == 4
    assert manifest.counts["overlap of train and test"]["not checkable"] == {"s": 4}


def _leaking(path: Path) -> None:
    rows = hospital("s", 6, 2)
    for number, row in enumerate(rows):
        row["split"] = ("train", "test")[number % 2]
    write_cases(path, rows)


def test_an_overlap_of_train_and_test_is_refused_or_dropped(tmp_path: Path) -> None:
    _leaking(tmp_path / "cases")
    with pytest.raises(BadInput, match=r"6 patients or groups in train and test.*on_overlap: drop"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "b")
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"on_overlap": "drop"})
    assert {row["split"] for row in rows_of(tmp_path / "b")} == {"test"}
    assert manifest.counts["overlap of train and test"]["resolved"] == {"patients or groups": 6}
    assert any("6 cases of the train part were left out" in notice for notice in manifest.notices)


def test_the_same_image_in_train_and_test_is_an_overlap(tmp_path: Path) -> None:
    labels = {"plane": "Fetal brain"}
    rows = [
        case("s", "0", seed=1, patient="a", split="train", labels=labels),
        case("s", "1", seed=1, patient="b", split="test", labels=labels),
        case("s", "2", seed=2, patient="c", split="test", labels={"plane": "Fetal femur"}),
    ]
    write_cases(tmp_path / "cases", rows)
    with pytest.raises(BadInput, match="1 images in train and test"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "b")


def test_held_out_sources_lie_in_the_test(tmp_path: Path) -> None:
    write_cases(tmp_path / "cases" / "a", hospital("a", 12, 2))
    write_cases(tmp_path / "cases" / "b", hospital("b", 12, 2))
    parameters = {"small_source_max_images": 0, "held_out": ["b"], "tasks": ["PI"]}
    build_fetal_gauge(tmp_path / "cases", tmp_path / "bench", parameters=parameters)
    splits = {(row["source"], row["split"]) for row in rows_of(tmp_path / "bench")}
    assert splits == {("a", "train"), ("a", "test"), ("b", "test")}
    with pytest.raises(BadInput, match="no source 'x'"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "c", parameters={"held_out": ["x"]})


def test_a_clip_and_a_measure_without_spacing_are_left_out(tmp_path: Path) -> None:
    measured = {"head circumference": (200.0, "mm")}
    rows = [
        case("s", "0", measurements=measured, spacing=0.2),
        case("s", "1", measurements=measured),
        case("s", "2", measurements={"head circumference": (20.0, "cm")}, spacing=0.2),
        case("s", "3", measurements={"head circumference": (9000.0, "mm")}, spacing=0.2),
        case("s", "4", measurements=measured, spacing=0.2, frames=12),
    ]
    write_cases(tmp_path / "cases", rows)
    manifest = build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["MS"]})
    (row,) = rows_of(tmp_path / "b")
    assert row["dataset"] == "s head circumference" and row["reference"]["number"] == 200.0
    assert "0.2 mm wide" in row["question"] and "between 10 and 450 mm" in row["question"]
    assert manifest.counts["left out"]["s/MS"] == {
        "measured in 'cm', not in mm": 1,
        "no pixel spacing, so no image tells millimetres": 1,
        "not a still image": 1,
        "outside ms_range": 1,
    }


@pytest.mark.parametrize(
    ("given_parameters", "says"),
    [
        ({"box_lines": 2}, "field 'box_lines': no such parameter; known: tasks, labels, vocabulary"),
        ({"tasks": []}, "field 'tasks'"),
        ({"n_options": {"PI": 1}}, "from 2 to 26"),
        ({"n_options": {"XX": 3}}, "no task 'XX'"),
        ({"box_rgb": [0, 0, 300]}, "0 to 255"),
        ({"draw_stage": "after"}, "needs an image_size"),
        ({"test_fraction": 1.5}, "less than 1"),
        ({"ms_range": [5, 5]}, "low below high"),
    ],
)
def test_wrong_parameters_are_named(given_parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_parameters(given_parameters)


def test_parameters_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("n_options: {PI: 6}\nvg_component_rule: each\n", "utf-8")
    found = make_parameters(file)
    assert found.n_options == {"PI": 6, "VC": 2, "FO": 4, "CD": 3, "VG": 4} and found.vg_component_rule == "each"
    file.write_text("- a\n", "utf-8")
    with pytest.raises(BadInput, match="not a mapping"):
        make_parameters(file)
    with pytest.raises(BadInput, match="cannot be read"):
        make_parameters(tmp_path / "none.yaml")


def test_folders_that_hold_no_cases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        build_fetal_gauge(tmp_path / "none", tmp_path / "b")
    with pytest.raises(BadInput, match="no folder of cases"):
        build_fetal_gauge(tmp_path, tmp_path / "b")
    write_cases(tmp_path / "cases" / "a", hospital("a", 2, 2))
    write_cases(tmp_path / "cases" / "b", hospital("a", 2, 2))
    with pytest.raises(BadInput, match="a second case 'a/000_00'"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "b")


def test_an_image_that_does_not_decode_names_its_case(tmp_path: Path) -> None:
    rows = hospital("s", 2, 4)
    rows[3]["image"] = {"bytes": b"\x89PNG broken", "path": "x.png"}
    write_cases(tmp_path / "cases", rows)
    with pytest.raises(BadInput, match=r"s/000_03.*cannot be decoded"):
        build_fetal_gauge(tmp_path / "cases", tmp_path / "b", parameters={"tasks": ["VG"]})
