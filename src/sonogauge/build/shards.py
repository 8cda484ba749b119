"""Work that survives a killed command: results of a stage in shard files beside the output, named by what went in.

A shard covers some row groups of one cases table. Its file is named by the hash of the stage, the table and the rows; a
repeated command finds it and goes on with the next. The folder goes when the benchmark is finished.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import pyarrow as pa
from filelock import FileLock, Timeout

from sonogauge._errors import BadInput
from sonogauge.build.engine import Engine
from sonogauge.folders import Folder, open_table
from sonogauge.hashes import canonical_hash

SHARD_ROWS: Final = 512
BATCH_ROWS: Final = 16


class Stage(Protocol):
    """A pure function over record batches.

    schema: of the results. columns: of the cases table that it reads. key: name, version and parameters, everything
    but the rows that decides the results.
    """

    @property
    def schema(self) -> pa.Schema:
        """Schema of the results."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it reads."""
        ...

    @property
    def key(self) -> Mapping[str, Any]:
        """What decides the results besides the rows."""
        ...

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the results of a batch."""
        ...


@dataclass(frozen=True)
class Shard:
    """Some row groups of a cases table."""

    groups: tuple[int, ...]
    start: int
    rows: int


def shards_of(file: Path, rows: int = SHARD_ROWS) -> list[Shard]:
    """Cut a table into shards of whole row groups, each of at least `rows` rows but the last."""
    with open_table(file, "cases") as parquet:
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]
    shards: list[Shard] = []
    groups: list[int] = []
    start = at = 0
    for group, size in enumerate(sizes):
        groups.append(group)
        at += size
        if at - start >= rows or group == len(sizes) - 1:
            shards.append(Shard(tuple(groups), start, at - start))
            groups, start = [], at
    return shards


class WorkFolder:
    """The folder of shards beside an output; one command at a time may use it.

    Raises:
        BadInput: another command is building the same output, or the folder cannot be made.
    """

    def __init__(self, out: Path) -> None:
        self.path = out.parent / f".{out.name}.work"
        self._lock = FileLock(out.parent / f".{out.name}.lock")

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except OSError as error:
            if isinstance(error, Timeout):
                raise BadInput("another command builds this folder", file=self.path.parent) from error
            raise BadInput(
                f"cannot be written ({error.strerror})", file=self.path, fix="choose another --out"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After bad input the user mends the recipe and repeats: the shards stay valid, being named by what went in.
        done = kind is None or not any(self.path.iterdir())
        if done:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()
        if done:
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def run(self, engine: Engine, stage: Stage, cases: Folder, rows: int = SHARD_ROWS) -> list[Path]:
        """Return the shard files of a stage over a folder of cases, made or found, in the order of the rows."""
        file = cases.file("cases")
        paths = []
        for shard, path in self._named(stage, cases, rows):
            if not path.is_file():
                write_arrow(path, stage.schema, engine.map_batches(stage, read_shard(file, shard, stage.columns)))
            paths.append(path)
        return paths

    def adopt(self, stage: Stage, cases: Folder, results: Path) -> None:
        """Cut results of a stage that were made along with the cases into the shards that `run` looks for.

        results: an Arrow file with one batch for each row group of the cases.
        """
        with pa.OSFile(str(results)) as source, pa.ipc.open_file(source) as reader:
            for shard, path in self._named(stage, cases, SHARD_ROWS):
                write_arrow(path, stage.schema, (reader.get_batch(group) for group in shard.groups))
        results.unlink()

    def _named(self, stage: Stage, cases: Folder, rows: int) -> Iterator[tuple[Shard, Path]]:
        identity = cases.manifest.tables["cases"].hash
        for shard in shards_of(cases.file("cases"), rows):
            name = canonical_hash({"stage": dict(stage.key), "table": identity, "rows": [shard.start, shard.rows]})
            yield shard, self.path / f"{name[:40]}.arrow"


def read_shard(file: Path, shard: Shard, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a shard, a few rows each."""
    with open_table(file, "cases", buffer_size=1 << 20) as parquet:
        # One row group at a time: a reader over several keeps the memory of all of them until its end.
        for group in shard.groups:
            yield from parquet.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], columns=list(columns))


def write_arrow(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write batches as an Arrow file, whole or not at all."""
    temporary = path.with_suffix(".part")
    with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    os.replace(temporary, path)


def read_arrow(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow file; its columns are mapped from the disk, not loaded."""
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            yield batch if columns is None else batch.select(list(columns))
