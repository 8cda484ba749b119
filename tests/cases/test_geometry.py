"""Masks survive run-length code, boxes are tight; pycocotools and plain numpy are the oracles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as coco

from sonogauge._errors import BadInput
from sonogauge.cases.geometry import Mask, box_centre, box_of_mask, decode_mask, encode_mask

masks = arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@given(masks)
def test_a_mask_survives_encoding(mask: Mask) -> None:
    row = encode_mask(mask, "m", "lesion")
    assert row["size"] == list(mask.shape)
    assert np.array_equal(decode_mask(row), mask)
    assert int(coco.area({"size": row["size"], "counts": row["counts"].encode()})) == int(mask.sum())


@given(masks)
def test_the_box_is_that_of_pycocotools(mask: Mask) -> None:
    box = box_of_mask(mask, "lesion")
    if not mask.any():
        assert box is None
        return
    assert box is not None
    row = encode_mask(mask, "m", "lesion")
    expected = coco.toBbox({"size": row["size"], "counts": row["counts"].encode()})
    assert [box["x"], box["y"], box["w"], box["h"]] == list(expected)
    x, y = box_centre(box, mask.shape[1], mask.shape[0])
    assert 0 < x < 1
    assert 0 < y < 1


@pytest.mark.parametrize("size", [[2, 4], [3, 3], [1, 1], [-2, -3]])
def test_runs_that_do_not_fit_the_size_are_refused(size: list[int]) -> None:
    row = {**encode_mask(np.ones((2, 3), dtype=bool), "m", "lesion"), "size": size}
    with pytest.raises(BadInput, match="run lengths do not add up"):
        decode_mask(row)


@given(st.text(max_size=12))
def test_hostile_counts_give_a_mask_or_bad_input(counts: str) -> None:
    try:
        mask = decode_mask({"size": [3, 4], "counts": counts})
    except BadInput:
        return
    assert mask.shape == (3, 4)
