"""Simple images whose masks are known."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def disc(shape: tuple[int, int], x: float, y: float, radius: float) -> np.ndarray:
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]] + 0.5
    return np.asarray((columns - x) ** 2 + (rows - y) ** 2 <= radius**2)


def grey_image(mask: np.ndarray, inside: int, outside: int, noise: float) -> np.ndarray:
    values = np.where(mask, inside, outside) + np.random.default_rng(0).normal(0, noise, mask.shape)
    return np.clip(values, 0, 255).astype(np.uint8)


def png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()
