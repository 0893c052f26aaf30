"""The tables of a tree of categories, under the counts without one row."""

import math

import numpy as np

from posteriori.kernels.loops.back_off import halfway
from posteriori.kernels.loops.left_out_counts import smoothed, without
from posteriori.kernels.machine.compiling import kernel


@kernel
def tree_left_out(
    codes, y, w, parents, widths, start, offsets, counts, pooled, pseudo_rows, alpha, stepwise, first, table
):
    """Write the tables log p(x_j | x_parent, z) without one row of codes (d,), for the components from `first` on.

    The table of column j and component z starts at table[start[z − first, j]]. counts and pooled are those of
    `SmoothedCounts`, for families of a child and its parent; parents (d,) is −1 at a root. The smoothing is that of
    `BackOff`: p(x | z) backs off to p(x), and p(x | a, z) to the mean of p(x | z) and p(x | a).
    """
    d = len(codes)
    overall = np.empty(widths.max())
    share = np.empty(widths.max())
    for j in range(d):
        k, of_single = widths[j] - 1, pseudo_rows[j, 0]
        strength = pseudo_rows[j, 1] if parents[j] >= 0 else 0.0
        x_own, base = np.int64(codes[j]), offsets[j]
        parent_own = np.int64(codes[parents[j]]) if parents[j] >= 0 else 0
        n_given = widths[parents[j]] if parents[j] >= 0 else 1
        seen = w if x_own > 0 else 0.0
        for z in range(first, first + len(start)):
            mine = seen if z == y else 0.0
            here = start[z - first, j]
            table[here] = 0.0
            total, total_of_all = without(counts[base, z], mine), without(pooled[base], seen)
            for x in range(1, k + 1):
                gone = 1.0 if x == x_own else 0.0
                count = without(pooled[base + x], gone * seen)
                overall[x] = smoothed(count, total_of_all, 1.0 / k, 0.0, k, alpha, False)
                count = without(counts[base + x, z], gone * mine)
                share[x] = smoothed(count, total, overall[x], of_single, k, alpha, stepwise)
                table[here + x] = math.log(share[x]) if share[x] > 0.0 else -math.inf
            for a in range(1, n_given):
                slot = base + a * widths[j]
                line = here + a * widths[j]
                table[line] = 0.0
                met = 1.0 if a == parent_own else 0.0
                total, total_of_all = without(counts[slot, z], met * mine), without(pooled[slot], met * seen)
                for x in range(1, k + 1):
                    gone = met if x == x_own else 0.0
                    count = without(pooled[slot + x], gone * seen)
                    known = smoothed(count, total_of_all, overall[x], strength, k, alpha, stepwise)
                    count = without(counts[slot + x, z], gone * mine)
                    given = smoothed(count, total, halfway(share[x], known), strength, k, alpha, stepwise)
                    table[line + x] = math.log(given) if given > 0.0 else -math.inf
