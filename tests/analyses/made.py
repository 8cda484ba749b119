"""A fetal benchmark made in the test, and models that answer it in a known way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from tests.benchmarks.fetal_gauge.made import hospital, sweeps, write_cases

from sonogauge.answers.variants import answer_of
from sonogauge.build.fetal_gauge.build import build_fetal_gauge
from sonogauge.folders import Folder
from sonogauge.items import Item

Answer = Callable[[Item, str, int], str]


def made_bench(folder: Path, patients: int = 60) -> Path:
    """Build a benchmark of a clinic (train and test), a held-out clinic and phantom sweeps."""
    write_cases(folder / "cases" / "clinic", hospital("clinic", patients, 3))
    write_cases(folder / "cases" / "abroad", hospital("abroad", 24, 2))
    write_cases(folder / "cases" / "phantom", sweeps("phantom", 48, 3))
    parameters = {"small_source_max_images": 0, "held_out": ["abroad"], "test_fraction": 0.5}
    build_fetal_gauge(folder / "cases", folder / "bench", parameters=parameters)
    return folder / "bench"


def items_of(bench: Path, split: str = "test") -> list[Item]:
    """Return the multiple-choice items of a split."""
    rows = Folder(bench, "benchmark").rows("items")
    found = [Item.from_row(row) for row in rows if row["split"] == split]
    return [item for item in found if item.answer.form == "choice"]


def write_replies(
    path: Path, items: Iterable[Item], answer: Answer, variants: Iterable[tuple[str, int]] = (("", 0),)
) -> Path:
    """Write replies of a model; `answer(item, variant, epoch)` gives the text."""
    lines = [
        {
            "item_id": item.item_id,
            "variant": variant,
            "epoch": epoch,
            "model": path.stem,
            "text": answer(item, variant, epoch),
        }
        for item in items
        for variant, epoch in variants
        if not variant.startswith("circular=") or int(variant[9:]) < len(item.answer.options)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def letter(item: Item, option: str, variant: str = "") -> str:
    """Return the letter under which an option stands in a variant."""
    return "ABCDEFGHIJ"[answer_of(item.answer, item.item_id, variant).options.index(option)]


def right(item: Item) -> str:
    """Return the right option."""
    return str(item.reference["choices"][0])


def reader(skill: float, seed: int = 0) -> Answer:
    """Return a model that is right with a probability, and otherwise names another option."""

    def answer(item: Item, variant: str, epoch: int) -> str:
        dice = Random(f"{seed}/{item.item_id}")
        good = dice.random() < skill
        wrong = [one for one in item.answer.options if one != right(item)]
        return letter(item, right(item) if good else dice.choice(wrong), variant)

    return answer
