"""What Inspect finds by entry point: a task for every benchmark, our scorer, our metrics. Loaded by Inspect alone."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import closing
from logging import getLogger
from pathlib import Path
from typing import Any, Final

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ErrorEvent, SampleLimitEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import known_benchmarks, read_spec
from sonogauge.folders import Folder
from sonogauge.inspect.endings import ended
from sonogauge.inspect.judging import Judge, benchmark_values, prediction_text
from sonogauge.items import Item
from sonogauge.models.baselines import baseline_replies
from sonogauge.run.images import CaseImages, ImagePolicy
from sonogauge.run.plan import Questions
from sonogauge.run.privacy import check_privacy
from sonogauge.score.replies import Reply

DRAWS: Final = 1000


@task
def benchmark(
    bench: str = "",
    split: str = "test",
    tasks: str | list[str] | None = None,
    scenarios: str | None = None,
    image_policy: str = "original",
    draws: int = DRAWS,
    allow_upload: bool = False,
) -> Task:
    """Any benchmark folder.

    Args:
        bench: the benchmark folder that `sonogauge build` wrote.
        split: which part of it.
        tasks: codes of the tasks to ask, comma-separated; all by default.
        scenarios: a scenario set, or "present" = what has items; default of the benchmark.
        image_policy: as for `sonogauge run`; by default the original bytes.
        draws: of the bootstrap behind the intervals shown.
        allow_upload: let private images leave this machine.
    """
    return _task(bench, None, split, tasks, scenarios, image_policy, draws, allow_upload)


def _named(name: str) -> Callable[..., Task]:
    @task(name=name)
    def of_benchmark(
        bench: str = "",
        split: str = "test",
        tasks: str | list[str] | None = None,
        scenarios: str | None = None,
        image_policy: str = "original",
        draws: int = DRAWS,
        allow_upload: bool = False,
    ) -> Task:
        return _task(bench, name, split, tasks, scenarios, image_policy, draws, allow_upload)

    return of_benchmark


NAMED: Final = {name: _named(name) for name in known_benchmarks()}


def _task(*args: Any) -> Task:
    # What Inspect itself raises for a user's mistake: it is told in one line.
    from inspect_ai._util.error import PrerequisiteError

    try:
        return _make(*args)
    except BadInput as error:
        raise PrerequisiteError(str(error)) from error


def _make(
    bench: str,
    name: str | None,
    split: str,
    tasks: str | None,
    scenarios: str | None,
    image_policy: str,
    draws: int,
    allow_upload: bool,
) -> Task:
    if not bench:
        raise BadInput("no benchmark is named", fix="pass -T bench=DIR, the folder that `sonogauge build` wrote")
    folder = Folder(bench, "benchmark")
    spec = read_spec(folder.path)
    if name is not None and spec.name != name:
        raise BadInput(f"a folder of {spec.name}, not of {name}", file=bench, fix=f"use sonogauge/{spec.name}")
    if scenarios not in (None, "present"):
        spec.scenario_set(str(scenarios))
    ImagePolicy.parse(image_policy)
    chosen = Questions.read(folder, split, references=True).choose([tasks] if isinstance(tasks, str) else tasks, None)
    _check_privacy(folder, chosen, allow_upload)
    path = str(folder.path.resolve())
    return Task(
        dataset=MemoryDataset(_samples(chosen), name=f"{spec.name} {spec.version}", location=path),
        # In `setup`, so that another solver gets the images too.
        setup=images_first(path, image_policy),
        solver=generate(),
        scorer=strict(path, split),
        metrics=[sonogauge_values(path, split, scenarios, draws)],
        config=GenerateConfig(temperature=0.0),
        # A failed request is a failure of its item, counted as such, not one that disappears from the score.
        score_on_error=True,
        version=spec.version,
        metadata={
            "benchmark": spec.name,
            "benchmark_version": spec.version,
            "benchmark_hash": folder.manifest.hash,
            "bench": path,
            "split": split,
        },
    )


def _check_privacy(folder: Folder, items: list[Item], allow_upload: bool) -> None:
    """Refuse private images without the user's word: where the model is, Inspect knows only later."""
    with closing(CaseImages(folder)) as images:
        sent = {image.case_id for item in items for image in item.images if image.case_id in images.facts}
        private = sorted({images.facts[one].source for one in sent if images.facts[one].private})
        if private and not allow_upload:
            raise BadInput(
                f"private images (source {', '.join(private)}) would be sent to the model of inspect eval",
                file=folder.path,
                fix="pass -T allow_upload=true if you may send them",
            )
        for notice in check_privacy(images.facts, sent, "the model of inspect eval", allow_upload=True):
            getLogger(__name__).warning(notice)


def _samples(items: list[Item]) -> list[Sample]:
    targets = baseline_replies("oracle", items, [], 0)
    return [
        Sample(
            id=item.item_id,
            input=item.question,
            target=target or "",
            metadata={
                "task": item.task,
                "dataset": item.dataset,
                "anatomy": item.anatomy,
                "group": item.group,
                "images": [{"case_id": image.case_id, "frame": image.frame} for image in item.images],
            },
        )
        for item, target in zip(items, targets, strict=True)
    ]


@solver
def images_first(bench: str, image_policy: str = "original") -> Solver:
    """Put the images of an item before its question; they are read one sample at a time.

    Args:
        bench: the benchmark folder.
        image_policy: as for `sonogauge run`.
    """
    images = CaseImages(Folder(bench, "benchmark"))
    policy = ImagePolicy.parse(image_policy)

    def encoded(case_id: str, frame: int | None) -> ContentImage:
        sent = policy.encode(images.read(case_id), images.facts[case_id], frame)
        return ContentImage(image=f"data:{sent.media_type};base64,{base64.b64encode(sent.data).decode('ascii')}")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        import anyio

        content: list[Any] = []
        for one in state.metadata["images"]:
            content.append(await anyio.to_thread.run_sync(encoded, one["case_id"], one["frame"]))
        if content:
            state.messages = [ChatMessageUser(content=[*content, ContentText(text=state.input_text)])]
        return state

    return solve


@metric(scores="unreduced")
def sonogauge_values(bench: str, split: str = "test", scenarios: str | None = None, draws: int = DRAWS) -> Metric:
    """Totals and task values with intervals over patients, equal to those of `sonogauge score`.

    Args:
        bench: the benchmark folder.
        split: which part of it was asked.
        scenarios: a scenario set, or "present".
        draws: of the bootstrap.
    """

    def values(scores: list[SampleScore]) -> dict[str, float]:
        replies = [_stored(one) for one in scores]
        return benchmark_values(Path(bench), replies, split=split, scenarios=scenarios, draws=draws)

    return values


def _stored(one: SampleScore) -> Reply:
    facts = one.score.metadata or {}
    return Reply(str(one.sample_id), "", facts["epoch"], "", facts["status"], facts["text"])


@scorer(metrics=[])
def strict(bench: str, split: str = "test") -> Scorer:
    """Parse a reply strictly; the score is what the answer form counts of it, with the prediction or the reason.

    Args:
        bench: the benchmark folder.
        split: which part of it is asked.
    """
    judge = Judge(Folder(bench, "benchmark"), read_spec(bench), split)

    async def score(state: TaskState, target: Target) -> Score:
        events = transcript().events
        failed = any(isinstance(event, ErrorEvent) for event in events)
        limited = any(isinstance(event, SampleLimitEvent) for event in events)
        status, text = ended(state.output, failed=failed, limited=limited)
        reply = Reply(str(state.sample_id), "", state.epoch - 1, "", status, text)
        row = judge.row(reply)
        return Score(
            value=dict(row["values"]),
            answer=prediction_text(row),
            explanation=f"not read: {row['reason']}" if row["reason"] else None,
            metadata={
                "status": status,
                "text": text,
                "epoch": reply.epoch,
                "reason": row["reason"],
                "excluded": row["excluded"],
                "prediction": {key: value for key, value in (row["prediction"] or {}).items() if value is not None},
            },
        )

    return score
