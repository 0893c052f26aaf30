"""The training rows near a row: those that share leaves with it, in trees grown on the ranks of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from posteriori import kernels
from posteriori.densities import RandomTrees
from posteriori.densities.random_trees import RandomTreesParameters
from posteriori.densities.tree_growing import trees_for
from posteriori.learning.cut_points import quantile_cuts
from posteriori.regression.rows import GROUPS
from posteriori.statistics.forests import CodedRows, TreeStructure, codes_of
from posteriori.support.checks import check_numbers, check_places, require
from posteriori.support.threads import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Batch, Codes, Schema

_BINS = 250  # of a column of numbers
_FEWEST = 8.0  # the least weight of a node to be split
_PSEUDO_ROWS = 1.0  # of the back-off in p(x)
_ROWS_PER_THREAD = 200


@dataclass(frozen=True)
class Placed:
    """Where the targets of training rows are."""

    KEPT_OF_ROWS: ClassVar = "of each row the cell of its target, its residuals, and the leaves that it is in"

    cell: Array  # (N,): the cell of each
    residual: Array  # (N, M): on the scale of the target, minus the location that others give the row
    spread: Array  # (N,): the size of the residuals that others expect in the row

    @property
    def order(self) -> Array:
        """An order of the rows, (N,), that does not depend on that of the table."""
        return np.lexsort((*self.residual.T, self.spread, self.cell))

    def sorted_by(self, order: Array) -> Placed:
        """Return the rows in an order."""
        return Placed(self.cell[order], self.residual[order], self.spread[order])

    def check(self) -> None:
        """Raise ValueError unless there are cells and residuals of the same rows."""
        check_places("the cells of training rows", self.cell, (len(self.cell),), 0, np.iinfo(np.int32).max)
        check_numbers("the residuals of training rows", self.residual, (len(self.cell), *self.residual.shape[1:]))
        require(self.residual.ndim == 2, "the residuals are no table")
        check_numbers("the sizes of residuals", self.spread, (len(self.cell),), np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Neighbours:
    """Trees, and the training rows in their leaves."""

    schema: Schema  # with the cut points of the trees
    trees: TreeStructure
    starts: Array  # (leaves + 1,): where the rows of each leaf start
    rows: Array  # the numbers of the training rows, leaf after leaf
    weight: Array  # (N,): of the training rows

    @cached_property
    def _of_leaf(self) -> Array:
        """The weight that each leaf gives a row of weight 1, (leaves,): the trees have the weight 1 together."""
        leaf = np.repeat(np.arange(self.trees.n_leaves), np.diff(self.starts))
        weight = np.bincount(leaf, self.weight[self.rows], self.trees.n_leaves)
        return np.asarray(1.0 / (self.trees.n_trees * np.maximum(weight, np.finfo(np.float64).tiny)))

    def sorted_by(self, order: Array) -> Neighbours:
        """Return the neighbours with their rows in an order, (N,), within leaves, too."""
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order))
        rows = number[self.rows]
        leaf = np.repeat(np.arange(self.trees.n_leaves), np.diff(self.starts))
        return replace(self, rows=rows[np.lexsort((rows, leaf))], weight=self.weight[order])

    def tile(self, batch: Batch) -> Codes:
        """Return the cells of rows as the trees read them."""
        return cast(Codes, batch.with_schema(self.schema).take(self.schema.dense, "categorical"))

    def spread(
        self, batch: Batch, placed: Placed, edges: Array, location: Array, deviation: Array, n_jobs: int | None
    ) -> Array:
        """Return the distributions over the cells that the neighbours of each row give, (n, 1 + M, G).

        First that of their targets, then for each model that of its location in the row, (n, M), plus their residuals,
        and plus a normal deviation of this size, (n,), among the ends of the cells, (G + 1,). Near rows weigh as much
        as the share of the trees in which they are in one leaf with the row, which each leaf divides among its rows.
        """
        trees, codes = self.trees, codes_of(self.tile(batch))
        out = np.zeros((len(codes), 1 + location.shape[1], len(edges) - 1))
        step = max(_ROWS_PER_THREAD, -(-len(codes) // n_threads(n_jobs)))

        def add(part: slice) -> None:
            kernels.spread_neighbours(
                codes[part],
                trees.steps,
                trees.nodes,
                trees.roots,
                trees.sides,
                trees.ordered,
                trees.share,
                self.starts,
                self.rows,
                self.weight,
                self._of_leaf,
                placed.cell,
                placed.residual,
                location[part],
                deviation[part],
                edges,
                out[part],
            )

        parts = [slice(first, first + step) for first in range(0, len(codes), step)]
        for _ in in_order(parts, add, n_threads(n_jobs)):
            pass
        return out

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, fit together."""
        n_rows = len(self.weight)
        sizes = tuple(self.schema.columns[j].cardinality for j in self.schema.dense)
        require(self.trees.cardinalities == sizes, "the trees are of other columns")
        check_places("the starts of leaves", self.starts, (self.trees.n_leaves + 1,), 0, len(self.rows) + 1)
        rises = bool((np.diff(self.starts) >= 0).all())
        require(rises and self.starts[0] == 0 and self.starts[-1] == len(self.rows), "the leaves overlap")
        require(self.rows.dtype == np.int32, "the rows of leaves are not int32")
        check_places("the rows of leaves", self.rows.astype(np.int64), (len(self.rows),), 0, n_rows)
        check_numbers("the weights of training rows", self.weight, (n_rows,), 0.0)


def cut_schema(schema: Schema, batch: Batch, weight: Array) -> Schema:
    """Return the schema with cut points at quantiles of every column of numbers."""
    cuts = {
        j: quantile_cuts(np.asarray(batch.numbers.values[:, place], np.float64), weight, _BINS).tolist()
        for place, j in enumerate(schema.of_kind("continuous"))
    }
    return schema.with_cuts(cuts)


def grow_neighbours(
    schema: Schema, batch: Batch, rank: Array, weight: Array, fold: Array, seed: int, n_jobs: int | None
) -> tuple[Neighbours, list[Neighbours], RandomTreesParameters]:
    r"""Return the neighbours by all trees, for each group of folds those by the trees that left it out, and p(x).

    Each row is two rows: one of the class "high" with the weight r of its rank in (0, 1), one of the class "low" with
    1 − r. A tree of these classes is a regression tree of the ranks: if the mean rank in a node is p, the variance of
    the ranks in it is that of the classes, p·(1 − p), less a constant of the rows. So are its splits, up to the measure
    of impurity, which is the entropy.

    Parameters
    ----------
    schema : Schema
        Without cut points.
    batch : Batch
        The training rows.
    rank, weight, fold : ndarray (n,)
        `rank` is in (0, 1); folds are numbered from 0.
    """
    cut = cut_schema(schema, batch, weight)
    codes = codes_of(cast(Codes, batch.with_schema(cut).take(cut.dense, "categorical")))
    n, group = len(codes), fold % GROUPS
    both = soft_rows(cut, codes, rank, weight)
    names = cut.rank_by_name(cut.dense)
    density = RandomTrees(ordered_places(cut), trees_for(n, "random"), "mixed", fewest=_FEWEST, seed=seed, rank=names)
    dealt = density.deal(both, np.tile(group, 2), GROUPS)
    trees = dealt.grow(density.growth, n_jobs)
    leaf = leaves_of(codes, trees)
    of_trees = dealt.fold_of_trees(trees.n_trees)
    whole = _in_leaves(cut, trees, leaf, np.arange(n), weight)
    without = []
    for g in range(GROUPS):
        first, last = np.searchsorted(of_trees, [g, g + 1]).tolist()
        part, leaves = trees.take(first, last)
        without.append(_in_leaves(cut, part, leaf[first:last] - leaves.start, np.flatnonzero(group != g), weight))
    counts, _ = dealt.count(trees)
    joint = replace(density, structure=trees, strength=_PSEUDO_ROWS).estimate(counts)
    return whole, without, joint


def ordered_places(schema: Schema) -> tuple[int, ...]:
    """Return the places of the numbers among the dense columns."""
    continuous = schema.of_kind("continuous")
    return tuple(place for place, j in enumerate(schema.dense) if j in continuous)


def soft_rows(schema: Schema, codes: Array, rank: Array, weight: Array) -> CodedRows:
    """Return each row twice: of the class "low" with the weight 1 − r, and of the class "high" with the weight r."""
    n = len(codes)
    return CodedRows(
        schema.cardinalities(schema.dense),
        2,
        2 * n,
        np.zeros(2 * n, np.uint64),  # all rows are kept
        np.concatenate([codes, codes]),
        np.repeat(np.array([0, 1], np.int32), n),
        np.concatenate([(1.0 - rank) * weight, rank * weight]),
    )


def leaves_of(codes: Array, trees: TreeStructure) -> Array:
    """Return the leaf of each row in each tree, (T, n); one that lacks the cell of a split goes to a side at random."""
    leaf = np.empty((trees.n_trees, len(codes)), np.int32)
    kernels.leaves_of_rows(codes, trees.nodes, trees.roots, trees.sides, trees.ordered, trees.share, leaf)
    return leaf


def _in_leaves(schema: Schema, trees: TreeStructure, leaf: Array, rows: Array, weight: Array) -> Neighbours:
    """Return the neighbours by trees from the leaf of each row in each tree, (T, N), of some of the rows."""
    flat = leaf[:, rows].ravel()
    order = np.argsort(flat, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=trees.n_leaves))])
    numbers = np.tile(rows, len(leaf))[order]
    return Neighbours(schema, trees, starts.astype(np.int64), numbers.astype(np.int32), weight)


def rank_of(target: Array, weight: Array) -> Array:
    """Return the share of the rows below each target, half of the equal ones included, (n,), in (0, 1)."""
    distinct, place = np.unique(target, return_inverse=True)
    share = np.bincount(place, weight, len(distinct)) / weight.sum()
    of_value: Array = np.cumsum(share) - share / 2.0
    return np.clip(of_value[place], 1e-6, 1.0 - 1e-6)
