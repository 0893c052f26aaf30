"""The E-step of a Gaussian with missing cells, by patterns of missing cells."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED)
def fill_patterns(is_missing, place, weight, scatters, precision, filled, uncertain, deviation, log_volumes):
    """Replace the missing cells of patterns by their expectations (Little & Rubin, section 11.2.1).

    With the precision K, the missing cells m of a pattern have the covariance C = K_mm⁻¹ and the mean deviation
    −C·K_mo·δ_o. Pattern q is number place_q of the component; its deviations δ are filled in, and log |K_mm| −
    |m|·log 2π is added to its log volume. Its scatter matrix S becomes A·S·Aᵀ, where A fills in: what this adds is
    added to filled (d, d), and C times the weight of the pattern to uncertain (d, d). O(|m|·d²) per pattern.
    """
    d = len(precision)
    chosen, root, inverse = np.empty(d, np.int64), np.empty((d, d)), np.empty((d, d))
    slope, cross = np.empty((d, d)), np.empty((d, d))
    for q in range(len(place)):
        number, m = place[q], 0
        for j in range(d):
            if is_missing[q, j]:
                chosen[m] = j
                m += 1
        missing = chosen[:m]
        log_volumes[number] += _invert(precision, missing, root, inverse) - m * math.log(2.0 * math.pi)
        _write_slope(precision, inverse, missing, is_missing[q], slope)
        for a in range(m):
            expected = 0.0
            for j in range(d):
                expected += slope[a, j] * deviation[number, j]  # the slope is 0 in missing columns
            deviation[number, missing[a]] = expected
            for b in range(m):
                uncertain[missing[a], missing[b]] += weight[number] * inverse[a, b]
        _add_scatter(scatters[q], slope, missing, cross, filled)
    return 0


@kernel(fastmath=REORDERED, is_part=True)
def _write_slope(precision, inverse, missing, is_missing, slope):
    """Write −C·K_mo, 0 in the missing columns."""
    for a in range(len(missing)):
        for j in range(len(precision)):
            total = 0.0
            if not is_missing[j]:
                for b in range(len(missing)):
                    total -= inverse[a, b] * precision[missing[b], j]
            slope[a, j] = total


@kernel(fastmath=REORDERED, is_part=True)
def _add_scatter(scatter, slope, missing, cross, filled):
    """Add A·S·Aᵀ − S, which is not 0 in the rows and columns that are missing alone."""
    d, m = len(scatter), len(missing)
    for a in range(m):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += slope[a, k] * scatter[k, j]
            cross[a, j] = total
            filled[missing[a], j] += total
            filled[j, missing[a]] += total
    for a in range(m):
        for b in range(m):
            for j in range(d):
                filled[missing[a], missing[b]] += cross[a, j] * slope[b, j]


@kernel(is_part=True)
def _invert(matrix, chosen, root, inverse):
    """Write the inverse of the chosen rows and columns of a positive definite matrix; return their log determinant."""
    m, log_determinant = len(chosen), 0.0
    for a in range(m):
        for b in range(a + 1):
            total = matrix[chosen[a], chosen[b]]
            for k in range(b):
                total -= root[a, k] * root[b, k]
            root[a, b] = math.sqrt(total) if a == b else total / root[b, b]
        log_determinant += 2.0 * math.log(root[a, a])
    for c in range(m):  # each column solves L·Lᵀ·x = e_c
        for a in range(m):
            total = 1.0 if a == c else 0.0
            for k in range(a):
                total -= root[a, k] * inverse[k, c]
            inverse[a, c] = total / root[a, a]
        for a in range(m - 1, -1, -1):
            total = inverse[a, c]
            for k in range(a + 1, m):
                total -= root[k, a] * inverse[k, c]
            inverse[a, c] = total / root[a, a]
    return log_determinant
