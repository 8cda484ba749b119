"""The run folder: one appended line per attempt, and at the end one table.

The folder is the only cache. Memory is one key and one offset per reply, never the texts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.append_log import AppendFolder
from sonogauge.folders import Manifest
from sonogauge.models.base import ReplyKey
from sonogauge.tables import REPLIES

_COLUMNS: Final = frozenset(REPLIES.names)


class RunFolder(AppendFolder):
    """An open run folder. The `parameters` of its manifest are the run's identity, its inputs name the benchmark."""

    kind = "run"
    table = "replies"
    rows_per_group = 256

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self._last: dict[ReplyKey, tuple[int, int, str, bool]] = {}  # offset, attempt, status, final

    def agree(self, old: Manifest) -> None:
        """Refuse a folder that holds a run under another identity."""
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

    def note(self, entry: Mapping[str, Any], offset: int) -> None:
        """Remember the last attempt of a key and where it lies."""
        key = (entry["item_id"], entry["variant"], int(entry["epoch"]), entry["rater_id"])
        self._last[key] = (offset, int(entry["attempts"]), entry["status"], bool(entry["final"]))

    def append(self, entry: Mapping[str, Any], *, final: bool) -> None:
        """Append one attempt, a row of the replies table; `final` = this key is not asked again."""
        self.append_line({**entry, "final": final})

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

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the last entry of every key that ended, sorted by key."""
        with self.log_file.open("rb") as stream:
            for key in sorted(self.ended()):
                stream.seek(self._last[key][0])
                yield json.loads(stream.readline())

    def compact(self) -> None:
        """Write the replies table from the log, and the manifest that names it."""
        self.write_table({name: entry[name] for name in entry if name in _COLUMNS} for entry in self.entries())


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
