import base64
import io
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sonogauge.sources import media
from sonogauge.sources.media import MediaFault, MediaReader, decode_base64, read_inside, read_media, strict_pixels
from tests.sources.lookalike import coded, image

pytestmark = [pytest.mark.part("u2bench import"), pytest.mark.lookalike]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"])
def test_accepted_formats(kind: str) -> None:
    found = read_media(image(1, (30, 20), kind))
    assert (found.width, found.height, found.frames) == (30, 20, 1)
    assert found.media_type == f"image/{kind.lower()}"


def test_the_pixel_hash_ignores_the_file_format() -> None:
    png, bmp = read_media(image(1)), read_media(image(1, kind="BMP"))
    assert png.pixel_hash == bmp.pixel_hash and png.sha256 != bmp.sha256
    assert read_media(image(2)).pixel_hash != png.pixel_hash


def test_a_reader_decodes_an_image_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    plain = media.read_media
    monkeypatch.setattr(media, "read_media", lambda data: (calls.append(1), plain(data))[1])
    reader = MediaReader()
    assert reader.read(image(1)) == reader.read(image(1)) == plain(image(1))
    assert len(calls) == 1


def _bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(10_000, 9_500), (60_000, 60_000)])
def test_a_decompression_bomb_is_a_fault(size: tuple[int, int]) -> None:
    with strict_pixels(), pytest.raises(MediaFault, match="too many pixels"):
        read_media(_bomb(*size))


@given(st.binary(max_size=80))
def test_hostile_bytes_raise_a_fault(data: bytes) -> None:
    for start in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"BM"):
        with pytest.raises(MediaFault):
            read_media(start + data)


def test_truncated_images_and_foreign_formats_are_faults() -> None:
    stream = io.BytesIO()
    Image.new("L", (4, 4)).save(stream, "PPM")
    for data in (image(1)[:-30], stream.getvalue(), b""):
        with pytest.raises(MediaFault):
            read_media(data)


def test_base64_is_checked() -> None:
    data = image(1)
    assert decode_base64(coded(data)) == data
    assert decode_base64("data:image/png;base64," + base64.encodebytes(data).decode()) == data
    for cell in ("", "   ", "xxx", "base64 encoded image", coded(data)[:-3] + "!", "ü"):
        with pytest.raises(MediaFault):
            decode_base64(cell)


def test_an_image_path_stays_inside_the_data_folder(tmp_path: Path) -> None:
    root, secret = tmp_path / "data", tmp_path / "secret.png"
    folder = root / "task"
    folder.mkdir(parents=True)
    secret.write_bytes(image(1))
    (root / "shared.png").write_bytes(image(2))
    os.symlink(secret, folder / "link.png")
    os.symlink("loop.png", folder / "loop.png")
    assert read_inside("../shared.png", folder, root) == image(2)
    for name in ("../../secret.png", "link.png", "loop.png", str(secret), "none.png", "..", "a\0b"):
        with pytest.raises(MediaFault):
            read_inside(name, folder, root)
