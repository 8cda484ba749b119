"""Verdicts against the baselines that do not look at the image."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.score.small import u2_item, write_bench, write_replies

from sonogauge.score import score

pytestmark = pytest.mark.part("score strict")


def test_a_baseline_is_not_judged_against_itself(tmp_path: Path) -> None:
    items = [u2_item("DD", "21", number, {"choices": ("benign",)}) for number in range(1, 5)]
    bench = write_bench(tmp_path / "bench", items)
    file = write_replies(tmp_path / "replies.jsonl", {item.item_id: "malignant" for item in items})
    (first,) = score(file, bench=bench, scenarios="present", model="mine", draws=100).verdicts
    own = f"baseline/{first.baseline}"
    (second,) = score(file, bench=bench, scenarios="present", model=own, draws=100).verdicts
    assert second.baseline != first.baseline
