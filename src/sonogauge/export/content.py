"""What an export may take from a benchmark: items and images that may be passed on, and the recipe of the others."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec, read_spec
from sonogauge.export.done import Done
from sonogauge.folders import Folder, Input, Manifest, write_bytes
from sonogauge.hashes import canonical_hash, canonical_json
from sonogauge.run.images import CaseImages, ImageFault

WITHHELD: Final = "withheld.jsonl"
_CANARY_SPACE: Final = uuid.UUID("5f0c1c6e-3d5b-4c1e-9a51-7d3a2f6b8e90")
_FACTS: Final = [
    *("case_id", "media_type", "sha256", "pixel_hash", "source", "licence", "redistributable", "private", "group"),
    *("provenance", "anatomy", "known_issues"),
]
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
ENDINGS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/tiff": "tif",
    "image/webp": "webp",
}


def item_hash(item: Mapping[str, Any], images: Sequence[str]) -> str:
    """Return the hash of an item: its row and the SHA-256 of its images, so that an export can be compared.

    item: row of the items table. images: SHA-256 of the media bytes, in the order of the item's images.
    """
    return canonical_hash({"item": dict(item), "images": list(images)})


def canary_of(content_hash: str) -> str:
    """Return the canary of a benchmark by its content hash.

    >>> canary_of("") == canary_of(""), canary_of("a") == canary_of("b")
    (True, False)
    """
    return f"sonogauge canary {uuid.uuid5(_CANARY_SPACE, content_hash)}"


class Content:
    """A benchmark seen by an export; a context manager that closes the cases table.

    Raises:
        BadInput: no benchmark folder, or items about cases that are not there.
    """

    def __init__(self, bench: Path | str) -> None:
        self.folder = Folder.open(bench, "benchmark")
        self.spec: BenchmarkSpec = read_spec(bench)
        if not _NAME.fullmatch(self.spec.name):
            raise BadInput(f"'{self.spec.name}' cannot be part of a file name", file=self.folder.path, field="name")
        self.cases = {row["case_id"]: row for row in self.folder.rows("cases", _FACTS)}
        self._images = CaseImages(self.folder)
        self.counts: Counter[str] = Counter()
        self.open_cases: set[str] = set()
        self.open_items = 0
        self._withheld: list[dict[str, Any]] = []
        for item in self.folder.rows("items"):
            self._sort(item)

    def _sort(self, item: Mapping[str, Any]) -> None:
        names = [image["case_id"] for image in item["images"] or ()]
        if missing := [name for name in names if name not in self.cases]:
            raise BadInput(
                f"item '{item['item_id']}' asks about '{missing[0]}', which is not there", file=self.folder.path
            )
        # Parts and hashes become names of files.
        if not _NAME.fullmatch(item["split"] or "test"):
            raise BadInput(f"no part of a benchmark: '{item['split']}'", file=self.folder.path, field="split")
        if unhashed := [name for name in names if not _HASH.fullmatch(self.cases[name]["sha256"] or "")]:
            raise BadInput(f"case '{unhashed[0]}' has no SHA-256", file=self.folder.path, field="sha256")
        state = self.state(item)
        self.counts[state] += 1
        if state == "open":
            self.open_items += 1
            self.open_cases.update(names)
        elif state == "withheld":
            shown = [self.cases[name] for name in names]
            self._withheld.append(
                {
                    "item_id": item["item_id"],
                    "item_hash": self.hash(item),
                    "cases": [
                        {key: case[key] for key in ("case_id", "source", "licence", "sha256", "pixel_hash")}
                        for case in shown
                    ],
                }
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._images.close()

    def state(self, item: Mapping[str, Any]) -> str:
        """Return "open", "withheld" (an image may not be passed on) or "private"."""
        shown = [self.cases[image["case_id"]] for image in item["images"] or ()]
        if any(case["private"] for case in shown):
            return "private"
        # Unknown counts as no: only a stated permission lets an image out.
        return "open" if all(case["redistributable"] is True for case in shown) else "withheld"

    def hash(self, item: Mapping[str, Any]) -> str:
        """Return the hash of an item of this benchmark."""
        return item_hash(item, [self.cases[image["case_id"]]["sha256"] for image in item["images"] or ()])

    def items(self) -> Iterator[dict[str, Any]]:
        """Yield the items that may be passed on, in the order of the table."""
        for item in self.folder.rows("items"):
            if self.state(item) == "open":
                yield item

    def image(self, case_id: str) -> bytes:
        """Return the media bytes of a case that may be passed on; raise BadInput where they are missing."""
        assert case_id in self.open_cases
        try:
            data = self._images.read(case_id)
        except ImageFault as fault:
            raise BadInput(str(fault), file=self.folder.path) from fault
        if hashlib.sha256(data).hexdigest() != self.cases[case_id]["sha256"]:
            raise BadInput(f"the image of '{case_id}' is not the one of its hash", file=self.folder.path)
        return data

    def file_name(self, case_id: str) -> str:
        """Return the name of an image file: the hash of its bytes, so that each image is written once."""
        case = self.cases[case_id]
        return f"{case['sha256'][:32]}.{ENDINGS.get(case['media_type'], 'bin')}"

    @property
    def canary(self) -> str:
        """A string that a model which was trained on these files may know; the same for the same benchmark."""
        return canary_of(self.folder.manifest.hash)

    def write_withheld(self, out: Path) -> None:
        """Write the recipe of the items that may not be passed on, one JSON line each."""
        if self._withheld:
            lines = "".join(canonical_json(row) + "\n" for row in self._withheld)
            write_bytes(out / WITHHELD, lines.encode("utf-8"))

    def manifest(self, format: str, files: Mapping[str, int]) -> Manifest:
        """Return the manifest of the export."""
        bench = self.folder.manifest
        return Manifest(
            kind="export",
            maker=f"sonogauge {__version__}",
            name=self.spec.name,
            version=self.spec.version,
            inputs=[Input(role="benchmark", path=str(self.folder.path), hash=bench.hash)],
            parameters={"format": format},
            counts={
                "items": self.open_items,
                **{key: self.counts[key] for key in ("withheld", "private")},
                "files": dict(files),
            },
            licences=sorted({self.cases[one]["licence"] or "not stated" for one in self.open_cases}),
            notices=list(bench.notices),
        )

    def done(self, format: str, files: Mapping[str, int]) -> Done:
        """Return what the caller is told."""
        return Done(
            format=format,
            items=self.open_items,
            withheld=self.counts["withheld"],
            private=self.counts["private"],
            files=dict(files),
        )
