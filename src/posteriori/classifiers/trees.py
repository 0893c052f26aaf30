"""Classifiers whose features form a tree given the class."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from posteriori.classifiers.dependence import COMMON, LEARNED_BACKOFF, DependenceEstimator, smoothing_of
from posteriori.classifiers.shared_parameters import EM_CONSTRAINTS, WEIGHTS_CONSTRAINTS, insert_shared_docs
from posteriori.classifiers.validation import em_options_of
from posteriori.densities import BackOff, Density, Tree, TreeParameters, coarse_parameters
from posteriori.learning.em import EMOptions
from posteriori.tables import Schema


class _TreeEstimator(DependenceEstimator):
    """Base of the classifiers with a tree density."""

    continuous: str
    penalty: Any
    missing: str
    backoff: float | str | BackOff | None
    tol: float
    max_iter: int
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "continuous": [StrOptions({"binned", "gaussian"})],
        "penalty": [None, StrOptions({"aic", "bic"})],
        "missing": [StrOptions({"pairs", "em", "informative"})],
        "backoff": LEARNED_BACKOFF,
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
        backoff: float | str | BackOff | None = 10.0,
        alpha: float = 1.0,
        priors: Any = None,
        prior_alpha: float = 0.0,
        categorical_features: Any = "from_dtype",
        keep: Any = None,
        dates: Any = "parts",
        unlabelled: Any = "error",
        unlabelled_weight: Any = 1.0,
        components_per_class: Any = None,
        label_noise: Any = None,
        n_init: int = 5,
        random_state: Any = None,
        tol: float = 1e-5,
        max_iter: int = 200,
        feature_weights: str | None = None,
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
        self.keep = keep
        self.dates = dates
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.components_per_class = components_per_class
        self.label_noise = label_noise
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.feature_weights = feature_weights
        self.n_jobs = n_jobs

    def _density(self) -> Density:
        if self.missing == "em" and self.continuous == "gaussian":
            raise ValueError('missing="em" is defined for counts only; set continuous="binned"')
        if self.backoff == "learned" and self.continuous == "gaussian":
            raise ValueError('backoff="learned" is defined for counts only; set continuous="binned", or give a number')
        return Tree(smoothing_of(self.backoff, self.alpha), self._one_tree, self.penalty, self.missing == "em")

    def _em_options(self) -> EMOptions:
        return em_options_of(self)

    def _binned(self, schema: Schema) -> tuple[int, ...]:
        return schema.of_kind("continuous") if self.continuous == "binned" else ()

    @property
    def _tree(self) -> TreeParameters:
        parameters: TreeParameters = coarse_parameters(self._fitted.parameters[0])
        return parameters

    def _parents(self, tree: int) -> dict[str, str | None]:
        schema = self._fitted.schema
        names = [schema.names[j] for j in schema.dense]
        pairs = zip(names, self._tree.parents[tree].tolist(), strict=True)
        return {name: None if parent < 0 else names[parent] for name, parent in pairs}

    def _weights(self, tree: int) -> dict[tuple[str, str], float]:
        weights = zip(self._parents(tree).items(), self._tree.edge_weights[tree].tolist(), strict=True)
        return {(parent, child): weight for (child, parent), weight in weights if parent is not None}


@insert_shared_docs
class TreeAugmentedNaiveBayes(_TreeEstimator):
    r"""Tree-augmented naive Bayes (TAN): each feature depends on the class and on one other feature.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}(j)}, y)

    The parents are the maximum spanning tree of the conditional mutual information I(x_i; x_j | y), the same for all
    classes. This tree maximizes the likelihood. Missing cells are summed and integrated out exactly.

    Parameters
    ----------
    continuous : {"binned", "gaussian"}, default "binned"
        Continuous columns are cut into bins; or they are Gaussian given a category and linear Gaussian given a number,
        and a categorical column never depends on a continuous one.
    .. shared:: bins
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
    .. shared:: priors, prior_alpha, categorical_features, keep, dates, unlabelled, unlabelled_weight,
       components_per_class, label_noise, n_init, random_state, tol, max_iter, feature_weights, n_jobs

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

    The defaults of `continuous`, `bins`, `penalty` and `backoff` had the best scores on 28 real tables
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

    _one_tree = True

    @property
    def tree_(self) -> dict[str, str | None]:
        """Parent of each column by name; None for a root."""
        return self._parents(0)

    @property
    def edge_information_(self) -> dict[tuple[str, str], float]:
        """Information of each edge (parent, child), in nats per row, minus its penalty."""
        return self._weights(0)


@insert_shared_docs
class ChowLiuClassifier(_TreeEstimator):
    r"""Chow-Liu classifier: one tree of features per class, so the dependences may differ between classes.

    .. math:: p(x \mid y) = \prod_j p(x_j \mid x_{\mathrm{parent}_y(j)}, y)

    The parents in a class are the maximum spanning tree of the mutual information I(x_i; x_j) among its rows.

    Parameters
    ----------
    continuous, bins, penalty, missing, backoff, alpha : as in `TreeAugmentedNaiveBayes`
    .. shared:: priors, prior_alpha, categorical_features, keep, dates, unlabelled, unlabelled_weight,
       components_per_class, label_noise, n_init, random_state, tol, max_iter, feature_weights, n_jobs

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
    >>> model = po.ChowLiuClassifier().fit(X, ["tied", "tied", "tied", "loose"] * 10)
    >>> model.tree_["tied"]
    {'x0': None, 'x1': 'x0', 'x2': 'x0'}
    """

    _one_tree = False

    @property
    def tree_(self) -> dict[Any, dict[str, str | None]]:
        """For each class, the parent of each column by name; None for a root."""
        return {name: self._parents(z) for z, name in enumerate(self._tree_names)}

    @property
    def edge_information_(self) -> dict[Any, dict[tuple[str, str], float]]:
        """For each class, the information of each edge (parent, child), in nats per row, minus its penalty."""
        return {name: self._weights(z) for z, name in enumerate(self._tree_names)}

    @property
    def _tree_names(self) -> list[Any]:
        """Key of each tree: its class, or the pair of class and component number."""
        of_class = self._fitted.of_class
        labels: list[Any] = self.classes_.tolist()
        if not of_class:
            return labels
        return [(labels[c], z - of_class.index(c)) for z, c in enumerate(of_class)]
