"""Listeners to the compilation of kernels, without Numba, so that the command line can listen before it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[], None]] = []


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


def notify() -> None:
    """Call every listener."""
    for listener in list(_listeners):
        listener()
