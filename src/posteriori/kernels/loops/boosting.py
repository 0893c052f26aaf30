"""Growth of the trees of a sum: each on the gradient of the log-loss of the sum of those before it.

The histogram of a leaf has the sums of the gradient, of the Hessian and of the rows of each code of the columns that
are tried; that of the larger of two children is what the smaller one leaves. Indices in the inner loops are unsigned:
signed ones are compared with 0 first.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from posteriori.kernels.loops.descent import DEEPEST
from posteriori.kernels.loops.forests import side_of
from posteriori.kernels.loops.splitting import draw
from posteriori.kernels.machine.compiling import kernel

_LEAST_HESSIAN = 1e-3  # of a side, in rows: less has no step
_FEW_CATEGORIES = 4  # whose sets need no smoothing
_GRADIENT, _HESSIAN, _ROWS = 0, 1, 2  # the sums of a histogram


class Leaf(NamedTuple):
    """The limits of the search for the split of a leaf, and arrays that every leaf writes to.

    Attributes
    ----------
    columns : (c,) int64
        The columns that are tried.
    starts : (c + 1,) int64
        Where the codes of each of them start in a histogram.
    ordered : (d,) bool
        Which columns have ordered codes.
    fewest : float
        The least number of rows of a side.
    ridge, smooth : float
        What is added to the Hessian, of every leaf, and beside it of sets of categories.
    listed : (codes,) int64
        Codes in the order of their mean gradient.
    key : (codes,)
        What they are sorted by.
    """

    columns: Any
    starts: Any
    ordered: Any
    fewest: float
    ridge: float
    smooth: float
    listed: Any
    key: Any


@kernel
def take_gradients(log_p, component, weight, direction, p, gradient, hessian):
    r"""Fill p (n, C), and of rows with a weight the gradient along a direction (C,) and the Hessian of the log-loss.

    The gradient is Σ_y u_y (p_y − [y is the class]). The Hessian of one class is p_y(1 − p_y); the mean over classes,
    times C / (C − 1) because the steps of all classes have no sum, is taken for every direction.
    """
    n_classes = len(direction)
    for i in range(len(log_p)):
        most, total = -math.inf, 0.0
        for z in range(n_classes):
            most = max(most, log_p[i, z])
        for z in range(n_classes):
            p[i, z] = math.exp(log_p[i, z] - most)
            total += p[i, z]
        along, curvature = -direction[component[i]], 0.0
        for z in range(n_classes):
            p[i, z] /= total
            along += direction[z] * p[i, z]
            curvature += p[i, z] * (1.0 - p[i, z])
        gradient[i] = weight[i] * along
        hessian[i] = weight[i] * curvature / (n_classes - 1.0)
    return 0


@kernel(is_part=True)
def _add_up(codes, rows, leaf, gradient, hessian, sums):
    """Fill the histogram of some rows, (codes, 3)."""
    columns, starts = leaf.columns, leaf.starts
    for k in range(len(sums)):
        for s in range(3):
            sums[k, s] = 0.0
    for i in range(len(rows)):
        row = np.uint64(rows[i])
        g, h = gradient[row], hessian[row]
        for j in range(len(columns)):
            place = np.uint64(starts[j]) + np.uint64(codes[row, np.uint64(columns[j])])
            sums[place, np.uint64(_GRADIENT)] += g
            sums[place, np.uint64(_HESSIAN)] += h
            sums[place, np.uint64(_ROWS)] += 1.0


@kernel(is_part=True)
def _list_codes(sums, first, width, is_ordered, leaf):
    """Write the codes that occur to leaf.listed, sets of categories by their mean gradient; return how many."""
    n = 0
    for code in range(1, width):
        if sums[first + code, _ROWS] > 0.0:
            leaf.listed[n] = code
            leaf.key[n] = sums[first + code, _GRADIENT] / (sums[first + code, _HESSIAN] + leaf.smooth)
            n += 1
    if not is_ordered:
        place = np.argsort(leaf.key[:n])
        found = leaf.listed[:n].copy()
        for k in range(n):
            leaf.listed[k] = found[place[k]]
    return n


@kernel(is_part=True)
def _find_split(sums, leaf):
    """Return the gain of the best split of a leaf, the place of its column, and how many codes go left; gain 0: none.

    The gain of a step along the direction is G² / (H + λ) of each side less that of both. Rows without the cell are on
    both sides and do not count.
    """
    best, column, cut = 0.0, -1, 0
    for j in range(len(leaf.columns)):
        first, width = leaf.starts[j], leaf.starts[j + 1] - leaf.starts[j]
        g, h, n = 0.0, 0.0, 0.0
        for code in range(1, width):
            g += sums[first + code, _GRADIENT]
            h += sums[first + code, _HESSIAN]
            n += sums[first + code, _ROWS]
        if n < 2.0 * leaf.fewest:
            continue
        is_ordered = leaf.ordered[leaf.columns[j]]
        n_codes = _list_codes(sums, first, width, is_ordered, leaf)
        ridge = leaf.ridge if is_ordered or n_codes <= _FEW_CATEGORIES else leaf.ridge + leaf.smooth
        whole = g * g / (h + ridge)
        g_left, h_left, n_left = 0.0, 0.0, 0.0
        for k in range(n_codes - 1):
            place = first + leaf.listed[k]
            g_left += sums[place, _GRADIENT]
            h_left += sums[place, _HESSIAN]
            n_left += sums[place, _ROWS]
            if n_left < leaf.fewest or h_left < _LEAST_HESSIAN:
                continue
            if n - n_left < leaf.fewest or h - h_left < _LEAST_HESSIAN:
                break
            g_right = g - g_left
            gain = g_left * g_left / (h_left + ridge) + g_right * g_right / (h - h_left + ridge) - whole
            if gain > best:
                best, column, cut = gain, j, k + 1
    return best, column, cut


@kernel(is_part=True)
def _divide(codes, rows, column, is_ordered, cut, sides, start, share, spare, state):
    """Move the rows that go left before the others, and return how many; a row without a side goes by chance."""
    n_left, n_right = 0, 0
    for i in range(len(rows)):
        row = rows[i]
        code = np.int64(codes[row, column])
        if code == 0:
            goes_left = draw(state) < share
        elif is_ordered:
            goes_left = code <= cut
        else:
            goes_left = sides[start + code] == 1
        if goes_left:
            rows[n_left] = row
            n_left += 1
        else:
            spare[n_right] = row
            n_right += 1
    for i in range(n_right):
        rows[n_left + i] = spare[i]
    return n_left


@kernel(is_part=True)
def _leaf_of_most_gain(nodes, gain, depth):
    """Return the leaf whose split gains most; −1 if none gains anything."""
    node, most = -1, 0.0
    for v in range(len(nodes)):
        if nodes[v, 0] < 0 and gain[v] > most and depth[v] < DEEPEST:
            node, most = v, gain[v]
    return node


@kernel(is_part=True)
def _read_split(sums, leaf, j, n_left, sides, start):
    """Return the cut of a split, of which so many codes go left, and their share of the rows; write sides of a set."""
    first, width = leaf.starts[j], leaf.starts[j + 1] - leaf.starts[j]
    is_ordered, at_left, at_all = leaf.ordered[leaf.columns[j]], 0.0, 0.0
    for k in range(_list_codes(sums, first, width, is_ordered, leaf)):
        n = sums[first + leaf.listed[k], _ROWS]
        at_all += n
        at_left += n if k < n_left else 0.0
        if not is_ordered:
            sides[start + leaf.listed[k]] = 1 if k < n_left else 2
    return leaf.listed[n_left - 1] if is_ordered else start, (at_left + 0.5) / (at_all + 1.0)


@kernel
def grow_summand(codes, rows, columns, starts, ordered, gradient, hessian, most_leaves, fewest, ridge, smooth, seed):
    """Grow a tree on the gradients of some rows, the leaf of the greatest gain first.

    Returns its nodes, the share of each that goes left and the sides of categories, as `grow_tree` does; and the first
    row of each node and the number of its rows (nodes, 2), in the order that `rows` has in the end.

    Parameters
    ----------
    codes : (n, d) uint8 or uint16, 0 where missing
    rows : (m,) int32; they are reordered
    columns, starts, ordered, fewest, ridge, smooth : as in `Leaf`
    gradient, hessian : (n,), with the weights of rows
    most_leaves : int
    """
    width, size = 0, starts[len(columns)]
    for j in range(len(columns)):
        width = max(width, starts[j + 1] - starts[j])
    leaf = Leaf(columns, starts, ordered, fewest, ridge, smooth, np.empty(width, np.int64), np.empty(width))
    most_nodes = 2 * most_leaves - 1
    nodes, share = np.zeros((most_nodes, 3), np.int32), np.full(most_nodes, 0.5)
    ends, depth = np.zeros((most_nodes, 2), np.int64), np.zeros(most_nodes, np.int64)
    slot, split, gain = np.zeros(most_nodes, np.int64), np.zeros((most_nodes, 2), np.int64), np.zeros(most_nodes)
    sums, sides = np.empty((most_leaves, size, 3)), np.empty(0, np.uint8)
    spare, state = np.empty(len(rows), np.int32), np.empty(1, np.uint64)
    state[0] = seed
    nodes[0, 0], ends[0, 1] = -1, len(rows)
    _add_up(codes, rows, leaf, gradient, hessian, sums[0])
    gain[0], split[0, 0], split[0, 1] = _find_split(sums[0], leaf)
    n_nodes, n_leaves = 1, 1
    while n_leaves < most_leaves:
        node = _leaf_of_most_gain(nodes[:n_nodes], gain, depth)
        if node < 0:
            break
        j, of_node, start = split[node, 0], sums[slot[node]], len(sides)
        column, is_ordered = columns[j], ordered[columns[j]]
        if not is_ordered:
            sides = np.concatenate((sides, np.zeros(starts[j + 1] - starts[j], np.uint8)))
        cut, share[node] = _read_split(of_node, leaf, j, split[node, 1], sides, start)
        begin, end, child = ends[node, 0], ends[node, 0] + ends[node, 1], n_nodes
        n_left = _divide(codes, rows[begin:end], column, is_ordered, cut, sides, start, share[node], spare, state)
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = column, cut, child
        for v in (child, child + 1):
            nodes[v, 0], depth[v] = -1, depth[node] + 1
        ends[child, 0], ends[child, 1] = begin, n_left
        ends[child + 1, 0], ends[child + 1, 1] = begin + n_left, end - begin - n_left
        n_nodes, n_leaves = n_nodes + 2, n_leaves + 1
        if n_leaves == most_leaves:
            break
        small = child if 2 * n_left <= end - begin else child + 1
        large = 2 * child + 1 - small
        slot[large], slot[small] = slot[node], n_leaves - 1
        of_small, of_large = sums[slot[small]], sums[slot[large]]
        _add_up(codes, rows[ends[small, 0] : ends[small, 0] + ends[small, 1]], leaf, gradient, hessian, of_small)
        for k in range(size):
            for s in range(3):
                of_large[k, s] -= of_small[k, s]
        for v in (small, large):
            gain[v], split[v, 0], split[v, 1] = _find_split(sums[slot[v]], leaf)
    return nodes[:n_nodes], share[:n_nodes], sides, ends[:n_nodes]


@kernel
def fill_steps(p, component, weight, rows, nodes, ends, ridge, rate, values):
    """Fill the values of leaves (nodes, C) with Newton's step of each class: −rate · G / (H · C / (C − 1) + λ)."""
    n_classes = values.shape[1]
    g, h = np.empty(n_classes), np.empty(n_classes)
    for v in range(len(nodes)):
        if nodes[v, 0] >= 0:
            continue
        for z in range(n_classes):
            g[z], h[z] = 0.0, 0.0
        for k in range(ends[v, 0], ends[v, 0] + ends[v, 1]):
            i = rows[k]
            for z in range(n_classes):
                g[z] += weight[i] * p[i, z]
                h[z] += weight[i] * p[i, z] * (1.0 - p[i, z])
            g[component[i]] -= weight[i]
        for z in range(n_classes):
            values[v, z] = -rate * g[z] / (h[z] * n_classes / (n_classes - 1.0) + ridge)
    return 0


@kernel
def add_values(codes, nodes, share, sides, ordered, values, out):
    """Add the values (nodes, C) of the leaf of each row to out (n, C), of both sides by their shares without a cell.

    Fills the values of inner nodes, the means of their children by the share, which `nothing known` has at the root.
    """
    n_classes = values.shape[1]
    for v in range(len(nodes) - 1, -1, -1):
        if nodes[v, 0] >= 0:
            for z in range(n_classes):
                left, right = values[nodes[v, 2], z], values[nodes[v, 2] + 1, z]
                values[v, z] = share[v] * left + (1.0 - share[v]) * right
    waiting, weights = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
    for i in range(len(codes)):
        waiting[0], weights[0], n_waiting = 0, 1.0, 1
        while n_waiting > 0:
            n_waiting -= 1
            node, w = waiting[n_waiting], weights[n_waiting]
            column = nodes[node, 0]
            while column >= 0:
                code, cut, child = np.int64(codes[i, column]), nodes[node, 1], nodes[node, 2]
                side = side_of(code, cut, ordered[column], sides)
                if side == 0:
                    waiting[n_waiting], weights[n_waiting] = child + 1, w * (1.0 - share[node])
                    n_waiting += 1
                    w *= share[node]
                    side = 1
                node = child + side - 1
                column = nodes[node, 0]
            for z in range(n_classes):
                out[i, z] += w * values[node, z]
    return 0
