"""Base of the two discriminant analyses: covariance estimates, and class scores."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np

from posteriori.densities import MultivariateGaussian
from posteriori.densities.covariances import (
    Chain,
    Covariances,
    PerClass,
    Pooling,
    Shrinkage,
    ShrinkToIdentity,
    ledoit_wolf_share,
    regularise_singular,
    shrink_to_identity,
)
from posteriori.drop_in.base import DropInClassifier, LabelledRows, require_finite
from posteriori.learning.fit import Collect, EMOptions, learn, warn_not_converged
from posteriori.model import Block, Prior, has_finite_sum
from posteriori.sources import LabelledSource, Source
from posteriori.statistics import JointStatistics, Scatter
from posteriori.statistics.moments import QuarticNorms
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch


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
    """Return the estimate for the two parameters of scikit-learn; ValueError if both parameters are given."""
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


Solve = TypeVar("Solve", bound=Callable[..., Any])


class Undetermined(np.linalg.LinAlgError):
    """The rows seen so far do not determine the model, but more rows may."""


@dataclass(frozen=True)
class Solver(Generic[Solve]):
    """Solver of a discriminant analysis."""

    solve: Solve  # raises numpy.linalg.LinAlgError if it cannot handle a singular covariance
    estimates: bool  # whether it estimates covariances explicitly, so that they can be shrunk
    transforms: bool = False  # whether it finds discriminant directions


@dataclass(frozen=True)
class RowCount:
    """Number of rows with positive weight per class, (C,); distinguishes one heavy row from many light ones."""

    count: Array

    def __add__(self, other: RowCount) -> RowCount:
        return RowCount(self.count + other.count)


@dataclass(frozen=True)
class ClassStatistics:
    """Statistics of the classes, from which a model is estimated."""

    statistics: JointStatistics  # `Scatter` of each class, with expected values for missing cells, and its `RowCount`
    estimate: CovarianceEstimate
    source: Source  # the rows, for estimates that need more than sums

    @property
    def scatter(self) -> Scatter:
        """Second moments of each class."""
        scatter: Scatter = self.statistics.blocks[0]
        return scatter

    @property
    def weight(self) -> Array:
        """Weight of each class, (C,), in rows."""
        return self.statistics.weight

    @property
    def rows(self) -> Array:
        """Number of rows of each class, (C,); a row of weight k counts as k rows, and at least as one."""
        rows: Array = np.maximum(self.weight, self.statistics.blocks[1].count)
        return rows

    @functools.cached_property
    def everyone(self) -> Scatter:
        """Second moments of all rows together."""
        components = (self.scatter.reindexed([z]) for z in range(len(self.weight)))
        return functools.reduce(operator.add, components)

    @property
    def means(self) -> Array:
        """Class means, (C, d); the overall mean for a class without rows."""
        return np.where((self.weight > 0)[:, np.newaxis], self.scatter.mean, self.everyone.mean)

    @property
    def covariances(self) -> Array:
        """Estimated covariance of each class, (C, d, d)."""
        return self.estimate.estimate(self.scatter, self.source)

    @property
    def total_covariance(self) -> Array:
        """Estimated covariance of all rows, (d, d)."""
        total: Array = self.estimate.estimate(self.everyone, self.source)[0]
        return total


class DiscriminantAnalysis(DropInClassifier, ABC):
    """Discriminant analysis: Gaussian classes, learned from one `Scatter` per class.

    A subclass names its solvers and how it pools the classes when missing cells are expected in training, and defines
    the attributes that follow from the sums (`_set_attributes`).
    """

    _solvers: ClassVar[Mapping[str, Solver[Any]]]
    _pooling: ClassVar[Pooling]
    _not_estimated: ClassVar[str]  # scikit-learn's message for a covariance_estimator that the solver does not use

    means_: Array
    priors_: Array
    solver: str
    shrinkage: Any
    covariance_estimator: Any

    @abstractmethod
    def _set_attributes(self, classes: ClassStatistics, dtype: type[np.floating[Any]]) -> None:
        """Set the fitted attributes; dtype is the precision of X. Raise `Undetermined` if more rows may help."""

    # Learning -----------------------------------------------------------------------------------------------

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        """Return `Scatter` and `RowCount` of all rows so far, with expected statistics of missing cells by EM."""
        estimate = self._estimate()
        _require_support(estimate, rows)
        blocks = (Block(MultivariateGaussian(self._pooling, estimate.shrinkage), tuple(range(self.n_features_in_))),)
        part = _moments_and_count(rows.source, blocks)
        scatter, count = part.blocks
        if scatter.is_exact():
            return rows.with_past(part)
        if estimate.sufficient_statistics:
            raise ValueError(
                f"{estimate.sufficient_statistics} needs rows without missing cells; give a number for shrinkage"
            )
        past = None if rows.past is None else replace(rows.past, blocks=rows.past.blocks[:1])
        source = cast(LabelledSource, rows.source)  # a sparse matrix has no missing cells
        reached = learn(source, blocks, Prior(), past, replace(part, blocks=(scatter,)), EMOptions())
        warn_not_converged(reached, EMOptions())
        count = count if rows.past is None else rows.past.blocks[1] + count
        return replace(reached.statistics, blocks=(*reached.statistics.blocks, count))

    def _estimate(self) -> CovarianceEstimate:
        """Return the covariance estimate that the parameters describe, after checking them against each other."""
        if not self._solvers[self.solver].estimates:
            if self.shrinkage is not None:
                raise NotImplementedError(f"shrinkage not supported with {self.solver!r} solver.")
            if self.covariance_estimator is not None:
                raise ValueError(self._not_estimated.format(solver=self.solver))
        return choose_estimate(self.shrinkage, self.covariance_estimator)

    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        self._set_attributes(ClassStatistics(self.statistics_, self._estimate(), rows.source), rows.dtype)

    # Predicting ---------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return log p(y | x) up to a constant per row, in nats.

        Parameters
        ----------
        X : array-like (n, d)
            A missing cell (NaN) is integrated out.

        Returns
        -------
        ndarray (n, C), or (n,) for two classes
            For two classes log p(y = 1 | x) − log p(y = 0 | x).
        """
        self._require_fitted()
        if len(self.classes_) == 2:
            return self._map(X, lambda scores: scores[:, 1] - scores[:, 0])
        return self._map(X, lambda scores: scores)

    def _with_missing_cells(
        self, complete: Callable[[Array], Array], incomplete: Callable[[Array], Array]
    ) -> Callable[[Array], Array]:
        """Return the scores of any rows, from functions for rows without and rows with missing cells."""
        name = type(self).__name__

        def score(values: Array) -> Array:
            scores = complete(values)
            if not has_finite_sum(scores):
                require_finite(values, name, allow_nan=True)
                lacking = np.isnan(values).any(axis=1)
                if lacking.any():
                    scores[lacking] = incomplete(np.ascontiguousarray(values[lacking]))
            return scores

        return score

    def _regular(self, covariance: Array) -> Array:
        """Regularise covariances (G, d, d) so that every submatrix of observed columns can be factorised."""
        everyone = self.statistics_.blocks[0].cells.pooled()
        scale = everyone.scatter[0] / np.where(everyone.weight[0] > 0, everyone.weight[0], 1.0)
        return regularise_singular(covariance, scale)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _require_support(estimate: CovarianceEstimate, rows: LabelledRows) -> None:
    """Raise NotImplementedError if an estimate needs more than sums and the rows are incomplete or weighted."""
    if estimate.sufficient_statistics and not rows.complete:
        raise NotImplementedError(
            f"{estimate.sufficient_statistics} needs all rows at once: use fit, or a number for shrinkage"
        )
    if estimate.sufficient_statistics == "covariance_estimator" and rows.weighted:
        raise NotImplementedError("a covariance_estimator does not support sample_weight: leave one of them out")


def _moments_and_count(source: Source, blocks: tuple[Block, ...]) -> JointStatistics:
    """Return the second moments and the number of rows of each class."""
    moments = Collect(blocks)

    def accumulate(batch: Batch) -> JointStatistics:
        sums = moments(batch)
        assert batch.assignment is not None  # `moments` raises an error otherwise
        present = batch.assignment.weight > 0
        count = np.bincount(batch.assignment.component, present, batch.assignment.n_components)
        return replace(sums, blocks=(*sums.blocks, RowCount(count)))

    return source.reduce(accumulate)
