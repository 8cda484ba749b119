"""The run folder: a lock, one appended line per attempt, and at the end one table.

The folder is the only cache. A line is written with one system call, so a killed process leaves whole lines and at most
one torn last line, which the next process cuts off. Memory is one key and one offset per reply, never the texts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from filelock import FileLock, Timeout

from sonogauge._errors import BadInput
from sonogauge.folders import MANIFEST, Manifest, TableWriter, read_manifest, write_bytes
from sonogauge.models.base import ReplyKey
from sonogauge.tables import REPLIES

LOG: Final = "replies.jsonl"
TABLE: Final = "replies.parquet"
LOCK: Final = ".lock"
_COLUMNS: Final = frozenset(REPLIES.names)


class RunFolder:
    """An open run folder, held by one process; a context manager.

    Args:
        path: of the folder; made if it does not exist.
        manifest: of this run; its `parameters` are the run's identity and its inputs name the benchmark.

    Raises:
        BadInput: another process holds the folder, it is no run folder, it holds another run, or its log is broken.
    """

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        self.path = Path(path)
        self.manifest = manifest
        self._lock = FileLock(self.path / LOCK)
        self._log = -1
        self._end = 0
        self._last: dict[ReplyKey, tuple[int, int, str, bool]] = {}  # offset, attempt, status, final

    def __enter__(self) -> Self:
        path = self.path
        if path.exists() and not path.is_dir():
            raise BadInput("not a folder", file=path, fix="choose another --out")
        if path.is_dir() and not (path / MANIFEST).is_file() and {one.name for one in path.iterdir()} - {LOCK}:
            raise BadInput("exists already and is no run folder", file=path, fix="choose another --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise BadInput(
                "another process runs in this folder", file=path, fix="wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise BadInput(f"cannot write there ({error.strerror or error})", file=path) from error
        try:
            if (path / MANIFEST).is_file():
                self._agree(read_manifest(path))
            else:
                self.write_manifest()
            self._read()
            self._log = os.open(path / LOG, os.O_WRONLY | os.O_CREAT, 0o644)
            os.ftruncate(self._log, self._end)
            os.lseek(self._log, self._end, os.SEEK_SET)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._log >= 0:
            os.close(self._log)
        self._lock.release()

    def _agree(self, old: Manifest) -> None:
        if old.kind != "run":
            raise BadInput(f"this is a folder of {old.kind}, not of run", file=self.path, fix="choose another --out")
        mine, theirs = self._identity(self.manifest), self._identity(old)
        for name in sorted({*mine, *theirs}):
            if mine.get(name) != theirs.get(name):
                raise BadInput(
                    f"holds a run with another {name}: {_short(theirs.get(name))} there, {_short(mine.get(name))} now",
                    file=self.path,
                    fix="choose another --out",
                )
        self.manifest = old.model_copy(update={"inputs": self.manifest.inputs, "notices": self.manifest.notices})

    @staticmethod
    def _identity(manifest: Manifest) -> dict[str, Any]:
        # Through JSON, so that tuples and lists, 1 and 1.0 compare as they are stored.
        identity = json.loads(json.dumps(manifest.parameters, sort_keys=True))
        found = manifest.input("benchmark")
        return {**identity, "benchmark": found.hash if found else None}

    def _read(self) -> None:
        file = self.path / LOG
        if not file.is_file():
            return
        with file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    break  # torn by a kill: cut off before the next line is appended
                try:
                    entry = json.loads(line)
                    self._note(entry, self._end)
                except (ValueError, KeyError, TypeError) as error:
                    raise BadInput(
                        "broken line", file=file, row=number, fix="delete the line, its question is asked again"
                    ) from error
                self._end += len(line)

    def _note(self, entry: Mapping[str, Any], offset: int) -> None:
        key = (entry["item_id"], entry["variant"], int(entry["epoch"]), entry["rater_id"])
        self._last[key] = (offset, int(entry["attempts"]), entry["status"], bool(entry["final"]))

    def append(self, entry: Mapping[str, Any], *, final: bool) -> None:
        """Append one attempt, a row of the replies table; `final` = this key is not asked again.

        Raises:
            BadInput: the line cannot be written (the disk is full); what was written before stays whole.
        """
        entry = {**entry, "final": final}
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            written = os.write(self._log, line)
            while written < len(line):
                written += os.write(self._log, line[written:])
        except OSError as error:
            os.ftruncate(self._log, self._end)
            raise BadInput(
                f"cannot write ({error.strerror or error})",
                file=self.path / LOG,
                fix="make room and give the same command again; all replies up to here are kept",
            ) from error
        self._note(entry, self._end)
        self._end += len(line)

    def attempts(self, key: ReplyKey) -> int:
        """Return how many attempts of a key are logged."""
        return self._last[key][1] if key in self._last else 0

    def done(self, key: ReplyKey, *, retry_errors: bool = False) -> bool:
        """Whether a key needs no asking: it has a reply, or a recorded failure that is not to be tried again."""
        last = self._last.get(key)
        return last is not None and last[3] and not (retry_errors and last[2] == "error")

    def ended(self) -> Iterator[ReplyKey]:
        """Yield the keys that ended, in no order."""
        return (key for key, last in self._last.items() if last[3])

    def statuses(self) -> Counter[str]:
        """Count the replies by status."""
        return Counter(last[2] for last in self._last.values() if last[3])

    def write_manifest(self, tables: Mapping[str, Any] | None = None) -> None:
        """Write the manifest as it stands now."""
        complete = self.manifest.model_copy(update={"tables": dict(tables or {})})
        text = json.dumps(complete.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True)
        try:
            write_bytes(self.path / MANIFEST, text.encode("utf-8", "backslashreplace") + b"\n")
        except OSError as error:
            raise BadInput(f"cannot write ({error.strerror or error})", file=self.path / MANIFEST) from error

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the last entry of every key that ended, sorted by key."""
        with (self.path / LOG).open("rb") as stream:
            for key in sorted(self.ended()):
                stream.seek(self._last[key][0])
                yield json.loads(stream.readline())

    def compact(self) -> None:
        """Write the replies table from the log, and the manifest that names it."""
        temporary = self.path / f".{TABLE}.new"
        try:
            writer = TableWriter(temporary, "replies", rows_per_group=256)
            writer.write({name: entry[name] for name in entry if name in _COLUMNS} for entry in self.entries())
            facts = writer.close()
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, self.path / TABLE)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise BadInput(
                f"cannot write ({error.strerror or error})",
                file=self.path / TABLE,
                fix="make room and give the same command again; all replies are kept",
            ) from error
        self.write_manifest({"replies": facts})


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
