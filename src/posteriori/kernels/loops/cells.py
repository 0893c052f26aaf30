"""The conditional likelihood of one number per cell and class, in terms of the parameters that these follow from."""

import math
from typing import NamedTuple

import numpy as np

from posteriori.kernels.machine.compiling import REORDERED, kernel

_TOGETHER = 4  # columns whose numbers are added at a time: classes are few, and the loop over them is short


class CellRows(NamedTuple):
    """CellRows, with one cell per column."""

    slots: np.ndarray  # int32 (n, d): a cell of each column, among the S cells of all columns
    component: np.ndarray  # (n,) the class index
    weight: np.ndarray  # (n,)
    own: np.ndarray  # (n, d): what is added to the factor of the class of the row


class CellDesign(NamedTuple):
    """Cells: the number of a cell and class is share·b_c + w_column·known_c + Σ_k B_k·η_kc."""

    column: np.ndarray  # (S,)
    share: np.ndarray  # (S,)
    known: np.ndarray  # (S, C)
    starts: np.ndarray  # int32 (S + 1,): of the entries of B, by its rows
    directions: np.ndarray  # int32: the column of each entry
    entries: np.ndarray  # the entries


class Pull(NamedTuple):
    """Penalties: λ of η, ω of the weights around their common weight, β of that weight around 1 and of the biases."""

    of_eta: float
    of_weights: float
    weak: float


@kernel(fastmath=REORDERED)
def cell_objective(rows, tables, log_prior, pull, position, n_weights, gradient, curvature):
    """Return the penalised loss, −Σ_i r_i·log p(y_i | x_i) and the penalties; write its gradient, and its curvature.

    A position holds b (C,), the first n_weights of w, and η (P, C); so do its gradient and its curvature, which is that
    of each parameter without the others. The curvature is left out if it is empty. O(n·C·d) and O(C·|B|).
    """
    n_classes, n_slots = len(log_prior), len(tables.column)
    eta, known = n_classes + n_weights, tables.known
    numbers, of_numbers = np.empty((n_slots, n_classes - 1)), np.zeros((n_slots, n_classes - 1))
    each, log_ratio = np.empty(n_classes), np.empty(n_classes - 1)
    for c in range(n_classes - 1):
        log_ratio[c] = log_prior[c + 1] - log_prior[0]
    for s in range(n_slots):
        w = position[n_classes + tables.column[s]] if n_weights > 0 else 0.0
        for c in range(n_classes):
            each[c] = tables.share[s] * position[c] + w * known[s, c]
        for e in range(tables.starts[s], tables.starts[s + 1]):
            first, entry = eta + np.int64(tables.directions[e]) * n_classes, tables.entries[e]
            for c in range(n_classes):
                each[c] += entry * position[np.uint64(first + c)]
        for c in range(n_classes - 1):
            numbers[s, c] = each[c + 1] - each[0]
    of_slots = np.zeros((n_slots if len(curvature) > 0 else 0, n_classes))
    of_weight = np.zeros(n_weights)
    loss = _add_rows(rows, numbers, position[n_classes:eta], log_ratio, of_numbers, of_weight, of_slots)
    gradient[:] = 0.0
    for j in range(n_weights):
        gradient[n_classes + j] = of_weight[j]
    for s in range(n_slots):
        each[0] = 0.0
        for c in range(n_classes - 1):
            each[0] -= of_numbers[s, c]
            each[c + 1] = of_numbers[s, c]
        _add_to_parameters(s, each, tables, n_weights, gradient)
    loss += _add_penalties(position, n_classes, n_weights, pull, gradient)
    if len(curvature) > 0:
        curvature[:] = 0.0
        for s in range(n_slots):
            _add_curvature(s, of_slots[s], tables, n_weights, curvature)
        for k in range(len(curvature)):
            curvature[k] += pull.weak if k < n_classes else (pull.of_weights if k < eta else pull.of_eta)
    return loss


@kernel(fastmath=REORDERED, is_part=True)
def _add_to_parameters(s, values, tables, n_weights, gradient):
    """Add the derivative with respect to the numbers of a cell, (C,), to those of the parameters."""
    n_classes = len(values)
    of_weight = 0.0
    for c in range(n_classes):
        gradient[c] += tables.share[s] * values[c]
        of_weight += tables.known[s, c] * values[c]
    if n_weights > 0:
        gradient[n_classes + tables.column[s]] += of_weight
    for e in range(tables.starts[s], tables.starts[s + 1]):
        first, entry = n_classes + n_weights + np.int64(tables.directions[e]) * n_classes, tables.entries[e]
        for c in range(n_classes):
            gradient[np.uint64(first + c)] += entry * values[c]


@kernel(fastmath=REORDERED, is_part=True)
def _add_curvature(s, values, tables, n_weights, curvature):
    """Add the curvature by the numbers of a cell, (C,), to those of the parameters.

    That of a weight leaves out that the factors of the classes move together.
    """
    n_classes = len(values)
    mean = 0.0
    for c in range(n_classes):
        mean += tables.known[s, c] / n_classes
    for c in range(n_classes):
        curvature[c] += tables.share[s] * values[c]
        if n_weights > 0:
            curvature[n_classes + tables.column[s]] += (tables.known[s, c] - mean) ** 2 * values[c]
    for e in range(tables.starts[s], tables.starts[s + 1]):
        first, entry = n_classes + n_weights + np.int64(tables.directions[e]) * n_classes, tables.entries[e]
        for c in range(n_classes):
            curvature[np.uint64(first + c)] += entry * entry * values[c]


@kernel(fastmath=REORDERED, is_part=True)
def _add_penalties(position, n_classes, n_weights, pull, gradient):
    """Return the penalties at a position, and add their derivatives."""
    eta = n_classes + n_weights
    total = 0.0
    for c in range(n_classes):
        total += 0.5 * pull.weak * position[c] ** 2
        gradient[c] += pull.weak * position[c]
    if n_weights > 0 and pull.of_weights > 0.0:
        common = pull.weak  # of all weights: where the penalty is least
        for j in range(n_classes, eta):
            common += pull.of_weights * position[j]
        common /= pull.weak + pull.of_weights * n_weights
        for j in range(n_classes, eta):
            apart = position[j] - common
            total += 0.5 * pull.of_weights * apart**2
            gradient[j] += pull.of_weights * apart
        total += 0.5 * pull.weak * (common - 1.0) ** 2
    for k in range(eta, len(position)):
        total += 0.5 * pull.of_eta * position[k] ** 2
        gradient[k] += pull.of_eta * position[k]
    return total


@kernel(fastmath=REORDERED, is_part=True)
def _add_rows(rows, numbers, of_column, log_ratio, gradient, of_weight, curvature):
    """Return −Σ_i r_i·log p(y_i | x_i) for numbers per cell and class, and add its derivatives.

    The score of class 0 is 0, and that of class c is log_ratio_c + Σ_j numbers[slots[i, j], c]: of each number that of
    class 0 is subtracted, so that two classes take one. The score of the class of the row has Σ_j of_column_j·own[i, j]
    more; of_column is empty if there are no own parts. The derivatives with respect to the numbers are added to
    gradient (S, C − 1), and those with respect to of_column to of_weight (d,). Σ_i r_i·p_c·(1 − p_c) of the rows that
    show a cell is added to curvature (S, C), unless it is empty. O(n·C·d).
    """
    slots, component, weight, own = rows
    n_others = len(log_ratio)
    score, spread = np.empty(n_others), np.empty(n_others + 1)
    loss = 0.0
    for i in range(len(slots)):
        r, y = weight[i], component[i]
        _sum_numbers(slots[i], numbers, log_ratio, score)
        of_row = 0.0
        for j in range(len(of_column)):
            of_row += of_column[j] * own[i, j]
        first = of_row if y == 0 else 0.0
        if y > 0:
            score[y - 1] += of_row
        truth = first if y == 0 else score[y - 1]
        largest = first
        for c in range(n_others):
            largest = max(largest, score[c])
        first = math.exp(first - largest)
        whole = first
        for c in range(n_others):
            score[c] = math.exp(score[c] - largest)
            whole += score[c]
        loss += r * (largest + math.log(whole) - truth)
        first /= whole
        spread[0] = r * first * (1.0 - first)
        for c in range(n_others):
            p = score[c] / whole
            score[c] = r * p
            spread[c + 1] = r * p * (1.0 - p)
        of_row = r * (first - 1.0)
        if y > 0:
            score[y - 1] -= r
            of_row = score[y - 1]
        _add_to_each(slots[i], score, gradient)
        if len(curvature) > 0:
            _add_to_each(slots[i], spread, curvature)
        for j in range(len(of_column)):
            of_weight[j] += of_row * own[i, j]
    return loss


@kernel(fastmath=REORDERED, is_part=True)
def _sum_numbers(row, numbers, start, score):
    """Write start + Σ_j numbers[row_j] to score."""
    d, width = len(row), len(score)
    if width == 1:
        total = start[0]
        for j in range(d):
            total += numbers[np.uint64(row[j]), 0]
        score[0] = total
        return
    for c in range(width):
        score[c] = start[c]
    whole = d - d % _TOGETHER
    for j in range(0, whole, _TOGETHER):
        s, t, u, v = np.uint64(row[j]), np.uint64(row[j + 1]), np.uint64(row[j + 2]), np.uint64(row[j + 3])
        for c in range(width):
            at = np.uint64(c)
            score[at] += numbers[s, at] + numbers[t, at] + numbers[u, at] + numbers[v, at]
    for j in range(whole, d):
        s = np.uint64(row[j])
        for c in range(width):
            score[c] += numbers[s, np.uint64(c)]


@kernel(fastmath=REORDERED, is_part=True)
def _add_to_each(row, values, out):
    """Add values to out[row_j] for each column j; the columns of a row have different cells."""
    d, width = len(row), len(values)
    if width == 1:
        for j in range(d):
            out[np.uint64(row[j]), 0] += values[0]
        return
    whole = d - d % _TOGETHER
    for j in range(0, whole, _TOGETHER):
        s, t, u, v = np.uint64(row[j]), np.uint64(row[j + 1]), np.uint64(row[j + 2]), np.uint64(row[j + 3])
        for c in range(width):
            at = np.uint64(c)
            value = values[at]
            out[s, at] += value
            out[t, at] += value
            out[u, at] += value
            out[v, at] += value
    for j in range(whole, d):
        s = np.uint64(row[j])
        for c in range(width):
            out[s, np.uint64(c)] += values[c]
