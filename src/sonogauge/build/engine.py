"""Where the stages run: threads of this process, or a Ray cluster; the same functions, the same order of results."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Final, Protocol

import pyarrow as pa

from sonogauge._errors import BadInput

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]

_WINDOW: Final = 16  # batches that lie in the cluster's store at once
_ATTEMPTS: Final = 3


class Engine(Protocol):
    """Maps a function over record batches; results come in the order of the batches, memory is a few batches."""

    name: str

    def map_batches(self, function: BatchFunction, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield `function(batch)` for each batch."""
        ...

    def close(self) -> None:
        """Give back threads or the connection."""
        ...


class LocalEngine:
    """Threads of this process; the work of a stage is done in libraries that release the lock of the interpreter."""

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or max(2, os.cpu_count() or 2)
        self._pool = ThreadPoolExecutor(self._workers)

    def map_batches(self, function: BatchFunction, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield `function(batch)` for each batch, at most twice as many at work as there are threads."""
        waiting: deque[Future[pa.RecordBatch]] = deque()
        source = iter(batches)
        try:
            while True:
                for batch in islice(source, 2 * self._workers - len(waiting)):
                    waiting.append(self._pool.submit(function, batch))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)


class RayEngine:
    """A Ray cluster through Ray Data.

    address: `ray://host:port`; None starts a cluster on this machine, or joins the one that RAY_ADDRESS names. Batches
    travel from this process to the cluster, so no file system need be shared. A task whose worker dies is repeated by
    Ray; a window of batches that fails all the same is sent again.
    """

    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import ray
            import ray.data
        except ModuleNotFoundError as error:
            raise BadInput("Ray is not installed", fix="pip install 'sonogauge[ray]'") from error
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
            if address is None and "RAY_ADDRESS" not in os.environ:
                options |= {"address": "local", "include_dashboard": False, "num_cpus": workers}
            try:
                ray.init(**({"address": address} if address else {}), **options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise BadInput(f"no Ray cluster ({error})", field="engine", fix="give ray://HOST:PORT") from error
        # Ray Data works inside a cluster only; from outside, a task of the cluster drives it.
        self._outside = address is not None

    def map_batches(self, function: BatchFunction, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield `function(batch)` for each batch that has rows."""
        source = iter(batches)
        while window := list(islice(source, _WINDOW)):
            yield from self._map_window(function, window)

    def _map_window(self, function: BatchFunction, window: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        ray = self._ray
        tables = [pa.Table.from_batches([batch]) for batch in window]
        for attempt in range(_ATTEMPTS):
            try:
                if self._outside:
                    found = ray.get(ray.remote(num_cpus=0)(_map_tables).remote(function, tables))
                else:
                    found = _map_tables(function, tables)
                return [batch for table in found for batch in table.combine_chunks().to_batches()]
            except ray.exceptions.RayError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Leave the cluster, and stop it if this engine started it."""
        if self._own:
            self._ray.shutdown()


def _map_tables(function: BatchFunction, tables: list[pa.Table]) -> list[pa.Table]:
    """Map a function over tables with Ray Data, one block each, in their order; run inside the cluster."""
    import ray.data

    def work(table: pa.Table) -> pa.Table:
        return pa.Table.from_batches([function(batch) for batch in table.combine_chunks().to_batches()])

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    mapped = ray.data.from_arrow(tables).map_batches(work, batch_format="pyarrow", batch_size=None)
    return list(mapped.iter_batches(batch_size=None, batch_format="pyarrow"))


def make_engine(name: str = "local", workers: int | None = None) -> Engine:
    """Return the engine of a name: "local", "ray" (of this machine) or "ray://HOST:PORT".

    Raises:
        BadInput: another name, Ray not installed or not to be reached.
    """
    if name == "local":
        return LocalEngine(workers)
    if name == "ray":
        return RayEngine(None, workers)
    if name.startswith("ray://"):
        return RayEngine(name, workers)
    raise BadInput(f"no engine '{name}'", field="engine", fix="known: local, ray, ray://HOST:PORT")
