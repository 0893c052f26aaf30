"""Greedy merging of categories for the MODL value grouping, and numbers of partitions."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel


@kernel
def merge_values(counts, first, second, increase):
    """Merge the two groups whose union costs least, until one is left, and record each merge.

    The cost of a group with class counts n_c and sum n is log Γ(n + C) − log Γ(C) − Σ_c log Γ(n_c + 1): Boullé (2005),
    equation 2, where log C(n + C − 1, C − 1) and log(n! / Π_c n_c!) share the factor n!.

    Parameters
    ----------
    counts : ndarray (M, C)
        Class counts of each group; overwritten.
    first, second : ndarray (M − 1,)
        Set to the groups that each step merges; the union is stored at `first`.
    increase : ndarray (M − 1,)
        Set to the increase of the cost by each step, in nats; negative if the merge pays.
    """
    m = len(counts)
    cost = np.empty(m)
    active = np.ones(m, np.bool_)
    change = np.full((m, m), math.inf)  # change[a, b] for a < b
    best = np.zeros(m, np.int64)  # of each row, the partner with the least change
    for a in range(m):
        cost[a] = _cost(counts, a, a)
    for a in range(m):
        for b in range(a + 1, m):
            change[a, b] = _cost(counts, a, b) - cost[a] - cost[b]
        best[a] = np.argmin(change[a])
    for step in range(m - 1):
        a = -1
        for row in range(m):
            if active[row] and (a < 0 or change[row, best[row]] < change[a, best[a]]):
                a = row
        b = best[a]
        first[step], second[step], increase[step] = a, b, change[a, b]
        for c in range(counts.shape[1]):
            counts[a, c] += counts[b, c]
        cost[a] = _cost(counts, a, a)
        active[b] = False
        change[b, :] = math.inf
        change[:, b] = math.inf
        for other in range(m):
            if active[other] and other != a:
                low, high = min(a, other), max(a, other)
                change[low, high] = _cost(counts, a, other) - cost[a] - cost[other]
        for row in range(m):
            # A row is searched again if its best partner was one of the two, or if its pair with the union is better.
            if active[row] and (row == a or best[row] == a or best[row] == b):
                best[row] = np.argmin(change[row])
            elif active[row] and row < a and change[row, a] < change[row, best[row]]:
                best[row] = a


@kernel(is_part=True)
def _cost(counts, a, b):
    """Return the cost of the union of groups a and b, or of one group if they are the same."""
    total, result = 0.0, 0.0
    for c in range(counts.shape[1]):
        n = counts[a, c] if a == b else counts[a, c] + counts[b, c]
        total += n
        if n > 0.0:
            result -= math.lgamma(n + 1.0)
    return result + math.lgamma(total + counts.shape[1]) - math.lgamma(counts.shape[1])


@kernel
def log_stirling(n, out):
    """Set out[k − 1] to log S(n, k), k = 1 …: S(n, k) = k·S(n − 1, k) + S(n − 1, k − 1), the partitions into k sets."""
    out[:] = -math.inf
    out[0] = 0.0
    for i in range(1, n):
        for k in range(min(i, len(out) - 1), 0, -1):
            high, low = out[k] + math.log(k + 1.0), out[k - 1]
            if high < low:
                high, low = low, high
            out[k] = high + math.log1p(math.exp(low - high))
