"""Categorical naive Bayes under scikit-learn's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from posteriori.densities import Categorical, CategoricalParameters
from posteriori.drop_in.discrete import DiscreteClassifier
from posteriori.drop_in.rows import LabelledRows, require_finite
from posteriori.statistics import Counts, JointStatistics
from posteriori.tables import Assignment, Codes
from posteriori.typing import Array

_LARGEST = 1 << 31  # category: more tables than any memory holds


class CategoricalNB(DiscreteClassifier):
    r"""Categorical naive Bayes: features with values 0, …, K − 1, independent given the class.

    .. math:: p(x, y) = p(y) \prod_j \frac{n_{yj x_j} + \alpha}{n_y + \alpha K_j}

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count per category, ≥ 0; 0 gives maximum likelihood.
    force_alpha : bool, default True
        If False, an alpha below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default True
        Whether to learn p(y); if False, it is uniform.
    class_prior : array-like (C,), optional
        p(y), instead of learning it.
    min_categories : int or array-like (d,), optional
        Minimum of K per column. Default: one more than the largest category seen.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_count_, class_log_prior_ : ndarray (C,)
        Total weight of the rows of each class, and log p(y) in nats.
    category_count_ : list of ndarray (C, K)
        Total weight of the rows of each class in each category, one array per column.
    feature_log_prob_ : list of ndarray (C, K)
        log p(x_j | y) in nats.
    n_categories_ : ndarray (d,)
        K of each column, over all rows seen; scikit-learn uses the rows of the last ``partial_fit`` only.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Notes
    -----
    With ``alpha=0`` a class without rows has the frequencies of all rows; those of scikit-learn are NaN.

    Cost: fit O(n·d), predicting O(n·d·C), one pass each, in threads. The tables hold C·Σ_j K_j numbers.

    References
    ----------
    Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed., section 6.6.3.

    Examples
    --------
    >>> from posteriori.drop_in import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 2], [1, 2], [2, 0], [2, 1]], ["no", "no", "yes", "yes"])
    >>> model.predict([[2, 0], [0, 1]])
    array(['yes', 'no'], dtype='<U3')
    >>> model.category_count_[0]
    array([[1., 1., 0.],
           [0., 0., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DiscreteClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        def count(values: Array, assignment: Assignment) -> tuple[OpenCounts]:
            return (OpenCounts(Counts.of(self._codes(values), assignment)),)

        return rows.with_past(rows.fold(count))

    def _codes(self, values: Array) -> Codes:
        """Return categories as codes, with K per column as small as these rows allow."""
        low, high = values.min(), values.max()
        if not np.isfinite(low) or not np.isfinite(high):
            require_finite(values, type(self).__name__)
        if low <= -1:  # fractions are cut off, as in scikit-learn
            raise ValueError("Negative values in data passed to CategoricalNB (input X)")
        if high >= _LARGEST:
            raise ValueError(
                f"CategoricalNB counts every number from 0 to the largest in X, {high:g}; use fewer numbers"
            )
        codes = values.astype(np.min_scalar_type(int(high) + 1))
        codes += 1  # code 0 is a missing cell
        return Codes(codes, tuple(codes.max(axis=0).tolist()))

    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        del rows  # counts are float64 whatever X is
        (seen,) = self.statistics_.blocks
        counts = widen(seen.counts, self._enough(seen.counts.cardinalities))
        parameters = Categorical(float(self._check_alpha())).estimate(counts)
        columns = range(len(counts.cardinalities))
        self.n_categories_ = np.array(counts.cardinalities)
        self.class_count_ = self.statistics_.weight
        self.category_count_ = [counts.column(j) for j in columns]
        self.feature_log_prob_ = [parameters.column(j) for j in columns]
        self.class_log_prior_ = self._class_log_prior()

    def _enough(self, cardinalities: tuple[int, ...]) -> list[int]:
        """Return K of each column: the number of categories seen, at least `min_categories`."""
        if self.min_categories is None:
            return list(cardinalities)
        least = np.asarray(self.min_categories)
        if least.dtype.kind != "i":
            raise ValueError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.shape not in ((), (len(cardinalities),)):
            raise ValueError(
                f"'min_categories' should have shape ({len(cardinalities)},) when an array-like is provided, "
                f"one per feature. Got {least.shape} instead."
            )
        enough: list[int] = np.maximum(cardinalities, least).tolist()
        return enough

    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        tables = self.feature_log_prob_
        if len(tables) != n_features:
            raise ValueError(f"X has {n_features} features, but feature_log_prob_ has {len(tables)} tables")
        n_categories = np.array([table.shape[1] for table in tables])
        missing = np.zeros((len(self.classes_), 1))
        side_by_side = np.concatenate([part for table in tables for part in (missing, table)], axis=1)
        density, parameters = Categorical(), CategoricalParameters(tuple(n_categories.tolist()), side_by_side)

        def log_density(values: Array) -> Array:
            codes = self._codes(values)
            unseen = np.flatnonzero(np.asarray(codes.cardinalities) > n_categories)
            if len(unseen):
                j = unseen[0]
                raise IndexError(  # scikit-learn's type for this
                    f"X has category {codes.cardinalities[j] - 1} in column {j}, where CategoricalNB knows "
                    f"0 to {n_categories[j] - 1}; fit it with a min_categories that covers all"
                )
            return density.log_density(parameters, codes)

        return log_density

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags


@dataclass(frozen=True)
class OpenCounts:
    """Counts of columns whose K is not known in advance: a + b covers the categories of both."""

    counts: Counts

    def __add__(self, other: OpenCounts) -> OpenCounts:
        pairs = zip(self.counts.cardinalities, other.counts.cardinalities, strict=True)
        cardinalities = [max(pair) for pair in pairs]
        return OpenCounts(widen(self.counts, cardinalities) + widen(other.counts, cardinalities))


def widen(counts: Counts, cardinalities: Sequence[int]) -> Counts:
    """Return the counts extended by categories of count 0."""
    if tuple(cardinalities) == counts.cardinalities:
        return counts
    positions = [
        [*range(known), *[-1] * (wanted - known)]
        for known, wanted in zip(counts.cardinalities, cardinalities, strict=True)
    ]
    return counts.reindexed(range(len(counts.table)), positions)
