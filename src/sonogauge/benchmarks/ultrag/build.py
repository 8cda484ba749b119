"""Building UltraG items: from cases with masks, or from a folder in the official layout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Scenario, dump_spec, load_spec
from sonogauge.benchmarks.ultrag.audit import audit_files, audit_records, write_audit
from sonogauge.benchmarks.ultrag.from_cases import CaseSource, case_folders, read_cases, scan
from sonogauge.benchmarks.ultrag.official import is_official, read_official
from sonogauge.benchmarks.ultrag.records import Asking, ImageRecord, items_of
from sonogauge.benchmarks.ultrag.splits import SPLITS, leakage
from sonogauge.benchmarks.ultrag.writer import QuestionWriter, write_questions
from sonogauge.folders import Folder, FolderWriter, Input, Manifest, new_folder, write_bytes

# The parts of official files are those of the files, whatever split is asked for.
AS_READ: Final = "as in the files"
# A record with the row of its case, whose masks are those of the record.
Pair = tuple[ImageRecord, dict[str, Any]]
_CELLS: Final = ("box_centre", "mask_centroid")


def build_ultrag(
    data: Path | str,
    out: Path | str,
    *,
    parameters: Path | str | Mapping[str, Any] | None = None,
    split: str | None = None,
    keep_negatives: bool | None = None,
    category: str | None = None,
    coords: str | None = None,
    cell_of: str | None = None,
    reveal_finding_types: bool | None = None,
    include_synthetic: bool | None = None,
    writer: QuestionWriter | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Manifest:
    """Build UltraG items into a benchmark folder; the same cases give the same bytes.

    Args:
        data: a folder of cases (of `import`, or a benchmark with cases), a folder of such folders, or a folder in the
            official layout (JSONL files and `*_coco` folders).
        out: the benchmark folder to write. Beside its tables it holds `records/` (one JSONL per category) and `audit/`.
        parameters: a YAML file (or a mapping) of the declared parameters of benchmark.yaml; arguments come before it.
        split: "patient_safe" or "published"; official records keep theirs.
        keep_negatives: keep images that are stated to show no target.
        category: of cases from a source that the tables do not know.
        coords: how items ask for coordinates, see `answers.convention`.
        cell_of: cells are those of the "box_centre" or of the "mask_centroid".
        reveal_finding_types: tell a report its finding types, as the published prompt does.
        include_synthetic: keep synthetic images of AbdomenUS.
        writer: a model that writes the questions (`writer.QuestionWriter`); None = from templates.
        seed: of the patient-safe split.
        overwrite: replace an existing benchmark.
        progress: called with (images done, all images).

    Raises:
        BadInput: no usable case, an unknown source or option, official records that cite masks without geometry,
            private cases and a writer on another machine.
    """
    spec = load_spec("ultrag")
    given = {
        "split": split,
        "keep_negatives": keep_negatives,
        "coords": coords,
        "cell_of": cell_of,
        "reveal_finding_types": reveal_finding_types,
        "include_synthetic": include_synthetic,
    }
    declared = _declared(parameters, spec)
    options = {**spec.parameters, **declared, **{name: value for name, value in given.items() if value is not None}}
    if options["cell_of"] not in _CELLS:
        raise BadInput(f"no cell of a '{options['cell_of']}'", field="cell_of", fix="use " + " or ".join(_CELLS))
    if options["split"] not in SPLITS:
        raise BadInput(f"no split '{options['split']}'", field="split", fix="use " + " or ".join(SPLITS))
    asking = Asking(spec, options["coords"], bool(options["reveal_finding_types"]))
    counts: dict[str, Any] = {}
    inputs: list[Input] = []
    data = Path(data)
    official = is_official(data)
    sources: Mapping[str, CaseSource] | None = None
    if official:
        options["split"] = AS_READ
        pairs = read_official(data, counts, keep_negatives=bool(options["keep_negatives"]))
        total = 0
    else:
        folders = case_folders(data)
        if writer is not None and writer.away:
            _refuse_private(folders, writer.away)
        inputs = [Input(role="cases", path=str(one.path), hash=one.manifest.hash) for one in folders]
        sources = scan(folders, options, category, seed, counts)
        total = sum(len(one.split) for one in sources.values())
        pairs = read_cases(folders, sources, options, counts)
    with new_folder(out, overwrite=overwrite) as folder:
        built = _write(folder, pairs, asking, writer, progress, total)
        if not built.items:
            raise BadInput("no image with a usable mask", file=data, fix="import cases with masks of known sources")
        _write_records(folder, built.records)
        audit = audit_files(sorted(data.rglob("*.jsonl"))) if official else audit_records(built.records)
        write_audit(audit, folder.path / "audit")
        own = _own_spec(spec, built.pairs, options)
        write_bytes(folder.path / SPEC_FILE, dump_spec(own).encode("utf-8"))
        return folder.finish(
            Manifest(
                kind="benchmark",
                maker=f"sonogauge {__version__}",
                name=spec.name,
                version=spec.version,
                inputs=inputs,
                parameters={
                    **options,
                    "seed": seed,
                    "reference_origin": "+".join(sorted(built.origins)),
                    "writer": writer.name if writer else "",
                },
                counts={
                    **counts,
                    "images": built.images,
                    "items": sum(built.items.values()),
                    **{f"items {task}": number for task, number in sorted(built.items.items())},
                    "items that need evidence and have none": built.faults,
                    "leakage": _leakage(sources),
                    "audit": audit.summary,
                },
                licences=sorted(built.licences),
                notices=[*spec.notices, *built.notices],
            )
        )


def _refuse_private(folders: Sequence[Folder], away: str) -> None:
    for folder in folders:
        if any(row["private"] for row in folder.rows("cases", ["private"])):
            raise BadInput(
                f"private images would leave for {away}",
                file=folder.path,
                fix="use a writer on this machine, or pass --allow-upload if you may send them",
            )


def _declared(parameters: Path | str | Mapping[str, Any] | None, spec: BenchmarkSpec) -> Mapping[str, Any]:
    if parameters is None or isinstance(parameters, Mapping):
        found: Any = parameters or {}
    else:
        try:
            found = yaml.safe_load(Path(parameters).read_text("utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise BadInput(f"not a readable YAML file ({' '.join(str(error).split())})", file=parameters) from error
    if not isinstance(found, Mapping):
        raise BadInput("not a mapping of parameters", field="parameters", fix="write NAME: VALUE lines")
    for name, value in found.items():
        if name not in spec.parameters:
            raise BadInput(f"no parameter '{name}'", field="parameters", fix="known: " + ", ".join(spec.parameters))
        if not isinstance(value, type(spec.parameters[name])):
            kind = type(spec.parameters[name]).__name__
            raise BadInput(f"{value!r} is no {kind}", field=str(name), fix=f"the default is {spec.parameters[name]}")
    return found


class _Built:
    """What was written, counted."""

    def __init__(self) -> None:
        self.images = 0
        self.faults = 0
        self.items: Counter[str] = Counter()
        self.pairs: dict[tuple[str, str], str] = {}
        self.records: dict[str, list[Mapping[str, Any]]] = {}
        self.licences: set[str] = set()
        self.notices: list[str] = []
        self.origins: set[str] = set()


def _write(
    folder: FolderWriter,
    pairs: Iterator[Pair],
    asking: Asking,
    writer: QuestionWriter | None,
    progress: Callable[[int, int], None] | None,
    total: int,
) -> _Built:
    built = _Built()
    issues: set[str] = set()
    rows = []
    cases = folder.table("cases", rows_per_group=64)
    for one, case in write_questions(pairs, writer) if writer is not None else pairs:
        cases.write([case])
        built.images += 1
        built.origins.add(one.origin)
        built.records.setdefault(one.category.name, []).append(one.record)
        if case.get("licence"):
            built.licences.add(str(case["licence"]))
        facts = one.category.sources.get(one.source)
        issues.update(f"{one.source}: {issue}" for issue in (facts.known_issues if facts else ()))
        for item in items_of(one, asking):
            built.items[item.task] += 1
            built.faults += "data_fault" in item.meta
            built.pairs[item.task, item.dataset] = one.category.name
            rows.append(item.to_row())
        if progress is not None:
            progress(built.images, total)
    rows.sort(key=lambda row: str(row["item_id"]))
    folder.table("items").write(rows)
    built.notices = sorted(issues)
    return built


def _write_records(folder: FolderWriter, records: Mapping[str, list[Mapping[str, Any]]]) -> None:
    for category, own in sorted(records.items()):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in own)
        write_bytes(folder.path / "records" / f"{category}.jsonl", lines.encode("utf-8"))


def _own_spec(spec: BenchmarkSpec, pairs: Mapping[tuple[str, str], str], options: Mapping[str, Any]) -> BenchmarkSpec:
    """Return the specification of what was built: only its scenarios, and the options as built."""
    known = {one.key: one for one in spec.scenarios}
    scenarios = [one for one in spec.scenarios if one.key in pairs]
    scenarios += [
        Scenario(task=task, dataset=dataset, source=dataset, prompt=task.lower(), extra={"category": category})
        for (task, dataset), category in sorted(pairs.items())
        if (task, dataset) not in known
    ]
    return spec.model_copy(update={"scenarios": tuple(scenarios), "parameters": dict(options)})


def _leakage(sources: Mapping[str, CaseSource] | None) -> dict[str, Any]:
    if sources is None:
        return {"official files": "cannot be checked"}
    return {name: leakage(one.members, one.split) for name, one in sorted(sources.items())}


def report_lines(manifest: Manifest) -> list[str]:
    """Return what `sonogauge build ultrag` prints: counts, leakage, audit, notes, licences."""
    counts = manifest.counts
    lines = [
        f"ultrag ({manifest.parameters['reference_origin']} texts, split {manifest.parameters['split']}): "
        f"{counts['images']} images, {counts['items']} items"
    ]
    lines += [
        f"{name}: {value}"
        for name, value in counts.items()
        if isinstance(value, int) and name not in ("images", "items")
    ]
    for source, found in counts["leakage"].items():
        said = (
            found if isinstance(found, str) else f"{found['in both parts']} of {found['groups']} groups in both parts"
        )
        lines.append(f"leakage {source}: {'cannot be checked' if 'cannot' in said else said}")
    lines.append("audit: " + ", ".join(f"{value} {name}" for name, value in counts["audit"].items()))
    lines += [f"note: {notice}" for notice in manifest.notices]
    return [*lines, *(f"licence: {licence}" for licence in manifest.licences)]
