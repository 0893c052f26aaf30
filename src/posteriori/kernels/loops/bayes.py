"""Log densities of independent columns and of multivariate Gaussians, and Bayes' rule by log-sum-exp."""

import math

import numpy as np

from posteriori.kernels.loops.exponential import exponentiate
from posteriori.kernels.machine.compiling import REORDERED, kernel

_CELLS = 1024  # exponentials at once
_MOST_DEGREES = 1000.0  # beyond, what rounding changes in 1 + x is too much after a product with ν
_LARGE = 1e100  # the product of two such numbers is finite


@kernel
def log_evidence(log_joint, out):
    """Write log Σ_z exp(log_joint[i, z]) to out[i]."""
    _apply_bayes(log_joint, log_joint[:0], out)


@kernel
def normalise(log_joint):
    """Replace each row of log p(x, z) by p(z | x), or by NaN if p(x) = 0."""
    _apply_bayes(log_joint, log_joint, np.empty(0))


@kernel
def responsibilities_and_evidence(log_joint, log_evidence):
    """Replace each row of log p(x, z) by p(z | x), and write log p(x) to log_evidence[i]; NaN and −inf if p(x) = 0."""
    _apply_bayes(log_joint, log_joint, log_evidence)


@kernel(is_part=True)
def _apply_bayes(log_joint, posterior, log_evidence):
    """Write p(z | x) to posterior and log p(x) to log_evidence; to neither if it is empty."""
    n, n_components = log_joint.shape
    at_once = max(1, _CELLS // n_components)
    shares, largest = np.empty((at_once, n_components)), np.empty(at_once)
    for first in range(0, n, at_once):
        m = min(at_once, n - first)
        _exponentiate(log_joint[first : first + m], shares, largest)
        for r in range(m):
            total = 0.0
            for z in range(n_components):
                total += shares[r, z]
            if len(log_evidence) > 0:
                log_evidence[first + r] = -math.inf if largest[r] == -math.inf else largest[r] + math.log(total)
            if len(posterior) > 0:
                scale = 1.0 / total
                for z in range(n_components):
                    posterior[first + r, z] = shares[r, z] * scale


@kernel(is_part=True)
def _exponentiate(log_joint, shares, largest):
    """Write the largest entry of each row to largest, and exp(entry − largest) to shares; NaN where all are −inf."""
    m, n_components = log_joint.shape
    for r in range(m):
        peak = log_joint[r, 0]
        for z in range(1, n_components):
            peak = max(peak, log_joint[r, z])
        largest[r] = peak
        for z in range(n_components):
            shares[r, z] = log_joint[r, z] - peak
    exponentiate(shares[:m].reshape(m * n_components))


@kernel(fastmath=REORDERED)
def add_categorical(codes, offsets, log_probability, out):
    """Add Σ_j log p(x_j | z) to out[i, z]; the slot of a missing cell holds 0."""
    n, d = codes.shape
    n_components = len(log_probability)
    by_four = n_components - n_components % 4
    slots = np.empty(d, np.uintp)  # unsigned: Numba tests signed indices for wraparound
    for i in range(n):
        for j in range(d):
            slots[j] = np.uintp(offsets[j]) + np.uintp(codes[i, j])
        # Four components at a time: four independent additions per step, and one read of each slot.
        for z in range(0, by_four, 4):
            row0, row1, row2, row3 = (
                log_probability[z],
                log_probability[z + 1],
                log_probability[z + 2],
                log_probability[z + 3],
            )
            sum0 = sum1 = sum2 = sum3 = 0.0
            for j in range(d):
                slot = slots[j]
                sum0 += row0[slot]
                sum1 += row1[slot]
                sum2 += row2[slot]
                sum3 += row3[slot]
            out[i, z] += sum0
            out[i, z + 1] += sum1
            out[i, z + 2] += sum2
            out[i, z + 3] += sum3
        for z in range(by_four, n_components):
            row = log_probability[z]
            total = 0.0
            for j in range(d):
                total += row[slots[j]]
            out[i, z] += total


@kernel(fastmath=REORDERED)
def add_gaussian(values, mean, precision, log_peak, out):
    """Add Σ_j log_peak − precision·(x_j − mean)²/2 over the present cells to out[i, z]."""
    n, d = values.shape
    constant = np.zeros(mean.shape[0])
    for z in range(mean.shape[0]):
        for j in range(d):
            constant[z] += log_peak[z, j]
    for i in range(n):
        row = values[i]
        for z in range(mean.shape[0]):
            row_mean, row_precision = mean[z], precision[z]
            distance = 0.0
            for j in range(d):
                deviation = row[j] - row_mean[j]
                distance += deviation * deviation * row_precision[j]
            if not math.isnan(distance):
                out[i, z] += constant[z] - 0.5 * distance
            else:  # a missing cell: its factor integrates to 1
                density = 0.0
                for j in range(d):
                    deviation = row[j] - row_mean[j]
                    term = log_peak[z, j] - 0.5 * deviation * deviation * row_precision[j]
                    density += 0.0 if math.isnan(row[j]) else term
                out[i, z] += density


@kernel(fastmath=REORDERED)
def add_student(values, mean, precision, log_peak, degrees, out):
    """Add Σ_j log_peak − (ν + 1)/2·log(1 + precision·(x_j − mean)²/ν) over the present cells to out[i, z].

    Neighbouring columns with the same ν share one logarithm, that of the product of their terms.
    """
    n, d = values.shape
    for i in range(n):
        row = values[i]
        for z in range(mean.shape[0]):
            density, product, nu_of_product = 0.0, 1.0, 0.0
            for j in range(d):
                if not math.isnan(row[j]):
                    deviation, nu = row[j] - mean[z, j], degrees[z, j]
                    ratio = deviation * deviation * precision[z, j] / nu
                    density += log_peak[z, j]
                    if nu > _MOST_DEGREES or not ratio < _LARGE:
                        density -= 0.5 * (nu + 1.0) * math.log1p(ratio)
                        continue
                    if nu != nu_of_product or product > _LARGE:
                        density -= 0.5 * (nu_of_product + 1.0) * math.log(product)
                        product, nu_of_product = 1.0, nu
                    product *= 1.0 + ratio
            out[i, z] += density - 0.5 * (nu_of_product + 1.0) * math.log(product)


@kernel
def add_poisson(values, log_rate, rate, out):
    """Add Σ_j x_j·log rate − rate − log x_j! over the present cells to out[i, z]."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            x = values[i, j]
            if not math.isnan(x):
                log_factorial = math.lgamma(x + 1.0)
                for z in range(rate.shape[0]):
                    # 0·log 0 is 0: with rate 0 the count is 0 with probability 1.
                    events = x * log_rate[z, j] if x > 0 else 0.0
                    out[i, z] += events - rate[z, j] - log_factorial


@kernel
def log_factorials(values, out):
    """Write log x! to out[i, j], or NaN for a missing cell."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = math.lgamma(values[i, j] + 1.0)


@kernel(fastmath=REORDERED)
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


@kernel
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
