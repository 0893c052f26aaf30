"""EM from several starts: short runs of all of them, long runs of the likeliest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from posteriori.learning.em import FitResult
from posteriori.model import GenerativeModel

_FIRST_STEPS = 8  # of EM, after which the starts are compared

Climb = Callable[[GenerativeModel, int], FitResult]


def best_of(starts: Sequence[GenerativeModel], climb: Climb, max_steps: int) -> FitResult:
    """Return where EM leads from the best of several starts, found by successive halving.

    Each start takes 8 steps of EM, the likeliest third of them goes on to 24 in all, a third of those to 56, and so on.
    The last one goes on until EM converges or has taken max_steps.

    Parameters
    ----------
    starts : sequence of GenerativeModel
    climb : callable
        climb(model, n) takes EM from a model by at most n steps.
    max_steps : int

    References
    ----------
    Biernacki, Celeux & Govaert, Choosing starting values for the EM algorithm for getting the highest likelihood in
    multivariate Gaussian mixture models, Computational Statistics & Data Analysis 41 (2003), on short runs. Jamieson &
    Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016, on halving.
    """
    steps = _FIRST_STEPS if len(starts) > 1 else max_steps
    runs = [climb(start, min(steps, max_steps)) for start in starts]
    while len(runs) > 1:
        runs = sorted(runs, key=lambda run: -run.trace[-1])[: -(-len(runs) // 3)]
        steps = 2 * steps + _FIRST_STEPS if len(runs) > 1 else max_steps
        runs = [_continued(run, climb, min(steps, max_steps)) for run in runs]
    return runs[0]


def _continued(run: FitResult, climb: Climb, steps: int) -> FitResult:
    """Return a run of EM as it is when it has converged, or after so many steps in all."""
    if run.converged or len(run.trace) >= steps:
        return run
    onward = climb(run.model, steps - len(run.trace))
    return replace(onward, trace=run.trace + onward.trace)
