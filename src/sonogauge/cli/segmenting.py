"""Commands of segmenters and of the agents that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.base import Json, Overwrite, Seed, app, console, print_json, say


@app.command("train-segmenter")
def train_segmenter_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark or folder of cases with masks.")],
    out: Annotated[Path, typer.Option(help="Folder for the network; the same command again goes on.")],
    epochs: Annotated[int, typer.Option(help="Passes over the train part.")] = 40,
    device: Annotated[str, typer.Option(help="cpu, cuda, …; auto = the best one there.")] = "auto",
    size: Annotated[int, typer.Option(help="Side in pixels of the square that the network sees.")] = 128,
    batch_size: Annotated[int, typer.Option(help="Cases per step.")] = 8,
    learning_rate: Annotated[float, typer.Option(help="The largest learning rate.")] = 3e-3,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Train a U-Net on the train part of a benchmark.

    Needs the extra [segment].

    Example: sonogauge train-segmenter bench/ultrag --out models/unet --epochs 25 --size 96
    """
    from sonogauge.models.segmenters.training import train_segmenter

    manifest = train_segmenter(
        bench,
        out,
        epochs=epochs,
        seed=seed,
        device=device,
        size=size,
        batch_size=batch_size,
        learning_rate=learning_rate,
        overwrite=overwrite,
        progress=lambda done, all_of_them, loss: say(f"epoch {done} of {all_of_them}: loss {loss:.4f}"),
    )
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    categories = ", ".join(manifest.parameters["config"]["categories"])
    print(f"trained on {manifest.counts['train_cases']} cases: {categories}")
    print(f"segmenter: unet:{out}")


@app.command("serve-segmenter")
def serve_segmenter_command(
    segmenter: Annotated[str, typer.Argument(help="NAME, NAME:WHERE or NAME:WHERE?KEY=VALUE, for example otsu.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 = any free one.")] = 8765,
) -> None:
    """Serve a segmenter to other programs.

    They name it http:ADDRESS.

    Example: sonogauge serve-segmenter sam3:models/sam3 --port 8765
    """
    from sonogauge.models.segmenters import load_segmenter
    from sonogauge.models.segmenters.server import serve

    serve(load_segmenter(segmenter), host, port)


@app.command("compare-segmenters")
def compare_segmenters_command(
    cases: Annotated[Path, typer.Argument(help="A folder of cases or a benchmark with masks.")],
    segmenters: Annotated[
        str, typer.Option(help="NAME@PROMPT, separated by spaces; PROMPT is reference, fan or text (box of what).")
    ] = "box-fill@reference ellipse@reference otsu@reference grabcut@reference",
    each: Annotated[
        str, typer.Option(help="component or category: what is drawn and compared one by one.")
    ] = "component",
    test_only: Annotated[bool, typer.Option("--test-only", help="Only the test part of a benchmark.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one call.")] = None,
    allow_upload: Annotated[bool, typer.Option("--allow-upload", help="Let private images leave.")] = False,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 2_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare segmenters on the masks of cases.

    IoU and Dice with intervals, each paired with the first.

    Example: sonogauge compare-segmenters cases/busi --segmenters "box-fill@reference otsu@reference"
    """
    from rich.table import Table

    from sonogauge.models.segmenters import load_segmenter
    from sonogauge.models.segmenters.evaluate import Contender, evaluate_segmenters, in_test_part

    contenders = []
    for text in segmenters.split():
        name, at, prompt = text.rpartition("@")
        if not at:
            raise BadInput(f"not NAME@PROMPT: '{text}'", field="segmenters", fix="write for example otsu@reference")
        contenders.append(Contender(load_segmenter(name), prompt))
    keep = in_test_part(cases) if test_only else None
    rows = evaluate_segmenters(
        cases,
        contenders,
        each=each,
        keep=keep,
        timeout=timeout,
        allow_upload=allow_upload,
        draws=draws,
        seed=seed,
    )
    if as_json:
        print_json(
            [
                {
                    "segmenter": row.label,
                    "metric": row.metric,
                    "n": row.n,
                    "value": row.value.value,
                    "low": row.value.low,
                    "high": row.value.high,
                    "less_first": None
                    if row.less_first is None
                    else {"value": row.less_first.value, "low": row.less_first.low, "high": row.less_first.high},
                    "without_mask": dict(row.counts),
                }
                for row in rows
            ]
        )
        return
    table = Table("segmenter", "metric", "n", "value", "less the first", "without a mask")
    for row in rows:
        causes = ", ".join(f"{number} {cause}" for cause, number in row.counts.items())
        less = "" if row.less_first is None else _said(row.less_first.value, row.less_first.low, row.less_first.high)
        own = _said(row.value.value, row.value.low, row.value.high)
        table.add_row(row.label, row.metric, str(row.n), own, less, causes)
    console().print(table)


@app.command("agent-grid")
def agent_grid_command(
    bench: Annotated[Path, typer.Argument(help="An UltraG benchmark.")],
    out: Annotated[Path, typer.Option(help="Folder for the runs and grid.json; the same command again goes on.")],
    planners: Annotated[str, typer.Option(help="Models, separated by spaces; rule needs none.")] = "rule",
    segmenters: Annotated[str, typer.Option(help="Segmenters, separated by spaces.")] = "box-fill otsu",
    switch: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of the agent; repeatable.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of the planners' server.")] = None,
    api_key: Annotated[str | None, typer.Option(help="Key of that server.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Ask these tasks only, comma-separated.")] = None,
    limit: Annotated[int | None, typer.Option(help="Ask at most so many items.")] = None,
    max_connections: Annotated[int, typer.Option(help="Questions asked at once.")] = 4,
    allow_upload: Annotated[bool, typer.Option("--allow-upload", help="Let private images leave.")] = False,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 2_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run each planner with each segmenter.

    Each pair stands beside its planner alone, and the gain is split.

    Example: sonogauge agent-grid bench/ultrag --planners rule --segmenters "box-fill unet:models/unet" --out grids/one
    """
    from rich.table import Table

    from sonogauge.compare.agent_grid import agent_grid

    pairs = [text.partition("=") for text in switch or ()]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise BadInput(f"not KEY=VALUE: '{wrong[0]}'", field="switch", fix="write for example --switch top_k=2")
    options = {"base_url": base_url, "api_key": api_key}
    found = agent_grid(
        bench,
        out,
        planners=planners.split(),
        segmenters=segmenters.split(),
        switches={key: value for key, _, value in pairs},
        planner_options={key: value for key, value in options.items() if value is not None},
        tasks=tasks.split(",") if tasks else None,
        limit=limit,
        max_connections=max_connections,
        allow_upload=allow_upload,
        draws=draws,
        seed=seed,
        progress=not as_json,
    ).document
    if as_json:
        print_json(found)
        return
    table = Table("planner", "segmenter", "row", "task", "metric", "value", "seen before")
    for row in found["rows"]:
        value = _said(row["value"], row["low"], row["high"])
        table.add_row(row["planner"], row["segmenter"], row["role"], row["task"], row["metric"], value, row["exposure"])
    console().print(table)
    table = Table("planner", "segmenter", "gain", "task", "metric", "difference")
    for row in found["gains"]:
        value = _said(row["value"], row["low"], row["high"])
        table.add_row(row["planner"], row["segmenter"], row["gain"], row["task"], row["metric"], value)
    console().print(table)
    for name, causes in found["failures"].items():
        if causes:
            print(f"{name}: " + ", ".join(f"{number} {cause}" for cause, number in causes.items()))
    print(f"grid: {out}")


def _said(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if low is None or high is None else f" ({low:.3f} to {high:.3f})")
