"""What scoring and comparing read: replies with the benchmark they belong to, its items, its resampling groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sys import intern
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge._registry import Registry
from sonogauge.answers import AnswerSpec
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario
from sonogauge.folders import Folder, Manifest
from sonogauge.items import Item
from sonogauge.score.replies import ReplySource, read_jsonl, read_run

_ITEM_COLUMNS: Final = (
    "item_id",
    "task",
    "dataset",
    "source",
    "group",
    "split",
    "answer",
    "reference",
    "reference_state",
    "chance",
    "anatomy",
    "determinable",
    "meta",
)

LogReader = Callable[[Path, Path | None, str | None], tuple[ReplySource, Folder]]
# Files of other tools by suffix; each reader gives what `open_replies` gives.
LOG_READERS: Final[Registry[LogReader]] = Registry(
    "log reader",
    {".eval": "sonogauge.inspect.logs:read_log", ".json": "sonogauge.inspect.logs:read_log"},
    "sonogauge.log_readers",
)


def check_options(
    spec: BenchmarkSpec,
    protocol: str,
    weights: str | None,
    draws: int,
    tolerance: float | None,
    failure_error: str | None,
) -> None:
    """Refuse options of scoring that have no meaning.

    Raises:
        BadInput: an unknown protocol, weights or failure error, too few draws, a tolerance below 0.
    """
    if protocol not in PROTOCOLS:
        raise BadInput(f"no protocol '{protocol}'", fix="known: " + ", ".join(PROTOCOLS))
    if protocol != "strict" and protocol not in spec.protocols:
        raise BadInput(f"{spec.name} has no published protocol: {spec.no_published}", fix="use --protocol strict")
    if weights is not None and weights not in spec.weights:
        raise BadInput(f"no weights '{weights}' in {spec.name}", fix="known: " + ", ".join(spec.weights))
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    if tolerance is not None and not 0.0 <= tolerance < math.inf:
        raise BadInput(f"{tolerance} is no tolerance", field="tolerance", fix="use a number from 0 on")
    if failure_error not in (None, "worst", "one"):
        raise BadInput(f"unknown failure error '{failure_error}'", fix="use worst or one")


def open_replies(
    replies: Path | str | ReplySource, bench: Path | None, model: str | None, split: str | None = None
) -> tuple[ReplySource, Folder]:
    """Open a run folder, a JSONL file of replies or a log of another tool, with its benchmark folder.

    bench: benchmark folder; None = the one that the run or log names. model: name in place of the one in the file.
    split: part of the benchmark that replies made elsewhere belong to; None = the test part, or what a run asked.

    Raises:
        BadInput: no such replies, no benchmark, a run of another benchmark or of another split.
    """
    source, folder = _open(replies, bench, model)
    if split is None or split == source.split:
        return source, folder
    if source.identity is not None:
        raise BadInput(f"a run of the split '{source.split}'", field="split", fix="leave --split out")
    return replace(source, split=split), folder


def _open(replies: Path | str | ReplySource, bench: Path | None, model: str | None) -> tuple[ReplySource, Folder]:
    if isinstance(replies, ReplySource):
        if bench is None:
            raise BadInput("replies in memory need their benchmark", field="bench")
        return replies, Folder(bench, "benchmark")
    replies = Path(replies)
    if replies.is_dir():
        source = read_run(replies)
        given = Folder(replies, "run").manifest.input("benchmark")
        if given is None:
            raise BadInput("its manifest names no benchmark", file=replies, fix="make the run again")
        folder = Folder(bench if bench is not None else given.path, "benchmark")
        if folder.manifest.hash != given.hash:
            raise BadInput(
                f"a run of another benchmark than {folder.path} (content hash {given.hash[:12]}, "
                f"here {folder.manifest.hash[:12]})",
                file=replies,
                fix="name the benchmark it was run on with --bench, or run again",
            )
        return source, folder
    if replies.suffix in LOG_READERS and not _is_lines(replies):
        return LOG_READERS.load(replies.suffix)(replies, bench, model)
    if bench is None:
        if replies.exists():
            raise BadInput("a file of replies needs its benchmark", file=replies, fix="score --replies FILE BENCH")
        raise BadInput("no such run folder or file", file=replies)
    folder = Folder(bench, "benchmark")
    return read_jsonl(replies, model, lambda: _image_hashes(folder)), folder


def _is_lines(file: Path) -> bool:
    """Whether a file is JSON lines, whatever its name: its first line is a whole object."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        first = stream.readline(1 << 20).strip()
    return first.startswith(b"{") and first.endswith(b"}") and b"\0" not in first


def _image_hashes(folder: Folder) -> dict[str, str]:
    cases = {row["case_id"]: row["sha256"] for row in folder.rows("cases", ["case_id", "sha256"])}
    return {
        row["item_id"]: cases[row["images"][0]["case_id"]]
        for row in folder.rows("items", ["item_id", "images"])
        if row["images"] and row["images"][0]["case_id"] in cases
    }


class Facts(Mapping[str, str]):
    """Facts of an item in a third of the memory of a dict: items of one kind share the places of their names."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[str, ...]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, name: str) -> str:
        """Return the value of a fact."""
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of facts."""
        return len(self._values)


class Sharing:
    """Lets items hold the same answers, references and facts once: in a benchmark they are few and repeated."""

    # Facts with more values than this (boxes, ids) hardly repeat: looking for equal ones would cost more than it saves.
    _MOST: Final = 1024

    def __init__(self) -> None:
        self._answers: dict[AnswerSpec, AnswerSpec] = {}
        self._choices: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        self._values: dict[str, dict[str, str]] = {}

    def __call__(self, item: Item) -> Item:
        """Return an equal item."""
        reference = item.reference
        if reference.keys() == {"choices"}:
            reference = self._choices.setdefault(reference["choices"], dict(reference))
        return replace(
            item,
            task=intern(item.task),
            dataset=intern(item.dataset),
            source=intern(item.source),
            group=intern(item.group),
            split=intern(item.split),
            anatomy=intern(item.anatomy),
            determinable=intern(item.determinable),
            answer=self._answers.setdefault(item.answer, item.answer),
            reference=reference,
            meta=self._facts(item.meta),
        )

    def _facts(self, meta: Mapping[str, str]) -> Facts:
        names = tuple(meta)
        places = self._places.get(names)
        if places is None:
            places = self._places[names] = {intern(name): place for place, name in enumerate(names)}
        return Facts(places, tuple(self._value(name, value) for name, value in meta.items()))

    def _value(self, name: str, value: str) -> str:
        known = self._values.setdefault(name, {})
        return known.setdefault(value, value) if len(known) < self._MOST else known.get(value, value)


def read_items(folder: Folder, source: ReplySource, tolerance: float | None = None) -> tuple[list[Item], list[Item]]:
    """Return the items of the train split and those of the split that was asked.

    tolerance: of numbers on the scaled range, in place of the one that the items carry.
    """
    train, scored = [], []
    share = Sharing()
    # Small batches, because a row as Python objects is many times the item that is made of it.
    for row in (row for batch in folder.batches("items", list(_ITEM_COLUMNS), 256) for row in batch.to_pylist()):
        item = share(Item.from_row({"images": (), **row}))
        if tolerance is not None and item.answer.form == "number":
            item = replace(item, answer=replace(item.answer, tolerance=tolerance))
        if item.split == source.split:
            scored.append(item)
        elif item.split == "train":
            train.append(item)
    return train, scored


PROTOCOLS: Final = ("strict", "published")
MATCH: Final = "text_match"
# Declared parameters of a benchmark that change what is counted.
_COUNTED: Final = ("nsd_tol", "semacc_flags")
# How a benchmark of masks was made, where its manifest says it: no number of it travels without these.
_MADE: Final = ("reference_origin", "split", "category_pooling", "cell_of", "keep_negatives", "reveal_finding_types")


def counting_parameters(spec: BenchmarkSpec) -> dict[str, Any]:
    """Return the declared parameters of a benchmark that its counters need, and whether texts are matched whole."""
    found: dict[str, Any] = {name: spec.parameters[name] for name in _COUNTED if name in spec.parameters}
    matched = any(MATCH in task.metrics for task in spec.tasks.values())
    return {**found, "matches": True} if matched else found


def made_parameters(manifest: Manifest) -> dict[str, Any]:
    """Return how a benchmark that names the origin of its references was made; nothing for any other."""
    told = manifest.parameters
    return {name: told[name] for name in _MADE if name in told} if "reference_origin" in told else {}


def present_scenarios(spec: BenchmarkSpec, items: Sequence[Item]) -> tuple[Scenario, ...]:
    """Return the scenarios that have an item with a usable reference."""
    usable = {(item.task, item.dataset) for item in items if item.reference_state == "ok"}
    return tuple(one for one in spec.scenarios if one.key in usable)


def groups_of(items: Sequence[Item]) -> dict[str, list[str]]:
    """Return the groups of each source: the strata of the resampler."""
    groups: dict[str, set[str]] = {}
    for item in items:
        groups.setdefault(item.source, set()).add(item.group)
    return {source: sorted(found) for source, found in sorted(groups.items())}
