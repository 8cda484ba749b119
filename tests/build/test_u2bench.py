import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sonogauge._errors import BadInput
from sonogauge.build import build, build_report
from sonogauge.build.u2_counts import import_report
from sonogauge.build.u2bench import build_u2bench
from sonogauge.folders import Folder, Manifest
from sonogauge.items import Item
from sonogauge.sources.u2bench import KeyMap, dataset_of
from tests.shared import shared_data
from tests.sources.lookalike import COLUMNS, FOLDERS, PROSE, coded, image, row, write_tsv

pytestmark = pytest.mark.part("u2bench import")
lookalike = pytest.mark.lookalike
BOX = "{'lesion': [0.2, 0.2, 0.1, 0.1]}"


def items_of(out: Path) -> dict[str, Item]:
    return {one["item_id"]: Item.from_row(one) for one in Folder(out, "benchmark").rows("items")}


def built(tmp_path: Path, **options: Any) -> tuple[Manifest, dict[str, Item]]:
    options.setdefault("max_dropped", 1.0)
    manifest = build_u2bench(tmp_path / "data", tmp_path / "out", overwrite=True, **options)
    return manifest, items_of(tmp_path / "out")


def cases_of(tmp_path: Path) -> list[dict[str, Any]]:
    return list(Folder(tmp_path / "out", "benchmark").rows("cases"))


# --- the real sample -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Path]:
    data = shared_data("u2_sample")
    out = tmp_path_factory.mktemp("sample") / "bench"
    return build("u2bench", data, out), out


@pytest.mark.real
def test_the_sample_is_read_as_its_readme_says(sample: tuple[Manifest, Path]) -> None:
    manifest, out = sample
    items = list(items_of(out).values())
    sizes = Counter((one.task, one.dataset) for one in items)
    assert sizes == {
        ("DD", "23"): 15,
        ("LL", "23"): 15,
        ("OD", "31"): 12,
        ("KD", "48"): 12,
        ("CVE", "31"): 12,
        ("CG", "10"): 8,
        ("RG", "39"): 7,
        ("VRA", "anatomy"): 14,
    }
    by_task: dict[str, list[Item]] = {}
    for one in items:
        by_task.setdefault(one.task, []).append(one)
    assert Counter(one.reference["choices"][0] for one in by_task["DD"]) == {"benign": 6, "malignant": 5, "normal": 4}
    assert Counter(one.reference["choices"][0] for one in by_task["VRA"]) == {"breast": 8, "fetal": 6}
    boxes = [len(one.reference.get("boxes", ())) for one in by_task["LL"]]
    assert sum(map(bool, boxes)) == 11 and sum(number > 1 for number in boxes) == 4
    assert sum(one.reference["places"] == ("not visible",) for one in by_task["LL"]) == 4
    assert all(len(one.reference["boxes"]) == 1 for one in by_task["OD"])
    assert {one.variables["structure"] for one in by_task["OD"]} == {"fetal head"}
    assert Counter(one.reference_state for one in by_task["KD"]) == {"ok": 11, "error": 1}
    assert Counter(one.reference_state for one in by_task["CVE"]) == {"ok": 11, "null": 1}
    assert sum(one.reference["number"] < 100 for one in by_task["CVE"] if one.reference) == 5
    assert manifest.counts["dropped"] == 0
    assert manifest.counts["explanation_rows"] == 2
    assert manifest.licences == ["CC BY-NC-ND 4.0"]


@pytest.mark.real
def test_the_sample_leaks_no_diagnosis_and_leaves_no_placeholder(sample: tuple[Manifest, Path]) -> None:
    for one in items_of(sample[1]).values():
        assert "{" not in one.question and "\\" not in one.question and "nan" not in one.question.split()
        if one.task == "LL":
            assert one.anatomy == "breast" and "cancer" not in one.question
        # Only the row whose key point cannot be read has no question.
        assert bool(one.question) == (one.reference_state != "error")


@pytest.mark.real
def test_the_sample_shares_images_and_draws_across_tasks(sample: tuple[Manifest, Path]) -> None:
    _, out = sample
    groups: dict[str, set[tuple[str, str]]] = {}
    for one in items_of(out).values():
        groups.setdefault(one.images[0].case_id, set()).add((one.source, one.group))
    assert len(groups) == 27 and all(len(found) == 1 for found in groups.values())
    cases = {one["case_id"]: one for one in Folder(out).rows("cases")}
    assert set(cases) == set(groups)
    for one in cases.values():
        assert hashlib.sha256(one["image"]["bytes"]).hexdigest() == one["sha256"]
        assert one["patient"] and one["group"] == f"{one['source']}:{one['patient']}"


@pytest.mark.real
def test_the_sample_gives_the_same_bytes_twice(sample: tuple[Manifest, Path], tmp_path: Path) -> None:
    manifest, out = sample
    again = build_u2bench(shared_data("u2_sample"), tmp_path / "again")
    assert again.hash == manifest.hash and import_report(again) == import_report(manifest)
    for file in sorted(out.iterdir()):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


# --- reading rules -------------------------------------------------------------------------------------------------


@lookalike
@pytest.mark.parametrize(
    ("task", "dataset", "cell", "option"),
    [
        ("DD", "23.BUSI", "benign", "benign"),
        ("DD", "23.BUSI", "['benign']", "benign"),
        ("DD", "23.BUSI", '["benign"]', "benign"),
        ("DD", "23.BUSI", "[benign]", "benign"),
        ("DD", "23.BUSI", "'benign'", "benign"),
        ("DD", "23.BUSI", "{'tumor': 'benign', 'grade': '4A'}", "benign"),
        ("DD", "44.Lung", "1.0", "1"),
        ("DD", "44.Lung", "[2.0]", "2"),
        ("DD", "57.Liver", "0", "0"),
        ("DD", "70.TDID", "Benign", "benign"),
        ("DD", "40.X", "4a", "4A"),
        ("VRA", "53.PSFH", "None", "None"),
        ("VRA", "53.PSFH", "[None]", "None"),
        ("VRA", "50.ACOUSLIC", "none", "none"),
        ("VRA", "50.ACOUSLIC", "['none']", "none"),
    ],
)
def test_labels_in_all_their_wrappings(tmp_path: Path, task: str, dataset: str, cell: str, option: str) -> None:
    write_tsv(tmp_path / "data", task, "x.tsv", [row(dataset, 1, class_label=cell, classification_task="tumor")])
    _, items = built(tmp_path)
    (one,) = items.values()
    assert one.reference == {"choices": (option,)}
    assert one.chance == 1 / len(one.answer.options) and one.answer.letters == ()


@lookalike
def test_an_anatomy_label_in_a_dict_and_a_row_of_a_numbered_source(tmp_path: Path) -> None:
    cells = {"classification_task": "Anatomy", "class_label": "{'Anatomy': 'lung'}", "anatomy_location": "lung"}
    write_tsv(tmp_path / "data", "VRA", "x.tsv", [row("10.FPUS23", 1, **cells), row("anatomy", 2, **cells)])
    _, items = built(tmp_path)
    assert set(items) == {"VRA/anatomy/0001", "VRA/anatomy/0002"}
    assert [one.source for one in items.values()] == ["u2bench/10", "u2bench/anatomy"]
    assert all(one.reference == {"choices": ("lung",)} and "anatomy" not in one.variables for one in items.values())


@lookalike
@pytest.mark.parametrize(
    ("task", "name", "label_set", "dataset"),
    [
        ("DD", "28.Knee", "", "28"),
        ("VRA", "28.Knee", "", "28_class"),
        ("DD", "74.PCO", "is_normal", "74is_normal"),
        ("VRA", "74.PCO", "is_visible", "74is_visible"),
        ("VRA", "74is_visible.PCO", "", "74is_visible"),
        ("LL", "4.DDTI", "", "04"),
        ("LL", "04", "", "04"),
        ("VRA", "anything", "Anatomy", "anatomy"),
        ("DD", "Anatomy", "Anatomy", ""),
        ("DD", "no number", "", ""),
    ],
)
def test_data_set_ids(task: str, name: str, label_set: str, dataset: str) -> None:
    assert dataset_of(task, name, label_set, {})[0] == dataset


@lookalike
def test_columns_of_an_older_release_are_found_by_name(tmp_path: Path) -> None:
    data = tmp_path / "data"
    head = ("split", "cla_ans", "id", "img_data", "DATASET_NAME", "hint", "extra")
    first = {**row("23.BUSI", 1), "DATASET_NAME": "23.BUSI", "cla_ans": "benign", "id": "007", "split": "train"}
    write_tsv(data, "DD", "a.tsv", [{**first, "hint": "it is benign"}], head)
    write_tsv(data, "LL", "a.tsv", [row("04.X", 2, seg_ans=BOX)], ("dataset_name", "img_data", "seg_ans"))
    write_tsv(
        data, "KD", "a.tsv", [row("48.X", 3, seg_ans="{'apex': [0.9, 0.9]}")], ("dataset_name", "img_data", "seg_ans")
    )
    write_tsv(data, "RG", "a.tsv", [row("39.X", 4, gt_report="Plain.")], ("dataset_name", "img_data", "gt_report"))
    manifest, items = built(tmp_path)
    diagnosis = items["DD/23/0001"]
    assert (diagnosis.split, diagnosis.meta["source_id"]) == ("train", "007")
    assert "it is benign" not in diagnosis.question
    assert items["LL/04/0001"].reference["places"] == ("upper left",)
    assert items["KD/48/0001"].reference["places"] == ("lower right",)
    assert items["RG/39/0001"].reference["texts"] == ("Plain.",)
    assert any("hint" in notice for notice in manifest.notices)


@lookalike
def test_explanation_and_dropped_rows_take_a_number(tmp_path: Path) -> None:
    data = tmp_path / "data"
    old = {"dataset_name": "23.BUSI", "img_data": "xxx", "gt_bbox": "[100, 200, 300, 400]"}
    good = row("23.BUSI", 1, class_label="benign")
    write_tsv(data, "DD", "a.tsv", [PROSE, good, {**good, "img_data": "AAAA"}, good])
    write_tsv(data, "DD", "b.tsv", [old, good])
    manifest, items = built(tmp_path)
    assert list(items) == ["DD/23/0002", "DD/23/0004", "DD/23/0006"]
    counts = manifest.counts["scenarios"]["DD/23"]
    assert (counts["rows"], counts["explanation_rows"], counts["dropped"]) == (6, 2, {"image does not decode": 1})
    assert manifest.counts["rows"] == 6 and manifest.counts["explanation_rows"] == 2
    assert counts["images"] == 1 and counts["repeated_rows"] == 2


@lookalike
@pytest.mark.parametrize(
    ("cell", "places", "state"),
    [
        ("", ("not visible",), "ok"),
        ("nan", ("not visible",), "ok"),
        ("None", ("not visible",), "ok"),
        ("[]", ("not visible",), "ok"),
        ("[nan]", ("not visible",), "ok"),
        ("{'lesion': []}", ("not visible",), "ok"),
        ("{'lesion': None}", ("not visible",), "ok"),
        ("{'lesion': [0.5, 0.5, 0.1, 0.1]}", ("center",), "ok"),
        ('[{"a": [0.1, 0.5, 0.1, 0.1]}, {"b": [0.9, 0.1, 0.1, 0.1]}]', ("middle left", "upper right"), "ok"),
        ("{'a': [0.1, 0.5, 0.1, 0.1], 'b': [0.1, 0.5, 0.2, 0.2]}", ("middle left", "middle left"), "ok"),
        ("{'lesion': [1.0000001, 0, 0.1, 0.1]}", ("upper right",), "ok"),
        ("{'lesion': [100, 200, 300, 400]}", None, "error"),
        ("{'lesion': [0.5, -0.1, 0.1, 0.1]}", None, "error"),
        ("{'lesion': [nan, nan, nan, nan]}", None, "error"),
        ("{'lesion': [1e999, 0.1, 0.1, 0.1]}", None, "error"),
        ("{'lesion': [0.5, 0.5]}", None, "error"),
        ("{'lesion': [True, False, True, True]}", None, "error"),
        ("{'lesion': ['0.5', '0.5', '0.1', '0.1']}", None, "error"),
        ("{'lesion': [0.5, ", None, "error"),
        ("lesion in the middle", None, "error"),
        ("0.5", None, "error"),
    ],
)
def test_boxes(tmp_path: Path, cell: str, places: tuple[str, ...] | None, state: str) -> None:
    rows = [row("04.X", 1, gt_bbox=cell), row("04.X", 2, gt_bbox=BOX)]
    write_tsv(tmp_path / "data", "LL", "a.tsv", rows)
    manifest, items = built(tmp_path)
    one = items["LL/04/0001"]
    assert one.reference_state == state and one.reference.get("places") == places
    assert one.question
    if places is not None:
        assert one.chance == len(set(places)) / 10
    assert manifest.counts["dropped"] == 0
    assert sum(manifest.counts["scenarios"]["LL/04"]["reference_errors"].values()) == (state == "error")


@lookalike
def test_boxes_are_kept_in_native_pixels_and_marked_near_an_edge(tmp_path: Path) -> None:
    cells = [
        "{'lesion': [0.5, 0.25, 0.1, 0.5]}",
        "{'lesion': [0.46, 0.2, 0.1, 0.1]}",
        "{'lesion': [0.2, 0.2, 0.1, 0.1]}",
    ]
    write_tsv(tmp_path / "data", "LL", "a.tsv", [row("04.X", 1 + n, gt_bbox=cell) for n, cell in enumerate(cells)])
    _, items = built(tmp_path)
    (box,) = items["LL/04/0001"].reference["boxes"]  # the image is 40 wide and 20 high
    assert [box[key] for key in "xywh"] == pytest.approx([18.0, 0.0, 4.0, 10.0])
    assert [one.meta["near_edge"] for one in items.values()] == ["0", "1", "0"]
    assert [len(one["boxes"]) for one in cases_of(tmp_path)] == [1, 1, 1]


@lookalike
def test_an_organ_question_asks_for_one_structure_and_counts_its_boxes_only(tmp_path: Path) -> None:
    several = "{'other thing': [0.9, 0.9, 0.1, 0.1], 'stomach': [0.1, 0.1, 0.1, 0.1]}"
    rows = [
        row("13.X", 1, gt_bbox=several),
        row("13.X", 2, gt_bbox="{'nan': [0.9, 0.9, 0.1, 0.1]}", seg_channel_name="nan"),
        row("13.X", 3, gt_bbox=""),
        row("13.X", 4, gt_bbox="{'{anatomy}': [0.9, 0.9, 0.1, 0.1]}"),
    ]
    write_tsv(tmp_path / "data", "OD", "a.tsv", rows)
    manifest, items = built(tmp_path)
    assert [one.reference["places"] for one in items.values()] == [
        ("upper left",),
        ("lower right",),
        ("not visible",),
        ("lower right",),
    ]
    assert {one.variables["structure"] for one in items.values()} == {"fetal stomach"}
    notes = manifest.counts["scenarios"]["OD/13"]["notes"]
    assert notes == {"several structures in a row, one is asked for": 1}


@lookalike
def test_a_key_point_without_a_name_is_unusable(tmp_path: Path) -> None:
    cells = [
        "{'LV apex endocardial': [0.5, 0.5]}",
        "{'LV apex endocardial': None}",
        "",
        "{'x': [0.5, ",
        "{'x': [7, 1]}",
    ]
    write_tsv(tmp_path / "data", "KD", "a.tsv", [row("48.X", n, keypoints=cell) for n, cell in enumerate(cells)])
    _, items = built(tmp_path)
    assert [one.reference_state for one in items.values()] == ["ok", "ok", "error", "error", "error"]
    assert [one.reference.get("places") for one in items.values()][:2] == [("center",), ("not visible",)]
    assert [bool(one.question) for one in items.values()] == [True, True, False, False, True]
    assert items["KD/48/0001"].reference["points"] == ({"name": "LV apex endocardial", "x": 20.0, "y": 10.0},)


@lookalike
@pytest.mark.parametrize(
    ("dataset", "cell", "number", "state"),
    [
        ("18.X", "{'EF': 55}", 55.0, "ok"),
        ("18.X", '[{\'ESV\': 3}, {"EF": "55.5"}]', 55.5, "ok"),
        ("18.X", "{'EF': 99}", 99.0, "ok"),
        ("18.X", "", None, "absent"),
        ("18.X", "{'ESV': 3}", None, "absent"),
        ("18.X", "{'EF': 'high'}", None, "error"),
        ("18.X", "EF 55", None, "error"),
        ("18.X", "{'EF': True}", None, "error"),
        ("27.X", "{'IMT': [0.7, 0.9]}", 0.7, "ok"),
        ("27.X", "{'IMT': [None]}", None, "null"),
        ("27.X", "{'IMT': []}", None, "null"),
        ("27.X", "{'IMT': null}", None, "null"),
        ("27.X", "nan", None, "null"),
        ("31.X", "{'headCircumferenceMm': 250.5, 'pixelSizeMm': 0.1}", 250.5, "ok"),
        ("31.X", "{'headCircumferenceMm': nan, 'pixelSizeMm': 0.1}", None, "null"),
        ("31.X", "{'headCircumferenceMm': 250.5}", None, "error"),
        ("57.X", "{'fat value': 30}", 30.0, "ok"),
    ],
)
def test_measurements(tmp_path: Path, dataset: str, cell: str, number: float | None, state: str) -> None:
    good = row("50.X", 9, measurement="{'abdominal_circumference': 200.0}")
    write_tsv(tmp_path / "data", "CVE", "a.tsv", [row(dataset, 1, measurement=cell), good])
    _, items = built(tmp_path)
    one = items[f"CVE/{dataset[:2]}/0001"]
    assert (one.reference_state, one.reference.get("number")) == (state, number)
    assert one.answer.options == (("null",) if dataset == "27.X" else ())
    if dataset == "31.X" and state != "error":
        assert one.variables["pixel_size_mm"] == "0.1" and "0.1 mm" in one.question
        case = next(one for one in cases_of(tmp_path) if one["measurements"] == [] or one["spacing"])
        assert case["spacing"] == {"x": 0.1, "y": 0.1}


@lookalike
def test_reports_captions_and_the_report_column(tmp_path: Path) -> None:
    rows = [
        row("39.X", 1, report=" A report. ", caption="A caption."),
        row("39.X", 2, report="nan", caption="A caption."),
        row("39.X", 3),
    ]
    write_tsv(tmp_path / "data", "RG", "a.tsv", rows)
    _, items = built(tmp_path)
    assert [one.reference.get("texts") for one in items.values()] == [("A report.",), ("A caption.",), None]
    assert [one.reference_state for one in items.values()] == ["ok", "ok", "absent"]
    manifest, items = built(tmp_path, report_column="caption")
    assert items["RG/39/0001"].reference["texts"] == ("A caption.",)
    assert manifest.parameters["report_column"] == "caption"


@lookalike
def test_an_image_can_come_from_a_path(tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = [
        {"dataset_name": "23.X", "img_path": "a.png", "class_label": "benign"},
        {"dataset_name": "23.X", "img_path": "../../secret.png", "class_label": "benign"},
    ]
    file = write_tsv(data, "DD", "a.tsv", rows, ("dataset_name", "img_path", "class_label"))
    (file.parent / "a.png").write_bytes(image(1))
    (tmp_path / "secret.png").write_bytes(image(2))
    manifest, items = built(tmp_path)
    assert list(items) == ["DD/23/0001"]
    assert manifest.counts["dropped_by_reason"] == {"image path leaves the data folder": 1}


@lookalike
def test_one_case_gathers_what_all_tasks_say(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_tsv(data, "DD", "a.tsv", [row("23.X", 1, class_label="benign", demographic="{'age': 31, 'sex': 'f'}")])
    write_tsv(data, "LL", "a.tsv", [row("23.X", 1, gt_bbox=BOX, patient_id="p1")])
    write_tsv(data, "CG", "a.tsv", [row("10.X", 1, caption="A mass.", demographic="{oops")])
    manifest, items = built(tmp_path)
    (case,) = cases_of(tmp_path)
    assert case["labels"] == [{"name": "DD/23", "value": "benign"}] and len(case["boxes"]) == 1
    assert case["texts"] == [{"kind": "caption", "text": "A mass.", "language": "en"}]
    assert case["demographics"] == [{"name": "age", "value": "31"}, {"name": "sex", "value": "f"}]
    assert (case["source"], case["group"], case["patient"]) == ("u2bench/10", "u2bench/10:p1", "p1")
    assert {(one.source, one.group) for one in items.values()} == {("u2bench/10", "u2bench/10:p1")}
    assert manifest.counts["scenarios"]["CG/10"]["notes"] == {"demographic cell unparsable": 1}


@lookalike
def test_rows_that_share_an_image_or_a_patient_share_a_draw(tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = [
        row("23.X", 1, class_label="benign", patient_id="p1"),
        row("23.X", 2, class_label="benign", patient_id="p1"),
        row("23.X", 3, class_label="benign", patient_id="nan"),
        row("23.X", 4, class_label="benign", patient_id="p2"),
    ]
    write_tsv(data, "DD", "a.tsv", rows)
    write_tsv(data, "CG", "a.tsv", [row("10.X", 1, caption="A."), row("10.X", 4, caption="B.", patient_id="other")])
    manifest, items = built(tmp_path)
    first, second, third, fourth = (items[f"DD/23/000{number}"] for number in (1, 2, 3, 4))
    assert (first.source, first.group) == (second.source, second.group) == ("u2bench/10", "u2bench/10:p1")
    assert items["CG/10/0001"].group == first.group
    assert third.group == f"u2bench/23:image-{hashlib.sha256(image(3)).hexdigest()[:20]}"
    assert fourth.group == items["CG/10/0002"].group == "u2bench/10:other"
    assert manifest.counts["duplicates"]["contradicting_patients"] == 1
    assert [one["known_issues"] for one in cases_of(tmp_path) if one["patient"] == "other"] == [
        ["rows give different patient ids: other, p2"]
    ]
    assert manifest.counts["duplicates"]["images_across_tasks"] == 2


@lookalike
def test_own_options_that_differ_are_counted(tmp_path: Path) -> None:
    options = ["{'tumor': ['malignant', 'Normal', 'benign']}", "{'tumor': ['a', 'b']}", "{'else': []}", "{oops"]
    rows = [
        row("23.X", n, class_label="benign", classification_task="tumor", options=cell)
        for n, cell in enumerate(options)
    ]
    write_tsv(tmp_path / "data", "DD", "a.tsv", rows)
    manifest, _ = built(tmp_path)
    assert sum(manifest.counts["scenarios"]["DD/23"]["notes"].values()) == 3


@lookalike
def test_a_mask_cell_of_22_million_characters_passes(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [row("23.X", 1, class_label="benign", seg_data="A" * 22_000_000)])
    manifest, items = built(tmp_path)
    assert len(items) == 1 and any("seg_data" in notice for notice in manifest.notices)


@lookalike
def test_names_that_the_release_leaves_open_can_be_mapped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_tsv(data, "CVE", "a.tsv", [row("31.X", 1, measurement="{'HC': 250, 'px': 0.1}")])
    write_tsv(
        data,
        "VRA",
        "a.tsv",
        [{"dataset_name": "Regions", "picture": coded(image(2)), "class_label": "lung"}],
        ("dataset_name", "picture", "class_label"),
    )
    keys = {
        "measurement:HC": "headCircumferenceMm",
        "measurement:px": "pixelSizeMm",
        "dataset:Regions": "anatomy",
        "column:picture": "img_data",
    }
    manifest, items = built(tmp_path, key_map=keys)
    assert set(items) == {"CVE/31/0001", "VRA/anatomy/0001"}
    assert items["CVE/31/0001"].reference["number"] == 250.0
    assert manifest.parameters["key_map"] == keys
    for pairs in ({"colour:x": "y"}, {"column:x": "y"}, {"column": "img_data"}):
        with pytest.raises(BadInput):
            KeyMap.read(pairs)


# --- bad input -----------------------------------------------------------------------------------------------------


def _refused(tmp_path: Path, words: str, **options: Any) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInput, match=words):
        build_u2bench(tmp_path / "data", tmp_path / "out", **options)
    assert sorted(tmp_path.rglob("*")) == before  # nothing half written


@lookalike
def test_a_folder_that_is_not_u2bench(tmp_path: Path) -> None:
    _refused(tmp_path, r"data: no such folder; give the folder")
    (tmp_path / "data").mkdir()
    _refused(tmp_path, r"not a U2-BENCH folder.*it should hold folders like")
    (tmp_path / "data" / FOLDERS["DD"]).mkdir()
    (tmp_path / "data" / "an_explanation_of_the_columns.tsv").write_text("dataset_name\timg_data\n")
    _refused(tmp_path, r"not a U2-BENCH folder")


@lookalike
@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_without_images(tmp_path: Path, rows: int) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [{"dataset_name": "23.X"}] * rows, ("dataset_name", "class_label"))
    _refused(tmp_path, r"disease_diagnosis/a\.tsv, field 'img_data': column missing .*; use the files")


@lookalike
def test_nothing_usable(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [PROSE])
    _refused(tmp_path, r"nothing usable in 1 rows")
    write_tsv(tmp_path / "data", "DD", "a.tsv", [row("99.X", 1, class_label="a")])
    _refused(tmp_path, r"nothing usable.*unknown dataset.*disease_diagnosis/a\.tsv, row 1", max_dropped=1.0)


@lookalike
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row("23.X", 1, class_label="cyst"), "label outside its options"),
        (row("23.X", 1, class_label="['benign', 'malignant']"), "not exactly one label"),
        (row("23.X", 1, class_label="{'tumor': "), "unparsable label"),
        ({"dataset_name": "23.X", "class_label": "benign"}, "no image"),
        ({"dataset_name": "23.X", "class_label": "benign", "img_data": "%%%"}, "image is not base64"),
        ({"dataset_name": "23.X", "class_label": "benign", "img_data": "AAAA"}, "image does not decode"),
        (row("99.X", 1, class_label="benign"), "unknown dataset"),
    ],
)
def test_faulty_rows_are_dropped_counted_and_bounded(tmp_path: Path, bad: dict[str, str], reason: str) -> None:
    good = [row("23.X", 10 + n, class_label="benign") for n in range(19)]
    write_tsv(tmp_path / "data", "DD", "a.tsv", [*good, bad])
    manifest, items = built(tmp_path, max_dropped=0.05)  # 1 of 20 is not above
    assert len(items) == 19 and manifest.counts["dropped_by_reason"] == {reason: 1}
    assert any(reason in line for line in import_report(manifest))
    assert len(cases_of(tmp_path)) == 19
    (tmp_path / "out").rename(tmp_path / "kept")
    write_tsv(tmp_path / "data", "DD", "a.tsv", [*good[:-1], bad])
    _refused(tmp_path, rf"1 of 19 rows dropped.*1 {reason}; first at disease_diagnosis/a\.tsv, row 19.*--max-dropped")


@lookalike
def test_reference_errors_and_nulls_do_not_count_as_dropped(tmp_path: Path) -> None:
    rows = [PROSE, *(row("04.X", n, gt_bbox="oops") for n in range(5)), row("04.X", 9, gt_bbox=BOX)]
    write_tsv(tmp_path / "data", "LL", "a.tsv", rows)
    manifest, _ = built(tmp_path, max_dropped=0.0)
    assert manifest.counts["reference_states"] == {"error": 5, "ok": 1}


@lookalike
def test_options_of_the_build_are_checked(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [row("23.X", 1, class_label="benign")])
    _refused(tmp_path, "no report column", report_column="notes")
    _refused(tmp_path, "share from 0 to 1", max_dropped=2.0)
    with pytest.raises(BadInput, match=r"no benchmark to build 'nope'; known: .*u2bench"):
        build("nope", tmp_path, tmp_path / "out")
    with pytest.raises(BadInput, match="no option 'colour'"):
        build("u2bench", tmp_path / "data", tmp_path / "out", colour=1)
    with pytest.raises(BadInput, match="--data"):
        build("u2bench", None, tmp_path / "out")
    with pytest.raises(BadInput, match="needs no data"):
        build("synthetic", tmp_path, tmp_path / "out")
    built(tmp_path)
    with pytest.raises(BadInput, match="--overwrite"):
        build_u2bench(tmp_path / "data", tmp_path / "out")


@lookalike
def test_the_hash_follows_the_data_and_not_its_place(tmp_path: Path) -> None:
    rows = [row("23.X", 1, class_label="benign"), row("23.X", 2, class_label="malignant")]
    for name in ("one", "two"):
        write_tsv(tmp_path / name, "DD", "a.tsv", rows)
    one, two = (build_u2bench(tmp_path / name, tmp_path / f"out-{name}") for name in ("one", "two"))
    assert one.hash == two.hash
    write_tsv(tmp_path / "two", "DD", "a.tsv", rows[::-1])
    assert build_u2bench(tmp_path / "two", tmp_path / "out-two", overwrite=True).hash != one.hash


@lookalike
def test_the_report_is_made_from_the_manifest_alone(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [PROSE, row("23.X", 1, class_label="benign"), row("98.Foo", 1)])
    manifest, _ = built(tmp_path)
    stored = Folder(tmp_path / "out").manifest
    lines = import_report(stored)
    assert lines == import_report(manifest) == build_report(stored)
    text = "\n".join(lines)
    for part in ("3 rows", "explanation rows left out: 1", "1 unknown dataset", "DD: 98.Foo (1 rows)", "CC BY-NC-ND"):
        assert part in text
    assert json.dumps(stored.counts)
    assert len(COLUMNS) == 17
