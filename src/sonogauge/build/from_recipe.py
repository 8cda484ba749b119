"""A recipe in, a benchmark folder out: the stages in their order, with counts of each in the manifest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec
from sonogauge.build.describing import StageCounts, listed, manifest_of, spec_of
from sonogauge.build.engine import Engine, make_engine
from sonogauge.build.leakage import (
    AUDIT_FILE,
    Audit,
    AuditCase,
    Signatures,
    audit_cases,
    audit_lines,
    dump_audit,
    near_copies,
)
from sonogauge.build.merge import merge_sorted
from sonogauge.build.opening import ImageSet, open_set, open_vocabulary
from sonogauge.build.probe import measure_detection, sample_pictures
from sonogauge.build.recipe import Recipe, read_recipe
from sonogauge.build.shards import WorkFolder, read_arrow
from sonogauge.build.stages.drawing import Draw
from sonogauge.build.stages.quality import check_labels, check_of
from sonogauge.build.stages.questions import Asked, ask, collect_pools
from sonogauge.build.stages.sampling import sample
from sonogauge.build.stages.splits import SplitCase, SplitResult, split_cases
from sonogauge.build.stages.vocabulary import Vocabulary, filtered, map_words
from sonogauge.folders import Folder, FolderWriter, Manifest, new_folder, write_bytes
from sonogauge.items import Item
from sonogauge.tables import CASES

# Columns of the cases that the stages after the first work on: all but the pictures and the masks.
FACTS: Final = tuple(
    name
    for name in CASES.names
    if name not in ("image", "masks", "fan_mask", "sha256", "media_type", "frames", "device", "demographics", "points")
)
_LEFT_OUT_LISTED: Final = 20
_PROBE: Final = 10  # images altered on purpose in a build; `sonogauge audit` takes more
_ROWS_PER_GROUP: Final = 96


def build_from_recipe(
    recipe_file: Path | str,
    out: Path | str,
    *,
    data: Path | str | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    seed: int | None = None,
    max_dropped: float | None = None,
    overwrite: bool = False,
    check: bool = False,
) -> Manifest:
    """Build a benchmark folder from a recipe.

    Args:
        recipe_file: YAML, see `recipe.Recipe`.
        out: benchmark folder to write; work that a killed command had finished is found beside it and used.
        data: folder that relative paths of the recipe start from; None = the recipe's own folder.
        engine: "local", "ray", "ray://HOST:PORT" or an engine.
        workers: threads or processes; None = as many as processors.
        seed: in place of the recipe's own.
        max_dropped: in place of the recipe's own.
        overwrite: replace a benchmark folder at `out`.
        check: refuse to write a benchmark with a leak, as a recipe with `leaks: refuse` does.

    Raises:
        BadInput: a recipe, a source or a case that cannot be used; too many cases left out; nothing to ask; a leak.
    """
    file, out = Path(recipe_file), Path(out)
    given = {"seed": seed, "max_dropped": max_dropped}
    recipe = read_recipe(file, **{key: value for key, value in given.items() if value is not None})
    base = Path(data) if data is not None else file.parent
    vocabulary = open_vocabulary(recipe, file.parent, base)
    with WorkFolder(out) as work:
        runner = make_engine(engine, workers) if isinstance(engine, str) else engine
        with (
            closing(runner) if isinstance(engine, str) else _kept_open(runner),
            new_folder(out, overwrite=overwrite) as folder,
        ):
            sets = [open_set(entry, base, work, runner, recipe) for entry in recipe.sources]
            # Arrow holds memory of an import for later; the stages that follow need other sizes.
            pa.default_memory_pool().release_unused()
            builder = _Builder(recipe, vocabulary, sets, work, runner)
            return builder.build(folder, check or recipe.leaks == "refuse")


class _kept_open:
    """Context manager that leaves an engine to its owner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Engine:
        return self._engine

    def __exit__(self, *_: object) -> None:
        return None


class _Builder:
    """Holds what the stages hand on."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary | None, sets: Sequence[ImageSet], work: WorkFolder, engine: Engine
    ) -> None:
        self._recipe = recipe
        self._vocabulary = vocabulary
        self._sets = sets
        self._work = work
        self._engine = engine
        self._counts = StageCounts()
        self._issues: dict[str, list[str]] = {}

    def build(self, folder: FolderWriter, refuse_leaks: bool) -> Manifest:
        recipe, counts = self._recipe, self._counts
        kept = self._keep()
        split = self._split(kept)
        asked = ask(recipe, _rows(kept), split.parts, collect_pools(recipe, _rows(kept)))
        rules = {code: task.sampling or recipe.sampling for code, task in recipe.tasks.items()}
        items, sampled = sample(asked.items, rules.__getitem__, recipe.seed)
        if not items:
            why = "; ".join(f"{code}: {listed(reasons)}" for code, reasons in sorted(asked.skipped.items()))
            raise BadInput(f"nothing to ask ({why or 'no case fits a task'})", field="tasks")
        used = self._used(items, asked)
        found = self._audit(kept, split, used)
        del kept
        if refuse_leaks and found.leaks:
            lines = [line for line in audit_lines(found, 1) if line.startswith("leak")]
            raise BadInput(f"{found.leaks} leaks between the parts; {lines[0]}", field="split", fix="split by group")
        cases = self._write_cases(folder, used, items, asked)
        folder.table("items").write(item.to_row() for item in items)
        spec = spec_of(recipe, items, cases)
        write_bytes(folder.path / SPEC_FILE, dump_spec(spec).encode("utf-8"))
        write_bytes(folder.path / AUDIT_FILE, dump_audit(found).encode("utf-8"))
        for code, task in recipe.tasks.items():
            prompt = folder.path / "prompts" / recipe.version / f"{code.casefold()}.txt"
            write_bytes(prompt, task.template.strip("\n").encode("utf-8") + b"\n")
        return folder.finish(
            manifest_of(
                recipe,
                self._vocabulary,
                [one.origin for one in self._sets],
                spec,
                split,
                asked,
                sampled,
                items,
                cases,
                found,
                counts,
            )
        )

    # vocabulary, class filter, quality

    def _keep(self) -> list[pa.RecordBatch]:
        """Return the facts of the cases that pass vocabulary and quality, in canonical words."""
        recipe, counts = self._recipe, self._counts
        kept, faults = [], 0
        for one in self._sets:
            facts = one.folder.batches("cases", list(FACTS))
            for batch, findings, shares in _joined(facts, one.shards):
                counts.read += batch.num_rows
                batch = self._in_words(batch)
                rows = batch.to_pylist()
                fine = []
                for row, found in zip(rows, findings, strict=True):
                    verdict, fault = self._judge(row, found)
                    faults += fault
                    fine.append(verdict)
                whole = batch.append_column("shares", shares)
                kept.append(whole.filter(pa.array(fine, type=pa.bool_())))
        if self._vocabulary is not None and recipe.vocabulary.unmapped == "refuse" and counts.unmapped:
            name, source, raw = min(counts.unmapped)
            raise BadInput(f"'{raw}' of {source} is not in the vocabulary", field=name, fix="add a row to the file")
        if counts.read and faults > recipe.max_dropped * counts.read:
            reasons = listed(counts.left_out)
            raise BadInput(
                f"{faults} of {counts.read} cases cannot be used: {reasons}; first {counts.examples[0]}",
                fix="mend the cases, or raise max_dropped",
            )
        return [batch for batch in kept if batch.num_rows]

    def _in_words(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._vocabulary is None:
            return batch
        batch, done = map_words(batch, self._vocabulary)
        self._counts.words += done.changed
        self._counts.unmapped.update(done.unmapped)
        return batch

    def _judge(self, row: Mapping[str, Any], found: Sequence[str]) -> tuple[bool, bool]:
        """Return whether a case stays, and whether it was left out for a fault of its own."""
        recipe, counts = self._recipe, self._counts
        if (hit := filtered(row, recipe.vocabulary.drop)) is not None:
            counts.filtered[hit] += 1
            return False, False
        findings = [*found, *check_labels(row, recipe.quality)]
        unwanted = [one for one in findings if recipe.quality.action(check_of(one)) == "drop"]
        if unwanted:
            counts.left_out[check_of(unwanted[0])] += 1
            if len(counts.examples) < _LEFT_OUT_LISTED:
                counts.examples.append(f"{row['case_id']}: {unwanted[0]}")
            return False, True
        flags = [one for one in findings if recipe.quality.action(check_of(one)) == "flag"]
        if flags:
            counts.flagged.update(check_of(one) for one in flags)
            self._issues[row["case_id"]] = flags
        if recipe.vocabulary.unmapped == "drop" and self._unnamed(row):
            counts.left_out["word not in the vocabulary"] += 1
            return False, False
        return True, False

    def _unnamed(self, row: Mapping[str, Any]) -> bool:
        words = self._vocabulary
        raw = {one["name"] for one in row["meta"] or ()}
        return words is not None and any(
            words.find(label["name"], row["source"], label["value"]) is None and f"raw {label['name']}" not in raw
            for label in row["labels"] or ()
        )

    # splits and leakage

    def _split(self, kept: Sequence[pa.RecordBatch]) -> SplitResult:
        rule = self._recipe.split
        label = rule.stratify
        cases = [
            SplitCase(
                row["case_id"],
                row["source"],
                row["group"],
                row["pixel_hash"] or row["case_id"],
                row["split"],
                next((one["value"] for one in row["labels"] or () if label and one["name"] == label), ""),
            )
            for batch in kept
            for row in batch.select(["case_id", "source", "group", "pixel_hash", "split", "labels"]).to_pylist()
        ]
        seen = Counter(case.case_id for case in cases)
        if twice := [case_id for case_id, number in seen.items() if number > 1]:
            raise BadInput(f"two cases are called '{min(twice)}'", field="sources", fix="name each set once")
        copies: list[tuple[str, str]] = []
        if rule.copies == "near" and rule.rule != "official":
            signed = self._signatures(seen.__contains__)
            every = range(len(signed.case_ids))
            pairs, _, _ = near_copies(signed, every, every, ordered=True)
            copies = [(signed.case_ids[pair.left], signed.case_ids[pair.right]) for pair in pairs]
        return split_cases(cases, rule, self._recipe.seed, copies)

    def _signatures(self, keep: Callable[[str], bool]) -> Signatures:
        return Signatures([path for one in self._sets for path in one.shards], keep)

    def _audit(self, kept: Sequence[pa.RecordBatch], split: SplitResult, used: Mapping[str, set[str]]) -> Audit:
        cases = [
            AuditCase(case_id, (split.parts[case_id],), group, patient is not None)
            for batch in kept
            for case_id, group, patient in zip(
                *(batch.column(name).to_pylist() for name in ("case_id", "group", "patient")), strict=True
            )
            if case_id in used
        ]
        found = audit_cases(cases, self._signatures(used.__contains__))
        pictures = [
            picture
            for one in self._sets
            for picture in sample_pictures(one.folder.file("cases"), -(-_PROBE // len(self._sets)), self._recipe.seed)
        ]
        if pictures:
            found.probe, found.false = measure_detection(pictures)
        return found

    # writing

    def _used(self, items: Sequence[Item], asked: Asked) -> dict[str, set[str]]:
        """Return the cases that items ask about, a drawn one by its parent -> the drawings wanted of it."""
        used: dict[str, set[str]] = defaultdict(set)
        for item in items:
            for image in item.images:
                drawing = asked.drawings.get(image.case_id)
                if drawing is None:
                    used[image.case_id].add("")
                else:
                    used[drawing.parent].add(drawing.case_id)
        return used

    def _write_cases(
        self, folder: FolderWriter, used: Mapping[str, set[str]], items: Sequence[Item], asked: Asked
    ) -> dict[str, Any]:
        shown = {case_id for case_id, images in used.items() if "" in images}
        styles = {image.case_id: self._recipe.tasks[item.task].box for item in items for image in item.images}
        jobs: dict[str, list[Any]] = defaultdict(list)
        for case_id in sorted(styles.keys() & asked.drawings.keys()):
            drawing = asked.drawings[case_id]
            jobs[drawing.parent].append((drawing, styles[case_id]))
        streams = []
        for one in self._sets:
            streams.append(self._final(one.folder, shown))
            if jobs:
                # Ids of drawings start with their parent's, so a stream need not be sorted: sort what a shard holds.
                streams += [_sorted(path) for path in self._work.run(self._engine, Draw(jobs), one.folder)]
        facts: dict[str, Any] = {"licences": set(), "redistributable": True, "cases": 0}
        writer = folder.table("cases", rows_per_group=_ROWS_PER_GROUP)
        for table in merge_sorted(streams, "case_id", _ROWS_PER_GROUP):
            facts["cases"] += table.num_rows
            facts["licences"] |= {one or "not stated" for one in table.column("licence").to_pylist()}
            facts["redistributable"] &= all(table.column("redistributable").to_pylist())
            writer.write_table(table)
        facts["drawn"] = sum(len(one) for one in jobs.values())
        return facts

    def _final(self, cases: Folder, shown: set[str]) -> Iterator[pa.RecordBatch]:
        """Yield the cases that are asked about, in canonical words, with what the quality stage flagged."""
        for batch in cases.batches("cases", size=_ROWS_PER_GROUP):
            ids = batch.column("case_id").to_pylist()
            wanted = [case_id in shown for case_id in ids]
            if not all(wanted):
                batch = batch.filter(pa.array(wanted, type=pa.bool_()))
            if not batch.num_rows:
                continue
            if self._vocabulary is not None:
                batch, _ = map_words(batch, self._vocabulary)
            yield self._with_issues(batch)

    def _with_issues(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch.column("case_id").to_pylist()
        if not any(case_id in self._issues for case_id in ids):
            return batch
        at = batch.schema.get_field_index("known_issues")
        issues = [
            sorted({*(old or ()), *self._issues.get(case_id, ())})
            for case_id, old in zip(ids, batch.column(at).to_pylist(), strict=True)
        ]
        return batch.set_column(at, batch.schema.field(at), pa.array(issues, type=batch.schema.field(at).type))


def _rows(batches: Sequence[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    return (row for batch in batches for row in batch.to_pylist())


def _joined(
    facts: Iterator[pa.RecordBatch], shards: Sequence[Path]
) -> Iterator[tuple[pa.RecordBatch, list[list[str]], pa.Array]]:
    """Yield batches of facts with the findings and mask shares of their rows; both are in the order of the table."""
    examined = (batch for path in shards for batch in read_arrow(path, ["case_id", "findings", "shares"]))
    waiting = pa.table({})
    for batch in facts:
        parts = [waiting] if waiting.num_rows else []
        have = waiting.num_rows
        while have < batch.num_rows:
            more = pa.Table.from_batches([next(examined)])
            parts.append(more)
            have += more.num_rows
        whole = pa.concat_tables(parts)
        mine, waiting = whole.slice(0, batch.num_rows).combine_chunks(), whole.slice(batch.num_rows)
        assert mine.column("case_id").to_pylist() == batch.column("case_id").to_pylist()
        shares = mine.column("shares").combine_chunks()
        yield batch, mine.column("findings").to_pylist(), shares


def _sorted(path: Path) -> Iterator[pa.RecordBatch]:
    rows = [
        (case_id, batch, row)
        for batch in read_arrow(path)
        for row, case_id in enumerate(batch.column("case_id").to_pylist())
    ]
    for _, batch, row in sorted(rows, key=lambda one: str(one[0])):
        yield batch.slice(row, 1)
