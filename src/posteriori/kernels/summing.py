"""Sums over rows: first and second moments, ranges, and weights of categories."""

import math

import numpy as np

from posteriori.kernels.compiling import kernel


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
