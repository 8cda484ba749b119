"""A small hand-made benchmark folder for the tests of run/ and models/."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from sonogauge.answers import AnswerSpec
from sonogauge.folders import Manifest, new_folder
from sonogauge.hashes import canonical_hash
from sonogauge.items import Item, ItemImage

PLACES = (
    "upper left",
    "upper center",
    "upper right",
    "middle left",
    "center",
    "middle right",
    "lower left",
    "lower center",
    "lower right",
    "not visible",
)


def picture(shade: int, width: int = 40, height: int = 30, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.new("L", (width, height), shade).save(stream, kind)
    return stream.getvalue()


def item(number: int = 1, form: str = "choice", **changes: Any) -> Item:
    specs = {
        "choice": AnswerSpec("choice", ("benign", "malignant")),
        "multi_choice": AnswerSpec("multi_choice", ("cyst", "mass", "none"), ("A", "B", "C")),
        "place": AnswerSpec("place", PLACES),
        "number": AnswerSpec("number", low=10.0, high=20.0, unit="mm"),
        "text": AnswerSpec("text"),
    }
    references: dict[str, dict[str, Any]] = {
        "choice": {"choices": ("benign",)},
        "multi_choice": {"choices": ("cyst", "mass")},
        "place": {"places": ("center", "middle left")},
        "number": {"number": 12.5},
        "text": {"texts": ("Normal liver.",)},
    }
    tasks = {"choice": "DD", "multi_choice": "MC", "place": "LL", "number": "CVE", "text": "RG"}
    made = Item(
        item_id=f"{tasks[form]}/01/{number:04d}",
        task=tasks[form],
        dataset="01",
        source="01",
        group=f"01:{number % 4}",
        split="test",
        images=(ItemImage(f"case-{number:04d}"),),
        question=f"Question {number}?",
        prompt_id="tiny/one@1",
        answer=specs[form],
        reference=references[form],
        reference_state="ok",
        anatomy="breast",
    )
    return replace(made, **changes)


def case(case_id: str, image: bytes, **changes: Any) -> dict[str, Any]:
    with Image.open(io.BytesIO(image)) as opened:
        width, height, kind = opened.width, opened.height, opened.get_format_mimetype()
    return {
        "case_id": case_id,
        "image": {"bytes": image, "path": f"{case_id}.png"},
        "media_type": kind,
        "sha256": hashlib.sha256(image).hexdigest(),
        "width": width,
        "height": height,
        "source": "01",
        "licence": "CC-BY-4.0",
        "private": False,
        **changes,
    }


def bench(path: Path, items: Sequence[Item], cases: Sequence[dict[str, Any]] | None = None, group: int = 8) -> Path:
    """Write a benchmark folder; without cases each item's image is a small picture of its own shade."""
    if cases is None:
        names = sorted({image.case_id for one in items for image in one.images})
        cases = [case(name, picture(number % 256)) for number, name in enumerate(names)]
    with new_folder(path) as folder:
        folder.table("cases", group).write(sorted(cases, key=lambda row: row["case_id"]))
        folder.table("items").write(one.to_row() for one in sorted(items, key=lambda one: one.item_id))
        folder.finish(Manifest(kind="benchmark", maker="tests", name="tiny", version="1", licences=["CC-BY-4.0"]))
    return path


def digest(value: Any) -> str:
    return canonical_hash(value)
