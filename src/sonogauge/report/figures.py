"""Figures for papers, as SVG and PNG: intervals, differences, heat map, confusions, numbers against the reference.

Drawn by matplotlib (extra `[figures]`), which carries its own font, so that a figure looks the same on every machine.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import write_bytes

# Confusions and scatters of more models than this would fill a folder with hundreds of files.
MOST_MODELS: Final = 4
DPI: Final = 200
_ACCENT: Final = "#0a6a72"
_COLOURS: Final = {"above": "#1a7546", "below": "#b3261e", "not distinguishable": "#6b5a17"}
_STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    # A dollar sign in a model's name starts no formula.
    "text.parse_math": False,
    "svg.fonttype": "none",
    # Ids in an SVG are hashes with this salt: same data, same bytes.
    "svg.hashsalt": "sonogauge",
}


def write_figures(data: Mapping[str, Any], folder: Path | str) -> list[Path]:
    """Write every figure of a report as SVG and PNG and return their paths.

    Args:
        data: from `page.page_data`.
        folder: where to; files of the same name are replaced.

    Raises:
        BadInput: matplotlib is not installed, or the folder is a file.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise BadInput("figures need matplotlib", fix="pip install 'sonogauge[figures]'") from error
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise BadInput("is a file", file=target, fix="name a folder for the figures")
    written: list[Path] = []
    for name, draw in _figures(_Facts(data)):
        # Two models can have the same name after their odd characters are gone.
        name = name if target / f"{name}.svg" not in written else f"{name}-{len(written)}"
        with rc_context(_STYLE):
            figure = Figure(layout="constrained")
            draw(figure)
            if data["benchmark"]["simulated"]:
                figure.supxlabel("simulated, not clinical", fontsize=7, color="#666666", x=0.995, ha="right")
            # No date and no version of the drawing library: the bytes depend on the data alone.
            for ending, extra in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
                stream = io.BytesIO()
                figure.savefig(stream, format=ending, dpi=DPI, metadata=extra)
                path = target / f"{name}.{ending}"
                write_bytes(path, stream.getvalue())
                written.append(path)
    return written


Draw = Callable[[Any], None]


class _Facts:
    """The facts of a page by place, for the protocol shown first."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        names, columns = data["strings"], data["facts"]
        protocol = [one["name"] for one in data["protocols"]].index(data["shown"])
        self._rows: dict[tuple[int, str, str], dict[str, Any]] = {}
        for row in range(len(columns["line"])):
            if columns["dataset"][row] or columns["slice"][row] or columns["protocol"][row] != protocol:
                continue
            key = (columns["line"][row], names[columns["task"][row]], names[columns["metric"][row]])
            found = {name: columns[name][row] for name in ("value", "low", "high", "n", "down")}
            self._rows.setdefault(key, found)

    def get(self, line: int, task: str, metric: str) -> dict[str, Any] | None:
        """Return the row of a place if it has a value."""
        row = self._rows.get((line, task, metric))
        return row if row is not None and row["value"] is not None else None

    def column(self, task: str, metric: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the rows of one place, of all that was computed."""
        held = ((line, self.get(line, task, metric)) for line in self.lines("model", "in_domain", "baseline"))
        return [(line, one) for line, one in held if one is not None]

    def lines(self, *kinds: str) -> list[int]:
        """Return the lines of some kinds."""
        return [number for number, one in enumerate(self.data["lines"]) if one["kind"] in kinds]

    def label(self, line: int | str) -> str:
        """Return the name of a line, short enough for an axis."""
        name = str(self.data["lines"][int(line)]["label"])
        return name if len(name) <= 34 else name[:33] + "…"


def _figures(facts: _Facts) -> Iterator[tuple[str, Draw]]:
    data = facts.data
    for composite in data["composites"]:
        if facts.column("", composite["name"]):
            yield f"total-{_slug(composite['name'])}", _intervals(facts, "", composite["name"], composite["title"])
    for task in data["tasks"]:
        if facts.column(task["code"], task["headline"]):
            title = f"{task['code']} {task['title']}: {task['headline'].replace('_', ' ')}"
            yield f"task-{_slug(task['code'])}", _intervals(facts, task["code"], task["headline"], title)
    yield "heatmap-tasks", _heat_map(facts)
    for line, verdicts in data["verdicts"].items():
        yield f"differences-{_slug(facts.label(line))}", _forest(facts, line, verdicts)
    shown = {str(line) for line in facts.lines("model", "in_domain")[:MOST_MODELS]}
    for kind, cells, draw in (("confusion", data["choices"], _confusion), ("numbers", data["numbers"], _scatter)):
        for cell in cells:
            for line in sorted(shown & set(cell["models"]), key=int):
                yield (
                    f"{kind}-{_slug(cell['task'] + ' ' + cell['dataset'] + ' ' + facts.label(line))}",
                    draw(facts, cell, line),
                )


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "x"


def _counted(counts: Iterable[int | None]) -> str:
    """Return how many items numbers rest on, "n 48, " or "n 48 to 96, ", empty if none is known."""
    held = sorted({one for one in counts if one is not None})
    if not held:
        return ""
    return f"n {held[0]}, " if len(held) == 1 else f"n {held[0]} to {held[-1]}, "


def _intervals(facts: _Facts, task: str, metric: str, title: str) -> Draw:
    def draw(figure: Any) -> None:
        rows = facts.column(task, metric)
        down = any(one["down"] for _, one in rows)
        rows.sort(key=lambda pair: float(pair[1]["value"]), reverse=down)
        figure.set_size_inches(5.6, 0.8 + 0.24 * len(rows))
        axes = figure.add_subplot()
        for place, (line, one) in enumerate(rows):
            own = facts.data["lines"][line]["kind"] != "baseline"
            colour = _ACCENT if own else "#777777"
            if one["low"] is not None and one["high"] is not None:
                axes.plot([one["low"], one["high"]], [place, place], color=colour, linewidth=1.5, solid_capstyle="butt")
            axes.plot(one["value"], place, "o", color=colour, markersize=4, markerfacecolor=colour if own else "white")
        axes.set_yticks(range(len(rows)), [facts.label(line) for line, _ in rows])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(title)
        axes.set_xlabel(
            f"{_counted(one['n'] for _, one in rows)}95 % interval; {facts.data['shown']}; open dots: baselines"
        )

    return draw


def _heat_map(facts: _Facts) -> Draw:
    def draw(figure: Any) -> None:
        lines = facts.lines("model", "in_domain", "baseline")
        tasks = facts.data["tasks"]
        figure.set_size_inches(1.8 + 0.62 * len(tasks), 0.9 + 0.26 * len(lines))
        axes = figure.add_subplot()
        cells = [[facts.get(line, one["code"], one["headline"]) for one in tasks] for line in lines]
        shades = [[_quality(cell) for cell in row] for row in cells]
        axes.imshow(shades, cmap="GnBu", vmin=0, vmax=1.6, aspect="auto")
        for row, held in enumerate(cells):
            for column, cell in enumerate(held):
                axes.text(column, row, f"{cell['value']:.2f}" if cell else "–", ha="center", va="center")  # noqa: RUF001
        down = {one["code"] for row in cells for one, cell in zip(tasks, row, strict=True) if cell and cell["down"]}
        axes.set_xticks(range(len(tasks)), [one["code"] + (" ↓" if one["code"] in down else "") for one in tasks])
        axes.set_yticks(range(len(lines)), [facts.label(line) for line in lines])
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        for side in axes.spines.values():
            side.set_visible(False)

    return draw


def _quality(cell: Mapping[str, Any] | None) -> float:
    if cell is None:
        return 0.0
    return float(min(1.0, max(0.0, 1 - cell["value"] if cell["down"] else cell["value"])))


def _forest(facts: _Facts, line: str, verdicts: Mapping[str, Mapping[str, Any]]) -> Draw:
    def draw(figure: Any) -> None:
        rows = [(one["code"], verdicts[one["code"]]) for one in facts.data["tasks"] if one["code"] in verdicts][::-1]
        figure.set_size_inches(5.6, 0.9 + 0.26 * len(rows))
        held = [facts.get(int(line), one["code"], one["headline"]) for one in facts.data["tasks"]]
        counts = [one["n"] for one in held if one is not None]
        axes = figure.add_subplot()
        axes.axvline(0, color="#999999", linewidth=1)
        for place, (_, one) in enumerate(rows):
            colour = _COLOURS.get(one["word"] or "", "#777777")
            if one["difference"] is None:
                continue
            if one["low"] is not None and one["high"] is not None:
                axes.plot([one["low"], one["high"]], [place, place], color=colour, linewidth=1.5)
            axes.plot(one["difference"], place, "o", color=colour, markersize=4)
        axes.set_yticks(range(len(rows)), [f"{code} − {one['baseline']}" for code, one in rows])  # noqa: RUF001
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(f"{facts.label(line)} against the best baseline that does not look")
        axes.set_xlabel(f"paired difference of d, {_counted(counts)}95 % interval; positive is better")

    return draw


def _confusion(facts: _Facts, cell: Mapping[str, Any], line: str) -> Draw:
    def draw(figure: Any) -> None:
        counts = cell["models"][line]
        options = cell["options"]
        size = max(2.6, 0.42 * (len(options) + 1))
        figure.set_size_inches(size + 1.8, size + 0.9)
        axes = figure.add_subplot()
        axes.imshow([[one / max(1, sum(row)) for one in row] for row in counts], cmap="GnBu", vmin=0, vmax=1.6)
        for row, held in enumerate(counts):
            for column, one in enumerate(held):
                axes.text(column, row, str(one) if one else "·", ha="center", va="center")
        axes.set_xticks(
            range(len(options) + 1), [*options, "no valid answer"], rotation=45, ha="right", rotation_mode="anchor"
        )
        axes.set_yticks(range(len(options)), options)
        axes.tick_params(length=0)
        axes.set_ylabel("reference")
        axes.set_xlabel("read from the reply")
        axes.set_title(f"{cell['task']} {cell['dataset']}, {facts.label(line)}, n {sum(map(sum, counts))}")
        for side in axes.spines.values():
            side.set_visible(False)

    return draw


def _scatter(facts: _Facts, cell: Mapping[str, Any], line: str) -> Draw:
    def draw(figure: Any) -> None:
        import numpy as np

        figure.set_size_inches(3.8, 4.0)
        axes = figure.add_subplot()
        pairs = [
            (one, other)
            for one, other in zip(cell["reference"], cell["models"][line], strict=True)
            if other is not None
        ]
        axes.set_title(f"{cell['task']} {cell['dataset']}, {facts.label(line)}")
        unit = f" ({cell['unit']})" if cell["unit"] else ""
        axes.set_xlabel(f"reference{unit}")
        axes.set_ylabel(f"prediction{unit}")
        if not pairs:
            axes.text(0.5, 0.5, "no reply holds a number", ha="center", transform=axes.transAxes)
            return
        reference, predicted = np.array(pairs, dtype=float).T
        gaps = predicted - reference
        bias = gaps.mean()
        axes.plot(reference, predicted, "o", color=_ACCENT, alpha=0.5, markersize=3, markeredgewidth=0)
        axes.axline((0, 0), slope=1, color="#999999", linewidth=1)
        axes.axline((0, bias), slope=1, color=_ACCENT, linewidth=1.2)
        note = f"n {len(pairs)} of {len(cell['reference'])}; bias {bias:.3g}"
        if len(pairs) > 1:
            spread = 1.96 * gaps.std(ddof=1)
            for shift in (bias - spread, bias + spread):
                axes.axline((0, shift), slope=1, color=_ACCENT, linewidth=0.9, linestyle="--")
            note += f", limits {bias - spread:.3g} to {bias + spread:.3g}"
        if cell["low"] is not None and cell["high"] is not None:
            # Widened where a reference or a prediction lies outside the declared range: no point is cut away.
            axes.set_xlim(min(cell["low"], reference.min()), max(cell["high"], reference.max()))
            axes.set_ylim(min(cell["low"], predicted.min()), max(cell["high"], predicted.max()))
        axes.text(0, -0.2, note, transform=axes.transAxes, fontsize=7, color="#444444")

    return draw
