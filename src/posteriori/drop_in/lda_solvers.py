"""Solvers of linear discriminant analysis: coefficients and directions from second moments, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from posteriori.densities.pooling import Pooled
from posteriori.densities.singular import orient
from posteriori.drop_in.discriminant import ClassStatistics, Solver
from posteriori.typing import Array


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    coef, intercept : ndarray (C, d), (C,)
    covariance : ndarray (d, d)
        Σ_y π_y·Σ_y.
    within : ndarray (d, d)
        Covariance from which the coefficients are computed.
    scalings : ndarray (d, rank), optional
        Discriminant directions as columns.
    spread : ndarray, optional
        Share of the between-class variance along each direction.
    centre : ndarray (d,), optional
        Point about which the coefficients are computed, if it is not 0.
    """

    coef: Array
    intercept: Array
    covariance: Array
    within: Array
    scalings: Array | None = None
    spread: Array | None = None
    centre: Array | None = None


def _solve_svd(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Whiten within classes, then find the principal axes of the means there.

    The singular values of the centred rows that scikit-learn uses are the square roots of the eigenvalues used here.
    """
    weight, means = classes.weight, classes.means
    within = Pooled().covariances(weight, classes.scatter.scatter)[0]
    centre = priors @ means
    sd = np.sqrt(np.diagonal(within))
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(within / np.outer(sd, sd))
    spread_within = np.sqrt(np.maximum(values, 0.0))
    kept = np.flatnonzero(spread_within > tol)[::-1]
    whitener = vectors[:, kept] / sd[:, np.newaxis] / spread_within[kept]

    degrees = max(len(weight) - 1, 1)
    apart = np.sqrt(weight.sum() * priors / degrees)[:, np.newaxis] * (means - centre) @ whitener
    _, spread, rotation = np.linalg.svd(apart, full_matrices=False)
    rank = int((spread > tol * spread.max(initial=0.0)).sum())
    scalings = orient(whitener @ rotation[:rank].T)
    projected = (means - centre) @ scalings
    coef = projected @ scalings.T
    intercept = -0.5 * (projected**2).sum(axis=1) + _log(priors) - coef @ centre
    return Solution(coef, intercept, _mixed(classes, priors), within, scalings, _shares(spread**2), centre)


def _solve_lsqr(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Solve Σ·w = μ, by least squares if Σ is singular."""
    means, covariance = classes.means, _mixed(classes, priors)
    coef = linalg.lstsq(covariance, means.T)[0].T
    return Solution(coef, _intercept(coef, means, priors), covariance, covariance)


def _solve_eigen(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Solve S_b·v = λ·Σ·v for S_b = S_t − Σ, the covariance between classes.

    If Σ is singular, the problem is solved in the directions in which Σ is not 0, as by "svd". scikit-learn may raise
    an error for collinear columns, depending on rounding.
    """
    means, covariance = classes.means, _mixed(classes, priors)
    whitener = _whitener(covariance)
    between = whitener.T @ (classes.total_covariance - covariance) @ whitener
    values, vectors = linalg.eigh((between + between.T) / 2.0)
    descending = np.argsort(values)[::-1]
    scalings = orient(whitener @ vectors[:, descending])
    coef = means @ scalings @ scalings.T
    intercept = _intercept(coef, means, priors)
    return Solution(coef, intercept, covariance, covariance, scalings, _shares(values[descending]))


_LEAST = 1e-12  # smaller eigenvalues of a correlation matrix, relative to the largest, are treated as 0


def _whitener(covariance: Array) -> Array:
    """Return W, (d, rank), with Wᵀ·Σ·W the identity."""
    sd = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    kept = values > _LEAST * values.max(initial=0.0)
    whitener: Array = vectors[:, kept] / sd[:, np.newaxis] / np.sqrt(values[kept])
    return whitener


SOLVERS: dict[str, Solver[Callable[[ClassStatistics, Array, float], Solution]]] = {
    "svd": Solver(_solve_svd, estimates=False, transforms=True),
    "lsqr": Solver(_solve_lsqr, estimates=True),
    "eigen": Solver(_solve_eigen, estimates=True, transforms=True),
}


def _mixed(classes: ClassStatistics, priors: Array) -> Array:
    return np.tensordot(priors, classes.covariances, axes=1)


def _intercept(coef: Array, means: Array, priors: Array) -> Array:
    intercept: Array = -0.5 * (coef * means).sum(axis=1) + _log(priors)
    return intercept


def _log(priors: Array) -> Array:
    with np.errstate(divide="ignore"):  # of a class without rows
        return np.log(priors)


def _shares(spread: Array) -> Array:
    total = spread.sum()
    return spread / total if total > 0 else np.zeros_like(spread)
