"""Unpacking archives that strangers made: every member is checked before the first byte is written."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from sonogauge._errors import BadInput
from sonogauge._leftovers import Scratch, clear_leftovers
from sonogauge.sources.readers.tree import refuse_name

MAX_UNPACKED: Final = 500 * 1024**3
MAX_MEMBERS: Final = 5_000_000
MAX_RATIO: Final = 1000  # unpacked to packed; zeros pack at about 1030 to 1
_CHUNK: Final = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive by its ending."""
    return path.name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))


def unpack(archive: Path, out: Path, *, max_bytes: int = MAX_UNPACKED) -> int:
    """Unpack a zip or tar archive below `out` and return the number of files; all of it or nothing.

    Raises:
        BadInput: a member that would leave the folder, a link or device, a name with control characters, too many bytes
            or members, a broken archive.
    """
    out.mkdir(parents=True, exist_ok=True)
    place = out / "archive"
    clear_leftovers(place)
    scratch = Scratch(place)
    try:
        count = 0
        with _opened(archive) as (members, total):
            if total > max_bytes or total > MAX_RATIO * max(archive.stat().st_size, 1_000):
                raise BadInput(f"unpacks to {total} bytes", file=archive, fix="no honest archive packs like that")
            left = max_bytes
            for name, stream in members:
                left -= _copy(stream, scratch.path / name, left, archive)
                count += 1
        _move(scratch.path, out)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise BadInput(f"not a readable archive ({error})", file=archive, fix="download it again") from error
    finally:
        scratch.remove()
    return count


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[Iterator[tuple[PurePosixPath, IO[bytes]]], int]]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            entries = packed.infolist()
            for entry in entries:
                _check(entry.filename, archive, link=stat.S_ISLNK(entry.external_attr >> 16))
            files = [entry for entry in entries if not entry.is_dir()]
            _check_number(len(entries), archive)
            yield (
                ((PurePosixPath(one.filename), packed.open(one)) for one in files),
                sum(one.file_size for one in files),
            )
        return
    with tarfile.open(archive) as tar:
        members: list[tarfile.TarInfo] = []
        for member in tar:
            _check_number(len(members), archive)
            _check(member.name, archive, link=not (member.isfile() or member.isdir()))
            members.append(member)
        plain = [member for member in members if member.isfile()]
        yield (
            ((PurePosixPath(one.name), stream) for one in plain if (stream := tar.extractfile(one)) is not None),
            sum(one.size for one in plain),
        )


def _check_number(number: int, archive: Path) -> None:
    if number > MAX_MEMBERS:
        raise BadInput(f"more than {MAX_MEMBERS} members", file=archive)


def _check(name: str, archive: Path, *, link: bool) -> None:
    path = PurePosixPath(name)
    if "\\" in name or ":" in name.split("/")[0] or path.is_absolute() or ".." in path.parts:
        shown = name.encode("ascii", "backslashreplace").decode("ascii")
        raise BadInput(f"member '{shown[:80]}' would leave the folder", file=archive, fix="do not trust this archive")
    refuse_name(name)
    if link:
        raise BadInput(f"member '{name[:80]}' is a link or device", file=archive, fix="do not trust this archive")


def _copy(stream: IO[bytes], path: Path, left: int, archive: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    done = 0
    # Headers may lie about sizes, so the bytes that come out are counted too.
    with stream, path.open("wb") as target:
        while chunk := stream.read(_CHUNK):
            done += len(chunk)
            if done > left:
                raise BadInput("unpacks to more than its headers say", file=archive)
            target.write(chunk)
    return done


def _move(scratch: Path, out: Path) -> None:
    for folder, _, names in os.walk(scratch):
        target = out / Path(folder).relative_to(scratch)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            os.replace(Path(folder) / name, target / name)
