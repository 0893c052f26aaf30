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


@dataclass(frozen=True)
class OracleApproximating:
    """The share towards the sphere that is best for Gaussian rows, from the covariance alone (OAS).

    References
    ----------
    Chen, Wiesel, Eldar & Hero, Shrinkage algorithms for MMSE covariance estimation, IEEE TSP 58 (2010), equation 23.
    """

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards spheres of the same trace."""
        pairs = zip(estimated.covariance, estimated.rows, strict=True)
        return np.stack([towards_sphere(one, _oas_share(one, rows)) for one, rows in pairs])


@dataclass(frozen=True)
class Diagonal:
    """Independent columns: the variances alone."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances without what is off the diagonal."""
        return estimated.covariance * np.eye(estimated.covariance.shape[1])


@dataclass(frozen=True)
class InTurn:
    """One shrinkage after another; none leaves the covariances as they are."""

    steps: tuple[Shrinkage, ...] = ()

    def shrink(self, estimated: Covariances) -> Array:
        """Return what the last makes of what those before it made."""
        for step in self.steps:
            estimated = Covariances(step.shrink(estimated), estimated.degrees)
        return estimated.covariance


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
