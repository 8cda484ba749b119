"""Which questions a run asks: items of a benchmark, chosen so that a run can grow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import Any, Final

import pyarrow as pa

from sonogauge._errors import BadInput
from sonogauge.answers import AnswerSpec
from sonogauge.folders import Folder
from sonogauge.items import Item
from sonogauge.models.base import ReplyKey
from sonogauge.run.images import CaseFacts
from sonogauge.run.vary import variants

_REPEATED: Final = ("task", "dataset", "source", "group", "split", "prompt_id")
_WITHOUT_REFERENCES: Final = ("item_id", *_REPEATED, "images", "question", "variables", "answer")


@dataclass(frozen=True, slots=True)
class Job:
    """One question to ask: an item, a variant of it, an epoch."""

    item: Item
    variant: str = ""
    epoch: int = 0

    @property
    def key(self) -> ReplyKey:
        """The key of the reply."""
        return self.item.item_id, self.variant, self.epoch, ""

    @property
    def sent(self) -> tuple[str, ...]:
        """The cases whose images are sent."""
        if self.variant.partition("+")[0] in ("no_image", "blank_image"):
            return ()
        return tuple(image.case_id for image in self.item.images)


def plan(items: Iterable[Item], variations: Sequence[str], *, plain: bool = True) -> list[Job]:
    """Return the questions of a run: the plain ones unless left out, then each variation of each item."""
    kinds = dict.fromkeys((*([""] if plain else []), *variations))
    return [Job(item, variant, epoch) for item in items for kind in kinds for variant, epoch in variants(kind, item)]


def in_order_of(jobs: Iterable[Job], cases: Mapping[str, CaseFacts]) -> list[Job]:
    """Return jobs sorted as their images lie in the cases table, so that reading it is one pass."""

    def row(job: Job) -> int:
        facts = cases.get(job.item.images[0].case_id) if job.item.images else None
        return facts.row if facts else -1

    return sorted(jobs, key=row)


@dataclass(frozen=True)
class Questions:
    """The items of a benchmark by part: those that may be asked and those that may be learned from."""

    items: tuple[Item, ...]
    train: tuple[Item, ...]

    @classmethod
    def read(cls, bench: Folder, split: str, *, references: bool) -> Questions:
        """Read the items table; raise BadInput if the split has no item.

        references: also read what only a baseline may know; a model's run never holds it.
        """
        asked, train, splits = [], [], set()
        answers: dict[AnswerSpec, AnswerSpec] = {}
        # Small batches, because a row as Python objects is many times the item that is made of it.
        for batch in bench.batches("items", None if references else list(_WITHOUT_REFERENCES), size=128):
            for row in batch.to_pylist():
                row |= {name: intern(row[name]) for name in _REPEATED if row[name]}
                item = Item.from_row(row)
                item = replace(item, answer=answers.setdefault(item.answer, item.answer))
                splits.add(item.split)
                if item.split == split:
                    # An item whose reference is at fault may have nothing to ask; a model is not bothered with it.
                    if references or item.question:
                        asked.append(item)
                elif item.split == "train":
                    train.append(item)
        pa.default_memory_pool().release_unused()
        if not asked:
            raise BadInput(f"no item of split '{split}'", file=bench.path, fix="splits: " + ", ".join(sorted(splits)))
        return cls(tuple(asked), tuple(train))

    def choose(self, tasks: Sequence[str] | None, limit: int | None) -> list[Item]:
        """Return the items to ask, in the order of the table.

        limit: that many items, spread over tasks and data sets by a fixed shuffle; a larger limit asks a superset.

        Raises:
            BadInput: an unknown task, a limit below 1.
        """
        chosen = list(self.items)
        if tasks is not None:
            known = {item.task for item in chosen}
            if unknown := sorted(set(tasks) - known):
                raise BadInput(f"no task '{unknown[0]}' in this benchmark", fix="tasks: " + ", ".join(sorted(known)))
            chosen = [item for item in chosen if item.task in set(tasks)]
        if limit is not None:
            if limit < 1:
                raise BadInput(f"limit {limit} asks nothing", fix="give a limit of at least 1")
            first = sorted(chosen, key=lambda item: hashlib.sha256(item.item_id.encode()).digest())[:limit]
            wanted = {item.item_id for item in first}
            chosen = [item for item in chosen if item.item_id in wanted]
        return chosen

    def asked(self, item_ids: Iterable[str], split: str) -> dict[str, Any]:
        """Describe which items a run covers: `tasks` and `limit` are null where it covers all.

        The description follows from the replies alone, so runs that grew along different ways agree.
        """
        known = {item.item_id: item.task for item in self.items}
        found = {item_id for item_id in item_ids if item_id in known}
        covered = {known[item_id] for item_id in found}
        whole = sum(task in covered for task in known.values())
        return {
            "split": split,
            "tasks": None if covered == set(known.values()) else sorted(covered),
            "limit": None if whole == len(found) else len(found),
            "items": len(found),
            "of": len(known),
        }
