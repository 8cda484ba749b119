"""Checking a written report against the facts: places, sizes and shares must be those of the masks it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge.benchmarks.ultrag.semantics import cells, percentage, size_pair
from sonogauge.models.agents.compose import Sentence
from sonogauge.models.agents.facts import TargetFacts

AXIS_TOLERANCE: Final = 0.05
PERCENT_TOLERANCE: Final = 0.01
MOST_SENTENCES: Final = 10
SECTIONS: Final = ("Findings", "Assessment", "Impression")
_ROUNDING: Final = 1e-9
_WRITE: Final = """Write a short report on an ultrasound image from these measured facts, and from nothing else:
{facts}
Reply with one JSON object: {{"report": [{{"section": "Findings", "Assessment" or "Impression", "text": one sentence, "finding_type": as listed, "targets": [categories shown]}}]}}
Exactly these sentences, in this order: {types}. Keep numbers and places as they are given."""  # noqa: E501
_MEND: Final = "\nYour last report had these faults, mend them: {faults}"


def write_prompt(
    facts: Sequence[TargetFacts], kinds: Sequence[tuple[str, str]], outline: Sequence[str], faults: Sequence[str]
) -> str:
    """Return the question that has a planner write the report, or write it again after faults."""
    told: dict[str, Any] = {"targets": [one.told() for one in facts]}
    if outline:
        told["outline"] = list(outline)
    prompt = _WRITE.format(
        facts=json.dumps(told, ensure_ascii=False), types=", ".join(f"{kind} ({section})" for section, kind in kinds)
    )
    return prompt + (_MEND.format(faults="; ".join(faults)) if faults else "")


def read_sentences(found: Mapping[str, Any] | None, facts: Sequence[TargetFacts]) -> list[Sentence] | str:
    """Return the sentences of a reply, or why there are none."""
    rows = (found or {}).get("report", (found or {}).get("sentences"))
    if not isinstance(rows, list) or not rows:
        return "no list of sentences"
    if len(rows) > MOST_SENTENCES:
        return f"more than {MOST_SENTENCES} sentences"
    known = {one.category.casefold(): one.category for one in facts}
    sentences = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not row["text"].strip():
            return "a sentence without text"
        named = row.get("targets")
        cited = (
            [known[str(one).casefold()] for one in named if str(one).casefold() in known]
            if isinstance(named, list)
            else []
        )
        section = row.get("section")
        sentences.append(
            Sentence(
                section if section in SECTIONS else SECTIONS[0],
                row["text"][:2000],
                str(row.get("finding_type") or "")[:100],
                tuple(dict.fromkeys(cited)),
            )
        )
    return sentences


def find_faults(
    sentences: Sequence[Sentence], facts: Sequence[TargetFacts], kinds: Sequence[tuple[str, str]]
) -> list[str]:
    """Return what in a report is not as the facts are: cells equal, axes within 0.05, area percent within 0.01.

    kinds: the sentences that must be there.
    """
    by_name = {one.category: one for one in facts}
    faults = []
    missing = [kind for _, kind in kinds if kind not in {one.finding_type for one in sentences}]
    if missing:
        faults.append("missing: " + ", ".join(missing))
    for number, sentence in enumerate(sentences, start=1):
        shown = [by_name[name] for name in sentence.targets if name in by_name and by_name[name].found]
        if len(shown) < len(sentence.targets):
            faults.append(f"sentence {number} shows a target that was not found")
        shown = shown or [one for one in facts if one.found]
        named = cells(sentence.text)
        if named and not named <= {one.cell for one in shown}:
            faults.append(f"sentence {number} names {', '.join(sorted(named))}, not {_cells(shown)}")
        pair = size_pair(sentence.text, strict=True)
        if pair is not None and not any(_same_axes(pair, one) for one in shown):
            faults.append(f"sentence {number} gives the sides {pair[0]:g} x {pair[1]:g}")
        share = percentage(sentence.text)
        near = (
            (abs(share - round(100 * one.area_ratio, 2)) <= PERCENT_TOLERANCE + _ROUNDING for one in shown)
            if share is not None
            else ()
        )
        if share is not None and not any(near):
            faults.append(f"sentence {number} gives the share {share:g} %")
    return faults


def _cells(shown: Sequence[TargetFacts]) -> str:
    return ", ".join(sorted({one.cell for one in shown})) or "any place"


def _same_axes(pair: tuple[float, float], one: TargetFacts) -> bool:
    wanted = (one.long_axis, one.short_axis)
    return any(
        all(abs(ours - true) <= AXIS_TOLERANCE + _ROUNDING for ours, true in zip(order, wanted, strict=True))
        for order in (pair, pair[::-1])
    )
