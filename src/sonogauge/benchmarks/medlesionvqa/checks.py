"""Faults of a questions file that are named when it is loaded; all have been seen in data of this kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.schema import (
    ANNOTATING,
    CHOICE_TYPES,
    Image,
    Question,
    Rater,
)

_YES_NO: Final = frozenset({"yes", "no"})


def check_questions(questions: Sequence[Question], file: Path, root: Path | None = None) -> None:
    """Refuse a file with a fault.

    root: folder of the image paths; None = do not look for the images.

    Raises:
        BadInput: the first fault with the row of its question, what is wrong and what to do.
    """
    seen: dict[str, int] = {}
    pictures: dict[tuple[str, str], Image] = {}
    splits: dict[str, tuple[str, str]] = {}
    for row, one in enumerate(questions, start=1):
        if one.question_id in seen:
            raise _fault(f"question '{one.question_id}' stands in row {seen[one.question_id]} too", file, row)
        seen[one.question_id] = row
        for field, what, fix in faults(one):
            raise BadInput(f"{one.question_id}: {what}", file=file, row=row, field=field, fix=fix)
        for image in one.images:
            other = pictures.setdefault((one.source, image.image_id), image)
            if (other.path, other.sha256) != (image.path, image.sha256):
                raise BadInput(
                    f"{one.question_id}: the image id '{image.image_id}' stands for two pictures",
                    file=file,
                    row=row,
                    field="images",
                    fix="give each picture an id of its own",
                )
            if root is not None and not (root / image.path).is_file():
                raise BadInput(
                    f"{one.question_id}: missing image {image.path}", file=file, row=row, field="images", fix="add it"
                )
            for key in filter(None, (image.image_id, image.sha256)):
                split, asked = splits.setdefault(key, (one.split, one.question_id))
                if split != one.split:
                    raise _fault(
                        f"the image {image.image_id} is in both splits: {asked} ({split}) and "
                        f"{one.question_id} ({one.split})",
                        file,
                        row,
                    )
    check_raters(((row, rater) for row, one in enumerate(questions, start=1) for rater in one.involved), file)


def _fault(what: str, file: Path, row: int) -> BadInput:
    return BadInput(what, file=file, row=row, fix="keep one")


def check_raters(raters: Iterable[tuple[int, Rater]], file: Path) -> None:
    """Refuse a rater who made the reference and answers as a test physician too; each rater comes with its row."""
    made: dict[str, tuple[str, int]] = {}
    answered: dict[str, tuple[str, int]] = {}
    for row, one in raters:
        side = made if one.role in ANNOTATING else answered
        side.setdefault(one.rater_id, (one.role, row))
        if one.rater_id in made and one.rater_id in answered:
            (role, where), (other, there) = made[one.rater_id], answered[one.rater_id]
            raise BadInput(
                f"rater '{one.rater_id}' is {role} and {other} (rows {where} and {there})",
                file=file,
                row=row,
                field="raters",
                fix="who annotated a benchmark cannot be its yardstick: leave out one of the two",
            )


def faults(one: Question) -> Iterator[tuple[str, str, str]]:
    """Yield (field, what is wrong, what to do) for one question."""
    letters = [option.letter for option in one.options]
    if not one.question_id.isprintable():
        yield "question_id", "not a name", "use letters, digits and signs"
    texts = [" ".join(option.text.casefold().split()) for option in one.options]
    if one.type in (*CHOICE_TYPES, "ranking"):
        if len(letters) < 2:
            yield (
                "options",
                f"answer form contradicts type: {one.type} with {len(letters)} options",
                "offer two or more",
            )
            return
        if any(not text for text in texts):
            yield "options", "an empty option", "write its text"
        if any(len(letter) != 1 or not letter.isalnum() for letter in letters):
            yield "options", "a letter that is not one letter or digit", "use A, B, C, …"
        if len(set(texts)) < len(texts) or len({letter.casefold() for letter in letters}) < len(letters):
            yield "options", "an option or a letter stands there twice", "keep one"
        wrong = [one_letter for one_letter in one.reference if one_letter not in letters]
        if wrong:
            yield (
                "gold",
                f"right letter '{wrong[0]}' is not offered ({', '.join(letters)})",
                "use a letter of the options",
            )
        if len(set(one.reference)) < len(one.reference):
            yield "gold", "a right letter stands there twice", "keep one"
        if one.type == "single_choice" and len(one.reference) > 1:
            yield "gold", f"single_choice with {len(one.reference)} right letters", "make it multi_choice or keep one"
        if one.type == "single_choice" and one.ability == "DD" and set(texts) <= _YES_NO:
            yield "options", "a disease question that offers yes and no", "make it a judgement"
    else:
        if letters:
            yield "options", f"answer form contradicts type: {one.type} with options", "leave them out"
        if any(not text.strip() for text in one.reference):
            yield "gold", "an empty right answer", "write its text"
        said = {text.strip().casefold() for text in one.reference}
        if one.type == "judgement" and one.reference not in (["yes"], ["no"]):
            yield "gold", f"answer form contradicts type: judgement with '{one.reference[0]}'", 'use ["yes"] or ["no"]'
        elif one.type != "judgement" and one.ability == "DD" and said & _YES_NO:
            yield "gold", "a disease slot filled with yes or no", "name the disease"
    named = [entry for found in one.disease.lists for entry in found.ranked]
    flat = [name for entry in named for name in ([entry] if isinstance(entry, str) else entry)]
    if {name.strip().casefold() for name in (*flat, *(entry.id for entry in one.disease.fused))} & _YES_NO:
        yield "disease", "a disease slot filled with yes or no", "name the disease"
    if one.attribute_asked is not None and one.ability != "AR":
        yield "attribute_asked", f"an attribute asked under the ability {one.ability}", "use AR, or leave it null"
