"""Who is told how far a pass over rows has come, whatever is being learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Begin = Callable[[str, int], Callable[[int], None]]

_watching: ContextVar[Begin | None] = ContextVar("watching", default=None)


@contextmanager
def report_progress(begin: Begin) -> Iterator[None]:
    """Have begin(what, n_rows) called as each pass over rows begins, and what it returns with the rows of each batch.

    What is done is "categories", "statistics" or "scores". Batches are told of from the threads that they are read by;
    passes that other threads begin are not told of.
    """
    token = _watching.set(begin)
    try:
        yield
    finally:
        _watching.reset(token)


def start_progress(what: str, n_rows: int) -> Callable[[int], None]:
    """Return the function to call with the number of rows of each batch that is done, as a pass begins."""
    begin = _watching.get()
    return _nobody if begin is None else begin(what, n_rows)


def _nobody(n_rows: int) -> None:
    del n_rows
