"""A uniform sample of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.kernels.hashing import splitmix64
from posteriori.tables.batch import Batch
from posteriori.typing import Array


@dataclass(frozen=True)
class RowSample:
    """A uniform sample without replacement of the rows of positive weight: all rows, up to a limit.

    The rows whose numbers have the smallest hashes are kept, so the sample does not depend on the order or the
    size of the batches: + is associative and commutative.

    Attributes
    ----------
    size : int
        The limit on the number of rows.
    n_rows : int
        The number of rows of positive weight, kept or not.
    number : ndarray (m,)
        The number of each row in its table; up to 2·size rows, so that not every addition has to select.
    values : ndarray (m, d)
        The numbers of some columns, NaN where missing.
    weight : ndarray (m,)
    component : ndarray (m,)
        The class of each row, −1 where it is unknown.
    fold : ndarray (m,)
        The cross-validation fold of each row, −1 where it is in none.
    """

    size: int
    n_rows: int
    number: Array
    values: Array
    weight: Array
    component: Array
    fold: Array

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[int], size: int) -> RowSample:
        """Return the sample of a batch's rows: some continuous columns, by their positions in the schema."""
        positions = [batch.schema.of_kind("continuous").index(column) for column in columns]
        values = np.ascontiguousarray(batch.numbers.values[:, positions])
        n, labels = len(batch), batch.assignment
        weight = np.ones(n) if labels is None else labels.weight
        component = np.full(n, -1, np.int32) if labels is None else labels.component
        fold = np.full(n, -1, np.int32) if batch.fold is None else batch.fold
        number = np.arange(batch.start, batch.start + n, dtype=np.uint64)
        sample = cls(size, int(np.count_nonzero(weight > 0)), number, values, weight, component, fold)
        return (sample if sample.n_rows == n else sample._take(weight > 0))._smallest(2 * size)

    @property
    def is_complete(self) -> bool:
        """Whether the sample contains all rows of positive weight."""
        return self.n_rows <= self.size

    def __add__(self, other: RowSample) -> RowSample:
        pairs = zip(self._by_row, other._by_row, strict=True)
        return RowSample(self.size, self.n_rows + other.n_rows, *map(np.concatenate, pairs))._smallest(2 * self.size)

    def rows(self) -> RowSample:
        """Return exactly the rows of the sample, in the order of the table."""
        kept = self._smallest(self.size)
        return kept._take(np.argsort(kept.number))

    @property
    def _by_row(self) -> tuple[Array, ...]:
        return self.number, self.values, self.weight, self.component, self.fold

    def _take(self, chosen: Array) -> RowSample:
        return RowSample(self.size, self.n_rows, *(part[chosen] for part in self._by_row))

    def _smallest(self, most: int) -> RowSample:
        """Return the sample itself, or, if it holds more than `most` rows, the `size` rows with the smallest hashes."""
        if len(self.number) <= most:
            return self
        return self._take(np.argpartition(splitmix64(self.number), self.size - 1)[: self.size])
