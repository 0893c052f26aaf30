"""Log factors of columns given their parents, added to a row's log joint."""

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED)
def add_families(codes, members, starts, strides, offsets, log_probability, out):
    """Add log p(x_j | parents, z) of each family to out (n, Z).

    Family j reads the columns members[starts[j]:starts[j + 1]], the child among them, and its slot is
    offsets[j] + Σ code·stride; log_probability is (slots, Z), so that the components of a slot are neighbours.
    """
    n = len(codes)
    n_components = log_probability.shape[1]
    n_families = len(offsets)
    for i in range(n):
        for j in range(n_families):
            slot = np.uint64(offsets[j])
            for place in range(starts[j], starts[j + 1]):
                slot += np.uint64(codes[i, members[place]]) * np.uint64(strides[place])
            for z in range(n_components):
                out[i, z] += log_probability[slot, z]


@kernel(fastmath=REORDERED)
def add_averaged(codes, starts, log_probability, out):
    """Add log 1/d·Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z) to out (n, Z): every column in turn is the parent of all.

    log_probability[slot of x_i, z, slot of x_j] is log p(x_j | x_i, z), and log p(x_i | z) for i = j; the slot of a
    code is starts[j] + code.
    """
    n, d = codes.shape
    n_components = log_probability.shape[1]
    slots = np.empty(d, np.uint64)
    terms = np.empty((n_components, d))
    for r in range(n):
        for j in range(d):
            slots[j] = np.uint64(starts[j]) + np.uint64(codes[r, j])
        for i in range(d):
            for z in range(n_components):
                given = log_probability[slots[i], np.uint64(z)]
                total = 0.0
                for j in range(d):
                    total += given[slots[j]]
                terms[z, i] = total
        for z in range(n_components):
            peak = terms[z].max()
            total = 0.0
            if peak > -np.inf:
                for i in range(d):
                    total += np.exp(terms[z, i] - peak)
            out[r, z] += peak + np.log(total / d) if total > 0.0 else -np.inf
