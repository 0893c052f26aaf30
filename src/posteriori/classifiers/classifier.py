"""Base of the classifiers, of one model and of a pool: everything that follows from the fitted posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.deciding import Decides
from posteriori.classifiers.keywords import OF_SAMPLING
from posteriori.classifiers.notebooks import priors_html
from posteriori.classifiers.partitions import require_in_memory, supports_partitions
from posteriori.classifiers.training_record import kept_sentences, record_of
from posteriori.explain import Explanation
from posteriori.explain.of_rows import explanation_of
from posteriori.explain.words import WordFactors, word_factors_of
from posteriori.fitting.fitted import TrainingRecord
from posteriori.learning.importance import Importance, importance_under_model
from posteriori.reading import check_weights, read_labels
from posteriori.scoring import Scorer
from posteriori.scoring.decisions import decision_of
from posteriori.scoring.fitted import most_probable, warn_of_impossible
from posteriori.sources import LabelledSource
from posteriori.support.checks import check_draw, generator
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column
from posteriori.tables.writing import decode, write_table
from posteriori.user_warnings import warn_of_missing_targets


@dataclass(frozen=True)
class Accuracy:
    """Weight of the rows whose class was predicted correctly, and of all rows."""

    right: float  # in rows
    weight: float  # in rows
    impossible: int  # number of rows that no class can produce
    first: int  # row number of the first such row
    unlabelled: int  # number of rows without label, which have no weight

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(
            self.right + other.right,
            self.weight + other.weight,
            self.impossible + other.impossible,
            self.first if self.impossible else other.first,
            self.unlabelled + other.unlabelled,
        )

    @property
    def share(self) -> float:
        """Accuracy, in [0, 1]."""
        return self.right / self.weight


def accuracy_of(
    source: LabelledSource,
    y: Any,
    sample_weight: Any,
    target: Column,
    best: Callable[[Batch], Array],
    fallback: int,
) -> Accuracy:
    """Return the accuracy of predictions, by the labels of the rows.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    y, sample_weight
        As in `score`.
    target : Column
        The classes that predictions index. Labels may have other classes.
    best : callable
        Returns the class of each row of a batch, (n,), −1 if no class can produce it.
    fallback : int
        The class of such rows.

    Warns
    -----
    UserWarning
        Rows have no label; they are left out.
    """
    labels = replace(read_labels(y, source.table), may_miss=True)
    known = target.extended(labels.infer())
    weight = check_weights(sample_weight, source.table.n_rows)
    position = np.array([known.lookup[label] - 1 for label in target.categories])

    def judge(batch: Batch) -> Accuracy:
        assert batch.assignment is not None
        truth, own = batch.assignment.component, batch.assignment.weight
        found, own, hidden = best(batch), np.where(truth < 0, 0.0, own), int(own[truth < 0].astype(bool).sum())
        strange = np.flatnonzero(found < 0)
        right = position[np.where(found < 0, fallback, found)] == truth
        first = batch.number(int(strange[0])) if len(strange) else 0
        return Accuracy(float(own[right].sum()), float(own.sum()), len(strange), first, hidden)

    accuracy = source.with_labels(labels, known).with_weight(weight).reduce(judge)
    warn_of_missing_targets(accuracy.unlabelled, source.table.n_rows, labels.name)
    return accuracy


class Classifier(ClassifierMixin, Decides):
    """Classifies, explains and draws rows of the tables that posteriori reads, by the posterior of a fitted value."""

    @property
    def classes_(self) -> Array:
        """The classes, (C,)."""
        return self._value.classes

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        posterior = self._posterior
        best = self._source(X).map(lambda batch: most_probable(posterior.scores(batch)))
        impossible = self._warn_of_impossible(best < 0)
        if impossible.any():
            best[impossible] = posterior.class_log_prior.argmax()
        labels: Array = self.classes_[best]
        return labels

    @supports_partitions("probability")
    def predict_proba(self, X: Any, priors: Any = None) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1.

        `priors`, if given, are the class shares of these rows, or "estimate" for those that the rows themselves show
        (`with_priors`, `estimate_priors`); default: those of the model.

        Missing cells are integrated out. So is a column that a table with names lacks, with a warning that names it.
        If no class can produce a row, it is NaN, with a warning: p(x) is 0, which needs ``alpha=0`` or a number so far
        from all others that log p(x | y) overflows.
        """
        if priors is not None:
            if isinstance(priors, str) and priors == "estimate":
                priors = self.estimate_priors(X).cautious
            return self.with_priors(priors).predict_proba(X)
        posterior = self._source(X).map(self._posterior.posterior)
        self._warn_of_impossible(np.isnan(posterior[:, 0]))
        return posterior

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        log_posterior = self._source(X).map(self._posterior.log_posterior)
        self._warn_of_impossible(np.isnan(log_posterior[:, 0]))
        return log_posterior

    @supports_partitions("decision")
    def decision_function(self, X: Any) -> Array:
        """Return the score by which a row is classified, in nats: log-odds of two classes, log p(y | x) of more.

        Returns
        -------
        ndarray (n,) or (n, C)
            Of two classes log p(y = classes_[1] | x) − log p(y = classes_[0] | x), (n,); of another number of classes
            log p(y | x), (n, C). NaN if no class can produce a row, with a warning.
        """
        scores = self._source(X).map(self._posterior.log_posterior)
        self._warn_of_impossible(np.isnan(scores[:, 0]))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(y | x) of each class, a dict, for services."""
        return self._value.predictor.scorer()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(X)` on the rows with a label; y may be the name of a column of X."""
        source, posterior = self._source(X), self._posterior
        fallback = int(posterior.class_log_prior.argmax())

        def best(batch: Batch) -> Array:
            return most_probable(posterior.scores(batch))

        found = accuracy_of(source, y, sample_weight, self.target_, best, fallback)
        if found.impossible:
            warn_of_impossible(found.first, found.impossible)
        return found.share

    def _warn_of_impossible(self, impossible: Array) -> Array:
        if impossible.any():
            warn_of_impossible(int(impossible.argmax()), int(impossible.sum()))
        return impossible

    # Explaining and drawing -------------------------------------------------------------------------------------

    def explain(self, X: Any) -> Explanation:
        """Return every prediction as an exact sum: per class, the log prior plus one log factor per feature.

        If features depend on each other given the class, the factor of a feature is conditional on the features that it
        depends on. If factors have weights, each is multiplied by its weight, and the known features share what the
        bias of the class adds to the log prior in equal parts; then the sum is log p(y | x) up to a constant per row,
        and not log p(x, y). The factor of a feature in a pool is the sum of the factors of its members times their
        weights. A member whose log posterior of a class the pool clips, at −700 nats, has smaller factors against it.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            May lack columns, as in `predict_proba`.

        Returns
        -------
        Explanation
            Holds up to 2·n·C·d numbers: for some rows, not for millions. Columns that the model ignores have no factor.
        """
        source, posterior = self._source(X), self._posterior
        require_in_memory(source.table, "explain")
        source = source.with_width(len(posterior.schema.columns) * posterior.n_scores)
        rows: dict[int, Array] = {}
        words: dict[int, list[dict[str, WordFactors]]] = {}
        has_words = bool(posterior.schema.of_kind("counts"))

        def factors(batch: Batch) -> Array:
            rows[batch.start] = decode(batch)
            log_factors = posterior.explaining_factors(batch)
            if has_words:
                words[batch.start] = word_factors_of(posterior, batch, log_factors)
            shares = posterior.has_shared_factors
            apart = [posterior.explaining_factors(batch, with_shared=False)] if shares else []
            return np.stack([log_factors, *apart], axis=1)

        log_factors, *apart = source.map(factors).swapaxes(0, 1)
        values = np.concatenate([rows[start] for start in sorted(rows)])  # threads may finish in any order
        of_words = tuple(row for start in sorted(words) for row in words[start])
        return explanation_of(posterior, self.classes_, values, log_factors, next(iter(apart), None), of_words)

    @partial(explain_unknown_keywords, groups={}, wanted=OF_SAMPLING)
    def sample(
        self, n: int = 1, y: Any = None, random_state: Any = None, respect_ranges: bool = True
    ) -> tuple[Any, Array]:
        """Draw rows from the model: a class from the prior, then every column from its distribution.

        A pool first draws a member for each row, with a probability proportional to its weight.

        Parameters
        ----------
        n : int, default 1
        y : label or array-like (n,), optional
            Class of all rows, or of each; default: drawn from the prior.
        random_state : int, RandomState, Generator or None
        respect_ranges : bool, default True
            Whether numbers stay between the lowest and the highest number of their column in the training rows, and
            are whole if all of these were. False draws from the density itself, which has no bounds. A model without
            ranges (`from_parameters`, an old model file) always does so.

        Returns
        -------
        X : table (n, d)
            Has the type and the kinds of columns of the training table. Cells are missing only if the model includes
            the probability of missing cells (``missing="informative"``).
        y : ndarray (n,)

        Raises
        ------
        ValueError
            n is not a whole number of at least 1, or is too large; y is not one label or n labels; a label of y is
            not a class.

        Notes
        -----
        Within the ranges each row is drawn from the model's density given its class and component, truncated to the
        ranges: a number outside is drawn again, never moved to a bound. The probabilities of classes and components do
        not change. A whole number is a rounded draw from the density between lowest − 1/2 and highest + 1/2. Columns
        that depend on each other are drawn again as whole rows. If a row is rejected 50 times, its columns are
        truncated one after the other, each given those before it, which is close to the truncated density but not equal
        to it.
        """
        posterior = self._posterior
        n = check_draw(n, len(posterior.schema.columns))
        wanted = None if y is None else np.asarray(y)
        if wanted is not None and wanted.shape not in ((), (n,)):
            raise ValueError(f"y is of shape {wanted.shape}; give one class, or one for each of the {n:,} rows to draw")
        label = None
        if wanted is not None:
            place = {one: class_index(one, self.classes_.tolist()) for one in dict.fromkeys(wanted.ravel().tolist())}
            label = np.array([place[one] for one in np.broadcast_to(wanted, (n,)).tolist()])
        parts = self._value.parts.values()
        ranges = [part.ranges if respect_ranges else None for part in parts]
        columns, drawn = posterior.draw(n, label, generator(random_state), ranges)
        return write_table(self.schema_, columns), self.classes_[drawn]

    @property
    def importance_(self) -> Importance:
        r"""Feature importance: the information about the class that the posterior loses without each column.

        .. math:: I_j = \mathbb{E}[\log p(y \mid x) - \log p(y \mid x_{-j})]

        in nats per row, with standard errors. The column is treated as unknown and integrated out, so that nothing is
        refitted and nothing is permuted; a pool keeps the weights that it has for the whole row. Columns that carry the
        same information share it: each alone may lose little, although both together lose much. Columns that nearly
        determine each other are therefore also measured together, as `Importance.groups`. Mutual information I(x_j; y)
        instead takes a column as the only one known.

        The mean is over held-out rows, at most 2,000, after `GenerativeClassifier.fit` and after
        `model_selection.out_of_fold`; there I_j is the increase of the held-out log-loss, and may be negative.
        Otherwise it is over at most 2,000 rows drawn from the model: the expectation under the model, which may be
        wrong; see `Importance.held_out`. It is computed on first access, and saved with the model if it is of held-out
        rows.

        Raises
        ------
        NotFittedError
            The classifier is not fitted.
        """
        check_is_fitted(self)
        record: TrainingRecord = self.fitted_.record
        if record.held_out is not None:
            record = record.with_importance()
        elif record.importance is None and record.drawn is None:
            record = replace(record, drawn=importance_under_model(self._value.training_posterior))
        if record is not self.fitted_.record:
            self.fitted_ = replace(self.fitted_, record=record)
        found = record.drawn if record.importance is None else record.importance
        assert found is not None
        return found

    @property
    def feature_importances_(self) -> Array:
        """Feature importance of each column of X in nats per row, (d,), in the order of `feature_names_in_`.

        It is `importance_.increase`; of a column of dates the sum over its parts, each of which is taken as unknown
        alone. Unlike that of scikit-learn's trees it does not sum to 1, and on held-out rows it may be negative.

        Raises
        ------
        AttributeError
            X was a sparse matrix: its words have no importance of their own.
        """
        information, schema = self.importance_.increase, self.schema_
        if schema.n_features != len(schema.given):
            raise AttributeError(
                "feature_importances_ is of the columns of a table, and X was a sparse matrix, whose words share one "
                "importance; use importance_.increase"
            )
        importances: Array = np.bincount(schema.places, information, len(schema.given))
        return importances

    def summary(self, positive: Any = None) -> str:
        """Return how good held-out predictions are in sentences, one per line: those that ``posteriori fit`` prints.

        They are of the cross-validation of a pool, or of what ``posteriori fit`` scored; the model keeps their few
        figures, in files too. `partial_fit`, `unlearn` and `merge` drop them.

        Parameters
        ----------
        positive : class, optional
            The class of interest, whose recall and precision are given. Default: that of ``posteriori fit --positive``,
            else the rarer of two classes.

        Raises
        ------
        ValueError
            The model keeps no held-out predictions: use `model_selection.out_of_fold` and its `summary`. Or `positive`
            is not a class.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> pool = po.GenerativeClassifier(["nb", "lda"]).fit(load_penguins(), "species")
        >>> pool.summary().startswith("Of 100 held-out rows, it predicts")
        True
        """
        check_is_fitted(self)
        sentences = kept_sentences(self, positive)
        if not sentences:
            raise ValueError(
                f"this {type(self).__name__} keeps no held-out predictions; use "
                "model_selection.out_of_fold(model, X, y).summary()"
            )
        return "\n".join(sentences)

    def __getstate__(self) -> Any:
        if record_of(self).held_out is not None:
            _ = self.importance_
        return super().__getstate__()

    def to_sql(
        self,
        table: str = "rows",
        dialect: str = "duckdb",
        columns: Sequence[str] | None = None,
        *,
        costs: Mapping[Any, Mapping[Any, float]] | None = None,
        thresholds: Mapping[Any, float] | None = None,
    ) -> str:
        """Return a SELECT statement that scores the rows of a table in a database.

        Every model of the library has a SELECT, and so has a pool, except those with text or blocks of words, with
        durations, with the arithmetic mean of trees, with t densities or trees that have feature weights, with an
        average of trees that has them, or with infinite weights of words. Distributions of your own have one by a
        method `program`. Its log p(y | x) equals `predict_log_proba` up to rounding. NULL, NaN and unseen categories
        are missing cells and are integrated out.

        Parameters
        ----------
        table : str, default "rows"
            The text after FROM, in the dialect: a name, a SELECT in parentheses, ``read_parquet('…')``. Its columns are
            found by the exact names that they had in training, or as x0, x1, … if they had none.
        dialect : str, default "duckdb"
            A dialect of sqlglot: "sqlite", "postgres", "mysql", "bigquery", "snowflake", "spark", "tsql" and others.
        columns : sequence of str, optional
            Columns of the table to return with the scores, such as a key: the rows of a SELECT are in no order, and
            its joins change it. Default: the features.
        costs, thresholds : mapping, optional
            The rule of ``prediction``, as of `decide`. Default: the most probable class.

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
            As of `decide`. The dialect is unknown, or has no functions for a column of dates; the model, or a member of
            the pool, is one of the exceptions above; the SELECT would have more than about 20,000,000 characters, by an
            estimate before it is written; the table cannot follow FROM; two columns of the result would have the same
            name.
        ImportError
            sqlglot is absent: ``pip install sqlglot``.

        Notes
        -----
        In SQLite and DuckDB, numbers and truth values may be text, as an import of CSV leaves them: it is cast, and
        the empty string and NA are missing. A row with another word among numbers has no prediction.

        Dates and times of day are columns of the database, or text of ISO 8601, in DuckDB also in the format of
        training. In SQLite and DuckDB a row with another word among dates has no prediction.

        The database compares strings: a collation that ignores case ignores it here too. SQLite must be 3.35 or newer,
        with its mathematical functions; SQL Server 2022 or newer. A covariance takes d³/6 short expressions for rows
        with missing cells, so that about 85 columns are the most. A tree takes about as many literals as it has
        parameters, and twice as many if inner cells may be missing.

        k-dependence, averaged one-dependence and forests stand in the SELECT as tables (VALUES), which are joined by
        the codes of the cells. They hold about as many numbers as the model has parameters. Rows with equal codes are
        scored once. A forest holds the nodes that each of these rows reaches, about 20 bytes per row, tree and level of
        the trees: score a large table in batches of some 10,000 rows, as ``table="(SELECT * FROM rows WHERE …)"``. A
        row with missing cells takes as many lines as the missing parents have combinations of values; the SELECT sums
        over all of them, also where `predict_log_proba` warns that it drops columns. SQLite limits the depth of
        statements, and reads about 60 columns of k-dependence.

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
        check_is_fitted(self)
        classes = self.classes_.tolist()
        decision = None if costs is None and thresholds is None else decision_of(classes, costs, thresholds)
        return self._select(table, dialect, columns, decision)

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def class_log_prior_(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self._posterior.class_log_prior

    @property
    def class_prior_(self) -> Array:
        """p(y), (C,)."""
        return np.exp(self._posterior.class_log_prior)

    def _html_parts(self) -> list[str]:
        """Return the class prior as HTML for a notebook."""
        return [priors_html(self.classes_.tolist(), self.class_prior_, self.schema_.target)]
