"""Queries as tables: DuckDB returns their rows part by part, or sums over them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from posteriori.reading.files import OF_FILES
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.lazy_polars import pl
from posteriori.tables.messages import quote
from posteriori.tables.polars import PolarsTable, StreamedTable, too_many_categories
from posteriori.tables.schema import MAX_CATEGORIES
from posteriori.tables.table import name_twice

_READ_AHEAD = 1 << 17  # rows that the database is asked for at a time
_SURELY_MORE = 1.5  # a factor on the largest number of categories, as the error of approx_count_distinct
_URL = "duckdb://"


class OutOfRangeError(ValueError):
    """A number that a query computes is infinite, which is an error in DuckDB before version 2."""


@dataclass(frozen=True, eq=False)
class Query(StreamedTable):
    """The rows of a query, which estimators learn from and predict without holding all rows; made by `scan_sql`.

    Attributes
    ----------
    connection : duckdb connection
        The connection that runs the query.
    source : str
        What follows FROM in SQL.
    types : dict
        The polars data type of each column.
    home : tuple of str
        The database and the schema of names without a qualifier.
    target : str or None
        The column that holds the labels.
    categorical : frozenset of str
        The columns of numbers that hold categories.
    """

    connection: Any
    source: str
    types: dict[str, pl.DataType]
    home: tuple[str, str]
    target: str | None = None
    categorical: frozenset[str] = frozenset()

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.ask(["count(*)"]).item())

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}: {dtype}" for name, dtype in list(self.types.items())[:12])
        more = f" and {len(self.types) - 12} more" if len(self.types) > 12 else ""
        target = "" if self.target is None else f"\n  target: {self.target}"
        return f"Query of {self.n_rows:,} rows × {len(self.types)} columns\n  {listed}{more}{target}"

    def ask(self, columns: Sequence[str], after: str = "", among: Sequence[str] | None = None) -> pl.DataFrame:
        """Run SELECT `columns` FROM the rows, or from the expressions `among` of them; `after` follows FROM."""
        rows = self.source if among is None else f"(SELECT {', '.join(among)} FROM {self.source})"
        with self._explained() as cursor:
            result: pl.DataFrame = cursor.sql(f"SELECT {', '.join(columns)} FROM {rows} {after}").pl()
        return result

    def frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some columns of all rows, in their order."""
        with self._explained() as cursor:
            listed = ", ".join(map(quoted, names))
            for batch in _batches(cursor.sql(f"SELECT {listed} FROM {self.source}")):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                yield frame

    def changed(self) -> ValueError:
        """Return the error for rows that have changed since they were scanned."""
        return ValueError(f"the rows of the query are no longer the {self.n_rows:,} that were counted; scan it again")

    @property
    def _listed(self) -> str:
        return "the query"

    @contextmanager
    def _explained(self) -> Iterator[Any]:
        """Give a cursor; replace an error of DuckDB by one sentence."""
        import duckdb

        try:
            with self.connection.cursor() as cursor:
                cursor.execute(f"USE {'.'.join(map(quoted, self.home))}")
                yield cursor
        except duckdb.OutOfRangeException as error:
            raise OutOfRangeError(f"the query fails: {first_line(error)}") from None
        except duckdb.Error as error:
            raise ValueError(f"the query fails: {first_line(error)}") from None

    def find_distinct(self, names: Sequence[str]) -> dict[str, PolarsTable]:
        """Return the distinct cells of some columns from one pass, per column as a table in memory of that column."""
        estimates = self.ask([f"approx_count_distinct({quoted(name)})" for name in names]).row(0)
        for name, count in zip(names, estimates, strict=True):
            if count > _SURELY_MORE * MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
        lists = self.ask([f"list(DISTINCT {quoted(name)})" for name in names])
        distinct = {}
        for name, series in zip(names, lists.iter_columns(), strict=True):
            cells = series.explode(empty_as_null=False).drop_nulls().cast(self.types[name]).alias(name)
            if len(cells) > MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
            distinct[name] = PolarsTable(cells.to_frame())
        return distinct


def quoted(name: str) -> str:
    """Return the name of a column as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _batches(relation: Any) -> Iterator[Any]:
    """Yield the rows of a relation as Arrow batches."""
    # to_arrow_reader is the name in newer versions, which warn of the older name.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    yield from read(_READ_AHEAD)


def first_line(error: Exception) -> str:
    """Return the message of a DuckDB error without the query that it repeats."""
    return str(error).strip().split("\n")[0]


@partial(explain_unknown_keywords, groups={}, wanted=OF_FILES)
def scan_sql(
    url: str | Any,
    query: str,
    target: str | None = None,
    categorical: Sequence[str] | None = None,
) -> Query:
    """Open a query of a DuckDB database to learn from or to predict, without holding its rows in memory.

    The database adds up what is a sum over groups: counts, means, variances and counts of pairs, which is all that
    naive Bayes and trees of categories need. Rows for other statistics are read part by part. The model is the one
    that `fit` learns from the same rows in memory.

    Parameters
    ----------
    url : str or duckdb connection
        ``"duckdb:///file.db"``, opened read-only; ``"duckdb://"`` for queries of files (``read_parquet('…')``).
    query : str
        A SELECT, or the name of a table. Its result is kept in a table in memory if the order of the rows may change
        from run to run (it joins, groups or samples rows), or if only the connection sees the table (a temporary table
        or a registered frame).
    target : str, optional
        The column of labels: ``fit(rows)`` then needs no y.
    categorical : list of str, optional
        Columns of numbers that hold categories.

    Returns
    -------
    Query
        Printing it shows rows and columns.

    Raises
    ------
    FileNotFoundError
        The database file does not exist.
    ValueError
        The query fails, the url is not one of DuckDB, a column is not in the result, or two columns share a name.
    ImportError
        DuckDB is not installed.

    Notes
    -----
    DuckDB reads other databases too: ``query`` may be ``SELECT … FROM sqlite_scan('file.sqlite', 'table')``, or read a
    database that was attached to a connection given in place of a url.

    Examples
    --------
    >>> import duckdb, posteriori as po
    >>> database = duckdb.connect()
    >>> _ = database.execute("CREATE TABLE plants AS SELECT * FROM (VALUES (1.0, 'low'), (2.0, 'low'), (8.0, 'high'), "
    ...                      "(9.0, 'high')) AS t(height, y)")
    >>> rows = po.reading.scan_sql(database, "SELECT * FROM plants", target="y")
    >>> rows.n_rows
    4
    >>> po.NaiveBayes().fit(rows).predict(rows).tolist()
    ['low', 'low', 'high', 'high']
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401  (DuckDB returns rows through it)
    except ImportError as error:
        raise ImportError("scan_sql needs DuckDB and pyarrow: pip install duckdb pyarrow") from error
    connection = _connect(url) if isinstance(url, str) else url
    source = _relation(query)
    try:
        if not _has_fixed_order(query):
            source = _stored(connection, source)
        empty = connection.sql(f"SELECT * FROM {source} LIMIT 0").pl()
        twice = name_twice(_names_of(connection, query))
        (home,) = connection.execute("SELECT current_database(), current_schema()").fetchall()
        if not _is_shared(connection, source, home):
            source = _stored(connection, source)
    except duckdb.Error as error:
        raise ValueError(f"the query fails: {first_line(error)}") from None
    if twice is not None:
        raise twice
    types = {name: pl.String() if isinstance(dtype, pl.Enum) else dtype for name, dtype in empty.schema.items()}
    absent = [name for name in (*(categorical or ()), *(() if target is None else (target,))) if name not in types]
    if absent:
        raise ValueError(f"the query lacks {quote(absent)}; it has {quote(types, most=20)}")
    return Query(connection, source, types, tuple(home), target, frozenset(categorical or ()))


def _connect(url: str) -> Any:
    """Return a connection that reads the database of a url and does not write to it."""
    import duckdb

    if not url.startswith(_URL):
        raise ValueError(
            f"{url!r} is no url of a DuckDB database; give 'duckdb:///file.db', or 'duckdb://' and a query that says "
            "where its rows are (DuckDB reads sqlite_scan('…'), postgres_scan('…'), read_parquet('…'))"
        )
    path = url.removeprefix(_URL).removeprefix("/")
    if path in ("", ":memory:"):
        return duckdb.connect()
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no database {path!r}; a path from the root takes four slashes: duckdb:////…")
    connection = duckdb.connect()  # in memory, so that results can be stored beside a read-only database
    try:
        connection.execute(f"ATTACH {_literal(path)} AS database_of_query (READ_ONLY)")
    except duckdb.Error as error:
        raise ValueError(f"cannot open {path!r}: {first_line(error)}") from None
    connection.execute("USE database_of_query")
    return connection


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _relation(query: str) -> str:
    """Return text that may follow FROM: a query in parentheses, or the name of a table unchanged."""
    bare = _bare(query)
    return f"({bare}) AS rows_of_query" if len(bare.split()) > 1 else bare


def _names_of(connection: Any, query: str) -> list[str]:
    """Return the column names of a query: of a stored result, DuckDB would number duplicates."""
    bare = _bare(query)
    if len(bare.split()) == 1:
        return []
    return [row[0] for row in connection.execute(f"DESCRIBE {bare}").fetchall()]


def _bare(query: str) -> str:
    return query.strip().rstrip(";").rstrip()


def _has_fixed_order(query: str) -> bool:
    """Return whether the rows of a query come in the same order each time, as those of one stored table do."""
    import sqlglot
    from sqlglot import expressions as sql

    bare = _bare(query)
    if len(bare.split()) == 1:
        return True
    try:
        tree = sqlglot.parse_one(bare, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return False  # DuckDB decides whether it is a query
    shuffles = (sql.Join, sql.Group, sql.Distinct, sql.SetOperation, sql.Window, sql.TableSample, sql.Rand, sql.AggFunc)
    return isinstance(tree, sql.Select) and not any(tree.find_all(*shuffles, sql.With, sql.Order, sql.Limit, sql.Uuid))


def _is_shared(connection: Any, source: str, home: Sequence[str]) -> bool:
    """Return whether other cursors see the rows: they do not see a temporary table or a registered frame."""
    import duckdb

    with connection.cursor() as cursor:
        cursor.execute(f"USE {'.'.join(map(quoted, home))}")
        try:
            cursor.execute(f"SELECT * FROM {source} LIMIT 0")
        except duckdb.CatalogException:
            return False
    return True


def _stored(connection: Any, source: str) -> str:
    """Store the result of a query in a table in memory, which DuckDB spills to disk if need be; return its name."""
    attached = {row[0] for row in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    if "posteriori_kept" not in attached:
        connection.execute("ATTACH ':memory:' AS posteriori_kept")
    name = f"posteriori_kept.main.rows_{uuid.uuid4().hex}"
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {source}")
    return name
