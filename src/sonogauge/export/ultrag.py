"""The official layout of UltraG-Bench: a JSONL of records per category, images and COCO files by source and part."""

from __future__ import annotations

from sonogauge.benchmarks.ultrag.official import write_layout
from sonogauge.export.content import Content
from sonogauge.folders import FolderWriter


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write annotations/ and datasets/; return the number of records of each category.

    Raises:
        BadInput: a benchmark that was not built as ultrag.
    """
    written = write_layout(content.folder, folder.path, content.open_cases.__contains__)
    return {f"annotations/{category}.jsonl": number for category, number in written.items()}
