"""The embedded default as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge.cli.base import Seed, app, console, say


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for all the demo makes.")] = Path("demo"),
    seed: Seed = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the web browser.")] = False,
) -> None:
    """Build, run, score and show a simulated benchmark.

    Baselines and an image-reading reference model answer it; no data, no key.

    Needs no download and no key. Simulated images, not clinical.

    Example: sonogauge demo --out demo --open
    """
    from sonogauge.demo import PAGE, demo

    demo(out, seed=seed, console=console())
    page = (out / PAGE).resolve()
    say(f"page: {page}")
    if open_page:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            say("no web browser was found; open the page by hand")
