"""Scratch folders that a killed command leaves: locked while in use, cleared by the next command on the same output.

The lock is that of the folder itself (`flock`), which the kernel drops when the process ends however it ends. Where
there is no such lock (Windows, some network drives) nothing is cleared.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_UNFINISHED: Final = ".unfinished-"
_REPLACED: Final = ".replaced-"


class Scratch:
    """A new folder beside an output, hidden and locked: `.NAME.unfinished-*`, or `.NAME.replaced-*` for the old one.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, out: Path, *, replaced: bool = False) -> None:
        prefix = f".{out.name}{_REPLACED if replaced else _UNFINISHED}"
        while True:
            self.path = Path(tempfile.mkdtemp(dir=out.parent, prefix=prefix))
            self._lock = _locked(self.path)
            # Another command may have taken it for a leftover before it was locked.
            if self.path.is_dir():
                return

    def sync(self) -> None:
        """Wait until the bytes of all files are on the disk."""
        for file in self.path.rglob("*"):
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())

    def take_place_of(self, out: Path) -> None:
        """Give the folder its final name, in place of a folder that is there."""
        old = None
        if out.exists():
            old = Scratch(out, replaced=True)
            os.rename(out, old.path / out.name)
        os.rename(self.path, out)
        self._release()
        if old is not None:
            old.remove()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove the folder and drop the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._release()


def clear_leftovers(out: Path) -> None:
    """Remove the scratch folders of killed commands beside an output; those of running ones stay.

    What a command was about to replace when it was killed comes back to its place.
    """
    for path, replaced in _scratches(out):
        lock = _locked(path)
        if lock is None:
            continue
        try:
            if replaced and (path / out.name).exists() and not os.path.lexists(out):
                os.rename(path / out.name, out)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # not ours to mend: the command itself will say what it cannot write
        finally:
            os.close(lock)


def _scratches(out: Path) -> Iterator[tuple[Path, bool]]:
    try:
        names = sorted(os.listdir(out.parent))
    except OSError:
        return
    for name in names:
        for kind in (_UNFINISHED, _REPLACED):
            path = out.parent / name
            if name.startswith(f".{out.name}{kind}") and path.is_dir() and not path.is_symlink():
                yield path, kind == _REPLACED


def _locked(path: Path) -> int | None:
    """Return the open, locked folder; None if another process holds it or it cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
