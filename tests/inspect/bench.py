"""A small synthetic benchmark for the tests of Inspect, and a script that answers it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tests.run.server import Asked, completion, error

from sonogauge.build import build
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.baselines import baseline_replies
from sonogauge.run.images import CaseImages

ENDINGS = ("right", "right", "right", "wrong", "empty", "unreadable", "cut", "withheld", "refused by the server")


def built(path: Path) -> Path:
    build("synthetic", None, path, seed=0, patients=6)
    return path


def items_of(bench: Path) -> list[Item]:
    return [item for row in Folder(bench).rows("items") if (item := Item.from_row(row)).split == "test"]


class Script:
    """Answers a question of the benchmark, known by its text and the bytes of its images, in one of `ENDINGS`."""

    def __init__(self, bench: Path) -> None:
        images = CaseImages(Folder(bench))
        items = items_of(bench)
        right = baseline_replies("oracle", items, [], 0)
        wrong = baseline_replies("constant", items, [], 0)
        self.answers: dict[bytes, tuple[str, str]] = {}
        for item, one, other in zip(items, right, wrong, strict=True):
            key = _key(item.question, [images.read(image.case_id) for image in item.images])
            self.answers[key] = (one or "", other or "")
        images.close()

    def __call__(self, asked: Asked, nth: int) -> Any:
        key = _key(asked.text, asked.images)
        if key not in self.answers:
            return error(400, "a question or an image that is not of this benchmark")
        right, wrong = self.answers[key]
        match ENDINGS[key[0] % len(ENDINGS)]:
            case "right":
                return completion(f"Answer: {right}")
            case "wrong":
                return completion(wrong)
            case "empty":
                return completion("")
            case "unreadable":
                return completion("<img src=x onerror=alert(1)> \u202e one or the other, or 3 to 700")
            case "cut":
                return completion(right[:3], "length")
            case "withheld":
                return completion("", "content_filter")
        return error(400, "no")


def _key(text: str, images: list[bytes]) -> bytes:
    digest = hashlib.sha256(text.encode())
    for image in images:
        digest.update(hashlib.sha256(image).digest())
    return digest.digest()
