"""Growth of randomised decision trees on codes, by histograms of classes per node.

The rows of a node are in the order of their classes, so that those of a class are neighbours: a run. Indices in the
inner loops are unsigned: signed ones are compared with 0 first.
"""

from typing import Any, NamedTuple

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel

_DEEPEST = 60  # levels below a root
_FEWEST = 1e-9  # weight of a side: less is rounding
MOST_JUDGED = 4096  # rows of a node that choose its split


class Scratch(NamedTuple):
    """Arrays that every node of a tree uses.

    Attributes
    ----------
    state : (1,) uint64
        Of the random generator.
    columns : (d,)
        The columns in random order.
    histogram : (codes, Z)
        The weight of each run per code of a column; 0 between columns.
    present : (codes / 64,) uint64
        One bit per code; 0 between columns.
    found, chosen, key : (codes,)
        Codes of a column in the order of their split, of the best column so far, and what they are sorted by.
    total, left : (Z,)
        The weight of each run.
    classes : (Z,)
        The class of each run.
    starts : (Z + 1,)
        The first row of each run, and last the number of rows.
    judged : (MOST_JUDGED,)
        A sample of the rows of a node.
    of_rows : (m,)
        The code of each row of a node.
    weights : (m,)
        Their weights, if these differ.
    spare : (m,)
        Rows that go right.
    """

    state: Any
    columns: Any
    histogram: Any
    present: Any
    found: Any
    chosen: Any
    key: Any
    total: Any
    left: Any
    classes: Any
    starts: Any
    judged: Any
    of_rows: Any
    weights: Any
    spare: Any


class Split(NamedTuple):
    """A split of a node: the column (−1: none), the cut, and of how many chosen codes the first ones go left."""

    column: int
    cut: int
    n_left: int
    n_chosen: int


@kernel(is_part=True)
def _draw(state):
    """Return a uniform number in [0, 1): SplitMix64 (Steele, Lea & Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) / 9007199254740992.0


@kernel(is_part=True)
def _x_log_x(x, of_whole):
    """Return x·log x, from a table for whole x."""
    i = int(x)
    if i == x and i < len(of_whole):
        return of_whole[i]
    return x * np.log(x) if x > 0.0 else 0.0


@kernel(is_part=True)
def _present_codes(of_rows, n_rows, present, codes):
    """Write the distinct codes > 0 of some rows into codes, ascending; return how many."""
    if len(present) == 1:
        bits = np.uint64(0)
        for i in range(n_rows):
            bits |= np.uint64(1) << np.uint64(of_rows[i])
        present[0] = bits
    else:
        for i in range(n_rows):
            bit = np.uint64(of_rows[i])
            present[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    n_codes = 0
    for word in range(len(present)):
        bits = present[word]
        present[word] = np.uint64(0)
        code = word << 6
        while bits != np.uint64(0):
            if bits & np.uint64(0xFF) == np.uint64(0):
                bits >>= np.uint64(8)
                code += 8
                continue
            if bits & np.uint64(1) and code > 0:
                codes[n_codes] = code
                n_codes += 1
            bits >>= np.uint64(1)
            code += 1
    return n_codes


@kernel(is_part=True)
def _sort_by_projection(histogram, codes, n_codes, classes, n_runs, n_classes, state, key, direction):
    """Sort codes by a random projection of their class distribution; by p(y = 1 | code) for two classes."""
    for r in range(n_runs):
        direction[r] = float(classes[r]) if n_classes == 2 else _draw(state)
    for k in range(n_codes):
        code, total, projected = codes[k], 0.0, 0.0
        for r in range(n_runs):
            total += histogram[code, r]
            projected += direction[r] * histogram[code, r]
        value = projected / total + 1e-9 * _draw(state)  # ties are in random order
        position = k
        while position > 0 and key[position - 1] > value:
            key[position] = key[position - 1]
            codes[position] = codes[position - 1]
            position -= 1
        key[position] = value
        codes[position] = code


@kernel(is_part=True)
def _gain(left, total, n_runs, of_whole):
    """Return the information gained by a split in nats, n·I(side; y), from the weights of the runs."""
    n_left, n = 0.0, 0.0
    gain = 0.0
    for r in range(n_runs):
        n_left += left[r]
        n += total[r]
        right = max(total[r] - left[r], 0.0)
        gain += _x_log_x(left[r], of_whole) + _x_log_x(right, of_whole) - _x_log_x(total[r], of_whole)
    if n_left < _FEWEST or n - n_left < _FEWEST:
        return -1.0
    return gain + _x_log_x(n, of_whole) - _x_log_x(n_left, of_whole) - _x_log_x(n - n_left, of_whole)


@kernel(is_part=True)
def _read_column(codes, column, rows, of_rows):
    """Copy the codes of a column in some rows to of_rows; return the least and the greatest one."""
    for i in range(len(rows)):
        of_rows[i] = codes[np.uint64(rows[i]), np.uint64(column)]
    low, high = of_rows[0], of_rows[0]
    for i in range(len(rows)):
        low = min(low, of_rows[i])
        high = max(high, of_rows[i])
    return int(low), int(high)


@kernel(is_part=True, fastmath=REORDERED)
def _random_cut(low, high, n_runs, is_weighted, scratch):
    """Draw a cut between the least and the greatest code of some rows; fill the weights of the runs.

    Return the cut, 0 if there are fewer than two codes.
    """
    of_rows, weights, starts = scratch.of_rows, scratch.weights, scratch.starts
    if low == 0:  # cells are missing
        low = high
        for i in range(starts[n_runs]):
            if of_rows[i] > 0:
                low = min(low, int(of_rows[i]))
    if low >= high:
        return 0
    cut = low + int(_draw(scratch.state) * (high - low))
    for r in range(n_runs):
        total, left, n_total, n_left = 0.0, 0.0, 0, 0
        if is_weighted:
            for i in range(starts[r], starts[r + 1]):
                total += weights[i] if of_rows[i] > 0 else 0.0
                left += weights[i] if 0 < of_rows[i] <= cut else 0.0
        else:
            for i in range(starts[r], starts[r + 1]):
                n_total += of_rows[i] > 0
                n_left += of_rows[i] > cut
            total, left = float(n_total), float(n_total - n_left)
        scratch.total[r], scratch.left[r] = total, left
    return cut


@kernel(is_part=True)
def _best_prefix(histogram, codes, n_codes, n_runs, total, left, of_whole):
    """Return the number of codes of the best prefix to go left, and its gain in nats."""
    n, n_left, of_left, of_right, of_total = 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(n_runs):
        left[r] = 0.0
        n += total[r]
        of_total += _x_log_x(total[r], of_whole)
    of_right = of_total
    best, most = 1, -1.0
    for k in range(n_codes - 1):
        for r in range(n_runs):
            added = histogram[codes[k], r]
            if added > 0.0:
                before, rest = left[r], max(total[r] - left[r] - added, 0.0)
                of_left += _x_log_x(before + added, of_whole) - _x_log_x(before, of_whole)
                of_right += _x_log_x(rest, of_whole) - _x_log_x(total[r] - before, of_whole)
                left[r] += added
                n_left += added
        if n_left < _FEWEST or n - n_left < _FEWEST:
            continue
        gain = of_left + of_right - of_total
        gain += _x_log_x(n, of_whole) - _x_log_x(n_left, of_whole) - _x_log_x(n - n_left, of_whole)
        if gain > most:
            best, most = k + 1, gain
    return best, most


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
def _prefix_of(is_ordered, at_random, n_runs, n_classes, is_weighted, scratch, of_whole):
    """Order the codes of a column in some rows; return how many there are, how many go left, and the gain in nats."""
    histogram, found, starts, of_rows = scratch.histogram, scratch.found, scratch.starts, scratch.of_rows
    n_codes = _present_codes(of_rows, starts[n_runs], scratch.present, found)
    if n_codes < 2:
        return n_codes, 0, -1.0
    for r in range(n_runs):
        for i in range(starts[r], starts[r + 1]):
            histogram[np.uint64(of_rows[i]), np.uint64(r)] += scratch.weights[i] if is_weighted else 1.0
    for r in range(n_runs):
        scratch.total[r] = 0.0
        for k in range(n_codes):
            scratch.total[r] += histogram[found[k], r]
    if not is_ordered:
        _sort_by_projection(
            histogram, found, n_codes, scratch.classes, n_runs, n_classes, scratch.state, scratch.key, scratch.left
        )
    if at_random:
        prefix = 1 + int(_draw(scratch.state) * (n_codes - 1))
        for r in range(n_runs):
            scratch.left[r] = 0.0
            for k in range(prefix):
                scratch.left[r] += histogram[found[k], r]
        gain = _gain(scratch.left, scratch.total, n_runs, of_whole)
    else:
        prefix, gain = _best_prefix(histogram, found, n_codes, n_runs, scratch.total, scratch.left, of_whole)
    for r in range(n_runs):
        histogram[0, r] = 0.0
        for k in range(n_codes):
            histogram[found[k], r] = 0.0
    return n_codes, prefix, gain


@kernel(is_part=True)
def _choose_split(codes, rows, n_runs, ordered, n_classes, n_tried, at_random, is_weighted, scratch, of_whole):
    """Return the split of the greatest gain among `n_tried` columns that vary; a gain of 0 may lead to a rule, too."""
    most, column, cut, n_left, n_chosen = -0.5, -1, 0, 0, 0
    tried, k = 0, 0
    while k < codes.shape[1] and tried < n_tried:
        other = k + int(_draw(scratch.state) * (codes.shape[1] - k))
        j = scratch.columns[other]
        scratch.columns[other] = scratch.columns[k]
        scratch.columns[k] = j
        k += 1
        low, high = _read_column(codes, j, rows, scratch.of_rows)
        if low == high:
            continue
        if at_random and ordered[j]:
            at = _random_cut(low, high, n_runs, is_weighted, scratch)
            if at == 0:
                continue
            tried += 1
            gain = _gain(scratch.left, scratch.total, n_runs, of_whole)
            if gain > most:
                most, column, cut, n_left, n_chosen = gain, j, at, 0, 0
            continue
        n_codes, prefix, gain = _prefix_of(ordered[j], at_random, n_runs, n_classes, is_weighted, scratch, of_whole)
        if n_codes < 2:
            continue
        tried += 1
        if gain > most:
            most, column, n_left, n_chosen = gain, j, prefix, n_codes
            cut = (scratch.found[prefix - 1] + scratch.found[prefix]) // 2 if ordered[j] else 0
            for position in range(n_codes):
                scratch.chosen[position] = scratch.found[position]
    return Split(column, cut, n_left, n_chosen)


@kernel(is_part=True)
def _find_runs(n_of_class, scratch):
    """Write the classes of which a node has rows, and where they start; return their number."""
    n_runs = 0
    scratch.starts[0] = 0
    for z in range(len(n_of_class)):
        if n_of_class[z] > 0:
            scratch.classes[n_runs] = z
            scratch.starts[n_runs + 1] = scratch.starts[n_runs] + n_of_class[z]
            n_runs += 1
    return n_runs


@kernel(is_part=True)
def _sample(rows, n_runs, scratch):
    """Return every k-th row from a random one on, for k = n / MOST_JUDGED, and adapt where the runs start."""
    n_rows, starts = len(rows), scratch.starts
    first, run = _draw(scratch.state), 0
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
def _divide(codes, column, rows, n_of_class, of_left, is_ordered, cut, sides, is_weighted, scratch):
    """Move the rows that go left before the others; return their number, and their share of the weight.

    Rows that lack the code go to a side at random, with the share of the others. Fills of_left (Z,), the number of rows
    of each class that go left.
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
                of_rows[i] = 1 if _draw(scratch.state) < share else 2
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
        of_left[z] = n_left - before
    for i in range(n_right):
        rows[n_left + i] = scratch.spare[i]
    return int(n_left), share


@kernel(is_part=True)
def _make_scratch(codes, n_rows, width, n_classes, is_weighted, seed):
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
def _write_sides(sides, n_sides, width, split, path, depth, nodes, scratch):
    """Append the sides of the codes of a split of categories; return the sides, which may be a longer copy.

    A code that no judged row of the node has goes to a side at random, with the share of the others; it has none if
    the splits above, `path` (depth + 1,), keep it out.
    """
    while n_sides + width > len(sides):
        sides = _doubled_sides(sides)
    sides[n_sides] = 0
    share = split.n_left / split.n_chosen
    for code in range(1, width):
        sides[n_sides + code] = 1 if _draw(scratch.state) < share else 2
    for position in range(split.n_chosen):
        sides[n_sides + scratch.chosen[position]] = 1 if position < split.n_left else 2
    for level in range(depth):
        column, above, child = nodes[path[level], 0], nodes[path[level], 1], nodes[path[level], 2]
        if column == split.column:
            for code in range(1, width):
                if sides[above + code] != 1 + path[level + 1] - child:
                    sides[n_sides + code] = 0
    return sides


@kernel
def grow_tree(
    codes, weight, rows, n_of_class, widths, ordered, n_tried, at_random, is_weighted, fewest, of_whole, seed
):
    """Grow a tree on some rows, and return its nodes, the share of each that goes left, and the sides of categories.

    A node is (column, cut, child): rows whose code of the column is at most the cut go to node `child`, others to
    `child + 1`. If the column is not ordered, `cut` is the start of its sides: 1 is left, 2 is right, and 0 marks a
    missing cell, or a code that does not come here. The column of a leaf is −1. Children have greater indices than their parent.

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
    width, n_classes = 1, len(n_of_class)
    for j in range(len(widths)):
        width = max(width, widths[j])
    scratch = _make_scratch(codes, len(rows), width, n_classes, is_weighted, seed)
    waiting = np.empty((2 * _DEEPEST + 4, 4), np.int64)  # node, first row, last row, depth
    of_class = np.empty((2 * _DEEPEST + 4, n_classes), np.int64)
    of_node, path = np.empty(n_classes, np.int64), np.empty(_DEEPEST + 1, np.int64)
    nodes, share = np.empty((64, 3), np.int32), np.empty(64)
    sides = np.empty(256, np.uint8)
    n_nodes, n_sides, n_waiting = 1, 0, 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, 0, len(rows), 0
    for z in range(n_classes):
        of_class[0, z] = n_of_class[z]
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting, 0], waiting[n_waiting, 1]
        last, depth = waiting[n_waiting, 2], waiting[n_waiting, 3]
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = -1, 0, 0
        share[node] = 0.5
        path[depth] = node
        inside = rows[first:last]
        for z in range(n_classes):
            of_node[z] = of_class[n_waiting, z]
        n_runs = _find_runs(of_node, scratch)
        if depth >= _DEEPEST or n_runs < 2 or _weight_of(inside, weight, is_weighted) < fewest:
            continue
        judged = _sample(inside, n_runs, scratch) if len(inside) > MOST_JUDGED else inside
        if is_weighted:
            for i in range(len(judged)):
                scratch.weights[i] = weight[judged[i]]
        split = _choose_split(
            codes, judged, n_runs, ordered, n_classes, n_tried, at_random, is_weighted, scratch, of_whole
        )
        if split.column < 0:
            continue
        cut, is_ordered = split.cut, ordered[split.column]
        if not is_ordered:
            cut = n_sides
            sides = _write_sides(sides, n_sides, widths[split.column], split, path, depth, nodes, scratch)
            n_sides += widths[split.column]
        if is_weighted and len(inside) > MOST_JUDGED:
            for i in range(len(inside)):
                scratch.weights[i] = weight[inside[i]]
        n_left, share[node] = _divide(
            codes, split.column, inside, of_node, of_class[n_waiting], is_ordered, cut, sides, is_weighted, scratch
        )
        if n_nodes + 2 > len(nodes):
            nodes, share = _doubled_nodes(nodes, share)
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = split.column, cut, n_nodes
        for z in range(n_classes):
            of_class[n_waiting + 1, z] = of_node[z] - of_class[n_waiting, z]
        for side in range(2):
            waiting[n_waiting, 0] = n_nodes + side
            waiting[n_waiting, 1] = first if side == 0 else first + n_left
            waiting[n_waiting, 2] = first + n_left if side == 0 else last
            waiting[n_waiting, 3] = depth + 1
            n_waiting += 1
        n_nodes += 2
    return nodes[:n_nodes], share[:n_nodes], sides[:n_sides]


@kernel(is_part=True)
def _weight_of(rows, weight, is_weighted):
    """Return the summed weight of some rows."""
    if not is_weighted:
        return float(len(rows))
    total = 0.0
    for i in range(len(rows)):
        total += weight[rows[i]]
    return total
