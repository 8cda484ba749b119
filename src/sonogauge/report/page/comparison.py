"""A folder of `compare` as data of the page: paired differences between models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import Folder, Manifest, read_manifest
from sonogauge.report.page.pack import short

FILE: Final = "comparison.json"
KIND: Final = "comparison"
_TEXTS: Final = ("first", "second", "task", "dataset", "column", "level", "metric", "family")
_NUMBERS: Final = ("d_difference", "d_low", "d_high", "p", "p_holm", "p_bh", "n", "groups")


def is_comparison(path: Path | str) -> bool:
    """Whether a folder was written by `compare`; raise BadInput for one that is no folder of sonogauge."""
    return read_manifest(path).kind == KIND


def comparison_data(path: Path, scored: Manifest) -> dict[str, Any]:
    """Return the differences of a comparison folder.

    Raises:
        BadInput: not a comparison, a broken one, or one of another benchmark or version than the scores.
    """
    folder = Folder(path, KIND)
    manifest = folder.manifest
    if (manifest.name, manifest.version) != (scored.name, scored.version):
        raise BadInput(
            f"a comparison of {manifest.name} {manifest.version}, but the scores are of {scored.name} {scored.version}",
            file=path,
            fix="report one benchmark and version at a time",
        )
    file = path / FILE
    try:
        document = json.loads(file.read_text("utf-8"))
        rows = [
            {
                **{name: str(row.get(name) or "") for name in _TEXTS},
                **{name: short(row.get(name)) for name in _NUMBERS},
                "why": str(row.get("why_null") or row.get("why_no_p") or ""),
            }
            for row in document.get("differences") or ()
        ]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadInput("not a comparison that can be read", file=file, fix="compare again") from error
    return {
        "hash": manifest.hash,
        "models": [str(name) for name in document.get("models") or ()],
        "correction": str(document.get("correction") or ""),
        "differences": rows,
        "notices": [str(one) for one in document.get("notices") or ()],
    }
