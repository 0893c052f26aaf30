"""Report the progress of work: its steps, and the passes over rows within each step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

WITHOUT_HELD_OUT = "fitting without the held-out rows"  # a step

Begin = Callable[[str, int], Callable[[int], None]]

_LOG = logging.getLogger("posteriori")


@dataclass(frozen=True)
class Step:
    """A step that is expected."""

    name: str
    cost: float  # expected seconds, on any machine: only the ratios between steps matter
    passes: int = 1  # expected passes over the rows


Plan = Callable[[Sequence[Step]], None]
Score = Callable[[str, float], None]

callback: ContextVar[Begin | None] = ContextVar("progress callback", default=None)
_plan: ContextVar[Plan | None] = ContextVar("progress plan", default=None)
_score: ContextVar[Score | None] = ContextVar("progress score", default=None)
_step: ContextVar[str | None] = ContextVar("progress step", default=None)
_is_logged: ContextVar[bool] = ContextVar("progress is logged", default=True)


@contextmanager
def report_progress(begin: Begin, plan: Plan | None = None, score: Score | None = None) -> Iterator[None]:
    """Call begin(what, n) when a pass begins here, and its result with the number of rows or candidates that are done.

    `what` is the name of the step (`step`), or else "categories", "reading", "statistics" or "scores". The result of
    `begin` is called from the threads that read the batches. Passes that other threads begin are not reported. `plan`
    is called with the steps that are still expected whenever these become known, and `score` with the name and the
    log-loss of each candidate as soon as it is cross-validated.
    """
    tokens = callback.set(begin), _plan.set(plan), _score.set(score)
    try:
        yield
    finally:
        callback.reset(tokens[0])
        _plan.reset(tokens[1])
        _score.reset(tokens[2])


def plan_steps(steps: Sequence[Step]) -> None:
    """Report the steps that are still expected."""
    plan = _plan.get()
    if plan is not None:
        plan(steps)


def report_score(candidate: str, log_loss: float) -> None:
    """Report and log the cross-validated log-loss of a candidate, in nats per row."""
    _log("%s: log-loss %.4f", candidate, log_loss)
    score = _score.get()
    if score is not None:
        score(candidate, log_loss)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Report all passes that begin here under the name of a step, and log the step."""
    _log("%s", name)
    token = _step.set(name)
    try:
        yield
    finally:
        _step.reset(token)


@contextmanager
def as_one_step(name: str) -> Iterator[None]:
    """Report all passes that begin here as passes of one step; plans and scores are not reported."""
    outer = callback.get()
    if outer is None:
        yield
        return
    with report_progress(lambda _, n: outer(name, n)):
        yield


@contextmanager
def without_passes() -> Iterator[None]:
    """Report and log no pass that begins here: those of one of several candidates are no steps of the work."""
    token, logged = callback.set(None), _is_logged.set(False)
    try:
        yield
    finally:
        callback.reset(token)
        _is_logged.reset(logged)


def start_candidates(what: str, n_candidates: int) -> Callable[[int], None]:
    """Report that candidates are taken one by one; return the function to call with the number that is done."""
    begin = callback.get()
    _log("%s %d candidates", what, n_candidates)
    return _ignore if begin is None else begin(f"{what} candidate", n_candidates)


def start_progress(what: str, n_rows: int) -> Callable[[int], None]:
    """Report that a pass begins; return the function to call with the number of rows of each batch that is done."""
    begin, name = callback.get(), _step.get() or what
    _LOG.debug("%s: %d rows", name, n_rows)
    return _ignore if begin is None else begin(name, n_rows)


def _log(message: str, *arguments: object) -> None:
    if _is_logged.get():
        _LOG.info(message, *arguments)


def _ignore(n_rows: int) -> None:
    del n_rows
