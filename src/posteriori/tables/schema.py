"""The columns of a table: inferred once at fit, and kept by the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.invariants import require
from posteriori.tables.columns import CellKind, Column, Kind, smallest_code_type
from posteriori.tables.messages import quote
from posteriori.typing import Array


@dataclass(frozen=True)
class Schema:
    """The columns that a model was trained on.

    Attributes
    ----------
    container : str
        The kind of table that they were read from: ``"numpy"``, ``"pandas"``, ``"polars"``, ``"pyarrow"``, or
        ``"scipy"`` for sparse blocks alone.
    named : bool
        Whether the columns have names, by which prediction matches them.
    dtype : str
        The data type of the array, where the table was one.
    target : str or None
        The name of the column of labels, where it was in the table.
    """

    columns: tuple[Column, ...]
    container: str = "numpy"
    named: bool = False
    dtype: str = ""
    target: str | None = None

    def check(self) -> None:
        """Raise ValueError unless there are columns of distinct names, from a known kind of table."""
        known = ("numpy", "pandas", "polars", "pyarrow", "scipy")
        require(self.container in known, f"there is no kind of table {self.container!r}")
        require(len(self.columns) > 0, "the model has no columns")
        require(len(set(self.names)) == len(self.names), "two columns have one name")
        plain = {column.name for column in self.columns if column.part is None}
        require(not plain & {column.part.of for column in self.columns if column.part}, "two columns have one name")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The name of each column of the table; a column of dates may be several columns of the schema."""
        return tuple(dict.fromkeys(column.source for column in self.columns))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The position in the table of each column, if the table has the columns `given`."""
        place_of = {name: place for place, name in enumerate(self.given)}
        return tuple(place_of[column.source] for column in self.columns)

    @cached_property
    def has_dates(self) -> bool:
        """Whether a column of the table holds dates, times of day or durations."""
        return any(column.part is not None for column in self.columns)

    @cached_property
    def first_of_each(self) -> tuple[int, ...]:
        """The positions of the columns that are not ignored, with only the first part of each column of dates."""
        first = {column.source: j for j, column in reversed(list(enumerate(self.columns))) if not column.is_ignored}
        return tuple(sorted(first.values()))

    def spread(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the position in a table of each column, from those of the columns `given`."""
        return tuple(positions[place] for place in self.places)

    @property
    def n_features(self) -> int:
        """The number of columns of the table; those of the matrix, if the rows were a sparse matrix alone."""
        return self.columns[0].width if self.container == "scipy" and not self.named else len(self.given)

    def of_kind(self, kind: Kind) -> tuple[int, ...]:
        """Return the positions of the columns of a kind."""
        return self._positions[kind]

    @cached_property
    def modelled(self) -> tuple[int, ...]:
        """The positions of the columns that are not ignored."""
        return tuple(j for j, column in enumerate(self.columns) if not column.is_ignored)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """The positions of the columns of numbers and of categories."""
        return tuple(j for j in self.modelled if self.columns[j].kind != "counts")

    @cached_property
    def _positions(self) -> dict[Kind, tuple[int, ...]]:
        kinds: tuple[Kind, ...] = ("continuous", "categorical", "counts", "ignored")
        return {kind: tuple(j for j, column in enumerate(self.columns) if column.kind == kind) for kind in kinds}

    @cached_property
    def coded(self) -> tuple[int, ...]:
        """The positions of the columns that have codes: the categorical and the binned ones."""
        return tuple(j for j, column in enumerate(self.columns) if column.kind == "categorical" or column.is_binned)

    def read_as(self, kind: Kind | CellKind) -> tuple[int, ...]:
        """Return the positions of the columns that a density of a kind can read."""
        if kind == "counts":
            return (*self.of_kind("continuous"), *self.of_kind("counts"))
        return self.coded if kind == "categorical" else self.of_kind("continuous")

    def uncut(self) -> Schema:
        """Return the schema of the same columns, none of them binned."""
        return self._uncut or self

    @cached_property
    def _uncut(self) -> Schema | None:
        """The schema without cut points, with its look-ups; None where there are none, to be no reference to itself."""
        if not any(column.is_binned for column in self.columns):
            return None
        columns = (replace(column, cuts=None) if column.is_binned else column for column in self.columns)
        return replace(self, columns=tuple(columns))

    @cached_property
    def cuts(self) -> tuple[tuple[float, ...] | None, ...]:
        """The cut points of each continuous column; an empty tuple where no column is binned."""
        cuts = tuple(self.columns[j].cuts for j in self.of_kind("continuous"))
        return cuts if any(points is not None for points in cuts) else ()

    @cached_property
    def binning(self) -> Binning | None:
        """The binned columns as arrays; None where no column is binned."""
        binned = [j for j in self.coded if self.columns[j].is_binned]
        if not binned:
            return None
        continuous = self.of_kind("continuous")
        starts, cuts = flat_cuts([self.columns[j].cuts or () for j in binned])
        return Binning(
            np.array([continuous.index(j) for j in binned]),
            starts,
            cuts,
            np.array([self.coded.index(j) for j in binned]),
        )

    @cached_property
    def coded_categories(self) -> Array:
        """The position of each categorical column among the coded columns."""
        return np.array([self.coded.index(j) for j in self.of_kind("categorical")], np.int64)

    @cached_property
    def coded_cardinalities(self) -> tuple[int, ...]:
        """The number of categories or bins of each coded column."""
        return self.cardinalities(self.coded)

    def with_cuts(self, cuts: Mapping[int, Sequence[float]]) -> Schema:
        """Return the schema in which some continuous columns, by their positions, are binned."""
        columns = list(self.columns)
        for j, points in cuts.items():
            columns[j] = replace(columns[j], cuts=tuple(map(float, points)))
        return replace(self, columns=tuple(columns))

    def cardinalities(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return the number of categories or bins of each of the columns."""
        return tuple(self.columns[j].cardinality for j in columns)

    @cached_property
    def code_dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest unsigned integer that holds every code."""
        return smallest_code_type(max(self.coded_cardinalities, default=0))

    def with_values_in(self, seen: Sequence[bool]) -> Schema:
        """Return the schema that marks continuous columns without a value: those that `seen` (d,) does not mark."""
        marked = tuple(
            replace(column, valueless=not has_value)
            if column.kind == "continuous" and column.valueless == has_value
            else column
            for column, has_value in zip(self.columns, seen, strict=True)
        )
        unchanged = all(new is old for new, old in zip(marked, self.columns, strict=True))
        return self if unchanged else replace(self, columns=marked)

    def match(self, names: Sequence[str], named: bool, model: str) -> tuple[int, ...]:
        """Return the position of each column of the schema in a table with these columns.

        Columns are matched by name, in any order, where both sides have names; otherwise by position.

        Raises
        ------
        ValueError
            A column is absent, or the number of columns without names is another one.
        """
        if not (self.named and named):
            if len(names) != len(self.given):
                raise ValueError(
                    f"X has {len(names)} features, but {model} is expecting {len(self.given)} features as input."
                )
            return self.places
        if tuple(names) == self.given:
            return self.places
        position_of = {name: position for position, name in enumerate(names)}
        absent = [name for name in self.given if name not in position_of]
        if absent:
            raise ValueError(f"X lacks {quote(absent)}, which {model} was trained on; add it, empty where unknown")
        return self.spread([position_of[name] for name in self.given])

    def extended(self, other: Schema, mixed: Collection[int] = ()) -> Schema:
        """Return the schema that covers the rows of both tables; mixed columns may hold cells of several kinds."""
        if len(other.columns) == len(self.columns) and other.columns == self.columns:
            return self
        pairs = enumerate(zip(self.columns, other.columns, strict=True))
        return replace(self, columns=tuple(mine.extended(theirs, j in mixed) for j, (mine, theirs) in pairs))


@dataclass(frozen=True)
class Binning:
    """The binned columns of a schema, as the kernel that digitises numbers reads them.

    Attributes
    ----------
    numbers : ndarray of int (B,)
        The position of each binned column among the continuous columns.
    starts : ndarray of int (B + 1,)
        Where the cut points of each begin in `cuts`.
    cuts : ndarray
        The cut points of all of them.
    codes : ndarray of int (B,)
        The position of each among the coded columns.
    """

    numbers: Array
    starts: Array
    cuts: Array
    codes: Array


def flat_cuts(cuts: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    """Return the start of each column's cut points in one flat array, and this array."""
    starts = np.concatenate([[0], np.cumsum([len(points) for points in cuts])]).astype(np.int64)
    return starts, np.array([point for points in cuts for point in points], np.float64)
