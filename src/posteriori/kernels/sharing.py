"""Adding up rows of which each component has a share: an (n, Z) matrix of weights."""

import math

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel

_LEAST_SHARE = 1e-18  # of a row, which no sum of doubles over many rows would show
_AT_ONCE = 4  # rows, so that a sum is loaded and stored once for them


@kernel
def weigh_shares(responsibilities, weight):
    """Multiply each row of responsibilities by its weight: 0 where the share is too small to be seen in a sum."""
    n, n_components = responsibilities.shape
    for i in range(n):
        w = weight[i]
        for z in range(n_components):
            share = responsibilities[i, z]
            responsibilities[i, z] = w * share if w > 0 and share > _LEAST_SHARE else 0.0


@kernel
def weightiest_numbers(values, shares, shift):
    """Set shift[z, j] to the number of column j of which component z has the largest share; leave it where none is."""
    n, d = values.shape
    n_components = shares.shape[1]
    largest = np.zeros((n_components, d))
    least = np.zeros(n_components)  # of a component's largest shares: a smaller one needs no further look
    for i in range(n):
        for z in range(n_components):
            if shares[i, z] > least[z]:
                least[z] = math.inf
                for j in range(d):
                    if shares[i, z] > largest[z, j] and not math.isnan(values[i, j]):
                        largest[z, j] = shares[i, z]
                        shift[z, j] = values[i, j]
                    least[z] = min(least[z], largest[z, j])


@kernel(fastmath=REORDERED)
def add_shared_moments(values, shares, shift, sums):
    """Add w, w·(x − shift) and w·(x − shift)² of every present cell to sums (Z, 3, d), for each component's share w."""
    n, d = values.shape
    cells = np.empty((_AT_ONCE, d))
    present = np.empty((_AT_ONCE, d))
    for first in range(0, n, _AT_ONCE):
        complete = first + _AT_ONCE <= n
        for k in range(_AT_ONCE):
            for j in range(d):
                x = values[first + k, j] if first + k < n else math.nan
                missing = math.isnan(x)
                cells[k, j] = 0.0 if missing else x
                present[k, j] = 0.0 if missing else 1.0
                complete = complete and not missing
        cells0, cells1, cells2, cells3 = cells[0], cells[1], cells[2], cells[3]
        present0, present1, present2, present3 = present[0], present[1], present[2], present[3]
        for z in range(shares.shape[1]):
            w0 = shares[first, z]
            w1 = shares[first + 1, z] if first + 1 < n else 0.0
            w2 = shares[first + 2, z] if first + 2 < n else 0.0
            w3 = shares[first + 3, z] if first + 3 < n else 0.0
            if w0 + w1 + w2 + w3 == 0.0:
                continue
            row_shift, row_sums = shift[z], sums[z]
            if complete:
                for j in range(d):
                    x0, x1 = cells0[j] - row_shift[j], cells1[j] - row_shift[j]
                    x2, x3 = cells2[j] - row_shift[j], cells3[j] - row_shift[j]
                    row_sums[0, j] += w0 + w1 + w2 + w3
                    row_sums[1, j] += w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
                    row_sums[2, j] += w0 * x0 * x0 + w1 * x1 * x1 + w2 * x2 * x2 + w3 * x3 * x3
            else:
                for j in range(d):
                    x0, x1 = cells0[j] - row_shift[j], cells1[j] - row_shift[j]
                    x2, x3 = cells2[j] - row_shift[j], cells3[j] - row_shift[j]
                    p0, p1, p2, p3 = w0 * present0[j], w1 * present1[j], w2 * present2[j], w3 * present3[j]
                    row_sums[0, j] += p0 + p1 + p2 + p3
                    row_sums[1, j] += p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
                    row_sums[2, j] += p0 * x0 * x0 + p1 * x1 * x1 + p2 * x2 * x2 + p3 * x3 * x3


@kernel
def add_shared_counts(codes, shares, offsets, table):
    """Add each row's shares to the line of each of its cells in the (S, Z) table: offset of the column + code."""
    n, d = codes.shape
    n_components = shares.shape[1]
    for i in range(n):
        for j in range(d):
            slot = offsets[j] + codes[i, j]
            for z in range(n_components):
                table[slot, z] += shares[i, z]


@kernel
def shared_deviations(values, shares, z, shift, deviation):
    """Write √w·(x − shift[z]) and √w side by side, for the rows that have a share w in component z; return how many."""
    n, d = values.shape
    row_shift = shift[z]
    m = 0
    for i in range(n):
        if shares[i, z] > 0:
            root = math.sqrt(shares[i, z])
            row, target = values[i], deviation[m]
            for j in range(d):
                target[j] = root * (row[j] - row_shift[j])
            target[d] = root
            m += 1
    return m
