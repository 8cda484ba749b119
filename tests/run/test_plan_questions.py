"""Items that have nothing to ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.score.small import u2_item, write_bench

from sonogauge.folders import Folder
from sonogauge.run.plan import Questions


@pytest.mark.part("run")
def test_a_model_is_not_asked_an_empty_question(tmp_path: Path) -> None:
    good = u2_item("KD", "48", 1, {"places": ("center",)})
    faulty = replace(u2_item("KD", "48", 2, None, state="error"), question="")
    bench = Folder(write_bench(tmp_path / "bench", [good, faulty]))
    assert [item.item_id for item in Questions.read(bench, "test", references=False).items] == [good.item_id]
    assert len(Questions.read(bench, "test", references=True).items) == 2
