"""One image as a record, and its items: what the builder makes and what the official files hold, in one shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.answers.convention import read_convention
from sonogauge.benchmarks.prompts import load_prompt, prompt_id, render
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.benchmarks.ultrag.semantics import is_spatial
from sonogauge.benchmarks.ultrag.vocabulary import Category
from sonogauge.items import Item, ItemImage

SEG, VQA, RPT = "SEG", "VQA", "RPT"
_FORM: Final = {SEG: "mask", VQA: "grounded", RPT: "grounded_report"}
_PROMPT: Final = {SEG: "seg", VQA: "vqa", RPT: "rpt"}


@dataclass(frozen=True)
class ImageRecord:
    """An image with its official record and the pixels of its masks.

    record: the fields of section 2 of the specification. masks: rows of `tables.MASK` by mask id.
    origin: "official" or "toolkit", who wrote the texts.
    """

    case_id: str
    group: str
    category: Category
    source: str
    split: str
    size: tuple[int, int]
    record: Mapping[str, Any]
    masks: Mapping[str, Mapping[str, Any]]
    origin: str
    spacing: tuple[float, float] | None = None
    determinable: str = "yes"

    @property
    def sample_id(self) -> str:
        """The id of the record."""
        return str(self.record["sample_id"])


@dataclass(frozen=True)
class Asking:
    """How items are asked: coordinates ("pixel", "mille:yxyx"), and whether a report is told its finding types."""

    spec: BenchmarkSpec
    coords: str = "pixel"
    reveal_finding_types: bool = True

    def question(self, task: str, facts: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Return the rendered question and its variables."""
        form = _FORM[task]
        variables = {"facts": json.dumps(facts, ensure_ascii=False)}
        template = load_prompt(self.spec.name, _PROMPT[task], self.spec.prompt_version)
        answer = FORMS.load(form).ask(self.answer(task))
        return render(template, {**variables, "answer_format": answer}), variables

    def answer(self, task: str) -> AnswerSpec:
        """Return what an item of a task accepts."""
        read_convention(self.coords)
        return AnswerSpec(_FORM[task], unit=self.coords)


def items_of(one: ImageRecord, asking: Asking) -> Iterator[Item]:
    """Yield the items of a record: segmentation, questions, report.

    Raises:
        BadInput: a cited mask has no pixels, or a field is missing.
    """
    annotation = one.record["annotation"]
    tasks = annotation["segmentation_tasks"]
    with_target = sum(bool(task["target_mask_ids"]) for task in tasks)
    shares = {"image_items": len(tasks), "image_masked": with_target}
    for number, task in enumerate(tasks, start=1):
        ids = task["target_mask_ids"]
        facts = {"instruction": task["instruction"]}
        meta = {"answerability": task["answerability"], **_text(shares)}
        yield _item(one, asking, SEG, number, facts, {"texts": (task["answer"],)}, ids, meta)
    questions = annotation["grounded_vqa"]
    masked = sum(bool(qa["evidence_mask_ids"]) for qa in questions)
    grounded = sum(bool(qa["requires_grounding"] and qa["evidence_mask_ids"]) for qa in questions)
    shares = {"image_items": len(questions), "image_masked": masked, "image_grounded": grounded}
    for number, qa in enumerate(questions, start=1):
        facts = {"organ": one.category.organ, "question": qa["question"]}
        meta = {
            "answer_type": qa["answer_type"],
            "requires_grounding": str(int(bool(qa["requires_grounding"]))),
            "reasoning_type": str(qa.get("reasoning_type") or ""),
            "annotation_source": str(one.record.get("annotation_source") or ""),
            **_text(shares),
        }
        if qa["requires_grounding"] and not qa["evidence_mask_ids"]:
            meta["data_fault"] = "needs evidence and has none"
        yield _item(one, asking, VQA, number, facts, {"texts": (qa["answer"],)}, qa["evidence_mask_ids"], meta)
    report = annotation["grounded_report"]
    sentences = report["sentences"]
    types = [str(sentence["finding_type"]) for sentence in sentences]
    facts = {"organ": one.category.organ, "report": report["prompt"]}
    if asking.reveal_finding_types:
        facts["finding_types"] = [{"name": kind, "spatial": is_spatial(kind)} for kind in dict.fromkeys(types)]
    cited = list(dict.fromkeys(name for sentence in sentences for name in sentence["evidence_mask_ids"]))
    reference = {
        "texts": (" ".join(str(sentence["text"]) for sentence in sentences),),
        "sentences": tuple(
            {"text": str(sentence["text"]), "mask_ids": list(sentence["evidence_mask_ids"])} for sentence in sentences
        ),
    }
    meta = {
        "finding_types": json.dumps(types),
        "sections": json.dumps([str(sentence["section"]) for sentence in sentences]),
        "image_items": "1",
    }
    yield _item(one, asking, RPT, 1, facts, reference, cited, meta)


def _text(numbers: Mapping[str, int]) -> dict[str, str]:
    return {name: str(number) for name, number in numbers.items()}


def _item(
    one: ImageRecord,
    asking: Asking,
    task: str,
    number: int,
    facts: Mapping[str, Any],
    reference: Mapping[str, Any],
    mask_ids: list[str],
    meta: Mapping[str, str],
) -> Item:
    missing = [name for name in mask_ids if name not in one.masks]
    if missing:
        raise BadInput(
            f"cites mask '{missing[0]}', which has no geometry",
            file=one.sample_id,
            field="target_mask_ids" if task == SEG else "evidence_mask_ids",
            fix="complete the COCO file or remove the record",
        )
    width, height = one.size
    question, variables = asking.question(task, {"width": width, "height": height, **facts})
    where: dict[str, str] = {"width": str(width), "height": str(height)}
    if one.spacing is not None:
        where |= {"spacing_x": repr(one.spacing[0]), "spacing_y": repr(one.spacing[1])}
    return Item(
        item_id=f"{task.lower()}-{one.sample_id}-{number}",
        task=task,
        dataset=one.source,
        source=one.source,
        group=one.group,
        split=one.split,
        images=(ItemImage(one.case_id),),
        question=question,
        prompt_id=prompt_id(asking.spec.name, _PROMPT[task], asking.spec.prompt_version),
        answer=asking.answer(task),
        reference={**reference, "masks": tuple(one.masks[name] for name in mask_ids)},
        reference_state="ok",
        anatomy=one.category.anatomy,
        determinable=one.determinable,
        variables=variables,
        meta={
            **where,
            **meta,
            "category": one.category.name,
            "organ": one.category.organ,
            "sample_id": one.sample_id,
            "reference_origin": one.origin,
        },
    )
