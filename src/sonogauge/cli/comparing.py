"""Command that compares runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge.cli.base import Json, Overwrite, Seed, app, console, say


@app.command("compare")
def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark (or JSON lines, with --bench).")],
    against: Annotated[Path | None, typer.Option(help="Compare all with this run only.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Also by dataset, anatomy, determinable, source or a meta key.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the comparison.")] = None,
    ablation: Annotated[
        str | None, typer.Option(help="anatomy, image, scale, instruction, repeats, rotations or groups.")
    ] = None,
    variant: Annotated[str, typer.Option(help="Which variant of the runs; empty = the unvaried one.")] = "",
    scenarios: Annotated[str | None, typer.Option(help="A scenario set; by default what has items.")] = None,
    margin: Annotated[float | None, typer.Option(help="Margin of non-inferiority (0 to 1, higher is better).")] = None,
    correction: Annotated[str, typer.Option(help="holm or bh.")] = "holm",
    tasks: Annotated[str | None, typer.Option(help="Tasks of an ablation, comma-separated.")] = None,
    items: Annotated[Path | None, typer.Option(help="File of item ids, one a line, to compare on.")] = None,
    models: Annotated[Path | None, typer.Option(help="A models.yaml of your own.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="MODEL=BILLIONS of parameters, for --ablation scale.")] = None,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the runs.")] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    swaps: Annotated[int, typer.Option(help="Random exchanges of the test.")] = 9_999,
    format: Annotated[str | None, typer.Option(help="Print as md, csv, latex or json.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare runs on the same items.

    Differences, tests and ranks; or a named ablation.

    Example: sonogauge compare runs/gpt runs/qwen runs/majority --against runs/majority --by anatomy

    Example: sonogauge compare runs/gpt --ablation image
    """
    from sonogauge.compare import compare, view_comparison
    from sonogauge.compare.ablations.scale import read_sizes
    from sonogauge.report.formats import FORMATS, render

    if format is not None:
        FORMATS.load(format)
    found = compare(
        runs,
        against=against,
        by=by,
        out=out,
        bench=bench,
        scenarios=scenarios,
        variant=variant,
        margin=margin,
        correction=correction,
        ablation=ablation,
        tasks=tasks.split(",") if tasks else None,
        items=items,
        models_file=models,
        sizes=read_sizes(size or []),
        draws=draws,
        swaps=swaps,
        seed=seed,
        overwrite=overwrite,
    )
    view = view_comparison(found.document)
    if as_json or format is not None:
        print(render(view, "json" if as_json or format is None else format).strip())
    else:
        from sonogauge.report.console import show

        show(view, console(), None)
    if out is not None:
        say(f"comparison: {out}")
