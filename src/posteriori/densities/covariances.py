"""Covariances from scatter matrices: pooled between components, shrunk, and kept from being singular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.statistics.scatter import Scatter
from posteriori.support.checks import check_not_negative, check_share, require
from posteriori.support.typing import Array


def check_ddof(ddof: int) -> None:
    """Raise ValueError if ddof is not 0 or 1."""
    require(ddof in (0, 1), f"ddof is {ddof}; it must be 0 or 1")


class Pooling(Protocol):
    """How much of its covariance a component shares with the others.

    Laws (tests/classifiers/test_gaussian_discriminant.py): at the ends of its range every pooling equals `PerClass`
    or `Pooled`.

    Attributes
    ----------
    shared : bool
        Whether all components have the same covariance.
    """

    @property
    def shared(self) -> bool: ...  # noqa: D102

    @property
    def ddof(self) -> int: ...  # noqa: D102

    def covariances(self, degrees: Array, scatter: Array) -> Array:
        """Return one covariance per component, (Z, …).

        Parameters
        ----------
        degrees : ndarray (Z,)
            The weight of the rows minus ddof, ≥ 0.
        scatter : ndarray (Z, …)
            Σ w·(x − mean)(x − mean)ᵀ, or its diagonal alone.
        """

    def mixed(self, degrees: Array) -> Array:
        """Return by what each covariance divides the mixed scatter matrices, (Z,): the degrees it is learned from."""


def _over(scatter: Array, degrees: Array) -> Array:
    """Return scatter / degrees; the scatter itself, which is 0, where there are no degrees."""
    return scatter / np.where(degrees > 0, degrees, 1.0).reshape(-1, *[1] * (scatter.ndim - 1))


def _within(degrees: Array, scatter: Array) -> Array:
    """Return the pooled within-class covariance, (1, …)."""
    return _over(scatter.sum(axis=0, keepdims=True), degrees.sum(keepdims=True))


def _weighted(share: Array, first: Array, second: Array) -> Array:
    """Return first + share·(second − first), with one share per component."""
    return np.asarray(first + share.reshape(-1, *[1] * (first.ndim - 1)) * (second - first))


@dataclass(frozen=True)
class PerClass:
    """One covariance per component (quadratic discriminant analysis); the pooled one for a component without rows."""

    ddof: int = 0
    shared = False

    def check(self) -> None:
        """Raise ValueError if ddof is not 0 or 1."""
        check_ddof(self.ddof)

    def covariances(self, degrees: Array, scatter: Array) -> Array:
        """Return scatter_c / degrees_c."""
        return _weighted((degrees <= 0).astype(float), _over(scatter, degrees), _within(degrees, scatter))

    def mixed(self, degrees: Array) -> Array:
        """Return the degrees of the component."""
        return degrees


@dataclass(frozen=True)
class Pooled:
    """One covariance for all components (linear discriminant analysis)."""

    ddof: int = 0
    shared = True

    def check(self) -> None:
        """Raise ValueError if ddof is not 0 or 1."""
        check_ddof(self.ddof)

    def covariances(self, degrees: Array, scatter: Array) -> Array:
        """Return Σ_c scatter_c / Σ_c degrees_c for every component."""
        return np.broadcast_to(_within(degrees, scatter), scatter.shape)

    def mixed(self, degrees: Array) -> Array:
        """Return the degrees of all components."""
        return np.broadcast_to(degrees.sum(), degrees.shape)


@dataclass(frozen=True)
class Regularized:
    """Friedman's λ: [(1 − λ)·scatter_c + λ·Σ scatter] / [(1 − λ)·degrees_c + λ·Σ degrees].

    Parameters
    ----------
    share : float
        λ in [0, 1]: 0 is `PerClass`, 1 is `Pooled`.

    References
    ----------
    Friedman, Regularized discriminant analysis, JASA 84 (1989), equations 9 and 10.
    """

    share: float
    ddof: int = 0

    def check(self) -> None:
        """Raise ValueError if the share is not from 0 to 1, or ddof is not 0 or 1."""
        check_ddof(self.ddof)
        check_share("the pooled share", self.share)

    @property
    def shared(self) -> bool:
        """Whether λ is 1."""
        return self.share == 1.0

    def covariances(self, degrees: Array, scatter: Array) -> Array:
        """Return the weighted covariances."""
        mixed_degrees = self.mixed(degrees)
        mixed = (1.0 - self.share) * scatter + self.share * scatter.sum(axis=0)
        covariance = _over(mixed, mixed_degrees)
        return _weighted((mixed_degrees <= 0).astype(float), covariance, _within(degrees, scatter))

    def mixed(self, degrees: Array) -> Array:
        """Return the degrees of the component and a share of those of the others."""
        return np.asarray((1.0 - self.share) * degrees + self.share * degrees.sum())


@dataclass(frozen=True)
class PseudoRows:
    """The mode of an inverse-Wishart prior centred on the pooled covariance: (scatter_c + n₀·Σ) / (degrees_c + n₀).

    Parameters
    ----------
    rows : float
        n₀ in [0, inf], in rows: 0 is `PerClass`, inf is `Pooled`.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.6.
    """

    rows: float
    ddof: int = 0

    def check(self) -> None:
        """Raise ValueError if the number of rows is negative, or ddof is not 0 or 1."""
        check_ddof(self.ddof)
        check_not_negative("the number of pseudo-rows", self.rows)

    @property
    def shared(self) -> bool:
        """Whether n₀ is infinite."""
        return bool(np.isinf(self.rows))

    def covariances(self, degrees: Array, scatter: Array) -> Array:
        """Return the modes."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # n₀ / (degrees + n₀), written so that it also holds at 0 and at infinity.
            trust_in_prior = np.where(degrees > 0, 1.0 / (1.0 + degrees / self.rows), 1.0)
        return _weighted(trust_in_prior, _over(scatter, degrees), _within(degrees, scatter))

    def mixed(self, degrees: Array) -> Array:
        """Return the degrees of the component plus the pseudo-rows, at most the degrees of all components."""
        return np.asarray(np.minimum(degrees + self.rows, max(degrees.sum(), 0.0)))


@dataclass(frozen=True)
class Covariances:
    """Estimated covariances with their degrees of freedom and units."""

    covariance: Array  # (G, d, d): one per component, or one for all
    degrees: Array  # (Z,): the weight of the rows minus ddof, per component
    # (d,): the pooled standard deviation of each column within components, in data units; 0 for a constant column.
    # Scaling by it makes a shrinkage independent of units.
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
        The mean of ‖z‖⁴ over the rows, z being a row minus its mean (`posteriori.statistics.moments`).
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
    lengths = np.sqrt(least[bounded])
    unit = np.outer(lengths, lengths)
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
    """Return covariances that can be factorised: the same, or with variances and eigenvalues near 0 raised.

    Parameters
    ----------
    covariance : ndarray (…, d, d)
    scale : ndarray (d,)
        The variance of each column over all rows. A variance below `least` times it is raised to 1e-6 times it. If the
        column has no variance at all, 1 is used, which changes no posterior.
    least : float
        Eigenvalues of the correlation matrix below this are raised to 1e-6.
    """
    flat, correlation = _correlations(covariance, scale, least)
    is_regular = _is_regular(correlation, least)
    if is_regular and not flat.any():
        return covariance
    if covariance.ndim > 2:
        return np.stack([regularise_singular(one, scale, least) for one in covariance])
    if not is_regular:
        values, vectors = np.linalg.eigh(correlation)
        if values[0] < least:
            correlation = vectors * np.maximum(values, _RAISED) @ vectors.T
        elif not flat.any():
            return covariance
    raised = np.where(scale > 0, _RAISED * scale, 1.0)
    sd = np.sqrt(np.where(flat, raised, np.diagonal(covariance)))
    regularised = correlation * np.outer(sd, sd)
    return np.asarray((regularised + regularised.T) / 2.0)


def dependent_columns(covariance: Array, scale: Array, least: float = _LEAST) -> list[int]:
    """Return the columns that have no variance or belong to a linear combination without variance."""
    flat, correlation = _correlations(covariance, scale, least)
    if not _is_regular(correlation, least):
        values, vectors = np.linalg.eigh(correlation)
        flat = flat | ((vectors[:, values < least] ** 2).sum(axis=1) > 1e-6)
    return np.flatnonzero(flat).tolist()


def _correlations(covariance: Array, scale: Array, least: float) -> tuple[Array, Array]:
    """Return which columns have no variance, (…, d), and the correlations of the others, (…, d, d)."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    flat = variance <= least * scale
    if least == _RAISED:
        flat = flat | ((scale <= 0) & (variance < 1.0))
    sd = np.sqrt(np.where(flat, 1.0, variance))
    either = flat[..., :, np.newaxis] | flat[..., np.newaxis, :]
    scaled = covariance / (sd[..., :, np.newaxis] * sd[..., np.newaxis, :])
    return flat, np.where(either, np.eye(len(scale)), scaled)


def _is_regular(correlation: Array, least: float) -> bool:
    """Return whether no eigenvalue is near `least`: the smallest one cannot be far below the smallest pivot."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(correlation), axis1=-2, axis2=-1) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > 1e3 * least)


def orient(directions: Array) -> Array:
    """Choose the sign of each column (d, k) so that its entry of largest absolute value is positive.

    An eigenvector has no sign of its own: the sign that LAPACK gives it depends on rounding, and so on the processor.
    """
    largest = np.argmax(np.abs(directions), axis=0)
    entries = np.take_along_axis(directions, largest[np.newaxis], axis=0)
    oriented: Array = directions * np.where(entries < 0, -1.0, 1.0)
    return oriented
