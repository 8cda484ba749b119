"""The public function `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.folders import Manifest, write_bytes
from sonogauge.report.cells import View
from sonogauge.report.formats import FORMATS, render
from sonogauge.report.load import load_scores, make_scores
from sonogauge.report.view import build_view


def view_scores(scores: Sequence[Path | str], protocol: str = "strict") -> View:
    """Return the view of scores folders; see `report` for what is bad input."""
    return build_view(load_scores(scores, protocol))


def view_rows(
    spec: BenchmarkSpec, manifest: Manifest, rows: Sequence[Mapping[str, Any]], protocol: str = "strict"
) -> View:
    """Return the view of scores that were not written to a folder.

    Args:
        spec: the benchmark.
        manifest: as it would be written; its parameter "model" names the model.
        rows: rows of `tables.METRICS`.
        protocol: which protocol's numbers to show.

    Raises:
        BadInput: no computed rows under that protocol.
    """
    label = str(manifest.parameters.get("model") or manifest.name)
    return build_view([make_scores(Path("scores"), manifest, spec, rows, protocol, label)])


def report(
    scores: Sequence[Path | str], out: Path | str | None = None, format: str = "md", protocol: str = "strict"
) -> str:
    """Render scores folders as tables and return the text.

    Args:
        scores: folders written by `score`, all of one benchmark and version; several stand side by side.
        out: file to write the text to, whole or not at all.
        format: md, csv, latex or json (fractions from 0 to 1, the object of `score --json`; a list for several).
        protocol: which protocol's numbers to show.

    Raises:
        BadInput: an unknown format, no folder, one that is not of scores, another benchmark or version, a protocol
            that was not scored.
    """
    FORMATS.load(format)
    text = render(view_scores(scores, protocol), format)
    if out is not None:
        target = Path(out)
        _refuse_folder(target)
        write_bytes(target, text.encode("utf-8"))
    return text


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise BadInput("is a folder", file=target, fix="name a file for the report")
