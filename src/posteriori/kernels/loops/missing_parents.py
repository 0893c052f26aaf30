"""Rows with missing parents: their log sums, by forward sums where these are small, otherwise by elimination."""

import numpy as np

from posteriori.kernels.loops.elimination import (
    allocate_factors,
    drop_empty,
    eliminate,
    message_cells,
    prepare_row,
    reads_hidden,
    table_cells,
)
from posteriori.kernels.loops.forward_sums import allocate_walk, follow_walk, plan_walk
from posteriori.kernels.machine.compiling import kernel

# Cells of a walk that take the time of all eliminations of a row for each cell of the last one: a sum of logarithms
# takes at least five times as long for a cell, but the shorter entries have smaller tables.
_CELLS_OF_LOGARITHMS = 2
_MOST_WALKED = 16  # the limit on the cells of a walk, as a multiple of that of one elimination


@kernel
def sum_out_families(codes, rows, upto, families, log_probability, probability, most_cells, known, summed):
    """Write log Σ_missing Π_j p(x_j | parents, z) of the first columns of some rows, in two parts.

    Entry e of the results belongs to row rows[e] and its columns order[0] … order[upto[e] − 1]; other columns count as
    missing. The entries of a row follow each other, the shortest first. The log factors whose parents are all present
    are added to known (e, Z), unless it is empty, and the rest to summed (e, Z), which is 0 before. The tables are
    (slots, Z). If those that eliminate the columns of the last entry would have more than most_cells cells,
    `plan_elimination` selects columns to drop, for all entries of the row: their children use the tables given the
    other parents (code 0).
    """
    factors = allocate_factors(codes, rows, families)
    walk, product = allocate_walk(codes.shape[1])
    base = np.empty(codes.shape[1], np.int64)
    pool = np.empty((1, log_probability.shape[1]))
    free = np.int64(0)  # not a literal, for each of which Numba compiles the calls once more
    first = 0
    while first < len(rows):
        row, stop = codes[rows[first]], end_of_row(rows, first)
        drop_empty(families, factors)
        m, n_factors = prepare_row(row, upto[stop - 1], families, most_cells, factors)
        n_events, n_small, n_cells = plan_cheap_walk(row, upto[first:stop], m, families, factors, most_cells, walk)
        done = first
        if n_small:
            pool = grown(pool, n_cells)
            for e in range(n_small):
                base[walk.event[e]] = _first_cell(row, walk.event[e], families, factors)
            done += follow_walk(
                row,
                upto[first:stop],
                m,
                n_events,
                n_small,
                free,
                families,
                factors,
                families.strides,
                base,
                probability,
                pool,
                walk,
                product,
                summed[first:stop],
            )
        for e in range(first, stop):
            if e < done and not len(known):
                continue
            if stop - first > 1:  # otherwise it is prepared
                m, n_factors = prepare_row(row, upto[e], families, most_cells, factors)
            if len(known):
                _add_known(row, upto[e], families, factors, log_probability, known[e])
            if m and e >= done:
                pool = grown(pool, message_cells(m, families, factors))
                eliminate(m, n_factors, free, families, factors, log_probability, pool, summed[e])
        first = stop


@kernel(is_part=True)
def end_of_row(rows, first):
    """Return the end of the entries that follow each other and belong to one row."""
    stop = first + 1
    while stop < len(rows) and rows[stop] == rows[first]:
        stop += 1
    return stop


@kernel(is_part=True)
def plan_cheap_walk(row, upto, m, families, factors, most_cells, walk):
    """Return the result of `plan_walk` for the part of the walk that costs less than the eliminations of its entries.

    The elimination is planned for the last entry.
    """
    most = _CELLS_OF_LOGARITHMS * len(upto) * table_cells(m, families, factors)
    return plan_walk(row, upto[-1], m, families, factors, min(most, _MOST_WALKED * most_cells), walk)


@kernel(is_part=True)
def grown(pool, n_cells):
    """Return the pool, or if it has fewer cells a copy with twice as many as are needed."""
    if n_cells <= len(pool):
        return pool
    result = np.empty((2 * n_cells, pool.shape[1]))
    for cell in range(len(pool)):
        for z in range(pool.shape[1]):
            result[cell, z] = pool[cell, z]
    return result


@kernel(is_part=True)
def _first_cell(row, j, families, factors):
    """Return the cell of a family in its table where each hidden column has its first value, code 1."""
    cell = families.offsets[j]
    for t in range(families.starts[j], families.starts[j + 1]):
        code = np.int64(row[families.members[t]]) if factors.position[families.members[t]] < 0 else 1
        cell += code * families.strides[t]
    return cell


@kernel(is_part=True)
def _add_known(row, upto, families, factors, log_probability, out):
    """Add the log factors of present columns whose parents are not hidden to out (Z,)."""
    for step in range(upto):
        j = families.order[step]
        if row[j] == 0 or reads_hidden(j, families, factors):
            continue
        slot = families.offsets[j]
        for t in range(families.starts[j], families.starts[j + 1]):
            slot += np.int64(row[families.members[t]]) * families.strides[t]
        for z in range(len(out)):
            out[z] += log_probability[slot, z]
