"""What a fitted generative classifier computes: predictions, explanations, samples, a network, a SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.accuracy import accuracy_of
from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.validation import require_in_memory
from posteriori.draws import check_draw, generator
from posteriori.explain import Explanation
from posteriori.model import log_sum
from posteriori.scoring import ModelRows, Posterior, Scorer
from posteriori.scoring.fitted import most_probable, warn_of_impossible
from posteriori.tables import Batch
from posteriori.tables.writing import decode, write_table
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class PredictingEstimator(ClassifierMixin, ModelEstimator):
    """Predicts, explains and draws rows with a fitted `GenerativeModel`."""

    classes_: Array

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self._map(X, lambda model: lambda batch: most_probable(model.scores(batch)))
        best[self._warn_of_impossible(best < 0)] = self.model_.class_log_prior.argmax()
        return self.classes_[best]

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1.

        A row that no class can produce (p(x) = 0, which takes ``alpha=0``) is NaN, with a warning.
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(X)`; y may be the name of a column of X."""
        model = self.model_
        fallback = int(model.class_log_prior.argmax())
        found = accuracy_of(
            self._source(X), y, sample_weight, self.target_, lambda batch: most_probable(model.scores(batch)), fallback
        )
        if found.impossible:
            warn_of_impossible(found.first, found.impossible)
        return found.share

    def explain(self, X: Any) -> Explanation:
        """Return every prediction as an exact sum: log prior plus one log factor a feature, per class.

        Where features depend on each other given the class, each factor is that of a feature given those above it.
        Where factors are weighted, each is times its weight, and the biases stand for the log prior: a sum that is
        exact for log p(y | x), up to a number that is the same for all classes, and no longer log p(x, y).

        Parameters
        ----------
        X : array-like or data frame (n, d)

        Returns
        -------
        Explanation
            Holds n·C·d numbers: meant for some rows, not for millions.
        """
        source = self._source(X)
        require_in_memory(source.table, "explain")
        model = self.model_
        rows: dict[int, Array] = {}

        def factors(batch: Batch) -> Array:
            rows[batch.start] = decode(batch)
            factors = model.log_factors(batch)
            return factors if model.weights is None else model.weights.weighted(factors)

        log_factors = source.map(factors)
        values = np.concatenate([rows[start] for start in sorted(rows)])
        return Explanation(
            self.classes_, model.schema.names, values, model.bias, log_factors, model.given, model.weights is not None
        )

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

    def sample(
        self, n: int = 1, y: Any = None, random_state: Any = None, respect_ranges: bool = True
    ) -> tuple[Any, Array]:
        """Draw rows from the model: a class from the prior, then every column from its distribution.

        Parameters
        ----------
        n : int, default 1
        y : label or array-like (n,), optional
            The class of all rows, or of each; default: drawn from the prior.
        random_state : int, RandomState, Generator or None
        respect_ranges : bool, default True
            Whether numbers stay within what the training rows held: between the lowest and the highest number of their
            column, and whole where all of these were. False draws from the density itself, which knows no bounds. A
            model that knows no ranges (`from_parameters`, a model file without them) always does so.

        Returns
        -------
        X : table (n, d)
            Of the type, and with the kinds of columns, that the model was trained on. No cell is missing, unless the
            model says how often cells are (``missing="informative"``).
        y : ndarray (n,)

        Raises
        ------
        ValueError
            n is no whole number from 1 on, or is too large; a label of y is no class.

        Notes
        -----
        Within the ranges each row is drawn from the model's density given its class and component, truncated to the
        ranges: what falls outside is drawn again, never moved to a bound. The probabilities of classes and components
        stay what they are. A whole number is a rounded draw from the density between lowest − 1/2 and highest + 1/2.
        Columns that depend on each other are drawn again as whole rows; of a row rejected 50 times, one column after
        another is truncated given those before it, which is close to the truncated density and not equal to it.
        """
        check_is_fitted(self, "model_")
        n = check_draw(n, len(self.model_.schema.columns))
        columns, labels = self._draw(n, y, generator(random_state), respect_ranges)
        return write_table(self.model_.schema, columns), labels

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        """Return columns of numbers and codes, in the order of the schema, and the class of each row."""
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
        """Return the same joint distribution as a Bayesian network, the class a parent of every feature.

        Raises
        ------
        ValueError
            A column holds numbers, or the model is no network: naive Bayes, `TreeAugmentedNaiveBayes` and
            `KDependenceBayes` of categories are.
        """
        from posteriori.networks.conversion import network_of

        check_is_fitted(self, "model_")
        return network_of(self.model_, self.target_)

    def to_sql(self, table: str = "rows", dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return one SELECT that scores the rows of a table where they are, in a database.

        For naive Bayes, Gaussian discriminants and trees (TAN, Chow-Liu): what it gives is `predict_log_proba`,
        up to rounding, missing cells integrated out. NULL and NaN are missing, and so is a category unseen in training.

        Parameters
        ----------
        table : str, default "rows"
            What stands after FROM, in the dialect: a name, a SELECT in parentheses, ``read_parquet('…')``. Its columns
            are found by the exact names that they had in training; x0, x1, … where they had none.
        dialect : str, default "duckdb"
            One that sqlglot writes: "sqlite", "postgres", "mysql", "bigquery", "snowflake", "spark", "tsql" and others.
        columns : sequence of str, optional
            Those of the table that are handed on, as a key; default: the features.

        Returns
        -------
        str
            A SELECT of these columns, ``prediction``, and p(y | x), ``p_CLASS``, and log p(y | x) in nats,
            ``log_p_CLASS``, of each class. In a row that no class can produce p is NULL and the prediction that of the
            prior; in one that `predict` refuses, for it holds an infinite number or one that a distribution cannot
            produce, the prediction is NULL too. A class that cannot have made a row has log p −∞; −1e300 where the
            database knows no infinity.

        Raises
        ------
        ValueError
            There is no such dialect; no SELECT is written for a density of the model, or it would hold more than
            200,000 expressions; the table cannot stand after
            FROM; two columns of the result would have one name.
        ImportError
            sqlglot is absent: ``pip install 'posteriori[sql]'``.

        Notes
        -----
        Strings are compared as the database does: under a collation that ignores case so is their case. SQLite is to be
        3.35 or newer, with its mathematical functions; SQL Server 2022 or newer. A covariance
        takes d³/6 short expressions for rows that lack cells, at most 200,000 (about 100 columns), and a tree about as
        many literals as it has parameters, twice that where inner cells may be missing.

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
