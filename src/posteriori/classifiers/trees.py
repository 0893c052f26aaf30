"""Classifiers whose features form a tree given the class."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from posteriori.classifiers.dependence import BACKOFF, COMMON, DependenceEstimator
from posteriori.classifiers.shared_parameters import EM_CONSTRAINTS, WEIGHTS_CONSTRAINTS, insert_shared_docs
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
        "backoff": BACKOFF,
        **COMMON,
        **EM_CONSTRAINTS,
        **WEIGHTS_CONSTRAINTS,
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


@insert_shared_docs
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
    .. shared:: priors, prior_alpha, categorical_features, unlabelled, unlabelled_weight, components, label_noise,
       n_init, random_state, tol, max_iter, weights, n_jobs

    Attributes
    ----------
    classes_ : ndarray (C,)
    tree_ : dict
        The parent of each column by name, None at a root.
    edge_weights_ : dict
        The information of each edge (parent, child), in nats a row, less its penalty.
    .. shared:: transduction_, component_classes_, label_confusion_, factor_weights_
    log_likelihood_trace_ : ndarray
        Of the present cells before each step of EM, in nats; empty where there was none.
    .. shared:: n_iter_, unlabelled_weight_
    class_prior_, class_log_prior_, class_count_ : ndarray (C,)
    n_parameters_, n_features_in_ : int
    feature_names_in_ : ndarray
        Where the columns had names.

    Notes
    -----
    .. shared:: unlabelled rows

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


@insert_shared_docs
class ChowLiuClassifier(_TreeEstimator):
    r"""A Chow-Liu tree for each class: which features depend on each other may differ from class to class.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}_y(j)}, y)

    The parents in a class are the spanning tree of most mutual information I(x_i; x_j) among its own rows.

    Parameters
    ----------
    continuous, bins, penalty, missing, backoff, alpha : as in `TreeAugmentedNaiveBayes`
    .. shared:: priors, prior_alpha, categorical_features, unlabelled, unlabelled_weight, components, label_noise,
       n_init, random_state, tol, max_iter, weights, n_jobs

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
