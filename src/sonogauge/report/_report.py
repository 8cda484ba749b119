"""The public function `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.folders import Manifest, write_bytes
from sonogauge.report.cells import View
from sonogauge.report.formats import FORMATS, render
from sonogauge.report.load import load_scores, make_scores
from sonogauge.report.page import DEFAULT_CASES, Gallery, is_comparison, page_data, render_page
from sonogauge.report.page.data import PROTOCOLS
from sonogauge.report.view import build_view

# The format of a file by its ending; without one it is a text of tables.
_ENDINGS: Final = {
    **dict.fromkeys(("", ".md", ".txt"), "md"),
    **{".html": "page", ".htm": "page", ".csv": "csv", ".tex": "latex", ".json": "json"},
}


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
    view = build_view([make_scores(Path("scores"), manifest, spec, rows, protocol, label)])
    return replace(view, paths=())


def report(
    scores: Sequence[Path | str],
    out: Path | str | None = None,
    format: str | None = None,
    protocol: str = "strict",
    *,
    gallery: int = DEFAULT_CASES,
    figures: Path | str | None = None,
    show_restricted_images: bool = False,
    bench: Path | str | None = None,
) -> str:
    """Render scores folders as tables or as a page and return the text.

    Args:
        scores: folders written by `score`, all of one benchmark and version; several stand side by side. For a page or
            figures, one folder written by `compare` may stand among them.
        out: file to write the text to, whole or not at all.
        format: md, csv, latex, json (fractions from 0 to 1, the object of `score --json`; a list for several) or page;
            None = by the ending of `out` (.html = page), md without one.
        protocol: which protocol's numbers to show; a page holds both and shows this one first.
        gallery: how many cases a page shows at most.
        figures: folder for the figures as SVG and PNG (extra `[figures]`).
        show_restricted_images: put images into the page whose sources may not be redistributed.
        bench: benchmark folder, if it moved since scoring; for the single answers of a page.

    Raises:
        BadInput: an unknown format, ending or protocol, no folder, one that is not of scores, another benchmark or
            version, a protocol that was not scored, matplotlib missing.
    """
    chosen = format or _format_of(out)
    FORMATS.load(chosen)
    if protocol not in PROTOCOLS:
        raise BadInput(f"no protocol '{protocol}'", field="protocol", fix=f"name one of {', '.join(PROTOCOLS)}")
    if gallery < 0:
        raise BadInput(f"{gallery} cases", field="gallery", fix="0 shows none")
    target = None if out is None else Path(out)
    if target is not None:
        _refuse_folder(target)
    text, data = "", None
    if chosen == "page" or figures is not None:
        comparisons = [Path(one) for one in scores if is_comparison(one)]
        if len(comparisons) > 1:
            raise BadInput("a second comparison", file=comparisons[1], fix="name one comparison at a time")
        scores = [one for one in scores if Path(one) not in comparisons]
        data = page_data(
            scores,
            protocol=protocol,
            comparison=comparisons[0] if comparisons else None,
            bench=None if bench is None else Path(bench),
            gallery=Gallery(gallery, show_restricted_images),
        )
        text = render_page(data) if chosen == "page" else ""
    if chosen != "page":
        text = render(view_scores(scores, protocol), chosen)
    if figures is not None and data is not None:
        from sonogauge.report.figures import write_figures

        write_figures(data, figures)
    if target is not None:
        write_bytes(target, text.encode("utf-8"))
    return text


def _format_of(out: Path | str | None) -> str:
    ending = "" if out is None else Path(out).suffix.lower()
    if ending not in _ENDINGS:
        raise BadInput(
            f"no format goes by the ending '{ending}'",
            file=str(out),
            fix=f"name one with --format, or end it in {', '.join(one for one in _ENDINGS if one)}",
        )
    return _ENDINGS[ending]


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise BadInput("is a folder", file=target, fix="name a file for the report")
