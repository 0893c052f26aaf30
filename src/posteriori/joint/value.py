"""The result of a fit of a joint model, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from posteriori.fitting.fitted import Fitted, FittedValue, kept_of_rows
from posteriori.joint.grids import NumberGrid
from posteriori.joint.law import Law
from posteriori.model.beliefs import Tables
from posteriori.scoring.rows import RowsToPredict
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_FLOOR = 1e-6  # the weight of equal probabilities: learned tables may hold zeros, and new rows cells that contradict


@dataclass(frozen=True)
class FittedJoint(FittedValue):
    """The members of a joint model, which are sums over rows, their weights, and the steps of the numbers."""

    members: Mapping[str, Fitted]
    weights: Mapping[str, float]
    grids: Mapping[str, NumberGrid]  # of each column of numbers
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
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return self.first.ranges

    @cached_property
    def law(self) -> Law:
        """The mixture of the members."""
        tables = tuple(Tables.of(one.model).with_floor(_FLOOR) for one in self.members.values())
        weight = np.array([self.weights[name] for name in self.members])
        names = self.schema.names
        return Law(
            self.schema, tables, weight, {j: self.grids[names[j]] for j in tables[0].columns if names[j] in self.grids}
        )

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
        """Return a value of the same predictions, without sums and rows."""
        members = {name: one.without_rows() for name, one in self.members.items()}
        return replace(self, members=members, table=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        members = {name: one.for_file() for name, one in self.members.items()}
        pools = {name: one.for_file() for name, one in self.pools.items()}
        return replace(self, record=self.record.for_file(), members=members, pools=pools, table=None)

    def without_kept_rows(self) -> Self:
        """Return a value without pools that predict from rows."""
        members = {name: one.without_kept_rows() for name, one in self.members.items()}
        pools = {name: pool.without_kept_rows() for name, pool in self.pools.items()}
        pools = {name: pool for name, pool in pools.items() if not kept_of_rows(pool)}
        return replace(super().without_kept_rows(), members=members, pools=pools)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        require(len(self.members) > 0 and self.members.keys() == self.weights.keys(), "members or weights are missing")
        check_numbers("the weights", np.array(list(self.weights.values())), (len(self.members),), 0.0, 1.0 + 1e-6)
        for one in self.members.values():
            one.check()
            require(one.schema == self.schema, "the members are of different columns")
        columns = [column for column in self.schema.columns if column.is_binned and not column.valueless]
        binned = {column.name: column.cardinality for column in columns}
        require(binned.keys() == self.grids.keys(), "the numbers of bins are missing")
        for name, n_bins in binned.items():
            self.grids[name].check_against(n_bins)
        self.law.check()
        for pool in self.pools.values():
            pool.check()
