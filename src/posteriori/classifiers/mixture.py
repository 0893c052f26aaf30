"""Mixture models: components that no label tells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.numeric_codes import numeric_codes
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.validation import (
    PSEUDO_COUNT,
    generator,
    reject_target,
    warn_of_empty_columns,
    warn_of_few_rows,
)
from posteriori.densities import Categorical, Density, Gaussian, MultivariateGaussian
from posteriori.densities.pooling import Pooled, PseudoRows
from posteriori.densities.shrinkage import Chain, ShrinkToIdentity
from posteriori.draws import check_draw
from posteriori.learning.em import EMOptions, FitResult, first_model, learn, warn_not_converged
from posteriori.learning.fit import Collect
from posteriori.learning.initialization import SampledRows, sampled, spread_seeds
from posteriori.learning.restarts import best_of
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import TableSource, source_of
from posteriori.sources.threads import blas
from posteriori.statistics.resolution import rounding_variance
from posteriori.tables import Column, Schema, check_weights, infer_schema, quote, read_labels, read_table
from posteriori.tables.schema import categorical_column
from posteriori.tables.writing import write_table
from posteriori.typing import Array


class MixtureModel(DensityMixin, ModelEstimator):
    r"""A mixture: rows come from components that no label tells, and are told apart by EM.

    .. math:: p(x) = \sum_z p(z)\, N(x_{\mathrm{continuous}};\ \mu_z, \Sigma_z) \prod_j p(x_j \mid z)

    Continuous columns are jointly Gaussian given the component, categorical ones independent (latent class analysis).
    Missing cells are integrated out, in training by expected statistics; so tables may be mixed and incomplete.

    Parameters
    ----------
    n_components : int, default 2
        Z.
    covariance : {"full", "diagonal", "spherical", "tied"}, default "full"
        Of each component its own: full, a variance a column, or one variance for all columns (in data units); or one
        full covariance that all share.
    pseudo_rows : float, default 1.0
        Strength, in rows, of the prior that draws each covariance to that within all components: it keeps a component
        of few rows from collapsing onto them, where the likelihood is infinite. 0 is maximum likelihood.
    alpha : float, default 1.0
        Pseudo-count a category.
    prior_alpha : float, default 0.0
        Pseudo-rows a component in p(z).
    n_init : int, default 10
        Starts, each from rows that lie far apart (k-means++). All take a few steps of EM; the likeliest third of them
        goes on, and a third of those, until one is left.
    start : array-like (n,), optional
        The component, 0, …, Z − 1, that each row starts in; in place of `n_init` starts.
    categorical_features : "from_dtype", "auto", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric. "auto" takes those that hold from 2 to 10 distinct
        values, all of them whole numbers: codes, grades, small counts.
    tol : float, default 1e-5
        EM ends at a gain in log-likelihood of at most this, in nats a row.
    max_iter : int, default 500
        EM ends with a warning after as many steps.
    random_state : int, RandomState, Generator or None
        Of the starts.
    n_jobs : int, optional
        Threads; None or −1 for one a core. The result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray (Z,)
        p(z).
    means_ : ndarray (Z, d)
        Of the continuous columns, in data units.
    covariances_ : ndarray (Z, d, d), (d, d), (Z, d) or (Z,)
        In squared data units: full, tied, diagonal and spherical.
    feature_log_prob_ : list of ndarray (Z, K)
        log p(x_j = k | z) in nats of each categorical column.
    log_likelihood_trace_ : ndarray
        log p of the rows before each M-step of the start that is kept, in nats.
    n_iter_ : int
    converged_ : bool
    n_parameters_, n_features_in_ : int
    feature_names_in_ : ndarray
        Where the columns had names.

    Notes
    -----
    A recorded number stands for an interval of width δ, the resolution of its column: the median gap between its
    distinct values (1 for whole numbers). Rounding alone has the variance δ²/12, so every covariance is at least
    diag(δ²)/12 (``tied`` and ``diagonal`` ones too; a sphere has at least the largest δ²/12 as its variance). Without
    that bound the likelihood is infinite where a component consists of equal values, and the BIC falls without end.
    Where continuous values are dense δ is tiny and the bound has no effect. A bounded M-step is still a maximum.

    EM never lowers the likelihood where estimates are of maximum likelihood (``pseudo_rows=0, alpha=0``), and finds a
    local maximum; components have no order. Cells are taken to be missing at random.

    Cost: each step reads the rows once and takes O(n·Z·d²); O(n·Z·d) where the covariance is diagonal.

    References
    ----------
    Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39 (1977). Fraley &
    Raftery, Model-based clustering, discriminant analysis, and density estimation, JASA 97 (2002), on the BIC and on
    the prior. Arthur & Vassilvitskii, k-means++, SODA 2007.

    Examples
    --------
    >>> import posteriori as po
    >>> X = [[1.0, "a"], [1.2, "a"], [0.9, None], [5.0, "b"], [5.3, "b"], [None, "b"]]
    >>> model = po.MixtureModel(2, covariance="diagonal", random_state=0).fit(X)
    >>> model.predict(X) == model.predict(X)[0]
    array([ True,  True,  True, False, False, False])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"full", "diagonal", "spherical", "tied"})],
        "pseudo_rows": [PSEUDO_COUNT, Options(Real, {math.inf})],
        "alpha": [PSEUDO_COUNT],
        "prior_alpha": [PSEUDO_COUNT],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "start": [None, "array-like"],
        "categorical_features": [None, str, "array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [None, Integral],
    }
    distributions = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance: str = "full",
        pseudo_rows: float = 1.0,
        alpha: float = 1.0,
        prior_alpha: float = 0.0,
        n_init: int = 10,
        start: Any = None,
        categorical_features: Any = "from_dtype",
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.pseudo_rows = pseudo_rows
        self.alpha = alpha
        self.prior_alpha = prior_alpha
        self.n_init = n_init
        self.start = start
        self.categorical_features = categorical_features
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the components, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            As in `NaiveBayes.fit`.
        y : None
            There for scikit-learn's sake.
        sample_weight : array-like (n,), optional
            The weight of each row, ≥ 0.

        Raises
        ------
        ValueError
            There are fewer rows than components, or a cell is infinite.

        Warns
        -----
        ConvergenceWarning
            EM ran out of steps.
        UserWarning
            A component has hardly a row, or a covariance is singular.
        """
        self._validate_params()
        with blas().limit(limits=1, user_api="blas"):  # rows are shared by threads, and the matrices are small
            best, target = self._learned(X, sample_weight)
        self.statistics_ = best.statistics
        self.log_likelihood_trace_ = np.array(best.trace)
        self.converged_ = best.converged
        self._set_model(best.model, target)
        warn_not_converged(best, EMOptions(self.tol, self.max_iter), stacklevel=3)
        warn_of_empty_columns(best.model, best.statistics)
        self._warn_of_components(best)
        return self

    def _learned(self, X: Any, sample_weight: Any) -> tuple[FitResult, Column]:
        """Return where EM leads from the best start, and the components as categories."""
        source, target = self._read_training_rows(X, sample_weight)
        (rows,) = sampled(source, self._blocks(source.schema))
        blocks = self._blocks(source.schema, rounding_variance(rows.numbers).tolist())
        hidden, prior = source.reduce(Collect(blocks)), Prior(self.prior_alpha)

        def climb(start: GenerativeModel, max_steps: int) -> FitResult:
            return learn(source, blocks, prior, None, hidden, EMOptions(self.tol, max_steps), start)

        starts = [
            first_model(source.schema, blocks, prior, begun.reduce(Collect(blocks)))
            for begun in self._starts(source, rows)
        ]
        return best_of(starts, climb, self.max_iter), target

    def _read_training_rows(self, X: Any, sample_weight: Any) -> tuple[TableSource, Column]:
        table = read_table(X)
        reject_target(table, "MixtureModel")
        if table.n_rows < self.n_components:
            raise ValueError(
                f"n_samples={table.n_rows} is less than n_components={self.n_components}; ask for fewer components"
            )
        columns = range(len(table.names))
        automatic = isinstance(self.categorical_features, str) and self.categorical_features == "auto"
        categorical = numeric_codes(table) if automatic else sorted(self._categorical(table.names))
        schema = infer_schema(table, columns, categorical, None)
        target = categorical_column("component", range(self.n_components), "int64", declared=True)
        weight = check_weights(sample_weight, table.n_rows)
        return source_of(table, schema, columns, None, target, weight, n_jobs=self.n_jobs).cached(), target

    def _starts(self, source: TableSource, rows: SampledRows) -> list[TableSource]:
        """Return the rows, with the component of each to start from as its label, once for each start."""
        if self.start is not None:
            begun = replace(source, labels=read_labels(self.start, source.table))
            begun.batch(slice(0, source.table.n_rows))  # an error names a label that is no component
            return [begun]
        rng = generator(self.random_state)
        seeds = [spread_seeds(rows, self.n_components, rng) for _ in range(self.n_init if self.n_components > 1 else 1)]
        return [replace(source, labels=read_labels(source.map(one.nearest), source.table)) for one in seeds]

    def _blocks(self, schema: Schema, least_variance: Sequence[float] = ()) -> tuple[Block, ...]:
        continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
        blocks = [Block(self._gaussian(tuple(least_variance)), continuous)] if continuous else []
        if categorical:
            blocks.append(Block(Categorical(self.alpha), categorical))
        return tuple(blocks)

    def _gaussian(self, least: tuple[float, ...]) -> Density:
        own = PseudoRows(self.pseudo_rows)
        round_ = MultivariateGaussian(
            own, Chain((ShrinkToIdentity(1.0),)), least_variance=(max(least, default=0.0),) * len(least)
        )
        kinds: dict[str, Density] = {
            "full": MultivariateGaussian(own, least_variance=least),
            "tied": MultivariateGaussian(Pooled(), least_variance=least),
            "spherical": round_,
            "diagonal": Gaussian(self.pseudo_rows, least_variance=least),
        }
        return kinds[self.covariance]

    def _set_model(self, model: GenerativeModel, target: Column) -> Self:
        self._set_fitted_attributes(model, target)
        return self

    def _warn_of_components(self, learned: FitResult) -> None:
        warn_of_few_rows(learned.statistics.weight, stacklevel=4)
        schema = learned.model.schema
        for block, sums in zip(learned.model.blocks, learned.statistics.blocks, strict=True):
            involved: list[int] = []
            if isinstance(block.density, MultivariateGaussian | Gaussian):
                involved = block.density.undetermined(sums)
            if involved:
                names = quote(schema.columns[block.columns[j]].name for j in involved)
                warnings.warn(
                    f"a covariance is singular in {names}: a component has collapsed, or columns are constant or "
                    "linearly dependent; a small spread stands in; raise pseudo_rows, or leave columns out",
                    UserWarning,
                    stacklevel=3,
                )

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row, (n,)."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Learn the components, and return the most probable one of each row, (n,)."""
        return self.fit(X, y, sample_weight).predict(X)

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(z | x), (n, Z), missing cells integrated out; NaN where p(x) = 0, which takes ``alpha=0``."""
        return self._map(X, lambda model: model.posterior)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) in nats a row."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Return −2·log p(X) + m·log n, m the number of free parameters: the lower, the better."""
        log_density = self.score_samples(X)
        return float(-2.0 * log_density.sum() + self.n_parameters_ * math.log(len(log_density)))

    def aic(self, X: Any) -> float:
        """Return −2·log p(X) + 2·m, m the number of free parameters: the lower, the better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self.n_parameters_)

    def sample(self, n: int = 1, random_state: Any = None, respect_ranges: bool = True) -> tuple[Any, Array]:
        """Draw n rows, as a table like the one it was learned from, and the component of each, (n,).

        respect_ranges keeps numbers within those of the training rows, and whole where all of these were; see
        `NaiveBayes.sample`.
        """
        check_is_fitted(self, "model_")
        n = check_draw(n, self.n_features_in_)
        rng = generator(random_state)
        component = rng.choice(len(self.weights_), size=n, p=self.weights_)
        columns = self.model_.sample(component, rng, self._ranges if respect_ranges else None)
        return write_table(self.model_.schema, columns), component

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Array:
        """p(z), (Z,)."""
        return np.exp(self._fitted.log_prior)

    @property
    def means_(self) -> Array:
        """The mean of each component, (Z, d), in data units."""
        return self._parameters("continuous").mean

    @property
    def covariances_(self) -> Array:
        """(Z, d, d), (d, d), (Z, d) or (Z,) where full, tied, diagonal and spherical, in squared data units."""
        parameters = self._parameters("continuous")
        if hasattr(parameters, "variance"):
            return parameters.variance
        shapes = {"tied": parameters.covariance[0], "spherical": parameters.covariance[:, 0, 0]}
        return shapes.get(self.covariance, parameters.covariance)

    @property
    def feature_log_prob_(self) -> list[Array]:
        """Log p(x_j = k | z) in nats of each categorical column, (Z, K)."""
        parameters = self._parameters("categorical")
        return [parameters.column(j) for j in range(len(parameters.cardinalities))]

    def _parameters(self, kind: str) -> Any:
        for block, parameters in zip(self._fitted.blocks, self._fitted.parameters, strict=True):
            if block.density.kind == kind:
                return parameters
        raise AttributeError(f"this MixtureModel has no {kind} column")
