"""Numbers outside of the range that their column had in the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.statistics import ColumnRanges
from posteriori.support.formatting import number
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_MOST_NAMED = 5  # columns
_DIGITS = 6, 10, 13, 15  # of numbers
_BY_CHANCE = 0.01  # of the numbers of a column: new rows of the same law have a few new extremes


@dataclass(frozen=True)
class OutOfRange:
    """For each column, how many numbers lie outside of the range of the training rows, and between which bounds.

    Parts of dates are left out: later days than those of the training rows are no surprise.
    """

    count: Array  # (d,)
    far: Array  # (d,): of these, how many are farther from the range than it is wide
    n_numbers: Array  # (d,)
    lowest: Array  # (d,): of the numbers outside; inf without any
    highest: Array

    @classmethod
    def of(cls, batch: Batch, ranges: ColumnRanges) -> OutOfRange:
        """Count the numbers of a batch."""
        d = len(batch.schema.columns)
        count, far, n_numbers = np.zeros((3, d), np.int64)
        lowest, highest = np.full(d, np.inf), np.full(d, -np.inf)
        outside_of = ranges.outside(batch)
        for place, j in enumerate(batch.schema.of_kind("continuous")):
            if batch.schema.columns[j].part is not None or not ranges.has_numbers[j]:
                continue
            cells = batch.numbers.values[:, place]
            n_numbers[j] = np.count_nonzero(~np.isnan(cells))
            beyond = np.maximum(ranges.lowest[j] - cells, cells - ranges.highest[j])
            far[j] = np.count_nonzero(beyond > ranges.highest[j] - ranges.lowest[j])
            outside = cells[outside_of[:, j]]
            if len(outside):
                count[j], lowest[j], highest[j] = len(outside), outside.min(), outside.max()
        return cls(count, far, n_numbers, lowest, highest)

    def __add__(self, other: OutOfRange) -> OutOfRange:
        return OutOfRange(
            self.count + other.count,
            self.far + other.far,
            self.n_numbers + other.n_numbers,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )

    def sentence(self, schema: Schema, ranges: ColumnRanges) -> str:
        """Return a sentence that names the columns, those with the most such numbers first; empty if it names none.

        A column is named if a number lies far outside, or if more than 1 % of its numbers, and at least two, do.
        """
        named = (self.far > 0) | ((self.count > 1) & (self.count > _BY_CHANCE * self.n_numbers))
        found = [int(j) for j in np.argsort(-self.count, kind="stable") if named[j]]
        parts = []
        for j in found[:_MOST_NAMED]:
            ends = written_apart([float(of[j]) for of in (self.lowest, self.highest, ranges.lowest, ranges.highest)])
            which = f"{self.count[j]:,} of {schema.columns[j].name!r}"
            parts.append("{} ({} to {}, trained on {} to {})".format(which, *ends))
        more = len(found) - len(parts)
        rest = f", and of {more} more column{'s' if more > 1 else ''}" if more else ""
        return f"numbers lie outside of the range of the training rows: {', '.join(parts)}{rest}" if found else ""


def written_apart(numbers: Sequence[float]) -> list[str]:
    """Return numbers with six digits, or with as many as it takes to tell apart those that differ."""
    for digits in (*_DIGITS, 17):
        texts = [number(one, digits, ",") for one in numbers]
        if len(set(texts)) == len(set(numbers)):
            break
    return texts


def sentences_outside(batch: Batch, ranges: ColumnRanges) -> list[str]:
    """Return for each row what lies outside: "area 5642: trained on 334 to 4316; shop: an unseen category"; else ""."""
    found: list[list[str]] = [[] for _ in range(len(batch))]
    for i, j in zip(*np.nonzero(ranges.outside(batch)), strict=True):
        cell = batch.numbers.values[i, batch.schema.of_kind("continuous").index(j)]
        written = written_apart([float(cell), float(ranges.lowest[j]), float(ranges.highest[j])])
        found[i].append("{} {}: trained on {} to {}".format(batch.schema.names[j], *written))
    for j, rows in batch.unseen_categories:
        for i in rows.tolist():
            found[i].append(f"{batch.schema.names[j]}: an unseen category")
    return ["; ".join(sentences) for sentences in found]
