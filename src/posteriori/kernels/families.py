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
def add_averaged(codes, offsets, strides, log_single, single_offsets, log_pair, log_share, factors, out):
    """Add log Σ_i share_i·p(x_i | z)·Π_{j≠i} p(x_j | x_i, z) to out (n, Z): every column in turn is the parent.

    log_pair[offsets[i, j] + x_i·strides[j] + x_j, z] is log p(x_j | x_i, z), where 0 is a missing cell.
    factors (d, Z) is working memory.
    """
    n, d = codes.shape
    n_components = log_single.shape[1]
    for r in range(n):
        for i in range(d):
            a = np.uint64(codes[r, i])
            slot = np.uint64(single_offsets[i]) + a
            for z in range(n_components):
                factors[i, z] = log_share[i] + log_single[slot, z]
            for j in range(d):
                if j != i:
                    slot = np.uint64(offsets[i, j]) + a * np.uint64(strides[j]) + np.uint64(codes[r, j])
                    for z in range(n_components):
                        factors[i, z] += log_pair[slot, z]
        for z in range(n_components):
            peak = factors[0, z]
            for i in range(1, d):
                peak = max(peak, factors[i, z])
            total = 0.0
            if peak > -np.inf:
                for i in range(d):
                    total += np.exp(factors[i, z] - peak)
            out[r, z] += peak + np.log(total) if total > 0.0 else -np.inf
