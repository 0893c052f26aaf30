"""The result of a fit of a joint model, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from posteriori.fitting.fitted import Fitted, FittedValue
from posteriori.joint.law import Law
from posteriori.model.beliefs import Tables
from posteriori.model.predictive import NumberCells
from posteriori.scoring.rows import RowsToPredict
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema


@dataclass(frozen=True)
class FittedJoint(FittedValue):
    """The members of a joint model, which are sums over rows, their weights, and the steps of the numbers."""

    members: Mapping[str, Fitted]
    weights: Mapping[str, float]
    steps: Mapping[str, float]  # of each column of numbers: of which all are multiples; 0 for none
    pools: Mapping[str, FittedValue] = field(default_factory=dict)  # by target: fitted for one column
    table: Any = None  # the rows, for pools that are asked for later; not in files

    @property
    def first(self) -> Fitted:
        """The first member: all have the same columns and cut points."""
        return next(iter(self.members.values()))

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.first.schema

    @property
    def ranges(self) -> ColumnRanges:
        """Ranges of the columns in the training rows."""
        ranges = self.first.ranges
        assert ranges is not None
        return ranges

    @cached_property
    def law(self) -> Law:
        """The mixture of the members."""
        tables = tuple(Tables.of(one.model) for one in self.members.values())
        weight = np.array([self.weights[name] for name in self.members])
        numbers = [j for j in tables[0].columns if self.schema.columns[j].kind == "continuous"]
        cells = {j: self._cells(j, self.schema.columns[j]) for j in numbers}
        return Law(self.schema, tables, weight, cells)

    def _cells(self, j: int, column: Column) -> NumberCells:
        """Return the numbers that each bin of a column holds, within the range of the training rows."""
        assert column.cuts is not None
        low, high, step = self.ranges.lowest[j], self.ranges.highest[j], self.steps[column.name]
        edges = np.concatenate([[low], column.cuts, [high]])
        if not step:
            return NumberCells(edges[:-1], np.maximum(edges[1:], edges[:-1]))
        lows = np.ceil(np.round(edges[:-1] / step, 6)) * step
        highs = np.append((np.ceil(np.round(edges[1:-1] / step, 6)) - 1.0) * step, high)
        return NumberCells(lows, np.maximum(highs, lows), step)

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
        for block, parameters in zip(self.first.model.blocks, self.first.model.parameters, strict=True):
            if block.shared:
                found += block.density.log_density(parameters, block.tile(batch))[:, 0]
        return found

    def without_rows(self) -> Self:
        """Return a value of the same predictions, without sums and rows."""
        members = {name: one.without_rows() for name, one in self.members.items()}
        return replace(self, members=members, table=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        members = {name: one.for_file() for name, one in self.members.items()}
        pools = {name: one.for_file() for name, one in self.pools.items()}
        return replace(self, record=self.record.for_file(), members=members, pools=pools, table=None)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        require(len(self.members) > 0 and self.members.keys() == self.weights.keys(), "members or weights are missing")
        check_numbers("the weights", np.array(list(self.weights.values())), (len(self.members),), 0.0, 1.0 + 1e-6)
        for one in self.members.values():
            one.check()
            require(one.schema == self.schema, "the members are of different columns")
        require(self.first.ranges is not None, "the ranges of the columns are missing")
        names = {column.name for column in self.schema.columns if column.is_binned}
        require(names <= set(self.steps), "the steps of numbers are missing")
        self.law.check()
        for pool in self.pools.values():
            pool.check()
