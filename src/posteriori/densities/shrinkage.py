"""Shrinkage of covariances that are estimated from few rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.invariants import check_share
from posteriori.typing import Array


@dataclass(frozen=True)
class Covariances:
    """Estimated covariances with their degrees of freedom and units.

    Attributes
    ----------
    covariance : ndarray (G, d, d)
        One per component, or one for all.
    degrees : ndarray (Z,)
        The weight of the rows minus ddof, per component.
    unit : ndarray (d,)
        The pooled standard deviation of each column within components, in data units; 0 for a constant column. Scaling
        by it makes a shrinkage independent of units.
    """

    covariance: Array
    degrees: Array
    unit: Array

    @property
    def rows(self) -> Array:
        """The degrees of freedom of each covariance, (G,)."""
        return self.degrees if len(self.covariance) == len(self.degrees) else self.degrees.sum(keepdims=True)

    @property
    def standardised(self) -> Array:
        """The covariances of the columns that vary, each divided by its unit, (G, d', d')."""
        varies = self.unit > 0
        unit = self.unit[varies]
        return np.asarray(self.covariance[:, varies][:, :, varies] / np.outer(unit, unit))

    def shrink_to_diagonal(self, share: Array) -> Array:
        """Return (1 − ρ)·Σ + ρ·τ·diag(unit²), with τ from the trace of Σ in these units; ρ is share (G,)."""
        varies = self.unit > 0
        d = max(1, int(varies.sum()))
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)[:, varies]
        trace = (variances / self.unit[varies] ** 2).sum(axis=1)
        kept, added = (part[:, np.newaxis, np.newaxis] for part in (1.0 - share, share * trace / d))
        return kept * self.covariance + added * np.diag(self.unit**2)


class Shrinkage(Protocol):
    """A map from estimated covariances to covariances of lower variance."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the shrunk covariances, (G, d, d)."""

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return the number of free parameters of this number of covariances of d columns."""


@dataclass(frozen=True)
class ShrinkToDiagonal:
    r"""Friedman's γ for columns scaled by their standard deviations within classes, so that it is scale-free.

    .. math:: (1 - \gamma) \Sigma + \gamma \tau D, \quad D = \operatorname{diag}(s_1^2, …, s_d^2), \quad
        \tau = \operatorname{tr}(D^{-1} \Sigma) / d

    s_j² is the pooled variance of column j within classes. For columns standardised by s_j, D is the identity and this
    is Friedman's equation. For one pooled covariance, τ is 1 and D is its diagonal.

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
        """Return the covariances shrunk towards diagonal matrices that are proportional to D."""
        return estimated.shrink_to_diagonal(np.full(len(estimated.covariance), self.share))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 per covariance; for γ = 1, d variances and one factor per covariance, of mean 1."""
        return d + n_covariances - 1 if self.share == 1.0 else n_covariances * _n_entries(d)


@dataclass(frozen=True)
class ShrinkToIdentity:
    """Friedman's γ in data units: (1 − γ)·Σ + γ·(tr Σ / d)·I. The result depends on the units of the columns.

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
        """Return the covariances shrunk towards spherical ones of the same trace."""
        return np.stack([shrink_to_identity(covariance, self.share) for covariance in estimated.covariance])

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 per covariance, or 1 for a spherical one."""
        return n_covariances * (1 if self.share == 1.0 else _n_entries(d))


@dataclass(frozen=True)
class OracleApproximating:
    """`ShrinkToDiagonal` with the share that is best for Gaussian rows, from the covariance alone (OAS).

    References
    ----------
    Chen, Wiesel, Eldar & Hero, Shrinkage algorithms for MMSE covariance estimation, IEEE TSP 58 (2010), equation 23,
    without its terms in 2/d, as in scikit-learn.
    """

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances shrunk towards diagonal ones."""
        pairs = zip(estimated.standardised, estimated.rows, strict=True)
        return estimated.shrink_to_diagonal(np.array([_oas_share(one, rows) for one, rows in pairs]))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 per covariance."""
        return n_covariances * _n_entries(d)


@dataclass(frozen=True)
class LedoitWolf:
    """`ShrinkToDiagonal` with the share of least expected squared error, for rows of any distribution.

    The share depends on the fourth powers of the rows' distances from the means (`ledoit_wolf_share`), so it needs a
    second pass over the rows.

    Parameters
    ----------
    share : tuple of float (G,), optional
        The shares from that pass; None before it.

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
        """Return this shrinkage with its shares; fourth_power (G,) is the mean of ‖z‖⁴ for each covariance."""
        triples = zip(estimated.standardised, estimated.rows, fourth_power, strict=True)
        return LedoitWolf(tuple(ledoit_wolf_share(*triple) for triple in triples))

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances shrunk towards diagonal ones."""
        if self.share is None:
            raise ValueError("the share of Ledoit and Wolf is not known yet; call `refine` on the density first")
        return estimated.shrink_to_diagonal(np.array(self.share))

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d·(d + 1)/2 per covariance."""
        return n_covariances * _n_entries(d)


@dataclass(frozen=True)
class Diagonal:
    """Diagonal covariances: all correlations are set to 0."""

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances with their off-diagonal entries set to 0."""
        return estimated.covariance * np.eye(estimated.covariance.shape[1])

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return d variances per covariance."""
        return n_covariances * d


@dataclass(frozen=True)
class Chain:
    """Several shrinkages applied in turn; an empty chain changes nothing."""

    steps: tuple[Shrinkage, ...] = ()

    def shrink(self, estimated: Covariances) -> Array:
        """Return the covariances after all steps."""
        for step in self.steps:
            estimated = Covariances(step.shrink(estimated), estimated.degrees, estimated.unit)
        return estimated.covariance

    def n_free(self, d: int, n_covariances: int) -> int:
        """Return the smallest number of free parameters over the steps."""
        return min([n_covariances * _n_entries(d), *(step.n_free(d, n_covariances) for step in self.steps)])


def shrink_to_identity(covariance: Array, share: float) -> Array:
    """Return (1 − share)·Σ + share·(tr Σ / d)·I."""
    d = len(covariance)
    return np.asarray((1.0 - share) * covariance + share * np.trace(covariance) / d * np.eye(d))


def ledoit_wolf_share(covariance: Array, rows: float, fourth_power: float) -> float:
    r"""Return the optimal share ρ for shrinking a covariance S of n rows towards a sphere of the same trace.

    .. math:: \rho = \min\left(1, \frac{\overline{\lVert z \rVert^4} / n - \lVert S \rVert_F^2 / n}
        {\lVert S \rVert_F^2 - (\operatorname{tr} S)^2 / d}\right)

    which is b² / d² of Ledoit & Wolf (2004), section 3.3. Their Σ‖z zᵀ − S‖² requires only the fourth power of the
    norm of each row, because Σ zᵀSz is n·‖S‖².

    Parameters
    ----------
    covariance : ndarray (d, d)
    rows : float
        n.
    fourth_power : float
        The mean of ‖z‖⁴ over the rows, z being a row minus its mean (`posteriori.statistics.quartic`).
    """
    d = len(covariance)
    if d <= 1 or rows <= 0:  # a single column is spherical already
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
