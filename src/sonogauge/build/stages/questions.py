"""Questions: the items of a case, from the tasks of a recipe; references come from the facts, options from a pool."""

from __future__ import annotations

import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Final

from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.answers.place import NOT_VISIBLE, PLACES, is_near_edge
from sonogauge.benchmarks.prompts import ANSWER_FORMAT, placeholders, prompt_id, render
from sonogauge.benchmarks.vocabulary import is_missing
from sonogauge.build.recipe import Recipe, TaskRecipe
from sonogauge.build.stages.facts import boxes_of, facts_of, holds, join_boxes, write_text
from sonogauge.build.stages.splits import draw
from sonogauge.build.stages.vocabulary import RAW
from sonogauge.cases.geometry import box_centre
from sonogauge.cases.places import place_of_box
from sonogauge.items import Item, ItemImage

MOST_OPTIONS: Final = 26


class Skip(Exception):
    """A case of which a task cannot be asked; the text says why."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A box to be drawn on a case; the drawn image is a case of its own."""

    case_id: str
    parent: str
    box: Mapping[str, Any]


@dataclass
class Asked:
    """What the stage yields: items, the drawings they need, and per task why cases were not asked."""

    items: list[Item] = field(default_factory=list)
    drawings: dict[str, Drawing] = field(default_factory=dict)
    skipped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


class Pools:
    """The answers that occur, by task and source: what distractors are drawn from."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, task: str, source: str, answer: str) -> None:
        """Note an answer."""
        self._seen[task, source].add(answer)

    def of(self, task: str, source: str, width: str) -> list[str]:
        """Return the answers of a task in a source ("source"), of a task ("task"), or of all ("global"), sorted."""
        return sorted(
            {
                answer
                for (one, other), answers in self._seen.items()
                if width == "global" or (one == task and (width == "task" or other == source))
                for answer in answers
            }
        )


def collect_pools(recipe: Recipe, rows: Iterable[Mapping[str, Any]]) -> Pools:
    """Return the pools of the tasks that ask for one of several words."""
    pools = Pools()
    tasks = {code: task for code, task in recipe.tasks.items() if task.form == "choice"}
    for row in rows:
        facts = facts_of(row) if tasks else {}
        for code, task in tasks.items():
            if _concerned(task, row, facts):
                for answer in _answers(task, row):
                    pools.add(code, row["source"], answer)
    return pools


def _answers(task: TaskRecipe, row: Mapping[str, Any]) -> list[str]:
    if task.question == "boxed":
        words = {box["category"] for box in row["boxes"] or () if task.category in ("", box["category"])}
    elif task.label in ("view", "anatomy"):
        words = {row[task.label]}
    else:
        words = {label["value"] for label in row["labels"] or () if label["name"] == task.label}
    return sorted(word for word in words if word)


def _concerned(task: TaskRecipe, row: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    return (not task.sources or row["source"] in task.sources) and holds(task.where, facts)


def ask(recipe: Recipe, rows: Iterable[Mapping[str, Any]], parts: Mapping[str, str], pools: Pools) -> Asked:
    """Return all items of the cases.

    Args:
        recipe: its tasks.
        rows: cases without their images, in canonical words, with `shares` of the quality stage.
        parts: case id -> split.
        pools: from `collect_pools` over the same rows.
    """
    asked = Asked()
    for row in rows:
        facts = facts_of(row)
        for code, task in recipe.tasks.items():
            if not _concerned(task, row, facts):
                continue
            try:
                found = list(_ask(recipe, code, task, row, facts, pools))
            except Skip as reason:
                asked.skipped[code][str(reason)] += 1
                continue
            for item, drawing in found:
                asked.items.append(_with_split(item, parts[row["case_id"]]))
                if drawing is not None:
                    asked.drawings[drawing.case_id] = drawing
    asked.items.sort(key=lambda item: item.item_id)
    return asked


def _with_split(item: dict[str, Any], split: str) -> Item:
    return Item(**item, split=split)


def _ask(
    recipe: Recipe, code: str, task: TaskRecipe, row: Mapping[str, Any], facts: Mapping[str, str], pools: Pools
) -> Iterator[tuple[dict[str, Any], Drawing | None]]:
    item_id = f"{code}/{row['case_id']}"
    match task.question:
        case "choice":
            words = _answers(task, row)
            if len(words) != 1:
                raise Skip("no label" if not words else "several labels")
            raw = _raw(row, task.label)
            yield _choice(recipe, code, task, row, facts, pools, item_id, words[0], {**raw}), None
        case "boxed":
            yield from _boxed(recipe, code, task, row, facts, pools, item_id)
        case "place":
            yield _place(recipe, code, task, row, facts, item_id), None
        case "number":
            yield _number(recipe, code, task, row, facts, item_id), None
        case "text":
            yield _text(recipe, code, task, row, facts, item_id), None


def _raw(row: Mapping[str, Any], name: str) -> dict[str, str]:
    raw = next((one["value"] for one in row["meta"] or () if one["name"] == f"{RAW}{name}"), None)
    return {} if raw is None else {"raw_label": raw}


def _choice(
    recipe: Recipe,
    code: str,
    task: TaskRecipe,
    row: Mapping[str, Any],
    facts: Mapping[str, str],
    pools: Pools,
    item_id: str,
    right: str,
    meta: dict[str, str],
) -> dict[str, Any]:
    options = options_for(
        task, pools.of(code, row["source"], task.pool), pools.of(code, "", "task"), right, recipe.seed, item_id
    )
    if task.options and right not in task.options:
        raise Skip("the answer is no option")
    if len(options) < 2:
        raise Skip("no second option")
    if len(options) > MOST_OPTIONS and task.letters:
        raise Skip("more options than letters")
    letters = tuple(string.ascii_uppercase[: len(options)]) if task.letters else ()
    answer = AnswerSpec("choice", options=options, letters=letters)
    given = _variables(task, facts)
    if any(re.search(rf"(?<!\w){re.escape(right)}(?!\w)", value, re.IGNORECASE) for value in given.values()):
        raise Skip("a variable of the template tells the answer")
    return _item(recipe, code, task, row, item_id, answer, {"choices": (right,)}, given, meta, 1 / len(options))


def options_for(
    task: TaskRecipe, near: list[str], wide: list[str], right: str, seed: int, item_id: str
) -> tuple[str, ...]:
    """Return the options of an item in the order shown: the right one and distractors of the pool.

    Declared options stay as they are unless fewer are wanted. Without `n_options` all of the pool are shown. A pool
    that is too small is filled up from that of the task, and then fewer options are shown. The draw and the order
    depend on the seed and the item alone.
    """
    pool = list(task.options) or near
    others = [word for word in dict.fromkeys(pool) if word.casefold() != right.casefold()]
    wanted = (task.n_options or len(pool)) - 1
    dice = random.Random(int(draw(seed, "options", item_id) * 2**53))
    if len(others) > wanted:
        others = dice.sample(others, wanted)
    elif len(others) < wanted and not task.options:
        more = [word for word in wide if word.casefold() != right.casefold() and word not in others]
        others += dice.sample(more, min(len(more), wanted - len(others)))
    chosen = [right, *others]
    if task.shuffle == "hash":
        chosen.sort()
        dice.shuffle(chosen)
        return tuple(chosen)
    return tuple(word for word in task.options if word in chosen) if task.options else tuple(sorted(chosen))


def _boxed(
    recipe: Recipe,
    code: str,
    task: TaskRecipe,
    row: Mapping[str, Any],
    facts: Mapping[str, str],
    pools: Pools,
    item_id: str,
) -> Iterator[tuple[dict[str, Any], Drawing]]:
    boxes = [
        (category, number, box)
        for category in _answers(task, row)
        for number, box in enumerate(join_boxes(boxes_of(row, category), task.component), start=1)
        if min(box["w"], box["h"]) >= task.min_side
    ]
    if not boxes:
        raise Skip("no box that is large enough")
    hidden = {name: value for name, value in facts.items() if name in ("anatomy", "view", "pixel_size_mm")}
    for category, number, box in boxes:
        share = box["w"] * box["h"] / (row["width"] * row["height"])
        name = f"{category}-{number}"
        drawn = f"{row['case_id']}~{code}-{name}"
        meta = {**_raw(row, "category"), "box_share": f"{share:.4f}"}
        item = _choice(recipe, code, task, row, hidden, pools, f"{item_id}~{name}", category, meta)
        item["images"] = (ItemImage(drawn),)
        yield item, Drawing(drawn, row["case_id"], box)


def _place(
    recipe: Recipe, code: str, task: TaskRecipe, row: Mapping[str, Any], facts: Mapping[str, str], item_id: str
) -> dict[str, Any]:
    boxes = join_boxes(boxes_of(row, task.category), task.component)
    if boxes:
        box = boxes[0]
        centre = box_centre(box, row["width"], row["height"])
        reference: dict[str, Any] = {"places": (place_of_box(box, row["width"], row["height"]),), "boxes": (box,)}
        meta = {"near_edge": "1" if is_near_edge(*centre) else "0"}
    elif task.absent and holds(task.absent, facts):
        # An image without a box may just lack the annotation: absence counts only where the recipe says so.
        reference, meta = {"places": (NOT_VISIBLE,), "boxes": ()}, {}
    else:
        raise Skip(f"no {task.category}, and not known to be absent")
    given = {**_variables(task, {**facts, "structure": task.structure or task.category})}
    return _item(recipe, code, task, row, item_id, AnswerSpec("place", options=PLACES), reference, given, meta, 0.1)


def _number(
    recipe: Recipe, code: str, task: TaskRecipe, row: Mapping[str, Any], facts: Mapping[str, str], item_id: str
) -> dict[str, Any]:
    values = {one["value"] for one in row["measurements"] or () if one["name"] == task.measurement}
    units = {one["unit"] for one in row["measurements"] or () if one["name"] == task.measurement}
    if len(values) != 1:
        raise Skip("no measurement" if not values else "several measurements")
    if units != {task.unit}:
        raise Skip(f"measured in {', '.join(sorted(units))}, not in {task.unit}")
    value = float(values.pop())
    assert task.low is not None and task.high is not None
    if not task.low <= value <= task.high:
        raise Skip("outside the declared range")
    answer = AnswerSpec("number", low=task.low, high=task.high, unit=task.unit, tolerance=task.tolerance)
    return _item(recipe, code, task, row, item_id, answer, {"number": value}, _variables(task, facts), {}, None)


def _text(
    recipe: Recipe, code: str, task: TaskRecipe, row: Mapping[str, Any], facts: Mapping[str, str], item_id: str
) -> dict[str, Any]:
    if task.kind:
        texts = tuple(one["text"] for one in row["texts"] or () if one["kind"] == task.kind and one["text"])
    else:
        written = write_text(task.sentences, facts)
        texts = (written,) if written else ()
    if not texts:
        raise Skip("no text")
    shown = {name: value for name, value in facts.items() if name in ("anatomy", "view", "pixel_size_mm")}
    return _item(
        recipe, code, task, row, item_id, AnswerSpec("text"), {"texts": texts}, _variables(task, shown), {}, None
    )


def _variables(task: TaskRecipe, facts: Mapping[str, str]) -> dict[str, str]:
    wanted = [name for name in placeholders(task.template) if name != ANSWER_FORMAT]
    for name in wanted:
        if is_missing(facts.get(name)):
            raise Skip(f"no {name}")
    return {name: facts[name] for name in wanted}


def _item(
    recipe: Recipe,
    code: str,
    task: TaskRecipe,
    row: Mapping[str, Any],
    item_id: str,
    answer: AnswerSpec,
    reference: dict[str, Any],
    variables: dict[str, str],
    meta: dict[str, str],
    chance: float | None,
) -> dict[str, Any]:
    question = render(task.template.strip("\n"), {**variables, ANSWER_FORMAT: FORMS.load(answer.form).ask(answer)})
    source = intern(row["source"])
    return {
        "item_id": item_id,
        "task": code,
        "dataset": source,
        "source": source,
        "group": row["group"],
        "images": (ItemImage(row["case_id"]),),
        # The same words in many items: kept once.
        "question": intern(question),
        "prompt_id": intern(prompt_id(recipe.name, code.casefold(), recipe.version)),
        "answer": answer,
        "reference": reference,
        "reference_state": "ok",
        "chance": chance,
        "anatomy": intern(row["anatomy"] or ""),
        "determinable": task.determinable,
        "variables": variables,
        "meta": meta,
    }
