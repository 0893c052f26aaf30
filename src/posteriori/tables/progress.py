"""Report the progress of passes over rows to a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Begin = Callable[[str, int], Callable[[int], None]]

_callback: ContextVar[Begin | None] = ContextVar("progress callback", default=None)


@contextmanager
def report_progress(begin: Begin) -> Iterator[None]:
    """Call begin(what, n_rows) when a pass over rows begins here, and its result with the rows of each batch.

    `what` is "categories", "statistics" or "scores". The result of `begin` is called from the threads that read the
    batches. Passes that other threads begin are not reported.
    """
    token = _callback.set(begin)
    try:
        yield
    finally:
        _callback.reset(token)


def start_progress(what: str, n_rows: int) -> Callable[[int], None]:
    """Report that a pass begins; return the function to call with the number of rows of each batch that is done."""
    begin = _callback.get()
    return _ignore if begin is None else begin(what, n_rows)


def _ignore(n_rows: int) -> None:
    del n_rows
