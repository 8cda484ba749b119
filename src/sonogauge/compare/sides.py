"""What a comparison is made of: several models, one benchmark, the same items for all."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, read_spec
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.score.cells import Cell, CellKey, cell_options, count_slices
from sonogauge.score.inputs import counting_parameters, groups_of, open_replies, present_scenarios, read_items
from sonogauge.score.replies import Reply, ReplySource, check_ids, join
from sonogauge.score.values import ModelValues, evaluate
from sonogauge.stats.resample import Resampler

PRESENT: Final = "present"
ReplyKey = tuple[str, int]


@dataclass(frozen=True)
class Side:
    """One model of a comparison: a run under a label of its own."""

    label: str
    source: ReplySource

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that it has replies to, the unvaried one ("") first."""
        return tuple(sorted({reply.variant for reply in self.source.replies if not reply.rater_id}))


@dataclass(frozen=True)
class Ground:
    """What all models share: the benchmark, its items, the draws.

    items: those asked, in the scenarios compared, in the order of the benchmark. need_all: a missing data set leaves
    its task without a value.
    """

    spec: BenchmarkSpec
    bench: Folder
    items: tuple[Item, ...]
    scenarios: tuple[Scenario, ...]
    scenario_set: str
    parameters: Mapping[str, Any]
    resampler: Resampler

    @property
    def need_all(self) -> bool:
        """Whether the scenario set is a fixed one."""
        return self.scenario_set != PRESENT


@dataclass(frozen=True, eq=False)
class Outcome:
    """One reply that counted: what was read from it, and whether it was right (None where nothing is right or wrong).

    prediction: the value struct of `tables.VALUE`, or None with a `reason`.
    """

    item_id: str
    epoch: int
    task: str
    dataset: str
    correct: bool | None
    prediction: Mapping[str, Any] | None
    reason: str | None


@dataclass(frozen=True, eq=False)
class Counted:
    """What one model did in one variant: cells, values, each reply that counted, and the same by level of a column."""

    label: str
    variant: str
    cells: Mapping[tuple[str, str], Cell]
    values: ModelValues
    outcomes: Mapping[ReplyKey, Outcome] = field(repr=False)
    asked: frozenset[ReplyKey] = field(repr=False)
    levels: Mapping[str, Counted] = field(repr=False)


def read_sides(runs: Sequence[Path | str], bench: Path | str | None) -> tuple[list[Side], Folder]:
    """Open runs of one benchmark and label them by their model, with folder or path where two are the same.

    Raises:
        BadInput: the same run twice, runs of different benchmarks.
    """
    opened = [open_replies(Path(run), Path(bench) if bench is not None else None, None) for run in runs]
    first = opened[0][1]
    for run, (_, folder) in zip(runs, opened, strict=True):
        if folder.manifest.hash != first.manifest.hash:
            raise BadInput(
                f"a run of {_named(folder)}, while {runs[0]} is one of {_named(first)}",
                file=run,
                fix="compare runs of the same benchmark folder",
            )
    seen: dict[str, Path | str] = {}
    for run, (source, _) in zip(runs, opened, strict=True):
        key = source.content_hash + str(source.path.resolve())
        if key in seen:
            raise BadInput("the same run twice", file=run, fix="name each run once")
        seen[key] = run
    labels = [source.model for source, _ in opened]
    # The folder's name tells two runs of a model apart, and where that is the same too, the whole path.
    for told in (lambda run: Path(run).name, str):
        often = Tally(labels)
        labels = [
            label if often[label] == 1 else f"{source.model} ({told(run)})"
            for run, label, (source, _) in zip(runs, labels, opened, strict=True)
        ]
    return [Side(label, source) for label, (source, _) in zip(labels, opened, strict=True)], first


def _named(folder: Folder) -> str:
    manifest = folder.manifest
    return f"{manifest.name} {manifest.version} (content hash {manifest.hash[:12]})"


def make_ground(
    sides: Sequence[Side],
    folder: Folder,
    *,
    scenarios: str | None,
    draws: int,
    seed: int,
    parameters: dict[str, Any],
    only: frozenset[str] | None = None,
) -> Ground:
    """Read the items of the benchmark and set up the draws that all models share.

    only: ids of the items to compare on, of those asked; None = all.

    Raises:
        BadInput: replies with unknown or doubled ids, runs of different splits, an unknown scenario set, no item, an
            id in `only` that is no item's.
    """
    spec = read_spec(folder.path)
    first = sides[0]
    _, items = read_items(folder, first.source, parameters.get("tolerance"))
    by_id = {item.item_id: item for item in items}
    for side in sides:
        if side.source.split != first.source.split:
            raise BadInput(
                f"a run on the split '{side.source.split}', while {first.label} answered '{first.source.split}'",
                file=side.source.path,
                fix="compare runs on the same split",
            )
        check_ids(side.source, by_id, folder.path)
    # All that anyone was asked, so that a run of fewer items shows up as a difference.
    limits = [side.source.asked for side in sides]
    asked = None if None in limits else frozenset[str]().union(*(one for one in limits if one is not None))
    for item_id in sorted(only or ()):
        if item_id not in by_id:
            raise BadInput(
                f"no item '{item_id}' in {folder.path}", field="items", fix="use ids of the benchmark's items"
            )
    scored = [
        item for item in items if (asked is None or item.item_id in asked) and (only is None or item.item_id in only)
    ]
    set_name = scenarios or PRESENT
    chosen = present_scenarios(spec, scored) if set_name == PRESENT else spec.scenario_set(set_name)
    pairs = {one.key for one in chosen}
    kept = tuple(item for item in scored if (item.task, item.dataset) in pairs)
    if not kept:
        raise BadInput(f"no item of the scenario set '{set_name}'", file=folder.path)
    settings = {
        "tolerance": spec.parameters.get("tolerance", 0.1),
        "failure_error": spec.parameters.get("failure_error", "worst"),
        **counting_parameters(spec),
        **{name: value for name, value in parameters.items() if value is not None},
    }
    resampler = Resampler(groups_of(scored), draws=draws, seed=seed)
    return Ground(spec, folder, kept, chosen, set_name, settings, resampler)


def count(ground: Ground, side: Side, variant: str, level: Callable[[Item], str] | None = None) -> Counted:
    """Count one model's replies in one variant.

    level: also count the items of each level it names (`Counted.levels`).

    Raises:
        BadInput: the model has no reply in that variant.
    """
    if variant not in side.variants:
        raise BadInput(
            f"no reply in the variant '{variant}'",
            file=side.source.path,
            fix="it has " + (", ".join(f"'{one}'" for one in side.variants) or "answers of people only"),
        )
    items = {item.item_id: item for item in ground.items}
    kept = [one for one in side.source.replies if one.variant == variant and not one.rater_id and one.item_id in items]
    asked: set[ReplyKey] = set()
    outcomes: dict[ReplyKey, Outcome] = {}

    def sink(row: dict[str, Any]) -> None:
        if row["excluded"] is None:
            correct = dict(row["values"]).get("correct")
            outcomes[row["item_id"], row["epoch"]] = Outcome(
                row["item_id"],
                row["epoch"],
                row["task"],
                row["dataset"],
                None if correct is None else bool(correct),
                row["prediction"],
                row["reason"],
            )

    def pairs() -> Iterator[tuple[Item, Reply]]:
        for item, reply in join(replace(side.source, replies=kept), ground.items):
            asked.add((item.item_id, reply.epoch))
            yield item, reply

    counted = count_slices(
        pairs(),
        cell_options(ground.items),
        side.label,
        dict(ground.parameters),
        sink,
        ground.scenarios,
        # The name "" is that of the whole, and an item may lack a level.
        None if level is None else lambda item: ("=" + level(item),),
    )
    # A level holds what it holds: a data set without items of it is not missing.
    open_ground = replace(ground, scenario_set=PRESENT)
    levels = {}
    for name in sorted(set(counted) - {""}):
        cells = _by_place(counted[name])
        own = {key: one for key, one in outcomes.items() if level is not None and level(items[key[0]]) == name[1:]}
        levels[name[1:]] = Counted(side.label, variant, cells, value_cells(open_ground, cells), own, frozenset(own), {})
    cells = _by_place(counted[""])
    return Counted(side.label, variant, cells, value_cells(ground, cells), outcomes, frozenset(asked), levels)


def _by_place(cells: Mapping[CellKey, Cell]) -> dict[tuple[str, str], Cell]:
    return {(task, dataset): cell for (_, task, dataset), cell in cells.items()}


def value_cells(ground: Ground, cells: Mapping[tuple[str, str], Cell]) -> ModelValues:
    """Estimate the headlines of the scenarios that these cells hold."""
    scenarios = ground.scenarios
    if not ground.need_all:
        scenarios = tuple(one for one in scenarios if one.key in cells and cells[one.key].n)
    return evaluate(ground.spec, cells, scenarios, ground.resampler, headline_only=True, need_all=ground.need_all)


def read_ids(file: Path | str) -> frozenset[str]:
    """Read item ids, one a line; empty lines and lines that start with "#" are left out.

    Raises:
        BadInput: no such file, not text, no id in it.
    """
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", file=file) from error
    except UnicodeDecodeError as error:
        raise BadInput("not UTF-8 text", file=file, fix="write one item id a line") from error
    ids = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not ids:
        raise BadInput("no item id in it", file=file, fix="write one item id a line")
    return ids


def refuse_other_items(models: Sequence[Counted], sources: Sequence[ReplySource]) -> None:
    """Refuse models that were not asked the same items the same number of times.

    Raises:
        BadInput: naming the first item that differs.
    """
    first = models[0]
    for model, source in zip(models[1:], sources[1:], strict=True):
        apart = sorted(first.asked ^ model.asked)
        if apart:
            item_id, epoch = apart[0]
            has, lacks = (first, model) if apart[0] in first.asked else (model, first)
            times = f" (epoch {epoch})" if epoch else ""
            raise BadInput(
                f"not the same items: {has.label} was asked {item_id}{times}, {lacks.label} was not; "
                f"{len(apart)} differ",
                file=source.path,
                fix="run both with the same --limit, --tasks and repeats",
            )
