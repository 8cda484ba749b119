"""The cases of a questions file: its pictures, each checked against what the file says of it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.benchmarks.medlesionvqa.schema import Image, Question
from sonogauge.tables import to_facts


def case_id(one: Question, image: Image) -> str:
    """Return the id of the case of an image: source and image id.

    Images of one source must not share an id, and the checks see to it within a file.
    """
    return f"{one.source}/{image.image_id}"


def case_row(name: str, one: Question, image: Image, file: Path) -> dict[str, Any]:
    """Return the row of the cases table of an image.

    Raises:
        BadInput: a picture outside the folder of its file, that cannot be read, or is another than the file says.
    """
    from PIL import Image as Pictures
    from PIL import UnidentifiedImageError

    path = file.parent / image.path
    if not path.resolve().is_relative_to(file.parent.resolve()):
        raise BadInput(
            f"{one.question_id}: the image {image.path} lies outside the folder of its file",
            file=file,
            field="path",
            fix="put images beside the file or below it",
        )
    media = path.read_bytes()
    digest = hashlib.sha256(media).hexdigest()
    if image.sha256 and image.sha256 != digest:
        raise BadInput(
            f"{one.question_id}: {image.path} is another image than the file says",
            file=file,
            field="sha256",
            fix="give the right image, or mend or leave out its hash",
        )
    try:
        with Pictures.open(io.BytesIO(media)) as picture:
            kind, mode, (width, height) = picture.format or "", picture.mode, picture.size
            pixels = hashlib.sha256(f"{mode}:{width}x{height}:".encode() + picture.convert("RGB").tobytes()).hexdigest()
    except UnidentifiedImageError as error:
        raise BadInput(
            f"{one.question_id}: {image.path} cannot be read as an image",
            file=file,
            field="images",
            fix="save it as PNG",
        ) from error
    except (OSError, ValueError, Pictures.DecompressionBombError) as error:
        raise BadInput(
            f"{one.question_id}: {image.path} cannot be read ({error})", file=file, field="images", fix="save it again"
        ) from error
    if (image.width or width, image.height or height) != (width, height):
        raise BadInput(
            f"{one.question_id}: {image.path} is {width} x {height}, not {image.width} x {image.height}",
            file=file,
            field="images",
            fix="give the right image, or mend or leave out its size",
        )
    return {
        "case_id": name,
        "image": {"bytes": media, "path": path.name},
        "media_type": f"image/{kind.lower()}",
        "sha256": digest,
        "pixel_hash": pixels,
        "width": width,
        "height": height,
        "frames": 1,
        "patient": one.patient_id or None,
        "group": one.group,
        "source": one.source,
        "licence": one.licence,
        "redistributable": one.redistributable,
        "private": one.private,
        "provenance": {"patient visit": "clinical"}.get(one.provenance, one.provenance),
        "reference_standard": "reader",
        "demographics": to_facts(one.demographics),
    }


def check_pixels(questions: Sequence[Question], hashes: Mapping[str, str], file: Path) -> None:
    """Refuse questions of both splits on the same pixels.

    hashes: case id to pixel hash.
    """
    splits: dict[str, tuple[str, str]] = {}
    for one in questions:
        for image in one.images:
            pixels = hashes[case_id(one, image)]
            split, other = splits.setdefault(pixels, (one.split, one.question_id))
            if split != one.split:
                raise BadInput(
                    f"the same image in both splits: {other} ({split}) and {one.question_id} ({one.split})",
                    file=file,
                    field="images",
                    fix="keep it in one split",
                )
