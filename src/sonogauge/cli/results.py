"""Commands from replies to numbers and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.answering import ApiKey, BaseUrl, ModelOption, _model_options
from sonogauge.cli.base import Json, Overwrite, Seed, app, print_json, say, show_scores


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
    split: Annotated[str | None, typer.Option(help="The part of the benchmark, for replies made elsewhere.")] = None,
    extractions: Annotated[
        Path | None, typer.Option(help="Readings made by `sonogauge extract`, where the rules read no choice.")
    ] = None,
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
    verdicts: Annotated[Path | None, typer.Option(help="Folder of verdicts that judge wrote on these replies.")] = None,
    coords: Annotated[
        str | None, typer.Option(help="Coordinates of the model: mille, unit, pixel; mille:yxyx.")
    ] = None,
    judge_coverage: Annotated[float, typer.Option(help="Least share of verdicts a judge must have given.")] = 0.95,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score replies: values, intervals, coverage.

    Both protocols, with the baselines beside them.

    Example: sonogauge score runs/majority --scenarios present --out scores/majority

    Example: sonogauge score bench/u2 --replies replies.jsonl --json

    Example: sonogauge score logs/u2bench.eval
    """
    import tempfile

    from sonogauge.report import report
    from sonogauge.score import score

    with tempfile.TemporaryDirectory() as scratch:
        folder = out if out is not None else Path(scratch) / "scores"
        scored = score(
            replies if replies is not None else path,
            bench=path if replies is not None else bench if bench is not None else beside,
            out=folder,
            protocol=protocol,
            scenarios=scenarios,
            split=split,
            extractions=extractions,
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
            verdicts=verdicts,
            judge_coverage=judge_coverage,
            coords=coords,
            overwrite=overwrite,
        )
        if as_json:
            print(report([folder], format="json", protocol=protocol).strip())
        else:
            show_scores([folder], protocol)
    if scored.manifest.counts.get("missing") and scenarios != "present":
        say("Data sets are missing, so some values are not given; --scenarios present scores what is there.")
    if out is not None:
        say(f"scores: {out}")


@app.command("extract")
def extract_command(
    path: Annotated[Path, typer.Argument(help="A run folder; with --replies the benchmark folder.")],
    extractor: Annotated[str, typer.Option(help="Who reads: PROVIDER/NAME.")],
    out: Annotated[Path, typer.Option(help="File for the readings; the same command again asks nothing twice.")],
    replies: Annotated[Path | None, typer.Option(help="JSON lines of replies made elsewhere (item_id, text).")] = None,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    model_option: ModelOption = None,
    max_connections: Annotated[int, typer.Option(min=1, help="Questions asked at once.")] = 8,
    allow_upload: Annotated[
        bool, typer.Option("--allow-upload", help="Let texts about private images leave this machine.")
    ] = False,
) -> None:
    """Have a model read choices that the rules cannot.

    Score then takes the readings with --extractions.

    Example: sonogauge extract runs/my-vlm --extractor openai/gpt-x --out readings.jsonl
    """
    from sonogauge.score.extraction import extract

    done = extract(
        replies if replies is not None else path,
        out,
        extractor,
        bench=path if replies is not None else None,
        model_options=_model_options(base_url, api_key, model_option),
        connections=max_connections,
        allow_upload=allow_upload,
    )
    failed = sum(text is None for _, text in done.found.values())
    print(f"readings: {len(done.found)} of {done.extractor}, {failed} failed")
    print(f"readings: {out}")


@app.command("score-table")
def score_table_command(
    file: Annotated[Path, typer.Argument(help="Predictions: csv, tsv, jsonl, json, parquet or xlsx.")],
    truth: Annotated[str | None, typer.Option(help="Column with the right answers.")] = None,
    prediction: Annotated[str | None, typer.Option(help="Column with the replies, as the model gave them.")] = None,
    answer: Annotated[str | None, typer.Option(help="choice, multi_choice, number or text.")] = None,
    options: Annotated[
        str | None, typer.Option(help="Options of a choice, comma-separated or a JSON list; else the truths.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Column with the patient, the unit of resampling.")] = None,
    stratum: Annotated[str | None, typer.Option(help="Column with the source data set.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Column to slice by; repeatable.")] = None,
    low: Annotated[float | None, typer.Option(help="Lower end of the range of a number.")] = None,
    high: Annotated[float | None, typer.Option(help="Upper end of the range of a number.")] = None,
    unit: Annotated[str, typer.Option(help="Unit of a number.")] = "",
    tolerance: Annotated[float, typer.Option(help="Tolerance of numbers on the scaled range.")] = 0.1,
    measure: Annotated[
        str | None, typer.Option(help="What a number measures (head circumference), for readers' own tolerance.")
    ] = None,
    clinical: Annotated[bool, typer.Option("--clinical", help="Also count the clinical facts of texts.")] = False,
    facts: Annotated[Path | None, typer.Option(help="CSV file for the facts of each row; counts them too.")] = None,
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
    """Score a prediction file of any tool.

    Metrics, intervals and slices. VLMEvalKit result files need no option.

    Example: sonogauge score-table preds.csv --truth label --prediction reply --answer choice --group patient --by sex

    Example: sonogauge score-table preds.json --truth-file key.json --truth answer --answer choice --json
    """
    from sonogauge.score.table import score_table
    from sonogauge.score.table_text import table_lines

    def several(text: str | None) -> list[str]:
        if text and text.lstrip().startswith("["):
            try:
                return [str(one) for one in json.loads(text)]
            except ValueError as error:
                raise BadInput(f"not a JSON list: {text}", fix='write ["first, with a comma", "second"]') from error
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
        measure=measure,
        clinical=clinical,
        facts=facts,
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
    say(*(f"! {notice}" for notice in scores.notices))
    if as_json:
        print_json(scores.to_json())
        return
    for line in table_lines(scores, unit):
        print(line)
    if facts is not None:
        say(f"facts: {facts}")


@app.command("report")
def report_command(
    scores: Annotated[
        list[Path], typer.Argument(help="One or several scores folders of one benchmark; for a page also a comparison.")
    ],
    format: Annotated[
        str | None, typer.Option(help="md, csv, latex, json or page; by default what --out ends in, else md.")
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
    """Render scores as tables or as one page.

    The page opens from disk and fetches nothing.

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
        say(f"report: {out}")
    if figures is not None:
        say(f"figures: {figures}")
