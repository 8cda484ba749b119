"""Asking judges: a bounded window of questions, retries of failures that may pass, a second try for what was unread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sonogauge._errors import BadInput
from sonogauge.hashes import canonical_hash
from sonogauge.models.base import Model, Outcome, Request
from sonogauge.score.judging.verdict import Read, read_verdict

T = TypeVar("T")

_READINGS: Final = 2  # a verdict that cannot be read is asked for once more
_LONGEST_WAIT: Final = 60.0  # seconds
_GIVE_UP: Final = 20
_AGAIN: Final = (
    "\n\nYour last reply held no verdict that could be read. Reply with the one JSON object and nothing else, "
    "the verdict 0, 0.5 or 1."
)


@dataclass(frozen=True)
class Question:
    """One question to one judge; `ask` is the hash of all that could change the answer."""

    judge: Model
    prompt: str
    generation: Mapping[str, Any]
    item_id: str = ""

    @property
    def ask(self) -> str:
        """Hash of judge, its options and the rendered prompt."""
        judge = self.judge
        who = [judge.name, judge.revision, judge.endpoint, dict(judge.options)]
        return canonical_hash([*who, dict(self.generation), self.prompt])


@dataclass(frozen=True)
class Patience:
    """How long a judge is waited for.

    connections: questions asked at once. retries: after failures that may pass. backoff: seconds before the first
    retry, doubled each time. timeout: seconds for one attempt.
    """

    connections: int = 8
    retries: int = 5
    backoff: float = 1.0
    timeout: float = 300.0


@dataclass
class _Spent:
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    attempts: int = 0
    texts: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome, price: tuple[float, float] | None) -> None:
        self.attempts += 1
        self.input_tokens += outcome.input_tokens or 0
        self.output_tokens += outcome.output_tokens or 0
        cost = outcome.cost
        if cost is None and price is not None and outcome.input_tokens is not None:
            cost = outcome.input_tokens * price[0] + (outcome.output_tokens or 0) * price[1]
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost


class Asking:
    """One pass over questions to judges; `keep` receives one log entry per question as it ends."""

    def __init__(
        self,
        keep: Callable[[Mapping[str, Any]], None],
        patience: Patience,
        prices: Mapping[str, tuple[float, float]],
    ) -> None:
        self._keep, self._patience, self._prices = keep, patience, prices
        self._answered: set[str] = set()
        self._failed: dict[str, int] = {}

    async def ask_all(self, questions: Sequence[Question]) -> None:
        """Ask all; a failure that concerns a whole judge stops.

        Raises:
            BadInput: wrong key, no such model, or a judge that answers nothing; what was answered is kept.
        """
        todo: Iterator[Question] = iter(questions)

        async def work() -> None:
            for question in todo:
                await self._one(question)

        workers = [asyncio.create_task(work()) for _ in range(min(self._patience.connections, len(questions)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for judge in {id(one.judge): one.judge for one in questions}.values():
                await judge.close()

    async def _one(self, question: Question) -> None:
        spent = _Spent()
        read = Read(None, fault="error")
        error = None
        for reading in range(_READINGS):
            outcome = await self._reply(question, _AGAIN if reading else "", spent)
            error = outcome.error
            if outcome.status == "error":
                read = Read(None, fault="error")
                break  # its retries are used up
            spent.texts.append(_valid(outcome.text))
            read = Read(None, fault="truncated") if outcome.status == "truncated" else read_verdict(outcome.text)
            if read.fault is None:
                break
        self._keep(
            {
                "ask": question.ask,
                "judge": question.judge.name,
                "item_id": question.item_id,
                "verdict": read.verdict,
                "fault": read.fault,
                "error": None if error is None else _valid(error),
                "rationale": read.rationale,
                "text": "\n---\n".join(one[:20_000] for one in spent.texts),
                "attempts": spent.attempts,
                "input_tokens": spent.input_tokens,
                "output_tokens": spent.output_tokens,
                "cost": spent.cost,
            }
        )
        self._give_up_if_hopeless(question.judge.name, error if read.fault == "error" else None)

    async def _reply(self, question: Question, more: str, spent: _Spent) -> Outcome:
        request = Request(question.item_id, "judge", 0, question.prompt + more, generation=question.generation)
        tried = 0
        while True:
            outcome = await self._attempt(question.judge, request)
            spent.add(outcome, self._prices.get(question.judge.name))
            if outcome.fatal:
                raise BadInput(
                    f"judge {question.judge.name}: {outcome.error}",
                    fix="mend it and give the same command again; verdicts up to here are kept",
                )
            tried += 1
            if outcome.status != "error" or not outcome.retry or tried > self._patience.retries:
                return outcome
            wait = outcome.retry_after or self._patience.backoff * 2 ** (tried - 1)
            await asyncio.sleep(min(wait, _LONGEST_WAIT))

    async def _attempt(self, judge: Model, request: Request) -> Outcome:
        try:
            return await asyncio.wait_for(judge.answer(request), self._patience.timeout)
        except TimeoutError:
            return Outcome("error", error=f"timeout: no answer in {self._patience.timeout:g} s", retry=True)
        except Exception as error:
            # A model of another package may break its promise not to raise; that is a failure of the question.
            return Outcome("error", error=f"model: {type(error).__name__} {error}")

    def _give_up_if_hopeless(self, judge: str, error: str | None) -> None:
        if error is None:
            self._answered.add(judge)
            return
        self._failed[judge] = self._failed.get(judge, 0) + 1
        if judge not in self._answered and self._failed[judge] >= _GIVE_UP:
            raise BadInput(
                f"judge {judge}: the first {_GIVE_UP} questions all failed, the last by {error}",
                fix="try `sonogauge doctor`, mend it, and add --retry-failed",
            )


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _valid(text: str) -> str:
    # Half a surrogate pair is legal in JSON and in no table.
    return text.encode("utf-8", "replace").decode("utf-8")
