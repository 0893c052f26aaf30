"""Growth of randomised decision trees on codes, by histograms of classes per node.

Indices in the inner loops are unsigned: signed ones are compared with 0 first.
"""

from typing import Any, NamedTuple

import numpy as np

from posteriori.kernels.compiling import kernel

_DEEPEST = 60  # levels below a root
_FEWEST = 1e-9  # weight of a side: less is rounding


class Scratch(NamedTuple):
    """Arrays that every node of a tree uses.

    Attributes
    ----------
    state : (1,) uint64
        Of the random generator.
    columns : (d,)
        The columns in random order.
    histogram : (codes, Z)
        The weight of each class per code of a column; 0 between columns.
    present : (codes / 64,) uint64
        One bit per code; 0 between columns.
    found, chosen, key : (codes,)
        Codes of a column in the order of their split, of the best column so far, and what they are sorted by.
    total, left : (Z,)
    of_rows, classes, weights, spare : (m,)
        The code, the class and the weight of each row of a node, and rows that go right.
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
    of_rows: Any
    classes: Any
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
def _present_codes(column, rows, of_rows, present, codes):
    """Copy the codes of some rows to of_rows. Write the distinct ones > 0 into codes, ascending; return how many."""
    for i in range(len(rows)):
        bit = np.uint64(column[np.uint64(rows[i])])
        of_rows[i] = bit
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
def _sort_by_projection(histogram, codes, n_codes, n_classes, state, key):
    """Sort codes by a random projection of their class distribution; by p(y = 1 | code) for two classes."""
    direction = np.empty(n_classes)
    for z in range(n_classes):
        direction[z] = float(z) if n_classes == 2 else _draw(state)
    for k in range(n_codes):
        code, total, projected = codes[k], 0.0, 0.0
        for z in range(n_classes):
            total += histogram[code, z]
            projected += direction[z] * histogram[code, z]
        value = projected / total + 1e-9 * _draw(state)  # ties are in random order
        position = k
        while position > 0 and key[position - 1] > value:
            key[position] = key[position - 1]
            codes[position] = codes[position - 1]
            position -= 1
        key[position] = value
        codes[position] = code


@kernel(is_part=True)
def _gain(left, total, of_whole):
    """Return the information gained by a split in nats, n·I(side; y), from the weights of the classes."""
    n_left, n = 0.0, 0.0
    gain = 0.0
    for z in range(len(total)):
        n_left += left[z]
        n += total[z]
        right = max(total[z] - left[z], 0.0)
        gain += _x_log_x(left[z], of_whole) + _x_log_x(right, of_whole) - _x_log_x(total[z], of_whole)
    if n_left < _FEWEST or n - n_left < _FEWEST:
        return -1.0
    return gain + _x_log_x(n, of_whole) - _x_log_x(n_left, of_whole) - _x_log_x(n - n_left, of_whole)


@kernel(is_part=True)
def _random_cut(column, rows, scratch):
    """Draw a cut between the least and the greatest code of some rows; fill the weights of the classes.

    Return the cut, 0 if there are fewer than two codes.
    """
    of_rows, classes, weights = scratch.of_rows, scratch.classes, scratch.weights
    total, left = scratch.total, scratch.left
    low, high = 1 << 30, 0
    for i in range(len(rows)):
        code = int(column[np.uint64(rows[i])])
        of_rows[i] = code
        if code > 0:
            low, high = min(low, code), max(high, code)
    if low >= high:
        return 0
    cut = low + int(_draw(scratch.state) * (high - low))
    for z in range(len(total)):
        total[z] = 0.0
        left[z] = 0.0
    for i in range(len(rows)):
        code = int(of_rows[i])
        if code > 0:
            of_row = np.uint64(classes[i])
            total[of_row] += weights[i]
            if code <= cut:
                left[of_row] += weights[i]
    return cut


@kernel(is_part=True)
def _best_prefix(histogram, codes, n_codes, total, left, of_whole):
    """Return the number of codes of the best prefix to go left, and its gain in nats."""
    n, n_left, of_left, of_right, of_total = 0.0, 0.0, 0.0, 0.0, 0.0
    for z in range(len(total)):
        left[z] = 0.0
        n += total[z]
        of_total += _x_log_x(total[z], of_whole)
    of_right = of_total
    best, most = 1, -1.0
    for k in range(n_codes - 1):
        for z in range(len(total)):
            added = histogram[codes[k], z]
            if added > 0.0:
                before, rest = left[z], max(total[z] - left[z] - added, 0.0)
                of_left += _x_log_x(before + added, of_whole) - _x_log_x(before, of_whole)
                of_right += _x_log_x(rest, of_whole) - _x_log_x(total[z] - before, of_whole)
                left[z] += added
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
def _prefix_of(column, rows, is_ordered, at_random, scratch, of_whole):
    """Order the codes of a column in some rows; return how many there are, how many go left, and the gain in nats."""
    histogram, found = scratch.histogram, scratch.found
    n_classes = len(scratch.total)
    n_codes = _present_codes(column, rows, scratch.of_rows, scratch.present, found)
    if n_codes < 2:
        return n_codes, 0, -1.0
    for i in range(len(rows)):
        histogram[np.uint64(scratch.of_rows[i]), np.uint64(scratch.classes[i])] += scratch.weights[i]
    for z in range(n_classes):
        scratch.total[z] = 0.0
        for k in range(n_codes):
            scratch.total[z] += histogram[found[k], z]
    if not is_ordered:
        _sort_by_projection(histogram, found, n_codes, n_classes, scratch.state, scratch.key)
    if at_random:
        prefix = 1 + int(_draw(scratch.state) * (n_codes - 1))
        for z in range(n_classes):
            scratch.left[z] = 0.0
            for k in range(prefix):
                scratch.left[z] += histogram[found[k], z]
        gain = _gain(scratch.left, scratch.total, of_whole)
    else:
        prefix, gain = _best_prefix(histogram, found, n_codes, scratch.total, scratch.left, of_whole)
    for z in range(n_classes):
        histogram[0, z] = 0.0
        for k in range(n_codes):
            histogram[found[k], z] = 0.0
    return n_codes, prefix, gain


@kernel(is_part=True)
def _choose_split(codes, rows, ordered, n_tried, at_random, scratch, of_whole):
    """Return the split of the greatest gain among `n_tried` columns that vary; a gain of 0 may lead to a rule, too."""
    most, column, cut, n_left, n_chosen = -0.5, -1, 0, 0, 0
    tried, k = 0, 0
    while k < len(codes) and tried < n_tried:
        other = k + int(_draw(scratch.state) * (len(codes) - k))
        j = scratch.columns[other]
        scratch.columns[other] = scratch.columns[k]
        scratch.columns[k] = j
        k += 1
        if at_random and ordered[j]:
            at = _random_cut(codes[j], rows, scratch)
            if at == 0:
                continue
            tried += 1
            gain = _gain(scratch.left, scratch.total, of_whole)
            if gain > most:
                most, column, cut, n_left, n_chosen = gain, j, at, 0, 0
            continue
        n_codes, prefix, gain = _prefix_of(codes[j], rows, ordered[j], at_random, scratch, of_whole)
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
def _can_split(rows, component, weight, scratch, fewest):
    """Copy the classes and the weights of some rows; return whether they are of several classes and not too few."""
    left = scratch.left
    for z in range(len(left)):
        left[z] = 0.0
    for i in range(len(rows)):  # copied, so that the columns read them in order
        row = np.uint64(rows[i])
        scratch.classes[i] = component[row]
        scratch.weights[i] = weight[row]
        left[np.uint64(component[row])] += weight[row]
    n_present, n = 0, 0.0
    for z in range(len(left)):
        n += left[z]
        if left[z] > 0.0:
            n_present += 1
    return n_present > 1 and n >= fewest


@kernel(is_part=True)
def _divide(column, rows, is_ordered, cut, sides, scratch):
    """Move the rows that go left before the others; return their number, and their share of the weight.

    Rows that lack the code go to a side at random, with the share of the others.
    """
    at_left, n = 0.0, 0.0
    for i in range(len(rows)):
        code = int(column[np.uint64(rows[i])])
        side = 0
        if code > 0:
            side = (1 if code <= cut else 2) if is_ordered else int(sides[cut + code])
            n += scratch.weights[i]
            if side == 1:
                at_left += scratch.weights[i]
        scratch.of_rows[i] = side
    share = at_left / n
    n_left, n_right = 0, 0
    for i in range(len(rows)):
        side = scratch.of_rows[i]
        if side == 0:
            side = 1 if _draw(scratch.state) < share else 2
        if side == 1:
            rows[n_left] = rows[i]
            n_left += 1
        else:
            scratch.spare[n_right] = rows[i]
            n_right += 1
    for i in range(n_right):
        rows[n_left + i] = scratch.spare[i]
    return n_left, share


@kernel(is_part=True)
def _scratch(n_rows, n_columns, width, n_classes, seed):
    state = np.empty(1, np.uint64)
    state[0] = seed
    return Scratch(
        state,
        np.arange(n_columns),
        np.zeros((width, n_classes)),
        np.zeros((width + 63) // 64, np.uint64),
        np.empty(width, np.int64),
        np.empty(width, np.int64),
        np.empty(width),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_rows, np.uint16),
        np.empty(n_rows, np.int32),
        np.empty(n_rows),
        np.empty(n_rows, np.int32),
    )


@kernel(is_part=True)
def _write_sides(sides, n_sides, width, split, chosen):
    """Append the sides of the codes of a split of categories; return the sides, which may be a longer copy."""
    while n_sides + width > len(sides):
        sides = _doubled_sides(sides)
    for position in range(width):
        sides[n_sides + position] = 0
    for position in range(split.n_chosen):
        sides[n_sides + chosen[position]] = 1 if position < split.n_left else 2
    return sides


@kernel
def grow_tree(codes, component, weight, rows, widths, ordered, n_classes, n_tried, at_random, fewest, of_whole, seed):
    """Grow a tree on some rows, and return its nodes, the share of each that goes left, and the sides of categories.

    A node is (column, cut, child): rows whose code of the column is at most the cut go to node `child`, others to
    `child + 1`. If the column is not ordered, `cut` is the start of its sides: 1 is left, 2 is right, and 0 marks a
    code that no row of the node has. The column of a leaf is −1. Children have greater indices than their parent.

    Parameters
    ----------
    codes : (d, n) uint16, 0 where missing
    component, weight : (n,)
    rows : (m,) int32, which are reordered
    widths : (d,), the number of codes of each column, 0 included
    ordered : (d,) bool
    n_tried : columns per node, of those that vary in it
    at_random : whether a cut is drawn at random, or the best one is chosen
    fewest : the least weight of a node to be split
    of_whole : x·log x for x = 0, 1, …
    """
    width = 1
    for j in range(len(codes)):
        width = max(width, widths[j])
    scratch = _scratch(len(rows), len(codes), width, n_classes, seed)
    waiting = np.empty((2 * _DEEPEST + 4, 4), np.int64)  # node, first row, last row, depth
    nodes, share = np.empty((64, 3), np.int32), np.empty(64)
    sides = np.empty(256, np.uint8)
    n_nodes, n_sides, n_waiting = 1, 0, 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, 0, len(rows), 0
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting, 0], waiting[n_waiting, 1]
        last, depth = waiting[n_waiting, 2], waiting[n_waiting, 3]
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = -1, 0, 0
        share[node] = 0.5
        inside = rows[first:last]
        if depth >= _DEEPEST or not _can_split(inside, component, weight, scratch, fewest):
            continue
        split = _choose_split(codes, inside, ordered, n_tried, at_random, scratch, of_whole)
        if split.column < 0:
            continue
        cut, is_ordered = split.cut, ordered[split.column]
        if not is_ordered:
            cut = n_sides
            sides = _write_sides(sides, n_sides, widths[split.column], split, scratch.chosen)
            n_sides += widths[split.column]
        n_left, share[node] = _divide(codes[split.column], inside, is_ordered, cut, sides, scratch)
        if n_nodes + 2 > len(nodes):
            nodes, share = _doubled_nodes(nodes, share)
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = split.column, cut, n_nodes
        for side in range(2):
            waiting[n_waiting, 0] = n_nodes + side
            waiting[n_waiting, 1] = first if side == 0 else first + n_left
            waiting[n_waiting, 2] = first + n_left if side == 0 else last
            waiting[n_waiting, 3] = depth + 1
            n_waiting += 1
        n_nodes += 2
    return nodes[:n_nodes], share[:n_nodes], sides[:n_sides]
