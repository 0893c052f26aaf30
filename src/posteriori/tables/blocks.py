"""Blocks of counts: sparse matrices, alone or beside the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.polars import LazyTable
from posteriori.tables.schema import Column, Schema
from posteriori.tables.table import NO_ROWS, Table, UnseenRows
from posteriori.tables.times import TimeType

_ALONE = "counts"  # the name of a sparse matrix that is not given with one


@runtime_checkable
class TableWithCounts(Table, Protocol):
    """A table that has columns of counts (`Column.kind` "counts")."""

    @property
    def n_stored(self) -> int:
        """The number of stored cells of all columns of counts."""

    def bags(self, j: int, column: Column, rows: slice) -> tuple[Bags, Array]:
        """Return column j of some rows in the vocabulary of a column of the schema, and the row of each unseen word."""


class Blocks:
    """Columns of a table beside sparse blocks of counts, as one table.

    Parameters
    ----------
    table : array-like or data frame (n, d), optional
        The other columns, in memory.
    counts : mapping of str to sparse matrix (n, V)
        The blocks by name; a name is that of a column of the model.
    words : mapping of str to sequence of str (V,), optional
        What the columns of a block count. By these names, rows of a later call are matched to the training rows, and
        explanations call each word. Without them, columns are matched by position.

    Raises
    ------
    TypeError
        A block is not a sparse matrix, or the table is not in memory.
    ValueError
        Numbers of rows differ; a block has the name of a column; there are not as many words as columns, or a word
        occurs twice.

    Examples
    --------
    >>> import polars as pl
    >>> import posteriori as po
    >>> from scipy.sparse import csr_array
    >>> words = csr_array([[2, 0, 1], [0, 3, 0], [1, 0, 1], [0, 1, 0]])
    >>> table = pl.DataFrame({"age": [31, 64, 25, 70]})
    >>> rows = po.tables.Blocks(table, {"words": words}, {"words": ["win", "meet", "cash"]})
    >>> model = po.NaiveBayes().fit(rows, ["spam", "ham", "spam", "ham"])
    >>> model.predict(rows)
    array(['spam', 'ham', 'spam', 'ham'], dtype='<U4')
    """

    def __init__(
        self,
        table: Any = None,
        counts: Mapping[str, Any] | None = None,
        words: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.table = table
        self.counts = dict(counts or {})
        self.words = {name: tuple(map(str, listed)) for name, listed in (words or {}).items()}
        if not self.counts:
            raise ValueError("Blocks holds no block; give counts={name: sparse matrix}, or pass the table itself")
        unknown = [name for name in self.words if name not in self.counts]
        if unknown:
            raise ValueError(f"words names {unknown[0]!r}, which is no block; the blocks are {list(self.counts)}")

    def __len__(self) -> int:
        return int(next(iter(self.counts.values())).shape[0])

    def __getitem__(self, rows: Any) -> Blocks:
        """Return some of the rows, by a mask, their positions or a slice."""
        rows = np.arange(len(self))[rows]
        counts = {name: block.tocsr()[rows] for name, block in self.counts.items()}
        return Blocks(_rows_of(self.table, rows), counts, self.words)


def _rows_of(table: Any, rows: Any) -> Any:
    if table is None:
        return None
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


@dataclass(frozen=True)
class CountBlock:
    """A sparse matrix of counts with a name, and the words that its columns count; no words if they have no names."""

    name: str
    matrix: Any
    words: tuple[str, ...] = ()

    @property
    def column(self) -> Column:
        """The column of a schema that the block is."""
        return Column(self.name, "counts", dtype=self.matrix.dtype.str, width=self.matrix.shape[1], words=self.words)

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each word."""
        return {word: position for position, word in enumerate(self.words)}


@dataclass(frozen=True)
class BlockTable:
    """Blocks of counts, after the columns of a table if there is one."""

    table: Table | None
    blocks: tuple[CountBlock, ...]
    named: bool  # whether the blocks, and the columns of the table, have names of their own

    @property
    def container(self) -> str:
        """The kind of the table, or ``"scipy"`` for blocks alone."""
        return "scipy" if self.table is None else self.table.container

    @property
    def dtype(self) -> str:
        """The data type of the table."""
        return "" if self.table is None else self.table.dtype

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.blocks[0].matrix.shape[0])

    @property
    def n_stored(self) -> int:
        """The number of stored cells of all blocks."""
        return sum(int(block.matrix.nnz) for block in self.blocks)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, then those of the blocks."""
        return (*(() if self.table is None else self.table.names), *(block.name for block in self.blocks))

    @property
    def _n_columns(self) -> int:
        return len(self.names) - len(self.blocks)

    @property
    def _columns(self) -> Table:
        assert self.table is not None  # the caller asks for one of its columns
        return self.table

    def _block(self, j: int) -> CountBlock | None:
        return self.blocks[j - self._n_columns] if j >= self._n_columns else None

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j; a block is a column of counts."""
        block = self._block(j)
        if block is None:
            return self._columns.column(j, categorical)
        if categorical:
            raise ValueError(f"column {block.name!r} is a sparse block of counts, and cannot be categorical")
        return block.column

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        if self._block(j) is not None:
            raise ValueError(f"column {self.names[j]!r} is a sparse block of counts, and holds no labels")
        return self._columns.distinct(j)

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        block = self._block(j)
        return self._columns.data_type(j) if block is None else block.column.dtype

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""
        return None if self._block(j) else self._columns.whole_numbers(j, n_rows)

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""
        return None if self._block(j) else self._columns.hashes(j, n_rows)

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""
        return self._columns.time_type(j) if self._block(j) is None else None

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""
        if self._block(j) is not None:
            raise ValueError(f"column {self.names[j]!r} was {wanted.title} in training and is a sparse block now")
        return self._columns.times(j, wanted, rows)

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""
        if self._block(j) is not None:
            raise ValueError(f"column {self.names[j]!r} was text in training and is a sparse block now")
        return self._columns.texts(j, rows)

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d), NaN where missing."""
        self._refuse_blocks(columns, schema_columns)
        return self._columns.numbers(columns, schema_columns, rows)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""
        self._refuse_blocks(columns, schema_columns)
        return self._columns.codes(columns, schema, schema_columns, rows)

    def _refuse_blocks(self, columns: Sequence[int], schema_columns: Sequence[Column]) -> None:
        for j, column in zip(columns, schema_columns, strict=True):
            if self._block(j) is not None:
                raise ValueError(
                    f"column {column.name!r} was {column.kind} in training and is a sparse block of counts now; "
                    "give it as it was"
                )

    def bags(self, j: int, column: Column, rows: slice) -> tuple[Bags, Array]:
        """Return block j of some rows in the vocabulary of a column of the schema, and the row of each unseen word."""
        block = self._block(j)
        if block is None:
            raise no_counts(column.name)
        try:
            bags = Bags.of_matrix(block.matrix, rows)
        except ValueError as error:
            what = "X" if block.name == _ALONE else f"block {block.name!r}"
            raise ValueError(f"{what} is not a valid sparse matrix: {error}") from None
        if block.words == column.words and bags.n_words == column.width:
            return bags, NO_ROWS
        if not (block.words and column.words):
            raise ValueError(
                f"column {column.name!r} is a block of {bags.n_words:,} words, but the model is expecting "
                f"{column.width:,}; give all of them, or name the words in both"
            )
        places = np.array([column.word_places.get(word, -1) for word in block.words], np.int32)
        return in_vocabulary(bags, places, column.width)


def in_vocabulary(bags: Bags, places: Array, width: int) -> tuple[Bags, Array]:
    """Return bags in another vocabulary of `width` words, and the row of each cell whose word it lacks.

    places (V,) holds the position of each word in the other vocabulary, −1 for a word that it lacks.
    """
    words = places[bags.words]
    known = words >= 0
    kept = np.concatenate([[0], np.cumsum(known)])
    cells = Bags(kept[bags.starts], words[known], bags.counts[known], width)
    lost = np.flatnonzero(~known & (bags.counts != 0))
    return cells, np.searchsorted(bags.starts, lost, side="right") - 1


def needs_dense(column: Column, n_rows: int | None, who: str) -> TypeError:
    """Return the error for a sparse block that `who` reads as dense columns only; it states the memory of these."""
    what, source = ("X", "X") if column.name == _ALONE else (f"column {column.name!r}", "the block")
    size = f"{8 * (n_rows or 1) * column.width:,} bytes" + (" per row" if n_rows is None else "")
    return TypeError(
        f"{what} is sparse, and {who} reads dense columns; {source}.toarray() would take {size} as float64. "
        "NaiveBayes reads sparse counts, by the distributions multinomial, scaled, complement, compound, presence and "
        "poisson_rate; "
        "GenerativeClassifier pools them"
    )


def check_blocks(table: Table, schema: Schema, model: str) -> None:
    """Raise an error if a table and a schema differ in whether they have sparse blocks, or in the width of one alone.

    Raises TypeError if the table has sparse blocks, and the model was fitted on dense columns, and ValueError if
    the model was fitted on a sparse matrix, and the table is not one of as many columns.
    """
    blocks = table.blocks if isinstance(table, BlockTable) else ()
    if blocks and not schema.of_kind("counts"):
        raise needs_dense(blocks[0].column, table.n_rows, f"this {model} was fitted on dense columns and")
    if schema.container != "scipy" or schema.named:
        return
    if not blocks:
        raise no_counts(schema.names[0])
    width = schema.columns[0].width
    if not table.named and blocks[0].matrix.shape[1] != width:
        raise ValueError(
            f"X has {blocks[0].matrix.shape[1]} features, but {model} is expecting {width} features as input."
        )


def no_counts(name: str) -> ValueError:
    """Return the error for a column of counts that a table does not have as a sparse block."""
    return ValueError(
        f"column {name!r} was a sparse block of counts in training; give a scipy.sparse matrix (csr_array(X)), or "
        "posteriori.tables.Blocks if there are other columns"
    )


def open_sparse(X: Any) -> BlockTable:
    """Open a sparse matrix as a table with a single column of counts."""
    return BlockTable(None, (CountBlock(_ALONE, _canonical(X, "X")),), named=False)


def open_blocks(X: Blocks, table: Table | None) -> BlockTable:
    """Open blocks beside the table that holds the other columns, with the errors of `Blocks`."""
    if isinstance(table, LazyTable):
        raise TypeError("a block of counts stands beside a table in memory; collect the table first")
    names = () if table is None else table.names
    blocks = []
    for name, matrix in X.counts.items():
        block = CountBlock(name, _canonical(matrix, f"block {name!r}"), X.words.get(name, ()))
        if name in names:
            raise ValueError(f"block {name!r} has the name of a column of the table; rename one of them")
        if block.words and len(block.words) != block.matrix.shape[1]:
            raise ValueError(f"block {name!r} has {block.matrix.shape[1]:,} columns and {len(block.words):,} words")
        if len(block.places) != len(block.words):
            twice = next(word for position, word in enumerate(block.words) if block.places[word] != position)
            raise ValueError(f"block {name!r} names the word {twice!r} twice; rename or add up its columns")
        blocks.append(block)
    rows = {block.name: block.matrix.shape[0] for block in blocks} | ({} if table is None else {"table": table.n_rows})
    if len(set(rows.values())) > 1:
        raise ValueError(f"the parts of X differ in their numbers of rows: {rows}")
    return BlockTable(table, tuple(blocks), named=table is None or table.named)


def _canonical(matrix: Any, name: str) -> Any:
    """Return a sparse matrix as CSR with sorted words, each once per row; a copy only if it is not."""
    if not type(matrix).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{name} is a {type(matrix).__name__}; give a scipy.sparse matrix of counts")
    if matrix.ndim != 2:
        raise ValueError(f"{name} has {matrix.ndim} dimensions; give rows and columns")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {matrix.dtype}; give counts as real numbers")
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    return rows
