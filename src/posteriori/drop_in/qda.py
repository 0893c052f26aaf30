"""Quadratic discriminant analysis under scikit-learn's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from posteriori import kernels
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.covariances import PerClass
from posteriori.drop_in.base import LabelledRows, RowScores, class_prior
from posteriori.drop_in.discriminant import ClassStatistics, DiscriminantAnalysis, Solver, Undetermined
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Numbers

_BLOCK_CELLS = 1 << 18  # of whitened rows, so that they stay in the cache


@dataclass(frozen=True)
class PrincipalAxes:
    """Eigendecomposition of a covariance: variances (d,), principal axes as columns (d, d), covariance (d, d)."""

    variance: Array
    rotation: Array
    covariance: Array


def _solve_svd(covariance: Array, reg_param: float) -> PrincipalAxes:
    """Regularise: shrink the variance along every axis to 1 by the weight reg_param.

    The squared singular values of the centred rows that scikit-learn uses are the eigenvalues used here.
    """
    axes = _solve_eigen(covariance, reg_param)
    variance = (1.0 - reg_param) * np.maximum(axes.variance, 0.0) + reg_param
    return PrincipalAxes(variance, axes.rotation, variance * axes.rotation @ axes.rotation.T)


def _solve_eigen(covariance: Array, reg_param: float) -> PrincipalAxes:
    del reg_param  # ignored by this solver, as in scikit-learn: shrinkage replaces it
    values, vectors = linalg.eigh(covariance)
    descending = np.argsort(values)[::-1]
    return PrincipalAxes(values[descending], vectors[:, descending], covariance)


_SOLVERS: dict[str, Solver[Callable[[Array, float], PrincipalAxes]]] = {
    "svd": Solver(_solve_svd, estimates=False),
    "eigen": Solver(_solve_eigen, estimates=True),
}


@dataclass(kw_only=True, eq=False, repr=False)
class QuadraticDiscriminantAnalysis(DiscriminantAnalysis):
    r"""Quadratic discriminant analysis: Gaussian classes with one covariance per class.

    .. math:: p(x, y) = \pi_y N(x;\ \mu_y, \Sigma_y), \qquad \Sigma_y = R_y \operatorname{diag}(s_y) R_y^T

    Parameters
    ----------
    solver : {"svd", "eigen"}, default "svd"
        "svd" supports `reg_param`; "eigen" supports `shrinkage` and `covariance_estimator`.
    shrinkage : float, "auto" or None, default None
        Weight in [0, 1] of a sphere of the same trace; "auto" for the Ledoit-Wolf weight.
    priors : array-like (C,), optional
        p(y), with sum 1. Default: from the rows.
    reg_param : float, default 0.0
        Variances along principal axes are (1 − reg_param)·s + reg_param, reg_param in [0, 1].
    store_covariance : bool, default False
        Whether to set `covariance_`.
    tol : float, default 1e-4
        A variance along an axis of at most `tol`, in squared data units, is an error.
    covariance_estimator : object with ``fit`` and ``covariance_``, optional
        Estimates the covariance of each class from its rows, instead of `shrinkage`.

    Attributes
    ----------
    classes_ : ndarray (C,)
    means_, priors_ : ndarray (C, d), (C,)
    rotations_ : list of C ndarrays (d, d)
        R: principal axes as columns. The sign of each is arbitrary.
    scalings_ : list of C ndarrays (d,)
        s: variances along the axes, divided by n, descending, in squared data units.
    covariance_ : list of C ndarrays (d, d)
        Only if `store_covariance`.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Raises
    ------
    numpy.linalg.LinAlgError
        The covariance of a class is singular: raise `reg_param` or `shrinkage`.

    Notes
    -----
    Additions to scikit-learn: `sample_weight`, `partial_fit`, and missing cells (NaN), which are integrated out in
    prediction. In training, EM (to 1e-5 nats per row) uses their expected statistics. "auto" and `covariance_estimator`
    need complete rows in a single `fit`. While the rows of `partial_fit` do not determine the model, the sums are kept
    and predicting raises NotFittedError.

    Cost: fit reads each cell once, O(n·d²) in BLAS, and keeps O(C·d²); "auto" reads the cells twice. Predicting is
    O(n·d²·C).

    References
    ----------
    Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed., section 4.3, equation 4.12. Ledoit &
    Wolf, A well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> from posteriori.drop_in import QuadraticDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> model = QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [float("nan"), 1.5]])
    array([1, 2])
    """

    solver: str = "svd"
    shrinkage: Any = None
    priors: Any = None
    reg_param: float = 0.0
    store_covariance: bool = False
    tol: float = 1.0e-4
    covariance_estimator: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions(set(_SOLVERS))],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
    }

    _solvers = _SOLVERS
    _pooling = PerClass()
    _not_estimated = "covariance_estimator is not supported with solver={solver!r}. Try solver='eigen' instead."

    # Learning -----------------------------------------------------------------------------------------------

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        if len(rows.classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one. Got {len(rows.classes)} class.")
        return super()._statistics(rows)

    def _set_attributes(self, classes: ClassStatistics, dtype: type[np.floating[Any]]) -> None:
        solver, rows = _SOLVERS[self.solver], classes.rows
        for label, count in zip(self.classes_, rows, strict=True):
            if count <= 1:
                raise Undetermined(f"y has only {count:g} sample in class {label}, covariance is ill defined.")
        covariances = classes.covariances
        axes = [solver.solve(one, self.reg_param) for one in covariances]
        for label, count, one in zip(self.classes_, rows, axes, strict=True):
            self._require_full_rank(label, count, one)
        exact = covariances.dtype if solver.estimates else dtype  # as in scikit-learn
        self.priors_ = class_prior(self.priors, classes.weight)
        self.means_ = classes.means.astype(dtype)
        self.scalings_ = [one.variance.astype(exact) for one in axes]
        self.rotations_ = [one.rotation.astype(exact) for one in axes]
        if self.store_covariance:
            self.covariance_ = [one.covariance.astype(exact) for one in axes]

    def _require_full_rank(self, label: Any, rows: float, axes: PrincipalAxes) -> None:
        solver, d = _SOLVERS[self.solver], len(axes.variance)
        # The singular value decomposition of n rows has n axes, whatever variance reg_param gives to the others.
        found = d if solver.estimates else min(d, rows)
        rank = min(found, int((axes.variance > self.tol).sum()))
        if rank >= d:
            return
        message = f"The covariance matrix of class {label} is not full rank. "
        if not solver.estimates and rows <= d:
            raise Undetermined(
                f"{message}When using `solver={self.solver!r}` the number of samples in each class should be more than "
                f"the number of features, but class {label} has {rows:g} samples and {d} features. Try using "
                "`solver='eigen'` and setting the parameter `shrinkage` for regularization."
            )
        remedy = "shrinkage" if solver.estimates else "reg_param"
        raise Undetermined(f"{message}Increase the value of `{remedy}` to reduce the collinearity.")

    # Predicting ---------------------------------------------------------------------------------------------

    def _scores(self, n_features: int) -> RowScores:
        del n_features  # the product checks it
        dtype = np.result_type(self.scalings_[0].dtype, self.priors_.dtype)
        return RowScores(self._with_missing_cells(self._score(), self._score_incomplete()), dtype)

    def _score(self) -> Callable[[Array], Array]:
        """Return the function that maps complete rows to scores."""
        mean = self.means_.astype(np.float64)
        middle = mean.mean(axis=0)  # rows are whitened about it, so that an offset costs no digits
        whitener = [
            rotation / np.sqrt(variance) for rotation, variance in zip(self.rotations_, self.scalings_, strict=True)
        ]
        whiteners = np.concatenate(whitener, axis=1).astype(np.float64)
        centre = np.stack([(one - middle) @ own for one, own in zip(mean, whitener, strict=True)]).astype(np.float64)
        group, constant = np.arange(len(mean)), self._constant()

        def score(values: Array) -> Array:
            scores = np.empty((len(values), len(mean)))
            size = max(1, _BLOCK_CELLS // whiteners.shape[1])
            for start in range(0, len(values), size):
                rows = slice(start, start + size)
                with np.errstate(invalid="ignore", over="ignore"):  # of cells that are not finite
                    whitened = (values[rows] - middle) @ whiteners
                kernels.whitened_distance(whitened, centre, group, scores[rows])
            return -0.5 * scores + constant

        return score

    def _constant(self) -> Array:
        volume = np.array([np.log(variance).sum() for variance in self.scalings_], np.float64)
        return -0.5 * volume + self._log_prior()

    def _log_prior(self) -> Array:
        with np.errstate(divide="ignore"):  # of a class that the caller rules out
            return np.log(np.asarray(self.priors_, np.float64))

    def _score_incomplete(self) -> Callable[[Array], Array]:
        """Return the function that maps rows with missing cells to scores."""
        parameters, density, log_prior = self._parameters(), MultivariateGaussian(), self._log_prior()

        def score(values: Array) -> Array:
            # scikit-learn leaves out 2π; here it is left out for each present cell.
            present = (~np.isnan(values)).sum(axis=1, keepdims=True)
            log_density: Array = density.log_density(parameters, Numbers(values))
            log_density += log_prior
            log_density += 0.5 * np.log(2.0 * np.pi) * present
            return log_density

        return score

    def _parameters(self) -> MultivariateGaussianParameters:
        pairs = zip(self.rotations_, self.scalings_, strict=True)
        covariance = np.stack([(variance * rotation @ rotation.T).astype(np.float64) for rotation, variance in pairs])
        return MultivariateGaussianParameters(self.means_.astype(np.float64), self._regular(covariance))
