"""Building the synthetic benchmark: patients, scans, facts and questions from one seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers.place import NOT_VISIBLE, is_near_edge, place_of
from sonogauge.benchmarks.prompts import answer_for, render_question
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.benchmarks.synthetic.probe import SIZE, probe_of
from sonogauge.benchmarks.synthetic.scene import Mask, Patient, Scene, draw_patient, draw_scene
from sonogauge.benchmarks.synthetic.simulate import encode_png, render
from sonogauge.benchmarks.synthetic.texts import Facts, caption, report
from sonogauge.cases.geometry import box_centre, box_of_mask, encode_mask
from sonogauge.folders import Manifest, new_folder, write_bytes
from sonogauge.items import Item, ItemImage

SOURCE: Final = "synthetic"
BONE_END: Final = "bone end"
_FANS: Final = ("curved", "sector")
_STREAMS: Final = {"patients": 0, "split": 1, "questions": 2}


@dataclass(frozen=True)
class Scan:
    """One simulated image with all that is known of it."""

    case_id: str
    patient: str
    scene: Scene
    facts: Facts
    png: bytes
    pixel_hash: str
    boxes: dict[str, dict[str, Any]]
    masks: tuple[dict[str, Any], ...]
    report: str
    caption: str


def build_synthetic(
    out: Path | str,
    *,
    seed: int = 0,
    patients: int | None = None,
    images_per_patient: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
    """Build the synthetic benchmark into a folder; the same seed gives the same bytes.

    patients, images_per_patient: from 2 on (default: the parameters of benchmark.yaml); half of the patients are for
    training, and no patient is on both sides. progress: called with (patients done, all patients).

    Raises:
        BadInput: too few patients or images, a negative seed, or a folder that may not be replaced.
    """
    import cv2

    spec = load_spec("synthetic")
    patients = int(spec.parameters["patients"]) if patients is None else patients
    images = int(spec.parameters["images_per_patient"]) if images_per_patient is None else images_per_patient
    for name, value, least in (("patients", patients, 2), ("images_per_patient", images, 2), ("seed", seed, 0)):
        if value < least:
            raise BadInput(f"{value} is too small", field=name, fix=f"use {least} or more")

    test = _test_patients(seed, patients, float(spec.parameters["test_share"]))
    items: list[Item] = []
    with new_folder(out, overwrite=overwrite) as folder:
        cases = folder.table("cases", rows_per_group=256)
        with ThreadPoolExecutor(max_workers=2) as pool:
            scanned = pool.map(lambda number: _scan_patient(seed, number, images), range(patients))
            questions = np.random.default_rng([seed, _STREAMS["questions"]])
            for number, scans in enumerate(scanned):
                cases.write(_case_row(scan) for scan in scans)
                items += _ask(spec, scans, "test" if number in test else "train", questions)
                if progress is not None:
                    progress(number + 1, patients)
        rows = sorted((item.to_row() for item in _numbered(items)), key=lambda row: str(row["item_id"]))
        folder.table("items").write(rows)
        write_bytes(folder.path / SPEC_FILE, dump_spec(spec).encode("utf-8"))
        splits = Counter(item.split for item in items)
        return folder.finish(
            Manifest(
                kind="benchmark",
                maker=f"sonogauge {__version__}",
                name=spec.name,
                version=spec.version,
                parameters={
                    **spec.parameters,
                    "seed": seed,
                    "patients": patients,
                    "images_per_patient": images,
                    # Its filters differ in the last bits between versions, and so do a few pixels in a million.
                    "opencv": cv2.__version__,
                },
                counts={
                    "patients": patients,
                    "cases": patients * images,
                    "items": len(items),
                    "train_items": splits["train"],
                    "test_items": splits["test"],
                },
                licences=[spec.licence],
                notices=list(spec.notices),
            )
        )


def _test_patients(seed: int, patients: int, share: float) -> frozenset[int]:
    count = min(max(round(patients * share), 1), patients - 1)
    order = np.random.default_rng([seed, _STREAMS["split"]]).permutation(patients)
    return frozenset(int(number) for number in order[:count])


def _scan_patient(seed: int, number: int, images: int) -> list[Scan]:
    """Simulate all images of a patient; nothing but (seed, number) decides what they show."""
    random = np.random.default_rng([seed, _STREAMS["patients"], number])
    patient = draw_patient(number, random)
    probes = ["linear" if index % 2 == 0 else _FANS[(index // 2 + number) % 2] for index in range(images)]
    order = random.permutation(images)
    return [
        _scan(f"p{number + 1:03d}", index + 1, draw_scene(patient, probes[choice], random), patient, random)
        for index, choice in enumerate(order)
    ]


def _scan(name: str, number: int, scene: Scene, patient: Patient, random: np.random.Generator) -> Scan:
    case_id = f"{SOURCE}-{name}-{number:02d}"
    pixels = render(scene, patient, random)
    boxes: dict[str, dict[str, Any]] = {}
    masks = []
    for category, mask in (("lesion", scene.lesion_mask()), ("tube", scene.tube_mask())):
        if mask is not None and (box := box_of_mask(mask, category)) is not None:
            boxes[category] = box
            masks.append(encode_mask(mask, f"{case_id}-{category}", category))
    facts = Facts(
        probe=scene.probe,
        lesion_type=scene.lesion_type,
        lesion_place=_box_place(boxes.get("lesion")),
        lesion_mm=scene.lesion_mm,
        section=scene.section,
        tube_place=_box_place(boxes.get("tube")),
        bone_place=NOT_VISIBLE if scene.bone_end is None else place_of(*_fractions(scene.bone_end)),
    )
    return Scan(
        case_id=case_id,
        patient=name,
        scene=scene,
        facts=facts,
        png=encode_png(pixels),
        pixel_hash=_pixel_hash(pixels),
        boxes=boxes,
        masks=tuple(masks),
        report=report(facts, random),
        caption=caption(facts, random),
    )


def _pixel_hash(pixels: NDArray[np.uint8]) -> str:
    # Mode, size and RGB samples: as the readers of foreign images hash them.
    digest = hashlib.sha256(f"L:{SIZE}x{SIZE}:".encode())
    digest.update(np.repeat(pixels[..., None], 3, axis=-1).tobytes())
    return digest.hexdigest()


def _fractions(point: tuple[float, float]) -> tuple[float, float]:
    return point[0] / SIZE, point[1] / SIZE


def _box_place(box: dict[str, Any] | None) -> str:
    return NOT_VISIBLE if box is None else place_of(*box_centre(box, SIZE, SIZE))


@lru_cache(maxsize=8)
def _field_of_view(probe: str) -> dict[str, Any]:
    beam, _ = probe_of(probe).to_beams()
    inside: Mask = beam >= 0
    return encode_mask(inside, f"field-{probe}", "field of view")


def _case_row(scan: Scan) -> dict[str, Any]:
    scene = scan.scene
    measured = (("longest lesion diameter", scene.lesion_mm), ("inner tube diameter", scene.tube_mm))
    return {
        "case_id": scan.case_id,
        "image": {"bytes": scan.png, "path": f"{scan.case_id}.png"},
        "media_type": "image/png",
        "sha256": hashlib.sha256(scan.png).hexdigest(),
        "pixel_hash": scan.pixel_hash,
        "width": SIZE,
        "height": SIZE,
        "frames": 1,
        "spacing": {"x": scene.spacing, "y": scene.spacing},
        "fan_mask": _field_of_view(scene.probe),
        "patient": scan.patient,
        "group": f"{SOURCE}:{scan.patient}",
        "source": SOURCE,
        "licence": "Apache-2.0",
        "redistributable": True,
        "private": False,
        "provenance": "simulated",
        "reference_standard": "algorithm",
        "device": "sonogauge simulator",
        "view": f"{scene.probe} probe",
        "anatomy": "other",
        "demographics": [],
        "labels": [
            {"name": "lesion type", "value": scene.lesion_type},
            {"name": "section", "value": scene.section},
            {"name": "probe", "value": f"{scene.probe} probe"},
        ],
        "masks": list(scan.masks),
        "boxes": [scan.boxes[category] for category in sorted(scan.boxes)],
        "points": [{"name": BONE_END, "x": x, "y": y} for x, y in _bone_ends(scene)],
        "measurements": [{"name": name, "value": value, "unit": "mm"} for name, value in measured if value is not None],
        "texts": [
            {"kind": "report", "text": scan.report, "language": "en"},
            {"kind": "caption", "text": scan.caption, "language": "en"},
        ],
        "known_issues": ["simulated, not clinical"],
    }


def _bone_ends(scene: Scene) -> list[tuple[float, float]]:
    return [] if scene.bone_end is None else [scene.bone_end]


def _reference(scenario: Scenario, scan: Scan) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return reference and meta of a scenario on a scan, None where it cannot be asked."""
    scene, facts = scan.scene, scan.facts
    linear = scene.probe == "linear"
    if scenario.dataset in ("linear", "fan") and linear != (scenario.dataset == "linear"):
        return None
    match scenario.task, scenario.dataset:
        case "DD", _:
            return {"choices": (facts.lesion_type,)}, {}
        case "VRA", "probe":
            return {"choices": (f"{facts.probe} probe",)}, {}
        case "VRA", _:
            return {"choices": (facts.section,)}, {}
        case (("LL" | "OD"), _):
            box = scan.boxes.get("lesion" if scenario.task == "LL" else "tube")
            if box is None:
                return {"places": (NOT_VISIBLE,), "boxes": ()}, {}
            return {"places": (_box_place(box),), "boxes": (box,)}, _edge(box_centre(box, SIZE, SIZE))
        case "KD", _:
            if scene.bone_end is None:
                return {"places": (NOT_VISIBLE,), "points": ()}, {}
            x, y = scene.bone_end
            point = {"name": BONE_END, "x": x, "y": y}
            return {"places": (facts.bone_place,), "points": (point,)}, _edge(_fractions(scene.bone_end))
        case "CVE", measured:
            value = scene.lesion_mm if measured == "lesion" else scene.tube_mm
            return None if value is None else ({"number": round(value, 2)}, {})
        case "RG", _:
            return {"texts": (scan.report,)}, {}
        case _:
            return {"texts": (scan.caption,)}, {}


def _edge(centre: tuple[float, float]) -> dict[str, str]:
    return {"near_edge": "1" if is_near_edge(*centre) else "0"}


def _ask(spec: BenchmarkSpec, scans: list[Scan], split: str, random: np.random.Generator) -> Iterator[Item]:
    """Yield the items of a patient: per scenario at most the declared number of images, drawn at random."""
    most = int(spec.parameters[f"{split}_items_per_scenario"])
    for scenario in spec.scenarios:
        asked = [(scan, found) for scan in scans if (found := _reference(scenario, scan)) is not None]
        chosen = sorted(int(index) for index in random.permutation(len(asked))[:most])
        for scan, (reference, meta) in (asked[index] for index in chosen):
            yield _item(spec, scenario, scan, split, reference, meta)


def _item(
    spec: BenchmarkSpec, scenario: Scenario, scan: Scan, split: str, reference: dict[str, Any], meta: dict[str, str]
) -> Item:
    answer = answer_for(spec, scenario)
    variables = {"anatomy": scenario.anatomy}
    if scenario.task in ("CVE", "RG"):
        variables["pixel_size_mm"] = f"{scan.scene.spacing:g}"
    if scenario.task == "OD":
        variables["structure"] = scenario.structure
    if scenario.task == "KD":
        variables["keypoint"] = scenario.extra["keys"][BONE_END]
    question, prompt_id = render_question(spec, scenario, answer, variables)
    return Item(
        item_id="",
        task=scenario.task,
        dataset=scenario.dataset,
        source=SOURCE,
        group=f"{SOURCE}:{scan.patient}",
        split=split,
        images=(ItemImage(scan.case_id),),
        question=question,
        prompt_id=prompt_id,
        answer=answer,
        reference=reference,
        reference_state="ok",
        chance=1 / len(scenario.options) if scenario.options else None,
        anatomy=scenario.anatomy,
        determinable=scenario.determinable,
        variables=variables,
        meta=meta,
    )


def _numbered(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items with their ids, numbered from 1 within (task, dataset)."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        seen[item.task, item.dataset] += 1
        yield replace(item, item_id=f"{item.task}/{item.dataset}/{seen[item.task, item.dataset]:04d}")
