"""Progress on stderr: one bar for all work of a command on a terminal, and a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from posteriori import compilation
from posteriori.cli.work_estimate import WorkEstimate

if TYPE_CHECKING:
    from rich.progress import Progress

_DELAY = 1.0  # seconds of work before a bar appears
_WIDE = 120  # columns of a terminal that shows the best candidate beside the bar
_PERIOD = 5.0  # seconds between lines, and before the first one


def _clock() -> float:
    """Return seconds without those of compilation, which are not repeated in the rest of the work."""
    return time.monotonic() - compilation.seconds()


@contextmanager
def progress_bar(label: str, rows: int, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Show the progress of one pass over rows, and yield the function that advances it; None if it is not wanted."""
    if not wanted:
        yield None
        return
    estimate = WorkEstimate(_clock)
    advance = estimate.begin(label, rows)
    with _shown(estimate):
        yield advance


@contextmanager
def work_progress(wanted: bool = True) -> Iterator[None]:
    """Show the progress of all steps that the library reports in this thread."""
    if not wanted:
        yield
        return
    from posteriori.tables.progress import report_progress

    estimate = WorkEstimate(_clock)
    with report_progress(estimate.begin, estimate.plan, estimate.score), _shown(estimate):
        yield


@contextmanager
def _shown(estimate: WorkEstimate) -> Iterator[None]:
    ended = threading.Event()
    show = _show_bar if sys.stderr.isatty() else _print_lines
    thread = threading.Thread(target=show, args=(estimate, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _print_lines(estimate: WorkEstimate, ended: threading.Event) -> None:
    """Print a line with the step, the share that is done and the time left, until the work ends."""
    while not ended.wait(_PERIOD):
        print(line_of(estimate), file=sys.stderr, flush=True)


def line_of(estimate: WorkEstimate) -> str:
    """Return the step, the share that is done, the time left and the best candidate so far as one line."""
    share = f", {estimate.share:.0%} done" if estimate.share else ""
    best = f"; {estimate.best}" if estimate.best else ""
    return f"{estimate.title}{share}{_time_left(estimate, ', ')}{best}"


def _time_left(estimate: WorkEstimate, before: str = "") -> str:
    """Return the time left as text; none while it is unknown, or while kernels are compiled."""
    if compilation.is_running():
        return f"{before}compiling"
    left = estimate.seconds_left
    return "" if left is None else f"{before}about {duration(left)} left"


def duration(seconds: float) -> str:
    """Write a number of seconds as minutes and seconds."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60:02d} min"


def _show_bar(estimate: WorkEstimate, ended: threading.Event) -> None:
    """Show a bar until the work ends."""
    if ended.wait(_DELAY):
        return
    bar = _new_bar(estimate)
    with bar:
        while not ended.wait(0.1):
            bar.update(bar.task_ids[0], completed=estimate.share)


def _new_bar(estimate: WorkEstimate) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn
    from rich.text import Text

    class Title(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(estimate.title)

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_time_left(estimate))

    class Best(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(estimate.best)

    # stdout may be read by another program: the bar must not change it.
    console = Console(stderr=True)
    columns: list[ProgressColumn] = [Title(), BarColumn(), TaskProgressColumn(), TimeLeft()]
    if console.width >= _WIDE:
        columns.append(Best())
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    bar.add_task("", total=1.0)
    return bar
