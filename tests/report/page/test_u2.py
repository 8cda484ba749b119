"""The leaderboard of U2-BENCH on real files: published rows beside a computed baseline, images kept back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.shared import shared_data

from sonogauge.build import build
from sonogauge.folders import Folder
from sonogauge.models.baselines import baseline_replies
from sonogauge.report import report
from sonogauge.report.page import page_data
from sonogauge.score import score
from sonogauge.score.inputs import read_items
from sonogauge.score.replies import ReplySource

pytestmark = [pytest.mark.part("page"), pytest.mark.real]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = shared_data("u2_sample")
    root = tmp_path_factory.mktemp("u2")
    bench = root / "bench"
    build("u2bench", source, bench)
    train, items = read_items(Folder(bench, "benchmark"), ReplySource("x", [], "", bench))
    texts = baseline_replies("random", items, train, 0)
    lines = [{"item_id": item.item_id, "text": text or ""} for item, text in zip(items, texts, strict=True)]
    (root / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    score(root / "r.jsonl", bench=bench, out=root / "scores", scenarios="present", model="guess", draws=200)
    return root / "scores"


def test_the_published_random_row_stands_beside_ours(scores: Path) -> None:
    data = page_data([scores])
    found = data["random"]
    total = next(one for one in found["rows"] if one["metric"] == "u2")
    assert total["published"] == 0.2125
    assert 0 < total["computed"] < 1
    assert found["causes"][0].startswith("The scores here are partial")
    assert [one["available"] for one in data["protocols"]] == [True, True]
    assert sum(one["kind"] == "published" for one in data["lines"]) > 20


def test_images_that_may_not_be_redistributed_stay_out(scores: Path, tmp_path: Path) -> None:
    text = report([scores], tmp_path / "page.html")
    assert "data:image/webp" not in text
    assert "may not be redistributed" in text
