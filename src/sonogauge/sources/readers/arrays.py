"""Arrays in .npy, .mat and HDF5 files: read as numbers, never run, never unpickled."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.sources.findings import Finding, ReadLog, Regions
from sonogauge.sources.layout import Layout
from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.extra import need
from sonogauge.sources.readers.files import Table
from sonogauge.sources.readers.label_images import binary
from sonogauge.sources.readers.rows import plain
from sonogauge.sources.readers.stacks import Stack, limits_of
from sonogauge.sources.readers.tree import Tree

MAX_VALUES: Final = 20 * MAX_PIXELS
MAX_MAT_BYTES: Final = 8 * 1024**3
_TRY: Final = "import sys; from scipy.io import loadmat; loadmat(sys.argv[1], simplify_cells=True)"
_COMPRESSED: Final = 15  # miCOMPRESSED of the MAT-file format, level 5


def open_npy(path: Path) -> Stack:
    """Open an array of (rows, columns), (rows, columns, 3 or 4) or (frames, rows, columns[, 3]).

    Raises:
        MediaFault: pickled objects, another shape, too large.
    """
    array = _npy(path, path.stat().st_mtime_ns)
    return stack_of(array)


@lru_cache(maxsize=8)
def _npy(path: Path, _changed: int) -> NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False, mmap_mode="r")
    except Exception as error:  # numpy's parser of headers raises nearly anything on hostile bytes
        reason = "array holds pickled objects" if "objects" in str(error).lower() else "array does not decode"
        raise MediaFault(reason) from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "buif" or array.size > MAX_VALUES:
        raise MediaFault("array of no usable kind or size")
    return array


def stack_of(array: NDArray[Any], spacing: tuple[float, float] | None = None) -> Stack:
    """Return an array as a stack; raise MediaFault for a shape that is neither an image nor a row of images."""
    image = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if not image and not (array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (3, 4))):
        raise MediaFault(f"array of shape {array.shape} is no image")
    if 0 in array.shape:
        raise MediaFault("array without values")
    frames = 1 if image else int(array.shape[0])

    def frame(number: int) -> NDArray[Any]:
        values = np.asarray(array if image else array[number])
        return values[..., :3] if values.ndim == 3 else values

    return Stack(frames, frame, spacing, limits=lambda: limits_of([np.asarray(array)]))


def find(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    """Yield the images of .mat and HDF5 files.

    Options of the layout: `images`, name of the array of images; `masks`, name of an array of masks of the same shape;
    `records`, name of a struct array in a .mat file whose entries hold the images and facts. Other arrays of one value
    for each image become facts, which join the tables of the layout.
    """
    tables = [Table(tree, rule, log) for rule in layout.tables]
    for path, fields in tree.match(*layout.find):
        log.used.add(path)
        file = tree.file(path)
        name = path.rpartition(".")[0]
        facts = {**fields, "path": path, "file": path.rpartition("/")[2], "stem": name.rpartition("/")[2]}
        try:
            of_kind = _of_hdf5 if _is_hdf5(file) else _of_mat
            for finding in of_kind(file, path, name, facts, layout):
                finding.notes.extend(note for table in tables if (note := table.add(finding.fields)))
                yield finding
        except MediaFault as fault:
            log.drop(path, str(fault))
    for table in tables:
        table.report()


def _is_hdf5(file: Path) -> bool:
    with file.open("rb") as stream:
        start = stream.read(520)
    # A MAT file of version 7.3 is HDF5 behind 512 bytes of its own.
    return start.startswith(b"\x89HDF\r\n\x1a\n") or start[512:].startswith(b"\x89HDF\r\n")


def _option(layout: Layout, name: str, path: str) -> str:
    value = layout.options.get(name)
    if not isinstance(value, str):
        raise BadInput(f"no '{name}' in the options", file=path, field="options", fix="name the array in the map")
    return value


def _of_hdf5(file: Path, path: str, name: str, facts: dict[str, str], layout: Layout) -> Iterator[Finding]:
    h5py = need("h5py", "HDF5 files")
    images, masks = _option(layout, "images", path), layout.options.get("masks")
    try:
        with h5py.File(file, "r") as opened:
            shape = _dataset(opened, images).shape
            columns = {
                key: _cells(_dataset(opened, key)[()])
                for key in sorted(opened)
                if key not in (images, masks) and _is_column(opened, key, shape)
            }
    except MediaFault:
        raise
    except Exception as error:  # h5py raises nearly anything on hostile bytes
        raise MediaFault("HDF5 file does not decode") from error
    if len(shape) < 3:
        raise MediaFault("HDF5 images are no row of images")
    for number in range(shape[0]):
        own = {key: values[number] for key, values in columns.items()}
        finding = Finding(
            path,
            f"{name}/{number:05d}",
            {**facts, **own, "number": str(number)},
            partial(_picture, partial(_hdf5_frame, file, images, number)),
            cluster=path,
            frame=number,
        )
        if isinstance(masks, str):
            category = str(layout.options.get("category", "region"))
            finding.regions.append(partial(_mask_of, partial(_hdf5_frame, file, masks, number), category))
        yield finding


def _dataset(opened: Any, name: str) -> Any:
    h5py = need("h5py", "HDF5 files")
    link = opened.get(name, getlink=True) if name in opened else None
    if link is None:
        raise MediaFault(f"no array '{name}' in the file")
    found = opened[name] if isinstance(link, h5py.HardLink) else None
    # Links, outside storage and virtual arrays may point to other files.
    if not isinstance(found, h5py.Dataset) or found.external or found.is_virtual:
        raise MediaFault(f"'{name}' is no array of this file")
    return found


def _is_column(opened: Any, key: str, shape: tuple[int, ...]) -> bool:
    try:
        found = _dataset(opened, key)
    except MediaFault:
        return False
    return bool(found.ndim == 1 and found.shape[0] == shape[0])


def _cells(values: NDArray[Any]) -> list[str]:
    return [_cell(value) for value in values]


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return plain(value.item() if isinstance(value, np.generic) else value).strip()


def _hdf5_frame(file: Path, name: str, number: int) -> NDArray[Any]:
    h5py = need("h5py", "HDF5 files")
    try:
        with h5py.File(file, "r") as opened:
            found = _dataset(opened, name)
            if int(np.prod(found.shape[1:], dtype=np.float64)) > MAX_PIXELS * 4:
                raise MediaFault("image has too many pixels")
            return np.asarray(found[number])
    except MediaFault:
        raise
    except Exception as error:  # see _of_hdf5
        raise MediaFault("HDF5 file does not decode") from error


def _picture(frame: Callable[[], NDArray[Any]]) -> Any:
    return stack_of(frame()).picture(0)


def _mask_of(frame: Callable[[], NDArray[Any]], category: str, width: int, height: int) -> Regions:
    mask = binary(frame())
    if mask.shape != (height, width):
        raise MediaFault("mask of another size than the image")
    return Regions([(category, mask)])


def _of_mat(file: Path, path: str, name: str, facts: dict[str, str], layout: Layout) -> Iterator[Finding]:
    content = load_mat(file, file.stat().st_mtime_ns)
    images, records = _option(layout, "images", path), layout.options.get("records")
    if records is None:
        entries: list[Any] = [content]
    else:
        found = content.get(records)
        entries = found if isinstance(found, list) else list(np.atleast_1d(found)) if found is not None else []
    if not entries:
        raise MediaFault(f"no '{records}' in the file")
    for place, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or images not in entry:
            raise MediaFault(f"no '{images}' in the file")
        own = {key: _cell(value) for key, value in entry.items() if isinstance(value, (str, int, float, np.generic))}
        stack = stack_of(np.asarray(entry[images]))
        before = name if records is None else f"{name}/{place:04d}"
        for number in stack.choose(layout.frames):
            yield Finding(
                path,
                f"{before}/{number:04d}",
                {**facts, **own, "entry": str(place), "frame": str(number)},
                partial(_mat_picture, file, records, place, images, number),
                cluster=f"{path}/{place}",
                frame=number if len(stack) > 1 else None,
            )


def _mat_picture(file: Path, records: str | None, place: int, images: str, number: int) -> Any:
    content = load_mat(file, file.stat().st_mtime_ns)
    entry = content if records is None else list(np.atleast_1d(content[records]))[place]
    return stack_of(np.asarray(entry[images])).picture(number)


@lru_cache(maxsize=1)
def load_mat(file: Path, _changed: int) -> dict[str, Any]:
    """Return the variables of a .mat file (format 5) with structs as dicts.

    Raises:
        MediaFault: broken, another format, unpacks to more than MAX_MAT_BYTES.
    """
    from scipy.io import loadmat

    if _unpacked(file) > MAX_MAT_BYTES:
        raise MediaFault(".mat file unpacks to too many bytes")
    # scipy's reader crashes on some broken files, so another process tries first.
    tried = subprocess.run(
        [sys.executable, "-c", _TRY, str(file)], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if tried.returncode:
        raise MediaFault(".mat file does not decode")
    try:
        content = loadmat(file, simplify_cells=True)
    except Exception as error:  # scipy raises nearly anything on hostile bytes
        raise MediaFault(".mat file does not decode") from error
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _unpacked(file: Path) -> int:
    """Return how many bytes the compressed elements of a .mat file hold, counting no further than the limit."""
    total = 0
    with file.open("rb") as stream:
        little = stream.read(128)[126:] == b"IM"
        order: Literal["little", "big"] = "little" if little else "big"
        while len(tag := stream.read(8)) == 8:
            kind = int.from_bytes(tag[:4], order)
            size = int.from_bytes(tag[4:], order)
            if kind != _COMPRESSED:
                total += size
                stream.seek(size, 1)
                continue
            unpacker, left = zlib.decompressobj(), size
            while left > 0 and (chunk := stream.read(min(left, 1 << 20))):
                left -= len(chunk)
                while chunk and total <= MAX_MAT_BYTES:
                    try:
                        total += len(unpacker.decompress(chunk, 1 << 24))
                    except zlib.error as error:
                        raise MediaFault(".mat file does not decode") from error
                    chunk = unpacker.unconsumed_tail
            if total > MAX_MAT_BYTES:
                break
    return total
