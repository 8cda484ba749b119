"""A small benchmark of three task kinds and replies of made-up models to it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.score.small import u2_item, write_bench, write_replies

from sonogauge.benchmarks.spec import BenchmarkSpec, Composite, ScenarioSet, load_spec
from sonogauge.items import Item

PLACES = ("upper left", "center", "lower right", "not visible")
WEIGHTS = {"DD": 0.5, "LL": 0.3, "CVE": 0.2}


def small_spec() -> BenchmarkSpec:
    """U2-BENCH cut to three tasks, with a total over them."""
    spec = load_spec("u2bench")
    kept = {("DD", "21"), ("DD", "32"), ("LL", "32"), ("CVE", "50")}
    return spec.model_copy(
        update={
            "tasks": {task: spec.tasks[task] for task in WEIGHTS},
            "scenarios": tuple(one for one in spec.scenarios if one.key in kept),
            "sets": {"all": ScenarioSet(title="all")},
            "default_set": "all",
            "weights": {"w": WEIGHTS},
            "composites": {"total": Composite(title="Total", weights="w", formula="sum of w_t d_t")},
            "protocols": {},
        }
    )


def small_items(patients: int = 8, frames: int = 3) -> list[Item]:
    """`frames` items for each patient and scenario; DD/32 and LL/32 share patients."""
    items = []
    for task, dataset in (("DD", "21"), ("DD", "32"), ("LL", "32"), ("CVE", "50")):
        for number in range(patients * frames):
            patient = number % patients
            reference: dict[str, Any] = {
                "DD": {"choices": ("benign", "malignant")[number % 2 : number % 2 + 1]},
                "LL": {"places": (PLACES[number % 4],)},
                "CVE": {"number": 150.0 + 10 * number},
            }[task]
            made = u2_item(task, dataset, number + 1, reference, patient=patient, meta={"device": f"d{patient % 2}"})
            items.append(replace(made, anatomy="breast" if dataset == "21" else "thyroid"))
    return items


def answer(item: Item, right: bool, rng: random.Random) -> str:
    """Return a right or a wrong answer to an item."""
    if item.task == "CVE":
        number = item.reference["number"]
        return f"{number if right else min(400.0, number + rng.uniform(20, 80)):.1f}"
    (reference,) = item.reference["choices"] if item.task == "DD" else item.reference["places"]
    if right:
        return str(reference)
    return rng.choice([one for one in item.answer.options if one != reference])


def replies(
    items: Iterable[Item], skill: float, seed: int, variants: Sequence[tuple[str, int, float]] = (("", 0, 0.0),)
) -> list[dict[str, Any]]:
    """Replies right with probability `skill` + shift in each (variant, epoch, shift)."""
    rng = random.Random(seed)
    return [
        {
            "item_id": item.item_id,
            "variant": variant,
            "epoch": epoch,
            "model": f"made/{seed}",
            "text": answer(item, rng.random() < skill + shift, rng),
        }
        for item in items
        for variant, epoch, shift in variants
    ]


def made_bench(path: Path, patients: int = 8, frames: int = 3) -> tuple[Path, list[Item]]:
    """Write the benchmark below a folder; return it with its items."""
    items = small_items(patients, frames)
    return write_bench(path / "bench", items, small_spec()), items


def made_run(path: Path, items: Iterable[Item], skill: float, seed: int, **options: Any) -> Path:
    """Write replies of a made-up model called `made/SEED`."""
    return write_replies(path / f"m{seed}.jsonl", replies(items, skill, seed, **options))
