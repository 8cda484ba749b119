"""From a benchmark, and for some forms a model's replies, to a folder that an annotation tool imports."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.folders import Folder, FolderWriter, Input, Manifest, new_folder, write_bytes
from sonogauge.items import Item
from sonogauge.review import labelstudio
from sonogauge.review.decide import Rule, decide, is_open
from sonogauge.review.forms import ADJUDICATOR, CLICKED, ReviewForm, load_form
from sonogauge.score.inputs import open_replies
from sonogauge.tables import from_facts

KIND: Final = "review"
FORMATS: Final = ("labelstudio",)
IMAGES: Final = "images"
_ENDINGS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/bmp": "bmp",
}
_FACTS: Final = (
    *("case_id", "width", "height", "frames", "spacing", "source", "licence", "provenance", "reference_standard"),
    *("device", "view", "anatomy", "demographics", "labels", "known_issues", "split"),
)


@dataclass(frozen=True)
class Exported:
    """What was written: tasks, and the folder with config, tasks and images."""

    path: Path
    tasks: int
    manifest: Manifest


def export_review(
    bench: Path | str,
    out: Path | str,
    form: str,
    *,
    format: str = "labelstudio",
    run: Path | str | None = None,
    verdicts: Path | str | None = None,
    adjudicate: Sequence[Path | str] = (),
    rule: Rule = "majority",
    scores: Path | str | None = None,
    sampling: str = "random",
    tasks: Sequence[str] | None = None,
    split: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    views: int = 1,
    level: str = "",
    image_prefix: str = labelstudio.LOCAL_FILES,
    overwrite: bool = False,
) -> Exported:
    """Write the tasks of one form.

    Args:
        bench: benchmark folder.
        out: folder for config.xml, tasks.json and images/.
        form: engineer, expert, clinician, cause, verdict or answer.
        format: "labelstudio".
        run: run folder or `.jsonl` file whose plain replies are shown; "cause" and "verdict" need it.
        verdicts: folder of verdicts; keeps the replies that a judge was asked about, which is what a check of judges
            needs, and for "cause" those that are not fully right.
        adjudicate: folders of votes; keeps the items on which this form's role disagrees, and shows its votes.
        rule: what counts as disagreement for `adjudicate`: no "majority", or votes that are not "unanimous".
        scores: for "cause", scores of the same run: keeps the wrong answers whose cause does not follow from the reply
            alone. `sample` then draws from all wrong ones, as the analysis of causes does.
        sampling: rule of that draw, "random" or "per_ability".
        tasks: codes of the tasks whose items are shown.
        split: split of the items shown; by default all but train.
        sample: so many items, drawn at random.
        seed: of the draw.
        views: how many reviewers shall see each item, independently.
        level: of the physicians ("primary", "senior"), stored with their answers.
        image_prefix: what stands before the path of an image in a task.
        overwrite: replace an earlier export.

    Raises:
        BadInput: an unknown format, form or task, no replies where the form shows them, nothing to show.
    """
    if format not in FORMATS:
        raise BadInput(f"no format '{format}'", field="format", fix="known: " + ", ".join(FORMATS))
    if views < 1:
        raise BadInput(f"{views} views", field="views", fix="use at least 1")
    asked = load_form(form)
    folder = Folder(bench, "benchmark")
    replies, inputs = _replies(asked, run, folder)
    items = [
        item
        for item in map(Item.from_row, folder.rows("items"))
        if item.reference_state in ("ok", "null")
        and (item.split != "train" if split is None else item.split == split)
        and (tasks is None or item.task in tasks)
        and (replies is None or item.item_id in replies)
    ]
    drawn = _wrong(scores, form, folder, sample, sampling, seed) if scores is not None else None
    if drawn is not None:
        items = [item for item in items if item.item_id in drawn]
        inputs.append(Input(role="scores", path=str(scores), hash=Folder(scores or "", "scores").manifest.hash))
    if verdicts is not None:
        chosen = _judged(verdicts, wrong_only=form == "cause")
        items = [item for item in items if item.item_id in chosen]
        inputs.append(Input(role="verdicts", path=str(verdicts), hash=Folder(verdicts).manifest.hash))
    earlier = _earlier(adjudicate, asked, rule) if adjudicate else None
    if earlier is not None:
        items = [item for item in items if item.item_id in earlier]
    whole = len(items)
    if sample is not None and drawn is None:
        items = random.Random(seed).sample(items, min(sample, whole))
    if not items:
        raise BadInput("no item to show", file=folder.path, fix="choose other tasks or another split")
    items.sort(key=lambda item: item.item_id)
    shown = [*(("options",) if any(item.answer.options for item in items) else ())]
    shown += [
        *(("reply",) if replies is not None else ()),
        *asked.shows,
        *(("earlier",) if earlier is not None else ()),
    ]
    with new_folder(out, overwrite=overwrite) as writer:
        cases = _write_images(writer, folder, items)
        most = max(len(item.images) for item in items)
        write_bytes(writer.path / labelstudio.CONFIG, labelstudio.make_config(asked.fields, shown, most))
        made = []
        for item in items:
            data = _data(item, asked, cases, image_prefix, most)
            if replies is not None:
                data["reply"] = replies[item.item_id]
            if earlier is not None:
                data["earlier"] = earlier[item.item_id]
            made.append(labelstudio.task({**data, "form": form}, clickable(item.answer)))
        text = json.dumps(made, ensure_ascii=False, indent=1)
        write_bytes(writer.path / labelstudio.TASKS, text.encode("utf-8", "replace") + b"\n")
        manifest = writer.finish(
            Manifest(
                kind=KIND,
                maker=f"sonogauge {__version__}",
                name=folder.manifest.name,
                version=folder.manifest.version,
                inputs=[Input(role="benchmark", path=str(folder.path.resolve()), hash=folder.manifest.hash), *inputs],
                parameters={
                    "format": format,
                    "form": form,
                    "role": ADJUDICATOR + asked.role if adjudicate else asked.role,
                    "views": views,
                    "level": level,
                    "sample": sample,
                    "sampling": sampling if scores is not None else None,
                    "seed": seed,
                    "tasks": sorted(tasks) if tasks is not None else None,
                    "split": split,
                    "items": [item.item_id for item in items],
                },
                counts={"tasks": len(items), "of": whole, "images": len(cases)},
                licences=list(folder.manifest.licences),
                notices=list(folder.manifest.notices),
            )
        )
    return Exported(Path(out), len(items), manifest)


def _replies(form: ReviewForm, run: Path | str | None, bench: Folder) -> tuple[dict[str, str] | None, list[Input]]:
    if not form.needs_replies:
        return None, []
    if run is None:
        raise BadInput(f"the form '{form.name}' shows replies", field="run", fix="pass --run RUN")
    source, _ = open_replies(run, bench.path, None)
    plain = {
        reply.item_id: reply.text
        for reply in source.replies
        if not reply.variant and not reply.rater_id and reply.epoch == 0 and reply.text and reply.status == "ok"
    }
    return plain, [Input(role="replies", path=str(source.path), hash=source.content_hash)]


def _judged(verdicts: Path | str, *, wrong_only: bool) -> set[str]:
    chosen = set()
    for row in Folder(verdicts, "verdicts").rows("verdicts"):
        plain = not row["variant"] and not row["rater_id"] and row["epoch"] == 0 and row["leniency"] == "none"
        if plain and (row["verdict"] < 1.0 if wrong_only else row["status"] in ("ok", "judge_failed")):
            chosen.add(row["item_id"])
    return chosen


def _wrong(
    scores: Path | str, form: str, bench: Folder, sample: int | None, sampling: str, seed: int
) -> frozenset[str]:
    """Return the items whose wrong answers need a reader, of the sample that the analysis of causes draws."""
    from sonogauge.analyses.errors import cause_of, sample_wrong
    from sonogauge.analyses.panel import read_panel

    if form != "cause":
        raise BadInput("scores are for the form 'cause'", field="scores", fix="leave them out")
    panel = read_panel([scores], bench=bench.path)
    drawn = sample_wrong(panel.plain(panel.labels[0]), sample, sampling, seed)
    return frozenset(one.item.item_id for one in drawn if cause_of(one) is None)


def _earlier(folders: Sequence[Path | str], form: ReviewForm, rule: Rule) -> dict[str, str]:
    rows = [row for one in folders for row in Folder(one, "votes").rows("votes")]
    lines: dict[str, list[str]] = {}
    for one in decide(rows, rule=rule):
        if one.role == form.role and is_open(one):
            # Without names: an adjudicator weighs reasons, not colleagues.
            votes = ", ".join(f"{count} x {vote}" for vote, count in sorted(Counter(one.votes.values()).items()))
            reasons = "; ".join((*one.causes, *one.comments))
            lines.setdefault(one.item_id, []).append(f"{one.question}: {votes}" + (f" ({reasons})" if reasons else ""))
    if not lines:
        raise BadInput(
            f"nothing of the role '{form.role}' is open in these votes under the rule '{rule}'",
            field="adjudicate",
            fix="with --rule unanimous every vote that is not unanimous is open" if rule == "majority" else None,
        )
    return {item_id: "\n".join(own) for item_id, own in lines.items()}


def _write_images(writer: FolderWriter, folder: Folder, items: Iterable[Item]) -> dict[str, dict[str, Any]]:
    wanted = {image.case_id for item in items for image in item.images}
    cases: dict[str, dict[str, Any]] = {}
    (writer.path / IMAGES).mkdir()
    for row in folder.rows("cases"):
        if row["case_id"] in wanted:
            media = (row.pop("image") or {}).get("bytes") or b""
            # Named by content: a case id may say what the image shows.
            row["file"] = f"{IMAGES}/{row['sha256'][:24]}.{_ENDINGS.get(row['media_type'] or '', 'bin')}"
            write_bytes(writer.path / row["file"], media)
            cases[row["case_id"]] = row
    if missing := sorted(wanted - cases.keys()):
        raise BadInput(f"no case '{missing[0]}'", file=folder.path, fix="build the benchmark again")
    return cases


def _data(
    item: Item, form: ReviewForm, cases: Mapping[str, Mapping[str, Any]], prefix: str, most: int
) -> dict[str, Any]:
    files = [prefix + cases[image.case_id]["file"] for image in item.images]
    data: dict[str, Any] = {"item_id": item.item_id, "question": item.question or "(no question)"}
    if most == 1:
        data["image"] = files[0] if files else ""
    elif most > 1:
        data["images"] = files
    options = item.answer.options
    letters = item.answer.letters or ("",) * len(options)
    data["options"] = "\n".join(
        f"{letter}. {one}" if letter else one for letter, one in zip(letters, options, strict=True)
    )
    if "reference" in form.shows:
        data["reference"] = reference_text(item)
    if "facts" in form.shows:
        data["facts"] = "\n".join(line for image in item.images for line in _case_lines(cases[image.case_id]))
        data["facts"] += f"\ntask: {item.task}, data set: {item.dataset}, unit: {item.answer.unit or 'none'}"
    return data


def clickable(spec: AnswerSpec) -> tuple[str, ...]:
    """Return the options that a reviewer can click."""
    return spec.options if spec.form in CLICKED else ()


def reference_text(item: Item) -> str:
    """Return the reference of an item in words."""
    parts = []
    for name, value in item.reference.items():
        if name in ("masks", "boxes", "points", "sentences"):
            parts.append(f"{len(value)} {name}")
        else:
            parts.append("; ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return " | ".join(parts) or item.reference_state


def _case_lines(case: Mapping[str, Any]) -> Iterable[str]:
    for name in _FACTS:
        value = case.get(name)
        if name in ("demographics", "labels"):
            value = ", ".join(f"{key} {word}" for key, word in from_facts(value).items())
        elif isinstance(value, dict):
            value = ", ".join(f"{key} {number:g}" for key, number in value.items() if number is not None)
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        if value not in (None, ""):
            yield f"{name}: {value}"
