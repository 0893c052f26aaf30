"""The result of a fit of a joint model, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from posteriori.fitting.fitted import Fitted, FittedValue, kept_of_rows
from posteriori.joint.counting import CountedRows
from posteriori.joint.grids import NumberGrid
from posteriori.joint.law import Law
from posteriori.model.beliefs import Tables
from posteriori.scoring.rows import RowsToPredict
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.statistics.forests import CodedRows
from posteriori.support.checks import check_equal, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema

FLOOR = 1e-6  # the weight of equal probabilities: learned tables may hold zeros, and new rows cells that contradict


@dataclass(frozen=True)
class CellCounter:
    """Counts rows by the cells of their columns: categories, and cells of numbers, which are finer than bins."""

    schema: Schema
    positions: tuple[int, ...]  # of the columns in the schema
    grids: Mapping[int, NumberGrid]  # by position

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each column."""
        return tuple(
            len(self.grids[j].cells) if j in self.grids else self.schema.columns[j].cardinality for j in self.positions
        )

    def codes(self, batch: Batch) -> Array:
        """Return the cells of rows, (n, d), from 1; 0 where missing."""
        schema, found = self.schema, np.empty((len(batch), len(self.positions)), np.int64)
        for place, j in enumerate(self.positions):
            if j in self.grids:
                numbers = np.asarray(batch.numbers.values[:, schema.of_kind("continuous").index(j)], np.float64)
                found[:, place] = self.grids[j].cells.nearest(numbers) + 1
            else:
                found[:, place] = batch.codes.values[:, schema.coded.index(j)]
        return found

    def of_codes(self, codes: Array, weight: Array) -> CodedRows:
        """Return the counts of rows in cells."""
        assignment = Assignment(np.zeros(len(codes), np.int64), weight, 1)
        return CodedRows.of(Codes(np.ascontiguousarray(codes.astype(np.uint32)), self.sizes), assignment)

    def __call__(self, batch: Batch) -> CodedRows:
        """Return the counts of the rows of a batch."""
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        return self.of_codes(self.codes(batch), np.asarray(weight, np.float64))

    def of_source(self, source: LabelledSource) -> CodedRows:
        """Return the counts of all rows, or of a sample if they are very many."""
        return source.reduce(self)


@dataclass(frozen=True)
class FittedJoint(FittedValue):
    """The columns, the rows in cells, which are all that is learned from, the members, and their weights."""

    columns: Fitted  # each by itself: the schema, the ranges and the sums
    grids: Mapping[str, NumberGrid]  # of each column of numbers
    members: Mapping[str, Tables]
    weights: Mapping[str, float]
    counted: CodedRows | None = None  # None if the model was saved without rows
    pools: Mapping[str, FittedValue] = field(default_factory=dict)  # by target: fitted for one column
    table: Any = None  # the rows, for pools that are asked for later; not in files

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.columns.schema

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return self.columns.ranges

    @cached_property
    def bounds(self) -> dict[int, tuple[float, float]]:
        """The least and the greatest number of each column in the training rows, as far as they are known."""
        ranges = self.ranges
        if ranges is None:
            return {}
        found = {j: (float(ranges.lowest[j]), float(ranges.highest[j])) for j in self._grids}
        return {j: ends for j, ends in found.items() if np.isfinite(ends).all()}

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The columns of the schema that have values, ascending."""
        schema = self.schema
        return tuple(j for j in schema.coded if not schema.columns[j].has_no_kind and schema.columns[j].cardinality)

    @cached_property
    def ordered(self) -> Array:
        """Which of these hold numbers, (d,)."""
        return np.array([self.schema.names[j] in self.grids for j in self.positions], np.bool_)

    @property
    def rank(self) -> Array:
        """The place of each of these in the order of their names, (d,), by which the last ties are broken."""
        names = [self.schema.names[j] for j in self.positions]
        return np.argsort(np.argsort(names, kind="stable"), kind="stable")

    @cached_property
    def counter(self) -> CellCounter:
        """Counts rows by their cells."""
        return CellCounter(self.schema, self.positions, self._grids)

    @property
    def _grids(self) -> dict[int, NumberGrid]:
        names = self.schema.names
        return {j: self.grids[names[j]] for j in self.positions if names[j] in self.grids}

    def binned(self, counted: CodedRows) -> CodedRows:
        """Return rows in cells as rows in bins."""
        grids, sizes = self._grids, tuple(self.schema.columns[j].cardinality for j in self.positions)
        codes = counted.codes.astype(np.uint32)
        for place, j in enumerate(self.positions):
            if j in grids:
                codes[:, place] = np.concatenate([[0], grids[j].code + 1])[counted.codes[:, place]]
        return CodedRows.of(Codes(codes, sizes), Assignment(counted.component, counted.weight, 1))

    def spread_by(self, counted: CodedRows) -> Self:
        """Return the model with these counts, by which the cells of each bin share it."""
        spread = {}
        for place, j in enumerate(self.positions):
            name = self.schema.names[j]
            if name in self.grids:
                counts = np.bincount(counted.codes[:, place], counted.weight, len(self.grids[name].cells) + 1)[1:]
                spread[name] = self.grids[name].spread_by(counts)
        return replace(self, counted=counted, grids=spread)

    @cached_property
    def law(self) -> Law:
        """The mixture of the members."""
        tables = tuple(one.with_floor(FLOOR) for one in self.members.values())
        weight = np.array([self.weights[name] for name in self.members])
        places = {j: place for place, j in enumerate(self.positions)}
        counted = None if self.counted is None else CountedRows(self.counted, places)
        return Law(self.schema, tables, weight, self._grids, counted)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the members, and of their weights."""
        return sum(one.n_parameters for one in self.members.values()) + len(self.members) - 1

    @cached_property
    def rows(self) -> RowsToPredict:
        """The reader of rows."""
        return RowsToPredict(self.schema, self.recipe.name, 4 * sum(self.law.sizes.values()))

    def log_density(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,): of the codes, and of numbers within their bins."""
        law = self.law

        def of_rows(rows: slice) -> Array:
            return law.believe(law.likelihoods(batch.rows(rows))).log_evidence

        found = np.concatenate(law.in_blocks(len(batch), of_rows))
        for j, grid in law.grids.items():
            found += grid.log_within(np.asarray(batch.numbers.values[:, self.schema.of_kind("continuous").index(j)]))
        return found

    def without_rows(self) -> Self:
        """Return a value of the same predictions, without sums and the table."""
        return replace(self, columns=self.columns.without_rows(), table=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        pools = {name: one.for_file() for name, one in self.pools.items()}
        return replace(self, record=self.record.for_file(), columns=self.columns.for_file(), pools=pools, table=None)

    def without_kept_rows(self) -> Self:
        """Return a value without counted rows, and without pools that predict from rows."""
        pools = {name: pool.without_kept_rows() for name, pool in self.pools.items()}
        pools = {name: pool for name, pool in pools.items() if not kept_of_rows(pool)}
        columns = self.columns.without_kept_rows()
        return replace(super().without_kept_rows(), columns=columns, counted=None, pools=pools)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        require(len(self.members) > 0 and self.members.keys() == self.weights.keys(), "members or weights are missing")
        check_numbers("the weights", np.array(list(self.weights.values())), (len(self.members),), 0.0, 1.0 + 1e-6)
        self.columns.check()
        columns = [column for column in self.schema.columns if column.is_binned and not column.valueless]
        binned = {column.name: column.cardinality for column in columns}
        require(binned.keys() == self.grids.keys(), "the numbers of bins are missing")
        for name, n_bins in binned.items():
            self.grids[name].check_against(n_bins)
        sizes = {j: self.schema.columns[j].cardinality for j in self.positions}
        for one in self.members.values():
            one.check()
            require(dict(zip(one.columns, one.sizes, strict=True)) == sizes, "a member is of other columns")
        if self.counted is not None:
            check_equal("the cells of rows", self.counted.cardinalities, self.counter.sizes)
            check_counted(self.counted)
        self.law.check()
        for pool in self.pools.values():
            pool.check()


def check_counted(rows: CodedRows) -> None:
    """Raise ValueError unless rows in cells, which may come from a file, hold cells of their columns and weights."""
    n, d = len(rows.hashes), len(rows.cardinalities)
    require(rows.n_components == 1 and rows.hashes.dtype == np.uint64, "the counted rows are no rows of one class")
    require(rows.codes.shape == (n, d) and rows.codes.dtype.kind == "u", "the cells of the counted rows are no table")
    require(bool((rows.codes <= np.array(rows.cardinalities, np.int64)).all()), "a counted row has an unknown cell")
    require(rows.component.shape == (n,) and not rows.component.any(), "a counted row is of another class")
    check_numbers("the weights of the counted rows", rows.weight, (n,), 0.0)
