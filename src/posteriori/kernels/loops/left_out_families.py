"""Log factors of families of categories, and sums over their missing parents, under the counts without each row.

Removing a row changes only the cells that contain it, so each factor takes O(1) updates instead of a new estimate.
"""

import math

import numpy as np

from posteriori.kernels.loops.back_off import halfway
from posteriori.kernels.loops.elimination import (
    allocate_factors,
    drop_empty,
    eliminate,
    message_cells,
    prepare_row,
    reads_hidden,
)
from posteriori.kernels.loops.forward_sums import allocate_walk, follow_walk, mark_least
from posteriori.kernels.loops.left_out_counts import smoothed, without
from posteriori.kernels.loops.missing_parents import end_of_row, grown, plan_cheap_walk
from posteriori.kernels.machine.compiling import kernel


@kernel
def families_left_out(codes, component, weight, families, counts, first, out):
    """Write log p(x_j | parents, z), smoothed by `BackOff`, under the counts without row i, to out[i, z − first, j]."""
    n, n_out, d = out.shape
    share = np.empty(n_out)
    for i in range(n):
        for j in range(d):
            if codes[i, j] == 0:
                for z in range(n_out):
                    out[i, z, j] = 0.0
                continue
            _write_probabilities(j, codes[i], codes[i], weight[i], component[i], families, counts, first, share)
            for z in range(n_out):
                out[i, z, j] = math.log(share[z]) if share[z] > 0.0 else -math.inf


@kernel
def sum_out_left_out(codes, component, weight, rows, upto, families, counts, most_cells, summed):
    """Write the sums of `sum_out_families` to summed (e, Z), under the tables without row rows[e].

    The table of a factor is written once for the entries of a row, because its hidden columns are the same in all.
    """
    d, n_components = codes.shape[1], summed.shape[1]
    factors = allocate_factors(codes, rows, families)
    walk, product = allocate_walk(d)
    asked = np.empty(d, np.int64)
    written = np.empty(d, np.int64)  # the first cell of the table of each column, or −1
    strides = np.empty(len(families.members), np.int64)
    pool = np.empty((1, n_components))
    free = np.int64(0)  # not a literal, for each of which Numba compiles the calls once more
    first = 0
    while first < len(rows):
        i, stop = rows[first], end_of_row(rows, first)
        row, w, y = codes[i], weight[i], component[i]
        drop_empty(families, factors)
        m, _ = prepare_row(row, upto[stop - 1], families, most_cells, factors)
        n_events, n_small, n_cells = plan_cheap_walk(row, upto[first:stop], m, families, factors, most_cells, walk)
        done = first
        if n_small:
            free = np.int64(0)
            for e in range(n_small):
                j = walk.event[e]
                size = _lay_out_factor(j, families, factors, strides)
                pool = grown(pool, free + size)
                _copy(row, asked)
                _write_factor(j, row, asked, w, y, families, counts, factors, pool[free : free + size])
                mark_least(pool[free : free + size])
                written[j] = free
                free += size
            pool = grown(pool, free + n_cells)
            done += follow_walk(
                row,
                upto[first:stop],
                m,
                n_events,
                n_small,
                free,
                families,
                factors,
                strides,
                written,
                pool,
                pool,
                walk,
                product,
                summed[first:stop],
            )
        pool = _eliminate_left_out(
            row,
            w,
            y,
            upto[done:stop],
            families,
            counts,
            most_cells,
            factors,
            asked,
            written,
            strides,
            pool,
            summed[done:stop],
        )
        first = stop


@kernel(is_part=True)
def _eliminate_left_out(row, w, y, upto, families, counts, most_cells, factors, asked, written, strides, pool, summed):
    """Write the sums of the entries of one row by elimination, and return the pool, which may have grown."""
    n_dropped, free = -1, np.int64(0)
    for e in range(len(upto)):
        m, n_factors = prepare_row(row, upto[e], families, most_cells, factors)
        if factors.dropped.sum() != n_dropped:
            n_dropped = factors.dropped.sum()
            written[:] = -1
            free = np.int64(0)
        if not m:
            continue
        f = np.int64(0)
        for step in range(upto[e]):
            j = families.order[step]
            if (row[j] == 0 and factors.position[j] < 0) or not reads_hidden(j, families, factors):
                continue
            size = _lay_out_factor(j, families, factors, strides)
            _copy_strides(j, f, families, factors, strides)
            if written[j] < 0:
                pool = grown(pool, free + size)
                _copy(row, asked)
                _write_factor(j, row, asked, w, y, families, counts, factors, pool[free : free + size])
                _take_logarithms(pool[free : free + size])
                written[j] = free
                free += size
            factors.base[f], factors.pooled[f] = written[j], True
            f += 1
        pool = grown(pool, free + message_cells(m, families, factors))
        eliminate(m, n_factors, free, families, factors, pool, pool, summed[e])
    return pool


@kernel(is_part=True)
def _copy(row, asked):
    """Copy a row of codes: an assignment to a slice takes seconds to compile."""
    for j in range(len(asked)):
        asked[j] = row[j]


@kernel(is_part=True)
def _copy_strides(j, f, families, factors, strides):
    """Copy the strides of the hidden members of a family to factor f."""
    for t in range(families.starts[j], families.starts[j + 1]):
        if factors.position[families.members[t]] >= 0:
            factors.stride[f, factors.position[families.members[t]]] = strides[t]


@kernel(is_part=True)
def _take_logarithms(cells):
    """Replace probabilities (cells, Z) by their logarithms."""
    for c in range(len(cells)):
        for z in range(cells.shape[1]):
            cells[c, z] = math.log(cells[c, z]) if cells[c, z] > 0.0 else -math.inf


@kernel(is_part=True)
def _lay_out_factor(j, families, factors, strides):
    """Write the strides of the hidden members of a factor, the first the fastest; return its number of cells."""
    size = 1
    for t in range(families.starts[j], families.starts[j + 1]):
        member = families.members[t]
        if factors.position[member] >= 0:
            strides[t] = size
            size *= families.cardinalities[member]
    return size


@kernel(is_part=True)
def _write_factor(j, own, asked, w, y, families, counts, factors, cells):
    """Write the table of a family without a row, (combinations of the hidden columns, Z), as `_lay_out_factor` says.

    asked is the row, and is left with the last combination.
    """
    for t in range(families.starts[j], families.starts[j + 1]):
        if factors.position[families.members[t]] >= 0:
            asked[families.members[t]] = 1
    for c in range(len(cells)):
        _write_probabilities(j, own, asked, w, y, families, counts, 0, cells[c])
        for t in range(families.starts[j], families.starts[j + 1]):
            member = families.members[t]
            if factors.position[member] >= 0:
                asked[member] += 1
                if asked[member] <= families.cardinalities[member]:
                    break
                asked[member] = 1


@kernel(is_part=True)
def _write_probabilities(j, own, asked, w, y, families, counts, first, share):
    """Write p(asked child | asked parents, z), z from first, of family j without a row of weight w in component y.

    The row is subtracted from the counts where the requested cells equal its own. A parent with requested code 0 is
    omitted from the condition.
    """
    weights, pooled = counts.counts, counts.pooled
    pseudo_rows, alpha, stepwise = counts.pseudo_rows, counts.alpha, counts.stepwise
    strength = pseudo_rows[j, 0]
    child = families.starts[j + 1] - 1
    base, k = families.offsets[j], np.float64(families.cardinalities[j])
    x = np.int64(asked[j])
    of_all = w if own[j] > 0 else 0.0
    of_x = of_all if own[j] == x else 0.0
    count, total = without(pooled[base + x], of_x), without(pooled[base], of_all)
    overall = smoothed(count, total, 1.0 / k, 0.0, k, alpha, False)
    for z in range(len(share)):
        mine = 1.0 if z + first == y else 0.0
        count = without(weights[base + x, z + first], mine * of_x)
        total = without(weights[base, z + first], mine * of_all)
        share[z] = smoothed(count, total, overall, strength, k, alpha, stepwise)
    for position in range(families.starts[j], child):
        parent = families.members[position]
        code = np.int64(asked[parent])
        if code == 0:
            continue
        if own[parent] != code:
            of_x = of_all = 0.0
        base += code * families.strides[position]
        strength = pseudo_rows[j, 1 + position - families.starts[j]]
        count, total = without(pooled[base + x], of_x), without(pooled[base], of_all)
        overall = smoothed(count, total, overall, strength, k, alpha, stepwise)
        for z in range(len(share)):
            mine = 1.0 if z + first == y else 0.0
            count = without(weights[base + x, z + first], mine * of_x)
            total = without(weights[base, z + first], mine * of_all)
            share[z] = smoothed(count, total, halfway(share[z], overall), strength, k, alpha, stepwise)
