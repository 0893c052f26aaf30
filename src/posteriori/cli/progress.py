"""Progress bars on stderr: rows done, rows per second and time left, for each pass that takes over a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_DELAY = 1.0  # seconds of work before a bar appears

_WORDS = {"reading": "reading", "categories": "categories", "statistics": "statistics", "scores": "cross-validation"}


@contextmanager
def progress_bar(label: str, rows: int, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on stderr, and yield the function that advances it; yield None if stderr is not a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    bar = _Bar(label, rows)
    try:
        yield bar.advance
    finally:
        bar.close()


@contextmanager
def pass_bars() -> Iterator[None]:
    """Show a bar for each pass over the rows that the library makes in this thread."""
    from posteriori.tables.progress import report_progress

    if not sys.stderr.isatty():
        yield
        return
    bars: list[_Bar] = []

    def begin(what: str, rows: int) -> Callable[[int], None]:
        for bar in bars:
            bar.close()
        bars[:] = [_Bar(_WORDS[what], rows)]
        return bars[0].advance

    try:
        with report_progress(begin):
            yield
    finally:
        for bar in bars:
            bar.close()


class _Bar:
    """A bar that appears when the work has taken a second; any thread may advance it."""

    def __init__(self, label: str, rows: int) -> None:
        self._label, self._rows, self._done = label, rows, 0
        self._begun = time.monotonic()
        self._shown: Progress | None = None
        self._closed = False
        self._lock = threading.Lock()

    def advance(self, rows: int) -> None:
        """Count some rows as done."""
        with self._lock:
            self._done += rows
            if self._shown is not None:
                self._shown.advance(self._shown.task_ids[0], rows)
            elif not self._closed and time.monotonic() - self._begun >= _DELAY:
                self._shown = _new_progress(self._label, self._begun)
                self._shown.start()
                self._shown.add_task(self._label, total=self._rows, completed=self._done)

    def close(self) -> None:
        """Remove the bar from the screen."""
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()
                self._shown = None


def _new_progress(label: str, begun: float) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.completed / max(time.monotonic() - begun, 1e-9):,.0f}/s")

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn("rows"), Rate(), TimeLeft())
    # stdout may be read by another program: the bar must not change it.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
