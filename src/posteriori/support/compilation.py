"""Listeners to the compilation of kernels, without Numba, so that the command line can listen at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[], None]] = []
_lock = threading.Lock()
_depth = 0  # of the compilations that run: a kernel compiles the kernels that it calls
_begun = 0.0
_total = 0.0
_count = 0  # of the compilations that have begun, each with those inside it


@contextmanager
def notified(listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener` each time the compilation of a kernel begins; loading a kernel from the cache is none.

    It is called from the thread that compiles.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def begin() -> None:
    """Note that the compilation of a kernel begins, and call every listener."""
    global _depth, _begun, _count
    with _lock:
        if _depth == 0:
            _begun = time.monotonic()
            _count += 1
        _depth += 1
    for listener in list(_listeners):
        listener()


def end() -> None:
    """Note that the compilation that began last has ended."""
    global _depth, _total
    with _lock:
        _depth -= 1
        if _depth == 0:
            _total += time.monotonic() - _begun


def is_running() -> bool:
    """Return whether a kernel is being compiled."""
    return _depth > 0


def count() -> int:
    """Return how many kernels this process has begun to compile; those that they call are part of them."""
    return _count


def seconds() -> float:
    """Return how many seconds this process has compiled so far."""
    with _lock:
        return _total + (time.monotonic() - _begun if _depth else 0.0)
