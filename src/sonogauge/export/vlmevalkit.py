"""VLMEvalKit: tab-separated tables with the image in base64, one for questions with options and one for the others."""

from __future__ import annotations

import base64
import csv
import string
from contextlib import ExitStack
from typing import Any, Final

from sonogauge.answers import FORMS, AnswerSpec
from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.export.hf import CARD
from sonogauge.folders import FolderWriter, write_bytes

_LETTERS: Final = string.ascii_uppercase
_SPLIT: Final = "test"


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write NAME_MCQ.tsv and NAME_VQA.tsv of the test part, and the card; return the rows of each file.

    Columns: index, image, question, the options A, B, … as far as any item goes, answer (a letter), category (the
    task), l2-category (the data set), split, item_id, canary. Several images: a JSON-like list, as the tool reads it.
    The question is without its list of options: the tool adds it.
    """
    with_options = sorted(
        {len(item["answer"]["options"] or ()) for item in content.items() if _is_choice(item)}, reverse=True
    )
    letters = list(_LETTERS[: with_options[0]]) if with_options else []
    about = ["category", "l2-category", "split", "item_id", "canary"]
    columns = {
        "MCQ": ["index", "image", "question", *letters, "answer", *about],
        "VQA": ["index", "image", "question", "answer", *about],
    }
    files: dict[str, int] = {}
    with ExitStack() as stack:
        writers: dict[str, Any] = {}
        for number, item in enumerate(content.items()):
            if (item["split"] or _SPLIT) != _SPLIT or (row := _row(content, item)) is None:
                continue
            kind = "MCQ" if _is_choice(item) else "VQA"
            name = f"{content.spec.name}_{kind}.tsv"
            if kind not in writers:
                stream = stack.enter_context((folder.path / name).open("w", encoding="utf-8", newline=""))
                writers[kind] = csv.DictWriter(stream, columns[kind], delimiter="\t", lineterminator="\n")
                writers[kind].writeheader()
                files[name] = 0
            writers[kind].writerow({"index": number, **row})
            files[name] += 1
    write_bytes(folder.path / CARD, write_card(content, []).encode("utf-8"))
    return files


def _is_choice(item: dict[str, Any]) -> bool:
    return item["answer"]["form"] in ("choice", "place") and 2 <= len(item["answer"]["options"] or ()) <= len(_LETTERS)


def _row(content: Content, item: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of an item, None for one without an answer."""
    reference = item["reference"] or {}
    images = [base64.b64encode(content.image(one["case_id"])).decode("ascii") for one in item["images"]]
    spec = AnswerSpec.from_row(item["answer"])
    row: dict[str, Any] = {
        "image": images[0] if len(images) == 1 else "[" + ", ".join(f"'{one}'" for one in images) + "]",
        "question": item["question"],
        "category": item["task"],
        "l2-category": item["dataset"],
        "split": _SPLIT,
        "item_id": item["item_id"],
        "canary": content.canary,
    }
    if item["reference_state"] != "ok":
        return None
    if _is_choice(item):
        right = (reference.get("choices") or reference.get("places") or [None])[0]
        if right not in spec.options:
            return None
        asked = FORMS.load(spec.form).ask(spec)
        row["question"] = item["question"].removesuffix(asked).rstrip() or item["question"]
        row |= dict(zip(_LETTERS, spec.options, strict=False))
        return {**row, "answer": _LETTERS[spec.options.index(right)]}
    if reference.get("number") is not None:
        return {**row, "answer": f"{reference['number']:g}"}
    texts = reference.get("texts") or reference.get("choices") or reference.get("places")
    return {**row, "answer": texts[0]} if texts else None
