r"""Student t densities: Gaussians whose mean and variance are integrated out.

With the posterior of a conjugate prior, the integral of a Gaussian over its mean and covariance is a t density,

.. math:: t_\nu(x; m, S) = \frac{\Gamma((\nu + p)/2)}{\Gamma(\nu/2) (\nu\pi)^{p/2} |S|^{1/2}}
          \Bigl(1 + \frac{(x - m)^\top S^{-1} (x - m)}{\nu}\Bigr)^{-(\nu + p)/2},

and a marginal of it has the same ν. For ν → ∞ it is N(x; m, S).

References
----------
Geisser, Posterior odds for multivariate normal classifications, J. Royal Statistical Society B 26 (1964). Murphy,
Conjugate Bayesian analysis of the Gaussian distribution (2007), sections 6 and 9. Abramowitz & Stegun, section 6.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posteriori.typing import Array

_SHIFT = 16  # the series of the gamma function is exact to rounding from here on
_SERIES = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432)  # of log Γ(x + ½) − log Γ(x) − ½·log x in x⁻¹, x⁻³, …


def log_peaks(degrees: Array, n_columns: int) -> Array:
    """Return the log density of a standard t at 0 in nats, of 0, 1, …, n_columns columns: (n_columns + 1, …).

    Parameters
    ----------
    degrees : ndarray (…)
        ν > 0, possibly infinite.
    n_columns : int
        p.

    Notes
    -----
    Differences of log-gamma functions lose digits where ν is large. With x = ν/2, Γ(x + p/2) / (Γ(x)·x^{p/2}) is a
    product of p/2 factors 1 + k/x and, for odd p, Γ(x + ½) / (Γ(x)·√x).
    """
    x = np.asarray(degrees, np.float64) / 2.0
    found = np.zeros((n_columns + 1, *x.shape))
    if n_columns:
        found[1] = _log_half_step(x)
    for p in range(2, n_columns + 1):
        found[p] = found[p - 2] + np.log1p((p / 2.0 - 1.0) / x)
    log_root = 0.5 * math.log(2.0 * math.pi) * np.arange(n_columns + 1)
    return np.asarray(found - log_root.reshape(-1, *[1] * x.ndim))


def _log_half_step(x: Array) -> Array:
    """Return log Γ(x + ½) − log Γ(x) − ½·log x, 0 at infinity: by recurrence from a series at x + 16."""
    total = 0.5 * np.log1p(_SHIFT / x)
    for k in range(_SHIFT):
        total -= np.log1p(0.5 / (x + k))
    for power, coefficient in enumerate(_SERIES):
        total += coefficient * (x + _SHIFT) ** -(2.0 * power + 1.0)
    return np.asarray(total)


def log_tails(distance: Array, n_columns: Any, degrees: Array) -> Array:
    """Return −(ν + p)/2·log(1 + distance/ν) in nats, for squared distances in units of the scale."""
    with np.errstate(over="ignore"):
        return np.asarray(-0.5 * (degrees + n_columns) * np.log1p(distance / degrees))


def draw_stretch(degrees: Array, rng: np.random.Generator) -> Array:
    """Draw √(ν / χ²_ν): a Gaussian deviation times it is one of the t."""
    return np.asarray(np.sqrt(degrees / rng.chisquare(degrees)))


def truncated_t(degrees: Array, centre: Array, scale: Array, low: Any, high: Any, rng: np.random.Generator) -> Array:
    """Draw from a t truncated to [low, high], by inversion of its distribution function."""
    from scipy.special import stdtr, stdtrit  # imported here, because few predictions need it

    with np.errstate(invalid="ignore"):
        a, b = (low - centre) / scale, (high - centre) / scale
    upper = a > 0.0  # mirror the upper tail: near 1 the distribution function loses digits
    a, b = np.where(upper, -b, a), np.where(upper, -a, b)
    below, up_to = stdtr(degrees, a), stdtr(degrees, b)
    t = stdtrit(degrees, below + rng.random(len(centre)) * (up_to - below))
    t = np.clip(np.where(up_to > 0.0, t, b), a, b)
    return np.asarray(np.clip(centre + scale * np.where(upper, -t, t), low, high))
