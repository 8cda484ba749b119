"""Still images as they come: decoded once to prove that they are images, kept as the bytes they were."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from PIL import Image

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_PIXELS: Final = 100_000_000

# Pillow's name -> (media type, file ending)
_FORMATS: Final = {
    "PNG": ("image/png", "png"),
    "JPEG": ("image/jpeg", "jpg"),
    "BMP": ("image/bmp", "bmp"),
    "GIF": ("image/gif", "gif"),
    "TIFF": ("image/tiff", "tif"),
    "WEBP": ("image/webp", "webp"),
}


class MediaFault(ValueError):
    """Bytes that are no usable image; the message says why and names no path."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image file and its facts.

    sha256: of the file's bytes. pixel_hash: of mode, size and RGB samples of the first frame, whatever the format.
    samples: of the first frame, uint8 of (rows, columns) or (rows, columns, 3), for whoever looks at them right away;
    None for modes other than grey and RGB.
    """

    data: bytes
    sha256: str
    media_type: str
    ending: str
    width: int
    height: int
    frames: int
    pixel_hash: str
    samples: Any = field(default=None, repr=False, compare=False)

    def with_data(self, data: bytes) -> Media:
        """Return the same facts with other bytes; empty bytes leave the facts alone."""
        return replace(self, data=data)


class MediaReader:
    """Decodes images, each distinct one once: in a benchmark of several tasks many rows share theirs."""

    def __init__(self) -> None:
        self._facts: dict[str, Media] = {}

    def read(self, data: bytes) -> Media:
        """Return an image as `read_media` does; safe to call from several threads."""
        digest = hashlib.sha256(data).hexdigest()
        facts = self._facts.get(digest)
        if facts is None:
            facts = self._facts[digest] = replace(read_media(data), data=b"", samples=None)
        return facts.with_data(data)


def decode_base64(cell: str) -> bytes:
    """Return the bytes of a base64 cell; line breaks and a `data:` prefix are allowed.

    Raises:
        MediaFault: empty, or not base64.
    """
    text = cell.strip()
    if text.startswith("data:"):
        text = text.partition(",")[2]
    if not text:
        raise MediaFault("no image")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise MediaFault("image is not base64") from error


def read_inside(name: str, folder: Path, root: Path) -> bytes:
    """Return the bytes of a file named relative to `folder`; links must not lead out of `root`.

    Raises:
        MediaFault: no such file, outside `root`, not a plain file, over MAX_BYTES.
    """
    try:
        path = (folder / name.strip()).resolve(strict=True)
        if not path.is_relative_to(root.resolve()):
            raise MediaFault("image path leaves the data folder")
        if not path.is_file():
            raise MediaFault("image path is not a file")
        if path.stat().st_size > MAX_BYTES:
            raise MediaFault("image file is too large")
        return path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, MediaFault):
            raise
        raise MediaFault("no image file at the path") from error


def read_media(data: bytes) -> Media:
    """Decode an image (PNG, JPEG, BMP, GIF, TIFF or WebP, told by its first bytes) and return it with its facts.

    Raises:
        MediaFault: another format, broken, or over MAX_PIXELS.
    """
    try:
        with Image.open(io.BytesIO(data), formats=list(_FORMATS)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise MediaFault("image has too many pixels")
            media_type, ending = _FORMATS[image.format or ""]
            mode, frames = image.mode, int(getattr(image, "n_frames", 1))
            image.seek(0)
            digest = hashlib.sha256(f"{mode}:{image.width}x{image.height}:".encode())
            samples = plain_samples(image)
            digest.update(image.convert("RGB").tobytes() if samples is None else _as_rgb(samples))
            width, height = image.size
    except MediaFault:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise MediaFault("image has too many pixels") from error
    except Exception as error:  # Pillow's decoders raise nearly anything on hostile bytes
        raise MediaFault("image does not decode") from error
    sha256 = hashlib.sha256(data).hexdigest()
    return Media(data, sha256, media_type, ending, width, height, frames, digest.hexdigest(), samples)


def plain_samples(image: Image.Image) -> Any:
    """Return the samples of a grey or RGB image as uint8, None for another mode."""
    import numpy as np

    return np.asarray(image) if image.mode in ("L", "RGB") else None


def _as_rgb(samples: Any) -> Any:
    import cv2

    return (cv2.cvtColor(samples, cv2.COLOR_GRAY2RGB) if samples.ndim == 2 else samples).data


class strict_pixels(warnings.catch_warnings):
    """Context manager: a warning of a decompression bomb becomes an error that `read_media` turns into a fault."""

    def __enter__(self) -> None:
        """Set the filter; it holds for all threads until the block ends."""
        super().__enter__()
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        # Odd tags in an image that decodes are no concern of the reader.
        warnings.filterwarnings("ignore", category=UserWarning, module="PIL")
