"""Mixture models for clustering: latent components, learned by EM from several starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.estimator import OneModel
from posteriori.classifiers.keywords import OF_MIXTURES, OF_SAMPLING
from posteriori.classifiers.notebooks import components_html
from posteriori.classifiers.parameters import declares_parameters
from posteriori.classifiers.partitions import supports_partitions
from posteriori.densities import Categorical, Density, Gaussian, MultivariateGaussian
from posteriori.densities.covariances import Chain, Pooled, PseudoRows, ShrinkToIdentity
from posteriori.fitting.estimate_warnings import warn_of_empty_columns, warn_of_few_rows
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.label_parameters import reject_target
from posteriori.fitting.named_columns import categorical_places, kept_places, stated_columns
from posteriori.fitting.parameter_groups import (
    EM,
    Columns,
    columns_of,
    set_grouped_params,
    validate_grouped_params,
)
from posteriori.fitting.rows import with_counted_categories
from posteriori.learning.fit import Collect, EMOptions, FitResult, first_model, learn, warn_not_converged
from posteriori.learning.initialization import SampledRows, sampled, spread_seeds
from posteriori.learning.work_bounds import announce_em
from posteriori.model import Block, GenerativeModel, Prior, draw_rows
from posteriori.reading import check_weights, infer_schema, read_labels, read_table
from posteriori.registry import Subject
from posteriori.scoring import Scorer
from posteriori.scoring.fitted import warn_of_impossible
from posteriori.sources import LabelledSource, source_of
from posteriori.statistics.resolution import few_whole_numbers, rounding_variance
from posteriori.support.checks import check_draw, generator
from posteriori.support.constraints import N_JOBS, PSEUDO_COUNT
from posteriori.support.formatting import listed
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema, Table, quote
from posteriori.tables.schema import categorical_column
from posteriori.tables.writing import write_table
from posteriori.user_warnings import warn


def numeric_codes(table: Table) -> list[int]:
    """Return the positions of the numeric columns that hold from 2 to 10 distinct values, all of them whole numbers.

    A mixture takes them for categories where `categorical_features` is "auto": one Gaussian a value describes such a
    column better the more components there are, although they find no group of rows.
    Raises ValueError if a cell is infinite.
    """
    columns = [j for j in range(len(table.names)) if table.time_type(j) is None]
    if not columns:
        return []
    schema = infer_schema(table, columns)
    numbers = schema.of_kind("continuous")
    if not numbers:
        return []
    source = source_of(table, schema, columns).numeric_columns()
    (rows,) = sampled(source, (Block(Gaussian(), numbers),))
    likely = [columns[j] for j, few in zip(numbers, few_whole_numbers(rows.numbers), strict=True) if few]
    return [j for j in likely if few_whole_numbers(_distinct(table, j)).all()]


def _distinct(table: Table, j: int) -> np.ndarray:
    """Return the distinct numbers of a column, (m, 1): those of all rows, and not of the sampled ones only."""
    return np.array([float(cell) for cell in table.distinct(j)])[:, np.newaxis]


_FIRST_STEPS = 8  # steps of EM before the starts are first compared

RunEM = Callable[[GenerativeModel, int], FitResult]


def best_of(starts: Sequence[GenerativeModel], run: RunEM, max_steps: int) -> FitResult:
    """Run EM from several starts, and keep the best third of the runs in each round (successive halving).

    Every start gets 8 steps of EM. The third of the greatest likelihood continues to 24 steps in all, a third of these
    to 56, and so on. The last run continues until EM converges or has taken `max_steps`.

    Parameters
    ----------
    starts : sequence of GenerativeModel
    run : callable
        run(model, n) takes at most n steps of EM from a model.
    max_steps : int

    References
    ----------
    Biernacki, Celeux & Govaert, Choosing starting values for the EM algorithm for getting the highest likelihood in
    multivariate Gaussian mixture models, Computational Statistics & Data Analysis 41 (2003), on short runs. Jamieson &
    Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016, on halving.
    """
    steps = _FIRST_STEPS if len(starts) > 1 else max_steps
    runs = [run(start, min(steps, max_steps)) for start in starts]
    while len(runs) > 1:
        runs = sorted(runs, key=lambda fit: -fit.trace[-1])[: -(-len(runs) // 3)]  # rounded up
        steps = 2 * steps + _FIRST_STEPS if len(runs) > 1 else max_steps
        runs = [_continue(fit, run, min(steps, max_steps)) for fit in runs]
    return runs[0]


def _continue(fit: FitResult, run: RunEM, steps: int) -> FitResult:
    """Continue a run of EM until it converges or has taken so many steps in all."""
    if fit.converged or len(fit.trace) >= steps:
        return fit
    rest = run(fit.model, steps - len(fit.trace))
    return replace(rest, trace=fit.trace + rest.trace)


def _default_em() -> EM:
    """Return the default of `em` for a mixture: more steps than for a classifier."""
    return EM(max_iter=500)


@declares_parameters
class MixtureModel(DensityMixin, OneModel):
    r"""Mixture model: rows come from latent components, which are learned by EM.

    .. math:: p(x) = \sum_z p(z)\, N(x_{\mathrm{continuous}};\ \mu_z, \Sigma_z) \prod_j p(x_j \mid z)

    Continuous columns are jointly Gaussian given the component, categorical ones independent (latent class analysis).
    Missing cells are integrated out, in training by expected statistics. Tables may have both kinds and missing cells.

    Parameters
    ----------
    n_components : int, default 2
        Number of components Z.
    covariance : {"full", "diagonal", "spherical", "tied"}, default "full"
        One covariance per component: full, diagonal (one variance per column) or spherical (one variance for all
        columns, in data units); or "tied", one full covariance for all components.
    pseudo_rows : float, default 1.0
        Strength, in rows, of the prior that shrinks each covariance to the pooled within-component covariance. It keeps
        a component from collapsing onto a few rows, where the likelihood is infinite. 0 gives maximum likelihood.
    alpha : float, default 1.0
        Dirichlet pseudo-count per category.
    prior_alpha : float, default 0.0
        Dirichlet pseudo-count per component in p(z).
    n_init : int, default 10
        Number of initializations, each from rows that are far apart (k-means++). All run a few steps of EM; the third
        with the highest likelihood continues, then a third of these, until one is left.
    start : array-like (n,), optional
        Initial component, 0, …, Z − 1, of each row; replaces the `n_init` initializations.
    .. shared:: columns
    em : EM, optional
        When EM stops: ``po.EM(tol=1e-4, max_iter=1000)``. Default: ``po.EM(max_iter=500)``; a `po.EM` of your own has
        200 steps unless it states another number. `components_per_class` and `n_init` in it are refused: they are for
        classifiers, and a mixture has `n_components` and `n_init` of its own.
    random_state : int, RandomState, Generator or None
        Seed of the initializations.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core. The result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray (Z,)
        p(z).
    means_ : ndarray (Z, d)
        Of the continuous columns, in data units.
    covariances_ : ndarray (Z, d, d), (d, d), (Z, d) or (Z,)
        In squared data units; the shapes are for full, tied, diagonal and spherical.
    feature_log_prob_ : list of ndarray (Z, K)
        log p(x_j = k | z) in nats of each categorical column.
    log_likelihood_trace_ : ndarray
        Log-likelihood before each M-step of the selected initialization, in nats.
    n_iter_ : int
    converged_ : bool
    .. shared:: n_parameters_, feature_names_in_

    Notes
    -----
    A recorded number represents an interval of width δ, the resolution of its column: the median gap between its
    distinct values (1 for whole numbers). Rounding has the variance δ²/12, so every covariance is bounded below by
    diag(δ²)/12 (also ``tied`` and ``diagonal`` ones; a spherical variance is at least the largest δ²/12). Without this
    bound the likelihood is infinite if a component consists of equal values, and the BIC decreases without limit. If
    values are dense, δ is tiny and the bound has no effect. The bounded M-step is still a maximum.

    With maximum-likelihood estimates (``pseudo_rows=0, alpha=0``) EM never decreases the likelihood. It finds a local
    maximum. Components have no order. Cells are assumed to be missing at random.

    Cost: each step reads the rows once and takes O(n·Z·d²), or O(n·Z·d) if the covariance is diagonal.

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

    n_components: int = field(default=2, kw_only=False)
    covariance: str = "full"
    pseudo_rows: float = 1.0
    alpha: float = 1.0
    prior_alpha: float = 0.0
    n_init: int = 10
    start: Any = None
    columns: Columns | None = None
    em: EM | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"full", "diagonal", "spherical", "tied"})],
        "pseudo_rows": [PSEUDO_COUNT, Options(Real, {math.inf})],
        "alpha": [PSEUDO_COUNT],
        "prior_alpha": [PSEUDO_COUNT],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "start": [None, "array-like"],
        "columns": [None, Columns],
        "em": [None, EM],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": N_JOBS,
    }

    subject = Subject.COMPONENT
    _keywords = OF_MIXTURES
    _keeps_sums = False

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; ``em__tol=1e-3`` sets one of `em`, and keeps the others."""
        if self.em is None and "em" not in parameters and any(name.startswith("em__") for name in parameters):
            parameters = {"em": _default_em(), **parameters}
        return set_grouped_params(self, **parameters)

    def _validate_params(self) -> None:
        """Raise ValueError that names a parameter of a wrong type or value, or one of `em` that is of classifiers."""
        validate_grouped_params(self)
        if self.em is None:
            return
        own = {"components_per_class": "n_components", "n_init": "n_init"}
        stated = {name: getattr(self.em, name) for name in own if getattr(self.em, name) != getattr(EM(), name)}
        if stated:
            instead = listed([f"MixtureModel({own[name]}=…)" for name in stated])
            raise InvalidParameterError(
                f"em states {listed(list(stated))}, which a mixture does not take from it; use {instead} instead"
            )

    @property
    def _limits(self) -> EMOptions:
        em = self.em or _default_em()
        return EMOptions(em.tol, em.max_iter)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the components; a previous fit is discarded.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            As in `NaiveBayes.fit`.
        y : None
            Ignored; present for scikit-learn's API.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0.

        Raises
        ------
        ValueError
            There are fewer rows than components, a cell is infinite, or `em` states `components_per_class` or `n_init`.

        Warns
        -----
        ConvergenceWarning
            EM reached `em.max_iter` without converging.
        UserWarning
            A component has very few rows, or a covariance is singular.
        """
        self._validate_params()
        with one_blas_thread():  # rows are split over threads already, and the matrices are small
            best, target = self._learned(X, sample_weight)
        warn_not_converged(best, self._limits)
        warn_of_empty_columns(best.model, best.statistics)
        self._warn_of_components(best)
        trace = np.array(best.trace)
        self.fitted_ = Fitted(self.recipe, target, best.model, best.statistics, trace, converged=best.converged)
        return self

    def _learned(self, X: Any, sample_weight: Any) -> tuple[FitResult, Column]:
        """Return the EM result of the best initialization, and the components as categories."""
        source, target = self._read_training_rows(X, sample_weight)
        (rows,) = sampled(source, self._blocks(source.schema))
        blocks = self._blocks(source.schema, rounding_variance(rows.numbers).tolist())
        n_starts, limits = self.n_init if self.start is None else 1, self._limits
        announce_em(blocks, source.table.n_rows, self.n_components, n_starts, limits.max_steps, hidden=True)
        hidden, prior = source.reduce(Collect(blocks)), Prior(self.prior_alpha)

        def climb(start: GenerativeModel, max_steps: int) -> FitResult:
            return learn(source, blocks, prior, None, hidden, replace(limits, max_steps=max_steps), start)

        starts = [
            first_model(source.schema, blocks, prior, begun.reduce(Collect(blocks)))
            for begun in self._starts(source, rows)
        ]
        return best_of(starts, climb, limits.max_steps), target

    def _read_training_rows(self, X: Any, sample_weight: Any) -> tuple[LabelledSource, Column]:
        table = read_table(X, stated_columns(X, columns_of(self.columns).categorical_features, None))
        reject_target(table, "MixtureModel")
        if table.n_rows < self.n_components:
            raise ValueError(
                f"n_samples={table.n_rows} is less than n_components={self.n_components}; ask for fewer components"
            )
        columns = range(len(table.names))
        given = columns_of(self.columns)
        given.require_no_text(type(self).__name__)
        stated = given.categorical_features
        categorical = (
            numeric_codes(table) if given.is_automatic else sorted(categorical_places(stated, None, table.names))
        )
        keep = kept_places(given.keep, categorical, None, table.names)
        schema = infer_schema(table, columns, categorical, None, keep=keep, dates=given.dates)
        target = categorical_column("component", range(self.n_components), "int64", declared=True)
        weight = check_weights(sample_weight, table.n_rows)
        positions = schema.spread(columns)
        source = source_of(table, schema, positions, None, target, weight, n_jobs=self.n_jobs)
        return with_counted_categories(source).cached(), target

    def _starts(self, source: LabelledSource, rows: SampledRows) -> list[LabelledSource]:
        """Return one source per initialization, with the initial component of each row as its label."""
        if self.start is not None:
            begun = source.with_labels(read_labels(self.start, source.table))
            begun.batch(slice(0, source.table.n_rows))  # raises an error that names a label that is not a component
            return [begun]
        rng = generator(self.random_state)
        seeds = [spread_seeds(rows, self.n_components, rng) for _ in range(self.n_init if self.n_components > 1 else 1)]
        return [source.with_labels(read_labels(source.map(one.nearest), source.table)) for one in seeds]

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

    def _warn_of_components(self, learned: FitResult) -> None:
        warn_of_few_rows(learned.statistics.weight)
        schema = learned.model.schema
        for block, sums in zip(learned.model.blocks, learned.statistics.blocks, strict=True):
            involved: list[int] = []
            if isinstance(block.density, MultivariateGaussian | Gaussian):
                involved = block.density.undetermined(sums)
            if involved:
                names = quote(schema.columns[block.columns[j]].name for j in involved)
                warn(
                    f"a covariance is singular in {names}: a component has collapsed, or columns are constant or "
                    "linearly dependent; a small spread is used instead; raise pseudo_rows, or leave columns out"
                )

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row, (n,)."""
        posterior = self.predict_proba(X)
        component: Array = posterior.argmax(axis=1)
        component[np.isnan(posterior[:, 0])] = self.model_.log_prior.argmax()
        return component

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(z | x) of each component, a dict, for services."""
        return self._value.predictor.scorer()

    def to_sql(self, table: str = "rows", dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return a SELECT that scores the rows of a table in a database, as `NaiveBayes.to_sql` of classes.

        ``prediction`` is the number of the component, and ``p_Z`` and ``log_p_Z`` are those of each, from 0 on.

        Parameters
        ----------
        table, dialect, columns
            As in `NaiveBayes.to_sql`.

        Raises
        ------
        ValueError, ImportError
            As `NaiveBayes.to_sql`.
        """
        check_is_fitted(self)
        return self._select(table, dialect, columns)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the most probable component of each row, (n,)."""
        return self.fit(X, y, sample_weight).predict(X)

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(z | x), (n, Z), missing cells integrated out.

        If no component can produce a row, it is NaN, with a warning: p(x) is 0, which needs ``alpha=0`` or a number so
        far from all others that log p(x | z) overflows.
        """
        posterior = self._source(X).map(self.model_.posterior)
        impossible = np.flatnonzero(np.isnan(posterior[:, 0]))
        if len(impossible):
            warn_of_impossible(int(impossible[0]), len(impossible), of="component")
        return posterior

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) in nats per row."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Return −2·log p(X) + m·log n, with m free parameters; lower is better."""
        log_density = self.score_samples(X)
        return float(-2.0 * log_density.sum() + self.n_parameters_ * math.log(len(log_density)))

    def aic(self, X: Any) -> float:
        """Return −2·log p(X) + 2·m, with m free parameters; lower is better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self.n_parameters_)

    @partial(explain_unknown_keywords, groups={}, wanted=OF_SAMPLING)
    def sample(self, n: int = 1, random_state: Any = None, respect_ranges: bool = True) -> tuple[Any, Array]:
        """Draw n rows, as a table of the same kind as the training table, and their components, (n,).

        respect_ranges keeps numbers within the range of the training rows, and whole if all training values were
        whole; see `NaiveBayes.sample`.
        """
        check_is_fitted(self)
        n = check_draw(n, len(self.schema_.columns))
        rng = generator(random_state)
        component = rng.choice(len(self.weights_), size=n, p=self.weights_)
        columns = draw_rows(self.model_, component, rng, self._value.ranges if respect_ranges else None)
        return write_table(self.model_.schema, columns), component

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def converged_(self) -> bool:
        """Whether EM converged."""
        return bool(self._part(self._value.converged, "does not know whether EM converged"))

    @property
    def weights_(self) -> Array:
        """p(z), (Z,)."""
        return np.exp(self.model_.log_prior)

    @property
    def means_(self) -> Array:
        """Component means, (Z, d), in data units."""
        means: Array = self._parameters("continuous").mean
        return means

    @property
    def covariances_(self) -> Array:
        """Covariances, in squared data units: full (Z, d, d), tied (d, d), diagonal (Z, d), spherical (Z,)."""
        parameters = self._parameters("continuous")
        if hasattr(parameters, "variance"):
            variances: Array = parameters.variance
            return variances
        shapes: dict[str, Array] = {"tied": parameters.covariance[0], "spherical": parameters.covariance[:, 0, 0]}
        unconstrained: Array = parameters.covariance
        return shapes.get(self.covariance, unconstrained)

    @property
    def feature_log_prob_(self) -> list[Array]:
        """Log p(x_j = k | z) in nats of each categorical column, (Z, K)."""
        parameters = self._parameters("categorical")
        return [parameters.column(j) for j in range(len(parameters.cardinalities))]

    def _parameters(self, kind: str) -> Any:
        for block, parameters in zip(self.model_.blocks, self.model_.parameters, strict=True):
            if block.density.kind == kind:
                return parameters
        raise AttributeError(f"this MixtureModel has no {kind} column")

    def _html_parts(self) -> list[str]:
        return [components_html(self.weights_)]
