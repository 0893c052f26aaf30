"""Bags of words: the counts of each row, of which only those that are not 0 are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.support.typing import Array

LARGEST_COUNT = 1e15  # larger numbers of float64 are not all whole numbers


@dataclass(frozen=True)
class Bags:
    """Sparse rows of counts, in the layout of a compressed sparse row matrix.

    A word is a position in a vocabulary, or a column of a sparse matrix. A word that is not stored has a count of 0;
    it is not missing.
    """

    starts: Array  # (n + 1,): row i holds the stored cells from starts[i] to starts[i + 1]; starts[0] is 0
    words: Array  # (m,): the word of each stored cell, each word at most once per row
    counts: Array  # (m,): its count; NaN where it is missing
    n_words: int  # V, the number of words of the vocabulary
    # (n,): the exposure in which the counts of each row occurred, NaN where it is missing
    exposure: Array | None = None

    @classmethod
    def of_matrix(cls, matrix: Any, rows: slice) -> Bags:
        """Return some rows of a canonical CSR matrix; views of it where its data types allow.

        Raises ValueError if a stored cell has an index outside of the columns; no kernel checks it again.
        """
        bounds = matrix.indptr[slice(rows.start, None if rows.stop is None else rows.stop + 1)].astype(np.int64)
        cells = slice(int(bounds[0]), int(bounds[-1]))
        indices = matrix.indices[cells]
        # As unsigned integers, in which a negative index is a large one: one pass instead of two.
        if len(indices) and indices.view(f"u{indices.itemsize}").max() >= matrix.shape[1]:
            raise ValueError(f"it has an index outside of its {matrix.shape[1]:,} columns")
        words = indices.astype(np.int32, copy=False)
        counts = matrix.data[cells]
        if counts.dtype not in (np.float64, np.int64):
            counts = counts.astype(np.float64)
        return cls(bounds - bounds[0], words, counts, matrix.shape[1])

    @classmethod
    def of_numbers(cls, values: Array) -> Bags:
        """Return dense counts (n, V) as bags in which every cell is stored, those that are 0 or NaN included."""
        n, width = values.shape
        starts = np.arange(n + 1, dtype=np.int64) * width
        words = np.tile(np.arange(width, dtype=np.int32), n)
        return cls(starts, words, np.ascontiguousarray(values, np.float64).reshape(-1), width)

    @classmethod
    def of_array(cls, values: Array) -> Bags:
        """Return dense counts (n, V) as bags in which the counts that are not 0 are stored."""
        row, words = np.nonzero(values)
        starts = np.searchsorted(row, np.arange(len(values) + 1))
        return cls(starts, words.astype(np.int32), values[row, words].astype(np.float64), values.shape[1])

    @classmethod
    def empty(cls, n: int, n_words: int) -> Bags:
        """Return n rows without a word."""
        return cls(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0), n_words)

    @classmethod
    def joined(cls, parts: Sequence[Bags]) -> Bags:
        """Return the rows of several bags of one vocabulary."""
        ends = np.cumsum([0, *(part.starts[-1] for part in parts)])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.counts for part in parts]),
            parts[0].n_words,
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, chosen: Array | slice) -> Bags:
        """Return some of the rows, by a mask, by their positions, or by a slice; consecutive ones are views."""
        if isinstance(chosen, slice) and chosen.step in (None, 1):
            first, last, _ = chosen.indices(len(self))
            bounds = self.starts[first : max(first, last) + 1]
            kept = slice(int(bounds[0]), int(bounds[-1]))
            exposure = None if self.exposure is None else self.exposure[first:last]
            return Bags(bounds - bounds[0], self.words[kept], self.counts[kept], self.n_words, exposure)
        positions = np.arange(len(self))[chosen]
        lengths = self.starts[positions + 1] - self.starts[positions]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        cells = np.arange(starts[-1]) + np.repeat(self.starts[positions] - starts[:-1], lengths)
        exposure = None if self.exposure is None else self.exposure[positions]
        return Bags(starts, self.words[cells], self.counts[cells], self.n_words, exposure)

    def without(self, emptied: Array) -> Bags:
        """Return the bags of which some, by a mask, are emptied."""
        kept = ~emptied[self.row_of_cell]
        lengths = np.where(emptied, 0, np.diff(self.starts))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Bags(starts, self.words[kept], self.counts[kept], self.n_words, self.exposure)

    @cached_property
    def are_counts(self) -> bool:
        """Whether all counts are present, 0 or more, and not too large to be exact numbers."""
        return int(kernels.count_invalid(self.counts, LARGEST_COUNT)) == 0

    @cached_property
    def totals(self) -> Array:
        """The sum of the present counts of each row, (n,)."""
        totals = np.zeros(len(self))
        kernels.add_totals(self.starts, self.counts, totals)
        return totals

    @property
    def row_of_cell(self) -> Array:
        """The row of each stored cell, (m,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def sums_per_row(self, values: Array) -> Array:
        """Return the sum of values (m, …) of the stored cells of each row, (n, …)."""
        sums = np.zeros((len(self), *values.shape[1:]))
        np.add.at(sums, self.row_of_cell, values)
        return sums

    @property
    def nbytes(self) -> int:
        """The bytes of the stored cells and of the rows."""
        return int(self.starts.nbytes + self.words.nbytes + self.counts.nbytes)

    def to_array(self) -> Array:
        """Return the counts as an array, (n, V)."""
        values = np.zeros((len(self), self.n_words))
        values[self.row_of_cell, self.words] = self.counts
        return values

    def to_matrix(self) -> Any:
        """Return the counts as a CSR array of SciPy."""
        from scipy.sparse import csr_array

        return csr_array((self.counts, self.words, self.starts), shape=(len(self), self.n_words))
