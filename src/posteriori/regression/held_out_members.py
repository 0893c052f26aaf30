"""The members of a pool of regressions without each fold, as the weights for partial rows ask them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.densities.random_trees import RandomTreesParameters
from posteriori.model import Pool, clip_log_posteriors
from posteriori.pool.partial_rows import EvaluatedRows, without_cells
from posteriori.regression.members import Members
from posteriori.support.typing import Array
from posteriori.tables import Batch


@dataclass(frozen=True)
class FoldMembers:
    """The members that learned from all rows, and those that learned from the rows outside each fold."""

    whole: Members
    without: tuple[Members, ...]
    example: Batch  # a row, whose cells do not matter
    joint_trees: RandomTreesParameters  # p(x) by the trees of the neighbours
    n_jobs: int | None

    def alone(self, asked: Array) -> Array:
        """Return the log of the probability of each cell where nothing is known, (G, M'), in nats."""
        nothing = without_cells(self.example, np.ones((1, len(self.example.schema.columns)), np.bool_))
        return np.asarray(clip_log_posteriors(self.whole.log_probability(nothing))[0][:, asked])

    def joint(self, pool: Pool) -> Array:
        """Return the position of the forest: the leaves that a row may reach are integrated over."""
        del pool
        return np.array([m for m, name in enumerate(self.whole.names) if name == "forest"], np.int64)

    def predicted(self, batch: Batch, fold: Array, asked: Array) -> Array:
        """Return the log of the probability of each cell by the members without the folds of rows, (n, G, M')."""
        found = np.empty((len(batch), len(self.whole.cells), len(asked)))
        for k in np.unique(fold).tolist():
            rows = np.flatnonzero(fold == k)
            found[rows] = self.without[k].log_probability(batch.rows(rows), self.n_jobs)[:, :, asked]
        return clip_log_posteriors(found)

    def lacks_class(self, fold: Array, y_true: Array) -> Array:
        """Return which rows are in a cell that others have not: none, as all cells have some probability."""
        del y_true
        return np.zeros(len(fold), np.bool_)

    def column_weights(self, rows: EvaluatedRows, pool: Pool, kept: Array) -> Array:
        r"""Return how much the density of whole rows depends on each column: √E KL(p(y | x) ‖ p(y | x without it))."""
        del kept
        batch, fold = rows.batch.rows(rows.few), rows.fold[rows.few]
        of_whole, every = replace(pool, partial=None), np.arange(len(pool.weight))
        whole = of_whole.log_posterior(self.predicted(batch, fold, every))
        n, d = len(batch), len(rows.columns)
        every_row, column = np.tile(np.arange(n), d), np.repeat(np.arange(d), n)
        hidden = without_cells(batch.rows(every_row), column[:, np.newaxis] == np.arange(d))
        without = of_whole.log_posterior(self.predicted(hidden, fold[every_row], every))
        apart = (np.exp(whole[every_row]) * (whole[every_row] - without)).sum(axis=1)
        divergence = np.bincount(column, apart, d) / n
        return np.sqrt(np.maximum(divergence, 0.0))
