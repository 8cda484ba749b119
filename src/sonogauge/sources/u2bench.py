"""U2-BENCH as it is released: eight task folders of tab-separated files, one row a question.

Only the reading: which files, which columns, which data set a row belongs to, its image. What a row means is worked
out in `build.u2bench`. The rules are those of the release; columns are read by name, never by position.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.sources.media import Media, MediaFault, MediaReader, decode_base64, read_inside
from sonogauge.sources.tsv import TsvFile, TsvRow

# Other names under which releases wrote a column; `seg_ans` holds whatever its task asks for.
_ALTERNATIVES: Final[dict[str, tuple[str, ...]]] = {
    "class_label": ("classes", "class", "cla_ans"),
    "gt_bbox": ("seg_ans",),
    "keypoints": ("seg_ans",),
    "measurement": ("measurement_ans",),
    "report": ("gt_report",),
    "source_id": ("id", "index"),
}
KEPT: Final = (
    "dataset_name",
    "img_data",
    "img_path",
    "patient_id",
    "anatomy_location",
    "demographic",
    "classification_task",
    "class_label",
    "options",
    "gt_bbox",
    "keypoints",
    "measurement",
    "caption",
    "report",
    "split",
    "source_id",
)
_NUMBER: Final = re.compile(r"\s*(\d{1,3})(?!\d)")
_SPLIT_SETS: Final = {  # the same number serves two sets
    ("VRA", "28"): "28_class",
    ("DD", "74"): "74is_normal",
    ("VRA", "74"): "74is_visible",
}
_PROSE: Final = ("base64 encoded image", "xxx")
_PROSE_NAME: Final = "example dataset name"
_WINDOW: Final = 4  # rows whose images are decoded ahead; bounds memory
KEY_KINDS: Final = ("column", "dataset", "measurement")


@dataclass(frozen=True, slots=True)
class KeyMap:
    """What a user says about names that the release leaves open, as `{"KIND:NAME": "meaning"}`.

    `column:NAME` -> a column of the release; `dataset:NAME` (a whole `dataset_name`) -> data set id;
    `measurement:NAME` -> a measurement key of the benchmark.
    """

    column: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] = field(default_factory=dict)
    measurement: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, pairs: Mapping[str, str]) -> KeyMap:
        """Sort pairs by kind; raise BadInput for an unknown kind or column."""
        found: dict[str, dict[str, str]] = {kind: {} for kind in KEY_KINDS}
        for name, meaning in sorted(pairs.items()):
            kind, _, rest = name.partition(":")
            if kind not in KEY_KINDS or not rest or not meaning:
                raise BadInput(
                    f"not a key: '{name}={meaning}'", fix="write column:NAME=…, dataset:NAME=… or measurement:NAME=…"
                )
            if kind == "column" and meaning not in KEPT:
                raise BadInput(f"U2-BENCH has no column '{meaning}'", fix="known: " + ", ".join(KEPT))
            found[kind][rest] = meaning
        return cls(**found)


@dataclass(frozen=True, slots=True)
class U2Row:
    """One data row of a task folder.

    file: path below the data folder. row: from 1, header not counted. dataset: id of the benchmark ("04",
    "28_class"), or "" if the row names none. number: of the source ("04"), or "". cells: by release column.
    fault: why the row cannot be used, or None; explanation: it explains the columns and holds no data.
    """

    task: str
    file: str
    row: int
    name: str
    dataset: str
    number: str
    cells: Mapping[str, str]
    media: Media | None = None
    fault: str | None = None
    explanation: bool = False


@dataclass
class ReadLog:
    """What reading a folder left to say: hash of each file, and ignored things with the files they stood in."""

    hashes: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, set[str]] = field(default_factory=dict)

    def note(self, what: str, file: str) -> None:
        """Remember that something was ignored in a file."""
        self.ignored.setdefault(what, set()).add(file)


def find_files(data: Path, folders: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return (task, file) of all `.tsv` files in the task folders, sorted.

    folders: task code -> folder name.

    Raises:
        BadInput: no such folder, or none that holds U2-BENCH.
    """
    if not data.is_dir():
        raise BadInput("no such folder", file=data, fix="give the folder that holds the task folders of U2-BENCH")
    found: list[tuple[str, Path]] = []
    for task, name in sorted(folders.items()):
        folder = data / name
        if folder.is_dir():
            files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".tsv" and not path.is_dir())
            found.extend((task, path) for path in files)
    for _, path in found:
        if not path.is_file():  # a dangling link must not leave a data set out in silence
            raise BadInput("not a readable file", file=path, fix="bring the file back or remove the link")
    if not found:
        raise BadInput(
            "not a U2-BENCH folder: no task folder with a .tsv file in it",
            file=data,
            fix="it should hold folders like " + ", ".join(sorted(folders.values())[:3]),
        )
    return found


def read_rows(
    data: Path,
    files: Iterable[tuple[str, Path]],
    keys: KeyMap,
    log: ReadLog,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[U2Row]:
    """Yield all rows in order, each with its decoded image or its fault; two threads decode ahead."""
    reader = MediaReader()
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="decode") as pool:
        pending: deque[Future[U2Row]] = deque()
        try:
            for row in _plain_rows(data, files, keys, log, on_bytes):
                pending.append(pool.submit(_with_media, row, data, reader))
                if len(pending) >= _WINDOW:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _plain_rows(
    data: Path,
    files: Iterable[tuple[str, Path]],
    keys: KeyMap,
    log: ReadLog,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[U2Row]:
    for task, path in files:
        name = path.relative_to(data).as_posix()
        table = TsvFile(path, name=name, on_bytes=on_bytes)
        columns: dict[str, str] | None = None
        for row in table:
            if columns is None:
                columns = _columns(table.columns, task, name, keys, log)
            yield _row(task, name, row, columns, keys)
        if columns is None:
            _columns(table.columns, task, name, keys, log)
        log.hashes[name] = table.hash


def _columns(found: tuple[str, ...], task: str, file: str, keys: KeyMap, log: ReadLog) -> dict[str, str]:
    """Return release column -> column of this file."""
    by_name = {one.casefold(): one for one in reversed(found)}
    columns = {meaning: name for name, meaning in keys.column.items() if name in found}
    for column in KEPT:
        for name in (column, *_ALTERNATIVES.get(column, ())):
            if name == "seg_ans" and column != ("keypoints" if task == "KD" else "gt_bbox"):
                continue
            if column not in columns and name in by_name:
                columns[column] = by_name[name]
    if "img_data" not in columns and "img_path" not in columns:
        raise BadInput(
            "column missing (and no img_path)",
            file=file,
            field="img_data",
            fix="use the files of the release, or name the column in the key map (column:NAME=img_data)",
        )
    if "hint" in by_name:
        log.note("column hint (the reference code puts it before the prompt)", file)
    if "seg_data" in by_name:
        log.note("column seg_data (masks; no task asks for them)", file)
    return columns


def _row(task: str, file: str, row: TsvRow, columns: Mapping[str, str], keys: KeyMap) -> U2Row:
    cells = {column: row.cells.get(name, "") for column, name in columns.items()}
    name = cells.get("dataset_name", "").strip()
    dataset, number = dataset_of(task, name, cells.get("classification_task", ""), keys.dataset)
    return U2Row(task, file, row.number, name, dataset, number, cells, fault=row.fault)


def dataset_of(task: str, name: str, label_set: str, named: Mapping[str, str]) -> tuple[str, str]:
    """Return (data set id, number of the source) of a row; both are empty where the row names none.

    >>> dataset_of("VRA", "28.Knee", "", {}), dataset_of("LL", "4.DDTI", "", {})
    (('28_class', '28'), ('04', '04'))
    """
    found = _NUMBER.match(name)
    number = found.group(1).zfill(2) if found else ""
    if name in named:
        return named[name], number
    if task == "VRA" and "anatomy" in (label_set.strip().casefold(), name.casefold()):
        return "anatomy", number
    return _SPLIT_SETS.get((task, number), number), number


def _with_media(row: U2Row, data: Path, reader: MediaReader) -> U2Row:
    cells = {column: cell for column, cell in row.cells.items() if column != "img_data"}
    picture, path = row.cells.get("img_data", ""), cells.get("img_path", "")
    media, fault = None, row.fault
    if fault is None:
        try:
            if picture.strip() or not path.strip():
                content = decode_base64(picture)
            else:
                content = read_inside(path, (data / row.file).parent, data)
            media = reader.read(content)
        except MediaFault as error:
            fault = str(error)
    explanation = fault is not None and _explains(row, picture or path)
    return U2Row(row.task, row.file, row.row, row.name, row.dataset, row.number, cells, media, fault, explanation)


def _explains(row: U2Row, picture: str) -> bool:
    # The release starts files with a row of prose; an older one has "xxx" for an image.
    return picture.strip().casefold() in _PROSE or row.name.casefold() == _PROSE_NAME
