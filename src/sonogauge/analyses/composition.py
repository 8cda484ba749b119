"""Analyses 15 and 17: fused differentials with their ties, and what a benchmark is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.compare.ablations.base import column, table
from sonogauge.folders import Folder
from sonogauge.items import Item

_COLUMNS: Final = (
    *("item_id", "task", "dataset", "source", "group", "split", "images", "answer", "reference", "reference_state"),
    *("anatomy", "meta"),
)
_PARTS: Final[tuple[tuple[str, Callable[[Item], Iterable[str]]], ...]] = (
    ("ability", lambda item: [item.meta.get("ability") or item.dataset]),
    ("type", lambda item: [item.task]),
    ("attribute", lambda item: _named(item, "attribute_asked")),
    ("lesion", lambda item: _named(item, "lesion", ", ")),
    ("region", lambda item: _named(item, "body_part")),
    ("disease", lambda item: _named(item, "disease", ", ")),
    ("source", lambda item: [item.source]),
)


def _named(item: Item, key: str, separator: str = "") -> Sequence[str]:
    text = item.meta.get(key, "")
    return [] if not text else text.split(separator) if separator else [text]


def _items(folder: Folder) -> list[Item]:
    return [item for item in map(Item.from_row, folder.rows("items", list(_COLUMNS))) if item.split != "train"]


def composition(folder: Folder) -> list[dict[str, Any]]:
    """Return shares by ability, type, attribute, lesion, region, disease and source; the val share.

    Raises:
        BadInput: a benchmark without a question.
    """
    items = _items(folder)
    if not items:
        raise BadInput("no question", file=folder.path)
    targets = folder.manifest.parameters.get("shares") or {}
    rows: list[dict[str, Any]] = []
    for kind, names_of in _PARTS:
        counts = Counter(name for item in items for name in names_of(item))
        asked = sum(bool(list(names_of(item))) for item in items)
        for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            target = targets.get(name) if kind == "ability" else None
            rows.append({"by": kind, "part": name, "n": count, "share": count / len(items), "target": target})
        if asked < len(items):
            rest = len(items) - asked
            rows.append({"by": kind, "part": "(none)", "n": rest, "share": rest / len(items), "target": None})
    columns = [
        column("by", "by"),
        column("part", "part"),
        column("n", "questions", "count"),
        column("share", "share", "percent"),
        column("target", "target share", "percent"),
    ]
    note = "A question with several lesions or diseases counts for each of them."
    splits = Counter(item.split for item in items)
    split_rows = [
        {
            "split": name,
            "n": splits[name],
            "share": splits[name] / len(items),
            "groups": len({item.group for item in items if item.split == name}),
            "images": len({image.case_id for item in items if item.split == name for image in item.images}),
        }
        for name in sorted(splits, key=lambda name: (name != "val", name))
    ]
    split_columns = [
        column("split", "split"),
        column("n", "questions", "count"),
        column("share", "share", "percent"),
        column("groups", "patients or groups", "count"),
        column("images", "images", "count"),
    ]
    return [
        table(
            "splits", "Splits", split_columns, split_rows, "Published: 1,499 val and 18,344 test questions, 7.55 % val."
        ),
        table("composition", "What the benchmark is made of", columns, rows, note),
    ]


def differentials(folder: Folder) -> list[dict[str, Any]]:
    """Return each fused differential with scores and ranks, and the counts of ties under the rule used.

    Raises:
        BadInput: the benchmark has no ranked differential.
    """
    ranked = [item for item in _items(folder) if item.answer.form == "ranking"]
    if not ranked:
        raise BadInput("no ranked differential", file=folder.path, fix="build with annotations that have differentials")
    rule = str(folder.manifest.parameters.get("tie_rule", "unstated"))
    rows, ties, several, waiting = [], 0, 0, 0
    for item in sorted(ranked, key=lambda one: one.item_id):
        names = item.reference.get("ranking") or ()
        ranks, weights = item.meta.get("ranks", "").split(), item.meta.get("weights", "").split()
        if item.reference_state != "ok":
            waiting += 1
        tied = len(weights) - len(set(weights))
        ties += tied > 0
        several += ranks.count("1") > 1
        listed = "; ".join(
            f"{rank}. {name} {float(weight):.3g}" for name, rank, weight in zip(names, ranks, weights, strict=False)
        )
        rows.append(
            {
                "item": item.item_id,
                "fused": listed or "waits for a third physician",
                "first": ranks.count("1"),
                "tied": tied,
            }
        )
    columns = [
        column("item", "question"),
        column("fused", "rank, disease, score"),
        column("first", "at rank 1", "count"),
        column("tied", "tied", "count"),
    ]
    note = (
        f"score(d) = sum over physicians of 1/rank(d); tie rule {rule}. {ties} of {len(rows)} lists have ties, "
        f"{several} have several diseases at rank 1, {waiting} wait for a third physician."
    )
    return [table("differentials", "Fused differentials", columns, rows, note)]
