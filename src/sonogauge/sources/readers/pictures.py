"""Files to pixels: what each kind of picture file needs to become 8-bit images and mask arrays."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sonogauge.sources.media import MAX_PIXELS, Media, MediaFault, read_media

PLAIN: Final = frozenset({"png", "jpg", "jpeg", "bmp", "gif", "tif", "tiff", "webp"})
VOLUMES: Final = ("nii", "nii.gz", "mha", "mhd")
VIDEOS: Final = frozenset({"mp4", "avi", "mov", "mkv", "webm", "m4v", "mpg", "mpeg", "wmv"})


@dataclass(frozen=True, slots=True)
class Picture:
    """One image with what its file says about it.

    data: the bytes that are kept; the original file's where a browser can show it, else a PNG.
    spacing: mm per pixel, x and y. meta: facts of the file. notes: what was changed or found odd.
    """

    data: bytes
    spacing: tuple[float, float] | None = None
    meta: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def media(self) -> Media:
        """Decode the bytes and return them with their facts; raise MediaFault where they do not decode."""
        return read_media(self.data)


def ending(path: str) -> str:
    """Return the ending of a path in lower case, `nii.gz` whole.

    >>> ending("a/b.NII.gz"), ending("c.JPG")
    ('nii.gz', 'jpg')
    """
    name = path.rpartition("/")[2].lower()
    return "nii.gz" if name.endswith(".nii.gz") else name.rpartition(".")[2]


def decode_pixels(data: bytes) -> NDArray[Any]:
    """Return the pixels of a plain image file as its own values: (rows, columns) or (rows, columns, 3 or 4).

    A palette image gives its colours; a 1-bit image gives booleans.

    Raises:
        MediaFault: no such image, broken, or over MAX_PIXELS.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise MediaFault("image has too many pixels")
            if image.mode == "P":
                return np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
            if image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
                return np.asarray(image.convert("RGB"))
            return np.asarray(image)
    except MediaFault:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise MediaFault("image has too many pixels") from error
    except Exception as error:  # Pillow's decoders raise nearly anything on hostile bytes
        raise MediaFault("image does not decode") from error


def decode_palette(data: bytes) -> NDArray[Any]:
    """Return the index values of a palette image, the pixels of any other; for masks of class numbers."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.mode == "P" and image.width * image.height <= MAX_PIXELS:
                return np.asarray(image)
    except Exception as error:  # see decode_pixels
        raise MediaFault("image does not decode") from error
    return decode_pixels(data)


def to_png(pixels: NDArray[Any]) -> bytes:
    """Return pixels, uint8 of (rows, columns) or (rows, columns, 3), as a PNG file."""
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, "PNG")
    return stream.getvalue()


def to_eight_bits(
    pixels: NDArray[Any], low: float | None = None, high: float | None = None
) -> tuple[NDArray[np.uint8], str | None]:
    """Return pixels as 8-bit values and a note of how, None if they were so already.

    low, high: values that become 0 and 255, by default the smallest and largest. Integers within 0 to 255 stay as they
    are, and so do floats that hold whole numbers above 1.

    >>> to_eight_bits(np.array([[0, 100, 200]], dtype=np.int16))[0].tolist()
    [[0, 100, 200]]
    >>> to_eight_bits(np.array([[0.0, 0.5, 1.0]]))
    (array([[  0, 128, 255]], dtype=uint8), 'scaled from 0 to 1 to 8 bits')
    """
    if pixels.dtype == np.uint8:
        return pixels, None
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * np.uint8(255), "scaled from 0 to 1 to 8 bits"
    values = pixels.astype(np.float64)
    if not np.isfinite(values).all():
        raise MediaFault("pixels that are no numbers")
    floor = float(values.min()) if low is None else low
    top = float(values.max()) if high is None else high
    whole = bool((values == np.rint(values)).all())
    kept = (low is None and (pixels.dtype.kind in "iu" or top > 1)) or (low, high) == (0, 255)
    if kept and whole and values.min() >= 0 and values.max() <= 255:
        return values.astype(np.uint8), None
    if top <= floor:
        return np.zeros(pixels.shape, dtype=np.uint8), None
    scaled = np.clip((values - floor) / (top - floor) * 255, 0, 255)
    return np.rint(scaled).astype(np.uint8), f"scaled from {floor:g} to {top:g} to 8 bits"
