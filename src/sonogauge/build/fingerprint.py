"""What tells images apart and finds their copies: a hash of the pixels, perceptual codes, a thumbnail.

Codes: the signs of low cosine frequencies around their median, of the whole image and of parts of it, so that a copy
that was cropped by a few percent has a code close to that of a part of its original. Source of the idea: C. Zauner,
"Implementation and benchmarking of perceptual image hash functions", 2010, section 3.2.1 (DCT based hash).
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.sources.media import MAX_PIXELS, plain_samples

Pixels = NDArray[np.uint8]

_BASE: Final = 128
THUMB: Final = 64
_DCT: Final = 32
_LOW: Final = 8
# Parts of the image, as left, top, right, bottom fractions: whole, 2.5 and 5 % off each side, 5 % off two sides or one.
WINDOWS: Final = (
    (0.0, 0.0, 1.0, 1.0),
    (0.025, 0.025, 0.975, 0.975),
    (0.05, 0.05, 0.95, 0.95),
    (0.0, 0.0, 0.95, 0.95),
    (0.05, 0.0, 1.0, 0.95),
    (0.0, 0.05, 0.95, 1.0),
    (0.05, 0.05, 1.0, 1.0),
    (0.05, 0.0, 1.0, 1.0),
    (0.0, 0.0, 0.95, 1.0),
    (0.0, 0.05, 1.0, 1.0),
    (0.0, 0.0, 1.0, 0.95),
)
ORIENTATIONS: Final = 8


@dataclass(frozen=True, slots=True)
class Signature:
    """pixels: SHA-256 of size and grey or RGB samples; codes: (WINDOWS, ORIENTATIONS) uint64; thumb: THUMB x THUMB."""

    pixels: str
    codes: NDArray[np.uint64]
    thumb: Pixels


def decode(data: bytes) -> Pixels | None:
    """Return an image as 8-bit (rows, columns) or (rows, columns, 3) RGB, None where it cannot be read.

    An RGB image whose channels are equal comes as grey, so that the way of storing makes no difference.
    """
    import cv2
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                return None
            pixels = plain_samples(image)
            if pixels is None:
                # OpenCV keeps the high byte of deep images, but knows fewer formats and modes than Pillow.
                flags = cv2.IMREAD_ANYCOLOR | cv2.IMREAD_IGNORE_ORIENTATION
                found = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
                if found is None:
                    pixels = np.asarray(image.convert("RGB"))
                else:
                    pixels = found if found.ndim == 2 else found[:, :, ::-1]
    except Exception:  # decoders raise nearly anything on hostile bytes
        return None
    return fold(pixels)


def fold(samples: Pixels) -> Pixels:
    """Return RGB samples whose channels are equal as grey, others as they are; the result is contiguous."""
    if samples.ndim == 3:
        first = samples[:, :, 0]
        if np.array_equal(first, samples[:, :, 1]) and np.array_equal(first, samples[:, :, 2]):
            samples = first
    return np.ascontiguousarray(samples)


def to_grey(pixels: Pixels) -> Pixels:
    """Return an image as grey (rows, columns)."""
    import cv2

    return pixels if pixels.ndim == 2 else np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY))


def sign(pixels: Pixels) -> Signature:
    """Return the signature of a decoded image."""
    import cv2

    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"{width}x{height}x{pixels.ndim}:".encode())
    digest.update(pixels.data)
    base = cv2.resize(to_grey(pixels), (_BASE, _BASE), interpolation=cv2.INTER_AREA)
    thumb = cv2.resize(base, (THUMB, THUMB), interpolation=cv2.INTER_AREA)
    codes = _codes(_low_frequencies(base))
    return Signature(digest.hexdigest(), codes, np.asarray(thumb, dtype=np.uint8))


@cache
def _sides() -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return what takes the low cosine frequencies of each side of the windows, and which side each window has.

    A side of a window is shrunk to _DCT values by areas and transformed; both are linear, so one matrix of
    (sides, _LOW, _BASE) does it. The other two: for each window, the side of its rows and that of its columns.
    """
    import cv2

    transform = cv2.dct(np.eye(_DCT, dtype=np.float32), flags=cv2.DCT_ROWS).T[:_LOW]
    spans = sorted({span for left, top, right, bottom in WINDOWS for span in ((left, right), (top, bottom))})
    sides = np.zeros((len(spans), _LOW, _BASE))
    for number, (start, end) in enumerate(spans):
        first, last = round(start * _BASE), round(end * _BASE)
        unit = np.eye(last - first, dtype=np.float32)
        shrink = cv2.resize(unit, (last - first, _DCT), interpolation=cv2.INTER_AREA)
        sides[number, :, first:last] = transform @ shrink
    down = np.array([spans.index((top, bottom)) for _, top, _, bottom in WINDOWS])
    across = np.array([spans.index((left, right)) for left, _, right, _ in WINDOWS])
    return sides, down, across


def _low_frequencies(base: Any) -> NDArray[np.float64]:
    """Return the low cosine frequencies of the windows of a _BASE x _BASE picture, (WINDOWS, _LOW, _LOW).

    Rounded to a tenth of a grey value, so that frequencies which are not there are 0 and not noise.
    """
    sides, down, across = _sides()
    flat = sides.reshape(-1, _BASE)
    every = (flat @ base.astype(np.float64) @ flat.T).reshape(len(sides), _LOW, len(sides), _LOW)
    found: NDArray[np.float64] = every[down, :, across, :].round(1)
    return found


_SIGNS: Final = np.where(np.arange(_LOW) % 2, -1.0, 1.0)


def _codes(low: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the codes of pictures in their eight orientations; turning a picture only swaps and negates.

    low: cosine frequencies, (pictures, _LOW, _LOW). Returns: (pictures, ORIENTATIONS).
    """
    upright = np.stack([low, low.transpose(0, 2, 1)], axis=1)
    # Axes: picture, swapped, turned top to bottom, turned left to right, row, column.
    blocks = np.stack([upright, upright * _SIGNS[:, None]], axis=2)
    blocks = np.stack([blocks, blocks * _SIGNS], axis=3).reshape(len(low), ORIENTATIONS, -1)
    blocks[:, :, 0] = 0  # the mean brightness
    # The median of the other 63 values, which are an odd number.
    middle = np.partition(blocks[:, :, 1:], (_LOW * _LOW - 2) // 2, axis=2)[:, :, (_LOW * _LOW - 2) // 2, None]
    return np.packbits(blocks > middle, axis=2).view(np.uint64).reshape(len(low), ORIENTATIONS)


def orient(picture: Pixels, orientation: int) -> Pixels:
    """Return a picture in one of the eight orientations, in the order of the codes."""
    turned = picture.T if orientation & 4 else picture
    if orientation & 2:
        turned = turned[::-1]
    return np.ascontiguousarray(turned[:, ::-1] if orientation & 1 else turned)
