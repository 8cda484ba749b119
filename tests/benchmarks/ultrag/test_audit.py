"""Facts of masks and the rule audit: merging, priorities, every severity, the files it writes."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonogauge.benchmarks.ultrag.audit import audit_files, audit_records, score_of, write_audit
from sonogauge.benchmarks.ultrag.facts import RawMask, grid_cell, image_facts
from sonogauge.benchmarks.ultrag.questions import grounded_report, grounded_vqa, segmentation_tasks
from sonogauge.benchmarks.ultrag.vocabulary import load_category
from sonogauge.cases.geometry import encode_mask

pytestmark = pytest.mark.part("ultrag")
BREAST, THYROID = load_category("Breast"), load_category("Thyroid")


def row(left: int, top: int, right: int, bottom: int) -> dict[str, Any]:
    pixels = np.zeros((60, 90), dtype=bool)
    pixels[top:bottom, left:right] = True
    return encode_mask(pixels, "", "")


def facts(*raw: tuple[str, dict[str, Any]], source: str = "BUSI", category: Any = BREAST) -> Any:
    masks = [RawMask(number, name, one) for number, (name, one) in enumerate(raw, start=1)]
    return image_facts(masks, (90, 60), category, source, "p_img1")


def record(*raw: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    found = facts(*raw)
    return {
        "sample_id": "BUSI_train_1",
        "dataset": "BUSI_coco",
        "split": "train",
        "image": {"file_name": "a.png", "width": 90, "height": 60, "organ": "breast"},
        "masks": [one.as_record() for one in found.masks],
        "pathology_label_conflicts": list(found.conflicts),
        "ignored_unknown_categories": list(found.ignored),
        "annotation_source": "api",
        "annotation": {
            "segmentation_tasks": segmentation_tasks(found.masks, BREAST),
            "grounded_vqa": grounded_vqa(found.masks, BREAST),
            "grounded_report": grounded_report(found.masks, BREAST),
        },
    }


def issues(one: dict[str, Any]) -> set[tuple[str, str]]:
    (audited,) = audit_records({"Breast": [one]}).records
    return {(issue.severity, issue.rule) for issue in audited.issues}


def test_cells_by_the_centre_of_the_box() -> None:
    assert grid_cell(100, 10, 300, 90) == "upper-central"
    assert grid_cell(99.9, 30, 300, 90) == "middle-left" and grid_cell(300, 90, 300, 90) == "lower-right"


def test_each_lesion_twice_is_one_mask() -> None:
    found = facts(("tumor", row(0, 0, 10, 10)), ("benign tumor", row(0, 0, 10, 10)), ("lesion", row(20, 0, 30, 12)))
    assert [one.pathology_label for one in found.masks] == ["benign", "unspecified"] and found.merged == 1
    first = found.masks[0]
    assert (first.source_category, first.annotation_id) == ("benign tumor", 2)
    assert first.source_annotation_ids == (1, 2) and first.mask_id == "p_img1_ann2"
    generic = facts(("tumor", row(0, 0, 10, 10)), ("breast mass", row(0, 0, 10, 10))).masks[0]
    assert generic.source_category == "breast mass"


def test_conflicts_unknown_names_crowds_and_small_regions() -> None:
    found = facts(
        ("benign lesion", row(0, 0, 10, 10)), ("malignant lesion", row(0, 0, 10, 10)), ("rib", row(0, 0, 9, 9))
    )
    assert found.masks[0].pathology_label == "conflicting" and len(found.conflicts) == 1
    assert found.ignored == ("rib",)
    small = facts(("lesion", row(0, 0, 3, 3)), ("lesion", row(0, 0, 2, 5)))
    assert len(small.masks) == 1 and small.skipped == 1
    crowd = image_facts([RawMask(1, "lesion", row(0, 0, 9, 9), crowd=True)], (90, 60), BREAST, "BUSI", "p")
    assert crowd.masks == () and crowd.skipped == 1
    gland = facts(("nodule", row(0, 0, 9, 9)), source="TG3K", category=THYROID).masks[0]
    assert (gland.category, gland.pathology_label, gland.source_category) == ("thyroid", "not_applicable", "nodule")


def test_geometry_of_a_fact() -> None:
    one = facts(("lesion", row(30, 20, 50, 30))).masks[0].as_record()
    assert one["bbox_xywh"] == [30.0, 20.0, 20.0, 10.0] and (one["long_axis_px"], one["short_axis_px"]) == (20.0, 10.0)
    assert one["mask_area_px"] == 200.0 and one["area_ratio"] == round(200 / 5400, 6)
    assert one["location_grid"] == "middle-central"


def test_what_is_made_here_passes() -> None:
    for one in (
        record(("benign lesion", row(0, 0, 10, 10))),
        record(("lesion", row(0, 0, 10, 10)), ("malignant mass", row(40, 20, 70, 50))),
        record(),
    ):
        (audited,) = audit_records({"Breast": [one]}).records
        assert audited.issues == () and audited.score == 100
        assert audited.data_quality_pass and audited.clinical_report_pass


def test_scores() -> None:
    assert score_of(["critical", "minor"]) == 72 and score_of(["critical"] * 4 + ["major"]) == 0
    assert score_of(["info"]) == 100 and score_of([]) == 100


def _set(*path: Any, value: Any) -> Any:
    def change(one: dict[str, Any]) -> None:
        place: Any = one
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


NOTE = "annotation"
FAULTS = {
    ("critical", "missing or repeated mask id"): _set("masks", 1, "mask_id", value="p_img1_ann1"),
    ("critical", "unknown category"): _set("masks", 0, "category", value="rib"),
    ("critical", "alias not normalised"): _set("masks", 0, "category", value="nodule"),
    ("critical", "pathology not allowed for its category"): _set("masks", 0, "pathology_label", value="fine"),
    ("critical", "pathology without a source label"): _set("masks", 0, "pathology_label", value="malignant"),
    ("critical", "pathology lost in merging"): _set("masks", 0, "pathology_label", value="unspecified"),
    ("critical", "conflicting labels"): _set("pathology_label_conflicts", value=[{"labels": []}]),
    ("critical", "source name not valid for its region"): _set("masks", 0, "source_categories", value=["rib"]),
    ("critical", "non-positive or invalid geometry"): _set("masks", 0, "mask_area_px", value=0),
    ("critical", "missing or mistyped mask fact"): _set("masks", 0, "bbox_xywh", value=None),
    ("critical", "unknown cited id"): _set(NOTE, "grounded_vqa", 0, "evidence_mask_ids", value=["x"]),
    ("critical", "[SEG] does not fit the targets"): _set(NOTE, "segmentation_tasks", 0, "answer", value="Done."),
    ("critical", "empty text"): _set(NOTE, "grounded_report", "sentences", 0, "text", value=" "),
    ("critical", "names what its masks do not carry"): _set(
        NOTE, "grounded_vqa", 0, "answer", value="A malignant lesion."
    ),
    ("critical", "diagnostic claim"): _set(
        NOTE, "grounded_report", "sentences", 0, "text", value="A lesion; biopsy it."
    ),
    ("critical", "missing or mistyped grounded_report"): _set(NOTE, "grounded_report", value={}),
    ("critical", "missing or mistyped annotation"): _set(NOTE, value=None),
    ("major", "unknown categories were ignored"): _set("ignored_unknown_categories", value=["rib"]),
    ("major", "wrong target_type"): _set("masks", 0, "target_type", value="organ"),
    ("major", "source names missing"): _set("masks", 0, "source_categories", value=[]),
    ("major", "box outside the image"): _set("masks", 0, "bbox_xywh", value=[85, 0, 10, 10]),
    ("major", "area_ratio off"): _set("masks", 0, "area_ratio", value=0.5),
    ("major", "number of segmentation tasks"): _set(NOTE, "segmentation_tasks", value=[]),
    ("major", "number of questions"): _set(NOTE, "grounded_vqa", value=[]),
    ("major", "Impression missing"): _set(NOTE, "grounded_report", "sentences", -1, "section", value="Findings"),
    ("major", "grounded item without evidence"): _set(NOTE, "grounded_vqa", 0, "evidence_mask_ids", value=[]),
    ("major", "grounded item with a wrong evidence_source"): _set(
        NOTE, "grounded_vqa", 0, "evidence_source", value="none"
    ),
    ("major", "physical measurement"): _set(
        NOTE, "grounded_report", "sentences", 0, "text", value="A lesion of 12 mm."
    ),
    ("major", "laterality"): _set(
        NOTE, "grounded_report", "sentences", 0, "text", value="A lesion of the left breast."
    ),
    ("major", "metadata"): _set(NOTE, "grounded_vqa", 0, "question", value="Is the lesion annotated in this dataset?"),
    ("major", "whole-exam claim"): _set(
        NOTE, "grounded_report", "sentences", 0, "text", value="The whole exam is normal."
    ),
    ("major", "positive claim without evidence"): _set(
        NOTE, "grounded_report", "sentences", 0, "evidence_mask_ids", value=[]
    ),
    ("major", "non-canonical term"): _set(NOTE, "grounded_vqa", 0, "question", value="Is a mass visible?"),
    ("major", "unsupported sub-structure"): _set(
        NOTE, "grounded_report", "sentences", 0, "text", value="A breast lesion beside a duct is visible."
    ),
    ("minor", "weak link to its masks"): _set(NOTE, "grounded_vqa", 0, "question", value="Is it visible?"),
    ("minor", "empty scope statement"): _set(
        NOTE, "grounded_report", "sentences", -1, "text", value="To be read with everything else."
    ),
    ("minor", "evidence on an ungrounded item"): _set(NOTE, "grounded_vqa", 0, "requires_grounding", value=False),
    ("minor", "the model failed and templates were used"): _set(NOTE, "api_error", value="timeout"),
    ("info", "questions not written by a model"): _set("annotation_source", value="fallback"),
}


@pytest.mark.parametrize("rule", FAULTS, ids=lambda rule: rule[1])
def test_every_rule_finds_its_fault(rule: tuple[str, str]) -> None:
    whole = record(("benign lesion", row(0, 0, 10, 10)), ("benign lesion", row(40, 20, 70, 50)))
    assert issues(whole) == set()
    broken = copy.deepcopy(whole)
    FAULTS[rule](broken)
    assert rule in issues(broken)


def test_rules_hold_in_every_part_of_a_record() -> None:
    whole = record(("benign lesion", row(0, 0, 10, 10)))
    whole["annotation"]["grounded_report"]["sentences"][0]["evidence_source"] = "none"
    whole["annotation"]["segmentation_tasks"][0]["instruction"] = "Outline the 3 mm carcinoma."
    (audited,) = audit_records({"Breast": [whole]}).records
    assert {(one.severity, one.rule, one.scope) for one in audited.issues} == {
        ("major", "grounded item with a wrong evidence_source", "report"),
        ("critical", "diagnostic claim", "segmentation"),
        ("major", "physical measurement", "segmentation"),
    }
    # A missing link between text and mask is minor, and does not cost the pass.
    loose = record(("benign lesion", row(0, 0, 10, 10)))
    loose["annotation"]["grounded_vqa"][0]["question"] = "Is it visible?"
    (audited,) = audit_records({"Breast": [loose]}).records
    assert audited.score == 97 and audited.data_quality_pass


def test_repeats_and_omissions() -> None:
    whole = record(("benign lesion", row(0, 0, 10, 10)))
    questions = whole["annotation"]["grounded_vqa"]
    questions[1]["question"] = questions[0]["question"]
    assert ("minor", "repeated question") in issues(whole)
    silent = record(("benign lesion", row(0, 0, 10, 10)))
    for sentence in silent["annotation"]["grounded_report"]["sentences"]:
        sentence["text"] = "Something is visible."
    assert ("major", "category omitted from the report") in issues(silent)
    silent["annotation"]["segmentation_tasks"] = []
    assert ("major", "category without its own segmentation task") in issues(silent)
    twice = record(("benign lesion", row(0, 0, 10, 10)))
    twice["masks"].append({**twice["masks"][0], "mask_id": "other"})
    assert ("critical", "same geometry kept twice") in issues(twice)
    empty = record(("benign lesion", row(0, 0, 10, 10)))
    empty["masks"] = []
    assert ("major", "no mask kept") in issues(empty)


def test_the_files_of_an_audit(tmp_path: Path) -> None:
    whole = record(("benign lesion", row(0, 0, 10, 10)))
    broken = copy.deepcopy(whole)
    broken["masks"][0]["target_type"] = "organ"
    broken["annotation"]["api_error"] = "timeout"
    file = tmp_path / "Breast.jsonl"
    file.write_text("\n".join([json.dumps(whole), json.dumps(broken), "{not json", ""]))
    audit = audit_files([file])
    assert [one.score for one in audit.records] == [100, 87, 75]
    write_audit(audit, tmp_path / "audit")
    summary = json.loads((tmp_path / "audit/summary.json").read_text())
    assert summary["records"] == 3 and summary["data quality pass"] == 1 and summary["clinical report pass"] == 3
    assert {one["rule"] for one in summary["rules"]} == {
        "unreadable line",
        "wrong target_type",
        "the model failed and templates were used",
    }
    with (tmp_path / "audit/issues.csv").open() as stream:
        assert [one["severity"] for one in csv.DictReader(stream)] == ["major", "minor", "critical"]
    assert "| major | wrong target_type | 1 |" in (tmp_path / "audit/summary.md").read_text()
    with (tmp_path / "audit/records.csv").open() as stream:
        assert [one["score"] for one in csv.DictReader(stream)] == ["100", "87", "75"]
