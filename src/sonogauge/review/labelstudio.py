"""Label Studio's files: labelling configuration and tasks out, its JSON export of annotations in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from sonogauge._errors import BadInput
from sonogauge.review.forms import FormField

CONFIG: Final = "config.xml"
TASKS: Final = "tasks.json"
LOCAL_FILES: Final = "/data/local-files/?d="
# Names of what is shown differ from those of what is asked: "image" is both.
_TARGET: Final = "shown_question"
_SHOWN: Final = {
    "options": "Options",
    "reply": "Answer to judge",
    "reference": "Reference",
    "facts": "Facts",
    "earlier": "Earlier votes",
}
_MOST_BYTES: Final = 512 * 2**20


def make_config(fields: Sequence[FormField], shown: Sequence[str], images: int) -> bytes:
    """Return the labelling configuration (XML).

    shown: names of text facts of a task, from `_SHOWN`. images: most images of a task.
    """
    view = ElementTree.Element("View")
    if images == 1:
        ElementTree.SubElement(view, "Image", name="shown_image", value="$image", zoom="true")
    elif images > 1:
        ElementTree.SubElement(view, "Image", name="shown_image", valueList="$images", zoom="true")
    ElementTree.SubElement(view, "Text", name=_TARGET, value="$question")
    for name in shown:
        ElementTree.SubElement(view, "Header", value=_SHOWN[name], size="4")
        ElementTree.SubElement(view, "Text", name=f"shown_{name}", value=f"${name}")
    for one in fields:
        ElementTree.SubElement(view, "Header", value=one.title, size="4")
        required = "true" if one.required else "false"
        if one.kind == "text":
            ElementTree.SubElement(
                view, "TextArea", name=one.name, toName=_TARGET, required=required, maxSubmissions="1"
            )
        elif one.kind == "options":
            # An item with one right option shares its form with items that have several; the import checks.
            facts = {
                "name": one.name,
                "toName": _TARGET,
                "value": "$choices",
                "choice": "multiple",
                "required": required,
            }
            ElementTree.SubElement(view, "Choices", facts)
        else:
            choices = ElementTree.SubElement(
                view, "Choices", name=one.name, toName=_TARGET, choice="single", required=required
            )
            for word in one.choices:
                ElementTree.SubElement(choices, "Choice", value=word)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode").encode("utf-8") + b"\n"


def task(data: Mapping[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """Return one task to import: its data, with the options of dynamic choices."""
    return {"data": {**data, "choices": [{"value": option} for option in options]}}


@dataclass(frozen=True)
class Annotation:
    """One reviewer's form on one task.

    values: field name to the chosen words or texts. row: number of the task in the file. reviewer: as the tool names
    them ("7", or an address where there is no number).
    """

    row: int
    data: Mapping[str, Any]
    reviewer: str
    values: Mapping[str, tuple[str, ...]]


@dataclass
class Skipped:
    """What the file holds beside annotations that count."""

    cancelled: int = 0
    unanswered: int = 0


def read_annotations(file: Path, fields: Sequence[FormField], skipped: Skipped) -> Iterator[Annotation]:
    """Yield the annotations of a JSON export in the order of the file.

    Cancelled annotations and tasks without any are counted in `skipped`; fields of other forms are passed over.

    Raises:
        BadInput: not Label Studio's JSON, a task without data, an annotation without reviewer, a value of a wrong type.
    """
    known = {one.name: one for one in fields}
    for row, one in enumerate(_read(file), start=1):
        data = one.get("data") if isinstance(one, dict) else None
        if not isinstance(data, dict):
            raise BadInput("no task of Label Studio: it has no data", file=file, row=row, fix="export as JSON")
        given = one.get("annotations", one.get("completions"))
        if not isinstance(given, list):
            raise BadInput(
                "no annotations", file=file, row=row, field="annotations", fix="export as JSON, not as JSON-MIN or CSV"
            )
        kept = [each for each in given if not (isinstance(each, dict) and each.get("was_cancelled"))]
        skipped.cancelled += len(given) - len(kept)
        skipped.unanswered += not kept
        for each in kept:
            if not isinstance(each, dict) or not isinstance(each.get("result"), list):
                raise BadInput("an annotation without result", file=file, row=row, field="annotations")
            yield Annotation(row, data, _reviewer(each, file, row), _values(each["result"], known, file, row))


def _read(file: Path) -> list[Any]:
    if not file.is_file():
        raise BadInput("no such file", file=file)
    if file.stat().st_size > _MOST_BYTES:
        raise BadInput("larger than half a gigabyte", file=file, fix="export fewer tasks at once")
    try:
        tasks = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON ({error})", file=file, fix="export as JSON") from error
    if not isinstance(tasks, list) or not tasks:
        raise BadInput("no list of tasks", file=file, fix="export as JSON")
    return tasks


def _reviewer(annotation: Mapping[str, Any], file: Path, row: int) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("id", who.get("email"))
    if isinstance(who, bool) or not isinstance(who, int | str) or who == "":
        raise BadInput("an annotation without reviewer", file=file, row=row, field="completed_by")
    return str(who)


def _values(result: Sequence[Any], known: Mapping[str, FormField], file: Path, row: int) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    for one in result:
        name = one.get("from_name") if isinstance(one, dict) else None
        if not isinstance(name, str) or name not in known:
            continue
        value = one.get("value")
        key = "text" if known[name].kind == "text" else "choices"
        words = value.get(key) if isinstance(value, dict) else None
        words = [words] if isinstance(words, str) else words
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"no {key} in its value", file=file, row=row, field=name)
        if name in values:
            raise BadInput("answered twice in one annotation", file=file, row=row, field=name)
        plain = (word.encode("utf-8", "replace").decode("utf-8").strip() for word in words)
        values[name] = tuple(word for word in plain if word)
    return values
