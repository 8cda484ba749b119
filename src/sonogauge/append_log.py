"""A folder that grows line by line: a lock, one appended line per answer, and at the end one table.

A line is written with one system call, so a killed process leaves whole lines and at most one torn last line, which the
next process cuts off. A run and a judge's verdicts are such folders; each says what its lines mean.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from filelock import FileLock, Timeout

from sonogauge._errors import BadInput
from sonogauge.folders import MANIFEST, Manifest, read_manifest, write_bytes
from sonogauge.table_writer import TableFacts, TableWriter

LOCK: Final = ".lock"


class AppendFolder(ABC):
    """An open folder, held by one process; a context manager. Subclasses name the table and read the lines.

    Args:
        path: of the folder; made if it does not exist.
        manifest: of this work; `agree` compares it with the one that lies there.

    Raises:
        BadInput: another process holds the folder, it is none of this kind, it holds other work, or its log is broken.
    """

    kind: ClassVar[str]  # of the manifest
    table: ClassVar[str]  # table and log are TABLE.parquet and TABLE.jsonl
    rows_per_group: ClassVar[int] = 2048

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        self.path = Path(path)
        self.manifest = manifest
        self.log_file = self.path / f"{self.table}.jsonl"
        self._lock = FileLock(self.path / LOCK)
        self._log = -1
        self._end = 0

    @abstractmethod
    def agree(self, old: Manifest) -> None:
        """Refuse a folder that holds other work; raise BadInput."""

    @abstractmethod
    def note(self, entry: Mapping[str, Any], offset: int) -> None:
        """Take in one line, which lies at `offset` of the log; KeyError, ValueError or TypeError if it is broken."""

    def __enter__(self) -> Self:
        path = self.path
        if path.exists() and not path.is_dir():
            raise BadInput("not a folder", file=path, fix="choose another --out")
        if path.is_dir() and not (path / MANIFEST).is_file() and {one.name for one in path.iterdir()} - {LOCK}:
            raise BadInput(f"exists already and is no {self.kind} folder", file=path, fix="choose another --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise BadInput(
                "another process works in this folder", file=path, fix="wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise BadInput(f"cannot write there ({error.strerror or error})", file=path) from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _open(self) -> None:
        if (self.path / MANIFEST).is_file():
            old = read_manifest(self.path)
            if old.kind != self.kind:
                raise BadInput(
                    f"this is a folder of {old.kind}, not of {self.kind}", file=self.path, fix="choose another --out"
                )
            self.agree(old)
        else:
            self.write_manifest()
        self._read()
        self._log = os.open(self.log_file, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(self._log, self._end)
        os.lseek(self._log, self._end, os.SEEK_SET)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._log >= 0:
            os.close(self._log)
        self._lock.release()

    def _read(self) -> None:
        if not self.log_file.is_file():
            return
        with self.log_file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    break  # torn by a kill: cut off before the next line is appended
                try:
                    self.note(json.loads(line), self._end)
                except (ValueError, KeyError, TypeError) as error:
                    raise BadInput(
                        "broken line",
                        file=self.log_file,
                        row=number,
                        fix="delete the line, its question is asked again",
                    ) from error
                self._end += len(line)

    def append_line(self, entry: Mapping[str, Any]) -> None:
        """Append one line.

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
                file=self.log_file,
                fix=f"make room and give the same command again; all {self.table} up to here are kept",
            ) from error
        self.note(entry, self._end)
        self._end += len(line)

    def write_manifest(self, tables: Mapping[str, TableFacts] | None = None) -> None:
        """Write the manifest as it stands now."""
        complete = self.manifest.model_copy(update={"tables": dict(tables or {})})
        text = json.dumps(complete.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True)
        try:
            write_bytes(self.path / MANIFEST, text.encode("utf-8", "backslashreplace") + b"\n")
        except OSError as error:
            raise BadInput(f"cannot write ({error.strerror or error})", file=self.path / MANIFEST) from error

    def write_table(self, rows: Iterable[Mapping[str, Any]]) -> TableFacts:
        """Write the table of the folder, rows sorted by its key, and the manifest that names it."""
        target = self.path / f"{self.table}.parquet"
        temporary = self.path / f".{target.name}.new"
        try:
            writer = TableWriter(temporary, self.table, rows_per_group=self.rows_per_group)
            writer.write(rows)
            facts = writer.close()
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise BadInput(
                f"cannot write ({error.strerror or error})",
                file=target,
                fix=f"make room and give the same command again; all {self.table} are kept",
            ) from error
        self.write_manifest({self.table: facts})
        return facts
