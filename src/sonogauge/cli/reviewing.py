"""Commands for answers that need a judge, and for what people say about items and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sonogauge._errors import BadInput
from sonogauge.cli.answering import ApiKey, BaseUrl, Generation, MaxTokens, ModelOption, _generation, _model_options
from sonogauge.cli.base import Json, Overwrite, Seed, app, print_json, say


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
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one answer of a judge.")] = 300.0,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again where a judge failed.")] = False,
    max_failures: Annotated[float, typer.Option(help="Share of failed verdicts that gives exit code 1.")] = 0.05,
    allow_upload: Annotated[
        bool, typer.Option("--allow-upload", help="Let texts about private images leave this machine.")
    ] = False,
    price: Annotated[Path | None, typer.Option(help="File of prices per million tokens, for the cost.")] = None,
    as_json: Json = False,
) -> None:
    """Have free-text replies judged at 0, 0.5 or 1.

    The verdicts are stored; score reads them with --verdicts.

    Example: sonogauge judge runs/my-vlm --judge openai/gpt-x --out verdicts/my-vlm

    Example: sonogauge judge runs/my-vlm --judge openai/gpt-x --judge anthropic/claude-x --out verdicts/my-vlm
    """
    from dataclasses import asdict

    from sonogauge.run.prices import read_prices
    from sonogauge.score.judge import judge as judge_replies
    from sonogauge.score.judging.ask import Patience
    from sonogauge.score.judging.shares import verdict_shares

    prices = {}
    if price is not None:
        for name in judge:
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
        patience=Patience(connections=max_connections, retries=retries, timeout=timeout),
        retry_failed=retry_failed,
        allow_upload=allow_upload,
    )
    benchmark = done.manifest.input("benchmark")
    shares = verdict_shares(out, benchmark.path if benchmark is not None else "")
    if as_json:
        print_json({**done.manifest.model_dump(mode="json"), "shares": [asdict(one) for one in shares]})
    else:
        counts = done.manifest.counts
        print("verdicts: " + ", ".join(f"{count} {status}" for status, count in done.statuses.items()))
        print(f"asked: {done.asked} now, {done.reused} stored before")
        for fault, count in counts["faults"].items():
            print(f"  failed: {count} {fault}")
        for name, error in done.errors.items():
            print(f"  last error of {name}: {error}")
        if counts["agreement"] is not None:
            own = counts["agreement"]
            said = ", ".join(
                f"{name} {'-' if own[name] is None else f'{own[name]:.3f}'}" for name in ("percent", "kappa")
            )
            print(f"agreement of the judges: {said} (quadratic weights, {own['units']} replies)")
        tokens = f"{counts['input_tokens']} tokens in, {counts['output_tokens']} out"
        cost = "not known" if done.cost is None else f"{done.cost:.4f} dollars"
        if not counts["asked"]:
            cost = "none, rules decided all"
        if done.cost is not None and done.unpriced:
            cost = f"at least {cost}, no price is known of {', '.join(done.unpriced)}"
        print(f"cost: {cost} ({tokens})")
        for one in shares:
            levels = ", ".join(f"{level}: {share:.0%}" for level, share in one.shares.items()) or "no verdict"
            failed = f" ({one.failed} without a verdict)" if one.failed else ""
            print(f"  {one.task}, {one.attribute or 'all'}, leniency {one.leniency}: {one.n} replies{failed}, {levels}")
        print(f"verdicts: {out}")
    if done.failed_share > max_failures:
        say(f"more than {max_failures:.0%} of the verdicts failed; --retry-failed asks for them again")
        raise typer.Exit(1)


@app.command("judge-agreement")
def judge_agreement_command(
    verdicts: Annotated[Path, typer.Argument(help="A folder of verdicts, written by judge.")],
    votes: Annotated[Path, typer.Option(help="Folder of votes of physicians, written by review import.")],
    bench: Annotated[Path | None, typer.Option(help="Benchmark folder, if it moved since judging.")] = None,
    weights: Annotated[str, typer.Option(help="Weights of kappa: quadratic or linear.")] = "quadratic",
    development: Annotated[float, typer.Option(help="Share of patients in the development part.")] = 0.5,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 2000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare judges with physicians.

    Also physicians with each other, and the score corrected by what they checked.

    Example: sonogauge judge-agreement verdicts/my-vlm --votes votes/physicians
    """
    from sonogauge.score.judging.agreement import judge_agreement
    from sonogauge.score.judging.tell import agreement_json, agreement_lines

    found = judge_agreement(
        verdicts,
        votes,
        bench=bench,
        weights="linear" if one_of("weights", weights, ("quadratic", "linear")) == "linear" else "quadratic",
        development=development,
        draws=draws,
        seed=seed,
    )
    if as_json:
        print_json(agreement_json(found))
    else:
        for line in agreement_lines(found):
            print(line)


review_app = typer.Typer(
    help="Have people check items in an annotation tool.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(review_app, name="review")


@review_app.command("export")
def review_export_command(
    bench: Annotated[Path, typer.Argument(help="A benchmark folder.")],
    form: Annotated[str, typer.Option("--for", help="engineer, expert, clinician, cause, verdict or answer.")],
    out: Annotated[Path, typer.Option(help="Folder for config.xml, tasks.json and images.")],
    format: Annotated[str, typer.Option(help="labelstudio.")] = "labelstudio",
    run: Annotated[Path | None, typer.Option(help="Run or .jsonl whose replies are shown (cause, verdict).")] = None,
    verdicts: Annotated[Path | None, typer.Option(help="Show replies that a judge was asked about.")] = None,
    adjudicate: Annotated[
        list[Path] | None, typer.Option(help="Folder of votes: show what they disagree on; repeatable.")
    ] = None,
    rule: Annotated[
        str, typer.Option(help="Open for --adjudicate: what has no majority, or what is not unanimous.")
    ] = "majority",
    scores: Annotated[
        Path | None, typer.Option(help="Scores of the run: show its wrong answers that need a reader (cause).")
    ] = None,
    sampling: Annotated[str, typer.Option(help="Draw of --sample with --scores: random or per_ability.")] = "random",
    tasks: Annotated[str | None, typer.Option(help="Items of these tasks, comma-separated.")] = None,
    split: Annotated[str | None, typer.Option(help="Items of this split; by default all but train.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="So many items, drawn at random.")] = None,
    views: Annotated[int, typer.Option(help="Reviewers that shall see each item, independently.")] = 1,
    level: Annotated[str, typer.Option(help="Level of the physicians who answer (primary, senior).")] = "",
    image_prefix: Annotated[
        str, typer.Option(help="What stands before an image's path in a task.")
    ] = "/data/local-files/?d=",
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Write items for reviewers.

    Quality checks by role, causes of errors, checks of judges, answers of physicians.

    Example: sonogauge review export bench/u2 --for clinician --views 3 --out review/clinician

    Example: sonogauge review export bench/u2 --for verdict --run runs/my-vlm --sample 200 --out review/judge

    Example: sonogauge review export bench/u2 --for cause --run runs/my-vlm --scores scores/my-vlm --out review/causes
    """
    from typing import cast

    from sonogauge.review import export_review
    from sonogauge.review.decide import RULES, Rule

    done = export_review(
        bench,
        out,
        form,
        format=format,
        run=run,
        verdicts=verdicts,
        adjudicate=adjudicate or (),
        rule=cast(Rule, one_of("rule", rule, RULES)),
        scores=scores,
        sampling=one_of("sampling", sampling, ("random", "per_ability")),
        tasks=tasks.split(",") if tasks else None,
        split=split,
        sample=sample,
        seed=seed,
        views=views,
        level=level,
        image_prefix=image_prefix,
        overwrite=overwrite,
    )
    print(f"tasks: {done.tasks}, each for {views} reviewer{'s' if views > 1 else ''}")
    print(f"review: {out} (config.xml = labelling interface, tasks.json = tasks to import, images = local storage)")


@review_app.command("import")
def review_import_command(
    file: Annotated[Path, typer.Argument(help="The tool's file; of Label Studio the JSON export.")],
    export: Annotated[Path, typer.Option(help="The folder that review export wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for the votes; for answers a .jsonl file of replies.")],
    format: Annotated[str, typer.Option(help="labelstudio.")] = "labelstudio",
    reviewers: Annotated[Path | None, typer.Option(help="File of names and levels by the tool's number.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Read what reviewers said.

    Votes become a table, answers of physicians become replies.

    Example: sonogauge review import project-1.json --export review/clinician --out votes/clinician
    """
    from sonogauge.review import import_review
    from sonogauge.review.incoming import read_reviewers

    one_of("format", format, ("labelstudio",))
    done = import_review(
        file,
        export,
        out,
        reviewers=read_reviewers(reviewers) if reviewers is not None else None,
        overwrite=overwrite,
    )
    print(f"read: {done.rows} of {done.reviewers} reviewers on {len(done.views)} items")
    if done.skipped.cancelled or done.skipped.unanswered:
        print(f"  passed over: {done.skipped.cancelled} cancelled, {done.skipped.unanswered} tasks without annotation")
    if done.short:
        print(f"  {done.short} items have fewer reviewers than asked")
    print(f"{'replies' if out.suffix == '.jsonl' else 'votes'}: {out}")


@review_app.command("agreement")
def review_agreement_command(
    votes: Annotated[list[Path], typer.Argument(help="One or several folders of votes.")],
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 2000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Tell how far reviewers agree.

    Within one role and one question: percent, kappa, AC1, alpha, with prevalence.

    Example: sonogauge review agreement votes/clinician
    """
    from sonogauge.review.tell import agreements_json, agreements_lines, read_agreements

    found = read_agreements(votes, draws=draws, seed=seed)
    if as_json:
        print_json(agreements_json(found))
    else:
        for line in agreements_lines(found):
            print(line)


@review_app.command("clean")
def review_clean_command(
    bench: Annotated[Path, typer.Argument(help="The benchmark that was reviewed.")],
    votes: Annotated[list[Path], typer.Option(help="Folder of votes; repeatable.")],
    out: Annotated[Path, typer.Option(help="Folder for the cleaned benchmark.")],
    rule: Annotated[str, typer.Option(help="majority or unanimous.")] = "majority",
    views: Annotated[int, typer.Option(help="Fewest votes that can decide.")] = 1,
    require_sign_off: Annotated[
        bool, typer.Option("--require-sign-off", help="Also leave out what no clinician signed off.")
    ] = False,
    unresolved: Annotated[str, typer.Option(help="Open disagreements: refuse, keep or remove.")] = "refuse",
    as_json: Json = False,
) -> None:
    """Write a new benchmark without the items at fault.

    Its manifest says what was changed and by whose votes.

    Example: sonogauge review clean bench/u2 --votes votes/expert --votes votes/clinician --out bench/u2-reviewed
    """
    from typing import cast

    from sonogauge.review.clean import UNRESOLVED, Unresolved, clean
    from sonogauge.review.decide import RULES, Rule

    done = clean(
        bench,
        votes,
        out,
        rule=cast(Rule, one_of("rule", rule, RULES)),
        views=views,
        require_sign_off=require_sign_off,
        unresolved=cast(Unresolved, one_of("unresolved", unresolved, UNRESOLVED)),
    )
    if as_json:
        print_json({"version": done.version, "counts": dict(done.counts), "changelog": done.changelog})
        return
    print("items: " + ", ".join(f"{count} {action}" for action, count in done.counts.items()))
    print(f"benchmark: {out}, version {done.version}")


def one_of(option: str, word: str, known: tuple[str, ...]) -> str:
    """Return a word that an option takes; raise BadInput for another."""
    if word not in known:
        raise BadInput(f"unknown: '{word}'", field=option, fix="known: " + ", ".join(known))
    return word
