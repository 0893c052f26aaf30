"""Predictions of a classifier with one generative model, and the model as a network and as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.table_classifier import ExplanationTerms, TableClassifier
from posteriori.model import log_sum
from posteriori.scoring import ModelRows, Posterior, Scorer
from posteriori.scoring.fitted import most_probable, warn_of_impossible
from posteriori.tables import Batch
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class PredictingEstimator(TableClassifier, ModelEstimator):
    """Predicts with a fitted `GenerativeModel`."""

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self._map(X, lambda model: lambda batch: most_probable(model.scores(batch)))
        best[self._warn_of_impossible(best < 0)] = self.model_.class_log_prior.argmax()
        labels: Array = self.classes_[best]
        return labels

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1.

        If no class can produce a row (p(x) = 0, which needs ``alpha=0``), it is NaN, with a warning.
        """
        posterior = self._map(X, lambda model: model.posterior)
        self._warn_of_impossible(np.isnan(posterior[:, 0]))
        return posterior

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        scores = self._map(X, lambda model: model.scores)
        with np.errstate(invalid="ignore"):
            scores -= log_sum(scores)[:, np.newaxis]
        self._warn_of_impossible(np.isnan(scores[:, 0]))
        return scores

    @supports_partitions("joint_log_probability")
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C), with missing cells integrated out."""
        return self._map(X, lambda model: model.log_joint)

    def _best(self) -> tuple[Callable[[Batch], Array], int]:
        model = self.model_
        return lambda batch: most_probable(model.scores(batch)), int(model.class_log_prior.argmax())

    def _terms(self) -> ExplanationTerms:
        model = self.model_

        def factors(batch: Batch) -> Array:
            factors = model.log_factors(batch)
            return factors if model.weights is None else model.weights.weighted(factors)

        return ExplanationTerms(model.bias, factors, model.given, model.weights is not None)

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(y | x) of each class, a dict, for services."""
        return Scorer(tuple(self.classes_.tolist()), ModelRows(self._posterior, type(self).__name__))

    @property
    def _posterior(self) -> Posterior:
        return Posterior((self._fitted,))

    def _warn_of_impossible(self, impossible: Array) -> Array:
        if impossible.any():
            warn_of_impossible(int(impossible.argmax()), int(impossible.sum()), stacklevel=4)
        return impossible

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        if y is None:
            component = rng.choice(len(self.classes_), size=n, p=np.exp(self.model_.class_log_prior))
        else:
            wanted = np.broadcast_to(np.asarray(y), (n,)).tolist()
            positions = [self.target_.lookup.get(label, 0) - 1 for label in wanted]
            if min(positions) < 0:
                unseen = wanted[positions.index(-1)]
                raise ValueError(f"{unseen!r} is not a class; the classes are {self.classes_.tolist()}")
            component = np.array(positions)
        ranges = self._ranges if respect_ranges else None
        columns = self.model_.sample(self.model_.draw_components(component, rng), rng, ranges)
        return columns, self.classes_[component]

    def to_network(self) -> BayesianNetwork:
        """Return the joint distribution as a Bayesian network, in which the class is a parent of every feature.

        Raises
        ------
        ValueError
            A column holds numbers, or the model is not a network. Naive Bayes, `TreeAugmentedNaiveBayes` and
            `KDependenceBayes` of categories are networks.
        """
        from posteriori.networks.conversion import network_of

        check_is_fitted(self, "model_")
        return network_of(self.model_, self.target_)

    def to_sql(self, table: str = "rows", dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return a SELECT statement that scores the rows of a table in a database.

        It is available for naive Bayes, Gaussian discriminants and trees (TAN, Chow-Liu). Its log p(y | x) equals
        `predict_log_proba` up to rounding. NULL, NaN and unseen categories are missing cells and are integrated out.

        Parameters
        ----------
        table : str, default "rows"
            The text after FROM, in the dialect: a name, a SELECT in parentheses, ``read_parquet('…')``. Its columns are
            found by the exact names that they had in training, or as x0, x1, … if they had none.
        dialect : str, default "duckdb"
            A dialect of sqlglot: "sqlite", "postgres", "mysql", "bigquery", "snowflake", "spark", "tsql" and others.
        columns : sequence of str, optional
            Columns of the table to return with the scores, such as a key. Default: the features.

        Returns
        -------
        str
            A SELECT of these columns, ``prediction``, and for each class p(y | x), ``p_CLASS``, and log p(y | x) in
            nats, ``log_p_CLASS``. If no class can produce a row, p is NULL and the prediction is that of the prior. If
            `predict` raises an error for a row (an infinite number, or one out of the support of its distribution), the
            prediction is NULL too. A class that cannot have produced a row has log p −∞, or −1e300 if the database has
            no infinity.

        Raises
        ------
        ValueError
            The dialect is unknown; a column of the model is a part of a date; a density of the model has no SQL, or the
            SELECT would hold more than 200,000 expressions; the table cannot follow FROM; two columns of the result
            would have the same name.
        ImportError
            sqlglot is absent: ``pip install 'posteriori[sql]'``.

        Notes
        -----
        The database compares strings: a collation that ignores case ignores it here too. SQLite must be 3.35 or newer,
        with its mathematical functions; SQL Server 2022 or newer. A covariance takes d³/6 short expressions for rows
        with missing cells, at most 200,000 (about 100 columns). A tree takes about as many literals as it has
        parameters, and twice as many if inner cells may be missing.

        Examples
        --------
        >>> import sqlite3, pandas as pd, posteriori as po
        >>> rows = pd.DataFrame({"id": [1, 2, 3, 4], "height": [1.0, 2.0, 8.0, 9.0]})
        >>> model = po.NaiveBayes().fit(rows[["height"]], ["low", "low", "high", "high"])
        >>> database = sqlite3.connect(":memory:")
        >>> _ = database.execute("CREATE TABLE birds (id, height)")
        >>> _ = database.executemany("INSERT INTO birds VALUES (?, ?)", [(7, 1.5), (8, None)])
        >>> select = model.to_sql("birds", "sqlite", columns=["id"])
        >>> database.execute(f"SELECT id, prediction, round(p_low, 3) FROM ({select})").fetchall()
        [(7, 'low', 1.0), (8, 'high', 0.5)]
        """
        check_is_fitted(self, "model_")
        try:
            from posteriori.sql import select_posterior
        except ModuleNotFoundError as error:
            if error.name != "sqlglot":
                raise
            raise ImportError("to_sql needs sqlglot: pip install 'posteriori[sql]'") from error
        labels = self.classes_.tolist()
        return select_posterior(self.model_, labels, table, dialect, columns, type(self).__name__)
