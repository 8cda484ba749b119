"""A U2-BENCH folder in, a benchmark folder out."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.prompts import answer_for, prompt_id, render_question
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.benchmarks.vocabulary import map_anatomy
from sonogauge.build.u2_cases import CaseBook, CaseDraft
from sonogauge.build.u2_counts import ImportCounts
from sonogauge.build.u2_references import (
    Reading,
    ReadingRules,
    RowFault,
    read_choice,
    read_number,
    read_place,
    read_text,
)
from sonogauge.folders import FolderWriter, Input, Manifest, new_folder, write_bytes
from sonogauge.items import Item, ItemImage
from sonogauge.sources.cells import CellError, is_missing, parse_cell
from sonogauge.sources.media import strict_pixels
from sonogauge.sources.u2bench import KeyMap, ReadLog, U2Row, find_files, read_rows

REPORT_COLUMNS = ("report", "caption")
_SPLITS = ("train", "val", "test")
_CASES_PER_GROUP = 64


@dataclass(frozen=True, slots=True)
class _Draft:
    """An item that waits for the group of its image."""

    item_id: str
    scenario: Scenario
    case: CaseDraft
    reading: Reading
    anatomy: str
    meta: Mapping[str, str]


def build_u2bench(
    data: Path,
    out: Path,
    *,
    key_map: Mapping[str, str] | None = None,
    report_column: str = "report",
    overwrite: bool = False,
    max_dropped: float = 0.05,
    progress: bool = True,
) -> Manifest:
    """Read a copy of U2-BENCH and write it as a benchmark folder.

    Args:
        data: folder that holds the eight task folders, or some of them.
        out: benchmark folder to write.
        key_map: names that the release leaves open, see `sources.u2bench.KeyMap`.
        report_column: "report" or "caption", the column that report generation reads first.
        overwrite: replace a benchmark folder at `out`.
        max_dropped: largest share of all rows read that may be dropped.
        progress: show a bar of the bytes read, if standard error is a terminal.

    Raises:
        BadInput: not a U2-BENCH folder, a file without images, nothing usable, too many dropped rows.
    """
    if report_column not in REPORT_COLUMNS:
        raise BadInput(f"no report column '{report_column}'", fix="known: " + ", ".join(REPORT_COLUMNS))
    if not 0 <= max_dropped <= 1:
        raise BadInput(f"a share from 0 to 1 is needed, not {max_dropped}", field="max-dropped")
    spec = load_spec("u2bench")
    keys = KeyMap.read(key_map or {})
    files = find_files(data, {code: task.folder for code, task in spec.tasks.items()})
    log = ReadLog()
    with (
        new_folder(out, overwrite=overwrite) as folder,
        tempfile.TemporaryFile(dir=folder.path.parent) as spool,
        strict_pixels(),
        _bar(sum(path.stat().st_size for _, path in files), progress) as on_bytes,
    ):
        intake = _Intake(spec, CaseBook(spool), ReadingRules(report_column, keys.measurement))
        for row in read_rows(data, files, keys, log, on_bytes):
            intake.take(row)
        intake.check(data, max_dropped)
        manifest = Manifest(
            kind="benchmark",
            maker=f"sonogauge {__version__}",
            name=spec.name,
            version=spec.version,
            inputs=[Input(role="tsv", path=name, hash=digest) for name, digest in sorted(log.hashes.items())],
            parameters={
                "prompt_version": spec.prompt_version,
                "report_column": report_column,
                "key_map": dict(sorted((key_map or {}).items())),
                "max_dropped": max_dropped,
            },
            licences=[spec.licence],
        )
        return intake.write(folder, manifest, log)


class _Intake:
    """Takes the rows one by one and writes the folder at the end."""

    def __init__(self, spec: BenchmarkSpec, cases: CaseBook, rules: ReadingRules) -> None:
        self._spec = spec
        self._cases = cases
        self._rules = rules
        self._counts = ImportCounts()
        self._drafts: list[_Draft] = []
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._seen: set[tuple[str, str, bytes]] = set()
        self._file = ""
        self._nameless = 0  # explanation rows at the head of a file, which belong to the data set that follows

    def take(self, row: U2Row) -> None:
        """Make an item of a row, or count why not."""
        if row.file != self._file:
            self._counts.explanation_rows += self._nameless
            self._file, self._nameless = row.file, 0
        self._counts.rows += 1
        scenario = self._spec.scenario(row.task, row.dataset)
        if scenario is None:
            if row.explanation:
                self._nameless += 1
            else:
                self._counts.drop_unknown(f"{row.file}, row {row.row}", row.task, row.name)
            return
        counts = self._counts.of(*scenario.key)
        counts.rows += 1 + self._nameless
        counts.explanation_rows += self._nameless
        self._numbers[scenario.key] += 1 + self._nameless
        self._nameless = 0
        if row.explanation:
            counts.explanation_rows += 1
            return
        try:
            if row.media is None:
                raise RowFault(row.fault or "no image")
            self._drafts.append(self._draft(row, scenario))
        except RowFault as fault:
            self._counts.drop(f"{row.file}, row {row.row}", str(fault), *scenario.key)

    def _draft(self, row: U2Row, scenario: Scenario) -> _Draft:
        media = row.media
        assert media is not None
        reading = self._read(row, scenario, media.width, media.height)
        counts = self._counts.of(*scenario.key)
        case = self._cases.add(media)
        origin = f"{scenario.task}/{scenario.dataset}"
        source = row.number or scenario.source or scenario.dataset
        anatomy = map_anatomy(row.cells.get("anatomy_location"), scenario, self._spec)
        case.sources.add(source)
        case.scenarios.add((*scenario.key, anatomy))
        case.annotate(origin, reading.facts)
        patient = row.cells.get("patient_id", "")
        if is_missing(patient):
            counts.without_patient += 1
        else:
            case.patients.setdefault(source, set()).add(patient.strip())
        if reading.spacing is not None:
            case.spacings.add(reading.spacing)
        facts, readable = _demographics(row.cells.get("demographic", ""))
        case.demographics.update(facts)
        notes = [*reading.notes]
        if not readable:
            notes.append("demographic cell unparsable")
        content = sorted((name, cell) for name, cell in row.cells.items() if name not in ("img_path", "source_id"))
        mark = hashlib.sha256(repr((media.sha256, content)).encode("utf-8")).digest()
        if (*scenario.key, mark) in self._seen:
            counts.repeated_rows += 1
        self._seen.add((*scenario.key, mark))
        counts.items += 1
        counts.images.add(media.sha256)
        counts.states[reading.state] += 1
        counts.notes.update(notes)
        if reading.state == "error":
            counts.reference_errors[reading.why] += 1
        return _Draft(
            item_id=f"{origin}/{self._numbers[scenario.key]:04d}",
            scenario=scenario,
            case=case,
            reading=reading,
            anatomy=anatomy,
            meta=_meta(row, reading, media.sha256),
        )

    def _read(self, row: U2Row, scenario: Scenario, width: int, height: int) -> Reading:
        form = self._spec.tasks[scenario.task].form
        match form:
            case "choice":
                return read_choice(row.cells, scenario)
            case "place":
                return read_place(row.cells, scenario, width, height)
            case "number":
                return read_number(row.cells, scenario, self._rules)
            case "text":
                return read_text(row.cells, scenario, self._rules)
        raise ValueError(f"no reader for the answer form {form}")

    def check(self, data: Path, max_dropped: float) -> None:
        """Raise BadInput where nothing is usable or too much was dropped."""
        self._counts.explanation_rows += self._nameless
        self._nameless = 0
        dropped = self._counts.dropped
        first = f"; first at {self._counts.first_drop}" if self._counts.first_drop else ""
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(dropped.items()))
        if not any(draft.reading.state == "ok" for draft in self._drafts):
            without = Counter(draft.reading.why or draft.reading.state for draft in self._drafts)
            why = [f"dropped: {reasons}{first}"] if dropped else []
            why += [f"references: {', '.join(f'{n} {one}' for one, n in sorted(without.items()))}"] if without else []
            raise BadInput(
                f"nothing usable in {self._counts.rows} rows ({'; '.join(why) or 'no data rows'})", file=data
            )
        if dropped.total() > max_dropped * self._counts.rows:
            raise BadInput(
                f"{dropped.total()} of {self._counts.rows} rows dropped, more than the share {max_dropped:g} allowed "
                f"({reasons}{first})",
                file=data,
                fix="mend the rows or raise --max-dropped",
            )

    def write(self, folder: FolderWriter, manifest: Manifest, log: ReadLog) -> Manifest:
        """Write cases, items, specification and manifest."""
        self._cases.settle()
        folder.table("cases", _CASES_PER_GROUP).write(self._cases.rows(self._spec.licence))
        items = sorted((self._item(draft) for draft in self._drafts), key=lambda item: item.item_id)
        folder.table("items").write(item.to_row() for item in items)
        write_bytes(folder.path / SPEC_FILE, dump_spec(self._spec).encode("utf-8"))
        counts = self._counts.as_json()
        parts = counts["scenarios"].values()
        counts["cases"] = len(self._cases)
        counts["duplicates"] = {
            "images_across_tasks": self._cases.across_tasks,
            "items_sharing_an_image": sum(part["items"] - part["images"] for part in parts),
            "repeated_rows": sum(part["repeated_rows"] for part in parts),
            "contradicting_patients": self._cases.contradicting_patients,
        }
        notices = [*self._spec.notices, *_ignored(log), *self._source_splits()]
        if self._cases.contradicting_patients:
            notices.append(f"{self._cases.contradicting_patients} images have rows with different patient ids")
        return folder.finish(manifest.model_copy(update={"counts": counts, "notices": notices}))

    def _source_splits(self) -> Iterator[str]:
        """Say which rows name a part of their source: they may have been trained on, and are scored all the same."""
        found = [draft.meta["source_split"] for draft in self._drafts if "source_split" in draft.meta]
        parts = Counter(name if name in _SPLITS else "of another name" for name in found)
        named = ", ".join(f"{number} {name}" for name, number in sorted(parts.items()))
        if named:
            yield f"rows name a part of their source ({named}); it is kept, and all rows are asked and scored"

    def _item(self, draft: _Draft) -> Item:
        scenario, reading = draft.scenario, draft.reading
        answer = answer_for(self._spec, scenario)
        variables = {**reading.variables, **({"anatomy": draft.anatomy} if scenario.anatomy else {})}
        identity = prompt_id(self._spec.name, scenario.prompt, self._spec.prompt_version)
        question = ""
        # A row that lacks what its prompt names is unusable: no generic words stand in, and there is no question.
        if reading.askable:
            question, identity = render_question(self._spec, scenario, answer, variables)
        return Item(
            item_id=draft.item_id,
            task=scenario.task,
            dataset=scenario.dataset,
            source=draft.case.source,
            group=draft.case.group,
            # All cases are the benchmark, whatever part of its source a row says it came from.
            split="test",
            images=(ItemImage(draft.case.case_id),),
            question=question,
            prompt_id=identity,
            answer=answer,
            reference=reading.value,
            reference_state=reading.state,
            chance=reading.chance,
            anatomy=draft.anatomy,
            determinable=scenario.determinable,
            variables=variables,
            meta=draft.meta,
        )


def _meta(row: U2Row, reading: Reading, sha256: str) -> dict[str, str]:
    meta = {"file": row.file, "row": str(row.row), "image_sha256": sha256, **reading.meta}
    if not is_missing(row.cells.get("source_id", "")):
        meta["source_id"] = row.cells["source_id"].strip()
    if not is_missing(row.cells.get("split", "")):
        meta["source_split"] = row.cells["split"].strip().casefold()
    if reading.why:
        meta["reference_error"] = reading.why
    return meta


def _demographics(cell: str) -> tuple[set[tuple[str, str]], bool]:
    """Return the (name, value) pairs of a demographics cell, and whether it could be read."""
    if is_missing(cell):
        return set(), True
    try:
        value = parse_cell(cell)
    except CellError:
        return set(), False
    if not isinstance(value, dict):
        return set(), False
    return {(name.strip(), str(one).strip()) for name, one in value.items() if isinstance(one, str | int | float)}, True


def _ignored(log: ReadLog) -> Iterator[str]:
    for what, files in sorted(log.ignored.items()):
        yield f"ignored: {what}, in {len(files)} files"


@contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    if not wanted or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda count: bar.advance(task, count)
