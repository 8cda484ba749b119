"""JSON lines: one item a line, images as files beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec
from sonogauge.export.card import write_card
from sonogauge.export.content import Content
from sonogauge.export.hf import CARD, case_schema, open_cases
from sonogauge.folders import FolderWriter, write_bytes
from sonogauge.hashes import canonical_json

ITEMS_FILE: Final = "items.jsonl"
CASES_FILE: Final = "cases.jsonl"
IMAGES: Final = "images"


def write(content: Content, folder: FolderWriter) -> dict[str, int]:
    """Write items.jsonl, cases.jsonl, images/, benchmark.json and the card; return the rows of each."""
    images = write_images(content, folder.path / IMAGES)
    items = 0
    with (folder.path / ITEMS_FILE).open("w", encoding="utf-8", newline="\n") as stream:
        for item in content.items():
            files = [f"{IMAGES}/{content.file_name(one['case_id'])}" for one in item["images"]]
            row = {**item, "image_files": files, "item_hash": content.hash(item), "canary": content.canary}
            stream.write(canonical_json(row) + "\n")
            items += 1
    cases = 0
    with (folder.path / CASES_FILE).open("w", encoding="utf-8", newline="\n") as stream:
        for batch in open_cases(content, case_schema().names):
            for row in batch.to_pylist():
                stream.write(
                    canonical_json({**row, "image_file": f"{IMAGES}/{content.file_name(row['case_id'])}"}) + "\n"
                )
                cases += 1
    write_bytes(folder.path / SPEC_FILE, dump_spec(content.spec).encode("utf-8"))
    write_bytes(folder.path / CARD, write_card(content, []).encode("utf-8"))
    return {ITEMS_FILE: items, CASES_FILE: cases, IMAGES: images}


def write_images(content: Content, out: Path) -> int:
    """Write each image that may be passed on once, named by its hash; return their number."""
    out.mkdir()
    names = {content.file_name(case_id): case_id for case_id in sorted(content.open_cases, reverse=True)}
    for name, case_id in sorted(names.items(), key=lambda one: one[1]):
        (out / name).write_bytes(content.image(case_id))
    return len(names)
