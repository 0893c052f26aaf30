"""Growth of randomised decision trees on codes, by histograms of classes per node."""

import numpy as np

from posteriori.kernels.compiling import kernel

_DEEPEST = 60  # levels below a root
_FEWEST = 1e-9  # weight of a side: less is rounding


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
    """Copy the codes of some rows to of_rows; write the distinct ones > 0 into codes, ascending; return their number."""
    for i in range(len(rows)):
        code = column[rows[i]]
        of_rows[i] = code
        present[code >> 6] |= np.uint64(1) << np.uint64(code & 63)
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
def _random_cut(column, rows, of_rows, component, weight, state, total, left):
    """Draw a cut between the least and the greatest code of some rows; fill the weights of the classes.

    The codes are copied to of_rows; component and weight are those of the rows. Return the cut, 0 if there are fewer
    than two codes.
    """
    low, high = 1 << 30, 0
    for i in range(len(rows)):
        code = np.int64(column[rows[i]])
        of_rows[i] = code
        if code > 0:
            low, high = min(low, code), max(high, code)
    if low >= high:
        return 0
    cut = low + int(_draw(state) * (high - low))
    for z in range(len(total)):
        total[z] = 0.0
        left[z] = 0.0
    for i in range(len(rows)):
        code = np.int64(of_rows[i])
        if code > 0:
            total[component[i]] += weight[i]
            if code <= cut:
                left[component[i]] += weight[i]
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


@kernel
def grow_tree(codes, component, weight, rows, widths, ordered, n_classes, n_tried, at_random, fewest, of_whole, seed):
    """Grow a tree on some rows, and return its nodes, the share of each that goes left, and the sides of categories.

    A node is (column, cut, child): rows whose code of the column is at most the cut go to node `child`, others to
    `child + 1`. If the column is not ordered, `cut` is the start of its sides: 1 is left, 2 is right, and 0 marks a
    code that no row of the node has. The column of a leaf is −1. Rows that lack the code go to a side at random, with
    the share of the others. Children have greater indices than their parent.

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
    n_columns = len(codes)
    state = np.empty(1, np.uint64)
    state[0] = seed
    width = 1
    for j in range(n_columns):
        width = max(width, widths[j])
    histogram = np.zeros((width, n_classes))
    present = np.zeros((width + 63) // 64, np.uint64)
    found, chosen, key = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width)
    total, left = np.empty(n_classes), np.empty(n_classes)
    columns = np.arange(n_columns)
    waiting = np.empty((2 * _DEEPEST + 4, 4), np.int64)  # node, first row, last row, depth
    spare = np.empty(len(rows), rows.dtype)
    of_rows, classes, weights = np.empty(len(rows), codes.dtype), np.empty(len(rows), np.int32), np.empty(len(rows))
    nodes, share = np.empty((64, 3), np.int32), np.empty(64)
    sides = np.empty(256, np.uint8)
    n_nodes, n_sides, n_waiting = 1, 0, 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, 0, len(rows), 0
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting, 0], waiting[n_waiting, 1]
        last, depth = waiting[n_waiting, 2], waiting[n_waiting, 3]
        nodes[node, 0] = -1
        nodes[node, 1] = 0
        nodes[node, 2] = 0
        share[node] = 0.5
        inside = rows[first:last]
        for z in range(n_classes):
            left[z] = 0.0
        for i in range(len(inside)):  # copied, so that the columns read them in order
            classes[i] = component[inside[i]]
            weights[i] = weight[inside[i]]
            left[classes[i]] += weights[i]
        n_present, in_node = 0, 0.0
        for z in range(n_classes):
            in_node += left[z]
            if left[z] > 0.0:
                n_present += 1
        if n_present < 2 or in_node < fewest or depth >= _DEEPEST:
            continue
        most, column, cut, n_left_codes, n_chosen = 0.0, -1, 0, 0, 0
        tried, k = 0, 0
        while k < n_columns and tried < n_tried:
            other = k + int(_draw(state) * (n_columns - k))
            j = columns[other]
            columns[other] = columns[k]
            columns[k] = j
            k += 1
            if at_random and ordered[j]:
                at = _random_cut(codes[j], inside, of_rows, classes, weights, state, total, left)
                if at == 0:
                    continue
                tried += 1
                gain = _gain(left, total, of_whole)
                if gain > most:
                    most, column, cut = gain, j, at
                continue
            n_codes = _present_codes(codes[j], inside, of_rows, present, found)
            if n_codes < 2:
                continue
            tried += 1
            for i in range(len(inside)):
                histogram[of_rows[i], classes[i]] += weights[i]
            for z in range(n_classes):
                total[z] = 0.0
                for position in range(n_codes):
                    total[z] += histogram[found[position], z]
            if not ordered[j]:
                _sort_by_projection(histogram, found, n_codes, n_classes, state, key)
            if at_random:
                prefix = 1 + int(_draw(state) * (n_codes - 1))
                for z in range(n_classes):
                    left[z] = 0.0
                    for position in range(prefix):
                        left[z] += histogram[found[position], z]
                gain = _gain(left, total, of_whole)
            else:
                prefix, gain = _best_prefix(histogram, found, n_codes, total, left, of_whole)
            if gain > most:
                most, column = gain, j
                cut = (found[prefix - 1] + found[prefix]) // 2 if ordered[j] else 0
                n_left_codes, n_chosen = prefix, n_codes
                for position in range(n_codes):
                    chosen[position] = found[position]
            for z in range(n_classes):
                histogram[0, z] = 0.0
                for position in range(n_codes):
                    histogram[found[position], z] = 0.0
        if column < 0 or most <= 1e-10:
            continue
        if not ordered[column]:
            cut = n_sides
            n_sides += widths[column]
            while n_sides > len(sides):
                sides = _doubled_sides(sides)
            for position in range(cut, n_sides):
                sides[position] = 0
            for position in range(n_chosen):
                sides[cut + chosen[position]] = 1 if position < n_left_codes else 2
        at_left, n = 0.0, 0.0
        for i in range(len(inside)):
            code = np.int64(codes[column, inside[i]])
            of_rows[i] = code
            if code > 0:
                goes_left = code <= cut if ordered[column] else sides[cut + code] == 1
                n += weights[i]
                at_left += weights[i] if goes_left else 0.0
        middle, n_spare = first, 0
        for i in range(first, last):
            row = rows[i]
            code = np.int64(of_rows[i - first])
            if code == 0:
                goes_left = _draw(state) < at_left / n
            else:
                goes_left = code <= cut if ordered[column] else sides[cut + code] == 1
            if goes_left:
                rows[middle] = row
                middle += 1
            else:
                spare[n_spare] = row
                n_spare += 1
        for position in range(n_spare):
            rows[middle + position] = spare[position]
        if n_nodes + 2 > len(nodes):
            nodes, share = _doubled_nodes(nodes, share)
        nodes[node, 0] = column
        nodes[node, 1] = cut
        nodes[node, 2] = n_nodes
        share[node] = at_left / n
        for side in range(2):
            waiting[n_waiting, 0] = n_nodes + side
            waiting[n_waiting, 1] = first if side == 0 else middle
            waiting[n_waiting, 2] = middle if side == 0 else last
            waiting[n_waiting, 3] = depth + 1
            n_waiting += 1
        n_nodes += 2
    return nodes[:n_nodes], share[:n_nodes], sides[:n_sides]
