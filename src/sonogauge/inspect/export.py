"""A run as an Inspect log, so that `inspect view` shows it and other tools of Inspect read it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.folders import Folder, Input
from sonogauge.hashes import canonical_hash
from sonogauge.inspect.judging import Judge, prediction_text, values_of
from sonogauge.items import Item
from sonogauge.models.baselines import baseline_replies
from sonogauge.run.images import CaseImages, ImageFault, ImagePolicy
from sonogauge.score import score
from sonogauge.score.replies import Reply

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import Content, ModelOutput
    from inspect_ai.scorer import Score

# Inspect wants to know when; the same run shall give the same log.
_NO_TIME: Final = "1970-01-01T00:00:00+00:00"
_SUFFIXES: Final = (".eval", ".json")


def write_log(
    run: Path | str,
    out: Path | str,
    *,
    bench: Path | str | None = None,
    images: bool = False,
    scenarios: str | None = None,
    draws: int = 1000,
) -> Path:
    """Write a run as an Inspect log with our scores in it; `sonogauge score` reads the same replies from it.

    Args:
        run: a finished run folder.
        out: the log, `.eval` or `.json`; replaced if it exists.
        bench: benchmark folder, if it moved since the run.
        images: embed the images that the items name; the log then passes them on to whoever gets it.
        scenarios: a scenario set of the benchmark, or "present", for the values shown.
        draws: of the bootstrap behind the intervals shown.

    Raises:
        BadInput: no finished run, no or another benchmark, another suffix, the extra is not installed.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise BadInput("an Inspect log needs Inspect", fix="pip install 'sonogauge[inspect]'") from error
    out = Path(out)
    if out.suffix not in _SUFFIXES:
        raise BadInput("not the name of an Inspect log", file=out, fix="end it in .eval or .json")
    if out.is_dir() or not out.parent.is_dir():
        raise BadInput("not a file in an existing folder", file=out, fix="choose another --out")
    found = score(Path(run), bench=bench, scenarios=scenarios, draws=draws, baselines=False)
    folder = Folder(run, "run")
    named = found.manifest.input("benchmark") or Input(role="benchmark", path="", hash="")
    log = _log(folder, Folder(named.path, "benchmark"), found.spec, values_of(found.spec, found.metrics), images)
    write_eval_log(log, out)
    return out


def _log(run: Folder, bench: Folder, spec: BenchmarkSpec, values: Mapping[str, float], images: bool) -> EvalLog:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalMetric, EvalResults, EvalScore, EvalSpec
    from inspect_ai.model import GenerateConfig

    asked = run.manifest.counts.get("asked") or {}
    split = str(asked.get("split") or "test")
    samples = list(_samples(run, bench, spec, split, images))
    epochs = max((sample.epoch for sample in samples), default=1)
    generation = run.manifest.parameters.get("generation") or {}
    options = {key: value for key, value in generation.items() if key in GenerateConfig.model_fields}
    identity = run.manifest.hash
    return EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=identity[:22],
            run_id=identity[:22],
            created=_NO_TIME,
            task=f"sonogauge/{spec.name}",
            task_id=bench.manifest.hash[:22],
            task_version=spec.version,
            dataset=EvalDataset(
                name=f"{spec.name} {spec.version}",
                location=str(bench.path.resolve()),
                samples=len({sample.id for sample in samples}),
                sample_ids=list(dict.fromkeys(str(sample.id) for sample in samples)),
            ),
            model=run.manifest.name,
            model_generate_config=GenerateConfig(**options),
            config=EvalConfig(epochs=epochs),
            packages={"sonogauge": run.manifest.maker.rpartition(" ")[2]},
            metadata={
                "benchmark": spec.name,
                "benchmark_version": spec.version,
                "benchmark_hash": bench.manifest.hash,
                "bench": str(bench.path.resolve()),
                "split": split,
                "run": run.manifest.parameters,
                "notices": run.manifest.notices,
            },
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=sum(sample.error is None for sample in samples),
            scores=[
                EvalScore(
                    name="strict",
                    scorer="strict",
                    metrics={name: EvalMetric(name=name, value=value) for name, value in values.items()},
                )
            ],
        ),
        samples=samples,
    )


def _samples(run: Folder, bench: Folder, spec: BenchmarkSpec, split: str, images: bool) -> Iterator[EvalSample]:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText

    judge = Judge(bench, spec, split)
    items = {row["item_id"]: (Item.from_row(row), target) for row, target in _with_targets(bench, split)}
    policy = ImagePolicy.parse(str(run.manifest.parameters.get("image_policy") or "original"))
    with ExitStack() as stack:
        pictures = stack.enter_context(closing(CaseImages(bench))) if images else None
        for row in run.rows("replies"):
            item, target = items[row["item_id"]]
            # The images of a varied question were made anew for it and are not kept.
            shown = _uris(item, pictures, policy) if pictures and not row["variant"] else ()
            content: list[Content] = [*(ContentImage(image=uri) for uri in shown), ContentText(text=item.question)]
            message = ChatMessageUser(id=f"question-{row['item_id']}", content=content)
            output = _output(row, run.manifest.name)
            failed = row["status"] == "error"
            reply = Reply(
                row["item_id"], row["variant"], row["epoch"], row["rater_id"], row["status"], row["text"], _size(row)
            )
            key = {name: row[name] for name in ("item_id", "variant", "rater_id")}
            yield EvalSample(
                id=" ".join(part for part in (row["item_id"], row["variant"], row["rater_id"]) if part),
                epoch=row["epoch"] + 1,
                input=[message],
                target=target or "",
                messages=[message, *(choice.message for choice in output.choices)],
                output=output,
                scores={"strict": _score(judge.row(reply))},
                metadata={
                    "task": item.task,
                    "dataset": item.dataset,
                    "anatomy": item.anatomy,
                    "group": item.group,
                    "reply_key": key,
                },
                error=EvalError(message=row["error"] or "no reply", traceback="", traceback_ansi="")
                if failed
                else None,
                uuid=canonical_hash([*key.values(), row["epoch"]])[:22],
            )


def _with_targets(bench: Folder, split: str) -> Iterator[tuple[dict[str, Any], str | None]]:
    rows = [row for row in bench.rows("items") if (row["split"] or "test") == split]
    return zip(rows, baseline_replies("oracle", [Item.from_row(row) for row in rows], [], 0), strict=True)


def _uris(item: Item, pictures: CaseImages, policy: ImagePolicy) -> Iterator[str]:
    for image in item.images:
        try:
            sent = policy.encode(pictures.read(image.case_id), pictures.facts[image.case_id], image.frame)
        except ImageFault as error:
            raise BadInput(f"item {item.item_id}: {error}", fix="write the log without --images") from error
        yield f"data:{sent.media_type};base64,{base64.b64encode(sent.data).decode('ascii')}"


def _output(row: Mapping[str, Any], model: str) -> ModelOutput:
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage

    given, made = row["input_tokens"] or 0, row["output_tokens"] or 0
    usage = ModelUsage(input_tokens=given, output_tokens=made, total_tokens=given + made) if given or made else None
    if row["status"] == "error":
        return ModelOutput(model=model, usage=usage, error=row["error"])
    message = ChatMessageAssistant(id=f"reply-{row['item_id']}", content=row["text"] or "", model=model)
    reason: Literal["max_tokens", "stop"] = "max_tokens" if row["status"] == "truncated" else "stop"
    return ModelOutput(
        model=model,
        choices=[ChatCompletionChoice(message=message, stop_reason=reason)],
        completion=row["text"] or "",
        usage=usage,
    )


def _score(row: Mapping[str, Any]) -> Score:
    from inspect_ai.scorer import Score

    return Score(
        value=dict(row["values"]),
        answer=prediction_text(row),
        explanation=f"not read: {row['reason']}" if row["reason"] else None,
        metadata={"status": row["status"], "reason": row["reason"], "excluded": row["excluded"]},
    )


def _size(row: Mapping[str, Any]) -> tuple[int, int] | None:
    sent = (row["images_sent"] or [None])[0]
    return (sent["width"], sent["height"]) if sent and sent["width"] and sent["height"] else None
