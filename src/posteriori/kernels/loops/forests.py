"""Randomised trees with class distributions in their leaves: growth, counts, smoothed posteriors, scores of rows.

A node is (column, cut, child), as `grow_tree` returns it; the child of a leaf is its number. `roots` holds the first
node of each tree, and last the number of nodes.
"""

import math

import numpy as np

from posteriori.kernels.loops.back_off import with_pseudo_rows
from posteriori.kernels.loops.descent import DEEPEST, MOST_ROWS, NO_LEAF, descend, make_scratch
from posteriori.kernels.loops.splitting import GOLDEN, MOST_JUDGED, Scratch, choose_split, draw
from posteriori.kernels.machine.compiling import kernel

NO_SHARE = 2.0**-53  # of the rows of a node, of a side that no code leads to: 1 − it is still below 1


@kernel(is_part=True)
def side_of(code, cut, is_ordered, sides):
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
                        side = side_of(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides)
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


# As NumPy operations, a hundred nodes take as long as most other loops do per row.
@kernel
def weigh_edges(counts, nodes, roots, sides, ordered, mass, starts, weight, share, log_edge):
    """Add up the weights in leaves (leaves, Z), and estimate the shares of the sides.

    Fills weight (nodes, Z); share (nodes,), the share that goes left; and log_edge (nodes,), the log of what the edge
    into a node multiplies p(x) by: its share, divided by that of its codes under p(x_j) within the cell. `mass` holds
    p(x_j) of each code, column j from starts[j]. A side without codes has no share but rounding, so that its logarithm
    is finite, and no row with the cell reaches it.
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
            mass_of_code, side = mass[starts[j] + code], side_of(code, cut, ordered[j], sides)
            at_left += mass_of_code if side == 1 else 0.0
            at_right += mass_of_code if side == 2 else 0.0
        if at_left == 0.0 or at_right == 0.0:
            log_edge[child] = log_edge[child + 1] = 0.0
            if at_left != at_right:
                share[v] = NO_SHARE if at_left == 0.0 else 1.0 - NO_SHARE
            continue
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
                smoothed[v, z] = with_pseudo_rows(weight[v, z], strength, smoothed[v, z]) * scale
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
            side, child = side_of(np.int64(row[column]), nodes[node, 1], ordered[column], sides), nodes[node, 2]
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


ARITHMETIC, GEOMETRIC, SUM = 0, 1, 2  # how trees combine


@kernel
def score_forest(codes, steps, nodes, roots, sides, ordered, share, edge, given, values, prior, combine, out):
    """Add to out (n, V) what each tree adds to the score of a row.

    That is the value of the leaf that the row reaches, a row of `values` (leaves, V). Of a row that goes both ways
    somewhere, it is log p(y | x) − log p(y) less that of the first class, without this class, if trees combine by the
    GEOMETRIC mean; p(y | x) / p(y) by the ARITHMETIC mean; and of a SUM the mean of `given` with the shares, less that
    of the first class, without this class.
    """
    scratch, scores = make_scratch(len(codes)), np.empty(len(prior))
    waiting, weights = np.empty(DEEPEST + 2, np.int64), np.empty(DEEPEST + 2)
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
                _mix_leaves(codes[i], nodes, roots[t], sides, ordered, share, edge, given, waiting, weights, scores)
                if combine == SUM:
                    for z in range(n_values):
                        out[i, z] += scores[z + 1] - scores[0]
                elif combine == GEOMETRIC:
                    log_first = math.log(scores[0])
                    for z in range(n_values):
                        out[i, z] += math.log(scores[z + 1]) - log_first
                else:
                    evidence = 0.0
                    for z in range(n_values):
                        evidence += prior[z] * scores[z]
                    for z in range(n_values):
                        out[i, z] += scores[z] / evidence
    return 0


@kernel(is_part=True)
def _mix_leaves(row, nodes, root, sides, ordered, share, edge, given, waiting, weights, scores):
    """Write p(y | x) / p(y) of one row in one tree, up to a factor, to scores: `_score_row` without logarithms.

    A product of edges is at most Π_j 1 / p(x_j) over the columns of a path, of which none has more than DEEPEST: no
    table has enough rows for it to overflow.
    """
    waiting[0], weights[0], n_waiting = root, 1.0, 1
    for z in range(len(scores)):
        scores[z] = 0.0
    while n_waiting > 0:
        n_waiting -= 1
        node, w = np.uint64(waiting[n_waiting]), weights[n_waiting]
        column = nodes[node, 0]
        while column >= 0:
            side, child = side_of(np.int64(row[column]), nodes[node, 1], ordered[column], sides), nodes[node, 2]
            if side == 0:
                waiting[n_waiting] = child + 1
                weights[n_waiting] = w * (1.0 - share[node])
                n_waiting += 1
                w *= share[node]
                node = np.uint64(child)
            else:
                node = np.uint64(child + side - 1)
                w *= edge[node]
            column = nodes[node, 0]
        for z in range(len(scores)):
            scores[z] += w * given[node, np.uint64(z)]


@kernel
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


@kernel
def explain_forest(codes, nodes, roots, sides, ordered, share, log_edge, given_node, is_sum, out):
    """Add to out (n, Z, d) what each column adds to the mean over the trees of log p_t(x | y), as `forest_density`.

    On a path, a split adds the change of log p(y | node) and the log of its edge to its column. Where the cell of a
    split is missing, log Σ_s share_s·exp(f_s) of the two sides changes from f = its value without cells to its value
    with them. Along the straight line between, the integral of the weight of a side has a closed form, so that the
    parts of each side, times this weight, add up exactly (Aumann & Shapley 1974, chapter 3). Of a sum, which has no
    edges, f is the mean of the sides, and their weights are the shares.
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
                side = side_of(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides)
                if side > 0:
                    below -= 1
                    _add_split(at, below, visited, column, log_edge, given_node, value, parts)
                else:
                    below -= 2
                    _mix_sides(at, below, visited, share[node], given_node, is_sum, value, parts)
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
        side = side_of(np.int64(row[column]), nodes[node, 1], ordered[column], sides)
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
def _mix_sides(at, below, visited, share, given_node, is_sum, value, parts):
    """Set the value and the parts of a node from those of both children, for a row without the cell of its split."""
    log_left, log_right = math.log(share), math.log(1.0 - share)
    for z in range(value.shape[1]):
        before = log_left + given_node[visited[below], z] - log_right - given_node[visited[below + 1], z]
        after = log_left + value[below, z] - log_right - value[below + 1, z]
        at_left = share if is_sum else _mean_sigmoid(before, after)
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


@kernel(is_part=True)
def _doubled_sides(sides):
    doubled = np.empty(2 * len(sides), sides.dtype)
    for i in range(len(sides)):
        doubled[i] = sides[i]
    return doubled


@kernel(is_part=True)
def _doubled_nodes(nodes, share):
    more_nodes, more_share = np.empty((2 * len(nodes), 3), nodes.dtype), np.empty(2 * len(share))
    for i in range(len(nodes)):
        more_share[i] = share[i]
        for k in range(3):
            more_nodes[i, k] = nodes[i, k]
    return more_nodes, more_share


@kernel(is_part=True)
def _push(waiting, place, node, first, last, depth):
    waiting[place, 0], waiting[place, 1], waiting[place, 2], waiting[place, 3] = node, first, last, depth


@kernel(is_part=True)
def _find_runs(n_of_class, of_node, scratch):
    """Copy the number of rows of each class to of_node; write where the runs start, and return their number."""
    n_runs = 0
    scratch.starts[0] = 0
    for z in range(len(n_of_class)):
        of_node[z] = n_of_class[z]
        if n_of_class[z] > 0:
            scratch.classes[n_runs] = z
            scratch.starts[n_runs + 1] = scratch.starts[n_runs] + n_of_class[z]
            n_runs += 1
    return n_runs


@kernel(is_part=True)
def _sample(rows, n_runs, scratch):
    """Return every k-th row from a random one on, for k = n / MOST_JUDGED, and adapt where the runs start."""
    n_rows, starts = len(rows), scratch.starts
    first, run = draw(scratch.state), 0
    for i in range(MOST_JUDGED):
        place = int((i + first) * n_rows / MOST_JUDGED)
        scratch.judged[i] = rows[place]
        while run < n_runs and place >= starts[run]:
            starts[run] = i
            run += 1
    while run <= n_runs:
        starts[run] = MOST_JUDGED
        run += 1
    return scratch.judged


@kernel(is_part=True)
def _read_sides(codes, column, rows, is_ordered, cut, sides, is_weighted, scratch):
    """Write the side of each row to of_rows, 0 without one; return the share of the others that goes left."""
    of_rows, weights = scratch.of_rows, scratch.weights
    at_left, n = 0.0, 0.0
    for i in range(len(rows)):
        code = np.uint64(codes[np.uint64(rows[i]), np.uint64(column)])
        side = 1 + int(code > np.uint64(cut)) if is_ordered else int(sides[np.uint64(cut) + code])
        side = side if code > np.uint64(0) else 0
        of_rows[i] = side
        w = weights[i] if is_weighted else 1.0
        n += w if side > 0 else 0.0
        at_left += w if side == 1 else 0.0
    return at_left / n


@kernel(is_part=True)
def _divide(rows, n_of_class, children, share, scratch):
    """Move the rows that go left before the others; return their number.

    Rows without a side go to one at random, with the share of the others. Fills children (2, Z), the number of rows of
    each class that go to each side.
    """
    of_rows = scratch.of_rows
    for i in range(len(rows)):
        if of_rows[i] == 0:
            of_rows[i] = 1 if draw(scratch.state) < share else 2
    n_left, n_right, i = np.uint64(0), np.uint64(0), 0
    for z in range(len(n_of_class)):
        before = n_left
        for _ in range(n_of_class[z]):
            row, at_right = rows[i], np.uint64(of_rows[i] == 2)
            rows[n_left] = row
            scratch.spare[n_right] = row
            n_left += np.uint64(1) - at_right
            n_right += at_right
            i += 1
        children[0, z] = n_left - before
        children[1, z] = n_of_class[z] - children[0, z]
    for i in range(n_right):
        rows[n_left + i] = scratch.spare[i]
    return int(n_left)


@kernel(is_part=True)
def _make_scratch(codes, n_rows, widths, n_classes, is_weighted, seed):
    width = 1
    for j in range(len(widths)):
        width = max(width, widths[j])
    state = np.empty(1, np.uint64)
    state[0] = seed
    return Scratch(
        state,
        np.arange(codes.shape[1]),
        np.zeros((width, n_classes)),
        np.zeros((width + 63) // 64, np.uint64),
        np.empty(width, np.int64),
        np.empty(width, np.int64),
        np.empty(width),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_classes, np.int64),
        np.empty(n_classes + 1, np.int64),
        np.empty(MOST_JUDGED, np.int32),
        np.empty(n_rows, codes.dtype),
        np.empty(n_rows if is_weighted else 0),
        np.empty(n_rows, np.int32),
    )


@kernel(is_part=True)
def _write_sides(sides, n_sides, width, split, chosen):
    """Append the sides of the codes of a split of categories; return the sides, which may be a longer copy."""
    while n_sides + width > len(sides):
        sides = _doubled_sides(sides)
    for code in range(width):
        sides[n_sides + code] = 0
    for position in range(split.n_chosen):
        sides[n_sides + chosen[position]] = 1 if position < split.n_left else 2
    return sides


@kernel(is_part=True)
def _place_unseen_codes(sides, start, width, share, path, depth, nodes, state):
    """Send the codes that no judged row of a node has to a side at random, left with the share of the others.

    Codes that splits above the node keep out, on its `path` (depth + 1,), have no side.
    """
    order = draw(state)
    for code in range(1, width):
        if sides[start + code] == 0:
            u = order + code * GOLDEN
            sides[start + code] = 1 if u - np.floor(u) < share else 2
    for level in range(depth):
        node = path[level]
        if nodes[node, 0] == nodes[path[depth], 0]:
            above, side = nodes[node, 1], 1 + path[level + 1] - nodes[node, 2]
            for code in range(1, width):
                if sides[above + code] != side:
                    sides[start + code] = 0


@kernel(is_part=True)
def _share_of_left(codes, rows, n_judged, width, is_ordered, sides, path, depth, nodes, is_weighted, scratch):
    """Write the side of each row of the node at the end of a path to of_rows; return the share that goes left.

    Codes that no judged row has are placed first: rows with one code go to one side, or a split below might choose
    codes that the sides above keep out.
    """
    column, cut = nodes[path[depth], 0], nodes[path[depth], 1]
    share = _read_sides(codes, column, rows, is_ordered, cut, sides, is_weighted, scratch)
    if is_ordered or n_judged == len(rows):
        return share
    _place_unseen_codes(sides, cut, width, share, path, depth, nodes, scratch.state)
    return _read_sides(codes, column, rows, is_ordered, cut, sides, is_weighted, scratch)


@kernel
def grow_tree(
    codes, weight, rows, n_of_class, widths, ordered, n_tried, at_random, is_weighted, fewest, of_whole, seed
):
    """Grow a tree on some rows, and return its nodes, the share of each that goes left, and the sides of categories.

    A node is (column, cut, child): rows whose code of the column is at most the cut go to node `child`, others to
    `child + 1`. If the column is not ordered, `cut` is the start of its sides: 1 is left, 2 is right, and 0 marks a
    missing cell, or a code that splits above keep out. The column of a leaf is −1. Children have greater indices than
    their parent.

    Parameters
    ----------
    codes : (n, d) uint8 or uint16, 0 where missing
    weight : (n,)
    rows : (m,) int32, in the order of their classes; they are reordered
    n_of_class : (Z,), the number of rows of each class
    widths : (d,), the number of codes of each column, 0 included
    ordered : (d,) bool
    n_tried : columns per node, of those that vary in it
    at_random : whether a cut is drawn at random, or the best one is chosen
    is_weighted : whether a weight is not 1
    fewest : the least weight of a node to be split
    of_whole : x·log x for x = 0, 1, …
    """
    scratch = _make_scratch(codes, len(rows), widths, len(n_of_class), is_weighted, seed)
    waiting = np.empty((DEEPEST + 2, 4), np.int64)  # node, first row, last row, depth
    of_class = np.empty((DEEPEST + 2, len(n_of_class)), np.int64)
    of_node, path = np.empty(len(n_of_class), np.int64), np.empty(DEEPEST + 1, np.int64)
    nodes, share = np.empty((64, 3), np.int32), np.empty(64)
    sides = np.empty(256, np.uint8)
    n_nodes, n_sides, n_waiting = 1, 0, 1
    _push(waiting, 0, 0, 0, len(rows), 0)
    _find_runs(n_of_class, of_class[0], scratch)  # copies them
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting, 0], waiting[n_waiting, 1]
        last, depth = waiting[n_waiting, 2], waiting[n_waiting, 3]
        nodes[node, 0], nodes[node, 1], nodes[node, 2], share[node] = -1, 0, 0, 0.5
        inside, path[depth] = rows[first:last], node
        n_runs = _find_runs(of_class[n_waiting], of_node, scratch)
        if depth >= DEEPEST or n_runs < 2 or _read_weights(inside, weight, is_weighted, scratch) < fewest:
            continue
        judged = _sample(inside, n_runs, scratch) if len(inside) > MOST_JUDGED else inside
        _read_weights(judged, weight, is_weighted, scratch)
        split = choose_split(
            codes, judged, n_runs, ordered, len(n_of_class), n_tried, at_random, is_weighted, scratch, of_whole
        )
        if split.column < 0:
            continue
        cut, is_ordered, width = split.cut, ordered[split.column], widths[split.column]
        if not is_ordered:
            cut = n_sides
            sides = _write_sides(sides, n_sides, width, split, scratch.chosen)
            n_sides += width
        if n_nodes + 2 > len(nodes):
            nodes, share = _doubled_nodes(nodes, share)
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = split.column, cut, n_nodes
        _read_weights(inside, weight, is_weighted, scratch)
        share[node] = _share_of_left(
            codes, inside, len(judged), width, is_ordered, sides, path, depth, nodes, is_weighted, scratch
        )
        n_left = _divide(inside, of_node, of_class[n_waiting : n_waiting + 2], share[node], scratch)
        if not is_ordered:
            _place_unseen_codes(sides, cut, width, share[node], path, depth, nodes, scratch.state)
        _push(waiting, n_waiting, n_nodes, first, first + n_left, depth + 1)
        _push(waiting, n_waiting + 1, n_nodes + 1, first + n_left, last, depth + 1)
        n_waiting, n_nodes = n_waiting + 2, n_nodes + 2
    return nodes[:n_nodes], share[:n_nodes], sides[:n_sides]


@kernel(is_part=True)
def _read_weights(rows, weight, is_weighted, scratch):
    """Copy the weights of some rows, unless they are all 1; return their sum."""
    if not is_weighted:
        return float(len(rows))
    total = 0.0
    for i in range(len(rows)):
        scratch.weights[i] = weight[np.uint64(rows[i])]
        total += scratch.weights[i]
    return total
