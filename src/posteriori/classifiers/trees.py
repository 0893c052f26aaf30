"""Classifiers whose features form a tree given the class."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.dependence import BACKOFF, COMMON, DependenceEstimator
from posteriori.classifiers.validation import em_options_of, missingness_of
from posteriori.densities import BackOff, Density, Tree, TreeParameters
from posteriori.learning.em import EMOptions
from posteriori.model import Block
from posteriori.tables import Schema


class _TreeEstimator(DependenceEstimator):
    """What classifiers with trees share."""

    continuous: str
    penalty: Any
    missing: str
    backoff: float | None
    tol: float
    max_iter: int
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "continuous": [StrOptions({"binned", "gaussian"})],
        "penalty": [None, StrOptions({"aic", "bic"})],
        "missing": [StrOptions({"pairs", "em", "informative"})],
        "unlabelled": [object],
        "unlabelled_weight": [Interval(Real, 0, 1, closed="both"), StrOptions({"held_out"})],
        "components": [None, Integral, Mapping],
        "label_noise": [None, Interval(Real, 0, 1, closed="left"), StrOptions({"learn"}), Mapping, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "weights": [None, StrOptions({"conditional"})],
        "backoff": BACKOFF,
        **COMMON,
    }
    _one_tree: ClassVar[bool]

    def __init__(
        self,
        *,
        continuous: str = "binned",
        bins: Any = "mdlp",
        penalty: Any = None,
        missing: str = "pairs",
        backoff: float | None = 10.0,
        alpha: float = 1.0,
        priors: Any = None,
        prior_alpha: float = 0.0,
        categorical_features: Any = "from_dtype",
        unlabelled: Any = "error",
        unlabelled_weight: Any = 1.0,
        components: Any = None,
        label_noise: Any = None,
        n_init: int = 5,
        random_state: Any = None,
        tol: float = 1e-5,
        max_iter: int = 200,
        weights: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.continuous = continuous
        self.bins = bins
        self.penalty = penalty
        self.missing = missing
        self.backoff = backoff
        self.alpha = alpha
        self.priors = priors
        self.prior_alpha = prior_alpha
        self.categorical_features = categorical_features
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.components = components
        self.label_noise = label_noise
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.weights = weights
        self.n_jobs = n_jobs

    def _density(self) -> Density:
        if self.missing == "em" and self.continuous == "gaussian":
            raise ValueError('missing="em" expects counts, so it needs continuous="binned"')
        return Tree(BackOff(self.backoff, self.alpha), self._one_tree, self.penalty, self.missing == "em")

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        return (*super()._blocks(schema), *missingness_of(self.missing, self.alpha, schema))

    def _em_options(self) -> EMOptions:
        return em_options_of(self)

    def _binned(self, schema: Schema) -> tuple[int, ...]:
        return schema.of_kind("continuous") if self.continuous == "binned" else ()

    @property
    def _tree(self) -> TreeParameters:
        return self._fitted.parameters[0]

    def _parents(self, tree: int) -> dict[str, str | None]:
        names = self._fitted.schema.names
        pairs = zip(names, self._tree.parents[tree].tolist(), strict=True)
        return {name: None if parent < 0 else names[parent] for name, parent in pairs}

    def _weights(self, tree: int) -> dict[tuple[str, str], float]:
        weights = zip(self._parents(tree).items(), self._tree.edge_weights[tree].tolist(), strict=True)
        return {(parent, child): weight for (child, parent), weight in weights if parent is not None}


class TreeAugmentedNaiveBayes(_TreeEstimator):
    r"""Tree-augmented naive Bayes (TAN): each feature depends on the class and on one other feature.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}(j)}, y)

    The parents are the spanning tree of most conditional mutual information I(x_i; x_j | y), the same for all classes:
    the tree of greatest likelihood. Missing cells are summed and integrated out exactly.

    Parameters
    ----------
    continuous : {"binned", "gaussian"}, default "binned"
        Continuous columns are cut into bins, or are Gaussian given a category and linear Gaussian given a number; a
        category then never depends on a number.
    bins : int, "mdlp" or sequence of float, default "mdlp"
        Bins a continuous column: by the supervised rule of Fayyad & Irani (1993), which may leave a column that alone
        says nothing of the class in one bin; that many by quantiles; or these cut points.
    penalty : {"aic", "bic"}, optional
        What an edge must gain to be kept: AIC one nat of log-likelihood a parameter, BIC ½·log n. The tree may then
        fall into several.
    missing : {"pairs", "em", "informative"}, default "pairs"
        How rows with missing cells teach the tables: by the pairs of cells that are present, or by EM, whose expected
        counts are of maximum likelihood (smoothed as the others are). The tree is chosen by the pairs in both cases.
        "informative" is "pairs" and, beside the tree, a factor p(m_j | y) for each column of which a cell was missing
        in training: whether it is missing tells of the class (see `NaiveBayes`).
    backoff : float, optional, default 10.0
        Strength, in pseudo-rows, that draws p(x | parent, y) halfway between p(x | y) and p(x | parent); see `BackOff`.
        Also draws Gaussians and regressions to p(x | y). None: plain pseudo-counts.
    alpha : float, default 1.0
        Pseudo-count a category of p(x), and pseudo-rows that draw p(x | y) to it; without back-off, pseudo-count a
        category of every table.
    priors : array-like (C,) or mapping, optional
        p(y), in the order of `classes_` or by class; default: from the rows.
    prior_alpha : float, default 0.0
        Pseudo-rows a class in the prior.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.
    unlabelled : "error", "learn" or label, default "error"
        What a missing label (NaN, None, null) is: an error; or to be inferred, its row teaching through EM (see Notes).
        Any other value, as −1, is a label that stands for a missing one, and learned from in the same way.
    unlabelled_weight : float or "held_out", default 1.0
        In [0, 1]: the weight of a row without label (Nigam et al. 2000). A model whose assumptions do not hold may
        learn less from many of them than from none; "held_out" chooses among 0, 0.01, 0.1, 0.3 and 1 by the log-loss
        of labelled rows that are held out, in five folds or as many as the smallest class has labelled rows; it takes
        two of each class, and about thirty times as long.
    components : int or mapping, optional
        How many components a class has, all or those named: each class is then a mixture, learned by EM (mixture
        discriminant analysis, Hastie & Tibshirani 1996). Default: one.
    label_noise : float, (C, C), mapping or "learn", optional
        Labels may be wrong: a share of them, evenly; or p(recorded | true), a row (or an entry, by class) for each true
        class; or to be learned. Predictions are of the true class.
    n_init : int, default 5
        Starts where a class has several components, of which the most likely end is kept.
    random_state : int, RandomState, Generator or None
        Of these starts.
    tol, max_iter : float, int
        EM ends at a gain in log-likelihood of at most tol nats a row, or with a warning after max_iter steps.
    weights : {"conditional"}, optional
        One weight a feature's log factor, and one bias a class, by which the posterior is proportional to
        exp(b_y + Σ_j w_j·log p(x_j | …, y)): of greatest penalised conditional likelihood, on what each row's factors
        are when the row is left out. It mends the over-confidence of features that say the same. It concerns `predict`,
        `predict_proba`, `predict_log_proba` and `explain` alone: `score_samples`, `sample` and
        `predict_joint_log_proba` stay those of the generative model. Takes labels that are all known, and `fit`.
    n_jobs : int, optional
        Threads; None or −1 for one a core.

    Attributes
    ----------
    classes_ : ndarray (C,)
    tree_ : dict
        The parent of each column by name, None at a root.
    edge_weights_ : dict
        The information of each edge (parent, child), in nats a row, less its penalty.
    transduction_ : ndarray (n,)
        The labels of the rows of the last `fit`, those inferred that were missing; where `unlabelled` is not "error".
    component_classes_ : ndarray (Z,)
        The class of each component; fitted parameters have a row a component.
    label_confusion_ : ndarray (C, C)
        p(recorded class | true class), with `label_noise`.
    factor_weights_, class_bias_ : ndarray (d,), (C,)
        The weights w_j ≥ 0 and biases b_y in nats, where `weights` is given.
    log_likelihood_trace_ : ndarray
        Of the present cells before each step of EM, in nats; empty where there was none.
    n_iter_ : int
        Passes over the rows to learn from them: steps of EM, or 1.
    unlabelled_weight_ : float
        That of a row without label, as given or as chosen.
    class_prior_, class_log_prior_, class_count_ : ndarray (C,)
    n_parameters_, n_features_in_ : int
    feature_names_in_ : ndarray
        Where the columns had names.

    Notes
    -----
    Rows without label count for each class by its posterior, in turn with the model that they give, from that of the
    labelled rows on: the EM algorithm (Dempster, Laird & Rubin 1977), which never lowers log p(x, y) of the labelled
    rows plus log p(x) of the others where estimates are of maximum likelihood. Labels are taken to be missing
    at random.

    Each step of EM finds the parents anew (as Meilă & Jordan do for mixtures of trees); but with ``missing="em"`` they
    stay those that the labelled rows say.

    The statistics are those of all pairs of columns, over the rows in which both are present: one pass, O(n·d²), and
    8·C·Σ_ij (K_i + 1)(K_j + 1) bytes. `partial_fit` chooses the tree anew from all rows seen; bins stay those of the
    first call.

    The defaults of `continuous`, `bins`, `penalty` and `backoff` are those that did best on 28 real tables, as measured
    in docs/dependence.md.

    References
    ----------
    Friedman, Geiger & Goldszmidt, Bayesian network classifiers, Machine Learning 29 (1997), section 4. Meilă & Jordan,
    Learning with mixtures of trees, JMLR 1 (2000). Nigam, McCallum, Thrun & Mitchell, Text classification from labeled
    and unlabeled documents using EM, Machine Learning 39 (2000).

    Examples
    --------
    Two features that are the class only when taken together, which naive Bayes cannot see:

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

    _one_tree = True

    @property
    def tree_(self) -> dict[str, str | None]:
        """The parent of each column by name, None at a root."""
        return self._parents(0)

    @property
    def edge_weights_(self) -> dict[tuple[str, str], float]:
        """The information of each edge (parent, child), in nats a row, less its penalty."""
        return self._weights(0)


class ChowLiuClassifier(_TreeEstimator):
    r"""A Chow-Liu tree for each class: which features depend on each other may differ from class to class.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}_y(j)}, y)

    The parents in a class are the spanning tree of most mutual information I(x_i; x_j) among its own rows.

    Parameters
    ----------
    continuous, bins, penalty, missing, backoff, alpha : as in `TreeAugmentedNaiveBayes`
    priors, prior_alpha, categorical_features, tol, max_iter, n_jobs : as in `TreeAugmentedNaiveBayes`
    unlabelled, unlabelled_weight, components, label_noise, n_init, random_state : as in `TreeAugmentedNaiveBayes`
    weights : as in `TreeAugmentedNaiveBayes`

    Attributes
    ----------
    classes_ : ndarray (C,)
    tree_ : dict
        For each class (or pair of class and component), the parent of each column by name, None at a root.
    edge_weights_ : dict
        For each class, the information of each edge (parent, child), in nats a row, less its penalty.
    class_prior_, class_log_prior_, class_count_ : ndarray (C,)
    n_parameters_, n_features_in_ : int
    feature_names_in_ : ndarray
        Where the columns had names.

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).
    Friedman, Geiger & Goldszmidt (1997), section 4.2.

    Examples
    --------
    >>> import posteriori as po
    >>> X = [["a", "u", "k"], ["b", "v", "k"], ["a", "u", "l"], ["b", "u", "l"]] * 10
    >>> model = po.ChowLiuClassifier().fit(X, ["tied", "tied", "tied", "loose"] * 10)
    >>> model.tree_["tied"]
    {'x0': None, 'x1': 'x0', 'x2': 'x0'}
    """

    _one_tree = False

    @property
    def tree_(self) -> dict[Any, dict[str, str | None]]:
        """For each class, the parent of each column by name, None at a root."""
        return {name: self._parents(z) for z, name in enumerate(self._tree_names)}

    @property
    def edge_weights_(self) -> dict[Any, dict[tuple[str, str], float]]:
        """For each class, the information of each edge (parent, child), in nats a row, less its penalty."""
        return {name: self._weights(z) for z, name in enumerate(self._tree_names)}

    @property
    def _tree_names(self) -> list[Any]:
        """What each tree is called: its class, or the class and the number of its component."""
        of_class = self._fitted.of_class
        if not of_class:
            return self.classes_.tolist()
        return [(self.classes_.tolist()[c], z - of_class.index(c)) for z, c in enumerate(of_class)]
