"""Questions, annotations or imported cases in, a benchmark folder out."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.medlesionvqa.annotations import Annotation, read_annotations
from sonogauge.benchmarks.medlesionvqa.candidates import Rules, fused_of
from sonogauge.benchmarks.medlesionvqa.checks import check_questions
from sonogauge.benchmarks.medlesionvqa.from_cases import NOTICE, annotate_case
from sonogauge.benchmarks.medlesionvqa.fusion import TieRule, fusion_report
from sonogauge.benchmarks.medlesionvqa.questions import build_questions
from sonogauge.benchmarks.medlesionvqa.schema import ABILITIES, TYPES, Ability, Image, Question, read_questions
from sonogauge.benchmarks.medlesionvqa.vocabulary import DEMONSTRATION, Vocabularies, load_vocabularies
from sonogauge.benchmarks.prompts import render_question
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.folders import MANIFEST, Folder, FolderWriter, Input, Manifest, new_folder, read_manifest, write_bytes
from sonogauge.items import Item, ItemImage
from sonogauge.metrics.multi_choice import expected_random_subset
from sonogauge.metrics.ranking import expected_top_1
from sonogauge.tables import CASES, to_facts

NAME: Final = "medlesionvqa"
QUESTIONS_FILE: Final = "questions.jsonl"
ANNOTATIONS_FILE: Final = "annotations.jsonl"
YES_NO: Final = ("yes", "no")


class Parameters(BaseModel):
    """What the paper leaves open; the defaults are those of benchmark.yaml.

    shares: target share of each ability, used when `questions` asks for fewer than there are. vocabulary: "demo-1" or a
    folder.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tie_rule: TieRule = "shared"
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
        _check_pixels(found.questions, hashes, found.file)
        items = [make_item(spec, question) for question in found.questions]
        folder.table("items").write(item.to_row() for item in sorted(items, key=lambda one: one.item_id))
        write_bytes(folder.path / SPEC_FILE, dump_spec(spec).encode("utf-8"))
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
            yield _case_row(name, *seen[name], self.file)


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


def case_id(one: Question, image: Image) -> str:
    """Return the id of the case of an image: source and image id.

    Images of one source must not share an id, and the checks see to it within a file.
    """
    return f"{one.source}/{image.image_id}"


def _case_row(name: str, one: Question, image: Image, file: Path) -> dict[str, Any]:
    from PIL import Image as Pictures

    path = file.parent / image.path
    if not path.resolve().is_relative_to(file.parent.resolve()):
        raise BadInput(f"the image {image.path} lies outside the folder of its file", file=file, field="path")
    media = path.read_bytes()
    digest = hashlib.sha256(media).hexdigest()
    if image.sha256 and image.sha256 != digest:
        raise BadInput(f"{image.path} is another image than the file says", file=file, field="sha256")
    try:
        with Pictures.open(io.BytesIO(media)) as picture:
            kind, mode, (width, height) = picture.format or "", picture.mode, picture.size
            pixels = hashlib.sha256(f"{mode}:{width}x{height}:".encode() + picture.convert("RGB").tobytes()).hexdigest()
    except (OSError, ValueError, Pictures.DecompressionBombError) as error:
        raise BadInput(f"{image.path} cannot be read ({error})", file=file, field="images") from error
    if (image.width or width, image.height or height) != (width, height):
        raise BadInput(f"{image.path} is {width} x {height}, not {image.width} x {image.height}", file=file)
    return {
        "case_id": name,
        "image": {"bytes": media, "path": path.name},
        "media_type": f"image/{kind.lower()}",
        "sha256": digest,
        "pixel_hash": pixels,
        "width": width,
        "height": height,
        "frames": 1,
        "patient": one.patient_id or None,
        "group": one.group,
        "source": one.source,
        "licence": one.licence,
        "redistributable": one.redistributable,
        "private": False,
        "provenance": {"patient visit": "clinical"}.get(one.provenance, one.provenance),
        "reference_standard": "reader",
        "demographics": to_facts(one.demographics),
    }


def _check_pixels(questions: Sequence[Question], hashes: Mapping[str, str], file: Path) -> None:
    splits: dict[str, tuple[str, str]] = {}
    for one in questions:
        for image in one.images:
            pixels = hashes[case_id(one, image)]
            split, other = splits.setdefault(pixels, (one.split, one.question_id))
            if split != one.split:
                raise BadInput(
                    f"the same image in both splits: {other} ({split}) and {one.question_id} ({one.split})",
                    file=file,
                    field="images",
                    fix="keep it in one split",
                )


def answer_spec(one: Question) -> AnswerSpec:
    """Return what a question accepts."""
    texts, letters = (tuple(getattr(option, name) for option in one.options) for name in ("text", "letter"))
    match one.type:
        case "single_choice":
            return AnswerSpec("choice", texts, letters)
        case "multi_choice" | "ranking":
            return AnswerSpec(one.type, texts, letters)
        case "judgement":
            return AnswerSpec("choice", YES_NO)
        case _:
            return AnswerSpec("text")


def _reference(one: Question) -> tuple[dict[str, Any], float | None, dict[str, str]]:
    """Return reference, chance and meta of a question."""
    text_of = {option.letter: option.text for option in one.options}
    names = tuple(text_of.get(letter, letter) for letter in one.reference)
    match one.type:
        case "single_choice" | "judgement":
            return {"choices": names}, 1.0 / len(one.options or YES_NO), {}
        case "multi_choice":
            return {"choices": names}, expected_random_subset(len(one.options), len(names)), {}
        case "ranking":
            # The fused list says how much each rank weighs; without it the order alone counts.
            placed = one.disease.fused if len(one.disease.fused) == len(names) else []
            ranks = [entry.rank for entry in placed] or list(range(1, len(names) + 1))
            weights = [entry.score for entry in placed] or [1.0 / rank for rank in ranks]
            first = expected_top_1(len(one.options), ranks.count(min(ranks)))
            facts = {"ranks": " ".join(map(str, ranks)), "weights": " ".join(f"{weight:.9g}" for weight in weights)}
            return {"ranking": names}, first, facts
        case _:
            return {"texts": tuple(one.reference)}, None, {}


def make_item(spec: BenchmarkSpec, one: Question) -> Item:
    """Return the item of a question: task = how it is answered, data set = what it tests."""
    answer = answer_spec(one)
    reference, chance, facts = _reference(one)
    scenario = Scenario(task=one.type, dataset=one.ability, prompt=one.type)
    variables = {"question": one.question}
    question, prompt_id = render_question(spec, scenario, answer, variables)
    undecided = one.type == "ranking" and one.disease.tie_rule == "adjudicate" and _has_ties(one)
    meta = {
        "ability": one.ability,
        "attribute_asked": one.attribute_asked or "",
        "body_part": " / ".join(one.body_part_path),
        "lesion": ", ".join(dict.fromkeys(lesion.name for lesion in one.lesion)),
        "disease": ", ".join(entry.id for entry in one.disease.fused if entry.rank == 1),
        "provenance": one.provenance,
        "template": one.template_id,
        "distractor_rule": one.distractor_rule,
        "language": one.language,
        **facts,
        **{name: value for name, value in one.demographics.items() if name not in facts},
    }
    return Item(
        item_id=one.question_id,
        task=one.type,
        dataset=one.ability,
        source=one.source,
        group=one.group,
        split=one.split,
        images=tuple(ItemImage(case_id(one, image)) for image in one.images),
        question=question,
        prompt_id=prompt_id,
        answer=answer,
        reference={} if undecided else reference,
        reference_state="absent" if undecided else "ok",
        chance=chance,
        anatomy=one.body_part_path[-1] if one.body_part_path else "",
        variables=variables,
        meta={name: value for name, value in sorted(meta.items()) if value},
    )


def _has_ties(one: Question) -> bool:
    ranks = [entry.rank for entry in one.disease.fused]
    return len(set(ranks)) < len(ranks)


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


def _finish(folder: FolderWriter, spec: BenchmarkSpec, found: _Found, chosen: Parameters) -> Manifest:
    questions = found.questions
    fused = [one for one in (fused_of(one, chosen.tie_rule) for one in found.annotations) if one is not None]
    total = len(questions)
    abilities = Counter(one.ability for one in questions)
    raters = {(rater.rater_id, rater.role) for one in questions for rater in one.raters}
    annotators = sorted(name for name, role in raters if role in ("annotator", "reviewer"))
    counts: dict[str, Any] = {
        "questions": total,
        "splits": dict(sorted(Counter(one.split for one in questions).items())),
        "types": {name: count for name in TYPES if (count := sum(one.type == name for one in questions))},
        "abilities": {name: abilities[name] for name in ABILITIES},  # type: ignore[index]
        "shares": {name: round(abilities[name] / total, 4) for name in ABILITIES},  # type: ignore[index]
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
            notices=[*spec.notices, *([NOTICE] if found.folders else [])],
        )
    )
