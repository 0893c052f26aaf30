"""Rows with missing cells in a tree of categories: the cells are summed out by messages of probabilities.

Messages run from the leaves to the roots (Pearl 1988). The messages to a missing category multiply to λ(x_j), the
likelihood of the present cells below each of its values. A missing cell without a present cell below it sums to 1 and
costs nothing, and a present cell with a present parent costs one lookup.

The tables hold probabilities, the Z components of a cell side by side. Every λ is rescaled after some messages by the
power of two of its greatest value, which is exact, so that only a value that is less probable than `LEAST`, relative to
the greatest one, could be lost. It becomes NaN, and the row is left to the sums of logarithms of `tree_log_density`.
"""

from typing import NamedTuple

import numpy as np

from posteriori.kernels.loops.forward_sums import LEAST
from posteriori.kernels.machine.compiling import kernel

_MESSAGES = 8  # that are multiplied before λ is rescaled
_LOG_TWO = np.log(2.0)
_MANTISSA, _BIAS = 52, 1023  # bits of the mantissa of a double, and the exponent bits of 1.0
_EXPONENT = 2047  # all exponent bits


class Messages(NamedTuple):
    """λ of the missing columns of a row, and its scale."""

    first: np.ndarray  # (d,) the cell of λ of the first value of each column
    likelihood: np.ndarray  # (cells, Z): λ
    is_reached: np.ndarray  # bool (d,): whether λ of a column holds a message
    n_messages: np.ndarray  # (d,) the messages below a column since its λ was rescaled
    exponent: np.ndarray  # (Z,) the sum of the powers of two by which numbers were divided
    total: np.ndarray  # (1, Z): the product of the sums over the values of missing columns
    sent: np.ndarray  # (1, Z): a message on its way
    bits: np.ndarray  # (Z,) a buffer


@kernel
def sum_out_tree(codes, rows, families, log_probability, probability, out, is_lost):
    """Set out[i, z] to log p(x_i | z) for the listed rows, and is_lost to the places of rows that need logarithms.

    Each of the `Families` is a child and at most one parent. The tables are (slots, Z); probability is NaN where it is
    not 0 and less than `LEAST`.
    """
    messages = _allocate(families, log_probability.shape[1])
    exponent, total = messages.exponent, messages.total[0]
    for place in range(len(rows)):
        row, log_density = codes[rows[place]], out[rows[place]]
        for z in range(len(total)):
            log_density[z], total[z], exponent[z] = 0.0, 1.0, 0.0
        for step in range(len(families.order) - 1, -1, -1):
            j = families.order[step]
            if row[j] == 0 and not messages.is_reached[j]:
                continue
            p = families.members[families.starts[j]]  # the column itself at a root
            if p != j and row[p] == 0:
                _send(j, np.int64(row[j]), p, families, probability, messages)
            else:
                line = families.offsets[j]
                if p != j:
                    line += np.int64(row[p]) * (families.cardinalities[j] + 1)
                _end(j, np.int64(row[j]), line, families, log_probability, probability, messages, log_density)
            messages.is_reached[j], messages.n_messages[j] = False, 0
        for z in range(len(total)):
            log_density[z] += (np.log(total[z]) if total[z] != 0.0 else -np.inf) + exponent[z] * _LOG_TWO
            is_lost[place] |= np.isnan(total[z])


@kernel(is_part=True)
def _allocate(families, n_components):
    d = len(families.offsets)
    first = np.empty(d, np.int64)
    n_cells = 0
    for j in range(d):
        first[j] = n_cells
        n_cells += families.cardinalities[j]
    return Messages(
        first,
        np.empty((n_cells, n_components)),
        np.zeros(d, np.bool_),
        np.zeros(d, np.int64),
        np.empty(n_components),
        np.empty((1, n_components)),
        np.empty((1, n_components)),
        np.empty(n_components, np.int64),
    )


@kernel(is_part=True)
def _end(j, x, line, families, log_probability, probability, messages, log_density):
    """Multiply the factor of a column whose parent is present or does not exist; its table starts at a line."""
    if x != 0:
        factor = log_probability[line + x]
        for z in range(len(factor)):
            log_density[z] += factor[z]
        return
    _expect(j, line, families, probability, messages)
    total = messages.total[0]
    for z in range(len(total)):
        total[z] *= messages.sent[0, z]
    _rescale(messages.total, messages)


@kernel(is_part=True)
def _send(j, x, p, families, probability, messages):
    """Multiply λ of the missing parent of a column by the message of the column."""
    start, line = messages.first[p], families.offsets[j]
    for cell in range(start, start + families.cardinalities[p]):
        line += families.cardinalities[j] + 1
        if x != 0:
            _multiply(messages.likelihood, cell, probability, line + x, messages.is_reached[p])
        else:
            _expect(j, line, families, probability, messages)
            _multiply(messages.likelihood, cell, messages.sent, 0, messages.is_reached[p])
    messages.is_reached[p] = True
    messages.n_messages[p] += 1 + messages.n_messages[j]
    if messages.n_messages[p] >= _MESSAGES:
        _rescale(messages.likelihood[start : start + families.cardinalities[p]], messages)
        messages.n_messages[p] = 0


@kernel(is_part=True)
def _expect(j, line, families, probability, messages):
    """Write Σ_x p(x)·λ(x) of a missing column, whose table starts at a line, to messages.sent."""
    sent, likelihood = messages.sent, messages.likelihood
    n_components = np.uint64(sent.shape[1])  # unsigned, because Numba tests a signed index for being negative
    slot, cell = np.uint64(line + 1), np.uint64(messages.first[j])
    for z in range(n_components):
        sent[0, z] = 0.0
    for _ in range(families.cardinalities[j]):
        for z in range(n_components):
            sent[0, z] += probability[slot, z] * likelihood[cell, z]
        slot += np.uint64(1)
        cell += np.uint64(1)


@kernel(is_part=True)
def _multiply(likelihood, cell, table, slot, is_reached):
    """Multiply λ of one value by a message, with NaN where a factor of the next product could be lost."""
    cell, slot = np.uint64(cell), np.uint64(slot)
    n_components = np.uint64(likelihood.shape[1])
    if is_reached:
        for z in range(n_components):
            sent = table[slot, z]
            value = likelihood[cell, z] * (sent if sent >= LEAST or sent == 0.0 else np.nan)
            likelihood[cell, z] = value if value >= LEAST or value == 0.0 else np.nan
    else:
        for z in range(n_components):
            sent = table[slot, z]
            likelihood[cell, z] = sent if sent >= LEAST or sent == 0.0 else np.nan


@kernel(is_part=True)
def _rescale(likelihood, messages):
    """Divide λ (K, Z) by powers of two so that the greatest value is 1 to 2, and add them to the exponent."""
    exponent, bits = messages.exponent, messages.bits
    power = bits.view(np.float64)
    for z in range(len(exponent)):
        power[z] = 0.0
    for x in range(len(likelihood)):
        for z in range(len(exponent)):
            value = likelihood[x, z]
            power[z] = value if value > power[z] else power[z]  # not max, which is no vector instruction
    for z in range(len(exponent)):
        shift = (bits[z] >> _MANTISSA) & _EXPONENT
        exponent[z] += shift - _BIAS
        bits[z] = (2 * _BIAS - shift) << _MANTISSA
    for x in range(len(likelihood)):
        for z in range(len(exponent)):
            likelihood[x, z] *= power[z]
