"""Output of a command on stderr: one sentence per error, one line per warning, and one bar for all its work."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from posteriori.cli.terminal import unwrapped, without_controls
from posteriori.cli.wording import in_options
from posteriori.user_warnings import ApproximationWarning

if TYPE_CHECKING:
    from rich.progress import Progress

    from posteriori.tables.progress import Step


_CANDIDATE = " candidate"
_ALMOST = 0.99  # the largest share that is shown before the work ends
_ENOUGH = 0.05  # of a step, from which its own speed is known, and of all steps, from which the time left is
_DELAY = 1.0  # seconds of work before a bar appears
_WIDE = 120  # columns of a terminal that shows the best candidate beside the bar
_STARTING = "starting"
_PERIOD = 5.0  # seconds between lines, and before the first one


class UserError(Exception):
    """An error in the input; the message is one sentence for the user."""


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn ValueError and TypeError into UserError. Use it only around calls of the library."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UserError(one_line(str(error))) from error


def sentence_of(error: Exception) -> str:
    """Return the message for the user about unsuitable input, a file that cannot be used, or exhausted memory."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table and as many classes"
    if isinstance(error, OSError) and error.strerror:
        named = f"cannot use {os.fspath(error.filename)!r}: " if error.filename else ""
        return one_line(f"{named}{error.strerror.lower()}")
    return in_options(one_line(str(error)))


def one_line(text: str) -> str:
    """Return the text on one line: each run of white space becomes one space."""
    return " ".join(text.split())


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings to users as ``warning: …``, each message once, and one of those on approximations."""
    printed: set[str] = set()
    approximations: list[str] = []

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, ApproximationWarning):  # it names other columns in each batch and for each model
            approximations.append(str(message))
            if len(approximations) > 1:
                return
        warn(str(message), printed)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def warn(message: str, printed: set[str] | None = None) -> None:
    """Print one line to stderr, unless it is in `printed`; add it there."""
    line = in_options(one_line(message))
    if printed is None or line not in printed:
        print(f"warning: {without_controls(line)}", file=sys.stderr)
    if printed is not None:
        printed.add(line)


def note(message: str) -> None:
    """Print one line to stderr on what a command does without being asked."""
    print(f"note: {without_controls(one_line(message))}", file=sys.stderr)


@contextmanager
def quiet_threads() -> Iterator[None]:
    """Redirect the stderr of polars to nowhere: its threads print messages that it also raises as exceptions.

    Python itself still writes to stderr.
    """
    try:
        kept = os.dup(2)
    except OSError:  # this process has no stderr
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    python = sys.stderr
    try:
        if python is sys.__stderr__:
            sys.stderr = open(kept, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.dup2(nowhere, 2)
        yield
    finally:
        if python is sys.__stderr__:
            sys.stderr.flush()
        os.dup2(kept, 2)  # first: a signal may end the process between any two lines, and says so on stderr
        sys.stderr = python
        os.close(nowhere)
        os.close(kept)


@dataclass
class _Current:
    """The step that runs."""

    name: str
    cost: float
    passes: int
    begun: float
    finished: int = 0
    n: int = 1
    done: int = 0

    @property
    def share(self) -> float:
        """The share that is done; a step of more passes than expected approaches 1."""
        passes = max(self.passes, self.finished + 1)
        return (self.finished + min(self.done / max(self.n, 1), 1.0)) / passes


@dataclass
class WorkEstimate:
    r"""Steps with expected costs; the time that finished steps took shows how long a unit of cost takes here.

    .. math:: t_{left} = \frac{1 - s}{s}\, t_{step} + \frac{t_{done}}{c_{done}} \sum_{later} c

    where s is the share of the current step that is done and t_step the time since it began.

    Attributes
    ----------
    clock : callable
        Returns seconds.
    """

    clock: Callable[[], float]
    _expected: dict[str, Step] = field(default_factory=dict, init=False)
    _finished: list[tuple[float, float]] = field(default_factory=list, init=False)  # cost and seconds of each step
    _current: _Current | None = field(default=None, init=False)
    _scores: dict[str, float] = field(default_factory=dict, init=False)  # log-loss of each candidate so far
    _shown: float = field(default=0.0, init=False)  # the largest share so far
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def plan(self, steps: Sequence[Step]) -> None:
        """Take the steps that are still expected, in their order."""
        with self._lock:
            self._expected = {one.name: one for one in steps}

    def begin(self, what: str, n: int) -> Callable[[int], None]:
        """Begin a pass over n rows or candidates; return the function to call with those that are done."""
        with self._lock:
            current = self._current
            if current is not None and current.name.removesuffix(_CANDIDATE) == what.removesuffix(_CANDIDATE):
                current.finished += 1
                current.n, current.done = n, 0
            else:
                self._finish()
                current = self._next(what)
                current.n = n
                self._current = current

        def advance(done: int) -> None:
            with self._lock:
                current.done += done

        return advance

    def score(self, candidate: str, log_loss: float) -> None:
        """Take the log-loss of a candidate."""
        with self._lock:
            self._scores[candidate] = log_loss

    @property
    def best(self) -> str:
        """The candidate with the least log-loss so far, as text; empty without any."""
        with self._lock:
            if not self._scores:
                return ""
            name, log_loss = min(self._scores.items(), key=lambda pair: pair[1])
            return f"best of {len(self._scores)} so far: {name}, log-loss {log_loss:.3f}"

    def _next(self, what: str) -> _Current:
        wanted = what.removesuffix(_CANDIDATE)
        if wanted in self._expected:
            for name in list(self._expected):  # the steps before it are not needed
                known = self._expected.pop(name)
                if name == wanted:
                    return _Current(what, known.cost, known.passes, self.clock())
        costs = [cost for cost, _ in self._finished]
        return _Current(what, min(costs, default=1.0), 1, self.clock())

    def _finish(self) -> None:
        if self._current is not None:
            self._finished.append((self._current.cost, self.clock() - self._current.begun))
            self._current = None

    @property
    def title(self) -> str:
        """The name of the current step, with the number of the candidate where it has candidates."""
        current = self._current
        if current is None:
            return _STARTING
        if current.name.endswith(_CANDIDATE):
            return f"{current.name} {min(current.done + 1, current.n)} of {current.n}"
        return current.name

    @property
    def share(self) -> float:
        """The share of the time of all steps that has passed, below 1; it never falls."""
        with self._lock:
            spent, left = self._spent_and_left()
            if left is not None:
                self._shown = max(self._shown, min(spent / max(spent + left, 1e-9), _ALMOST))
            return self._shown

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds until all expected steps are done; None before a twentieth of the work is done."""
        with self._lock:
            return self._spent_and_left()[1]

    def _spent_and_left(self) -> tuple[float, float | None]:
        """Return the seconds that the steps took so far, and those that the rest will take, if that is known."""
        current, later = self._current, sum(one.cost for one in self._expected.values())
        if current is None:
            return 0.0, None
        spent = self.clock() - current.begun
        cost = sum(cost for cost, _ in self._finished) + current.cost * current.share
        seconds = sum(seconds for _, seconds in self._finished) + spent
        if seconds <= 0 or cost < _ENOUGH * (cost + current.cost * (1 - current.share) + later):
            return seconds, None
        per_cost = seconds / cost
        rest = current.cost * (1 - current.share) * per_cost
        if current.share >= _ENOUGH:
            rest = spent * (1 - current.share) / current.share
        return seconds, rest + later * per_cost


@contextmanager
def progress_bar(label: str, rows: int, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Show the progress of one pass over rows, and yield the function that advances it; None if it is not wanted."""
    if not wanted:
        yield None
        return
    estimate = WorkEstimate(time.monotonic)
    advance = estimate.begin(label, rows)
    with _shown(estimate):
        yield advance


@contextmanager
def work_progress(wanted: bool = True) -> Iterator[None]:
    """Show the progress of all steps that the library reports in this thread.

    If it is not wanted, approximations for the gaps of the rows that these steps learn from are not named either.
    """
    if not wanted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            yield
        return
    from posteriori.tables.progress import report_progress

    estimate = WorkEstimate(time.monotonic)
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
    last = ""
    while not ended.wait(_PERIOD):
        line = line_of(estimate)
        if line not in (last, _STARTING):  # before the first step there is nothing to say
            print(line, file=sys.stderr, flush=True)
        last = line


def line_of(estimate: WorkEstimate) -> str:
    """Return the step, the share that is done, the time left and the best candidate so far as one line."""
    share = f", {estimate.share:.0%} done" if estimate.share else ""
    best = f"; {estimate.best}" if estimate.best else ""
    return f"{estimate.title}{share}{_time_left(estimate, ', ')}{best}"


def _time_left(estimate: WorkEstimate, before: str = "") -> str:
    """Return the time left as text; none while it is unknown."""
    left = estimate.seconds_left
    return "" if left is None else f"{before}about {duration(left)} left"


def duration(seconds: float) -> str:
    """Write a number of seconds as minutes and seconds."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60:02d} min"


def _show_bar(estimate: WorkEstimate, ended: threading.Event) -> None:
    if ended.wait(_DELAY):
        return
    bar = _new_bar(estimate)
    with bar:
        while not ended.wait(0.1):
            bar.update(bar.task_ids[0], completed=estimate.share)


def _new_bar(estimate: WorkEstimate) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn
    from rich.text import Text

    from posteriori.cli.consoles import SafeConsole

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
    console = SafeConsole(file=unwrapped(sys.stderr), stderr=True)
    columns: list[ProgressColumn] = [Title(), BarColumn(), TaskProgressColumn(), TimeLeft()]
    if console.width >= _WIDE:
        columns.append(Best())
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    bar.add_task("", total=1.0)
    return bar
