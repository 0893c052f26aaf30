"""Pooling of covariances between components: scatter matrices in, one covariance per component out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.invariants import check_not_negative, check_share, require
from posteriori.typing import Array


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
