"""Benchmarks from data: `build` finds the builder of a name and runs it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from sonogauge._callable import make_callable
from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.folders import Manifest

BUILDERS: Registry[Callable[..., Manifest]] = Registry(
    "benchmark to build",
    {
        "synthetic": "sonogauge.benchmarks.synthetic.build:build_synthetic",
        "u2bench": "sonogauge.build.u2bench:build_u2bench",
    },
    group="sonogauge.builders",
)

REPORTS: Registry[Callable[[Manifest], list[str]]] = Registry(
    "build report", {"u2bench": "sonogauge.build.u2_counts:import_report"}, group="sonogauge.build_reports"
)


def build_report(manifest: Manifest) -> list[str]:
    """Return the lines that tell what a build read, kept and dropped."""
    if manifest.name in REPORTS:
        return REPORTS.load(manifest.name)(manifest)
    tables = ", ".join(f"{facts.rows} {table}" for table, facts in sorted(manifest.tables.items()))
    lines = [f"{manifest.name}: {tables}", *(f"note: {notice}" for notice in manifest.notices)]
    return [*lines, *(f"licence: {licence}" for licence in manifest.licences)]


def build(name: str, data: Path | str | None, out: Path | str, **options: Any) -> Manifest:
    """Build a benchmark folder and return its manifest.

    Args:
        name: a known benchmark, see `BUILDERS`.
        data: the folder with your copy of its data; None for one that needs none.
        out: the benchmark folder to write.
        options: of the builder, for example `overwrite=True`.

    Raises:
        BadInput: unknown name or option, data missing or given where none is needed, data that cannot be used.
    """
    builder = BUILDERS.load(name)
    known = signature(builder).parameters
    if unknown := sorted(set(options) - (set(known) - {"data", "out"})):
        raise BadInput(f"'{name}' has no option '{unknown[0]}'")
    if "data" not in known:
        if data is not None:
            raise BadInput(f"'{name}' needs no data", field="data", fix="leave it out")
        return builder(Path(out), **options)
    if data is None:
        raise BadInput(f"'{name}' needs your copy of its data", field="data", fix="pass --data DIR")
    return builder(Path(data), Path(out), **options)


make_callable(__name__)
