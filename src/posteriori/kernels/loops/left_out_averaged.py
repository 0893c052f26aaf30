"""Log densities of averaged one-dependence estimators, under the counts without each row."""

import math

import numpy as np

from posteriori.kernels.loops.back_off import halfway, share_of, with_pseudo_rows
from posteriori.kernels.machine.compiling import kernel


@kernel
def averaged_left_out(codes, component, weight, counts, singles, starts, pseudo_rows, alpha, out):
    """Write log p(x | z) of the average of `add_averaged` under the tables without row i, in nats, to out[i, z].

    Parameters
    ----------
    codes : ndarray (n, d)
    component, weight : ndarray (n,)
        Of each row.
    counts : ndarray (S, S, Z)
        Weight by the slot of the parent, the slot of the child and the component; the slot of a code is
        starts[j] + code. That of code 0 of a child holds the sum over its codes.
    singles : ndarray (S, Z)
        The same of each column alone.
    starts : ndarray (d + 1,)
        Ends with S.
    pseudo_rows : ndarray (d, 2)
        Of p(x_j | z) and of p(x_j | x_i, z).
    alpha : float
    """
    n, d = codes.shape
    n_components = singles.shape[1]
    single, overall, term = np.empty((d, n_components)), np.empty(d), np.empty(n_components)
    pooled, of_pairs = np.zeros(len(singles)), np.zeros((len(counts), len(counts)))
    for a in range(len(counts)):
        for z in range(n_components):
            pooled[a] += singles[a, z]
            for b in range(len(counts)):
                of_pairs[a, b] += counts[a, b, z]
    for i in range(n):
        row, y, w = codes[i], component[i], weight[i]
        for j in range(d):
            if codes[i, j] > 0:
                x = starts[j] + np.int64(codes[i, j])
                overall[j] = _single(
                    x, starts[j], starts[j + 1], singles, pooled, y, w, pseudo_rows[j, 0], alpha, single[j]
                )
        for z in range(n_components):
            out[i, z] = -math.inf
        for parent in range(d):
            first = starts[parent] + np.int64(codes[i, parent])
            if codes[i, parent] > 0:
                for z in range(n_components):
                    term[z] = math.log(single[parent, z])
                _add_children(
                    codes[i], parent, first, starts, counts, of_pairs, y, w, single, overall, pseudo_rows, term
                )
                _add_term(term, out[i])
                continue
            last = starts[parent + 1] - 1
            for a in range(first + 1, last + 1):
                _single(a, first, last + 1, singles, pooled, y, 0.0, pseudo_rows[parent, 0], alpha, term)
                for z in range(n_components):
                    term[z] = math.log(term[z])
                _add_children(row, parent, a, starts, counts, of_pairs, y, 0.0, single, overall, pseudo_rows, term)
                _add_term(term, out[i])
        for z in range(n_components):
            out[i, z] -= math.log(d)
    return 0


@kernel(is_part=True)
def _single(x, start, stop, singles, pooled, y, w, pseudo_rows, alpha, share):
    """Write p(x_j | z) of slot x, without a weight w in component y, to share; return p(x_j)."""
    total = max(pooled[start] - w, 0.0) + (stop - start - 1) * alpha
    of_all = share_of(max(pooled[x] - w, 0.0) + alpha, total, 1.0 / (stop - start - 1))
    for z in range(len(share)):
        gone = w if z == y else 0.0
        count, total = max(singles[x, z] - gone, 0.0), max(singles[start, z] - gone, 0.0)
        share[z] = with_pseudo_rows(count, pseudo_rows, of_all) / (total + pseudo_rows)
    return of_all


@kernel(is_part=True)
def _add_children(row, parent, a, starts, counts, of_pairs, y, w, single, overall, pseudo_rows, term):
    """Add Σ_j log p(x_j | parent in slot a, z), without a weight w in component y, to term (Z,)."""
    for j in range(len(row)):
        if j == parent or row[j] == 0:
            continue
        x, s = starts[j] + np.int64(row[j]), pseudo_rows[j, 1]
        count, total = max(of_pairs[a, x] - w, 0.0), max(of_pairs[a, starts[j]] - w, 0.0)
        among_all = with_pseudo_rows(count, s, overall[j]) / (total + s)
        for z in range(len(term)):
            gone = w if z == y else 0.0
            count, total = max(counts[a, x, z] - gone, 0.0), max(counts[a, starts[j], z] - gone, 0.0)
            term[z] += math.log(with_pseudo_rows(count, s, halfway(single[j, z], among_all)) / (total + s))


@kernel(is_part=True)
def _add_term(term, log_sum):
    """Add exp(term) to exp(log_sum)."""
    for z in range(len(term)):
        higher, lower = max(log_sum[z], term[z]), min(log_sum[z], term[z])
        log_sum[z] = higher + math.log1p(math.exp(lower - higher))
