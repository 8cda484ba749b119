"""Second pass of a build: drafts to items, with their pictures."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.benchmarks.fetal_gauge.parameters import CHOICE_TASKS, Parameters
from sonogauge.benchmarks.fetal_gauge.sizes import RELATIVE
from sonogauge.benchmarks.prompts import ANSWER_FORMAT, load_prompt, prompt_id, render
from sonogauge.build.fetal_gauge.drafts import Draft
from sonogauge.build.fetal_gauge.options import Pools, pick_options
from sonogauge.build.fetal_gauge.pictures import box_at, scale_of
from sonogauge.build.stages.splits import draw
from sonogauge.items import Item, ItemImage

NAME: Final = "fetal_gauge"

# The few prompts are asked for once a question; those that ship do not change.
_shipped: Final = cache(load_prompt)


def dataset_of(source: str, draft: Draft) -> str:
    """Return the data set of a question: its source, for a measurement with its name, since ranges differ."""
    return f"{source} {draft.measurement}" if draft.task == "MS" else source


def items_of(row: Mapping[str, Any], draft: Draft, split: str, pools: Pools, parameters: Parameters) -> Iterator[Item]:
    """Yield the items of a draft: one, or one for each rotation of its options; none without a second option."""
    question_id = f"{row['case_id']}/{draft.task}" + (f"/{draft.part}" if draft.part else "")
    meta = _meta(row, draft, parameters)
    if draft.task not in CHOICE_TASKS:
        answer, reference = _open_answer(row, draft, parameters)
        yield _item(question_id, row, draft, split, answer, reference, None, meta, parameters)
        return
    options, pool = pick_options(question_id, draft.task, row["source"], draft.answer, pools, parameters)
    if len(options) < 2:
        return
    meta |= {"distractor_pool": pool, "random_state": str(parameters.random_state), "k": str(len(options))}
    turns = range(len(options)) if parameters.shuffle == "circular" else range(1)
    for turn in turns:
        shown = options[turn:] + options[:turn]
        answer = AnswerSpec("choice", options=shown, letters=tuple(string.ascii_uppercase[: len(shown)]))
        name = f"{question_id}~{turn}" if len(turns) > 1 else question_id
        yield _item(name, row, draft, split, answer, {"choices": (draft.answer,)}, 1 / len(shown), meta, parameters)


def _open_answer(row: Mapping[str, Any], draft: Draft, parameters: Parameters) -> tuple[AnswerSpec, dict[str, Any]]:
    if draft.task == "MS":
        low, high = parameters.ms_range
        return AnswerSpec("number", low=low, high=high, unit="mm"), {"number": draft.number}
    scale = scale_of(row["width"], row["height"], parameters)
    boxes = tuple(box_at(box, scale) for box in draft.boxes)
    return AnswerSpec(parameters.vl_answer, unit="mille"), {"boxes": boxes}


def _meta(row: Mapping[str, Any], draft: Draft, parameters: Parameters) -> dict[str, str]:
    provenance = row["provenance"] or "unknown"
    facts = {one["name"]: one["value"] for one in row["meta"] or ()}
    # A volunteer is a person; a simulated image is no phantom either.
    phantom = {"phantom": "true", "clinical": "false", "volunteer": "false", "simulated": "false"}.get(provenance, "")
    scale = scale_of(row["width"], row["height"], parameters)
    meta = {
        "provenance": provenance,
        "is_phantom": phantom or "unknown",
        "width": str(max(1, round(row["width"] * scale))),
        "height": str(max(1, round(row["height"] * scale))),
    }
    if draft.raw:
        meta["raw_label"] = draft.raw
    if row["patient"]:
        meta["patient_id"] = row["patient"]
    if draft.task == "CD":
        meta["label_level"] = facts.get("label_level") or "unknown"
    if draft.task == "VG":
        (box,) = draft.boxes
        meta["box_xywh"] = ",".join(f"{box[side]:g}" for side in ("x", "y", "w", "h"))
        meta["box_area_ratio"] = f"{box['w'] * box['h'] / (row['width'] * row['height']):.6f}"
        # By the default rule, so that scores and comparisons can be sliced by it.
        meta["size_relative"] = RELATIVE.bin_of(box["w"], box["h"], row["width"] * row["height"])
        meta["image_width"], meta["image_height"] = str(row["width"]), str(row["height"])
    facts.setdefault("scanner", row["device"] or "")
    for name in ("country", "centre", "region", "scanner", "probe", "gestational_age"):
        if facts.get(name):
            meta[name] = facts[name]
    return meta


def _item(
    question_id: str,
    row: Mapping[str, Any],
    draft: Draft,
    split: str,
    answer: AnswerSpec,
    reference: dict[str, Any],
    chance: float | None,
    meta: dict[str, str],
    parameters: Parameters,
) -> Item:
    case_id = picture_id(row["case_id"], draft)
    variables = _variables(row, draft, parameters)
    versions = parameters.templates
    version = versions[int(draw(parameters.random_state, "template", question_id) * len(versions))]
    name, folder = draft.task.lower(), parameters.prompts
    template = _shipped(NAME, name, version) if folder is None else load_prompt(NAME, name, version, folder)
    try:
        question = render(template, {**variables, ANSWER_FORMAT: FORMS.load(answer.form).ask(answer)})
    except BadInput as error:
        raise BadInput(
            f"a label that no prompt can hold ({error})", file=row["case_id"], fix="map it in the vocabulary"
        ) from error
    return Item(
        item_id=question_id,
        task=draft.task,
        dataset=dataset_of(row["source"], draft),
        source=row["source"],
        group=row["group"],
        split=split,
        images=(ItemImage(case_id),),
        question=question,
        prompt_id=prompt_id(NAME, name, version),
        answer=answer,
        reference=reference,
        reference_state="ok",
        chance=chance,
        anatomy=row["anatomy"] or "",
        variables=variables,
        meta=meta,
    )


def picture_id(case_id: str, draft: Draft) -> str:
    """Return the case that holds the picture of a question: the case itself, or one with the red box."""
    return f"{case_id}~VG-{draft.part}" if draft.task == "VG" else case_id


def _variables(row: Mapping[str, Any], draft: Draft, parameters: Parameters) -> dict[str, str]:
    if draft.task == "VL":
        return {"structure": draft.answer}
    if draft.task == "MS":
        size = row["spacing"]["x"] / scale_of(row["width"], row["height"], parameters)
        return {"measurement": draft.measurement, "pixel_size_mm": f"{size:.6g}"}
    return {}
