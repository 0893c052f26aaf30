"""The training rows that share leaves with a row, and the distribution of a number that they give."""

import numpy as np

from posteriori.kernels.loops.descent import DEEPEST, NO_LEAF, descend, make_scratch
from posteriori.kernels.loops.forests import side_of
from posteriori.kernels.machine.compiling import kernel

_GUESSES = 4096  # equal parts of the edges
_TILE = 1024  # rows whose leaves are held at a time


@kernel(is_part=True)
def _guesses(edges):
    """Return the interval at the start of each of many equal parts of the edges, their start, and their density."""
    first, last = edges[1], edges[len(edges) - 2]
    per_unit = _GUESSES / max(last - first, 1e-300)
    guess, k = np.empty(_GUESSES, np.int32), 1
    for i in range(_GUESSES):
        while k < len(edges) - 3 and edges[k + 1] <= first + i / per_unit:
            k += 1
        guess[i] = k
    return guess, first, per_unit


@kernel(is_part=True)
def _cell(position, edges, guess, first, per_unit):
    """Return the index of the interval of ascending edges that holds a position; the first or the last beyond them."""
    if not position >= first:  # NaN too, which no index may follow from
        return 0
    if position >= edges[len(edges) - 2]:
        return len(edges) - 2
    k = guess[min(np.int64((position - first) * per_unit), _GUESSES - 1)]
    while position < edges[k]:
        k -= 1
    while position >= edges[k + 1]:
        k += 1
    return k


@kernel(is_part=True)
def _add_leaf(leaf, w, starts, rows, near, found, n_found):
    """Add a weight to those of the rows of a leaf, and list those that had none; return how many are listed."""
    if w == 0.0:  # a row would be listed again and again
        return n_found
    for k in range(starts[leaf], starts[leaf + 1]):
        i = rows[k]
        if near[i] == 0.0:
            found[n_found] = i
            n_found += 1
        near[i] += w
    return n_found


@kernel(is_part=True)
def _add_leaves(row, t, of_leaf, nodes, roots, sides, ordered, share, starts, rows, near, found, n_found):
    """Do the same for all leaves that a row reaches in a tree: a missing cell sends it down both sides."""
    waiting, weights = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
    waiting[0], weights[0], n_waiting = roots[t], 1.0, 1
    while n_waiting > 0:
        n_waiting -= 1
        node, w = waiting[n_waiting], weights[n_waiting]
        column = nodes[node, 0]
        while column >= 0:
            side, child = side_of(np.int64(row[column]), nodes[node, 1], ordered[column], sides), nodes[node, 2]
            if side == 0:
                waiting[n_waiting], weights[n_waiting] = child + 1, w * (1.0 - share[node])
                n_waiting += 1
                w *= share[node]
                side = 1
            node = child + side - 1
            column = nodes[node, 0]
        leaf = nodes[node, 2]
        n_found = _add_leaf(leaf, w * of_leaf[leaf], starts, rows, near, found, n_found)
    return n_found


@kernel
def spread_neighbours(
    codes,
    steps,
    nodes,
    roots,
    sides,
    ordered,
    share,
    starts,
    rows,
    row_weight,
    of_leaf,
    cell,
    residual,
    location,
    deviation,
    edges,
    out,
):
    """Add the weights of the neighbours of each row to the cells of their targets, out (n, 1 + M, G).

    First those of the targets themselves, `cell` (N,); then for each of M models those of its location in the row,
    (n, M), plus the residual of the neighbour, (N, M), among the edges (G + 1,). Where `deviation` (n,) is positive, a
    normal deviation is added, by a quadrature of five points (Abramowitz & Stegun 1964, table 25.10). `of_leaf` is the
    inverse of the weight of the rows of each leaf, divided by the number of trees.
    """
    at = np.array([-2.8569700138728056, -1.3556261799742659, 0.0, 1.3556261799742659, 2.8569700138728056])
    mass = np.array(
        [0.011257411327720691, 0.22207592200561266, 0.5333333333333333, 0.22207592200561266, 0.011257411327720691]
    )
    near, found, n_trees = np.zeros(len(cell)), np.empty(len(cell), np.int64), len(roots) - 1
    guess, lowest, per_unit = _guesses(edges)
    scratch = make_scratch(len(codes))
    reached = np.empty((min(_TILE, len(codes)), n_trees), np.int32)
    for first in range(0, len(codes), _TILE):
        n_rows = min(len(codes) - first, _TILE)
        for t in range(n_trees):
            descend(codes, first, n_rows, steps, t, scratch)
            for r in range(n_rows):
                reached[r, t] = scratch.reached[r]
        for r in range(n_rows):
            i, n_found = first + r, 0
            for t in range(n_trees):
                if reached[r, t] > NO_LEAF:
                    leaf = ~reached[r, t]
                    n_found = _add_leaf(leaf, of_leaf[leaf], starts, rows, near, found, n_found)
                else:
                    n_found = _add_leaves(
                        codes[i], t, of_leaf, nodes, roots, sides, ordered, share, starts, rows, near, found, n_found
                    )
            for k in range(n_found):
                j = found[k]
                w = near[j] * row_weight[j]
                near[j] = 0.0
                out[i, 0, cell[j]] += w
                for m in range(residual.shape[1]):
                    position = location[i, m] + residual[j, m]
                    if deviation[i] > 0.0:
                        for q in range(5):
                            moved = position + deviation[i] * at[q]
                            out[i, m + 1, _cell(moved, edges, guess, lowest, per_unit)] += w * mass[q]
                    else:
                        out[i, m + 1, _cell(position, edges, guess, lowest, per_unit)] += w
    return 0


@kernel
def mean_of_leaves(codes, nodes, roots, sides, ordered, share, value, out):
    """Add to out (n,) the mean over the trees of the value of the leaf that each row reaches.

    A missing cell sends a row down both sides, whose values have the weights of their shares.
    """
    waiting, weights, n_trees = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2), len(roots) - 1
    for t in range(n_trees):
        for i in range(len(codes)):
            waiting[0], weights[0], n_waiting = roots[t], 1.0 / n_trees, 1
            while n_waiting > 0:
                n_waiting -= 1
                node, w = waiting[n_waiting], weights[n_waiting]
                column = nodes[node, 0]
                while column >= 0:
                    side = side_of(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides)
                    child = nodes[node, 2]
                    if side == 0:
                        waiting[n_waiting], weights[n_waiting] = child + 1, w * (1.0 - share[node])
                        n_waiting += 1
                        w *= share[node]
                        side = 1
                    node = child + side - 1
                    column = nodes[node, 0]
                out[i] += w * value[nodes[node, 2]]
    return 0
