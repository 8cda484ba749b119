"""Commands that make benchmarks and cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.base import Json, Overwrite, app, print_json, say


@app.command("import")
def import_command(
    name: Annotated[str, typer.Argument(help="A known source (see `sonogauge sources`) or a kind of files.")],
    directory: Annotated[Path, typer.Argument(help="The folder with your copy.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the cases; needed unless --explain.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="YAML that says what your files mean.")] = None,
    layout: Annotated[str | None, typer.Option(help="Which layout to read, of a source that has several.")] = None,
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
        print(*explain(name, directory, map_file=map_file, layout=layout), sep="\n")
        return
    if out is None:
        raise BadInput("no folder for the cases", field="out", fix="pass --out FOLDER, or --explain to look first")
    _confirm_licence(name, private)
    manifest = import_cases(
        name,
        directory,
        out,
        map_file=map_file,
        layout=layout,
        private=private,
        max_dropped=max_dropped,
        overwrite=overwrite,
    )
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    print(*report_lines(manifest), f"cases: {out}", sep="\n")


def _confirm_licence(name: str, private: bool) -> None:
    """Ask a person at a terminal to agree to a licence that nobody verified; a script reads it in the notes."""
    from sonogauge.sources.catalogue import KINDS, known_source

    if private or name in KINDS or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    spec = known_source(name)
    if spec.licence_checked:
        return
    say(f"{spec.title}", f"licence: {spec.licence}", f"citation: {spec.citation}")
    if not typer.confirm("Is this right for your copy?", default=True, err=True):
        raise BadInput("the licence was not confirmed", fix="read it at the source first")


@app.command("sources")
def sources_command(as_json: Json = False) -> None:
    """List the known image sets and kinds of files.

    Example: sonogauge sources
    """
    from sonogauge.sources.catalogue import KINDS, known_source, known_sources

    specs = [known_source(name) for name in known_sources()]
    if as_json:
        print_json(
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
        say(f"{spec.title}", f"licence: {spec.licence}", f"citation: {spec.citation}", f"page: {spec.obtain.page}")
        if not sys.stdin.isatty() or not typer.confirm("Do you accept this licence?", err=True):
            raise BadInput("the licence was not accepted", fix="read it and pass --accept-licence")
    files = get_source(spec, out)
    if as_json:
        print_json({"source": name, "files": [one.as_dict() for one in files]})
        return
    for one in files:
        print(f"{one.name}: {one.bytes} bytes, sha256 {one.sha256}, {one.state}")
    print(f"files: {out}")


@app.command("build")
def build_command(
    name: Annotated[str, typer.Argument(help="A benchmark (see `sonogauge benchmarks`), or the file of a recipe.")],
    out: Annotated[Path, typer.Option(help="Folder for the benchmark.")],
    data: Annotated[Path | None, typer.Option(help="Folder with the raw data.")] = None,
    max_dropped: Annotated[
        float | None, typer.Option(help="Share of rows that may be dropped before the data are refused (0.05).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, for a benchmark that is made at random (0).", min=0)] = None,
    patients: Annotated[int | None, typer.Option(help="Number of patients, for a simulated benchmark.")] = None,
    engine: Annotated[str | None, typer.Option(help="local, ray or ray://HOST:PORT, for a recipe.")] = None,
    workers: Annotated[int | None, typer.Option(help="Threads or processes, for a recipe.", min=1)] = None,
    parameters: Annotated[
        Path | None, typer.Option(help="YAML file of declared parameters, for a benchmark built from cases.")
    ] = None,
    writer: Annotated[str | None, typer.Option(help="Model that writes the questions, for ultrag.")] = None,
    allow_upload: Annotated[bool, typer.Option("--allow-upload", help="Let private images go to the writer.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Refuse to write a recipe's benchmark that leaks.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Turn raw data or cases into a benchmark.

    Questions, references and images in one folder.

    Example: sonogauge build u2bench --data ~/u2-bench --out bench/u2

    Example: sonogauge build fetal_gauge --data cases/ --out bench/fetal

    Example: sonogauge build ultrag --data cases/ --out bench/ultrag

    Example: sonogauge build recipe.yaml --data ~/scans --out bench/own
    """
    from sonogauge.build import build, build_report

    options: dict[str, Any] = {
        "max_dropped": max_dropped,
        "seed": seed,
        "patients": patients,
        "engine": engine,
        "workers": workers,
    }
    options |= {"check": check or None, "parameters": parameters}
    if writer is not None:
        from sonogauge.models import load_model
        from sonogauge.models.question_writer import ModelWriter

        options["writer"] = ModelWriter(load_model(writer), allow_upload=allow_upload)
    given = {option: value for option, value in options.items() if value is not None}
    manifest = build(name, data, out, overwrite=overwrite, **given)
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    for line in build_report(manifest):
        print(line)
    print(f"benchmark: {out}")


@app.command("benchmarks")
def benchmarks_command(as_json: Json = False) -> None:
    """List the benchmarks that ship with this version.

    Example: sonogauge benchmarks
    """
    from sonogauge.benchmarks.spec import known_benchmarks, load_spec

    specs = [load_spec(name) for name in known_benchmarks()]
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "version": one.version,
                    "title": one.title,
                    "licence": one.licence,
                    "tasks": list(one.tasks),
                    # None: they are those of the sources that a user builds it from.
                    "scenarios": len(one.scenarios) or None,
                    "sets": list(one.sets),
                    "citation": one.citation,
                }
                for one in specs
            ]
        )
        return
    for one in specs:
        print(f"{one.name} {one.version}: {one.title}")
        made = (
            f"{len(one.scenarios)} scenarios" if one.scenarios else "scenarios: those of the sources it is built from"
        )
        print(f"  {made}, tasks {', '.join(one.tasks)}; sets {', '.join(one.sets)}")
        print(f"  licence of the data: {one.licence}")
