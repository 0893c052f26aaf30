"""EM from several starts: short runs from all of them, long runs for those of the greatest likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from posteriori.learning.em import FitResult
from posteriori.model import GenerativeModel

_FIRST_STEPS = 8  # steps of EM before the starts are first compared

RunEM = Callable[[GenerativeModel, int], FitResult]


def best_of(starts: Sequence[GenerativeModel], run: RunEM, max_steps: int) -> FitResult:
    """Run EM from several starts, and keep the best third of the runs in each round (successive halving).

    Every start gets 8 steps of EM. The third of the greatest likelihood continues to 24 steps in all, a third of these
    to 56, and so on. The last run continues until EM converges or has taken `max_steps`.

    Parameters
    ----------
    starts : sequence of GenerativeModel
    run : callable
        run(model, n) takes at most n steps of EM from a model.
    max_steps : int

    References
    ----------
    Biernacki, Celeux & Govaert, Choosing starting values for the EM algorithm for getting the highest likelihood in
    multivariate Gaussian mixture models, Computational Statistics & Data Analysis 41 (2003), on short runs. Jamieson &
    Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016, on halving.
    """
    steps = _FIRST_STEPS if len(starts) > 1 else max_steps
    runs = [run(start, min(steps, max_steps)) for start in starts]
    while len(runs) > 1:
        runs = sorted(runs, key=lambda fit: -fit.trace[-1])[: -(-len(runs) // 3)]  # rounded up
        steps = 2 * steps + _FIRST_STEPS if len(runs) > 1 else max_steps
        runs = [_continue(fit, run, min(steps, max_steps)) for fit in runs]
    return runs[0]


def _continue(fit: FitResult, run: RunEM, steps: int) -> FitResult:
    """Continue a run of EM until it converges or has taken so many steps in all."""
    if fit.converged or len(fit.trace) >= steps:
        return fit
    rest = run(fit.model, steps - len(fit.trace))
    return replace(rest, trace=fit.trace + rest.trace)
