"""Multivariate Gaussians: distances, and missing cells integrated out or replaced by expectations."""

import math

import numpy as np

from posteriori.kernels import few_rows
from posteriori.kernels.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED, few_rows=few_rows.whitened_distance)
def whitened_distance(whitened, centre, group, out):
    """Write ‖y_g − centre_z‖² to out[i, z]; y holds the whitened row of each covariance g side by side."""
    n = len(whitened)
    n_components, d = centre.shape
    for i in range(n):
        for z in range(n_components):
            row = whitened[i, group[z] * d : (group[z] + 1) * d]
            middle = centre[z]
            distance = 0.0
            for j in range(d):
                difference = row[j] - middle[j]
                distance += difference * difference
            out[i, z] = distance


@kernel(fastmath=REORDERED)
def add_quartic_norms(values, component, weight, centre, factor, total):
    """Add w·‖(x − centre_z)·factor_z‖⁴ of every row of any weight to total[z]."""
    n, d = values.shape
    for i in range(n):
        if weight[i] == 0:  # such a row may have missing cells
            continue
        z = component[i]
        row, middle, scale = values[i], centre[z], factor[z]
        square = 0.0
        for j in range(d):
            deviation = (row[j] - middle[j]) * scale[j]
            square += deviation * deviation
        total[z] += weight[i] * square * square


@kernel(few_rows=True)
def integrate_out(missing, whitened, whitener, precision, distance, log_volume):
    """Correct the squared distance and log volume of each row for its missing cells.

    Missing cells were set to the mean. y = Wᵀ(x − mean) is the whitened row and P = W·Wᵀ the precision. With
    v = (W·y)_m and A = P_mm the squared distance of the present cells is ‖y‖² − vᵀA⁻¹v and log |Σ_oo| = log |Σ| + log
    |A|.
    """
    n, d = missing.shape
    positions = np.empty(d, np.int64)
    factor = np.empty((d, d))
    solved = np.empty(d)
    for i in range(n):
        m = _factorise_missing(missing[i], precision, positions, factor)
        _solve_missing(m, whitened[i], whitener, positions, factor, solved)
        for a in range(m):
            distance[i] -= solved[a] * solved[a]
            log_volume[i] += 2.0 * math.log(factor[a, a])


@kernel
def expect_missing(missing, weight, whitened, whitener, precision, deviation, covariance):
    """Replace each missing cell of deviation by its conditional expectation; add the conditional covariance.

    The deviation of the missing cells from the mean is expected at −A⁻¹v, with covariance A⁻¹, for v and A of
    `integrate_out`; covariance (d, d) gains w·A⁻¹.
    """
    n, d = missing.shape
    positions = np.empty(d, np.int64)
    factor = np.empty((d, d))
    solved = np.empty(d)
    inverse = np.empty((d, d))
    for i in range(n):
        m = _factorise_missing(missing[i], precision, positions, factor)
        _solve_missing(m, whitened[i], whitener, positions, factor, solved)
        for a in range(m):
            for c in range(m):
                unit = 1.0 if a == c else 0.0
                for b in range(a):
                    unit -= factor[a, b] * inverse[b, c]
                inverse[a, c] = unit / factor[a, a]
        for a in range(m - 1, -1, -1):
            v = solved[a]
            for b in range(a + 1, m):
                v -= factor[b, a] * solved[b]
            solved[a] = v / factor[a, a]
            deviation[i, positions[a]] = -solved[a]
            for c in range(m):
                unit = inverse[a, c]
                for b in range(a + 1, m):
                    unit -= factor[b, a] * inverse[b, c]
                inverse[a, c] = unit / factor[a, a]
        for a in range(m):
            for c in range(m):
                covariance[positions[a], positions[c]] += weight[i] * inverse[a, c]


@kernel(is_part=True)
def _factorise_missing(missing, precision, positions, factor):
    """List the missing positions, write the Cholesky factor of their precision, and return their number."""
    m = 0
    for j in range(len(missing)):
        if missing[j]:
            positions[m] = j
            m += 1
    for a in range(m):
        for b in range(a + 1):
            total = precision[positions[a], positions[b]]
            for k in range(b):
                total -= factor[a, k] * factor[b, k]
            if a == b:
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return m


@kernel(is_part=True)
def _solve_missing(m, whitened, whitener, positions, factor, solved):
    """Solve L·solved = (W·y)_m for the Cholesky factor L of the precision of the missing positions."""
    for a in range(m):
        v = 0.0
        for k in range(len(whitened)):
            v += whitener[positions[a], k] * whitened[k]
        for b in range(a):
            v -= factor[a, b] * solved[b]
        solved[a] = v / factor[a, a]
