"""Files made to do harm: each refused with one line, and nothing written."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sonogauge._errors import BadInput
from sonogauge.sources import importer
from sonogauge.sources.archives import unpack
from sonogauge.sources.readers import arrays, rows, tree
from sonogauge.sources.readers.tree import Tree
from tests.shared import require_extra
from tests.sources.pictures import csv, imported, noise, save, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("import")]


def _refused(source: str, folder: Path, match: str, **options: Any) -> None:
    before = sorted(folder.parent.iterdir())
    with pytest.raises(BadInput, match=match) as caught:
        imported(source, folder, **options)
    assert "\n" not in str(caught.value)
    assert sorted(folder.parent.iterdir()) == before


def _bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def test_a_decompression_bomb(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.png").write_bytes(_bomb(60_000, 60_000))
    _refused("folder", folder, "too many pixels")


def test_a_bomb_as_a_mask(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder / "benign" / "benign (1).png", noise(1))
    (folder / "benign" / "benign (1)_mask.png").write_bytes(_bomb(60_000, 60_000))
    _refused("busi", folder, "too many pixels")


def test_a_volume_bomb(tmp_path: Path) -> None:
    import gzip

    require_extra("test", "SimpleITK")
    folder = tmp_path / "data"
    folder.mkdir()
    head = bytearray(352)
    head[:4] = struct.pack("<i", 348)
    head[40:56] = struct.pack("<8h", 3, 30_000, 30_000, 30_000, 1, 1, 1, 1)
    head[70:74] = struct.pack("<2h", 2, 8)
    head[76:108] = struct.pack("<8f", *([1.0] * 8))
    head[108:112] = struct.pack("<f", 352)
    head[344:348] = b"n+1\0"
    (folder / "a.nii.gz").write_bytes(gzip.compress(bytes(head)))
    _refused("volume", folder, "unusable size")


@pytest.mark.parametrize("name", ["../secret.raw", "/etc/passwd", "LIST", "%03d.raw 0 1 1", "none.raw"])
def test_a_volume_whose_values_lie_elsewhere(tmp_path: Path, name: str) -> None:
    require_extra("test", "SimpleITK")
    (tmp_path / "secret.raw").write_bytes(b"\1" * 64)
    head = "ObjectType = Image\nNDims = 2\nDimSize = 8 8\nElementType = MET_UCHAR\nElementDataFile = "
    write(tmp_path / "data" / "a.mhd", head + name + "\n")
    _refused("volume", tmp_path / "data", "values lie in another folder")
    (tmp_path / "data" / "secret.raw").symlink_to("../secret.raw")
    write(tmp_path / "data" / "a.mhd", head + "secret.raw\n")
    _refused("volume", tmp_path / "data", "link that leads out|values lie in another folder")


def test_a_mat_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.io import savemat

    folder = tmp_path / "data"
    folder.mkdir()
    savemat(folder / "a.mat", {"images": np.zeros((50, 200, 200), dtype=np.uint8)}, do_compression=True)
    monkeypatch.setattr(arrays, "MAX_MAT_BYTES", 100_000)
    options = {"map_file": write(tmp_path / "map.yaml", "options: {images: images}\n")}
    _refused("mat", folder, "unpacks to too many bytes", **options)


class _Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("/tmp/sonogauge-was-run",))


def test_a_pickle_in_npy_is_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "a.npy", np.array([_Payload()], dtype=object), allow_pickle=True)
    _refused("npy", folder, "pickled objects")
    assert not Path("/tmp/sonogauge-was-run").exists()


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">]>',
        '<!DOCTYPE annotations SYSTEM "http://127.0.0.1:1/x.dtd">',
    ],
)
def test_xml_entities(tmp_path: Path, head: str) -> None:
    folder = tmp_path / "data"
    save(folder / "1.png", noise(1))
    image = '<image id="0" name="1.png" width="48" height="40"><tag label="&x;"/></image>'
    body = image if "ENTITY" in head else image.replace("&x;", "x")
    write(folder / "a.xml", f'<?xml version="1.0"?>{head}<annotations>{body}</annotations>')
    _refused("cvat", folder, "XML with entities or a document type")


def test_an_oversized_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_CELL", 1000)
    folder = tmp_path / "BUSBRA"
    save(folder / "Images" / "bus_1.png", noise(1))
    write(folder / "bus_data.csv", csv("ID,Case,Pathology", f"bus_1,1,{'x' * 1001}"))
    _refused("bus-bra", folder, "bus_data.csv, row 1, field 'Pathology': a cell over 1000 characters")
    write(folder / "bus_data.csv", csv("ID,Case,Pathology", f'bus_1,1,"{"x" * 5000}'))
    _refused("bus-bra", folder, "bus_data.csv, row 1: a cell over 1000 characters")


def test_links_out_of_the_folder(tmp_path: Path) -> None:
    outside = save(tmp_path / "outside" / "secret.png", noise(1))
    folder = tmp_path / "data"
    save(folder / "a.png", noise(2))
    (folder / "b.png").symlink_to(outside)
    _refused("folder", folder, "b.png: a link that leads out of the folder")
    (folder / "b.png").unlink()
    (folder / "sub").symlink_to(outside.parent)
    _refused("folder", folder, "sub: a link that leads out")
    (folder / "sub").unlink()
    (folder / "b.png").symlink_to("b.png")  # a link to itself
    _refused("folder", folder, "leads out")


def test_links_inside_are_files_like_others(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder / "a.png", noise(2))
    (folder / "b.png").symlink_to("a.png")
    found, manifest = imported("folder", folder)
    assert sorted(found) == ["a", "b"] and manifest.counts["images twice"] == 1


@pytest.mark.parametrize(
    "name", ["a\nb.png", "a\rb.png", "a\x1b[31m.png", "a\u2028b.png", "gnp.\u202ea.png", "a\u200bb.png"]
)
def test_names_with_control_and_direction_marks(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    save(folder / "ok.png", noise(2))
    (folder / name).write_bytes((folder / "ok.png").read_bytes())
    _refused("folder", folder, "file name with a control character")


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder / "ok.png", noise(2))
    try:
        with open(os.fsencode(folder) + b"/\xff\xfe.png", "wb") as stream:
            stream.write((folder / "ok.png").read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    _refused("folder", folder, "file name with a control character")


def test_names_in_other_scripts_are_names(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder / "Größe (1).png", noise(1))
    save(folder / "甲状腺.png", noise(2))
    found, _ = imported("folder", folder)
    assert sorted(found) == ["Größe (1)", "甲状腺"]
    # The same name in its other Unicode form is the same id, so one of the two is dropped.
    save(folder / "Gro\u0308ße (1).png", noise(3))
    found, manifest = imported("folder", folder, max_dropped=0.5)
    assert len(found) == 2 and manifest.counts["fault: two images of one id"] == 1


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\x.png", "a/../../x.png"])
def test_annotations_that_name_files_outside(tmp_path: Path, name: str) -> None:
    save(tmp_path / "x.png", noise(1))
    folder = tmp_path / "data"
    content = {"images": [{"id": 1, "file_name": name}], "annotations": [], "categories": []}
    write(folder / "a.json", json.dumps(content))
    _refused("coco", folder, "nothing usable")
    write(folder / "a.jsonl", json.dumps({"image": name}) + "\n")
    _refused("records", folder, "record without an image file|image is not base64")


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    for number in range(4):
        save(folder / f"{number}.png", noise(number))
    monkeypatch.setattr(tree, "MAX_FILES", 3)
    _refused("folder", folder, "more than 3 files")


def test_a_fault_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    for number in range(40):
        save(folder / f"{number}.png", noise(number))
    plain = importer.make_row

    def failing(*given: Any) -> Any:
        if given[1].path == "30.png":
            raise OSError("disk is gone")
        return plain(*given)

    monkeypatch.setattr(importer, "make_row", failing)
    with pytest.raises(OSError, match="disk is gone"):
        imported("folder", folder)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def _zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def _tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _member(name: str, **facts: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for key, value in facts.items():
        setattr(member, key, value)
    return member


def _unpack_refused(archive: Path, tmp_path: Path, match: str, **options: Any) -> None:
    out = tmp_path / "out"
    with pytest.raises(BadInput, match=match) as caught:
        unpack(archive, out, **options)
    assert "\n" not in str(caught.value) and list(out.iterdir()) == []
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([archive.name, "out"])


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:/evil.txt"])
def test_zip_slip(tmp_path: Path, name: str) -> None:
    _unpack_refused(_zip(tmp_path / "a.zip", ("good.txt", b"1"), (name, b"2")), tmp_path, "would leave the folder")
    (tmp_path / "a.zip").unlink()
    _unpack_refused(_tar(tmp_path / "a.tar.gz", _member("good"), _member(name)), tmp_path, "would leave the folder")


def test_links_and_devices_in_archives(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        archive = _tar(tmp_path / "a.tar.gz", _member("x", type=kind, linkname="/etc/passwd"))
        _unpack_refused(archive, tmp_path, "is a link or device")
    (tmp_path / "a.tar.gz").unlink()
    link = zipfile.ZipInfo("x")
    link.external_attr = 0o120777 << 16
    _unpack_refused(_zip(tmp_path / "a.zip", (link, b"/etc/passwd")), tmp_path, "is a link or device")


def test_archives_that_are_bombs_or_broken(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "a.zip", ("zeros", b"\0" * 3_000_000))
    _unpack_refused(archive, tmp_path, "unpacks to 3000000 bytes", max_bytes=1_000_000)
    data = bytearray(archive.read_bytes())
    size = struct.pack("<I", 3_000_000)
    for place in [at for at in range(len(data)) if data[at : at + 4] == size]:
        data[place : place + 4] = struct.pack("<I", 10)  # the headers lie
    archive.write_bytes(data)
    _unpack_refused(archive, tmp_path, "not a readable archive|more than its headers say", max_bytes=1_000_000)
    archive.write_bytes(b"PK\x03\x04 nothing")
    _unpack_refused(archive, tmp_path, "not a readable archive")


def test_an_honest_archive(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "a.zip", ("x/a.txt", b"1"), ("x/y/b.txt", b"22"), ("x/", b""))
    assert unpack(archive, tmp_path / "out") == 2
    assert Tree(tmp_path / "out").paths == ("x/a.txt", "x/y/b.txt")
    assert (tmp_path / "out/x/y/b.txt").read_bytes() == b"22"


def test_what_a_killed_unpacking_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "out" / ".archive.unfinished-abcdefgh").mkdir(parents=True)
    assert unpack(_zip(tmp_path / "a.zip", ("x/a.txt", b"1")), tmp_path / "out") == 1
    assert os.listdir(tmp_path / "out") == ["x"]


def test_broken_images_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for number in range(20):
        save(folder / f"{number:02d}.png", noise(number))
    (folder / "07.png").write_bytes((folder / "07.png").read_bytes()[:100])
    found, manifest = imported("folder", folder)
    assert len(found) == 19 and manifest.counts["dropped"] == 1
    assert "image does not decode: 1 (07.png)" in manifest.notices
    with Image.open(folder / "08.png") as image:
        assert image.size == (48, 40)
