"""Folders of fetal cases in, a Fetal-Gauge-style benchmark out; two passes, memory of a few images."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.fetal_gauge.parameters import CHOICE_TASKS, TASKS, Parameters, make_parameters
from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, Composite, Scenario, dump_spec, load_spec
from sonogauge.build.fetal_gauge.drafts import Draft, Left, drafts
from sonogauge.build.fetal_gauge.intake import Intake, canonical_rows, find_cases, take_in
from sonogauge.build.fetal_gauge.pictures import boxed_pixels, encode, read_pixels, resize
from sonogauge.build.fetal_gauge.questions import NAME, items_of, picture_id
from sonogauge.folders import Folder, FolderWriter, Input, Manifest, new_folder, write_bytes
from sonogauge.items import Item
from sonogauge.tables import CASES, from_facts, to_facts

BOXED: Final = "a red box was drawn on the image"
_BATCH: Final = 16
_ROWS_PER_GROUP: Final = 1024
_BYTES_PER_GROUP: Final = 6_000_000
_THREADS: Final = 2
_UNMAPPED_LISTED: Final = 50

_Made = tuple[list[dict[str, Any]], list[Item]]


@dataclass
class _Tally:
    """What was written: questions by task, data set and part; options; measures for the scenarios."""

    questions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    options: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    sizes: Counter[tuple[str, int]] = field(default_factory=Counter)
    pictures: int = 0
    licences: set[str] = field(default_factory=set)

    def take(self, item: Item) -> None:
        self.questions[item.task, item.dataset, item.split] += 1
        self.options.setdefault((item.task, item.dataset), set()).update(item.answer.options)
        self.sources[item.task, item.dataset] = item.source
        if item.answer.options:
            self.sizes[item.task, len(item.answer.options)] += 1


def build_fetal_gauge(
    data: Path,
    out: Path,
    *,
    parameters: Parameters | dict[str, Any] | Path | str | None = None,
    seed: int | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Build a Fetal-Gauge-style benchmark from fetal cases.

    Args:
        data: a folder of cases (made by `import`), or a folder that holds several of them.
        out: benchmark folder to write.
        parameters: declared parameters, or a YAML file of them; see `benchmarks.fetal_gauge.parameters`.
        seed: in place of the parameter `random_state`.
        overwrite: replace a benchmark folder at `out`.

    Raises:
        BadInput: no cases, nothing to ask, a wrong parameter, a train/test overlap, an image that cannot be read.
    """
    chosen = make_parameters(parameters)
    if seed is not None:
        chosen = chosen.model_copy(update={"random_state": seed})
    folders = find_cases(data)
    with new_folder(out, overwrite=overwrite) as folder:
        intake = take_in(folders, chosen)
        tally = _Tally()
        for cases in folders:
            _write_cases(folder, cases, intake, chosen, tally)
        if not any(part == "test" for _, _, part in tally.questions):
            raise BadInput(
                f"no question in the test ({intake.left.told()})", file=data, fix="look at labels and vocabulary"
            )
        spec = make_spec(tally.questions, tally.options, tally.sources, chosen)
        write_bytes(folder.path / SPEC_FILE, dump_spec(spec).encode("utf-8"))
        return folder.finish(_manifest(spec, folders, intake, tally, chosen))


def _write_cases(writer: FolderWriter, folder: Folder, intake: Intake, parameters: Parameters, tally: _Tally) -> None:
    def work(batch: pa.RecordBatch) -> list[_Made]:
        return [_of_case(row, intake, parameters) for row in canonical_rows(batch, intake.vocabulary)]

    wanted = iter(folder.batches("cases", list(CASES.names), _BATCH))
    with ThreadPoolExecutor(_THREADS) as pool:
        # A few batches at a time: the images of the rest stay on the disk. The next is begun before one is written.
        window = deque(pool.submit(work, batch) for batch in islice(wanted, 2 * _THREADS))
        while window:
            done = window.popleft().result()
            window.extend(pool.submit(work, batch) for batch in islice(wanted, 1))
            for rows, items in done:
                writer.table("cases", _ROWS_PER_GROUP, _BYTES_PER_GROUP).write(rows)
                writer.table("items").write(item.to_row() for item in items)
                tally.pictures += len(rows)
                tally.licences.update(row["licence"] for row in rows if row["licence"])
                for item in items:
                    tally.take(item)


def _of_case(row: Mapping[str, Any], intake: Intake, parameters: Parameters) -> _Made:
    """Return the pictures and items of a case."""
    case_id = row["case_id"]
    if case_id not in intake.parts or case_id in intake.dropped:
        return [], []
    items: list[Item] = []
    own = {name: row[name] for name in CASES.names}
    boxed: dict[str, Draft] = {}
    plain = False
    for draft in drafts(row, parameters, Left()):
        found = list(items_of(row, draft, intake.parts[case_id], intake.pools, parameters))
        if not found:
            continue
        items += found
        if draft.task == "VG":
            boxed[picture_id(case_id, draft)] = draft
        else:
            plain = True
    return list(_pictures(own, plain, boxed, parameters)), items


def _pictures(
    row: Mapping[str, Any], plain: bool, boxed: Mapping[str, Draft], parameters: Parameters
) -> Iterator[dict[str, Any]]:
    if plain and parameters.image_size is None:
        # The original bytes, whatever their format.
        yield dict(row)
    if not boxed and (parameters.image_size is None or not plain):
        return
    pixels = read_pixels(row)
    if plain and parameters.image_size is not None:
        yield {**row, **_image_of(row["case_id"], encode(resize(pixels, parameters))), **_WITHOUT}
    for case_id, draft in boxed.items():
        (box,) = draft.boxes
        picture = encode(boxed_pixels(pixels, box, parameters))
        drawn = {**row, **_image_of(case_id, picture), **_WITHOUT, "case_id": case_id}
        drawn["meta"] = to_facts(
            {**from_facts(row["meta"]), "drawn_on": row["case_id"], "parent_sha256": row["sha256"]}
        )
        drawn["known_issues"] = sorted({*(row["known_issues"] or ()), BOXED})
        if parameters.image_size is None:
            drawn["boxes"] = [dict(box)]
        yield drawn


# Annotations belong to the native image, and what a box is about is the answer.
_WITHOUT: Final[dict[str, Any]] = {
    **{name: [] for name in ("labels", "masks", "boxes", "points", "measurements", "texts")},
    **dict.fromkeys(("fan_mask", "spacing", "view")),
}


def _image_of(case_id: str, picture: Any) -> dict[str, Any]:
    name = case_id.replace("/", "_").replace("\\", "_")
    return {
        "image": {"bytes": picture.data, "path": f"{name}.png"},
        "media_type": "image/png",
        "sha256": picture.sha256,
        "pixel_hash": picture.pixel_hash,
        "width": picture.width,
        "height": picture.height,
        "frames": 1,
    }


def make_spec(
    questions: Mapping[tuple[str, str, str], int],
    options: Mapping[tuple[str, str], set[str]],
    sources: Mapping[tuple[str, str], str],
    parameters: Parameters,
) -> BenchmarkSpec:
    """Return the specification of a build: its tasks, its scenarios, and totals over the tasks in its test.

    questions: number by (task, data set, part). A task without a question in the test is no task of the build.
    """
    base = load_spec(NAME)
    test = Counter[str]()
    for (task, _, part), number in questions.items():
        test[task] += number if part == "test" else 0
    tasks = [task for task in TASKS if test[task]]
    low, high = parameters.ms_range
    scenarios = []
    for task, dataset in sorted(sources, key=lambda key: (TASKS.index(key[0]), key[1])):
        if not questions.get((task, dataset, "test")):
            continue
        facts: dict[str, Any] = {"low": low, "high": high, "unit": "mm"} if task == "MS" else {}
        scenarios.append(
            Scenario(
                task=task,
                dataset=dataset,
                source=sources[task, dataset],
                rows=questions[task, dataset, "test"],
                options=tuple(sorted(options[task, dataset])),
                prompt=task.lower(),
                **facts,
            )
        )
    counted = [task for task in CHOICE_TASKS if test[task]]
    total = sum(test[task] for task in counted)
    shown = {task: base.tasks[task] for task in tasks}
    if "VL" in shown and parameters.vl_answer == "point":
        shown["VL"] = shown["VL"].model_copy(update={"form": "point", "metrics": ("pointing",)})
    return base.model_copy(
        update={
            "tasks": shown,
            "scenarios": tuple(scenarios),
            "weights": {
                "questions": {task: test[task] / total for task in counted},
                "tasks": {task: 1 / len(counted) for task in counted},
            }
            if counted
            else {},
            "composites": {
                "overall_micro": Composite(
                    title="Overall, micro (all questions alike)",
                    weights="questions",
                    level="cases",
                    formula="right answers / questions of " + ", ".join(counted),
                ),
                "overall_macro": Composite(
                    title="Overall, macro (all tasks alike)",
                    weights="tasks",
                    level="cases",
                    formula="mean of the accuracies of " + ", ".join(counted),
                ),
            }
            if counted
            else {},
        }
    )


def _manifest(
    spec: BenchmarkSpec, folders: Sequence[Folder], intake: Intake, tally: _Tally, parameters: Parameters
) -> Manifest:
    questions: dict[str, dict[str, int]] = {}
    for (task, dataset, part), number in sorted(tally.questions.items()):
        questions.setdefault(f"{task}/{dataset}", {})[part] = number
    absent = [task for task in parameters.tasks if task not in spec.tasks]
    notices = [*spec.notices, *intake.notices]
    notices += [f"{task}: no question in the test, so it is no task of this build" for task in absent]
    unknown = {source: number for source, number in sorted(intake.unknown_patients.items()) if number}
    if unknown:
        told = ", ".join(f"{source} {number} of {intake.cases[source]}" for source, number in unknown.items())
        notices.append(f"Patient overlap is not checkable for cases without a patient id ({told}); see the groups.")
    unmapped = intake.unmapped.most_common(_UNMAPPED_LISTED)
    return Manifest(
        kind="benchmark",
        maker=f"sonogauge {__version__}",
        name=spec.name,
        version=spec.version,
        inputs=[Input(role="cases", path=str(one.path), hash=one.manifest.hash) for one in folders],
        parameters={
            "prompt_version": spec.prompt_version,
            # Files by their content: the questions hold the text of the prompts.
            **parameters.model_dump(mode="json", exclude={"vocabulary", "prompts"}),
            "vocabulary": intake.vocabulary.hash,
            "prompts": "own" if parameters.prompts is not None else "shipped",
        },
        counts={
            "style": "Fetal-Gauge-style",
            "cases": dict(sorted(intake.cases.items())),
            "pictures": tally.pictures,
            "questions": questions,
            "options": {f"{task}, {k} shown": number for (task, k), number in sorted(tally.sizes.items())},
            "left out": intake.left.as_json(),
            "split": dict(sorted(intake.rules.items())),
            "overlap of train and test": {
                "patients or groups": 0,
                "images": 0,
                "resolved": dict(sorted(intake.overlaps.items())),
                "not checkable": unknown,
            },
            "words not in the vocabulary": {
                f"{source}, {name}: {raw}": number for (name, source, raw), number in sorted(unmapped)
            },
        },
        licences=sorted(tally.licences),
        notices=notices,
    )
