"""The public function: a run or scores folder in, the tables of a named analysis out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.analyses.panel import Panel, read_panel
from sonogauge.analyses.study import Study, read_study
from sonogauge.benchmarks.spec import load_spec, read_spec
from sonogauge.compare.tables import declared_table
from sonogauge.folders import Folder, read_manifest
from sonogauge.report.cells import View
from sonogauge.report.view import SOURCES_NOTICE
from sonogauge.score.replies import ReplySource

Analysis = Callable[[Study, Mapping[str, Any]], list[dict[str, Any]]]
ANALYSES: Final[Registry[Analysis]] = Registry(
    "analysis",
    {
        "overall": "sonogauge.analyses.overall:overall",
        "baselines": "sonogauge.analyses.overall:baselines",
        "sizes": "sonogauge.analyses.sizes:sizes",
        "domains": "sonogauge.analyses.domains:domains",
        "sources": "sonogauge.analyses.domains:sources",
        "pairs": "sonogauge.analyses.pairs:pairs",
        "confusion": "sonogauge.analyses.confusion:confusion",
        "robustness": "sonogauge.analyses.robustness:robustness",
        "contamination": "sonogauge.analyses.contamination:contamination",
    },
    group="sonogauge.analyses",
)
# These read scores of any answer form, of one model or of several beside each other.
PanelAnalysis = Callable[[Panel, Mapping[str, Any]], list[dict[str, Any]]]
PANEL_ANALYSES: Final[Registry[PanelAnalysis]] = Registry(
    "analysis",
    {
        "abilities": "sonogauge.analyses.abilities:abilities",
        "verdicts": "sonogauge.analyses.abilities:verdict_shares",
        "scaling": "sonogauge.analyses.abilities:scaling",
        "physicians": "sonogauge.analyses.physicians:physicians",
        "text_only": "sonogauge.analyses.text_only:text_only",
        "causes": "sonogauge.analyses.errors:causes",
    },
    group="sonogauge.panel_analyses",
)
DATASHEET: Final = "datasheet"
# These need nothing but the benchmark.
BENCH_ANALYSES: Final[Registry[Callable[[Folder], list[dict[str, Any]]]]] = Registry(
    "analysis",
    {
        DATASHEET: "sonogauge.analyses.datasheet:datasheet",
        "composition": "sonogauge.analyses.composition:composition",
        "differentials": "sonogauge.analyses.composition:differentials",
    },
    group="sonogauge.bench_analyses",
)
# These compare files of annotations, before there is a benchmark.
ENTITIES: Final = "entities"
NAMES: Final = (*ANALYSES, *PANEL_ANALYSES, *BENCH_ANALYSES, ENTITIES)


@dataclass(frozen=True)
class Analysed:
    """What an analysis found: `document` is the object of `--json`."""

    document: dict[str, Any]

    def table(self, key: str) -> dict[str, Any]:
        """Return a table by its key; raise KeyError if there is none."""
        for one in self.document["tables"]:
            if one["key"] == key:
                return dict(one)
        raise KeyError(key)


def analyse(
    given: Path | str | ReplySource,
    analysis: str,
    *,
    bench: Path | str | None = None,
    against: Path | str | ReplySource | None = None,
    beside: Sequence[Path | str] = (),
    on_no_answer: str = "wrong",
    draws: int = 10_000,
    seed: int = 0,
    **options: Any,
) -> Analysed:
    """Analyse the answers of a run, or what a benchmark is made of.

    Args:
        given: a run or scores folder, a `.jsonl` file of replies (with `bench`), or replies in memory; for the
            `datasheet` a benchmark folder too; for `entities` annotations.
        analysis: one of `NAMES`.
        bench: benchmark folder; by default the one that the run or scores name.
        against: the run or scores before, for `pairs`; the re-checked annotations, for `entities`.
        beside: further scores folders, for the analyses of several models (`PANEL_ANALYSES`).
        on_no_answer: "wrong" or "exclude".
        draws: of the bootstrap.
        seed: of the bootstrap and exchanges.
        options: of the analysis: `size_rule`, `thresholds`, `shares`, `task` (sizes); `simulations`, `random_state`
            (baselines); `swaps` (pairs); `canary` (contamination); `raters` (physicians); `least` (text_only);
            `votes`, `size`, `sampling` (causes); `sizes`, `models_file` (scaling); `vocabulary` (entities).

    Raises:
        BadInput: an unknown analysis, input that cannot be used, facts that the analysis needs and nobody gave.
    """
    if analysis not in NAMES:
        raise BadInput(f"no analysis '{analysis}'", fix="known: " + ", ".join(NAMES))
    if analysis == ENTITIES:
        return _analyse_annotations(given, against, options.get("vocabulary"), draws, seed)
    if analysis in BENCH_ANALYSES:
        folder = _bench_folder(given, bench)
        return Analysed(_document(folder, None, analysis, BENCH_ANALYSES.load(analysis)(folder), on_no_answer))
    if analysis in PANEL_ANALYSES:
        return _analyse_panel(given, analysis, bench, beside, draws, seed, options)
    function = ANALYSES.load(analysis)
    study = read_study(given, bench=bench, draws=draws, seed=seed, on_no_answer=on_no_answer)
    given_options = {"seed": seed, **{name: value for name, value in options.items() if value is not None}}
    if against is not None:
        given_options["against"] = read_study(
            against, bench=bench or study.bench.path, draws=draws, seed=seed, on_no_answer=on_no_answer
        )
    return Analysed(_document(study.bench, study, analysis, function(study, given_options), on_no_answer))


def _analyse_panel(
    given: Path | str | ReplySource,
    analysis: str,
    bench: Path | str | None,
    beside: Sequence[Path | str],
    draws: int,
    seed: int,
    options: Mapping[str, Any],
) -> Analysed:
    if isinstance(given, ReplySource) or not Path(given).is_dir():
        raise BadInput("this analysis reads scores", field="given", fix="score first: sonogauge score … --out SCORES")
    panel = read_panel([given, *beside], bench=bench, draws=draws, seed=seed)
    stated = {name: value for name, value in options.items() if value is not None}
    tables = PANEL_ANALYSES.load(analysis)(panel, stated)
    document = _document(panel.bench, None, analysis, tables, "wrong")
    document["notices"] += [*panel.yardsticks(), SOURCES_NOTICE]
    return Analysed({**document, "model": ", ".join(panel.labels), "draws": draws, "seed": seed})


def _analyse_annotations(
    given: Path | str | ReplySource, against: Path | str | ReplySource | None, vocabulary: Any, draws: int, seed: int
) -> Analysed:
    from sonogauge.analyses.entities import entities

    if isinstance(given, ReplySource) or isinstance(against, ReplySource) or against is None:
        raise BadInput("this analysis reads two files of annotations", field="against", fix="name the re-checked ones")
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    spec = load_spec("medlesionvqa")
    found, hashes = entities(Path(given), Path(against), vocabulary, draws=draws, seed=seed)
    facts = {"benchmark": spec.name, "version": spec.version, "title": "annotations", "data": hashes}
    return Analysed({**facts, "analysis": ENTITIES, "notices": [SOURCES_NOTICE], "tables": [found]})


def _bench_folder(given: Path | str | ReplySource, bench: Path | str | None) -> Folder:
    if bench is not None:
        return Folder(Path(bench), "benchmark")
    if isinstance(given, ReplySource) or not Path(given).is_dir():
        raise BadInput("a file of replies needs its benchmark", field="bench")
    manifest = read_manifest(Path(given))
    if manifest.kind == "benchmark":
        return Folder(Path(given), "benchmark")
    source = manifest.input("benchmark")
    if source is None:
        raise BadInput("its manifest names no benchmark", file=given, fix="name it with --bench")
    return Folder(Path(source.path), "benchmark")


def _document(
    folder: Folder, study: Study | None, analysis: str, tables: Sequence[Mapping[str, Any]], on_no_answer: str
) -> dict[str, Any]:
    spec = read_spec(folder.path)
    facts = {"benchmark": spec.name, "version": spec.version, "title": spec.title, "data": folder.manifest.hash[:12]}
    notices = [*spec.notices, *([SOURCES_NOTICE] if study is not None else [])]
    own = {} if study is None else {"model": study.label, "on_no_answer": on_no_answer}
    return {**facts, **own, "analysis": analysis, "notices": notices, "tables": [dict(one) for one in tables]}


def view_analysis(document: Mapping[str, Any]) -> View:
    """Return the view of an analysis, from which every format of a report is made."""
    facts = [("benchmark", f"{document['benchmark']} {document['version']}"), ("analysis", document["analysis"])]
    facts += [(name, str(document[name])) for name in ("model", "on_no_answer") if name in document]
    facts.append(("data", document["data"]))
    return View(
        title=f"{document['analysis'].capitalize()} on {document['title']}",
        facts=tuple(facts),
        notices=tuple(document["notices"]),
        tables=tuple(declared_table(one) for one in document["tables"]),
        documents=(document,),
    )
