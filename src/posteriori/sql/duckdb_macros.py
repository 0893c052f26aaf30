"""A fitted model as macros of a DuckDB database, which keeps them in its file."""

from __future__ import annotations

from typing import Any

from posteriori.reading.matching import without_unused

_CELLS, _ROW, _TABLE, _RESULT = (f"posteriori_{name}" for name in ("cells", "row", "table", "result"))


def to_duckdb(connection: Any, model: Any, name: str = "posterior") -> None:
    """Register a model as macros of a DuckDB database, which score rows without Python from then on.

    ``SELECT posterior(t) FROM t`` gives a struct for each row of a table, a view or a query named t, wherever an
    expression may stand. ``SELECT * FROM posterior('t')`` gives the columns of the table named t and those of the
    struct. Both find the columns of the model by name, in any order; other columns do not matter.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The macros are stored in its database: a file still has them when it is opened again. Macros of this name are
        replaced.
    model : fitted classifier or AdditiveRegressor
        One with a SELECT, as of its method `to_sql`.
    name : str, default "posterior"
        The name of both macros.

    Raises
    ------
    TypeError
        The connection is not one of DuckDB, or the model has no SELECT.
    ValueError
        As of `to_sql`; or the names of two columns differ in case alone, which DuckDB does not tell apart.
    ImportError
        sqlglot is absent: ``pip install sqlglot``.

    Notes
    -----
    The columns of the result are those of `to_sql`: of classes ``prediction``, ``p_CLASS`` and ``log_p_CLASS``; of
    numbers ``prediction``, ``prediction_low`` and ``prediction_high``. A table without a column of the model is an
    error of DuckDB; state it as unknown: ``SELECT posterior(t) FROM (SELECT *, NULL AS sex FROM rows) AS t``.

    The first form is a subquery of each row. It takes two to three times as long as the second for naive Bayes,
    discriminants, trees and pools of them. For k-dependence, averaged one-dependence and forests, whose tables it joins
    with each row, it takes 8 to 25 times as long on 100,000 rows, and in DuckDB 1.1 more memory than there may be: take
    the second form for more than some thousand rows.

    Examples
    --------
    >>> import duckdb, posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> model = po.NaiveBayes().fit(load_penguins(), "species")
    >>> database = duckdb.connect()
    >>> po.to_duckdb(database, model)
    >>> _ = database.register("birds", load_penguins().to_arrow())
    >>> database.execute("SELECT posterior(birds).prediction FROM birds LIMIT 1").fetchone()
    ('Adelie',)
    >>> database.execute("SELECT count(*) FROM posterior('birds') WHERE p_Gentoo > 0.9").fetchone()
    (123,)
    """
    if not type(connection).__module__.lstrip("_").startswith("duckdb"):
        raise TypeError(f"connection is a {type(connection).__name__}; give one of duckdb.connect()")
    if not hasattr(model, "to_sql"):
        raise TypeError(f"a {type(model).__name__} has no SELECT; score the rows by posteriori.to_polars")
    cells = ", ".join(
        f"struct_extract({_CELLS}, {_text(one)}) AS {_name(one)}"
        for one in without_unused(model.schema_.given, model.schema_)
    )
    of_row = model.to_sql(f"(SELECT {cells} FROM (SELECT {_ROW} AS {_CELLS}))", columns=[])
    rows = f"(SELECT {_CELLS}, {_CELLS}.* FROM (SELECT {_ROW} AS {_CELLS} FROM (FROM query_table({_TABLE})) AS {_ROW}))"
    of_table = model.to_sql(rows, columns=[_CELLS])
    create = f"CREATE OR REPLACE MACRO {_name(name)}"
    connection.execute(f"{create}({_ROW}) AS (SELECT {_RESULT} FROM ({of_row}) AS {_RESULT})")
    connection.execute(f"{create}({_TABLE}) AS TABLE SELECT {_CELLS}.*, * EXCLUDE ({_CELLS}) FROM ({of_table})")


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
