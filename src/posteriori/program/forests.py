"""The scores of trees, as functions of arrays: rows go down all trees level by level, in lines of node and weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.densities import RandomTreesParameters, SummedTreesParameters
from posteriori.kernels.loops.forests import ARITHMETIC, SUM
from posteriori.program.arrays import Arrays, log_sum_exp, segment_log_sums, segment_sums

Parameters = RandomTreesParameters | SummedTreesParameters


def of_forest(codes: Arrays, parameters: Parameters) -> Arrays:
    """Return the mean over the trees of log Σ_l exp(w_l)·p(y | l) / p(y), over the leaves l that a row reaches, (n, Z).

    w_l adds up along the path. Combined by the arithmetic mean it is the log of the mean; of a sum of trees the mean of
    exp(w_l)·value.
    """
    xp, n_trees = codes.__array_namespace__(), parameters.trees.n_trees
    row, tree, node, weight = _reached(codes, parameters)
    values = xp.take(xp.asarray(parameters.given_node), node, axis=0)
    of_rows = xp.astype(codes[:, :1], xp.float64) * 0.0 + np.zeros((1, values.shape[1]))
    if parameters.combine == SUM:
        return segment_sums(xp.exp(weight)[:, None] * values, row, of_rows) / n_trees
    per_tree = xp.reshape(of_rows[:, None, :] + np.zeros((1, n_trees, 1)), (-1, values.shape[1]))
    of_trees = segment_log_sums(weight[:, None] + values, row * n_trees + tree, per_tree)
    of_trees = xp.reshape(of_trees, (-1, n_trees, values.shape[1]))
    if parameters.combine != ARITHMETIC:
        return xp.mean(of_trees, axis=1)
    log_p = of_trees + np.log(parameters.prior)
    return log_sum_exp(log_p - log_sum_exp(log_p)[:, :, None], axis=1) - np.log(parameters.prior)


def _reached(codes: Arrays, parameters: Parameters) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Return the row, the tree, the leaf and the log weight of each line, (L,) each.

    Where the cell of a split is missing, or its category led to neither side, a line becomes one for each side, with
    their shares.
    """
    xp, trees, splits = codes.__array_namespace__(), parameters.trees, _Splits(parameters)
    first, flat, d = xp.zeros_like(codes[:, 0]), xp.reshape(codes, (-1,)), codes.shape[1]
    number = xp.cumulative_sum(first + 1, axis=0) - 1
    row = xp.reshape(number[:, None] + np.zeros((1, trees.n_trees), np.int64), (-1,))
    tree = xp.reshape(first[:, None] + np.arange(trees.n_trees)[None, :], (-1,))
    node = xp.take(xp.asarray(trees.roots[:-1]), tree, axis=0)
    weight = xp.astype(xp.zeros_like(node), xp.float64)
    for _ in range(trees.depth()):

        def at(table: Any, nodes: Arrays = node) -> Arrays:
            return xp.take(xp.asarray(table), nodes, axis=0)

        code = xp.take(flat, row * d + at(splits.column), axis=0)
        side, is_leaf, left = splits.side(code, node), at(splits.is_leaf), at(splits.child)
        both = ~is_leaf & ((code == 0) | (side == 0))
        chosen = left + xp.astype((side == 2) & ~both & ~is_leaf, xp.int64)
        twice = xp.nonzero(both)[0]
        step = xp.where(both, at(splits.log_left), at(splits.log_edge, chosen))
        of_right = xp.take(weight, twice, axis=0) + xp.take(at(splits.log_right), twice, axis=0)
        node = xp.concat([chosen, xp.take(left, twice, axis=0) + 1], axis=0)
        weight = xp.concat([weight + xp.where(is_leaf, 0.0, step), of_right], axis=0)
        row = xp.concat([row, xp.take(row, twice, axis=0)], axis=0)
        tree = xp.concat([tree, xp.take(tree, twice, axis=0)], axis=0)
    return row, tree, node, weight


class _Splits:
    """The nodes of all trees as tables; a leaf is its own left child."""

    def __init__(self, parameters: Parameters) -> None:
        column, cut, child = parameters.trees.nodes.T
        self.is_leaf = column < 0
        self.column = np.maximum(column, 0)
        self.child = np.where(self.is_leaf, np.arange(len(column)), child)
        self.log_edge = parameters.log_edge
        with np.errstate(divide="ignore"):
            self.log_left, self.log_right = np.log(parameters.share), np.log1p(-parameters.share)
        self._cut = cut
        self._ordered = np.asarray(parameters.trees.ordered, np.bool_)[self.column] | self.is_leaf
        self._sides = np.append(np.asarray(parameters.trees.sides, np.int64), 0)

    def side(self, code: Arrays, node: Arrays) -> Arrays:
        """Return the side of each line, 1 or 2, or 0 where a category leads to neither."""
        xp = code.__array_namespace__()
        cut = xp.take(xp.asarray(self._cut), node, axis=0)
        of_order = xp.astype(code > cut, xp.int64) + 1
        if self._ordered.all():
            return of_order
        is_ordered = xp.take(xp.asarray(self._ordered), node, axis=0)
        place = xp.where(is_ordered, xp.zeros_like(cut) + len(self._sides) - 1, cut + code)
        return xp.where(is_ordered, of_order, xp.take(xp.asarray(self._sides), place, axis=0))
