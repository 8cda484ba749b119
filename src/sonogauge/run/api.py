"""The public function of this step: put the questions of a benchmark to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.answers.variants import answer_of
from sonogauge.folders import Folder, Input, Manifest
from sonogauge.models import Model, Outcome, Reader, load_model
from sonogauge.models.base import ReplyKey
from sonogauge.run.images import CaseImages, ImagePolicy
from sonogauge.run.log import RunFolder
from sonogauge.run.loop import Loop, Pace, entry_of, run_async
from sonogauge.run.plan import Job, Questions, in_order_of, plan
from sonogauge.run.prices import read_prices
from sonogauge.run.privacy import check_privacy
from sonogauge.run.progress import Shown, Silent
from sonogauge.run.requests import Requests
from sonogauge.run.vary import check_variation
from sonogauge.tables import REPLY_STATUSES

DEFAULT_GENERATION: Final[Mapping[str, Any]] = {"temperature": 0.0}


@dataclass(frozen=True)
class RunResult:
    """What a run holds when it ends.

    planned: questions of this call; statuses: all replies of the folder by status; failures: those with status error by
    kind; failed_share: share of this call's questions with status error; notices: what the user should know.
    """

    path: Path
    manifest: Manifest
    planned: int
    statuses: dict[str, int]
    failures: dict[str, int]
    failed_share: float
    notices: tuple[str, ...] = ()

    def exit_code(self, max_failures: float = 0.05) -> int:
        """Return 1 if a larger share failed than allowed, else 0."""
        return int(self.failed_share > max_failures)


def run(
    bench: Path | str,
    model: str | Model | Reader,
    out: Path | str,
    *,
    limit: int | None = None,
    tasks: Sequence[str] | None = None,
    split: str = "test",
    seed: int = 0,
    vary: Sequence[str] = (),
    answer: str | None = None,
    only_varied: bool = False,
    generation: Mapping[str, Any] | None = None,
    image_policy: str = "original",
    model_options: Mapping[str, Any] | None = None,
    max_connections: int = 16,
    retries: int = 5,
    backoff: float = 1.0,
    patience: float = 300.0,
    retry_errors: bool = False,
    allow_upload: bool = False,
    price: Path | str | None = None,
    prompts: Path | str | None = None,
    progress: bool = False,
) -> RunResult:
    """Ask a model the questions of a benchmark and return what the run folder holds.

    The same call again goes on where the folder stands. `limit`, `tasks`, `split`, `vary` and `answer` may differ, so a
    run can grow; model, generation options, image policy, seed and benchmark may not.

    Args:
        bench: a benchmark folder.
        model: PROVIDER/NAME, or a model object.
        out: the run folder.
        limit: that many items, spread over tasks and data sets.
        tasks: codes of the tasks to ask.
        split: which part of the benchmark.
        seed: of the random baseline.
        vary: kinds of `sonogauge.run.vary`, asked beside the plain questions.
        answer: "box" or "point": ask the place tasks for that too.
        only_varied: leave out the plain questions.
        generation: options of each call; None as a value leaves a default out. Default temperature 0.
        image_policy: see `ImagePolicy`.
        model_options: of the model ("base_url", "api_key", "device", …).
        max_connections: questions asked at once.
        retries: after failures that may pass.
        backoff: seconds before the first retry.
        patience: seconds to wait for a server that has gone away.
        retry_errors: ask again what ended in a recorded failure.
        allow_upload: let private images leave this machine.
        price: file of prices, for the cost.
        prompts: folder of prompt versions in place of the benchmark's own.
        progress: show a bar or lines on standard error.

    Raises:
        BadInput: no benchmark, no such model or task, a folder of another run or in use, a server that refuses, a full
            disk. Whatever was answered before is kept.
    """
    folder = Folder(bench, "benchmark")
    policy = ImagePolicy.parse(image_policy)
    variations = [check_variation(kind) for kind in (*vary, *([f"answer={answer}"] if answer else ()))]
    if only_varied and not variations:
        raise BadInput("only varied questions, and no variation named", fix="add --vary KIND")
    if max_connections < 1:
        raise BadInput(f"{max_connections} connections ask nothing", fix="give at least 1")
    answerer = load_model(model, asked=folder.path, **(model_options or {})) if isinstance(model, str) else model
    prices = read_prices(price, answerer.name) if price is not None else None
    questions = Questions.read(folder, split, references=isinstance(answerer, Reader))
    chosen = questions.choose(tasks, limit)
    if isinstance(answerer, Reader):
        manifest = _manifest(folder, answerer.name, questions, seed)
        jobs = plan(chosen, variations, plain=not only_varied)
        with RunFolder(out, manifest) as place:
            asked = _read_replies(answerer, questions, jobs, place, seed)
            return _finish(place, questions, asked, split)
    wanted = {key: value for key, value in {**DEFAULT_GENERATION, **(generation or {})}.items() if value is not None}
    manifest = _manifest(folder, answerer.name, questions, seed, answerer, wanted, policy)
    with closing(CaseImages(folder)) as images:
        jobs = in_order_of(plan(chosen, variations, plain=not only_varied), images.facts)
        notices = check_privacy(
            images.facts, (case for job in jobs for case in job.sent), answerer.endpoint, allow_upload=allow_upload
        )
        if "repeat" in {job.variant for job in jobs} and wanted.get("temperature") == 0:
            notices.append("repeat at temperature 0 mostly repeats the same reply; set a temperature above 0")
        requests = Requests(images, policy, wanted, prompts)
        requests.check(jobs)
        manifest.notices = [*manifest.notices, *notices]
        with RunFolder(out, manifest) as place:
            todo = [job for job in jobs if not place.done(job.key, retry_errors=retry_errors)]
            watcher = Shown(len(jobs), len(jobs) - len(todo)) if progress else Silent()
            pace = Pace(max_connections, retries, backoff, patience)
            try:
                with watcher:
                    for notice in notices:
                        watcher.say(notice)
                    loop = Loop(answerer, requests.request, place, pace, watcher, prices)
                    run_async(loop.ask_all(iter(todo)))
            except BaseException:
                # What stopped the run is told, not that the table could not be written either.
                with suppress(BadInput):
                    _finish(place, questions, jobs, split, notices)
                raise
            return _finish(place, questions, jobs, split, notices)


def _manifest(
    bench: Folder,
    name: str,
    questions: Questions,
    seed: int,
    model: Model | None = None,
    generation: Mapping[str, Any] | None = None,
    policy: ImagePolicy | None = None,
) -> Manifest:
    """Return the manifest at the start; its parameters and the benchmark's hash are the identity of the run."""
    return Manifest(
        kind="run",
        maker=f"sonogauge {version('sonogauge')}",
        name=name,
        inputs=[Input(role="benchmark", path=str(bench.path.resolve()), hash=bench.manifest.hash)],
        parameters={
            "model": name,
            "revision": model.revision if model else "",
            "endpoint": model.endpoint if model else "",
            "model_options": dict(model.options) if model else {},
            "generation": dict(generation or {}),
            "image_policy": policy.name if policy else "original",
            "prompts": sorted({item.prompt_id for item in questions.items}),
            "seed": seed,
        },
        licences=list(bench.manifest.licences),
        notices=list(bench.manifest.notices),
    )


def _read_replies(reader: Reader, questions: Questions, jobs: Sequence[Job], place: RunFolder, seed: int) -> list[Job]:
    """Log the replies of a baseline; return the jobs that it has a reply to."""
    # All items are answered, not the chosen ones alone: a baseline that counts must not depend on the limit.
    by_variant: dict[tuple[str, int], dict[str, str | None]] = {}
    answered = []
    for job in jobs:
        replies = by_variant.get((job.variant, job.epoch))
        if replies is None:
            items = [
                replace(item, answer=answer_of(item.answer, item.item_id, job.variant)) for item in questions.items
            ]
            texts = reader.replies(items, questions.train, seed + job.epoch)
            replies = {item.item_id: text for item, text in zip(items, texts, strict=True)}
            by_variant[job.variant, job.epoch] = replies
        text = replies[job.item.item_id]
        if text is None:
            continue
        answered.append(job)
        if not place.done(job.key):
            place.append(entry_of(job.key, (), Outcome("ok", text=text), 1), final=True)
    return answered


def _finish(
    place: RunFolder, questions: Questions, jobs: Sequence[Job], split: str, notices: Sequence[str] = ()
) -> RunResult:
    """Write the table and the completed manifest."""
    planned = {job.key for job in jobs}
    failures: Counter[str] = Counter()
    totals: dict[str, float] = {}
    ended = failed = 0
    for entry in place.entries():
        key: ReplyKey = (entry["item_id"], entry["variant"], entry["epoch"], entry["rater_id"])
        ended += key in planned
        if entry["status"] == "error":
            failures[(entry["error"] or "unknown").partition(":")[0]] += 1
            failed += key in planned
        for name in ("input_tokens", "output_tokens", "cost"):
            if entry.get(name) is not None:
                totals[name] = totals.get(name, 0) + entry[name]
    statuses = {name: place.statuses()[name] for name in REPLY_STATUSES}
    place.manifest = place.manifest.model_copy(
        update={
            "counts": {
                "asked": questions.asked((key[0] for key in place.ended()), split),
                "replies": statuses,
                "failures": dict(sorted(failures.items())),
                "variants": sorted({key[1] for key in place.ended()}),
                **totals,
            }
        }
    )
    place.compact()
    share = failed / ended if ended else 0.0
    return RunResult(place.path, place.manifest, len(planned), statuses, dict(failures), share, tuple(notices))
