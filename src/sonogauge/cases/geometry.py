"""Masks and boxes: run-length code in and out, the box and the centre of a mask.

Masks are boolean arrays (rows, columns); boxes are x, y, width, height in pixels of the native image, x to the right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonogauge._errors import BadInput

Mask = NDArray[np.bool_]


def encode_mask(mask: Mask, mask_id: str, category: str) -> dict[str, Any]:
    """Return a row of `tables.MASK`: COCO compressed run-length code of a boolean mask.

    >>> encode_mask(np.ones((2, 3), dtype=bool), "m", "lesion")
    {'mask_id': 'm', 'category': 'lesion', 'size': [2, 3], 'counts': '06'}
    """
    from pycocotools import mask as coco

    code = coco.encode(np.asfortranarray(mask, dtype=np.uint8))
    return {
        "mask_id": mask_id,
        "category": category,
        "size": [int(side) for side in code["size"]],
        "counts": code["counts"].decode("ascii"),
    }


def decode_mask(row: Mapping[str, Any]) -> Mask:
    """Return the boolean mask of a row of `tables.MASK`.

    Raises:
        BadInput: the runs do not add up to height times width.
    """
    from pycocotools import mask as coco

    height, width = check_runs(row)
    if height * width == 0:
        return np.zeros((height, width), dtype=bool)
    decoded = coco.decode({"size": [height, width], "counts": str(row["counts"]).encode("ascii")})
    return np.asarray(decoded, dtype=bool)


def check_runs(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return height and width of a row of `tables.MASK` whose code is sound; cheaper than decoding it.

    Raises:
        BadInput: the runs do not add up to height times width; pycocotools would read past the end of the image.
    """
    height, width = (int(side) for side in row["size"])
    if height < 0 or width < 0 or _run_total(row["counts"]) != height * width:
        raise BadInput(f"run lengths do not add up to {height} x {width}", field="counts", fix="export the mask again")
    return height, width


def _run_total(counts: str) -> int:
    """Return the sum of the runs of a compressed code, -1 if it is broken.

    Six-bit characters from "0": five bits of the number, low first, and a flag for more; from the third run on a run is
    stored as the difference to the one two before. Source: maskApi.c of the COCO API, rleFrString.
    """
    if not counts:
        return 0
    if not counts.isascii():
        return -1
    chunks = np.frombuffer(counts.encode("ascii"), dtype=np.uint8).astype(np.int64) - 48
    last = np.flatnonzero((chunks & 0x20) == 0)  # the last character of each run
    starts = np.concatenate([[0], last[:-1] + 1]) if len(last) else np.empty(0, dtype=np.int64)
    lengths = last - starts + 1
    if chunks.min() < 0 or chunks.max() >= 64 or not len(last) or last[-1] != len(chunks) - 1 or lengths.max() > 7:
        return -1
    shifts = 5 * (np.arange(len(chunks)) - np.repeat(starts, lengths))
    runs = np.add.reduceat((chunks & 0x1F) << shifts, starts)
    runs -= np.where(chunks[last] & 0x10, np.int64(1) << (5 * lengths), 0)
    runs[1::2] = np.cumsum(runs[1::2])
    runs[2::2] = np.cumsum(runs[2::2])
    return -1 if runs.min() < 0 else int(runs.sum())


def box_of_mask(mask: Mask, category: str) -> dict[str, Any] | None:
    """Return the tight box of a mask as a row of `tables.BOX`, None for an empty mask.

    >>> mask = np.zeros((5, 5), dtype=bool)
    >>> mask[1:3, 2:5] = True
    >>> box_of_mask(mask, "lesion")
    {'category': 'lesion', 'x': 2.0, 'y': 1.0, 'w': 3.0, 'h': 2.0}
    """
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    top, left = int(rows[0]), int(columns[0])
    height, width = int(rows[-1]) - top + 1, int(columns[-1]) - left + 1
    return {"category": category, "x": float(left), "y": float(top), "w": float(width), "h": float(height)}


def box_centre(box: Mapping[str, Any], width: int, height: int) -> tuple[float, float]:
    """Return the centre of a box as fractions of the image, (0, 0) = upper left corner.

    >>> box_centre({"x": 2.0, "y": 1.0, "w": 4.0, "h": 2.0}, 8, 8)
    (0.5, 0.25)
    """
    return (box["x"] + box["w"] / 2) / width, (box["y"] + box["h"] / 2) / height
