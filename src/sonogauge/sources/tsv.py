"""Tab-separated files, streamed: huge cells, any line ending, a hash of the file on the way."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput

# Masks reach 22 million characters; beyond this limit a cell is a sign of an unclosed quote.
FIELD_LIMIT: Final = 64 * 1024 * 1024
_LINE_LIMIT: Final = 4 * FIELD_LIMIT
_OPEN_QUOTE: Final = "look for a quote left open"
_POINTER: Final = b"version https://git-lfs"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class TsvRow:
    """One data row: its number from 1 (header not counted), its cells by column, and what is wrong with it."""

    number: int
    cells: dict[str, str]
    fault: str | None = None


class _HashingReader(io.RawIOBase):
    """A raw file that hashes and reports what is read from it."""

    def __init__(self, path: Path, on_bytes: Callable[[int], None] | None) -> None:
        self._file = path.open("rb", buffering=0)
        self._on_bytes = on_bytes
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        if count:
            self.digest.update(memoryview(buffer)[:count])
            if self._on_bytes is not None:
                self._on_bytes(count)
        return count or 0

    def close(self) -> None:
        self._file.close()
        super().close()


class TsvFile:
    """A tab-separated file with a header, read once from front to back.

    Args:
        path: the file.
        name: how messages call it.
        on_bytes: told how many bytes were read, for progress bars.

    Attributes:
        columns: names of the header, trimmed; known once iteration has begun.
        hash: SHA-256 of the file; known after the last row.
    """

    def __init__(self, path: Path, *, name: str | None = None, on_bytes: Callable[[int], None] | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._on_bytes = on_bytes
        self._record: list[str] = []  # lines of the record being read
        self.columns: tuple[str, ...] = ()
        self.hash = ""

    def __iter__(self) -> Iterator[TsvRow]:
        """Yield the data rows; blank lines are no rows.

        Raises:
            BadInput: unreadable file, UTF-16, a Git LFS pointer, no header, a column twice, an open quote, a cell over
                FIELD_LIMIT.
        """
        try:
            raw = _HashingReader(self._path, self._on_bytes)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", file=self._name) from error
        before = csv.field_size_limit(FIELD_LIMIT)
        try:
            with io.BufferedReader(raw, 1 << 20) as buffered:
                if buffered.peek(2)[:2] in _UTF16:
                    raise BadInput("encoded as UTF-16", file=self._name, fix="save it as UTF-8")
                if buffered.peek(len(_POINTER)).startswith(_POINTER):
                    raise BadInput("a Git LFS pointer, not the data", file=self._name, fix="download the file itself")
                # Bytes that are not UTF-8 become surrogates, so that they spoil their row and not the file.
                text = io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="surrogateescape", newline="")
                yield from self._rows(text)
                self.hash = raw.digest.hexdigest()
        finally:
            csv.field_size_limit(before)

    def _rows(self, text: io.TextIOWrapper) -> Iterator[TsvRow]:
        reader = csv.reader(self._lines(text), delimiter="\t")
        number = -1  # of the last record; the header is 0
        last: list[str] = []
        try:
            for cells in reader:
                last, self._record = self._record, []
                if not cells:
                    continue
                number += 1
                if number == 0:
                    self.columns = self._header(cells)
                else:
                    yield self._row(number, cells)
        except csv.Error as error:
            raise BadInput(f"{error}", file=self._name, row=number + 1, fix=_OPEN_QUOTE) from error
        if _open_at_end(last):
            raise BadInput("a quote is never closed", file=self._name, row=number, fix="close or double it")
        if number < 0:
            raise BadInput("empty file", file=self._name, fix="it needs a header line")

    def _lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        while line := text.readline(_LINE_LIMIT):
            if len(line) == _LINE_LIMIT:
                raise BadInput(f"a line of more than {_LINE_LIMIT} characters", file=self._name)
            self._record.append(line)
            yield line

    def _header(self, cells: list[str]) -> tuple[str, ...]:
        columns = tuple(cell.strip() for cell in cells)
        for column in columns:
            if column and columns.count(column) > 1:
                raise BadInput("two columns of this name", file=self._name, field=column, fix="rename or delete one")
        return columns

    def _row(self, number: int, cells: list[str]) -> TsvRow:
        named = dict(zip(self.columns, cells, strict=False))
        if len(cells) != len(self.columns):
            if any("\n" in cell and "\t" in cell for cell in cells):
                raise BadInput("a cell runs over several rows", file=self._name, row=number, fix=_OPEN_QUOTE)
            return TsvRow(number, named, "wrong number of cells")
        for cell in cells:
            if "\0" in cell:
                return TsvRow(number, named, "NUL character")
            if not cell.isascii() and not _is_unicode(cell):
                return TsvRow(number, named, "not UTF-8")
        return TsvRow(number, named)


def _open_at_end(lines: list[str]) -> bool:
    # The reader takes an open quote at the end of a file in silence; only its strict mode tells.
    try:
        list(csv.reader(lines, delimiter="\t", strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
