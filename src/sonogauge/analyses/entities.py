"""Agreement of hierarchical annotations: precision and recall of entities against the senior's re-check.

Published: entity precision and recall above 95 %. An entity is a body part, a lesion, a value of an attribute of a
lesion, or a disease, on one image; lesions are matched by their term, since each annotator numbers them anew.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.analyses.panel import told
from sonogauge.benchmarks.medlesionvqa.annotations import ANNOTATIONS_FILE, Annotation, read_annotations
from sonogauge.benchmarks.medlesionvqa.vocabulary import load_vocabularies
from sonogauge.compare.ablations.base import column, table
from sonogauge.metrics.masks import mean_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.values import null
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler

Entities = Counter[tuple[str, ...]]
_RATIO: Final = mean_metric("entity_share", "Shared entities by entities.", interval="standard_error").metric


def _body(one: Annotation) -> Entities:
    return Counter([(one.body_part,)] if one.body_part else [])


def _lesions(one: Annotation) -> Entities:
    return Counter((lesion.name, lesion.role) for lesion in one.lesions)


def _attributes(one: Annotation) -> Entities:
    return Counter(
        (lesion.name, attribute, value)
        for lesion in one.lesions
        for attribute, values in lesion.attributes.items()
        for value in values
    )


def _diseases(one: Annotation) -> Entities:
    named = [entry for found in one.differentials for entry in found.ranked]
    flat = {name for entry in named for name in ([entry] if isinstance(entry, str) else entry)}
    return Counter((name,) for name in flat)


LAYERS: Final[dict[str, Callable[[Annotation], Entities]]] = {
    "body part": _body,
    "lesion": _lesions,
    "attribute": _attributes,
    "disease": _diseases,
}


@dataclass(frozen=True)
class EntityAgreement:
    """One layer: entities that both have, of the annotator, of the re-check; with precision and recall."""

    layer: str
    shared: int
    given: int
    checked: int
    precision: Estimate
    recall: Estimate


def entity_agreement(
    given: Sequence[Annotation], checked: Sequence[Annotation], *, draws: int = 2000, seed: int = 0
) -> list[EntityAgreement]:
    """Compare annotations with their re-check, image by image, by layer and over all.

    precision = shared / given, recall = shared / checked; an entity that stands there twice counts twice.

    Raises:
        BadInput: an image that one of the two does not have, or no image.
    """
    first, second = ({one.image.image_id: one for one in side} for side in (given, checked))
    if first.keys() != second.keys():
        name = min(first.keys() ^ second.keys())
        raise BadInput(f"the image {name} was annotated but not checked, or the other way round", field="image")
    if not first:
        raise BadInput("no annotated image", field="annotations")
    names = sorted(first)
    counts: dict[str, list[tuple[int, int, int]]] = {}
    for name in names:
        total = [0, 0, 0]
        for layer, entities in LAYERS.items():
            own, other = entities(first[name]), entities(second[name])
            row = ((own & other).total(), own.total(), other.total())
            counts.setdefault(layer, []).append(row)
            total = [one + more for one, more in zip(total, row, strict=True)]
        counts.setdefault("all", []).append((total[0], total[1], total[2]))
    strata, groups = [first[name].source for name in names], [first[name].group for name in names]
    found = []
    for layer, rows in counts.items():
        array = np.array(rows, dtype=np.float64)
        shared, given_n, checked_n = (int(value) for value in array.sum(axis=0))
        precision, recall = (_share(array[:, [0, side]], strata, groups, draws, seed) for side in (1, 2))
        found.append(EntityAgreement(layer, shared, given_n, checked_n, precision, recall))
    return found


def _share(rows: Any, strata: Sequence[str], groups: Sequence[str], draws: int, seed: int) -> Estimate:
    if not rows[:, 1].any():
        return null("no entity")
    sums = GroupSums.from_items(strata, groups, rows)
    return estimate(_RATIO, sums, Resampler.for_sums(sums, draws=draws, seed=seed))


def entities(
    given: Path, checked: Path, vocabulary: Path | str | None = None, *, draws: int = 10_000, seed: int = 0
) -> tuple[dict[str, Any], str]:
    """Return the table of two files of annotations, or folders that hold `annotations.jsonl`, and their hashes.

    vocabulary: folder of the vocabularies, by default those for demonstration.

    Raises:
        BadInput: a file that cannot be used, or images that only one of the two has.
    """
    words = load_vocabularies(Path(vocabulary) if vocabulary is not None else None)
    files = [one / ANNOTATIONS_FILE if one.is_dir() else one for one in (given, checked)]
    first, second = (read_annotations(file, words) for file in files)
    try:
        found = entity_agreement(first, second, draws=draws, seed=seed)
    except BadInput as error:
        raise BadInput(str(error), file=files[1], fix="compare the same images") from error
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in files]
    return entity_table(found), f"{hashes[0]} against {hashes[1]}"


def entity_table(found: Sequence[EntityAgreement]) -> dict[str, Any]:
    """Return the comparison as a table."""
    rows = [
        {
            "layer": one.layer,
            "shared": one.shared,
            "given": one.given,
            "checked": one.checked,
            "precision": told(one.precision),
            "recall": told(one.recall),
        }
        for one in found
    ]
    columns = [
        column("layer", "layer"),
        column("shared", "shared", "count"),
        column("given", "of the annotator", "count"),
        column("checked", "of the re-check", "count"),
        column("precision", "precision", "percent"),
        column("recall", "recall", "percent"),
    ]
    notes = [
        "precision = shared / of the annotator, recall = shared / of the re-check; lesions are matched by their term.",
        "Published: entity precision and recall above 95 %.",
    ]
    return table("entities", "Agreement of annotations with the re-check", columns, rows, *notes)
