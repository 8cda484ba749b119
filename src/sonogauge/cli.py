"""The command line: one command, one function; bad input ends with one line and exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sonogauge import __version__
from sonogauge._errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="sonogauge",
    help="Build, run, score and compare ultrasound benchmarks for vision-language models, with honest numbers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

BAD_INPUT = 2

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder made by sonogauge.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else to standard output.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sonogauge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False))


@app.command("build")
def build_command(
    name: Annotated[str, typer.Argument(help="A benchmark (see `sonogauge benchmarks`).")],
    out: Annotated[Path, typer.Option(help="Folder for the benchmark.")],
    data: Annotated[Path | None, typer.Option(help="Folder with the raw data.")] = None,
    max_dropped: Annotated[
        float | None, typer.Option(help="Share of rows that may be dropped before the data are refused (0.05).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, for a benchmark that is made at random (0).")] = None,
    patients: Annotated[int | None, typer.Option(help="Number of patients, for a simulated benchmark.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Turn raw data into a benchmark: questions, references, images.

    Example: sonogauge build u2bench --data ~/u2-bench --out bench/u2
    """
    from sonogauge.build import build, build_report

    options = {"max_dropped": max_dropped, "seed": seed, "patients": patients}
    given = {option: value for option, value in options.items() if value is not None}
    manifest = build(name, data, out, overwrite=overwrite, **given)
    if as_json:
        _print_json(manifest.model_dump(mode="json"))
        return
    for line in build_report(manifest):
        print(line)
    print(f"benchmark: {out}")


@app.command("run")
def run_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark folder.")],
    model: Annotated[str, typer.Option(help="Who answers, for example baseline/majority.")],
    out: Annotated[Path, typer.Option(help="Folder for the replies; the same command again goes on.")],
    tasks: Annotated[str | None, typer.Option(help="Ask these tasks only, comma-separated.")] = None,
    limit: Annotated[int | None, typer.Option(help="Ask at most so many items.")] = None,
    max_failures: Annotated[
        float, typer.Option(help="Share of failed requests above which the exit code is 1.")
    ] = 0.05,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Put the questions of a benchmark to a model.

    Example: sonogauge run bench/u2 --model baseline/majority --out runs/majority
    """
    from sonogauge.run import run

    result = run(bench, model, out, limit=limit, tasks=tasks.split(",") if tasks else None, seed=seed)
    if as_json:
        _print_json(result.manifest.model_dump(mode="json"))
    else:
        done = ", ".join(f"{count} {status}" for status, count in result.statuses.items() if count)
        print(f"replies: {done or 'none'}")
        print(f"run: {out}")
    raise typer.Exit(result.exit_code(max_failures))


@app.command("score")
def score_command(
    path: Annotated[Path, typer.Argument(help="A run folder or an Inspect log; with --replies the benchmark folder.")],
    beside: Annotated[
        Path | None, typer.Argument(metavar="BENCH", help="The benchmark folder, the same as --bench.")
    ] = None,
    replies: Annotated[Path | None, typer.Option(help="JSON lines of replies made elsewhere (item_id, text).")] = None,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the run.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the scores.")] = None,
    protocol: Annotated[str, typer.Option(help="strict or published.")] = "strict",
    weights: Annotated[str | None, typer.Option(help="Weights of the total named first: published or n_t.")] = None,
    scenarios: Annotated[str | None, typer.Option(help="A scenario set, or 'present' for what has items.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model, for replies made elsewhere.")] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    tolerance: Annotated[float | None, typer.Option(help="Tolerance of numbers on the scaled range.")] = None,
    failure_error: Annotated[str | None, typer.Option(help="Error of an unreadable number: worst or one.")] = None,
    baselines: Annotated[bool, typer.Option(help="Score the non-reading baselines beside it.")] = True,
    by: Annotated[
        list[str] | None, typer.Option(help="Slice by a column of items or cases, for example anatomy; repeatable.")
    ] = None,
    min_n: Annotated[int, typer.Option(help="Fewest items of a part that counts in the gap between parts.")] = 20,
    prevalence: Annotated[float | None, typer.Option(help="Prevalence for predictive values.")] = None,
    bertscore: Annotated[Path | None, typer.Option(help="Folder of a local encoder, for BERTScore.")] = None,
    bertscore_layer: Annotated[int | None, typer.Option(help="Layer of that encoder.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score replies under both protocols, with intervals, coverage and baselines.

    Example: sonogauge score runs/majority --scenarios present --out scores/majority

    Example: sonogauge score bench/u2 --replies replies.jsonl --json

    Example: sonogauge score logs/u2bench.eval
    """
    import tempfile

    from sonogauge.report import report
    from sonogauge.score import score

    with tempfile.TemporaryDirectory() as scratch:
        folder = out if out is not None else Path(scratch) / "scores"
        score(
            replies if replies is not None else path,
            bench=path if replies is not None else bench if bench is not None else beside,
            out=folder,
            protocol=protocol,
            scenarios=scenarios,
            weights=weights,
            model=model,
            draws=draws,
            seed=seed,
            tolerance=tolerance,
            failure_error=failure_error,
            baselines=baselines,
            by=by or (),
            min_n=min_n,
            prevalence=prevalence,
            bertscore=bertscore,
            bertscore_layer=bertscore_layer,
            overwrite=overwrite,
        )
        if as_json:
            print(report([folder], format="json", protocol=protocol).strip())
        else:
            _show([folder], protocol)
    if out is not None:
        _say(f"scores: {out}")


def _show(scores: list[Path], protocol: str) -> None:
    from sonogauge.report import view_scores
    from sonogauge.report.console import show

    show(view_scores(scores, protocol), _console())


def _console() -> Console:
    from rich.console import Console

    # A pipe has no width of its own; tables must not be cut in it.
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=160)


@app.command("score-table")
def score_table_command(
    file: Annotated[Path, typer.Argument(help="Predictions: csv, tsv, jsonl, json, parquet or xlsx.")],
    truth: Annotated[str | None, typer.Option(help="Column with the right answers.")] = None,
    prediction: Annotated[str | None, typer.Option(help="Column with the replies, as the model gave them.")] = None,
    answer: Annotated[str | None, typer.Option(help="choice, multi_choice, number or text.")] = None,
    options: Annotated[str | None, typer.Option(help="Options of a choice, comma-separated; else the truths.")] = None,
    group: Annotated[str | None, typer.Option(help="Column with the patient, the unit of resampling.")] = None,
    stratum: Annotated[str | None, typer.Option(help="Column with the source data set.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Column to slice by; repeatable.")] = None,
    low: Annotated[float | None, typer.Option(help="Lower end of the range of a number.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper end of the range of a number.")] = None,
    unit: Annotated[str, typer.Option(help="Unit of a number.")] = "",
    tolerance: Annotated[float, typer.Option(help="Tolerance of numbers on the scaled range.")] = 0.1,
    id: Annotated[str | None, typer.Option(help="Column that names the row.")] = None,
    truth_file: Annotated[Path | None, typer.Option(help="File with the truths, joined by id.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="COLUMN=VALUE of rows to keep; repeatable.")] = None,
    positive: Annotated[str | None, typer.Option(help="Options that make a test positive, comma-separated.")] = None,
    ordinal: Annotated[str | None, typer.Option(help="Options in their order, comma-separated.")] = None,
    prevalence: Annotated[float | None, typer.Option(help="Prevalence for predictive values.")] = None,
    min_n: Annotated[int, typer.Option(help="Fewest items of a part that counts in the gap between parts.")] = 20,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    processes: Annotated[int, typer.Option(help="Processes that parse.")] = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score a prediction file of any tool: metrics, intervals and slices. VLMEvalKit result files need no option.

    Example: sonogauge score-table preds.csv --truth label --prediction reply --answer choice --group patient --by sex

    Example: sonogauge score-table preds.json --truth-file key.json --truth answer --answer choice --json
    """
    from sonogauge.score.table import score_table
    from sonogauge.score.table_text import table_lines

    def several(text: str | None) -> list[str]:
        return [one.strip() for one in text.split(",") if one.strip()] if text else []

    scores = score_table(
        file,
        truth=truth,
        prediction=prediction,
        answer=answer,
        options=several(options),
        group=group,
        stratum=stratum,
        by=by or (),
        low=low,
        high=high,
        unit=unit,
        tolerance=tolerance,
        id=id,
        truth_file=truth_file,
        where=where or (),
        positive=several(positive),
        ordinal=several(ordinal),
        prevalence=prevalence,
        min_n=min_n,
        draws=draws,
        seed=seed,
        processes=processes,
    )
    _say(*(f"! {notice}" for notice in scores.notices))
    if as_json:
        _print_json(scores.to_json())
        return
    for line in table_lines(scores, unit):
        print(line)


@app.command("report")
def report_command(
    scores: Annotated[
        list[Path], typer.Argument(help="One or several scores folders of one benchmark; for a page also a comparison.")
    ],
    format: Annotated[
        str | None, typer.Option(help="md, csv, latex, json or page; by default page for .html, else md.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; without it the text is printed.")] = None,
    protocol: Annotated[str, typer.Option(help="strict or published.")] = "strict",
    gallery: Annotated[int, typer.Option(help="How many cases a page shows at most.")] = 60,
    figures: Annotated[Path | None, typer.Option(help="Folder for the figures as SVG and PNG.")] = None,
    show_restricted_images: Annotated[
        bool, typer.Option("--show-restricted-images", help="Also show images that may not be redistributed.")
    ] = False,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since scoring.")] = None,
) -> None:
    """Render scores as tables, or as one page that opens from disk.

    Example: sonogauge report scores/majority scores/gpt --out report.html

    Example: sonogauge report scores/majority scores/gpt --format latex --out table.tex
    """
    from sonogauge.report import report

    if format == "page" and out is None:
        raise BadInput("a page needs a file", field="out", fix="pass --out report.html")
    text = report(
        scores,
        out,
        format,
        protocol,
        gallery=gallery,
        figures=figures,
        show_restricted_images=show_restricted_images,
        bench=bench,
    )
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        _say(f"report: {out}")
    if figures is not None:
        _say(f"figures: {figures}")


@app.command("compare")
def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark (or JSON lines, with --bench).")],
    against: Annotated[Path | None, typer.Option(help="Compare all with this run only.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Also by dataset, anatomy, determinable, source or a meta key.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the comparison.")] = None,
    ablation: Annotated[
        str | None, typer.Option(help="anatomy, image, scale, instruction, repeats, rotations or groups.")
    ] = None,
    variant: Annotated[str, typer.Option(help="Which variant of the runs; empty = the unvaried one.")] = "",
    scenarios: Annotated[str | None, typer.Option(help="A scenario set; by default what has items.")] = None,
    margin: Annotated[float | None, typer.Option(help="Margin of non-inferiority (0 to 1, higher is better).")] = None,
    correction: Annotated[str, typer.Option(help="holm or bh.")] = "holm",
    tasks: Annotated[str | None, typer.Option(help="Tasks of an ablation, comma-separated.")] = None,
    items: Annotated[Path | None, typer.Option(help="File of item ids, one a line, to compare on.")] = None,
    models: Annotated[Path | None, typer.Option(help="A models.yaml of your own.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="MODEL=BILLIONS of parameters, for --ablation scale.")] = None,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the runs.")] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    swaps: Annotated[int, typer.Option(help="Random exchanges of the test.")] = 9_999,
    format: Annotated[str | None, typer.Option(help="Print as md, csv, latex or json.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare runs on the same items: differences, tests, ranks; or a named ablation.

    Example: sonogauge compare runs/gpt runs/qwen runs/majority --against runs/majority --by anatomy

    Example: sonogauge compare runs/gpt --ablation image
    """
    from sonogauge.compare import compare, view_comparison
    from sonogauge.compare.ablations.scale import read_sizes
    from sonogauge.report.formats import FORMATS, render

    if format is not None:
        FORMATS.load(format)
    found = compare(
        runs,
        against=against,
        by=by,
        out=out,
        bench=bench,
        scenarios=scenarios,
        variant=variant,
        margin=margin,
        correction=correction,
        ablation=ablation,
        tasks=tasks.split(",") if tasks else None,
        items=items,
        models_file=models,
        sizes=read_sizes(size or []),
        draws=draws,
        swaps=swaps,
        seed=seed,
        overwrite=overwrite,
    )
    view = view_comparison(found.document)
    if as_json or format is not None:
        print(render(view, "json" if as_json or format is None else format).strip())
    else:
        from sonogauge.report.console import show

        show(view, _console(), None)
    if out is not None:
        _say(f"comparison: {out}")


@app.command("view")
def view_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the run.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the log, .eval or .json; kept.")] = None,
    images: Annotated[bool, typer.Option(help="Embed the images; whoever gets the log gets them.")] = False,
    scenarios: Annotated[str | None, typer.Option(help="A scenario set, or 'present' for what has items.")] = None,
    opened: Annotated[bool, typer.Option("--open/--no-open", help="Show the log in a browser.")] = True,
) -> None:
    """Write a run as an Inspect log and open Inspect's viewer on it; needs the extra [inspect].

    Example: sonogauge view runs/majority --images

    Example: sonogauge view runs/majority --no-open --out majority.eval
    """
    import tempfile

    from sonogauge.inspect.export import write_log
    from sonogauge.inspect.viewer import view

    if out is None and not opened:
        raise BadInput("nothing to write and nothing to show", field="out", fix="give --out, or leave out --no-open")
    with tempfile.TemporaryDirectory() as scratch:
        log = write_log(
            run, out if out is not None else Path(scratch) / "run.eval", bench=bench, images=images, scenarios=scenarios
        )
        if out is not None:
            _say(f"log: {out}")
        if opened:
            raise typer.Exit(view(log))


@app.command("import")
def import_command(
    name: Annotated[str, typer.Argument(help="A known source (see `sonogauge sources`) or a kind of files.")],
    directory: Annotated[Path, typer.Argument(help="The folder with your copy.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the cases; needed unless --explain.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="YAML that says what your files mean.")] = None,
    explained: Annotated[bool, typer.Option("--explain", help="Show what is understood of the first files.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Mark all cases as private: never published.")] = False,
    max_dropped: Annotated[float, typer.Option(help="Share of images that may be dropped.")] = 0.05,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Turn a folder of images, masks and tables into cases.

    Example: sonogauge import busi ~/Dataset_BUSI_with_GT --out cases/busi

    Example: sonogauge import folder ~/scans --map scans.yaml --private --explain
    """
    from sonogauge.sources.importer import explain, import_cases, report_lines

    if explained:
        print(*explain(name, directory, map_file=map_file), sep="\n")
        return
    if out is None:
        raise BadInput("no folder for the cases", field="out", fix="pass --out FOLDER, or --explain to look first")
    manifest = import_cases(
        name, directory, out, map_file=map_file, private=private, max_dropped=max_dropped, overwrite=overwrite
    )
    if as_json:
        _print_json(manifest.model_dump(mode="json"))
        return
    print(*report_lines(manifest), f"cases: {out}", sep="\n")


@app.command("sources")
def sources_command(as_json: Json = False) -> None:
    """List the known sources of images and the kinds of files that can be imported.

    Example: sonogauge sources
    """
    from sonogauge.sources.catalogue import KINDS, known_source, known_sources

    specs = [known_source(name) for name in known_sources()]
    if as_json:
        _print_json(
            {"sources": [one.model_dump(mode="json", exclude={"layouts"}) for one in specs], "kinds": list(KINDS)}
        )
        return
    for one in specs:
        print(f"{one.name}: {one.title}")
        patient = "patient ids" if one.patient_id else "no patient ids"
        print(f"  {one.organ}; {', '.join(one.annotations)}; {patient}; layout verified by: {one.verified}")
        print(f"  licence: {one.licence}")
        print(f"  {'sonogauge get ' + one.name if one.obtain.files else one.obtain.how}")
    print(f"your own files: {', '.join(KINDS)}")


@app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(help="A known source whose files are open.")],
    out: Annotated[Path, typer.Option(help="Folder for the files; the same command again goes on.")],
    accept_licence: Annotated[bool, typer.Option("--accept-licence", help="You have read the licence.")] = False,
    as_json: Json = False,
) -> None:
    """Download an open source and unpack it.

    Example: sonogauge get hc18 --out ~/hc18 --accept-licence
    """
    from sonogauge.sources.catalogue import known_source
    from sonogauge.sources.download import get_source

    spec = known_source(name)
    if not accept_licence:
        _say(f"{spec.title}", f"licence: {spec.licence}", f"citation: {spec.citation}", f"page: {spec.obtain.page}")
        if not sys.stdin.isatty() or not typer.confirm("Do you accept this licence?", err=True):
            raise BadInput("the licence was not accepted", fix="read it and pass --accept-licence")
    files = get_source(spec, out)
    if as_json:
        _print_json({"source": name, "files": [one.as_dict() for one in files]})
        return
    for one in files:
        print(f"{one.name}: {one.bytes} bytes, sha256 {one.sha256}, {one.state}")
    print(f"files: {out}")


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for all the demo makes.")] = Path("demo"),
    seed: Seed = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the web browser.")] = False,
) -> None:
    """Build the synthetic benchmark, run baselines and an image-reading reference model, score and show them.

    Needs no download and no key. Simulated images, not clinical.

    Example: sonogauge demo --out demo --open
    """
    from sonogauge.demo import PAGE, demo

    demo(out, seed=seed, console=_console())
    page = (out / PAGE).resolve()
    _say(f"page: {page}")
    if open_page:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            _say("no web browser was found; open the page by hand")


@app.command("benchmarks")
def benchmarks_command(as_json: Json = False) -> None:
    """List the benchmarks that ship with this version.

    Example: sonogauge benchmarks
    """
    from sonogauge.benchmarks.spec import known_benchmarks, load_spec

    specs = [load_spec(name) for name in known_benchmarks()]
    if as_json:
        _print_json(
            [
                {
                    "name": one.name,
                    "version": one.version,
                    "title": one.title,
                    "licence": one.licence,
                    "tasks": list(one.tasks),
                    "scenarios": len(one.scenarios),
                    "sets": list(one.sets),
                    "citation": one.citation,
                }
                for one in specs
            ]
        )
        return
    for one in specs:
        print(f"{one.name} {one.version}: {one.title}")
        print(f"  {len(one.scenarios)} scenarios, tasks {', '.join(one.tasks)}; sets {', '.join(one.sets)}")
        print(f"  licence of the data: {one.licence}")


def main() -> NoReturn:
    """Run the command line; the console script."""
    try:
        app(standalone_mode=True)
    except BadInput as error:
        _say(f"error: {error}")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        # The reader of a pipe went away; closing stderr keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(1)
    sys.exit(0)
