"""Questions written by a model of the user's choice, filtered by the evidence constraints, with templates to fall back on.

The model sees the image and the facts of its masks, without names of files, sources or parts. Of what it writes, only
what the cited masks support is kept; fewer than four questions left, and the whole set comes from the templates.
"""  # noqa: E501

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Protocol

from sonogauge.answers.json_reply import plain_text
from sonogauge.answers.normalise import as_text
from sonogauge.benchmarks.prompts import load_prompt, render
from sonogauge.benchmarks.ultrag.questions import ANSWER_TYPES, FEWEST, MOST
from sonogauge.benchmarks.ultrag.records import ImageRecord
from sonogauge.benchmarks.ultrag.vocabulary import Category, normalise
from sonogauge.benchmarks.ultrag.wording import forbidden, unsupported

TEMPERATURE: Final = 0.2
_WINDOW: Final = 16
_SHOWN: Final = (
    *("mask_id", "category", "pathology_label", "bbox_xywh", "mask_area_px", "area_ratio"),
    *("long_axis_px", "short_axis_px", "location_grid"),
)


class QuestionWriter(Protocol):
    """Who writes: one text for a prompt and an image. `sonogauge.models.question_writer` makes one of any model."""

    @property
    def name(self) -> str:
        """As stored in the manifest."""

    @property
    def away(self) -> str:
        """Another machine that would get the images, where it may not have private ones; else empty."""

    async def write(self, prompt: str, image: bytes, media_type: str, size: tuple[int, int]) -> str:
        """Return the reply; raise OSError or ValueError for a failed call."""
        ...


def filter_questions(
    written: Iterable[Any], masks: list[dict[str, Any]], category: Category
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Keep what the evidence supports; return the questions and how many were dropped for which reason.

    Every question that is kept requires grounding.
    """
    by_id = {str(one["mask_id"]): one for one in masks}
    kept: list[dict[str, Any]] = []
    dropped: dict[str, int] = {}
    seen: set[str] = set()
    for one in written:
        why, found = _check(one, by_id, category, seen)
        if why is not None or found is None:
            dropped[why or "not an object"] = dropped.get(why or "not an object", 0) + 1
            continue
        seen.add(normalise(found["question"]))
        kept.append({"qa_id": f"qa{len(kept) + 1}", **found})
    return kept[:MOST], dropped


def _check(
    one: Any, by_id: Mapping[str, dict[str, Any]], category: Category, seen: set[str]
) -> tuple[str | None, dict[str, Any] | None]:
    if not isinstance(one, dict):
        return "not an object", None
    question, answer = plain_text(one.get("question")), plain_text(one.get("answer"))
    if not question or not answer:
        return "empty", None
    if normalise(question) in seen:
        return "repeated", None
    ids = one.get("evidence_mask_ids")
    if not isinstance(ids, list) or not ids:
        return "no evidence", None
    if any(not isinstance(name, str) or name not in by_id for name in ids):
        return "unknown mask", None
    text = f"{question} {answer}"
    cited = [by_id[name] for name in dict.fromkeys(ids)]
    claims = forbidden(text)
    if claims:
        return claims[0], None
    if unsupported(text, cited, category):
        return "not carried by its masks", None
    if not category.named(text):
        return "names no region", None
    kind = one.get("answer_type")
    return None, {
        "question": question,
        "answer": answer,
        "answer_type": kind if kind in ANSWER_TYPES else "open",
        "requires_grounding": True,
        "evidence_mask_ids": list(dict.fromkeys(ids)),
        "reasoning_type": plain_text(one.get("reasoning_type")) or "",
        "evidence_source": "image_and_mask",
    }


def read_list(reply: str) -> list[Any] | None:
    """Return the JSON list of a reply, as a whole or from the first to the last square bracket; None for none.

    >>> read_list("Sure: [1, 2]"), read_list("no")
    ([1, 2], None)
    """
    text = as_text(reply)
    start, end = text.find("["), text.rfind("]")
    for part in (text, text[start : end + 1] if 0 <= start < end else ""):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list):
            return value
    return None


def prompt_for(record: Mapping[str, Any]) -> str:
    """Return the prompt that asks for the questions of an image."""
    image = record["image"]
    facts = {
        "width": image["width"],
        "height": image["height"],
        "organ": image["organ"],
        "regions": [
            {name: one[name] for name in _SHOWN} | {"mask_id": f"m{n}"} for n, one in enumerate(record["masks"], 1)
        ],
    }
    template = load_prompt("ultrag", "write", "1")
    values = {"facts": json.dumps(facts), "fewest": str(FEWEST), "most": str(MOST), "types": ", ".join(ANSWER_TYPES)}
    return render(template, values)


Pair = tuple[ImageRecord, dict[str, Any]]


def write_questions(pairs: Iterator[Pair], writer: QuestionWriter) -> Iterator[Pair]:
    """Yield the pairs with questions of the writer where they hold, a bounded number of calls at a time."""
    # The official mask ids name source and part; the writer sees m1, m2, … instead.
    while window := tuple(islice(pairs, _WINDOW)):
        yield from asyncio.run(_window(window, writer))


async def _window(window: Iterable[Pair], writer: QuestionWriter) -> list[Pair]:
    return list(await asyncio.gather(*(_one(record, case, writer) for record, case in window)))


async def _one(one: ImageRecord, case: dict[str, Any], writer: QuestionWriter) -> Pair:
    if not one.record["masks"]:
        return one, case
    image = case["image"]["bytes"] or b""
    error = ""
    kept: list[dict[str, Any]] = []
    dropped: dict[str, int] = {}
    try:
        reply = await writer.write(prompt_for(one.record), image, str(case.get("media_type") or "image/png"), one.size)
    except (OSError, ValueError) as failed:
        error = str(failed) or type(failed).__name__
    else:
        found = read_list(reply)
        if found is None or not FEWEST <= len(found) <= MOST:
            error = "reply is no list of 4 to 6 questions"
        else:
            names = {f"m{n}": mask["mask_id"] for n, mask in enumerate(one.record["masks"], 1)}
            kept, dropped = filter_questions(_renamed(found, names), one.record["masks"], one.category)
            if len(kept) < FEWEST:
                reasons = ", ".join(f"{why} {n}" for why, n in sorted(dropped.items()))
                error = f"{len(kept)} questions left by the filter ({reasons})"
    annotation = dict(one.record["annotation"])
    if error:
        record = {**one.record, "annotation": {**annotation, "api_error": error}}
    else:
        record = {**one.record, "annotation_source": "api", "annotation": {**annotation, "grounded_vqa": kept}}
    return replace(one, record=record), case


def _renamed(found: list[Any], names: Mapping[str, str]) -> list[Any]:
    out = []
    for one in found:
        ids = one.get("evidence_mask_ids") if isinstance(one, dict) else None
        if isinstance(ids, list):
            one = {**one, "evidence_mask_ids": [names.get(str(name), name) for name in ids]}
        out.append(one)
    return out
