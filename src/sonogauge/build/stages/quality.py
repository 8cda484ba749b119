"""Quality: each image looked at once; what is found, and the numbers and signature that later stages need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.build.fingerprint import ORIENTATIONS, THUMB, WINDOWS, Pixels, decode, fold, sign, to_grey
from sonogauge.build.recipe import CHECKS, QualityRule
from sonogauge.build.stages.marks import has_callipers, has_text, tags_of
from sonogauge.cases.geometry import check_runs
from sonogauge.tables import STRING, STRINGS

VERSION: Final = 3
CODE_BYTES: Final = 8 * len(WINDOWS) * ORIENTATIONS
SHARE: Final = pa.struct([("category", STRING), ("share", pa.float64())])
EXAMINED: Final = pa.schema(
    [
        ("case_id", STRING),
        ("findings", STRINGS),  # names of CHECKS, with a detail after ": "
        ("spread", pa.float64()),
        ("brightness", pa.float64()),
        ("sharpness", pa.float64()),
        ("pixels", STRING),
        ("shares", pa.list_(SHARE)),  # of the image that the masks of a category cover
        ("codes", pa.binary(CODE_BYTES)),
        ("thumb", pa.binary(THUMB * THUMB)),
    ]
)
_SHARP_SIDE: Final = 256


@dataclass(frozen=True)
class Examine:
    """The stage that looks at images; label checks need the canonical words and come later, see `check_labels`."""

    rule: QualityRule

    schema = EXAMINED
    columns = ("case_id", "image", "width", "height", "masks", "boxes", "meta")

    @property
    def key(self) -> Mapping[str, Any]:
        """Version and limits."""
        limits = self.rule.model_dump(include={"min_side", "blank", "blur", "dark", "bright"})
        off = sorted(check for check in CHECKS if self.rule.action(check) == "off")
        return {"stage": "examine", "version": VERSION, "limits": limits, "off": off}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row of EXAMINED for each case."""
        rows = [self.look(row, None) for row in batch.to_pylist()]
        return pa.RecordBatch.from_pylist(rows, schema=EXAMINED)

    def look(self, row: Mapping[str, Any], samples: Pixels | None) -> dict[str, Any]:
        """Return the results of one case; samples: of its image, if they are at hand, else it is decoded."""
        data = (row["image"] or {}).get("bytes")
        pixels = fold(samples) if samples is not None else decode(data) if data else None
        findings = self._annotations(row)
        try:
            shares = _shares(row)
        except BadInput:
            shares = []
            findings.append("broken mask")
        tags = tags_of(data, row.get("meta")) if data and self._on("identifying tag") else []
        findings += [f"identifying tag: {tag}" for tag in tags]
        found: dict[str, Any] = {"case_id": row["case_id"], "findings": findings, "shares": shares}
        if pixels is None:
            return {**found, "findings": ["unreadable", *findings]}
        signature = sign(pixels)
        grey = to_grey(pixels)
        spread, brightness, sharpness = _measure(grey)
        found |= {
            "spread": spread,
            "brightness": brightness,
            "sharpness": sharpness,
            "pixels": signature.pixels,
            "codes": signature.codes.tobytes(),
            "thumb": signature.thumb.tobytes(),
        }
        findings += self._picture(pixels, spread, brightness, sharpness)
        return found

    def _on(self, check: str) -> bool:
        return self.rule.action(check) != "off"

    def _picture(self, pixels: Pixels, spread: float, brightness: float, sharpness: float) -> list[str]:
        rule = self.rule
        if spread < rule.blank:
            return ["blank"]
        found = {
            "tiny": min(pixels.shape[:2]) < rule.min_side,
            "blurred": sharpness < rule.blur,
            "dark": brightness < rule.dark,
            "overexposed": brightness > rule.bright,
            "burned-in text": self._on("burned-in text") and has_text(pixels),
            "callipers": self._on("callipers") and has_callipers(pixels),
        }
        return [check for check, wrong in found.items() if wrong]

    def _annotations(self, row: Mapping[str, Any]) -> list[str]:
        width, height = row["width"] or 0, row["height"] or 0
        found = set()
        for mask in row["masks"] or ():
            if list(mask["size"]) != [height, width]:
                found.add("size of a mask")
        for box in row["boxes"] or ():
            sides = [box["x"], box["y"], box["w"], box["h"]]
            # A box may touch the border and, after rounding, stick out by less than a pixel.
            inside = min(sides[:2]) > -1 and box["x"] + box["w"] < width + 1
            if not (all(np.isfinite(sides)) and inside and box["y"] + box["h"] < height + 1 and min(sides[2:]) > 0):
                found.add("box outside")
        return sorted(found)


def _measure(grey: Pixels) -> tuple[float, float, float]:
    """Return standard deviation, mean grey value of what is not ground, and variance of the Laplacian at 256 pixels."""
    import cv2

    mean, deviation = cv2.meanStdDev(grey)
    counts = cv2.calcHist([grey], [0], None, [256], [0, 256]).ravel()
    lit = counts[9:]
    brightness = float((lit * np.arange(9, 256)).sum() / lit.sum()) if lit.sum() else float(mean[0, 0])
    scale = _SHARP_SIDE / max(grey.shape)
    small = grey if scale >= 1 else cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    _, edges = cv2.meanStdDev(cv2.Laplacian(small, cv2.CV_32F))
    return round(float(deviation[0, 0]), 4), round(brightness, 4), round(float(edges[0, 0]) ** 2, 4)


def _shares(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the share of the image under the union of each category's masks, sorted by category."""
    from pycocotools import mask as coco

    codes: dict[str, list[dict[str, Any]]] = {}
    sizes = set()
    for mask in row["masks"] or ():
        sizes.add(tuple(mask["size"]))
        codes.setdefault(mask["category"] or "", []).append(mask)
    if len(sizes) != 1 or 0 in next(iter(sizes)):
        return []
    height, width = next(iter(sizes))
    shares = []
    for category, masks in sorted(codes.items()):
        for mask in masks:
            check_runs(mask)
        runs = [{"size": [height, width], "counts": mask["counts"].encode("ascii")} for mask in masks]
        area = float(coco.area(coco.merge(runs)))
        shares.append({"category": category, "share": area / (height * width)})
    return shares


def check_labels(row: Mapping[str, Any], rule: QualityRule) -> list[str]:
    """Return what is wrong with the labels of a case, in canonical words: missing ones, two values, contradictions."""
    labels: dict[str, set[str]] = {}
    for label in row["labels"] or ():
        labels.setdefault(label["name"], set()).add(label["value"])
    found = [f"missing label: {name}" for name in rule.needs if not labels.get(name)]
    found += [f"contradicting labels: {name}" for name, values in sorted(labels.items()) if len(values) > 1]
    for one in rule.contradictions:
        labelled = all(value in labels.get(name, ()) for name, value in one.label.items())
        if labelled and any(box["category"] == one.category for box in row["boxes"] or ()):
            what = ", ".join(f"{name} {value}" for name, value in one.label.items())
            found.append(f"contradicting labels: {what} with {one.category}")
    return found


def check_of(finding: str) -> str:
    """Return the check that a finding belongs to.

    >>> check_of("missing label: pathology")
    'missing label'
    """
    return finding.partition(":")[0]
