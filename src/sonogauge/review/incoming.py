"""From an annotation tool's file back to votes, or to the replies of physicians."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.folders import Folder, Input, Manifest, new_folder, sort_rows, write_bytes
from sonogauge.hashes import canonical_hash
from sonogauge.review.forms import CAUSE, COMMENT, FAULT, JOINED, SIGN_OFF, SIGNED, ReviewForm, load_form
from sonogauge.review.labelstudio import Annotation, Skipped, read_annotations
from sonogauge.review.outgoing import KIND, clickable

VOTES: Final = "votes"


@dataclass(frozen=True)
class Imported:
    """What an import holds.

    rows: votes or replies. views: reviewers by item. short: items with fewer reviewers than asked.
    """

    path: Path
    rows: int
    reviewers: int
    short: int
    skipped: Skipped
    views: Mapping[str, int] = field(default_factory=dict)


def import_review(
    file: Path | str,
    export: Path | str,
    out: Path | str,
    *,
    reviewers: Mapping[str, Mapping[str, str]] | None = None,
    overwrite: bool = False,
) -> Imported:
    """Read the annotations of an exported form.

    Args:
        file: the tool's file, for Label Studio its JSON export.
        export: the folder that `export_review` wrote, which says what was asked.
        out: folder for the votes; of the form "answer" a `.jsonl` file of replies with `rater_id` and `level`.
        reviewers: name and level of a reviewer by the tool's number or address; by default "reviewer-NUMBER".
        overwrite: replace what lies at `out`.

    Raises:
        BadInput: not the tool's file, items or words that were not exported, a reviewer with two forms on one item.
    """
    file, folder = Path(file), Folder(export, KIND)
    parameters = folder.manifest.parameters
    form = load_form(str(parameters["form"]))
    skipped = Skipped()
    known = frozenset(parameters["items"])
    people = _People(reviewers or {}, str(parameters["level"]))
    seen: dict[str, set[str]] = {}
    rows: list[dict[str, Any]] = []
    specs = _specs(folder, known)
    for one in read_annotations(file, form.fields, skipped):
        item_id = one.data.get("item_id")
        if not isinstance(item_id, str) or item_id not in known:
            raise BadInput(f"no item '{item_id}' in this export", file=file, row=one.row, fix="name the right export")
        if one.data.get("form") != form.name:
            raise BadInput(f"a task of the form '{one.data.get('form')}', not '{form.name}'", file=file, row=one.row)
        name = people.name(one.reviewer)
        if name in seen.setdefault(item_id, set()):
            raise BadInput(
                f"two forms of {name} on {item_id}", file=file, row=one.row, fix="keep one annotation of each reviewer"
            )
        seen[item_id].add(name)
        _check_words(one, form, specs[item_id], file)
        if form.name == "answer":
            rows += _reply(one, item_id, specs[item_id], people, file)
        else:
            rows += _votes(one, item_id, form, str(parameters["role"]), name)
    views = {item_id: len(names) for item_id, names in sorted(seen.items())}
    short = sum(views.get(item_id, 0) < int(parameters["views"]) for item_id in known)
    names = {name for own in seen.values() for name in own}
    if not rows:
        raise BadInput("no answer in it", file=file, fix="export after somebody has annotated")
    if form.name == "answer":
        _write_replies(Path(out), rows, overwrite)
    else:
        _write_votes(Path(out), rows, folder, file, views, short, names, skipped, overwrite)
    return Imported(Path(out), len(rows), len(names), short, skipped, views)


class _People:
    """Names and levels of reviewers; a number of the tool says nothing of the person."""

    def __init__(self, given: Mapping[str, Mapping[str, str]], level: str) -> None:
        self._given, self._level = given, level

    def name(self, who: str) -> str:
        """Return the name of a reviewer."""
        return str(self._given.get(who, {}).get("name") or f"reviewer-{who}")

    def level(self, who: str) -> str:
        """Return the level of a reviewer."""
        return str(self._given.get(who, {}).get("level") or self._level)


def read_reviewers(file: Path | str) -> dict[str, dict[str, str]]:
    """Read a file of reviewers: `{"7": {"name": "A", "level": "senior"}}`, JSON or YAML.

    Raises:
        BadInput: no such file, not of this form, or one name for two reviewers.
    """
    import yaml

    path = Path(file)
    try:
        table = yaml.safe_load(path.read_text("utf-8"))
        found = {str(key): {str(name): str(word) for name, word in value.items()} for key, value in table.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError) as error:
        fix = 'write {"7": {"name": "A", "level": "senior"}}'
        raise BadInput("not a file of reviewers", file=path, fix=fix) from error
    names = Counter(one["name"] for one in found.values() if one.get("name"))
    for name, count in names.items():
        if count > 1:
            raise BadInput(f"{count} reviewers are called '{name}'", file=path, fix="give each a name of its own")
    return found


def _specs(folder: Folder, known: frozenset[str]) -> dict[str, AnswerSpec]:
    given = folder.manifest.input("benchmark")
    bench = Folder(given.path if given else "", "benchmark")
    if given is None or bench.manifest.hash != given.hash:
        raise BadInput(f"an export of another benchmark than {bench.path}", file=folder.path, fix="export again")
    rows = bench.rows("items", ["item_id", "answer"])
    return {row["item_id"]: AnswerSpec.from_row(row["answer"]) for row in rows if row["item_id"] in known}


def _check_words(one: Annotation, form: ReviewForm, spec: AnswerSpec, file: Path) -> None:
    for each in form.fields:
        words = one.values.get(each.name, ())
        offered = each.choices if each.kind == "choice" else clickable(spec) if each.kind == "options" else None
        if offered is not None and (wrong := [word for word in words if word not in offered]):
            raise BadInput(f"'{wrong[0]}' was not offered", file=file, row=one.row, field=each.name)
        single = each.kind == "choice" or (each.kind == "options" and spec.form != "multi_choice")
        if single and len(set(words)) > 1:
            raise BadInput(f"{len(set(words))} answers to one question", file=file, row=one.row, field=each.name)


def _votes(one: Annotation, item_id: str, form: ReviewForm, role: str, name: str) -> Iterable[dict[str, Any]]:
    cause = next(iter(one.values.get(CAUSE, ())), None)
    for each in form.questions:
        vote = JOINED.join(sorted(set(one.values.get(each.name, ()))))
        if vote:
            yield {
                "item_id": item_id,
                "reviewer": name,
                "role": role,
                "question": each.name,
                "vote": vote,
                # A cause belongs to what is at fault, not to what is in order.
                "cause": cause if vote == FAULT else None,
                "comment": "\n".join(one.values.get(COMMENT, ())) or None,
                "signed_off": SIGNED in one.values.get(SIGN_OFF, ()) if _has(form, SIGN_OFF) else None,
            }


def _has(form: ReviewForm, name: str) -> bool:
    return any(each.name == name for each in form.about)


def _reply(one: Annotation, item_id: str, spec: AnswerSpec, people: _People, file: Path) -> Iterable[dict[str, Any]]:
    chosen, words = one.values.get("answer", ()), one.values.get("answer_text", ())
    if chosen and words:
        raise BadInput("an option and a text", file=file, row=one.row, field="answer", fix="keep one of the two")
    if not chosen and not words:
        return
    if spec.letters and chosen:
        chosen = tuple(letter for letter, option in zip(spec.letters, spec.options, strict=True) if option in chosen)
    yield {
        "item_id": item_id,
        "text": ", ".join(chosen) if chosen else "\n".join(words),
        "rater_id": people.name(one.reviewer),
        "level": people.level(one.reviewer),
        "model": "physicians",
    }


def _write_replies(out: Path, rows: list[dict[str, Any]], overwrite: bool) -> None:
    if out.suffix != ".jsonl":
        raise BadInput("answers become replies", file=out, fix="name a file that ends in .jsonl")
    if out.exists() and not overwrite:
        raise BadInput("exists already", file=out, fix="pass --overwrite to replace it")
    rows.sort(key=lambda row: (row["item_id"], row["rater_id"]))
    write_bytes(out, "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows).encode())


def _write_votes(
    out: Path,
    rows: list[dict[str, Any]],
    export: Folder,
    file: Path,
    views: Mapping[str, int],
    short: int,
    names: set[str],
    skipped: Skipped,
    overwrite: bool,
) -> None:
    asked = export.manifest.parameters
    with new_folder(out, overwrite=overwrite) as writer:
        writer.table(VOTES).write(sort_rows(rows, VOTES))
        writer.finish(
            Manifest(
                kind=VOTES,
                maker=f"sonogauge {__version__}",
                name=export.manifest.name,
                version=export.manifest.version,
                inputs=[
                    *(one for one in export.manifest.inputs if one.role in ("benchmark", "replies")),
                    Input(role="review", path=str(export.path.resolve()), hash=export.manifest.hash),
                    Input(role="annotations", path=str(file), hash=canonical_hash(file.read_bytes())),
                ],
                parameters={name: asked[name] for name in ("format", "form", "role", "views")},
                counts={
                    "items": len(views),
                    "votes": len(rows),
                    "reviewers": len(names),
                    "short": short,
                    "cancelled": skipped.cancelled,
                    "unanswered": skipped.unanswered,
                },
                licences=list(export.manifest.licences),
                notices=list(export.manifest.notices),
            )
        )
