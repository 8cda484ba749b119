"""The planner without a model: targets by the words of the task. For tests, offline use, and as its own plain row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from sonogauge.benchmarks.ultrag.vocabulary import Category, normalise
from sonogauge.models.agents.tasks import Kind, Task, question_of, read_task
from sonogauge.models.base import Outcome, Request

MOST_TARGETS: Final = 4
MOST_WORDS: Final = 13
# Words of a task that name nothing in an image.
_EMPTY: Final = frozenset(
    re.findall(
        r"\w+",
        "a all an and are any as be been box by can categories category columns count cover describe do does draw "
        "every everything find following for from has have here how if image in is it its large largest left lie "
        "long lower many mark middle mask name named number of on one only or outline outlined part pixels please "
        "region regions report right row rows scan segment separate share short show shown side size structure "
        "structures target targets that the their there these they this to ultrasound upper visible what where "
        "which with write you",
    )
)


def rule_plan(task: Task, vocabulary: Category) -> dict[str, Any]:
    """Return a plan: the categories that the task names, all where it names none; no vocabulary, its own words.

    >>> from sonogauge.models.agents.vocabulary import make_vocabulary
    >>> task = Task("vqa", "Where does the thyroid nodule lie?", "thyroid")
    >>> plan = rule_plan(task, make_vocabulary("dataset_card", None).category("thyroid"))
    >>> [target["category"] for target in plan["targets"]]
    ['thyroid nodule']
    """
    names = [name for name in vocabulary.targets if name in vocabulary.named(task.text)] if vocabulary.targets else []
    if not names:
        names = list(vocabulary.targets)
    options = {name: number for number, name in enumerate(vocabulary.targets, start=1)}
    targets = [
        {"option_id": options[name], "category": name, "phrase": name, "reason": "named by rule"}
        for name in names[:MOST_TARGETS]
    ]
    if not targets:
        words = [word for word in normalise(task.text).split() if word not in _EMPTY][:MOST_WORDS]
        phrase = " ".join(words) or task.organ
        targets = [{"option_id": None, "category": phrase, "phrase": phrase, "reason": "words of the task"}]
    return {
        "task_type": task.kind or _guess(task.text),
        "targets": targets,
        "draft_answer": "",
        "report_outline": [],
    }


def _guess(text: str) -> Kind:
    words = normalise(text).split()
    if "report" in words:
        return "report"
    return "segmentation" if {"outline", "segment", "mark", "delineate"} & set(words) else "vqa"


class RulePlanner:
    """The rule planner as a plain model, `agent/rule`: it answers without looking and shows no pixels."""

    name = "agent/rule"
    revision = "1"
    endpoint = ""
    options: Mapping[str, Any] = {}

    async def answer(self, request: Request) -> Outcome:
        """Answer from the words of the question."""
        task = read_task(request)
        kind = task.kind or _guess(task.text)
        if kind == "report":
            sentence = {
                "section": "Findings",
                "text": "Nothing was looked at.",
                "finding_type": "",
                "predicted_mask": None,
            }
            return Outcome("ok", text=json.dumps({"report": [sentence]}))
        blind = {"yes_no": "Yes.", "count": "1", "location": "middle-central"}
        answer = "[SEG]" if kind == "segmentation" else blind.get(question_of(task.text), "")
        return Outcome("ok", text=json.dumps({"answer": answer, "predicted_mask": None}))

    async def close(self) -> None:
        """Hold nothing, free nothing."""
