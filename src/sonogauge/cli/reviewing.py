"""Commands for answers that need a judge, and for what people say about items and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge.cli.answering import ApiKey, BaseUrl, Generation, MaxTokens, ModelOption, _generation, _model_options
from sonogauge.cli.base import Json, app, print_json, say


@app.command("judge")
def judge_command(
    path: Annotated[Path, typer.Argument(help="A run folder or an Inspect log; with --replies the benchmark folder.")],
    judge: Annotated[
        list[str], typer.Option(help="Who judges: PROVIDER/NAME; repeatable, the median over judges counts.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the verdicts; the same command again asks nothing twice.")],
    replies: Annotated[Path | None, typer.Option(help="JSON lines of replies made elsewhere (item_id, text).")] = None,
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since the run.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Judge these tasks, comma-separated; by default those with judge_score.")
    ] = None,
    prompt: Annotated[Path | None, typer.Option(help="Prompt file of your own, with {data} and {boundary}.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the judged model, for replies made elsewhere.")] = None,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    model_option: ModelOption = None,
    max_tokens: MaxTokens = None,
    generation: Generation = None,
    max_connections: Annotated[int, typer.Option(min=1, help="Questions asked at once.")] = 8,
    retries: Annotated[int, typer.Option(help="Retries after failures that may pass.")] = 5,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again where a judge failed.")] = False,
    max_failures: Annotated[float, typer.Option(help="Share of failed verdicts that gives exit code 1.")] = 0.05,
    allow_upload: Annotated[
        bool, typer.Option("--allow-upload", help="Let texts about private images leave this machine.")
    ] = False,
    price: Annotated[Path | None, typer.Option(help="File of prices per million tokens, for the cost.")] = None,
    as_json: Json = False,
) -> None:
    """Have free-text replies judged at 0, 0.5 or 1; score then reads the stored verdicts with --verdicts.

    Example: sonogauge judge runs/my-vlm --judge openai/gpt-x --out verdicts/my-vlm

    Example: sonogauge judge runs/my-vlm --judge openai/gpt-x --judge anthropic/claude-x --out verdicts/my-vlm
    """
    from sonogauge.run.prices import read_prices
    from sonogauge.score.judge import judge as judge_replies
    from sonogauge.score.judging.ask import Patience

    prices = {}
    for name in judge if price is not None else ():
        found = read_prices(price, name) or read_prices(price, name.rpartition("/")[2])
        if found is not None:
            prices[name] = found
    done = judge_replies(
        replies if replies is not None else path,
        out,
        judge,
        bench=path if replies is not None else bench,
        tasks=tasks.split(",") if tasks else None,
        prompt=prompt,
        generation=_generation(None, max_tokens, generation),
        model=model,
        model_options=_model_options(base_url, api_key, model_option),
        prices=prices,
        patience=Patience(connections=max_connections, retries=retries),
        retry_failed=retry_failed,
        allow_upload=allow_upload,
    )
    if as_json:
        print_json(done.manifest.model_dump(mode="json"))
    else:
        counts = done.manifest.counts
        print("verdicts: " + ", ".join(f"{count} {status}" for status, count in done.statuses.items()))
        print(f"asked: {done.asked} now, {done.reused} stored before")
        for fault, count in counts["faults"].items():
            print(f"  failed: {count} {fault}")
        tokens = f"{counts['input_tokens']} tokens in, {counts['output_tokens']} out"
        print(f"cost: {'not known' if done.cost is None else f'{done.cost:.4f} dollars'} ({tokens})")
        print(f"verdicts: {out}")
    if done.failed_share > max_failures:
        say(f"more than {max_failures:.0%} of the verdicts failed; --retry-failed asks for them again")
        raise typer.Exit(1)
