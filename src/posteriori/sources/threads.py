"""Work on parts of a table in threads, and return the results in order."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

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
    with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_jobs) as threads:
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


@functools.cache
def blas() -> ThreadpoolController:
    """Return the controller that limits the threads of BLAS."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
