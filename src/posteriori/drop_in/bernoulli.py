"""Bernoulli naive Bayes under scikit-learn's name."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from posteriori.drop_in.discrete import DiscreteClassifier
from posteriori.drop_in.rows import LabelledRows, require_finite
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Bags
from posteriori.typing import Array


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

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

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
