"""NIfTI, MetaImage and NRRD files: frames in reading order, spacing in mm from the header."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.extra import need
from sonogauge.sources.readers.stacks import Stack, limits_of

MAX_VOXELS: Final = 20 * MAX_PIXELS
# RGB stored as three slices: no ultrasound volume is this shallow.
_COLOURS: Final = (3, 4)
_LOADING: Final = Lock()


def open_volume(path: Path, rotate: int = 0) -> Stack:
    """Open a volume as a stack of its slices along the last axis of its header.

    A volume of three slices, or of vectors of three, is one colour image.

    Args:
        path: the file.
        rotate: 0 = rows are y and columns x of the header. Else the slice is taken as an array of (x, y), the way
            nibabel and most converters hold it, and turned clockwise by so many quarters.

    Raises:
        MediaFault: unreadable, or over MAX_VOXELS.
        BadInput: SimpleITK is missing.
    """
    size, spacing, components = _header(path)
    if len(size) not in (2, 3) or int(np.prod(size, dtype=np.float64)) * components > MAX_VOXELS:
        raise MediaFault("volume of an unusable size")
    coloured = len(size) == 3 and size[2] in _COLOURS
    frames = 1 if len(size) == 2 or coloured else size[2]
    # A half turn of (x, y) leaves x in the rows.
    pair = (spacing[1], spacing[0]) if rotate and rotate % 2 == 0 else (spacing[0], spacing[1])
    # A header without spacing says 1 in all directions.
    known = None if all(one == 1 for one in spacing) or min(pair) <= 0 else (float(pair[0]), float(pair[1]))

    def array(number: int) -> NDArray[Any]:
        volume = _read(path)
        if volume.ndim == 2 or (components > 1 and volume.ndim == 3):
            frame = volume
        elif coloured:
            frame = np.moveaxis(volume, 0, -1)[:, :, :3]
        else:
            frame = volume[number]
        if rotate:
            frame = np.rot90(np.swapaxes(frame, 0, 1), -rotate)
        return np.ascontiguousarray(frame)

    return Stack(frames, array, known, limits=lambda: limits_of([_read(path)]))


def _header(path: Path) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    sitk = need("SimpleITK", "NIfTI and MetaImage files")
    reader = sitk.ImageFileReader()
    reader.SetFileName(str(path))
    try:
        reader.ReadImageInformation()
        size = tuple(int(one) for one in reader.GetSize())
        spacing = tuple(float(one) for one in reader.GetSpacing())
        components = int(reader.GetNumberOfComponents())
    except RuntimeError as error:
        raise MediaFault("volume does not decode") from error
    while len(size) > 2 and size[-1] == 1:
        size, spacing = size[:-1], spacing[:-1]
    return size, spacing, components


def _read(path: Path) -> NDArray[Any]:
    # Threads ask for slices of one volume at the same time; it must not be loaded for each of them.
    with _LOADING:
        return _volume(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _volume(path: Path, _changed: int) -> NDArray[Any]:
    sitk = need("SimpleITK", "NIfTI and MetaImage files")
    try:
        volume = np.asarray(sitk.GetArrayFromImage(sitk.ReadImage(str(path))))
    except RuntimeError as error:
        raise MediaFault("volume does not decode") from error
    while volume.ndim > 2 and volume.shape[0] == 1:
        volume = volume[0]
    return volume
