"""Asking a model for a plan, and reading what it says: targets, phrases, a draft, perhaps boxes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sonogauge.benchmarks.ultrag.vocabulary import Category
from sonogauge.models.agents.rules import MOST_TARGETS, MOST_WORDS
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.tasks import KINDS, Kind, Task
from sonogauge.models.base import EncodedImage, Request
from sonogauge.models.segmenters.base import XYXY, Pixels

LONG_SIDE: Final = 768
QUALITY: Final = 90
MAX_TOKENS: Final = 512
_MOST_REPLY: Final = 200_000
_PLAN: Final = """You plan how to answer a task about an ultrasound image. A segmentation tool will draw each target you name.
{facts}
Choose the targets that the task needs, at most {most}; take them from the categories if some are given.
Reply with one JSON object only:
{{"task_type": {kinds}, "targets": [{{"option_id": number or null, "category": name, "phrase": noun phrase of at most {words} words, {box}"reason": a few words}}], "draft_answer": your answer to the task in words, "report_outline": [what a report should say]}}"""  # noqa: E501
_BOX: Final = '"box": {order} in {space} or null, '


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be drawn: category, phrase, and the planner's own box (x0, y0, x1, y1 in pixels) if it wrote one."""

    category: str
    phrase: str
    box: XYXY | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be carried out. by: "model" or "rule". faults: what was wrong with the reply."""

    kind: Kind
    targets: tuple[Target, ...]
    draft: str = ""
    outline: tuple[str, ...] = ()
    by: str = "model"
    faults: tuple[str, ...] = ()

    def told(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "by": self.by,
            "task_type": self.kind,
            "targets": [
                {
                    "category": one.category,
                    "phrase": one.phrase,
                    "box_xyxy": list(one.box) if one.box else None,
                    "reason": one.reason,
                }
                for one in self.targets
            ],
            "draft_answer": self.draft,
            "report_outline": list(self.outline),
        }


def plan_request(
    request: Request,
    task: Task,
    categories: Sequence[Mapping[str, Any]],
    image: Pixels,
    switches: Switches,
    with_box: bool,
) -> Request:
    """Return the question to the planner: image with a long side of at most 768 as JPEG 90, temperature 0."""
    facts: dict[str, Any] = {"image_width": image.shape[1], "image_height": image.shape[0]}
    if task.organ:
        facts["organ"] = task.organ
    if categories:
        facts["categories"] = list(categories)
    if switches.task_forced and task.kind:
        facts["task_type"] = task.kind
    facts["task"] = task.text
    box = _BOX.format(order=switches.box_order, space=switches.coord_space) if with_box else ""
    prompt = _PLAN.format(
        facts=json.dumps(facts, ensure_ascii=False),
        most=MOST_TARGETS,
        words=MOST_WORDS,
        kinds=" or ".join(f'"{kind}"' for kind in KINDS),
        box=box,
    )
    return ask_planner(request, prompt, planner_image(image))


def ask_planner(request: Request, prompt: str, image: EncodedImage) -> Request:
    """Return a question to the planner in place of the one it came from."""
    generation = {**request.generation, "temperature": 0.0, "max_tokens": MAX_TOKENS}
    return replace(request, prompt=prompt, images=(image,), options=(), letters=(), generation=generation)


def planner_image(image: Pixels) -> EncodedImage:
    """Return an image as the planner sees it."""
    import hashlib

    from PIL import Image
    from PIL.Image import Resampling

    shown = Image.fromarray(image)
    if max(shown.size) > LONG_SIDE:
        scale = LONG_SIDE / max(shown.size)
        size = (max(1, round(shown.width * scale)), max(1, round(shown.height * scale)))
        shown = shown.resize(size, Resampling.LANCZOS)
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=QUALITY)
    data = stream.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    return EncodedImage(data, "image/jpeg", shown.width, shown.height, digest, f"max:{LONG_SIDE},jpeg:{QUALITY}")


def read_json(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a reply: as it is, or from the first brace to the last; None if there is none."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start or len(text) > _MOST_REPLY:
        return None
    try:
        found = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_plan(
    text: str, task: Task, vocabulary: Category, image: Pixels, sent: EncodedImage, switches: Switches
) -> Plan | str:
    """Return the plan in a reply, or why there is none.

    Targets beyond the fourth, with an empty or overlong phrase, or of a category outside the list are left out and
    named in the faults.
    """
    found = read_json(text)
    if found is None:
        return "no JSON object"
    raw = found.get("targets")
    if not isinstance(raw, list):
        return "no list of targets"
    faults: list[str] = []
    targets: list[Target] = []
    names = list(vocabulary.targets)
    for one in raw:
        if not isinstance(one, dict):
            faults.append("a target that is no object")
            continue
        category = _category(one, vocabulary, names)
        phrase = " ".join(str(one.get("phrase") or category or "").split())
        if category is None or not phrase:
            faults.append(f"no such category: {str(one.get('category'))[:60]}")
        elif len(phrase.split()) > MOST_WORDS:
            faults.append("a phrase of too many words")
        elif len(targets) == MOST_TARGETS:
            faults.append("more targets than allowed")
        elif phrase not in {target.phrase for target in targets}:
            box = read_box(one.get("box"), image, sent, switches)
            targets.append(Target(category, phrase, box, str(one.get("reason") or "")[:200]))
    kind = task.kind if switches.task_forced else None
    told = found.get("task_type")
    if kind is None:
        kind = told if told in KINDS else task.kind
    if kind is None:
        return "no task type"
    outline = found.get("report_outline")
    draft = found.get("draft_answer")
    return Plan(
        kind,
        tuple(targets),
        str(draft)[:4000] if isinstance(draft, str | int | float) else "",
        tuple(str(line)[:400] for line in outline[:20]) if isinstance(outline, list) else (),
        "model",
        tuple(faults),
    )


def _category(one: Mapping[str, Any], vocabulary: Category, names: Sequence[str]) -> str | None:
    raw = str(one.get("category") or "")
    if not names:
        return raw[:100] or str(one.get("phrase") or "")[:100] or None
    named = vocabulary.canonical(raw)
    if named is None and type(one.get("option_id")) is int and 1 <= one["option_id"] <= len(names):
        named = names[one["option_id"] - 1]
    return named


def read_box(value: Any, image: Pixels, sent: EncodedImage, switches: Switches) -> XYXY | None:
    """Return a box of four numbers in pixels of the image by the declared convention; None where it is none.

    >>> import numpy as np
    >>> image, sent = np.zeros((100, 200), dtype=np.uint8), EncodedImage(b"", "image/jpeg", 100, 50, "")
    >>> read_box([100, 100, 500, 900], image, sent, Switches(coord_space="mille"))
    (20.0, 10.0, 100.0, 90.0)
    """
    if not isinstance(value, list) or len(value) != 4:
        return None
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in value):
        return None
    a, b, c, d = (float(one) for one in value)
    x0, y0, x1, y1 = {"xyxy": (a, b, c, d), "yxyx": (b, a, d, c), "xywh": (a, b, a + c, b + d)}[switches.box_order]
    height, width = image.shape[:2]
    across, down = {
        "pixel": (1.0, 1.0),
        "sent_pixel": (width / sent.width, height / sent.height),
        "unit": (float(width), float(height)),
        "mille": (width / 1000, height / 1000),
    }[switches.coord_space]
    left, right = sorted((x0 * across, x1 * across))
    top, bottom = sorted((y0 * down, y1 * down))
    inside = left < width and right > 0 and top < height and bottom > 0 and left < right and top < bottom
    return (left, top, right, bottom) if inside else None
