"""What each answer form counts: per-item statistics of a reply against a reference, under `strict`.

A counter sees one (item, parsed reply) at a time and yields arrays for `metrics.sums.GroupSums`. Every failure counts
as wrong, or as the worst in-range error, and keeps its reason elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from sonogauge.answers import NULL, AnswerSpec, Parsed
from sonogauge.items import Item
from sonogauge.metrics.numbers import scaled_error_statistics, worst_error

Array = npt.NDArray[np.float64]


class Counter(Protocol):
    """Statistics of one cell, collected item by item and taken out in chunks."""

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item; return its per-item values for the score_items table."""
        ...

    def take(self) -> dict[str, Array]:
        """Return the statistics of the items added since the last call, shape (items, k) each."""
        ...


# A confusion matrix over more options than this says little and fills the memory (k² numbers a group).
MOST_CLASSES: Final = 64


class _ChoiceCounter:
    """Statistics `hits` [hit, 1] and, up to 64 options, `confusion`.

    The matrix is options x (options + 1), last column = no valid answer.
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._index = {option: number for number, option in enumerate(spec.options)}
        self._pairs: list[tuple[int, int]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        reference = self._index[item.reference["choices"][0]]
        predicted = self._index[parsed.value] if parsed.valid else len(self._index)
        self._pairs.append((reference, predicted))
        return {"correct": float(reference == predicted)}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.choice import hit_statistics

        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self._pairs = []
        size = len(self._index)
        out = {"hits": hit_statistics(pairs[:, 0] == pairs[:, 1])}
        if size <= MOST_CLASSES:
            out["confusion"] = np.zeros((len(pairs), size, size + 1))
            out["confusion"][np.arange(len(pairs)), pairs[:, 0], pairs[:, 1]] = 1.0
        return out


class _MultiChoiceCounter:
    """Statistics `hits` (the set of options given equals the set of right ones) and `sets` (`metrics.multi_choice`)."""

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._sets: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        from sonogauge.metrics.multi_choice import set_score_of

        given, right = tuple(parsed.value) if parsed.valid else (), tuple(item.reference["choices"])
        self._sets.append((given, right))
        return {
            "correct": float(set(given) == set(right)),
            "set_score": set_score_of(given, right),
            "over_answer": float(len(given) > len(right)),
            "under_answer": float(0 < len(given) < len(right)),
        }

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.multi_choice import SAME, set_statistics

        pairs, self._sets = self._sets, []
        rows = set_statistics([given for given, _ in pairs], [right for _, right in pairs])
        return {"hits": _with_count(rows[:, SAME]), "sets": rows}


class _RankingCounter:
    """Statistics `hits` (a reference at rank 1 is named first) and `ranked` (`metrics.ranking`).

    The references lie in `ranking`, best first; `meta` holds their fused `weights` and `ranks`, in the same order.
    Without them the order itself is the reference: only its first entry is at rank 1, weights are 1/rank.
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._values: list[dict[str, float]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        from sonogauge.metrics.ranking import ranking_values

        names = tuple(item.reference["ranking"])
        ranks = [int(one) for one in item.meta.get("ranks", "").split()] or list(range(1, len(names) + 1))
        weights = [float(one) for one in item.meta.get("weights", "").split()] or [1.0 / rank for rank in ranks]
        if not len(names) == len(ranks) == len(weights) > 0:
            raise IndexError(f"{len(names)} names, {len(ranks)} ranks and {len(weights)} weights")
        first = {name for name, rank in zip(names, ranks, strict=True) if rank == min(ranks)}
        given = tuple(parsed.value) if parsed.valid else ()
        values = ranking_values(given, first, dict(zip(names, weights, strict=True)))
        self._values.append(values)
        return {"correct": values["top_1"], **values}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.ranking import TOP_1, ranked_statistics

        rows = ranked_statistics(self._values)
        self._values = []
        return {"hits": _with_count(rows[:, TOP_1]), "ranked": rows}


class _PlaceCounter:
    """Statistics of places: any box of the target counts; the first alone beside it.

    `hits`, `hits_first` [hit, 1]; `hits_clear` the same over items whose reference is not within 0.02 of a band edge;
    `band_distance` [sum of distances in bands, items with a distance].
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._rows: list[tuple[float, float, float, float, float]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        from sonogauge.answers.place import band_distance

        places = item.reference["places"]
        hit = float(parsed.valid and parsed.value in places)
        first = float(parsed.valid and parsed.value == places[0])
        values = {"correct": hit, "correct_first": first}
        distances = [band_distance(parsed.value, place) for place in places] if parsed.valid else []
        known = [one for one in distances if one is not None]
        if known:
            values["band_distance"] = float(min(known))
        clear = float(item.meta.get("near_edge") != "1")
        self._rows.append((hit, first, clear, values.get("band_distance", 0.0), float(bool(known))))
        return values

    def take(self) -> dict[str, Array]:
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 5)
        self._rows = []
        ones = np.ones(len(rows))
        return {
            "hits": np.stack([rows[:, 0], ones], axis=-1),
            "hits_first": np.stack([rows[:, 1], ones], axis=-1),
            "hits_clear": np.stack([rows[:, 0] * rows[:, 2], rows[:, 2]], axis=-1),
            "band_distance": rows[:, 3:5],
        }


class _NumberCounter:
    """Statistics of a number on its declared range [low, high], scaled to 0-1, both sides clipped.

    `scaled_errors` [n, sum |e|, sum e, sum e^2, within tolerance] with e = reference - prediction; `natural_errors`
    [n, sum |e|, sum e^2], the same in the answer's unit; `absolute_errors` (order statistic, natural units, not
    clipped); `reference_out`, `prediction_out` [outside, n].
    A failure counts max(s, 1 - s), s = scaled reference (parameter failure_error "worst"), or 1 ("one").
    Over answered items alone, numbers as given: `pairs` and `number_pairs` (order statistic).
    Without a range (parameter open_range) a failure has no worst error: errors are those of answered items.
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._ranged = spec.low is not None and spec.high is not None and spec.high > spec.low
        if not self._ranged and not parameters.get("open_range"):
            raise ValueError(f"a number item needs a range, has {spec.low}..{spec.high}")
        self._low, self._high = (float(spec.low or 0.0), float(spec.high or 0.0)) if self._ranged else (0.0, 1.0)
        self._tolerance = float(spec.tolerance if spec.tolerance is not None else parameters.get("tolerance", 0.1))
        self._failure = str(parameters.get("failure_error", "worst"))
        self._rows: list[tuple[float, float, float, float, float, float, float]] = []
        # Taken off reference and prediction alike: it spares the sums of squares their rounding.
        self._shift = (self._low + self._high) / 2.0 if self._ranged else 0.0

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        reference = float(item.reference["number"])
        answered = parsed.valid and parsed.value != NULL
        value = float(parsed.value) if answered else math.nan
        if not self._ranged:
            error = reference - value
            self._rows.append((error, abs(error), 0.0, 0.0, float(answered), reference, value))
            return {"absolute_error": abs(error)} if answered else {}
        low, high = self._low, self._high
        width = high - low
        scaled = (min(max(reference, low), high) - low) / width
        if answered:
            error = scaled - (min(max(value, low), high) - low) / width
            natural = abs(reference - value)
            outside = float(not low <= value <= high)
        else:
            error = worst_error(scaled) if self._failure == "worst" else 1.0
            natural = abs(error) * width
            outside = 0.0
        outside_reference = float(not low <= reference <= high)
        self._rows.append((error, natural, outside_reference, outside, float(answered), reference, value))
        return {"scaled_error": error, "absolute_error": natural}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.agreement import natural_statistics, pair_statistics

        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 7)
        self._rows = []
        error, answered, ones = rows[:, 0], rows[:, 4] == 1.0, np.ones(len(rows))
        pairs = np.zeros((len(rows), 8))
        pairs[answered] = pair_statistics(rows[answered, 5], rows[answered, 6], self._shift)
        out = {"absolute_errors": rows[:, 1:2], "pairs": pairs, "number_pairs": rows[:, 5:7]}
        if self._ranged:
            out["scaled_errors"] = scaled_error_statistics(error, self._tolerance)
            out["natural_errors"] = natural_statistics(error * (self._high - self._low))
            out["reference_out"] = np.stack([rows[:, 2], ones], axis=-1)
            out["prediction_out"] = rows[:, 3:5]
        else:
            out["natural_errors"] = np.zeros((len(rows), 3))
            out["natural_errors"][answered] = natural_statistics(error[answered])
        return out


class _TextCounter:
    """Statistics of texts: n-gram matches and lengths (`bleu`, `bleu_sacre`), scores [sum, n] (`rouge_l`, …).

    A failure is an empty text. Facts (`clinical`) and whole matches (`matches`) are counted where the benchmark asks
    for a metric of them, BERTScore where the parameters name a local encoder.
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._encoder: str | None = parameters.get("bertscore_encoder")
        self._layer = int(parameters.get("bertscore_layer", 9))
        self._facts: list[list[float]] | None = [] if parameters.get("clinical") else None
        self._matches: list[float] | None = [] if parameters.get("matches") else None
        self._references: list[Sequence[str]] = []
        self._texts: list[str] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        from sonogauge.metrics.text import rouge_l_scores

        references = item.reference["texts"]
        text = str(parsed.value) if parsed.valid else ""
        self._references.append(references)
        self._texts.append(text)
        values = {"rouge_l": float(rouge_l_scores([references], [text])[0])}
        if self._matches is not None:
            from sonogauge.metrics.matches import matches_any

            values["text_match"] = float(parsed.valid and matches_any(text, references))
            self._matches.append(values["text_match"])
        if self._facts is not None:
            from sonogauge.metrics.clinical import COLUMNS, best_reference, item_values

            _, counts = best_reference(references, text)
            self._facts.append([counts[column] for column in COLUMNS])
            values |= item_values(counts)
        return values

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.bertscore import bertscore_scores
        from sonogauge.metrics.sacre import sacre_statistics
        from sonogauge.metrics.text import bleu_statistics, rouge_l_scores

        references, texts = self._references, self._texts
        self._references, self._texts = [], []
        out = {
            "bleu": bleu_statistics(references, texts),
            "bleu_sacre": sacre_statistics(references, texts),
            "rouge_l": _with_count(rouge_l_scores(references, texts)),
            "rouge_l_beta1": _with_count(rouge_l_scores(references, texts, beta=1.0)),
        }
        if self._matches is not None:
            out["matches"], self._matches = _with_count(np.array(self._matches, dtype=np.float64)), []
        if self._facts is not None:
            out["clinical"], self._facts = np.array(self._facts, dtype=np.float64), []
        if self._encoder is not None:
            out["bertscore"] = _with_count(bertscore_scores(references, texts, self._encoder, self._layer))
        return out


def _with_count(scores: Array) -> Array:
    return np.stack([scores, np.ones_like(scores)], axis=-1)


def _drawing(name: str, module: str = "grounded") -> Callable[[AnswerSpec, dict[str, Any]], Counter]:
    """Return the maker of a counter of a module of `score`, imported when the first item of its form is counted."""

    def make(spec: AnswerSpec, parameters: dict[str, Any]) -> Counter:
        counter: Counter = getattr(import_module(f"sonogauge.score.{module}"), name)(spec, parameters)
        return counter

    return make


COUNTERS: Final[dict[str, Callable[[AnswerSpec, dict[str, Any]], Counter]]] = {
    "choice": _ChoiceCounter,
    "multi_choice": _MultiChoiceCounter,
    "ranking": _RankingCounter,
    "place": _PlaceCounter,
    "number": _NumberCounter,
    "text": _TextCounter,
    "box": _drawing("BoxCounter", "box_counter"),
    "point": _drawing("PointCounter", "box_counter"),
    "mask": _drawing("MaskCounter"),
    "grounded": _drawing("GroundedCounter"),
    "grounded_report": _drawing("ReportCounter"),
}
