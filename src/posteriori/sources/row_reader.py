"""Read the cells of a table as numbers and codes, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posteriori.sources.labelling import Labelling
from posteriori.tables import Bags, Batch, Scan, Schema, Table, quote
from posteriori.tables.blocks import TableWithCounts, no_counts
from posteriori.tables.cells import Times, read_codes, read_numbers
from posteriori.tables.lazy import StreamedTable
from posteriori.tables.messages import UnseenCategoryError
from posteriori.typing import Array


@dataclass(frozen=True)
class CachedRows:
    """The continuous cells as numbers (n, d) and the categorical cells as codes (n, d), read before."""

    numbers: Array
    codes: Array


@dataclass(frozen=True)
class RowReader:
    """The columns of a schema in a table.

    Attributes
    ----------
    table : Table
    schema : Schema
    positions : sequence of int
        The position in the table of each column of the schema.
    kept : CachedRows, optional
        The cells of all rows, where they were read before.
    first : int
        The number of the first row, where the table is a part of a longer one: for messages.
    unseen_is_error : bool
        Whether a category that the schema lacks is an error, because the schema was inferred from the first rows.
    numeric_only : bool
        Whether categorical columns are left unread, as if all their cells were missing.
    texts : mapping of int to Bags
        The counts of the words of columns of text in all rows, where they were counted before, by their positions in
        the schema.
    """

    table: Table
    schema: Schema
    positions: Sequence[int]
    kept: CachedRows | None = None
    first: int = 0
    unseen_is_error: bool = False
    numeric_only: bool = False
    texts: Mapping[int, Bags] = field(default_factory=dict)

    def cells(self, rows: slice) -> tuple[Array, Array, dict[str, int]]:
        """Return the numbers (n, d) and codes (n, d) of some rows, and the number of unseen categories per column.

        Raises
        ------
        UnseenCategoryError
            A category is unseen, and `unseen_is_error`.
        """
        if self.kept is not None:
            return self.kept.numbers[rows], self.kept.codes[rows], {}
        # Not by `slice.indices`: the rows of a streamed part keep their numbers in the whole table.
        n_rows = (self.table.n_rows if rows.stop is None else rows.stop) - (rows.start or 0)
        times: Times = {}
        numbers = self._numbers(rows, n_rows, times)
        categorical = self.schema.of_kind("categorical")
        if not categorical or self.numeric_only:
            return numbers, np.zeros((n_rows, len(categorical)), np.uint8), {}
        columns = [self.schema.columns[j] for j in categorical]
        positions = [self.positions[j] for j in categorical]
        codes, unseen = read_codes(self.table, positions, self.schema, columns, rows, times)
        if unseen and self.unseen_is_error:
            raise UnseenCategoryError(f"{quote(unseen)} holds a category that was taken not to occur")
        return numbers, codes, unseen

    def _numbers(self, rows: slice, n_rows: int, times: Times) -> Array:
        """Return the continuous cells of some rows; columns without a value in training are missing throughout."""
        schema = self.schema
        continuous = schema.of_kind("continuous")
        read = [j for j in continuous if not schema.columns[j].valueless]
        if not read:
            return np.full((n_rows, len(continuous)), np.nan)
        columns = [schema.columns[j] for j in read]
        numbers = read_numbers(self.table, [self.positions[j] for j in read], columns, rows, times)
        if len(read) == len(continuous):
            return numbers
        filled = np.full((n_rows, len(continuous)), np.nan, numbers.dtype)
        filled[:, [continuous.index(j) for j in read]] = numbers
        return filled

    def batch(self, rows: slice, labelling: Labelling) -> Batch:
        """Return some rows as a batch, with their labels, weights and folds."""
        numbers, codes, unseen = self.cells(rows)
        start = self.first + (rows.start or 0)
        assignment = labelling.assignment(rows, len(numbers))
        bags = self._bags(rows, unseen)
        return Batch.of(self.schema, start, numbers, codes, unseen, assignment, labelling.fold(rows), bags)

    def _bags(self, rows: slice, unseen: dict[str, int]) -> tuple[Bags, ...]:
        """Return the columns of counts and text of some rows; add the number of unseen words per column to `unseen`."""
        read = []
        for j in self.schema.of_kind("counts"):
            column = self.schema.columns[j]
            if j in self.texts:
                read.append(self.texts[j].rows(rows))
                continue
            if column.text is not None:
                read.append(column.count_words(self.table.texts(self.positions[j], rows)))
                continue
            if not isinstance(self.table, TableWithCounts):
                raise no_counts(column.name)
            bags, n_unseen = self.table.bags(self.positions[j], column, rows)
            if n_unseen:
                unseen[column.name] = n_unseen
            read.append(bags)
        return tuple(read)

    def parts(self, slices: Sequence[slice], labelling: Labelling) -> Iterator[tuple[RowReader, Labelling, slice]]:
        """Yield each slice of rows with a reader that has these rows in memory.

        A streamed table is read in one pass, part by part, so that a part can be freed after its batch.
        """
        if self.kept is not None or not isinstance(self.table, StreamedTable):
            yield from ((self, labelling, rows) for rows in slices)
            return
        label_column = labelling.column_of(self.table)
        read = self.schema.of_kind("continuous") if self.numeric_only else self.schema.modelled
        # The parts of a date are read from one column.
        columns = list(dict.fromkeys(self.positions[j] for j in read))
        positions = [columns.index(self.positions[j]) if j in read else -1 for j in range(len(self.positions))]
        label_place = len(columns)
        columns += [] if label_column is None else [label_column.position]
        from_first_rows = isinstance(self.table, Scan) and self.table.from_first_rows
        for part, rows in zip(self.table.parts(slices, columns), slices, strict=True):
            if label_column is not None:
                labelling = replace(labelling, labels=replace(label_column, table=part, position=label_place))
            yield replace(self, table=part, positions=positions, unseen_is_error=from_first_rows), labelling, rows
