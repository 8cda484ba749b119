"""Command that analyses the answers of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.base import Overwrite, Seed, app, console, say


@app.command("analyse")
def analyse_command(
    given: Annotated[Path, typer.Argument(help="A run or scores folder (or JSON lines, with --bench).")],
    analysis: Annotated[
        str,
        typer.Option(
            help="overall, baselines, sizes, domains, sources, pairs, confusion, robustness or contamination; of "
            "scores of any answer form abilities, verdicts, physicians, text_only, causes or scaling; of a benchmark "
            "datasheet, composition or differentials; of annotations entities."
        ),
    ] = "overall",
    against: Annotated[
        Path | None, typer.Option(help="The run or scores before, for pairs; re-checked annotations, for entities.")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Folder of the vocabularies of annotations, for entities.")
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option(help="Further scores, for analyses of several models; repeatable.")
    ] = None,
    raters: Annotated[
        Path | None, typer.Option(help="JSON lines of rater_id and level, for physicians; else those of the replies.")
    ] = None,
    votes: Annotated[Path | None, typer.Option(help="Votes of readers, for causes.")] = None,
    sampling: Annotated[str | None, typer.Option(help="all, random or per_ability, for causes.")] = None,
    sample: Annotated[int | None, typer.Option(help="How many wrong answers were looked at, for causes.")] = None,
    least: Annotated[
        int | None, typer.Option(help="Models that must solve a question without the image, for text_only.")
    ] = None,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved.")] = None,
    size_rule: Annotated[str | None, typer.Option(help="relative, pixel or quantile, for sizes.")] = None,
    thresholds: Annotated[str | None, typer.Option(help="Two thresholds of the size, such as 0.05,0.15.")] = None,
    task: Annotated[str | None, typer.Option(help="The task of sizes; VG by default.")] = None,
    canary: Annotated[
        Path | None, typer.Option(help="Text file of the model's replies about the canary, for contamination.")
    ] = None,
    on_no_answer: Annotated[str, typer.Option(help="wrong or exclude: an answer that cannot be read.")] = "wrong",
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    out: Annotated[Path | None, typer.Option(help="File for the tables; its format is that of --format.")] = None,
    format: Annotated[str | None, typer.Option(help="md, csv, latex or json.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show where models fail.

    Whether they read the image, physicians beside them, what a benchmark is made of: `sonogauge analyses` lists all.

    Example: sonogauge analyse scores/qwen --analysis sizes --size-rule quantile

    Example: sonogauge analyse runs/tuned --analysis pairs --against runs/base

    Example: sonogauge analyse scores/physicians --analysis physicians --beside scores/qwen --beside scores/gpt
    """
    from sonogauge.analyses import analyse, view_analysis
    from sonogauge.report.formats import FORMATS, render

    kind = "json" if as_json else format
    if kind is not None:
        FORMATS.load(kind)
    if out is not None and out.exists() and not overwrite:
        raise BadInput("exists already", file=out, fix="pass --overwrite to replace it")
    found = analyse(
        given,
        analysis,
        bench=bench,
        against=against,
        beside=beside or (),
        raters=raters,
        votes=votes,
        sampling=sampling,
        size=sample,
        least=least,
        on_no_answer=on_no_answer,
        draws=draws,
        seed=seed,
        size_rule=size_rule,
        thresholds=_pair(thresholds),
        task=task,
        canary=_lines(canary),
        vocabulary=vocabulary,
    )
    view = view_analysis(found.document)
    if out is not None:
        from sonogauge.folders import write_bytes

        write_bytes(out, (render(view, kind or "md").strip() + "\n").encode("utf-8"))
        say(f"analysis: {out}")
    elif kind is not None:
        print(render(view, kind).strip())
    else:
        from sonogauge.report.console import show

        show(view, console(), None)


def _pair(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise BadInput(f"not two numbers: '{text}'", field="thresholds", fix="write 0.05,0.15") from error
    return low, high


def _lines(file: Path | None) -> list[str] | None:
    if file is None:
        return None
    try:
        return file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read ({error})", file=file, fix="write one reply a line in UTF-8") from error
