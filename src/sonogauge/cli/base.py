"""What all commands share: the app, common options, printing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sonogauge import __version__

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="sonogauge",
    help="Build, run, score and compare ultrasound benchmarks for vision-language models, with honest numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder made by sonogauge.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else to standard output.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sonogauge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def say(*lines: str) -> None:
    """Print to standard error: notices, never results."""
    for line in lines:
        print(line, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON value to standard output."""
    import json

    print(json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False))


def show_scores(scores: list[Path], protocol: str) -> None:
    """Print the tables of scores folders."""
    from sonogauge.report import view_scores
    from sonogauge.report.console import show

    show(view_scores(scores, protocol), console())


def console() -> Console:
    """Return the console for tables on standard output."""
    from rich.console import Console

    # A pipe has no width of its own; tables must not be cut in it.
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=180)
