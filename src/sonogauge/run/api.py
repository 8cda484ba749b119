"""The public function of this step: put the questions of a benchmark to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sonogauge._errors import BadInput
from sonogauge.folders import Folder, Input, Manifest
from sonogauge.items import Item
from sonogauge.models import Reader, load_model
from sonogauge.run.log import RunFolder
from sonogauge.run.plan import Questions


@dataclass(frozen=True)
class RunResult:
    """What a run holds when it ends.

    statuses: replies by status; failures: replies with status error by kind; planned: questions of this call;
    failed_share: share of this call's questions that ended in status error.
    """

    path: Path
    manifest: Manifest
    planned: int
    statuses: dict[str, int]
    failures: dict[str, int]
    failed_share: float

    def exit_code(self, max_failures: float = 0.05) -> int:
        """Return 1 if more failed than allowed, else 0."""
        return int(self.failed_share > max_failures)


def run(
    bench: Path | str,
    model: str | Reader,
    out: Path | str,
    *,
    limit: int | None = None,
    tasks: Sequence[str] | None = None,
    split: str = "test",
    seed: int = 0,
) -> RunResult:
    """Ask a model the questions of a benchmark and return what the run folder holds.

    The same call again goes on where the folder stands; `limit`, `tasks` and `split` may differ, so a run can grow.

    Raises:
        BadInput: no benchmark, no such model or task, a folder of another run or in use, a full disk.
    """
    folder = Folder(bench, "benchmark")
    answerer = load_model(model) if isinstance(model, str) else model
    if not isinstance(answerer, Reader):
        raise BadInput("not a model this sonogauge can run", field="model")
    questions = Questions.read(folder, split)
    chosen = questions.choose(tasks, limit)
    manifest = Manifest(
        kind="run",
        maker=f"sonogauge {version('sonogauge')}",
        name=answerer.name,
        inputs=[Input(role="benchmark", path=str(Path(bench).resolve()), hash=folder.manifest.hash)],
        parameters={
            "model": answerer.name,
            "revision": "",
            "endpoint": "",
            "generation": {},
            "image_policy": "original",
            "prompts": sorted({item.prompt_id for item in questions.items}),
            "seed": seed,
        },
        licences=folder.manifest.licences,
        notices=folder.manifest.notices,
    )
    with RunFolder(out, manifest) as place:
        planned = _read_replies(answerer, questions, chosen, place, seed)
        return _finish(place, questions, planned, split)


def _read_replies(
    reader: Reader, questions: Questions, chosen: Sequence[Item], place: RunFolder, seed: int
) -> list[tuple[str, str, int, str]]:
    # All items are answered, not the chosen ones alone: a baseline that counts must not depend on the limit.
    texts = reader.replies(questions.items, questions.train, seed)
    replies = {item.item_id: text for item, text in zip(questions.items, texts, strict=True)}
    planned = []
    for item in chosen:
        text, key = replies[item.item_id], (item.item_id, "", 0, "")
        if text is None:
            continue
        planned.append(key)
        if not place.done(key):
            place.append(
                {
                    **dict(zip(("item_id", "variant", "epoch", "rater_id"), key, strict=True)),
                    "status": "ok",
                    "text": text,
                    "attempts": 1,
                },
                final=True,
            )
    return planned


def _finish(place: RunFolder, questions: Questions, planned: Sequence[Any], split: str) -> RunResult:
    failures: Counter[str] = Counter()
    for entry in place.entries():
        if entry["status"] == "error":
            failures[(entry.get("error") or "unknown").partition(":")[0]] += 1
    statuses = {name: place.statuses()[name] for name in ("ok", "truncated", "error")}
    place.manifest = place.manifest.model_copy(
        update={
            "counts": {
                "asked": questions.asked((key[0] for key in place.ended()), split),
                "replies": statuses,
                "failures": dict(sorted(failures.items())),
            }
        }
    )
    place.compact()
    return RunResult(place.path, place.manifest, len(planned), statuses, dict(failures), 0.0)
