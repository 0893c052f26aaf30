"""Towards what an estimated covariance is drawn when rows are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.invariants import check_share
from posteriori.typing import Array


@dataclass(frozen=True)
class Covariances:
    """Estimated covariances, and what it takes to judge them.

    Attributes
    ----------
    covariance : ndarray (G, d, d)
        One a component, or one for all.
    degrees : ndarray (Z,)
        The rows, less ddof, of each component.
    unit : ndarray (d,)
        The standard deviation of each column within the components, all taken together, in data units; 0 for one that
        is constant there. Counting in it makes a shrinkage free of scale.
    """

    covariance: Array
    degrees: Array
    unit: Array

    @property
    def rows(self) -> Array:
        """The rows behind each covariance, (G,)."""
        return self.degrees if len(self.covariance) == len(self.degrees) else self.degrees.sum(keepdims=True)

    @property
    def standardised(self) -> Array:
        """The covariances of the columns that vary, each counted in its unit, (G, d', d')."""
        varies = self.unit > 0
        unit = self.unit[varies]
        return self.covariance[:, varies][:, :, varies] / np.outer(unit, unit)

    def shrink_to_diagonal(self, share: Array) -> Array:
        """Return (1 − ρ)·Σ + ρ·τ·diag(unit²), where the target has the trace of Σ in these units; ρ is share (G,)."""
        d = max(1, int((self.unit > 0).sum()))
        trace = np.trace(self.standardised, axis1=1, axis2=2)
        kept, added = (part[:, np.newaxis, np.newaxis] for part in (1.0 - share, share * trace / d))
        return kept * self.covariance + added * np.diag(self.unit**2)


class Shrinkage(Protocol):
    """A map from estimated covariances to steadier ones."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards a target, (G, d, d)."""

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return how many numbers of so many covariances of d columns remain free."""


@dataclass(frozen=True)
class ShrinkToDiagonal:
    r"""Friedman's γ for columns counted in their standard deviations within classes, so that it is free of scale.

    .. math:: (1 - \gamma) \Sigma + \gamma \tau D, \quad D = \operatorname{diag}(s_1^2, …, s_d^2), \quad
        \tau = \operatorname{tr}(D^{-1} \Sigma) / d

    s_j² is the pooled variance of column j within classes. For columns that are standardised by it D is the identity,
    and this is Friedman's equation; for one pooled covariance τ is 1, and D its diagonal.

    Parameters
    ----------
    share : float
        γ in [0, 1].

    References
    ----------
    Friedman, Regularized discriminant analysis, JASA 84 (1989), equation 18.
    """

    share: float

    def check(self) -> None:
        """Raise ValueError if the share is not from 0 to 1."""
        check_share("the share of shrinkage", self.share)

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards diagonal ones that are alike up to a factor."""
        return estimated.shrink_to_diagonal(np.full(len(estimated.covariance), self.share))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 each; where nothing else is left, the d variances and a factor each, of mean 1."""
        return d + n_covariances - 1 if self.share == 1.0 else n_covariances * _n_entries(d)


@dataclass(frozen=True)
class ShrinkToIdentity:
    """Friedman's γ in data units: (1 − γ)·Σ + γ·(tr Σ / d)·I. It depends on the units of the columns.

    Parameters
    ----------
    share : float
        γ in [0, 1].

    References
    ----------
    Friedman, Regularized discriminant analysis, JASA 84 (1989), equation 18.
    """

    share: float

    def check(self) -> None:
        """Raise ValueError if the share is not from 0 to 1."""
        check_share("the share of shrinkage", self.share)

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards spheres of the same trace."""
        return np.stack([shrink_to_identity(one, self.share) for one in estimated.covariance])

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 each, or 1 for a sphere."""
        return n_covariances * (1 if self.share == 1.0 else _n_entries(d))


@dataclass(frozen=True)
class OracleApproximating:
    """`TowardsUnits` by the share that is best for Gaussian rows, from the covariance alone (OAS).

    References
    ----------
    Chen, Wiesel, Eldar & Hero, Shrinkage algorithms for MMSE covariance estimation, IEEE TSP 58 (2010), equation 23,
    without its terms in 2/d, as in scikit-learn.
    """

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards diagonal ones."""
        pairs = zip(estimated.standardised, estimated.rows, strict=True)
        return estimated.shrink_to_diagonal(np.array([_oas_share(one, rows) for one, rows in pairs]))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 each."""
        return n_covariances * _n_entries(d)


@dataclass(frozen=True)
class LedoitWolf:
    """`TowardsUnits` by the share of least expected squared error, for rows of any distribution.

    The share takes the fourth powers of the rows' distances from the means (`ledoit_wolf_share`), so that it is found
    by a second look at the rows.

    Parameters
    ----------
    share : tuple of float (G,), optional
        What that look has found; None before it.

    References
    ----------
    Ledoit & Wolf, A well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Analysis 88
    (2004), section 3.3.
    """

    share: tuple[float, ...] | None = None

    def check(self) -> None:
        """Raise ValueError if a share is not from 0 to 1."""
        for share in self.share or ():
            check_share("the share of shrinkage", share)

    def found(self, estimated: Covariances, fourth_power: Array) -> LedoitWolf:
        """Return this shrinkage with its share; fourth_power (G,) is the mean of ‖z‖⁴ behind each covariance."""
        triples = zip(estimated.standardised, estimated.rows, fourth_power, strict=True)
        return LedoitWolf(tuple(ledoit_wolf_share(*triple) for triple in triples))

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances drawn towards diagonal ones."""
        if self.share is None:
            raise ValueError("the share of Ledoit and Wolf takes a second look at the rows; `refine` the density first")
        return estimated.shrink_to_diagonal(np.array(self.share))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 each."""
        return n_covariances * _n_entries(d)


@dataclass(frozen=True)
class Diagonal:
    """Independent columns: the variances alone."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances without what is off the diagonal."""
        return estimated.covariance * np.eye(estimated.covariance.shape[1])

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d variances each."""
        return n_covariances * d


@dataclass(frozen=True)
class Chain:
    """One shrinkage after another; none leaves the covariances as they are."""

    steps: tuple[Shrinkage, ...] = ()

    def shrink(self, estimated: Covariances) -> Array:
        """Return what the last makes of what those before it made."""
        for step in self.steps:
            estimated = Covariances(step.shrink(estimated), estimated.degrees, estimated.unit)
        return estimated.covariance

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return what the strictest step leaves free."""
        return min([n_covariances * _n_entries(d), *(step.n_free(d, n_covariances) for step in self.steps)])


def shrink_to_identity(covariance: Array, share: float) -> Array:
    """Return (1 − share)·Σ + share·(tr Σ / d)·I."""
    d = len(covariance)
    return (1.0 - share) * covariance + share * np.trace(covariance) / d * np.eye(d)


def ledoit_wolf_share(covariance: Array, rows: float, fourth_power: float) -> float:
    r"""Return how far towards a sphere of the same trace a covariance S of n rows is best drawn.

    .. math:: \rho = \min\left(1, \frac{\overline{\lVert z \rVert^4} / n - \lVert S \rVert_F^2 / n}
        {\lVert S \rVert_F^2 - (\operatorname{tr} S)^2 / d}\right)

    which is b² / d² of Ledoit & Wolf (2004), section 3.3. Their Σ‖z zᵀ − S‖² needs no more of the rows than the fourth
    power of each one's length, because Σ zᵀSz is n·‖S‖².

    Parameters
    ----------
    covariance : ndarray (d, d)
    rows : float
        n.
    fourth_power : float
        The mean of ‖z‖⁴ over the rows, z being a row less its mean (`posteriori.statistics.quartic`).
    """
    d = len(covariance)
    if d <= 1 or rows <= 0:  # one column is its own sphere
        return 0.0
    square = float((covariance**2).sum())
    error = (fourth_power - square) / rows
    distance = square - float(np.trace(covariance)) ** 2 / d
    return 0.0 if error <= 0 or distance <= 0 else min(float(error / distance), 1.0)


def _oas_share(covariance: Array, rows: float) -> float:
    if not len(covariance):
        return 0.0
    d = len(covariance)
    mean_square = float((covariance**2).mean())
    mean_variance = float(np.trace(covariance)) / d
    numerator = mean_square + mean_variance**2
    denominator = (rows + 1.0) * (mean_square - mean_variance**2 / d)
    return 1.0 if denominator <= 0 else min(numerator / denominator, 1.0)


def _n_entries(d: int) -> int:
    return d * (d + 1) // 2
