"""BUSI and HC18 become UltraG items and go the whole way; the same with official files; what is refused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.shared import shared_data

from sonogauge import import_cases
from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.audit import audit_files
from sonogauge.benchmarks.ultrag.official import write_official
from sonogauge.benchmarks.ultrag.splits import Member, split_source
from sonogauge.benchmarks.ultrag.vocabulary import SourceFacts
from sonogauge.build import build, build_report
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.baselines import baseline_replies
from sonogauge.score import score
from sonogauge.score.replies import Reply, ReplySource

pytestmark = [pytest.mark.part("ultrag"), pytest.mark.real]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ultrag-cases")
    for name in ("busi", "hc18"):
        import_cases(name, shared_data(name), place / name)
    return place


@pytest.fixture(scope="module")
def bench(cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    out = tmp_path_factory.mktemp("ultrag") / "bench"
    build("ultrag", cases, out)
    return Folder(out)


def items_of(folder: Folder, task: str = "") -> list[Item]:
    return [item for row in folder.rows("items") if (item := Item.from_row(row)).task == task or not task]


def replies(folder: Folder, name: str = "oracle", split: str = "test") -> ReplySource:
    own = [item for item in items_of(folder) if item.split == split]
    texts = baseline_replies(name, own, [])
    return ReplySource(
        name,
        [Reply(item.item_id, "", 0, "", "ok", text) for item, text in zip(own, texts, strict=True)],
        "0",
        folder.path,
        split=split,
    )


def test_images_of_both_sources(bench: Folder) -> None:
    counts = bench.manifest.counts
    # 15 of BUSI, of which 4 are stated to be normal; 12 of HC18, whose test images nobody has outlined.
    assert counts["images"] == 27
    assert counts["cases without masks that are not stated to show no target, not used"] == 4
    assert counts["leakage"]["BUSI"]["groups"] == "cannot be checked"
    assert counts["leakage"]["HC"] == {"groups": 12, "in both parts": 0}
    assert counts["audit"]["data quality pass"] == counts["audit"]["clinical report pass"] == 27
    assert counts["audit"]["mean score"] == 100.0
    assert bench.manifest.parameters["reference_origin"] == "toolkit"
    assert any("leakage HC: 0 of 12" in line for line in build_report(bench.manifest))


def test_items_of_a_lesion_with_three_parts(bench: Folder) -> None:
    own = [item for item in items_of(bench) if item.images[0].case_id == "busi/benign (195)"]
    assert Counter(item.task for item in own) == {"SEG": 2, "VQA": 6, "RPT": 1}
    by_type = {item.meta["reasoning_type"]: item for item in own if item.task == "VQA"}
    assert by_type["count"].reference["texts"] == ("3",) and len(by_type["count"].reference["masks"]) == 3
    assert by_type["label"].reference["texts"] == ("benign",) and len(by_type["measurement"].reference["masks"]) == 1
    assert {mask["category"] for item in own for mask in item.reference["masks"]} == {"breast lesion"}
    assert all(item.meta["reference_origin"] == "toolkit" and item.meta["category"] == "Breast" for item in own)
    report = next(item for item in own if item.task == "RPT")
    assert json.loads(report.meta["finding_types"])[0] == "breast_lesion_presence_location"
    assert report.image_size == (int(report.meta["width"]), int(report.meta["height"]))


def test_items_without_a_target(bench: Folder) -> None:
    own = [item for item in items_of(bench) if item.images[0].case_id.startswith("busi/normal")]
    assert Counter(item.task for item in own) == {"SEG": 4, "VQA": 16, "RPT": 4}
    assert all(item.reference["masks"] == () for item in own)
    assert {item.meta["requires_grounding"] for item in own if item.task == "VQA"} == {"0"}
    assert {item.meta["answerability"] for item in own if item.task == "SEG"} == {"no_target"}


def test_questions_are_asked_in_our_words(bench: Folder) -> None:
    for item in items_of(bench):
        words = item.question.lower()
        assert f'"width": {item.meta["width"]}' in item.question and "pixels of the original image" in item.question
        assert not any(word in words for word in ("annotation", "annotated", "dataset", "mask id", "metadata"))
        # The reference must not stand in the question.
        assert (
            item.task != "VQA" or item.meta["reasoning_type"] != "location" or item.reference["texts"][0] not in words
        )
    report = items_of(bench, "RPT")[0]
    assert '"finding_types"' in report.question


def test_oracle_is_perfect_and_empty_masks_are_not(bench: Folder) -> None:
    found = score(replies(bench), bench=bench.path, draws=200)
    value = {
        (row["protocol"], row["task"], row["metric"]): row["value"]
        for row in found.metrics
        if row["model"] == "oracle" and not row["dataset"] and not row["slice"]
    }
    for protocol in ("strict", "published"):
        for task, names in {
            "SEG": ("iou", "dice", "giou", "seg_mark"),
            "VQA": ("g_acc", "iou", "acc_grounded", "acc_count"),
            "RPT": ("sem_acc", "rouge_l_beta1", "report_grounding", "finding_f1", "sem_size"),
        }.items():
            assert [value[protocol, task, name] for name in names] == pytest.approx([1.0] * len(names)), protocol
    for name in ("reference_origin", "split", "category_pooling", "cell_of", "keep_negatives", "semacc_flags"):
        assert found.manifest.parameters[name] == bench.manifest.parameters[name]
    for protocol in ("strict", "published"):
        assert (value[protocol, "SEG", "hd95"], value[protocol, "SEG", "nsd"]) == (0.0, 1.0)
        assert value[protocol, "SEG", "ciou"] == value[protocol, "SEG", "lesion_f1"] == 1.0
    assert value["strict", "VQA", "acc"] == 1.0
    # As published, a location question without a target can never be right.
    assert value["published", "VQA", "acc_location"] < 1.0
    assert value["strict", "SEG", "format_rate"] == value["strict", "VQA", "right_wrong_pixels"] == 0.0


def test_empty_masks_hit_what_has_no_target_alone(bench: Folder) -> None:
    found = score(replies(bench, "not-visible"), bench=bench.path, draws=200, baselines=False)
    value = {
        (row["task"], row["dataset"], row["metric"]): row["value"]
        for row in found.metrics
        if row["protocol"] == "strict" and not row["slice"]
    }
    assert value["SEG", "BUSI", "iou"] == value["SEG", "HC", "dice"] == 0.0
    assert value["SEG", "BUSI", "null_accuracy"] == 1.0 and value["SEG", "HC", "false_null_rate"] == 1.0
    assert value["SEG", "HC", "missed_rate"] == 1.0
    # No item without a target in HC: the task's value is that of BUSI.
    assert value["SEG", "", "null_accuracy"] == 1.0 and value["SEG", "HC", "null_accuracy"] is None


def test_coordinates_of_a_model_that_counts_to_a_thousand(bench: Folder) -> None:
    own = [item for item in items_of(bench, "SEG") if item.split == "test" and item.dataset == "HC"]
    texts = [json.dumps({"answer": "[SEG]", "predicted_mask": {"box": [0, 0, 1000, 999]}}) for _ in own]
    said = ReplySource(
        "m",
        [Reply(item.item_id, "", 0, "", "ok", text) for item, text in zip(own, texts, strict=True)],
        "0",
        bench.path,
        asked=frozenset(item.item_id for item in own),
    )
    plain = score(said, bench=bench.path, draws=200, baselines=False, scenarios="present")
    declared = score(said, bench=bench.path, draws=200, baselines=False, scenarios="present", coords="mille")
    # The image is 800 x 540: half of the four numbers lie outside, which is not yet more than half.
    outside = [row for row in plain.metrics if row["metric"] == "coords_outside" and row["dataset"] == "HC"]
    assert outside[0]["value"] == 0.5 and not any("--coords" in notice for notice in plain.manifest.notices)
    assert {row["protocol"] for row in declared.metrics} == {"strict", "published+coords"}
    strict = [row for row in declared.metrics if row["metric"] == "iou" and row["protocol"] == "strict"]
    assert strict and all("coords:mille" in row["signature"] for row in strict)
    unit = score(said, bench=bench.path, draws=200, baselines=False, scenarios="present", coords="unit")
    assert not any("--coords" in notice for notice in unit.manifest.notices)
    far = replace(said, replies=[one._replace(text=one.text.replace("[0, 0,", "[900, 900,")) for one in said.replies])
    warned = score(far, bench=bench.path, draws=200, baselines=False, scenarios="present")
    assert any("lie outside their declared range" in notice for notice in warned.manifest.notices)
    with pytest.raises(BadInput, match="no coordinates 'percent'"):
        score(said, bench=bench.path, draws=200, coords="percent")


def test_the_same_cases_give_the_same_bytes(cases: Path, bench: Folder, tmp_path: Path) -> None:
    build("ultrag", cases, tmp_path / "again")
    for file in sorted(bench.path.rglob("*")):
        if file.is_file() and file.name != "manifest.json":
            assert (tmp_path / "again" / file.relative_to(bench.path)).read_bytes() == file.read_bytes(), file.name
    assert Folder(tmp_path / "again").manifest.hash == bench.manifest.hash


def test_published_split_and_options(cases: Path, tmp_path: Path) -> None:
    found = build("ultrag", cases, tmp_path / "a", split="published", keep_negatives=False, coords="mille:yxyx")
    assert found.counts["images"] == 23 and found.counts["images without a target, not kept"] == 4
    items = items_of(Folder(tmp_path / "a"))
    assert {item.answer.unit for item in items} == {"mille:yxyx"} and "thousandths" in items[0].question
    own = {item.images[0].case_id: item.split for item in items}
    assert Counter(own.values()) == {"train": 17, "test": 6}
    for option, text in (("split", "random"), ("cell_of", "corner"), ("coords", "percent")):
        with pytest.raises(BadInput, match=text):
            build("ultrag", cases, tmp_path / "b", **{option: text})
    with pytest.raises(BadInput, match="no parameter 'pooling'"):
        build("ultrag", cases, tmp_path / "b", parameters={"pooling": 1})
    with pytest.raises(BadInput, match="neither cases nor"):
        build("ultrag", shared_data("busi"), tmp_path / "b")


def test_official_files_there_and_back(bench: Folder, tmp_path: Path) -> None:
    assert write_official(bench.path, tmp_path / "files") == {"Breast": 15, "Fetal": 12}
    record = json.loads((tmp_path / "files/annotations/Breast.jsonl").read_text().splitlines()[0])
    place = tmp_path / "files/datasets/Breast/Datasets" / record["dataset"] / record["split"]
    assert (place / record["image"]["file_name"]).is_file()
    coco = json.loads((place / "_annotations.coco.json").read_text())
    assert {"images", "annotations", "categories"} <= set(coco)
    found = build("ultrag", tmp_path / "files", tmp_path / "bench")
    assert found.counts["images"] == 27 and found.counts["lines read"] == 27
    # What the files say, not what a build without files would do.
    assert found.parameters["split"] == "as in the files" and found.parameters["reference_origin"] == "toolkit"
    first, second = ({item.item_id: item for item in items_of(one)} for one in (bench, Folder(tmp_path / "bench")))
    assert set(first) == set(second)
    for name, item in first.items():
        assert second[name].reference == item.reference and second[name].split == item.split
        assert second[name].question == item.question
    again = score(replies(Folder(tmp_path / "bench")), bench=tmp_path / "bench", draws=200, baselines=False)
    assert next(row for row in again.metrics if row["metric"] == "iou" and row["task"] == "SEG")["value"] == 1.0
    with pytest.raises(BadInput, match="exists already"):
        write_official(bench.path, tmp_path / "files")


def test_the_export_in_the_official_layout_keeps_back_what_may_not_leave(bench: Folder, tmp_path: Path) -> None:
    import shutil

    import pyarrow as pa
    import pyarrow.parquet as pq

    from sonogauge.export import export

    done = export(bench.path, "ultrag", tmp_path / "open")
    assert done.files == {"annotations/Breast.jsonl": 15, "annotations/Fetal.jsonl": 12} and done.withheld == 0
    assert build("ultrag", tmp_path / "open", tmp_path / "again").counts["lines read"] == 27
    shutil.copytree(bench.path, tmp_path / "closed")
    table = pq.read_table(tmp_path / "closed/cases.parquet")
    may = pa.array([source != "hc18" for source in table["source"].to_pylist()])
    assert 0 < sum(may.to_pylist()) < len(may)
    table = table.set_column(
        table.schema.get_field_index("redistributable"), table.schema.field("redistributable"), may
    )
    pq.write_table(table, tmp_path / "closed/cases.parquet")
    done = export(tmp_path / "closed", "ultrag", tmp_path / "part")
    assert done.files == {"annotations/Breast.jsonl": 15} and done.withheld > 0
    assert not (tmp_path / "part/datasets/Fetal").exists() and (tmp_path / "part/withheld.jsonl").is_file()


def test_the_export_in_the_official_layout_keeps_back_what_is_private(bench: Folder, tmp_path: Path) -> None:
    import shutil

    import pyarrow as pa
    import pyarrow.parquet as pq

    from sonogauge.export import export

    shutil.copytree(bench.path, tmp_path / "mixed")
    table = pq.read_table(tmp_path / "mixed/cases.parquet")
    private = pa.array([source == "hc18" for source in table["source"].to_pylist()])
    table = table.set_column(table.schema.get_field_index("private"), table.schema.field("private"), private)
    pq.write_table(table, tmp_path / "mixed/cases.parquet")
    assert write_official(tmp_path / "mixed", tmp_path / "written") == {"Breast": 15}
    assert not (tmp_path / "written/datasets/Fetal").exists()
    done = export(tmp_path / "mixed", "ultrag", tmp_path / "part")
    assert done.files == {"annotations/Breast.jsonl": 15} and done.private > 0 and done.withheld == 0
    content = b"".join(one.read_bytes() for one in sorted((tmp_path / "part").rglob("*")) if one.is_file())
    for row in table.select(["case_id", "image", "sha256", "private"]).to_pylist():
        assert (row["image"]["bytes"] in content) != row["private"], row["case_id"]
        assert not (row["private"] and row["sha256"].encode() in content), row["case_id"]


def test_the_audit_of_official_files_counts_lines_that_do_not_read(bench: Folder, tmp_path: Path) -> None:
    write_official(bench.path, tmp_path / "files")
    file = tmp_path / "files/annotations/Breast.jsonl"
    file.write_text(file.read_text() + "{torn\n")
    file.rename(file.with_name("all_of_it.jsonl"))
    found = build("ultrag", tmp_path / "files", tmp_path / "bench")
    assert found.counts["lines read"] == 28 and found.counts["dropped: not a whole record"] == 1
    assert found.counts["audit"]["records"] == 28 and found.counts["audit"]["critical"] == 1
    assert "critical,unreadable line" in (tmp_path / "bench/audit/issues.csv").read_text()


def _changed(folder: Path, change: Any) -> None:
    """Change every record of a folder in the official layout."""
    for file in folder.rglob("*.jsonl"):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        for record in records:
            change(record)
        file.write_text("\n".join(json.dumps(record) for record in records))


def test_official_files_with_faults(bench: Folder, tmp_path: Path) -> None:
    write_official(bench.path, tmp_path / "files")
    _changed(tmp_path / "files", lambda record: record["annotation"].pop("grounded_report"))
    with pytest.raises(BadInput, match="27 of 27 records cannot be used: not a whole record"):
        build("ultrag", tmp_path / "files", tmp_path / "bench")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("image", "width"), 1e999),
        (("image", "width"), 5),
        (("image", "file_name"), "../a.png"),
        (("dataset",), "Unknown_coco"),
        (("split",), "validation"),
        (("sample_id",), None),
        (("masks",), {"a": 1}),
        (("annotation", "grounded_vqa"), None),
        (("annotation", "grounded_vqa", 0, "evidence_mask_ids"), "abc"),
        (("annotation", "grounded_vqa", 0, "requires_grounding"), "yes"),
        (("annotation", "grounded_report", "sentences", 0, "text"), 5),
        (("annotation", "segmentation_tasks", 0, "target_mask_ids"), [["a"]]),
    ],
)
def test_broken_records_are_counted_by_cause(bench: Folder, tmp_path: Path, path: tuple[Any, ...], value: Any) -> None:
    files = tmp_path / "files"
    write_official(bench.path, files)

    def change(record: dict[str, Any]) -> None:
        place: Any = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    _changed(files, change)
    with pytest.raises(BadInput, match="27 of 27 records cannot be used: "):
        build("ultrag", files, tmp_path / "bench")
    assert len(audit_files(sorted(files.rglob("*.jsonl"))).records) == 27


def test_a_cited_mask_without_geometry_stops_the_build(bench: Folder, tmp_path: Path) -> None:
    write_official(bench.path, tmp_path / "files")
    _changed(
        tmp_path / "files",
        lambda record: record["annotation"]["grounded_vqa"][0].update(evidence_mask_ids=["img9_ann9"]),
    )
    with pytest.raises(BadInput, match="cites mask 'img9_ann9', which has no geometry"):
        build("ultrag", tmp_path / "files", tmp_path / "bench")


def test_runs_that_do_not_add_up_in_coco(bench: Folder, tmp_path: Path) -> None:
    write_official(bench.path, tmp_path / "files")
    for file in (tmp_path / "files").rglob("_annotations.coco.json"):
        content = json.loads(file.read_text())
        for annotation in content["annotations"]:
            annotation["segmentation"]["counts"] = [5]
        file.write_text(json.dumps(content))
    with pytest.raises(BadInput, match="run-length code that does not fit its image"):
        build("ultrag", tmp_path / "files", tmp_path / "bench")


def test_a_source_without_a_category(tmp_path: Path) -> None:
    build("synthetic", None, tmp_path / "syn", patients=3, images_per_patient=3)
    found = build("ultrag", tmp_path / "syn", tmp_path / "bench")
    assert found.counts["leakage"]["synthetic"]["in both parts"] == 0
    assert {item.meta["category"] for item in items_of(Folder(tmp_path / "bench"))} == {"Simulated"}


@pytest.mark.parametrize("rule", ["patient_safe", "published"])
def test_splits(rule: str) -> None:
    members = [Member(f"c{n}", f"p{n // 4}", True, "", "benign" if n % 2 else "malignant") for n in range(40)]
    found = split_source(members, SourceFacts(split="image"), rule)
    parts = {split: {one.group for one in members if found[one.case_id] == split} for split in ("train", "test")}
    assert Counter(found.values())["test"] == 8
    assert bool(parts["train"] & parts["test"]) == (rule == "published")
    own = [Member(f"c{n}", f"p{n}", True, "test" if n < 3 else "train") for n in range(9)]
    assert Counter(split_source(own, SourceFacts(split="own"), rule).values()) == {"train": 6, "test": 3}
    assert len(split_source(own, SourceFacts(split="image"), rule)) == 9
    with pytest.raises(BadInput, match="no split"):
        split_source(own, SourceFacts(), "other")
