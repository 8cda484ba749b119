"""The public function that judges free text: replies to a folder of verdicts, which `score` then reads.

Judging is a step of its own, between run and score, so that scoring stays a function of files: it needs no key, costs
nothing, gives the same bytes each time, and several judges, prompts or coverage limits can be tried on stored verdicts.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers import FORMS
from sonogauge.benchmarks.spec import BenchmarkSpec, read_spec
from sonogauge.folders import Folder, Input, Manifest, sort_rows
from sonogauge.items import Item
from sonogauge.models import Model, Reader, load_model
from sonogauge.models.addresses import is_loopback
from sonogauge.score.inputs import open_replies
from sonogauge.score.judging.ask import Asking, Patience, Question, run_async
from sonogauge.score.judging.leniency import LENIENCIES, lenient_verdict, raised
from sonogauge.score.judging.log import KIND, VerdictFolder
from sonogauge.score.judging.prompt import LONGEST, JudgePrompt, load_prompt
from sonogauge.score.judging.rules import RULES, references_of, rule_verdict
from sonogauge.score.judging.verdict import LEVELS
from sonogauge.score.reading import judge as read_strictly
from sonogauge.score.replies import Reply, ReplySource, check_ids, join
from sonogauge.stats.agreement import agreement
from sonogauge.tables import REPLY_KEY

JUDGED_FORM: Final = "text"
JUDGE_METRIC: Final = "judge_score"
BY_RULE: Final = "rule"
GENERATION: Final[Mapping[str, Any]] = {"temperature": 0.0}
_COLUMNS: Final = [
    *("item_id", "task", "dataset", "source", "group", "split", "images", "question", "answer", "reference"),
    *("reference_state", "variables", "meta"),
]


@dataclass(frozen=True)
class Judged:
    """What a folder of verdicts holds.

    statuses: rows without leniency by status (ok, rule, no_answer, judge_failed). asked: questions put to judges in
    this call; reused: those whose verdict was stored. cost: dollars of the whole folder, None if unknown. unpriced:
    judges whose cost is not in it, since nobody said their price. errors: the last error of each judge that failed.
    """

    path: Path
    manifest: Manifest
    statuses: dict[str, int]
    asked: int
    reused: int
    cost: float | None
    unpriced: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed_share(self) -> float:
        """Share of the verdicts asked of judges that could not be had."""
        needed = self.statuses.get("ok", 0) + self.statuses.get("judge_failed", 0)
        return self.statuses.get("judge_failed", 0) / needed if needed else 0.0


@dataclass(frozen=True)
class _Case:
    """A reply with what is known of it before any judge is asked."""

    item: Item
    reply: Reply
    answer: str
    ruled: tuple[float, str, str] | None


def judge(
    replies: Path | str | ReplySource,
    out: Path | str,
    judges: Sequence[str | Model],
    *,
    bench: Path | str | None = None,
    tasks: Sequence[str] | None = None,
    prompt: Path | str | None = None,
    generation: Mapping[str, Any] | None = None,
    model: str | None = None,
    model_options: Mapping[str, Any] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    patience: Patience | None = None,
    retry_failed: bool = False,
    allow_upload: bool = False,
) -> Judged:
    """Have free-text replies judged and write the folder of verdicts.

    The same call again asks nothing twice; further judges and further replies add to the folder.

    Args:
        replies: a run folder, a `.jsonl` file, an Inspect log, or replies in memory.
        out: the folder of verdicts.
        judges: PROVIDER/NAME or model objects; an item's verdict is the median over them.
        bench: benchmark folder; for a run by default the one it names.
        tasks: codes of the tasks to judge; by default those whose metrics name `judge_score`.
        prompt: a prompt file in place of the one of this package.
        generation: options of each call beside temperature 0; None as a value leaves a default out.
        model: name of the judged model in place of the one in the replies.
        model_options: of the judges ("base_url", "api_key", …).
        prices: dollars per input and output token by judge.
        patience: connections, retries and time limit.
        retry_failed: ask again where a judge failed before.
        allow_upload: let texts about private images leave this machine.

    Raises:
        BadInput: no benchmark or replies, no such task or judge, a folder of another run, a judge that refuses all.
    """
    source, folder = open_replies(replies, Path(bench) if bench is not None else None, model)
    spec = read_spec(folder.path)
    chosen = _tasks(spec, tasks)
    items = [Item.from_row(row) for row in folder.rows("items", _COLUMNS) if row["split"] == source.split]
    check_ids(source, {item.item_id: item for item in items}, folder.path)
    models = _judges(judges, model_options or {})
    text = load_prompt(prompt)
    options = {key: value for key, value in {**GENERATION, **(generation or {})}.items() if value is not None}
    cases = [_case(item, reply) for item, reply in join(source, items) if _is_judged(item, chosen)]
    if not cases:
        raise BadInput("no reply to judge in the tasks " + ", ".join(sorted(chosen)), file=source.path)
    _check_privacy(folder, items, models, allow_upload)
    manifest = _manifest(folder, source, models, text, options, chosen)
    with VerdictFolder(out, manifest) as place:
        asks: list[dict[str, str]] = []
        todo: dict[str, Question] = {}
        for case in cases:
            own = {}
            for one in models if case.ruled is None else ():
                question = _question(case, one, text, options)
                own[one.name] = ask = question.ask
                known = place.answers.get(ask)
                if known is None or (retry_failed and known["verdict"] is None):
                    todo.setdefault(ask, question)
            asks.append(own)
        if todo:
            run_async(Asking(place.append, patience or Patience(), prices or {}).ask_all(list(todo.values())))
        rows = [row for case, own in zip(cases, asks, strict=True) for row in _rows(case, own, text, place.answers)]
        questions = {ask for own in asks for ask in own.values()}
        said = [place.answers[ask] for ask in sorted(questions)]
        costs = [one["cost"] for one in said if one.get("cost") is not None]
        cost = sum(costs) if costs else None
        unpriced = sorted({one["judge"] for one in said if one.get("cost") is None and one.get("input_tokens")})
        errors = {one["judge"]: str(one["error"]) for one in said if one["verdict"] is None and one.get("error")}
        statuses = dict(sorted(Tally(row["status"] for row in rows if row["leniency"] == "none").items()))
        counts = {
            "replies": len(cases),
            "statuses": statuses,
            "faults": dict(sorted(Tally(one["fault"] for one in said if one["verdict"] is None).items())),
            "asked": len(questions),
            "cost": cost,
            "unpriced": unpriced,
            "input_tokens": sum(one.get("input_tokens") or 0 for one in said),
            "output_tokens": sum(one.get("output_tokens") or 0 for one in said),
            "agreement": _agreement(cases, rows, [one.name for one in models]),
            "shortened": sum(len(case.answer) > LONGEST for case in cases if case.ruled is None),
        }
        done = place.finish(sort_rows(rows, "verdicts"), counts)
    return Judged(
        Path(out),
        done,
        statuses,
        len(todo),
        len(questions) - len(todo),
        cost,
        tuple(unpriced),
        dict(sorted(errors.items())),
    )


def _tasks(spec: BenchmarkSpec, tasks: Sequence[str] | None) -> frozenset[str]:
    texts = [code for code, task in spec.tasks.items() if task.form == JUDGED_FORM]
    if tasks is None:
        chosen = [code for code in texts if JUDGE_METRIC in spec.tasks[code].metrics]
        if not chosen:
            fix = "name the tasks to judge: " + (", ".join(texts) if texts else "there is none with free text")
            raise BadInput(f"no task of {spec.name} asks for judged answers", field="tasks", fix=fix)
        return frozenset(chosen)
    for code in tasks:
        if code not in texts:
            known = ", ".join(texts) or "none"
            raise BadInput(f"no task '{code}' with free text in {spec.name}", field="tasks", fix=f"known: {known}")
    return frozenset(tasks)


def _is_judged(item: Item, tasks: frozenset[str]) -> bool:
    return item.task in tasks and item.answer.form == JUDGED_FORM and item.reference_state == "ok"


def _judges(judges: Sequence[str | Model], options: Mapping[str, Any]) -> list[Model]:
    if not judges:
        raise BadInput("no judge", field="judge", fix="pass --judge PROVIDER/NAME")
    models: list[Model] = []
    for one in judges:
        model = load_model(one, **options) if isinstance(one, str) else one
        if isinstance(model, Reader):
            raise BadInput(f"{model.name} is a baseline, it cannot judge", field="judge", fix="name a language model")
        if model.name == BY_RULE or model.name in {other.name for other in models}:
            raise BadInput(f"judge {model.name} is named twice", field="judge", fix="name each judge once")
        models.append(model)
    return models


def _check_privacy(folder: Folder, items: Sequence[Item], models: Sequence[Model], allow_upload: bool) -> None:
    away = [one for one in models if one.endpoint and not is_loopback(one.endpoint)]
    if not away or allow_upload:
        return
    shown = {image.case_id for item in items for image in item.images}
    for row in folder.rows("cases", ["case_id", "private"]):
        if row["private"] and row["case_id"] in shown:
            raise BadInput(
                f"texts about private images would go to {away[0].endpoint}",
                file=folder.path,
                fix="use a judge on this machine, or pass --allow-upload",
            )


def _case(item: Item, reply: Reply) -> _Case:
    # A varied question is still answered in free text; the reply is read as the plain one is.
    parsed = read_strictly(reply._replace(variant=""), item.answer, FORMS.load(item.answer.form))
    ruled = rule_verdict(item, parsed)
    answer = str(parsed.value) if parsed.valid else ""
    return _Case(item, reply, answer, None if ruled is None else (ruled.verdict, ruled.status, ruled.rationale))


def _question(case: _Case, model: Model, prompt: JudgePrompt, generation: Mapping[str, Any]) -> Question:
    # The bare question where the item keeps it: role and output instruction are for the one who answers.
    question = case.item.variables.get("question") or case.item.question
    text = prompt.render(question, references_of(case.item), case.answer)
    return Question(model, text, generation, case.item.item_id)


def _rows(
    case: _Case,
    asks: Mapping[str, str],
    prompt: JudgePrompt,
    answers: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    key = dict(zip(REPLY_KEY, case.reply[:4], strict=True))
    if case.ruled is not None:
        verdict, status, rationale = case.ruled
        base = {**key, "judge": BY_RULE, "status": status, "rationale": rationale, "prompt_hash": RULES}
        return [{**base, "verdict": verdict, "leniency": one} for one in LENIENCIES]
    lenient = lenient_verdict(case.item.meta.get("attribute_asked", ""), references_of(case.item), case.answer)
    rows = []
    for judge_name, ask in asks.items():
        said = answers[ask]
        failed = said["verdict"] is None
        for leniency in LENIENCIES:
            verdict = 0.0 if failed else float(said["verdict"])
            if leniency != "none" and not failed:
                verdict = raised(verdict, lenient)
            rows.append(
                {
                    **key,
                    "judge": judge_name,
                    "status": "judge_failed" if failed else "ok",
                    "verdict": verdict,
                    "rationale": said["fault"] if failed else said["rationale"],
                    "text": said["text"],
                    "prompt_hash": prompt.hash,
                    "leniency": leniency,
                    # Asked once, paid once: the rows of another leniency cost nothing.
                    "cost": said["cost"] if leniency == "none" else None,
                }
            )
    return rows


def _agreement(
    cases: Sequence[_Case], rows: Sequence[Mapping[str, Any]], judges: Sequence[str]
) -> dict[str, float | int | None] | None:
    """Return how far the judges agree on the replies that at least two of them judged."""
    if len(judges) < 2:
        return None
    units = {case.reply[:4]: place for place, case in enumerate(cases)}
    ratings = np.full((len(cases), len(judges)), -1, dtype=np.int64)
    for row in rows:
        if row["status"] == "ok" and row["leniency"] == "none":
            unit = units[row["item_id"], row["variant"], row["epoch"], row["rater_id"]]
            ratings[unit, judges.index(row["judge"])] = LEVELS.index(row["verdict"])
    groups = [f"{case.item.source}|{case.item.group}" for case in cases]
    words = [f"{level:g}" for level in LEVELS]
    found = agreement(ratings, words, groups=groups, weights="quadratic", level="interval", draws=100)
    return {"units": found.units, **{name: one.value for name, one in sorted(found.estimates.items())}}


def _manifest(
    bench: Folder,
    source: ReplySource,
    models: Sequence[Model],
    prompt: JudgePrompt,
    generation: Mapping[str, Any],
    tasks: frozenset[str],
) -> Manifest:
    return Manifest(
        kind=KIND,
        maker=f"sonogauge {__version__}",
        name=source.model,
        inputs=[
            Input(role="benchmark", path=str(bench.path.resolve()), hash=bench.manifest.hash),
            Input(role="replies", path=str(source.path), hash=source.content_hash),
        ],
        parameters={
            "judges": [
                {
                    "name": one.name,
                    "revision": one.revision,
                    "endpoint": one.endpoint,
                    "options": dict(one.options),
                }
                for one in models
            ],
            "prompt": prompt.name,
            "prompt_hash": prompt.hash,
            "generation": dict(generation),
            "rules": RULES,
            "leniency": list(LENIENCIES),
            "levels": list(LEVELS),
            "longest": LONGEST,
            "tasks": sorted(tasks),
        },
        licences=list(bench.manifest.licences),
        notices=list(bench.manifest.notices),
    )
