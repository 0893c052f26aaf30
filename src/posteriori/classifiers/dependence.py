"""Classifiers with dependent features: k-dependence (kDB), averaged one-dependence (AODE), and the full joint."""

from __future__ import annotations

import logging
import math
from dataclasses import field, replace
from numbers import Integral
from typing import Any, ClassVar, get_args

from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.parameters import (
    COLUMN_CONSTRAINTS,
    PRIOR_CONSTRAINTS,
    WEIGHTS_CONSTRAINTS,
    declares_parameters,
    missingness_of,
)
from posteriori.densities import AveragedOneDependence as AveragedDensity
from posteriori.densities import BackOff, Binned, Density, FullJoint, Grouped, KDependence, coarse_parameters
from posteriori.densities.categorical import BinRule
from posteriori.learning.backoff import smoothing_in
from posteriori.model import Block
from posteriori.model_cost import MANY_CATEGORIES
from posteriori.statistics.counts import MAX_CELLS
from posteriori.support.constraints import PSEUDO_COUNT
from posteriori.tables import Column, Schema, quote

COMMON: dict[str, list[Any]] = {
    "bins": [Interval(Integral, 2, None, closed="left"), StrOptions(set(get_args(BinRule))), "array-like"],
    "alpha": [PSEUDO_COUNT],
    **PRIOR_CONSTRAINTS,
    **COLUMN_CONSTRAINTS,
}
BACKOFF: list[Any] = [None, PSEUDO_COUNT]
LEARNED_BACKOFF: list[Any] = [*BACKOFF, StrOptions({"learned"}), BackOff]
MISSING: dict[str, list[Any]] = {"missing": [StrOptions({"at_random", "informative"})]}


def smoothing_of(backoff: Any, alpha: float) -> BackOff:
    """Return the smoothing of an estimator. A strength that is to be learned starts at the default."""
    if isinstance(backoff, BackOff):
        return replace(backoff, alpha=alpha)
    return BackOff(BackOff().strength if isinstance(backoff, str) else backoff, alpha)


def dependence_blocks(
    schema: Schema,
    density: Density,
    bins: Any,
    *,
    grouped: bool = True,
    missing: str = "at_random",
    alpha: float = 1.0,
) -> tuple[Block, ...]:
    """Return one density over all columns, numbers cut into bins, and a density within the bins.

    Parameters
    ----------
    schema : Schema
    density : Density
        Of codes, and of numbers if they are not cut.
    bins
        How numbers are cut into bins; None leaves them as they are.
    grouped : bool
        Whether dependences of columns with many categories are through groups of categories.
    missing : str
        Whether gaps are evidence ("informative").
    alpha : float
        Pseudo-count of gaps.
    """
    cut = () if bins is None else schema.of_kind("continuous")
    coded = [j for j in schema.dense if schema.columns[j].kind == "categorical" or j in cut]
    many = [position for position, j in enumerate(coded) if len(schema.columns[j].categories) > MANY_CATEGORIES]
    whole = Block(Grouped(density, tuple(many)) if many and grouped else density, schema.dense)
    within = (Block(Binned(bins), cut),) if cut else ()
    return (whole, *within, *missingness_of(missing, alpha, schema))


def backoff_of(estimator: GenerativeEstimator) -> float | dict[str, tuple[float, ...]] | None:
    """Return the pseudo-rows of the back-off: as given, or of each column by name as learned; None without back-off."""
    smoothing, schema = smoothing_in(estimator.model_.blocks), estimator.model_.schema
    if smoothing is None or not smoothing.of_columns:
        return None if smoothing is None else smoothing.strength
    return dict(zip((schema.names[j] for j in schema.dense), smoothing.of_columns, strict=True))


@declares_parameters
class KDependenceBayes(GenerativeEstimator):
    r"""Sahami's k-dependence classifier (kDB): each feature depends on the class and on up to k other features.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parents}(j)}, y)

    Features are ordered by I(x_j; y). The parents of a feature are the k earlier features with the largest
    I(x_i; x_j | y). k = 0 is naive Bayes. Continuous columns are cut into bins.

    Parameters
    ----------
    k : int, default 2
        Maximum number of parents per feature, ≥ 0. The default had the best scores of 0 to 3 in docs/dependence.md.
    .. shared:: bins
    backoff, alpha : as in `TreeAugmentedNaiveBayes`
    .. shared:: priors, columns, missing, feature_weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    parents_ : dict
        Parents of each column by name, the most important first.
    backoff_ : float, dict or None
        The pseudo-rows of the back-off as given; or if learned, those of each column by name: of p(x | y), and with
        each more parent.
    .. shared:: class_prior_, feature_weights_, n_parameters_, feature_names_in_

    Notes
    -----
    Missing features are summed out exactly in prediction, by variable elimination within each row: the posterior is
    that of `to_network`. If the tables of a row would need more than 2¹⁷ cells, classes included, some features are not
    summed over: their children are conditioned on the other parents only, p(x_j | other parents, y), and a UserWarning
    names these features. This happens only if many features with many categories are missing at once;
    docs/dependence.md measures the error. In training, a row is counted in each table p(x_j | parents, y), or
    p(x_j | fewer parents, y), whose columns are all observed.

    In `explain`, the factor of a feature with a missing parent is log p(x_j | observed features before it, y), in the
    order of the parents, so that the factors of a row add up to log p(x | y).

    .. shared:: groups of categories

    .. shared:: informative missingness

    Training takes one pass over the rows, and with k ≥ 2 a second pass once the parents are known; one more pass if
    categories are grouped. `partial_fit` chooses the parents on its first call and keeps them.

    References
    ----------
    Sahami, Learning limited dependence Bayesian classifiers, KDD 1996. Boullé, A Bayes optimal approach for
    partitioning the values of categorical attributes, JMLR 6 (2005).

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 10
    >>> y = ["same", "same", "other", "other"] * 10
    >>> po.KDependenceBayes(k=1).fit(X, y).parents_
    {'x0': (), 'x1': ('x0',)}
    """

    k: int = field(default=2, kw_only=False)
    bins: Any = "auto"
    backoff: float | str | BackOff | None = 10.0
    alpha: float = 1.0
    missing: str = "at_random"
    feature_weights: str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 0, None, closed="left")],
        "backoff": LEARNED_BACKOFF,
        **MISSING,
        **WEIGHTS_CONSTRAINTS,
        **COMMON,
    }

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        smoothing, rank = smoothing_of(self.backoff, self.alpha), schema.rank_by_name(schema.dense)
        density = KDependence(self.k, smoothing, rank=rank)
        return dependence_blocks(schema, density, self.bins, missing=self.missing, alpha=self.alpha)

    backoff_ = property(backoff_of)

    @property
    def parents_(self) -> dict[str, tuple[str, ...]]:
        """Parents of each column by name, the most important first."""
        schema = self.model_.schema
        names = [schema.names[j] for j in schema.dense]
        parents = coarse_parameters(self.model_.parameters[0]).parents
        pairs = zip(names, parents, strict=True)
        return {name: tuple(names[position] for position in positions) for name, positions in pairs}


@declares_parameters
class AveragedOneDependence(GenerativeEstimator):
    r"""Averaged one-dependence estimators (AODE): average over models with one common parent feature.

    .. math:: p(x \mid y) = \frac{1}{d} \sum_i p(x_i \mid y) \prod_{j \neq i} p(x_j \mid x_i, y)

    There is no structure learning, so no variance from it. Continuous columns are cut into bins.

    Parameters
    ----------
    .. shared:: bins
    backoff, alpha : as in `TreeAugmentedNaiveBayes`
    .. shared:: priors, columns, missing, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    backoff_ : float, dict or None
        The pseudo-rows of the back-off as given; or if learned, those of each column by name: of p(x | y), and with
        another column as the parent.
    .. shared:: class_prior_, n_parameters_, feature_names_in_

    Notes
    -----
    d counts the columns with two categories or bins or more. A constant parent leaves its children independent, which
    would be one more vote for naive Bayes.

    Missing features are summed out exactly in prediction. A missing child has the factor 1. A missing parent is summed
    over its values, Σ_a p(x_i = a | y)·Π_j p(x_j | x_i = a, y).

    The published rule drops parents whose value occurs in fewer than 30 rows; back-off reduces their effect gradually.

    .. shared:: groups of categories

    .. shared:: informative missingness

    Cost: one pass (two if categories are grouped), and O(d²) per row and class in training and in prediction. In
    prediction the cost of a missing parent is multiplied by its number of categories or groups.

    References
    ----------
    Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58 (2005).
    Boullé, A Bayes optimal approach for partitioning the values of categorical attributes, JMLR 6 (2005).

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 10
    >>> y = ["same", "same", "other", "other"] * 10
    >>> po.AveragedOneDependence().fit(X, y).predict([["a", "u"], ["b", "u"]])
    array(['same', 'other'], dtype='<U5')
    """

    bins: Any = "auto"
    backoff: float | str | BackOff | None = 10.0
    alpha: float = 1.0
    missing: str = "at_random"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"backoff": LEARNED_BACKOFF, **MISSING, **COMMON}

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        density = AveragedDensity(smoothing_of(self.backoff, self.alpha))
        return dependence_blocks(schema, density, self.bins, missing=self.missing, alpha=self.alpha)

    backoff_ = property(backoff_of)


@declares_parameters
class FullJointClassifier(GenerativeEstimator):
    r"""Full joint distribution: one probability per class and combination of categories.

    .. math:: p(x \mid y) = \frac{n_{yx} + \alpha}{n_y + \alpha \prod_j K_j}

    A baseline to measure the effect of independence assumptions, for a few categorical columns. Continuous columns are
    cut into bins.

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count per cell of the joint table.
    max_cells : int, default 10_000_000
        Maximum number of cells over all classes; `fit` raises a ValueError before it allocates more.
    verbose : bool, default False
        Log the number of cells and parameters before memory is allocated, at level INFO to the logger ``posteriori``.
        `n_cells_` and `n_parameters_` give these numbers for a fitted model.
    .. shared:: bins
    .. shared:: priors, columns, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    n_cells_ : int
        C·Π_j K_j.
    .. shared:: class_prior_, n_parameters_, feature_names_in_

    Notes
    -----
    Rows with missing cells are learned from by EM on the joint table. In prediction missing cells are summed out
    exactly.

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 10
    >>> y = ["same", "same", "other", "other"] * 10
    >>> model = po.classifiers.FullJointClassifier(alpha=0.0).fit(X, y)
    >>> model.n_cells_, model.n_parameters_
    (8, 7)
    """

    alpha: float = 1.0
    max_cells: int = 10_000_000
    verbose: bool = False
    bins: Any = 8

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_cells": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["boolean"],
        **COMMON,
    }

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        return dependence_blocks(schema, FullJoint(self.alpha), self.bins, grouped=False)

    def _check_size(self, schema: Schema, target: Column) -> None:
        cardinalities = schema.cardinalities(schema.dense)
        empty = [schema.columns[j].name for j in schema.dense if not schema.columns[j].cardinality]
        if empty:
            raise ValueError(f"{quote(empty)} of X has no value, so the full joint has no cells; leave it out")
        cells = len(target.categories) * math.prod(cardinalities)
        slots = len(target.categories) * math.prod(k + 1 for k in cardinalities)  # with sums over every column
        size = (
            f"the full joint of {len(cardinalities)} columns has {cells:,} cells and {cells - 1:,} parameters, "
            f"and takes {slots * 8 / 1e6:,.1f} MB"
        )
        if cells > self.max_cells or slots > MAX_CELLS:
            limit = f"max_cells={self.max_cells:,}" if cells > self.max_cells else f"{MAX_CELLS * 8 / 1e6:,.1f} MB"
            raise ValueError(
                f"{size}, more than {limit}; leave columns out, use fewer bins, or assume some independence "
                "(TreeAugmentedNaiveBayes)"
            )
        if self.verbose:
            logging.getLogger("posteriori").info(size)

    @property
    def n_cells_(self) -> int:
        """C·Π_j K_j."""
        cardinalities: tuple[int, ...] = self.model_.parameters[0].cardinalities
        return len(self.classes_) * math.prod(cardinalities)
