"""Matrix products of resampling are small: a second BLAS thread costs more in waiting than it brings."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no stubs

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which numpy's BLAS uses one thread (on a busy machine of two cores five times faster)."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context
