"""Benchmarks from data: `build` finds the builder of a name and runs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
        "fetal_gauge": "sonogauge.build.fetal_gauge.build:build_fetal_gauge",
        "medlesionvqa": "sonogauge.benchmarks.medlesionvqa.build:build_medlesionvqa",
        "synthetic": "sonogauge.benchmarks.synthetic.build:build_synthetic",
        "u2bench": "sonogauge.build.u2bench:build_u2bench",
        "ultrag": "sonogauge.benchmarks.ultrag.build:build_ultrag",
        "exported": "sonogauge.export.back:build_exported",
    },
    group="sonogauge.builders",
)

REPORTS: Registry[Callable[[Manifest], list[str]]] = Registry(
    "build report",
    {
        "u2bench": "sonogauge.build.u2_counts:import_report",
        "ultrag": "sonogauge.benchmarks.ultrag.build:report_lines",
    },
    group="sonogauge.build_reports",
)


def build_report(manifest: Manifest) -> list[str]:
    """Return the lines that tell what a build read, kept and dropped."""
    if manifest.name in REPORTS:
        return REPORTS.load(manifest.name)(manifest)
    tables = ", ".join(f"{facts.rows} {table}" for table, facts in sorted(manifest.tables.items()))
    lines = [f"{manifest.name}: {tables}", *(f"note: {notice}" for notice in manifest.notices)]
    for stage, counted in manifest.counts.items():
        if isinstance(counted, dict):
            lines += [f"{stage}: {line}" for line in _lines(counted)]
    return [*lines, *(f"licence: {licence}" for licence in manifest.licences)]


def _lines(counted: dict[str, Any]) -> list[str]:
    """Return the counts of a stage, one line for each of its nested parts; what is empty says nothing."""
    plain = ", ".join(f"{name} {value}" for name, value in counted.items() if not isinstance(value, (dict, list)))
    nested = [f"{name}: {line}" for name, value in counted.items() if isinstance(value, dict) for line in _lines(value)]
    return [*([plain] if plain else []), *nested]


def _builder_of(name: str) -> Callable[..., Manifest]:
    if name in BUILDERS:
        return BUILDERS.load(name)
    from sonogauge.build.recipe import find_recipe, shipped_recipes

    recipe = find_recipe(name)
    if recipe is None:
        known = ", ".join([*BUILDERS, *shipped_recipes()])
        raise BadInput(f"no benchmark to build '{name}'", fix=f"known: {known}; or the file of a recipe, NAME.yaml")
    from sonogauge.build.from_recipe import build_from_recipe

    return partial(build_from_recipe, recipe)


def build(name: str, data: Path | str | None, out: Path | str, **options: Any) -> Manifest:
    """Build a benchmark folder and return its manifest.

    Args:
        name: a known benchmark, see `BUILDERS`; the file of a recipe; or a recipe that ships, see `build.recipe`.
        data: the folder with your copy of its data; None for one that needs none.
        out: the benchmark folder to write.
        options: of the builder, for example `overwrite=True`.

    Raises:
        BadInput: unknown name or option, data missing or given where none is needed, data that cannot be used.
    """
    builder = _builder_of(name)
    known = signature(builder).parameters
    if unknown := sorted(set(options) - (set(known) - {"data", "out"})):
        raise BadInput(f"'{name}' has no option '{unknown[0]}'")
    if "data" not in known:
        if data is not None:
            raise BadInput(f"'{name}' needs no data", field="data", fix="leave it out")
        return builder(Path(out), **options)
    if data is None:
        if known["data"].default is None:
            return builder(out=Path(out), **options)
        raise BadInput(f"'{name}' needs your copy of its data", field="data", fix="pass --data DIR")
    return builder(data=Path(data), out=Path(out), **options)


make_callable(__name__)
