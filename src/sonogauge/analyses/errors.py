"""Analysis 14: causes of wrong answers, one taxonomy for all benchmarks of this toolkit.

Each wrong answer gets one primary cause and perhaps a second one. Causes that follow from the reply alone are filled
in; the rest needs readers, two per answer, whose agreement stands beside the shares. Published: 94.2 % of the errors of
one model under "lack of knowledge", mostly textbook talk not tied to the visible lesion. That is a failure of
grounding, so `not_grounded` and `knowledge` are apart here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.analyses.abilities import ability_of
from sonogauge.analyses.panel import Given, Panel
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.folders import Folder
from sonogauge.stats.agreement import votes_agreement

CAUSES: Final[dict[str, str]] = {
    "missed_lesion": "does not see the finding",
    "wrong_region": "sees it, puts it at a wrong place",
    "wrong_attribute": "sees it, describes it wrongly",
    "not_grounded": "speaks in general terms that are not tied to this image",
    "knowledge": "describes it rightly, lacks the medical fact",
    "reasoning": "has the facts, draws a wrong conclusion",
    "over_answer": "all right options and wrong ones beside them",
    "under_answer": "right options only, but not all",
    "format_or_extraction": "no answer could be read",
    "refusal": "declines to answer",
    "gold_doubtful": "the reference is doubtful",
}
AUTOMATIC: Final = ("over_answer", "under_answer", "format_or_extraction", "refusal")
QUESTION: Final = "cause"
SECOND: Final = "second_cause"
SAMPLING: Final = ("all", "random", "per_ability")


@dataclass(frozen=True)
class Taxonomy:
    """The causes that readers may choose from: those of CAUSES and a benchmark's own."""

    name: str
    causes: Mapping[str, str]

    def extended(self, name: str, more: Mapping[str, str]) -> Taxonomy:
        """Return this taxonomy with further causes.

        >>> len(SHARED.extended("fetal", {"wrong_plane": "another plane"}).causes)
        12
        """
        return Taxonomy(name, {**self.causes, **more})

    def check(self, cause: str) -> str:
        """Return a cause; raise BadInput for one that the taxonomy does not have."""
        if cause not in self.causes:
            raise BadInput(f"no cause '{cause}'", field="cause", fix="known: " + ", ".join(self.causes))
        return cause


SHARED: Final = Taxonomy("sonogauge-1", CAUSES)


def automatic_cause(reason: str | None, given: Iterable[str], right: Iterable[str]) -> str | None:
    """Return the cause that follows from the reply alone, None where a reader is needed.

    reason: why the reply could not be read. given, right: options named and right; empty for open answers.

    >>> automatic_cause(None, ["A", "B", "D"], ["A", "B"]), automatic_cause(None, ["A"], ["A", "B"])
    ('over_answer', 'under_answer')
    >>> automatic_cause("refusal_policy", [], []), automatic_cause(None, ["D"], ["A"])
    ('refusal', None)
    """
    if reason is not None:
        return "refusal" if reason.startswith("refusal") else "format_or_extraction"
    named, reference = set(given), set(right)
    if reference and named > reference:
        return "over_answer"
    if named and named < reference:
        return "under_answer"
    return None


def cause_of(one: Given) -> str | None:
    """Return the automatic cause of a wrong answer."""
    right = one.item.reference.get("choices") or () if one.item.answer.form == "multi_choice" else ()
    return automatic_cause(one.reason, one.choices if right else (), right)


def is_wrong(one: Given) -> bool:
    """Tell whether an answer lost anything; one that every judge failed to read is not known to be wrong."""
    return one.score < 1.0 and not one.values.get("judge_failed")


def sample_wrong(given: Sequence[Given], size: int | None = None, rule: str = "random", seed: int = 0) -> list[Given]:
    """Return the wrong answers to look at: all, that many at random, or as many of each ability.

    Raises:
        BadInput: an unknown rule or a size below 1.
    """
    if rule not in SAMPLING:
        raise BadInput(f"no sampling rule '{rule}'", field="sampling", fix="known: " + ", ".join(SAMPLING))
    wrong = sorted((one for one in given if is_wrong(one)), key=lambda one: (one.item.item_id, one.variant, one.epoch))
    if rule == "all" or size is None:
        return wrong
    if size < 1:
        raise BadInput(f"a sample of {size}", field="size", fix="use 1 or more")
    Random(f"{seed}/causes").shuffle(wrong)
    if rule == "per_ability":
        seen: dict[str, int] = {}
        place = {}
        for one in wrong:
            ability = ability_of(one)
            place[id(one)] = seen.setdefault(ability, 0)
            seen[ability] += 1
        wrong.sort(key=lambda one: place[id(one)])
    return sorted(wrong[:size], key=lambda one: (one.item.item_id, one.variant, one.epoch))


def read_votes(path: Path | str) -> list[dict[str, Any]]:
    """Read votes from a folder of them or from JSON lines in the columns of `tables.VOTES`.

    Raises:
        BadInput: no such file, a line that is no object, a vote without item or reviewer.
    """
    path = Path(path)
    if path.is_dir():
        return [dict(row) for row in Folder(path, "votes").rows("votes")]
    if not path.is_file():
        raise BadInput("no such file of votes", file=path)
    rows = []
    for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadInput(f"not JSON ({error})", file=path, row=number) from error
        if not isinstance(row, dict) or not row.get("item_id") or not row.get("reviewer"):
            raise BadInput("a vote needs item_id and reviewer", file=path, row=number)
        rows.append({"role": "reader", "question": QUESTION, **row})
    return rows


def cause_votes(
    votes: Iterable[Mapping[str, Any]], taxonomy: Taxonomy = SHARED, question: str = QUESTION
) -> list[dict[str, Any]]:
    """Return the votes on causes, each with its cause as `vote`; the `cause` column may hold it.

    question: QUESTION, the primary cause, or SECOND.

    Raises:
        BadInput: a cause that the taxonomy does not have.
    """
    found = []
    for row in votes:
        if row.get("question") == question:
            cause = row.get("cause") or row.get("vote") or ""
            found.append({**row, "vote": taxonomy.check(cause)})
    return found


def causes(panel: Panel, options: Mapping[str, Any], taxonomy: Taxonomy = SHARED) -> list[dict[str, Any]]:
    """Return shares of the causes with n and interval, and the agreement of the readers.

    options: `votes`, a file or folder of the readers' votes on the first model's wrong answers; `size` and `sampling`,
    which of them were looked at; `seed`.
    """
    label = panel.labels[0]
    size, rule = options.get("size"), str(options.get("sampling") or "all")
    sample = sample_wrong(panel.plain(label), size, rule, panel.seed)
    given = read_votes(options["votes"]) if options.get("votes") else []
    votes = cause_votes(given, taxonomy)
    looked_at = {one.item.item_id for one in sample}
    seconds = Counter(
        cause
        for item_id, cause in {(row["item_id"], row["vote"]) for row in cause_votes(given, taxonomy, SECOND)}
        if item_id in looked_at
    )
    by_item: dict[str, list[str]] = {}
    for row in votes:
        by_item.setdefault(row["item_id"], []).append(row["vote"])
    weights: list[tuple[Given, dict[str, float]]] = []
    open_ = 0
    for one in sample:
        automatic = cause_of(one)
        named = [automatic] if automatic is not None else by_item.get(one.item.item_id, [])
        if not named:
            open_ += 1
            continue
        weights.append((one, {cause: named.count(cause) / len(named) for cause in named}))
    rows = []
    for cause, says in taxonomy.causes.items():
        estimate = panel.mean_of([(one.item, found.get(cause, 0.0)) for one, found in weights])
        count = sum(cause in found for _, found in weights)
        filled = "rule" if cause in AUTOMATIC else "readers"
        row = {"cause": cause, "by": filled, "n": count, "share": shown(estimate), "second": seconds[cause]}
        rows.append({**row, "meaning": says})
    columns = [
        column("cause", "cause"),
        column("by", "filled by"),
        column("n", "answers", "count"),
        column("share", "share", "percent"),
        column("second", "as second cause", "count"),
        column("meaning", "meaning"),
    ]
    told = f"{len(weights)} of {len(sample)} wrong answers of {label} have a cause"
    notes = [
        f"{told}; {open_} wait for readers. Sample: {rule}{'' if size is None else f', {size}'}, seed {panel.seed}.",
        f"Taxonomy {taxonomy.name}. Readers who disagree share the answer between their causes.",
    ]
    shares = table("causes", f"Causes of wrong answers, {label}", columns, rows, *notes)
    return [shares, _agreement(panel, votes, {one.item.item_id for one in sample if cause_of(one) is None})]


def _agreement(panel: Panel, votes: Sequence[Mapping[str, Any]], readable: set[str]) -> dict[str, Any]:
    groups = {item_id: f"{item.source}:{item.group}" for item_id, item in panel.items.items()}
    own = [row for row in votes if row["item_id"] in readable]
    rows = []
    for found in votes_agreement(own, groups=groups, draws=panel.draws, seed=panel.seed):
        one = found.agreement
        common = max(one.prevalence, key=lambda name: one.prevalence[name])
        row: dict[str, Any] = {"role": found.role, "units": one.units, "raters": one.raters}
        row |= {name: shown(estimate) for name, estimate in one.estimates.items()}
        rows.append({**row, "common": f"{common} ({one.prevalence[common]:.0%})"})
    columns = [
        column("role", "role"),
        column("units", "answers read twice", "count"),
        column("raters", "readers", "count"),
        column("percent", "agreement", "percent"),
        column("kappa", "Cohen's kappa", "plain"),
        column("ac1", "Gwet's AC1", "plain"),
        column("alpha", "Krippendorff's alpha", "plain"),
        column("common", "most frequent cause"),
    ]
    note = "Within one role and one question. Causes that were filled in by rule are left out."
    return table("cause_agreement", "Agreement on causes", columns, rows, note)
