"""Naive Bayes for mixed tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.parameters import (
    COLUMN_CONSTRAINTS,
    EM_CONSTRAINTS,
    PRIOR_CONSTRAINTS,
    GivenParameters,
    declares_parameters,
    missingness_of,
)
from posteriori.densities import (
    Binned,
    CategoricalParameters,
    Density,
    GaussianParameters,
    PoissonParameters,
    named_densities,
    named_density,
)
from posteriori.explain.words import single_word_factors
from posteriori.fitting.named_columns import column_of, with_exposure
from posteriori.fitting.parameter_groups import EM, Labels
from posteriori.model import Block
from posteriori.support.constraints import PSEUDO_COUNT
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema
from posteriori.tables.arrays import write_column
from posteriori.tables.blocks import needs_dense

_Parameters = TypeVar("_Parameters")


@declares_parameters
class NaiveBayes(GenerativeEstimator):
    r"""Naive Bayes: features independent given the class, each with the distribution that fits its kind.

    .. math:: p(y \mid x) = \frac{p(y) \prod_j p(x_j \mid y)}{\sum_{y'} p(y') \prod_j p(x_j \mid y')}

    Continuous columns are Gaussian given the class by default. Categorical columns (strings, booleans, categories,
    numbers with two values such as 0 and 1, and the columns in `categorical_features`) are categorical. `distributions`
    selects Poisson for counts of events, or "binned" for other shapes: a histogram between cut points. Missing cells
    are integrated out: their factor is 1, in training and in prediction. A category unseen in training is treated as a
    missing cell, with a warning.

    Parameters
    ----------
    distributions : str, density or mapping, optional
        ``"gaussian"``, ``"binned"`` or ``"poisson"`` for all continuous columns, or a mapping from a column's name (or
        index) to one of these, ``"categorical"`` or a density object. Other columns keep the default of their kind. A
        density object has its own parameters, in place of `alpha`, `bins` and `predictive`:
        ``po.Gaussian(smoothing=0)`` is maximum likelihood, ``po.Gaussian(smoothing=math.inf)`` has one variance for all
        classes, ``po.Gaussian(smoothing=0, ddof=1)`` unbiased ones, and ``po.Poisson(smoothing=0)`` rates of maximum
        likelihood. An object alone is for all columns of its kind. For counts of words: ``"multinomial"``,
        ``"scaled"``, ``"complement"``, ``"compound"``, ``"presence"`` or ``"poisson_rate"`` (`posteriori.PoissonRate`,
        whose exposure may be another column). One of these names is for the sparse blocks of X (a sparse matrix, or
        `posteriori.tables.Blocks`), whose default is ``"multinomial"``; if there are none, it is for all continuous
        columns together.
    .. shared:: columns, priors
    alpha : float, default 1.0
        Dirichlet pseudo-count per category or bin, p(x_j = k | c) = (n_ck + alpha) / (n_c + K·alpha); 0 gives maximum
        likelihood, 1 gives Laplace smoothing.
    bins : int, "auto", "mdlp", "coarse", "fine" or sequence of float, default "mdlp"
        Cut points of binned columns, by a rule as in `KDependenceBayes`. An int gives that many bins of equal weight,
        or fewer if values are repeated.
        "mdlp" chooses the cut points that separate the classes (Fayyad & Irani 1993); an uninformative column may get
        one bin. A sequence gives the cut points. `partial_fit` keeps the cut points of its first call. Cut points of a
        single column: ``distributions={"age": po.Binned([18, 65])}``.
    .. shared:: predictive, missing, labels, em, random_state, feature_weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    .. shared:: class_prior_
    theta_, var_ : ndarray (C, number of Gaussian columns)
        Means and variances, in data units and squared data units; squared scales of the t with ``predictive=True``.
    feature_log_prob_ : list of ndarray (C, K)
        log p(x_j = k | y) in nats, one array per categorical or binned column, in the order of `categories_`.
    category_count_, categories_, n_categories_ : list
        Weights, values and number of the categories per column. The value of a bin is its interval, as text.
    cuts_ : dict
        Cut points of each binned column, by name, in data units. A cell equal to a cut point is in the bin above it.
    rate_ : ndarray (C, number of Poisson columns)
    word_log_prob_ : dict of ndarray (C, V)
        What one occurrence of each word adds to log p(x | y) in nats, by the name of the column of counts or text: its
        log share, with the default distribution "multinomial". The words are `schema_.columns[j].words`.
    .. shared:: component_classes_, label_confusion_, feature_weights_
    log_likelihood_trace_ : ndarray
        Log-likelihood before each M-step of EM, in nats; empty if no label was missing.
    .. shared:: n_iter_, unlabelled_weight_, transduction_
    n_parameters_ : int
        Number of free parameters: C − 1 for the prior, and per column C·(K − 1) if categorical, C·(K − 1) + 2 if
        binned, 2·C if Gaussian, C if Poisson.
    n_features_in_ : int
    .. shared:: feature_names_in_
    schema_ : Schema
        Names, kinds and categories of the columns.

    Notes
    -----
    The textbook smoothing that adds one row of all ones and one row of all zeros to each class is ``alpha=1`` with
    ``priors=2``: every category is counted once more, and every class twice more.

    With ``predictive=True``, the mean (flat prior) and the variance (inverse-χ² prior worth s = `smoothing`
    pseudo-rows of the pooled within-class variance v_j) of a Gaussian column are integrated out:

    .. math:: p(x_j \mid c) = t_\nu\Bigl(x_j;\ \theta_{cj},\ \bigl(1 + \tfrac{1}{n_{cj}}\bigr)
              \frac{S_{cj} + s v_j}{\nu}\Bigr), \quad \nu = n_{cj} - 1 + s

    with the sum of squares S about the mean θ. It tends to the Gaussian as n grows.
    EM, if labels are hidden, estimates; parameters are integrated out at its end. The log-odds are not linear or
    quadratic, so `linear_form` refuses.

    With ``feature_weights="cells"`` the posterior is that of learned tables (Zaidi et al. 2017; Greiner et al. 2005):

    .. math:: p(y \mid x) \propto p(y) \exp\Bigl(\sum_{j \text{ observed}} t_{jy}(x_j)\Bigr), \quad
              t_{jy}(k) = b_y / d + w_j \log p(x_j = k \mid y) + \delta_{jy}(k)

    with b, w_j ≥ 0 and δ of greatest penalised conditional likelihood, for d columns that vary. The prior of δ is
    Gaussian: independent for categories, a line and a random walk over neighbouring bins. Held-out rows choose its
    strength, and whether all w_j are 0; they do not depend on the order of rows or on names. A missing cell adds 0, as
    an approximation: a learned table has no exact marginal. A row without cells has the prior. p(x) and `sample` stay
    those of the generative model. Numbers need ``distributions="binned"``, and many bins suit it (``bins=64``). All
    `feature_weights_` are 1. At most 20,000 rows are used, a stratified subsample.

    .. shared:: unlabelled rows

    .. shared:: informative missingness

    Cost: fit and predict read each cell once, O(n·d) and O(n·d·C), in threads, and hold a few thousand rows in memory.
    One step of EM costs as much as both together, with C times the sums for rows without label.

    References
    ----------
    Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed., section 6.6.3. Rubin, Inference and
    missing data, Biometrika 63 (1976). Little & Rubin, Statistical Analysis with Missing Data, 2nd ed., chapter 15.
    Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), on `predictive`.
    Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, Machine
    Learning 39 (2000). Zaidi, Webb, Carman, Petitjean & Cerquides, ALRn: accelerated higher-order logistic regression,
    Machine Learning 104 (2016). Greiner, Su, Shen & Zhou, Structural extension to logistic regression: discriminative
    parameter learning of belief net classifiers, Machine Learning 59 (2005). Lou, Caruana, Gehrke & Hooker, Accurate
    intelligible models with pairwise interactions, KDD (2013). Lengerich, Tan, Chang, Hooker & Caruana, Purifying
    interaction effects with the functional ANOVA, AISTATS (2020).

    Examples
    --------
    >>> import polars as pl
    >>> import posteriori as po
    >>> table = pl.DataFrame({
    ...     "sky": ["clear", "clouds", "clouds", "clear", None, "clouds"],
    ...     "wind": [2.0, 9.5, 7.0, 3.5, 8.0, None],
    ...     "rain": ["no", "yes", "yes", "no", "yes", "no"],
    ... })
    >>> model = po.NaiveBayes().fit(table, "rain")
    >>> model.predict(pl.DataFrame({"wind": [3.0, None], "sky": ["clear", "clouds"]}))
    array(['no', 'yes'], dtype=object)

    If cells are missing in one class only:

    >>> X = [["clear"], ["clouds"], [None], [None], ["clear"], ["clouds"]] * 5
    >>> y = ["no", "yes", "yes", "yes", "no", "no"] * 5
    >>> po.NaiveBayes().fit(X, y).predict_proba([[None]]).round(3)
    array([[0.5, 0.5]])
    >>> po.NaiveBayes(missing="informative").fit(X, y).predict_proba([[None]]).round(3)
    array([[0.083, 0.917]])
    """

    reads_counts = True
    distributions: Any = None
    alpha: float = 1.0
    bins: Any = "mdlp"
    predictive: bool = False
    missing: str = "at_random"
    labels: Labels | None = None
    em: EM | None = None
    random_state: Any = None
    feature_weights: str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "distributions": [None, str, Mapping, HasMethods("log_density")],
        "alpha": [PSEUDO_COUNT],
        "bins": [Integral, str, "array-like"],
        "predictive": ["boolean"],
        "missing": [StrOptions({"at_random", "informative"})],
        **PRIOR_CONSTRAINTS,
        **COLUMN_CONSTRAINTS,
        **EM_CONSTRAINTS,
        "feature_weights": [None, StrOptions({"conditional", "cells"})],
    }

    @classmethod
    def from_parameters(
        cls,
        *,
        priors: Any,
        classes: Sequence[Any] | None = None,
        gaussian: Mapping[str, Mapping[str, Any]] | None = None,
        categorical: Mapping[str, Mapping[Any, Any]] | None = None,
        poisson: Mapping[str, Any] | None = None,
        features: Sequence[str] | None = None,
    ) -> NaiveBayes:
        """Build a fitted model from known parameters, without data.

        Parameters
        ----------
        priors : mapping or sequence (C,)
            p(y), by class or in the order of `classes`.
        classes : sequence (C,), optional
            Default: the keys of `priors`, or 0, 1, ….
        gaussian : mapping, optional
            For each feature ``{"mean": …, "sd": …}`` or ``{"mean": …, "variance": …}``.
        categorical : mapping, optional
            For each feature a mapping from category to p(category | y); they sum to 1 in every class.
        poisson : mapping, optional
            For each feature the rates.
        features : sequence of str, optional
            The order of the columns of an array; default: Gaussian, categorical, Poisson, as they are listed.

        Values per class are a sequence in the order of the classes, or a mapping from class to value.

        Returns
        -------
        NaiveBayes

        Raises
        ------
        ValueError
            Probabilities do not sum to 1, a spread or rate is not positive, or a class is left out.

        Examples
        --------
        >>> import posteriori as po
        >>> model = po.NaiveBayes.from_parameters(
        ...     priors=[0.2, 0.5, 0.3], gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}}
        ... )
        >>> model.predict_proba([[3.4]]).round(6)
        array([[0.131528, 0.42939 , 0.439082]])
        """
        known = GivenParameters(priors, classes, gaussian or {}, categorical or {}, poisson or {}, features)
        return cls(priors=known.priors)._set_model(known.model(), known.target)

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        # A column of counts is a block of its own; other columns of one density are one block.
        columns_of: dict[tuple[Density, int | None], list[int]] = {}
        chosen = self._chosen(schema)
        for j in schema.modelled:
            column = schema.columns[j]
            density = with_exposure(chosen.get(j) or self._default(column, schema), column, schema)
            self._check_kind(density, j, schema)
            if isinstance(density, Binned):
                columns_of.setdefault((self._density("categorical"), None), []).append(j)
            columns_of.setdefault((density, j if column.kind == "counts" else None), []).append(j)
        blocks = [Block(density, tuple(columns)) for (density, _), columns in columns_of.items()]
        blocks += missingness_of(self.missing, self.alpha, schema)
        if self.feature_weights == "cells":
            from posteriori.learning.learned_tables import check_cells

            check_cells(blocks, schema)
        return tuple(blocks)

    @staticmethod
    def _check_kind(density: Density, j: int, schema: Schema) -> None:
        """Raise an error unless a density reads column j."""
        column = schema.columns[j]
        if column.kind == "counts" and density.kind != "counts":
            raise needs_dense(column, None, f"the distribution {density.name!r}")
        if density.kind != column.kind and not (density.kind == "counts" and column.kind == "continuous"):
            fix = "choose another one, or convert the column"
            if density.kind == "categorical" and column.kind == "continuous":
                fix = (
                    f"list it in columns=po.Columns(categorical_features=[{column.name!r}]) if its numbers are codes, "
                    "or choose another one"
                )
            raise ValueError(
                f"column {column.name!r} is {column.kind}, but its distribution {density.name!r} "
                f"makes {density.kind} columns; {fix}"
            )

    def _default(self, column: Column, schema: Schema) -> Density:
        """Return the density of a column that `distributions` does not name."""
        given = self.distributions
        stated = self._density(given) if given is not None and not isinstance(given, Mapping) else None
        of_categories = stated is not None and stated.kind == "categorical"
        if column.kind == "categorical":
            return stated if stated is not None and of_categories else self._density("categorical")
        if of_categories and not isinstance(given, str):
            stated = None
        if column.kind == "counts":
            # With other columns, the distribution of numbers is that of these.
            alone = len(schema.modelled) == len(schema.of_kind("counts"))
            return stated if stated and (alone or stated.kind == "counts") else self._density("multinomial")
        # With blocks of counts, a distribution of counts is that of the blocks.
        of_blocks = stated is not None and stated.kind == "counts" and schema.of_kind("counts")
        return stated if stated and not of_blocks else self._density("gaussian")

    def _chosen(self, schema: Schema) -> dict[int, Density]:
        if not isinstance(self.distributions, Mapping):
            return {}
        return {column_of(key, schema): self._density(distribution) for key, distribution in self.distributions.items()}

    def _density(self, distribution: Any) -> Density:
        if hasattr(distribution, "log_density"):
            own: Density = distribution
            return own
        known: Density | None = named_density(distribution, self) if isinstance(distribution, str) else None
        if known is None:
            names = ", ".join(sorted(named_densities(self)))
            raise ValueError(f"{distribution!r} is not a distribution; choose one of {names}")
        return known

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def theta_(self) -> Array:
        """Means of the Gaussian columns, (C, d), in data units."""
        return self._parameters(GaussianParameters).mean

    @property
    def var_(self) -> Array:
        """Variances of the Gaussian columns, (C, d), in squared data units."""
        return self._parameters(GaussianParameters).variance

    @property
    def rate_(self) -> Array:
        """Rates of the Poisson columns, (C, d)."""
        return self._parameters(PoissonParameters).rate

    @property
    def feature_log_prob_(self) -> list[Array]:
        """Log p(x_j = k | y) in nats of each categorical or binned column, (C, K)."""
        parameters = self._parameters(CategoricalParameters)
        return [parameters.column(j) for j in range(len(parameters.cardinalities))]

    @property
    def word_log_prob_(self) -> dict[str, Array]:
        """Log factor of one occurrence of each word in nats, (C, V), by the name of the column of counts or text."""
        found = single_word_factors(self.model_)
        if not found:
            raise AttributeError("this NaiveBayes has no column of counts whose factor is a product over its words")
        return found

    @property
    def category_count_(self) -> list[Array]:
        """Weights of the categories of each categorical or binned column, (C, K)."""
        statistics = self._part(self._value.statistics, "was made from parameters and has no counts; fit it first")
        for block, sums in zip(self.model_.blocks, statistics.blocks, strict=True):
            if block.density.kind == "categorical":
                return [sums.column(j) for j in range(len(block.columns))]
        raise AttributeError("this NaiveBayes has no categorical column")

    @property
    def categories_(self) -> list[Array]:
        """Categories of each categorical column and bins of each binned column, in the order of `feature_log_prob_`."""
        schema = self.model_.schema
        columns = [schema.columns[j] for j in schema.coded]
        return [np.array(c.labels, dtype=object) if c.is_binned else write_column(c) for c in columns]

    @property
    def n_categories_(self) -> list[int]:
        """Number of categories of each categorical or binned column."""
        schema = self.model_.schema
        return list(schema.cardinalities(schema.coded))

    @property
    def cuts_(self) -> dict[str, Array]:
        """Cut points of each binned column, in data units."""
        return {column.name: np.array(column.cuts) for column in self.model_.schema.columns if column.is_binned}

    def _parameters(self, kind: type[_Parameters]) -> _Parameters:
        for parameters in self.model_.parameters:
            if isinstance(parameters, kind):
                return parameters
        raise AttributeError(f"this NaiveBayes has no column with {kind.__name__}")
