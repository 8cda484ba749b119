"""Files with bytes changed at random: read, or refused with one line; nothing else ever happens."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest

from sonogauge._errors import BadInput
from tests.shared import require_extra, shared_data
from tests.sources.pictures import imported, noise, png, write

pytestmark = [pytest.mark.lookalike, pytest.mark.part("import")]

_JUNK = (b"-", b"9" * 9, b"null", b'"', b"{", b"[", b"nan", b"1e999", b"[]", b"{}")
_VIA = b"filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n"
_TEXTS = {
    "coco": (
        "a.json",
        b'{"images":[{"id":1,"file_name":"p.png"}],"categories":[{"id":1,"name":"x"}],"annotations":'
        b'[{"image_id":1,"category_id":1,"segmentation":[[1,2,3,4,5,6]],"keypoints":[1,2,2]}]}',
    ),
    "cvat": (
        "a.xml",
        b'<annotations><image id="0" name="p.png" width="48" height="40"><polygon label="p" points="1,1;2,2;3,1"/>'
        b'<box label="b" xtl="1" ytl="2" xbr="4" ybr="6"/><tag label="t"/></image></annotations>',
    ),
    "cvat-task": (
        "annotations.json",
        b'[{"shapes":[{"type":"polygon","points":[1,1,2,2,3,1],"frame":0,"label":"p"}],"tracks":[],"tags":[]}]',
    ),
    "via": ("a.csv", _VIA + b'p.png,1,{},1,0,"{""name"":""rect"",""x"":1,""y"":1,""width"":2,""height"":2}",{}\n'),
    "records": ("a.jsonl", b'{"image":"p.png","label":1}\n'),
    "vlmevalkit": ("a.tsv", b"index\timage\tquestion\n1\tp.png\tx\n"),
}


def _damaged(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        if len(found) < 4:
            break
        place, kind = chance.randrange(min(len(found), 3000)), chance.random()
        if kind < 0.5:
            found[place] = chance.randrange(256)
        elif kind < 0.7:
            del found[place : place + chance.randrange(8)]
        elif kind < 0.93:
            found[place:place] = chance.choice(_JUNK)
        else:
            found = found[: place + 1]
    return bytes(found)


def _try(tmp_path: Path, source: str, name: str, data: bytes, trials: int) -> None:
    chance = random.Random(source)
    refused = 0
    for trial in range(trials):
        folder = tmp_path / f"{source}{trial}"
        folder.mkdir()
        (folder / "p.png").write_bytes(png(noise(1)))
        (folder / name).write_bytes(_damaged(data, chance))
        try:
            imported(source, folder)
        except BadInput as error:
            refused += 1
            assert "\n" not in str(error) and not (tmp_path / f"{source}{trial}.cases").exists()
    assert refused


@pytest.mark.parametrize("source", sorted(_TEXTS))
def test_annotation_files(tmp_path: Path, source: str) -> None:
    _try(tmp_path, source, *_TEXTS[source], trials=40)


def test_arrays(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 8, 8), np.uint8))
    _try(tmp_path, "npy", "a.npy", stream.getvalue(), trials=40)


@pytest.mark.parametrize("name", ["a.mha", "a.nii"])
def test_volumes(tmp_path: Path, name: str) -> None:
    sitk = require_extra("test", "SimpleITK")
    require_extra("medical", "nibabel")
    sitk.WriteImage(sitk.GetImageFromArray(np.ones((2, 8, 8), np.uint8)), str(tmp_path / name), True)
    _try(tmp_path, "volume", name, (tmp_path / name).read_bytes(), trials=40)


@pytest.mark.real
def test_dicom_files(tmp_path: Path) -> None:
    require_extra("medical", "pydicom")
    file = next(shared_data("dicom_us").rglob("SC_ybr*.dcm"))
    _try(tmp_path, "dicom", file.name, file.read_bytes(), trials=40)


def test_a_mat_file_that_is_cut_off(tmp_path: Path) -> None:
    from scipy.io import savemat

    folder = tmp_path / "mat"
    folder.mkdir()
    savemat(folder / "a.mat", {"images": noise(1)})
    data = (folder / "a.mat").read_bytes()
    text = write(tmp_path / "map.yaml", "options: {images: images}\n")
    assert len(imported("mat", folder, map_file=text)[0]) == 1
    (folder / "a.mat").write_bytes(data[:-50])
    with pytest.raises(BadInput, match=r"\.mat file does not decode"):
        imported("mat", folder, map_file=text)
