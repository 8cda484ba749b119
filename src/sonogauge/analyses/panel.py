"""Several scores of one benchmark beside each other, of any answer form: what the analyses of open benchmarks read.

The score of an answer is a number from 0 to 1: the verdict of the judges where there is one, else the score of the set,
else the match with an accepted text, else right or wrong. Where a judge gave too few of the verdicts asked of it,
nothing that contains its answers has a value; where some models were judged and others were not, the tables say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from sonogauge._errors import BadInput
from sonogauge.benchmarks.spec import BenchmarkSpec, read_spec
from sonogauge.compare.ablations.base import shown
from sonogauge.folders import Folder, Manifest
from sonogauge.items import Item
from sonogauge.metrics.masks import mean_metric
from sonogauge.metrics.sums import GroupSums
from sonogauge.score.inputs import groups_of
from sonogauge.score.values import null
from sonogauge.stats.intervals import Estimate, estimate
from sonogauge.stats.resample import Resampler

# The first of these values that an answer has is its score.
SCORES: Final = ("judge_score", "set_score", "text_match", "correct")
FEW: Final = "fewer than 20 groups: unreliable"
_COLUMNS: Final = (
    *("protocol", "item_id", "variant", "epoch", "rater_id", "model", "prediction", "reason", "excluded", "values"),
)
_ITEM_COLUMNS: Final = (
    *("item_id", "task", "dataset", "source", "group", "split", "images", "answer", "reference", "reference_state"),
    *("chance", "anatomy", "meta"),
)
_MEAN: Final = mean_metric("question_score", "Mean score of a question.", interval="standard_error").metric
_CHANGE: Final = replace(_MEAN, name="score_change", unit="change")


@dataclass(frozen=True, slots=True)
class Given:
    """One scored answer.

    values: all that scoring counted. reason: why it could not be read. unjudged: why no mean may contain it, a judge
    that gave too few verdicts.
    """

    item: Item
    variant: str
    epoch: int
    rater_id: str
    score: float
    values: Mapping[str, float]
    reason: str | None
    choices: tuple[str, ...]
    unjudged: str | None = None


@dataclass(frozen=True)
class Panel:
    """Scored answers of several models to one benchmark.

    answers: by label. manifests: of the scores, by label.
    """

    spec: BenchmarkSpec
    bench: Folder
    items: Mapping[str, Item]
    answers: Mapping[str, tuple[Given, ...]]
    manifests: Mapping[str, Manifest]
    draws: int
    seed: int

    @cached_property
    def resampler(self) -> Resampler:
        """Draws of the groups of all items, shared by all models."""
        return Resampler(groups_of(list(self.items.values())), draws=self.draws, seed=self.seed)

    @property
    def labels(self) -> list[str]:
        """The models, in the order given."""
        return list(self.answers)

    def plain(self, label: str) -> list[Given]:
        """Return the machine answers of a model to the unvaried questions."""
        return [one for one in self.answers[label] if not one.variant and not one.rater_id]

    def splits(self) -> list[str]:
        """Return the splits that have an answer, val before test."""
        found = {one.item.split for given in self.answers.values() for one in given}
        return sorted(found, key=lambda name: (name != "val", name))

    def mean(self, given: Iterable[Given], value: Callable[[Given], float] = lambda one: one.score) -> Estimate:
        """Estimate the mean score of answers, resampling groups; without value where verdicts are lacking."""
        kept = list(given)
        why = why_unjudged(kept)
        if why is not None:
            return null(why)
        return self.mean_of([(one.item, value(one)) for one in kept])

    def yardsticks(self) -> list[str]:
        """Return what a reader must know of how free text was scored: by verdicts, by words, or some of both."""
        judged: dict[str, set[str]] = {}
        for label, given in self.answers.items():
            for one in given:
                task = self.spec.tasks.get(one.item.task)
                if task is not None and "judge_score" in task.metrics:
                    judged.setdefault("verdict" if "judge_score" in one.values else "words", set()).add(label)
        words = judged.get("words", set())
        if not words:
            return []
        if "verdict" not in judged:
            return ["Free text counts by its words alone (text_match): no verdicts were given to `sonogauge score`."]
        names = ", ".join(label for label in self.labels if label in words)
        return [
            f"NOT COMPARABLE in free text: of {names} some or all answers count by their words alone, the others by "
            "verdicts of a judge. Give the verdicts of each model to `sonogauge score`."
        ]

    def mean_of(self, pairs: Sequence[tuple[Item, float]], *, change: bool = False) -> Estimate:
        """Estimate the mean of a value of items from 0 to 1, or of a change from -1 to 1."""
        if not pairs:
            return null("no answer")
        found = estimate(_CHANGE if change else _MEAN, self.sums_of(pairs), self.resampler)
        return found.within(-1.0, 1.0) if change else found

    @staticmethod
    def sums_of(pairs: Sequence[tuple[Item, float]]) -> GroupSums:
        """Return [sum, count] per group of a value of items."""
        values = np.array([value for _, value in pairs], dtype=np.float64)
        return GroupSums.from_items(
            [item.source for item, _ in pairs],
            [item.group for item, _ in pairs],
            np.stack([values, np.ones_like(values)], axis=-1),
        )


def why_unjudged(given: Iterable[Given]) -> str | None:
    """Return why answers have no mean: a judge that gave too few verdicts; None where they have one."""
    return next((one.unjudged for one in given if one.unjudged is not None), None)


def told(one: Estimate) -> dict[str, Any]:
    """Return a value with its interval as data, marked where fewer than 20 groups make the interval unreliable."""
    found = shown(one)
    if one.low is not None and not one.reliable:
        found["why_null"] = FEW
    return found


def score_of(values: Mapping[str, float]) -> float | None:
    """Return the score of an answer from the values that scoring counted; None for a form without one.

    >>> score_of({"correct": 0.0, "set_score": 0.5}), score_of({"rouge_l": 0.3})
    (0.5, None)
    """
    return next((values[name] for name in SCORES if name in values), None)


def read_panel(
    paths: Sequence[Path | str], *, bench: Path | str | None = None, draws: int = 10_000, seed: int = 0
) -> Panel:
    """Read scores folders of one benchmark.

    bench: its folder, if it moved. draws, seed: of the bootstrap.

    Raises:
        BadInput: no scores, scores of different benchmarks, two of one model, or no answer with a score.
    """
    if draws < 100:
        raise BadInput(f"{draws} draws are too few for an interval", field="draws", fix="use at least 100")
    answers: dict[str, tuple[Given, ...]] = {}
    manifests: dict[str, Manifest] = {}
    items: dict[str, Item] = {}
    folder: Folder | None = None
    for path in map(Path, paths):
        scores = Folder(path, "scores")
        source = scores.manifest.input("benchmark")
        if source is None:
            raise BadInput("its manifest names no benchmark", file=path, fix="score again")
        own = Folder(Path(bench) if bench is not None else Path(source.path), "benchmark")
        if own.manifest.hash != source.hash:
            raise BadInput(f"scores of another benchmark than {own.path}", file=path, fix="name it with --bench")
        if folder is not None and own.manifest.hash != folder.manifest.hash:
            raise BadInput("scores of another benchmark than the first ones", file=path)
        if folder is None:
            folder = own
            rows = own.rows("items", list(_ITEM_COLUMNS))
            items = {one.item_id: one for one in map(Item.from_row, rows) if one.split != "train"}
        label = str(scores.manifest.parameters.get("model", path.name))
        if label in answers:
            raise BadInput(f"second scores of {label}", file=path, fix="keep one, or name one with score --model")
        answers[label] = tuple(_answers(scores, items))
        manifests[label] = scores.manifest
    if folder is None:
        raise BadInput("no scores", fix="give one or more scores folders")
    if not any(answers.values()):
        raise BadInput("no answer with a score", file=Path(paths[0]), fix="score again with --out")
    return Panel(read_spec(folder.path), folder, items, answers, manifests, draws, seed)


def _answers(scores: Folder, items: Mapping[str, Item]) -> Iterable[Given]:
    lacking = _lacking_verdicts(scores)
    for row in scores.rows("score_items", list(_COLUMNS)):
        item = items.get(row["item_id"])
        values = _values(row["values"])
        score = score_of(values)
        if item is None or row["protocol"] != "strict" or row["excluded"] or score is None:
            continue
        prediction = row["prediction"] or {}
        yield Given(
            item=item,
            variant=row["variant"],
            epoch=row["epoch"],
            rater_id=row["rater_id"],
            score=score,
            values=values,
            reason=row["reason"],
            choices=tuple(prediction.get("choices") or prediction.get("ranking") or ()),
            unjudged=lacking.get((row["variant"], item.task, item.dataset)) if "judge_score" in values else None,
        )


def _lacking_verdicts(scores: Folder) -> dict[tuple[str, str, str], str]:
    """Return by (variant, task, data set) why judged answers have no value in these scores."""
    columns = ["protocol", "variant", "task", "dataset", "slice", "metric", "value", "n", "why_null", "origin"]
    return {
        (row["variant"], row["task"], row["dataset"]): row["why_null"] or "no value"
        for row in scores.rows("metrics", columns)
        if (row["metric"], row["protocol"], row["origin"]) == ("judge_score", "strict", "computed")
        and row["dataset"]
        and not row["slice"]
        and row["n"]
        and row["value"] is None
    }


def _values(stored: Any) -> dict[str, float]:
    return dict(stored.items() if isinstance(stored, Mapping) else stored or ())
