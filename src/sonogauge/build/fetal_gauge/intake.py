"""First pass of a build: read all cases without their images, collect labels, and split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.benchmarks.fetal_gauge.parameters import CHOICE_TASKS, Parameters
from sonogauge.build.fetal_gauge.drafts import COLUMNS, Left, drafts
from sonogauge.build.fetal_gauge.options import Pools, has_choice
from sonogauge.build.recipe import SplitRule
from sonogauge.build.stages.splits import TEST, SplitCase, split_cases
from sonogauge.build.stages.vocabulary import Vocabulary, map_words, read_vocabulary
from sonogauge.folders import Folder

BATCH: Final = 256
TOO_FEW: Final = "fewer than two options: the pool holds one label and its synonyms"
_Asked = tuple[str, str, str]  # task, source, label ("" for an open answer)


@dataclass
class Intake:
    """What the first pass found.

    parts: case id -> split, of the cases with a question. dropped: cases whose group or image lies in the test too.
    unknown_patients: cases without a patient id, by source. elsewhere: what sources show that never speak of a fetus.
    """

    vocabulary: Vocabulary
    pools: Pools = field(default_factory=Pools)
    left: Left = field(default_factory=Left)
    parts: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    cases: Counter[str] = field(default_factory=Counter)
    unmapped: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    unknown_patients: Counter[str] = field(default_factory=Counter)
    rules: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    overlaps: Counter[str] = field(default_factory=Counter)
    elsewhere: dict[str, set[str]] = field(default_factory=dict)


def find_cases(data: Path) -> list[Folder]:
    """Return the folders of cases in a folder: itself, or those directly below it, in the order of their names.

    Raises:
        BadInput: none.
    """
    if not data.is_dir():
        raise BadInput("no such folder", file=data)
    if (data / "manifest.json").is_file():
        return [Folder(data, "cases")]
    found = [Folder(one, "cases") for one in sorted(data.iterdir()) if (one / "manifest.json").is_file()]
    if not found:
        raise BadInput("no folder of cases in it", file=data, fix="sonogauge import SOURCE DIR --out CASES")
    return found


def load_vocabulary(parameters: Parameters) -> Vocabulary:
    """Return the mapping of raw labels: the one that ships, the user's own, or none."""
    if not parameters.use_vocabulary:
        return Vocabulary()
    if parameters.vocabulary is not None:
        return read_vocabulary(Path(parameters.vocabulary))
    with as_file(files("sonogauge.benchmarks") / "fetal_gauge" / "vocabulary.csv") as path:
        return read_vocabulary(path)


def mapped_rows(
    folder: Folder, vocabulary: Vocabulary, unmapped: Counter[tuple[str, str, str]] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the cases of a folder without their images, in canonical words."""
    for batch in folder.batches("cases", list(COLUMNS), BATCH):
        yield from canonical_rows(batch, vocabulary, unmapped)
    pa.default_memory_pool().release_unused()


def canonical_rows(
    batch: pa.RecordBatch, vocabulary: Vocabulary, unmapped: Counter[tuple[str, str, str]] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a batch in canonical words, each with `raw_words`: (field, canonical word) -> raw word."""
    if not vocabulary.words:
        return [{**row, "raw_words": {}} for row in batch.to_pylist()]
    words, done = map_words(batch, vocabulary)
    if unmapped is not None:
        unmapped.update({key: number for key, number in done.unmapped.items() if key[0] != "anatomy"})
    columns = {
        name: (batch.column(name).to_pylist(), words.column(name).to_pylist()) for name in ("labels", "masks", "boxes")
    }
    views = batch.column("view").to_pylist()
    rows: list[dict[str, Any]] = words.to_pylist()
    for number, row in enumerate(rows):
        raw: dict[tuple[str, str], str] = {}
        for name, (before, after) in columns.items():
            for one, other in zip(before[number] or (), after[number] or (), strict=True):
                field, key = (one["name"], "value") if name == "labels" else ("category", "category")
                raw.setdefault((field, other[key]), one[key])
        if row["view"] is not None:
            raw["view", row["view"]] = views[number]
        row["raw_words"] = raw
    return rows


def take_in(folders: list[Folder], parameters: Parameters) -> Intake:
    """Read all cases once; see `Intake`.

    Raises:
        BadInput: the same case twice, nothing to ask, an overlap of train and test where it is refused.
    """
    intake = Intake(load_vocabulary(parameters))
    cases: list[tuple[SplitCase, tuple[_Asked, ...]]] = []
    seen: set[str] = set()
    known: dict[_Asked, _Asked] = {}
    fetal: set[str] = set()
    for folder in folders:
        for row in mapped_rows(folder, intake.vocabulary, intake.unmapped):
            source, case_id = row["source"], row["case_id"]
            if case_id in seen:
                raise BadInput(f"a second case '{case_id}'", file=folder.path, fix="take each source once")
            seen.add(case_id)
            intake.cases[source] += 1
            intake.unknown_patients[source] += row["patient"] is None
            _note_place(row, intake.elsewhere, fetal)
            asked = []
            for draft in drafts(row, parameters, intake.left):
                label = draft.answer if draft.task in CHOICE_TASKS else ""
                if label:
                    intake.pools.add(draft.task, source, label)
                key = (draft.task, source, label)
                asked.append(known.setdefault(key, key))
            if asked:
                one = SplitCase(case_id, source, row["group"], row["pixel_hash"] or case_id, row["split"])
                cases.append((one, tuple(asked)))
    for source, places in sorted(intake.elsewhere.items()):
        intake.notices.append(
            f"{source}: shows {', '.join(sorted(places))} and never speaks of a fetus; keep only fetal cases in --data"
        )
    askable = {key for key in known if not key[2] or has_choice(*key, intake.pools, parameters)}
    for _, keys in cases:
        for task, source, _ in set(keys) - askable:
            intake.left.add(source, task, TOO_FEW)
    usable = [one for one, keys in cases if askable.intersection(keys)]
    if not usable:
        raise BadInput(
            f"nothing to ask ({intake.left.told()})", file=folders[0].path, fix="look at labels and vocabulary"
        )
    _split(intake, usable, parameters)
    _refuse_overlap(intake, usable, parameters)
    return intake


def _note_place(row: Mapping[str, Any], elsewhere: dict[str, set[str]], fetal: set[str]) -> None:
    """Collect what a source shows, unless it names a fetus or does not say what it shows."""
    source, place = row["source"], row["anatomy"]
    if source in fetal:
        return
    words = [place, row["view"], *(one["category"] for name in ("masks", "boxes") for one in row[name] or ())]
    if place in (None, "", "unknown", "other") or any("fet" in (word or "").casefold() for word in words):
        fetal.add(source)
        elsewhere.pop(source, None)
    else:
        elsewhere.setdefault(source, set()).add(place)


def _split(intake: Intake, cases: list[SplitCase], parameters: Parameters) -> None:
    rule = SplitRule(test_fraction=parameters.test_fraction, small_source=parameters.small_source_max_images)
    useless = _without_test(cases, rule.names)
    if unknown := sorted(set(parameters.held_out) - set(intake.cases)):
        raise BadInput(f"no source '{unknown[0]}'", field="held_out", fix="known: " + ", ".join(sorted(intake.cases)))
    given = [
        SplitCase(one.case_id, one.source, one.group, one.pixels, None) if one.source in useless else one
        for one in cases
    ]
    found = split_cases(given, rule, parameters.random_state)
    intake.parts, intake.rules = found.parts, found.rules
    for source in sorted(useless):
        intake.notices.append(f"{source}: its own test part has no usable question, so it was split anew")
    for one in cases:
        if one.source in parameters.held_out:
            intake.parts[one.case_id] = TEST
            intake.rules[one.source] = "held out, wholly in the test"


def _without_test(cases: list[SplitCase], names: Mapping[str, str]) -> set[str]:
    """Return the sources that have a split of their own, and no question in its test part."""
    own: dict[str, set[str]] = {}
    for one in cases:
        own.setdefault(one.source, set()).add(names.get((one.own or "").strip().casefold(), ""))
    return {source for source, found in own.items() if "" not in found and TEST not in found}


def _refuse_overlap(intake: Intake, cases: list[SplitCase], parameters: Parameters) -> None:
    test = [one for one in cases if intake.parts[one.case_id] == TEST]
    groups, pixels = {one.group for one in test}, {one.pixels for one in test}
    both: dict[str, set[str]] = {"patients or groups": set(), "images": set()}
    for one in cases:
        if intake.parts[one.case_id] == TEST:
            continue
        if one.group in groups:
            both["patients or groups"].add(one.group)
            intake.dropped.add(one.case_id)
        if one.pixels in pixels:
            both["images"].add(one.pixels)
            intake.dropped.add(one.case_id)
    intake.overlaps = Counter({name: len(found) for name, found in both.items() if found})
    if not intake.dropped:
        return
    told = ", ".join(f"{number} {name}" for name, number in sorted(intake.overlaps.items()))
    if parameters.on_overlap == "refuse":
        raise BadInput(
            f"{told} in train and test (first case: {min(intake.dropped)})",
            field="on_overlap",
            fix="mend the split of the source, or set on_overlap: drop to leave the train part of them out",
        )
    intake.notices.append(f"{told} were in train and test; {len(intake.dropped)} cases of the train part were left out")
