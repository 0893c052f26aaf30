"""How much of the work is done, and how long the rest will take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posteriori.tables.progress import Step

_CANDIDATE = " candidate"
_ALMOST = 0.99  # the largest share that is shown before the work ends
_ENOUGH = 0.05  # of a step, from which its own speed is known, and of all steps, from which the time left is


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
            return "starting"
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
