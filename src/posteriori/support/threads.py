"""Threads: how many, work on parts in their order, and those of BLAS."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
T = TypeVar("T")


def in_order(parts: Iterable[Part], work: Callable[[Part], T], n_jobs: int) -> Generator[T, None, None]:
    """Yield work(part) of every part, in their order; at most two parts per thread are read ahead."""
    if n_jobs == 1:
        yield from map(work, parts)
        return
    # Each part has a thread already, so BLAS must not start threads of its own.
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as threads:
        started: deque[Future[T]] = deque()
        try:
            for part in parts:
                started.append(threads.submit(work, part))
                if len(started) > 2 * n_jobs:
                    yield started.popleft().result()
            while started:
                yield started.popleft().result()
        finally:  # after an error or Ctrl-C no further part starts
            for future in started:
                future.cancel()


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for a parameter `n_jobs`: None or −1 is one per core."""
    import joblib

    return int(joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs))


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread; it begins with the call."""
    limited: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return limited


@functools.cache
def _blas() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
