"""A folder of foreign files in, a folder of cases out."""

from __future__ import annotations

import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.folders import FolderWriter, Input, Manifest, new_folder
from sonogauge.hashes import canonical_hash
from sonogauge.sources.catalogue import find_source
from sonogauge.sources.findings import Finding, ReadLog
from sonogauge.sources.layout import Layout, SourceSpec
from sonogauge.sources.media import MediaFault, strict_pixels
from sonogauge.sources.readers.tree import Tree
from sonogauge.sources.rows import Look, Made, Origin, make_row, name_of

Reader = Callable[[Tree, Layout, ReadLog], Iterator[Finding]]

READERS: Registry[Reader] = Registry(
    "reader",
    {
        "files": "sonogauge.sources.readers.files:find",
        "coco": "sonogauge.sources.readers.coco:find",
        "cvat_xml": "sonogauge.sources.readers.cvat_xml:find",
        "cvat_task": "sonogauge.sources.readers.cvat_task:find",
        "via": "sonogauge.sources.readers.via:find",
        "arrays": "sonogauge.sources.readers.arrays:find",
        "records": "sonogauge.sources.readers.records:find",
        "tracings": "sonogauge.sources.readers.tracings:find",
        "marks_xml": "sonogauge.sources.readers.marks_xml:find",
    },
    group="sonogauge.readers",
)

_WORKERS: Final = max(2, os.cpu_count() or 2)
_ROWS_PER_GROUP: Final = 96
_WINDOW: Final = 64  # so that the threads have work while a row group is written
_EXPLAINED: Final = 3
# What a manifest tells of its source.
_ABOUT: Final = {"title", "citation", "known_issues", "verified", "provenance", "reference_standard", "patient_id"}


@dataclass
class _Counts:
    """What the cases say, counted while they are written."""

    cases: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)
    patients: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    masks: int = 0
    boxes: int = 0
    far: int = 0
    without_patient: int = 0
    with_spacing: int = 0
    twice: int = 0
    in_two_splits: int = 0
    first_split: dict[bytes, str | None] = field(default_factory=dict)  # start of the pixel hash -> split

    def take(self, row: dict[str, Any], far: int) -> None:
        self.cases += 1
        self.labels.update(f"label {one['name']}={one['value']}" for one in row["labels"])
        if row["split"] is not None:
            self.splits[f"split {row['split']}"] += 1
        if row["patient"] is None:
            self.without_patient += 1
        else:
            self.patients.add(row["patient"])
        self.groups.add(row["group"])
        self.masks += len(row["masks"])
        self.boxes += len(row["boxes"])
        self.far += far
        pixels = bytes.fromhex(row["pixel_hash"][:32])
        self.twice += pixels in self.first_split
        self.in_two_splits += self.first_split.setdefault(pixels, row["split"]) != row["split"]
        self.with_spacing += row["spacing"] is not None

    def as_dict(self) -> dict[str, int]:
        values = {
            "cases": self.cases,
            "patients": len(self.patients),
            "groups": len(self.groups),
            "without patient": self.without_patient,
            "with spacing": self.with_spacing,
            "masks": self.masks,
            "boxes": self.boxes,
            "mask pixels of no declared value": self.far,
            "images in two splits": self.in_two_splits,
            "images twice": self.twice,
        }
        few = {name: number for name, number in self.labels.most_common(200)}
        return {**values, **dict(sorted(few.items())), **dict(sorted(self.splits.items()))}


def import_cases(
    source: str,
    directory: Path | str,
    out: Path | str,
    *,
    map_file: Path | str | None = None,
    layout: str | None = None,
    private: bool = False,
    max_dropped: float = 0.05,
    overwrite: bool = False,
    look: Look | None = None,
) -> Manifest:
    """Read a copy of an image set and write it as a folder of cases.

    Args:
        source: a known source (`sources.catalogue.known_sources`) or a kind of files (`sources.catalogue.KINDS`).
        directory: the folder with your copy.
        out: folder of cases to write.
        map_file: YAML that says what the files mean, see docs/sources.md; needed for a kind of files with facts.
        layout: name of the one layout to read, of a source that has several.
        private: mark every case as private; nothing of it may be published.
        max_dropped: largest share of the images found that may be dropped.
        overwrite: replace a folder of cases at `out`.
        look: what else to find out of each case on the way.

    Raises:
        BadInput: unknown source, another layout, nothing usable, too many dropped, hostile files.
    """
    if not 0 <= max_dropped <= 1:
        raise BadInput("not a share from 0 to 1", field="max_dropped")
    spec = find_source(source, map_file).with_layout(layout)
    origin = Origin(spec, private)
    tree = Tree(directory)
    log = ReadLog()
    with new_folder(out, overwrite=overwrite) as folder, strict_pixels():
        found = _find(tree, spec, log, origin)
        counts = _Counts()
        _write(folder, found, origin, log, counts, look)
        total = counts.cases + log.dropped
        if not counts.cases:
            raise BadInput(f"nothing usable ({'; '.join(log.lines()) or 'no image found'})", file=tree.root)
        if log.dropped > max_dropped * total:
            raise BadInput(
                f"{log.dropped} of {total} dropped: {'; '.join(log.lines())}",
                file=tree.root,
                fix="mend the files or raise --max-dropped",
            )
        return folder.finish(_manifest(tree, spec, log, counts, private, max_dropped))


def matching_layouts(tree: Tree, spec: SourceSpec) -> list[Layout]:
    """Return the layouts of a source that a folder has: the first, or all where the source says so.

    Raises:
        BadInput: none of them.
    """
    fitting = [layout for layout in spec.layouts if next(tree.match(*layout.find), None) is not None]
    if not fitting:
        patterns = ", ".join(dict.fromkeys(pattern for layout in spec.layouts for pattern in layout.find[:1]))
        seen = ", ".join(tree.paths[:3]) or "no file"
        raise BadInput(
            f"not the layout of '{spec.name}': found {seen}", file=tree.root, fix=f"expected files like {patterns}"
        )
    return fitting if spec.use == "all" else fitting[:1]


def _read(tree: Tree, layout: Layout, log: ReadLog) -> Iterator[Finding]:
    try:
        yield from READERS.load(layout.reader)(tree, layout, log)
    except MediaFault as fault:
        # Faults of single images are met by the readers; what is left is a table or annotation file.
        raise BadInput(str(fault), file=tree.root, fix="look at the tables and annotation files") from fault


def _find(tree: Tree, spec: SourceSpec, log: ReadLog, origin: Origin) -> list[tuple[str, Finding, Layout]]:
    found: dict[str, tuple[str, Finding, Layout]] = {}
    for layout in matching_layouts(tree, spec):
        log.count(f"layout {layout.name}")
        for finding in _read(tree, layout, log):
            case_id = origin.case_id(name_of(finding, layout))
            if case_id in found:
                log.drop(finding.path, "two images of one id")
            else:
                found[case_id] = (case_id, finding, layout)
    return [found[case_id] for case_id in sorted(found)]


def _write(
    folder: FolderWriter,
    found: list[tuple[str, Finding, Layout]],
    origin: Origin,
    log: ReadLog,
    counts: _Counts,
    look: Look | None,
) -> None:
    table = folder.table("cases", rows_per_group=_ROWS_PER_GROUP)
    with _bar(len(found)) as on_case, _Results(look) as results:
        for made in _rows(found, origin, log, on_case, look):
            counts.take(made.row, made.far)
            table.write([made.row])
            results.take(made)


class _Results:
    """The file of a `Look`, whole or not at all."""

    def __init__(self, look: Look | None) -> None:
        self._look = look
        self._rows: list[dict[str, Any] | None] = []

    def __enter__(self) -> Self:
        if self._look is not None:
            self._part = self._look.file.with_suffix(".part")
            self._writer = pa.ipc.new_file(str(self._part), self._look.schema)
        return self

    def take(self, made: Made) -> None:
        if self._look is not None:
            self._rows.append(made.seen)
            if len(self._rows) == _ROWS_PER_GROUP:
                self._flush()

    def _flush(self) -> None:
        assert self._look is not None
        self._writer.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=self._look.schema))
        self._rows = []

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._look is None:
            return
        if self._rows and kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            os.replace(self._part, self._look.file)
        else:
            self._part.unlink()


def _rows(
    found: list[tuple[str, Finding, Layout]],
    origin: Origin,
    log: ReadLog,
    on_case: Callable[[], None],
    look: Look | None,
) -> Iterator[Made]:
    """Yield the rows in order; images are decoded in threads, in a window of bounded size."""
    waiting: deque[tuple[Finding, Future[Made]]] = deque()
    work = _drained(found)
    with ThreadPoolExecutor(_WORKERS) as pool:
        try:
            while True:
                for _, finding, layout in islice(work, _WINDOW - len(waiting)):
                    waiting.append((finding, pool.submit(make_row, origin, finding, layout, look)))
                if not waiting:
                    return
                finding, future = waiting.popleft()
                on_case()
                try:
                    yield future.result()
                except MediaFault as fault:
                    log.drop(finding.path, str(fault))
        finally:
            pool.shutdown(cancel_futures=True)


def _drained(found: list[tuple[str, Finding, Layout]]) -> Iterator[tuple[str, Finding, Layout]]:
    """Yield the findings and forget them: of many images they are the largest part of the memory."""
    found.reverse()
    while found:
        yield found.pop()


@contextmanager
def _bar(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar of the cases on standard error, if a person looks at it."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("cases"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("cases", total=total)
        yield lambda: bar.advance(task)


def _manifest(
    tree: Tree, spec: SourceSpec, log: ReadLog, counts: _Counts, private: bool, max_dropped: float
) -> Manifest:
    counted = counts.as_dict()
    notices = [*log.notices, *log.lines(), *_differences(spec, counted)]
    if counts.without_patient:
        notices.append(f"patient unknown for {counts.without_patient} of {counts.cases} cases: leaks cannot be checked")
    if counted["images twice"]:
        notices.append(f"{counted['images twice']} images have the pixels of another")
    if counted["images in two splits"]:
        notices.append(f"{counted['images in two splits']} images have the pixels of one in another split")
    if not spec.licence_checked and not private:
        notices.append(f"licence not verified at the source: {spec.licence}")
    used = sorted(log.used)
    manifest = Manifest(
        kind="cases",
        maker=f"sonogauge {__version__}",
        name=spec.name,
        inputs=[Input(role="files", path=str(tree.root), hash=tree.hash(used))],
        parameters={
            "map": canonical_hash(spec.model_dump(mode="json")),
            "layouts": sorted(name.removeprefix("layout ") for name in log.counts if name.startswith("layout ")),
            "private": private,
            "max_dropped": max_dropped,
        },
        counts={
            "files read": len(used),
            "files not read": len(tree.paths) - len(used),
            "dropped": log.dropped,
            **{name: number for name, number in sorted(log.counts.items()) if not name.startswith("layout ")},
            **counted,
        },
        licences=["private"] if private else [spec.licence],
        notices=notices,
    )
    about = spec.model_dump(mode="json", include=_ABOUT)
    return manifest.model_copy(update={"source": about})


def _differences(spec: SourceSpec, counted: dict[str, int]) -> list[str]:
    lines = []
    for name, expected in spec.counts.items():
        got = counted.get(name, 0)
        if got != expected:
            lines.append(f"{name}: {got}, the source is described with {expected}")
    return lines


def explain(
    source: str, directory: Path | str, *, map_file: Path | str | None = None, layout: str | None = None
) -> list[str]:
    """Return what an import would understand of the first files: layout, fields, and the facts of a few cases.

    Raises:
        BadInput: as `import_cases`.
    """
    spec = find_source(source, map_file).with_layout(layout)
    origin = Origin(spec)
    tree = Tree(directory)
    log = ReadLog()
    lines = [f"{spec.name}: {spec.title}", f"files: {len(tree.paths)}"]
    with strict_pixels():
        for one in matching_layouts(tree, spec):
            finds = _read(tree, one, log)
            first = list(islice(finds, _EXPLAINED))
            lines.append(f"layout {one.name}: reader {one.reader}, files like {', '.join(one.find)}")
            for finding in first:
                lines += _explained(origin, finding, one)
    return [*lines, *(f"note: {line}" for line in log.lines())]


def _explained(origin: Origin, finding: Finding, layout: Layout) -> list[str]:
    fields = ", ".join(f"{name}={_short(value)}" for name, value in sorted(finding.fields.items()))
    lines = [f"{origin.case_id(name_of(finding, layout))}", f"  file: {finding.path}", f"  fields: {fields}"]
    try:
        row = make_row(origin, finding, layout).row
    except MediaFault as fault:
        return [*lines, f"  cannot be used: {fault}"]
    spacing = row["spacing"]
    lines.append(f"  image: {row['width']} x {row['height']} {row['media_type']}")
    lines.append(f"  spacing: {'unknown' if spacing is None else '{x:g} x {y:g} mm'.format(**spacing)}")
    lines.append(f"  patient: {row['patient']}, group: {row['group']}, split: {row['split']}, view: {row['view']}")
    lines.append("  labels: " + (", ".join(f"{one['name']}={one['value']}" for one in row["labels"]) or "none"))
    lines.append("  masks: " + (", ".join(one["mask_id"] for one in row["masks"]) or "none"))
    lines.append(f"  boxes: {len(row['boxes'])}, points: {len(row['points'])}, texts: {len(row['texts'])}")
    numbers = ", ".join(f"{one['name']} {one['value']:g} {one['unit']}" for one in row["measurements"])
    lines.append("  measurements: " + (numbers or "none"))
    if row["known_issues"]:
        lines.append("  issues: " + "; ".join(row["known_issues"]))
    return lines


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:57]}..."


def report_lines(manifest: Manifest) -> list[str]:
    """Return what a user reads after an import: counts, then notices."""
    always = ("files read", "files not read", "dropped", "cases", "patients")
    told = [f"{k}: {n}" for k, n in manifest.counts.items() if k in always or (n and not k.startswith("fault:"))]
    return [f"{manifest.name}: {', '.join(told)}", *(f"note: {line}" for line in manifest.notices)]
