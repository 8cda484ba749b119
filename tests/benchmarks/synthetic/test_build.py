"""A built synthetic benchmark: exact references, a split by patient, the same bytes from the same seed."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from pathlib import Path

import cv2
import numpy as np
import pytest

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS
from sonogauge.answers.place import is_near_edge, place_of
from sonogauge.benchmarks.lint import lint_prompts
from sonogauge.benchmarks.spec import load_spec, read_spec
from sonogauge.benchmarks.synthetic.build import build_synthetic
from sonogauge.cases.geometry import box_centre, box_of_mask, decode_mask
from sonogauge.folders import Folder, Manifest
from sonogauge.items import Item
from sonogauge.sources.media import read_media

pytestmark = [pytest.mark.lookalike, pytest.mark.part("synthetic benchmark")]
PATIENTS = 8
SPEC = load_spec("synthetic")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Manifest]:
    out = tmp_path_factory.mktemp("synthetic") / "bench"
    manifest = build_synthetic(out, seed=4, patients=PATIENTS)
    return Folder(out, "benchmark"), manifest


@pytest.fixture(scope="module")
def bench(built: tuple[Folder, Manifest]) -> Folder:
    return built[0]


@pytest.fixture(scope="module")
def items(bench: Folder) -> list[Item]:
    return [Item.from_row(row) for row in bench.rows("items")]


def digest(folder: Path, name: str) -> str:
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_counts_and_ids(built: tuple[Folder, Manifest], items: list[Item]) -> None:
    bench, manifest = built
    assert manifest.counts["cases"] == PATIENTS * 6 == manifest.tables["cases"].rows
    assert manifest.counts["items"] == len(items) == manifest.tables["items"].rows
    per_patient = Counter((item.group, item.task, item.dataset) for item in items if item.split == "test")
    assert len(per_patient) == PATIENTS // 2 * len(SPEC.scenarios)
    assert max(per_patient.values()) == 2
    numbers = defaultdict(list)
    for item in items:
        task, dataset, number = item.item_id.split("/")
        assert (task, dataset) == (item.task, item.dataset)
        numbers[task, dataset].append(int(number))
    assert set(numbers) == {one.key for one in SPEC.scenarios}
    for found in numbers.values():
        assert found == list(range(1, len(found) + 1))
    assert [item.item_id for item in items] == sorted(item.item_id for item in items)
    assert read_spec(bench.path) == SPEC


def test_the_default_size_gives_enough_test_patients() -> None:
    share = SPEC.parameters["test_share"]
    assert SPEC.parameters["patients"] * share >= 24
    most = SPEC.parameters["test_items_per_scenario"] * len(SPEC.scenarios) * SPEC.parameters["patients"] * share
    assert 200 <= most <= 999


def test_no_patient_is_on_both_sides(items: list[Item]) -> None:
    sides = defaultdict(set)
    for item in items:
        sides[item.group].add(item.split)
    assert all(len(found) == 1 for found in sides.values())
    assert Counter(next(iter(found)) for found in sides.values()) == {"train": PATIENTS // 2, "test": PATIENTS // 2}


def test_every_case_is_marked_as_simulated(bench: Folder) -> None:
    for row in bench.rows("cases"):
        assert row["provenance"] == "simulated"
        assert row["redistributable"]
        assert row["known_issues"] == ["simulated, not clinical"]
        media = read_media(row["image"]["bytes"])
        assert (media.sha256, media.pixel_hash) == (row["sha256"], row["pixel_hash"])
        assert (media.width, media.height) == (row["width"], row["height"]) == (256, 256)
    assert "simulated, not clinical" in bench.manifest.notices
    assert SPEC.simulated
    assert "u2" not in SPEC.composites
    words = " ".join([*SPEC.composites, *(option for one in SPEC.scenarios for option in one.options)])
    assert "benign" not in words
    assert "malignant" not in words


def test_references_follow_from_the_masks_of_the_cases(bench: Folder, items: list[Item]) -> None:
    cases = {row["case_id"]: row for row in bench.rows("cases")}
    seen = Counter()
    for item in items:
        case = cases[item.images[0].case_id]
        masks = {mask["category"]: decode_mask(mask) for mask in case["masks"]}
        labels = {label["name"]: label["value"] for label in case["labels"]}
        if item.task in ("LL", "OD"):
            mask = masks.get("lesion" if item.task == "LL" else "tube")
            if mask is None:
                assert item.reference["places"] == ("not visible",)
                assert not item.reference["boxes"]
            else:
                box = box_of_mask(mask, "any")
                assert box is not None
                centre = box_centre(box, 256, 256)
                assert item.reference["places"] == (place_of(*centre),)
                assert item.meta["near_edge"] == ("1" if is_near_edge(*centre) else "0")
                assert {**item.reference["boxes"][0], "category": "any"} == box
        elif item.task == "KD" and case["points"]:
            (point,) = item.reference["points"]
            assert item.reference["places"] == (place_of(point["x"] / 256, point["y"] / 256),)
        elif item.task == "KD":
            assert item.reference["places"] == ("not visible",)
        elif item.task == "DD":
            assert item.reference["choices"] == (labels["lesion type"],)
            assert ("lesion" in masks) == (labels["lesion type"] != "no lesion")
        elif item.task == "CVE":
            mask = masks[item.dataset]
            _, _, w, h = cv2.boundingRect(mask.astype(np.uint8))
            pixels = item.reference["number"] / float(item.variables["pixel_size_mm"])
            assert item.answer.low is not None
            assert item.answer.high is not None
            assert item.answer.low <= item.reference["number"] <= item.answer.high
            if item.dataset == "lesion":
                assert max(w, h) - 1 <= pixels <= np.hypot(w, h) + 1
            else:
                # The largest circle inside, up to the centre of the first pixel outside.
                inner = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE).max()
                assert -1.5 <= 2 * inner - pixels <= 2
            assert f"{case['spacing']['x']:g}" == item.variables["pixel_size_mm"]
            assert f"{item.variables['pixel_size_mm']} mm wide" in item.question
        seen[item.task] += 1
    assert set(seen) == set(SPEC.tasks)


def test_cysts_are_darker_inside_than_around(bench: Folder) -> None:
    checked = 0
    for row in bench.rows("cases"):
        labels = {label["name"]: label["value"] for label in row["labels"]}
        if labels["lesion type"] != "cyst":
            continue
        image = cv2.imdecode(np.frombuffer(row["image"]["bytes"], np.uint8), cv2.IMREAD_GRAYSCALE)
        assert image is not None
        mask = next(decode_mask(one) for one in row["masks"] if one["category"] == "lesion")
        field = decode_mask(row["fan_mask"])
        near = cv2.dilate(mask.astype(np.uint8), np.ones((13, 13))).astype(bool)
        ring = near & ~cv2.dilate(mask.astype(np.uint8), np.ones((5, 5))).astype(bool) & field
        assert image[mask].mean() < 0.6 * image[ring].mean()
        checked += 1
    assert checked >= 4


def test_a_reference_put_as_a_reply_is_read_as_that_reference(items: list[Item]) -> None:
    for item in items:
        form = FORMS.load(item.answer.form)
        value = item.reference[form.field]
        text = str(value if form.field == "number" else value[0])
        parsed = form.parse(text, item.answer)
        assert parsed.valid
        assert str(parsed.value) == text


def test_texts_vary_and_say_the_facts(items: list[Item]) -> None:
    reports = [item.reference["texts"][0] for item in items if item.task == "RG"]
    assert len(set(reports)) > 0.9 * len(reports)
    by_case = {item.images[0].case_id: item.reference for item in items if item.task == "DD"}
    for item in items:
        if item.task in ("RG", "CG") and item.images[0].case_id in by_case:
            kind = by_case[item.images[0].case_id]["choices"][0]
            text = item.reference["texts"][0].lower()
            words = {"cyst": "cyst", "solid lesion": "solid", "shadowing lesion": "shadow", "no lesion": "lesion"}
            assert words[kind] in text
            assert ("cyst" in text) == (kind == "cyst")
            assert ("solid" in text) == (kind == "solid lesion")
            assert not set("{}\n") & set(text)


def test_prompts_are_clean() -> None:
    assert lint_prompts(SPEC) == []


def test_the_same_seed_gives_the_same_bytes(built: tuple[Folder, Manifest], tmp_path: Path) -> None:
    bench, manifest = built
    again = build_synthetic(tmp_path / "again", seed=4, patients=PATIENTS)
    assert again == manifest
    for name in ("manifest.json", "benchmark.json", "cases.parquet", "items.parquet"):
        assert digest(tmp_path / "again", name) == digest(bench.path, name)
    other = build_synthetic(tmp_path / "other", seed=5, patients=2, images_per_patient=2)
    images = {row["pixel_hash"] for row in Folder(tmp_path / "other").rows("cases")}
    assert other.hash != manifest.hash
    assert images.isdisjoint(row["pixel_hash"] for row in bench.rows("cases"))


def test_a_patient_does_not_depend_on_how_many_there_are(bench: Folder, tmp_path: Path) -> None:
    build_synthetic(tmp_path / "few", seed=4, patients=2)
    few = {row["case_id"]: row["sha256"] for row in Folder(tmp_path / "few").rows("cases")}
    many = {row["case_id"]: row["sha256"] for row in bench.rows("cases")}
    assert few.items() <= many.items()


def test_progress_and_bad_input(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    build_synthetic(
        tmp_path / "b", patients=3, images_per_patient=2, progress=lambda done, all_of: calls.append((done, all_of))
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(BadInput, match="exists already"):
        build_synthetic(tmp_path / "b", patients=3)
    for field, arguments in (("patients", {"patients": 1}), ("images_per_patient", {"images_per_patient": 0})):
        with pytest.raises(BadInput, match=field):
            build_synthetic(tmp_path / "c", **arguments)
    with pytest.raises(BadInput, match="seed"):
        build_synthetic(tmp_path / "c", seed=-1)
    assert not (tmp_path / "c").exists()
