"""The public function of this step: several runs of one benchmark side by side, on the same items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.compare.ablations import ABLATIONS, Ablation
from sonogauge.compare.pairs import Difference, PairRules, Place, task_difference, total_differences
from sonogauge.compare.ranking import leave_out, rank_models, shared_tasks, weights_of
from sonogauge.compare.sides import (
    PRESENT,
    Counted,
    Ground,
    Side,
    count,
    make_ground,
    read_ids,
    read_sides,
    refuse_other_items,
)
from sonogauge.compare.slices import BUILT_IN, level_of
from sonogauge.folders import Folder, Input, Manifest, new_folder, write_bytes
from sonogauge.hashes import canonical_hash
from sonogauge.models.groups import load_cards
from sonogauge.report.view import SIMULATED_NOTICE, SOURCES_NOTICE
from sonogauge.score.compose import composite_values
from sonogauge.score.values import Value
from sonogauge.stats.corrections import CORRECTIONS, benjamini_hochberg, holm

COMPARISON_FILE: Final = "comparison.json"
MOST_MODELS: Final = 10
ITEMS_NOTICE: Final = "p: patients' results exchanged between the two models; McNemar: reproduction, items independent."


@dataclass(frozen=True)
class Comparison:
    """What comparing found: `document` is the object of `--json` and of comparison.json; path: None if not written."""

    document: dict[str, Any]
    manifest: Manifest
    path: Path | None = None


def compare(
    runs: Sequence[Path | str],
    *,
    against: Path | str | None = None,
    by: str | None = None,
    out: Path | str | None = None,
    bench: Path | str | None = None,
    scenarios: str | None = None,
    variant: str = "",
    margin: float | None = None,
    correction: str = "holm",
    ablation: str | None = None,
    tasks: Sequence[str] | None = None,
    items: Path | str | None = None,
    models_file: Path | str | None = None,
    sizes: Mapping[str, float] | None = None,
    draws: int = 10_000,
    swaps: int = 9_999,
    seed: int = 0,
    tolerance: float | None = None,
    failure_error: str | None = None,
    overwrite: bool = False,
) -> Comparison:
    """Compare runs of one benchmark on the same items, under `strict`.

    Every pair (or every run with `against`): differences of the headlines and totals with 95 % intervals under shared
    draws of patients, two-sided p by exchanging the models within patients, Holm and Benjamini-Hochberg over declared
    families, McNemar as reproduction, the smallest detectable difference; over all: win shares and rank intervals,
    ranks without one data set.

    Args:
        runs: run folders, or `.jsonl` files of replies with `bench`; at least two, one for most ablations.
        against: compare all with this run only; one of `runs` or another.
        by: also compare by this column: dataset, anatomy, determinable, source, or a key of the items' meta.
        out: folder for the comparison; None writes nothing.
        bench: benchmark folder; by default the one the runs name.
        scenarios: a scenario set of the benchmark; by default what has items ("present").
        variant: which variant of the runs; "" is the unvaried one.
        margin: of non-inferiority, in d (0 to 1, higher is better).
        correction: "holm" or "bh": which adjusted p is shown first; both are kept.
        ablation: instead of pairs: anatomy, image, scale, instruction, repeats, rotations or groups.
        tasks: of an ablation; default its own.
        items: a file of item ids, one a line, to compare on; by default all that were asked.
        models_file: a models.yaml of your own, over the packaged one.
        sizes: model to billions of parameters, over models.yaml.
        draws: of the bootstrap.
        swaps: random exchanges of the test.
        seed: of draws and exchanges.
        tolerance: as in `score`.
        failure_error: as in `score`.
        overwrite: replace an existing comparison at `out`.

    Raises:
        BadInput: one run, different benchmarks or items, an unknown column, variant, correction or ablation.
    """
    _check_options(runs, against, margin, correction, ablation, draws, swaps)
    paths = list(runs)
    if against is not None and Path(against).resolve() not in {Path(run).resolve() for run in runs}:
        paths.append(against)
    sides, folder = read_sides(paths, bench)
    settings = {"tolerance": tolerance, "failure_error": failure_error}
    only = read_ids(items) if items is not None else None
    ground = make_ground(sides, folder, scenarios=scenarios, draws=draws, seed=seed, parameters=settings, only=only)
    cards = load_cards(models_file)
    document = _head(ground, sides, variant)
    parameters: dict[str, Any] = {
        **ground.parameters,
        "models": [side.label for side in sides],
        "scenario_set": ground.scenario_set,
        "variant": variant,
        "draws": draws,
        "swaps": swaps,
        "seed": seed,
        "items": None if only is None else canonical_hash(sorted(only)),
    }
    testing = PairRules(swaps, seed, margin)
    if ablation is not None:
        found = ABLATIONS.load(ablation)(Ablation(ground, sides, testing, tuple(tasks or ()), cards, dict(sizes or {})))
        document["ablation"] = {"name": ablation, **found}
        parameters["ablation"] = ablation
    else:
        reference = None
        if against is not None:
            reference = next(
                side for side, path in zip(sides, paths, strict=True) if Path(path).resolve() == Path(against).resolve()
            ).label
        facts = _compare(ground, sides, variant, reference, by, testing)
        document.update(facts)
        document["correction"] = correction
        parameters |= {"against": reference, "by": by, "margin": margin, "correction": correction}
        parameters["families"] = document["families"]
    manifest = Manifest(
        kind="comparison",
        maker=f"sonogauge {__version__}",
        name=ground.spec.name,
        version=ground.spec.version,
        inputs=[
            Input(role="benchmark", path=str(folder.path), hash=folder.manifest.hash),
            *(Input(role="replies", path=str(side.source.path), hash=side.source.content_hash) for side in sides),
        ],
        parameters=parameters,
        counts={"items": len(ground.items), "models": len(sides)},
        licences=folder.manifest.licences,
        notices=document["notices"],
    )
    if out is None:
        return Comparison(document, manifest)
    with new_folder(out, overwrite=overwrite) as writer:
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
        write_bytes(writer.path / COMPARISON_FILE, text.encode("utf-8"))
        manifest = writer.finish(manifest)
    return Comparison(document, manifest, Path(out))


def read_comparison(path: Path | str) -> Comparison:
    """Read a comparison that `compare` wrote.

    Raises:
        BadInput: no folder of a comparison, or a broken one.
    """
    folder = Folder(path, "comparison")
    file = folder.path / COMPARISON_FILE
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read ({error})", file=file, fix="compare again") from error
    return Comparison(document, folder.manifest, folder.path)


def _check_options(
    runs: Sequence[Path | str],
    against: Path | str | None,
    margin: float | None,
    correction: str,
    ablation: str | None,
    draws: int,
    swaps: int,
) -> None:
    if ablation is not None:
        ABLATIONS.load(ablation)
    elif len(runs) + (against is not None and len(runs) == 1) < 2:
        raise BadInput("one run has nothing to be compared with", field="runs", fix="name two or more runs")
    if not runs:
        raise BadInput("no run", field="runs", fix="name a run folder")
    if margin is not None and not 0 < margin < 1:
        raise BadInput(f"no margin between 0 and 1: {margin:g}", field="margin", fix="for example 0.05")
    if correction not in CORRECTIONS:
        raise BadInput(f"no correction '{correction}'", field="correction", fix="known: " + ", ".join(CORRECTIONS))
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    if swaps < 99:
        raise BadInput(f"{swaps} exchanges cannot reach p = 0.01", field="swaps", fix="use at least 99")


def _head(ground: Ground, sides: Sequence[Side], variant: str) -> dict[str, Any]:
    spec = ground.spec
    notices = [*spec.notices]
    if spec.simulated:
        notices = [SIMULATED_NOTICE, *(one for one in notices if not one.casefold().startswith("simulated"))]
    default = {one.key for one in spec.scenario_set(spec.default_set)}
    if ground.scenario_set == PRESENT and not default <= {one.key for one in ground.scenarios}:
        notices.append(
            f"Partial: {len(ground.scenarios)} of {len(default)} scenarios have items; "
            "totals do not compare with published ones."
        )
    notices.append(SOURCES_NOTICE)
    return {
        "benchmark": spec.name,
        "version": spec.version,
        "title": spec.title,
        "simulated": spec.simulated,
        "protocol": "strict",
        "scenarios": ground.scenario_set,
        "variant": variant,
        "models": [side.label for side in sides],
        "items": len(ground.items),
        "notices": notices,
    }


def _compare(
    ground: Ground, sides: Sequence[Side], variant: str, against: str | None, by: str | None, testing: PairRules
) -> dict[str, Any]:
    level = level_of(by, ground.items) if by and by not in BUILT_IN else None
    if variant and not any(variant in side.variants for side in sides):
        have = sorted({one for side in sides for one in side.variants})
        raise BadInput(
            f"no run has the variant '{variant}'", field="variant", fix="they have: " + ", ".join(map(repr, have))
        )
    models = [count(ground, side, variant, level) for side in sides]
    refuse_other_items(models, [side.source for side in sides])
    pairs = _pairs(models, against)
    notices = [ITEMS_NOTICE]
    if against is None and len(models) > MOST_MODELS:
        notices.append(
            f"{len(models)} models make {len(pairs)} pairs: only values and ranks are given; "
            "name one with --against for differences."
        )
        pairs = []
    found: list[Difference] = []
    for first, second in pairs:
        for task in _tasks(first):
            found.append(task_difference(ground, first, second, Place(task), testing))
        found += total_differences(ground, first, second, testing)
        if by == "dataset":
            for task, dataset in first.values.cells:
                place = Place(task, dataset, "dataset", dataset)
                found.append(task_difference(ground, first, second, place, testing))
    sliced: list[dict[str, Any]] = []
    if level is not None and by is not None:
        rows, sliced = _by_level(ground, models, by, pairs, testing)
        found += rows
    found, families = adjust(found)
    tasks = shared_tasks(ground, models)
    weights, origin = weights_of(ground.spec, tasks) if tasks else ({}, "")
    return {
        "against": against,
        "by": by,
        "margin": testing.margin,
        "tasks": {task: _task_values(ground, models, task) for task in _tasks(models[0])},
        "totals": _totals(ground, models),
        "levels": sliced,
        "differences": [asdict(one) for one in found],
        "families": families,
        "ranks": [asdict(one) for one in rank_models(ground, models)],
        "left_out": [asdict(one) for one in leave_out(ground, models)],
        "ranking": {"weights": weights, "origin": origin},
        "notices": [*_head(ground, sides, variant)["notices"], *notices],
    }


def _pairs(models: Sequence[Counted], against: str | None) -> list[tuple[Counted, Counted]]:
    if against is None:
        return list(combinations(models, 2))
    reference = next(one for one in models if one.label == against)
    return [(one, reference) for one in models if one is not reference]


def _tasks(model: Counted) -> list[str]:
    return [task for slice_name, task in model.values.tasks if not slice_name]


def _by_level(
    ground: Ground,
    models: Sequence[Counted],
    column: str,
    pairs: Sequence[tuple[Counted, Counted]],
    testing: PairRules,
) -> tuple[list[Difference], list[dict[str, Any]]]:
    found, values = [], []
    for level, one in models[0].levels.items():
        for task in _tasks(one):
            values.append(
                {"level": level, "task": task, **_task_values(ground, [m.levels[level] for m in models], task)}
            )
            for first, second in pairs:
                place = Place(task, "", column, level)
                found.append(task_difference(ground, first.levels[level], second.levels[level], place, testing))
    return found, values


def adjust(found: Sequence[Difference]) -> tuple[list[Difference], dict[str, Any]]:
    """Adjust the p-values within their families; return the differences and a statement of each family."""
    out = list(found)
    families: dict[str, Any] = {}
    for family in dict.fromkeys(one.family for one in found):
        members = [number for number, one in enumerate(found) if one.family == family]
        p = [found[number].p for number in members]
        for number, by_holm, by_bh in zip(members, holm(p), benjamini_hochberg(p), strict=True):
            out[number] = replace(out[number], p_holm=by_holm, p_bh=by_bh)
        pairs = {(found[number].first, found[number].second) for number in members}
        families[family] = {
            "tests": sum(one is not None for one in p),
            "pairs": len(pairs),
            "members": _members(found[number] for number in members),
        }
    return out, families


def _members(found: Iterable[Difference]) -> list[str]:
    names = ("/".join(part for part in (one.task, one.dataset) if part) or one.metric for one in found)
    return list(dict.fromkeys(names))


def _task_values(ground: Ground, models: Sequence[Counted], task: str) -> dict[str, Any]:
    metric = ground.spec.tasks[task].headline
    return {
        "metric": metric,
        "models": {one.label: _value(one.values.tasks["", task].get(metric)) for one in models},
    }


def _totals(ground: Ground, models: Sequence[Counted]) -> dict[str, Any]:
    totals = {one.label: composite_values(ground.spec, one.values, {}) for one in models}
    return {
        name: {label: _value(own["", name]) for label, own in totals.items()}
        for name, facts in ground.spec.composites.items()
        if not facts.skill
    }


def _value(value: Value | None) -> dict[str, Any]:
    if value is None:
        return {
            "value": None,
            "low": None,
            "high": None,
            "n": 0,
            "valid": 0,
            "reliable": False,
            "why_null": "not counted",
        }
    one = value.estimate
    return {
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "n": value.n,
        "valid": value.valid,
        "reliable": one.reliable,
        "why_null": one.why_null,
    }
