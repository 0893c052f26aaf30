"""The hot loops: arrays in, arrays out, no Python objects.

Every kernel is serial, releases the GIL and reads C-contiguous tiles, so that threads can run over batches.
A missing number is NaN; a missing category is code 0, which owns a slot of every table.
"""

import math

import numba
import numpy as np

# Sums may be reordered (which lets them vectorise), but NaN and infinity keep their meaning.
_REORDERED = {"reassoc", "contract", "nsz"}


def _kernel(function=None, *, fastmath=False):
    def compile_lazily(function):
        return numba.njit(function, nogil=True, cache=True, fastmath=fastmath, error_model="numpy")

    return compile_lazily if function is None else compile_lazily(function)


@_kernel
def first_numbers(values, component, weight, shift):
    """Set shift[z, j] to the first number of any weight in column j of component z; leave it where none is."""
    n, d = values.shape
    found = np.zeros(shift.shape, np.bool_)
    wanted = np.full(shift.shape[0], d)
    remaining = shift.size
    for i in range(n):
        z = component[i]
        if wanted[z] > 0 and weight[i] > 0:
            for j in range(d):
                if not found[z, j] and not math.isnan(values[i, j]):
                    found[z, j] = True
                    shift[z, j] = values[i, j]
                    wanted[z] -= 1
                    remaining -= 1
            if remaining == 0:
                break


@_kernel
def add_moments(values, component, weight, shift, total, first, second):
    """Add w, w·(x − shift) and w·(x − shift)² of every present cell to the (Z, d) sums of its component."""
    n, d = values.shape
    for i in range(n):
        z = component[i]
        w = weight[i]
        row = values[i]
        row_shift, row_total, row_first, row_second = shift[z], total[z], first[z], second[z]
        for j in range(d):
            present = not math.isnan(row[j])
            deviation = row[j] - row_shift[j] if present else 0.0
            weighted = w * deviation
            row_total[j] += w if present else 0.0
            row_first[j] += weighted
            row_second[j] += weighted * deviation


@_kernel
def add_counts(codes, component, weight, offsets, table):
    """Add each row's weight to the cell (component, offset of the column + code) of the (Z, S) table."""
    n, d = codes.shape
    for i in range(n):
        w = weight[i]
        counts = table[component[i]]
        for j in range(d):
            counts[offsets[j] + codes[i, j]] += w


@_kernel(fastmath=_REORDERED)
def add_categorical(codes, offsets, log_probability, out):
    """Add Σ_j log p(x_j | z) to out[i, z]; the slot of a missing cell holds 0."""
    n, d = codes.shape
    n_components = len(log_probability)
    by_four = n_components - n_components % 4
    slots = np.empty(d, np.uintp)  # unsigned: a signed index would be tested for counting from the end
    for i in range(n):
        for j in range(d):
            slots[j] = np.uintp(offsets[j]) + np.uintp(codes[i, j])
        # Four components at a time, so that four additions are under way at once and a slot is read once for them.
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


@_kernel(fastmath=_REORDERED)
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
            else:  # a missing cell: its factor integrates to one
                density = 0.0
                for j in range(d):
                    deviation = row[j] - row_mean[j]
                    term = log_peak[z, j] - 0.5 * deviation * deviation * row_precision[j]
                    density += 0.0 if math.isnan(row[j]) else term
                out[i, z] += density


@_kernel
def add_poisson(values, log_rate, rate, out):
    """Add Σ_j x_j·log rate − rate − log x_j! over the present cells to out[i, z]."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            x = values[i, j]
            if not math.isnan(x):
                log_factorial = math.lgamma(x + 1.0)
                for z in range(rate.shape[0]):
                    # 0·log 0 is 0: a rate of nought makes nought events for certain.
                    events = x * log_rate[z, j] if x > 0 else 0.0
                    out[i, z] += events - rate[z, j] - log_factorial


@_kernel
def encode_integers(values, low, lookup, starts, codes):
    """Write the code of each integer: lookup[starts[j] + value − low[j]], or 0 beyond the column's range."""
    n, d = values.shape
    width = np.empty(d, np.uintp)
    for j in range(d):
        width[j] = starts[j + 1] - starts[j]
    if d == 1:  # a column alone, such as the labels, needs no inner loop
        start, least, most = np.uintp(starts[0]), low[0], width[0]
        for i in range(n):
            place = np.uintp(values[i, 0] - least)
            codes[i, 0] = lookup[start + place] if place < most else 0
        return
    for i in range(n):
        for j in range(d):
            place = np.uintp(values[i, j] - low[j])  # below the range it wraps around to beyond it
            codes[i, j] = lookup[np.uintp(starts[j]) + place] if place < width[j] else 0


@_kernel
def mark_integers(values, low, starts, seen):
    """Set seen[starts[j] + value − low[j]] for every value of column j; return whether all had a place there."""
    n, d = values.shape
    width = np.empty(d, np.uintp)
    for j in range(d):
        width[j] = starts[j + 1] - starts[j]
    strangers = 0
    if d == 1:
        start, least, most = np.uintp(starts[0]), low[0], width[0]
        for i in range(n):
            place = np.uintp(values[i, 0] - least)
            if place < most:
                seen[start + place] = True
            else:
                strangers += 1
        return strangers == 0
    for i in range(n):
        for j in range(d):
            place = np.uintp(values[i, j] - low[j])
            if place < width[j]:
                seen[np.uintp(starts[j]) + place] = True
            else:
                strangers += 1
    return strangers == 0


@_kernel
def integer_ranges(values, low, high):
    """Lower low[j] and raise high[j] to the range of column j."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            x = np.int64(values[i, j])
            low[j] = min(low[j], x)
            high[j] = max(high[j], x)


@_kernel
def log_evidence(log_joint, out):
    """Write log Σ_z exp(log_joint[i, z]) to out[i]."""
    n, n_components = log_joint.shape
    for i in range(n):
        largest = log_joint[i, 0]
        for z in range(1, n_components):
            largest = max(largest, log_joint[i, z])
        if largest == -math.inf:
            out[i] = -math.inf
            continue
        total = 0.0
        for z in range(n_components):
            total += math.exp(log_joint[i, z] - largest)
        out[i] = largest + math.log(total)


@_kernel
def normalise(log_joint):
    """Replace each row of log p(x, z) by p(z | x); by NaN where p(x) = 0 leaves nothing to divide."""
    n, n_components = log_joint.shape
    for i in range(n):
        largest = log_joint[i, 0]
        for z in range(1, n_components):
            largest = max(largest, log_joint[i, z])
        total = 0.0
        for z in range(n_components):
            log_joint[i, z] = math.exp(log_joint[i, z] - largest)
            total += log_joint[i, z]
        share = 1.0 / total
        for z in range(n_components):
            log_joint[i, z] *= share


@_kernel
def deviations_by_component(values, component, weight, shift, place, deviation, first):
    """Write √w·(x − shift) of every row to the next place of its component; add w·(x − shift) to first (Z, d)."""
    n, d = values.shape
    for i in range(n):
        z = component[i]
        w = weight[i]
        root = math.sqrt(w)
        row, row_shift, row_first, target = values[i], shift[z], first[z], deviation[place[z]]
        place[z] += 1
        for j in range(d):
            difference = row[j] - row_shift[j]
            row_first[j] += w * difference
            target[j] = root * difference


@_kernel(fastmath=_REORDERED)
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


@_kernel
def integrate_out(missing, whitened, whitener, precision, distance, log_volume):
    """Correct each row's squared distance and log volume for the cells it lacks.

    A missing cell was put at the mean, y = Wᵀ(x − mean) and P = W·Wᵀ being the whitened row and the precision. With
    v = (W·y)_m and A = P_mm the distance of what is present is ‖y‖² − vᵀA⁻¹v and log |Σ_oo| = log |Σ| + log |A|.
    """
    n, d = missing.shape
    places = np.empty(d, np.int64)
    factor = np.empty((d, d))
    solved = np.empty(d)
    for i in range(n):
        m = _factorise_missing(missing[i], precision, places, factor)
        _solve_missing(m, whitened[i], whitener, places, factor, solved)
        for a in range(m):
            distance[i] -= solved[a] * solved[a]
            log_volume[i] += 2.0 * math.log(factor[a, a])


@_kernel
def expect_missing(missing, weight, whitened, whitener, precision, deviation, covariance):
    """Put each missing cell of deviation at its expectation given the row's others; add what stays unknown.

    The deviation of the missing cells from the mean is expected at −A⁻¹v, with covariance A⁻¹, for v and A of
    `integrate_out`; covariance (d, d) gains w·A⁻¹.
    """
    n, d = missing.shape
    places = np.empty(d, np.int64)
    factor = np.empty((d, d))
    solved = np.empty(d)
    inverse = np.empty((d, d))
    for i in range(n):
        m = _factorise_missing(missing[i], precision, places, factor)
        _solve_missing(m, whitened[i], whitener, places, factor, solved)
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
            deviation[i, places[a]] = -solved[a]
            for c in range(m):
                unit = inverse[a, c]
                for b in range(a + 1, m):
                    unit -= factor[b, a] * inverse[b, c]
                inverse[a, c] = unit / factor[a, a]
        for a in range(m):
            for c in range(m):
                covariance[places[a], places[c]] += weight[i] * inverse[a, c]


@_kernel
def _factorise_missing(missing, precision, places, factor):
    """List the missing places, write the Cholesky factor of their precision, return how many there are."""
    m = 0
    for j in range(len(missing)):
        if missing[j]:
            places[m] = j
            m += 1
    for a in range(m):
        for b in range(a + 1):
            total = precision[places[a], places[b]]
            for k in range(b):
                total -= factor[a, k] * factor[b, k]
            if a == b:
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return m


@_kernel
def _solve_missing(m, whitened, whitener, places, factor, solved):
    """Solve L·solved = (W·y)_m for the Cholesky factor L of the missing places' precision."""
    for a in range(m):
        v = 0.0
        for k in range(len(whitened)):
            v += whitener[places[a], k] * whitened[k]
        for b in range(a):
            v -= factor[a, b] * solved[b]
        solved[a] = v / factor[a, a]
