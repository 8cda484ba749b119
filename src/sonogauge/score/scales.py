"""What a scenario's own facts add to the counting: an ordinal scale, positive classes, a measure with a tolerance.

The metrics that follow are counted for every scenario that declares them, under `strict` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sonogauge._errors import BadInput
from sonogauge.answers import NULL, Parsed
from sonogauge.benchmarks.spec import Scenario
from sonogauge.items import Item
from sonogauge.score.counters import Counter

Array = npt.NDArray[np.float64]

ORDINAL_METRICS: Final = ("kappa_quadratic", "kappa_linear", "grade_error")
DIAGNOSTIC_METRICS: Final = (
    "sensitivity",
    "specificity",
    "sensitivity_answered",
    "specificity_answered",
    "lr_positive",
    "lr_negative",
    "ppv",
    "npv",
)
MEASURE_METRICS: Final = ("within_clinical",)
# Counted where replies carry option probabilities; the first two need positive classes.
RANKING_METRICS: Final = ("auroc", "average_precision")
CALIBRATION_METRICS: Final = ("brier", "ece")


@dataclass(frozen=True)
class Tolerance:
    """How far apart two careful readers of a measure may be: absolute in its unit, or relative to the reference.

    checked: what of the number was seen in the source, and what is from memory.
    """

    measure: str
    source: str
    checked: str
    absolute: float | None = None
    relative: float | None = None
    unit: str = ""

    def width(self, reference: Array) -> Array:
        """Return the largest error that counts as agreement, (n,)."""
        if self.absolute is not None:
            return np.full(len(reference), self.absolute)
        return (self.relative or 0.0) * np.abs(reference)

    @property
    def facts(self) -> str:
        """The tolerance as a signature says it."""
        size = f"{self.absolute:g} {self.unit}" if self.absolute is not None else f"{100 * (self.relative or 0):g} %"
        return f"tolerance:{self.measure} {size}"


@lru_cache(maxsize=1)
def tolerances() -> dict[str, Tolerance]:
    """Return the tolerances of `tolerances.yaml` by measure.

    >>> tolerances()["head circumference"].facts
    'tolerance:head circumference 4.9 %'
    """
    import yaml

    content = yaml.safe_load((files("sonogauge.score") / "tolerances.yaml").read_text("utf-8"))
    return {name: Tolerance(measure=name, **entry) for name, entry in content["measures"].items()}


def tolerance_of(scenario: Scenario) -> Tolerance | None:
    """Return the clinical tolerance of the scenario's measure (`extra: {measure: …}`), or None.

    Raises:
        BadInput: the scenario names a measure that has none, or whose tolerance is in another unit.
    """
    measure = scenario.extra.get("measure")
    if measure is None:
        return None
    known = tolerances().get(str(measure))
    if known is None:
        raise BadInput(
            f"no tolerance for the measure '{measure}'", field="measure", fix="known: " + ", ".join(tolerances())
        )
    if known.absolute is not None and scenario.unit != known.unit:
        raise BadInput(
            f"the tolerance of {measure} is in '{known.unit}', the numbers in '{scenario.unit}'",
            field="unit",
            fix=f"give the numbers in '{known.unit}'",
        )
    return known


def scenario_metrics(scenario: Scenario) -> tuple[str, ...]:
    """Return the metrics that the scenario's own facts call for.

    >>> scenario_metrics(Scenario(task="DD", dataset="1", positive=("malignant",)))[:2]
    ('sensitivity', 'specificity')
    """
    return (
        *(ORDINAL_METRICS if scenario.ordinal else ()),
        *(DIAGNOSTIC_METRICS if scenario.positive else ()),
        *(MEASURE_METRICS if scenario.extra.get("measure") else ()),
    )


def scenario_counters(scenario: Scenario) -> list[Counter]:
    """Return the counters behind `scenario_metrics`."""
    found: list[Counter] = []
    if scenario.ordinal:
        found.append(_GradeCounter(scenario.ordinal))
    if scenario.positive:
        found.append(_BinaryCounter(scenario.positive))
    tolerance = tolerance_of(scenario)
    if tolerance is not None:
        found.append(_ToleranceCounter(tolerance))
    return found


class _GradeCounter:
    """Statistic `grades` over the ordinal scale; a reference off it counts nowhere, a prediction off it fails."""

    def __init__(self, scale: tuple[str, ...]) -> None:
        self._place = {grade: position for position, grade in enumerate(scale)}
        self._pairs: list[tuple[int, int]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        reference = self._place.get(item.reference["choices"][0], -1)
        predicted = self._place.get(parsed.value, -1) if parsed.valid else -1
        self._pairs.append((reference, predicted))
        return {"grades": float(predicted - reference)} if reference >= 0 and predicted >= 0 else {}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.ordinal import grade_statistics

        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self._pairs = []
        return {"grades": grade_statistics(pairs[:, 0], pairs[:, 1], len(self._place))}


class _BinaryCounter:
    """Statistics of a test for the positive classes: `binary`, and shares by side, with and without the failures."""

    def __init__(self, positive: tuple[str, ...]) -> None:
        self._positive = frozenset(positive)
        self._rows: list[tuple[float, float, float]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        ill = item.reference["choices"][0] in self._positive
        right = parsed.valid and (parsed.value in self._positive) == ill
        self._rows.append((float(ill), float(right), float(parsed.valid)))
        return {}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.diagnostic import binary_statistics

        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 3)
        self._rows = []
        binary = binary_statistics(rows[:, 0], rows[:, 1])
        answered = binary * rows[:, 2:3]
        return {
            "binary": binary,
            "positives": binary[:, :2],
            "negatives": binary[:, 2:],
            "positives_answered": answered[:, :2],
            "negatives_answered": answered[:, 2:],
        }


class _ToleranceCounter:
    """Statistic `within_clinical` [within, 1]: numbers as given, a failure lies outside."""

    def __init__(self, tolerance: Tolerance) -> None:
        self._tolerance = tolerance
        self._rows: list[tuple[float, float]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        answered = parsed.valid and parsed.value != NULL
        self._rows.append((float(item.reference["number"]), float(parsed.value) if answered else np.inf))
        return {}

    def take(self) -> dict[str, Array]:
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 2)
        self._rows = []
        # The margin keeps an error of exactly the tolerance within it in binary arithmetic.
        within = np.abs(rows[:, 0] - rows[:, 1]) <= self._tolerance.width(rows[:, 0]) * (1 + 1e-12)
        return {"within_clinical": np.stack([within.astype(np.float64), np.ones(len(rows))], axis=-1)}


def probability_row(probabilities: tuple[tuple[str, float], ...], options: tuple[str, ...], item: Item) -> list[float]:
    """Return the probabilities of a reply in the order of `options`, 0 where it names none; letters stand for options.

    Raises:
        BadInput: an option the item does not have, a probability that is no number from 0 on.
    """
    letters: dict[str, Any] = dict(zip(item.answer.letters, item.answer.options, strict=False))
    row = dict.fromkeys(options, 0.0)
    for name, value in probabilities:
        option = name if name in row else letters.get(name)
        if option is None:
            raise BadInput(
                f"a probability for '{name}', which is no option of item {item.item_id}",
                field="option_probabilities",
                fix="name the options as the item does",
            )
        if not 0.0 <= value < np.inf:
            raise BadInput(
                f"{value} is no probability (item {item.item_id})", field="option_probabilities", fix="give 0 to 1"
            )
        row[option] += value
    return list(row.values())
