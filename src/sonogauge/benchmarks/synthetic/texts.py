"""Reports and captions of a scene, made from its facts; the wording varies, the facts do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonogauge.benchmarks.synthetic.scene import LESIONS, NO_LESION, NO_TUBE


@dataclass(frozen=True, slots=True)
class Facts:
    """What a text may say: names as in the answer options, places of the place rule, the size in mm."""

    probe: str
    lesion_type: str
    lesion_place: str
    lesion_mm: float | None
    section: str
    tube_place: str
    bone_place: str


_OPENINGS = (
    "Simulated image acquired with a {probe} probe; skin, fat and muscle layers are regular.",
    "The {probe} probe shows regular layers of skin, fat and muscle.",
    "Simulated {probe} probe image with regular tissue layers.",
    "Skin, fat and muscle layers are regular on this {probe} probe image.",
)
_LESIONS = {
    LESIONS[0]: (
        "There is an anechoic cyst in the {place} part of the image, measuring {mm} mm, with posterior enhancement.",
        "An anechoic cyst of {mm} mm with posterior enhancement lies in the {place} part of the image.",
        "In the {place} part of the image there is an anechoic cyst, {mm} mm long, with posterior enhancement.",
    ),
    LESIONS[1]: (
        "There is a solid lesion in the {place} part of the image, measuring {mm} mm, without posterior shadow.",
        "A solid lesion of {mm} mm without posterior shadow lies in the {place} part of the image.",
        "In the {place} part of the image there is a solid lesion, {mm} mm long, without posterior shadow.",
    ),
    LESIONS[2]: (
        "There is a lesion with a bright front in the {place} part of the image, measuring {mm} mm, with posterior "
        "shadow.",
        "A shadowing lesion of {mm} mm with a bright front lies in the {place} part of the image.",
        "In the {place} part of the image there is a shadowing lesion, {mm} mm long, with a bright front.",
    ),
    NO_LESION: (
        "There is no focal lesion in the image.",
        "No focal lesion is visible in the image.",
        "The tissue is free of focal lesions.",
    ),
}
_TUBES = (
    "A {section} with bright walls is seen in the {place} part of the image.",
    "There is a {section} with bright walls in the {place} part of the image.",
    "In the {place} part of the image a {section} is seen.",
)
_NO_TUBES = ("No tube is seen.", "There is no tube in the image.")
_BONES = (
    "A bright bone line with shadow ends in the {place} part of the image.",
    "The bone line ends in the {place} part of the image and casts a shadow.",
)
_NO_BONES = ("No bone line is seen.", "There is no bone line in the image.")
_ENDINGS = {
    LESIONS[0]: ("Impression: simple cyst.", "Impression: cyst.", "Conclusion: simple cyst."),
    LESIONS[1]: ("Impression: solid lesion.", "Conclusion: solid lesion.", "Impression: single solid lesion."),
    LESIONS[2]: ("Impression: shadowing lesion.", "Conclusion: shadowing lesion.", "Impression: lesion with shadow."),
    NO_LESION: ("Impression: no lesion.", "Conclusion: no lesion.", "Impression: normal tissue."),
}
_CAPTIONS = (
    "Simulated {probe} probe image with {lesion}{tube}.",
    "{probe_cap} probe image of simulated soft tissue showing {lesion}{tube}.",
    "Simulated soft tissue, {probe} probe: {lesion}{tube}.",
)


def report(facts: Facts, random: np.random.Generator) -> str:
    """Return a report of five sentences, without labels or line breaks."""
    size = "" if facts.lesion_mm is None else f"{facts.lesion_mm:.0f}"
    tubes = _NO_TUBES if facts.section == NO_TUBE else _TUBES
    bones = _NO_BONES if facts.bone_place == "not visible" else _BONES
    return " ".join(
        (
            _pick(_OPENINGS, random).format(probe=facts.probe),
            _pick(_LESIONS[facts.lesion_type], random).format(place=facts.lesion_place, mm=size),
            _pick(tubes, random).format(section=facts.section, place=facts.tube_place),
            _pick(bones, random).format(place=facts.bone_place),
            _pick(_ENDINGS[facts.lesion_type], random),
        )
    )


def caption(facts: Facts, random: np.random.Generator) -> str:
    """Return one sentence that names the probe, the lesion and its place, and the tube."""
    lesion = (
        "no focal lesion"
        if facts.lesion_type == NO_LESION
        else f"a {facts.lesion_type} in the {facts.lesion_place} part of the image"
    )
    tube = "" if facts.section == NO_TUBE else f" and a {facts.section}"
    form = _pick(_CAPTIONS, random)
    return form.format(probe=facts.probe, probe_cap=facts.probe.capitalize(), lesion=lesion, tube=tube)


def _pick(variants: Sequence[str], random: np.random.Generator) -> str:
    return variants[int(random.integers(len(variants)))]
