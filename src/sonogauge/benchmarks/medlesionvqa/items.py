"""From a question to the item that is asked and scored."""

from __future__ import annotations

from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.medlesionvqa.pictures import case_id
from sonogauge.benchmarks.medlesionvqa.schema import Question
from sonogauge.benchmarks.prompts import render_question
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario
from sonogauge.items import Item, ItemImage
from sonogauge.metrics.multi_choice import expected_random_subset
from sonogauge.metrics.ranking import expected_top_1

YES_NO: Final = ("yes", "no")


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
    try:
        question, prompt_id = render_question(spec, scenario, answer, variables)
    except BadInput as error:
        raise BadInput(f"{one.question_id}: {error}") from error
    undecided = one.type == "ranking" and one.disease.tie_rule == "adjudicate" and _has_ties(one)
    meta = {
        **one.demographics,
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
