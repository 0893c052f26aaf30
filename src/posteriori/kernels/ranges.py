"""The ranges of columns."""

import math

import numpy as np

from posteriori.kernels.compiling import kernel


@kernel
def widen_ranges(values, weight, lowest, highest, whole):
    """Widen [lowest[j], highest[j]] to the numbers of column j, and clear whole[j] at a fraction.

    Rows of no weight, and NaN, which is a missing cell, are left out.
    """
    n, d = values.shape
    for i in range(n):
        if not weight[i] > 0.0:
            continue
        for j in range(d):
            x = values[i, j]
            if x < lowest[j]:
                lowest[j] = x
            if x > highest[j]:
                highest[j] = x
            if whole[j] and x != np.floor(x) and not math.isnan(x):
                whole[j] = False
