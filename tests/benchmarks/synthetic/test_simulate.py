"""Images show what their scene says: dark cysts, enhancement, shadow, speckle that is texture and not white noise."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.benchmarks.synthetic.probe import SIZE, probe_of
from sonogauge.benchmarks.synthetic.scene import (
    LESIONS,
    NO_LESION,
    NO_TUBE,
    Ellipse,
    Scene,
    Segment,
    draw_patient,
    draw_scene,
    pixel_centres,
)
from sonogauge.benchmarks.synthetic.simulate import encode_png, render

pytestmark = [pytest.mark.lookalike, pytest.mark.part("synthetic benchmark")]
PROBES = ("linear", "curved", "sector")
EMPTY = Scene("linear", 0.15, NO_LESION, None, -10.0, None, NO_TUBE, None)


def image_of(scene: Scene, seed: int = 0) -> NDArray[np.float64]:
    patient = replace(draw_patient(1, np.random.default_rng(3)), residual_attenuation=2.0, gain=0.0)
    return render(scene, patient, np.random.default_rng(seed)).astype(np.float64)


def with_lesion(kind: str, probe: str = "linear") -> Scene:
    return replace(EMPTY, probe=probe, lesion_type=kind, lesion=Ellipse(128, 110, 24, 18, 0.0))


def window(image: NDArray[np.float64], x: float, y: float, half: int = 8) -> float:
    return float(image[int(y) - half : int(y) + half, int(x) - half : int(x) + half].mean())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("probe", PROBES)
class TestLesions:
    def test_a_cyst_is_black_with_enhancement_behind(self, probe: str, seed: int) -> None:
        image = image_of(with_lesion(LESIONS[0], probe), seed)
        plain = image_of(replace(EMPTY, probe=probe), seed)
        assert window(image, 128, 110) < 0.3 * window(plain, 128, 110)
        assert window(image, 128, 145) > window(plain, 128, 145) + 10

    def test_a_shadowing_lesion_has_a_bright_front_and_a_shadow(self, probe: str, seed: int) -> None:
        image = image_of(with_lesion(LESIONS[2], probe), seed)
        plain = image_of(replace(EMPTY, probe=probe), seed)
        assert window(image, 128, 96, 3) > window(plain, 128, 96, 3) + 20
        assert window(image, 128, 150) < 0.6 * window(plain, 128, 150)

    def test_a_solid_lesion_has_echoes_and_little_behind(self, probe: str, seed: int) -> None:
        image = image_of(with_lesion(LESIONS[1], probe), seed)
        plain = image_of(replace(EMPTY, probe=probe), seed)
        cyst = image_of(with_lesion(LESIONS[0], probe), seed)
        assert window(cyst, 128, 110) + 20 < window(image, 128, 110) < window(plain, 128, 110) - 5
        assert abs(window(image, 128, 150) - window(plain, 128, 150)) < 25


def test_a_bone_line_is_bright_with_a_shadow_up_to_its_free_end() -> None:
    image = image_of(replace(EMPTY, bone=Segment(128 + SIZE, 120, 128, 120, 2.0)))
    assert window(image, 170, 120, 2) > window(image, 90, 120, 8)
    assert window(image, 170, 160) < 0.7 * window(image, 90, 160)


def test_a_tube_is_dark_with_brighter_walls() -> None:
    image = image_of(replace(EMPTY, tube=Segment(90, 120, 166, 120, 12), section="longitudinal tube"))
    assert window(image, 128, 120, 6) < window(image, 128, 134, 1)
    assert window(image, 128, 120, 6) < 0.6 * window(image, 128, 170)


def test_speckle_is_correlated_over_pixels() -> None:
    """White noise would have no correlation between neighbours; speckle has it over some pixels, not over many."""
    part = image_of(EMPTY)[110:230, 40:216]
    part = part - cv2.GaussianBlur(part, (0, 0), 8)
    variance = float((part * part).mean())

    def correlation(dx: int, dy: int) -> float:
        rows, columns = part.shape
        return float((part[: rows - dy, : columns - dx] * part[dy:, dx:]).mean()) / variance

    assert correlation(1, 0) > 0.5
    assert correlation(0, 1) > 0.3
    # The beam is wider than the pulse is long.
    assert correlation(2, 0) > correlation(0, 2)
    assert abs(correlation(14, 0)) < 0.15


@pytest.mark.parametrize("probe", PROBES)
def test_nothing_is_drawn_outside_the_field_of_view(probe: str) -> None:
    image = image_of(replace(EMPTY, probe=probe))
    beam, _ = probe_of(probe).to_beams()
    assert (image[beam < 0] == 0).all()
    assert image[beam >= 0].mean() > 40
    width = (beam >= 0).sum(axis=1)
    if probe == "linear":
        assert set(width.tolist()) == {0, int(width.max())}
    else:
        assert width[180] > 1.4 * width[60]


def test_an_unknown_probe_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no simulated probe"):
        probe_of("radar")


@pytest.mark.parametrize("seed", range(40))
def test_drawn_scenes_keep_their_objects_apart_and_in_view(seed: int) -> None:
    random = np.random.default_rng([9, seed])
    scene = draw_scene(draw_patient(1, random), PROBES[seed % 3], random)
    beam, _ = probe_of(scene.probe).to_beams()
    lesion, tube = scene.lesion_mask(), scene.tube_mask()
    for mask in (lesion, tube):
        assert mask is None or (mask.any() and (beam[mask] >= 0).all())
    if lesion is not None and tube is not None:
        assert not (lesion & tube).any()
    assert (lesion is None) == (scene.lesion_type == NO_LESION)
    assert (tube is None) == (scene.section == NO_TUBE)
    if scene.bone_end is not None:
        x, y = scene.bone_end
        assert beam[int(y), int(x)] >= 0
        for mask in (lesion, tube):
            assert mask is None or not mask[int(y), int(x)]


def test_measurements_are_those_of_the_masks() -> None:
    """The longest lesion diameter by a rotating caliper over the mask, the tube's by its area."""
    random = np.random.default_rng(5)
    patient = draw_patient(1, random)
    checked = 0
    for number in range(60):
        scene = draw_scene(patient, PROBES[number % 3], random)
        if (lesion := scene.lesion_mask()) is not None and scene.lesion_mm is not None:
            outline = cv2.findContours(lesion.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0][0][:, 0]
            gaps = np.hypot(*(outline[:, None].astype(float) - outline[None]).transpose(2, 0, 1))
            # Pixel centres of the outline lie half a pixel inside on both sides.
            assert abs((gaps.max() + 1) * scene.spacing - scene.lesion_mm) <= scene.spacing
            checked += 1
        if scene.tube is not None and (tube := scene.tube_mask()) is not None and scene.tube_mm is not None:
            length = np.hypot(scene.tube.x1 - scene.tube.x0, scene.tube.y1 - scene.tube.y0)
            # Area of a band with round ends: length d + pi d^2 / 4.
            diameter = (-length + np.sqrt(length**2 + np.pi * tube.sum())) / (np.pi / 2)
            assert abs(diameter * scene.spacing - scene.tube_mm) <= scene.spacing
            checked += 1
    assert checked > 50


def test_pixel_centres_and_png() -> None:
    x, y = pixel_centres()
    assert (float(x[3, 7]), float(y[3, 7])) == (7.5, 3.5)
    image = image_of(EMPTY).astype(np.uint8)
    decoded = cv2.imdecode(np.frombuffer(encode_png(image), np.uint8), cv2.IMREAD_UNCHANGED)
    assert decoded is not None
    assert np.array_equal(decoded, image)
