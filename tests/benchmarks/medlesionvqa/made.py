"""Questions and annotations of our own making, with pictures, for the tests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from PIL import Image


def picture(folder: Path, name: str, shade: int = 0) -> dict[str, Any]:
    """Write a small picture and return its entry."""
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), (shade, 40, 80)).save(folder / f"{name}.png")
    digest = hashlib.sha256((folder / f"{name}.png").read_bytes()).hexdigest()
    return {"image_id": name, "path": f"{name}.png", "sha256": digest, "width": 8, "height": 6}


def question(folder: Path, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a question as the file has it; the picture of its number exists."""
    return {
        "question_id": f"q{number}",
        "split": "test",
        "images": [picture(folder, f"image{number}", number)],
        "patient_id": f"p{number}",
        "question": "Which lesions does the image show?",
        "options": [
            {"letter": letter, "text": text}
            for letter, text in zip("ABCD", ["macule", "papule", "ulcer", "crust"], strict=True)
        ],
        "type": "multi_choice",
        "ability": "LR",
        "gold": ["A", "C"],
        **changes,
    }


def annotation(folder: Path, number: int, **changes: Any) -> dict[str, Any]:
    """Return an annotation as the file has it."""
    return {
        "image": picture(folder, f"image{number}", number),
        "patient_id": f"p{number // 2}",
        "source": "made",
        "body_part": "palm",
        "lesions": [
            {
                "id": "l1",
                "name": "papule",
                "role": "primary",
                "attributes": {"color": ["red", "pink"], "shape": ["round"], "size": ["millimetre"]},
            },
            {"id": "l2", "name": "scab", "role": "secondary"},
        ],
        "relations": [{"subject": "crust", "relation": "above", "object": "papule"}],
        "inferences": [
            {
                "question": "What do the signs speak for?",
                "holds": ["it is inflamed", "it is fresh"],
                "fails": ["it is a scar", "it is a bruise"],
            }
        ],
        "differentials": [
            {"rater_id": "a1", "ranked": ["eczema", "psoriasis"], "reasoning": "scaly"},
            {"rater_id": "a2", "ranked": ["psoriasis", "atopic dermatitis"]},
        ],
        "advice": [{"rater_id": "a1", "text": "Apply a bland cream twice a day.", "accepted": ["Use a bland cream."]}],
        "raters": [
            {"rater_id": "a1", "role": "annotator", "level": "primary"},
            {"rater_id": "a2", "role": "annotator", "level": "senior"},
        ],
        **changes,
    }


def write(file: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file
