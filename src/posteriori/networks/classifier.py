"""Classification by a network: any variable may be the class."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from posteriori.networks.naming import require_variable
from posteriori.networks.network import BayesianNetwork
from posteriori.table_estimator import TableEstimator
from posteriori.typing import Array


class NetworkClassifier(ClassifierMixin, TableEstimator):
    """A Bayesian network as a classifier: p(target | the others), missing cells summed out.

    Parameters
    ----------
    network : BayesianNetwork
        Its graph, states and tables; `fit` replaces the tables.
    target : str
        The variable to predict.
    alpha : float, default 1.0
        Pseudo-count per cell of the tables that `fit` learns.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core.

    Attributes
    ----------
    network_ : BayesianNetwork
        The network that predicts.
    classes_ : ndarray (C,)
        The states of the target.
    feature_names_in_ : ndarray
        The other variables: X is a data frame with some or all of them, in any order.
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
        "network": [BayesianNetwork],
        "target": [str],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    def __init__(self, network: BayesianNetwork, target: str, *, alpha: float = 1.0, n_jobs: int | None = None) -> None:
        self.network = network
        self.target = target
        self.alpha = alpha
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tables of the network's graph from rows.

        Parameters
        ----------
        X : data frame
            Columns that are variables of the network.
        y : array-like (n,)
            States of the target.
        sample_weight : array-like (n,), optional
        """
        self._validate_params()
        require_variable(self.target, self.network.variables)
        frame = nw.from_native(X, eager_only=True)
        labels = nw.new_series(self.target, list(y), backend=frame.implementation)
        cases = frame.with_columns(labels).to_native()
        states = {name: self.network.states(name) for name in self.network.variables}
        network = BayesianNetwork(self.network.edges, variables=self.network.variables, states=states)
        return self._set(network.fit(cases, alpha=self.alpha, sample_weight=sample_weight, n_jobs=self.n_jobs))

    def _set(self, network: BayesianNetwork) -> Self:
        require_variable(self.target, network.variables)
        self.network_ = network
        self.classes_ = np.array(network.states(self.target))
        self.feature_names_in_ = np.array([name for name in network.variables if name != self.target], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return p(target | the row), (n, C); NaN if the network cannot produce the row."""
        check_is_fitted(self, "network_")
        return self.network_.predict_proba(X, self.target, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(target | the row) in nats, (n, C)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable state of each row, (n,); by the prior if the network cannot produce the row."""
        posterior = self.predict_proba(X)
        impossible = np.isnan(posterior[:, 0])
        if impossible.any():
            posterior[impossible] = self.network_.query(self.target).probabilities
        labels: Array = self.classes_[posterior.argmax(axis=1)]
        return labels
