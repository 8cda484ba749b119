"""Commands around a benchmark as a data set: plan, audit, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge.cli.base import Json, Overwrite, Seed, app, print_json


@app.command("plan")
def plan_command(
    half_width: Annotated[float | None, typer.Option(help="Wanted half width of the 95 % interval.")] = None,
    difference: Annotated[float | None, typer.Option(help="Difference of two models that shall be found.")] = None,
    expected: Annotated[float, typer.Option(help="Expected value of a proportion, 0 to 1.")] = 0.7,
    discordant: Annotated[
        float | None, typer.Option(help="Share of items on which exactly one of two models is right.")
    ] = None,
    spread: Annotated[
        float | None, typer.Option(help="Standard deviation per item, for a metric that is no proportion.")
    ] = None,
    items: Annotated[float, typer.Option(help="Items of a patient.")] = 1.0,
    alike: Annotated[float, typer.Option(help="Correlation of the items of a patient, 0 to 1.")] = 0.3,
    power: Annotated[float, typer.Option(help="Wanted power for --difference.")] = 0.8,
    bench: Annotated[Path | None, typer.Option(help="Take the items of a patient from this benchmark.")] = None,
    as_json: Json = False,
) -> None:
    """Say how many patients a study needs.

    For a wanted width of the interval, or a difference that shall be found.

    Example: sonogauge plan --half-width 0.05 --expected 0.7 --items 2

    Example: sonogauge plan --difference 0.05 --discordant 0.2 --bench bench/own
    """
    from sonogauge.build.plan import plan, plan_lines

    found = plan(
        half_width=half_width,
        difference=difference,
        expected=expected,
        discordant=discordant,
        spread=spread,
        items=items,
        alike=alike,
        power=power,
        bench=bench,
    )
    if as_json:
        print_json([one.to_json() for one in found])
        return
    print(*plan_lines(found), sep="\n")


@app.command("audit")
def audit_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark folder.")],
    probe: Annotated[int, typer.Option(help="Images altered on purpose to measure what is found.", min=0)] = 40,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Look for leaks between the parts of a benchmark.

    Groups, same pixels, near copies. Exit code 1 with a leak.

    Example: sonogauge audit bench/own
    """
    from sonogauge.build.leakage import audit, audit_lines

    found = audit(bench, probe=probe, seed=seed)
    if as_json:
        print_json(found.to_json())
    else:
        print(*audit_lines(found), sep="\n")
    raise typer.Exit(1 if found.leaks else 0)


@app.command("export")
def export_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark folder; for ultrabench a folder of cases.")],
    format: Annotated[
        str, typer.Option(help="hf, jsonl, vlmevalkit, coco, croissant, records, questions, ultrag or ultrabench.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    own_use: Annotated[
        bool, typer.Option("--own-use", help="ultrabench: a tree that stays here, with what may not be passed on.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a benchmark for other tools.

    Images that may not be passed on leave as a recipe, never as images.

    Example: sonogauge export bench/own --format hf --out export/own

    Example: sonogauge export cases/aul --format ultrabench --out ultrabench
    """
    from sonogauge.export import export

    done = export(bench, format, out, overwrite=overwrite, own_use=own_use)
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    print(*done.lines(), f"export: {out}", sep="\n")
