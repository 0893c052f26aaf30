"""Cases to learn a network from: a table as codes of the states of every variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.networks.graph.naming import States
from posteriori.reading import check_weights, read_table
from posteriori.sources import LabelledSource, source_of
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Batch, Codes, Column, Schema, Table
from posteriori.tables.blocks import BlockTable, needs_dense
from posteriori.tables.polars import LazyTable
from posteriori.tables.schema import categorical_column

_ALL = Column("", "categorical", ("row",))  # one class, so that batches have the weights of their rows
MOST_INTEGER_STATES = 32  # a column of more different integers is taken for a measurement


_LARGEST = 1e75  # products of two variances of such numbers stay finite


@dataclass(frozen=True)
class Cases:
    """The rows of a table as codes of the states of a network's variables.

    Attributes
    ----------
    source : LabelledSource
        The rows of the variables that have a column.
    columns : tuple of Column (V,)
        The states of each variable; continuous variables have none.
    present : tuple of int
        The indices of the variables that have a column, in the order of the source; all cells of other variables are
        missing.
    """

    source: LabelledSource
    columns: tuple[Column, ...]
    present: tuple[int, ...]

    def reduce(self, sufficient_statistics: Any) -> Any:
        """Return the statistics of all rows.

        Parameters
        ----------
        sufficient_statistics : factory
            ``of(codes, numbers, weight)`` returns the statistics of a tile.

        Raises
        ------
        ValueError
            A cell is no state of its variable.
        """
        kinds = tuple(column.kind for column in self.columns)
        cardinalities = tuple(column.cardinality for column in self.columns if column.kind != "continuous")
        try:
            return self.source.reduce(_Accumulate(kinds, cardinalities, self.present, sufficient_statistics))
        except UnknownStateError as error:
            raise self._located(error.column) from None

    def _located(self, name: str) -> ValueError:
        """Return the error about a cell that is no state, with the cell."""
        seen = self.source.table.column(self.source.positions[self.source.schema.names.index(name)], categorical=True)
        return _unknown_state(name, seen.categories, next(column for column in self.columns if column.name == name))


class UnknownStateError(ValueError):
    """A cell is no state of its variable; it may be raised where the rows are, on a worker."""

    def __init__(self, column: str) -> None:
        super().__init__(column)  # the only argument, so that the error can be sent back by pickle
        self.column = column


@dataclass(frozen=True)
class _Accumulate:
    """Statistics of a batch of rows. It is sent to workers, so that it holds no table.

    `kinds` are those of all V variables, `cardinalities` those of the discrete ones, and `present` is as in `Cases`.
    `sufficient_statistics` is a StatisticsFactory.
    """

    kinds: tuple[str, ...]
    cardinalities: tuple[int, ...]
    present: tuple[int, ...]
    sufficient_statistics: Any

    def __call__(self, batch: Batch) -> Any:
        if batch.unseen:
            raise UnknownStateError(next(iter(batch.unseen)))
        n = len(batch)
        weight = np.ones(n) if batch.assignment is None else batch.assignment.weight
        codes = Codes(self._placed(batch.codes.values, "categorical", 0), self.cardinalities)  # code 0: a missing cell
        numbers = np.empty((n, 0))
        if "continuous" in self.kinds:
            numbers = self._placed(np.asarray(batch.numbers.values, np.float64), "continuous", np.nan)
            values = batch.numbers.values.astype(np.float64, copy=False)
            too_large = np.abs(values) >= _LARGEST  # False for NaN, a missing cell
            if too_large.any():
                row, position = np.argwhere(too_large)[0]
                name = batch.schema.names[batch.schema.of_kind("continuous")[position]]
                number = float(batch.numbers.values[row, position])
                raise ValueError(f"column {name!r} holds {number:g}, whose square overflows in sums; rescale it")
        return self.sufficient_statistics.of(codes, numbers, weight)

    def _placed(self, cells: Array, kind: str, absent: float) -> Array:
        """Return the cells of all variables of a kind, where those without a column are missing."""
        of_kind = [v for v, known in enumerate(self.kinds) if known == kind]
        known = [k for k, v in enumerate(of_kind) if v in self.present]
        if len(known) == len(of_kind):
            return cells
        placed = np.full((len(cells), len(of_kind)), absent, cells.dtype)
        placed[:, known] = cells
        return placed


def open_cases(
    table: Any,
    names: Sequence[str] | None,
    states: Mapping[str, States],
    sample_weight: Any = None,
    n_jobs: int | None = None,
    continuous: Collection[str] | None = None,
) -> Cases:
    """Open a table to learn from.

    Parameters
    ----------
    table : table (n, d)
        Any data frame, with its columns in any order; or an array with one column per variable.
    names : sequence of str, optional
        The variables; by default the columns.
    states : mapping from str to tuple of states
        The declared states. The states of other variables are the categories of their columns.
    sample_weight : array-like (n,), optional
    n_jobs : int, optional
    continuous : collection of str, optional
        Variables that are known to be continuous; other columns of measurements are too. None: they are an error.

    Raises
    ------
    ValueError
        A column is no variable, holds measurements where `continuous` is None, or holds a cell that is no state of its
        variable; or a variable has no column and no declared states.
    """
    opened = read_table(table)
    if isinstance(opened, BlockTable):
        raise needs_dense(opened.blocks[0].column, opened.n_rows, "a Bayesian network")
    titles = opened.names if opened.named or names is None else tuple(names)
    variables = tuple(titles if names is None else names)
    if len(titles) != len(opened.names):
        raise ValueError(
            f"the table has {len(opened.names)} columns without names, but the network has {len(titles)} variables; "
            "name the columns, or give one for each variable"
        )
    for title in [*titles, *states]:
        if title not in variables:
            raise ValueError(f"column {title!r} is no variable of the network; {closest(title, variables)}, or drop it")
    position = {title: j for j, title in enumerate(titles)}
    if isinstance(opened, LazyTable):  # in one pass, not one for each column
        opened.find_categories([position[name] for name in variables if name in position])
    columns = []
    for name in variables:
        if name in position:
            columns.append(_read_column(opened, position[name], name, states.get(name), continuous))
        elif name in (continuous or ()):
            columns.append(Column(name, "continuous"))
        elif name in states:
            columns.append(Column(name, "categorical", states[name], declared=True))
        else:
            raise ValueError(
                f"the table has no column {name!r}; add it or, for a hidden variable, declare its states: "
                f"BayesianNetwork(…, states={{{name!r}: […]}})"
            )
    present = tuple(v for v, name in enumerate(variables) if name in position)
    schema = Schema(tuple(columns[v] for v in present), opened.container, opened.named)
    positions = [position[variables[v]] for v in present]
    weight = None if sample_weight is None else check_weights(sample_weight, opened.n_rows)
    source = source_of(opened, schema, positions, classes=_ALL, weight=weight, n_jobs=n_jobs)
    return Cases(source, tuple(columns), present)


def _read_column(table: Table, j: int, name: str, states: States | None, continuous: Collection[str] | None) -> Column:
    if states is None:
        if continuous is not None and name in continuous:
            return _numeric(table, j, name)
        try:
            return _inferred(table, j, name)
        except MeasurementsError:
            if continuous is None:
                raise
            return _numeric(table, j, name)
    column = Column(name, "categorical", states, declared=True)
    seen = table.column(j, categorical=True)
    unknown = [cell for cell in seen.categories if cell not in column.lookup]
    # A data type may declare categories that no row has; `Cases.reduce` then checks the rows.
    if unknown and (not seen.declared or len(unknown) == len(seen.categories)):
        raise _unknown_state(name, unknown, column)
    return column


def _unknown_state(name: str, cells: Sequence[Any], column: Column) -> ValueError:
    cell = next((cell for cell in cells if cell not in column.lookup), None)
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return ValueError(f"column {name!r} holds {cell!r}, which is no state of {name!r}; {closest(cell, column.labels)}")


def _inferred(table: Table, j: int, name: str) -> Column:
    """Return a column with its categories; a few different integers count as categories too."""
    column = table.column(j, categorical=False)
    if column.kind == "continuous":
        try:
            column = table.column(j, categorical=True)
        except ValueError:  # more distinct numbers than codes
            raise _measurements(name, "too many numbers") from None
        cells = [cell for cell in column.categories if not isinstance(cell, str)]
        broken = next((cell for cell in cells if not isinstance(cell, int) and not float(cell).is_integer()), None)
        if broken is not None:
            raise _measurements(name, f"numbers such as {broken:g}")
        if len(cells) > MOST_INTEGER_STATES:
            raise _measurements(name, f"{len(cells):,} different integers")
        column = categorical_column(name, [int(cell) for cell in cells], column.dtype)
    if not column.categories:
        raise ValueError(
            f"no cell of column {name!r} has a value, so that its states are unknown; declare them: "
            f"states={{{name!r}: […]}}"
        )
    return column if column.name == name else replace(column, name=name)


def _numeric(table: Table, j: int, name: str) -> Column:
    column = table.column(j, categorical=False)
    if column.kind != "continuous":
        raise ValueError(f"column {name!r} holds no numbers, but the variable is continuous; convert the column")
    return Column(name, "continuous", dtype=column.dtype)


class MeasurementsError(ValueError):
    """A column holds measurements where states are needed."""


def _measurements(name: str, content: str) -> ValueError:
    return MeasurementsError(
        f"column {name!r} holds {content}, but a variable of a network has states; cut it into a few intervals, or "
        f"declare its states: states={{{name!r}: […]}}"
    )
