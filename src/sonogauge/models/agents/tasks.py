"""What a request asks for: the task, its text and its organ, read from the prompt alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from sonogauge.models.base import Request

Kind = Literal["segmentation", "vqa", "report"]
KINDS: Final[tuple[Kind, ...]] = ("segmentation", "vqa", "report")
# Keys of the small JSON object in a prompt, and the task that each stands for.
_KEYS: Final[dict[str, Kind]] = {
    "instruction": "segmentation",
    "question": "vqa",
    "report_prompt": "report",
    "report": "report",
    "prompt": "report",
}
_CODES: Final[dict[str, Kind]] = {"seg": "segmentation", "vqa": "vqa", "rep": "report", "rpt": "report", "rg": "report"}
_MOST_STARTS: Final = 200


@dataclass(frozen=True, slots=True)
class Task:
    """A request as the agent understands it.

    kind: None where the prompt does not tell. finding_types: those that the prompt names, in its order.
    """

    kind: Kind | None
    text: str
    organ: str = ""
    finding_types: tuple[str, ...] = ()


def read_task(request: Request) -> Task:
    """Return what a request asks for: from the JSON object in its prompt, else from the code of its task.

    >>> read_task(Request("SEG/x/1", "", 0, 'JSON only. {"instruction": "Outline the nodule."}'))
    Task(kind='segmentation', text='Outline the nodule.', organ='', finding_types=())
    """
    for found in _objects(request.prompt):
        for key, kind in _KEYS.items():
            if isinstance(found.get(key), str):
                types = found.get("finding_types")
                listed = types if isinstance(types, list) else []
                names = (one.get("name") if isinstance(one, dict) else one for one in listed)
                return Task(kind, found[key], str(found.get("organ") or ""), tuple(map(str, names)))
    code = request.item_id.partition("/")[0].casefold()
    hits = [kind for start, kind in _CODES.items() if code.startswith(start)]
    return Task(hits[0] if hits else None, request.prompt)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, the last first: what is asked stands below the rules."""
    decoder = json.JSONDecoder()
    starts = [hit.start() for hit in re.finditer(r"\{", text)][-_MOST_STARTS:]
    for start in reversed(starts):
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


Question = Literal["count", "yes_no", "location", "size", "classification", "open"]
_ASKED: Final[tuple[tuple[Question, str], ...]] = (
    ("count", r"how many|number of|\bcount\b"),
    ("yes_no", r"^\W*(is|are|was|were|does|do|did|can|could|has|have)\b"),
    ("location", r"\bwhere\b|\blocat|\bposition|which (part|region|area|third|cell|ninth|quadrant)|\bgrid\b"),
    (
        "size",
        r"\bsize\b|how (large|big|long|wide)|dimension|measure|\bextent|\barea\b|percent|\bshare\b|cover|\bax[ei]s\b",
    ),
    ("classification", r"benign|malignan|classif|which (categor|class|structure|organ|target)|what (structure|organ)"),
)


def question_of(text: str) -> Question:
    """Return what a question asks for, by its words.

    >>> [question_of(one) for one in ("How many lesions?", "Is it in the upper-left?", "Where is it?", "Describe.")]
    ['count', 'yes_no', 'location', 'open']
    """
    lowered = text.casefold()
    return next((name for name, pattern in _ASKED if re.search(pattern, lowered)), "open")
