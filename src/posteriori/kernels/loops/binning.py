"""Digitisation, densities within bins, and cut points by minimum description length (MDLP)."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel

_BLOCK = 256  # rows per binary search in lockstep


@kernel
def digitise(values, columns, starts, cuts, positions, codes):
    """Write to codes[:, positions[k]] 1 + the number of cuts ≤ values[:, columns[k]], or 0 for a missing cell."""
    n = len(values)
    cells, bins = np.empty(_BLOCK), np.empty(_BLOCK, np.uintp)
    for start in range(0, n, _BLOCK):
        m = min(n - start, _BLOCK)
        for k in range(len(columns)):
            for i in range(m):
                cells[i] = values[start + i, columns[k]]
            _find_bins(cells, m, cuts[starts[k] : starts[k + 1]], bins)
            for i in range(m):
                codes[start + i, positions[k]] = 0 if math.isnan(cells[i]) else bins[i] + np.uintp(1)


@kernel(is_part=True)
def _find_bins(cells, m, cuts, bins):
    """Write to bins[i] how many of the ascending cuts are ≤ cells[i], for the first m cells.

    A binary search of all cells in lockstep. Comparison results are added instead of branched on, because the branches
    are unpredictable.
    """
    for i in range(m):
        bins[i] = 0
    length = len(cuts)
    while length > 0:
        half = (length + 1) >> 1
        step, last = np.uintp(half), np.uintp(half - 1)
        for i in range(m):
            bins[i] += step * np.uintp(cuts[bins[i] + last] <= cells[i])
        length -= half


@kernel
def add_tail_moments(values, first, last, out):
    """Write first[j] − x to out[:, j] and x − last[j] to out[:, d + j], NaN if negative; x if first[j] is NaN."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            x = np.float64(values[i, j])
            out[i, j] = x if math.isnan(first[j]) else first[j] - x if x < first[j] else math.nan
            out[i, d + j] = x - last[j] if x >= last[j] else math.nan


@kernel
def within_bins(values, starts, cuts, log_height, anchor, rate, precision, out):
    """Write log_height − rate·|x − anchor| − precision·(x − anchor)²/2 for the bin of each cell, 0 if missing.

    The bins of column j are the slots from starts[j] + j on, one more than it has cuts.
    """
    n, d = values.shape
    cells, bins = np.empty(_BLOCK), np.empty(_BLOCK, np.uintp)
    for start in range(0, n, _BLOCK):
        m = min(n - start, _BLOCK)
        for j in range(d):
            for i in range(m):
                cells[i] = values[start + i, j]
            _find_bins(cells, m, cuts[starts[j] : starts[j + 1]], bins)
            first = np.uintp(starts[j] + j)
            for i in range(m):
                slot = first + bins[i]
                distance = cells[i] - anchor[slot]
                log_density = log_height[slot] - rate[slot] * abs(distance)
                log_density -= 0.5 * precision[slot] * distance * distance
                out[start + i, j] = 0.0 if math.isnan(cells[i]) else log_density


@kernel
def mdlp(component, weight, last, n_components, logarithms, cut):
    """Set cut[i] where MDLP divides the rows, sorted by value, after row i.

    last[i] is True if the next row has another value, so that a cut may lie between them. logarithms holds k·log k for
    every integer up to the total weight if all weights are integers, and is empty otherwise.

    Fayyad & Irani (1993), equation 3 and the criterion of section 3.1, both sides times N·log 2: an interval is cut
    where the entropy N₁·H₁ + N₂·H₂ is least, if N·H less that exceeds
    log(N − 1) + log(3ᵏ − 2) − (k·H − k₁·H₁ − k₂·H₂), k counting the classes present.
    """
    total, below = np.zeros(n_components), np.zeros(n_components)
    pending = np.empty((len(component) + 1, 2), np.int64)  # intervals, which share no row
    pending[0, 0], pending[0, 1] = 0, len(component)
    n_pending = 1
    while n_pending > 0:
        n_pending -= 1
        first, stop = pending[n_pending]
        total[:] = 0.0
        for i in range(first, stop):
            total[component[i]] += weight[i]
        n, k, information = _describe(total, logarithms)
        if n < 2.0 or k < 2:  # below N = 2, log(N − 1) is negative: it would reward any cut
            continue
        best = _best_cut(component, weight, last, first, stop, total, below, logarithms)
        if best < 0:
            continue
        below[:] = 0.0
        for i in range(first, best + 1):
            below[component[i]] += weight[i]
        n1, k1, information1 = _describe(below, logarithms)
        total[:] = 0.0
        for i in range(best + 1, stop):
            total[component[i]] += weight[i]
        n2, k2, information2 = _describe(total, logarithms)
        if n1 <= 0.0 or n2 <= 0.0:
            continue
        cost = math.log(n - 1.0) + k * math.log(3.0) + math.log1p(-2.0 * 3.0**-k)
        cost -= k * information / n - k1 * information1 / n1 - k2 * information2 / n2
        if information - information1 - information2 > cost:
            cut[best] = True
            pending[n_pending, 0], pending[n_pending, 1] = first, best + 1
            pending[n_pending + 1, 0], pending[n_pending + 1, 1] = best + 1, stop
            n_pending += 2


@kernel(is_part=True)
def _best_cut(component, weight, last, first, stop, total, below, logarithms):
    """Return the row after which a cut leaves the least entropy, the first among ties; −1 if no cut is possible."""
    n_components = len(total)
    n, sum1, sum2 = 0.0, 0.0, 0.0
    for c in range(n_components):
        n += total[c]
        sum2 += _times_log(total[c], logarithms)
    below[:] = 0.0
    n1 = 0.0
    best, least = -1, math.inf
    tolerance = 1e-12 * _times_log(n, logarithms)  # entropies that differ only by rounding are ties
    for i in range(first, stop):
        c, w = component[i], weight[i]
        above = max(total[c] - below[c], 0.0)
        sum1 -= _times_log(below[c], logarithms)
        sum2 -= _times_log(above, logarithms)
        below[c] += w
        n1 += w
        sum1 += _times_log(below[c], logarithms)
        sum2 += _times_log(max(above - w, 0.0), logarithms)
        if last[i] and i + 1 < stop:
            entropy = _times_log(n1, logarithms) - sum1 + _times_log(max(n - n1, 0.0), logarithms) - sum2
            if entropy < least - tolerance:
                best, least = i, entropy
    return best


@kernel(is_part=True)
def _describe(weight, logarithms):
    """Return the total weight N, the number of classes with positive weight, and N·H for the entropy H."""
    n, k, total = 0.0, 0, 0.0
    for c in range(len(weight)):
        if weight[c] > 0.0:
            n += weight[c]
            k += 1
            total += _times_log(weight[c], logarithms)
    return n, k, _times_log(n, logarithms) - total


@kernel(is_part=True)
def _times_log(x, logarithms):
    """Return x·log x, 0 at 0."""
    if len(logarithms) > 0:
        return logarithms[int(x)]
    return x * math.log(x) if x > 0.0 else 0.0
