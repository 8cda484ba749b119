"""Several sorted streams of record batches as one, in memory of a few batches."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa


def merge_sorted(streams: Sequence[Iterable[pa.RecordBatch]], key: str, rows: int = 64) -> Iterator[pa.Table]:
    """Yield tables of about `rows` rows, sorted by a text column by which each stream is sorted.

    >>> left = pa.RecordBatch.from_pydict({"id": ["a", "c"]})
    >>> right = pa.RecordBatch.from_pydict({"id": ["b"]})
    >>> [table.column("id").to_pylist() for table in merge_sorted([[left], [right]], "id")]
    [['a', 'b', 'c']]
    """
    if len(streams) == 1:
        for batch in streams[0]:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
        return
    waiting: list[pa.RecordBatch] = []
    count = 0
    last: tuple[pa.RecordBatch, int, int] | None = None  # a run of rows of one batch
    for _, _, batch, row in heapq.merge(*(_rows(stream, key, number) for number, stream in enumerate(streams))):
        if last is not None and last[0] is batch and last[2] == row:
            last = (batch, last[1], row + 1)
        else:
            if last is not None:
                waiting.append(last[0].slice(last[1], last[2] - last[1]))
            last = (batch, row, row + 1)
        count += 1
        if count >= rows:
            waiting.append(last[0].slice(last[1], last[2] - last[1]))
            yield pa.Table.from_batches(waiting)
            waiting, count, last = [], 0, None
    if last is not None:
        waiting.append(last[0].slice(last[1], last[2] - last[1]))
    if waiting:
        yield pa.Table.from_batches(waiting)


def _rows(stream: Iterable[pa.RecordBatch], key: str, number: int) -> Iterator[tuple[str, int, pa.RecordBatch, int]]:
    # The number of the stream settles ties, so that batches are never compared.
    for batch in stream:
        for row, value in enumerate(batch.column(key).to_pylist()):
            yield value, number, batch, row
