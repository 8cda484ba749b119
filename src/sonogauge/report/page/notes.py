"""What a reader must be told: banners above the numbers, limits below them, and why two random rows differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sonogauge.benchmarks.composite import composite, part
from sonogauge.benchmarks.spec import BenchmarkSpec
from sonogauge.report.board import Board
from sonogauge.report.cells import Fact
from sonogauge.report.document import task_order
from sonogauge.report.load import Scores

FEW_GROUPS: Final = 20
_RANDOM: Final = "random"

# What the published protocol of U2-BENCH does otherwise than strict does; from the benchmark's own scorer.
_U2_CAUSES: Final = (
    "The published columns average other data sets: DD without 28, 32, 40 and 57, VRA with the KL grades of 28, "
    "CVE over 27 and 50 for several models, and not the same ones for every model.",
    "How many draws the published row rests on is not stated; ours is one seeded draw for each item, and beside it "
    "stands the exact expectation of guessing.",
    "A published option list can differ from the one asked here, and guessing among fewer options is easier.",
    "A reference may name several right places: ours counts any of them, the published scorer only the first.",
    "Numbers: ours are cut to the declared range and a reply without a number counts as the worst error; published "
    "values leave such replies out.",
    "Text tasks: published as '-' and counted as 0; ours answers with a training text, or nothing where there is none.",
)


Note = dict[str, str]


def banners(scores: Sequence[Scores], spec: BenchmarkSpec) -> list[Note]:
    """Return what stands above the numbers: simulated data, partial scores, models trained in-domain."""
    found: list[Note] = []

    def say(kind: str, title: str, *text: str) -> None:
        found.append({"kind": kind, "title": title, "text": " ".join(text)})

    if spec.simulated:
        say(
            "simulated", "Simulated, not clinical", "Images and findings are computed; nothing here speaks of patients."
        )
    for one in scores:
        if one.counts.get("partial"):
            why = "; ".join(str(reason) for reason in one.counts.get("partial_why") or ())
            missing = [str(name) for name in one.counts.get("missing") or ()]
            say(
                "partial",
                f"Partial: {one.label}",
                f"{why or 'Not all of the benchmark was scored'}.",
                *([f"Missing: {', '.join(missing)}."] if missing else []),
                "Totals do not compare with complete or published ones.",
            )
        if one.in_domain:
            say(
                "in_domain",
                f"Trained in-domain: {one.label}",
                "Learned from this benchmark's own train part: what can be learned, not a zero-shot score.",
            )
    if len({source.hash for one in scores if (source := one.manifest.input("benchmark"))}) > 1:
        say(
            "partial",
            "Different builds",
            "The folders score different builds of the benchmark; differences may come from the data.",
        )
    if len({one.scenario_set for one in scores}) > 1:
        say("partial", "Different scenario sets", "Totals of these folders are not comparable.")
    if not any(fact.value is not None for one in scores for fact in one.own):
        say(
            "partial",
            "Nothing to show",
            "No metric of these folders has a value: the run holds no answer that could be scored.",
        )
    return _joined(found)


def _joined(found: list[Note]) -> list[Note]:
    """Join banners that say the same of several models."""
    kept: dict[tuple[str, str], Note] = {}
    for one in found:
        head, _, label = one["title"].partition(": ")
        key = (head, one["text"])
        if key in kept and label:
            kept[key]["title"] += f", {label}"
        else:
            kept[key] = dict(one)
    return list(kept.values())


def limits(board: Board, *, images: bool) -> list[Note]:
    """Return the limits of what is shown: each a title and a text with the numbers of this report."""
    scores = board.scores
    found: list[Note] = []

    def say(title: str, *text: str) -> None:
        found.append({"title": title, "text": " ".join(text)})

    if covered := _coverage(scores):
        say(
            "Coverage",
            f"Share of items with an answer that could be read: {_few(covered)}.",
            "What could not be read counts as wrong under strict, and leaves the count under published.",
        )
    if thin := _thin(scores):
        say(
            "Few patients",
            f"{len(thin)} data {'set rests' if len(thin) == 1 else 'sets rest'} on fewer than {FEW_GROUPS} groups,",
            f"too few for a reliable interval: {_few(thin, 12)}.",
        )
    if any(fact.low is not None for one in scores for fact in one.own):
        say(
            "New patients, same sources",
            "Intervals (95 %) speak of new patients from the same sources, not of other hospitals, devices or readers.",
            "Overlapping intervals do not prove that two models are equal.",
        )
    if missing := sorted({str(name) for one in scores for name in one.counts.get("missing") or ()}):
        say("Missing data sets", f"Not scored for at least one model: {_few(missing, 16)}.")
    if parts := sorted({f"{one.task}/{one.dataset}" for one in board.spec.scenarios if one.determinable != "yes"}):
        say(
            "What one image can tell",
            f"In {len(parts)} scenarios a single image does not, or only partly, hold the answer: {_few(parts, 16)}.",
        )
    if board.spec.simulated:
        say("Simulated images", "A good score says that the machinery works, not that a model reads ultrasound.")
    else:
        say(
            "Contamination unknown",
            "The images come from public data sets. Whether a model has seen them in training is not known",
            "and cannot be seen from its score.",
        )
    if any(one.in_domain for one in scores):
        say("Trained in-domain", "Models trained on this benchmark's own train part stand in a group of their own.")
    if scores[0].published:
        say(
            "Published rows",
            "Copied from tables, not computed here: no intervals, no coverage, and their data sets may differ between",
            "models. Each doubt is given with its number.",
        )
    if not images:
        say("No gallery", "This page was made without single cases; nothing can be checked by eye.")
    say("Not a clinical evaluation", "Answers to benchmark questions are no evidence of safety or benefit in care.")
    return found


def _coverage(scores: Sequence[Scores]) -> list[str]:
    return [
        f"{one.label} {100 * one.counts['valid'] / one.counts['scored']:.1f} %"
        for one in scores
        if one.counts.get("scored") and one.counts.get("valid") is not None
    ]


def _thin(scores: Sequence[Scores]) -> list[str]:
    """Return the data sets whose interval rests on few groups."""
    return sorted(
        {
            _name(fact)
            for one in scores
            for fact in one.own
            if fact.dataset
            and not fact.slice
            and fact.groups is not None
            and fact.groups < FEW_GROUPS
            and fact.value is not None
        }
    )


def _name(fact: Fact) -> str:
    return f"{fact.task}/{fact.dataset}"


def _few(names: Sequence[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def random_rows(board: Board) -> dict[str, Any] | None:
    """Return the published random row beside the computed one, by total and task, and why they differ.

    None unless both are there. Where the computed baseline has no total because tasks are missing, the total over the
    tasks that both have is given for both, with the weights scaled to 1.
    """
    ours = board.baseline_facts().get(_RANDOM)
    theirs: dict[tuple[str, str, str, str], Fact] = {}
    label = ""
    for fact in board.scores[0].published:
        if fact.model.casefold().startswith(_RANDOM) and not fact.variant:
            label = fact.label
            theirs.setdefault(fact.place, fact)
    if not ours or not theirs:
        return None
    rows = []
    for name in board.composites():
        place = ("", "", "", name)
        if place in theirs:
            rows.append(_pair("", name, theirs[place], ours.get(place)))
    for code, name in board.headlines():
        place = (code, "", "", name)
        if place in theirs or place in ours:
            rows.append(_pair(code, name, theirs.get(place), ours.get(place)))
    causes = (
        list(_U2_CAUSES)
        if board.spec.name == "u2bench"
        else ["The published row may rest on other data sets, prompts and rules of counting."]
    )
    if any(one.counts.get("partial") for one in board.scores):
        causes.insert(0, "The scores here are partial: task values rest on the data sets present only.")
    return {"label": label, "rows": rows, "shared": _shared_total(board, theirs, ours), "causes": causes}


def _pair(task: str, metric: str, theirs: Fact | None, ours: Fact | None) -> dict[str, Any]:
    return {
        "task": task,
        "metric": metric,
        "published": theirs.value if theirs else None,
        "computed": ours.value if ours else None,
        "low": ours.low if ours else None,
        "high": ours.high if ours else None,
        "chance": ours.chance if ours else None,
        "n": ours.n if ours else None,
        "why": "not published" if theirs is None else ours.why_null if ours else "not computed",
    }


def _shared_total(board: Board, theirs: Mapping[Any, Fact], ours: Mapping[Any, Fact]) -> dict[str, Any] | None:
    name = next(
        (one for one in board.composites() if ("", "", "", one) in theirs and one in board.spec.composites), None
    )
    if name is None:
        return None
    weights = board.spec.weights[board.spec.composites[name].weights]
    parts: dict[str, tuple[float, float]] = {}
    for code in task_order(board.spec):
        if code not in weights:
            continue
        place = (code, "", "", board.spec.tasks[code].headline)
        pair = [side[place].value if place in side else None for side in (theirs, ours)]
        if pair[0] is not None and pair[1] is not None:
            parts[code] = (float(part(place[3], pair[0])), float(part(place[3], pair[1])))
    kept = {code: weights[code] for code in parts}
    if not kept:
        return None
    scale = sum(kept.values())
    kept = {code: weight / scale for code, weight in kept.items()}
    both = [composite({code: pair[side] for code, pair in parts.items()}, kept) for side in (0, 1)]
    return {"name": name, "tasks": list(parts), "published": both[0], "computed": both[1]}
