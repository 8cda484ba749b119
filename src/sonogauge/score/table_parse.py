"""Parsing the predictions of a table, in one process or several, in order and with bounded memory."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from sonogauge.answers import FORMS, AnswerSpec, Parsed
from sonogauge.score.table_rows import Row, as_text

CHUNK: Final = 8_192
# Chunks on their way for each process.
_AHEAD: Final = 2
_PLAIN_NUMBER: Final = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")
_REMEMBERED: Final = 40
# A larger number is none that the parser of numbers reads.
_LARGEST_PREDICTION: Final = 1e100


def parse_rows(rows: Iterator[Row], spec: AnswerSpec, processes: int = 1) -> Iterator[tuple[Row, Parsed]]:
    """Yield each row with its prediction read strictly; no prediction is a failure with the reason `missing`.

    processes: that parse beside this one, which reads and counts; they import the main module again.
    """
    chunks = iter(lambda: list(islice(rows, CHUNK)), [])
    if processes < 2:
        reader = _Reader(spec)
        for chunk in chunks:
            values, reasons = reader.read([(row.prediction, row.options) for row in chunk])
            yield from zip(chunk, map(Parsed, values, reasons), strict=True)
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import get_context

    waiting: deque[tuple[list[Row], Future[tuple[list[Any], list[str | None]]]]] = deque()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_start, initargs=(spec,)) as pool:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(_read, [(row.prediction, row.options) for row in chunk])))
            if len(waiting) > _AHEAD * processes:
                yield from _finished(waiting)
        while waiting:
            yield from _finished(waiting)


def _finished(waiting: deque[tuple[list[Row], Any]]) -> Iterator[tuple[Row, Parsed]]:
    chunk, future = waiting.popleft()
    values, reasons = future.result()
    yield from zip(chunk, map(Parsed, values, reasons), strict=True)


_reader: _Reader | None = None


def _start(spec: AnswerSpec) -> None:
    # One reader lives as long as its process; the specification is sent once, not with each chunk.
    global _reader
    _reader = _Reader(spec)


def _read(said: list[tuple[Any, tuple[str, ...]]]) -> tuple[list[Any], list[str | None]]:
    assert _reader is not None
    return _reader.read(said)


class _Reader:
    """Reads predictions of one answer form; short ones are remembered, for many are the same few words."""

    _SIZE: Final = 4096

    def __init__(self, spec: AnswerSpec) -> None:
        self._spec = spec
        self._parse = FORMS.load(spec.form).parse
        self._seen: dict[str, Parsed] = {}

    def read(self, said: list[tuple[Any, tuple[str, ...]]]) -> tuple[list[Any], list[str | None]]:
        """Return values and reasons of predictions, each with the options of its row (empty = those of all rows)."""
        values: list[Any] = []
        reasons: list[str | None] = []
        for prediction, options in said:
            parsed = self._one(prediction, options)
            values.append(parsed.value)
            reasons.append(parsed.reason)
        return values, reasons

    def _one(self, prediction: Any, options: tuple[str, ...]) -> Parsed:
        if prediction is None or (isinstance(prediction, float) and math.isnan(prediction)):
            return Parsed(None, "missing")
        text = prediction if isinstance(prediction, str) else self._text(prediction)
        if options:
            return self._of_row(text, options)
        if len(text) > _REMEMBERED:
            return self._parse(text, self._spec)
        found = self._seen.get(text)
        if found is None:
            found = self._fresh(text)
            if len(self._seen) >= self._SIZE:
                self._seen.clear()
            self._seen[text] = found
        return found

    def _text(self, prediction: Any) -> str:
        if self._spec.form == "number" and isinstance(prediction, float):
            return repr(prediction)
        if isinstance(prediction, list | tuple):
            return ", ".join(as_text(one) for one in prediction)
        return as_text(prediction)

    def _fresh(self, text: str) -> Parsed:
        if self._spec.form == "number" and _PLAIN_NUMBER.fullmatch(text.strip()):
            number = float(text)
            if abs(number) <= _LARGEST_PREDICTION:
                return Parsed(number)
        return self._parse(text, self._spec)

    def _of_row(self, text: str, options: tuple[str, ...]) -> Parsed:
        letters = self._spec.options[: len(options)]
        parsed = self._parse(text, AnswerSpec("choice", options, letters))
        return Parsed(letters[options.index(parsed.value)]) if parsed.valid else parsed
