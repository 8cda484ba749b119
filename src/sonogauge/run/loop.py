"""The loop: a bounded window of questions, one log line per attempt, one pace for all connections.

Each worker takes the next question, has its images read and encoded in a thread, waits for the gate, asks, logs. There
are more workers than connections, so that images are ready when a connection is free; nothing is prepared beyond them.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from sonogauge._errors import BadInput
from sonogauge.models.base import Model, Outcome, Request
from sonogauge.run.images import ImageFault
from sonogauge.run.log import RunFolder
from sonogauge.run.plan import Job
from sonogauge.tables import REPLY_KEY

T = TypeVar("T")

_AHEAD: Final = 8  # prepared questions beyond those being asked
_LONGEST_WAIT: Final = 60.0  # seconds, of our own accord
_LONGEST_PAUSE: Final = 3600.0  # seconds, because the server asks
_TOLD_PAUSE: Final = 15.0


class Watcher(Protocol):
    """Who wants to know how the run goes."""

    def ended(self, entry: Mapping[str, Any]) -> None:
        """Note a question that ended."""
        ...

    def say(self, line: str) -> None:
        """Show a line."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard a run presses.

    max_connections: questions asked at once. retries: after a failure that may pass; a rate limit gets ten times that.
    backoff: seconds before the first retry, doubled each time. patience: seconds without any answer after which a
    server that cannot be reached ends the run. give_up: so many questions failing with no reply at all end the run.
    """

    max_connections: int = 16
    retries: int = 5
    backoff: float = 1.0
    patience: float = 300.0
    give_up: int = 20


class Gate:
    """Lets through as many requests as the server bears: half after a rate limit, one more after each full round."""

    def __init__(self, limit: int) -> None:
        self._most = self._limit = limit
        self._free = asyncio.Semaphore(limit)
        self._owed = 0  # permits to withhold when requests come back
        self._good = 0
        self._until = 0.0
        self._halved = 0.0

    @property
    def limit(self) -> int:
        """How many requests may be under way now."""
        return self._limit

    async def __aenter__(self) -> None:
        await self._free.acquire()
        while (wait := self._until - time.monotonic()) > 0:
            # Spread a little, so that the server is not hit by all at once.
            await asyncio.sleep(wait * (1 + 0.1 * random.random()))

    async def __aexit__(self, *failure: object) -> None:
        if self._owed:
            self._owed -= 1
        else:
            self._free.release()

    def pause(self, seconds: float) -> None:
        """Let no request start for that long."""
        self._until = max(self._until, time.monotonic() + seconds)

    def throttle(self, seconds: float) -> None:
        """Pause, and halve the number of requests, once for all that were under way together."""
        now = time.monotonic()
        if now >= self._halved:
            self._owed += self._limit - max(1, self._limit // 2)
            self._limit = max(1, self._limit // 2)
            self._halved = now + max(seconds, 1.0)
        self._good = 0
        self.pause(seconds)

    def succeeded(self) -> None:
        """Note an answer; a full round of them makes room for one more."""
        self._good += 1
        if self._limit < self._most and self._good >= self._limit:
            self._good = 0
            self._limit += 1
            if self._owed:
                self._owed -= 1
            else:
                self._free.release()


class Loop:
    """One pass over the questions of a run; see `ask_all`."""

    def __init__(
        self,
        model: Model,
        prepare: Callable[[Job], Request],
        place: RunFolder,
        pace: Pace,
        watcher: Watcher,
        price: tuple[float, float] | None,
    ) -> None:
        self._model, self._prepare, self._place = model, prepare, place
        self._pace, self._watcher, self._price = pace, watcher, price
        self._gate = Gate(pace.max_connections)
        self._threads = ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1), thread_name_prefix="images")
        self._replies = 0
        self._failed = 0
        self._last_answer = time.monotonic()
        self._gone_told = False

    async def ask_all(self, jobs: Iterator[Job]) -> None:
        """Ask all jobs; the first failure that concerns the whole run stops it.

        Raises:
            BadInput: the run cannot go on (wrong key, server gone, full disk); what was answered is logged.
        """

        async def work() -> None:
            for job in jobs:
                await self._one(job)

        tasks = [asyncio.create_task(work()) for _ in range(self._pace.max_connections + _AHEAD)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._threads.shutdown(wait=True, cancel_futures=True)
            await self._model.close()

    async def _one(self, job: Job) -> None:
        try:
            request = await asyncio.get_running_loop().run_in_executor(self._threads, self._prepare, job)
        except ImageFault as error:
            outcome = Outcome("error", error=f"image: {error}")
            self._log(job.key, (), outcome, self._place.attempts(job.key) + 1, final=True)
            return
        await self._ask(request)

    async def _ask(self, request: Request) -> None:
        tries: Counter[str] = Counter()
        attempt = self._place.attempts(request.key)
        while True:
            attempt += 1
            async with self._gate:
                start = time.monotonic()
                outcome = await self._answer(request)
                latency = time.monotonic() - start
                if outcome.fatal:
                    raise self._stop(outcome.error or "", "nothing is lost: mend it and give the same command again")
            if outcome.latency is None:
                outcome = replace(outcome, latency=latency)
            kind = _kind(outcome)
            if not kind:
                self._replies += 1
                self._last_answer = time.monotonic()
                self._gone_told = False
                self._gate.succeeded()
            tries[kind] += 1
            again = bool(kind) and outcome.retry and self._try_again(kind, tries[kind])
            if not again and kind == "connection":
                raise self._stop(
                    (outcome.error or "").partition(": ")[2],
                    "start the server and give the same command again; all replies up to here are kept",
                )
            if kind == "connection" and not self._gone_told:
                self._gone_told = True
                self._watcher.say(f"{(outcome.error or '').partition(': ')[2]}; trying again for a while")
            self._log(request.key, request.images, outcome, attempt, final=not again)
            if not again:
                self._give_up_if_hopeless(kind, outcome)
                return
            await self._wait(kind, outcome, tries[kind])

    async def _answer(self, request: Request) -> Outcome:
        try:
            return await self._model.answer(request)
        except Exception as error:
            # A model of another package may break its promise not to raise; that is a failure of the question.
            return Outcome("error", error=f"model: {type(error).__name__} {error}")

    def _try_again(self, kind: str, tried: int) -> bool:
        if kind == "rate_limit":
            return tried <= self._pace.retries * 10
        if kind == "connection" and self._replies:
            return time.monotonic() - self._last_answer < self._pace.patience
        return tried <= self._pace.retries

    async def _wait(self, kind: str, outcome: Outcome, tried: int) -> None:
        wait = min(self._pace.backoff * 2 ** min(tried - 1, 10), _LONGEST_WAIT) * (0.5 + 0.5 * random.random())
        if outcome.retry_after is not None:
            wait = outcome.retry_after
            if wait > _LONGEST_PAUSE:
                raise self._stop(f"the server asks to wait {wait:.0f} s", "give the same command again then")
            if wait >= _TOLD_PAUSE:
                self._watcher.say(f"the server asks to wait {wait:.0f} s ({outcome.error})")
        if kind == "rate_limit":
            self._gate.throttle(wait)
        elif kind == "connection" or outcome.retry_after:
            self._gate.pause(wait)
        else:
            await asyncio.sleep(wait)

    def _give_up_if_hopeless(self, kind: str, outcome: Outcome) -> None:
        self._failed += bool(kind)
        if kind and not self._replies and self._failed >= self._pace.give_up:
            raise self._stop(
                f"the first {self._failed} questions all failed, the last by {outcome.error}",
                "try `sonogauge doctor`, mend it, and add --retry-errors",
            )

    def _stop(self, what: str, fix: str) -> BadInput:
        # No other question may start while the news travels.
        self._gate.pause(float("inf"))
        return BadInput(what, fix=fix)

    def _log(self, key: tuple[Any, ...], images: Sequence[Any], outcome: Outcome, attempt: int, *, final: bool) -> None:
        entry = entry_of(key, images, outcome, attempt, self._price)
        self._place.append(entry, final=final)
        if final:
            self._watcher.ended(entry)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        runner: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run
    else:
        runner = _run_in_thread
    return runner(work)


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def entry_of(
    key: tuple[Any, ...],
    images: Sequence[Any],
    outcome: Outcome,
    attempt: int,
    price: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return the row of the replies table of one attempt; an error has no text."""
    cost = outcome.cost
    if cost is None and price is not None and outcome.input_tokens is not None:
        cost = outcome.input_tokens * price[0] + (outcome.output_tokens or 0) * price[1]
    probabilities = outcome.option_probabilities
    return {
        **dict(zip(REPLY_KEY, key, strict=True)),
        "status": outcome.status,
        "text": None if outcome.status == "error" else _valid(outcome.text),
        "error": None if outcome.error is None else _valid(outcome.error),
        "finish_reason": outcome.finish_reason,
        "attempts": attempt,
        "input_tokens": outcome.input_tokens,
        "output_tokens": outcome.output_tokens,
        "cost": cost,
        "latency": None if outcome.latency is None else round(outcome.latency, 4),
        "option_probabilities": None
        if probabilities is None
        else [{"option": option, "probability": value} for option, value in probabilities.items()],
        "trace": None if outcome.trace is None else _valid(outcome.trace),
        "images_sent": [
            {
                "width": image.width,
                "height": image.height,
                "bytes": len(image.data),
                "hash": image.sha256,
                "policy": image.policy,
            }
            for image in images
        ],
    }


def _valid(text: str) -> str:
    # Half a surrogate pair is legal in JSON and in no table.
    return text.encode("utf-8", "replace").decode("utf-8")


def _kind(outcome: Outcome) -> str:
    return (outcome.error or "unknown").partition(":")[0] if outcome.status == "error" else ""
