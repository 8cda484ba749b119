"""The folder of verdicts: a lock, one appended line per question to a judge, and at the end one table.

A line is keyed by the hash of all that could change its verdict (judge, options, prompt, data), so what was asked once
is never asked again, and a reply that changed is asked anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from filelock import FileLock, Timeout

from sonogauge._errors import BadInput
from sonogauge.folders import MANIFEST, Manifest, TableWriter, read_manifest, write_bytes

LOG: Final = "verdicts.jsonl"
TABLE: Final = "verdicts.parquet"
LOCK: Final = ".lock"
KIND: Final = "verdicts"


class VerdictFolder:
    """An open folder of verdicts, held by one process; a context manager.

    Args:
        path: of the folder; made if it does not exist.
        manifest: its name is the judged model, its inputs name the benchmark and the replies.

    Raises:
        BadInput: another process holds the folder, it is none of verdicts, it holds those of another model or
            benchmark, or its log is broken.
    """

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        self.path = Path(path)
        self.manifest = manifest
        self._lock = FileLock(self.path / LOCK)
        self._log = -1
        self._end = 0
        self.answers: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        path = self.path
        if path.exists() and not path.is_dir():
            raise BadInput("not a folder", file=path, fix="choose another --out")
        if path.is_dir() and not (path / MANIFEST).is_file() and {one.name for one in path.iterdir()} - {LOCK}:
            raise BadInput("exists already and holds no verdicts", file=path, fix="choose another --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise BadInput("another process judges in this folder", file=path, fix="wait for it") from None
        except OSError as error:
            raise BadInput(f"cannot write there ({error.strerror or error})", file=path) from error
        try:
            if (path / MANIFEST).is_file():
                self._agree(read_manifest(path))
            else:
                self._write_manifest(self.manifest)
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
        if old.kind != KIND:
            raise BadInput(f"this is a folder of {old.kind}, not of {KIND}", file=self.path, fix="choose another --out")
        theirs, mine = old.input("benchmark"), self.manifest.input("benchmark")
        if old.name != self.manifest.name or (theirs and theirs.hash) != (mine and mine.hash):
            raise BadInput(
                f"holds verdicts on another run ({old.name})", file=self.path, fix="choose another --out for this run"
            )

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
                    self.answers[str(entry["ask"])] = entry
                except (ValueError, KeyError, TypeError) as error:
                    raise BadInput(
                        "broken line", file=file, row=number, fix="delete the line, its question is asked again"
                    ) from error
                self._end += len(line)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append what a judge said to one question (`ask`, `verdict` or null, `fault`, `rationale`, `text`, `cost`).

        Raises:
            BadInput: the line cannot be written (the disk is full); what was written before stays whole.
        """
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
                fix="make room and give the same command again; all verdicts up to here are kept",
            ) from error
        self.answers[entry["ask"]] = dict(entry)
        self._end += len(line)

    def finish(self, rows: Iterable[Mapping[str, Any]], counts: Mapping[str, Any]) -> Manifest:
        """Write the table of verdicts, sorted rows, and the manifest that names it."""
        temporary = self.path / f".{TABLE}.new"
        try:
            writer = TableWriter(temporary, "verdicts")
            writer.write(rows)
            facts = writer.close()
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, self.path / TABLE)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise BadInput(f"cannot write ({error.strerror or error})", file=self.path / TABLE) from error
        complete = self.manifest.model_copy(update={"tables": {"verdicts": facts}, "counts": dict(counts)})
        self._write_manifest(complete)
        return complete

    def _write_manifest(self, manifest: Manifest) -> None:
        text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True)
        try:
            write_bytes(self.path / MANIFEST, text.encode("utf-8", "backslashreplace") + b"\n")
        except OSError as error:
            raise BadInput(f"cannot write ({error.strerror or error})", file=self.path / MANIFEST) from error
