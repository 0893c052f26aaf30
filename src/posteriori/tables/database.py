"""Queries as tables: DuckDB answers them, part after part or as sums."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from posteriori.tables.frames import PolarsTable
from posteriori.tables.lazy import StreamedTable, too_many_categories
from posteriori.tables.schema import MAX_CATEGORIES, quote
from posteriori.tables.table import name_twice

_READ_AHEAD = 1 << 17  # rows that the database is asked for at a time
_SURELY_MORE = 1.5  # times the most categories: an estimate of how many there are is that good
_URL = "duckdb://"


@dataclass(frozen=True, eq=False)
class Query(StreamedTable):
    """The rows of a query, which estimators learn from and predict without holding all of them; made by `scan_sql`.

    Attributes
    ----------
    connection : duckdb connection
        In which `source`, what follows FROM, means something.
    types : dict
        The polars data type of each column.
    home : tuple of str
        The database and the schema that names without one are of.
    target : str or None
        The column that holds the labels.
    categorical : frozenset of str
        The columns of numbers that are categories all the same.
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
        """Return what SELECT says of the rows: of all columns, or of what `among` makes of them."""
        rows = self.source if among is None else f"(SELECT {', '.join(among)} FROM {self.source})"
        with self._explained() as cursor:
            return cursor.sql(f"SELECT {', '.join(columns)} FROM {rows} {after}").pl()

    def _frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        with self._explained() as cursor:
            listed = ", ".join(map(quoted, names))
            for batch in cursor.sql(f"SELECT {listed} FROM {self.source}").to_arrow_reader(_READ_AHEAD):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                yield frame

    def changed(self) -> ValueError:
        """Return the error that the rows are not those that were scanned."""
        return ValueError(f"the rows of the query are no longer the {self.n_rows:,} that were counted; scan it anew")

    @property
    def _listed(self) -> str:
        return "the query"

    @contextmanager
    def _explained(self) -> Iterator[Any]:
        """Give a cursor; turn what DuckDB raises into one sentence."""
        import duckdb

        try:
            with self.connection.cursor() as cursor:
                cursor.execute(f"USE {'.'.join(map(quoted, self.home))}")
                yield cursor
        except duckdb.Error as error:
            raise ValueError(f"the query fails: {first_line(error)}") from None

    def _find_distinct(self, names: Sequence[str]) -> dict[str, PolarsTable]:
        about = self.ask([f"approx_count_distinct({quoted(name)})" for name in names]).row(0)
        for name, count in zip(names, about, strict=True):
            if count > _SURELY_MORE * MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
        lists = self.ask([f"list(DISTINCT {quoted(name)})" for name in names])
        found = {}
        for name, series in zip(names, lists.iter_columns(), strict=True):
            cells = series.explode(empty_as_null=False).drop_nulls().cast(self.types[name]).alias(name)
            if len(cells) > MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
            found[name] = PolarsTable(cells.to_frame())
        return found


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    """Return what DuckDB says, without the query that it repeats."""
    return str(error).strip().split("\n")[0]


def scan_sql(
    url: str | Any,
    query: str,
    target: str | None = None,
    categorical: Sequence[str] | None = None,
) -> Query:
    """Open a query of a DuckDB database to learn from, or to predict, without holding its rows.

    What is a sum over groups (counts, means and variances, counts of pairs: naive Bayes, trees of categories) the
    database adds up where the rows are; whatever else an estimator needs is read part by part. The model is that of
    the same rows in memory.

    Parameters
    ----------
    url : str or duckdb connection
        ``"duckdb:///file.db"``, opened for reading; ``"duckdb://"`` for queries of files (``read_parquet('…')``).
    query : str
        A SELECT, or the name of a table. Where rows may come in another order each time (it joins, groups, draws
        rows), or only the connection knows the table (it is temporary, or a registered frame), its result is kept in
        a table in memory.
    target : str, optional
        The column of labels: ``fit(rows)`` then needs no y.
    categorical : list of str, optional
        Columns of numbers that are categories.

    Returns
    -------
    Query
        Printing it shows rows and columns.

    Raises
    ------
    FileNotFoundError
        There is no such database.
    ValueError
        The query fails, the database is none of DuckDB's, a column is not in the result, or two share a name.
    ImportError
        DuckDB is not installed.

    Notes
    -----
    DuckDB reads other databases too: ``query`` may be ``SELECT … FROM sqlite_scan('file.sqlite', 'table')``, or of
    what was attached to a connection that is given in place of a url.

    Examples
    --------
    >>> import duckdb, posteriori as po
    >>> database = duckdb.connect()
    >>> _ = database.execute("CREATE TABLE plants AS SELECT * FROM (VALUES (1.0, 'low'), (2.0, 'low'), (8.0, 'high'), "
    ...                      "(9.0, 'high')) AS t(height, y)")
    >>> rows = po.scan_sql(database, "SELECT * FROM plants", target="y")
    >>> rows.n_rows
    4
    >>> po.NaiveBayes().fit(rows).predict(rows).tolist()
    ['low', 'low', 'high', 'high']
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401  (by which DuckDB hands over rows)
    except ImportError as error:
        raise ImportError("scan_sql takes DuckDB and pyarrow: pip install 'posteriori[sql]'") from error
    connection = _connect(url) if isinstance(url, str) else url
    source = _relation(query)
    try:
        if not _keeps_order(query):
            source = _kept(connection, source)
        empty = connection.sql(f"SELECT * FROM {source} LIMIT 0").pl()
        twice = name_twice(_names_of(connection, query))
        (home,) = connection.execute("SELECT current_database(), current_schema()").fetchall()
        if not _is_shared(connection, source, home):
            source = _kept(connection, source)
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
    """Return a connection that only reads."""
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
    connection = duckdb.connect()  # in memory, where results may be kept
    try:
        connection.execute(f"ATTACH {_literal(path)} AS database_of_query (READ_ONLY)")
    except duckdb.Error as error:
        raise ValueError(f"cannot open {path!r}: {first_line(error)}") from None
    connection.execute("USE database_of_query")
    return connection


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _relation(query: str) -> str:
    """Return what may follow FROM: a query in brackets, or the name of a table as it is."""
    bare = _bare(query)
    return f"({bare}) AS rows_of_query" if len(bare.split()) > 1 else bare


def _names_of(connection: Any, query: str) -> list[str]:
    """Return the column names that a query gives: as a table, DuckDB would number those that occur twice."""
    bare = _bare(query)
    if len(bare.split()) == 1:
        return []
    return [row[0] for row in connection.execute(f"DESCRIBE {bare}").fetchall()]


def _bare(query: str) -> str:
    return query.strip().rstrip(";").rstrip()


def _keeps_order(query: str) -> bool:
    """Return whether the rows of a query come in the same order each time: those of one table do, as they are kept."""
    import sqlglot
    from sqlglot import expressions as sql

    bare = _bare(query)
    if len(bare.split()) == 1:
        return True
    try:
        tree = sqlglot.parse_one(bare, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return False  # DuckDB has the last word on what is a query
    shuffles = (sql.Join, sql.Group, sql.Distinct, sql.SetOperation, sql.Window, sql.TableSample, sql.Rand, sql.AggFunc)
    return isinstance(tree, sql.Select) and not any(tree.find_all(*shuffles, sql.With, sql.Order, sql.Limit, sql.Uuid))


def _is_shared(connection: Any, source: str, home: Sequence[str]) -> bool:
    """Return whether other cursors see the rows, as they do not those of a temporary table or a registered frame."""
    import duckdb

    with connection.cursor() as cursor:
        cursor.execute(f"USE {'.'.join(map(quoted, home))}")
        try:
            cursor.execute(f"SELECT * FROM {source} LIMIT 0")
        except duckdb.CatalogException:
            return False
    return True


def _kept(connection: Any, source: str) -> str:
    """Keep the result of a query in a table in memory, which moves to the disk where memory ends; return its name."""
    attached = {row[0] for row in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    if "posteriori_kept" not in attached:
        connection.execute("ATTACH ':memory:' AS posteriori_kept")
    name = f"posteriori_kept.main.rows_{uuid.uuid4().hex}"
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {source}")
    return name
