"""Covariances that are singular or nearly so: bounds from below, and regularisation."""

from __future__ import annotations

import numpy as np

from posteriori.statistics.scatter import Scatter
from posteriori.typing import Array

# A variance (as a share of the variance of its column over all rows) or an eigenvalue of a correlation matrix counts
# as 0 below _LEAST and is raised to _RAISED. If cells are missing, EM would shrink it in every step. Then everything
# below _RAISED is raised, which is a fixed point: EM never moves it above _RAISED again.
_LEAST = 1e-10
_RAISED = 1e-6


def least_eigenvalue(statistics: Scatter) -> float:
    """Return the threshold below which variances and eigenvalues are raised: higher where cells are missing."""
    return _LEAST if statistics.is_exact() else _RAISED


def raised_to(covariance: Array, least: Array) -> Array:
    r"""Return the maximum-likelihood covariances under the constraint that they are at least a diagonal matrix F.

    .. math:: \operatorname{argmax}_{\Sigma \succeq F} -\log|\Sigma| - \operatorname{tr}(\Sigma^{-1} S)
        = F^{1/2} V \max(\Lambda, 1) V^\top F^{1/2}, \quad F^{-1/2} S F^{-1/2} = V \Lambda V^\top

    It is a constrained M-step, so EM with it never lowers the likelihood. With a spherical F, spherical covariances
    stay spherical.

    Parameters
    ----------
    covariance : ndarray (G, d, d)
        S, singular or not.
    least : ndarray (d,)
        The diagonal of F, in squared data units; columns with 0 are not bounded.

    References
    ----------
    Von Neumann's trace inequality, by which the optimal Σ has the eigenvectors of S: Mirsky, A trace inequality of John
    von Neumann, Monatshefte für Mathematik 79 (1975).
    """
    bounded = np.flatnonzero(least > 0)
    if not len(bounded):
        return covariance
    unit = np.sqrt(np.outer(least[bounded], least[bounded]))
    block = np.ix_(np.arange(len(covariance)), bounded, bounded)
    values, vectors = np.linalg.eigh(covariance[block] / unit)
    low = np.flatnonzero(values[:, 0] < 1.0)
    if not len(low):
        return covariance
    raised = np.array(covariance)
    block = np.ix_(low, bounded, bounded)
    gain = (vectors[low] * np.maximum(1.0 - values[low], 0.0)[:, np.newaxis, :]) @ vectors[low].transpose(0, 2, 1)
    raised[block] += gain * unit
    return raised


def regularise_singular(covariance: Array, scale: Array, least: float = _LEAST) -> Array:
    """Return a covariance that can be factorised: the same, or with variances and eigenvalues near 0 raised.

    Parameters
    ----------
    covariance : ndarray (d, d)
    scale : ndarray (d,)
        The variance of each column over all rows. A variance below `least` times it is raised to 1e-6 times it. If the
        column has no variance at all, 1 is used, which changes no posterior.
    least : float
        Eigenvalues of the correlation matrix below this are raised to 1e-6.
    """
    flat, correlation, spectrum = _degenerate_parts(covariance, scale, least)
    if not flat.any() and spectrum is None:
        return covariance
    if spectrum is not None:
        values, vectors = spectrum
        correlation = vectors * np.maximum(values, _RAISED) @ vectors.T
    raised = np.where(scale > 0, _RAISED * scale, 1.0)
    sd = np.sqrt(np.where(flat, raised, np.diagonal(covariance)))
    regularised = correlation * np.outer(sd, sd)
    return np.asarray((regularised + regularised.T) / 2.0)


def dependent_columns(covariance: Array, scale: Array, least: float = _LEAST) -> list[int]:
    """Return the columns that have no variance or belong to a linear combination without variance."""
    flat, _, spectrum = _degenerate_parts(covariance, scale, least)
    if spectrum is not None:
        values, vectors = spectrum
        flat = flat | ((vectors[:, values < least] ** 2).sum(axis=1) > 1e-6)
    return np.flatnonzero(flat).tolist()


def _degenerate_parts(covariance: Array, scale: Array, least: float) -> tuple[Array, Array, tuple[Array, Array] | None]:
    """Return which columns have no variance, the correlations of the others, and their eigenpairs if one is near 0."""
    variance = np.diagonal(covariance)
    flat = variance <= least * scale
    if least == _RAISED:
        flat = flat | ((scale <= 0) & (variance < 1.0))
    sd = np.sqrt(np.where(flat, 1.0, variance))
    both = np.logical_or.outer(flat, flat)
    correlation = np.where(both, np.eye(len(sd)), covariance / np.outer(sd, sd))
    try:
        pivots = np.diagonal(np.linalg.cholesky(correlation)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min() > 1e3 * least:  # the smallest eigenvalue cannot be far below the smallest pivot
        return flat, correlation, None
    values, vectors = np.linalg.eigh(correlation)
    return flat, correlation, (values, vectors) if values[0] < least else None


def orient(directions: Array) -> Array:
    """Choose the sign of each column (d, k) so that its entry of largest absolute value is positive.

    An eigenvector has no sign of its own: the sign that LAPACK gives it depends on rounding, and so on the processor.
    """
    largest = np.argmax(np.abs(directions), axis=0)
    entries = np.take_along_axis(directions, largest[np.newaxis], axis=0)
    oriented: Array = directions * np.where(entries < 0, -1.0, 1.0)
    return oriented
