"""Trees between the features: classifiers with a tree given the class, and a tree as a density of rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.dependence import (
    COMMON,
    LEARNED_BACKOFF,
    backoff_of,
    dependence_blocks,
    smoothing_of,
)
from posteriori.classifiers.estimator import OneModel
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.keywords import OF_MIXTURES, OF_SAMPLING
from posteriori.classifiers.parameters import (
    EM_CONSTRAINTS,
    WEIGHTS_CONSTRAINTS,
    declares_parameters,
    insert_shared_docs,
)
from posteriori.densities import BackOff, Tree, TreeParameters, coarse_parameters
from posteriori.fitting.label_parameters import reject_target
from posteriori.fitting.learn import fit
from posteriori.fitting.parameter_groups import EM, Columns, Labels
from posteriori.fitting.update import add, remove
from posteriori.model import Block, GenerativeModel
from posteriori.reading import read_table
from posteriori.registry import Subject
from posteriori.support.checks import check_draw, generator, require
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.typing import Array
from posteriori.tables import Schema
from posteriori.tables.writing import write_table


class TreeParametersAsked(Protocol):
    """Parameters of an estimator of trees."""

    bins: Any
    alpha: float
    missing: str
    backoff: Any
    penalty: Any


def tree_blocks(estimator: TreeParametersAsked, schema: Schema, one_tree: bool) -> tuple[Block, ...]:
    """Return the tree density over all columns, of one tree for all classes or of one per class."""
    binned = estimator.bins is not None
    if estimator.missing == "em" and not binned:
        raise ValueError('missing="em" is defined for counts only; give bins, such as "mdlp"')
    if isinstance(estimator.backoff, str) and not binned:
        raise ValueError(
            'backoff="learned" is defined for counts only; give bins, such as "mdlp", or backoff as a number'
        )
    smoothing, rank = smoothing_of(estimator.backoff, estimator.alpha), schema.rank_by_name(schema.dense)
    density = Tree(smoothing, one_tree, estimator.penalty, estimator.missing == "em", rank=rank)
    return dependence_blocks(schema, density, estimator.bins, missing=estimator.missing, alpha=estimator.alpha)


def parents_in(model: GenerativeModel, tree: int) -> dict[str, str | None]:
    """Return the parent of each column by name in one tree of a fitted model; None for a root."""
    names = [model.schema.names[j] for j in model.schema.dense]
    pairs = zip(names, _trees(model).parents[tree].tolist(), strict=True)
    return {name: None if parent < 0 else names[parent] for name, parent in pairs}


def edge_information_in(model: GenerativeModel, tree: int) -> dict[tuple[str, str], float]:
    """Return the information of each edge (parent, child) of one tree of a fitted model, in nats per row."""
    weights = zip(parents_in(model, tree).items(), _trees(model).edge_weights[tree].tolist(), strict=True)
    return {(parent, child): weight for (child, parent), weight in weights if parent is not None}


def _trees(model: GenerativeModel) -> TreeParameters:
    parameters: TreeParameters = coarse_parameters(model.parameters[0])
    return parameters


@declares_parameters
class TreeAugmentedNaiveBayes(GenerativeEstimator):
    r"""Tree-augmented naive Bayes (TAN): each feature depends on the class and on one other feature.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}(j)}, y)

    The parents are the maximum spanning tree of the conditional mutual information I(x_i; x_j | y), the same for all
    classes. This tree maximizes the likelihood. Missing cells are summed and integrated out exactly.

    Parameters
    ----------
    bins : int, "auto", "mdlp", "coarse", "fine", sequence of float or None, default "auto"
        How continuous columns are cut, as in `KDependenceBayes`. None cuts none: they are Gaussian given a category and
        linear Gaussian given a number, and a categorical column never depends on a continuous one.
    penalty : {"aic", "bic"}, optional
        Penalty per parameter of an edge, in nats of log-likelihood: 1 for AIC, ½·log n for BIC. Edges that gain less
        are dropped, so the result may be a forest.
    missing : {"pairs", "em", "informative"}, default "pairs"
        How the tables are estimated from rows with missing cells: "pairs" counts the pairs of observed cells; "em" uses
        the expected counts of EM (maximum likelihood, with the same smoothing). The tree is chosen by the pairs in both
        cases. "informative" is "pairs" with an additional factor p(m_j | y) for each column with missing cells in
        training: whether a cell is missing is evidence for the class (see `NaiveBayes`).
    backoff : float, "learned", BackOff or None, default 10.0
        Pseudo-rows that shrink p(x | parent, y) to the midpoint of p(x | y) and p(x | parent); see `BackOff`. Gaussians
        and regressions are shrunk to p(x | y). "learned": each column has its own for each number of parents, learned
        by leaving rows out, and one factor of all is chosen by the likelihood of the classes (docs/dependence.md). That
        lowers the log-loss on most tables, and takes a few times as long; it needs `fit`, binned numbers and known
        labels. A `BackOff` gives each column its own numbers. None: pseudo-counts only.
    alpha : float, default 1.0
        Pseudo-count per category of p(x), and pseudo-rows that shrink p(x | y) to p(x); without back-off, pseudo-count
        per category of every table.
    .. shared:: priors, columns, labels, em, random_state,
       feature_weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    backoff_ : float, dict or None
        The pseudo-rows of the back-off as given; or if learned, those of each column by name: of p(x | y), and with
        each more parent.
    tree_ : dict
        Parent of each column by name; None for a root.
    edge_information_ : dict
        Information of each edge (parent, child), in nats per row, minus its penalty.
    .. shared:: transduction_, component_classes_, label_confusion_, feature_weights_
    log_likelihood_trace_ : ndarray
        Log-likelihood of the observed cells before each step of EM, in nats; empty without EM.
    .. shared:: n_iter_, unlabelled_weight_
    .. shared:: class_prior_, n_parameters_, feature_names_in_

    Notes
    -----
    .. shared:: unlabelled rows

    Each step of EM learns the parents again (as Meilă & Jordan do for mixtures of trees). With ``missing="em"`` the
    parents remain those learned from the labelled rows.

    .. shared:: groups of categories

    The statistics are counts of all pairs of columns, over the rows in which both cells are observed: one pass (two if
    categories are grouped), O(n·d²), and 8·C·Σ_ij (K_i + 1)(K_j + 1) bytes, where K counts groups. There are no groups
    if labels or components are hidden. `partial_fit` chooses the tree again from all rows seen; the bins remain those
    of the first call.

    The defaults of `bins`, `penalty` and `backoff` had the best scores on 28 real tables
    (docs/dependence.md).

    References
    ----------
    Friedman, Geiger & Goldszmidt, Bayesian network classifiers, Machine Learning 29 (1997), section 4. Meilă & Jordan,
    Learning with mixtures of trees, JMLR 1 (2000). Nigam, McCallum, Thrun & Mitchell, Text classification from labeled
    and unlabeled documents using EM, Machine Learning 39 (2000).

    Examples
    --------
    The class depends on the combination of two features, which naive Bayes cannot represent:

    >>> import posteriori as po
    >>> X = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 10
    >>> y = ["same", "same", "other", "other"] * 10
    >>> model = po.TreeAugmentedNaiveBayes().fit(X, y)
    >>> model.tree_
    {'x0': None, 'x1': 'x0'}
    >>> model.predict_proba([["a", "u"], ["a", None]]).round(2)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """

    bins: Any = "auto"
    penalty: Any = None
    missing: str = "pairs"
    backoff: float | str | BackOff | None = 10.0
    alpha: float = 1.0
    labels: Labels | None = None
    em: EM | None = None
    random_state: Any = None
    feature_weights: str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [None, StrOptions({"aic", "bic"})],
        "missing": [StrOptions({"pairs", "em", "informative"})],
        "backoff": LEARNED_BACKOFF,
        **COMMON,
        "bins": [None, *COMMON["bins"]],
        **EM_CONSTRAINTS,
        **WEIGHTS_CONSTRAINTS,
    }

    _one_tree: ClassVar[bool] = True  # of all classes

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        return tree_blocks(self, schema, self._one_tree)

    backoff_ = property(backoff_of)

    @property
    def tree_(self) -> dict[Any, Any]:
        """Parent of each column by name; None for a root."""
        return parents_in(self.model_, 0)

    @property
    def edge_information_(self) -> dict[Any, Any]:
        """Information of each edge (parent, child), in nats per row, minus its penalty."""
        return edge_information_in(self.model_, 0)


@insert_shared_docs
class ChowLiuClassifier(TreeAugmentedNaiveBayes):
    r"""Chow-Liu classifier: one tree of features per class, so the dependences may differ between classes.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}_y(j)}, y)

    The parents in a class are the maximum spanning tree of the mutual information I(x_i; x_j) among its rows.

    Parameters
    ----------
    bins, penalty, missing, backoff, alpha : as in `TreeAugmentedNaiveBayes`
    .. shared:: priors, columns, labels, em, random_state,
       feature_weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    tree_ : dict
        For each class (or pair of class and component), the parent of each column by name; None for a root.
    edge_information_ : dict
        For each class, the information of each edge (parent, child), in nats per row, minus its penalty.
    .. shared:: class_prior_, n_parameters_, feature_names_in_

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).
    Friedman, Geiger & Goldszmidt (1997), section 4.2.

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u", "k"], ["b", "v", "k"], ["a", "u", "l"], ["b", "u", "l"]] * 10
    >>> model = po.classifiers.ChowLiuClassifier().fit(X, ["tied", "tied", "tied", "loose"] * 10)
    >>> model.tree_["tied"]
    {'x0': None, 'x1': 'x0', 'x2': 'x0'}
    """

    _one_tree = False

    @property
    def tree_(self) -> dict[Any, Any]:
        """For each class, the parent of each column by name; None for a root."""
        return {name: parents_in(self.model_, z) for z, name in enumerate(self._tree_names)}

    @property
    def edge_information_(self) -> dict[Any, Any]:
        """For each class, the information of each edge (parent, child), in nats per row, minus its penalty."""
        return {name: edge_information_in(self.model_, z) for z, name in enumerate(self._tree_names)}

    @property
    def _tree_names(self) -> list[Any]:
        """Key of each tree: its class, or the pair of class and component number."""
        of_class = self.model_.of_class
        labels: list[Any] = self.classes_.tolist()
        if not of_class:
            return labels
        return [(labels[c], z - of_class.index(c)) for z, c in enumerate(of_class)]


@declares_parameters
class ChowLiuTree(DensityMixin, OneModel):
    r"""Chow-Liu tree: a density of rows without a class.

    .. math:: p(x) = \prod_j p(x_j \mid x_{\mathrm{parent}(j)})

    The edges are the spanning tree with the most mutual information I(x_i; x_j), which is the tree with the highest
    likelihood. It is a `ChowLiuClassifier` with a single class.

    Parameters
    ----------
    penalty, missing, backoff, alpha : as in `TreeAugmentedNaiveBayes`
    bins : int, sequence of float or None, default 8
        As there, except "mdlp", which needs classes.
    columns, em, n_jobs : as in `TreeAugmentedNaiveBayes`

    Attributes
    ----------
    tree_ : dict
        Parent of each column by name, None for a root.
    edge_information_ : dict
        Information of each edge (parent, child), in nats per row, minus its penalty.
    n_parameters_, n_features_in_ : int
    feature_names_in_ : ndarray
        Names of the columns, if they had names.

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u"], ["a", "u"], ["b", "v"], ["b", "v"]] * 10
    >>> tree = po.ChowLiuTree().fit(X)
    >>> tree.tree_
    {'x0': None, 'x1': 'x0'}
    >>> tree.score_samples([["a", "u"], ["a", "v"], ["a", None]]).round(2)
    array([-0.81, -2.89, -0.69])
    """

    bins: Any = 8
    penalty: Any = None
    missing: str = "pairs"
    backoff: float | None = 10.0
    alpha: float = 1.0
    columns: Columns | None = None
    em: EM | None = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: checks
        for name, checks in ChowLiuClassifier._parameter_constraints.items()
        if name not in ("priors", "labels")
    } | {"bins": [None, Interval(Integral, 2, None, closed="left"), "array-like"]}

    subject = Subject.ROWS
    _keywords = OF_MIXTURES

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the tree and its tables; a previous fit is discarded.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            As in `NaiveBayes.fit`. A pair of columns is counted over the rows that have both cells.
        y : None
            Ignored; present for scikit-learn's API.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0.
        """
        self.fitted_ = fit(self.recipe, *_one_class(X), sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; the tree is that of all rows, with the bins of the first call."""
        recipe = self.recipe
        if self._is_fitted:
            self.fitted_ = add(replace(self._value, recipe=recipe), *_one_class(X), sample_weight)
        else:
            self.fitted_ = fit(recipe, *_one_class(X), sample_weight, complete=False)
        return self

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract rows from the model; see `NaiveBayes.unlearn`."""
        self.fitted_ = remove(replace(self._value, recipe=self.recipe), *_one_class(X), sample_weight)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) in nats per row."""
        return float(self.score_samples(X).mean())

    @partial(explain_unknown_keywords, groups={}, wanted=OF_SAMPLING)
    def sample(self, n: int = 1, random_state: Any = None, respect_ranges: bool = True) -> Any:
        """Draw n rows, as a table of the same kind as the training table.

        respect_ranges keeps numbers within the range of the training rows, and whole if all training values were
        whole; see `NaiveBayes.sample`.
        """
        value = self._value
        n = check_draw(n, len(value.schema.columns))
        ranges = [value.ranges if respect_ranges else None]
        return write_table(value.schema, value.posterior.draw(n, None, generator(random_state), ranges)[0])

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        return tree_blocks(self, schema, one_tree=False)

    @property
    def tree_(self) -> dict[str, str | None]:
        """Parent of each column by name, None for a root."""
        return parents_in(self.model_, 0)

    @property
    def edge_information_(self) -> dict[tuple[str, str], float]:
        """Information of each edge (parent, child), in nats per row, minus its penalty."""
        return edge_information_in(self.model_, 0)

    def _check_fitted(self) -> None:
        super()._check_fitted()
        require(len(self._value.classes) == 1, "a tree without label has several classes")


def _one_class(X: Any) -> tuple[Any, Array]:
    """Return rows, and the label of one class for each."""
    table = read_table(X)
    reject_target(table, "ChowLiuTree")
    return X, np.zeros(table.n_rows, np.int8)
