"""The quality stage: faults of pictures, annotations and labels, tags, marks, fingerprints."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sonogauge.build.fingerprint import ORIENTATIONS, decode, orient, sign
from sonogauge.build.recipe import QualityRule
from sonogauge.build.stages.marks import has_callipers, has_text, tags_of
from sonogauge.build.stages.quality import EXAMINED, Examine, check_labels
from tests.build.made_batches import batch_of
from tests.build.made_cases import breast_cases, case, disc, picture, png
from tests.shared import require_extra, shared_data

pytestmark = pytest.mark.part("recipes")


def findings_of(row: dict[str, Any], rule: QualityRule | None = None) -> list[str]:
    (out,) = Examine(rule or QualityRule())(batch_of(row)).to_pylist()
    return list(out["findings"])


def test_a_good_case_has_no_finding_and_all_numbers() -> None:
    mask = disc(128, 0.5, 0.5, 0.2)
    batch = Examine(QualityRule())(batch_of(case("a", picture(0), {"lesion": mask})))
    (out,) = batch.to_pylist()
    assert batch.schema == EXAMINED
    assert out["findings"] == []
    assert out["shares"] == [{"category": "lesion", "share": mask.mean()}]
    assert out["spread"] == pytest.approx(float(picture(0).std()), abs=1e-3)
    assert out["pixels"] == sign(picture(0)).pixels


def test_faults_of_pictures_are_found() -> None:
    grey = np.full((128, 128), 90, np.uint8)
    assert findings_of(case("a", b"no image")) == ["unreadable"]
    assert findings_of(case("a", png(picture(0))[:300])) == ["unreadable"]
    assert findings_of(case("a", grey)) == ["blank"]
    assert "tiny" in findings_of(case("a", picture(0, 24)))
    assert "blurred" in findings_of(case("a", cv2.GaussianBlur(picture(0), (0, 0), 9)))
    assert "dark" in findings_of(case("a", (picture(0) // 16).astype(np.uint8)))
    assert "overexposed" in findings_of(case("a", (200 + picture(0) // 5).astype(np.uint8)))


def test_faults_of_annotations_are_found() -> None:
    pixels = picture(0)
    wrong = {**case("a", pixels, {"lesion": disc(100, 0.5, 0.5, 0.2)})}
    assert "size of a mask" in findings_of(wrong)
    broken = case("a", pixels, {"lesion": disc(128, 0.5, 0.5, 0.2)})
    broken["masks"][0]["counts"] = "zzz"
    assert "broken mask" in findings_of(broken)
    for box in ({"x": 120, "w": 20}, {"y": -5}, {"w": 0}, {"h": float("nan")}):
        row = case("a", pixels)
        row["boxes"] = [{"category": "lesion", "x": 1.0, "y": 1.0, "w": 5.0, "h": 5.0} | box]
        assert "box outside" in findings_of(row), box


def test_a_check_that_is_off_finds_nothing() -> None:
    row = case("a", picture(0), meta={"PatientName": "x"})
    assert findings_of(row) == ["identifying tag: PatientName"]
    assert findings_of(row, QualityRule(checks={"identifying tag": "off"})) == []


def test_a_bare_off_is_off() -> None:
    rule = QualityRule.model_validate(yaml.safe_load("checks: {blurred: off, tiny: flag}"))
    assert (rule.action("blurred"), rule.action("tiny")) == ("off", "flag")


def test_labels_missing_twofold_and_against_the_annotation() -> None:
    rule = QualityRule.model_validate(
        {"needs": ["pathology"], "contradictions": [{"label": {"pathology": "normal"}, "category": "lesion"}]}
    )
    lesion = {"lesion": disc(128, 0.5, 0.5, 0.2)}
    assert check_labels(case("a", picture(0)), rule) == ["missing label: pathology"]
    twice = case("a", picture(0))
    twice["labels"] = [{"name": "pathology", "value": value} for value in ("benign", "malignant")]
    assert check_labels(twice, rule) == ["contradicting labels: pathology"]
    against = case("a", picture(0), lesion, labels={"pathology": "normal"})
    assert check_labels(against, rule) == ["contradicting labels: pathology normal with lesion"]
    assert check_labels(case("a", picture(0), lesion, labels={"pathology": "benign"}), rule) == []


def test_tags_that_name_someone_are_found() -> None:
    image = Image.fromarray(picture(0))
    plain, named, texts = io.BytesIO(), io.BytesIO(), io.BytesIO()
    exif = Image.Exif()
    exif[0x0131] = "some software"
    image.save(plain, "JPEG", exif=exif)
    exif[0x013B] = "Dr Who"
    exif.get_ifd(0x8769)[0xA431] = "serial"
    exif.get_ifd(0x8825)[1] = "N"
    image.save(named, "JPEG", exif=exif)
    info = PngInfo()
    info.add_text("Author", "someone")
    info.add_text("Software", "scanner")
    image.save(texts, "PNG", pnginfo=info)
    behind, late = io.BytesIO(), PngInfo()
    late.add(b"tEXt", b"Patient\0someone", after_idat=True)
    image.save(behind, "PNG", pnginfo=late)
    assert tags_of(behind.getvalue()) == ["Patient"]
    assert tags_of(behind.getvalue()[:60]) == []
    assert tags_of(plain.getvalue()) == []
    assert tags_of(named.getvalue()) == ["Artist", "BodySerialNumber", "GPSInfo"]
    assert tags_of(texts.getvalue()) == ["Author"]
    assert tags_of(png(picture(0)), [{"name": "patient_birth_date", "value": "1950"}]) == ["PatientBirthDate"]


@pytest.mark.real
def test_tags_of_a_dicom_file() -> None:
    require_extra("medical", "pydicom")
    files = sorted(shared_data("dicom_us").rglob("*.dcm"))
    found = {file.name: tags_of(file.read_bytes()) for file in files}
    assert {"PatientID", "PatientName"} <= set(found["examples_palette.dcm"])
    # The one file whose makers took the names out.
    assert found["US-YBR_FULL_422-EVRLE.dcm"] == []


@pytest.mark.real
def test_writing_and_callipers_in_real_pictures() -> None:
    # Looked at by eye: five of these fifteen pictures carry words, two of them callipers.
    with_words = {"benign (195)", "benign (4)", "benign (52)", "malignant (10)", "malignant (53)"}
    with_callipers = {"malignant (10)", "malignant (53)"}
    pictures = {file.stem: decode(file.read_bytes()) for file in shared_data("busi", "data").glob("*/images/*.png")}
    assert len(pictures) == 15
    assert {name for name, pixels in pictures.items() if pixels is not None and has_text(pixels)} == with_words
    assert {name for name, pixels in pictures.items() if pixels is not None and has_callipers(pixels)} == with_callipers


def test_writing_on_the_dark_ground_and_drawn_crosses() -> None:
    pixels = picture(3, 300)
    pixels[:60] = 0
    assert not has_text(pixels)
    cv2.putText(pixels, "GAIN 45 DR 60", (20, 40), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 160, 2)
    assert has_text(pixels)
    plain = np.minimum(picture(4, 300), 150)
    assert not has_callipers(plain)
    for x, y in ((80, 120), (200, 180)):
        cv2.drawMarker(plain, (x, y), 255, cv2.MARKER_CROSS, 15, 1)
    assert has_callipers(plain)


def test_the_way_of_storing_leaves_the_pixel_hash() -> None:
    pixels = picture(0)
    coloured = np.repeat(pixels[:, :, None], 3, axis=2)
    stream = io.BytesIO()
    Image.fromarray(coloured).save(stream, "BMP")
    found = [decode(data) for data in (png(pixels), png(coloured), stream.getvalue())]
    assert {sign(one).pixels for one in found if one is not None} == {sign(pixels).pixels}
    assert sign(np.ascontiguousarray(pixels[:, ::-1])).pixels != sign(pixels).pixels


def test_codes_of_an_orientation_are_those_of_the_turned_picture() -> None:
    pixels = picture(5)
    codes = sign(pixels).codes[0]
    for orientation in range(ORIENTATIONS):
        turned = sign(orient(pixels, orientation)).codes[0, 0]
        assert int(np.bitwise_count(turned ^ codes[orientation])) <= 2, orientation


def test_examining_does_not_depend_on_the_batches() -> None:
    rows = breast_cases(6)
    whole = Examine(QualityRule())(batch_of(*rows)).to_pylist()
    assert whole == [row for one in rows for row in Examine(QualityRule())(batch_of(one)).to_pylist()]
