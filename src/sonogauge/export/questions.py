"""A MedLesionVQA-style benchmark as the questions file it can be built from again, images beside it.

What a review changed is in it: questions that were removed are left out, corrected ones have the corrected answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.schema import QUESTIONS_FILE, Question, read_questions, write_questions
from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.export.hf import CARD
from sonogauge.export.jsonl import IMAGES, write_images
from sonogauge.folders import FolderWriter, write_bytes


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write questions.jsonl (section 4 of the MedLesionVQA specification), images/ and the card; return their counts.

    Raises:
        BadInput: a benchmark that was not built from such questions, or an item that its file does not have.
    """
    file = content.folder.path / QUESTIONS_FILE
    if not file.is_file():
        raise BadInput(
            f"{content.spec.name} has no {QUESTIONS_FILE}",
            file=content.folder.path,
            field="format",
            fix="this format is for benchmarks made by `sonogauge build medlesionvqa`; use jsonl for others",
        )
    known = {one.question_id: one for one in read_questions(file)}
    questions = []
    for item in content.items():
        if item["item_id"] not in known:
            raise BadInput(f"no question '{item['item_id']}'", file=file, fix="build the benchmark again")
        questions.append(_question(known[item["item_id"]], item, content))
    images = write_images(content, folder.path / IMAGES)
    write_questions(folder.path / QUESTIONS_FILE, questions)
    write_bytes(folder.path / CARD, write_card(content, []).encode("utf-8"))
    return {QUESTIONS_FILE: len(questions), IMAGES: images}


def _question(one: Question, item: Mapping[str, Any], content: Content) -> Question:
    """Return a question with the item's right options and the paths of the exported images."""
    names = [image["case_id"] for image in item["images"]]
    images = [
        image.model_copy(
            update={"path": f"{IMAGES}/{content.file_name(name)}", "sha256": content.cases[name]["sha256"]}
        )
        for image, name in zip(one.images, names, strict=True)
    ]
    choices = item["reference"]["choices"]
    if not choices:
        return one.model_copy(update={"images": images})
    # A judgement offers no letters: its right answer is the word.
    letters = {option.text: option.letter for option in one.options}
    return one.model_copy(update={"images": images, "reference": [letters.get(name, name) for name in choices]})
