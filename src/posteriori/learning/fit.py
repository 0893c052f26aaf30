"""One pass: fold the rows into sufficient statistics, then estimate every density in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posteriori.model import Block, GenerativeModel, Prior, reject_outside
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Schema, quote


def collect(blocks: tuple[Block, ...]) -> Callable[[Batch], JointStatistics]:
    """Return the function that takes a labelled batch to its sufficient statistics."""

    def accumulate(batch: Batch) -> JointStatistics:
        assignment = batch.assignment
        if assignment is None:
            raise ValueError("the batch has no labels to learn from")
        weight = np.bincount(assignment.component, assignment.weight, assignment.n_components)
        statistics = []
        for block in blocks:
            sums = block.density.needs.of(block.tile(batch), assignment)
            finite = sums.finite()
            if not (block.density.unbounded and finite.all()):
                reject_outside(block, batch)
                if not finite.all():
                    places = zip(block.columns, finite, strict=True)
                    names = quote(batch.schema.columns[column].name for column, usable in places if not usable)
                    raise ValueError(f"the square of a value in {names} overflows; rescale the column")
            statistics.append(sums)
        return JointStatistics(weight, tuple(statistics))

    return accumulate


def estimate(schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics) -> GenerativeModel:
    """Return the model that the statistics give, each density in closed form."""
    pairs = zip(blocks, statistics.blocks, strict=True)
    return GenerativeModel(
        schema,
        blocks,
        prior.estimate(statistics.weight),
        tuple(block.density.estimate(sums) for block, sums in pairs),
    )
