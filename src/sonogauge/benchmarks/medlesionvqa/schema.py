"""The questions file: one JSON object a line, as section 4 of the MedLesionVQA specification lays it out.

What is tested (`ability`) and how it is answered (`type`) are two axes; neither is derived from the other. The file
calls the right answer `gold`; here it is `reference`. One type is ours: `ranking`, an ordered differential.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput
from sonogauge.folders import write_bytes

QUESTIONS_FILE: Final = "questions.jsonl"
ABILITIES: Final = {
    "LR": "Lesion Recognition",
    "LO": "Location Recognition",
    "AR": "Attribute Recognition",
    "SR": "Spatial Relation",
    "LE": "Lesion Reasoning",
    "DD": "Disease Diagnosis",
    "ST": "Suggestion & Treatment",
}
CHOICE_TYPES: Final = ("single_choice", "multi_choice")
OPEN_TYPES: Final = ("judgement", "fill_in_blank", "short_answer")
TYPES: Final = (*CHOICE_TYPES, *OPEN_TYPES, "ranking")
ATTRIBUTES: Final = ("size", "color", "shape", "quantity", "distribution", "boundary")
ANNOTATING: Final = ("annotator", "reviewer")

Ability = Literal["LR", "LO", "AR", "SR", "LE", "DD", "ST"]
Type = Literal["single_choice", "multi_choice", "judgement", "fill_in_blank", "short_answer", "ranking"]
Attribute = Literal["size", "color", "shape", "quantity", "distribution", "boundary"]
Name = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A part of the file: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Image(Part):
    """An image; `path` is relative to the file."""

    image_id: Name
    path: Name
    sha256: str = ""
    width: int | None = None
    height: int | None = None


class Option(Part):
    """One option with its letter."""

    letter: Name
    text: str


class Lesion(Part):
    """A lesion with its attributes: attribute to values."""

    id: Name
    name: Name
    role: Literal["primary", "secondary"] = "primary"
    attributes: dict[Attribute, list[str]] = Field(default_factory=dict)


class FusedDisease(Part):
    """A disease of the fused list."""

    id: Name
    score: float
    rank: int


class DiseaseList(Part):
    """The ranked differential of one physician; diseases that share a rank stand in a list of their own."""

    rater_id: Name
    ranked: list[str | list[str]] = Field(min_length=1, max_length=3)
    reasoning: str = ""


class Disease(Part):
    """The lists of the physicians, what was made of them, and the order of a third physician where they were tied."""

    fused: list[FusedDisease] = Field(default_factory=list)
    lists: list[DiseaseList] = Field(default_factory=list)
    tie_rule: str = "shared"
    decided: DiseaseList | None = None

    @property
    def rater_ids(self) -> list[str]:
        """Those whose differentials made the reference."""
        return [one.rater_id for one in (*self.lists, *([self.decided] if self.decided is not None else []))]


class Rater(Part):
    """Somebody who annotated, reviewed or answered."""

    rater_id: Name
    role: Literal["annotator", "reviewer", "test_primary", "test_senior"]
    level: str = ""


class Question(Part):
    """One question. `source` names the data set it comes from, the stratum of resampling.

    private: its images never leave this machine unless a person allows it, and are never exported.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    question_id: Name
    split: Literal["val", "test"]
    language: str = "en"
    images: list[Image] = Field(min_length=1)
    case_id: str = ""
    patient_id: str = ""
    provenance: Literal["patient visit", "volunteer", "unknown"] = "unknown"
    question: Name
    options: list[Option] = Field(default_factory=list)
    type: Type
    ability: Ability
    reference: list[str] = Field(alias="gold", min_length=1)
    body_part_path: list[str] = Field(default_factory=list)
    attribute_asked: Attribute | None = None
    lesion: list[Lesion] = Field(default_factory=list)
    disease: Disease = Field(default_factory=Disease)
    raters: list[Rater] = Field(default_factory=list)
    distractor_rule: str = ""
    random_state: int | None = None
    template_id: str = ""
    demographics: dict[str, str] = Field(default_factory=dict)
    source: str = "medlesionvqa"
    licence: str = ""
    redistributable: bool = False
    private: bool = False

    @property
    def involved(self) -> list[Rater]:
        """Everybody who made the reference or answers; who ranked a differential made it, listed as a rater or not."""
        return [*self.raters, *(Rater(rater_id=name, role="annotator") for name in self.disease.rater_ids)]

    @property
    def group(self) -> str:
        """Unit of resampling: patient, else case, else first image; prefixed by the source."""
        return f"{self.source}:{self.patient_id or self.case_id or self.images[0].image_id}"


def read_lines(path: Path, kind: type[Part]) -> list[Any]:
    """Read JSON lines of one kind of object.

    Raises:
        BadInput: no file, no line, or a line that is none; with its row and field.
    """
    if not path.is_file():
        raise BadInput("no such file", file=path)
    found = []
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                raise BadInput(f"not JSON ({error})", file=path, row=number, fix="write one object a line") from error
            try:
                found.append(kind.model_validate(value))
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"]) or None
                raise BadInput(first["msg"], file=path, row=number, field=where) from error
    if not found:
        raise BadInput("nothing in it", file=path)
    return found


def read_questions(path: Path) -> list[Question]:
    """Read a questions file; `checks.check_questions` looks at what the fields say."""
    questions: list[Question] = read_lines(path, Question)
    return questions


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write a questions file; the same questions give the same bytes."""
    lines = [one.model_dump_json(by_alias=True, exclude_none=False) for one in questions]
    write_bytes(path, ("\n".join(lines) + "\n").encode("utf-8"))
