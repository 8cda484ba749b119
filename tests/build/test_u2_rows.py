import hashlib
from pathlib import Path

import pytest

from sonogauge._errors import BadInput
from sonogauge.sources.u2bench import KeyMap, dataset_of
from tests.build.u2_built import BOX, built, cases_of
from tests.sources.lookalike import PROSE, coded, image, row, write_tsv

pytestmark = [pytest.mark.part("u2bench import"), pytest.mark.lookalike]


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


def test_an_anatomy_label_in_a_dict_and_a_row_of_a_numbered_source(tmp_path: Path) -> None:
    cells = {"classification_task": "Anatomy", "class_label": "{'Anatomy': 'lung'}", "anatomy_location": "lung"}
    write_tsv(tmp_path / "data", "VRA", "x.tsv", [row("10.FPUS23", 1, **cells), row("anatomy", 2, **cells)])
    _, items = built(tmp_path)
    assert set(items) == {"VRA/anatomy/0001", "VRA/anatomy/0002"}
    assert [one.source for one in items.values()] == ["u2bench/10", "u2bench/anatomy"]
    assert all(one.reference == {"choices": ("lung",)} and "anatomy" not in one.variables for one in items.values())


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
    # the part of its source says nothing of the benchmark, whose cases are all scored
    assert (diagnosis.split, diagnosis.meta["source_split"], diagnosis.meta["source_id"]) == ("test", "train", "007")
    assert "it is benign" not in diagnosis.question
    assert items["LL/04/0001"].reference["places"] == ("upper left",)
    assert items["KD/48/0001"].reference["places"] == ("lower right",)
    assert items["RG/39/0001"].reference["texts"] == ("Plain.",)
    assert any("hint" in notice for notice in manifest.notices)
    assert any(notice.startswith("rows name a part of their source (1 train)") for notice in manifest.notices)


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


def test_boxes_are_kept_in_native_pixels_and_marked_near_an_edge(tmp_path: Path) -> None:
    cells = [
        "{'lesion': [0.5, 0.25, 0.1, 0.5]}",
        "{'lesion': [0.46, 0.2, 0.1, 0.1]}",
        "{'lesion': [0.2, 0.2, 0.1, 0.1]}",
        "{'lesion': [[0.2, 0.2, 0.1, 0.1], [0.46, 0.2, 0.1, 0.1]]}",
    ]
    write_tsv(tmp_path / "data", "LL", "a.tsv", [row("04.X", 1 + n, gt_bbox=cell) for n, cell in enumerate(cells)])
    _, items = built(tmp_path)
    (box,) = items["LL/04/0001"].reference["boxes"]  # the image is 40 wide and 20 high
    assert [box[key] for key in "xywh"] == pytest.approx([18.0, 0.0, 4.0, 10.0])
    # Of several boxes each is a right answer, so the second alone may make a close call of an item.
    assert [one.meta["near_edge"] for one in items.values()] == ["0", "1", "0", "1"]
    assert [len(one["boxes"]) for one in cases_of(tmp_path)] == [1, 1, 1, 2]


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


def test_own_options_that_differ_are_counted(tmp_path: Path) -> None:
    options = ["{'tumor': ['malignant', 'Normal', 'benign']}", "{'tumor': ['a', 'b']}", "{'else': []}", "{oops"]
    rows = [
        row("23.X", n, class_label="benign", classification_task="tumor", options=cell)
        for n, cell in enumerate(options)
    ]
    write_tsv(tmp_path / "data", "DD", "a.tsv", rows)
    manifest, _ = built(tmp_path)
    assert sum(manifest.counts["scenarios"]["DD/23"]["notes"].values()) == 3


def test_a_mask_cell_of_22_million_characters_passes(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [row("23.X", 1, class_label="benign", seg_data="A" * 22_000_000)])
    manifest, items = built(tmp_path)
    assert len(items) == 1 and any("seg_data" in notice for notice in manifest.notices)


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
