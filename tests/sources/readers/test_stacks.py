"""Stacks of frames: arrays, volumes, their order and which frames are kept."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.shared import require_extra
from tests.sources.pictures import disc, facts, imported, noise, write

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import decode_mask
from sonogauge.sources.readers.stacks import scene_starts, spread

pytestmark = [pytest.mark.lookalike, pytest.mark.part("readers")]


def test_npy_stacks_and_pickles(tmp_path: Path) -> None:
    root = tmp_path / "arrays"
    root.mkdir()
    frames = np.stack([noise(number) for number in range(3)])
    np.save(root / "a.npy", frames)
    np.save(root / "b.npy", noise(7, colour=True))
    np.save(root / "c.npy", frames.astype(np.float32) / 255)
    rows, _ = imported("npy", root)
    assert len(rows) == 7
    read = {name: np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))) for name, row in rows.items()}
    assert np.array_equal(read["a/0001"], frames[1]) and np.array_equal(read["b"], noise(7, colour=True))
    assert any("scaled from" in one for one in rows["c/0000"]["known_issues"])
    np.save(root / "d.npy", np.array([{"image": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="array holds pickled objects"):
        imported("npy", root)


def test_hdf5_columns_masks_and_foreign_links(tmp_path: Path) -> None:
    h5py = require_extra("medical", "h5py")
    root = tmp_path / "cine"
    root.mkdir()
    frames = np.stack([noise(number) for number in range(4)])
    masks = np.stack([disc(20, 20, 4 + number) for number in range(4)]).astype(np.uint8) * 255
    with h5py.File(root / "dataset.hdf5", "w") as file:
        file["image"], file["mask"] = frames, masks
        file["annot_id"] = np.array([b"159_", b"159_", b"160_", b"160_"])
        file["frame_num"] = np.array([1, 2, 1, 2])
    text = (
        "patient: '{annot_id}'\nmeta: {frame: '{frame_num}'}\noptions: {images: image, masks: mask, category: nodule}\n"
    )
    rows, manifest = imported("hdf5", root, map_file=write(tmp_path / "map.yaml", text))
    assert manifest.counts["patients"] == 2
    row = rows["dataset/00002"]
    assert row["patient"] == "160_" and facts(row) == {"frame": "1"}
    assert np.array_equal(decode_mask(row["masks"][0]), masks[2] > 0)
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["image"] = frames
    with h5py.File(root / "dataset.hdf5", "w") as file:
        file["image"] = h5py.ExternalLink(str(secret), "image")
    with pytest.raises(BadInput, match="is no array of this file"):
        imported("hdf5", root, map_file=write(tmp_path / "map.yaml", "options: {images: image}\n"))
    with h5py.File(root / "dataset.hdf5", "w") as file:
        file.create_dataset("image", (4, 40, 48), "u1", external=[(str(secret), 0, 7680)])
    with pytest.raises(BadInput, match="is no array of this file"):
        imported("hdf5", root, map_file=write(tmp_path / "map.yaml", "options: {images: image}\n"))


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mha", "a.mhd"])
def test_volumes_give_slices_in_reading_order(tmp_path: Path, name: str) -> None:
    sitk = require_extra("test", "SimpleITK")
    root = tmp_path / "volumes"
    root.mkdir()
    frames = np.stack([noise(number) for number in range(9)]).astype(np.int16) * 4 - 100
    image = sitk.GetImageFromArray(frames)
    image.SetSpacing((0.2, 0.3, 1.5))
    sitk.WriteImage(image, str(root / name))
    rows, _ = imported("volume", root, map_file=write(tmp_path / "map.yaml", "frames: {keep: all}\n"))
    assert len(rows) == 9
    row = rows["a/0004"]
    assert row["spacing"] == pytest.approx({"x": 0.2, "y": 0.3}) and row["frame"] == 4
    shown = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"]))).astype(float)
    # One window for the whole volume, so that slices can be compared.
    low, high = frames.min(), frames.max()
    assert np.abs(shown - (frames[4] - low) / (high - low) * 255).max() <= 0.51


def test_nifti_agrees_with_nibabel_when_turned(tmp_path: Path) -> None:
    require_extra("test", "SimpleITK")
    nibabel = require_extra("medical", "nibabel")
    from sonogauge.sources.readers.volumes import open_volume

    values = noise(3).T[:, :, None]  # (x, y, 1)
    path = tmp_path / "a.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.diag([0.2, 0.4, 1, 1])), path)
    for turns in (1, 2, 3):
        assert np.array_equal(open_volume(path, turns).array(0), np.rot90(values[:, :, 0], -turns))


def test_scene_changes_and_even_spread() -> None:
    from sonogauge.sources.layout import FrameRule

    shades = [10, 11, 12, 90, 91, 20, 21, 200]
    frames = [np.full((80, 80), shade, dtype=np.uint8) for shade in shades]
    assert scene_starts(frames, FrameRule(keep="scenes", change=0.1)) == [0, 3, 5, 7]
    assert scene_starts(frames, FrameRule(keep="scenes", change=0.1, count=2)) == [0, 3]
    assert spread(10, 3) == [1, 5, 8] and spread(3, 9) == [0, 1, 2] and spread(0, 2) == []


@given(st.integers(0, 500), st.integers(1, 40))
def test_spread_is_sorted_distinct_and_inside(total: int, count: int) -> None:
    found = spread(total, count)
    assert len(found) == min(total, count) == len(set(found)) and found == sorted(found)
    assert all(0 <= one < total for one in found)


def test_dim_frames_of_a_stack_keep_their_values(tmp_path: Path) -> None:
    root = tmp_path / "arrays"
    root.mkdir()
    frames = np.stack([np.zeros((40, 48)), np.eye(40, 48), noise(3)]).astype(np.int16)
    np.save(root / "a.npy", frames)
    np.save(root / "b.npy", frames.astype(np.float32))
    rows, _ = imported("npy", root, map_file=write(tmp_path / "map.yaml", "frames: {keep: all}\n"))
    for name, row in rows.items():
        shown = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        assert np.array_equal(shown, frames[int(name[-1])])
