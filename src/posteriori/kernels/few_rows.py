"""Kernels of prediction as NumPy operations, for processes in which Numba is not loaded.

Each function has the name, the arguments and the results of a kernel. Loops over rows of many kinds, such as
variable elimination, have no such form: they run as plain Python.
"""

import numpy as np

LANES = 8  # rows whose numbers stand side by side


def log_evidence(log_joint, out):
    """As `bayes.log_evidence`."""
    largest = log_joint.max(axis=1)
    shift = np.where(largest == -np.inf, 0.0, largest)
    out[:] = shift + np.log(np.exp(log_joint - shift[:, np.newaxis]).sum(axis=1))


def normalise(log_joint):
    """As `bayes.normalise`."""
    log_joint -= log_joint.max(axis=1, keepdims=True)
    np.exp(log_joint, out=log_joint)
    log_joint /= log_joint.sum(axis=1, keepdims=True)


def encode_integers(values, low, lookup, starts, codes):
    """As `encoding.encode_integers`."""
    position = (values - low).astype(np.uint64)  # unsigned: a value below the range wraps around to one above it
    known = position < np.diff(starts).astype(np.uint64)
    codes[:] = np.where(known, lookup[starts[:-1] + np.where(known, position, 0).astype(np.int64)], 0)


def add_categorical(codes, offsets, log_probability, out):
    """As `factors.add_categorical`."""
    out += log_probability[:, offsets[: codes.shape[1]] + codes].sum(axis=2).T


def add_gaussian(values, mean, precision, log_peak, out):
    """As `factors.add_gaussian`."""
    x = values[:, np.newaxis, :]
    deviation = x - mean
    factors = log_peak - 0.5 * deviation * deviation * precision
    out += np.where(np.isnan(x), 0.0, factors).sum(axis=2)


def add_student(values, mean, precision, log_peak, degrees, out):
    """As `factors.add_student`."""
    x = values[:, np.newaxis, :]
    deviation = x - mean
    factors = log_peak - 0.5 * (degrees + 1.0) * np.log1p(deviation * deviation * precision / degrees)
    out += np.where(np.isnan(x), 0.0, factors).sum(axis=2)


def whitened_distance(whitened, centre, group, out):
    """As `multivariate.whitened_distance`."""
    rows = whitened.reshape(len(whitened), -1, centre.shape[1])
    difference = rows[:, group] - centre
    np.einsum("izj,izj->iz", difference, difference, out=out)


def digitise(values, columns, starts, cuts, positions, codes):
    """As `binning.digitise`."""
    for k, (column, position) in enumerate(zip(columns, positions, strict=True)):
        x = values[:, column].astype(np.float64)
        bins = np.searchsorted(cuts[starts[k] : starts[k + 1]], x, side="right") + 1
        codes[:, position] = np.where(np.isnan(x), 0, bins)


def add_families(codes, families, log_probability, out):
    """As `families.add_families`."""
    cells = codes[:, families.members] * families.strides
    slots = families.offsets + np.add.reduceat(cells, families.starts[:-1], axis=1)
    out += log_probability[slots].sum(axis=1)


def add_averaged(codes, starts, log_probability, out):
    """As `families.add_averaged`."""
    stops = np.append(starts[1:], len(log_probability))
    last = stops - starts - 1  # the largest code of each column
    for row, total in zip(codes.astype(np.int64), out, strict=True):
        missing = row == 0
        first, upto = np.where(missing, 1, row), np.where(missing, last, row)
        parents = np.concatenate([np.arange(a, b + 1) for a, b in zip(starts + first, starts + upto, strict=True)])
        alone = np.repeat(missing, upto - first + 1)
        terms = log_probability[parents[:, np.newaxis], (starts + row)[~missing]].sum(axis=1)
        terms[alone] += log_probability[parents[alone], parents[alone]]
        largest = terms.max(axis=0)
        shift = np.where(largest == -np.inf, 0.0, largest)
        total += shift + np.log(np.exp(terms - shift).sum(axis=0) / len(row))


def count_invalid(counts, largest):
    """Return how many counts are negative, missing (NaN) or larger than `largest`."""
    return len(counts) - int(np.count_nonzero((counts >= 0.0) & (counts <= largest)))


def add_row(out, j, other, k):
    """As `lanes.add_row`."""
    out[j] += other[k]


def multiply_row(out, j, other, k):
    """As `lanes.multiply_row`."""
    out[j] *= other[k]


def raise_row(out, j, other, k):
    """As `lanes.raise_row`."""
    out[j] = np.where(out[j] > other[k], out[j], other[k])


def divide_row(out, j, other, k):
    """As `lanes.divide_row`."""
    out[j] = np.where(out[j] > 0.0, other[k] / out[j], 0.0)


def scale_row(out, j, number, other, k):
    """As `lanes.scale_row`."""
    out[j] = number * other[k]


def add_scaled_row(out, j, number, other, k):
    """As `lanes.add_scaled_row`."""
    out[j] += number * other[k]
