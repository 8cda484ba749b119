"""Analyses 9, 10 and 16: scores by ability and by type of answer, verdicts of open answers, scores by model size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from sonogauge.analyses.panel import Given, Panel
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.models.groups import UNKNOWN, load_cards
from sonogauge.stats.intervals import Estimate, combine

LEVELS: Final = (0.0, 0.5, 1.0)
OPEN: Final = ("fill_in_blank", "short_answer", "judgement")
AVERAGES: Final = (
    "Micro = mean over questions, macro = unweighted mean over the abilities that have questions; val and test apart. "
    "The published average does not say which it is."
)


def ability_of(one: Given) -> str:
    """Return what an answer's question tests: its meta key, else its data set."""
    return one.item.meta.get("ability") or one.item.dataset


def abilities(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return analysis 9: ability x model with micro and macro averages, type x model; val and test apart."""
    tables = []
    for split in panel.splits():
        tables.append(_by(panel, split, "abilities", "ability", ability_of, averages=True))
        tables.append(_by(panel, split, "types", "type", lambda one: one.item.task, averages=False))
        tables.append(_sets(panel, split))
    return [one for one in tables if one["rows"]]


def macro(parts: Iterable[Estimate]) -> Estimate:
    """Return the unweighted mean of estimates under their shared draws."""
    found = [one for one in parts if one.value is not None]
    if not found:
        return Estimate(None, None, None, 0, 0.0, False, "no answer")
    return found[0] if len(found) == 1 else combine(found, lambda values: values.mean(axis=-1))


def _by(panel: Panel, split: str, key: str, title: str, part: Any, *, averages: bool) -> dict[str, Any]:
    given = {label: [one for one in panel.plain(label) if one.item.split == split] for label in panel.labels}
    names = sorted({part(one) for own in given.values() for one in own})
    rows = []
    for name in names:
        parts = {label: [one for one in given[label] if part(one) == name] for label in panel.labels}
        n = max(len(one) for one in parts.values())
        rows.append({title: name, "n": n, **{label: shown(panel.mean(ones)) for label, ones in parts.items()}})
    if averages and rows:
        n = max(len(own) for own in given.values())
        micros, macros = {}, {}
        for label, own in given.items():
            micros[label] = shown(panel.mean(own))
            macros[label] = shown(macro(panel.mean([one for one in own if part(one) == name]) for name in names))
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
                "score": shown(panel.mean(own, lambda one: one.values["set_score"])),
                "chance": sum(one.item.chance or 0.0 for one in own) / len(own),
                "exact": shown(panel.mean(own, lambda one: one.values["correct"])),
                "size": sum(len(one.choices) for one in own) / sum(rights),
                "over": shown(panel.mean(own, lambda one: one.values["over_answer"])),
                "under": shown(panel.mean(own, lambda one: one.values["under_answer"])),
                "none": shown(panel.mean(own, lambda one: float(not one.choices))),
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
    """Return analysis 10: share of the verdicts 0, 0.5 and 1 by type and by attribute, val and test apart."""
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
                counts = Counter(one.values["judge_score"] for one in own)
                row: dict[str, Any] = {"model": label, "split": split, "by": kind, "part": name, "n": len(own)}
                row |= {f"{level:g}": shown(panel.mean(own, partial(_is_level, level))) for level in LEVELS}
                row["between"] = len(own) - sum(counts[level] for level in LEVELS)
                rows.append(row)
    columns = [
        *(column(name, name) for name in ("model", "split", "by", "part")),
        column("n", "n", "count"),
        *(column(f"{level:g}", f"verdict {level:g}", "percent") for level in LEVELS),
        column("between", "between levels", "count"),
    ]
    notes = ["Between levels: the median of an even number of judges."]
    if not rows:
        notes.append("No open answer was judged: give the verdicts to `sonogauge score`.")
    return [table("verdicts", "Verdicts of open answers", columns, rows, *notes)]


def _is_level(level: float, one: Given) -> float:
    return float(one.values["judge_score"] == level)


def scaling(panel: Panel, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return analysis 16: score and size of each model by family; sizes from models.yaml or the option `sizes`."""
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
                score = shown(panel.mean(own))
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
