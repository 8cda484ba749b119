"""A benchmark for other tools: Parquet with a data card, JSON lines, VLMEvalKit, COCO, Croissant, UltraG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sonogauge._callable import make_callable
from sonogauge._registry import Registry
from sonogauge.export.content import Content
from sonogauge.export.done import Done
from sonogauge.folders import FolderWriter, new_folder

Writer = Callable[[Content, FolderWriter], dict[str, int]]

FORMATS: Registry[Writer] = Registry(
    "export format",
    {
        "hf": "sonogauge.export.hf:write",
        "jsonl": "sonogauge.export.jsonl:write",
        "vlmevalkit": "sonogauge.export.vlmevalkit:write",
        "coco": "sonogauge.export.coco:write",
        "records": "sonogauge.export.records:write",
        "questions": "sonogauge.export.questions:write",
        "croissant": "sonogauge.export.croissant:write",
        "ultrag": "sonogauge.export.ultrag:write",
    },
    group="sonogauge.export_formats",
)


def export(bench: Path | str, format: str, out: Path | str, *, overwrite: bool = False) -> Done:
    """Write a benchmark folder for other tools.

    Images that may not be passed on never leave: their items go to `withheld.jsonl` as a recipe (source, ids, hashes),
    and what is private is only counted.

    Args:
        bench: benchmark folder.
        format: one of FORMATS.
        out: folder to write.
        overwrite: replace an earlier export at `out`.

    Raises:
        BadInput: no benchmark, an unknown format, an image that is missing, a folder that may not be replaced.
    """
    writer = FORMATS.load(format)
    with Content(bench) as content, new_folder(out, overwrite=overwrite) as folder:
        content.write_withheld(folder.path)
        files = writer(content, folder)
        folder.finish(content.manifest(format, files))
        return content.done(format, files)


make_callable(__name__)
