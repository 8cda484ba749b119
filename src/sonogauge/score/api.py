"""The public function of this step: replies to scores, under both protocols, with baselines beside the model."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers.convention import read_convention
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, read_spec
from sonogauge.folders import Folder, FolderWriter, Input, Manifest, new_folder, write_bytes
from sonogauge.items import Item
from sonogauge.models.baselines import NON_READING, baseline_replies, is_upper_bound
from sonogauge.score.cells import Cell, CellKey, Sink, cell_options, coordinate_notices, count_slices, count_strict
from sonogauge.score.compose import Verdict, composite_values, verdicts
from sonogauge.score.extraction import Extractions, read_extractions, share_line, with_extractions
from sonogauge.score.inputs import (
    PROTOCOLS,
    check_options,
    counting_parameters,
    groups_of,
    made_parameters,
    open_replies,
    present_scenarios,
    read_items,
)
from sonogauge.score.judging.use import COVERAGE, Verdicts, read_verdicts
from sonogauge.score.published import CellScorer, count_published, load_published, with_coords
from sonogauge.score.replies import Reply, ReplySource, annotator_notices, check_ids, join
from sonogauge.score.rows import RowContext, metric_rows, slice_rows
from sonogauge.score.slices import MIN_N, slice_finder
from sonogauge.score.values import SLICES, ModelValues, evaluate, metric_of
from sonogauge.stats.resample import Resampler
from sonogauge.tables import key_of

PRESENT: Final = "present"


@dataclass(frozen=True)
class Scores:
    """What scoring found; the rows are those of the tables `metrics` and `score_items`.

    path: where they were written, None if nowhere. shown: the protocol asked for.
    """

    spec: BenchmarkSpec
    manifest: Manifest
    metrics: list[dict[str, Any]]
    shown: str
    path: Path | None = None
    verdicts: list[Verdict] = field(default_factory=list)


@dataclass(frozen=True)
class _Job:
    spec: BenchmarkSpec
    source: ReplySource
    bench: Folder
    items: list[Item]
    train: list[Item]
    scenarios: tuple[Scenario, ...]
    scenario_set: str
    parameters: dict[str, Any]
    resampler: Resampler
    verdicts: Verdicts | None
    extractions: Extractions | None

    def context(self, model: str, protocol: str, variant: str, origin: str, doubt: str | None = None) -> RowContext:
        p = self.parameters
        return RowContext(self.spec, model, protocol, variant, self.scenario_set, origin, p["draws"], p["seed"], doubt)


def score(
    replies: Path | str | ReplySource,
    *,
    bench: Path | str | None = None,
    out: Path | str | None = None,
    protocol: str = "strict",
    scenarios: str | None = None,
    weights: str | None = None,
    model: str | None = None,
    draws: int = 10_000,
    seed: int = 0,
    tolerance: float | None = None,
    failure_error: str | None = None,
    baselines: bool = True,
    by: Sequence[str] = (),
    min_n: int = MIN_N,
    prevalence: float | None = None,
    bertscore: Path | str | None = None,
    bertscore_layer: int | None = None,
    split: str | None = None,
    extractions: Path | str | None = None,
    verdicts: Path | str | None = None,
    judge_coverage: float = COVERAGE,
    coords: str | None = None,
    overwrite: bool = False,
) -> Scores:
    """Score a run folder, a JSONL file of replies made elsewhere, or an Inspect log.

    Both protocols are computed where the benchmark has a published one; `protocol` is the one shown.

    Args:
        replies: a run folder, a `.jsonl` file (then `bench` is needed), an Inspect log (`.eval` or `.json`), or replies
            in memory (then `bench` is needed too).
        bench: benchmark folder; for a run or a log, by default the one it names.
        out: folder for the scores; None writes nothing.
        protocol: "strict" or "published".
        scenarios: a scenario set of the benchmark, or "present" = what has items; default of the benchmark.
        weights: weight table of the total that is named first ("published", "n_t").
        model: name to show instead of the one in the replies.
        draws: of the bootstrap.
        seed: of the bootstrap and the random baseline.
        tolerance: absolute tolerance on the scaled value; default of the benchmark.
        failure_error: error of a number that could not be read: "worst" in range, or "one".
        baselines: also score the non-reading baselines on the same items.
        by: columns to slice the task values by, of an item or its first case ("anatomy", "device", "sex").
        min_n: parts with fewer items take no part in the gap between parts.
        prevalence: at which predictive values are given; by default that of the items.
        bertscore: folder of a local encoder; texts then get a BERTScore too.
        bertscore_layer: layer of that encoder; default of the benchmark.
        split: which part of the benchmark replies made elsewhere belong to; "test" by default.
        extractions: file of a model's readings of choice replies that the rules cannot read (`extraction.extract`).
        verdicts: folder of verdicts on these replies, for the metric `judge_score`.
        judge_coverage: least share of verdicts that a judge must have given for a value.
        coords: how this model counts coordinates ("mille", "unit:yxyx", see `answers.convention`), in place of what
            the items ask for; the published protocol is then called "published+coords".
        overwrite: replace existing scores at `out`.

    Raises:
        BadInput: replies of another benchmark, doubled or unknown ids, no published protocol, an unknown set.
    """
    source, folder = open_replies(replies, Path(bench) if bench is not None else None, model, split)
    spec = read_spec(folder.path)
    check_options(spec, protocol, weights, draws, tolerance, failure_error)
    if model is not None and not model.isprintable():
        raise BadInput(f"not a name: {model!a}", field="model", fix="use letters, digits and signs")
    train, items = read_items(folder, source, tolerance)
    check_ids(source, {item.item_id: item for item in items}, folder.path)
    set_name = scenarios or spec.default_set
    parameters: dict[str, Any] = {
        "model": source.model,
        "scenario_set": set_name,
        "weights": weights or next((one.weights for one in spec.composites.values()), None),
        "draws": draws,
        "seed": seed,
        "tolerance": tolerance if tolerance is not None else spec.parameters.get("tolerance", 0.1),
        "failure_error": failure_error or spec.parameters.get("failure_error", "worst"),
        "protocols": [name for name in PROTOCOLS if name == "strict" or name in spec.protocols],
        "baselines": baselines,
        **({"by": list(by), "min_n": min_n} if by else {}),
        **({"prevalence": prevalence} if prevalence is not None else {}),
        **({"coords": str(read_convention(coords))} if coords is not None else {}),
        **counting_parameters(spec),
        **made_parameters(folder.manifest),
    }
    if any(one.statistic == "clinical" for task in spec.tasks.values() for one in map(metric_of, task.metrics) if one):
        parameters["clinical"] = True
    if bertscore is not None:
        layer = bertscore_layer if bertscore_layer is not None else int(spec.parameters.get("bertscore_layer", 9))
        parameters |= {"bertscore_encoder": str(bertscore), "bertscore_layer": layer}
    stored = None
    if extractions is not None:
        stored = read_extractions(extractions)
        source, by_whom = with_extractions(source, items, stored)
        parameters |= {"extractor": stored.extractor, "extraction": by_whom}
    judged = None
    if verdicts is not None:
        judged = read_verdicts(verdicts, folder.manifest.hash, source.content_hash, judge_coverage)
        parameters |= {"judge": judged.facts, "judge_coverage": judge_coverage}
    scored = [item for item in items if source.asked is None or item.item_id in source.asked]
    chosen = present_scenarios(spec, scored) if set_name == PRESENT else spec.scenario_set(set_name)
    pairs = {one.key for one in chosen}
    job = _Job(
        spec=spec,
        source=source,
        bench=folder,
        items=[item for item in scored if (item.task, item.dataset) in pairs],
        train=train,
        scenarios=chosen,
        scenario_set=set_name,
        parameters=parameters,
        resampler=Resampler(groups_of(scored), draws=draws, seed=seed),
        verdicts=judged,
        extractions=stored,
    )
    if out is None:
        metrics, manifest, found = _score(job, None)
        return Scores(spec, manifest, metrics, protocol, None, found)
    with new_folder(out, overwrite=overwrite) as writer:
        metrics, manifest, found = _score(job, writer)
        writer.table("metrics").write(metrics)
        write_bytes(writer.path / SPEC_FILE, dump_spec(spec).encode())
        manifest = writer.finish(manifest)
    return Scores(spec, manifest, metrics, protocol, Path(out), found)


def _score(job: _Job, writer: FolderWriter | None) -> tuple[list[dict[str, Any]], Manifest, list[Verdict]]:
    spec, source = job.spec, job.source
    rows: list[dict[str, Any]] = []
    failures: dict[str, dict[str, int]] = {}
    # Rows are written sorted: the published protocol comes first, and replies are joined in the order of their keys.
    if "published" in job.parameters["protocols"]:
        rows, failures["published"] = _published(job, writer)
    sink = None if writer is None else _row_sink(writer)
    options = cell_options(job.items)
    by = job.parameters.get("by")
    finder = slice_finder(job.bench, job.items, by) if by else None
    pairs = join(source, job.items)
    counted = count_slices(pairs, options, source.model, job.parameters, sink, job.scenarios, finder, job.verdicts)
    cells = counted.pop("")
    beside = _baselines(job) if job.parameters["baselines"] else {}
    found: list[Verdict] = []
    for variant in sorted({key[0] for key in cells}):
        values = _evaluate(job, _of_variant(cells, variant))
        totals = composite_values(spec, values, beside)
        context = job.context(source.model, "strict", variant, "computed")
        rows += metric_rows(context, values, totals)
        if counted:
            rows += slice_rows(context, _parts(job, counted, variant), job.parameters["min_n"])
        if not variant:
            # A baseline is not judged against itself: the table names the best of the others.
            others = {name: one for name, one in beside.items() if f"baseline/{name}" != source.model}
            found = verdicts(spec, values, others)
    for name, values in beside.items():
        bound = is_upper_bound(name, job.train)
        doubt = "upper bound: counted on the items themselves, no training part" if bound else None
        totals = composite_values(spec, values, beside)
        rows += metric_rows(job.context(f"baseline/{name}", "strict", "", "baseline", doubt), values, totals)
    keys = key_of("metrics")
    rows.sort(key=lambda row: tuple(row[key] for key in keys))
    return rows, _manifest(job, cells, found, failures), found


def _row_sink(writer: FolderWriter) -> Sink:
    table = writer.table("score_items")
    return lambda row: table.write((row,))


def _of_variant(cells: Mapping[CellKey, Cell], variant: str) -> dict[tuple[str, str], Cell]:
    return {(task, dataset): cell for (own, task, dataset), cell in cells.items() if own == variant}


def _parts(job: _Job, counted: Mapping[str, Mapping[CellKey, Cell]], variant: str) -> dict[str, ModelValues]:
    found = {}
    for part in sorted(counted):
        cells = _of_variant(counted[part], variant)
        scenarios = [one for one in job.scenarios if one.key in cells]
        found[part] = evaluate(
            job.spec,
            cells,
            scenarios,
            job.resampler,
            need_all=False,
            slices={"": SLICES[""]},
            prevalence=job.parameters.get("prevalence"),
        )
    return found


def _evaluate(job: _Job, cells: Mapping[tuple[str, str], Cell], headline_only: bool = False) -> ModelValues:
    return evaluate(
        job.spec,
        cells,
        job.scenarios,
        job.resampler,
        headline_only=headline_only,
        need_all=job.scenario_set != PRESENT,
        prevalence=job.parameters.get("prevalence"),
    )


def _baselines(job: _Job) -> dict[str, ModelValues]:
    options = cell_options(job.items)
    # Only headlines stand beside the model: the costly metrics of texts are left out.
    parameters = {**job.parameters, "clinical": False, "bertscore_encoder": None}
    out = {}
    for name in NON_READING:
        texts = baseline_replies(name, job.items, job.train, job.parameters["seed"])
        pairs = (
            (item, Reply(item.item_id, "", 0, "", "ok", text))
            for item, text in zip(job.items, texts, strict=True)
            if text is not None
        )
        cells = count_strict(pairs, options, f"baseline/{name}", parameters)
        out[name] = _evaluate(job, _of_variant(cells, ""), headline_only=True)
    return out


def _published(job: _Job, writer: FolderWriter | None) -> tuple[list[dict[str, Any]], dict[str, int]]:
    rule, label = load_published(job.spec.protocols["published"]), "published"
    if job.parameters.get("coords"):
        rule, label = with_coords(rule, job.parameters["coords"])
    item_rows: list[dict[str, Any]] = []
    sink = None if writer is None else (lambda row: item_rows.append({**row, "protocol": label}))
    variants = sorted({reply.variant for reply in job.source.replies})
    by_id: dict[str, list[Reply]] = {}
    for reply in job.source.replies:
        by_id.setdefault(reply.item_id, []).append(reply)
    rows: list[dict[str, Any]] = []
    unvaried: dict[str, int] = {}
    for variant in variants:
        pairs = []
        for item in job.items:
            own = [one for one in sorted(by_id.get(item.item_id, [])) if one.variant == variant]
            pairs += [(item, one) for one in own] or [(item, Reply(item.item_id, variant, 0, "", "missing", None))]
        values, totals, failures = count_published(job.spec, job.scenarios, pairs, rule, job.source.model, sink)
        rows += metric_rows(job.context(job.source.model, label, variant, "computed"), values, totals)
        if not variant:
            unvaried = failures
    if job.parameters["baselines"]:
        rows += _published_random(job, rule)
    if writer is not None:
        keys = key_of("score_items")
        writer.table("score_items").write(sorted(item_rows, key=lambda row: tuple(row[key] for key in keys)))
    return rows, unvaried


def _published_random(job: _Job, rule: CellScorer) -> Iterator[dict[str, Any]]:
    """Yield the random row, which stands beside every published total: guessing earns more than some models."""
    name = "baseline/random"
    texts = baseline_replies("random", job.items, job.train, job.parameters["seed"])
    pairs = [
        (item, Reply(item.item_id, "", 0, "", "ok", text))
        for item, text in zip(job.items, texts, strict=True)
        if text is not None
    ]
    values, totals, _ = count_published(job.spec, job.scenarios, pairs, rule, name)
    return metric_rows(job.context(name, "published", "", "baseline"), values, totals)


def _manifest(
    job: _Job,
    cells: Mapping[CellKey, Cell],
    found: Sequence[Verdict],
    failures: Mapping[str, Mapping[str, int]],
) -> Manifest:
    spec, source = job.spec, job.source
    base = _of_variant(cells, "") or _of_variant(cells, min((key[0] for key in cells), default=""))
    reasons: Tally[str] = Tally()
    excluded: Tally[str] = Tally()
    abstention: dict[str, dict[str, int]] = {}
    references: dict[str, dict[str, int]] = {}
    for (task, dataset), cell in sorted(base.items()):
        reasons.update(cell.reasons)
        excluded.update(cell.excluded)
        if cell.abstention:
            abstention[f"{task}/{dataset}"] = dict(sorted(cell.abstention.items()))
        if cell.references:
            references[f"{task}/{dataset}"] = dict(sorted(cell.references.items()))
    missing = [f"{one.task}/{one.dataset}" for one in job.scenarios if not (one.key in base and base[one.key].n)]
    why = []
    if job.scenario_set == PRESENT and len(job.scenarios) < len(spec.scenario_set(spec.default_set)):
        why.append(f"only {len(job.scenarios)} scenarios have items")
    if source.asked is not None:
        why.append(f"the run asked {len(source.asked)} items")
    if missing and job.scenario_set != PRESENT:
        why.append(f"{len(missing)} of {len(job.scenarios)} scenarios of the set '{job.scenario_set}' are missing")
    notices = [*spec.notices, *coordinate_notices(base.values())]
    if job.extractions:
        notices.append(share_line(job.parameters["extraction"], job.extractions.extractor))
    notices += annotator_notices(source, job.bench.manifest)
    if spec.simulated:
        notices.append("Simulated images, not clinical: nothing here speaks of patients.")
    return Manifest(
        kind="scores",
        maker=f"sonogauge {__version__}",
        name=spec.name,
        version=spec.version,
        inputs=[
            Input(role="benchmark", path=str(job.bench.path), hash=job.bench.manifest.hash),
            Input(role="replies", path=str(source.path), hash=source.content_hash),
            *(
                Input(role=role, path=str(one.path), hash=one.hash)
                for role, one in (("extractions", job.extractions), ("verdicts", job.verdicts))
                if one is not None
            ),
        ],
        parameters=job.parameters,
        counts={
            "scored": sum(cell.n for cell in base.values()),
            "valid": sum(cell.valid for cell in base.values()),
            "statuses": dict(sorted(Tally(one.status for one in source.replies if not one.variant).items())),
            "failures": {"strict": dict(sorted(reasons.items())), **failures},
            "excluded": dict(sorted(excluded.items())),
            "abstention": abstention,
            "references": references,
            "verdicts": {one.task: {k: v for k, v in asdict(one).items() if k != "task"} for one in found},
            "partial": bool(why),
            "partial_why": why,
            "missing": missing,
        },
        licences=job.bench.manifest.licences,
        notices=notices,
    )
