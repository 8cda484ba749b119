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
from tests.build.u2_built import BOX, built, cases_of, items_of
from tests.shared import shared_data
from tests.sources.lookalike import COLUMNS, FOLDERS, PROSE, row, write_tsv

pytestmark = pytest.mark.part("u2bench import")
lookalike = pytest.mark.lookalike


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
def test_a_file_that_is_gone_is_not_left_out_in_silence(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "data", "DD", "a.tsv", [row("23.X", 1, class_label="benign")])
    (file.parent / "b.tsv").symlink_to("nowhere.tsv")
    _refused(tmp_path, r"b\.tsv: not a readable file")


@lookalike
@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_without_images(tmp_path: Path, rows: int) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [{"dataset_name": "23.X"}] * rows, ("dataset_name", "class_label"))
    _refused(tmp_path, r"disease_diagnosis/a\.tsv, field 'img_data': column missing .*; use the files")


@lookalike
def test_nothing_usable(tmp_path: Path) -> None:
    write_tsv(tmp_path / "data", "DD", "a.tsv", [])
    _refused(tmp_path, r"nothing usable in 0 rows \(no data rows\)")
    write_tsv(tmp_path / "data", "DD", "a.tsv", [PROSE])
    _refused(tmp_path, r"nothing usable in 1 rows")
    write_tsv(tmp_path / "data", "DD", "a.tsv", [row("23.X", 1)])
    _refused(tmp_path, r"nothing usable in 1 rows \(references: 1 absent\)")
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
