"""Distinct rows of codes, by hashing."""

import numpy as np

from posteriori.kernels.compiling import kernel


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
