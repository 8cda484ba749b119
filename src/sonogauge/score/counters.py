"""What each answer form counts: per-item statistics of a reply against a reference, under `strict`.

A counter sees one (item, parsed reply) at a time and yields arrays for `metrics.sums.GroupSums`. Every failure counts
as wrong, or as the worst in-range error, and keeps its reason elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from sonogauge.answers import NULL, AnswerSpec, Parsed
from sonogauge.items import Item

Array = npt.NDArray[np.float64]


class Counter(Protocol):
    """Statistics of one cell, collected item by item and taken out in chunks."""

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        """Count one item; return its per-item values for the score_items table."""
        ...

    def take(self) -> dict[str, Array]:
        """Return the statistics of the items added since the last call, shape (items, k) each."""
        ...


class _ChoiceCounter:
    """Statistics `hits` [hit, 1] and `confusion` (options x (options + 1), last column = no valid answer)."""

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._index = {option: number for number, option in enumerate(spec.options)}
        self._pairs: list[tuple[int, int]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        reference = self._index[item.reference["choices"][0]]
        predicted = self._index[parsed.value] if parsed.valid else len(self._index)
        self._pairs.append((reference, predicted))
        return {"correct": float(reference == predicted)}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.choice import confusion_statistics, hit_statistics

        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self._pairs = []
        confusion = confusion_statistics(pairs[:, 0], pairs[:, 1], range(len(self._index)))
        return {"hits": hit_statistics(pairs[:, 0] == pairs[:, 1]), "confusion": confusion}


class _MultiChoiceCounter:
    """Statistic `hits`: the set of options given equals the set of right ones."""

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._hits: list[float] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        hit = float(parsed.valid and set(parsed.value) == set(item.reference["choices"]))
        self._hits.append(hit)
        return {"correct": hit}

    def take(self) -> dict[str, Array]:
        hits, self._hits = np.array(self._hits, dtype=np.float64), []
        return {"hits": np.stack([hits, np.ones_like(hits)], axis=-1)}


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

    `scaled_errors` [n, sum |e|, sum e, sum e^2, within tolerance] with e = reference - prediction;
    `absolute_errors` (order statistic, natural units, not clipped); `reference_out`, `prediction_out` [outside, n].
    A failure counts max(s, 1 - s), s = scaled reference (parameter failure_error "worst"), or 1 ("one").
    """

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        if spec.low is None or spec.high is None or not spec.high > spec.low:
            raise ValueError(f"a number item needs a range, has {spec.low}..{spec.high}")
        self._low, self._high = spec.low, spec.high
        self._tolerance = float(spec.tolerance if spec.tolerance is not None else parameters.get("tolerance", 0.1))
        self._failure = str(parameters.get("failure_error", "worst"))
        self._rows: list[tuple[float, float, float, float, float]] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        low, high = self._low, self._high
        width = high - low
        reference = float(item.reference["number"])
        scaled = (min(max(reference, low), high) - low) / width
        if parsed.valid and parsed.value != NULL:
            value = float(parsed.value)
            error = scaled - (min(max(value, low), high) - low) / width
            natural = abs(reference - value)
            outside, answered = float(not low <= value <= high), 1.0
        else:
            # Signed so that the bias points to the bound the worst answer lies on.
            error = (scaled if scaled >= 0.5 else scaled - 1.0) if self._failure == "worst" else 1.0
            natural = abs(error) * width
            outside, answered = 0.0, 0.0
        self._rows.append((error, natural, float(not low <= reference <= high), outside, answered))
        return {"scaled_error": error, "absolute_error": natural}

    def take(self) -> dict[str, Array]:
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 5)
        self._rows = []
        error, ones = rows[:, 0], np.ones(len(rows))
        # The margin keeps an error of exactly the tolerance within it in binary arithmetic.
        within = (np.abs(error) <= self._tolerance + 1e-12).astype(np.float64)
        return {
            "scaled_errors": np.stack([ones, np.abs(error), error, error**2, within], axis=-1),
            "absolute_errors": rows[:, 1:2],
            "reference_out": np.stack([rows[:, 2], ones], axis=-1),
            "prediction_out": rows[:, 3:5],
        }


class _TextCounter:
    """Statistics of texts: `bleu` (n-gram matches and lengths) and `rouge_l` [sum, n]; a failure is an empty text."""

    def __init__(self, spec: AnswerSpec, parameters: dict[str, Any]) -> None:
        self._references: list[Sequence[str]] = []
        self._texts: list[str] = []

    def add(self, item: Item, parsed: Parsed) -> dict[str, float]:
        from sonogauge.metrics.text import rouge_l_scores

        references = item.reference["texts"]
        text = str(parsed.value) if parsed.valid else ""
        self._references.append(references)
        self._texts.append(text)
        return {"rouge_l": float(rouge_l_scores([references], [text])[0])}

    def take(self) -> dict[str, Array]:
        from sonogauge.metrics.text import bleu_statistics, rouge_l_scores

        rouge = rouge_l_scores(self._references, self._texts)
        bleu = bleu_statistics(self._references, self._texts)
        self._references, self._texts = [], []
        return {"bleu": bleu, "rouge_l": np.stack([rouge, np.ones_like(rouge)], axis=-1)}


COUNTERS: Final[dict[str, Callable[[AnswerSpec, dict[str, Any]], Counter]]] = {
    "choice": _ChoiceCounter,
    "multi_choice": _MultiChoiceCounter,
    "place": _PlaceCounter,
    "number": _NumberCounter,
    "text": _TextCounter,
}
