"""Masks in pictures: colours, numbers, outlines and their edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.sources.pictures import SIZE, disc, imported, noise, save, write

from sonogauge.cases.geometry import decode_mask
from sonogauge.sources.readers.label_images import binary, classes, colours, fill_outline

pytestmark = [pytest.mark.lookalike, pytest.mark.part("readers")]


def test_colours_snap_to_the_nearest_and_far_pixels_are_counted() -> None:
    pixels = np.zeros((40, 48, 3), dtype=np.uint8)
    one, two = disc(14, 20, 9), disc(34, 20, 9)
    pixels[one] = (100, 0, 100)
    pixels[two] = (255, 255, 0)
    near = pixels.copy()
    near[one] = (96, 4, 103)  # a lossy copy
    named = {"liver": (100, 0, 100), "kidney": (255, 255, 0)}
    for image in (pixels, np.dstack([pixels, np.full((40, 48), 255, dtype=np.uint8)])):
        found = colours(image, named)
        assert np.array_equal(found.masks["liver"], one) and np.array_equal(found.masks["kidney"], two)
        assert found.far == 0
    pixels[0, :5] = (0, 255, 255)
    assert colours(pixels, named).far == 5


def test_smoothed_edges_make_no_third_class() -> None:
    # Between kidney (255, 255, 0) and background lies (128, 128, 0), which is nearer to a declared dark class.
    big = np.zeros((400, 480, 3), dtype=np.uint8)
    big[disc(240, 200, 90, (480, 400))] = (255, 255, 0)
    image = np.asarray(Image.fromarray(big).resize((48, 40), Image.Resampling.BICUBIC))
    found = colours(image, {"kidney": (255, 255, 0), "cyst": (120, 120, 0)})
    assert "cyst" not in found.masks
    expected = disc(24, 20, 9)
    kidney = found.masks["kidney"]
    assert (kidney & expected).sum() / (kidney | expected).sum() > 0.85


def test_lossy_colours_of_a_small_region_survive() -> None:
    # In a lossy copy no pixel of the region need be exactly of its colour.
    pixels = np.zeros((40, 48, 3), dtype=np.uint8)
    pixels[disc(24, 20, 9)] = (250, 3, 6)
    found = colours(pixels, {"malignant": (255, 0, 0), "benign": (0, 255, 0)})
    assert np.array_equal(found.masks["malignant"], disc(24, 20, 9)) and found.far == 0


def test_palette_masks_give_their_numbers_and_their_colours(tmp_path: Path) -> None:
    root = tmp_path / "palette"
    index = np.where(disc(20, 20, 8), 2, 0).astype(np.uint8)
    image = Image.new("P", SIZE)
    image.putpalette([0, 0, 0, 10, 20, 30, 0, 255, 0])
    image.putdata(index.ravel().tolist())
    save(root / "img" / "1.png", noise(1))
    (root / "lab").mkdir()
    image.save(root / "lab" / "1.png")
    text = "find: 'img/{n}.png'\nmasks: [{files: 'lab/{n}.png', kind: KIND}]\n"
    for kind in ("classes, classes: {2: head}", "colours, colours: {head: [0, 255, 0]}"):
        rows, manifest = imported("folder", root, map_file=write(tmp_path / "map.yaml", text.replace("KIND", kind)))
        (row,) = rows.values()
        assert np.array_equal(decode_mask(row["masks"][0]), disc(20, 20, 8))
        assert manifest.counts["mask pixels of no declared value"] == 0


def test_class_numbers_that_nobody_declared_are_counted(tmp_path: Path) -> None:
    assert classes(np.array([[0, 1], [7, 7]]), {1: "a"}).far == 2
    root = tmp_path / "classes"
    save(root / "img" / "1.png", noise(1))
    save(root / "lab" / "1.png", np.where(disc(20, 20, 8), 1, 0).astype(np.uint8) + np.eye(40, 48, dtype=np.uint8) * 3)
    text = "find: 'img/{n}.png'\nmasks: [{files: 'lab/{n}.png', kind: classes, classes: {1: a}}]\n"
    rows, manifest = imported("folder", root, map_file=write(tmp_path / "map.yaml", text))
    assert manifest.counts["mask pixels of no declared value"] == 40
    assert "40 mask pixels of no declared value" in rows["img/1"]["known_issues"]


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_outlines_are_filled_even_with_a_small_gap(gap: int) -> None:
    from scipy.ndimage import binary_erosion

    region = disc(100, 80, 50, (200, 160))
    outline = region & ~binary_erosion(region)
    row = 80
    outline[row : row + gap, 100:] = False
    filled = fill_outline(outline)
    assert (filled & region).sum() / (filled | region).sum() > 0.97
    assert np.array_equal(fill_outline(region), region)


@pytest.mark.parametrize("centre", [(100, 20), (100, 150), (10, 80), (190, 80), (15, 15), (190, 150)])
def test_outlines_that_leave_the_image_are_filled(centre: tuple[int, int]) -> None:
    from scipy.ndimage import binary_erosion

    region = disc(*centre, 50, (200, 160))
    outline = region & ~binary_erosion(region, iterations=2, border_value=1)
    filled = fill_outline(outline)
    assert (filled & region).sum() / (filled | region).sum() > 0.97
    assert np.array_equal(fill_outline(region), region)


def test_binary_values() -> None:
    assert binary(np.array([[0, 127, 128, 255]], dtype=np.uint8)).tolist() == [[False, False, True, True]]
    assert binary(np.array([[False, True]])).tolist() == [[False, True]]
    assert binary(np.array([[0, 0]], dtype=np.uint8)).tolist() == [[False, False]]
    assert binary(np.array([[[0, 0, 0, 255]]], dtype=np.uint8)).tolist() == [[False]]  # alpha says nothing
