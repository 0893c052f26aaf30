"""One pass: fold the rows into sufficient statistics, then estimate every density in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from posteriori.model import Block, GenerativeModel, Prior, reject_outside
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.tables import Assignment, Batch, Schema, quote


@dataclass(frozen=True)
class Collect:
    """Takes a batch to the sufficient statistics of its labelled rows, those that blocks need, and all columns' ranges.

    What is wanted can be read off it, so that a database may add it up in its own way.
    """

    blocks: tuple[Block, ...]

    def __call__(self, batch: Batch) -> JointStatistics:
        """Return the statistics.

        Raises
        ------
        ValueError
            A cell is outside what its density can produce, or its square overflows.
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
            sums = block.density.sufficient_statistics.of(block.tile(known), labels)
            finite = sums.finite()
            if not (block.density.has_full_support and finite.all()):
                reject_outside(block, batch)
                if not finite.all():
                    positions = zip(block.columns, finite, strict=True)
                    names = quote(batch.schema.columns[column].name for column, usable in positions if not usable)
                    raise ValueError(f"the square of a value in {names} overflows; rescale the column")
            statistics.append(sums)
        return JointStatistics(weight, tuple(statistics), hidden, ColumnRanges.of(batch))


def estimate(schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics) -> GenerativeModel:
    """Return the model that the statistics give, each density in closed form.

    Its schema marks the columns without a value, where the ranges of the columns say so.
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
