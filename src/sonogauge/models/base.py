"""What a model is to the run: something that answers requests, and says how each answer ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from sonogauge.items import Item

Status = Literal["ok", "truncated", "error"]
ReplyKey = tuple[str, str, int, str]  # as tables.REPLY_KEY


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image as it is sent.

    data: encoded bytes; media_type: "image/png", …; policy: the image policy that made them ("original" = untouched).
    """

    data: bytes
    media_type: str
    width: int
    height: int
    sha256: str
    policy: str = "original"


@dataclass(frozen=True, slots=True)
class Request:
    """One question as a model gets it: everything but the reference.

    options, letters: as shown in the prompt, empty where the item offers none.
    generation: options of the call ("temperature", "max_tokens", "seed", …), passed on as they are.
    """

    item_id: str
    variant: str
    epoch: int
    prompt: str
    images: tuple[EncodedImage, ...] = ()
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    generation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> ReplyKey:
        """The key of the reply in the replies table."""
        return self.item_id, self.variant, self.epoch, ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended.

    error: one line, "kind: detail"; the part before the colon is what failures are counted by.
    retry: the failure may pass, so that asking again makes sense; retry_after: seconds the server asked to wait.
    fatal: no request of this run can succeed (wrong key, no such model), so that asking on would be waste.
    option_probabilities: option text to probability, where the server gives it.
    trace: JSON of what led to the answer (reasoning, tool calls).
    """

    status: Status
    text: str = ""
    error: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    option_probabilities: Mapping[str, float] | None = None
    trace: str | None = None
    retry: bool = False
    retry_after: float | None = None
    fatal: bool = False


def without_key(outcome: Outcome, key: str | None) -> Outcome:
    """Return an outcome whose error does not hold the key; some servers repeat the one that they refuse."""
    if outcome.error is None or not key or len(key) < 8 or key not in outcome.error:
        return outcome
    return replace(outcome, error=outcome.error.replace(key, "[key]"))


class Model(Protocol):
    """Who answers. The run calls `answer` up to `max_connections` times at once.

    name: as the user wrote it ("openai/gpt-x"); revision: of the weights, empty if unknown; endpoint: address that the
    images leave for, empty if they stay in this process. options: of the model itself, part of the run's identity.
    """

    name: str
    revision: str
    endpoint: str
    options: Mapping[str, Any]

    async def answer(self, request: Request) -> Outcome:
        """Answer one request; never raises for a failure of the request."""
        ...

    async def close(self) -> None:
        """Free connections and memory."""
        ...


@runtime_checkable
class Reader(Protocol):
    """A model that is a function of the benchmark and may read references: the baselines, and they alone."""

    name: str

    def replies(self, items: Sequence[Item], train: Sequence[Item], seed: int) -> list[str | None]:
        """Return one reply text per item, None where no reply is defined."""
        ...
