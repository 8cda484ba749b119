"""The cleaned benchmark: decisions applied to a new folder, with every change in its manifest."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from sonogauge import __version__
from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import SPEC_FILE, dump_spec, read_spec
from sonogauge.folders import MANIFEST, Folder, Input, Manifest, new_folder
from sonogauge.items import Item
from sonogauge.metrics.multi_choice import expected_random_subset
from sonogauge.review.decide import Decision, Rule, decide, is_open
from sonogauge.review.forms import CORRECTION, FAULT, JOINED, QUALITY

Unresolved = Literal["refuse", "keep", "remove"]
UNRESOLVED: Final = ("refuse", "keep", "remove")
_CORRECTABLE: Final = ("choice", "multi_choice")
_ABOUT_ANSWER: Final = ("label", "diagnosis")
_SUFFIX: Final = re.compile(r"\+reviewed\.(\d+)$")


@dataclass(frozen=True)
class Cleaned:
    """What became of the items: counts by action, and the changelog as it stands in the manifest."""

    path: Path
    version: str
    counts: Mapping[str, int]
    changelog: list[dict[str, Any]]


def clean(
    bench: Path | str,
    votes: Sequence[Path | str],
    out: Path | str,
    *,
    rule: Rule = "majority",
    views: int = 1,
    require_sign_off: bool = False,
    unresolved: Unresolved = "refuse",
) -> Cleaned:
    """Write a new benchmark folder without the items that reviewers found at fault.

    A fault of label or diagnosis with a decided correction that the item offers changes the reference; any other fault
    removes the item. The version gains "+reviewed.N"; the manifest's `changelog` says for each change what was before
    and after, and who voted how. Nothing is overwritten.

    Args:
        bench: the benchmark that was reviewed.
        votes: folders of votes of the forms engineer, expert and clinician, adjudications among them.
        out: the new folder.
        rule: of decisions, see `decide`.
        views: fewest votes that can decide.
        require_sign_off: also remove items that no clinician has signed off.
        unresolved: what to do with disagreements that nobody settled.

    Raises:
        BadInput: votes on another benchmark, no votes on quality, disagreements left open, or `out` exists.
    """
    if unresolved not in UNRESOLVED:
        raise BadInput(f"unknown: '{unresolved}'", field="unresolved", fix="known: " + ", ".join(UNRESOLVED))
    folder = Folder(bench, "benchmark")
    sources = [Folder(one, "votes") for one in votes]
    for one in sources:
        about = one.manifest.input("benchmark")
        if about is None or about.hash != folder.manifest.hash:
            raise BadInput(f"votes on another benchmark than {folder.path}", file=one.path)
    rows = [row for one in sources for row in one.rows("votes")]
    decisions = [one for one in decide(rows, rule=rule, views=views) if one.role in QUALITY]
    if not decisions:
        raise BadInput("no votes on quality", field="votes", fix="review with the forms " + ", ".join(QUALITY))
    pending = [one for one in decisions if is_open(one)]
    if pending and unresolved == "refuse":
        first = pending[0]
        raise BadInput(
            f"{len(pending)} questions are not decided, the first {first.role}/{first.question} on {first.item_id}",
            fix="export them with --adjudicate, or choose --unresolved keep or remove",
        )
    by_item: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_item.setdefault(decision.item_id, []).append(decision)
    version = _next_version(folder.manifest.version)
    changelog: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    kept = []
    for row in folder.rows("items"):
        item = Item.from_row(row)
        after, action, behind = _apply(item, by_item.get(item.item_id, []), require_sign_off, unresolved)
        counts[action] += 1
        counts["reviewed"] += item.item_id in by_item
        if action in ("changed", "removed"):
            changelog.append(_entry(item, after, action, behind))
        if after is item:
            kept.append(row)
        elif after is not None:
            choices = list(after.reference["choices"])
            kept.append(
                {**row, "reference": {**_nulls(row["reference"]), "choices": choices}, "chance": _chance(after)}
            )
    if not kept:
        raise BadInput("no item would be left", file=folder.path)
    with new_folder(out) as writer:
        for batch in folder.batches("cases", size=256):
            writer.table("cases").write(batch.to_pylist())
        writer.table("items").write(kept)
        for file in sorted(folder.path.iterdir()):
            if file.is_file() and file.suffix != ".parquet" and file.name not in (MANIFEST, SPEC_FILE):
                shutil.copyfile(file, writer.path / file.name)
        spec = read_spec(folder.path).model_copy(update={"version": version})
        (writer.path / SPEC_FILE).write_text(dump_spec(spec), "utf-8")
        writer.finish(_manifest(folder, sources, version, changelog, counts, rule, views, require_sign_off, unresolved))
    return Cleaned(Path(out), version, dict(sorted(counts.items())), changelog)


def _next_version(version: str) -> str:
    found = _SUFFIX.search(version)
    return f"{version[: found.start()]}+reviewed.{int(found[1]) + 1}" if found else f"{version}+reviewed.1"


def _chance(item: Item) -> float | None:
    """Return what guessing expects; of a set it depends on how many options are right."""
    if item.answer.form != "multi_choice":
        return item.chance
    return expected_random_subset(len(item.answer.options), len(item.reference["choices"]))


def _nulls(reference: Mapping[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(reference)


def _apply(
    item: Item, decisions: Sequence[Decision], require_sign_off: bool, unresolved: Unresolved
) -> tuple[Item | None, str, list[Decision]]:
    """Return the item after its decisions (None = removed), the action, and the decisions behind it."""
    faults = [one for one in decisions if one.vote == FAULT]
    if unresolved == "remove":
        faults += [one for one in decisions if is_open(one)]
    if not faults:
        clinical = [one for one in decisions if one.role == "clinician"]
        if require_sign_off and not any(one.signed_off for one in clinical):
            return None, "removed", clinical
        return item, "kept", []
    right = [one for one in decisions if one.question == CORRECTION and _corrected(item, one.vote)]
    right = [one for one in right if _is_agreed(one, faults)]
    found = {_corrected(item, one.vote) for one in right}
    answerable = all(one.question in _ABOUT_ANSWER and one.vote == FAULT for one in faults)
    if answerable and len(found) == 1:
        (choices,) = found
        if set(item.reference.get("choices") or ()) != set(choices):
            return replace(item, reference={"choices": choices}), "changed", [*faults, *right]
    return None, "removed", faults


def _corrected(item: Item, vote: str | None) -> tuple[str, ...]:
    """Return the options that a correction names, in the order offered; empty if it is none to this item."""
    named = set((vote or "").split(JOINED)) if item.answer.form == "multi_choice" else {vote}
    chosen = tuple(one for one in item.answer.options if one in named)
    return chosen if item.answer.form in _CORRECTABLE and len(chosen) == len(named) else ()


def _is_agreed(correction: Decision, faults: Sequence[Decision]) -> bool:
    """Whether a correction is an adjudicator's, or that of more than half of its role's reviewers who saw the fault."""
    saw = {name for one in faults if one.role == correction.role for name, vote in one.votes.items() if vote == FAULT}
    given = {name for name, vote in correction.votes.items() if vote == correction.vote}
    return correction.how == "adjudicated" or 2 * len(given & saw) > len(saw)


def _entry(item: Item, after: Item | None, action: str, behind: Sequence[Decision]) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "action": action,
        "field": "reference" if action == "changed" else "item",
        "before": list(item.reference.get("choices") or ()) if action == "changed" else None,
        "after": list(after.reference["choices"]) if after is not None else None,
        "decisions": [
            {
                "role": one.role,
                "question": one.question,
                "vote": one.vote,
                "how": one.how,
                "votes": dict(one.votes),
                "causes": list(one.causes),
                "comments": list(one.comments),
            }
            for one in behind
        ],
        "why": "no sign-off" if not any(one.vote == FAULT or is_open(one) for one in behind) else "fault",
    }


def _manifest(
    folder: Folder,
    sources: Sequence[Folder],
    version: str,
    changelog: list[dict[str, Any]],
    counts: Mapping[str, int],
    rule: str,
    views: int,
    require_sign_off: bool,
    unresolved: str,
) -> Manifest:
    old = folder.manifest.model_dump()
    review = {"rule": rule, "views": views, "require_sign_off": require_sign_off, "unresolved": unresolved}
    return Manifest.model_validate(
        {
            **old,
            "maker": f"sonogauge {__version__}",
            "version": version,
            "inputs": [
                *old["inputs"],
                Input(role="reviewed benchmark", path=str(folder.path.resolve()), hash=folder.manifest.hash),
                *(Input(role="votes", path=str(one.path.resolve()), hash=one.manifest.hash) for one in sources),
            ],
            "parameters": {**old["parameters"], "review": review},
            "counts": {**old["counts"], "review": dict(sorted(counts.items()))},
            "changelog": [*old.get("changelog", []), *({**one, "version": version} for one in changelog)],
        }
    )
