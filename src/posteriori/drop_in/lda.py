"""Linear discriminant analysis under scikit-learn's name, with its solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from posteriori import kernels
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.covariances import Pooled, orient
from posteriori.densities.multivariate_parameters import expected_rows
from posteriori.drop_in.base import RowScores, class_prior, open_rows, require_finite, result_dtype
from posteriori.drop_in.discriminant import ClassStatistics, DiscriminantAnalysis, Solver, Undetermined
from posteriori.model import has_finite_sum
from posteriori.support.typing import Array
from posteriori.tables import Batch, Numbers
from posteriori.user_warnings import warn


@dataclass(frozen=True)
class Solution:
    """Result of a solver."""

    coef: Array  # (C, d)
    intercept: Array  # (C,)
    covariance: Array  # (d, d): Σ_y π_y·Σ_y
    within: Array  # (d, d): covariance from which the coefficients are computed
    scalings: Array | None = None  # (d, rank): discriminant directions as columns
    spread: Array | None = None  # share of the between-class variance along each direction
    centre: Array | None = None  # (d,): point about which the coefficients are computed, if it is not 0


def _solve_svd(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Whiten within classes, then find the principal axes of the means there.

    The singular values of the centred rows that scikit-learn uses are the square roots of the eigenvalues used here.
    """
    weight, means = classes.weight, classes.means
    within = Pooled().covariances(weight, classes.scatter.scatter)[0]
    centre = priors @ means
    sd = np.sqrt(np.maximum(np.diagonal(within), 0.0))  # rounding may leave less than 0
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(within / np.outer(sd, sd))
    spread_within = np.sqrt(np.maximum(values, 0.0))
    kept = np.flatnonzero(spread_within > tol)[::-1]
    whitener = vectors[:, kept] / sd[:, np.newaxis] / spread_within[kept]

    degrees = max(len(weight) - 1, 1)
    apart = np.sqrt(weight.sum() * priors / degrees)[:, np.newaxis] * (means - centre) @ whitener
    _, spread, rotation = np.linalg.svd(apart, full_matrices=False)
    rank = int((spread > tol * spread.max(initial=0.0)).sum())
    scalings = orient(whitener @ rotation[:rank].T)
    projected = (means - centre) @ scalings
    coef = projected @ scalings.T
    intercept = -0.5 * (projected**2).sum(axis=1) + _log(priors) - coef @ centre
    return Solution(coef, intercept, _mixed(classes, priors), within, scalings, _shares(spread**2), centre)


def _solve_lsqr(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Solve Σ·w = μ, by least squares if Σ is singular."""
    means, covariance = classes.means, _mixed(classes, priors)
    coef = linalg.lstsq(covariance, means.T)[0].T
    return Solution(coef, _intercept(coef, means, priors), covariance, covariance)


def _solve_eigen(classes: ClassStatistics, priors: Array, tol: float) -> Solution:
    """Solve S_b·v = λ·Σ·v for S_b = S_t − Σ, the covariance between classes.

    If Σ is singular, the problem is solved in the directions in which Σ is not 0, as by "svd". scikit-learn may raise
    an error for collinear columns, depending on rounding.
    """
    means, covariance = classes.means, _mixed(classes, priors)
    whitener = _whitener(covariance)
    between = whitener.T @ (classes.total_covariance - covariance) @ whitener
    values, vectors = linalg.eigh((between + between.T) / 2.0)
    descending = np.argsort(values)[::-1]
    scalings = orient(whitener @ vectors[:, descending])
    coef = means @ scalings @ scalings.T
    intercept = _intercept(coef, means, priors)
    return Solution(coef, intercept, covariance, covariance, scalings, _shares(values[descending]))


_LEAST = 1e-12  # smaller eigenvalues of a correlation matrix, relative to the largest, are treated as 0


def _whitener(covariance: Array) -> Array:
    """Return W, (d, rank), with Wᵀ·Σ·W the identity."""
    sd = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    kept = values > _LEAST * values.max(initial=0.0)
    whitener: Array = vectors[:, kept] / sd[:, np.newaxis] / np.sqrt(values[kept])
    return whitener


SOLVERS: dict[str, Solver[Callable[[ClassStatistics, Array, float], Solution]]] = {
    "svd": Solver(_solve_svd, estimates=False, transforms=True),
    "lsqr": Solver(_solve_lsqr, estimates=True),
    "eigen": Solver(_solve_eigen, estimates=True, transforms=True),
}


def _mixed(classes: ClassStatistics, priors: Array) -> Array:
    return np.tensordot(priors, classes.covariances, axes=1)


def _intercept(coef: Array, means: Array, priors: Array) -> Array:
    intercept: Array = -0.5 * (coef * means).sum(axis=1) + _log(priors)
    return intercept


def _log(priors: Array) -> Array:
    with np.errstate(divide="ignore"):  # of a class without rows
        return np.log(priors)


def _shares(spread: Array) -> Array:
    total = spread.sum()
    return spread / total if total > 0 else np.zeros_like(spread)


@dataclass(eq=False, repr=False)
class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DiscriminantAnalysis):
    r"""Linear discriminant analysis: classes that are Gaussian with one covariance.

    .. math:: p(x, y) = \pi_y N(x;\ \mu_y, \Sigma), \qquad
        \log p(y \mid x) = x^T \Sigma^{-1} \mu_y - \tfrac12 \mu_y^T \Sigma^{-1} \mu_y + \log \pi_y + c(x)

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default "svd"
        "svd" drops directions without variance and takes Σ from all rows alike; "lsqr" and "eigen" take
        :math:`\Sigma = \sum_y \pi_y \Sigma_y`, and shrink it. "lsqr" offers no `transform`.
    shrinkage : float, "auto" or None, default None
        Weight in [0, 1] of a sphere of the same trace, per class; "auto" for the Ledoit-Wolf weight.
    priors : array-like (C,), optional
        p(y), ≥ 0; normalized with a warning if the sum is not 1. Default: from the rows.
    n_components : int, optional
        Number of directions of `transform`, at most min(C − 1, d), which is the default.
    store_covariance : bool, default False
        Whether "svd" sets `covariance_`.
    tol : float, default 1e-4
        "svd" drops directions whose within-class standard deviation, for standardised columns, is at most `tol`.
    covariance_estimator : object with ``fit`` and ``covariance_``, optional
        Estimates the covariance of each class from its rows, instead of `shrinkage`.

    Attributes
    ----------
    classes_ : ndarray (C,)
    coef_, intercept_ : ndarray (C, d) and (C,), or (1, d) and (1,) for two classes
        In nats per data unit, and nats.
    covariance_ : ndarray (d, d)
        Within classes, divided by n, in squared data units; with "svd" only if `store_covariance`.
    means_, priors_, xbar_ : ndarray (C, d), (C,), (d,)
        In data units; `xbar_` is the mean of the means by their priors, with "svd" only.
    scalings_ : ndarray (d, rank)
        The directions as columns, in which Σ is the identity; not with "lsqr". The sign of each is arbitrary.
    explained_variance_ratio_ : ndarray (n_components,)
        Share of the between-class variance along each direction.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Notes
    -----
    Additions to scikit-learn: `sample_weight`, `partial_fit`, and missing cells (NaN), which are integrated out in
    prediction. In training, EM (to 1e-5 nats per row) uses their expected statistics under one covariance for all
    classes. "auto" and `covariance_estimator` need complete rows in a single `fit`. While the rows of `partial_fit` do
    not determine the model, the sums are kept and predicting raises NotFittedError. A class without rows so far is
    never predicted.

    `predict_log_proba` is exact; scikit-learn takes the logarithm of a probability that may be rounded to 0 or 1. If
    all class means are equal, `explained_variance_ratio_` is 0, not NaN.

    Cost: fit reads each cell once, O(n·d²) in BLAS, and keeps O(C·d²); "auto" reads the cells twice. Predicting is
    O(n·d·C), plus O(d² + m³) per class for a row with m missing cells.

    References
    ----------
    Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed., section 4.3. Ledoit & Wolf, A
    well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> from posteriori.drop_in import LinearDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> model = LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [float("nan"), 1.5]])
    array([1, 2])
    """

    solver: str = "svd"
    shrinkage: Any = None
    priors: Any = None
    n_components: int | None = None
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions(set(SOLVERS))],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "priors": ["array-like", None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
    }

    _solvers = SOLVERS
    _pooling = Pooled()
    _not_estimated = "covariance estimator is not supported with {solver} solver. Try another solver"

    # Learning -----------------------------------------------------------------------------------------------

    def _set_attributes(self, classes: ClassStatistics, dtype: type[np.floating[Any]]) -> None:
        n_classes, d = classes.means.shape
        rows = classes.rows.sum()
        if rows <= n_classes:
            raise Undetermined(
                f"The number of samples must be more than the number of classes: {rows:g} sample(s) of {n_classes}."
            )
        most = min(n_classes - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        priors = self._prior(classes.weight)
        solver = SOLVERS[self.solver]
        solution = solver.solve(classes, priors, self.tol)
        kept = most if self.n_components is None else self.n_components
        exact = np.float64 if solver.estimates else dtype  # scikit-learn computes covariances in float64 only
        coef, intercept = solution.coef.astype(exact), solution.intercept.astype(exact)
        if n_classes == 2:
            coef, intercept = np.diff(solution.coef, axis=0).astype(dtype), np.diff(solution.intercept).astype(dtype)
        self.priors_, self.means_ = priors.astype(dtype), classes.means.astype(dtype)
        self.coef_, self.intercept_ = coef, intercept
        if solver.estimates or self.store_covariance:
            self.covariance_ = solution.covariance
        if solution.centre is not None:
            self.xbar_ = solution.centre.astype(exact)
        if solution.scalings is not None and solution.spread is not None:
            self.scalings_ = solution.scalings.astype(exact)
            self.explained_variance_ratio_ = solution.spread[:kept].astype(exact)
            kept = min(kept, solution.scalings.shape[1])
        self._n_features_out = kept
        self._within = solution.covariance if solver.estimates else solution.within

    def _prior(self, weight: Array) -> Array:
        priors = class_prior(self.priors, weight).astype(np.float64)
        if abs(priors.sum() - 1.0) > 1e-5:
            warn("The priors do not sum to 1. Renormalizing")
            priors /= priors.sum()
        return priors

    # Predicting ---------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Return the rows in the space of the discriminant directions, (n, n_components).

        There the within-class covariance is the identity, and the first direction separates the classes most. A missing
        cell is replaced by its expectation given the other cells of its row, averaged over p(y | x).

        Parameters
        ----------
        X : array-like (n, d)

        Raises
        ------
        NotImplementedError
            The solver is "lsqr".
        """
        if not SOLVERS[self.solver].transforms:
            raise NotImplementedError(f"transform not implemented for {self.solver!r} solver (use 'svd' or 'eigen').")
        self._require_fitted()
        X = self._validate(X, reset=False)
        directions = self.scalings_[:, : self._n_features_out].astype(np.float64)
        centre = getattr(self, "xbar_", np.zeros(X.shape[1]))
        dtype = result_dtype(X, self.scalings_.dtype)

        def project(batch: Batch) -> Array:
            values = self._completed(batch.numbers.values)
            projected: Array = (values - centre) @ directions
            return projected.astype(dtype, copy=False)

        return open_rows(X).map(project)

    def _completed(self, values: Array) -> Array:
        if has_finite_sum(values):
            return values
        require_finite(values, type(self).__name__, allow_nan=True)
        values = values.astype(np.float64)
        lacking = np.isnan(values).any(axis=1)
        rows = values[lacking]
        posterior = self._score_incomplete()(rows)
        kernels.normalise(posterior)
        values[lacking] = expected_rows(self._parameters(), rows, posterior)
        return values

    def _scores(self, n_features: int) -> RowScores:
        del n_features  # the product checks it
        return RowScores(self._with_missing_cells(self._score(), self._score_incomplete()), self.coef_.dtype)

    def _score(self) -> Callable[[Array], Array]:
        """Return the function that maps complete rows to scores: linear in x."""
        coef, intercept = self.coef_.T.astype(np.float64), self.intercept_.astype(np.float64)
        two = len(self.classes_) == 2

        def score(values: Array) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):  # of cells that are not finite
                scores = values @ coef
                scores += intercept
            return np.concatenate([np.zeros_like(scores), scores], axis=1) if two else scores

        return score

    def _score_incomplete(self) -> Callable[[Array], Array]:
        """Return the function that maps rows with missing cells to scores."""
        # The linear scores of complete rows are log p(x, y) − log N(x; o, Σ), where o is the point about which the
        # solver expands. Rows with missing cells get the same difference over their present cells.
        parameters, density = self._parameters(), MultivariateGaussian()
        origin = getattr(self, "xbar_", np.zeros(self.n_features_in_))
        aside = MultivariateGaussianParameters(np.vstack([parameters.mean, origin]), parameters.covariance)
        with np.errstate(divide="ignore"):  # of a class without rows
            log_prior = np.log(self.priors_.astype(np.float64))

        def score(values: Array) -> Array:
            log_density = density.log_density(aside, Numbers(values))
            scores = log_density[:, :-1] - log_density[:, -1:] + log_prior
            return scores - scores[:, :1] if len(log_prior) == 2 else scores

        return score

    def _parameters(self) -> MultivariateGaussianParameters:
        covariance = self._regular(self._within[np.newaxis])
        return MultivariateGaussianParameters(self.means_.astype(np.float64), covariance)
