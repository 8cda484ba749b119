"""Analyses 9, 10 and 16: scores by ability and by type of answer, verdicts of open answers, scores by model size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from sonogauge.analyses.panel import Given, Panel, told
from sonogauge.compare.ablations.base import column, table
from sonogauge.models.groups import UNKNOWN, load_cards
from sonogauge.score.values import null
from sonogauge.stats.intervals import Estimate, combine

LEVELS: Final = (0.0, 0.5, 1.0)
# Leniency to the value of a scored answer that holds the verdict under it.
LENIENT: Final = {"none": "judge_score", "v1": "judge_score_v1"}
AVERAGES: Final = (
    "Micro = mean over questions, macro = unweighted mean over the abilities that have questions; val and test apart. "
    "The published average does not say which it is."
)


def ability_of(one: Given) -> str:
    """Return what an answer's question tests: its meta key, else its data set."""
    return one.item.meta.get("ability") or one.item.dataset


def abilities(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ability x model with micro and macro averages, type x model; val and test apart."""
    tables = []
    for split in panel.splits():
        tables.append(_by(panel, split, "abilities", "ability", ability_of, averages=True))
        tables.append(_by(panel, split, "types", "type", lambda one: one.item.task, averages=False))
        tables.append(_sets(panel, split))
    return [one for one in tables if one["rows"]]


def macro(parts: Iterable[Estimate]) -> Estimate:
    """Return the unweighted mean of estimates under their shared draws; without value where one of them has none."""
    found = list(parts)
    lacking = next((one for one in found if one.value is None), None)
    if lacking is not None or not found:
        return null((lacking.why_null if lacking is not None else None) or "no answer")
    return found[0] if len(found) == 1 else combine(found, lambda values: values.mean(axis=-1))


def _by(panel: Panel, split: str, key: str, title: str, part: Any, *, averages: bool) -> dict[str, Any]:
    given = {label: [one for one in panel.plain(label) if one.item.split == split] for label in panel.labels}
    names = sorted({part(one) for own in given.values() for one in own})
    rows = []
    for name in names:
        parts = {label: [one for one in given[label] if part(one) == name] for label in panel.labels}
        n = max(len(one) for one in parts.values())
        rows.append({title: name, "n": n, **{label: told(panel.mean(ones)) for label, ones in parts.items()}})
    if averages and rows:
        n = max(len(own) for own in given.values())
        micros, macros = {}, {}
        for label, own in given.items():
            micros[label] = told(panel.mean(own))
            macros[label] = told(macro(panel.mean([one for one in own if part(one) == name]) for name in names))
        rows += [{title: "micro", "n": n, **micros}, {title: "macro", "n": n, **macros}]
    columns = [column(title, title), column("n", "n", "count")]
    columns += [column(label, label, "percent") for label in panel.labels]
    return table(f"{key}_{split}", f"Score by {title}, {split}", columns, rows, *([AVERAGES] if averages else []))


def _sets(panel: Panel, split: str) -> dict[str, Any]:
    """Return how multi-choice questions were answered beside their score."""
    rows = []
    for label in panel.labels:
        own = [one for one in panel.plain(label) if one.item.split == split and "set_score" in one.values]
        if not own:
            continue
        rights = [len(one.item.reference["choices"]) for one in own]
        rows.append(
            {
                "model": label,
                "n": len(own),
                "score": told(panel.mean(own, lambda one: one.values["set_score"])),
                "chance": sum(one.item.chance or 0.0 for one in own) / len(own),
                "exact": told(panel.mean(own, lambda one: one.values["correct"])),
                "size": sum(len(one.choices) for one in own) / sum(rights),
                "over": told(panel.mean(own, lambda one: one.values["over_answer"])),
                "under": told(panel.mean(own, lambda one: one.values["under_answer"])),
                "none": told(panel.mean(own, lambda one: float(not one.choices))),
                "f1": _set_f1(own),
            }
        )
    columns = [
        column("model", "model"),
        column("n", "n", "count"),
        column("score", "score", "percent"),
        column("chance", "random set", "percent"),
        column("exact", "exact", "percent"),
        column("size", "given / right", "plain"),
        column("over", "too many", "percent"),
        column("under", "too few", "percent"),
        column("none", "no answer", "percent"),
        column("f1", "set F1", "percent"),
    ]
    note = "Score: 0 with any wrong option, else the share of the right ones; so one sure option is the safe strategy."
    return table(f"sets_{split}", f"Questions with one or several right options, {split}", columns, rows, note)


def _set_f1(own: list[Given]) -> float:
    shared = sum(len(set(one.choices) & set(one.item.reference["choices"])) for one in own)
    given, right = sum(len(one.choices) for one in own), sum(len(one.item.reference["choices"]) for one in own)
    return 2 * shared / (given + right)


def verdict_shares(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the share of the verdicts 0, 0.5 and 1 by type and attribute, with and without leniency.

    Val and test apart. Replies on which every judge failed are counted beside the shares, not among them.
    """
    rows = []
    for label in panel.labels:
        for split in panel.splits():
            judged = [one for one in panel.plain(label) if one.item.split == split and "judge_score" in one.values]
            parts: dict[tuple[str, str], list[Given]] = {}
            for one in judged:
                parts.setdefault(("type", one.item.task), []).append(one)
                if attribute := one.item.meta.get("attribute_asked"):
                    parts.setdefault(("attribute", attribute), []).append(one)
            for (kind, name), own in sorted(parts.items()):
                row = {"model": label, "split": split, "by": kind, "part": name, "n": len(own)}
                rows += [{**row, **_shares(panel, own, leniency)} for leniency in LENIENT]
    columns = [
        *(column(name, name) for name in ("model", "split", "by", "part", "leniency")),
        column("n", "n", "count"),
        column("failed", "judge failed", "count"),
        *(column(f"{level:g}", f"verdict {level:g}", "percent") for level in LEVELS),
        column("between", "between levels", "count"),
    ]
    notes = [
        "Shares of the replies with a verdict, no answer (0) and rules among them; none where a judge failed.",
        "Between levels: the median of an even number of judges.",
    ]
    if not rows:
        notes.append("No open answer was judged: give the verdicts to `sonogauge score`.")
    return [table("verdicts", "Verdicts of open answers", columns, rows, *notes)]


def _shares(panel: Panel, own: list[Given], leniency: str) -> dict[str, Any]:
    value = LENIENT[leniency]
    judged = [one for one in own if not one.values.get("judge_failed")]
    counts = Counter(one.values[value] for one in judged)
    found: dict[str, Any] = {"leniency": leniency, "failed": len(own) - len(judged)}
    found |= {f"{level:g}": told(panel.mean(judged, partial(_is_level, value, level))) for level in LEVELS}
    return {**found, "between": len(judged) - sum(counts[level] for level in LEVELS)}


def _is_level(value: str, level: float, one: Given) -> float:
    return float(one.values[value] == level)


def scaling(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return score and size of each model by family; sizes from models.yaml or the option `sizes`."""
    cards = load_cards(options.get("models_file"))
    sizes: Mapping[str, float] = options.get("sizes") or {}
    rows = []
    for label in panel.labels:
        card = cards.get(label)
        size = sizes.get(label, card.size_b if card is not None else None)
        family = (card.family if card is not None else None) or UNKNOWN
        for split in panel.splits():
            own = [one for one in panel.plain(label) if one.item.split == split]
            if own:
                score = told(panel.mean(own))
                rows.append(
                    {"family": family, "model": label, "size": size, "split": split, "n": len(own), "score": score}
                )
    rows.sort(key=lambda row: (row["split"], row["family"], row["size"] is None, row["size"] or 0.0, row["model"]))
    columns = [
        column("family", "family"),
        column("model", "model"),
        column("size", "billions of parameters", "plain"),
        column("split", "split"),
        column("n", "n", "count"),
        column("score", "score, micro", "percent"),
    ]
    return [table("scaling", "Score by model size", columns, rows, "Compare sizes within one family only.")]
