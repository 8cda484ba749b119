"""A benchmark for other tools: Parquet with a data card, JSON lines, VLMEvalKit, COCO, Croissant, and own layouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from sonogauge._callable import make_callable
from sonogauge._errors import BadInput
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


# A tree of images for training and testing, made from cases, not from questions.
ULTRABENCH: Final = "ultrabench"


def export(bench: Path | str, format: str, out: Path | str, *, overwrite: bool = False, own_use: bool = False) -> Done:
    """Write a benchmark folder for other tools.

    Images that may not be passed on never leave: their items go to `withheld.jsonl` as a recipe (source, ids, hashes),
    and what is private is only counted.

    Args:
        bench: benchmark folder; for the format `ultrabench` a folder of cases.
        format: one of FORMATS, or `ultrabench`.
        out: folder to write; the sets of `ultrabench` come into folders of their own below it.
        overwrite: replace an earlier export at `out`; sets of `ultrabench` are never replaced.
        own_use: for `ultrabench`, a tree that stays here may hold what may not be passed on, but nothing private.

    Raises:
        BadInput: no benchmark, an unknown format, an image that is missing, a folder that may not be replaced.
    """
    if format == ULTRABENCH:
        from sonogauge.export.ultrabench import write_ultrabench

        if overwrite:
            raise BadInput("a set of ultrabench is never overwritten", field="overwrite", fix="choose another --out")
        return write_ultrabench(bench, out, own_use=own_use)
    if own_use:
        raise BadInput("is for the format ultrabench", field="own_use", fix="leave it out")
    writer = FORMATS.load(format)
    with Content(bench) as content, new_folder(out, overwrite=overwrite) as folder:
        content.write_withheld(folder.path)
        files = writer(content, folder)
        folder.finish(content.manifest(format, files))
        return content.done(format, files)


make_callable(__name__)
