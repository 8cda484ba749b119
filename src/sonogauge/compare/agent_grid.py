"""Planners times segmenters: every pair beside its planner alone, and the gain split into its three sources.

The gain of an agent over its planner is the sum of three: vocabulary (the planner is told the categories), mask (a
segmenter draws, neutral words) and template (the words mirror the references). The last is no better sight.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.compare.sides import Counted, Ground, count, make_ground, read_sides
from sonogauge.folders import Folder, write_bytes
from sonogauge.hashes import canonical_hash
from sonogauge.models.agents.switches import Switches
from sonogauge.models.agents.ultrag import RULE
from sonogauge.models.segmenters import SEGMENTERS
from sonogauge.score.values import SLICES, ModelValues, evaluate
from sonogauge.stats.intervals import Estimate, difference

GRID_FILE: Final = "grid.json"
# What each task shows, its headline first.
METRICS: Final = {"SEG": ("iou", "dice"), "VQA": ("g_acc", "acc"), "RPT": ("sem_acc", "rouge_l_beta1")}
GAINS: Final = {
    "vocabulary": ("plain+vocabulary", "plain"),
    "mask": ("predicted+neutral", "plain+vocabulary"),
    "template": ("predicted+template", "predicted+neutral"),
    "total": ("predicted+template", "plain"),
}
_STYLES: Final = {"neutral": "neutral", "template": "benchmark_template"}


@dataclass(frozen=True)
class Cell:
    """One run of the grid: a planner in a role ("plain", "oracle+template", …), with a segmenter or without."""

    planner: str
    segmenter: str
    role: str
    model: str

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        said = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.planner}-{self.segmenter}-{self.role}").strip("-")[:80]
        return f"{said}-{canonical_hash(self.model)[:8]}"


@dataclass(frozen=True)
class AgentGrid:
    """What the grid found; rows and gains as in `grid.json`."""

    document: dict[str, Any]
    path: Path


def agent_grid(
    bench: Path | str,
    out: Path | str,
    *,
    planners: Sequence[str],
    segmenters: Sequence[str],
    switches: Mapping[str, Any] | None = None,
    planner_options: Mapping[str, Any] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    max_connections: int = 4,
    allow_upload: bool = False,
    draws: int = 2_000,
    seed: int = 0,
    progress: bool = False,
) -> AgentGrid:
    """Run and compare all pairs on the test part; the same call again goes on.

    Args:
        bench: an UltraG benchmark.
        out: folder for the runs and `grid.json`.
        planners: names of models; "rule" needs none.
        segmenters: names as `load_segmenter` takes them. The oracle is added for the two rows of ceilings.
        switches: of the agent; not compose_style, which the grid sets.
        planner_options: of the planners ("base_url", …).
        tasks: codes; all by default.
        limit: that many items, spread over tasks and data sets.
        max_connections: questions asked at once.
        allow_upload: let private images leave this machine.
        draws: of the bootstrap.
        seed: of the draws.
        progress: show each run.

    Raises:
        BadInput: no planner or segmenter, a planner or segmenter that does not load, a benchmark without UltraG tasks.
    """
    # Run belongs below compare; imported here because only this function of the package asks anybody anything.
    from sonogauge.run import run

    if not planners or not segmenters:
        raise BadInput("a grid needs one planner and one segmenter at least", fix="give --planners and --segmenters")
    chosen = dict(switches or {})
    if "compose_style" in chosen:
        raise BadInput("the grid sets compose_style itself", field="compose_style")
    Switches.read(chosen)
    folder = Folder(bench, "benchmark")
    cells = list(_cells(planners, segmenters, chosen, folder.path))
    runs: dict[str, Path] = {}
    for cell in cells:
        path = Path(out) / "runs" / cell.folder
        if cell.folder in runs:
            continue
        wanted = dict(planner_options or {}) if cell.planner != RULE else {}
        run(
            folder.path,
            cell.model,
            path,
            tasks=tasks,
            limit=limit,
            model_options=wanted,
            max_connections=max_connections,
            allow_upload=allow_upload,
            progress=progress,
        )
        runs[cell.folder] = path
    document = _document(cells, runs, folder, chosen, draws, seed)
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes(Path(out) / GRID_FILE, text.encode("utf-8"))
    return AgentGrid(document, Path(out))


def _cells(planners: Sequence[str], segmenters: Sequence[str], switches: Mapping[str, Any], bench: Path) -> list[Cell]:
    cells = []
    where = quote(str(bench), safe="/")
    source = Switches.read(switches).vocab_source
    told = "".join(f"&{key}={quote(str(value), safe='')}" for key, value in sorted(switches.items()))

    def agent(planner: str, segmenter: str, style: str) -> str:
        name = f"agent/ultrag?planner={quote(planner, safe='/')}&segmenter={quote(segmenter, safe='/:')}"
        return f"{name}&bench={where}&compose_style={_STYLES[style]}{told}"

    for planner in dict.fromkeys(planners):
        plain = "agent/rule" if planner == RULE else planner
        cells.append(Cell(planner, "", "plain", plain))
        listed = f"agent/plain?planner={quote(planner, safe='/')}&vocab_source={source}&bench={where}"
        cells.append(Cell(planner, "", "plain+vocabulary", listed))
        for style in _STYLES:
            cells.append(Cell(planner, "oracle", f"oracle+{style}", agent(planner, f"oracle:{bench}", style)))
        for segmenter in dict.fromkeys(segmenters):
            for style in _STYLES:
                cells.append(Cell(planner, segmenter, f"predicted+{style}", agent(planner, segmenter, style)))
    return cells


def _document(
    cells: Sequence[Cell],
    runs: Mapping[str, Path],
    folder: Folder,
    switches: Mapping[str, Any],
    draws: int,
    seed: int,
) -> dict[str, Any]:
    names = list(runs)
    sides, bench = read_sides([runs[name] for name in names], folder.path)
    ground = make_ground(sides, bench, scenarios=None, draws=draws, seed=seed, parameters={})
    counted = {name: _evaluate(ground, count(ground, side, "")) for name, side in zip(names, sides, strict=True)}
    rows = []
    for cell in cells:
        found = counted[cell.folder]
        for task, metric, value in _values(found):
            rows.append({**_head(cell), "task": task, "metric": metric, **_told(value)})
    gains = []
    plain = {(cell.planner, cell.role): cell for cell in cells if not cell.segmenter}
    drawn = {(cell.planner, cell.segmenter, cell.role): cell for cell in cells if cell.segmenter}
    for planner, segmenter in dict.fromkeys((one.planner, one.segmenter) for one in cells if _predicted(one)):
        for gain, roles in GAINS.items():
            more, less = (
                plain[planner, role] if (planner, role) in plain else drawn[planner, segmenter, role] for role in roles
            )
            after = {(task, name): value for task, name, value in _values(counted[more.folder])}
            before = {(task, name): value for task, name, value in _values(counted[less.folder])}
            for (task, metric), value in after.items():
                gap = difference(value, before[task, metric], names=roles)
                head = {"planner": planner, "segmenter": segmenter, "gain": gain, "of": " - ".join(roles)}
                gains.append({**head, "task": task, "metric": metric, **_told(gap)})
    return {
        "maker": f"sonogauge {__version__}",
        "benchmark": {"name": ground.spec.name, "version": ground.spec.version, "hash": bench.manifest.hash},
        "notices": list(bench.manifest.notices),
        "switches": {**Switches.read(switches).told(), "compose_style": "both"},
        "draws": draws,
        "seed": seed,
        "items": len(ground.items),
        "rows": rows,
        "gains": gains,
        "failures": {name: _failures(Folder(path)) for name, path in runs.items()},
    }


def _predicted(cell: Cell) -> bool:
    return cell.role.startswith("predicted")


def _evaluate(ground: Ground, found: Counted) -> ModelValues:
    """Return the values of the grid's metrics, which are more than the headlines of a comparison."""
    tasks = {
        code: task.model_copy(update={"metrics": tuple(one for one in METRICS[code] if one in task.metrics)})
        for code, task in ground.spec.tasks.items()
        if code in METRICS and set(METRICS[code]) & set(task.metrics)
    }
    if not tasks:
        raise BadInput(f"{ground.spec.name} has none of the tasks " + ", ".join(METRICS), file=ground.bench.path)
    spec = ground.spec.model_copy(update={"tasks": tasks})
    scenarios = [one for one in ground.scenarios if one.task in tasks]
    every = {"": SLICES[""]}
    return evaluate(spec, found.cells, scenarios, ground.resampler, need_all=ground.need_all, slices=every)


def _values(found: ModelValues) -> list[tuple[str, str, Estimate]]:
    values = []
    for task, metrics in METRICS.items():
        by_metric = found.tasks.get(("", task), {})
        values += [(task, metric, by_metric[metric].estimate) for metric in metrics if metric in by_metric]
    return values


def _head(cell: Cell) -> dict[str, str]:
    return {
        "planner": cell.planner,
        "segmenter": cell.segmenter,
        "role": cell.role,
        "run": cell.folder,
        "exposure": exposure(cell.segmenter),
    }


def _told(value: Estimate) -> dict[str, Any]:
    told = {"value": value.value, "low": value.low, "high": value.high, "groups": value.groups}
    return {**told, "reliable": value.reliable, "why_null": value.why_null}


def _failures(run: Folder) -> dict[str, int]:
    """Return how calls inside the agent ended without a mask or text, by cause, and what failed altogether."""
    causes: dict[str, int] = {}
    for reply in run.rows("replies", ["error", "trace"]):
        if reply["error"]:
            kind = reply["error"].partition(":")[0]
            causes[kind] = causes.get(kind, 0) + 1
        elif reply["trace"]:
            found = json.loads(reply["trace"])
            own = found.get("causes") if isinstance(found, dict) else None
            for cause, number in (own or {}).items():
                causes[cause] = causes.get(cause, 0) + int(number)
    return dict(sorted(causes.items()))


def exposure(segmenter: str) -> str:
    """Return what a segmenter has seen of the sources before.

    >>> exposure("otsu?polarity=bright"), exposure("unet:models/u1")
    ('none', 'trained on a train part')
    """
    name = segmenter.partition("?")[0].partition(":")[0]
    if "ultrasam3" in segmenter.casefold():
        return "train parts of 37 sources; BrEast, BUS_UCLM and KFGNet unseen"
    known = {
        "": "",
        "oracle": "knows the references",
        "unet": "trained on a train part",
        **dict.fromkeys(("box-fill", "ellipse", "otsu", "grabcut"), "none"),
    }
    return known.get(name, "unknown" if name in SEGMENTERS else "")
