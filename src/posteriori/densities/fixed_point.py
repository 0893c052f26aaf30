"""SQUAREM on pseudo-rows: the fixed point of EM steps that never lower a sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posteriori.typing import Array

_STEPS = 50  # with three EM steps each
_TOLERANCE = 1e-3  # of the logarithm of the pseudo-rows
_LONGEST = 64.0  # of a step, in EM steps


def maximise(sweep: Callable[[Array], tuple[float, Array, Array]], shape: tuple[int, int], mode: float) -> Array:
    r"""Return the pseudo-rows of the greatest likelihood under a Gamma(2, m) prior of each, of a shape (d, L).

    .. math:: \hat s = \operatorname*{argmax}_s L(s) + \sum_{j,t} (\log s_{jt} - s_{jt} / m)

    An EM step sets s to (E + 1) / (D + 1/m), where E is the expected number of draws from pseudo-rows and D the sum of
    1 / (N + s) over the expected draws. The gradient in log s is E − s·D + 1 − s/m, and a step never lowers the sum
    (Minka, *Estimating a Dirichlet distribution*, 2000, for a table without back-off). SQUAREM (Varadhan & Roland 2008)
    makes the steps longer, for each line by itself. Where nothing is drawn, s is the mode.

    Parameters
    ----------
    sweep : callable
        Takes pseudo-rows to L in nats, E and D.
    shape : tuple of int
    mode : float
        m > 0, in rows; also the start.
    """

    def step(logs: Array) -> tuple[float, Array]:
        pseudo_rows = np.exp(logs)
        log_likelihood, by_prior, exposure = sweep(pseudo_rows)
        score = log_likelihood + float((logs - pseudo_rows / mode).sum())
        return score, np.asarray(np.log((by_prior + 1.0) / (exposure + 1.0 / mode)))

    logs = np.full(shape, np.log(mode))
    for _ in range(_STEPS):
        _, once = step(logs)
        if np.abs(once - logs).max(initial=0.0) < _TOLERANCE:
            break
        least, twice = step(once)
        change = once - logs
        bend = np.sqrt((((twice - once) - change) ** 2).sum(axis=1, keepdims=True))
        size = np.sqrt((change**2).sum(axis=1, keepdims=True))
        length = np.clip(np.divide(size, bend, out=np.ones_like(size), where=bend > 0), 1.0, _LONGEST)
        reached, beyond = step(logs + 2.0 * length * change + length**2 * ((twice - once) - change))
        logs = beyond if reached >= least else twice
    return np.asarray(np.exp(logs))
