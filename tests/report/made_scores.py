"""Scores folders made by hand, with known numbers, for the tests of the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sonogauge.benchmarks.spec import SPEC_FILE, BenchmarkSpec, dump_spec
from sonogauge.folders import Input, Manifest, new_folder, sort_rows

SPEC = BenchmarkSpec.model_validate(
    {
        "name": "toy",
        "version": "3",
        "title": "Toy benchmark",
        "licence": "CC BY-NC-ND 4.0",
        "simulated": True,
        "notices": ["simulated, not clinical"],
        "tasks": {
            "DD": {"title": "diagnosis", "form": "choice", "metrics": ["accuracy", "macro_f1"]},
            "CVE": {"title": "value", "form": "number", "metrics": ["rmse_scaled", "median_error"]},
            "RG": {"title": "report", "form": "text", "metrics": ["bleu4"]},
        },
        "scenarios": [
            {"task": "DD", "dataset": "03", "options": ["benign", "malignant"]},
            {"task": "DD", "dataset": "21", "options": ["a", "b"]},
            {"task": "CVE", "dataset": "27", "low": 1, "high": 20, "unit": "mm"},
            {"task": "RG", "dataset": "39"},
        ],
        "weights": {"published": {"DD": 0.5, "CVE": 0.3, "RG": 0.2}},
        "composites": {
            "u2": {"title": "U2", "weights": "published", "formula": "sum of w_t d_t, d = accuracy, 1 - RMSE, BLEU-4"},
            "u2_skill": {
                "title": "skill",
                "weights": "published",
                "skill": True,
                "formula": "sum of w_t (d - c)/(1 - c)",
            },
        },
        "no_published": "no public scorer exists",
    }
)


def row(model: str, task: str, dataset: str, metric: str, value: float | None = None, /, **more: Any) -> dict[str, Any]:
    """Return a row of the metrics table."""
    signature = f"{metric}|protocol:strict|bench:toy@3|agg:{'items' if dataset else 'macro'}"
    return {
        "model": model,
        "model_group": None,
        "protocol": "strict",
        "variant": "",
        "scenario_set": "all",
        "task": task,
        "dataset": dataset,
        "slice": "",
        "metric": metric,
        "value": value,
        "low": None,
        "high": None,
        "n": 40,
        "valid": 38,
        "excluded": 2,
        "groups": 30,
        "reliable": True,
        "signature": signature,
        "direction": "down" if "rmse" in metric or "error" in metric else "up",
        "chance": None,
        "origin": "computed",
        "datasets": None,
        "why_null": None,
        "source": None,
        "doubt": None,
        **more,
    }


def model_rows(model: str, shift: float = 0.0, **more: Any) -> list[dict[str, Any]]:
    """Return the rows of one model: four data sets, three tasks, two totals, a slice; RG has no value."""
    why = "missing data sets: 39"

    def near(value: float) -> dict[str, float]:
        return {"value": value, "low": value - 0.05, "high": value + 0.05}

    made = [
        row(model, "DD", "03", "accuracy", n=100, valid=97, chance=0.5, **near(0.625 + shift)),
        row(model, "DD", "21", "accuracy", n=12, valid=12, groups=9, reliable=False, **near(0.5 + shift)),
        row(model, "DD", "03", "macro_f1", **near(0.6 + shift)),
        row(model, "DD", "", "accuracy", n=112, valid=109, excluded=1, chance=0.5, **near(0.5625 + shift)),
        row(model, "DD", "", "accuracy_cases", n=112, valid=109, excluded=1, **near(0.61 + shift)),
        row(model, "DD", "", "macro_f1", n=112, valid=109, excluded=1, **near(0.55 + shift)),
        row(model, "DD", "", "accuracy", n=90, valid=88, slice="determinable=yes", **near(0.58 + shift)),
        row(model, "CVE", "27", "rmse_scaled", 0.25, groups=1, why_null="one group: no interval"),
        row(model, "CVE", "", "rmse_scaled", **near(0.25 - shift)),
        row(model, "CVE", "", "median_error", 3.14159, low=-0.00001, high=7.5),
        row(model, "RG", "", "bleu4", n=0, valid=0, excluded=0, why_null=why),
        row(model, "", "", "u2", n=152, **near(0.2253 + shift)),
        row(model, "", "", "u2", n=130, slice="determinable=yes", **near(0.24 + shift)),
        row(model, "", "", "u2_skill", n=152, why_null="missing tasks: RG"),
    ]
    return [{**one, **more} for one in made]


def beside() -> list[dict[str, Any]]:
    """Return rows of baselines and published numbers."""
    upper = "upper bound: no train split"
    made = []
    for name, accuracy, rmse in (("random", 0.5, 0.4), ("majority", 0.59, None), ("oracle", 1.0, 0.0)):
        doubt = upper if name == "majority" else None
        model = f"baseline/{name}"
        made.append(row(model, "DD", "", "accuracy", accuracy, origin="baseline", doubt=doubt))
        made.append(row(model, "DD", "03", "accuracy", accuracy, origin="baseline", doubt=doubt))
        why = None if rmse is not None else "not defined for numbers"
        made.append(row(model, "CVE", "", "rmse_scaled", rmse, origin="baseline", why_null=why))
    for model, accuracy, doubt in (("Known-1", 0.7, None), ("Known-2", 0.4, "data set 27 rests on one reply")):
        facts: dict[str, Any] = {
            "protocol": "published",
            "origin": "published",
            "source": "public leaderboard, 2025",
            "n": None,
            "valid": None,
            "excluded": None,
            "groups": None,
            "reliable": None,
            "signature": None,
        }
        made.append(row(model, "DD", "", "accuracy", accuracy, doubt=doubt, **facts))
        made.append(row(model, "DD", "", "macro_f1", accuracy - 0.1, **facts))
        made.append(row(model, "", "", "u2", accuracy / 2, **facts))
    return made


def counts() -> dict[str, Any]:
    """Return counts as a scorer writes them."""
    return {
        "scored": 152,
        "failures": {"strict": {"empty": 3, "ambiguous": 2, "refusal_policy": 0}, "published": {}},
        "statuses": {"ok": 150, "truncated": 2, "error": 0},
        "excluded": {"error": 1, "absent": 2},
        "abstention": {"CVE/27": {"null": 3, "number": 10}},
        "verdicts": {
            "DD": {
                "verdict": "not distinguishable",
                "baseline": "majority",
                "difference": -0.0275,
                "low": -0.1,
                "high": 0.04,
            }
        },
        "partial": True,
        "partial_why": ["--scenarios present"],
        "missing": ["RG/39"],
    }


def write_scores(
    out: Path,
    model: str = "vendor/model-1",
    rows: Iterable[dict[str, Any]] | None = None,
    spec: BenchmarkSpec = SPEC,
    bench_hash: str = "b" * 64,
    **manifest: Any,
) -> Path:
    """Write a scores folder and return its path."""
    made = [*model_rows(model), *beside()] if rows is None else list(rows)
    with new_folder(out) as folder:
        folder.table("metrics").write(sort_rows(made, "metrics"))
        folder.table("score_items")
        (folder.path / SPEC_FILE).write_text(dump_spec(spec), "utf-8")
        facts: dict[str, Any] = {
            "kind": "scores",
            "maker": "test",
            "name": spec.name,
            "version": spec.version,
            "inputs": [Input(role="benchmark", path="BENCH", hash=bench_hash)],
            "parameters": {"model": model, "protocols": ["strict"], "draws": 10000, "seed": 0, "scenario_set": "all"},
            "counts": counts(),
            **manifest,
        }
        folder.finish(Manifest(**facts))
    return out
