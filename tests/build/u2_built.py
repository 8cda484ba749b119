"""Builds look-alike folders and opens what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sonogauge.build.u2bench import build_u2bench
from sonogauge.folders import Folder, Manifest
from sonogauge.items import Item

BOX: Final = "{'lesion': [0.2, 0.2, 0.1, 0.1]}"


def items_of(out: Path) -> dict[str, Item]:
    """Return the items of a benchmark folder by id."""
    return {one["item_id"]: Item.from_row(one) for one in Folder(out, "benchmark").rows("items")}


def built(tmp_path: Path, **options: Any) -> tuple[Manifest, dict[str, Item]]:
    """Build `tmp_path/data` into `tmp_path/out`, with any share of dropped rows unless told otherwise."""
    options.setdefault("max_dropped", 1.0)
    manifest = build_u2bench(tmp_path / "data", tmp_path / "out", overwrite=True, **options)
    return manifest, items_of(tmp_path / "out")


def cases_of(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the rows of the cases table of `tmp_path/out`."""
    return list(Folder(tmp_path / "out", "benchmark").rows("cases"))
