"""Naive Bayes of categories and of binary features under scikit-learn's names."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from posteriori.densities import Categorical, CategoricalParameters
from posteriori.drop_in.base import LabelledRows, NaiveBayesClassifier, class_prior, require_finite
from posteriori.statistics import Counts, JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Bags, Codes
from posteriori.user_warnings import warn

_SMALLEST_ALPHA = 1e-10  # scikit-learn's
_LARGEST_ALPHA = 1e30


@dataclass(kw_only=True, eq=False, repr=False)
class DiscreteClassifier(NaiveBayesClassifier, ABC):
    """Naive Bayes of discrete features, with Dirichlet smoothing."""

    alpha: Any = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: Any = None
    class_log_prior_: Array = field(init=False)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
    }

    def _check_alpha(self) -> Array:
        """Return the pseudo-counts, one for all features or one per feature, ≥ 1e-10 unless `force_alpha`."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (self.n_features_in_,):
            raise ValueError(
                "When alpha is an array, it should contains `n_features`: "
                f"give {self.n_features_in_} elements instead of {alpha.size}."
            )
        if (alpha < 0).any():
            raise ValueError(f"All values in alpha must be greater than 0: one is {alpha.min():g}.")
        if not (alpha <= _LARGEST_ALPHA).all():
            raise ValueError(f"alpha holds {alpha.max():g}; it must be at most {_LARGEST_ALPHA:g}, or sums overflow")
        if self.force_alpha or (alpha >= _SMALLEST_ALPHA).all():
            return alpha
        warn(
            f"alpha too small will result in numeric errors, setting alpha = {_SMALLEST_ALPHA:.1e}; "
            "to have it as it is, use `force_alpha=True`"
        )
        return np.maximum(alpha, _SMALLEST_ALPHA)

    def _class_log_prior(self) -> Array:
        """Return log p(y) in nats, (C,): as given, uniform, or from the weight of each class if `fit_prior`."""
        weight = self.statistics_.weight
        counted = weight if self.fit_prior else np.ones(len(weight))
        with np.errstate(divide="ignore"):  # of a class without rows
            return np.log(class_prior(self.class_prior, counted, "class_prior").astype(np.float64))

    def _log_prior(self) -> Array:
        return self.class_log_prior_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class BernoulliNB(DiscreteClassifier):
    r"""Bernoulli naive Bayes: binary features, independent given the class.

    .. math:: p(x, y) = p(y) \prod_j q_{yj}^{x_j} (1 - q_{yj})^{1 - x_j}, \qquad
              q_{yj} = \frac{n_{yj} + \alpha_j}{n_y + 2 \alpha_j}

    where :math:`n_{yj}` is the number of rows of class y in which feature j is present.

    Parameters
    ----------
    alpha : float or array-like (d,), default 1.0
        Dirichlet pseudo-count of presence and of absence, ≥ 0; 0 gives maximum likelihood.
    force_alpha : bool, default True
        If False, an alpha below 1e-10 is set to 1e-10, with a warning.
    binarize : float or None, default 0.0
        Threshold, ≥ 0: a feature is present if x exceeds it. None: x is 0 or 1, or a share between them.
    fit_prior : bool, default True
        Whether to learn p(y); if False, it is uniform.
    class_prior : array-like (C,), optional
        p(y), instead of learning it.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_count_, class_log_prior_ : ndarray (C,)
        Total weight of the rows of each class, and log p(y) in nats.
    feature_count_ : ndarray (C, d)
        Total weight of the rows of each class in which each feature is present.
    feature_log_prob_ : ndarray (C, d)
        log q in nats.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Notes
    -----
    With ``alpha=0``, if a feature never (or always) occurs in a class, rows with (or without) it are impossible in that
    class; the predictions of scikit-learn are NaN. An array-like alpha works for any number of classes.

    Cost: O(n·d) to fit and O(n·d·C) to predict, in threads; for a sparse matrix, its stored cells for n·d.

    References
    ----------
    Manning, Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 13.3.

    Examples
    --------
    >>> from posteriori.drop_in import BernoulliNB
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 0]]
    >>> model = BernoulliNB().fit(X, ["spam", "spam", "ham", "ham"])
    >>> model.predict([[1, 0, 0]])
    array(['spam'], dtype='<U4')
    >>> model.feature_count_
    array([[0., 1., 0.],
           [2., 1., 1.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DiscreteClassifier._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    # Not a dataclass: scikit-learn has `binarize` between the parameters that all share.
    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.binarize = binarize

    # Sums and scores are linear in x, so dense and sparse rows, bits and shares of a bit need no cases.

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        """Sum the weights of the rows in which each feature is present."""

        def count(values: Any, assignment: Assignment) -> tuple[Array]:
            n, weight = len(assignment.component), assignment.weight
            membership = csr_array((weight, assignment.component, np.arange(n + 1)), (n, assignment.n_components))
            present = membership.T @ self._presence(values)
            return (present.toarray() if issparse(present) else present,)

        return rows.with_past(rows.fold(count))

    def _presence(self, values: Any) -> Any:
        """Return x as 0 and 1, or unchanged if `binarize` is None; as a matrix if it is sparse."""
        values = values.to_matrix() if isinstance(values, Bags) else values
        require_finite(values, type(self).__name__)
        if self.binarize is None and values.size and (values.min() < 0 or values.max() > 1):
            raise ValueError("X holds numbers below 0 or above 1, which are no presence; give binarize a threshold")
        presence = values if self.binarize is None else values > self.binarize
        return presence.astype(np.float64, copy=False)

    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        del rows  # counts are float64 whatever X is
        weight, (present,) = self.statistics_.weight, self.statistics_.blocks
        alpha = self._check_alpha()
        total = np.broadcast_to(weight[:, np.newaxis] + 2 * alpha, present.shape)
        absent = np.maximum(weight[:, np.newaxis] - present, 0.0)  # rounding may make the difference negative
        self.class_count_, self.feature_count_ = weight, present
        with np.errstate(divide="ignore"):
            self.feature_log_prob_, self._log_prob_of_absence = (
                # Without rows and pseudo-counts, the limit of alpha going to 0 is a half.
                np.log(np.divide(count + alpha, total, out=np.full(total.shape, 0.5), where=total > 0))
                for count in (present, absent)
            )
        self.class_log_prior_ = self._class_log_prior()

    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        del n_features  # the product checks it
        # Not log(1 − exp(present)), which loses the digits of a small probability of absence.
        present, absent = np.asarray(self.feature_log_prob_), np.asarray(self._log_prob_of_absence)
        never, always = np.isneginf(present), np.isneginf(absent)
        certain = never.any() or always.any()
        present, absent = np.where(never, 0.0, present), np.where(always, 0.0, absent)

        def log_density(values: Any) -> Array:
            x = self._presence(values)
            out = _log_likelihood(x, present, absent)
            if certain:  # counted separately, because 0·log 0 is 0 but 0·−inf is NaN
                out[_log_likelihood(x, never * 1.0, always * 1.0) > 0] = -np.inf
            return out

        return log_density

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _log_likelihood(x: Any, present: Array, absent: Array) -> Array:
    """Return Σ_j x_j·present + (1 − x_j)·absent, (n, C)."""
    slope = present - absent
    # Not x @ slope.T for an array: BLAS would start threads of its own within each thread of the source.
    total: Array = x @ slope.T if issparse(x) else np.einsum("ij,kj->ik", x, slope)
    total += absent.sum(axis=1)
    return total


_LARGEST = 1 << 31  # category: more tables than any memory holds


@dataclass(kw_only=True, eq=False, repr=False)
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

    min_categories: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DiscreteClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

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
