"""Detect a process that was forked after polars had started its threads: a fork does not copy threads."""

from __future__ import annotations

import os
from pathlib import Path

_TASKS = Path("/proc/self/task")  # the threads of this process, on Linux
_lost: list[str] = []  # threads of polars that only the parent process has


def _polars_threads() -> list[str]:
    """Return the names of the threads of polars; one placeholder where the system does not list threads."""
    if not _TASKS.is_dir():
        return ["polars"]
    names = []
    for task in _TASKS.iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # the thread has ended
            continue
    return [name for name in names if name.startswith("polars-") and name.removeprefix("polars-").isdigit()]


if hasattr(os, "register_at_fork"):
    _inherited: list[str] = []

    def _before() -> None:
        _inherited[:] = _polars_threads()

    def _in_child() -> None:
        _lost.extend(_inherited)

    os.register_at_fork(before=_before, after_in_child=_in_child)


def require_threads(what: str) -> None:
    """Raise RuntimeError where polars would wait forever for threads that a fork did not copy.

    Parameters
    ----------
    what : str
        The work that needs threads, as the subject of a sentence.
    """
    if _lost:
        raise RuntimeError(
            f"{what} needs the threads of polars, and this process was forked after they had started; "
            'start processes by "spawn" or "forkserver" (multiprocessing.set_start_method)'
        )
