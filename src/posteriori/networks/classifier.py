"""Classification with a network: any of its variables can be the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from posteriori.networks.graph.naming import require_variable
from posteriori.networks.notebooks import network_html
from posteriori.reading.opening import takes_tables
from posteriori.scoring import Scorer
from posteriori.support.constraints import N_JOBS
from posteriori.support.markup import code, folded
from posteriori.support.typing import Array


@dataclass(frozen=True)
class NetworkRows:
    """Rows under a network: findings about its variables except the target."""

    network: Any
    target: str

    @property
    def names(self) -> tuple[str, ...]:
        """The other variables, which are keys of a row."""
        return tuple(name for name in self.network.variables if name != self.target)

    def log_posterior(self, row: Mapping[str, Any]) -> Array:
        """Return log p(target | row) in nats, (C,); NaN, with a warning, for a row that the network cannot produce."""
        with np.errstate(divide="ignore"):
            log_posterior: Array = np.log(self.network.predict_proba([row], self.target, n_jobs=1)[0])
        return log_posterior


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A Bayesian network as a classifier: p(target | the other variables), missing cells summed out.

    Parameters
    ----------
    network : BayesianNetwork
        Its graph and states, and its tables until `fit` learns others.
    target : str
        The variable to predict.
    alpha : float, default 1.0
        Pseudo-counts per cell of the tables that `fit` learns.
    n_jobs : int, optional
        Threads; None or −1 is one per core.

    Attributes
    ----------
    network_ : BayesianNetwork
        The network that predicts.
    classes_ : ndarray (C,)
        The states of the target.
    feature_names_in_ : ndarray
        The other variables; X is a data frame with some or all of them, in any order.
    n_features_in_ : int

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> import polars as pl
    >>> net.as_classifier("rain").predict_proba(pl.DataFrame({"wet": ["yes", None]})).round(3)
    array([[0.692, 0.308],
           [0.2  , 0.8  ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "network": [HasMethods(["as_classifier"])],  # its module imports this one
        "target": [str],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_jobs": N_JOBS,
    }

    def __init__(self, network: Any, target: str, *, alpha: float = 1.0, n_jobs: int | None = None) -> None:
        self.network = network
        self.target = target
        self.alpha = alpha
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        return takes_tables(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn new tables for the graph of the network.

        Parameters
        ----------
        X : data frame
            Its columns are variables of the network.
        y : array-like (n,)
            States of the target.
        sample_weight : array-like (n,), optional
        """
        self._validate_params()
        require_variable(self.target, self.network.variables)
        frame = nw.from_native(X, eager_only=True)
        labels = nw.new_series(self.target, list(y), backend=frame.implementation)
        cases = frame.with_columns(labels).to_native()
        given = self.network.to_parameters()
        network = type(self.network)(
            self.network.edges,
            variables=self.network.variables,
            states=given["states"],
            cpts=self.network.gaussians,  # their variables stay continuous, whatever their new columns hold
        )
        return self._set_network(network.fit(cases, alpha=self.alpha, sample_weight=sample_weight, n_jobs=self.n_jobs))

    def _html_repr(self) -> str:
        """Return the display in a notebook: the learned network, or before a fit the diagram of scikit-learn."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "network_"):
            return diagram
        return code(repr(self)) + network_html(self.network_) + folded("parameters, by scikit-learn", diagram)

    def _set_network(self, network: Any) -> Self:
        require_variable(self.target, network.variables)
        self.network_ = network
        self.classes_ = np.array(network.states(self.target))
        self.feature_names_in_ = np.array([name for name in network.variables if name != self.target], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return p(target | the row), (n, C); NaN in rows of probability 0."""
        check_is_fitted(self, "network_")
        posterior: Array = self.network_.predict_proba(X, self.target, n_jobs=self.n_jobs)
        return posterior

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(target | row) of each state, a dict, for services."""
        check_is_fitted(self, "network_")
        return Scorer(tuple(self.classes_.tolist()), NetworkRows(self.network_, self.target))

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(target | the row) in nats, (n, C)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable state of each row, (n,); in rows of probability 0, that of p(target)."""
        posterior = self.predict_proba(X)
        impossible = np.isnan(posterior[:, 0])
        if impossible.any():
            posterior[impossible] = self.network_.query(self.target).probabilities
        labels: Array = self.classes_[posterior.argmax(axis=1)]
        return labels
