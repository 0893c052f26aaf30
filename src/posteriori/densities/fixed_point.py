"""SQUAREM on pseudo-rows: the fixed point of EM steps that never lower a sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posteriori.typing import Array

_STEPS = 50  # with three EM steps each
_LONGEST = 64.0  # of a step, in EM steps


def maximise(
    sweep: Callable[[Array], tuple[float, Array, Array]],
    shape: tuple[int, int],
    mode: float,
    tolerance: float = 1e-3,
) -> Array:
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
    tolerance : float, default 1e-3
        The change of log s in an EM step at which to stop.
    """

    def step(logs: Array) -> tuple[float, Array]:
        pseudo_rows = np.exp(logs)
        log_likelihood, by_prior, exposure = sweep(pseudo_rows)
        score = log_likelihood + float((logs - pseudo_rows / mode).sum())
        return score, np.asarray(np.log((by_prior + 1.0) / (exposure + 1.0 / mode)))

    logs = np.full(shape, np.log(mode))
    for _ in range(_STEPS):
        _, once = step(logs)
        if np.abs(once - logs).max(initial=0.0) < tolerance:
            break
        least, twice = step(once)
        extrapolated, _ = squarem(logs, once, twice, _LONGEST)
        reached, beyond = step(extrapolated)
        logs = beyond if reached >= least else twice
    return np.asarray(np.exp(logs))


def squarem(start: Array, once: Array, twice: Array, longest: float) -> tuple[Array, Array]:
    r"""Return an extrapolation of two EM steps, and its length before the limits 1 and `longest`, by lines (…, L).

    .. math:: \theta_0 + 2 a r + a^2 v, \quad r = \theta_1 - \theta_0, \quad v = \theta_2 - \theta_1 - r, \quad
        a = \lVert r \rVert / \lVert v \rVert

    With a = 1 this is the second step. v is 0 if the three are collinear at equal distances: a is then the limit.

    References
    ----------
    Varadhan & Roland, Simple and globally convergent methods for accelerating the convergence of any EM algorithm,
    Scandinavian Journal of Statistics 35 (2008), scheme S3.
    """
    r = once - start
    v = (twice - once) - r
    size, bend = (np.linalg.norm(change, axis=-1, keepdims=True) for change in (r, v))
    length = size / np.maximum(bend, 1e-300)
    a = np.clip(length, 1.0, longest)
    return start + 2.0 * a * r + a**2 * v, length
