"""Adding up rows: weights of combinations of categories."""

import numpy as np

from posteriori.kernels.compiling import kernel

_ROWS = 512  # a column of so many codes stays in the first-level cache while all its pairs are counted


@kernel
def add_joint_counts(codes, component, weight, widths, members, starts, offsets, table):
    """Add each row's weight to table[offsets[s] + its cell] for every scope s, first digit the component.

    Scope s holds the columns members[starts[s]:starts[s + 1]]; its cell is the number that the component and the
    codes of those columns spell, a column having widths[j] digits. Scopes that differ in their last column alone
    should be neighbours: they share the work of the others, and are counted two at a time.
    """
    n, d = codes.shape
    n_scopes = len(starts) - 1
    columns = np.empty((d, _ROWS), np.uint16)
    prefix = np.empty(_ROWS, np.uint32)
    for first in range(0, n, _ROWS):
        m = min(_ROWS, n - first)
        w = weight[first : first + m]
        for r in range(m):
            for j in range(d):
                columns[j, r] = codes[first + r, j]
        s = 0
        while s < n_scopes:
            if s == 0 or not _same_prefix(members, starts, s - 1):
                for r in range(m):
                    prefix[r] = component[first + r]
                for place in range(starts[s], starts[s + 1] - 1):
                    j = members[place]
                    width = np.uint32(widths[j])
                    for r in range(m):
                        prefix[r] = prefix[r] * width + columns[j, r]
            a = members[starts[s + 1] - 1]
            width_a = np.uint32(widths[a])
            codes_a = columns[a]
            table_a = table[offsets[s] : offsets[s + 1]]
            if s + 1 < n_scopes and _same_prefix(members, starts, s):
                b = members[starts[s + 2] - 1]
                width_b = np.uint32(widths[b])
                codes_b = columns[b]
                table_b = table[offsets[s + 1] : offsets[s + 2]]
                for r in range(m):
                    spelled, x = prefix[r], w[r]
                    table_a[spelled * width_a + codes_a[r]] += x
                    table_b[spelled * width_b + codes_b[r]] += x
                s += 2
            else:
                for r in range(m):
                    table_a[prefix[r] * width_a + codes_a[r]] += w[r]
                s += 1


@kernel
def _same_prefix(members, starts, s):
    """Return whether scopes s and s + 1 differ in their last column alone."""
    length = starts[s + 1] - starts[s]
    if starts[s + 2] - starts[s + 1] != length:
        return False
    shared = True
    for place in range(starts[s], starts[s + 1] - 1):
        shared &= members[place] == members[place + length]
    return shared


@kernel
def pair_information(cells, offsets, width_a, width_b, n_components, weight, information):
    """Set weight[s, z] and information[s, z], Σ_ab n_ab·log(n_ab·n / (n_a·n_b)), of pair s over the present cells."""
    for s in range(len(offsets) - 1):
        rows, columns = width_a[s], width_b[s]
        row_sum = np.empty(rows)
        column_sum = np.empty(columns)
        for z in range(n_components):
            table = cells[offsets[s] + z * rows * columns : offsets[s] + (z + 1) * rows * columns]
            row_sum[:] = 0.0
            column_sum[:] = 0.0
            for a in range(1, rows):
                for b in range(1, columns):
                    row_sum[a] += table[a * columns + b]
                    column_sum[b] += table[a * columns + b]
            n = row_sum.sum()
            total = 0.0
            for a in range(1, rows):
                for b in range(1, columns):
                    count = table[a * columns + b]
                    if count > 0.0:
                        total += count * np.log(count / row_sum[a] * (n / column_sum[b]))
            weight[s, z] = n
            information[s, z] = max(total, 0.0)
