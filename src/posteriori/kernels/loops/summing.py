"""Sums over rows: moments, ranges, weights of categories and of their combinations, and the information of pairs."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel

_ROWS = 512  # per block: the codes of a column stay in the first-level cache while all its pairs are counted


@kernel
def add_joint_counts(codes, component, weight, widths, members, starts, offsets, table):
    """Add the weight of each row to table[offsets[s] + cell] for every scope s.

    Scope s holds the columns members[starts[s]:starts[s + 1]]. The cell is a mixed-radix number: its first digit is the
    component, followed by the codes of the columns, where column j has widths[j] codes. Neighbouring scopes that differ
    only in their last column share the number of the other columns. Four scopes are counted at a time: if rows repeat,
    an increment waits for the previous one in the same table, but not for increments of other tables.
    """
    n, d = codes.shape
    n_scopes = len(starts) - 1
    columns = np.empty((d, _ROWS), np.uint32)
    prefix = np.empty(_ROWS, np.uint32)
    cells = np.empty((4, _ROWS), np.uint32)
    for first in range(0, n, _ROWS):
        m = min(_ROWS, n - first)
        w = weight[first : first + m]
        block = codes[first : first + m]
        for j in range(d):
            column = columns[j]
            for r in range(m):
                column[r] = block[r, j]
        for s in range(n_scopes):
            if s == 0 or not _same_prefix(members, starts, s - 1):
                for r in range(m):
                    prefix[r] = component[first + r]
                for position in range(starts[s], starts[s + 1] - 1):
                    _append_digit(prefix, widths[members[position]], columns[members[position]], m, prefix)
            last = members[starts[s + 1] - 1]
            _append_digit(prefix, widths[last], columns[last], m, cells[s % 4])
            if s % 4 == 3:
                _add_four(w, cells, table, offsets, s - 3)
        for s in range(n_scopes - n_scopes % 4, n_scopes):
            part, cell = table[offsets[s] : offsets[s + 1]], cells[s % 4]
            for r in range(m):
                part[cell[r]] += w[r]


@kernel(is_part=True)
def _append_digit(number, width, digit, m, out):
    width = np.uint32(width)
    for r in range(m):
        out[r] = number[r] * width + digit[r]


@kernel(is_part=True)
def _add_four(weight, cells, table, offsets, s):
    table_a, cell_a = table[offsets[s] : offsets[s + 1]], cells[0]
    table_b, cell_b = table[offsets[s + 1] : offsets[s + 2]], cells[1]
    table_c, cell_c = table[offsets[s + 2] : offsets[s + 3]], cells[2]
    table_d, cell_d = table[offsets[s + 3] : offsets[s + 4]], cells[3]
    for r in range(len(weight)):
        x = weight[r]
        table_a[cell_a[r]] += x
        table_b[cell_b[r]] += x
        table_c[cell_c[r]] += x
        table_d[cell_d[r]] += x


@kernel(is_part=True)
def _same_prefix(members, starts, s):
    """Return whether scopes s and s + 1 differ at most in their last column."""
    length = starts[s + 1] - starts[s]
    if starts[s + 2] - starts[s + 1] != length:
        return False
    shared = True
    for position in range(starts[s], starts[s + 1] - 1):
        shared &= members[position] == members[position + length]
    return shared


@kernel
def pair_information(cells, offsets, width_a, width_b, n_components, weight, information):
    """Set weight[s, z] to n and information[s, z] to n·I = Σ_ab n_ab·log(n_ab·n / (n_a·n_b)) of pair s.

    The sums are over rows in which both cells are present (codes from 1). Two divisions instead of one product n_a·n_b
    avoid overflow for large weights; rounding below 0 is cut off, because mutual information is not negative.
    """
    for s in range(len(offsets) - 1):
        rows, columns = width_a[s], width_b[s]
        row_sum = np.empty(rows)
        column_sum = np.empty(columns)
        for z in range(n_components):
            table = cells[offsets[s] + z * rows * columns : offsets[s] + (z + 1) * rows * columns]
            row_sum[:] = 0.0
            column_sum[:] = 0.0
            for a in range(1, rows):
                for b in range(1, columns):
                    row_sum[a] += table[a * columns + b]
                    column_sum[b] += table[a * columns + b]
            n = row_sum.sum()
            total = 0.0
            for a in range(1, rows):
                for b in range(1, columns):
                    count = table[a * columns + b]
                    if count > 0.0:
                        total += count * np.log(count / row_sum[a] * (n / column_sum[b]))
            weight[s, z] = n
            information[s, z] = max(total, 0.0)


@kernel
def gather_joint_counts(cells, offsets, widths, members, starts, components, codes, code_starts, new_offsets, out):
    """Write the counts of other components and codes to out, which holds zeros.

    The layout of cells and of out is that of `add_joint_counts`. Component z of out is components[z] of the cells, and
    code a of column j is codes[code_starts[j] + a]; −1 stands for one that the cells do not have.
    """
    digits = np.empty(len(widths) + 1, np.int64)
    for s in range(len(starts) - 1):
        scope = members[starts[s] : starts[s + 1]]
        last = scope[-1]
        mapped = codes[code_starts[last] : code_starts[last + 1]]
        n_prefixes = (new_offsets[s + 1] - new_offsets[s]) // len(mapped)
        digits[: len(scope)] = 0  # of the component and of all columns but the last
        for prefix in range(n_prefixes):
            row = components[digits[0]]
            for position in range(len(scope) - 1):
                j = scope[position]
                code = codes[code_starts[j] + digits[position + 1]]
                row = row * widths[j] + code if row >= 0 and code >= 0 else -1
            if row >= 0:
                source = cells[offsets[s] + row * widths[last] : offsets[s] + (row + 1) * widths[last]]
                target = out[new_offsets[s] + prefix * len(mapped) : new_offsets[s] + (prefix + 1) * len(mapped)]
                for a in range(len(mapped)):
                    if mapped[a] >= 0:
                        target[a] = source[mapped[a]]
            for position in range(len(scope) - 1, -1, -1):  # count up, the last digit first
                digits[position] += 1
                n_digits = len(components)
                if position > 0:
                    n_digits = code_starts[scope[position - 1] + 1] - code_starts[scope[position - 1]]
                if digits[position] < n_digits:
                    break
                digits[position] = 0


@kernel
def widen_ranges(values, weight, lowest, highest, whole):
    """Widen [lowest[j], highest[j]] to the numbers of column j, and clear whole[j] at a fraction.

    Rows of weight 0 and missing cells (NaN) are omitted.
    """
    n, d = values.shape
    for i in range(n):
        if not weight[i] > 0.0:
            continue
        for j in range(d):
            # Selections instead of branches let the loop vectorise. Comparisons with NaN are False.
            x = values[i, j]
            lowest[j] = x if x < lowest[j] else lowest[j]
            highest[j] = x if x > highest[j] else highest[j]
            whole[j] &= not x > np.floor(x)


@kernel
def first_numbers(values, component, weight, shift):
    """Set shift[z, j] to the first number of positive weight in column j of component z; unchanged if there is none."""
    n, d = values.shape
    has_shift = np.zeros(shift.shape, np.bool_)
    n_open = np.full(shift.shape[0], d)
    remaining = shift.size
    for i in range(n):
        z = component[i]
        if n_open[z] > 0 and weight[i] > 0:
            for j in range(d):
                if not has_shift[z, j] and not math.isnan(values[i, j]):
                    has_shift[z, j] = True
                    shift[z, j] = values[i, j]
                    n_open[z] -= 1
                    remaining -= 1
            if remaining == 0:
                break


@kernel
def add_moments(values, component, weight, shift, total, first, second):
    """Add w, w·(x − shift) and w·(x − shift)² of every present cell to the (Z, d) sums of its component."""
    n, d = values.shape
    for i in range(n):
        z = component[i]
        w = weight[i]
        row = values[i]
        row_shift, row_total, row_first, row_second = shift[z], total[z], first[z], second[z]
        for j in range(d):
            present = not math.isnan(row[j])
            deviation = row[j] - row_shift[j] if present else 0.0
            weighted = w * deviation
            row_total[j] += w if present else 0.0
            row_first[j] += weighted
            row_second[j] += weighted * deviation


@kernel
def add_counts(codes, component, weight, offsets, table):
    """Add each row's weight to the cell (component, offset of the column + code) of the (Z, S) table."""
    n, d = codes.shape
    for i in range(n):
        w = weight[i]
        counts = table[component[i]]
        for j in range(d):
            counts[offsets[j] + codes[i, j]] += w


@kernel
def deviations_by_component(values, component, weight, shift, position, deviation, first):
    """Write √w·(x − shift) of every row to the next free row of its component; add w·(x − shift) to first (Z, d)."""
    n, d = values.shape
    for i in range(n):
        z = component[i]
        w = weight[i]
        root = math.sqrt(w)
        row, row_shift, row_first, target = values[i], shift[z], first[z], deviation[position[z]]
        position[z] += 1
        for j in range(d):
            difference = row[j] - row_shift[j]
            row_first[j] += w * difference
            target[j] = root * difference
