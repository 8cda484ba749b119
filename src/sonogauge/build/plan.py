"""How many patients a benchmark needs for a wanted interval or a difference to be found."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.folders import Folder
from sonogauge.stats.power import LEVEL, POWER, smallest_difference

MOST: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Need:
    """What is needed for one wish.

    scope: task the numbers are for, empty without a benchmark. have: patients that the benchmark has. reached: the
    half width or difference that `have` patients allow.
    """

    wish: str
    scope: str
    value: float
    patients: int
    items: int
    items_per_patient: float
    alike: float
    have: int | None = None
    reached: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return asdict(self)


def plan(
    *,
    half_width: float | None = None,
    difference: float | None = None,
    expected: float = 0.7,
    discordant: float | None = None,
    spread: float | None = None,
    items: float = 1.0,
    alike: float = 0.3,
    power: float = POWER,
    bench: Path | str | None = None,
) -> list[Need]:
    """Return the patients needed for each wish, per task where a benchmark is given.

    Args:
        half_width: wanted half width of the 95 % interval of a mean over items.
        difference: true difference of two models on the same items that shall be found with `power`, two-sided.
        expected: expected value of a proportion; with two models, of the better one.
        discordant: share of items on which exactly one of the two models is right; None = as if they were independent.
        spread: standard deviation per item, of the value or of the difference, in place of that of a proportion.
        items: items per patient.
        alike: correlation of the items of one patient (intraclass correlation).
        power: of the test.
        bench: benchmark folder that gives patients and items per patient of each task.

    Raises:
        BadInput: no wish, or a number that is out of its range.
    """
    if half_width is None and difference is None:
        raise BadInput("nothing wanted", fix="give a half width (--half-width) or a difference (--difference)")
    for name, value, low, high in (
        ("half_width", half_width, 0.0, 1.0 if spread is None else math.inf),  # of a proportion
        ("difference", difference, 0.0, math.inf),
        ("expected", expected, 0.0, 1.0),
        ("discordant", discordant, 0.0, 1.0),
        ("spread", spread, 0.0, math.inf),
        ("power", power, 1 - LEVEL, 1.0),
    ):
        if value is not None and not low < value < high:
            raise BadInput(f"{value} is not between {low:g} and {high:g}", field=name)
    if not 0 <= alike <= 1:
        raise BadInput(f"{alike} is not from 0 to 1", field="alike")
    if items <= 0:
        raise BadInput(f"{items} is not above 0", field="items")
    scopes = _scopes(bench) if bench is not None else [("", items, None)]
    needs = []
    for scope, each, have in scopes:
        if half_width is not None:
            variance = spread**2 if spread is not None else expected * (1 - expected)
            needs.append(_need("half width", scope, half_width, variance, each, alike, have, _half_width))
        if difference is not None:
            if spread is not None:
                variance = spread**2
            else:
                other = expected - difference
                unlike = discordant
                if unlike is None:
                    if not 0 <= other <= 1:
                        raise BadInput(f"no proportion lies {difference} below {expected}", field="difference")
                    unlike = expected * (1 - other) + other * (1 - expected)
                if unlike < difference:
                    raise BadInput(
                        f"models that differ by {difference} disagree on at least as many items", field="discordant"
                    )
                variance = unlike - difference**2

            def found(error: float, df: float) -> float:
                return smallest_difference(error, df, power=power)

            needs.append(_need("difference", scope, difference, variance, each, alike, have, found))
    return needs


def _need(
    wish: str, scope: str, value: float, variance: float, each: float, alike: float, have: int | None, reach: Any
) -> Need:
    # A patient's items tell less than as many patients would: the design effect of L. Kish 1965.
    per_patient = variance * (1 + max(0.0, each - 1) * alike) / each

    def reached(patients: int) -> float:
        return float(reach(math.sqrt(per_patient / patients), patients - 1))

    low, high = 1, 2
    while reached(high) > value:
        low, high = high, 2 * high
        if high > MOST:
            raise BadInput(f"more than {MOST} patients would be needed", field=wish.replace(" ", "_"))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) <= value else (middle, high)
    return Need(
        wish=wish,
        scope=scope,
        value=value,
        patients=high,
        items=math.ceil(high * each),
        items_per_patient=each,
        alike=alike,
        have=have,
        reached=reached(have) if have is not None and have > 1 else None,
    )


def _half_width(error: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + LEVEL / 2)) * error


def _scopes(bench: Path | str) -> list[tuple[str, float, int | None]]:
    groups: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in Folder.open(bench, "benchmark").rows("items", ["task", "group", "split"]):
        if row["split"] == "test":
            groups[row["task"]][row["group"]] += 1
    if not groups:
        raise BadInput("no item of the test", file=bench)
    return [(task, sum(counts.values()) / len(counts), len(counts)) for task, counts in groups.items()]


def plan_lines(needs: list[Need]) -> list[str]:
    """Return one line for each wish."""
    lines = []
    for one in needs:
        scope = f"{one.scope}: " if one.scope else ""
        line = (
            f"{scope}{one.wish} {one.value:g}: {one.patients} patients, {one.items} items "
            f"({one.items_per_patient:.3g} a patient, alike {one.alike:g})"
        )
        if one.have is not None:
            reached = f"which gives {one.reached:.3g}" if one.reached is not None else "too few for any statement"
            line += f"; the benchmark has {one.have}, {reached}"
        lines.append(line)
    return lines
