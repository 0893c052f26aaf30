"""The size of residuals that is expected in a row, by trees that were grown on their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.densities import RandomTrees
from posteriori.regression.neighbours import Neighbours, leaves_of, ordered_places, rank_of, soft_rows
from posteriori.regression.rows import GROUPS
from posteriori.statistics.forests import TreeStructure, codes_of
from posteriori.support.checks import check_equal, check_numbers
from posteriori.support.typing import Array
from posteriori.tables import Batch

_TREES = 60
_FEWEST = 40.0  # the least weight of a node to be split: of few rows, the mean size of residuals depends on chance
_PSEUDO_ROWS = 10.0  # of the mean size of all rows, in each leaf


@dataclass(frozen=True)
class Spread:
    """Trees with the mean size of the residuals in each leaf."""

    trees: TreeStructure
    value: Array  # (leaves,)

    def of_rows(self, neighbours: Neighbours, batch: Batch) -> Array:
        """Return the size of residuals that is expected in rows, (n,), whose codes are those of the neighbours."""
        trees, out = self.trees, np.zeros(len(batch))
        codes = codes_of(neighbours.tile(batch))
        kernels.mean_of_leaves(
            codes, trees.nodes, trees.roots, trees.sides, trees.ordered, trees.share, self.value, out
        )
        return out

    def check_against(self, neighbours: Neighbours) -> None:
        """Raise ValueError unless the trees have the columns of the neighbours, and each leaf has a size."""
        check_equal("the columns of trees", self.trees.cardinalities, neighbours.trees.cardinalities)
        check_numbers("the sizes of residuals", self.value, (self.trees.n_leaves,), np.finfo(np.float64).tiny)


def grow_spread(
    neighbours: Neighbours, batch: Batch, size: Array, weight: Array, fold: Array, seed: int, n_jobs: int | None
) -> tuple[Spread, list[Spread]]:
    """Return the spread by all trees, and for each group of folds that by the trees that left it out.

    Parameters
    ----------
    neighbours : Neighbours
        Which have the cut points.
    batch : Batch
        The training rows.
    size, weight, fold : ndarray (N,)
        The size of the residual of each row, its weight and its fold.
    """
    schema = neighbours.schema
    codes, group = codes_of(neighbours.tile(batch)), fold % GROUPS
    rank = schema.rank_by_name(schema.dense)
    density = RandomTrees(ordered_places(schema), _TREES, "random", fewest=_FEWEST, seed=seed, rank=rank)
    dealt = density.deal(soft_rows(schema, codes, rank_of(size, weight), weight), np.tile(group, 2), GROUPS)
    trees = dealt.grow(density.growth, n_jobs)
    leaf, of_trees = leaves_of(codes, trees), dealt.fold_of_trees(trees.n_trees)
    whole = Spread(trees, _means(leaf, trees, size, weight))
    without = []
    for g in range(GROUPS):
        first, last = np.searchsorted(of_trees, [g, g + 1]).tolist()
        part, leaves = trees.take(first, last)
        without.append(Spread(part, _means(leaf[first:last] - leaves.start, part, size, weight * (group != g))))
    return whole, without


def _means(leaf: Array, trees: TreeStructure, size: Array, weight: Array) -> Array:
    """Return the mean size of the rows of each leaf, (leaves,), shrunk to that of all rows."""
    mean = float(weight @ size / weight.sum())
    rows = [np.bincount(leaf.ravel(), np.tile(one, len(leaf)), trees.n_leaves) for one in (weight, weight * size)]
    found = (rows[1] + _PSEUDO_ROWS * mean) / (rows[0] + _PSEUDO_ROWS)
    return np.asarray(np.maximum(found, 1e-6 * max(mean, 1e-6)))
