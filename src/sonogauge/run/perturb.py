"""Perturbed images: does a model read the picture, and how much noise does it bear?

Each change is a function of the 8-bit pixels and one level, so a level means the same in every run.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
DYNAMIC_RANGE_DB: Final = 60.0  # of a log-compressed B-mode image, black to white


def _gain(pixels: Pixels, level: float, seed: int) -> Pixels:
    # Gain adds decibels, which log compression turned into grey levels.
    louder: Pixels = np.clip(pixels + 255.0 * level / DYNAMIC_RANGE_DB, 0, 255).astype(np.uint8)
    return louder


def _speckle(pixels: Pixels, level: float, seed: int) -> Pixels:
    noise = np.random.default_rng(seed).normal(1.0, level, pixels.shape[:2])
    return np.clip(pixels * (noise if pixels.ndim == 2 else noise[..., None]), 0, 255).astype(np.uint8)


def _crop(pixels: Pixels, level: float, seed: int) -> Pixels:
    top, left = int(pixels.shape[0] * level), int(pixels.shape[1] * level)
    return pixels[top : pixels.shape[0] - top, left : pixels.shape[1] - left]


def _downscale(pixels: Pixels, level: float, seed: int) -> Pixels:
    from PIL import Image

    whole = Image.fromarray(pixels)
    small = whole.resize(
        (max(1, round(whole.width / level)), max(1, round(whole.height / level))), Image.Resampling.BOX
    )
    return np.asarray(small.resize(whole.size, Image.Resampling.BILINEAR))


def _jpeg(pixels: Pixels, level: float, seed: int) -> Pixels:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=int(level))
    return np.asarray(Image.open(stream))


# name -> (function, lowest level, highest level, what the level is)
PERTURBATIONS: Final[dict[str, tuple[Callable[[Pixels, float, int], Pixels], float, float, str]]] = {
    "gain": (_gain, -60.0, 60.0, "decibels of a range of 60"),
    "speckle": (_speckle, 0.0, 2.0, "standard deviation of multiplicative noise"),
    "crop": (_crop, 0.0, 0.45, "share cut off at each border"),
    "downscale": (_downscale, 1.0, 64.0, "factor by which detail is lost; the size stays"),
    "jpeg": (_jpeg, 1.0, 100.0, "quality"),
}


def check_level(text: str) -> tuple[str, float]:
    """Read "NAME:LEVEL"; raise BadInput for an unknown name or a level outside its limits.

    >>> check_level("gain:6")
    ('gain', 6.0)
    """
    name, _, value = text.partition(":")
    if name not in PERTURBATIONS:
        raise BadInput(f"no perturbation '{name}'", fix="known: " + ", ".join(PERTURBATIONS))
    low, high, meaning = PERTURBATIONS[name][1:]
    try:
        level = float(value)
    except ValueError:
        level = float("nan")
    if not low <= level <= high:
        raise BadInput(
            f"not a level of {name}: '{value}'", fix=f"write perturb={name}:LEVEL, {low:g} to {high:g} ({meaning})"
        )
    return name, level


def perturb(image: Image, name: str, level: float, seed: int) -> Image:
    """Return the changed image; `seed` fixes the noise."""
    from PIL import Image as images

    return images.fromarray(np.ascontiguousarray(PERTURBATIONS[name][0](np.asarray(image), level, seed)))
