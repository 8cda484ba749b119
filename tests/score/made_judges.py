"""A small benchmark of free-text answers, replies to it, and scripted judges."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.score.small import write_bench, write_replies

from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, ScenarioSet, Task
from sonogauge.items import Item, ItemImage
from sonogauge.models.base import Outcome, Request
from sonogauge.score.judging.ask import Patience

QUICK = Patience(connections=3, retries=2, backoff=0.0, timeout=5.0)

SPEC = BenchmarkSpec(
    name="skin",
    version="1",
    title="Skin",
    tasks={
        "AR": Task(title="Attribute", form="text", metrics=("judge_score",)),
        "RG": Task(title="Report", form="text", metrics=("rouge_l",)),
    },
    scenarios=(Scenario(task="AR", dataset="01"), Scenario(task="RG", dataset="01")),
    sets={"all": ScenarioSet(title="All")},
)


def text_item(number: int, *references: str, task: str = "AR", attribute: str = "", **facts: Any) -> Item:
    return Item(
        item_id=f"{task}/{number:03d}",
        task=task,
        dataset="01",
        source="skin",
        group=f"skin:{facts.get('patient', number)}",
        split="test",
        images=(ItemImage(f"case-{number:03d}"),),
        question=facts.get("question", f"Question {number}?"),
        prompt_id="skin/x@1",
        answer=AnswerSpec("text"),
        reference={"texts": references} if references else {},
        reference_state="ok" if references else "absent",
        meta={"attribute_asked": attribute} if attribute else {},
    )


def made(tmp_path: Path, texts: Mapping[str, str | None], items: Sequence[Item]) -> tuple[Path, Path]:
    """Write a benchmark and replies to it; return both paths."""
    bench = write_bench(tmp_path / "bench", items, SPEC)
    return write_replies(tmp_path / "model.jsonl", dict(texts)), bench


class ScriptedJudge:
    """Answers with what `script(data, nth)` returns: a text, an Outcome, or an exception to raise.

    data: the JSON object of the prompt, as a judge that keeps to it reads it. nth: how often this data was asked.
    """

    revision = ""
    options: Mapping[str, Any] = {}

    def __init__(
        self, script: Callable[[dict[str, Any], int], Any], name: str = "test/judge", endpoint: str = ""
    ) -> None:
        self.name, self.endpoint, self._script = name, endpoint, script
        self.requests: list[Request] = []
        self._asked: dict[str, int] = {}
        self.closed = 0

    async def answer(self, request: Request) -> Outcome:
        self.requests.append(request)
        await asyncio.sleep(0)
        data = data_of(request.prompt)
        key = json.dumps(data)
        self._asked[key] = self._asked.get(key, 0) + 1
        said = self._script(data, self._asked[key])
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, Outcome) else Outcome("ok", text=said, input_tokens=100, output_tokens=10)

    async def close(self) -> None:
        self.closed += 1


def data_of(prompt: str) -> dict[str, Any]:
    """Return what stands between the two boundary lines of a prompt."""
    (boundary,) = set(re.findall(r"^=== data [0-9a-f]{16} ===$", prompt, re.MULTILINE))
    lines = prompt.split("\n")
    first, last = (place for place, line in enumerate(lines) if line == boundary)
    data: dict[str, Any] = json.loads("\n".join(lines[first + 1 : last]))
    return data


def says(verdict: float, rationale: str = "because") -> str:
    return json.dumps({"rationale": rationale, "verdict": verdict})
