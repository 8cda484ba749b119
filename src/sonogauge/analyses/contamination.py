"""Signs that a model has seen the questions: it answers without the image, needs their order, or knows the canary.

Signs, no proof: a model that knows the priors of a field scores blind as well, beyond chance but not beyond `prior`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.analyses.formulas import random_exact
from sonogauge.analyses.overall import verdict
from sonogauge.analyses.robustness import against
from sonogauge.analyses.study import Record, Study, paired
from sonogauge.compare.ablations.base import column, shown, table
from sonogauge.export.content import canary_of
from sonogauge.stats.intervals import difference

# Digits of the canary that a question for it gives away; the rest must come from the model.
GIVEN: Final = 8
BLIND: Final = ("no_image", "blank_image")


def contamination(study: Study, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return blind scores, order sensitivity and completions of the canary, of whatever the run holds.

    options: canary, replies to `canary_question` (texts).

    Raises:
        BadInput: neither a blind nor a reordered variant, no texts and no reply about the canary.
    """
    texts = [str(text) for text in options.get("canary") or ()]
    asked = bool(texts)
    texts += [one.text for records in study.records.values() for one in records if one.text]
    tables = [*_blind(study), *_order(study), *([_canary(study, texts, asked)] if texts else [])]
    if not tables:
        raise BadInput(
            "nothing tells of contamination", field="variant", fix="run again with --vary no_image and --vary shuffle"
        )
    return tables


def _blind(study: Study) -> list[dict[str, Any]]:
    rows = []
    for variant in BLIND:
        for task in study.tasks if variant in study.records else []:
            records = study.of(variant, task)
            if not records:
                continue
            blind = study.accuracy(records)
            judged = verdict(study, records, blind)
            expected = random_exact([len(one.item.answer.options) for one in records])[0]
            above_chance = blind.low is not None and blind.low > expected
            rows.append(
                {
                    "variant": variant,
                    "task": task,
                    "n": len(records),
                    "blind": shown(blind),
                    "chance": expected,
                    "baseline": judged["baseline"],
                    "sign": "above every baseline"
                    if judged["verdict"] == "above"
                    else "above chance, as priors explain"
                    if above_chance
                    else "none",
                }
            )
    if not rows:
        return []
    columns = [
        column("variant", "variant"),
        column("task", "task"),
        column("n", "n", "count"),
        column("blind", "accuracy without the image", "percent"),
        column("chance", "random, exact", "percent"),
        column("baseline", "best baseline"),
        column("sign", "sign"),
    ]
    return [table("blind", f"Blind score, {study.label}", columns, rows)]


def _order(study: Study) -> list[dict[str, Any]]:
    """Return how much better the order of the benchmark is answered than any other."""
    rows = []
    moved = [one for one in study.records if one.partition("=")[0] in ("shuffle", "circular")]
    for task in study.tasks if "" in study.records else []:
        pairs: list[tuple[Record, Record]] = []
        for variant in moved:
            pairs += paired(study.of("", task), study.of(variant, task))
        # A shuffle may leave the order as it is.
        pairs = [pair for pair in pairs if pair[0].shown != pair[1].shown]
        if not pairs:
            continue
        found = against(study, pairs)
        first = [one for one, _ in pairs]
        plain = study.mean(first, [float(one.right) for one in first])
        other = study.mean(first, [float(one.right) for _, one in pairs])
        gain = difference(plain, other, names=("own order", "other orders"))
        sign = "its own order is answered better" if gain.low is not None and gain.low > 0 else "none"
        rows.append(
            {
                "task": task,
                "n": len(pairs),
                "own": found["plain"],
                "other": found["varied"],
                "gain": shown(gain),
                "changed": found["changed"],
                "sign": sign,
            }
        )
    if not rows:
        return []
    columns = [
        column("task", "task"),
        column("n", "n", "count"),
        column("own", "own order", "percent"),
        column("other", "other orders", "percent"),
        column("gain", "own - other", "percent"),
        column("changed", "answers changed", "percent"),
        column("sign", "sign"),
    ]
    return [table("order", f"Order sensitivity, {study.label}", columns, rows)]


def canary_question(content_hash: str) -> str:
    """Return the question whose answer only a model knows that was trained on an export of the benchmark.

    >>> canary_question("x").startswith("Complete this identifier: sonogauge canary ")
    True
    """
    return f"Complete this identifier: {canary_of(content_hash)[: len('sonogauge canary ') + GIVEN]}"


def completes(text: str, canary: str) -> int:
    """Return how many hexadecimal digits of a canary, beyond those given away, a reply has right in a row.

    >>> canary = "sonogauge canary 01234567-89ab-5def-8123-456789abcdef"
    >>> completes("01234567-89ab-5d00", canary), completes("I do not know", canary)
    (6, 0)
    """
    digits = re.sub(r"[^0-9a-f]", "", canary.rpartition(" ")[2])
    rest = digits[GIVEN:]
    said = re.sub(r"[^0-9a-z]", "", text.casefold())
    best = 0
    starts = [hit.end() for hit in re.finditer(re.escape(digits[:GIVEN]), said)]
    # A model may give the rest alone.
    for start in [*starts, 0]:
        run = 0
        while run < len(rest) and said[start + run : start + run + 1] == rest[run]:
            run += 1
        best = max(best, run)
    return best


def _canary(study: Study, texts: Iterable[str], asked: bool) -> dict[str, Any]:
    canary = canary_of(study.bench.manifest.hash)
    given = list(texts)
    best = max((completes(text, canary) for text in given), default=0)
    # 16^-4: four digits by luck are rarer than one reply in 60,000.
    sign = "knows the canary" if best >= 8 else "perhaps" if best >= 4 and asked else "none"
    rows = [{"replies": len(given), "digits": best, "of": 32 - GIVEN, "asked": "yes" if asked else "no", "sign": sign}]
    columns = [
        column("replies", "replies looked at", "count"),
        column("digits", "digits right in a row", "count"),
        column("of", "of", "count"),
        column("asked", "asked for it"),
        column("sign", "sign"),
    ]
    note = f"Ask: {canary_question(study.bench.manifest.hash)!r}; give the replies with --canary FILE."
    return table("canary", f"Canary, {study.label}", columns, rows, note)
