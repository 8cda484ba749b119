"""Inspect logs as replies: what was asked, what came back, how it ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.inspect.endings import ended
from sonogauge.score.replies import Reply, ReplySource

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

# Fields of a sample that say nothing of the reply; not reading them saves most of the time.
_UNUSED: Final = {"events", "store", "messages", "timelines", "attachments", "events_data"}


def read_log(path: Path, bench: Path | None = None, model: str | None = None) -> tuple[ReplySource, Folder]:
    """Read the replies of an Inspect log (`.eval` or `.json`), with the folder of their benchmark.

    A sample's id is the item's; an epoch of Inspect counts from 1, ours from 0. A sample with an error, a withheld
    answer or none at all is an error; one cut off by the model's length or by a limit of Inspect is truncated; one that
    was to be asked and is not in the log is missing.

    Args:
        path: the log.
        bench: benchmark folder; None = the one that the log names.
        model: name in place of the one in the log.

    Raises:
        BadInput: no such log, not an Inspect log, one that was never finished or is of another benchmark, the extra is
            not installed.
    """
    log = _header(path)
    if log.status == "started":
        raise BadInput(
            "a log that was never finished; what was answered may not be in it",
            file=path,
            fix="wait for inspect eval, or run: inspect log recover LOG, or: inspect eval-retry LOG",
        )
    facts: dict[str, Any] = log.eval.metadata or {}
    if bench is None and not facts.get("bench"):
        raise BadInput("a log that names no benchmark folder", file=path, fix="name it: --bench DIR")
    folder = Folder(bench if bench is not None else facts["bench"], "benchmark")
    known = facts.get("benchmark_hash")
    if known is not None and known != folder.manifest.hash:
        raise BadInput(
            f"a log of another benchmark than {folder.path} (content hash {str(known)[:12]}, "
            f"here {folder.manifest.hash[:12]})",
            file=path,
            fix="name the benchmark it was made with: --bench DIR",
        )
    replies = list(_replies(path, log))
    if not replies:
        raise BadInput("no sample in it, and none that was to be asked", file=path, fix="run inspect eval again")
    asked, split = frozenset(reply.item_id for reply in replies), str(facts.get("split") or "test")
    return (
        ReplySource(
            model=model or log.eval.model,
            replies=replies,
            content_hash=hashlib.sha256(path.read_bytes()).hexdigest(),
            path=path,
            asked=asked if _is_part(asked, split, folder) else None,
            split=split,
            identity={"model": log.eval.model, "inspect": log.eval.packages.get("inspect_ai", "")},
        ),
        folder,
    )


def _header(path: Path) -> EvalLog:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise BadInput(
            "an Inspect log, and Inspect is not installed", file=path, fix="pip install 'sonogauge[inspect]'"
        ) from error
    if not path.is_file():
        raise BadInput("no such file", file=path)
    try:
        return read_eval_log(path, header_only=True)
    except Exception as error:  # Inspect raises nearly anything on a file that is no log
        raise _unreadable(path, error) from error


def _is_part(asked: frozenset[str], split: str, folder: Folder) -> bool:
    """Whether fewer items were asked than the split has."""
    return any(
        row["split"] == split and row["item_id"] not in asked for row in folder.rows("items", ["item_id", "split"])
    )


def _replies(path: Path, log: EvalLog) -> Iterator[Reply]:
    from inspect_ai.log import read_eval_log

    try:
        samples = read_eval_log(path, exclude_fields=_UNUSED).samples or []
    except Exception as error:  # see _header
        raise _unreadable(path, error) from error
    for sample in samples:
        yield _reply(sample)
    seen = {(str(sample.id), sample.epoch) for sample in samples}
    if any("reply_key" in sample.metadata for sample in samples):
        # Written by `write_log`: it holds all there is, and epochs perhaps of varied questions alone.
        return
    for sample_id in log.eval.dataset.sample_ids or ():
        for epoch in range(1, (log.eval.config.epochs or 1) + 1):
            if (str(sample_id), epoch) not in seen:
                yield Reply(str(sample_id), "", epoch - 1, "", "missing", None)


def _unreadable(path: Path, error: Exception) -> BadInput:
    # Zip, JSON, compression and validation each fail in their own way; to the user it is one fault.
    said = " ".join(f"{type(error).__name__} {error}".split())[:200]
    return BadInput(f"not an Inspect log that can be read ({said})", file=path)


def _reply(sample: EvalSample) -> Reply:
    # A log written by `write_log` keeps the key of a reply that is more than item and epoch.
    key = sample.metadata.get("reply_key") or {}
    failed = sample.error is not None or sample.invalidation is not None
    status, text = ended(sample.output, failed=failed, limited=sample.limit is not None)
    return Reply(
        str(key.get("item_id", sample.id)),
        str(key.get("variant", "")),
        sample.epoch - 1,
        str(key.get("rater_id", "")),
        status,
        text,
    )
