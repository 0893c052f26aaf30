"""Numbers outside of the range that their column had in the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.statistics import ColumnRanges
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_MOST_NAMED = 5  # columns


@dataclass(frozen=True)
class OutOfRange:
    """For each column, how many numbers lie outside of the range of the training rows, and between which bounds.

    Parts of dates are left out: later days than those of the training rows are no surprise.
    """

    count: Array  # (d,)
    lowest: Array  # (d,): of the numbers outside; inf without any
    highest: Array

    @classmethod
    def of(cls, batch: Batch, ranges: ColumnRanges) -> OutOfRange:
        """Count the numbers of a batch."""
        d = len(batch.schema.columns)
        count, lowest, highest = np.zeros(d, np.int64), np.full(d, np.inf), np.full(d, -np.inf)
        for place, j in enumerate(batch.schema.of_kind("continuous")):
            if batch.schema.columns[j].part is not None or not ranges.has_numbers[j]:
                continue
            cells = batch.numbers.values[:, place]
            outside = cells[(cells < ranges.lowest[j]) | (cells > ranges.highest[j])]
            if len(outside):
                count[j], lowest[j], highest[j] = len(outside), outside.min(), outside.max()
        return cls(count, lowest, highest)

    def __add__(self, other: OutOfRange) -> OutOfRange:
        return OutOfRange(
            self.count + other.count, np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        )

    def sentence(self, schema: Schema, ranges: ColumnRanges) -> str:
        """Return a sentence that names the columns, those with the most such numbers first; empty without any."""
        order = np.argsort(-self.count, kind="stable")
        found = [int(j) for j in order if self.count[j]]
        named = [
            f"{self.count[j]:,} of {schema.columns[j].name!r} ({self.lowest[j]:g} to {self.highest[j]:g}, trained on "
            f"{ranges.lowest[j]:g} to {ranges.highest[j]:g})"
            for j in found[:_MOST_NAMED]
        ]
        more = len(found) - len(named)
        rest = f", and of {more} more column{'s' if more > 1 else ''}" if more else ""
        return f"numbers lie outside of the range of the training rows: {', '.join(named)}{rest}" if found else ""


def ranges_of(each: Sequence[ColumnRanges | None]) -> ColumnRanges | None:
    """Return the ranges over all members of a pool; None if those of one are unknown."""
    known = [one for one in each if one is not None]
    if not known or len(known) < len(each):
        return None
    total = known[0]
    for one in known[1:]:
        total = total + one
    return total
