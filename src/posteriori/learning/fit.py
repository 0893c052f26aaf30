"""Fit in one pass: add up the sufficient statistics of the rows, then estimate every density in closed form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np

from posteriori.model import Block, GenerativeModel, Prior, reject_incomplete, reject_outside
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.tables import Assignment, Batch, Schema, quote
from posteriori.typing import Array


@dataclass(frozen=True)
class Collect:
    """A function from a batch to the statistics of its labelled rows, and to the ranges of all columns.

    It is a value with the blocks as its field, so that a database can compute the same sums by a query.

    Attributes
    ----------
    blocks : tuple of Block
        The blocks whose sufficient statistics are added up.
    """

    blocks: tuple[Block, ...]

    def __call__(self, batch: Batch) -> JointStatistics:
        """Return the statistics.

        Raises
        ------
        ValueError
            A cell is out of the support of its density, or its square overflows.
        """
        assignment = batch.assignment
        if assignment is None:
            raise ValueError("the batch has no labels to learn from")
        known = batch.labelled()
        labels = cast(Assignment, known.assignment)
        weight = np.bincount(labels.component, labels.weight, labels.n_components)
        hidden = float(assignment.weight[assignment.component < 0].sum())
        statistics = []
        for block in self.blocks:
            reject_incomplete(block, batch)
            if not block.density.has_full_support:
                reject_outside(block, batch)
            sums = block.density.sufficient_statistics.of(block.tile(known), labels)
            finite = sums.finite()
            if not finite.all():
                reject_outside(block, batch)
                _reject_overflow(batch.schema, block.columns, finite)
            statistics.append(sums)
        ranges = ColumnRanges.of(batch)
        if hidden > 0 and not ranges.has_finite_squares.all():  # rows without label are in no statistics yet
            _reject_overflow(batch.schema, range(len(batch.schema.columns)), ranges.has_finite_squares)
        return JointStatistics(weight, tuple(statistics), hidden, ranges)


def _reject_overflow(schema: Schema, columns: Iterable[int], finite: Array) -> None:
    names = quote(schema.columns[column].name for column, usable in zip(columns, finite, strict=True) if not usable)
    raise ValueError(f"the square of a value in {names} overflows; rescale the column")


def estimate(schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics) -> GenerativeModel:
    """Return the model with the closed-form estimates of the prior and of every density.

    If the statistics hold the ranges of the columns, its schema marks the columns that are entirely missing.
    """
    if statistics.ranges is not None:
        schema = schema.with_values_in(statistics.ranges.has_numbers.tolist())
    pairs = zip(blocks, statistics.blocks, strict=True)
    return GenerativeModel(
        schema,
        blocks,
        prior.estimate(statistics.weight),
        tuple(block.density.estimate(sums) for block, sums in pairs),
        prior.of_class,
    )
