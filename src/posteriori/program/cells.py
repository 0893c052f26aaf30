"""The cells of rows as arrays of any namespace: numbers with NaN where missing, and codes with 0 where missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.program.arrays import Arrays
from posteriori.tables import Batch, Schema


@dataclass(frozen=True)
class Cells:
    """Rows under a schema."""

    schema: Schema
    numbers: Arrays  # (n, c): the columns of numbers, NaN where missing
    categories: Arrays  # (n, k): the codes of the columns of categories, 0 where missing
    unseen: Arrays  # (n, k): whether a cell of these is a category unseen in training

    @classmethod
    def of(cls, batch: Batch) -> Cells:
        """Return the cells of a batch as arrays of NumPy."""
        schema = batch.schema
        codes = batch.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]].astype(np.int64)
        unseen = np.zeros(codes.shape, np.bool_)
        for j, rows in batch.unseen_categories:
            unseen[rows, schema.of_kind("categorical").index(j)] = True
        return cls(schema, batch.numbers.values.astype(np.float64), codes, unseen)

    @property
    def xp(self) -> Any:
        """The functions of the arrays."""
        return self.numbers.__array_namespace__()

    def under(self, schema: Schema) -> Cells:
        """Return the same rows with the cut points of another schema of the same columns."""
        return replace(self, schema=schema)

    def rows(self, mask: Arrays) -> Cells:
        """Return the rows of a mask, (n,)."""
        place = self.xp.nonzero(mask)[0]
        each = [self.xp.take(x, place, axis=0) for x in (self.numbers, self.categories, self.unseen)]
        return Cells(self.schema, *each)

    def number(self, j: int) -> Arrays:
        """Return the numbers of a column, (n,)."""
        return self.numbers[:, self.schema.of_kind("continuous").index(j)]

    def numbers_of(self, columns: Sequence[int]) -> Arrays:
        """Return the numbers of some columns, (n, d)."""
        if tuple(columns) == self.schema.of_kind("continuous"):
            return self.numbers
        return self.xp.stack([self.number(j) for j in columns], axis=1)

    def code(self, j: int) -> Arrays:
        """Return the codes of a column of categories or of its bins, (n,)."""
        xp, column = self.xp, self.schema.columns[j]
        if column.cuts is None:
            return self.categories[:, self.schema.of_kind("categorical").index(j)]
        x = self.number(j)
        return xp.where(xp.isnan(x), 0, 1 + xp.searchsorted(xp.asarray(np.array(column.cuts)), x, side="right"))

    def codes_of(self, columns: Sequence[int]) -> Arrays:
        """Return the codes of some columns, (n, d)."""
        return self.xp.stack([self.code(j) for j in columns], axis=1)

    def known(self, j: int) -> Arrays:
        """Return whether the cell of a column is known, (n,)."""
        if self.schema.columns[j].kind == "categorical":
            return self.code(j) > 0
        return ~self.xp.isnan(self.number(j))

    def outside(self, lowest: Sequence[float], highest: Sequence[float], columns: Sequence[int]) -> Arrays:
        """Return whether a number of some columns is beyond its range, or a category is unseen, (n,)."""
        xp = self.xp
        outside = xp.any(self.unseen, axis=1)
        for j, low, high in zip(columns, lowest, highest, strict=True):
            outside = outside | (self.number(j) < low) | (self.number(j) > high)
        return outside
