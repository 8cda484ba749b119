"""The baselines: what can be had without reading the image, and the oracle that proves the chain.

One function answers for all of them, so that a run of `baseline/NAME` and the rows beside a score agree to the letter.

| baseline    | choice, multi_choice                     | place              | number                             | text                        |
|-------------|------------------------------------------|--------------------|------------------------------------|-----------------------------|
| random      | uniform over the options                 | uniform over ten   | uniform over the range             | a random training text, else empty |
| majority    | most frequent of the same task and data set | same            | median of the same task and data set | most frequent text        |
| prior       | offered option most frequent in the task | same               | median scaled value of the task    | most frequent of the task   |
| constant    | first option                             | center             | training median, else range centre | a normal examination        |
| not-visible | the option that says absence, else the first | not visible    | `null` where offered, else the low end | "No abnormality is visible." |
| oracle      | the reference                            | its first place    | the reference                      | its first text              |

"Frequent" counts the training part where it knows the cell, else the very items that are scored: the row is then an
upper bound (`is_upper_bound`). Forms that draw have their own table, see `drawing`. A ranking is three options: a
random order, by frequency, or as offered; a random multi-choice is uniform over the non-empty sets. Ties go to the option shown first, among texts to the first in sorted order. A random
draw depends on seed and item alone, so a subset of items gets the same replies. Other forms have no baseline (None).
"""  # noqa: E501

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from statistics import median
from typing import Final

from sonogauge._errors import BadInput
from sonogauge.answers import NULL
from sonogauge.answers.place import NOT_VISIBLE, PLACES
from sonogauge.items import Item
from sonogauge.models.drawing import DRAWING, drawing_reply

BASELINES: Final = ("random", "majority", "prior", "constant", "not-visible", "oracle")
NON_READING: Final = BASELINES[:-1]

CENTER: Final = "center"
NORMAL_EXAMINATION: Final = (
    "The examined structures are normal in size, shape and echotexture. No focal lesion is seen."
)
NOTHING_VISIBLE: Final = "No abnormality is visible."
# What an option says when there is nothing: whole words, the first pattern that any option matches wins.
ABSENCE: Final = (
    r"not (visible|seen|present|detected)",
    r"(none|nothing|absent|negative)",
    r"no\b",
    r"non\w*",
    r"(normal|healthy|unaffected)",
)


@dataclass
class _Seen:
    """The references of one cell or task, counted."""

    names: Counter[str] = field(default_factory=Counter)
    numbers: list[float] = field(default_factory=list)
    scaled: list[float] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)

    def add(self, item: Item) -> None:
        reference = item.reference
        first = (reference.get("ranking") or ())[:1]
        self.names.update(
            dict.fromkeys([*(reference.get("choices") or ()), *(reference.get("places") or ()), *first], 1)
        )
        if (number := reference.get("number")) is not None:
            self.numbers.append(number)
            if (limits := _limits(item)) is not None and limits[1] > limits[0]:
                self.scaled.append((number - limits[0]) / (limits[1] - limits[0]))
        if texts := reference.get("texts"):
            self.texts[texts[0]] += 1

    @property
    def empty(self) -> bool:
        return not (self.names or self.numbers or self.texts)


class _Past:
    """References by (task, dataset) and by task: of the training part where it has any, else of the items."""

    def __init__(self, items: Sequence[Item], train: Sequence[Item]) -> None:
        self._train = _count(train)
        self._items = _count(items)

    def cell(self, item: Item) -> _Seen:
        return self._find((item.task, item.dataset))

    def task(self, item: Item) -> _Seen:
        return self._find((item.task, None))

    def trained(self, item: Item) -> _Seen:
        return self._train.get((item.task, item.dataset), _Seen())

    def _find(self, key: tuple[str, str | None]) -> _Seen:
        seen = self._train.get(key)
        if seen is None or seen.empty:
            seen = self._items.get(key, _Seen())
        return seen


def _count(items: Iterable[Item]) -> dict[tuple[str, str | None], _Seen]:
    counts: dict[tuple[str, str | None], _Seen] = {}
    for item in items:
        if item.reference_state == "ok":
            for key in ((item.task, item.dataset), (item.task, None)):
                counts.setdefault(key, _Seen()).add(item)
    return counts


def baseline_replies(name: str, items: Sequence[Item], train: Sequence[Item], seed: int = 0) -> list[str | None]:
    """Return the reply texts of a baseline, in the order of `items`; None where it is not defined for the form.

    Args:
        name: one of `BASELINES`.
        items: the items to answer; also the source of frequencies where `train` knows nothing of a cell.
        train: items of the training part, empty if there is none.
        seed: of the random baseline.

    Raises:
        BadInput: no such baseline.
    """
    answer = _ANSWERS.get(name)
    if answer is None:
        raise BadInput(f"no baseline '{name}'", fix="known: " + ", ".join(BASELINES))
    past = _Past(items, train)
    return [
        drawing_reply(name, item)
        if item.answer.form in DRAWING
        else answer(item, past, Random(f"{seed}/{item.item_id}"))
        if _defined(item)
        else None
        for item in items
    ]


def is_upper_bound(name: str, train: Sequence[Item], task: str | None = None, dataset: str | None = None) -> bool:
    """Tell whether a baseline had to look at the references it is scored on.

    Asked for a task (and data set), the answer is for that cell; else it is whether any training item exists.
    """
    if name not in ("majority", "prior"):
        return False
    known = (
        one
        for one in train
        if one.reference_state == "ok"
        and (task is None or one.task == task)
        and (dataset is None or name == "prior" or one.dataset == dataset)
    )
    return next(known, None) is None


def format_number(value: float) -> str:
    """Return the shortest decimal text that reads back as the same number, without an exponent.

    >>> format_number(12.0), format_number(1e-5), format_number(0.1)
    ('12', '0.00001', '0.1')
    """
    text = format(Decimal(repr(float(value))), "f")
    return text.removesuffix(".0")


def _defined(item: Item) -> bool:
    form = item.answer.form
    if form in ("choice", "multi_choice", "ranking"):
        return bool(item.answer.options)
    return form in ("place", "number", "text")


def _options(item: Item) -> Sequence[str]:
    return item.answer.options or PLACES if item.answer.form == "place" else item.answer.options


def _limits(item: Item) -> tuple[float, float] | None:
    low, high = item.answer.low, item.answer.high
    return None if low is None or high is None else (low, high)


def _most_frequent(item: Item, counts: Counter[str]) -> str:
    return max(_options(item), key=lambda option: counts[option])


def _by_frequency(item: Item, counts: Counter[str]) -> list[str]:
    return sorted(_options(item), key=lambda option: -counts[option])


def _ranked(item: Item, order: Sequence[str]) -> str:
    """Return a numbered list of the first three."""
    letter_of = dict(zip(item.answer.options, item.answer.letters, strict=False))
    return "\n".join(f"{place}. {letter_of.get(name, name)}" for place, name in enumerate(order[:3], start=1))


def _most_frequent_text(texts: Counter[str]) -> str:
    return min(texts, key=lambda text: (-texts[text], text), default="")


def _centre(item: Item) -> str | None:
    limits = _limits(item)
    return None if limits is None else format_number((limits[0] + limits[1]) / 2)


def _random(item: Item, past: _Past, draw: Random) -> str | None:
    match item.answer.form:
        case "text":
            texts = sorted(past.trained(item).texts.elements())
            return draw.choice(texts) if texts else ""
        case "number":
            limits = _limits(item)
            return None if limits is None else format_number(float(f"{draw.uniform(*limits):.6g}"))
        case "multi_choice":
            # Uniform over the non-empty sets, whose expected score is known.
            subset = draw.randrange(1, 1 << len(item.answer.options))
            return _join(item, [option for place, option in enumerate(item.answer.options) if subset >> place & 1])
        case "ranking":
            return _ranked(item, draw.sample(item.answer.options, len(item.answer.options)))
        case _:
            return draw.choice(_options(item))


def _majority(item: Item, past: _Past, draw: Random) -> str | None:
    seen = past.cell(item)
    match item.answer.form:
        case "text":
            return _most_frequent_text(seen.texts)
        case "number":
            return format_number(median(seen.numbers)) if seen.numbers else _centre(item)
        case "ranking":
            return _ranked(item, _by_frequency(item, seen.names))
        case _:
            return _most_frequent(item, seen.names)


def _prior(item: Item, past: _Past, draw: Random) -> str | None:
    seen = past.task(item)
    match item.answer.form:
        case "text":
            return _most_frequent_text(seen.texts)
        case "number":
            limits = _limits(item)
            if limits is None or not seen.scaled:
                return format_number(median(seen.numbers)) if seen.numbers else _centre(item)
            return format_number(limits[0] + median(seen.scaled) * (limits[1] - limits[0]))
        case "ranking":
            return _ranked(item, _by_frequency(item, seen.names))
        case _:
            return _most_frequent(item, seen.names)


def _constant(item: Item, past: _Past, draw: Random) -> str | None:
    match item.answer.form:
        case "text":
            return NORMAL_EXAMINATION
        case "number":
            numbers = past.trained(item).numbers
            return format_number(median(numbers)) if numbers else _centre(item)
        case "place":
            return CENTER
        case "ranking":
            return _ranked(item, item.answer.options)
        case _:
            return item.answer.options[0]


def _not_visible(item: Item, past: _Past, draw: Random) -> str | None:
    match item.answer.form:
        case "text":
            return NOTHING_VISIBLE
        case "number":
            if NULL in item.answer.options:
                return NULL
            return None if item.answer.low is None else format_number(item.answer.low)
        case "place":
            return NOT_VISIBLE
        case "ranking":
            absent = absence_option(item.answer.options)
            return _ranked(item, [absent, *(option for option in item.answer.options if option != absent)])
        case _:
            return absence_option(item.answer.options)


def absence_option(options: Sequence[str]) -> str:
    """Return the option that says there is nothing, else the first.

    >>> absence_option(("Mild OA", "No OA")), absence_option(("benign", "malignant")), absence_option(("None", "other"))
    ('No OA', 'benign', 'None')
    """
    words = [re.sub(r"[\W_]+", " ", option.casefold()).strip() for option in options]
    for pattern in ABSENCE:
        for option, text in zip(options, words, strict=True):
            if re.search(rf"\b{pattern}\b", text):
                return option
    return options[0]


def _oracle(item: Item, past: _Past, draw: Random) -> str | None:
    if item.reference_state != "ok":
        return NULL if item.reference_state == "null" else ""
    reference = item.reference
    match item.answer.form:
        case "number":
            number = reference.get("number")
            return "" if number is None else format_number(number)
        case "text":
            return _first(reference.get("texts"))
        case "place":
            return _first(reference.get("places"))
        case "multi_choice":
            return _join(item, list(reference.get("choices") or ()))
        case "ranking":
            return _ranked(item, reference.get("ranking") or ())
        case _:
            return _first(reference.get("choices"))


def _first(values: Sequence[str] | None) -> str:
    return values[0] if values else ""


def _join(item: Item, chosen: Sequence[str]) -> str:
    spec = item.answer
    if spec.letters:
        letter_of = dict(zip(spec.options, spec.letters, strict=True))
        chosen = [letter_of.get(option, option) for option in chosen]
    return ", ".join(chosen)


_ANSWERS: Final[dict[str, Callable[[Item, _Past, Random], str | None]]] = {
    "random": _random,
    "majority": _majority,
    "prior": _prior,
    "constant": _constant,
    "not-visible": _not_visible,
    "oracle": _oracle,
}


class Baseline:
    """A baseline as a model of the run (`baseline/NAME`); takes no options."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._baseline = name.partition("/")[2]
        if self._baseline not in _ANSWERS:
            raise BadInput(f"no baseline '{self._baseline}'", fix="known: " + ", ".join(BASELINES))

    def replies(self, items: Sequence[Item], train: Sequence[Item], seed: int) -> list[str | None]:
        """Return the replies of `baseline_replies`."""
        return baseline_replies(self._baseline, items, train, seed)
