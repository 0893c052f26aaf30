"""Chow-Liu tree as a density of rows without a class."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.parameter_groups import EM, Columns, set_grouped_params, validate_grouped_params
from posteriori.classifiers.trees import ChowLiuClassifier, edge_information_in, parents_in
from posteriori.classifiers.validation import reject_target
from posteriori.invariants import require
from posteriori.tables import read_table
from posteriori.typing import Array


def _of_classifier(name: str, doc: str) -> property:
    """Return a property that reads an attribute of the fitted classifier."""
    return property(lambda self: getattr(self._fitted, name), doc=doc)


class ChowLiuTree(DensityMixin, BaseEstimator):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: checks
        for name, checks in ChowLiuClassifier._parameter_constraints.items()
        if name not in ("priors", "labels")
    } | {"bins": [None, Interval(Integral, 2, None, closed="left"), "array-like"]}

    set_params = set_grouped_params
    _validate_params = validate_grouped_params

    one_class_: ChowLiuClassifier
    n_parameters_ = _of_classifier("n_parameters_", "Number of free parameters.")
    n_iter_ = _of_classifier("n_iter_", "Number of passes over the rows in training: EM steps, or 1.")
    n_features_in_ = _of_classifier("n_features_in_", "Number of columns.")
    feature_names_in_ = _of_classifier("feature_names_in_", "Names of the columns, if they had names.")

    def __init__(
        self,
        *,
        bins: Any = 8,
        penalty: Any = None,
        missing: str = "pairs",
        backoff: float | None = 10.0,
        alpha: float = 1.0,
        columns: Columns | None = None,
        em: EM | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.bins = bins
        self.penalty = penalty
        self.missing = missing
        self.backoff = backoff
        self.alpha = alpha
        self.columns = columns
        self.em = em
        self.n_jobs = n_jobs

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
        self._validate_params()
        return self._store_fit(self._classifier()._fit_rows, X, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; the tree is that of all rows, with the bins of the first call."""
        self._validate_params()
        classifier = self.one_class_ if hasattr(self, "one_class_") else self._classifier()
        return self._store_fit(classifier.partial_fit, X, sample_weight)

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract rows from the model; see `NaiveBayes.unlearn`."""
        del y
        check_is_fitted(self, "one_class_")
        return self._store_fit(self.one_class_.unlearn, X, sample_weight)

    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,), missing cells summed and integrated out."""
        check_is_fitted(self, "one_class_")
        log_density: Array = self.one_class_.score_samples(X)
        return log_density

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) in nats per row."""
        return float(self.score_samples(X).mean())

    def sample(self, n: int = 1, random_state: Any = None, respect_ranges: bool = True) -> Any:
        """Draw n rows, as a table of the same kind as the training table.

        respect_ranges keeps numbers within the range of the training rows, and whole if all training values were
        whole; see `NaiveBayes.sample`.
        """
        check_is_fitted(self, "one_class_")
        return self.one_class_.sample(n, random_state=random_state, respect_ranges=respect_ranges)[0]

    @property
    def tree_(self) -> dict[str, str | None]:
        """Parent of each column by name, None for a root."""
        return parents_in(self._fitted.model_, 0)

    @property
    def edge_information_(self) -> dict[tuple[str, str], float]:
        """Information of each edge (parent, child), in nats per row, minus its penalty."""
        return edge_information_in(self._fitted.model_, 0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._classifier().__sklearn_tags__().input_tags
        return tags

    @property
    def _fitted(self) -> ChowLiuClassifier:
        if "one_class_" not in vars(self):
            raise AttributeError("this ChowLiuTree is not fitted yet; call fit first")
        return self.one_class_

    def _classifier(self) -> ChowLiuClassifier:
        return ChowLiuClassifier(**self.get_params(deep=False))

    def _check_fitted(self) -> None:
        """Raise ValueError unless the fitted attributes, which may come from a file, agree with each other."""
        check_is_fitted(self, "one_class_")
        self.one_class_._check_fitted()
        require(len(self.one_class_.classes_) == 1, "a tree without label has several classes")

    def _store_fit(self, learn: Any, X: Any, sample_weight: Any) -> Self:
        table = read_table(X)
        reject_target(table, "ChowLiuTree")
        self.one_class_ = learn(X, np.zeros(table.n_rows, np.int8), sample_weight=sample_weight)
        return self
