"""The ranges of columns."""

import numpy as np

from posteriori.kernels.compiling import kernel


@kernel
def widen_ranges(values, weight, lowest, highest, whole):
    """Widen [lowest[j], highest[j]] to the numbers of column j, and clear whole[j] at a fraction.

    Rows of weight 0 and missing cells (NaN) are omitted.
    """
    n, d = values.shape
    for i in range(n):
        if not weight[i] > 0.0:
            continue
        for j in range(d):
            # Selections instead of branches let the loop vectorise. Comparisons with NaN are False.
            x = values[i, j]
            lowest[j] = x if x < lowest[j] else lowest[j]
            highest[j] = x if x > highest[j] else highest[j]
            whole[j] &= not x > np.floor(x)
