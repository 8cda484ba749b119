"""Reading and writing folders of tables: atomic, checked, hashed.

A folder is written beside its target under a temporary name, synced and renamed, so that a reader finds all of it or
nothing. `manifest.json` says what made it, from what, with which parameters. A table's hash covers its rows, not the
bytes of the Parquet file, so it does not depend on the writer's version; media enter by their own SHA-256.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sonogauge._errors import BadInput
from sonogauge._leftovers import Scratch, clear_leftovers
from sonogauge.hashes import canonical_hash
from sonogauge.table_writer import TableFacts, TableWriter
from sonogauge.tables import ADDED, SCHEMAS, TABLE_VERSION, key_of

MANIFEST: Final = "manifest.json"
_REMAKE: Final = "make the folder again"
_MAKERS: Final = {"cases": "import", "benchmark": "build", "run": "run", "scores": "score", "verdicts": "judge"}


class Input(BaseModel):
    """An input of a step: where it lay and what it held."""

    role: str
    path: str
    hash: str


class Manifest(BaseModel):
    """What made a folder: enough to repeat the step and to see whether anything changed.

    `parameters` holds everything that could change a number; `counts` what was read, kept and dropped.
    """

    model_config = ConfigDict(extra="allow")

    format_version: int = TABLE_VERSION
    kind: str
    maker: str
    name: str = ""
    version: str = ""
    inputs: list[Input] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)
    counts: dict[str, Any] = Field(default_factory=dict)
    licences: list[str] = Field(default_factory=list)
    notices: list[str] = Field(default_factory=list)
    tables: dict[str, TableFacts] = Field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Content hash: name, version, parameters and tables, but no path and no maker."""
        parts = self.model_dump(include={"kind", "name", "version", "parameters", "tables"})
        parts["inputs"] = sorted([one.role, one.hash] for one in self.inputs)
        return canonical_hash(parts)

    def input(self, role: str) -> Input | None:
        """Return the first input of that role."""
        return next((one for one in self.inputs if one.role == role), None)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: temporary name, fsync, rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class FolderWriter:
    """Collects the tables and files of one folder; see `new_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writers: dict[str, TableWriter] = {}

    def table(self, name: str, rows_per_group: int = 2048, bytes_per_group: int | None = None) -> TableWriter:
        """Return the writer of a table, opened on first use.

        bytes_per_group: of images, ends a row group early. Few large groups keep less in memory than many small ones,
        for each leaves facts of every column until the file is closed.
        """
        if name not in self._writers:
            self._writers[name] = TableWriter(self.path / f"{name}.parquet", name, rows_per_group, bytes_per_group)
        return self._writers[name]

    def finish(self, manifest: Manifest) -> Manifest:
        """Close all tables and write the manifest, completed with their facts."""
        facts = {name: writer.close() for name, writer in self._writers.items()}
        complete = manifest.model_copy(update={"tables": facts})
        text = json.dumps(complete.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=True)
        write_bytes(self.path / MANIFEST, text.encode("utf-8") + b"\n")
        return complete


class new_folder:
    """Context manager: write a folder under a temporary name and rename it when the block ends well.

    Args:
        out: where the folder shall lie.
        overwrite: replace an existing folder, provided it is one of ours (holds a manifest that can be read).

    Raises:
        BadInput: `out` exists and may not be replaced, or cannot be written.
        RuntimeError: the block ended well without `finish`.
    """

    def __init__(self, out: Path | str, *, overwrite: bool = False) -> None:
        self._out = Path(out)
        self._overwrite = overwrite
        self._scratch: Scratch | None = None

    def __enter__(self) -> FolderWriter:
        out = self._out
        clear_leftovers(out)
        self._refuse_existing()
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            self._scratch = Scratch(out)
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInput(f"cannot be written ({reason})", file=out, fix="choose another --out") from error
        self._scratch.path.chmod(0o755)
        return FolderWriter(self._scratch.path)

    def _refuse_existing(self) -> None:
        out = self._out
        if not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir())):
            return
        ours = _is_ours(out)
        if not (ours and self._overwrite):
            fix = "pass --overwrite to replace it" if ours else "choose another --out"
            raise BadInput("exists already", file=out, fix=fix)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        scratch, out = self._scratch, self._out
        if scratch is None:
            return
        if kind is not None or not (scratch.path / MANIFEST).is_file():
            scratch.remove()
            if kind is None:
                raise RuntimeError(f"{out} was not finished: call finish(manifest) inside the block")
            return
        scratch.sync()
        try:
            self._refuse_existing()  # something may have appeared there in the meantime
        except BadInput:
            scratch.remove()
            raise
        scratch.take_place_of(out)


def _is_ours(path: Path) -> bool:
    # Other programs call files manifest.json too: only one that reads as ours allows a folder to be replaced.
    try:
        read_manifest(path)
    except BadInput:
        return False
    return True


class Folder:
    """A finished folder: its manifest and its tables.

    Raises:
        BadInput: no such folder, no or a broken manifest, another kind than wanted, a newer format.
    """

    def __init__(self, path: Path | str, kind: str | None = None) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(self.path)
        if kind is not None and self.manifest.kind != kind:
            maker = _MAKERS.get(kind)
            raise BadInput(
                f"this is a folder of {self.manifest.kind}, not of {kind}",
                file=self.path,
                fix=f"`sonogauge {maker}` makes one" if maker else None,
            )

    @classmethod
    def open(cls, path: Path | str, kind: str | None = None) -> Self:
        """Open a folder (the same as calling the class)."""
        return cls(path, kind)

    def file(self, name: str) -> Path:
        """Return the path of a table's Parquet file."""
        return self.path / f"{name}.parquet"

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table whole, checked against its schema; raise BadInput for a damaged one."""
        path = self.file(name)
        with open_table(path, name) as file, _damage(path):
            return _conform(file.read(columns=columns), name, path, columns)

    def batches(self, name: str, columns: list[str] | None = None, size: int = 8192) -> Iterator[pa.RecordBatch]:
        """Stream a table in record batches; raise BadInput where it is damaged."""
        path = self.file(name)
        with open_table(path, name) as file, _damage(path):
            # One row group at a time: a reader over several keeps the memory of all of them until its end.
            for group in range(file.metadata.num_row_groups):
                for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=columns):
                    yield from _conform(pa.Table.from_batches([batch]), name, path, columns).to_batches()

    def rows(self, name: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """Stream a table as dicts."""
        for batch in self.batches(name, columns):
            yield from batch.to_pylist()


def _conform(table: pa.Table, name: str, file: Path, columns: list[str] | None) -> pa.Table:
    for column in sorted(ADDED.get(name, frozenset()) & set(columns if columns is not None else SCHEMAS[name].names)):
        if column not in table.column_names:
            field = SCHEMAS[name].field(column)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    if columns is None:
        table = table.select([column for column in SCHEMAS[name].names if column in table.column_names])
    # Another writer may have stored, say, int64 for int32: cast, and name the column where that fails.
    fields = [SCHEMAS[name].field(column) for column in table.column_names]
    try:
        return table.cast(pa.schema(fields))
    except (pa.ArrowException, ValueError):
        for field in fields:
            try:
                table.select([field.name]).cast(pa.schema([field]))
            except (pa.ArrowException, ValueError) as error:
                raise BadInput(f"wrong type ({error})", file=file, field=field.name, fix=_REMAKE) from error
        raise


@contextmanager
def _damage(file: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"not a readable Parquet file ({error})", file=file, fix=_REMAKE) from error


def read_manifest(path: Path | str) -> Manifest:
    """Read the manifest of a folder; raise BadInput if there is none or it is broken or newer."""
    folder = Path(path)
    file = folder / MANIFEST
    if not folder.is_dir():
        raise BadInput("no such folder", file=folder)
    if not file.is_file():
        raise BadInput("no manifest.json, so not a folder of sonogauge", file=folder)
    try:
        raw = json.loads(file.read_text("utf-8"))
        json.dumps(raw, ensure_ascii=False).encode("utf-8")  # half a character could not be written again
        version = int(raw["format_version"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput("broken manifest", file=file, fix=_REMAKE) from error
    _refuse_newer(version, file)
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], file=file, field=field, fix=_REMAKE) from error


def _refuse_newer(version: int, file: Path) -> None:
    if version > TABLE_VERSION:
        raise BadInput(
            f"written in format {version}, this sonogauge reads up to {TABLE_VERSION}",
            file=file,
            fix="upgrade sonogauge",
        )


@contextmanager
def open_table(path: Path | str, name: str, buffer_size: int = 0) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file as a table of that name.

    buffer_size: bytes read at once; 0 reads whole columns of a row group, which are large where they hold images.

    Raises:
        BadInput: missing or truncated file, another table, a newer version, a missing column.
    """
    file = Path(path)
    if not file.is_file():
        raise BadInput(f"no {name} table", file=file)
    try:
        parquet = pq.ParquetFile(file, buffer_size=buffer_size)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"not a readable Parquet file ({error})", file=file, fix=_REMAKE) from error
    with parquet:
        found = parquet.schema_arrow
        facts = found.metadata or {}
        version = facts.get(b"sonogauge.version", b"1")
        if not version.isdigit():
            raise BadInput(f"no version but {version!r} in its metadata", file=file, fix=_REMAKE)
        _refuse_newer(int(version), file)
        kind = facts.get(b"sonogauge.table", name.encode()).decode("utf-8", "replace")
        if kind != name:
            raise BadInput(f"this is a table of {kind}, not of {name}", file=file)
        for field in SCHEMAS[name]:
            if field.name not in found.names and field.name not in ADDED.get(name, ()):
                raise BadInput(f"column missing in the {name} table", file=file, field=field.name)
        yield parquet


def sort_rows(rows: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return rows sorted by their table's key."""
    keys = key_of(name)
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))
