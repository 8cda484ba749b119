"""Peak memory of a process and of those that it starts, from the kernel's own high-water mark.

`getrusage` would do, but what a parent holds when it starts a process counts there as that process's own, kept over
`exec`. The mark VmHWM starts anew with each program.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_EVERY: Final = 0.05  # seconds


def peak_memory(process: int | str = "self") -> float:
    """Return the peak memory of a process in MB; 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), default=0.0)


def descendants() -> set[int]:
    """Return the ids of the processes that this one started, and of those that they started."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])  # a name may hold spaces and brackets
        except OSError:
            continue  # ended in the meantime
        children.setdefault(parent, []).append(int(status.parent.name))
    found: set[int] = set()
    left = [int(Path("/proc/self").resolve().name)]
    while left:
        for child in children.get(left.pop(), ()):
            found.add(child)
            left.append(child)
    return found


class Watch:
    """Context manager that follows the marks of this process's descendants, which are gone once they have ended.

    What one reaches in its last twentieth of a second is missed.
    """

    def __init__(self) -> None:
        self._peaks: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while True:
            for process in descendants():
                self._peaks[process] = max(self._peaks.get(process, 0.0), peak_memory(process))
            if self._ended.wait(_EVERY):
                return

    @property
    def largest(self) -> float:
        """The highest peak of one descendant, in MB; 0 where there was none."""
        return max(self._peaks.values(), default=0.0)
