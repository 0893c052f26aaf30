"""Base of the two discriminant analyses: second moments, and class scores of rows with missing cells."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from posteriori import kernels
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.singular import regularise_singular
from posteriori.drop_in.base import LabelledRows, SummingClassifier, open_rows
from posteriori.drop_in.covariances import CovarianceEstimate
from posteriori.learning.em import EMOptions, learn, warn_not_converged
from posteriori.learning.fit import Collect
from posteriori.model import Block, Prior, log_sum
from posteriori.sources import LabelledSource, Source
from posteriori.statistics import JointStatistics, Scatter
from posteriori.tables import Batch
from posteriori.typing import Array


class Undetermined(np.linalg.LinAlgError):
    """The rows seen so far do not determine the model, but more rows may."""


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
        return self.statistics.blocks[0]

    @property
    def weight(self) -> Array:
        """Weight of each class, (C,), in rows."""
        return self.statistics.weight

    @property
    def rows(self) -> Array:
        """Number of rows of each class, (C,); a row of weight k counts as k rows, and at least as one."""
        return np.maximum(self.weight, self.statistics.blocks[1].count)

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
        return self.estimate.estimate(self.everyone, self.source)[0]


class DiscriminantAnalysis(SummingClassifier, ABC):
    """Discriminant analysis: Gaussian classes, learned from one `Scatter` per class.

    A subclass defines the density under which missing cells are expected (`_density`), the check of its parameters
    (`_check`), the attributes that follow from the sums (`_set_fitted_attributes`), and the scores of rows by these
    attributes (`_score`, `_parameters`). Users may also set the attributes themselves.
    """

    means_: Array
    priors_: Array
    shrinkage: Any
    covariance_estimator: Any

    @abstractmethod
    def _check(self, n_classes: int, n_features: int) -> CovarianceEstimate:
        """Check the parameters against each other and the rows; return the covariance estimate."""

    @abstractmethod
    def _density(self, estimate: CovarianceEstimate) -> MultivariateGaussian:
        """Return the density whose EM gives the expected statistics of missing cells in training."""

    @abstractmethod
    def _set_fitted_attributes(self, evidence: ClassStatistics, dtype: type[np.floating[Any]]) -> None:
        """Set the fitted attributes; raise `Undetermined` if more rows may help."""

    @abstractmethod
    def _score(self) -> Callable[[Array], Array]:
        """Return the function that maps complete rows to log p(x, y) + const(x) in nats, (n, C)."""

    @abstractmethod
    def _score_incomplete(self) -> Callable[[Array], Array]:
        """Return the same for rows with missing cells."""

    @abstractmethod
    def _precision(self) -> Any:
        """Return the data type of the scores of rows of lower or equal precision."""

    @abstractmethod
    def _parameters(self) -> MultivariateGaussianParameters:
        """Return means and regular covariances of the classes."""

    # Learning -----------------------------------------------------------------------------------------------

    def _update(self, rows: LabelledRows) -> None:
        estimate = self._check(len(rows.classes), self.n_features_in_)
        if estimate.sufficient_statistics and not rows.complete:
            raise NotImplementedError(
                f"{estimate.sufficient_statistics} needs all rows at once: use fit, or a number for shrinkage"
            )
        if estimate.sufficient_statistics == "covariance_estimator" and rows.weighted:
            raise NotImplementedError("a covariance_estimator does not support sample_weight: leave one of them out")
        statistics = self._collect_statistics(rows, estimate)
        self.classes_, self.statistics_ = rows.classes, statistics
        self._clear()
        try:
            self._set_fitted_attributes(ClassStatistics(statistics, estimate, rows.source), rows.dtype)
        except np.linalg.LinAlgError as error:
            self._lacks = str(error)
            if rows.complete:
                raise

    def _collect_statistics(self, rows: LabelledRows, estimate: CovarianceEstimate) -> JointStatistics:
        """Return the statistics of all rows so far, with expected statistics of missing cells by EM."""
        columns = tuple(range(self.n_features_in_))
        blocks = (Block(self._density(estimate), columns),)
        moments = Collect(blocks)

        def accumulate(batch: Batch) -> JointStatistics:
            sums = moments(batch)
            assert batch.assignment is not None  # `moments` raises an error otherwise
            present = batch.assignment.weight > 0
            count = np.bincount(batch.assignment.component, present, batch.assignment.n_components)
            return replace(sums, blocks=(*sums.blocks, RowCount(count)))

        part = rows.source.reduce(accumulate)
        scatter, count = part.blocks
        if scatter.is_exact():
            return part if rows.past is None else rows.past + part
        if estimate.sufficient_statistics:
            raise ValueError(
                f"{estimate.sufficient_statistics} needs rows without missing cells; give a number for shrinkage"
            )
        past = None if rows.past is None else replace(rows.past, blocks=rows.past.blocks[:1])
        source = cast(LabelledSource, rows.source)  # a sparse matrix has no missing cells
        reached = learn(source, blocks, Prior(), past, replace(part, blocks=(scatter,)), EMOptions())
        warn_not_converged(reached, EMOptions(), stacklevel=5)
        learned = reached.statistics
        count = count if rows.past is None else rows.past.blocks[1] + count
        return replace(learned, blocks=(*learned.blocks, count))

    def _clear(self) -> None:
        # Attributes of an earlier fit with another solver or other parameters must not remain.
        kept = {"classes_", "statistics_", "n_features_in_", "feature_names_in_"}
        for name in list(vars(self)):
            if (name.endswith("_") and name not in kept) or name == "_lacks":
                delattr(self, name)

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
        if len(self._fitted_classes()) == 2:
            return self._map(X, lambda scores: scores[:, 1] - scores[:, 0])
        return self._map(X, lambda scores: scores)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        return self._fitted_classes()[self._map(X, lambda scores: scores.argmax(axis=1), as_scores=False)]

    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), in the order of `classes_`."""

        def normalise(scores: Array) -> Array:
            kernels.normalise(scores)
            return scores

        return self._map(X, normalise)

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self._map(X, lambda scores: scores - log_sum(scores)[:, np.newaxis])

    def _map(self, X: Any, finish: Callable[[Array], Array], as_scores: bool = True) -> Array:
        self._fitted_classes()
        X = self._validate(X, reset=False)
        complete, incomplete, name = self._score(), self._score_incomplete(), type(self).__name__
        dtype = np.result_type(X.dtype if X.dtype.kind == "f" else np.float64, self._precision())

        def score(batch: Batch) -> Array:
            values = batch.numbers.values
            scores = complete(values)
            if not np.isfinite(scores.sum()):
                assert_all_finite(values, allow_nan=True, estimator_name=name, input_name="X")
                lacking = np.isnan(values).any(axis=1)
                if lacking.any():
                    scores[lacking] = incomplete(np.ascontiguousarray(values[lacking]))
            finished = finish(scores)
            return finished.astype(dtype, copy=False) if as_scores else finished

        return open_rows(X).map(score)

    def _fitted_classes(self) -> Array:
        if hasattr(self, "_lacks"):
            raise NotFittedError(f"the rows so far do not determine the model: {self._lacks}")
        check_is_fitted(self, "classes_")
        return self.classes_

    def _regular(self, covariance: Array) -> Array:
        """Regularise covariances (G, d, d) so that every submatrix of observed columns can be factorised."""
        everyone = self.statistics_.blocks[0].cells.pooled()
        scale = everyone.scatter[0] / np.where(everyone.weight[0] > 0, everyone.weight[0], 1.0)
        return np.stack([regularise_singular(one, scale) for one in covariance])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
