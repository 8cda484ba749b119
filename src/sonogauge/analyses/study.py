"""What the analyses read: the questions of a benchmark, and of one model what it answered, from a run or its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.analyses.formulas import Question
from sonogauge.answers.variants import answer_of
from sonogauge.benchmarks.spec import BenchmarkSpec, read_spec
from sonogauge.folders import Folder, Manifest, read_manifest
from sonogauge.items import Item
from sonogauge.metrics import load_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.inputs import Sharing, groups_of, open_replies
from sonogauge.score.reading import ReplyParser
from sonogauge.score.replies import ReplySource, check_ids, join
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler
from sonogauge.tables import from_facts

ON_NO_ANSWER: Final = ("wrong", "exclude")
_COLUMNS: Final = (
    *("item_id", "task", "dataset", "source", "group", "split", "images", "answer", "reference", "reference_state"),
    *("chance", "anatomy", "meta"),
)


@dataclass(frozen=True, slots=True)
class Record:
    """One answer to one question: the option that was read from it, or None with the reason.

    text: the reply, None where only its scores are known.
    """

    item: Item
    variant: str
    epoch: int
    choice: str | None
    reason: str | None
    text: str | None = None

    @property
    def right(self) -> bool:
        """Whether it names the right option."""
        return self.choice is not None and self.choice == self.answer

    @property
    def answer(self) -> str:
        """The right option."""
        return str(self.item.reference["choices"][0])

    @property
    def shown(self) -> tuple[str, ...]:
        """The options in the order in which this variant showed them."""
        return answer_of(self.item.answer, self.item.item_id, self.variant).options

    @property
    def key(self) -> tuple[str, int]:
        """Item and epoch."""
        return self.item.item_id, self.epoch


@dataclass(frozen=True)
class Study:
    """A benchmark's multiple-choice questions and one model's answers to them.

    train: labels of the train part, counted by task; train_sources: the sources it has. records: by variant, "" is the
    unvaried one. on_no_answer: whether an answer that cannot be read is wrong, or left out of accuracies.
    """

    label: str
    spec: BenchmarkSpec
    bench: Folder
    items: tuple[Item, ...]
    train: Mapping[str, Counter[str]]
    train_sources: frozenset[str]
    records: Mapping[str, tuple[Record, ...]] = field(repr=False)
    resampler: Resampler
    on_no_answer: str = "wrong"

    @property
    def tasks(self) -> list[str]:
        """Tasks with a question that was answered, in the order of the benchmark."""
        present = {one.item.task for records in self.records.values() for one in records}
        return [task for task in self.spec.tasks if task in present]

    def of(self, variant: str = "", task: str | None = None) -> list[Record]:
        """Return the records of a variant, of one task or of all.

        Raises:
            BadInput: the model has no reply in that variant.
        """
        if variant not in self.records:
            raise BadInput(
                f"no reply in the variant '{variant}'", field="variant", fix=f"run again with --vary {variant}"
            )
        return [one for one in self.records[variant] if task is None or one.item.task == task]

    def counted(self, records: Iterable[Record]) -> list[Record]:
        """Return the records that count in an accuracy: all, or those with an answer."""
        return [one for one in records if self.on_no_answer == "wrong" or one.choice is not None]

    def accuracy(self, records: Iterable[Record]) -> Estimate:
        """Estimate the share of right answers."""
        counted = self.counted(records)
        return self.mean(counted, [float(one.right) for one in counted])

    def mean(self, records: Sequence[Record], values: Iterable[float]) -> Estimate:
        """Estimate the mean of a value from 0 to 1 over records, with its interval by group."""
        return mean_of([one.item for one in records], values, self.resampler)

    @cached_property
    def cases(self) -> dict[str, dict[str, str]]:
        """Provenance and facts of each picture."""
        return {
            row["case_id"]: {**from_facts(row["meta"]), "provenance": row["provenance"] or "unknown"}
            for row in self.bench.rows("cases", ["case_id", "provenance", "meta"])
        }

    def provenance(self, item: Item) -> str:
        """Return what the image of an item is of: clinical, volunteer, phantom, simulated or unknown."""
        if item.meta.get("provenance"):
            return item.meta["provenance"]
        return self.cases.get(item.images[0].case_id, {}).get("provenance", "unknown") if item.images else "unknown"


def mean_of(items: Sequence[Item], values: Iterable[float], resampler: Resampler) -> Estimate:
    """Estimate the mean of a value from 0 to 1 over items, with its clustered interval."""
    numbers = np.fromiter(values, dtype=np.float64)
    sums = GroupSums.from_items(
        [one.source for one in items],
        [one.group for one in items],
        np.stack([numbers, np.ones_like(numbers)], axis=-1).reshape(-1, 2),
    )
    return estimate(load_metric("accuracy"), sums, resampler)


def question_of(item: Item) -> Question:
    """Return the question of an item as the baselines see it."""
    return Question(item.answer.options, str(item.reference["choices"][0]))


def read_study(
    given: Path | str | ReplySource,
    *,
    bench: Path | str | None = None,
    draws: int = 10_000,
    seed: int = 0,
    on_no_answer: str = "wrong",
    model: str | None = None,
) -> Study:
    """Read a run folder, a scores folder or a file of replies with the benchmark it belongs to.

    Args:
        given: a run or scores folder, a `.jsonl` file of replies (then `bench` is needed), or replies in memory.
        bench: benchmark folder; by default the one that the run or scores name.
        draws: of the bootstrap.
        seed: of the bootstrap.
        on_no_answer: "wrong" counts an answer that cannot be read as wrong, "exclude" leaves it out.
        model: name to show.

    Raises:
        BadInput: no such replies, another benchmark, no multiple-choice question, a wrong option.
    """
    if on_no_answer not in ON_NO_ANSWER:
        raise BadInput(f"no rule '{on_no_answer}'", field="on_no_answer", fix="use " + " or ".join(ON_NO_ANSWER))
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    scores = None if isinstance(given, ReplySource) else _scores_manifest(Path(given))
    if scores is not None:
        folder = _bench_of(scores, Path(str(given)), bench)
        label, split = scores.parameters.get("model", "model"), None
        source = None
    else:
        source, folder = open_replies(given, Path(bench) if bench is not None else None, model)
        label, split = source.model, source.split
    items, train, train_sources = _read_items(folder, split or "test")
    if source is not None:
        check_ids(source, {item_id: item for item_id, item in items.items()}, folder.path)
        records = _from_replies(source, items)
    else:
        records = _from_scores(Folder(Path(str(given)), "scores"), items)
    choice = [item for item in items.values() if item.answer.form == "choice" and item.reference_state == "ok"]
    if not choice:
        raise BadInput(
            "no multiple-choice question", file=folder.path, fix="these analyses are for answers from options"
        )
    return Study(
        label=model or label,
        spec=read_spec(folder.path),
        bench=folder,
        items=tuple(choice),
        train=train,
        train_sources=train_sources,
        records=records,
        resampler=Resampler(groups_of(choice), draws=draws, seed=seed),
        on_no_answer=on_no_answer,
    )


def _scores_manifest(path: Path) -> Manifest | None:
    if not path.is_dir():
        return None
    manifest = read_manifest(path)
    return manifest if manifest.kind == "scores" else None


def _bench_of(manifest: Manifest, path: Path, bench: Path | str | None) -> Folder:
    given = manifest.input("benchmark")
    if given is None:
        raise BadInput("its manifest names no benchmark", file=path, fix="score again")
    folder = Folder(Path(bench) if bench is not None else Path(given.path), "benchmark")
    if folder.manifest.hash != given.hash:
        raise BadInput(
            f"scores of another benchmark than {folder.path} (content hash {given.hash[:12]}, here "
            f"{folder.manifest.hash[:12]})",
            file=path,
            fix="name the benchmark it was scored on with --bench",
        )
    return folder


def _read_items(folder: Folder, split: str) -> tuple[dict[str, Item], dict[str, Counter[str]], frozenset[str]]:
    """Return the items of the split that was asked, and of the train part its labels by task and its sources."""
    items: dict[str, Item] = {}
    train: dict[str, Counter[str]] = {}
    sources: set[str] = set()
    share = Sharing()
    for row in (row for batch in folder.batches("items", list(_COLUMNS), 256) for row in batch.to_pylist()):
        item = share(Item.from_row(row))
        if item.meta.get("provenance"):
            # The picture is asked for nothing else.
            item = replace(item, images=())
        if item.split == split:
            items[item.item_id] = item
        elif item.split == "train":
            sources.add(item.source)
            if item.answer.form == "choice" and item.reference_state == "ok":
                train.setdefault(item.task, Counter())[str(item.reference["choices"][0])] += 1
    return items, train, frozenset(sources)


def _usable(item: Item) -> bool:
    return item.answer.form == "choice" and item.reference_state == "ok"


def _from_replies(source: ReplySource, items: Mapping[str, Item]) -> dict[str, tuple[Record, ...]]:
    parse = ReplyParser()
    found: dict[str, list[Record]] = {}
    for item, reply in join(source, list(items.values())):
        if not _usable(item) or reply.rater_id:
            continue
        parsed = parse(reply, item.answer)
        choice = parsed.value if parsed.valid and isinstance(parsed.value, str) else None
        found.setdefault(reply.variant, []).append(
            Record(item, reply.variant, reply.epoch, choice, parsed.reason, reply.text)
        )
    return {variant: tuple(own) for variant, own in sorted(found.items())}


_SCORE_COLUMNS: Final = ["protocol", "item_id", "variant", "epoch", "rater_id", "prediction", "reason", "excluded"]


def _from_scores(folder: Folder, items: Mapping[str, Item]) -> dict[str, tuple[Record, ...]]:
    found: dict[str, list[Record]] = {}
    for row in folder.rows("score_items", list(_SCORE_COLUMNS)):
        item = items.get(row["item_id"])
        if item is None or row["protocol"] != "strict" or row["rater_id"] or not _usable(item) or row["excluded"]:
            continue
        (said, *_) = (row["prediction"] or {}).get("choices") or (None,)
        # The string of the item itself, so that each option is held once.
        choice = next((one for one in item.answer.options if one == said), None)
        if choice is None and said is not None:
            raise BadInput(f"'{said}' is no option of {item.item_id}", file=folder.path, fix="score again")
        variant, reason = intern(row["variant"]), row["reason"] and intern(row["reason"])
        found.setdefault(variant, []).append(Record(item, variant, row["epoch"], choice, reason))
    if not found:
        raise BadInput("no scored multiple-choice answer", file=folder.path, fix="score again")
    return {variant: tuple(own) for variant, own in sorted(found.items())}


def split_by(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Return the records by a key, the keys sorted."""
    found: dict[str, list[Record]] = {}
    for one in records:
        found.setdefault(key(one), []).append(one)
    return dict(sorted(found.items()))


def paired(one: Iterable[Record], other: Iterable[Record]) -> Iterator[tuple[Record, Record]]:
    """Yield the records of two variants or runs on the same item and epoch."""
    second = {record.key: record for record in other}
    for record in one:
        if record.key in second:
            yield record, second[record.key]
