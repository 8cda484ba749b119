"""A gallery of cases: which items, their images as thumbnails, questions, references and all models' replies."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.report.load import Scores
from sonogauge.report.page.answers import Answer, Answers, offered_paths
from sonogauge.report.page.evidence import facts_of, kind_counts, kinds_of, sentences_of, whole_iou
from sonogauge.report.page.overlays import shapes_of
from sonogauge.report.page.pack import short
from sonogauge.report.page.trace import Traces, read_traces

DEFAULT_CASES: Final = 60
# Of all thumbnails together, as they stand in the page.
IMAGE_BUDGET: Final = 6_000_000
# (longer side in pixels, WebP quality), tried in turn until an image fits its share of the budget.
_SIZES: Final = ((512, 82), (512, 60), (384, 60), (256, 55), (160, 50), (96, 40))
MOST_REPLY: Final = 20_000
# Characters of all replies together; a long tail of long replies is cut before the page gets heavy.
REPLY_BUDGET: Final = 3_000_000
MOST_QUESTION: Final = 8_000

_CASE_COLUMNS: Final = (
    "case_id",
    "width",
    "height",
    "frames",
    "redistributable",
    "private",
    "source",
    "masks",
    "boxes",
    "points",
)


@dataclass(frozen=True)
class Gallery:
    """Options of a gallery.

    cases: how many at most, 0 = none. restricted: show images that may not be redistributed or are private.
    """

    cases: int = DEFAULT_CASES
    restricted: bool = False
    budget: int = IMAGE_BUDGET


def gallery_data(
    scores: list[Scores], answers: Answers, lines: Mapping[int, int], options: Gallery
) -> tuple[dict[str, Any], list[str]]:
    """Return the cases of a gallery and what the reader must be told about them."""
    notices: list[str] = []
    if answers.bench is None or options.cases <= 0:
        return {"cases": [], "pictures": {}, "total": 0, "kinds": []}, notices
    chosen = choose(answers, options.cases)
    wanted = {item.item_id for item in chosen}
    replies: dict[int, dict[str, Shown]] = {}
    for index in answers.by_scores:
        found, why = _replies(scores[index], wanted, answers.bench)
        if why:
            notices.append(why)
        replies[index] = found
    pictures = _pictures(answers.bench, chosen, options)
    sizes = {case_id: picture.pop("size") for case_id, picture in pictures.items()}
    most = _reply_limit(replies)
    traces = Traces()
    cases = []
    for item in chosen:
        width, height = sizes.get(item.images[0].case_id, (0, 0)) if item.images else (0, 0)
        held = {
            str(lines[index]): {
                **_answer(answer, replies[index].get(item.item_id), most, width, height),
                **_evidence(item, answer, replies[index].get(item.item_id), traces, width, height),
            }
            for index, found in answers.by_scores.items()
            if (answer := found.get(item.item_id)) is not None
        }
        cases.append(_case(item, held, width, height))
    total = len({item_id for found in answers.by_scores.values() for item_id in found})
    shown = {"cases": cases, "pictures": pictures, "total": total, "kinds": kind_counts(answers, lines)}
    return shown, notices


def choose(answers: Answers, most: int) -> list[Item]:
    """Return items spread over tasks and ways to end: right, wrong, disagreeing, failed by reason, kinds of error.

    Each (task, way) gives one item in turn, in an order fixed by the item ids; no chance is involved.
    """
    strata: dict[tuple[str, str], list[str]] = {}
    for item_id in {item_id for found in answers.by_scores.values() for item_id in found}:
        item = answers.items[item_id]
        ends = [found[item_id] for found in answers.by_scores.values() if item_id in found]
        kinds = sorted({name for one in ends for name in kinds_of(item, one)})
        strata.setdefault((item.task, " ".join([_way(ends), *kinds])), []).append(item_id)
    queues = [sorted(strata[key], key=lambda one: hashlib.sha256(one.encode()).digest()) for key in sorted(strata)]
    order = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return [answers.items[item_id] for item_id in sorted(order[:most])]


def _way(ends: list[Answer]) -> str:
    failed = sorted({one.reason for one in ends if one.outcome == "failed"})
    if failed:
        return f"failed: {failed[0]}"
    outcomes = {one.outcome for one in ends}
    return "disagree" if {"right", "wrong"} <= outcomes else min(outcomes)


def _case(item: Item, held: Mapping[str, Any], width: int, height: int) -> dict[str, Any]:
    ends = {one["outcome"] for one in held.values()}
    answer = item.answer
    question = item.question[:MOST_QUESTION]
    return {
        "id": item.item_id,
        "task": item.task,
        "dataset": item.dataset,
        "form": answer.form,
        "prompt": item.prompt_id,
        "question": question if len(question) == len(item.question) else f"{question} …",
        "options": list(answer.options),
        "range": [short(answer.low), short(answer.high)]
        if answer.low is not None and answer.high is not None
        else None,
        "unit": answer.unit or "",
        "reference": shown_value(item.reference, answer.unit or ""),
        "places": list(item.reference.get("places") or ()),
        "sentences": sentences_of(item.reference),
        "shapes": shapes_of(item.reference, width, height, "reference"),
        "state": item.reference_state,
        "determinable": item.determinable,
        "anatomy": item.anatomy,
        "images": [{"case": one.case_id, "role": one.role, "frame": one.frame} for one in item.images],
        "disagree": len(ends & {"right", "wrong", "failed"}) > 1,
        "answers": dict(held),
    }


def _answer(answer: Answer, reply: Shown | None, most: int, width: int, height: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "outcome": answer.outcome,
        "reason": answer.reason,
        "status": answer.status,
        "prediction": shown_value(answer.prediction),
        "values": {name: short(value) for name, value in sorted(answer.values.items())},
    }
    if places := answer.prediction.get("places"):
        result["places"] = list(places)
    if shapes := shapes_of(answer.prediction, width, height, "prediction"):
        result["shapes"] = shapes
    if reply is not None and reply.text is not None:
        result["reply"] = reply.text[:most]
        if len(reply.text) > most:
            result["cut"] = len(reply.text) - most
    return result


def _evidence(
    item: Item, answer: Answer, reply: Shown | None, traces: Traces, width: int, height: int
) -> dict[str, Any]:
    """Return kinds of error, sentences, clinical facts and an agent's steps; what an answer lacks is left out."""
    result: dict[str, Any] = {
        "kinds": kinds_of(item, answer),
        "sentences": sentences_of(answer.prediction),
        "facts": facts_of(item, answer),
        "iou": whole_iou(item, answer, width, height),
        "trace": traces(reply.trace, width, height) if reply is not None and reply.trace else None,
    }
    return {name: value for name, value in result.items() if value not in (None, [])}


def shown_value(value: Mapping[str, Any], unit: str = "") -> str:
    """Return a reference or prediction in words.

    >>> shown_value({"choices": ("benign",)}), shown_value({"number": 24.0}, "mm"), shown_value({"boxes": ({}, {})})
    ('benign', '24 mm', '2 boxes')
    """
    parts = []
    for name in ("choices", "places", "ranking"):
        if found := value.get(name):
            parts.append((" > " if name == "ranking" else " or ").join(found))
    if (number := value.get("number")) is not None:
        parts.append(f"{number:.6g} {unit}".strip())
    if texts := value.get("texts"):
        parts.append("\n\n".join(texts))
    # The text of a report is all of its sentences.
    elif sentences := value.get("sentences"):
        parts.append("\n".join(one["text"] or "" for one in sentences))
    for name, one, many in (("boxes", "box", "boxes"), ("points", "point", "points"), ("masks", "mask", "masks")):
        if not parts and (found := value.get(name)):
            parts.append(f"{len(found)} {one if len(found) == 1 else many}")
    return "; ".join(parts)


class Shown(NamedTuple):
    """What a page shows of a reply."""

    text: str | None
    trace: str | None


def _replies(scores: Scores, wanted: set[str], bench: Folder) -> tuple[dict[str, Shown], str]:
    """Return the wanted items' unvaried replies, and why there are none."""
    from sonogauge.score.inputs import open_replies

    source = scores.manifest.input("replies")
    why = "were not found when this page was made"
    for path in offered_paths(scores, "replies"):
        try:
            found, _ = open_replies(path, bench.path, None)
        except BadInput:
            why = "cannot be read where they were"
            continue
        if source is not None and found.content_hash == source.hash:
            traces = read_traces(path, wanted)
            return {
                one.item_id: Shown(one.text, traces.get(one.item_id))
                for one in found.replies
                if one.item_id in wanted and not one.variant and not one.rater_id and not one.epoch
            }, ""
        why = "have changed since scoring"
    return {}, f"{scores.label}: its replies {why}; only what was read from them is shown."


def _reply_limit(replies: Mapping[int, Mapping[str, Shown]]) -> int:
    """Return how many characters of each reply are kept, so that all of them stay within the budget."""
    lengths = sorted(len(one.text) for found in replies.values() for one in found.values() if one.text is not None)
    limit = MOST_REPLY
    while limit > 200 and sum(min(length, limit) for length in lengths) > REPLY_BUDGET:
        limit //= 2
    return limit


def _pictures(bench: Folder, items: list[Item], options: Gallery) -> dict[str, dict[str, Any]]:
    """Return, by case, its thumbnail as a data address, or why there is none, with the shapes annotated on it."""
    from sonogauge.run.images import CaseImages

    frames = {one.case_id: one.frame for item in items for one in item.images}
    rows = {row["case_id"]: row for row in _case_rows(bench, set(frames))}
    share = options.budget * 3 // 4 // max(1, len(frames))
    images = CaseImages(bench)
    try:
        return {
            case_id: _picture(images, case_id, frames[case_id], rows.get(case_id), share, options) for case_id in frames
        }
    finally:
        images.close()


def _case_rows(bench: Folder, wanted: set[str]) -> Iterable[dict[str, Any]]:
    for batch in bench.batches("cases", list(_CASE_COLUMNS)):
        names = batch.column("case_id").to_pylist()
        yield from (batch.slice(index, 1).to_pylist()[0] for index, name in enumerate(names) if name in wanted)


def _picture(
    images: Any, case_id: str, frame: int | None, row: Mapping[str, Any] | None, share: int, options: Gallery
) -> dict[str, Any]:
    if row is None:
        return {"why": "no such case in the benchmark", "size": (0, 0)}
    size = (row["width"] or 0, row["height"] or 0)
    facts: dict[str, Any] = {
        "source": row["source"] or "",
        "size": size,
        "ratio": short(size[0] / size[1]) if size[1] else 1,
    }
    if not options.restricted and (row["private"] or row["redistributable"] is not True):
        why = "private" if row["private"] else "may not be redistributed"
        return {**facts, "why": f"image not shown: {why} (--show-restricted-images shows it)", "restricted": True}
    facts["shapes"] = shapes_of(row, *size, "case")
    try:
        return {**facts, **_thumbnail(images, case_id, frame, share)}
    except ValueError as error:
        return {**facts, "why": f"image not shown: {error}"}


def _thumbnail(images: Any, case_id: str, frame: int | None, share: int) -> dict[str, Any]:
    """Return the first encoding that fits the share; an ImageFault, which is a ValueError, tells of a broken image."""
    from PIL import Image

    from sonogauge.run.images import open_image

    image = open_image(images.read(case_id), frame)
    for side, quality in _SIZES:
        small = image.copy()
        small.thumbnail((side, side), Image.Resampling.LANCZOS)
        stream = io.BytesIO()
        small.save(stream, "WEBP", quality=quality, method=4)
        if stream.tell() <= share:
            return {"src": "data:image/webp;base64," + base64.b64encode(stream.getvalue()).decode("ascii")}
    raise ValueError("the size budget of the page is used up (a smaller --gallery leaves more for each)")
