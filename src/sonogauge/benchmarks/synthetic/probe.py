"""The field of view of the simulated probes: beams in polar or parallel lines, and the way from beams to pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput

Array = NDArray[np.float32]

SIZE: Final = 256  # pixels a side
SAMPLES: Final = 384  # along a beam
BEAMS: Final = 176


@dataclass(frozen=True)
class Probe:
    """A field of view in pixels.

    A linear probe has `half_angle` 0 and parallel beams over `half_width` on both sides of the middle; a fan has its
    apex at (middle, apex_y) and beams from radius `near` to `near + depth` within +-half_angle (radians).
    """

    name: str
    top: float
    depth: float
    half_width: float = 0.0
    near: float = 0.0
    half_angle: float = 0.0

    @property
    def apex_y(self) -> float:
        """Height of the fan's apex, above the image where negative."""
        return self.top - self.near

    def grid(self) -> tuple[Array, Array]:
        """Return x and y in pixels of all beam samples, each of shape (samples, beams)."""
        return _grid(self)

    def to_beams(self) -> tuple[Array, Array]:
        """Return beam and sample coordinates of all pixel centres; -1 outside the field of view."""
        return _to_beams(self)

    def holds(self, x: float, y: float, margin: float) -> bool:
        """Return whether a point lies in the field of view, at least `margin` pixels from its border."""
        middle = SIZE / 2
        if not self.half_angle:
            return (
                abs(x - middle) <= self.half_width - margin and self.top + margin <= y <= self.top + self.depth - margin
            )
        dx, dy = x - middle, y - self.apex_y
        radius = float(np.hypot(dx, dy))
        from_side = radius * np.sin(self.half_angle - abs(np.arctan2(dx, dy)))
        return bool(self.near + margin <= radius <= self.near + self.depth - margin and from_side >= margin)


_PROBES: Final = {
    "linear": Probe("linear", top=8, depth=240, half_width=118),
    "curved": Probe("curved", top=16, depth=196, near=56, half_angle=float(np.deg2rad(28))),
    "sector": Probe("sector", top=20, depth=200, near=4, half_angle=float(np.deg2rad(37))),
}


def probe_of(name: str) -> Probe:
    """Return the probe of that name; raise BadInput for an unknown one."""
    if name not in _PROBES:
        raise BadInput(f"no simulated probe '{name}'", fix="known: " + ", ".join(_PROBES))
    return _PROBES[name]


@lru_cache(maxsize=8)
def _grid(probe: Probe) -> tuple[Array, Array]:
    sample = np.linspace(0, probe.depth, SAMPLES, dtype=np.float32)[:, None]
    across = np.linspace(-1, 1, BEAMS, dtype=np.float32)[None, :]
    middle = np.float32(SIZE / 2)
    if not probe.half_angle:
        x = middle + across * np.float32(probe.half_width) + 0 * sample
        y = np.float32(probe.top) + sample + 0 * across
    else:
        angle = across * np.float32(probe.half_angle)
        radius = sample + np.float32(probe.near)
        x = middle + radius * np.sin(angle)
        y = np.float32(probe.apex_y) + radius * np.cos(angle)
    return _frozen(x, y)


def _frozen(first: Array, second: Array) -> tuple[Array, Array]:
    # Cached and shared between threads: nobody may write into them.
    pair = first.astype(np.float32), second.astype(np.float32)
    for array in pair:
        array.flags.writeable = False
    return pair


@lru_cache(maxsize=8)
def _to_beams(probe: Probe) -> tuple[Array, Array]:
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) + np.float32(0.5)
    x -= np.float32(SIZE / 2)
    if not probe.half_angle:
        across, depth = x / np.float32(probe.half_width), y - np.float32(probe.top)
    else:
        y = y - np.float32(probe.apex_y)
        across = np.arctan2(x, y) / np.float32(probe.half_angle)
        depth = np.hypot(x, y) - np.float32(probe.near)
    outside = (np.abs(across) > 1) | (depth < 0) | (depth > probe.depth)
    beam = (across + 1) / 2 * np.float32(BEAMS - 1)
    sample = depth / np.float32(probe.depth) * np.float32(SAMPLES - 1)
    beam[outside] = -1
    sample[outside] = -1
    return _frozen(beam, sample)
