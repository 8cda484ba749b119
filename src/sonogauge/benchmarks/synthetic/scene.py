"""What lies in a simulated image: a patient's fixed properties and the objects of one scan, drawn from a seed.

Lengths are pixels of the 256 x 256 image, x to the right, y down, measured from the upper left corner of the image
(pixel centres lie at half-integers). Every fact of a scene is exact, because the image is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.benchmarks.synthetic.probe import SIZE, Probe, probe_of

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]

LESIONS: Final = ("cyst", "solid lesion", "shadowing lesion")
NO_LESION: Final = "no lesion"
SECTIONS: Final = ("longitudinal tube", "transverse tube")
NO_TUBE: Final = "no tube"
_ATTEMPTS: Final = 60
_MARGIN: Final = 4.0


@dataclass(frozen=True, slots=True)
class Patient:
    """What all images of a simulated patient share; levels and gains in dB, layer depths as fractions of the depth."""

    number: int
    axial_sigma: float
    lateral_sigma: float
    focus: float
    residual_attenuation: float
    gain: float
    dynamic_range: float
    noise: float
    layer_depths: tuple[float, float]
    layer_levels: tuple[float, float, float]
    spacing_linear: float
    spacing_fan: float


@dataclass(frozen=True, slots=True)
class Ellipse:
    """A lesion: centre, half axes (long first) and the angle of the long axis in radians."""

    x: float
    y: float
    long: float
    short: float
    angle: float

    def radius(self, x: Array, y: Array) -> Array:
        """Return the elliptical radius of points: below 1 inside."""
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        dx, dy = x - np.float32(self.x), y - np.float32(self.y)
        along = (dx * np.float32(cos) + dy * np.float32(sin)) / np.float32(self.long)
        across = (dy * np.float32(cos) - dx * np.float32(sin)) / np.float32(self.short)
        return np.sqrt(along * along + across * across)

    def grown(self, margin: float) -> Ellipse:
        """Return the ellipse with both half axes longer by `margin`."""
        return replace(self, long=self.long + margin, short=self.short + margin)


@dataclass(frozen=True, slots=True)
class Segment:
    """A line with a half width: a tube's lumen (half width = radius) or a bone line (x1, y1 = its free end)."""

    x0: float
    y0: float
    x1: float
    y1: float
    half_width: float

    def distance(self, x: Array, y: Array) -> Array:
        """Return the distance of points from the line between the two ends."""
        dx, dy = self.x1 - self.x0, self.y1 - self.y0
        length = dx * dx + dy * dy
        px, py = x - np.float32(self.x0), y - np.float32(self.y0)
        if length == 0:
            return np.asarray(np.hypot(px, py), dtype=np.float32)
        along = np.clip((px * np.float32(dx) + py * np.float32(dy)) / np.float32(length), 0, 1)
        return np.asarray(np.hypot(px - along * np.float32(dx), py - along * np.float32(dy)), dtype=np.float32)

    def inside(self, x: Array, y: Array, margin: float = 0.0) -> Mask:
        """Return which points lie within the half width plus a margin."""
        return self.distance(x, y) <= np.float32(self.half_width + margin)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scan: the probe, the pixel size in mm and the objects; `lesion_level` is the echo of a solid lesion in dB."""

    probe: str
    spacing: float
    lesion_type: str
    lesion: Ellipse | None
    lesion_level: float
    tube: Segment | None
    section: str
    bone: Segment | None

    def lesion_mask(self) -> Mask | None:
        """Return the lesion's pixels, None without a lesion."""
        return None if self.lesion is None else self.lesion.radius(*pixel_centres()) <= 1

    def tube_mask(self) -> Mask | None:
        """Return the pixels of the tube's lumen, None without a tube."""
        return None if self.tube is None else self.tube.inside(*pixel_centres())

    @property
    def bone_end(self) -> tuple[float, float] | None:
        """The free end of the bone line, None without a bone."""
        return None if self.bone is None else (self.bone.x1, self.bone.y1)

    @property
    def lesion_mm(self) -> float | None:
        """Longest diameter of the lesion in mm."""
        return None if self.lesion is None else 2 * self.lesion.long * self.spacing

    @property
    def tube_mm(self) -> float | None:
        """Inner diameter of the tube in mm."""
        return None if self.tube is None else 2 * self.tube.half_width * self.spacing


def pixel_centres() -> tuple[Array, Array]:
    """Return x and y of all pixel centres, each of shape (256, 256)."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) + np.float32(0.5)
    return x, y


def draw_patient(number: int, random: np.random.Generator) -> Patient:
    """Draw the fixed properties of a patient."""
    first = random.uniform(0.09, 0.15)
    return Patient(
        number=number,
        axial_sigma=random.uniform(1.0, 1.7),
        lateral_sigma=random.uniform(1.1, 2.0),
        focus=random.uniform(0.35, 0.6),
        residual_attenuation=random.uniform(-3.0, 14.0),
        gain=random.uniform(-6.0, 4.0),
        dynamic_range=random.uniform(48.0, 60.0),
        noise=random.uniform(-40.0, -30.0),
        layer_depths=(first, first + random.uniform(0.07, 0.16)),
        layer_levels=(random.uniform(-7.0, -2.0), random.uniform(-3.0, 1.0), random.uniform(-2.0, 3.0)),
        spacing_linear=round(random.uniform(0.12, 0.2), 3),
        spacing_fan=round(random.uniform(0.4, 0.6), 3),
    )


def draw_scene(patient: Patient, probe: str, random: np.random.Generator) -> Scene:
    """Draw the objects of one scan; what finds no free place within some attempts is left out."""
    shape = probe_of(probe)
    x, y = shape.grid()
    taken = np.zeros(x.shape, dtype=bool)

    bone = _place_bone(shape, random) if random.random() < 0.8 else None
    keep = np.zeros_like(taken)
    if bone is not None:
        taken |= _shadow(bone.inside(x, y, _MARGIN))
        keep |= np.hypot(x - np.float32(bone.x1), y - np.float32(bone.y1)) < 12

    section = str(random.choice([*SECTIONS, NO_TUBE], p=[0.4, 0.35, 0.25]))
    tube = _place_tube(section, shape, taken, keep, random) if section != NO_TUBE else None
    if tube is not None:
        taken |= tube.inside(x, y, 2 * _MARGIN)
        keep |= tube.inside(x, y, _MARGIN)

    kind = str(random.choice([*LESIONS, NO_LESION], p=[0.28, 0.28, 0.26, 0.18]))
    lesion = _place_lesion(kind, shape, taken, keep, random) if kind != NO_LESION else None
    level = random.uniform(-16.0, -8.0) if random.random() < 0.75 else random.uniform(6.0, 9.0)
    return Scene(
        probe=probe,
        spacing=patient.spacing_linear if probe == "linear" else patient.spacing_fan,
        lesion_type=kind if lesion is not None else NO_LESION,
        lesion=lesion,
        lesion_level=level,
        tube=tube,
        section=section if tube is not None else NO_TUBE,
        bone=bone,
    )


def _shadow(mask: Mask) -> Mask:
    """Return a mask on the beam grid together with all that lies behind it."""
    return np.logical_or.accumulate(mask, axis=0)


def _place_bone(shape: Probe, random: np.random.Generator) -> Segment | None:
    for _ in range(_ATTEMPTS):
        x, y = _draw_centre(random)
        # Mostly the nearer side, so that the shadow leaves room; the other end lies outside: one free end.
        side = (-1.0 if x < SIZE / 2 else 1.0) * (1.0 if random.random() < 0.85 else -1.0)
        slope = random.uniform(-0.2, 0.2)
        bone = Segment(x + side * SIZE, y + slope * SIZE, x, y, random.uniform(1.4, 2.3))
        if y > 0.3 * SIZE and shape.holds(x, y, 14) and shape.holds(x + side * 20, y + slope * 20, 4):
            return bone
    return None


def _place_tube(section: str, shape: Probe, taken: Mask, keep: Mask, random: np.random.Generator) -> Segment | None:
    x, y = shape.grid()
    for _ in range(_ATTEMPTS):
        cx, cy = _draw_centre(random)
        radius = random.uniform(7, 17)
        half = random.uniform(34, 62) if section == SECTIONS[0] else 0.0
        slope = random.uniform(-0.25, 0.25)
        tube = Segment(cx - half, cy - slope * half, cx + half, cy + slope * half, radius)
        ends = [(tube.x0, tube.y0), (tube.x1, tube.y1)]
        if all(shape.holds(ex, ey, radius + 8) for ex, ey in ends):
            spot = tube.inside(x, y, 2 * _MARGIN)
            if not (spot & (taken | keep)).any():
                return tube
    return None


def _place_lesion(kind: str, shape: Probe, taken: Mask, keep: Mask, random: np.random.Generator) -> Ellipse | None:
    x, y = shape.grid()
    for _ in range(_ATTEMPTS):
        cx, cy = _draw_centre(random)
        long = random.uniform(13, 34)
        lesion = Ellipse(cx, cy, long, long * random.uniform(0.55, 0.9), random.uniform(-0.45, 0.45))
        outer = lesion.grown(_MARGIN)
        turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
        along, across = outer.long * np.cos(turn), outer.short * np.sin(turn)
        cos, sin = np.cos(lesion.angle), np.sin(lesion.angle)
        rim = zip(cx + along * cos - across * sin, cy + along * sin + across * cos, strict=True)
        if all(shape.holds(float(px), float(py), 2) for px, py in rim):
            spot = outer.radius(x, y) <= 1
            # A shadow may not hide what another question asks for.
            hidden = _shadow(spot) if kind == LESIONS[2] else spot
            if not (spot & taken).any() and not (hidden & keep).any():
                return lesion
    return None


def _draw_centre(random: np.random.Generator) -> tuple[float, float]:
    """Draw a centre: the narrow middle bands of the place rule are drawn more often than their area."""
    bands = ((0.14, 0.45), (0.45, 0.55), (0.55, 0.86))
    column = bands[int(random.choice(3, p=[0.36, 0.28, 0.36]))]
    row = bands[int(random.choice(3, p=[0.36, 0.28, 0.36]))]
    return random.uniform(*column) * SIZE, random.uniform(*row) * SIZE
