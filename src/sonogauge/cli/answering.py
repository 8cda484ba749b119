"""Commands that put questions to models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.base import Json, Seed, app, print_json, say

BaseUrl = Annotated[str | None, typer.Option(help="Address of the server, with or without /v1.")]
ApiKey = Annotated[str | None, typer.Option(help="Key of the server; by default from the environment.")]
ModelOption = Annotated[
    list[str] | None, typer.Option("--model-option", help="KEY=VALUE for the model (device=cpu); repeatable.")
]
Generation = Annotated[
    list[str] | None, typer.Option("--generation", help="KEY=VALUE for each call (top_p=0.9); repeatable.")
]
Temperature = Annotated[float | None, typer.Option(help="Temperature of each call (0).")]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens of a reply.")]


def _pairs(texts: list[str] | None, option: str) -> dict[str, Any]:
    import json

    found: dict[str, Any] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadInput(f"not KEY=VALUE: '{text}'", field=option, fix="write for example --" + option + " top_p=0.9")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _model_options(base_url: str | None, api_key: str | None, options: list[str] | None) -> dict[str, Any]:
    given = {"base_url": base_url, "api_key": api_key}
    return {**_pairs(options, "model-option"), **{key: value for key, value in given.items() if value is not None}}


def _generation(temperature: float | None, max_tokens: int | None, options: list[str] | None) -> dict[str, Any]:
    given = {"temperature": temperature, "max_tokens": max_tokens}
    return {**_pairs(options, "generation"), **{key: value for key, value in given.items() if value is not None}}


@app.command("run")
def run_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark folder.")],
    model: Annotated[str, typer.Option(help="Who answers: PROVIDER/NAME, for example baseline/majority.")],
    out: Annotated[Path, typer.Option(help="Folder for the replies; the same command again goes on.")],
    tasks: Annotated[str | None, typer.Option(help="Ask these tasks only, comma-separated.")] = None,
    limit: Annotated[int | None, typer.Option(help="Ask at most so many items.")] = None,
    split: Annotated[str, typer.Option(help="Which part of the benchmark to ask, for example test or val.")] = "test",
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="Also ask varied: no_image, blank_image (also =N, +circular), prompt=VERSION, anatomy=off, shuffle, "
            "circular, repeat=N, perturb=KIND:LEVEL; repeatable."
        ),
    ] = None,
    answer: Annotated[str | None, typer.Option(help="Also ask the place tasks for a box or a point.")] = None,
    only_varied: Annotated[bool, typer.Option("--only-varied", help="Leave out the plain questions.")] = False,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    model_option: ModelOption = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    generation: Generation = None,
    image_policy: Annotated[
        str, typer.Option(help="original, png, jpeg:QUALITY or max:PIXELS; images are sent as they are by default.")
    ] = "original",
    max_connections: Annotated[int, typer.Option(help="Questions asked at once.")] = 16,
    retries: Annotated[int, typer.Option(help="Retries after failures that may pass.")] = 5,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Ask again what failed before.")] = False,
    max_failures: Annotated[float, typer.Option(help="Share of failed requests that gives exit code 1.")] = 0.05,
    allow_upload: Annotated[bool, typer.Option("--allow-upload", help="Let private images leave.")] = False,
    price: Annotated[Path | None, typer.Option(help="File of prices per million tokens, for the cost.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Folder with prompt versions of your own.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Put the questions of a benchmark to a model.

    Stop it any time, the same command goes on.

    Example: sonogauge run bench/u2 --model baseline/majority --out runs/majority

    Example: sonogauge run bench/u2 --model openai-api/local/my-vlm --base-url http://127.0.0.1:8000 --out runs/my-vlm
    """
    from sonogauge.run import run

    result = run(
        bench,
        model,
        out,
        limit=limit,
        split=split,
        tasks=tasks.split(",") if tasks else None,
        seed=seed,
        vary=vary or (),
        answer=answer,
        only_varied=only_varied,
        generation=_generation(temperature, max_tokens, generation),
        image_policy=image_policy,
        model_options=_model_options(base_url, api_key, model_option),
        max_connections=max_connections,
        retries=retries,
        retry_errors=retry_errors,
        allow_upload=allow_upload,
        price=price,
        prompts=prompts,
        progress=True,
    )
    if as_json:
        print_json(result.manifest.model_dump(mode="json"))
    else:
        done = ", ".join(f"{count} {status}" for status, count in result.statuses.items() if count)
        print(f"replies: {done or 'none'}")
        for kind, count in sorted(result.failures.items()):
            print(f"  failed: {count} {kind}")
        print(f"run: {out}")
    code = result.exit_code(max_failures)
    if code:
        say(
            f"more than {max_failures:.0%} of the requests failed; the same command with --retry-errors asks them again"
        )
    raise typer.Exit(code)


@app.command("doctor")
def doctor_command(
    model: Annotated[str, typer.Option(help="PROVIDER/NAME, as for run.")],
    image: Annotated[Path | None, typer.Option(help="An image to send; by default a coloured square.")] = None,
    size: Annotated[int, typer.Option(help="Side of the square in pixels.")] = 512,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    model_option: ModelOption = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Send one image to a model and say what is wrong.

    Address, key, name, no vision, too large an image.

    Example: sonogauge doctor --model openai-api/local/my-vlm --base-url http://127.0.0.1:8000
    """
    from sonogauge.run import doctor

    found = doctor(
        model,
        model_options=_model_options(base_url, api_key, model_option),
        generation=_generation(temperature, max_tokens, generation),
        image=image,
        size=size,
    )
    if as_json:
        print_json({"fit": found.fit, "lines": list(found.lines)})
    else:
        for line in found.lines:
            print(line)
    raise typer.Exit(0 if found.fit else 1)


@app.command("view")
def view_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the run.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the log, .eval or .json; kept.")] = None,
    images: Annotated[bool, typer.Option(help="Embed the images; whoever gets the log gets them.")] = False,
    scenarios: Annotated[str | None, typer.Option(help="A scenario set, or 'present' for what has items.")] = None,
    opened: Annotated[bool, typer.Option("--open/--no-open", help="Show the log in a browser.")] = True,
) -> None:
    """Open a run in Inspect's viewer, as a log of Inspect.

    Needs the extra [inspect].

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
            say(f"log: {out}")
        if opened:
            raise typer.Exit(view(log))
