"""Questions, annotations or imported cases in, a benchmark folder out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.annotations import ANNOTATIONS_FILE, Annotation, read_annotations
from sonogauge.benchmarks.medlesionvqa.candidates import Rules, check_fusion, fused_of
from sonogauge.benchmarks.medlesionvqa.checks import check_questions
from sonogauge.benchmarks.medlesionvqa.from_cases import NOTICE, annotate_case
from sonogauge.benchmarks.medlesionvqa.fusion import Normalise, TiedRanks, TieRule, fusion_report
from sonogauge.benchmarks.medlesionvqa.items import make_item
from sonogauge.benchmarks.medlesionvqa.pictures import case_id, case_row, check_pixels
from sonogauge.benchmarks.medlesionvqa.questions import build_questions
from sonogauge.benchmarks.medlesionvqa.schema import (
    ABILITIES,
    ANNOTATING,
    QUESTIONS_FILE,
    TYPES,
    Ability,
    Image,
    Question,
    read_questions,
    write_questions,
)
from sonogauge.benchmarks.medlesionvqa.vocabulary import DEMONSTRATION, Vocabularies, load_vocabularies
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.folders import MANIFEST, Folder, FolderWriter, Input, Manifest, new_folder, read_manifest, write_bytes
from sonogauge.tables import CASES

NAME: Final = "medlesionvqa"


class Parameters(BaseModel):
    """What the paper leaves open; the defaults are those of benchmark.yaml.

    shares: target share of each ability, used when `questions` asks for fewer than there are. vocabulary: "demo-1" or a
    folder.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tie_rule: TieRule = "shared"
    normalise: Normalise = "none"
    tied_ranks: TiedRanks = "error"
    keep_top: Literal[1, 3] | None = None
    options: int = Field(default=4, ge=2, le=26)
    body_level: int = Field(default=2, ge=1, le=4)
    distractors: dict[Ability, str] = Field(default_factory=dict)
    shares: dict[Ability, float] = Field(default_factory=dict)
    val_share: float = Field(default=0.07554, ge=0, lt=1)
    questions: int | None = Field(default=None, ge=1)
    vocabulary: str = DEMONSTRATION
    random_state: int = Field(default=0, ge=0)

    @property
    def rules(self) -> Rules:
        """The choices behind single questions."""
        return Rules(
            options=self.options,
            distractors=tuple(self.distractors.items()),
            body_level=self.body_level,
            tie_rule=self.tie_rule,
            normalise=self.normalise,
            tied_ranks=self.tied_ranks,
            keep_top=self.keep_top,
            seed=self.random_state,
        )

    def vocabularies(self) -> Vocabularies:
        """Load the vocabularies."""
        return load_vocabularies(None if self.vocabulary == DEMONSTRATION else Path(self.vocabulary))


def make_parameters(given: Parameters | Mapping[str, Any] | Path | str | None) -> Parameters:
    """Return the declared parameters: those given, the rest from benchmark.yaml.

    Raises:
        BadInput: a file that is none, an unknown parameter or a wrong value.
    """
    if isinstance(given, Parameters):
        return given
    file = Path(given) if isinstance(given, (str, Path)) else None
    own: Any = given or {}
    if file is not None:
        if not file.is_file():
            raise BadInput("no such file of parameters", file=file)
        try:
            own = yaml.safe_load(file.read_text("utf-8")) or {}
        except (ValueError, yaml.YAMLError) as error:
            raise BadInput(f"not YAML ({error})", file=file) from error
    if not isinstance(own, Mapping):
        raise BadInput("parameters are names with values", file=file)
    defaults = load_spec(NAME).parameters
    try:
        return Parameters.model_validate({**defaults, **own})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], file=file, field=where, fix="known: " + ", ".join(defaults)) from error


def build_medlesionvqa(
    data: Path | str,
    out: Path | str,
    *,
    parameters: Parameters | Mapping[str, Any] | Path | str | None = None,
    seed: int | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Build a MedLesionVQA-style benchmark; the same data give the same bytes.

    Args:
        data: a questions file (section 4 of the specification), or a folder with `questions.jsonl`, with
            `annotations.jsonl`, or of imported ISIC or BUSI cases (or holding several of those).
        out: benchmark folder to write.
        parameters: declared parameters or a YAML file of them.
        seed: in place of the parameter `random_state`.
        overwrite: replace a benchmark folder at `out`.

    Raises:
        BadInput: a fault named with its question, an image that cannot be read, nothing to ask.
    """
    chosen = make_parameters(parameters)
    if seed is not None:
        chosen = make_parameters({**chosen.model_dump(), "random_state": seed})
    data = Path(data)
    found = _take_in(data, chosen)
    if not found.questions:
        raise BadInput("nothing to ask", file=data, fix="look at lesions, diseases and labels")
    spec = _spec(found.questions, chosen)
    with new_folder(out, overwrite=overwrite) as folder:
        cases = folder.table("cases", 64)
        hashes: dict[str, str] = {}
        for row in found.cases():
            hashes[row["case_id"]] = row["pixel_hash"]
            cases.write([row])
        check_pixels(found.questions, hashes, found.file)
        items = [make_item(spec, question) for question in found.questions]
        folder.table("items").write(item.to_row() for item in sorted(items, key=lambda one: one.item_id))
        write_bytes(folder.path / SPEC_FILE, dump_spec(spec).encode("utf-8"))
        write_questions(folder.path / QUESTIONS_FILE, found.questions)
        return _finish(folder, spec, found, chosen)


class _Found:
    """What was read: questions, where their images are, what is known of how they were made."""

    def __init__(self, file: Path, questions: Sequence[Question], inputs: Sequence[Input]) -> None:
        self.file = file
        self.questions = list(questions)
        self.inputs = list(inputs)
        self.annotations: list[Annotation] = []
        self.available: dict[str, int] = {}
        self.folders: list[Folder] = []
        self.left_out = 0

    def cases(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the cases table, sorted by id."""
        if self.folders:
            wanted = {case_id(one, image) for one in self.questions for image in one.images}
            rows = (row for folder in self.folders for row in folder.rows("cases") if row["case_id"] in wanted)
            yield from rows
            return
        seen: dict[str, tuple[Question, Image]] = {}
        for one in self.questions:
            for image in one.images:
                seen.setdefault(case_id(one, image), (one, image))
        for name in sorted(seen):
            yield case_row(name, *seen[name], self.file)


def _take_in(data: Path, chosen: Parameters) -> _Found:
    if data.is_file() or (data / QUESTIONS_FILE).is_file():
        file = data if data.is_file() else data / QUESTIONS_FILE
        questions = read_questions(file)
        check_questions(questions, file, file.parent)
        return _Found(file, questions, [_input("questions", file)])
    words = chosen.vocabularies()
    if (data / ANNOTATIONS_FILE).is_file():
        file = data / ANNOTATIONS_FILE
        annotations = read_annotations(file, words)
        check_fusion(annotations, chosen.rules, file)
        found = _Found(file, [], [_input("annotations", file)])
    else:
        folders = _case_folders(data)
        columns = [name for name in CASES.names if name != "image"]
        made = [annotate_case(row, words) for folder in folders for row in folder.rows("cases", columns)]
        annotations = [one for one in made if one is not None]
        found = _Found(data, [], [Input(role="cases", path=str(one.path), hash=one.manifest.hash) for one in folders])
        found.folders = folders
        found.left_out = len(made) - len(annotations)
    found.annotations = annotations
    found.questions, found.available = build_questions(
        annotations,
        words,
        chosen.rules,
        shares={str(name): share for name, share in chosen.shares.items()},
        total=chosen.questions,
        val_share=chosen.val_share,
    )
    root = None if found.folders else found.file.parent
    check_questions(found.questions, found.file, root)
    return found


def _case_folders(data: Path) -> list[Folder]:
    if not data.is_dir():
        raise BadInput("no such file or folder", file=data)
    places = [data] if (data / MANIFEST).is_file() else sorted(one.parent for one in data.glob(f"*/{MANIFEST}"))
    places = [one for one in places if read_manifest(one).kind == "cases"]
    if not places:
        raise BadInput(
            f"no {QUESTIONS_FILE}, no {ANNOTATIONS_FILE} and no cases in it",
            file=data,
            fix="give a questions file, a folder of annotations, or a folder made by `sonogauge import`",
        )
    return [Folder(one, "cases") for one in places]


def _input(role: str, file: Path) -> Input:
    return Input(role=role, path=str(file), hash=hashlib.sha256(file.read_bytes()).hexdigest())


def _spec(questions: Sequence[Question], chosen: Parameters) -> BenchmarkSpec:
    spec = load_spec(NAME)
    sources: dict[tuple[str, str], str] = {(one.type, one.ability): one.source for one in questions}
    pairs = set(sources)
    scenarios = tuple(
        Scenario(task=kind, dataset=ability, source=sources[kind, ability], prompt=kind)
        for kind in TYPES
        for ability in ABILITIES
        if (kind, ability) in pairs
    )
    tasks = {name: task for name, task in spec.tasks.items() if any(kind == name for kind, _ in pairs)}
    return spec.model_copy(
        update={"scenarios": scenarios, "tasks": tasks, "parameters": chosen.model_dump(mode="json")}
    )


def _shared_patients(questions: Sequence[Question]) -> list[str]:
    """Return a notice where patients stand in both splits with different images, which nothing else refuses."""
    splits: dict[str, set[str]] = {}
    for one in questions:
        if one.patient_id or one.case_id:
            splits.setdefault(one.group, set()).add(one.split)
    both = sorted(name for name, found in splits.items() if len(found) > 1)
    if not both:
        return []
    return [
        f"{len(both)} patients or cases are in both splits, the first {both[0]}: val does not tell of new patients."
    ]


def _finish(folder: FolderWriter, spec: BenchmarkSpec, found: _Found, chosen: Parameters) -> Manifest:
    questions = found.questions
    fused = [one for one in (fused_of(one, chosen.rules) for one in found.annotations) if one is not None]
    total = len(questions)
    abilities: Counter[str] = Counter(one.ability for one in questions)
    involved = [rater for question in questions for rater in question.involved]
    involved += [rater for annotation in found.annotations for rater in annotation.involved]
    annotators = sorted({rater.rater_id for rater in involved if rater.role in ANNOTATING})
    counts: dict[str, Any] = {
        "questions": total,
        "splits": dict(sorted(Counter(one.split for one in questions).items())),
        "types": {name: count for name in TYPES if (count := sum(one.type == name for one in questions))},
        "abilities": {name: abilities[name] for name in ABILITIES},
        "shares": {name: round(abilities[name] / total, 4) for name in ABILITIES},
        "annotators": {"names": annotators},
    }
    if found.annotations:
        counts |= {"could_be_asked": found.available, "fusion": fusion_report(fused), "left_out": found.left_out}
    versions = chosen.vocabularies().versions if found.annotations else {}
    return folder.finish(
        Manifest(
            kind="benchmark",
            maker=f"sonogauge {__version__}",
            name=spec.name,
            version=spec.version,
            inputs=found.inputs,
            parameters={**chosen.model_dump(mode="json"), "vocabularies": versions},
            counts=counts,
            licences=sorted({one.licence for one in questions if one.licence}),
            notices=[*spec.notices, *_shared_patients(questions), *([NOTICE] if found.folders else [])],
        )
    )
