"""Imported ISIC and BUSI cases as hierarchical annotations: what their labels, metadata and masks say, and no more.

A rehearsal of the whole way on open images. Nobody annotated them for it: attributes are measured on the masks by the
rules below, and the second list of each differential is the declared mimic of the labelled disease.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.annotations import Annotation, Inference, Relation
from sonogauge.benchmarks.medlesionvqa.schema import DiseaseList, Image, Lesion, Rater
from sonogauge.benchmarks.medlesionvqa.vocabulary import Vocabularies
from sonogauge.cases.geometry import decode_mask
from sonogauge.tables import from_facts

Mask = NDArray[np.bool_]
LABELS: Final = "labels of the source"
MIMICS: Final = "declared mimics"
NOTICE: Final = (
    "Derived from labels, metadata and masks by rules, not annotated by physicians: a rehearsal. The second list of "
    "each differential is a declared mimic."
)
_DISEASES: Final = {"benign": "benign-breast-tumor", "malignant": "breast-cancer"}
_ROUND: Final = 0.8  # shorter side by longer side of the box
_SOLID: Final = 0.9  # area by area of the convex hull
_COUNTS: Final = ("quantity-none", "quantity-one", "quantity-two", "quantity-three")


def size_word(share: float) -> str:
    """Return the value of `size` for a width as a share of the image width.

    >>> size_word(0.1), size_word(0.3), size_word(0.7)
    ('size-under-fifth', 'size-fifth-half', 'size-over-half')
    """
    return "size-under-fifth" if share < 0.2 else "size-fifth-half" if share <= 0.5 else "size-over-half"


def solidity(mask: Mask) -> float:
    """Return the area of a mask over that of its convex hull, 0 to 1; 0 for an empty mask."""
    import cv2

    points = np.argwhere(mask)
    if not len(points):
        return 0.0
    # Corners of the pixels, so that a single pixel has an area.
    corners = np.concatenate([points + offset for offset in ((0, 0), (0, 1), (1, 0), (1, 1))]).astype(np.float32)
    hull = cv2.contourArea(cv2.convexHull(corners))
    return float(min(1.0, len(points) / hull)) if hull > 0 else 0.0


def mask_attributes(mask: Mask, lesions: int) -> dict[str, list[str]]:
    """Return the attributes that the mask of the largest lesion shows, as ids of the demonstration vocabulary."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1
    solid = solidity(mask)
    shape = ["shape-taller" if height > width else "shape-wider"]
    shape.append("shape-round" if min(height, width) / max(height, width) >= _ROUND else "shape-oval")
    if solid < _SOLID:
        shape[1] = "shape-irregular"
    return {
        "size": [size_word(width / mask.shape[1])],
        "shape": shape,
        "quantity": [_COUNTS[lesions] if lesions < len(_COUNTS) else "quantity-four-ten"],
        "distribution": ["distribution-solitary" if lesions == 1 else "distribution-grouped"],
        "boundary": ["boundary-smooth" if solid >= _SOLID else "boundary-irregular"],
    }


def _relation(masks: Sequence[Mask]) -> list[Relation]:
    """Return how the smaller of two lesions lies to the larger one, by their centres."""
    if len(masks) != 2:
        return []
    (y0, x0), (y1, x1) = (np.argwhere(mask).mean(axis=0) for mask in masks)
    if math.hypot(x1 - x0, y1 - y0) < 1.0:
        return []
    beside, over = ("left of", "right of")[int(x1 > x0)], ("above", "below")[int(y1 > y0)]
    word = beside if abs(x1 - x0) >= abs(y1 - y0) else over
    return [Relation.model_validate({"subject": "smaller lesion", "relation": word, "object": "larger lesion"})]


def _lists(disease: str, words: Vocabularies) -> list[DiseaseList]:
    mimics = words.diseases.term(disease).mimics
    lists = [DiseaseList(rater_id=LABELS, ranked=[disease])]
    return [*lists, DiseaseList(rater_id=MIMICS, ranked=[disease, *mimics[:2]])] if mimics else lists


def _busi(labels: Mapping[str, str], facts: Mapping[str, str], masks: Sequence[Mask], words: Vocabularies) -> Any:
    pathology = labels.get("pathology")
    if pathology not in _DISEASES or not masks:
        # A normal examination shows no lesion to ask about.
        return None
    lesion = Lesion.model_validate(
        {"id": "lesion-1", "name": "mass", "attributes": mask_attributes(masks[0], len(masks))}
    )
    return {
        "body_part": "breast",
        "lesions": [lesion],
        "relations": _relation(masks),
        "inferences": [_benign_or_malignant(pathology)],
        "differentials": _lists(_DISEASES[pathology], words),
    }


def _isic(labels: Mapping[str, str], facts: Mapping[str, str], masks: Sequence[Mask], words: Vocabularies) -> Any:
    disease = labels.get("diagnosis", "")
    if disease not in words.diseases:
        return None
    inferences = []
    pathology, melanocytic = labels.get("pathology"), facts.get("melanocytic")
    if pathology in _DISEASES and melanocytic in ("true", "false"):
        said = [pathology, "melanocytic" if melanocytic == "true" else "not melanocytic"]
        every = ("benign", "malignant", "melanocytic", "not melanocytic")
        inferences = [
            Inference(
                question="Which of these words hold for the lesion?",
                holds=[f"the lesion is {word}" for word in said],
                fails=[f"the lesion is {word}" for word in every if word not in said],
            )
        ]
    return {
        "lesions": [Lesion.model_validate({"id": "lesion-1", "name": "pigmented-lesion"})],
        "inferences": inferences,
        "differentials": _lists(disease, words),
    }


def _benign_or_malignant(pathology: str) -> Inference:
    other = "benign" if pathology == "malignant" else "malignant"
    return Inference(
        question="Which of these holds for the lesion?",
        holds=[f"the lesion is {pathology}"],
        fails=[f"the lesion is {other}"],
    )


_RULES: Final[dict[str, Callable[..., dict[str, Any] | None]]] = {"busi": _busi, "isic": _isic}


def annotate_case(row: Mapping[str, Any], words: Vocabularies) -> Annotation | None:
    """Return the annotation of a row of the cases table, None where the case has nothing to ask about.

    Raises:
        BadInput: cases of a source without a rule.
    """
    rule = _RULES.get(row["source"])
    if rule is None:
        raise BadInput(
            f"no rule to annotate cases of '{row['source']}'",
            fix=f"write an annotations.jsonl; rules exist for {', '.join(_RULES)}",
        )
    masks = [decode_mask(mask) for mask in row["masks"] or () if mask["category"] == "lesion"]
    masks = sorted((mask for mask in masks if mask.any()), key=lambda mask: -int(mask.sum()))
    made = rule(from_facts(row["labels"]), from_facts(row["meta"]), masks, words)
    if made is None:
        return None
    return Annotation(
        image=Image(
            image_id=row["case_id"].partition("/")[2] or row["case_id"],
            path=row["case_id"],
            sha256=row["sha256"],
            width=row["width"],
            height=row["height"],
        ),
        # Without a patient the group of the case (its pixels) keeps copies of one image together.
        case_id=row["group"],
        patient_id=row["patient"] or "",
        provenance="patient visit" if row["provenance"] == "clinical" else "unknown",
        source=row["source"],
        licence=row["licence"] or "",
        redistributable=bool(row["redistributable"]),
        private=bool(row["private"]),
        raters=[Rater(rater_id=name, role="annotator", level="rule") for name in (LABELS, MIMICS)],
        demographics=from_facts(row["demographics"]),
        **made,
    )
