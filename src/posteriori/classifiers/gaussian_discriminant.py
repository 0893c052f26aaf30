"""Gaussian discriminant analysis: LDA, QDA and regularized forms between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.parameters import (
    COLUMN_CONSTRAINTS,
    EM_CONSTRAINTS,
    PRIOR_CONSTRAINTS,
    WEIGHTS_CONSTRAINTS,
    GivenParameters,
    declares_parameters,
    discriminant_from_parameters,
    missingness_of,
)
from posteriori.classifiers.partitions import supports_partitions
from posteriori.densities import (
    Categorical,
    MissingnessParameters,
    MultivariateGaussian,
    MultivariateGaussianParameters,
)
from posteriori.densities.covariances import (
    Chain,
    Diagonal,
    LedoitWolf,
    OracleApproximating,
    PerClass,
    Pooled,
    Pooling,
    Regularized,
    Shrinkage,
    ShrinkToDiagonal,
    ShrinkToIdentity,
    orient,
)
from posteriori.densities.multivariate_parameters import expected_rows
from posteriori.explain import QuadraticForm
from posteriori.fitting.parameter_groups import EM, Labels
from posteriori.model import Block
from posteriori.support.constraints import PSEUDO_COUNT
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_SHRINKAGES: dict[str, Shrinkage] = {
    "diagonal": Diagonal(),
    "spherical": ShrinkToIdentity(1.0),
    "ledoit_wolf": LedoitWolf(),
    "oas": OracleApproximating(),
}
_POOLINGS: dict[str, Pooling] = {"per_class": PerClass(), "pooled": Pooled()}


@declares_parameters
class GaussianDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GenerativeEstimator):
    r"""Gaussian discriminant analysis: the continuous columns of each class are one multivariate Gaussian.

    .. math:: p(x \mid y) = N(x;\ \mu_y, \Sigma_y)

    With one covariance for all classes (``pooling="pooled"``, LDA) the boundaries are linear and the posterior is the
    softmax of :math:`w_c^T x + b_c`; with one covariance per class (``"per_class"``, QDA) they are quadratic.
    Categorical columns are independent given the class. Missing cells are integrated out in prediction. Training is
    maximum likelihood: one closed-form pass if no cell is missing, EM otherwise.

    Parameters
    ----------
    pooling : "per_class", "pooled", float or an object of its module, default "pooled"
        How classes share the covariance (`posteriori.densities.covariances`). A number is Friedman's λ in [0, 1], the
        weight of the pooled covariance. ``PseudoRows(n)`` is an inverse-Wishart prior worth n rows, which shrinks the
        covariance of a class to the pooled one. These divide by n_c, or n if pooled (maximum likelihood); the objects
        with ``ddof=1``, such as ``Pooled(ddof=1)``, by n_c − 1 or n − C (unbiased).
    shrinkage : float, "diagonal", "spherical", "ledoit_wolf", "oas" or an object of its module, optional
        How it is shrunk (`posteriori.densities.covariances`). A number is Friedman's γ in [0, 1], shrinkage to a sphere
        for columns in units of their within-class standard deviations (see Notes). "diagonal" sets all correlations to
        0. "spherical" has one variance for all columns, in data units; it is the only one that depends on the scale of
        the columns. The other names choose γ by least expected squared error: "ledoit_wolf" for any distribution (needs
        a second pass over the rows, so `partial_fit` is not possible), "oas" for Gaussian rows (Chen et al.). Default:
        none, the full covariance.
    .. shared:: priors
    .. shared:: predictive
    alpha : float, default 1.0
        Dirichlet pseudo-count per category of the categorical columns.
    .. shared:: columns
    .. shared:: missing, labels, em, random_state, feature_weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    .. shared:: class_prior_
    means_ : ndarray (C, d)
        In data units, for the continuous columns in their order.
    covariance_ : ndarray (d, d) or (C, d, d)
        In squared data units; one matrix if it is shared. With ``predictive=True`` the scale matrix of the t, without
        the factor 1 + 1/n_c.
    coef_, intercept_ : ndarray (C, d), (C,)
        w_c = Σ⁻¹μ_c and b_c = −½μ_cᵀΣ⁻¹μ_c + log π_c, if the covariance is shared and estimated. The posterior of a row
        of continuous columns is the softmax of w·x + b.
    scalings_ : ndarray (d, min(C − 1, d))
        Fisher's discriminant directions; see `transform`.
    explained_variance_ratio_ : ndarray
        Share of the between-class variance along each direction.
    .. shared:: component_classes_, label_confusion_, feature_weights_
    log_likelihood_trace_ : ndarray
        Log-likelihood before each M-step of EM, in nats; empty if no cell and no label was missing.
    .. shared:: n_iter_, unlabelled_weight_, transduction_
    .. shared:: n_parameters_, feature_names_in_

    Notes
    -----
    If a column is constant within a class or a linear combination of others, a warning names it, and it gets a spread
    of a thousandth of its standard deviation, which makes the covariance regular.

    Rescaling a column changes no posterior, unless the covariance is spherical. With the pooled within-class variance
    s_j² of column j and D = diag(s_1², …, s_d²), shrinkage by γ replaces Σ_c by

    .. math:: (1 - \gamma) \Sigma_c + \gamma \tau_c D, \quad \tau_c = \operatorname{tr}(D^{-1} \Sigma_c) / d

    which is Friedman's equation 18 for columns in units of s_j. In data units his target is a sphere, and the column
    with the largest variance dominates. γ = 0 is no shrinkage. γ = 1 is ``shrinkage="diagonal"`` if the covariance is
    pooled; otherwise each class keeps a scale factor τ_c. "ledoit_wolf" estimates γ of each covariance from the norms
    of its rows, centred on their class means, in units of s_j; if cells are missing, from the complete rows.

    With ``predictive=True`` the means (flat prior) and the covariances (inverse Wishart, as if d + 1 rows had shown Ψ)
    are integrated out (Geisser 1964). Ψ is D for a covariance that all classes share, and for the others the scale
    matrix of the shared one. With the covariance Σ_c of m rows that pooling and shrinkage give, of which r = m
    less the number of means are degrees of freedom,

    .. math:: p(x \mid c) = t_{r + 2}\Bigl(x;\ \mu_c,\ \bigl(1 + \tfrac{1}{n_c}\bigr)
              \frac{m \Sigma_c + (d + 1) \Psi}{r + 2}\Bigr)

    It tends to the Gaussian as n grows, and it is proper for any number of rows. Then the log-odds are not linear or
    quadratic. If cells are missing, n_c is the mean number of present cells of a column. A column that is empty or
    constant in all training rows is no part of the t: it is not counted in d and n_c, and its cells have the factor 1.

    `partial_fit` equals one fit of all rows if no cell is missing. Otherwise the expected statistics of missing cells
    are computed under the model at that time; later rows do not revise them.

    .. shared:: unlabelled rows

    With "ledoit_wolf" the shrinkage is estimated from the labelled rows.

    .. shared:: informative missingness

    Cost: O(n·d²) in BLAS and one pass over the rows per step of EM; C times that for rows without label.

    References
    ----------
    Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed., section 4.3. Geisser, Posterior odds
    for multivariate normal classifications, J. Royal Statistical Society B 26 (1964). Friedman, Regularized
    discriminant analysis, JASA 84 (1989). Rubin, Inference and missing data, Biometrika 63 (1976). Little & Rubin,
    Statistical Analysis with Missing Data, 2nd ed., section 11.2 and chapter 15.
    Ledoit & Wolf, A well-conditioned estimator for large-dimensional covariance matrices, J. Multivariate Analysis 88
    (2004), section 3.3. Chen, Wiesel, Eldar & Hero, Shrinkage algorithms for MMSE covariance estimation, IEEE Trans.
    Signal Processing 58 (2010). Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled
    documents using EM, Machine Learning 39 (2000).

    Examples
    --------
    >>> import posteriori as po
    >>> X = [[0.0, 0.1], [1.0, 0.9], [4.0, 0.2], [5.0, None], [0.5, 0.0], [4.5, 0.8]]
    >>> model = po.GaussianDiscriminant().fit(X, ["left", "left", "right", "right", "left", "right"])
    >>> model.predict([[1.0, None], [4.0, 0.5]])
    array(['left', 'right'], dtype='<U5')
    """

    takes_two_values = False  # a joint Gaussian keeps their dependence on other columns
    pooling: Any = "pooled"
    shrinkage: Any = None
    predictive: bool = False
    alpha: float = 1.0
    missing: str = "at_random"
    labels: Labels | None = None
    em: EM | None = None
    random_state: Any = None
    feature_weights: str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "pooling": [StrOptions(set(_POOLINGS)), Interval(Real, 0, 1, closed="both"), HasMethods("covariances")],
        "shrinkage": [
            None,
            StrOptions(set(_SHRINKAGES)),
            Interval(Real, 0, 1, closed="both"),
            HasMethods("shrink"),
        ],
        "predictive": ["boolean"],
        "alpha": [PSEUDO_COUNT],
        "missing": [StrOptions({"at_random", "informative"})],
        **PRIOR_CONSTRAINTS,
        **COLUMN_CONSTRAINTS,
        **EM_CONSTRAINTS,
        **WEIGHTS_CONSTRAINTS,
    }
    distributions = None

    @classmethod
    def from_parameters(
        cls,
        *,
        priors: Any,
        means: Any,
        covariance: Any = None,
        covariances: Any = None,
        classes: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
    ) -> GaussianDiscriminant:
        """Build a fitted model from known parameters, without data.

        Parameters
        ----------
        priors : mapping or sequence (C,)
            p(y), by class or in the order of `classes`.
        means : array-like (C, d) or mapping from class to (d,)
            In data units.
        covariance : array-like (d, d), optional
            Shared by all classes, in squared data units.
        covariances : array-like (C, d, d) or mapping from class to (d, d), optional
            One covariance per class, instead of `covariance`.
        classes : sequence (C,), optional
            Default: the keys of `priors`, or 0, 1, ….
        features : sequence of str (d,), optional
            The names of the columns; default: none.

        Returns
        -------
        GaussianDiscriminant

        Raises
        ------
        ValueError
            Shapes do not agree, priors do not sum to 1, or a covariance is not positive definite.

        Examples
        --------
        >>> import posteriori as po
        >>> model = po.GaussianDiscriminant.from_parameters(
        ...     priors=[0.5, 0.5], means=[[0, 0], [2, 0]], covariance=[[1, 0.5], [0.5, 1]]
        ... )
        >>> model.predict_proba([[1, 0], [2, None]]).round(3)
        array([[0.5  , 0.5  ],
               [0.119, 0.881]])
        """
        known = GivenParameters(priors, classes, {}, {}, {}, None)
        model = discriminant_from_parameters(known, means, covariance, covariances, features)
        pooling = "per_class" if covariance is None else "pooled"
        return cls(pooling=pooling, priors=known.priors)._set_model(model, known.target)

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
        blocks = []
        if continuous:
            density = MultivariateGaussian(self._pooling(), self._shrinkage(), predictive=bool(self.predictive))
            blocks.append(Block(density, continuous))
        if categorical:
            blocks.append(Block(Categorical(self.alpha), categorical))
        return (*blocks, *missingness_of(self.missing, self.alpha, schema))

    def _pooling(self) -> Pooling:
        given: Any = self.pooling
        if isinstance(given, str):
            return _POOLINGS[given]
        return Regularized(float(given)) if isinstance(given, Real) else given

    def _shrinkage(self) -> Shrinkage:
        given: Any = self.shrinkage
        if given is None:
            return Chain()
        if isinstance(given, str):
            return _SHRINKAGES[given]
        return ShrinkToDiagonal(float(given)) if isinstance(given, Real) else given

    # Discriminant directions ------------------------------------------------------------------------------------

    @supports_partitions("discriminant")
    def transform(self, X: Any) -> Array:
        """Return the rows in the space of Fisher's discriminant directions, (n, min(C − 1, d)).

        There the within-class covariance is the identity, and the first direction separates the classes most. A missing
        cell is replaced by its expectation given the other cells of its row, averaged over the posterior of the
        classes.
        """
        parameters = self._gaussian[1]
        directions, centre = self.scalings_, self.xbar_

        def project(batch: Batch) -> Array:
            values = batch.numbers.values
            if np.isnan(values).any():
                values = expected_rows(parameters, values, self.model_.component_posterior(batch))
            return (values - centre) @ directions

        return self._source(X).map(project)

    @property
    def _n_features_out(self) -> int:
        return len(self.scalings_.T)

    @property
    def scalings_(self) -> Array:
        """Fisher's discriminant directions as columns, (d, min(C − 1, d))."""
        return self._directions[0]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the between-class variance along each direction."""
        spread = self._directions[1] ** 2
        return spread / spread.sum() if spread.sum() > 0 else spread

    @property
    def xbar_(self) -> Array:
        """Mean of the class means, weighted by the prior, (d,)."""
        return np.exp(self.model_.log_prior) @ self.means_

    @property
    def _directions(self) -> tuple[Array, Array]:
        parameters = self._gaussian[1]
        weight = np.exp(self.model_.log_prior)
        within = MultivariateGaussianParameters(
            self.means_, np.tensordot(weight, self._covariances, axes=1)[np.newaxis]
        )
        apart = np.sqrt(weight)[:, np.newaxis] * (parameters.mean - self.xbar_) @ within.whitener[0]
        _, spread, rotation = np.linalg.svd(apart, full_matrices=False)
        rank = min(len(weight) - 1, apart.shape[1])
        return orient(within.whitener[0] @ rotation[:rank].T), spread[:rank]

    # Fitted values ----------------------------------------------------------------------------------------------

    @supports_partitions("mahalanobis")
    def mahalanobis(self, X: Any) -> Array:
        """Return the distance √((x − μ_c)ᵀ·Σ_c⁻¹·(x − μ_c)) of each row from each class, (n, C), over present cells.

        For a class with several components, the distance from the nearest component.
        """
        block, parameters = self._gaussian
        density, of_class = block.density, self.model_.of_class

        def measure(batch: Batch) -> Array:
            distance: Array = density.mahalanobis(parameters, batch.take(block.columns, density.kind))
            if not of_class:
                return distance
            nearest: Array = np.minimum.reduceat(distance, np.searchsorted(of_class, range(len(self.classes_))), axis=1)
            return nearest

        return self._source(X).map(measure)

    def quadratic_form(self) -> QuadraticForm:
        """Return the coefficients of log p(x, y) = xᵀ·A_y·x + w_yᵀ·x + b_y, for rows of continuous columns."""
        self._require_one_component("a quadratic form")
        parameters = self._estimated
        group = parameters.groups
        precision = parameters.precision[group]
        linear = np.einsum("cij,cj->ci", precision, parameters.mean)
        normaliser = parameters.log_volume[group] + parameters.mean.shape[1] * math.log(2.0 * math.pi)
        constant = (
            self.class_log_prior_ + self._log_present - 0.5 * ((linear * parameters.mean).sum(axis=1) + normaliser)
        )
        return QuadraticForm(-0.5 * precision, linear, constant)

    @property
    def _estimated(self) -> MultivariateGaussianParameters:
        """The parameters of the Gaussians, if they are estimated."""
        parameters = self._gaussian[1]
        if parameters.degrees is not None:
            raise AttributeError("the log-odds of t densities are not linear or quadratic; this needs predictive=False")
        return parameters

    def _require_one_component(self, what: str) -> None:
        if self.model_.of_class:
            raise AttributeError(f"the log-odds of mixtures have no {what[2:]}; it needs one component per class")

    @property
    def _gaussian(self) -> tuple[Any, MultivariateGaussianParameters]:
        for block, parameters in zip(self.model_.blocks, self.model_.parameters, strict=True):
            if isinstance(parameters, MultivariateGaussianParameters):
                return block, parameters
        raise AttributeError(f"this {type(self).__name__} has no continuous column")

    @property
    def _log_present(self) -> Array:
        """Σ_j log p(m_j = 0 | y) over the continuous columns, (C,), in nats; part of the score of a complete row."""
        continuous = self._gaussian[0].columns
        total = np.zeros(len(self.class_log_prior_))
        for block, parameters in zip(self.model_.blocks, self.model_.parameters, strict=True):
            if isinstance(parameters, MissingnessParameters):
                total += parameters.log_present[:, np.isin(block.columns, continuous)].sum(axis=1)
        return total

    @property
    def _covariances(self) -> Array:
        parameters = self._gaussian[1]
        return np.broadcast_to(parameters.covariance, (len(parameters.mean), *parameters.covariance.shape[1:]))

    @property
    def means_(self) -> Array:
        """Class means, (C, d), in data units."""
        return self._gaussian[1].mean

    @property
    def covariance_(self) -> Array:
        """Covariance, (d, d) if it is shared and (C, d, d) otherwise, in squared data units."""
        covariance = self._gaussian[1].covariance
        return covariance[0] if len(covariance) == 1 else covariance

    @property
    def coef_(self) -> Array:
        """w_c = Σ⁻¹μ_c, (C, d), in nats per data unit; only if the covariance is shared."""
        self._require_one_component("a linear form")
        parameters = self._estimated
        if not parameters.shared:
            raise AttributeError('the log-odds are quadratic; coef_ needs pooling="pooled"')
        coef: Array = parameters.mean @ parameters.precision[0]
        return coef

    @property
    def intercept_(self) -> Array:
        """b_c = −½μ_cᵀΣ⁻¹μ_c + log π_c, (C,), in nats; only if the covariance is shared."""
        intercept: Array = -0.5 * (self.coef_ * self.means_).sum(axis=1) + self.class_log_prior_ + self._log_present
        return intercept
