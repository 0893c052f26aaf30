"""The cells of rows as arrays of any namespace: numbers with NaN where missing, and codes with 0 where missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from posteriori.support.arrays import Arrays
from posteriori.tables import Batch, Schema


class RowCells(ABC):
    """Rows under a schema, and which of them are refused: they have no posterior."""

    schema: Schema

    def __init__(self, schema: Schema, refused: list[Arrays]) -> None:
        self.schema = schema
        self.refused = refused  # (n,) each

    @property
    @abstractmethod
    def xp(self) -> Any:
        """The functions of the arrays."""

    @abstractmethod
    def under(self, schema: Schema) -> Self:
        """Return the same rows with the cut points of another schema of the same columns."""

    @abstractmethod
    def number(self, j: int) -> Arrays:
        """Return the numbers of a column, (n,)."""

    @abstractmethod
    def code(self, j: int) -> Arrays:
        """Return the codes of a column of categories or of its bins, (n,)."""

    @abstractmethod
    def is_unseen(self, j: int) -> Arrays:
        """Return which cells of a column are categories that were unseen in training, (n,)."""

    def own_program(self, density: type[Any]) -> Any:
        """Return a program that these cells have of a class of densities in place of the usual one; None if none."""
        del density

    def refuse(self, rows: Arrays) -> None:
        """Refuse some rows, (n,) booleans, as `predict` refuses them."""
        self.refused.append(rows)

    @abstractmethod
    def zeros(self) -> Arrays:
        """Return a zero for each row, (n, 1)."""

    def numbers_of(self, columns: Sequence[int]) -> Arrays:
        """Return the numbers of some columns, (n, d)."""
        return self.xp.stack([self.number(j) for j in columns], axis=1)

    def codes_of(self, columns: Sequence[int]) -> Arrays:
        """Return the codes of some columns, (n, d)."""
        return self.xp.stack([self.code(j) for j in columns], axis=1)

    def known(self, j: int) -> Arrays:
        """Return whether the cell of a column is known, (n,)."""
        if self.schema.columns[j].kind == "categorical":
            return self.code(j) > 0
        return ~self.xp.isnan(self.number(j))


class ArrayCells(RowCells):
    """Rows as arrays of NumPy, or as arrays that ndonnx records."""

    def __init__(
        self, schema: Schema, numbers: Arrays, categories: Arrays, unseen: Arrays, refused: list[Arrays] | None = None
    ) -> None:
        super().__init__(schema, [] if refused is None else refused)
        self._numbers = numbers  # (n, c): the columns of numbers, NaN where missing
        self._categories = categories  # (n, k): the codes of the columns of categories, 0 where missing
        self._unseen = unseen  # (n, k): whether a cell of these is a category unseen in training
        if refused is None and numbers.shape[1]:
            self.refuse(self.xp.any(self.xp.isinf(numbers), axis=1))

    @classmethod
    def of(cls, batch: Batch) -> ArrayCells:
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
        return self._numbers.__array_namespace__()

    def under(self, schema: Schema) -> ArrayCells:
        """Return the same rows with the cut points of another schema of the same columns."""
        return ArrayCells(schema, self._numbers, self._categories, self._unseen, self.refused)

    def zeros(self) -> Arrays:
        """Return a zero for each row, (n, 1)."""
        return self.xp.sum(self.xp.zeros_like(self._numbers), axis=1, keepdims=True)

    def number(self, j: int) -> Arrays:
        """Return the numbers of a column, (n,)."""
        return self._numbers[:, self.schema.of_kind("continuous").index(j)]

    def numbers_of(self, columns: Sequence[int]) -> Arrays:
        """Return the numbers of some columns, (n, d)."""
        return self._numbers if tuple(columns) == self.schema.of_kind("continuous") else super().numbers_of(columns)

    def code(self, j: int) -> Arrays:
        """Return the codes of a column of categories or of its bins, (n,)."""
        xp, column = self.xp, self.schema.columns[j]
        if column.cuts is None:
            return self._categories[:, self.schema.of_kind("categorical").index(j)]
        x = self.number(j)
        return xp.where(xp.isnan(x), 0, 1 + xp.searchsorted(xp.asarray(np.array(column.cuts)), x, side="right"))

    def is_unseen(self, j: int) -> Arrays:
        """Return which cells of a column are categories that were unseen in training, (n,)."""
        return self._unseen[:, self.schema.of_kind("categorical").index(j)]
