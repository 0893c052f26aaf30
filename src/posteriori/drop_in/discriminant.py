"""Base of the two discriminant analyses: second moments, and class scores of rows with missing cells."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from posteriori.densities import MultivariateGaussian
from posteriori.densities.pooling import Pooling
from posteriori.densities.singular import regularise_singular
from posteriori.drop_in.base import DropInClassifier
from posteriori.drop_in.covariances import CovarianceEstimate, choose_estimate
from posteriori.drop_in.rows import LabelledRows, require_finite
from posteriori.learning.em import EMOptions, learn, warn_not_converged
from posteriori.learning.fit import Collect
from posteriori.model import Block, Prior, has_finite_sum
from posteriori.sources import LabelledSource, Source
from posteriori.statistics import JointStatistics, Scatter
from posteriori.tables import Batch
from posteriori.typing import Array

Solve = TypeVar("Solve", bound=Callable[..., Any])


class Undetermined(np.linalg.LinAlgError):
    """The rows seen so far do not determine the model, but more rows may."""


@dataclass(frozen=True)
class Solver(Generic[Solve]):
    """Solver of a discriminant analysis.

    Attributes
    ----------
    solve : callable
        Raises numpy.linalg.LinAlgError if it cannot handle a singular covariance.
    estimates : bool
        Whether it estimates covariances explicitly, so that they can be shrunk.
    transforms : bool
        Whether it finds discriminant directions.
    """

    solve: Solve
    estimates: bool
    transforms: bool = False


@dataclass(frozen=True)
class RowCount:
    """Number of rows with positive weight per class, (C,); distinguishes one heavy row from many light ones."""

    count: Array

    def __add__(self, other: RowCount) -> RowCount:
        return RowCount(self.count + other.count)


@dataclass(frozen=True)
class ClassStatistics:
    """Statistics of the classes, from which a model is estimated.

    Attributes
    ----------
    statistics : JointStatistics
        `Scatter` of each class, with expected values for missing cells, and its `RowCount`.
    estimate : CovarianceEstimate
    source : Source
        The rows, for estimates that need more than sums.
    """

    statistics: JointStatistics
    estimate: CovarianceEstimate
    source: Source

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
        warn_not_converged(reached, EMOptions(), stacklevel=6)
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
        return np.stack([regularise_singular(one, scale) for one in covariance])

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
