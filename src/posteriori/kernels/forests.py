"""Trees with class distributions in their leaves: counts, smoothed posteriors, scores of rows, and their parts.

A node is (column, cut, child), as `growing.grow_tree` returns it; the child of a leaf is its number. `roots` holds the
first node of each tree, and last the number of nodes.
"""

import math

import numpy as np

from posteriori.kernels.compiling import kernel
from posteriori.kernels.descent import DEEPEST, MOST_ROWS, NO_LEAF, descend, make_scratch


@kernel(is_part=True)
def _side(code, cut, is_ordered, sides):
    """Return the side to which a code goes: 1 left, 2 right, 0 both."""
    if code == 0:
        return 0
    if is_ordered:
        return 1 if code <= cut else 2
    return int(sides[cut + code])


@kernel
def count_leaves(
    codes, component, weight, steps, nodes, share, sides, ordered, roots, fold, fold_of_tree, out, outside
):
    """Add the weight of each row to its leaf in each tree, out (leaves, Z); outside those of its own fold to `outside`.

    A row that lacks the cell of a split goes down both sides, with weights in proportion to their shares. `outside` may
    be empty.
    """
    waiting, weights = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
    scratch = make_scratch(len(codes))
    for first in range(0, len(codes), MOST_ROWS):
        n_rows = min(len(codes) - first, MOST_ROWS)
        for t in range(len(roots) - 1):
            descend(codes, first, n_rows, steps, t, scratch)
            for k in range(n_rows):
                i, leaf = np.uint64(first + k), scratch.reached[k]
                counts = len(outside) > 0 and fold[i] != fold_of_tree[t]
                if leaf > NO_LEAF:
                    out[np.uint64(~leaf), np.uint64(component[i])] += weight[i]
                    if counts:
                        outside[np.uint64(~leaf), np.uint64(component[i])] += weight[i]
                    continue
                waiting[0], weights[0], n_waiting = roots[t], weight[i], 1
                while n_waiting > 0:
                    n_waiting -= 1
                    node, w = waiting[n_waiting], weights[n_waiting]
                    column = nodes[node, 0]
                    while column >= 0:
                        side = _side(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides)
                        child = nodes[node, 2]
                        if side == 0:
                            waiting[n_waiting], weights[n_waiting] = child + 1, w * (1.0 - share[node])
                            n_waiting += 1
                            w *= share[node]
                            side = 1
                        node = child + side - 1
                        column = nodes[node, 0]
                    out[nodes[node, 2], component[i]] += w
                    if counts:
                        outside[nodes[node, 2], component[i]] += w
    return 0


@kernel(is_part=True)
def _cell_of_node(node, nodes, parent, low, high):
    """Return the least and the greatest code of the column of a node that the splits above it leave."""
    column, lower, above = nodes[node, 0], node, parent[node]
    while above >= 0:
        if nodes[above, 0] == column:
            if lower == nodes[above, 2]:
                high = min(high, nodes[above, 1])
            else:
                low = max(low, nodes[above, 1] + 1)
        lower, above = above, parent[above]
    return low, high


@kernel
def weigh_edges(counts, nodes, roots, sides, ordered, mass, starts, weight, share, log_edge):
    """Add up the weights in leaves (leaves, Z), and estimate the shares of the sides.

    Fills weight (nodes, Z); share (nodes,), the share that goes left; and log_edge (nodes,), the log of what the edge
    into a node multiplies p(x) by: its share, divided by that of its codes under p(x_j) within the cell. `mass` holds
    p(x_j) of each code, column j from starts[j].
    """
    n_nodes, n_classes = len(nodes), counts.shape[1]
    parent = np.full(n_nodes, -1, np.int64)
    for v in range(n_nodes - 1, -1, -1):
        child = nodes[v, 2]
        if nodes[v, 0] < 0:
            for z in range(n_classes):
                weight[v, z] = counts[child, z]
            continue
        parent[child], parent[child + 1] = v, v
        n_left, n_right = 0.5, 0.5
        for z in range(n_classes):
            n_left += weight[child, z]
            n_right += weight[child + 1, z]
            weight[v, z] = weight[child, z] + weight[child + 1, z]
        share[v] = n_left / (n_left + n_right)
    for t in range(len(roots) - 1):
        log_edge[roots[t]] = 0.0
    for v in range(n_nodes):
        j, cut, child = nodes[v, 0], nodes[v, 1], nodes[v, 2]
        if j < 0:
            continue
        low, high = 1, starts[j + 1] - starts[j] - 1
        if ordered[j]:
            low, high = _cell_of_node(v, nodes, parent, low, high)
        at_left, at_right = 0.0, 0.0
        for code in range(low, high + 1):
            mass_of_code, side = mass[starts[j] + code], _side(code, cut, ordered[j], sides)
            at_left += mass_of_code if side == 1 else 0.0
            at_right += mass_of_code if side == 2 else 0.0
        log_whole = math.log(at_left + at_right)
        log_edge[child] = math.log(share[v]) - math.log(at_left) + log_whole
        log_edge[child + 1] = math.log(1.0 - share[v]) - math.log(at_right) + log_whole
    return 0


@kernel(is_part=True)
def level_of(n, n_levels):
    """Return the whole part of the logarithm to base 4 of the weight n of a node, from 0 to before n_levels.

    n is a sum over classes, whose order must not move it below a power of 4.
    """
    n *= 1.0 + 1e-12
    return min(int(math.log2(n)) // 2, n_levels - 1) if n >= 4.0 else 0


@kernel
def smooth_nodes(weight, nodes, roots, share, strengths, prior, change, leaves_only, given_node, of_tree):
    """Fill given_node (nodes, Z), log p(y | node) − log p_t(y), from the weights in the nodes; and of_tree (T, Z), p_t.

    p(y | node) = (n_y + s·p(y | parent)) / (n + s) in the leaves, and above them the mean over the leaves below with
    their shares. s is strengths[is leaf, level_of(n)]. p_t is that of the root. If `change` (leaves, Z) is not empty,
    p(y | leaf) ∝ (n_y + …)·exp(change).
    """
    n_nodes, n_classes = weight.shape
    smoothed = np.empty((n_nodes, n_classes))
    for t in range(len(roots) - 1):
        first, last = roots[t], roots[t + 1]
        for z in range(n_classes):
            smoothed[first, z] = prior[z]  # what the root backs off to
        for v in range(first, last):
            n = 0.0
            for z in range(n_classes):
                n += weight[v, z]
            strength = strengths[1 if nodes[v, 0] < 0 else 0, level_of(n, strengths.shape[1])]
            scale = 1.0 / (n + strength)
            for z in range(n_classes):
                smoothed[v, z] = (weight[v, z] + strength * smoothed[v, z]) * scale
            if nodes[v, 0] >= 0:
                child = nodes[v, 2]
                for z in range(n_classes):
                    smoothed[child, z] = smoothed[v, z]
                    smoothed[child + 1, z] = smoothed[v, z]
        _average(smoothed, nodes, first, last, share, change)
        for v in range(last - 1, first - 1, -1):
            if nodes[v, 0] < 0 or not leaves_only:
                for z in range(n_classes):
                    given_node[v, z] = math.log(smoothed[v, z] / smoothed[first, z])
        for z in range(n_classes):
            of_tree[t, z] = smoothed[first, z]
    return 0


@kernel(is_part=True)
def _average(p, nodes, first, last, share, change):
    """Change p(y | leaf) of a tree, and fill p(y | node) of the nodes above, the mean of their children."""
    for v in range(last - 1, first - 1, -1):
        child, at_left = nodes[v, 2], share[v]
        if nodes[v, 0] >= 0:
            for z in range(p.shape[1]):
                p[v, z] = at_left * p[child, z] + (1.0 - at_left) * p[child + 1, z]
        elif len(change) > 0:
            _reweigh(p[v], change[child])


@kernel(is_part=True)
def _reweigh(p, change):
    """Multiply the probabilities of a leaf by exp(change), and normalise them."""
    most, total = -math.inf, 0.0
    for z in range(len(p)):
        most = max(most, change[z])
    for z in range(len(p)):
        p[z] *= math.exp(change[z] - most)
        total += p[z]
    for z in range(len(p)):
        p[z] = max(p[z] / total, 1e-300)


@kernel(is_part=True)
def _score_row(row, nodes, root, sides, ordered, share, log_edge, given_node, scores):
    """Write log p(y | x) − log p(y) of one row in one tree to scores; return log p(x).

    A missing cell sends the row down both sides: over the leaves l that it reaches,

        p(x, y) = Σ_l p(y | l) Π_edges, where an edge is the share of its side if the cell of the split is missing, and
        otherwise that share divided by p(x_j on this side | x_j in the cell of the node).
    """
    n_classes = len(scores)
    waiting, logs = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
    waiting[0], logs[0], n_waiting = root, 0.0, 1
    shift, total = -math.inf, 0.0
    for z in range(n_classes):
        scores[z] = 0.0
    while n_waiting > 0:
        n_waiting -= 1
        node, log_w = waiting[n_waiting], logs[n_waiting]
        column = nodes[node, 0]
        while column >= 0:
            side, child = _side(np.int64(row[column]), nodes[node, 1], ordered[column], sides), nodes[node, 2]
            if side == 0:
                waiting[n_waiting] = child + 1
                logs[n_waiting] = log_w + math.log(1.0 - share[node])
                n_waiting += 1
                log_w += math.log(share[node])
                node = child
            else:
                node = child + side - 1
                log_w += log_edge[node]
            column = nodes[node, 0]
        if log_w > shift:
            factor = math.exp(shift - log_w)
            total *= factor
            for z in range(n_classes):
                scores[z] *= factor
            shift = log_w
        w = math.exp(log_w - shift)
        total += w
        for z in range(n_classes):
            scores[z] += w * math.exp(given_node[node, z])
    for z in range(n_classes):
        scores[z] = math.log(scores[z] / total)
    return shift + math.log(total)


@kernel(few_rows=True)
def score_forest(
    codes, steps, nodes, roots, sides, ordered, share, log_edge, given_node, values, prior, geometric, out
):
    """Add to out (n, V) what each tree adds to the score of a row.

    That is the value of the leaf that the row reaches, a row of `values` (leaves, V). Of a row that goes both ways
    somewhere, it is log p(y | x) − log p(y) less that of the first class, without this class, if the mean is
    `geometric`; else p(y | x) / p(y).
    """
    scratch, scores = make_scratch(len(codes)), np.empty(len(prior))
    n_values = out.shape[1]
    for first in range(0, len(codes), MOST_ROWS):
        n_rows = min(len(codes) - first, MOST_ROWS)
        for t in range(len(roots) - 1):
            descend(codes, first, n_rows, steps, t, scratch)
            for k in range(n_rows):
                i, leaf = np.uint64(first + k), scratch.reached[k]
                if leaf > NO_LEAF:
                    for z in range(n_values):
                        out[i, np.uint64(z)] += values[np.uint64(~leaf), np.uint64(z)]
                    continue
                _score_row(codes[i], nodes, roots[t], sides, ordered, share, log_edge, given_node, scores)
                if geometric:
                    for z in range(n_values):
                        out[i, z] += scores[z + 1] - scores[0]
                else:
                    evidence = 0.0
                    for z in range(n_values):
                        evidence += prior[z] * math.exp(scores[z])
                    for z in range(n_values):
                        out[i, z] += math.exp(scores[z]) / evidence
    return 0


@kernel(few_rows=True)
def forest_density(codes, nodes, roots, sides, ordered, share, log_edge, given_node, log_p):
    """Add p_t(x | y) = p_t(x)·p_t(y | x) / p_t(y) of each tree to the mean over trees, whose logarithm is log_p (n, Z).

    It is relative to independent columns.
    """
    n_trees, scores = len(roots) - 1, np.empty(given_node.shape[1])
    for t in range(n_trees):
        for i in range(len(codes)):
            log_tree = _score_row(codes[i], nodes, roots[t], sides, ordered, share, log_edge, given_node, scores)
            for z in range(len(scores)):
                log_one = scores[z] + log_tree - math.log(n_trees)
                higher, lower = max(log_p[i, z], log_one), min(log_p[i, z], log_one)
                log_p[i, z] = higher + math.log1p(math.exp(lower - higher))
    return 0


@kernel(few_rows=True)
def explain_forest(codes, nodes, roots, sides, ordered, share, log_edge, given_node, out):
    """Add to out (n, Z, d) what each column adds to the mean over the trees of log p_t(x | y), as `forest_density`.

    On a path, a split adds the change of log p(y | node) and the log of its edge to its column. Where the cell of a
    split is missing, log Σ_s share_s·exp(f_s) of the two sides changes from f = its value without cells to its value
    with them. Along the straight line between, the integral of the weight of a side has a closed form, so that the
    parts of each side, times this weight, add up exactly (Aumann & Shapley 1974, chapter 3).
    """
    n_trees = len(roots) - 1
    for t in range(n_trees):
        visited = np.empty(roots[t + 1] - roots[t], np.int64)
        for i in range(len(codes)):
            n_visited = _visit(codes[i], nodes, roots[t], sides, ordered, visited)
            parts = np.zeros((n_visited, out.shape[1], out.shape[2]))
            value = np.zeros((n_visited, out.shape[1]))
            below = n_visited  # the children of a node are the last ones that no later node has taken
            for at in range(n_visited - 1, -1, -1):
                node = visited[at]
                column = nodes[node, 0]
                if column < 0:
                    for z in range(out.shape[1]):
                        value[at, z] = given_node[node, z]
                    continue
                side = _side(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides)
                if side > 0:
                    below -= 1
                    _add_split(at, below, visited, column, log_edge, given_node, value, parts)
                else:
                    below -= 2
                    _mix_sides(at, below, visited, share[node], given_node, value, parts)
            for z in range(out.shape[1]):
                for j in range(out.shape[2]):
                    out[i, z, j] += parts[0, z, j] / n_trees
    return 0


@kernel(is_part=True)
def _visit(row, nodes, root, sides, ordered, visited):
    """Write the nodes that a row reaches to visited, level by level, and return their number."""
    n_visited, at = 1, 0
    visited[0] = root
    while at < n_visited:
        node = visited[at]
        at += 1
        column = nodes[node, 0]
        if column < 0:
            continue
        side = _side(np.int64(row[column]), nodes[node, 1], ordered[column], sides)
        if side != 2:
            visited[n_visited] = nodes[node, 2]
            n_visited += 1
        if side != 1:
            visited[n_visited] = nodes[node, 2] + 1
            n_visited += 1
    return n_visited


@kernel(is_part=True)
def _add_split(at, below, visited, column, log_edge, given_node, value, parts):
    """Set the value and the parts of a node from those of the child that a row goes to."""
    node, child = visited[at], visited[below]
    for z in range(value.shape[1]):
        value[at, z] = log_edge[child] + value[below, z]
        for j in range(parts.shape[2]):
            parts[at, z, j] = parts[below, z, j]
        parts[at, z, column] += log_edge[child] + given_node[child, z] - given_node[node, z]


@kernel(is_part=True)
def _mix_sides(at, below, visited, share, given_node, value, parts):
    """Set the value and the parts of a node from those of both children, for a row without the cell of its split."""
    log_left, log_right = math.log(share), math.log(1.0 - share)
    for z in range(value.shape[1]):
        before = log_left + given_node[visited[below], z] - log_right - given_node[visited[below + 1], z]
        after = log_left + value[below, z] - log_right - value[below + 1, z]
        at_left = _mean_sigmoid(before, after)
        value[at, z] = log_right + value[below + 1, z] + _softplus(after)
        for j in range(parts.shape[2]):
            parts[at, z, j] = at_left * parts[below, z, j] + (1.0 - at_left) * parts[below + 1, z, j]


@kernel(is_part=True)
def _softplus(u):
    """Return log(1 + exp(u))."""
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


@kernel(is_part=True)
def _mean_sigmoid(a, b):
    """Return the mean of 1 / (1 + exp(−u)) over u from a to b."""
    if abs(b - a) < 1e-6:
        middle = (a + b) / 2.0
        return 1.0 / (1.0 + math.exp(-middle)) if middle > -700.0 else 0.0
    return (_softplus(b) - _softplus(a)) / (b - a)
