"""The folder of verdicts: one appended line per question to a judge, and at the end one table.

A line is keyed by the hash of all that could change its verdict (judge, options, prompt, data), so what was asked once
is never asked again, and a reply that changed is asked anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.append_log import AppendFolder
from sonogauge.folders import Manifest

KIND: Final = "verdicts"


class VerdictFolder(AppendFolder):
    """An open folder of verdicts. Its manifest names the judged model, its inputs the benchmark and the replies."""

    kind = KIND
    table = "verdicts"

    def __init__(self, path: Path | str, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self.answers: dict[str, dict[str, Any]] = {}

    def agree(self, old: Manifest) -> None:
        """Refuse a folder that holds verdicts on another model or benchmark."""
        theirs, mine = old.input("benchmark"), self.manifest.input("benchmark")
        if old.name != self.manifest.name or (theirs and theirs.hash) != (mine and mine.hash):
            raise BadInput(
                f"holds verdicts on another run ({old.name})", file=self.path, fix="choose another --out for this run"
            )

    def note(self, entry: Mapping[str, Any], offset: int) -> None:
        """Keep what a judge said, by what it was asked."""
        self.answers[str(entry["ask"])] = dict(entry)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append what a judge said to one question (`ask`, `verdict` or null, `fault`, `rationale`, `text`, `cost`)."""
        self.append_line(entry)

    def finish(self, rows: Iterable[Mapping[str, Any]], counts: Mapping[str, Any]) -> Manifest:
        """Write the table of verdicts, sorted rows, and the manifest that names it."""
        self.manifest = self.manifest.model_copy(update={"counts": dict(counts)})
        facts = self.write_table(rows)
        return self.manifest.model_copy(update={"tables": {"verdicts": facts}})
