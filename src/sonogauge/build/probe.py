"""What the search for copies can find: images altered on purpose, and how many of them are recognised."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge.build.duplicates import DEFAULT, Limits, find_copies
from sonogauge.build.fingerprint import Pixels, decode, sign, to_grey
from sonogauge.folders import open_table

_GROUPS: Final = 4  # row groups that the probed images come from


# Alterations that a copy in another set may have gone through.
def _crop(picture: Pixels, left: float, top: float, right: float, bottom: float) -> Pixels:
    height, width = picture.shape[:2]
    rows = slice(round(top * height), height - round(bottom * height))
    return np.ascontiguousarray(picture[rows, round(left * width) : width - round(right * width)])


def _as_jpeg(picture: Pixels) -> Pixels:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "JPEG", quality=60)
    found = decode(stream.getvalue())
    assert found is not None
    return found


def _half_size(picture: Pixels) -> Pixels:
    import cv2

    height, width = picture.shape[:2]
    size = (max(1, width // 2), max(1, height // 2))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))


ALTERATIONS: Final[dict[str, Callable[[Pixels], Pixels]]] = {
    "saved as JPEG": _as_jpeg,
    "half the size": _half_size,
    "flipped left to right": lambda picture: np.ascontiguousarray(picture[:, ::-1]),
    "flipped top to bottom": lambda picture: np.ascontiguousarray(picture[::-1]),
    "turned by 90 degrees": lambda picture: np.ascontiguousarray(np.rot90(picture)),
    "cropped by 5 % in all": lambda picture: _crop(picture, 0.025, 0.025, 0.025, 0.025),
    "cropped by 5 % on each side": lambda picture: _crop(picture, 0.05, 0.05, 0.05, 0.05),
    "cropped by 5 % on one side": lambda picture: _crop(picture, 0.0, 0.05, 0.0, 0.0),
}


def measure_detection(
    pictures: Sequence[Pixels], limits: Limits = DEFAULT
) -> tuple[dict[str, tuple[int, int]], tuple[int, int]]:
    """Return per alteration how many altered copies are found of how many, and false positives of pairs compared.

    A false positive: an image taken for a copy of another image's altered form, though the two are no copies as they
    are. pictures: decoded images, in grey or RGB.
    """
    signed = [sign(to_grey(picture)) for picture in pictures]
    codes = np.stack([one.codes for one in signed])

    def thumbs_with(others: Sequence[Any]) -> Callable[[Sequence[tuple[int, int]]], Iterator[tuple[Pixels, Pixels]]]:
        return lambda pairs: ((signed[left].thumb, others[right].thumb) for left, right in pairs)

    alike, _, _ = find_copies(codes, codes, thumbs_with(signed), limits)
    known = {(pair.left, pair.right) for pair in alike}
    found, false, compared = {}, 0, 0
    for name, alter in ALTERATIONS.items():
        altered = [sign(alter(to_grey(picture))) for picture in pictures]
        pairs, _, _ = find_copies(codes, np.stack([one.codes for one in altered]), thumbs_with(altered), limits)
        found[name] = (sum(pair.left == pair.right for pair in pairs), len(pictures))
        false += sum(pair.left != pair.right and (pair.left, pair.right) not in known for pair in pairs)
        compared += len(pictures) ** 2 - len(known | {(one, one) for one in range(len(pictures))})
    return found, (false, compared)


def sample_pictures(file: Path, count: int, seed: int) -> list[Pixels]:
    """Return some decoded images of a cases table, drawn by the seed from a few of its row groups."""
    random = np.random.default_rng([seed, 0x5A])
    rows: list[bytes] = []
    with open_table(file, "cases", buffer_size=1 << 20) as parquet:
        groups = parquet.metadata.num_row_groups
        chosen = sorted(int(group) for group in random.permutation(groups)[:_GROUPS])
        for group in chosen:
            size = parquet.metadata.row_group(group).num_rows
            share = -(-count // len(chosen))
            wanted = {int(row) for row in random.permutation(size)[:share]}
            at = 0
            for batch in parquet.iter_batches(batch_size=16, row_groups=[group], columns=["image"]):
                rows += [
                    image["bytes"]
                    for row, image in enumerate(batch.column(0).to_pylist(), start=at)
                    if row in wanted and image and image["bytes"]
                ]
                at += batch.num_rows
    pictures = (decode(data) for data in rows[:count])
    return [picture for picture in pictures if picture is not None and min(picture.shape[:2]) >= 32]
