"""Covariance estimates of the discriminant analyses: from sums, by Ledoit and Wolf, or by an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from posteriori.densities.pooling import PerClass
from posteriori.densities.shrinkage import (
    Chain,
    Covariances,
    Shrinkage,
    ShrinkToIdentity,
    ledoit_wolf_share,
    shrink_to_identity,
)
from posteriori.sources import Source
from posteriori.statistics import Scatter
from posteriori.statistics.quartic import QuarticNorms
from posteriori.tables import Assignment, Batch
from posteriori.typing import Array


class CovarianceEstimate(Protocol):
    """Estimate of one covariance per component.

    Attributes
    ----------
    sufficient_statistics : str
        Name of the parameter that makes the rows themselves necessary; empty if sums are enough.
    shrinkage : Shrinkage
        Shrinkage of the covariances in EM, if cells are missing.
    """

    @property
    def sufficient_statistics(self) -> str: ...  # noqa: D102

    @property
    def shrinkage(self) -> Shrinkage: ...  # noqa: D102

    def estimate(self, scatter: Scatter, source: Source) -> Array:
        """Return (Z, d, d), in squared data units, divided by n and not n − 1.

        Parameters
        ----------
        scatter : Scatter
            Second moments of each class, or of all rows as one component.
        source : Source
            The rows of these moments.
        """


def choose_estimate(shrinkage: Any, covariance_estimator: Any) -> CovarianceEstimate:
    """Return the estimate for the two parameters of scikit-learn.

    Raises
    ------
    ValueError
        Both parameters are given.
    """
    if covariance_estimator is None:
        if shrinkage is None:
            return FromSums()
        return ByLedoitWolf() if shrinkage == "auto" else FromSums(ShrinkToIdentity(float(shrinkage)))
    if shrinkage is not None and shrinkage != 0:
        raise ValueError("covariance_estimator and shrinkage parameters are not None. Only one of the two can be set.")
    return ByEstimator(covariance_estimator)


@dataclass(frozen=True)
class FromSums:
    """Maximum likelihood with shrinkage that depends on the sums only."""

    shrinkage: Shrinkage = field(default_factory=Chain)
    sufficient_statistics = ""

    def estimate(self, scatter: Scatter, source: Source) -> Array:
        """Return the shrunk covariances; the pooled one for a class without rows."""
        del source
        return self.shrinkage.shrink(Covariances(_covariances(scatter), scatter.weight, np.ones(scatter.mean.shape[1])))


@dataclass(frozen=True)
class ByLedoitWolf:
    """Ledoit-Wolf shrinkage to a diagonal; the amount needs a second pass over the rows."""

    shrinkage: Shrinkage = field(default_factory=Chain)
    sufficient_statistics = "shrinkage='auto'"

    def estimate(self, scatter: Scatter, source: Source) -> Array:
        """Return the shrunk covariances."""
        covariance, mean = _covariances(scatter), scatter.mean
        scale = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        scale = np.where(scale > 0, scale, 1.0)
        norms = QuarticNorms(mean, scale)
        quartic = source.reduce(lambda batch: norms.of(batch.numbers, _among(batch, len(mean))))
        drawn = []
        for one, rows, unit, total in zip(covariance, scatter.weight, scale, quartic, strict=True):
            units = np.outer(unit, unit)
            share = ledoit_wolf_share(one / units, rows, total / (rows if rows > 0 else 1.0))
            drawn.append(shrink_to_identity(one / units, share) * units)
        return np.stack(drawn)


@dataclass(frozen=True)
class ByEstimator:
    """Covariances by an estimator such as those of sklearn.covariance, fitted to each component in turn."""

    estimator: Any
    shrinkage: Shrinkage = field(default_factory=Chain)
    sufficient_statistics = "covariance_estimator"

    def estimate(self, scatter: Scatter, source: Source) -> Array:
        """Return the estimator's covariances."""
        n_components = len(scatter.weight)
        values = source.map(lambda batch: batch.numbers.values)
        component = source.map(lambda batch: _among(batch, n_components).component)
        return np.stack([self._fit(values[component == z]) for z in range(n_components)])

    def _fit(self, values: Array) -> Array:
        self.estimator.fit(values)
        if not hasattr(self.estimator, "covariance_"):
            raise ValueError(f"{type(self.estimator).__name__} does not have a covariance_ attribute")
        return np.atleast_2d(self.estimator.covariance_)


def _covariances(scatter: Scatter) -> Array:
    return PerClass().covariances(scatter.weight, scatter.scatter)


def _among(batch: Batch, n_components: int) -> Assignment:
    """Return the component of each row: its class, or 0 if all rows are one component."""
    rows = batch.assignment
    assert rows is not None  # a source to learn from has labels
    if rows.n_components == n_components:
        return rows
    return Assignment(np.zeros_like(rows.component), rows.weight, n_components)
