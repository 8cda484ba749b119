"""B-mode images of a scene: scatterers, point spread, attenuation, envelope, log compression, scan conversion.

Fully developed speckle is complex Gaussian noise, weighted by the echo level of the tissue and blurred by the pulse
along the beam and by the beam's width across it, which grows away from the focus. Attenuation adds up along each beam,
so shadow and enhancement follow from what the beam has passed. The result is plausible, not clinical.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sonogauge.benchmarks.synthetic.probe import BEAMS, SAMPLES, Probe, probe_of
from sonogauge.benchmarks.synthetic.scene import LESIONS, Patient, Scene

Array = NDArray[np.float32]

_TISSUE_LEVEL: Final = 0.45  # grey of tissue at 0 dB, as a fraction of white
_BEAM_WIDTHS: Final = (1.0, 1.7, 2.8)  # relative to the width at the focus
_ANECHOIC: Final = -38.0
_ROOT: Final = float(np.sqrt(0.5))


def render(scene: Scene, patient: Patient, random: np.random.Generator) -> NDArray[np.uint8]:
    """Return the 256 x 256 grey image of a scene; the speckle comes from `random`."""
    import cv2
    from scipy.ndimage import map_coordinates

    shape = probe_of(scene.probe)
    level = _tissue(patient, random)
    passed = _objects(scene, shape, level, random)
    depth = np.linspace(0, 1, SAMPLES, dtype=np.float32)[:, None]
    passed -= np.float32(patient.residual_attenuation) * np.maximum(depth - np.float32(0.25), 0)
    # The beam is wider than a line, so a shadow has soft edges.
    passed = np.asarray(cv2.GaussianBlur(passed, (9, 1), 1.6), dtype=np.float32)

    echo = _speckle(level + passed, patient, random)
    noise = _complex_noise(random) * np.power(10.0, (patient.noise + 10 * depth) / 20)[..., None].astype(np.float32)
    echo += noise
    envelope = np.sqrt(echo[..., 0] ** 2 + echo[..., 1] ** 2)
    decibel = 20 * np.log10(envelope + np.float32(1e-6))
    grey = (decibel + np.float32(patient.gain)) / np.float32(patient.dynamic_range) + np.float32(_TISSUE_LEVEL)
    beam, sample = shape.to_beams()
    # Not OpenCV's `remap`: some of its versions round the places to 1/32 of a sample.
    image = map_coordinates(grey.astype(np.float32), (sample, beam), order=1, cval=0.0)
    image[beam < 0] = 0
    return np.asarray(np.rint(np.clip(image, 0, 1) * 255), dtype=np.uint8)


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Return the PNG bytes of a grey image."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, format="PNG", compress_level=6)
    return stream.getvalue()


def _complex_noise(random: np.random.Generator) -> Array:
    return random.standard_normal((SAMPLES, BEAMS, 2), dtype=np.float32) * np.float32(_ROOT)


def _speckle(level: Array, patient: Patient, random: np.random.Generator) -> Array:
    """Return the complex echo (real and imaginary part last) with unit mean power at 0 dB."""
    import cv2

    scatterers = _complex_noise(random) * np.power(np.float32(10), level / 20)[..., None]
    depth = np.linspace(0, 1, SAMPLES, dtype=np.float32)
    spread = np.sqrt(1 + ((depth - np.float32(patient.focus)) / np.float32(0.28)) ** 2)
    echo = np.zeros_like(scatterers)
    widths = np.asarray(_BEAM_WIDTHS, dtype=np.float32)
    for index, width in enumerate(widths):
        corner = np.zeros(len(widths), dtype=np.float32)
        corner[index] = 1
        weight = np.interp(spread, widths, corner).astype(np.float32)[:, None, None]
        lateral = float(patient.lateral_sigma * width)
        blurred = cv2.GaussianBlur(scatterers, (0, 0), sigmaX=lateral, sigmaY=patient.axial_sigma)
        # A Gaussian blur of width s divides the power of white noise by 2 sqrt(pi) s along each axis.
        power = 4 * np.pi * lateral * patient.axial_sigma
        echo += weight * blurred * np.float32(np.sqrt(power))
    return np.asarray(echo, dtype=np.float32)


def _smooth_field(random: np.random.Generator, axial: float, lateral: float) -> Array:
    """Return a smooth random field of unit deviation on the beam grid."""
    import cv2

    rows, columns = max(4, int(SAMPLES / axial)), max(4, int(BEAMS / lateral))
    coarse = random.standard_normal((rows, columns), dtype=np.float32)
    field = cv2.resize(coarse, (BEAMS, SAMPLES), interpolation=cv2.INTER_CUBIC)
    return np.asarray(field / max(float(field.std()), 1e-6), dtype=np.float32)


def _tissue(patient: Patient, random: np.random.Generator) -> Array:
    """Return the echo level of the layers in dB: skin, fat with septa, muscle with fibres, deep tissue."""
    depth: Array = np.linspace(0, 1, SAMPLES, dtype=np.float32)[:, None]
    across = np.linspace(-1, 1, BEAMS)[None, :]
    wave = np.zeros_like(across)
    for cycle in (1.0, 2.3):
        wave += random.uniform(0.3, 1) / cycle * np.sin(cycle * np.pi * across + random.uniform(0, 2 * np.pi))
    bend = np.asarray(0.014 * wave, dtype=np.float32) + np.float32(0.004) * _smooth_field(random, SAMPLES / 3, 12)
    first, second = (np.asarray(depth - np.float32(edge) - bend, dtype=np.float32) for edge in patient.layer_depths)
    fat, muscle, deep = (np.float32(one) for one in patient.layer_levels)

    below_first, below_second = _step(first / np.float32(0.006)), _step(second / np.float32(0.006))
    level = fat + (muscle - fat) * below_first + (deep - muscle) * below_second
    fibres = _smooth_field(random, 5, 26)
    lumps = _smooth_field(random, 34, 16)
    between = below_first * (1 - below_second)
    level = level + 3.6 * fibres * between + 2.6 * fibres * (1 - below_first)
    level = level + (2.0 * lumps + 1.4 * _smooth_field(random, 9, 14)) * (1 - between)
    level = level + 11 * np.exp(-((depth / np.float32(0.022)) ** 2))
    for edge, strength in ((first, 10.0), (second, 8.0)):
        broken = np.clip(1 + 0.5 * _smooth_field(random, SAMPLES / 2, 14), 0, 1.6)
        level = level + strength * broken * np.exp(-((edge / np.float32(0.006)) ** 2))
    return np.asarray(level, dtype=np.float32)


def _step(value: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(value, -30, 30))), dtype=np.float32)


def _objects(scene: Scene, shape: Probe, level: Array, random: np.random.Generator) -> Array:
    """Write the objects into the echo levels; return the gain or loss in dB that beams have gathered at each sample."""
    x, y = shape.grid()
    step = np.float32(shape.depth / SAMPLES)  # pixels per sample
    change = np.zeros_like(level)
    tube, lesion, bone = scene.tube, scene.lesion, scene.bone
    if tube is not None:
        distance = tube.distance(x, y) - np.float32(tube.half_width)
        wall = np.abs(distance - np.float32(1.8)) < 1.8
        level[wall] = np.maximum(level[wall], 0) + np.float32(random.uniform(5, 9))
        lumen = distance <= 0
        level[lumen] = np.float32(random.uniform(-34, -20))
        change[lumen] += np.float32(random.uniform(1, 4)) / np.float32(2 * tube.half_width) * step
    if lesion is not None:
        radius = lesion.radius(x, y)
        inside = radius <= 1
        across = np.float32(2 * lesion.short)
        if scene.lesion_type == LESIONS[0]:
            level[inside] = np.float32(_ANECHOIC)
            rim = (np.abs(radius - 1) < 0.06) & (np.abs(y - np.float32(lesion.y)) > np.float32(0.6 * lesion.short))
            level[rim] += np.float32(random.uniform(4, 8))
            change[inside] += np.float32(random.uniform(5, 10)) / across * step
        elif scene.lesion_type == LESIONS[1]:
            texture = _smooth_field(random, 12, 7) * np.float32(random.uniform(1.0, 2.5))
            edge = _step((1 - radius) / np.float32(0.05))
            level += edge * (np.float32(scene.lesion_level) + texture - level * np.float32(0.5))
            change[inside] += np.float32(random.uniform(-3, 1)) / across * step
        else:
            depth = (y - np.float32(lesion.y)) / np.float32(lesion.short)
            front = inside & (radius > 0.62) & (depth < -0.2)
            level[inside] += np.float32(random.uniform(-6, 0))
            level[front] = np.float32(random.uniform(11, 16))
            # The loss begins behind the bright front.
            change[inside & ~front & (depth > -0.2)] -= np.float32(random.uniform(26, 36)) / across * step
    if bone is not None:
        distance = bone.distance(x, y)
        line = distance < bone.half_width
        level[line] = np.float32(random.uniform(8, 18))
        # The loss begins behind the line, so that the line itself stays bright.
        behind = bone.distance(x, y - np.float32(2 * bone.half_width + 2)) < bone.half_width
        change[behind] -= np.float32(random.uniform(9, 32)) / np.float32(2 * bone.half_width) * step
    return np.asarray(np.cumsum(change, axis=0), dtype=np.float32)
