"""Weighted sums over rows with responsibilities, an (n, Z) matrix of weights."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import REORDERED, kernel

_LEAST_SHARE = 1e-18  # smaller responsibilities do not change a sum of doubles over many rows
_AT_ONCE = 64  # rows


@kernel
def weight_responsibilities(responsibilities, weight):
    """Multiply each row of responsibilities by its weight, with 0 for those that are too small to change a sum."""
    n, n_components = responsibilities.shape
    for i in range(n):
        w = weight[i]
        for z in range(n_components):
            share = responsibilities[i, z]
            responsibilities[i, z] = w * share if w > 0 and share > _LEAST_SHARE else 0.0


@kernel
def add_responsibilities(responsibilities, total):
    """Add the responsibilities (n, Z) of each component to total (Z,)."""
    n, n_components = responsibilities.shape
    for i in range(n):
        for z in range(n_components):
            total[z] += responsibilities[i, z]


@kernel
def weightiest_numbers(values, responsibilities, shift):
    """Set shift[z, j] to the number of column j with the largest responsibility of z; unchanged if there is none."""
    n, d = values.shape
    n_components = responsibilities.shape[1]
    largest = np.zeros((n_components, d))
    least = np.zeros(n_components)  # the minimum over columns of `largest`: a smaller responsibility changes nothing
    for i in range(n):
        for z in range(n_components):
            if responsibilities[i, z] > least[z]:
                least[z] = math.inf
                for j in range(d):
                    if responsibilities[i, z] > largest[z, j] and not math.isnan(values[i, j]):
                        largest[z, j] = responsibilities[i, z]
                        shift[z, j] = values[i, j]
                    least[z] = min(least[z], largest[z, j])


@kernel(fastmath=REORDERED)
def add_complete_moments(values, responsibilities, shift, total, first, second):
    """Do `add_weighted_moments` for complete rows, four at a time; return the number of rows before a missing cell."""
    n, d = values.shape
    n_components = responsibilities.shape[1]
    for i in range(0, n - 3, 4):
        row0, row1, row2, row3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        probe = 0.0
        for j in range(d):
            probe += row0[j] + row1[j] + row2[j] + row3[j]
        if math.isnan(probe):
            return i
        for z in range(n_components):
            w0, w1, w2, w3 = (
                responsibilities[i, z],
                responsibilities[i + 1, z],
                responsibilities[i + 2, z],
                responsibilities[i + 3, z],
            )
            row_shift, row_first, row_second = shift[z], first[z], second[z]
            for j in range(d):
                x0, x1, x2, x3 = row0[j], row1[j], row2[j], row3[j]
                x0, x1, x2, x3 = x0 - row_shift[j], x1 - row_shift[j], x2 - row_shift[j], x3 - row_shift[j]
                wx0, wx1, wx2, wx3 = w0 * x0, w1 * x1, w2 * x2, w3 * x3
                row_first[j] += wx0 + wx1 + wx2 + wx3
                row_second[j] += wx0 * x0 + wx1 * x1 + wx2 * x2 + wx3 * x3
            total[z] += w0 + w1 + w2 + w3
    return n - n % 4


@kernel(fastmath=REORDERED)
def add_weighted_moments(values, responsibilities, shift, total, first, second):
    """Add w, w·(x − shift) and w·(x − shift)² of every present cell to (Z, d) sums; w is the responsibility of z."""
    n, d = values.shape
    n_components = responsibilities.shape[1]
    # Column by column, so that the sums of a component stay in registers.
    cells, present = np.empty((d, _AT_ONCE)), np.empty((d, _AT_ONCE))
    weight = np.empty((n_components, _AT_ONCE))
    for start in range(0, n, _AT_ONCE):
        m = min(_AT_ONCE, n - start)
        for k in range(_AT_ONCE):
            for j in range(d):
                x = values[start + k, j] if k < m else math.nan
                missing = math.isnan(x)
                cells[j, k] = 0.0 if missing else x
                present[j, k] = 0.0 if missing else 1.0
            for z in range(n_components):
                weight[z, k] = responsibilities[start + k, z] if k < m else 0.0
        for z in range(n_components):
            mine = weight[z]
            for j in range(d):
                column, known, origin = cells[j], present[j], shift[z, j]
                sum0 = sum1 = sum2 = 0.0
                for k in range(_AT_ONCE):
                    w = mine[k] * known[k]
                    deviation = column[k] - origin
                    weighted = w * deviation
                    sum0 += w
                    sum1 += weighted
                    sum2 += weighted * deviation
                total[z, j] += sum0
                first[z, j] += sum1
                second[z, j] += sum2


@kernel
def add_weighted_counts(codes, responsibilities, offsets, table):
    """Add each row's responsibilities to the lines of its cells in the (S, Z) table: offset of the column + code."""
    n, d = codes.shape
    n_components = responsibilities.shape[1]
    for i in range(n):
        for j in range(d):
            slot = offsets[j] + codes[i, j]
            for z in range(n_components):
                table[slot, z] += responsibilities[i, z]


@kernel
def shared_deviations(values, responsibilities, z, shift, deviation):
    """Write √w·(x − shift[z]) and √w side by side, for the rows with a responsibility w > 0 of z; return how many."""
    n, d = values.shape
    row_shift = shift[z]
    m = 0
    for i in range(n):
        if responsibilities[i, z] > 0:
            root = math.sqrt(responsibilities[i, z])
            row, target = values[i], deviation[m]
            for j in range(d):
                target[j] = root * (row[j] - row_shift[j])
            target[d] = root
            m += 1
    return m
