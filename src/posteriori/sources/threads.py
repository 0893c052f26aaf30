"""Work on parts of a table in threads, its results in order."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import joblib
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
T = TypeVar("T")


def in_order(parts: Iterable[Part], work: Callable[[Part], T], n_jobs: int) -> Generator[T, None, None]:
    """Yield work(part) of every part, in their order; a few parts a thread are taken up at a time, and no more."""
    if n_jobs == 1:
        yield from map(work, parts)
        return
    # Each part has a thread already: BLAS must not start more of its own.
    with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_jobs) as threads:
        begun: deque[Future[T]] = deque()
        try:
            for part in parts:
                begun.append(threads.submit(work, part))
                if len(begun) > 2 * n_jobs:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:  # after an error or Ctrl-C no further part is begun
            for future in begun:
                future.cancel()


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads a parameter `n_jobs` asks for: None or −1 is one a core."""
    return joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)


@functools.cache
def blas() -> ThreadpoolController:
    """Return what limits the threads of BLAS."""
    return ThreadpoolController()
