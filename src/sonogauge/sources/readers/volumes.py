"""NIfTI and MetaImage files: frames in reading order, spacing in mm from the header."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MAX_PIXELS, MediaFault
from sonogauge.sources.readers.extra import need
from sonogauge.sources.readers.metaimage import read_header, read_values
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
        BadInput: nibabel is missing, for NIfTI.
    """
    size, spacing, components = _facts(path)
    if int(np.prod(size, dtype=np.float64)) * components > MAX_VOXELS or min(size) < 1:
        raise MediaFault("volume of an unusable size")
    # An axis of one step carries nothing; the first two are the image even so.
    kept = [0, 1, *(axis for axis in range(2, len(size)) if size[axis] > 1)]
    size, spacing = tuple(size[axis] for axis in kept), tuple(spacing[axis] for axis in kept)
    if len(size) not in (2, 3) or components not in (1, *_COLOURS):
        raise MediaFault("volume of an unusable size")
    coloured = components == 1 and len(size) == 3 and size[2] in _COLOURS
    frames = 1 if len(size) == 2 or coloured else size[2]
    # A half turn of (x, y) leaves x in the rows.
    pair = (spacing[1], spacing[0]) if rotate and rotate % 2 == 0 else (spacing[0], spacing[1])
    # A header without spacing says 1 in all directions.
    known = None if all(one == 1 for one in spacing) or not min(pair) > 0 else (float(pair[0]), float(pair[1]))

    def array(number: int) -> NDArray[Any]:
        volume = _read(path)
        volume = volume.reshape((*size[::-1], components) if components > 1 else size[::-1])
        if len(size) == 2:
            frame = volume
        elif coloured:
            frame = np.moveaxis(volume, 0, -1)
        else:
            frame = volume[number]
        frame = frame[:, :, :3] if frame.ndim == 3 else frame
        if rotate:
            frame = np.rot90(np.swapaxes(frame, 0, 1), -rotate)
        return np.ascontiguousarray(frame)

    return Stack(frames, array, known, limits=lambda: limits_of([_read(path)]))


def _is_meta(path: Path) -> bool:
    return path.suffix.lower() in (".mha", ".mhd")


def _facts(path: Path) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    """Return size and spacing in the order x, y, z, and the number of channels."""
    if _is_meta(path):
        header = read_header(path)
        if len(header.size) < 2:
            raise MediaFault("volume of an unusable size")
        return header.size, header.spacing, header.channels
    image = _nifti(path)
    size = tuple(int(one) for one in image.shape)
    if len(size) < 2:
        raise MediaFault("volume of an unusable size")
    return size, tuple(float(one) for one in image.header.get_zooms()), len(image.get_data_dtype().names or "1")


def _nifti(path: Path) -> Any:
    nibabel = need("nibabel", "NIfTI files")
    try:
        return nibabel.Nifti1Image.from_filename(str(path))
    except Exception as error:  # nibabel raises nearly anything on hostile bytes
        raise MediaFault("volume does not decode") from error


def _read(path: Path) -> NDArray[Any]:
    # Threads ask for slices of one volume at the same time; it must not be loaded for each of them.
    with _LOADING:
        return _volume(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _volume(path: Path, _changed: int) -> NDArray[Any]:
    if _is_meta(path):
        return read_values(read_header(path))
    image = _nifti(path)
    try:
        values = np.asanyarray(image.dataobj)
    except Exception as error:  # see _nifti
        raise MediaFault("volume does not decode") from error
    if values.dtype.names:
        values = np.stack([values[name] for name in values.dtype.names])
    if not np.isfinite(values).all():
        raise MediaFault("volume with values that are no numbers")
    return np.ascontiguousarray(values.T)
