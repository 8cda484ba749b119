"""Hierarchical annotations of images: body part, lesions, attributes, disease, advice; one JSON object a line.

They are what questions are built from. Words are ids, names or synonyms of the vocabularies and become ids on loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.checks import check_raters
from sonogauge.benchmarks.medlesionvqa.schema import (
    Attribute,
    DiseaseList,
    Image,
    Lesion,
    Name,
    Part,
    Rater,
    read_lines,
)
from sonogauge.benchmarks.medlesionvqa.vocabulary import Vocabularies, Vocabulary

ANNOTATIONS_FILE: Final = "annotations.jsonl"


class Relation(Part):
    """How one lesion or region lies to another, in a word of RELATIONS."""

    subject: Name
    relation: Literal["left of", "right of", "above", "below", "inside", "around"]
    object: Name


class Inference(Part):
    """What the signs of the lesion say: statements that hold and statements that do not.

    One of each makes a judgement, several make a multi-choice question.
    """

    question: Name
    holds: list[str] = Field(min_length=1)
    fails: list[str] = Field(default_factory=list)


class Advice(Part):
    """Free advice of a physician, with other wordings that are accepted."""

    rater_id: Name
    text: Name
    accepted: list[str] = Field(default_factory=list)


class Annotation(Part):
    """All that was annotated on one image.

    decision: the order of a third physician, which settles ties of the differentials under the rule "adjudicate".
    """

    image: Image
    case_id: str = ""
    patient_id: str = ""
    provenance: Literal["patient visit", "volunteer", "unknown"] = "unknown"
    source: str = "medlesionvqa"
    licence: str = ""
    redistributable: bool = False
    private: bool = False
    language: str = "en"
    split: Literal["val", "test"] | None = None
    body_part: str = ""
    lesions: list[Lesion] = Field(default_factory=list)
    relations: list[Relation] = Field(default_factory=list)
    inferences: list[Inference] = Field(default_factory=list)
    differentials: list[DiseaseList] = Field(default_factory=list)
    decision: DiseaseList | None = None
    advice: list[Advice] = Field(default_factory=list)
    raters: list[Rater] = Field(default_factory=list)
    demographics: dict[str, str] = Field(default_factory=dict)

    @property
    def involved(self) -> list[Rater]:
        """Everybody who made the reference, listed as a rater or not, and who answers."""
        ranking = (*self.differentials, *([self.decision] if self.decision is not None else []))
        names = [*(found.rater_id for found in ranking), *(found.rater_id for found in self.advice)]
        return [*self.raters, *(Rater(rater_id=name, role="annotator") for name in names)]

    @property
    def group(self) -> str:
        """Unit of resampling and of the split: patient, else case, else image."""
        return f"{self.source}:{self.patient_id or self.case_id or self.image.image_id}"


def attribute_terms(vocabulary: Vocabulary, attribute: str) -> list[str]:
    """Return the ids of the values of an attribute."""
    return [one.id for one in vocabulary if one.parent == attribute]


def _value(vocabulary: Vocabulary, attribute: Attribute, text: str) -> str:
    part = Vocabulary(attribute, vocabulary.version, tuple(one for one in vocabulary if one.parent == attribute))
    return part.resolve(text)


def resolve_annotation(one: Annotation, words: Vocabularies) -> Annotation:
    """Return the annotation with ids in place of names and synonyms; raise BadInput for a word that is none."""
    lesions = []
    for lesion in one.lesions:
        name = words.lesions.resolve(lesion.name)
        attributes = {
            attribute: list(dict.fromkeys(_value(words.attributes, attribute, value) for value in values))
            for attribute, values in lesion.attributes.items()
        }
        lesions.append(lesion.model_copy(update={"name": name, "attributes": attributes}))
    lists = [_resolved(found, words.diseases) for found in one.differentials]
    decision = _resolved(one.decision, words.diseases) if one.decision is not None else None
    body_part = words.body_parts.resolve(one.body_part) if one.body_part else ""
    return one.model_copy(
        update={"body_part": body_part, "lesions": lesions, "differentials": lists, "decision": decision}
    )


def _resolved(found: DiseaseList, diseases: Vocabulary) -> DiseaseList:
    ranked = [
        diseases.resolve(entry) if isinstance(entry, str) else [diseases.resolve(name) for name in entry]
        for entry in found.ranked
    ]
    return found.model_copy(update={"ranked": ranked})


def read_annotations(path: Path, words: Vocabularies) -> list[Annotation]:
    """Read an annotations file with its words resolved.

    Raises:
        BadInput: a broken line, a word of no vocabulary, an image or lesion id that stands there twice, a rater who
            annotates and answers, one image in both splits.
    """
    found: list[Annotation] = read_lines(path, Annotation)
    check_annotations(found, path)
    resolved = []
    for row, one in enumerate(found, start=1):
        try:
            resolved.append(resolve_annotation(one, words))
        except BadInput as error:
            raise BadInput(f"{one.image.image_id}: {error}", file=path, row=row) from error
    return resolved


def check_annotations(annotations: Sequence[Annotation], file: Path) -> None:
    """Refuse doubled images, patients in both splits, raters on both sides, physicians who decide on themselves."""
    seen: dict[str, int] = {}
    splits: dict[str, tuple[str, int]] = {}
    for row, one in enumerate(annotations, start=1):
        if one.split is not None:
            split, other = splits.setdefault(one.group, (one.split, row))
            if split != one.split:
                raise BadInput(
                    f"{one.image.image_id}: {one.group} is in both splits, row {other} is {split}",
                    file=file,
                    row=row,
                    field="split",
                    fix="keep a patient in one split",
                )
        for key in filter(None, (one.image.image_id, one.image.sha256)):
            if key in seen:
                raise BadInput(
                    f"the image {one.image.image_id} stands in row {seen[key]} too", file=file, row=row, fix="keep one"
                )
            seen[key] = row
        ids = [lesion.id for lesion in one.lesions]
        if len(set(ids)) < len(ids):
            raise BadInput(f"{one.image.image_id}: two lesions have one id", file=file, row=row, field="lesions")
        if one.decision is not None and one.decision.rater_id in {found.rater_id for found in one.differentials}:
            raise BadInput(
                f"{one.image.image_id}: '{one.decision.rater_id}' decides on a list of their own",
                file=file,
                row=row,
                field="decision",
                fix="let a third physician decide",
            )
    check_raters(((row, rater) for row, one in enumerate(annotations, start=1) for rater in one.involved), file)
