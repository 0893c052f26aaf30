"""A few rows that stand for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.tables.batch import Batch
from posteriori.typing import Array


@dataclass(frozen=True)
class RowSample:
    """A uniform sample without replacement of the rows of any weight: all of them, up to a number of rows.

    The rows kept are those whose numbers have the smallest hashes, so the sample depends neither on the order nor on
    the size of the batches: + is associative and commutative.

    Attributes
    ----------
    size : int
        The most rows that are kept.
    key : ndarray (m,)
        The hash of each row's number; up to 2·size, so that additions need not choose each time.
    values : ndarray (m, d)
        The numbers of some columns, NaN where missing.
    weight : ndarray (m,)
    """

    size: int
    key: Array
    values: Array
    weight: Array

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[int], size: int) -> RowSample:
        """Return the sample of a batch's rows: some continuous columns, by their positions in the schema."""
        places = [batch.schema.of_kind("continuous").index(column) for column in columns]
        values = np.ascontiguousarray(batch.numbers.values[:, places])
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        key = scatter(np.arange(batch.start, batch.start + len(batch), dtype=np.uint64))
        counted = weight > 0
        if not counted.all():
            key, values, weight = key[counted], values[counted], weight[counted]
        return cls(size, key, values, weight)._smallest(2 * size)

    def __add__(self, other: RowSample) -> RowSample:
        pairs = ((self.key, other.key), (self.values, other.values), (self.weight, other.weight))
        return RowSample(self.size, *map(np.concatenate, pairs))._smallest(2 * self.size)

    def rows(self) -> RowSample:
        """Return the rows of the sample and no others, in an order that depends on nothing but them."""
        kept = self._smallest(self.size)
        order = np.argsort(kept.key)
        return RowSample(self.size, kept.key[order], kept.values[order], kept.weight[order])

    def _smallest(self, most: int) -> RowSample:
        """Return the sample itself, or, where it holds more than `most` rows, `size` of them."""
        if len(self.key) <= most:
            return self
        kept = np.argpartition(self.key, self.size - 1)[: self.size]
        return RowSample(self.size, self.key[kept], self.values[kept], self.weight[kept])


def scatter(number: Array) -> Array:
    """Return a hash of each number, no two alike: the finaliser of SplitMix64 (Steele, Lea & Flood, 2014)."""
    x = number + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
