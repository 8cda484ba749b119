"""DICOM and video on real files: colours as other decoders give them, spacing as the tags say."""

from __future__ import annotations

import io
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.shared import require_extra, shared_data
from tests.sources.pictures import facts, imported

from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.dicom import open_dicom
from sonogauge.sources.readers.video import open_video

pytestmark = [pytest.mark.real, pytest.mark.part("readers")]


def _read(path: Path) -> Any:
    pydicom = require_extra("medical", "pydicom")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pydicom.dcmread(path)


def _rgb_of_ybr(ybr: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # PS3.3 C.7.6.3.1.2, the inverse of the matrix given there.
    y, cb, cr = (ybr[..., place].astype(float) - (0, 128, 128)[place] for place in range(3))
    rgb = np.stack([y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb], axis=-1)
    return np.clip(np.rint(rgb), 0, 255)


def _dicoms(name: str) -> list[Path]:
    return sorted(shared_data(name).rglob("*.dcm"))


def test_raw_ybr_full_422_is_the_matrix_of_the_standard() -> None:
    path = next(path for path in _dicoms("dicom_us") if path.name.startswith("SC_ybr"))
    data = _read(path)
    raw = np.frombuffer(data.PixelData[: data.Rows * data.Columns * 2], dtype=np.uint8).reshape(data.Rows, -1, 4)
    # Two pixels share Cb and Cr: Y1 Y2 Cb Cr.
    ybr = np.empty((data.Rows, data.Columns, 3), dtype=np.uint8)
    ybr[:, 0::2, 0], ybr[:, 1::2, 0] = raw[..., 0], raw[..., 1]
    for place in (1, 2):
        ybr[..., place] = np.repeat(raw[..., place + 1], 2, axis=1)
    found = open_dicom(path).array(0)
    assert found.shape == (data.Rows, data.Columns, 3) and found.dtype == np.uint8
    assert np.abs(found - _rgb_of_ybr(ybr)).max() <= 1


def test_run_length_ybr_422_has_the_colours_of_its_components() -> None:
    path = next(path for path in _dicoms("dicom_us") if "EVRLE" in path.name)
    pixels = require_extra("medical", "pydicom.pixels")
    raw = pixels.pixel_array(_read(path), raw=True)
    assert np.abs(open_dicom(path).array(0) - _rgb_of_ybr(raw)).max() <= 1


def test_jpeg_ybr_cine_has_the_colours_of_pillow_in_every_frame() -> None:
    encaps = require_extra("medical", "pydicom.encaps")
    path = next(path for path in _dicoms("dicom_us") if path.name == "examples_ybr_color.dcm")
    data = _read(path)
    stack = open_dicom(path)
    assert len(stack) == int(data.NumberOfFrames) == 30
    for number, frame in enumerate(encaps.generate_frames(data.PixelData, number_of_frames=30)):
        with Image.open(io.BytesIO(frame)) as image:
            shown = np.asarray(image.convert("RGB")).astype(int)
        assert np.abs(stack.array(number) - shown).mean() < 2  # decoders round differently
    delta = float(data.SequenceOfUltrasoundRegions[0].PhysicalDeltaX)
    # This copy has 320 x 240 pixels but the region of its original, 640 x 480: its pixels are twice as large as stated.
    assert (data.Columns, data.Rows) == (320, 240) and stack.spacing is None
    assert any("made smaller" in note for note in stack.notes)
    if (more := find_spec("data_store")) is not None:
        (folder,) = more.submodule_search_locations or ("",)
        original = open_dicom(Path(folder) / "data" / "color3d_jpeg_baseline.dcm")
        assert original.spacing == (pytest.approx(10 * delta), pytest.approx(10 * delta))


def test_palette_and_rgb_files() -> None:
    for path in _dicoms("dicom_us"):
        data = _read(path)
        if path.name == "examples_rgb_color.dcm":
            raw = np.frombuffer(data.PixelData, dtype=np.uint8).reshape(data.Rows, data.Columns, 3)
            assert np.array_equal(open_dicom(path).array(0), raw)
        elif path.name == "examples_palette.dcm":
            index = np.frombuffer(data.PixelData, dtype=np.uint8).reshape(data.Rows, data.Columns)
            tables = [data[f"{colour}PaletteColorLookupTableData"].value for colour in ("Red", "Green", "Blue")]
            shift = 8 if data.RedPaletteColorLookupTableDescriptor[2] == 16 else 0
            kind = "<u2" if shift else np.uint8
            expected = np.stack([np.frombuffer(one, dtype=kind)[index] >> shift for one in tables], axis=-1)
            assert np.array_equal(open_dicom(path).array(0), expected)


def _ultrasound_of_pydicom() -> list[tuple[Path, Any]]:
    data = require_extra("medical", "pydicom.data")
    folders = [Path(str(data.__file__)).parent / "test_files"]
    if (more := find_spec("data_store")) is not None:  # the package pydicom-data holds the larger ones
        folders += [Path(folder) / "data" for folder in more.submodule_search_locations or ()]
    found = []
    for path in sorted(one for folder in folders for one in folder.rglob("*.dcm")):
        try:
            header = _read(path)
        except Exception:
            continue  # some of these files are broken on purpose
        if "PixelData" in header and header.get("Modality") == "US":
            found.append((path, header))
    return found


def test_every_ultrasound_file_of_pydicom_decodes() -> None:
    files = _ultrasound_of_pydicom()
    assert len(files) >= 4
    for path, header in files:
        stack = open_dicom(path)
        for number in {0, len(stack) - 1}:
            pixels = stack.array(number)
            assert pixels.dtype == np.uint8 and pixels.shape[:2] == (header.Rows, header.Columns)
            assert pixels.ndim == 3 or header.PhotometricInterpretation.startswith("MONOCHROME")
            assert pixels.std() > 1, path


@pytest.mark.parametrize("name", ["JPEG2000.dcm", "MR_small_jp2klossless.dcm", "SC_rgb_gdcm_KY.dcm"])
def test_jpeg_2000_decodes(name: str) -> None:
    require_extra("medical", "openjpeg")
    data = require_extra("medical", "pydicom.data")
    path = Path(data.get_testdata_file(name, download=False))
    pixels = open_dicom(path).array(0)
    assert pixels.dtype == np.uint8 and pixels.std() > 1


def test_jpeg_2000_without_loss_is_the_raw_picture() -> None:
    require_extra("medical", "openjpeg")
    data = require_extra("medical", "pydicom.data")
    packed, raw = (Path(data.get_testdata_file(f"MR_small{end}.dcm", download=False)) for end in ("_jp2klossless", ""))
    assert np.array_equal(open_dicom(packed).array(0), open_dicom(raw).array(0))


def test_byte_order_and_packing_change_no_colour() -> None:
    found = {path.name: path for path, _ in _ultrasound_of_pydicom()}
    for plain, others in (
        ("OBXXXX1A.dcm", ("OBXXXX1A_expb.dcm", "OBXXXX1A_rle.dcm")),
        ("gdcm-US-ALOKA-16.dcm", ("gdcm-US-ALOKA-16_big.dcm",)),
        ("US1_UNCR.dcm", ("US1_J2KR.dcm",)),
    ):
        if plain not in found:
            require_extra("test", "data_store")
        for other in others:
            assert np.array_equal(open_dicom(found[plain]).array(0), open_dicom(found[other]).array(0)), other


def test_files_without_an_image_or_without_dicom_are_faults(tmp_path: Path) -> None:
    data = require_extra("medical", "pydicom.data")
    with pytest.raises(MediaFault, match="no image"):
        open_dicom(Path(data.get_testdata_file("rtplan.dcm", download=False)))
    text = tmp_path / "x.dcm"
    text.write_bytes(b"not a DICOM file" * 40)
    with pytest.raises(MediaFault):
        open_dicom(text).array(0)


def test_the_spacing_of_a_region_gives_the_distance_that_the_scanner_printed() -> None:
    import cv2

    path = next(path for path in _dicoms("dicom_us") if path.name == "examples_palette.dcm")
    stack = open_dicom(path)
    assert stack.spacing is not None
    grey = cv2.cvtColor(stack.array(0).astype(np.uint8), cv2.COLOR_RGB2GRAY)
    cross = np.zeros((11, 11), np.uint8)
    cross[4:6, 1:10] = cross[1:10, 4:6] = 255
    # Below the words, where a legend shows a cross too.
    likeness = cv2.matchTemplate(grey[200:], cross, cv2.TM_CCOEFF_NORMED)
    ends = []
    for _ in range(2):
        y, x = np.unravel_index(likeness.argmax(), likeness.shape)
        ends.append((x, y))
        likeness[max(0, y - 8) : y + 8, max(0, x - 8) : x + 8] = -1
    (x0, y0), (x1, y1) = ends
    distance = np.hypot((x1 - x0) * stack.spacing[0], (y1 - y0) * stack.spacing[1])
    assert distance == pytest.approx(10.6, abs=0.3)  # the screen says 1.06 cm


def test_all_of_a_folder_with_directories_reports_and_names_without_ending(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    pydicom = require_extra("medical", "pydicom")
    folder = tmp_path / "dicom"
    shutil.copytree(Path(pydicom.__file__).parent / "data" / "test_files", folder)
    rows, manifest = imported("dicom", folder)
    # Files that are meant to hold no image are told, not dropped; five files are broken on purpose.
    assert manifest.counts["fault: no image in the DICOM file"] > 20
    assert manifest.counts["dropped"] <= 8
    assert {"dicomdirtests/77654033/CT2/17136", "dicomdirtests/77654033/CT2/17166"} <= set(rows)
    assert not [one for one in recwarn if "pydicom" in str(one.filename)]
    # The test pattern of these files: stripes of red, green and blue, each with a paler one, whatever the encoding.
    striped = 0
    for name, row in rows.items():
        if name.startswith(("SC_rgb_", "SC_ybr_")) and (row["width"], row["height"]) == (100, 100):
            if "2frame/0001" in name:
                continue  # the second frames are the negatives of the first
            with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
                pixels = np.asarray(image.convert("RGB")).astype(int)
            for y, colour in ((5, (255, 0, 0)), (25, (0, 255, 0)), (45, (0, 0, 255)), (95, (255, 255, 255))):
                assert np.abs(pixels[y, 50] - colour).max() <= 8, name
            striped += 1
    assert striped >= 15


@pytest.mark.parametrize(
    "names", [("1.2.840.1", "1.2.840.2"), ("US.1.2.840.1", "US.1.2.840.2"), ("IM_0001", "IM_0002")]
)
def test_uids_and_bare_names_are_names(tmp_path: Path, names: tuple[str, str]) -> None:
    folder = tmp_path / "dicom"
    folder.mkdir()
    for name, path in zip(names, _dicoms("itkpocus"), strict=True):
        shutil.copy(path, folder / name)
    rows, manifest = imported("dicom", folder)
    assert set(rows) == set(names) and manifest.counts["dropped"] == 0


def test_a_folder_of_dicoms_keeps_no_name_of_a_person(tmp_path: Path) -> None:
    require_extra("medical", "pydicom")
    folder = tmp_path / "dicom"
    for name in ("dicom_us", "itkpocus"):
        for path in _dicoms(name):
            folder.mkdir(exist_ok=True)
            shutil.copy(path, folder / path.name)
    rows, manifest = imported("dicom", folder, private=True)
    assert manifest.counts["dropped"] == 0 and manifest.licences == ["private"]
    text = repr([{**row, "image": None} for row in rows.values()])
    for path in folder.iterdir():
        header = _read(path)
        for value in (str(header.get("PatientName", "")), str(header.get("PatientID", ""))):
            assert len(value) < 4 or value not in text
    cine = [row for name, row in rows.items() if name.startswith("examples_ybr_color")]
    assert len(cine) == 8 and len({row["group"] for row in cine}) == 1
    assert all(row["private"] and not row["redistributable"] for row in rows.values())
    for name in ("sonoque_anechoic-3mm-3mm", "sonoque_axial-lateral-resolution-2020"):
        row = rows[name]
        # Their tags hold "--" where a name was: that is no patient.
        assert row["patient"] is None and row["group"].startswith("dicom:image-")
        assert not any("names a person" in issue for issue in row["known_issues"])
        (region,) = _read(folder / f"{name}.dcm").SequenceOfUltrasoundRegions
        expected = {"x": 10 * abs(region.PhysicalDeltaX), "y": 10 * abs(region.PhysicalDeltaY)}
        assert row["spacing"] == pytest.approx(expected) and "ultrasound_regions" in facts(row)


def test_clips_give_the_frames_that_a_plain_decode_gives() -> None:
    av = require_extra("medical", "av")
    for path in sorted(shared_data("itkpocus").rglob("*.mp4")):
        with av.open(str(path)) as clip:
            frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
        stack = open_video(path)
        assert len(stack) == len(frames)
        for number in (3, 40, 12, 49, 0):  # also backwards
            assert np.array_equal(stack.array(number), frames[number])


def test_clips_import_as_numbered_frames(tmp_path: Path) -> None:
    require_extra("medical", "av")
    folder = tmp_path / "clips"
    folder.mkdir()
    for path in shared_data("itkpocus").rglob("*.mp4"):
        shutil.copy(path, folder / path.name)
    rows, _ = imported("video", folder)
    assert len(rows) == 16 and len({row["group"] for row in rows.values()}) == 2
    assert [row["frame"] for name, row in rows.items() if name.startswith("clarius")] == [3, 9, 15, 21, 28, 34, 40, 46]


def test_still_images_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "stills"
    folder.mkdir()
    for path in shared_data("itkpocus").rglob("*"):
        if path.suffix in (".png", ".jpg"):
            shutil.copy(path, folder / path.name)
    rows, _ = imported("folder", folder)
    assert len(rows) == 5
    for name, row in rows.items():
        original = next(folder.glob(f"{name}.*"))
        assert row["image"]["bytes"] == original.read_bytes()
