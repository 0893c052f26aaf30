"""Fitted classifiers as one SELECT."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from sklearn.utils.validation import check_is_fitted

from posteriori.learning.pool import Pool
from posteriori.model import GenerativeModel
from posteriori.typing import Array


class WritesSQL:
    """Writes a fitted classifier as a SELECT."""

    classes_: Array

    @abstractmethod
    def _models_in_sql(self) -> tuple[Mapping[str, GenerativeModel], Pool | None]:
        """Return the models by their names in messages, and their pool; None for one model."""

    def to_sql(self, table: str = "rows", dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return a SELECT statement that scores the rows of a table in a database.

        It is available for naive Bayes of numbers and categories, Gaussian discriminants, trees (TAN, Chow-Liu),
        k-dependence and averaged one-dependence, and for a pool of these, which every default pool is. Its
        log p(y | x) equals `predict_log_proba` up to rounding. NULL, NaN and unseen categories are missing cells and
        are integrated out.

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
            The dialect is unknown; a density of the model, or of a member of the pool, has no SQL; the SELECT would
            have more than about 20,000,000 characters, by an estimate before it is written; the table cannot follow
            FROM; two columns of the result would have the same name.
        ImportError
            sqlglot is absent: ``pip install sqlglot``.

        Notes
        -----
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
        try:
            from posteriori.sql import select_posterior
        except ModuleNotFoundError as error:
            if error.name != "sqlglot":
                raise
            raise ImportError("to_sql needs sqlglot: pip install sqlglot") from error
        labels = self.classes_.tolist()
        models, pool = self._models_in_sql()
        return select_posterior(models, labels, table, dialect, columns, pool)
