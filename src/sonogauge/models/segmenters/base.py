"""What a segmenter is: something that draws masks where a phrase, a box or points tell it to."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sonogauge.cases.geometry import Mask, box_of_mask

Pixels = NDArray[np.uint8]
XYXY = tuple[float, float, float, float]
CAPABILITIES: Final = ("text", "box", "point", "train")


class UnsupportedPrompt(ValueError):
    """A prompt of a kind that the segmenter cannot use, or none at all."""


class SegmenterFault(RuntimeError):
    """A failure of one call, counted by its kind.

    kind: "timeout", "size" (a mask of another size than the image), "score" (no number), "server", "reply", "memory" or
    "failed".
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {' '.join(detail.split())[:300]}")
        self.kind = kind


@dataclass(frozen=True, eq=False)
class Instance:
    """One object as a segmenter drew it.

    mask: boolean, rows and columns of the image as it was given. score: from 0 to 1, None if the segmenter has none.
    box_xyxy: tight box of the mask in pixels, right and lower ends outside. prompt: what was asked ("text: lesion").
    """

    mask: Mask
    score: float | None
    box_xyxy: XYXY
    prompt: str


class Segmenter(Protocol):
    """A back-end.

    version: of its rule or package; weights_id: hash or name of the weights, empty without any; capabilities: which of
    `CAPABILITIES` it has; device: where it computes; endpoint: address that images leave for, empty if they stay.
    """

    name: str
    version: str
    weights_id: str
    licence: str
    capabilities: frozenset[str]
    device: str
    endpoint: str

    def segment(
        self,
        image: Pixels,
        text: str | None = None,
        boxes: Sequence[XYXY] | None = None,
        points: Sequence[tuple[float, float]] | None = None,
        point_labels: Sequence[int] | None = None,
        top_k: int | None = 1,
        score_threshold: float | None = None,
    ) -> list[Instance]:
        """Draw what the prompts name; an empty list is a valid answer, the same input gives the same output.

        Args:
            image: 8-bit, (rows, columns) or (rows, columns, 3).
            text: a noun phrase.
            boxes: x0, y0, x1, y1 in pixels; one object each.
            points: x, y in pixels, all on or off one object.
            point_labels: 1 = on the object, 0 = off it; by default all 1.
            top_k: most candidates of each prompt, best first; None = all.
            score_threshold: candidates below are left out; those without a score stay.

        Raises:
            UnsupportedPrompt: a prompt that it cannot use, or none.
            SegmenterFault: the call failed.
        """
        ...


def check_prompts(
    segmenter: Segmenter,
    text: str | None,
    boxes: Sequence[XYXY] | None,
    points: Sequence[tuple[float, float]] | None,
    point_labels: Sequence[int] | None,
) -> None:
    """Refuse prompts that the segmenter has no capability for, none at all, and coordinates that are no numbers."""
    given = {"text": text is not None, "box": boxes is not None, "point": points is not None}
    kinds = ", ".join(kind for kind in given if kind in segmenter.capabilities)
    if not any(given.values()):
        raise UnsupportedPrompt(f"{segmenter.name} needs a prompt: {kinds}")
    for kind, there in given.items():
        if there and kind not in segmenter.capabilities:
            raise UnsupportedPrompt(f"{segmenter.name} takes no {kind} prompt, only {kinds}")
    for box in boxes or ():
        if len(box) != 4 or not all(math.isfinite(side) for side in box):
            raise UnsupportedPrompt(f"not a box of four numbers: {box}")
    for point in points or ():
        if len(point) != 2 or not all(math.isfinite(side) for side in point):
            raise UnsupportedPrompt(f"not a point of two numbers: {point}")
    if point_labels is not None and (points is None or len(point_labels) != len(points)):
        raise UnsupportedPrompt("as many point labels as points are needed")


def pixel_box(box: XYXY, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return first and last-plus-one column and row of a box within an image, None if nothing of it lies inside.

    >>> pixel_box((0.4, 0.4, 1.6, 1.6), (5, 5)), pixel_box((9, 9, 12, 12), (5, 5))
    ((0, 0, 2, 2), None)
    """
    x0, x1 = sorted((box[0], box[2]))
    y0, y1 = sorted((box[1], box[3]))
    left, top = max(0, math.floor(x0)), max(0, math.floor(y0))
    right, bottom = min(shape[1], math.ceil(x1)), min(shape[0], math.ceil(y1))
    return (left, top, right, bottom) if left < right and top < bottom else None


def make_instance(mask: Mask, score: float | None, prompt: str) -> Instance | None:
    """Return the instance of a mask, None for an empty one: nothing drawn is nothing found."""
    box = box_of_mask(mask, "")
    if box is None:
        return None
    return Instance(mask, score, (box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"]), prompt)


def best(instances: Iterable[Instance | None], top_k: int | None, score_threshold: float | None) -> list[Instance]:
    """Return the candidates of one prompt that pass, best first; ties and those without a score keep their order."""
    kept = [
        one
        for one in instances
        if one is not None and (score_threshold is None or one.score is None or one.score >= score_threshold)
    ]
    kept.sort(key=lambda one: -math.inf if one.score is None else -one.score)
    return kept if top_k is None else kept[:top_k]


def grey(image: Pixels) -> Pixels:
    """Return the brightness of an image as 8-bit rows and columns (ITU-R BT.601 weights)."""
    if image.ndim == 2:
        return image
    weighted = image[..., :3].astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    return np.asarray(np.rint(weighted), dtype=np.uint8)


def colour(image: Pixels) -> Pixels:
    """Return an image as (rows, columns, 3)."""
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else np.ascontiguousarray(image[..., :3])


def pixel_digest(image: Pixels) -> str:
    """Return the hash of size and RGB samples: a grey image and its RGB copy are one."""
    pixels = colour(image)
    digest = hashlib.sha256(f"{pixels.shape[0]}x{pixels.shape[1]}".encode())
    digest.update(pixels.tobytes())
    return digest.hexdigest()


def decode_pixels(data: bytes) -> Pixels:
    """Return the samples of an encoded image, 8-bit grey or RGB.

    Raises:
        SegmenterFault: it does not decode.
    """
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
            return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise SegmenterFault("image", f"does not decode ({error})") from error


def describe(segmenter: Segmenter) -> dict[str, Any]:
    """Return the facts of a segmenter that a result must carry."""
    return {
        "name": segmenter.name,
        "version": segmenter.version,
        "weights_id": segmenter.weights_id,
        "licence": segmenter.licence,
        "capabilities": sorted(segmenter.capabilities),
        "device": segmenter.device,
    }
