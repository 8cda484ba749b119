"""The rows of a report by place, with the questions that its tables ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.report.cells import Cell, Column, Fact, text
from sonogauge.report.document import headline_of, task_codes
from sonogauge.report.load import BASELINE_PREFIX, Scores

Place = tuple[str, str, str, str]
# Reads the reference, so it says nothing about what can be had without looking.
READING = ("oracle",)


@dataclass(frozen=True)
class Line:
    """One model under one variant: its label, its folder and its rows by place."""

    label: str
    scores: Scores
    facts: Mapping[Place, Fact]

    @property
    def varied(self) -> bool:
        """Whether this is a variant of a run; verdicts and counts of the manifest are of the unvaried one."""
        return any(fact.variant for fact in self.facts.values())


@dataclass(frozen=True)
class Board:
    """All rows of a report.

    lines: the models in question; reference_lines: models trained in-domain, which stand apart (unless nothing else
    was given).
    """

    scores: tuple[Scores, ...]
    spec: BenchmarkSpec
    lines: tuple[Line, ...]
    reference_lines: tuple[Line, ...]

    @classmethod
    def of(cls, scores: Sequence[Scores]) -> Board:
        """Sort the folders' rows into lines."""
        asked = [one for one in scores if not one.in_domain] or list(scores)
        apart = [one for one in scores if one not in asked]
        return cls(tuple(scores), scores[0].spec, tuple(_lines(asked)), tuple(_lines(apart)))

    @property
    def several(self) -> bool:
        """Whether more than one model or variant is shown."""
        return len(self.lines) > 1

    def model_columns(self) -> list[Column]:
        """The column that names the model, needed where several are shown."""
        return [Column("Model")] if self.several else []

    def model_cells(self, line: Line) -> list[Cell]:
        """The cell of that column."""
        return [text(line.label)] if self.several else []

    def direction(self, task: str, name: str) -> str:
        """Direction of a metric of a task, empty if unknown."""
        return next(
            (fact.direction for one in self.scores for fact in one.own if (fact.task, fact.metric) == (task, name)), ""
        )

    def codes(self) -> list[str]:
        """Task codes that any folder has rows of, in the order of the benchmark."""
        facts = [fact for one in self.scores for fact in one.own]
        return task_codes(self.scores[0], facts)

    def headline(self, code: str) -> str:
        """Headline metric of a task."""
        return headline_of(self.scores[0], code, [fact for one in self.scores for fact in one.own])

    def headlines(self) -> list[tuple[str, str]]:
        """(task, headline metric) of all tasks."""
        return [(code, self.headline(code)) for code in self.codes()]

    def composites(self) -> list[str]:
        """Names of the composites with rows: those of the weights asked for, then in the order of the benchmark."""
        found = {fact.metric for one in self.scores for fact in one.own if not fact.task}
        asked = self.scores[0].manifest.parameters.get("weights")
        known = sorted(self.spec.composites, key=lambda name: self.spec.composites[name].weights != asked)
        return [name for name in known if name in found] + sorted(found - set(known))

    def baseline_facts(self) -> dict[str, dict[Place, Fact]]:
        """Rows of the baselines by name and place; the first folder that has one decides."""
        result: dict[str, dict[Place, Fact]] = {}
        for one in self.scores:
            for fact in one.baselines:
                if not fact.variant:
                    result.setdefault(fact.label, {}).setdefault(fact.place, fact)
        return dict(sorted(result.items()))

    def best_baseline(self, line: Line, task: str, dataset: str, metric: str) -> Fact | None:
        """The best row of a baseline that does not read the image at that place of the line's own folder."""
        if line.scores.protocol != "strict":
            return None  # only the random row stands beside the published protocol
        own = line.scores.own[0].model.removeprefix(BASELINE_PREFIX)
        offered = [
            fact
            for fact in line.scores.baselines
            if fact.place == (task, dataset, "", metric)
            and fact.value is not None
            and not fact.variant
            and fact.label not in READING
            and not (fact.label == own and line.scores.own[0].model.startswith(BASELINE_PREFIX))
        ]
        named = str(self.verdict(line, task).get("baseline") or "").removeprefix(BASELINE_PREFIX)
        if not dataset and (judged := next((fact for fact in offered if fact.label == named), None)):
            return judged
        sign = -1.0 if any(fact.direction == "down" for fact in offered) else 1.0
        return max(offered, key=lambda fact: (sign * (fact.value or 0.0), fact.label), default=None)

    def verdict(self, line: Line, task: str) -> Mapping[str, Any]:
        """The verdict on a task, empty where none was given for the shown protocol and variant."""
        if line.scores.protocol != "strict" or line.varied:
            return {}
        verdict: Mapping[str, Any] = line.scores.counts.get("verdicts", {}).get(task, {})
        return verdict


def _lines(scores: Iterable[Scores]) -> list[Line]:
    return [
        Line(label, one, {fact.place: fact for fact in one.own if fact.label == label})
        for one in scores
        for label in one.labels
    ]
