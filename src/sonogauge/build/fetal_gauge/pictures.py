"""Pictures of a build: the red box of a VG question, and a declared image size."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.benchmarks.fetal_gauge.parameters import Parameters
from sonogauge.build.fingerprint import Pixels, decode
from sonogauge.cases.render import draw_box


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG file and its facts."""

    data: bytes
    sha256: str
    pixel_hash: str
    width: int
    height: int


def read_pixels(row: Mapping[str, Any]) -> Pixels:
    """Return the pixels of a case.

    Raises:
        BadInput: an image that cannot be decoded, or of another size than the case says.
    """
    data = row["image"]["bytes"] if row["image"] else None
    pixels = decode(data) if data else None
    if pixels is None:
        raise BadInput("an image that cannot be decoded", file=row["case_id"], field="image", fix="import it again")
    if pixels.shape[:2] != (row["height"], row["width"]):
        raise BadInput(
            f"an image of {pixels.shape[1]} x {pixels.shape[0]} pixels, not {row['width']} x {row['height']}",
            file=row["case_id"],
            field="width",
            fix="import it again",
        )
    return pixels


def scale_of(width: int, height: int, parameters: Parameters) -> float:
    """Return the factor by which an image is resized, 1.0 for the native size.

    >>> scale_of(400, 800, Parameters(image_size=200))
    0.25
    """
    return 1.0 if parameters.image_size is None else parameters.image_size / max(width, height)


def resize(pixels: Pixels, parameters: Parameters) -> Pixels:
    """Return an image at the declared size."""
    import cv2

    height, width = pixels.shape[:2]
    scale = scale_of(width, height, parameters)
    if scale == 1.0:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    kind = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, size, interpolation=kind), dtype=np.uint8)


def box_at(box: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """Return a box at another scale; the category stays."""
    return {name: value if name == "category" else value * scale for name, value in box.items()}


def boxed_pixels(pixels: Pixels, box: Mapping[str, Any], parameters: Parameters) -> Pixels:
    """Return the picture of a VG question: the native image with the box, resized before or after as declared."""
    p = parameters
    scale = 1.0
    if p.draw_stage == "after":
        scale = scale_of(pixels.shape[1], pixels.shape[0], p)
        pixels = resize(pixels, p)
    drawn = draw_box(
        pixels,
        box_at(box, scale),
        colour=p.box_rgb,
        line=p.box_line_px,
        side=p.box_side,
        pad=p.vg_pad_px,
        antialias=p.box_antialias,
    )
    return drawn if p.draw_stage == "after" else resize(drawn, p)


def encode(pixels: Pixels) -> Picture:
    """Return pixels as a PNG, which keeps every one of them.

    Raises:
        BadInput: OpenCV cannot write them.
    """
    import cv2

    shown = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    # Without a level OpenCV filters rows by one rule instead of trying all: half the time, 3 % more bytes on HC18.
    done, coded = cv2.imencode(".png", shown, [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_DEFAULT])
    if not done:
        raise BadInput("a picture that cannot be written as PNG", fix="look at its size")
    data = coded.tobytes()
    height, width = pixels.shape[:2]
    # As `sources.media.read_media` hashes the same file.
    digest = hashlib.sha256(f"{'L' if pixels.ndim == 2 else 'RGB'}:{width}x{height}:".encode())
    digest.update(np.ascontiguousarray(pixels if pixels.ndim == 3 else cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB)).data)
    return Picture(data, hashlib.sha256(data).hexdigest(), digest.hexdigest(), width, height)
