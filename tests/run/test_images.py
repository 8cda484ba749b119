from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.run.tiny import bench, case, item, picture

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.run import images as module
from sonogauge.run.images import CaseFacts, CaseImages, ImageFault, ImagePolicy, open_image

pytestmark = pytest.mark.part("run")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    cases = [case(f"case-{n:04d}", picture(n, 20 + n, 10)) for n in range(70)]
    return Folder(bench(tmp_path_factory.mktemp("images") / "bench", [item(1)], cases, group=30))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 69), max_size=40), st.sampled_from((1, 10**9)))
def test_random_access_gives_each_its_own_bytes(folder: Folder, order: list[int], cache: int) -> None:
    images = CaseImages(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CACHE", cache)
        for number in order:
            assert images.read(f"case-{number:04d}") == picture(number, 20 + number, 10)
    images.close()


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """One row group of 40 MB is read in any order with a few batches held."""
    noise = np.random.default_rng(0)
    cases = []
    for number in range(40):
        stream = io.BytesIO()
        Image.fromarray(noise.integers(0, 256, (1024, 1024), dtype=np.uint8)).save(stream, "PNG", compress_level=0)
        cases.append(case(f"case-{number:04d}", stream.getvalue()))
    images = CaseImages(Folder(bench(tmp_path / "bench", [item(1)], cases, group=40)))
    order = list(range(40))
    random.Random(0).shuffle(order)
    for number in order:
        data = images.read(f"case-{number:04d}")
        assert hashlib.sha256(data).hexdigest() == cases[number]["sha256"]
        held = sum(len(image["bytes"]) for batch in images._batches.values() for image in batch)
        assert held <= max(module._CACHE, 9 * len(data))
    images.close()


def test_images_by_path_stay_inside_the_folder(tmp_path: Path) -> None:
    cases = [case(f"case-{n:04d}", picture(n)) for n in range(4)]
    for number, path in enumerate(("media/a.png", "../secret.png", "media/none.png")):
        cases[number]["image"] = {"bytes": None, "path": path}
    made = bench(tmp_path / "bench", [item(1)], cases)
    (made / "media").mkdir()
    (made / "media" / "a.png").write_bytes(b"there")
    (tmp_path / "secret.png").write_bytes(b"secret")
    images = CaseImages(Folder(made))
    assert images.read("case-0000") == b"there"
    for number, message in ((1, "outside the benchmark folder"), (2, "cannot read"), (9, "no case")):
        with pytest.raises(ImageFault, match=message):
            images.read(f"case-{number:04d}")
    images.close()


def facts(data: bytes) -> CaseFacts:
    size = open_image(data).size
    return CaseFacts(0, "image/png", hashlib.sha256(data).hexdigest(), *size, "s", "l", False)


def test_policies() -> None:
    data = picture(9, 400, 200)
    same = ImagePolicy.parse("original").encode(data, facts(data))
    assert (same.data, same.sha256, same.policy) == (data, hashlib.sha256(data).hexdigest(), "original")
    small = ImagePolicy.parse("max:100").encode(data, facts(data))
    assert (small.width, small.height, small.media_type, small.policy) == (100, 50, "image/png", "max:100")
    assert open_image(small.data).size == (100, 50)
    assert ImagePolicy.parse("max:400").encode(data, facts(data)).data == data
    jpeg = ImagePolicy.parse("jpeg:90").encode(data, facts(data))
    assert Image.open(io.BytesIO(jpeg.data)).format == "JPEG"
    assert ImagePolicy.parse("max:100,jpeg:90").encode(data, facts(data)).width == 100
    png = ImagePolicy.parse("png").encode(picture(9, kind="JPEG"), facts(data))
    assert (Image.open(io.BytesIO(png.data)).format, png.media_type) == ("PNG", "image/png")


@pytest.mark.parametrize(
    "text", ["", "webp", "jpeg", "jpeg:0", "jpeg:101", "max:0", "max:-1", "png,png", "png:9", "max:x"]
)
def test_unknown_policies(text: str) -> None:
    with pytest.raises(BadInput, match="no image policy"):
        ImagePolicy.parse(text)


def test_frames() -> None:
    stream = io.BytesIO()
    frames = [Image.new("L", (8, 6), shade) for shade in (10, 200)]
    frames[0].save(stream, "TIFF", save_all=True, append_images=frames[1:])
    data = stream.getvalue()
    sent = ImagePolicy.parse("original").encode(data, facts(data), 1)
    assert (sent.policy, sent.media_type) == ("original frame 1", "image/png")
    assert np.unique(np.asarray(open_image(sent.data))).tolist() == [200]
    with pytest.raises(ImageFault, match="no frame 2"):
        open_image(data, 2)


@pytest.mark.parametrize("data", [b"", b"text", picture(1)[:40], b"\x89PNG\r\n\x1a\n" + b"\0" * 50])
def test_broken_images(data: bytes) -> None:
    with pytest.raises(ImageFault, match="does not decode"):
        open_image(data)


def test_a_blank_image_is_grey_of_the_size_asked_for() -> None:
    sent = module.blank(40, 30)
    pixels = np.asarray(Image.open(io.BytesIO(sent.data)))
    assert pixels.shape == (30, 40) and np.unique(pixels).tolist() == [128]
    assert (sent.width, sent.height, sent.policy) == (40, 30, "blank")
