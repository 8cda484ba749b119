"""A small simulated benchmark with scores of two models, one of them hostile, for the tests of the page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sonogauge.build import build
from sonogauge.folders import Folder
from sonogauge.models.baselines import baseline_replies
from sonogauge.score import score
from sonogauge.score.inputs import read_items
from sonogauge.score.replies import ReplySource

IMG: Final = "<img src=x onerror=alert(1)>"
SCRIPT: Final = "</script><script>alert(2)</script><!-- <svg/onload=alert(3)>"
RIGHT_TO_LEFT: Final = "\u202eabc \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 {{ config }}"
CONTROL: Final = "nul\x00 bell\x07 escape\x1b[31m tab\there \u2028 half \ud800 end"
LONG: Final = "long " * 20_000
HOSTILE: Final = (IMG, SCRIPT, RIGHT_TO_LEFT, CONTROL, LONG)


@dataclass(frozen=True)
class Made:
    """The folders: benchmark and scores; `hostile` names the items with hostile replies, in the order of HOSTILE."""

    root: Path
    bench: Path
    good: Path
    bad: Path
    hostile: tuple[str, ...]

    @property
    def scores(self) -> list[Path]:
        """Both scores folders."""
        return [self.good, self.bad]


def make(root: Path, patients: int = 8) -> Made:
    """Build the benchmark and score two models: the oracle, and a random one whose first replies are hostile."""
    bench = root / "bench"
    build("synthetic", None, bench, patients=patients, seed=5)
    train, items = read_items(Folder(bench, "benchmark"), ReplySource("x", [], "", bench))
    perfect = baseline_replies("oracle", items, train, 0)
    lines = [
        {"item_id": one.item_id, "text": text} for one, text in zip(items, perfect, strict=True) if text is not None
    ]
    good = root / "good.jsonl"
    good.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    guesses = baseline_replies("random", items, train, 0)
    rows = [{"item_id": one.item_id, "text": text or ""} for one, text in zip(items, guesses, strict=True)]
    hostile = []
    for kind, text in zip(("DD", "LL", "CVE", "RG", "VRA"), HOSTILE, strict=True):
        row = next(row for row in rows if row["item_id"].startswith(kind))
        row["text"] = text
        hostile.append(row["item_id"])
    bad = root / "bad.jsonl"
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for path, model in ((good, "vendor/good-model"), (bad, "vendor/<b>bad</b> & worse")):
        score(path, bench=bench, out=root / f"scores-{path.stem}", model=model, draws=200, seed=0)
    return Made(root, bench, root / "scores-good", root / "scores-bad", tuple(hostile))
