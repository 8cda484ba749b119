"""What the planner may know of the categories: nothing, the train part, the declared tables, or the published leak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sonogauge._errors import BadInput
from sonogauge.benchmarks.ultrag.vocabulary import Category, Target, all_categories, normalise
from sonogauge.folders import Folder
from sonogauge.items import Item

_ITEM_COLUMNS = ["item_id", "task", "dataset", "source", "group", "split", "images", "answer", "reference", "meta"]


@dataclass(frozen=True)
class Vocabulary:
    """Categories that the planner sees, by organ; the empty organ holds all of them.

    source: one of the values of `Switches.vocab_source`. names: organ to names. aliases: name to other words.
    """

    source: str
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def told(self) -> dict[str, list[str]]:
        """Return the categories by organ, for manifests."""
        return {organ: list(names) for organ, names in sorted(self.names.items())}

    def category(self, organ: str) -> Category:
        """Return the categories of an organ, all where the organ is not known, as a table that reads and names them."""
        known = _by_organ(organ)
        chosen = self.names.get(normalise(organ)) or self.names.get("", ())
        targets: dict[str, Target] = {}
        for name in chosen:
            target = known.targets.get(name) if known else None
            declared = target or _declared(name)
            extra = tuple(self.aliases.get(name, ()))
            targets[name] = declared.model_copy(update={"aliases": (*declared.aliases, *extra)})
        return Category(
            name=known.name if known else organ,
            organ=organ or (known.organ if known else ""),
            anatomy=known.anatomy if known else "",
            style=known.style if known else "lesions",
            sources={},
            targets=targets,
        )

    def listed(self, organ: str) -> list[dict[str, object]]:
        """Return the list that a planner or a plain model gets: option id, category and its meaning."""
        found = self.category(organ)
        return [
            {"option_id": number, "category": name, "meaning": target.type}
            for number, (name, target) in enumerate(found.targets.items(), start=1)
        ]


def make_vocabulary(
    source: str, bench: Path | str | None, trained: Mapping[str, Sequence[str]] | None = None
) -> Vocabulary:
    """Return the vocabulary of a source.

    Args:
        source: "none", "train", "dataset_card" (the tables this package declares) or "test_annotations".
        bench: the benchmark whose train or test part is meant.
        trained: names and aliases a trained segmenter brings; they are the train part where no benchmark is named.

    Raises:
        BadInput: the part is meant, but neither benchmark nor trained segmenter is named, or it has no masks.
    """
    if source == "none":
        return Vocabulary(source)
    if source == "dataset_card":
        names = {normalise(one.organ): list(one.targets) for one in all_categories().values()}
        return Vocabulary(source, {**names, "": sorted({name for one in names.values() for name in one})})
    if bench is None:
        if source == "train" and trained:
            return Vocabulary(source, {"": list(trained)}, dict(trained))
        fix = "add bench=FOLDER to the agent's name, or vocab_source=dataset_card or none"
        raise BadInput(f"the vocabulary '{source}' needs the benchmark", field="model", fix=fix)
    split = "train" if source == "train" else "test"
    found = _named_in(Folder(bench), split)
    if not found[""]:
        raise BadInput(f"no mask in the {split} part of the benchmark", file=bench, fix="use another vocab_source")
    return Vocabulary(source, found, dict(trained or {}))


def _named_in(bench: Folder, split: str) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {"": set()}
    cases: set[str] = set()
    for row in bench.rows("items", _ITEM_COLUMNS):
        item = Item.from_row(row)
        if item.split != split:
            continue
        names = {mask["category"] for mask in item.reference.get("masks") or ()}
        found[""] |= names
        if organ := item.meta.get("organ"):
            found.setdefault(normalise(organ), set()).update(names)
        cases.update(image.case_id for image in item.images)
    if not found[""]:
        # A benchmark without mask answers still has the masks of its cases.
        for case in bench.rows("cases", ["case_id", "masks"]):
            if case["case_id"] in cases:
                found[""] |= {mask["category"] for mask in case["masks"] or ()}
    return {organ: sorted(names) for organ, names in found.items()}


def _by_organ(organ: str) -> Category | None:
    wanted = normalise(organ)
    return next((one for one in all_categories().values() if wanted and normalise(one.organ) == wanted), None)


def _declared(name: str) -> Target:
    hits: Iterable[Target] = (one.targets[name] for one in all_categories().values() if name in one.targets)
    return next(iter(hits), Target(type="region"))
