"""Integers and rows of integers as codes."""

import numpy as np

from posteriori.kernels.machine.compiling import kernel


@kernel
def encode_integers(values, low, lookup, starts, codes):
    """Write the code of each integer: lookup[starts[j] + value − low[j]], or 0 beyond the column's range."""
    n, d = values.shape
    width = np.empty(d, np.uintp)
    for j in range(d):
        width[j] = starts[j + 1] - starts[j]
    if d == 1:  # a single column, such as the labels, needs no inner loop
        start, least, most = np.uintp(starts[0]), low[0], width[0]
        for i in range(n):
            position = np.uintp(values[i, 0] - least)
            codes[i, 0] = lookup[start + position] if position < most else 0
        return
    for i in range(n):
        for j in range(d):
            position = np.uintp(values[i, j] - low[j])  # unsigned: a value below the range wraps around to one above it
            codes[i, j] = lookup[np.uintp(starts[j]) + position] if position < width[j] else 0


@kernel
def mark_integers(values, low, starts, seen):
    """Set seen[starts[j] + value − low[j]] for every value of column j; return whether all values were in range."""
    n, d = values.shape
    width = np.empty(d, np.uintp)
    for j in range(d):
        width[j] = starts[j + 1] - starts[j]
    unseen = 0
    if d == 1:
        start, least, most = np.uintp(starts[0]), low[0], width[0]
        for i in range(n):
            position = np.uintp(values[i, 0] - least)
            if position < most:
                seen[start + position] = True
            else:
                unseen += 1
        return unseen == 0
    for i in range(n):
        for j in range(d):
            position = np.uintp(values[i, j] - low[j])
            if position < width[j]:
                seen[np.uintp(starts[j]) + position] = True
            else:
                unseen += 1
    return unseen == 0


@kernel
def integer_ranges(values, low, high):
    """Lower low[j] and raise high[j] to the range of column j."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            x = np.int64(values[i, j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)


@kernel
def index_distinct_rows(codes, number, first):
    """Set number[i] to the index of row i among the distinct rows, and first[k] to the first occurrence of row k.

    Returns the number of distinct rows. Uses open addressing in a table that is at most half full.
    """
    n, d = codes.shape
    size = 2
    while size < 2 * n:
        size *= 2
    table = np.full(size, np.int64(-1))
    mask = np.uint64(size - 1)
    n_distinct = 0
    for i in range(n):
        mixed = np.uint64(14695981039346656037)  # Fowler, Noll & Vo's hash, its bits folded at the end
        for j in range(d):
            mixed = (mixed ^ np.uint64(codes[i, j])) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
        slot = mixed & mask
        while True:
            k = table[slot]
            if k < 0:
                table[slot] = n_distinct
                first[n_distinct] = i
                number[i] = n_distinct
                n_distinct += 1
                break
            same = True
            for j in range(d):
                if codes[i, j] != codes[first[k], j]:
                    same = False
                    break
            if same:
                number[i] = k
                break
            slot = (slot + np.uint64(1)) & mask
    return n_distinct
