"""Log factors of columns given their parents, added to a row's log joint."""

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED)
def add_families(codes, families, log_probability, out):
    """Add log p(x_j | parents, z) of each family to out (n, Z).

    Family j reads the columns members[starts[j]:starts[j + 1]] of `Families`, the child among them, and its slot is
    offsets[j] + Σ code·stride; log_probability is (slots, Z), so that the components of a slot are neighbours.
    """
    members, starts, strides, offsets = families.members, families.starts, families.strides, families.offsets
    n = len(codes)
    n_components = log_probability.shape[1]
    n_families = len(offsets)
    for i in range(n):
        for j in range(n_families):
            slot = np.uint64(offsets[j])
            for position in range(starts[j], starts[j + 1]):
                slot += np.uint64(codes[i, members[position]]) * np.uint64(strides[position])
            for z in range(n_components):
                out[i, z] += log_probability[slot, z]


@kernel(fastmath=REORDERED)
def add_averaged(codes, starts, log_probability, out):
    """Add log 1/d·Σ_i Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z) to out (n, Z): each column in turn is the parent.

    The inner sum is over the observed value of x_i, or over all its values if it is missing. j runs over the present
    columns. log_probability[slot of x_i, z, slot of x_j] is log p(x_j | x_i, z), and log p(x_i | z) for
    i = j; the slot of a code is starts[j] + code. For a column without categories the slot of code 0 is used.
    """
    n, d = codes.shape
    n_slots, n_components = log_probability.shape[:2]
    slots = np.empty(d, np.uint64)
    terms = np.empty((n_components, n_slots))
    for r in range(n):
        present = 0
        for j in range(d):
            if codes[r, j] > 0:
                slots[present] = np.uint64(starts[j]) + np.uint64(codes[r, j])
                present += 1
        n_terms = 0
        for i in range(d):
            code = np.int64(codes[r, i])
            width = (starts[i + 1] if i + 1 < d else n_slots) - starts[i]
            first, last = (code, code) if code > 0 else (min(1, width - 1), width - 1)
            for a in range(first, last + 1):
                slot = np.uint64(starts[i] + a)
                for z in range(n_components):
                    given = log_probability[slot, np.uint64(z)]
                    total = 0.0 if code > 0 else given[slot]
                    for position in range(present):
                        total += given[slots[position]]
                    terms[z, n_terms] = total
                n_terms += 1
        for z in range(n_components):
            peak = terms[z, :n_terms].max()
            total = 0.0
            if peak > -np.inf:
                for i in range(n_terms):
                    total += np.exp(terms[z, i] - peak)
            out[r, z] += peak + np.log(total / d) if total > 0.0 else -np.inf


@kernel
def chain_averaged(codes, starts, log_probability, out):
    """Write log p(x_j | the present ones of x_1 … x_{j−1}, z) under the average of `add_averaged` to out[i, z, j].

    The factor is 0 if x_j is missing or the columns before it have probability 0.
    """
    n, d = codes.shape
    n_slots, n_components = log_probability.shape[:2]
    terms = np.empty(n_slots)  # log p(x_i = a, the columns so far | z), of every column i and each of its values
    for r in range(n):
        for z in range(n_components):
            terms[:] = -np.inf
            for i in range(d):
                stop = starts[i + 1] if i + 1 < d else n_slots
                for slot in range(min(starts[i] + 1, stop - 1), stop):
                    terms[slot] = log_probability[slot, z, slot]
            before = np.log(np.float64(d))
            for j in range(d):
                code = np.int64(codes[r, j])
                if code == 0:
                    out[r, z, j] = 0.0
                    continue
                stop = starts[j + 1] if j + 1 < d else n_slots
                child = starts[j] + code
                peak = -np.inf
                for slot in range(n_slots):
                    if slot < starts[j] or slot >= stop:
                        terms[slot] += log_probability[slot, z, child]
                    elif slot != child:
                        terms[slot] = -np.inf
                    peak = max(peak, terms[slot])
                total = 0.0
                if peak > -np.inf:
                    for slot in range(n_slots):
                        if terms[slot] > -np.inf:
                            total += np.exp(terms[slot] - peak)
                after = peak + np.log(total) if total > 0.0 else -np.inf
                out[r, z, j] = after - before if before > -np.inf else 0.0
                before = after
