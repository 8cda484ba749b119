"""Calling a segmenter that may hang, raise or return nonsense: every ending has a name."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from sonogauge.models.segmenters.base import XYXY, Instance, Pixels, Segmenter, SegmenterFault, UnsupportedPrompt

T = TypeVar("T")


def segment_safely(
    segmenter: Segmenter,
    image: Pixels,
    *,
    text: str | None = None,
    boxes: Sequence[XYXY] | None = None,
    points: Sequence[tuple[float, float]] | None = None,
    point_labels: Sequence[int] | None = None,
    top_k: int | None = 1,
    score_threshold: float | None = None,
    timeout: float | None = None,
) -> list[Instance]:
    """Segment, and check what comes back.

    timeout: seconds, after which the call is left to itself.

    Raises:
        UnsupportedPrompt: as the segmenter says.
        SegmenterFault: anything else that went wrong; `kind` says what.
    """

    def call() -> list[Instance]:
        return segmenter.segment(image, text, boxes, points, point_labels, top_k, score_threshold)

    try:
        found = call() if timeout is None else within(timeout, call)
    except (UnsupportedPrompt, SegmenterFault):
        raise
    except TimeoutError:
        raise SegmenterFault("timeout", f"{segmenter.name} did not answer within {timeout:g} s") from None
    except MemoryError as error:
        raise SegmenterFault("memory", str(error)) from error
    except Exception as error:  # foreign code: whatever it raises is a fault of this call, not of the run
        kind = "memory" if type(error).__name__ == "OutOfMemoryError" else "failed"
        raise SegmenterFault(kind, f"{type(error).__name__} {error}") from error
    return _checked(found, image, segmenter.name)


def _checked(found: Any, image: Pixels, name: str) -> list[Instance]:
    if not isinstance(found, list):
        raise SegmenterFault("reply", f"{name} returned {type(found).__name__}, not a list of instances")
    for one in found:
        mask = getattr(one, "mask", None)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise SegmenterFault("reply", f"{name} returned no boolean mask")
        if mask.shape != image.shape[:2]:
            raise SegmenterFault("size", f"{name} returned a mask of {mask.shape} for an image of {image.shape[:2]}")
        if one.score is not None and not math.isfinite(one.score):
            raise SegmenterFault("score", f"{name} returned the score {one.score}")
    # A mask without pixels is nothing found.
    return [one for one in found if one.mask.any()]


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what a call returns within some seconds; raise TimeoutError after them.

    The call goes on in a thread of its own, which does not keep the program from ending.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # handed over to the caller
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name="segmenter")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if errors:
        raise errors[0]
    return results[0]
