"""Gaussian naive Bayes under scikit-learn's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from posteriori.densities import Gaussian, GaussianParameters
from posteriori.densities.gaussian import SMALLEST_VARIANCE
from posteriori.drop_in.base import LabelledRows, NaiveBayesClassifier, class_prior, require_finite
from posteriori.statistics import JointStatistics, Moments
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Numbers

_FLAT = 1e200  # a variance so large that the square of any float of 32 bits is negligible; its inverse is finite


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(NaiveBayesClassifier):
    r"""Gaussian naive Bayes: every feature normal given the class.

    .. math:: p(x, y) = p(y) \prod_j N(x_j;\ \theta_{yj},\ v_{yj} + \epsilon)

    with :math:`v` the maximum-likelihood variance and :math:`\epsilon` a share of the largest variance of any
    column. If all columns are constant, each row has the prior.

    Parameters
    ----------
    priors : array-like (C,), optional
        p(y), ≥ 0, with sum 1. Default: from the rows.
    var_smoothing : float, default 1e-9
        epsilon as a share of the largest variance of any column over all rows, ≥ 0.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_count_, class_prior_ : ndarray (C,)
        Total weight of the rows of each class, and p(y).
    theta_, var_ : ndarray (C, d)
        Means and smoothed variances, in data units and squared data units.
    epsilon_ : float
        Value added to every variance, in squared data units.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Notes
    -----
    `epsilon_` is computed from all rows seen. scikit-learn computes it from the last batch, so with a large
    `var_smoothing` its ``partial_fit`` of two halves differs from its fit of all rows. As in scikit-learn, `epsilon_`
    ignores ``sample_weight``, and a column of much larger scale dominates it; the smoothing of `posteriori.NaiveBayes`
    does not depend on the scale.

    Cost: fit reads each cell once, O(n·d); predicting is O(n·d·C). Both run in threads and copy no table.

    References
    ----------
    Chan, Golub & LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.

    Examples
    --------
    >>> from posteriori.drop_in import GaussianNB
    >>> X = [[1.0, 8.0], [2.0, 9.0], [7.0, 3.0], [9.0, 1.0]]
    >>> model = GaussianNB().fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[3.0, 7.0]])
    array(['low'], dtype='<U4')
    >>> model.theta_
    array([[8. , 2. ],
           [1.5, 8.5]])
    """

    priors: Any = None
    var_smoothing: float = 1e-9

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        """Return the moments of each class, and of all rows together, unweighted."""

        def by_class(values: Array, assignment: Assignment) -> tuple[Moments]:
            moments = Moments.of(Numbers(values), assignment)
            self._check_sums(moments, values)
            return (moments,)

        def by_class_and_overall(values: Array, assignment: Assignment) -> tuple[Moments, Moments]:
            everyone = Assignment(np.zeros_like(assignment.component), np.ones_like(assignment.weight), 1)
            overall = Moments.of(Numbers(values), everyone)
            self._check_sums(overall, values)
            return Moments.of(Numbers(values), assignment), overall

        if rows.weighted:
            return rows.with_past(rows.fold(by_class_and_overall))
        statistics = rows.fold(by_class)
        (moments,) = statistics.blocks
        return rows.with_past(JointStatistics(statistics.weight, (moments, moments.pooled())))

    def _check_sums(self, unweighted: Moments, values: Array) -> None:
        # The sums skip NaN cells, so their weight is short; an infinite cell makes a sum infinite or NaN.
        if not (unweighted.finite().all() and (unweighted.weight.sum(axis=0) == len(values)).all()):
            require_finite(values, type(self).__name__)
            raise ValueError("the square of a value in X overflows; rescale its columns")

    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        dtype, (moments, overall) = rows.dtype, self.statistics_.blocks
        weight = np.where(moments.weight > 0, moments.weight, 1.0)
        epsilon = self.var_smoothing * (overall.scatter / overall.weight).max()
        self.epsilon_ = dtype(epsilon) if np.finfo(dtype).tiny <= epsilon <= np.finfo(dtype).max else epsilon
        self.theta_ = moments.mean.astype(dtype)
        variance = moments.scatter / weight + self.epsilon_
        held = np.finfo(dtype)
        is_held = ((variance == 0.0) | ((variance >= held.tiny) & (variance <= held.max))).all()
        self.var_ = variance.astype(dtype) if is_held else variance  # squares of floats of 32 bits may need 64
        self.class_count_ = self.statistics_.weight.astype(dtype)
        self.class_prior_ = self._prior().astype(dtype)

    def _prior(self) -> Array:
        prior = class_prior(self.priors, self.statistics_.weight, "Priors")
        if self.priors is not None and not np.isclose(prior.sum(), 1.0):
            raise ValueError(f"The sum of the priors should be 1, and is {prior.sum():g}.")
        return prior

    def _log_prior(self) -> Array:
        with np.errstate(divide="ignore"):  # of a class without rows
            return np.log(self.class_prior_)

    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        density, name, shape = Gaussian(), type(self).__name__, (len(self.classes_), n_features)
        # Users may set the attributes to any shape; the kernel needs one number per class and column.
        mean, variance = (
            np.array(np.broadcast_to(part, shape), np.float64, order="C") for part in (self.theta_, self.var_)
        )
        # The inverse of a tiny one may not be finite. Where all columns are constant, all variances are 0: a column of
        # one constant in all classes counts as one that is nearly flat.
        is_zero = variance == 0.0
        is_one = is_zero.all(axis=0) & (mean == mean[0]).all(axis=0)
        variance = np.maximum(variance, np.where(is_zero, 1.0 / _FLAT, SMALLEST_VARIANCE))
        variance[:, is_one] = _FLAT
        parameters = GaussianParameters(mean, variance)

        def log_density(values: Array) -> Array:
            require_finite(values, name)
            return density.log_density(parameters, Numbers(values))

        return log_density
