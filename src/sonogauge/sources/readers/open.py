"""One door to every picture file: by its ending a still image, a stack of frames, or a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MediaFault
from sonogauge.sources.readers.pictures import (
    PLAIN,
    VIDEOS,
    VOLUMES,
    Picture,
    decode_palette,
    decode_pixels,
    ending,
    to_png,
)
from sonogauge.sources.readers.stacks import Stack
from sonogauge.sources.readers.tree import Tree


def stack_kind(path: str) -> str | None:
    """Return what kind of stack a file is by its ending: dicom, video, volume, array; None for a still image.

    >>> stack_kind("a.nii.gz"), stack_kind("b.MP4"), stack_kind("c.png")
    ('volume', 'video', None)
    """
    end = ending(path)
    if end in PLAIN:
        return None
    if end in VOLUMES:
        return "volume"
    if end in VIDEOS:
        return "video"
    if end == "npy":
        return "array"
    return "dicom"


def open_stack(tree: Tree, path: str, rotate: int = 0) -> Stack:
    """Open a file of one or several frames.

    Raises:
        MediaFault: unreadable or too large.
        BadInput: the extra that it needs is missing.
    """
    file, kind = tree.file(path), stack_kind(path)
    if kind == "volume":
        from sonogauge.sources.readers.volumes import open_volume

        return open_volume(file, rotate)
    if kind == "video":
        from sonogauge.sources.readers.video import open_video

        return open_video(file)
    if kind == "array":
        from sonogauge.sources.readers.arrays import open_npy

        return open_npy(file)
    from sonogauge.sources.readers.dicom import open_dicom

    return open_dicom(file)


def open_still(tree: Tree, path: str, rotate: int = 0) -> Picture:
    """Return a still image, its bytes as they are unless it has to be turned."""
    data = tree.read(path)
    if rotate % 4 == 0:
        return Picture(data)
    pixels = decode_pixels(data)
    if pixels.dtype != np.uint8:
        raise MediaFault("cannot turn an image of this kind")
    return Picture(to_png(np.rot90(pixels, -rotate)), notes=(f"turned by {rotate % 4 * 90} degrees",))


def load_mask(
    tree: Tree, path: str, rotate: int = 0, frame: int | None = None, *, numbers: bool = False
) -> NDArray[Any]:
    """Return the values of a mask file, of one frame where it has several.

    numbers: give the index values of a palette image instead of its colours.

    Raises:
        MediaFault: unreadable, or several frames without a number.
    """
    if stack_kind(path) is None:
        data = tree.read(path)
        return np.rot90(decode_palette(data) if numbers else decode_pixels(data), -rotate)
    stack = open_stack(tree, path, rotate)
    if frame is None and len(stack) > 1:
        raise MediaFault("mask of several frames for a still image")
    if frame is not None and frame >= len(stack) > 1:
        raise MediaFault("mask has no such frame")
    return stack.array(0 if len(stack) == 1 else frame or 0)
