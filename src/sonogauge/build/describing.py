"""What is said about a benchmark made from a recipe: its specification, its manifest with the counts of the stages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonogauge import __version__
from sonogauge.benchmarks.spec import BenchmarkSpec, Scenario, ScenarioSet, Task
from sonogauge.build.leakage import AUDIT_FILE, CANNOT, Audit
from sonogauge.build.recipe import METRICS, Recipe, TaskRecipe
from sonogauge.build.stages.questions import Asked
from sonogauge.build.stages.splits import SplitResult
from sonogauge.build.stages.vocabulary import Vocabulary
from sonogauge.folders import Input, Manifest
from sonogauge.hashes import canonical_hash
from sonogauge.items import Item


@dataclass
class StageCounts:
    """What the first stages counted; examples: cases left out, with the reason."""

    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    words: int = 0
    unmapped: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


def spec_of(recipe: Recipe, items: Sequence[Item], cases: Mapping[str, Any]) -> BenchmarkSpec:
    """Return the specification: a scenario for each task and source that has items.

    cases: facts of the cases written: `licences`, `redistributable`.
    """
    options: dict[tuple[str, str], set[str]] = defaultdict(set)
    rows: Counter[tuple[str, str]] = Counter()
    anatomies: dict[tuple[str, str], set[str]] = defaultdict(set)
    for item in items:
        cell = (item.task, item.dataset)
        rows[cell] += 1
        options[cell].update(item.answer.options)
        anatomies[cell].add(item.anatomy)
    scenarios = []
    for code, task in recipe.tasks.items():
        for cell in sorted(rows):
            if cell[0] == code:
                scenarios.append(_scenario(code, task, cell[1], rows[cell], options[cell], anatomies[cell]))
    return BenchmarkSpec(
        name=recipe.name,
        version=recipe.version,
        title=recipe.title,
        citation=recipe.citation,
        licence="; ".join(sorted(cases["licences"])),
        redistributable=cases["redistributable"],
        notices=recipe.notices,
        prompt_version=recipe.version,
        tasks={
            code: Task(title=task.title, form=task.form, metrics=task.metrics or METRICS[task.form])
            for code, task in recipe.tasks.items()
            if any(cell[0] == code for cell in rows)
        },
        scenarios=tuple(scenarios),
        sets={"all": ScenarioSet(title="all scenarios")},
        no_published="a benchmark made from a recipe has no public scorer",
    )


def manifest_of(
    recipe: Recipe,
    vocabulary: Vocabulary | None,
    inputs: Sequence[Input],
    spec: BenchmarkSpec,
    split: SplitResult,
    asked: Asked,
    sampled: dict[str, dict[str, int]],
    items: Sequence[Item],
    cases: Mapping[str, Any],
    found: Audit,
    counts: StageCounts,
) -> Manifest:
    """Return the manifest, with the counts of each stage under its name."""
    parts = Counter(item.split for item in items)
    notices = [*recipe.notices, *split.notices]
    for check, state in found.states.items():
        if state == "leaks":
            notices.append(f"leakage audit: {check}: {state}; see {AUDIT_FILE}")
        elif state == CANNOT:
            notices.append(f"leakage audit: {check}: {state}, {found.unknown} cases have no patient id")
    if counts.unmapped:
        words = listed(Counter({f"{name} '{raw}'": number for (name, _, raw), number in counts.unmapped.items()}))
        notices.append(f"words that the vocabulary does not name: {words}")
    return Manifest(
        kind="benchmark",
        maker=f"sonogauge {__version__}",
        name=spec.name,
        version=spec.version,
        inputs=list(inputs),
        parameters={
            "recipe": canonical_hash(recipe.model_dump(mode="json")),
            "vocabulary": "" if vocabulary is None else vocabulary.hash,
            "seed": recipe.seed,
            "split": recipe.split.model_dump(mode="json", exclude={"names"}),
            "sampling": {
                code: (task.sampling or recipe.sampling).model_dump(mode="json") for code, task in recipe.tasks.items()
            },
        },
        counts={
            "vocabulary": {"words changed": counts.words, "class filter": dict(sorted(counts.filtered.items()))},
            "quality": {
                "cases read": counts.read,
                "left out": dict(sorted(counts.left_out.items())),
                "flagged": dict(sorted(counts.flagged.items())),
                "examples": counts.examples,
            },
            "splits": {"rules": split.rules, "cases": dict(sorted(Counter(split.parts.values()).items()))},
            "questions": {
                "not asked": {code: dict(sorted(why.items())) for code, why in sorted(asked.skipped.items())}
            },
            "sampling": sampled,
            "items": dict(sorted(parts.items())),
            "cases": cases["cases"],
            "drawn": cases["drawn"],
            "leakage": {
                "states": found.states,
                "leaks": found.leaks,
                "copies planted and found": {
                    name: f"{hit} of {planted}" for name, (hit, planted) in found.probe.items()
                },
                "different images taken for copies": f"{found.false[0]} of {found.false[1]} pairs",
            },
        },
        licences=sorted(cases["licences"]),
        notices=notices,
    )


def _scenario(code: str, task: TaskRecipe, dataset: str, rows: int, options: set[str], anatomies: set[str]) -> Scenario:
    ordered = tuple(one for one in task.options if one in options) or tuple(sorted(options))
    return Scenario(
        task=code,
        dataset=dataset,
        source=dataset,
        rows=rows,
        options=ordered if task.form == "choice" else (),
        low=task.low,
        high=task.high,
        unit=task.unit,
        tolerance=task.tolerance,
        anatomy=next(iter(anatomies)) if len(anatomies) == 1 else "",
        structure=task.structure or task.category,
        determinable=task.determinable,
        determinable_reason=task.determinable_reason,
        prompt=code.casefold(),
        positive=task.positive,
        ordinal=task.ordinal,
    )


def listed(counts: Counter[str], most: int = 5) -> str:
    """Return the largest counts in words.

    >>> listed(Counter({"dark": 2, "blank": 3}))
    '3 blank, 2 dark'
    """
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    more = [f"and {len(ranked) - most} more"] if len(ranked) > most else []
    return ", ".join([*(f"{number} {what}" for what, number in ranked[:most]), *more])
