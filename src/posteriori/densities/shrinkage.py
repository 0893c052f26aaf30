"""Towards what an estimated covariance is drawn when rows are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.typing import Array


@dataclass(frozen=True)
class Covariances:
    """Estimated covariances (G, d, d), and the rows, less ddof, behind each component (Z,)."""

    covariance: Array
    degrees: Array

    @property
    def rows(self) -> Array:
        """The rows behind each covariance, (G,)."""
        return self.degrees if len(self.covariance) == len(self.degrees) else self.degrees.sum(keepdims=True)


class Shrinkage(Protocol):
    """A map from estimated covariances to steadier ones."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards a target, (G, d, d)."""

    def n_free(self, d: int) -> int:
        """Return how many numbers of a covariance of d columns remain free."""


@dataclass(frozen=True)
class TowardsSphere:
    """Friedman's γ: (1 − γ)·Σ + γ·(tr Σ / d)·I.

    Parameters
    ----------
    share : float
        γ in [0, 1].

    References
    ----------
    Friedman, Regularized discriminant analysis, JASA 84 (1989), equation 18.
    """

    share: float

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards spheres of the same trace."""
        return np.stack([towards_sphere(one, self.share) for one in estimated.covariance])

    def n_free(self, d: int) -> int:
        """Return d·(d + 1)/2, or 1 for a sphere."""
        return 1 if self.share == 1.0 else d * (d + 1) // 2


@dataclass(frozen=True)
class OracleApproximating:
    """The share towards the sphere that is best for Gaussian rows, from the covariance alone (OAS).

    References
    ----------
    Chen, Wiesel, Eldar & Hero, Shrinkage algorithms for MMSE covariance estimation, IEEE TSP 58 (2010), equation 23,
    without its terms in 2/d, as in scikit-learn.
    """

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards spheres of the same trace."""
        pairs = zip(estimated.covariance, estimated.rows, strict=True)
        return np.stack([towards_sphere(one, _oas_share(one, rows)) for one, rows in pairs])

    def n_free(self, d: int) -> int:
        """Return d·(d + 1)/2."""
        return d * (d + 1) // 2


@dataclass(frozen=True)
class Diagonal:
    """Independent columns: the variances alone."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances without what is off the diagonal."""
        return estimated.covariance * np.eye(estimated.covariance.shape[1])

    def n_free(self, d: int) -> int:
        """Return d variances."""
        return d


@dataclass(frozen=True)
class InTurn:
    """One shrinkage after another; none leaves the covariances as they are."""

    steps: tuple[Shrinkage, ...] = ()

    def shrink(self, estimated: Covariances) -> Array:
        """Return what the last makes of what those before it made."""
        for step in self.steps:
            estimated = Covariances(step.shrink(estimated), estimated.degrees)
        return estimated.covariance

    def n_free(self, d: int) -> int:
        """Return what the strictest step leaves free."""
        return min([d * (d + 1) // 2, *(step.n_free(d) for step in self.steps)])


def towards_sphere(covariance: Array, share: float) -> Array:
    """Return (1 − share)·Σ + share·(tr Σ / d)·I."""
    d = len(covariance)
    return (1.0 - share) * covariance + share * np.trace(covariance) / d * np.eye(d)


def _oas_share(covariance: Array, rows: float) -> float:
    d = len(covariance)
    mean_square = float((covariance**2).mean())
    mean_variance = float(np.trace(covariance)) / d
    numerator = mean_square + mean_variance**2
    denominator = (rows + 1.0) * (mean_square - mean_variance**2 / d)
    return 1.0 if denominator <= 0 else min(numerator / denominator, 1.0)


@dataclass(frozen=True)
class LedoitWolf:
    r"""The share towards the sphere of least expected squared error, for rows of any distribution.

    With :math:`z = (x - \mu) / s` column by column and R their covariance, Σ is drawn to what R is drawn to:

    .. math:: (1 - \rho) R + \rho \frac{\operatorname{tr} R}{d} I, \quad
        \rho = \min\left(1, \frac{\frac{1}{n} \sum \lVert z \rVert^4 / n - \lVert R \rVert_F^2 / n}
        {\lVert R \rVert_F^2 - (\operatorname{tr} R)^2 / d}\right)

    Parameters
    ----------
    scale : ndarray (G, d)
        s, > 0, in data units: the standard deviations, and 1 for a constant column; or all 1.
    quartic : ndarray (G,)
        Σ w·‖z‖⁴ over the rows behind each covariance (`posteriori.statistics.quartic.quartic_norms`).

    References
    ----------
    Ledoit & Wolf, A well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Analysis 88
    (2004), section 3.3: b², d² and m are the numerator, the denominator and tr R / d.
    """

    scale: Array
    quartic: Array

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards diagonal ones."""
        drawn = []
        for one, rows, scale, quartic in zip(
            estimated.covariance, estimated.rows, self.scale, self.quartic, strict=True
        ):
            unit = np.outer(scale, scale)
            drawn.append(towards_sphere(one / unit, _ledoit_wolf_share(one / unit, rows, quartic)) * unit)
        return np.stack(drawn)

    def n_free(self, d: int) -> int:
        """Return d·(d + 1)/2."""
        return d * (d + 1) // 2


def _ledoit_wolf_share(covariance: Array, rows: float, quartic: float) -> float:
    d = len(covariance)
    if d == 1 or rows <= 0:  # one column is its own sphere
        return 0.0
    square = float((covariance**2).sum())
    error = (quartic / rows - square) / rows
    distance = square - float(np.trace(covariance)) ** 2 / d
    return 0.0 if error <= 0 or distance <= 0 else min(error / distance, 1.0)
