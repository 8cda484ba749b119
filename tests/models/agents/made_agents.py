"""A segmenter and a planner that do as told, and an agent made of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.models.segmenters.made_images import disc, grey_image, png

from sonogauge.cases.geometry import decode_mask
from sonogauge.models.agents.ultrag import UltraGAgent
from sonogauge.models.agents.vocabulary import Vocabulary
from sonogauge.models.base import EncodedImage, Outcome, Request
from sonogauge.models.segmenters import Instance
from sonogauge.models.segmenters.base import make_instance

NODULE = disc((90, 120), 30, 20, 12)


GLAND = disc((90, 120), 70, 50, 30)


IMAGE = grey_image(NODULE, inside=20, outside=120, noise=15)


VOCABULARY = Vocabulary("train", {"": ["thyroid", "thyroid nodule"]})


class Drawing:
    """A segmenter that knows two masks by name, and does what else the test asks for."""

    name, version, weights_id, licence, device, endpoint = "drawing", "1", "w1", "CC0", "cpu", ""

    def __init__(self, masks: Mapping[str, tuple[np.ndarray, float]], kinds: Sequence[str] = ("text",)) -> None:
        self.masks, self.capabilities = masks, frozenset(kinds)
        self.asked: list[Any] = []
        self.fault: Exception | None = None

    def segment(
        self, image: np.ndarray, text: str | None = None, boxes: Any = None, *rest: Any, **named: Any
    ) -> list[Instance]:
        self.asked.append(text if boxes is None else boxes)
        if self.fault is not None:
            raise self.fault
        if boxes is not None:
            mask = np.zeros(image.shape[:2], dtype=np.bool_)
            x0, y0, x1, y1 = (round(side) for side in boxes[0])
            mask[y0:y1, x0:x1] = True
            made = make_instance(mask, None, "box")
        else:
            known = self.masks.get(text or "")
            made = make_instance(known[0], known[1], f"text: {text}") if known else None
        return [made] if made else []


class Scripted:
    """A planner that says what the test wrote, in turn."""

    name, revision, endpoint, options = "scripted/one", "r1", "http://127.0.0.1:9", {}

    def __init__(self, *replies: str | Outcome) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Outcome:
        self.asked.append(request)
        said = self.replies.pop(0)
        return (
            said if isinstance(said, Outcome) else Outcome("ok", text=said, input_tokens=10, output_tokens=2, cost=0.5)
        )

    async def close(self) -> None:
        pass


def request(prompt: Mapping[str, Any]) -> Request:
    data = png(IMAGE)
    image = EncodedImage(data, "image/png", 120, 90, "hash")
    text = "Rules {not json} first.\n" + json.dumps({"width": 120, "height": 90, **prompt})
    return Request("x-1", "", 0, text, (image,))


def both(kinds: Sequence[str] = ("text",)) -> Drawing:
    return Drawing({"thyroid nodule": (NODULE, 0.9), "thyroid": (GLAND, 0.8)}, kinds)


def ask(agent: UltraGAgent, prompt: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    outcome = asyncio.run(agent.answer(request(prompt)))
    assert outcome.status == "ok", outcome.error
    return json.loads(outcome.text), json.loads(outcome.trace or "null")


def mask_of(reply: Mapping[str, Any]) -> np.ndarray:
    return decode_mask(reply["predicted_mask"])
