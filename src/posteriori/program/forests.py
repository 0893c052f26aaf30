"""The scores of trees, as functions of arrays: rows go down all trees level by level, in lines of node and weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.densities import RandomTreesParameters, SummedTreesParameters
from posteriori.kernels.loops.forests import ARITHMETIC, SUM
from posteriori.program.arrays import log_sum_exp, segment_log_sums, segment_sums
from posteriori.support.arrays import Arrays

Parameters = RandomTreesParameters | SummedTreesParameters

_AT_ONCE = 32  # trees of a graph: their lines are in memory together


def of_forest(codes: Arrays, parameters: Parameters) -> Arrays:
    """Return the mean over the trees of log Σ_l exp(w_l)·p(y | l) / p(y), over the leaves l that a row reaches, (n, Z).

    w_l adds up along the path. Combined by the arithmetic mean it is the log of the mean; of a sum of trees the mean of
    exp(w_l)·value.
    """
    xp, n_trees = codes.__array_namespace__(), parameters.trees.n_trees
    splits = _Splits(parameters, xp)
    size = n_trees if xp is np else _AT_ONCE
    groups = [range(first, min(first + size, n_trees)) for first in range(0, n_trees, size)]
    each = [_of_trees(codes, parameters, splits, trees) for trees in groups]
    if parameters.combine == ARITHMETIC:
        log_p = (each[0] if len(each) == 1 else xp.concat(each, axis=1)) + np.log(parameters.prior)
        return log_sum_exp(log_p - log_sum_exp(log_p)[:, :, None], axis=1) - np.log(parameters.prior)
    total = each[0]
    for of_group in each[1:]:
        total = total + of_group
    return total / n_trees


def _of_trees(codes: Arrays, parameters: Parameters, splits: _Splits, trees: range) -> Arrays:
    """Return the sum over some trees, (n, Z), or what each adds to an arithmetic mean, (n, trees, Z)."""
    xp, n_classes = codes.__array_namespace__(), len(parameters.prior)
    row, tree, node, weight = _reached(codes, parameters, splits, trees)
    values = xp.take(splits.given_node, node, axis=0)
    of_rows = xp.astype(codes[:, :1], xp.float64) * 0.0 + np.zeros((1, n_classes))
    if parameters.combine == SUM:
        return segment_sums(xp.exp(weight)[:, None] * values, row, of_rows)
    per_tree = xp.reshape(of_rows[:, None, :] + np.zeros((1, len(trees), 1)), (-1, n_classes))
    of_trees = segment_log_sums(weight[:, None] + values, row * len(trees) + tree, per_tree)
    of_trees = xp.reshape(of_trees, (-1, len(trees), n_classes))
    return of_trees if parameters.combine == ARITHMETIC else xp.sum(of_trees, axis=1)


def _reached(
    codes: Arrays, parameters: Parameters, splits: _Splits, trees: range
) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Return the row, the tree, the leaf and the log weight of each line, (L,) each.

    Where the cell of a split is missing, or its category led to neither side, a line becomes one for each side, with
    their shares.
    """
    xp = codes.__array_namespace__()
    first, flat, d = xp.zeros_like(codes[:, 0]), xp.reshape(codes, (-1,)), len(parameters.cardinalities)
    number = xp.cumulative_sum(first + 1, axis=0) - 1
    row = xp.reshape(number[:, None] + np.zeros((1, len(trees)), np.int64), (-1,))
    tree = xp.reshape(first[:, None] + np.arange(len(trees))[None, :], (-1,))
    node = xp.take(xp.asarray(parameters.trees.roots[trees.start : trees.stop]), tree, axis=0)
    weight = xp.astype(xp.zeros_like(node), xp.float64)
    for _ in range(parameters.trees.depth()):

        def at(table: Arrays, nodes: Arrays = node) -> Arrays:
            return xp.take(table, nodes, axis=0)

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

    def __init__(self, parameters: Parameters, xp: Any) -> None:
        column, cut, child = parameters.trees.nodes.T
        is_leaf, of_split = column < 0, np.maximum(column, 0)
        is_ordered = np.asarray(parameters.trees.ordered, np.bool_)[of_split] | is_leaf
        sides = np.append(np.asarray(parameters.trees.sides, np.int64), 0)
        self._all_ordered, self._no_side = bool(is_ordered.all()), len(sides) - 1
        with np.errstate(divide="ignore"):
            shares = np.log(parameters.share), np.log1p(-parameters.share)
        tables = (is_leaf, of_split, np.where(is_leaf, np.arange(len(column)), child), parameters.log_edge, *shares)
        self.is_leaf, self.column, self.child, self.log_edge, self.log_left, self.log_right = map(xp.asarray, tables)
        self.given_node = xp.asarray(parameters.given_node)
        self._cut, self._is_ordered, self._sides = map(xp.asarray, (np.ascontiguousarray(cut), is_ordered, sides))

    def side(self, code: Arrays, node: Arrays) -> Arrays:
        """Return the side of each line, 1 or 2, or 0 where a category leads to neither."""
        xp = code.__array_namespace__()
        cut = xp.take(self._cut, node, axis=0)
        of_order = xp.astype(code > cut, xp.int64) + 1
        if self._all_ordered:
            return of_order
        is_ordered = xp.take(self._is_ordered, node, axis=0)
        place = xp.where(is_ordered, xp.zeros_like(cut) + self._no_side, cut + code)
        return xp.where(is_ordered, of_order, xp.take(self._sides, place, axis=0))
