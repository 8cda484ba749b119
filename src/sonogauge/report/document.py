"""The object of `--json`: one scores folder as plain data, fractions from 0 to 1, nothing rounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.report.cells import Fact
from sonogauge.report.load import Scores

Document = dict[str, Any]


def document(scores: Scores) -> Document:
    """Return the object that DESIGN.md fixes for `score --json`.

    A run with several variants shows the unvaried one (else the first); the others stand under "variants", which is
    absent otherwise.
    """
    first, *others = scores.labels
    body = _body(scores, [fact for fact in scores.own if fact.label == first])
    result: Document = {
        "benchmark": scores.manifest.name,
        "protocol": scores.protocol,
        "scenarios": scores.scenario_set,
        "partial": bool(scores.counts.get("partial", False)),
        **body,
        "baselines": _baselines(scores),
        "failures": dict(sorted(scores.failures.items())),
    }
    if others:
        result["variants"] = {
            facts[0].variant: _body(scores, facts)
            for facts in ([fact for fact in scores.own if fact.label == label] for label in others)
        }
    return result


def _body(scores: Scores, facts: Sequence[Fact]) -> Document:
    whole = [fact for fact in facts if not fact.slice]
    tasks: Document = {}
    for code in task_codes(scores, whole):
        mine = [fact for fact in whole if fact.task == code]
        headline = headline_of(scores, code, mine)
        tasks[code] = {
            **_counted([fact for fact in mine if not fact.dataset], headline),
            "datasets": {
                name: _counted([fact for fact in mine if fact.dataset == name], headline)
                for name in sorted({fact.dataset for fact in mine if fact.dataset})
            },
        }
    composites = {
        fact.metric: {"value": fact.value, "low": fact.low, "high": fact.high} for fact in whole if not fact.task
    }
    return {"tasks": tasks, "composites": composites}


def task_codes(scores: Scores, facts: Sequence[Fact]) -> list[str]:
    """Return the task codes of some rows: in the order of the benchmark, then others by name."""
    found = {fact.task for fact in facts if fact.task}
    # The written specification sorts its task codes; its scenarios keep the benchmark's own order.
    declared = [code for code in task_order(scores.spec) if code in found]
    return declared + sorted(found - set(declared))


def task_order(spec: BenchmarkSpec) -> list[str]:
    """Return the task codes of a benchmark in the order of its scenarios."""
    return list(dict.fromkeys([*(one.task for one in spec.scenarios), *spec.tasks]))


def headline_of(scores: Scores, code: str, facts: Sequence[Fact]) -> str:
    """Return the headline metric of a task; for a task that the benchmark does not declare, its first by name."""
    task = scores.spec.tasks.get(code)
    return task.headline if task else min(fact.metric for fact in facts if fact.task == code)


def _counted(facts: Sequence[Fact], headline: str) -> Document:
    lead = next((fact for fact in facts if fact.metric == headline), facts[0] if facts else None)
    return {
        "n": (lead.n if lead else None) or 0,
        "valid": (lead.valid if lead else None) or 0,
        "excluded": (lead.excluded if lead else None) or 0,
        "metrics": {
            fact.metric: {
                "value": fact.value,
                "low": fact.low,
                "high": fact.high,
                "signature": fact.signature,
                "why_null": fact.why_null or None,
            }
            for fact in sorted(facts, key=lambda fact: fact.metric)
        },
    }


def _baselines(scores: Scores) -> Document:
    result: Document = {}
    for fact in scores.baselines:
        if not fact.task or fact.dataset or fact.slice or fact.variant:
            continue
        if fact.metric == headline_of(scores, fact.task, scores.baselines):
            result.setdefault(fact.label, {})[fact.task] = fact.value
    return {
        name: {code: values[code] for code in task_codes(scores, scores.baselines) if code in values}
        for name, values in sorted(result.items())
    }
