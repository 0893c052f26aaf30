"""The choice of the split of a node of a tree, by histograms of its runs.

The rows of a node are in the order of their classes, so that those of a class are neighbours: a run. Indices in the
inner loops are unsigned: signed ones are compared with 0 first.
"""

from typing import Any, NamedTuple

import numpy as np

from posteriori.kernels.loops.hashing import INCREMENT, uniform
from posteriori.kernels.machine.compiling import REORDERED, kernel

_FEWEST = 1e-9  # weight of a side: less is rounding
MOST_JUDGED = 4096  # rows of a node that choose its split
GOLDEN = 0.6180339887498949  # its multiples are far from each other, less whole numbers
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its shifts have different highest six bits, which give the place of a bit
_PLACE = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACE[(int(_DE_BRUIJN) << _bit & (1 << 64) - 1) >> 58] = _bit


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
def draw(state):
    """Return a uniform number in [0, 1)."""
    state[0] += INCREMENT
    return uniform(state[0])


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
    present[0] &= ~np.uint64(1)
    n_codes = 0
    for word in range(len(present)):
        bits = present[word]
        present[word] = np.uint64(0)
        while bits != np.uint64(0):
            lowest = bits & (~bits + np.uint64(1))
            codes[n_codes] = (word << 6) + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            n_codes += 1
            bits ^= lowest
    return n_codes


@kernel(is_part=True)
def _project(histogram, codes, n_codes, n_runs, n_classes, scratch):
    """Write random projections of the class distributions of codes to key; p(y = 1 | code) for two classes."""
    key, direction = scratch.key, scratch.left
    for r in range(n_runs):
        direction[r] = float(scratch.classes[r]) if n_classes == 2 else draw(scratch.state)
    order = draw(scratch.state)  # of ties
    for k in range(n_codes):
        total, projected = 0.0, 0.0
        for r in range(n_runs):
            total += histogram[codes[k], r]
            projected += direction[r] * histogram[codes[k], r]
        tie = order + codes[k] * GOLDEN
        key[k] = projected / total + 1e-9 * (tie - np.floor(tie))


@kernel(is_part=True)
def _sort(codes, key, n_codes):
    """Sort codes by their keys."""
    for k in range(1, n_codes):
        code, value, position = codes[k], key[k], k
        while position > 0 and key[position - 1] > value:
            key[position] = key[position - 1]
            codes[position] = codes[position - 1]
            position -= 1
        key[position] = value
        codes[position] = code


@kernel(is_part=True)
def _random_prefix(codes, key, n_codes, state):
    """Move the codes with the n smallest keys before the others, for a random n; return n.

    Those are the codes with at most the key of a random one, which is not the one with the largest key.
    """
    largest = 0
    for k in range(1, n_codes):
        if key[k] > key[largest]:
            largest = k
    drawn = int(draw(state) * (n_codes - 1))
    bound = key[drawn + (drawn >= largest)]
    n_left = 0
    for k in range(n_codes):
        code = codes[k]
        codes[k] = codes[n_left]
        codes[n_left] = code
        n_left += key[k] <= bound
    return n_left


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
    cut = low + int(draw(scratch.state) * (high - low))
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
        _project(histogram, found, n_codes, n_runs, n_classes, scratch)
    if at_random:
        prefix = _random_prefix(found, scratch.key, n_codes, scratch.state)
        for r in range(n_runs):
            scratch.left[r] = 0.0
            for k in range(prefix):
                scratch.left[r] += histogram[found[k], r]
        gain = _gain(scratch.left, scratch.total, n_runs, of_whole)
    else:
        if not is_ordered:
            _sort(found, scratch.key, n_codes)
        prefix, gain = _best_prefix(histogram, found, n_codes, n_runs, scratch.total, scratch.left, of_whole)
    for r in range(n_runs):
        histogram[0, r] = 0.0
        for k in range(n_codes):
            histogram[found[k], r] = 0.0
    return n_codes, prefix, gain


@kernel(is_part=True)
def _entropy(n_runs, is_weighted, scratch, of_whole):
    """Return n·H(y) of a node in nats."""
    n, entropy = 0.0, 0.0
    for r in range(n_runs):
        first, last = scratch.starts[r], scratch.starts[r + 1]
        total = float(last - first)
        if is_weighted:
            total = 0.0
            for i in range(first, last):
                total += scratch.weights[i]
        n += total
        entropy -= _x_log_x(total, of_whole)
    return entropy + _x_log_x(n, of_whole)


@kernel(is_part=True)
def choose_split(codes, rows, n_runs, ordered, n_classes, n_tried, at_random, is_weighted, scratch, of_whole):
    """Return the split of the greatest gain among `n_tried` columns that vary; a gain of 0 may lead to a rule, too."""
    most, column, cut, n_left, n_chosen = -0.5, -1, 0, 0, 0
    tried, k, enough = 0, 0, _entropy(n_runs, is_weighted, scratch, of_whole) * (1.0 - 1e-9)
    while k < codes.shape[1] and tried < n_tried and most < enough:  # no gain is more than the entropy
        other = k + int(draw(scratch.state) * (codes.shape[1] - k))
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
