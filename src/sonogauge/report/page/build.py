"""From scores folders to one self-contained page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.report.board import Board
from sonogauge.report.cells import View
from sonogauge.report.load import Scores, load_scores
from sonogauge.report.page.answers import Answers, answer_data, read_answers
from sonogauge.report.page.comparison import comparison_data
from sonogauge.report.page.data import PROTOCOLS, Lines, board_data
from sonogauge.report.page.gallery import Gallery, gallery_data
from sonogauge.report.page.notes import banners, limits, random_rows
from sonogauge.report.page.pack import script_json

# In the order in which they stand in the page: later ones use earlier ones.
SCRIPTS: Final = (
    "dom.js",
    "store.js",
    "details.js",
    "board.js",
    "charts.js",
    "glance.js",
    "answers.js",
    "evidence.js",
    "cases.js",
    "main.js",
)


def page_data(
    scores: Sequence[Path | str],
    *,
    protocol: str = "strict",
    comparison: Path | None = None,
    bench: Path | None = None,
    gallery: Gallery | None = None,
) -> dict[str, Any]:
    """Return all that a page shows, as JSON data.

    Args:
        scores: folders written by `score`, all of one benchmark and version.
        protocol: which protocol is shown first; the reader can switch where both were scored.
        comparison: a folder written by `compare`.
        bench: benchmark folder, if it is not where the scores say.
        gallery: which cases to show; None = the default.

    Raises:
        BadInput: as `report`; a comparison of another benchmark.
    """
    options = gallery or Gallery()
    held = _all_protocols(scores, protocol)
    boards = {name: Board.of(found) for name, found in held.items()}
    board = next(iter(boards.values()))
    loaded = list(board.scores)
    lines = Lines(board.spec)
    data = board_data(boards, lines)
    numbers = {index: number for index, one in enumerate(loaded) if (number := _line(lines, one)) is not None}
    answers = _answers(loaded, held, bench)
    shown, notices = gallery_data(loaded, answers, numbers, options)
    return {
        "made": f"sonogauge {__version__}",
        "shown": protocol,
        **data,
        **answer_data(answers, numbers),
        "gallery": {
            **shown,
            "asked": options.cases,
            "missing": answers.missing,
            "notices": [*answers.notices, *notices],
        },
        "comparison": comparison_data(comparison, loaded[0].manifest) if comparison is not None else None,
        "banners": banners(loaded, board.spec),
        "limits": limits(board, images=bool(shown["cases"])),
        "random": random_rows(board),
    }


def _all_protocols(scores: Sequence[Path | str], protocol: str) -> dict[str, list[Scores]]:
    """Load the scores under each protocol that all folders have; the one asked for must be among them."""
    held = {}
    for name in PROTOCOLS:
        try:
            held[name] = load_scores(scores, name)
        except BadInput:
            # Only the wanted protocol must be there; whatever else is wrong comes up with it too.
            if name == protocol:
                raise
    return held


def _line(lines: Lines, one: Scores) -> int | None:
    return lines.find(one.labels[0])


def _answers(loaded: list[Scores], held: Mapping[str, list[Scores]], bench: Path | None) -> Answers:
    if "strict" not in held:
        return Answers(
            {}, {}, None, "Single answers are shown for the strict protocol only, which was not scored here."
        )
    return read_answers(loaded, bench)


def page(view: View) -> str:
    """Return the page of a view with default options, as the format "page".

    Raises:
        BadInput: scores that were not written to a folder.
    """
    if not view.paths or not all(path.is_dir() for path in view.paths):
        raise BadInput("a page is made from scores folders", field="format", fix="write the scores first (--out)")
    return render_page(page_data(view.paths, protocol=view.protocol))


def render_page(data: Mapping[str, Any]) -> str:
    """Return the page as HTML: style, script and data in one file, nothing fetched, no script but its own."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    folder = files("sonogauge.report.page")
    style = (folder / "static" / "page.css").read_text("utf-8")
    script = "\n".join((folder / "static" / name).read_text("utf-8") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{script}\n}})();'

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "templates" / "page.html.j2").read_text("utf-8"))
    return template.render(
        data=data,
        style=Markup(style),
        script=Markup(script),
        style_hash=_digest(style),
        script_hash=_digest(script),
        json=Markup(script_json(data)),
    )


def _digest(text: str) -> str:
    """Return the hash that a content security policy names a style or script by."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
