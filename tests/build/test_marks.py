"""Callipers drawn on pictures: seen where they are, and nowhere else."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from sonogauge.build.fingerprint import decode
from sonogauge.build.stages.marks import has_callipers
from sonogauge.sources.readers.dicom import open_dicom
from tests.build.made_cases import picture
from tests.shared import require_extra, shared_data

pytestmark = pytest.mark.part("recipes")


@pytest.mark.real
def test_no_callipers_are_seen_where_there_are_none() -> None:
    heads = sorted(shared_data("hc18").glob("*_set/*_HC.png"))
    skin = sorted(shared_data("isic_udal").glob("*.jpg"))
    phantoms = sorted(shared_data("itkpocus").rglob("*.png"))
    assert [len(heads), len(skin), len(phantoms)] == [16, 18, 4]
    for file in (*heads, *skin, *phantoms):
        pixels = decode(file.read_bytes())
        assert pixels is not None and not has_callipers(pixels), file.name


@pytest.mark.real
def test_callipers_of_dicom_files() -> None:
    require_extra("medical", "pydicom")
    files = sorted(shared_data("dicom_us").rglob("*.dcm"))
    # Looked at by eye: one of the five shows a measured distance, three others writing and marks of the scanner.
    assert len(files) == 5
    found = [file.name for file in files if has_callipers(open_dicom(file).array(0).astype(np.uint8))]
    assert found == ["examples_palette.dcm"]


@pytest.mark.real
@pytest.mark.parametrize("thickness", [1, 2, 3])
def test_most_drawn_callipers_are_seen_even_joined_by_a_dotted_line(thickness: int) -> None:
    rng = np.random.default_rng(thickness)
    seen = total = 0
    for file in sorted(shared_data("hc18").glob("*_set/*_HC.png")):
        plain = decode(file.read_bytes())
        assert plain is not None
        height, width = plain.shape[:2]
        for size in (11, 15, 21):
            pixels = plain.copy()
            left = rng.integers(60, (width // 2 - 60, height - 60))
            right = rng.integers((width // 2 + 60, 60), (width - 60, height - 60))
            for x, y in (left, right):
                cv2.drawMarker(pixels, (int(x), int(y)), 235, cv2.MARKER_CROSS, size, thickness)
            for share in np.linspace(0, 1, 40):
                x, y = np.rint(left + share * (right - left)).astype(int)
                pixels[y : y + 2, x : x + 2] = 235
            total += 1
            seen += has_callipers(pixels)
    assert total == 48
    assert seen >= 0.85 * total


@pytest.mark.parametrize("colour", [(255, 220, 0), (0, 255, 80), (90, 220, 255)])
def test_coloured_crosses_are_seen(colour: tuple[int, int, int]) -> None:
    pixels = np.repeat(np.minimum(picture(6, 300), 150)[:, :, None], 3, axis=2)
    assert not has_callipers(pixels)
    cv2.drawMarker(pixels, (60, 80), colour, cv2.MARKER_CROSS, 13, 1)
    assert not has_callipers(pixels)  # one alone measures nothing
    cv2.drawMarker(pixels, (200, 190), colour, cv2.MARKER_CROSS, 13, 1)
    assert has_callipers(pixels)


@pytest.mark.parametrize("words", ["LEFT BREAST", "right left", "4t TTF 44 HE"])
@pytest.mark.parametrize("size", [0.4, 0.6, 0.8, 1.0])
def test_letters_are_no_callipers(words: str, size: float) -> None:
    pixels = np.minimum(picture(5, 300), 150)
    cv2.putText(pixels, words, (10, 100), cv2.FONT_HERSHEY_SIMPLEX, size, 235, 1 + (size > 0.7))
    assert not has_callipers(pixels)


def test_crossing_lines_and_grids_are_no_callipers() -> None:
    pixels = np.minimum(picture(7, 300), 120)
    pixels[40::40] = 235
    pixels[:, 40::40] = 235
    assert not has_callipers(pixels)
