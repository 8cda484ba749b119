"""UltraG-Agent: plan, segment, facts, compose, validate, retry, fall back, emit; every step stands in the trace.

`agent/ultrag?planner=MODEL&segmenter=BACKEND&…` with the switches of `switches`; `planner=rule` needs no model. Values
may be percent-encoded. Cite: UltraG-Bench and UltraG-Agent, github.com/zhuqh19/UltraG-Bench; written from a
specification, without their code, prompts or templates.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.vocabulary import Category
from sonogauge.models.addresses import is_loopback
from sonogauge.models.agents.compose import (
    Sentence,
    answer_question,
    finding_types,
    segmentation_answer,
    write_report,
)
from sonogauge.models.agents.drawing import Drawer, Drawn
from sonogauge.models.agents.facts import TargetFacts, rle, union_of
from sonogauge.models.agents.plain import WithVocabulary
from sonogauge.models.agents.planning import (
    Plan,
    Target,
    ask_planner,
    plan_request,
    planner_image,
    read_json,
    read_plan,
)
from sonogauge.models.agents.rules import RulePlanner, rule_plan
from sonogauge.models.agents.switches import NAMES, Switches
from sonogauge.models.agents.tasks import Task, read_task
from sonogauge.models.agents.validate import find_faults, read_sentences, write_prompt
from sonogauge.models.agents.vocabulary import Vocabulary, make_vocabulary
from sonogauge.models.base import Model, Outcome, Reader, Request
from sonogauge.models.segmenters import Segmenter, SegmenterFault, UnsupportedPrompt, load_segmenter
from sonogauge.models.segmenters.base import Pixels, decode_pixels, describe

VERSION: Final = "1"
RULE: Final = "rule"
DEFAULT_TIMEOUT: Final = 120.0
_OWN: Final = frozenset({"planner", "segmenter", "bench", "segmenter_timeout"})


@dataclass
class _Record:
    """What happened on the way to one answer."""

    replies: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, str]] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    fallback: bool = False
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    cost: float | None = None

    def fault(self, step: str, what: str) -> None:
        self.faults.append({"step": step, "what": what})
        self.causes[step] += 1

    def heard(self, step: str, outcome: Outcome) -> None:
        self.replies.append({"step": step, "status": outcome.status, "text": outcome.text, "error": outcome.error})
        self.tokens[0] += outcome.input_tokens or 0
        self.tokens[1] += outcome.output_tokens or 0
        if outcome.cost is not None:
            self.cost = (self.cost or 0.0) + outcome.cost


class UltraGAgent:
    """A planner and a segmenter as one model of the run.

    Args:
        name: as the user wrote it.
        planner: the model that plans and writes; None = the rule planner.
        segmenter: what draws.
        vocabulary: the categories that the planner sees.
        switches: how it works.
        segmenter_timeout: seconds for one call.
    """

    def __init__(
        self,
        name: str,
        planner: Model | None,
        segmenter: Segmenter,
        vocabulary: Vocabulary,
        switches: Switches | None = None,
        segmenter_timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.name, self._planner, self._segmenter, self._vocabulary = name, planner, segmenter, vocabulary
        self._switches = switches or Switches(vocab_source=vocabulary.source)  # type: ignore[arg-type]
        self._drawer = Drawer(segmenter, self._switches, segmenter_timeout)
        self.revision = "+".join(filter(None, (planner.revision if planner else "", segmenter.weights_id)))
        addresses = [one for one in (planner.endpoint if planner else "", segmenter.endpoint) if one]
        # Images go to both; the one that is farther away decides whether they may.
        self.endpoint = next((one for one in addresses if not is_loopback(one)), next(iter(addresses), ""))
        facts = {key: value for key, value in describe(segmenter).items() if key != "device"}
        self.options: Mapping[str, Any] = {
            "agent": f"ultrag-{VERSION}",
            "planner": planner.name if planner else RULE,
            "planner_options": dict(planner.options) if planner else {},
            "segmenter": facts,
            "switches": self._switches.told(),
            "vocabulary": vocabulary.told(),
        }

    @classmethod
    def from_name(cls, name: str, *, asked: Path | None = None, **options: Any) -> UltraGAgent:
        """Return the agent of a name; options that are no switches are those of the planner ("base_url", …).

        asked: the benchmark of the vocabulary, where neither name nor options say another.

        Raises:
            BadInput: a part is missing or refuses its options.
        """
        given = read_query(name)
        given |= {key: value for key, value in options.items() if key in NAMES or key in _OWN}
        for key in ("planner", "segmenter"):
            if not given.get(key):
                fix = "write agent/ultrag?planner=MODEL&segmenter=BACKEND; planner=rule needs no model"
                raise BadInput(f"the agent needs a {key}", field="model", fix=fix)
        if unknown := set(given) - NAMES - _OWN:
            raise BadInput(
                f"the agent has no option '{min(unknown)}'", field="model", fix="known: " + ", ".join(sorted(NAMES))
            )
        switches = Switches.read({key: value for key, value in given.items() if key in NAMES})
        timeout = read_timeout(given)
        rest = {key: value for key, value in options.items() if key not in NAMES and key not in _OWN}
        planner = load_planner(str(given["planner"]), rest)
        segmenter = load_segmenter(str(given["segmenter"]))
        trained = getattr(segmenter, "categories", None)
        vocabulary = make_vocabulary(switches.vocab_source, given.get("bench") or asked, trained)
        return cls(name, planner, segmenter, vocabulary, switches, timeout)

    async def close(self) -> None:
        """Free the planner."""
        if self._planner is not None:
            await self._planner.close()

    async def answer(self, request: Request) -> Outcome:
        """Answer one request; a failure of planner or segmenter is an error of its own kind."""
        record = _Record()
        task = read_task(request)
        if not self._switches.task_forced:
            task = replace(task, kind=None)
        if len(request.images) != 1:
            return self._failed(record, f"agent_images: {len(request.images)} images instead of one")
        try:
            image = await asyncio.to_thread(decode_pixels, request.images[0].data)
        except SegmenterFault as fault:
            return self._failed(record, f"agent_image: {fault}")
        table = self._vocabulary.category(task.organ)
        planned = await self._plan(request, task, table, image, record)
        if isinstance(planned, Outcome):
            return planned
        drawn: list[Drawn] = []
        try:
            key = request.images[0].sha256
            drawn = await asyncio.to_thread(self._drawer.draw, image, key, planned.targets)
        except UnsupportedPrompt as error:
            return self._failed(record, f"segmenter_prompt: {error}", planned)
        except SegmenterFault as fault:
            passing = fault.kind in ("timeout", "server")
            return replace(self._failed(record, f"segmenter_{fault}", planned), retry=passing)
        for one in drawn:
            if not one.kept:
                record.causes["filtered" if one.candidates else "nothing"] += 1
        reply = await self._emit(request, task, table, planned, [one.facts for one in drawn], image, record)
        return Outcome(
            "ok",
            text=json.dumps(reply, ensure_ascii=False),
            input_tokens=record.tokens[0] or None,
            output_tokens=record.tokens[1] or None,
            cost=record.cost,
            trace=self._trace(record, task, planned, drawn),
        )

    async def _plan(
        self, request: Request, task: Task, table: Category, image: Pixels, record: _Record
    ) -> Plan | Outcome:
        if self._planner is None:
            return _by_rule(task, table)
        listed = self._vocabulary.listed(task.organ)
        question = plan_request(request, task, listed, image, self._switches, not self._drawer.takes_text)
        outcome = await self._planner.answer(question)
        record.heard("plan", outcome)
        if outcome.status == "error":
            if outcome.fatal or self._switches.planner_failure == "error":
                failed = self._failed(record, f"planner_{outcome.error or 'unknown: no reason given'}")
                return replace(failed, retry=outcome.retry, retry_after=outcome.retry_after, fatal=outcome.fatal)
            record.fault("planner_error", outcome.error or "unknown")
            return replace(_by_rule(task, table), faults=("planner failed",))
        plan = read_plan(outcome.text, task, table, image, question.images[0], self._switches)
        if isinstance(plan, str):
            record.fault("planner_format", plan)
            return replace(_by_rule(task, table), faults=(plan,))
        for fault in plan.faults:
            record.fault("plan_target", fault)
        return plan

    async def _emit(
        self,
        request: Request,
        task: Task,
        table: Category,
        plan: Plan,
        facts: Sequence[TargetFacts],
        image: Pixels,
        record: _Record,
    ) -> dict[str, Any]:
        neutral = self._switches.compose_style == "neutral"
        if plan.kind == "segmentation":
            return {"answer": segmentation_answer(facts, neutral), "predicted_mask": rle(union_of(facts))}
        if plan.kind == "vqa":
            answer, shown = answer_question(task, plan, facts, table, self._switches)
            return {"answer": answer, "predicted_mask": rle(union_of(shown))}
        sentences = await self._report(request, table, plan, facts, image, record)
        by_name = {one.category: one for one in facts}
        return {
            "report": [
                {
                    "section": one.section,
                    "text": one.text,
                    "finding_type": one.finding_type,
                    "predicted_mask": rle(union_of([by_name[name] for name in one.targets if name in by_name])),
                }
                for one in sentences
            ]
        }

    async def _report(
        self,
        request: Request,
        table: Category,
        plan: Plan,
        facts: Sequence[TargetFacts],
        image: Pixels,
        record: _Record,
    ) -> list[Sentence]:
        template = write_report(facts, table, self._switches)
        if self._planner is None or plan.by == RULE or self._switches.compose_mode == "deterministic":
            return template
        kinds = finding_types(facts, table)
        faults: list[str] = []
        for attempt in range(2):
            record.retries = attempt
            question = ask_planner(request, write_prompt(facts, kinds, plan.outline, faults), planner_image(image))
            outcome = await self._planner.answer(question)
            record.heard("compose", outcome)
            if outcome.status == "error":
                faults = [f"planner failed: {outcome.error}"]
            else:
                sentences = read_sentences(read_json(outcome.text), facts)
                faults = [sentences] if isinstance(sentences, str) else find_faults(sentences, facts, kinds)
                if not isinstance(sentences, str) and not faults:
                    return sentences
            for fault in faults:
                record.fault("report", fault)
        record.fallback = True
        return template

    def _failed(self, record: _Record, error: str, plan: Plan | None = None) -> Outcome:
        return Outcome(
            "error",
            error=error,
            input_tokens=record.tokens[0] or None,
            output_tokens=record.tokens[1] or None,
            cost=record.cost,
            trace=self._trace(record, None, plan, ()),
        )

    def _trace(self, record: _Record, task: Task | None, plan: Plan | None, drawn: Sequence[Drawn]) -> str:
        """Return all steps as JSON."""
        return json.dumps(
            {
                **self.options,
                "vocabulary": self._vocabulary.listed(task.organ) if task else [],
                "plan": plan.told() if plan else None,
                "targets": [one.told() for one in drawn],
                "replies": record.replies,
                "faults": record.faults,
                "causes": dict(sorted(record.causes.items())),
                "retries": record.retries,
                "fallback": record.fallback,
            },
            ensure_ascii=False,
            sort_keys=True,
        )


def read_query(name: str) -> dict[str, Any]:
    """Return the options in a model's name, percent-decoded.

    >>> read_query("agent/ultrag?planner=openai/x&segmenter=otsu?polarity=bright")
    {'planner': 'openai/x', 'segmenter': 'otsu?polarity=bright'}
    """
    given: dict[str, Any] = {}
    for pair in filter(None, name.partition("?")[2].split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise BadInput(f"not KEY=VALUE: '{pair}'", field="model", fix="write agent/ultrag?planner=…&segmenter=…")
        given[key] = unquote(value)
    return given


def read_timeout(given: Mapping[str, Any]) -> float:
    """Return the option `segmenter_timeout` in seconds; raise BadInput where it is no number above 0."""
    try:
        timeout = float(given.get("segmenter_timeout", DEFAULT_TIMEOUT))
    except (TypeError, ValueError):
        timeout = 0.0
    if not timeout > 0:
        raise BadInput("not a number of seconds above 0", field="segmenter_timeout")
    return timeout


def refined_model(name: str, **options: Any) -> Model:
    """Return `agent/refined?run=RUN&segmenter=BACKEND&coords=…`: the replies of a run, redrawn by a segmenter.

    Raises:
        BadInput: no run or segmenter, or an unknown option.
    """
    from sonogauge.models.agents.refined import Refined, check_refined

    given = {**read_query(name), **options}
    run, segmenter, coords = check_refined(given)
    return Refined(name, run, load_segmenter(segmenter), coords, read_timeout(given))


def plain_model(name: str, *, asked: Path | None = None, **options: Any) -> Model:
    """Return `agent/plain?planner=MODEL&vocab_source=…&bench=…`: the planner alone with the agent's vocabulary.

    Raises:
        BadInput: no planner, an unknown option, no vocabulary.
    """
    given = read_query(name)
    if unknown := set(given) - {"planner", "vocab_source", "bench"}:
        raise BadInput(f"agent/plain has no option '{min(unknown)}'", field="model")
    if not given.get("planner"):
        raise BadInput("agent/plain needs a planner", field="model", fix="write agent/plain?planner=MODEL")
    source = Switches.read({"vocab_source": given.get("vocab_source", "train")}).vocab_source
    planner = load_planner(str(given["planner"]), options) or RulePlanner()
    return WithVocabulary(name, planner, make_vocabulary(source, given.get("bench") or asked))


def _by_rule(task: Task, table: Category) -> Plan:
    found = rule_plan(task, table)
    targets = tuple(Target(one["category"], one["phrase"], None, one["reason"]) for one in found["targets"])
    return Plan(found["task_type"], targets, by=RULE)


def load_planner(name: str, options: Mapping[str, Any]) -> Model | None:
    """Return a planner by its name, None for the rule planner; raise BadInput for a baseline."""
    if name == RULE:
        if options:
            raise BadInput(f"the rule planner has no option '{min(options)}'", field="model")
        return None
    from sonogauge.models import load_model

    planner = load_model(name, **options)
    if isinstance(planner, Reader):
        raise BadInput(f"{name} reads references and cannot plan", field="planner", fix="use planner=rule or a model")
    return planner
