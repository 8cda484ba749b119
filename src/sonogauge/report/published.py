"""Published results as rows of the metrics table: facts with source and doubt, shown beside computed rows."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any, Final

FILE: Final = "published.csv"
PERCENT: Final = "_percent"
# Lower is better; every other published metric is better the higher.
_DOWN: Final = ("rmse_scaled", "mae_scaled")


def published_rows(bench_name: str) -> list[dict[str, Any]]:
    """Return the published rows of a benchmark in the schema `tables.METRICS`, sorted by key; empty if there are none.

    `origin` is "published", intervals and coverage are null, proportions and text scores are fractions from 0 to 1. The
    task "all" of the file is a total. Where two sources give the same number twice, `variant` tells them apart: empty
    for a leaderboard, "paper" for a paper's table.

    >>> next(r["value"] for r in published_rows("u2bench") if (r["model"], r["metric"]) == ("GPT-4o", "u2"))
    0.2253
    """
    file = files("sonogauge.benchmarks") / bench_name / FILE
    if not bench_name.isidentifier() or not file.is_file():
        return []
    rows = [_row(row) for row in csv.DictReader(file.read_text("utf-8").splitlines())]
    return sorted(rows, key=lambda row: (row["model"], row["task"], row["metric"], row["variant"]))


def _row(row: dict[str, str]) -> dict[str, Any]:
    metric = row["metric"].removesuffix(PERCENT)
    value = float(row["value"])
    if row["metric"].endswith(PERCENT):
        value = round(value / 100, 8)
    return {
        "model": row["model"],
        "model_group": row["group"],
        "protocol": "published",
        "variant": "paper" if row["source"].startswith("paper") else "",
        "scenario_set": "published_sets",
        "task": "" if row["task"] == "all" else row["task"],
        "dataset": "",
        "slice": "",
        "metric": metric,
        "value": value,
        "low": None,
        "high": None,
        "n": int(row["n"]) if row["n"] else None,
        "valid": None,
        "excluded": None,
        "groups": None,
        "reliable": None,
        "signature": None,
        "direction": "down" if metric in _DOWN else "up",
        "chance": None,
        "origin": "published",
        "datasets": None,
        "why_null": None,
        "source": row["source"],
        "doubt": row["doubt"] or None,
    }
