"""The training rows that share leaves with a row, and the distribution of a number that they give."""

import numpy as np

from posteriori.kernels.loops.descent import DEEPEST
from posteriori.kernels.loops.forests import _side
from posteriori.kernels.machine.compiling import kernel


@kernel(is_part=True)
def _cell(position, edges):
    """Return the index of the interval of ascending edges that holds a position; the first or the last beyond them."""
    low, high = 0, len(edges) - 2
    while low < high:
        middle = (low + high) // 2
        if position < edges[middle + 1]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel(is_part=True)
def _find_neighbours(row, nodes, roots, sides, ordered, share, starts, rows, row_weight, near, found):
    """Add to near (N,) the weight of each training row, and list these in found; return how many they are.

    Each tree has the weight 1/T, which its leaf shares out to its rows in proportion to their weights. A missing cell
    sends the row down both sides, with their shares.
    """
    waiting, weights = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
    n_trees, n_found = len(roots) - 1, 0
    for t in range(n_trees):
        waiting[0], weights[0], n_waiting = roots[t], 1.0 / n_trees, 1
        while n_waiting > 0:
            n_waiting -= 1
            node, w = waiting[n_waiting], weights[n_waiting]
            column = nodes[node, 0]
            while column >= 0:
                side, child = _side(np.int64(row[column]), nodes[node, 1], ordered[column], sides), nodes[node, 2]
                if side == 0:
                    waiting[n_waiting], weights[n_waiting] = child + 1, w * (1.0 - share[node])
                    n_waiting += 1
                    w *= share[node]
                    side = 1
                node = child + side - 1
                column = nodes[node, 0]
            leaf = nodes[node, 2]
            total = 0.0
            for k in range(starts[leaf], starts[leaf + 1]):
                total += row_weight[rows[k]]
            if total <= 0.0:
                continue
            for k in range(starts[leaf], starts[leaf + 1]):
                i = rows[k]
                if near[i] == 0.0:
                    found[n_found] = i
                    n_found += 1
                near[i] += w * row_weight[i] / total
    return n_found


@kernel
def spread_neighbours(
    codes,
    nodes,
    roots,
    sides,
    ordered,
    share,
    starts,
    rows,
    row_weight,
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
    normal deviation is added, by a quadrature of five points (Abramowitz & Stegun 1964, table 25.10).
    """
    at = np.array([-2.8569700138728056, -1.3556261799742659, 0.0, 1.3556261799742659, 2.8569700138728056])
    mass = np.array(
        [0.011257411327720691, 0.22207592200561266, 0.5333333333333333, 0.22207592200561266, 0.011257411327720691]
    )
    near, found = np.zeros(len(cell)), np.empty(len(cell), np.int64)
    for i in range(len(codes)):
        n_found = _find_neighbours(codes[i], nodes, roots, sides, ordered, share, starts, rows, row_weight, near, found)
        for k in range(n_found):
            j = found[k]
            w = near[j]
            near[j] = 0.0
            out[i, 0, cell[j]] += w
            for m in range(residual.shape[1]):
                position = location[i, m] + residual[j, m]
                if deviation[i] > 0.0:
                    for q in range(5):
                        out[i, m + 1, _cell(position + deviation[i] * at[q], edges)] += w * mass[q]
                else:
                    out[i, m + 1, _cell(position, edges)] += w
    return 0
