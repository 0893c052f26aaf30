"""Growth of randomised decision trees on codes: nodes, their rows, and the sides of categories."""

import numpy as np

from posteriori.kernels.compiling import kernel
from posteriori.kernels.descent import DEEPEST
from posteriori.kernels.splitting import GOLDEN, MOST_JUDGED, Scratch, choose_split, draw


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
def _divide(codes, column, rows, n_of_class, children, is_ordered, cut, sides, is_weighted, scratch):
    """Move the rows that go left before the others; return their number, and their share of the weight.

    Rows that lack the code go to a side at random, with the share of the others. Fills children (2, Z), the number of
    rows of each class that go to each side.
    """
    of_rows, weights = scratch.of_rows, scratch.weights
    at_left, n, n_missing = 0.0, 0.0, 0
    for i in range(len(rows)):
        code = np.uint64(codes[np.uint64(rows[i]), np.uint64(column)])
        side = 1 + int(code > np.uint64(cut)) if is_ordered else int(sides[np.uint64(cut) + code])
        side = side if code > np.uint64(0) else 0
        of_rows[i] = side
        w = weights[i] if is_weighted else 1.0
        n += w if side > 0 else 0.0
        at_left += w if side == 1 else 0.0
        n_missing += side == 0
    share = at_left / n
    if n_missing > 0:
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
    return int(n_left), share


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
        _read_weights(inside, weight, is_weighted, scratch)
        children = of_class[n_waiting : n_waiting + 2]
        n_left, share[node] = _divide(
            codes, split.column, inside, of_node, children, is_ordered, cut, sides, is_weighted, scratch
        )
        if n_nodes + 2 > len(nodes):
            nodes, share = _doubled_nodes(nodes, share)
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = split.column, cut, n_nodes
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
