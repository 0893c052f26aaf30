"""Variable elimination: sums over the missing columns of a row of a product of tables p(x_j | parents, z).

Only missing columns with a present descendant matter: the others sum to 1. They are the hidden columns of a row,
numbered 0 … m − 1. Every table that contains a hidden column is a factor, with its present columns fixed. The hidden
columns are summed out one by one. The next one is always the column whose table, over itself and the columns that share
a factor with it, has the fewest cells (greedy minimum weight).

All tables hold logarithms. Each cell holds the Z components side by side.
"""

from typing import NamedTuple

import numpy as np

from posteriori.kernels.machine.compiling import kernel


class Families(NamedTuple):
    """Families of a child and its parents, each with a table in C order; code 0 is a missing cell."""

    order: np.ndarray  # (d,) columns, parents before their children
    members: np.ndarray  # the columns of all families, each family's child last
    starts: np.ndarray  # (d + 1,) where each family starts among the members
    strides: np.ndarray  # of each member, in cells of the family's table
    offsets: np.ndarray  # (d,) where each table starts
    cardinalities: np.ndarray  # (d,)


class Factors(NamedTuple):
    """The tables of one row, and the plan of their elimination, for at most m hidden columns."""

    position: np.ndarray  # (d,) the number of a hidden column, otherwise −1
    dropped: np.ndarray  # bool (d,): missing columns that are not summed over
    hidden: np.ndarray  # (m,) the hidden columns
    base: np.ndarray  # (d + m,) the first cell of each factor
    stride: np.ndarray  # (d + m, m) cells from one value of a hidden column to the next, 0 where it is not in scope
    pooled: np.ndarray  # bool (d + m,): whether the factor is stored in the pool instead of the tables
    spent: np.ndarray  # bool (d + m,): whether the factor has been summed
    joined: np.ndarray  # bool (m, m): which columns share a factor; of an eliminated one, the scope of its message
    weight: np.ndarray  # (m,) the log2 of the cells of the table that eliminates a column
    left: np.ndarray  # bool (m,): columns not yet eliminated
    turn: np.ndarray  # (m,) the order of elimination


@kernel
def rows_lacking(codes, columns):
    """Return which rows have a missing cell in one of these columns, (n,)."""
    lacking = np.zeros(len(codes), np.bool_)
    for i in range(len(codes)):
        any_missing = False
        for j in range(codes.shape[1]):  # contiguous, so that complete rows take few instructions
            any_missing |= codes[i, j] == 0
        if any_missing:
            for j in columns:
                lacking[i] |= codes[i, j] == 0
    return lacking


@kernel
def columns_dropped(codes, rows, families, most_cells):
    """Return which columns are dropped in some of these rows because their tables would be too large, (d,)."""
    factors = allocate_factors(codes, rows, families)
    result = np.zeros(codes.shape[1], np.bool_)
    for i in rows:
        drop_empty(families, factors)
        prepare_row(codes[i], codes.shape[1], families, most_cells, factors)
        result |= factors.dropped & (families.cardinalities > 0)
    return result


@kernel(is_part=True)
def allocate_factors(codes, rows, families):
    """Return buffers that are large enough for the factors of any of these rows."""
    n_missing = 0
    for i in rows:
        n = 0
        for j in range(codes.shape[1]):
            n += codes[i, j] == 0
        n_missing = max(n_missing, n)
    d, m = codes.shape[1], n_missing
    return Factors(
        np.empty(d, np.int64),
        np.zeros(d, np.bool_),
        np.empty(m, np.int64),
        np.empty(d + m, np.int64),
        np.empty((d + m, m), np.int64),
        np.empty(d + m, np.bool_),
        np.empty(d + m, np.bool_),
        np.empty((m, m), np.bool_),
        np.empty(m),
        np.empty(m, np.bool_),
        np.empty(m, np.int64),
    )


@kernel(is_part=True)
def drop_empty(families, factors):
    """Drop the columns without categories, and no others."""
    for j in range(len(factors.dropped)):  # not an assignment to the slice, which takes seconds to compile
        factors.dropped[j] = families.cardinalities[j] == 0


@kernel(is_part=True)
def prepare_row(row, upto, families, most_cells, factors):
    """Find the hidden columns and factors of a row, plan the elimination, and return their numbers (m, n_factors).

    Columns that are dropped stay so, until `drop_empty`.
    """
    while True:
        m = find_hidden(row, upto, families, factors)
        n_factors = gather_factors(row, upto, m, families, factors)
        worst = plan_elimination(m, n_factors, families, most_cells, factors)
        if worst < 0:
            return m, n_factors
        factors.dropped[factors.hidden[worst]] = True


@kernel(is_part=True)
def find_hidden(row, upto, families, factors):
    """Assign numbers to the missing columns with a present descendant; return how many there are."""
    factors.position[:] = -1
    m = 0
    for step in range(upto - 1, -1, -1):
        j = families.order[step]
        if row[j] == 0 and factors.position[j] < 0:
            continue
        for t in range(families.starts[j], families.starts[j + 1] - 1):
            parent = families.members[t]
            if row[parent] == 0 and factors.position[parent] < 0 and not factors.dropped[parent]:
                factors.position[parent] = m
                factors.hidden[m] = parent
                m += 1
    return m


@kernel(is_part=True)
def reads_hidden(j, families, factors):
    """Return whether a family holds a hidden column."""
    has_hidden = False
    for t in range(families.starts[j], families.starts[j + 1]):
        has_hidden |= factors.position[families.members[t]] >= 0
    return has_hidden


@kernel(is_part=True)
def gather_factors(row, upto, m, families, factors):
    """Write the positions of the factors of a row in the tables; return the number of factors."""
    n_factors = 0
    if not m:
        return n_factors
    for step in range(upto):
        j = families.order[step]
        if (row[j] == 0 and factors.position[j] < 0) or not reads_hidden(j, families, factors):
            continue
        factors.pooled[n_factors] = False
        factors.stride[n_factors, :m] = 0
        cell = families.offsets[j]
        for t in range(families.starts[j], families.starts[j + 1]):
            member = families.members[t]
            position = factors.position[member]
            if position >= 0:
                factors.stride[n_factors, position] = families.strides[t]
                cell += families.strides[t]  # value 0 of a hidden column is code 1
            else:
                cell += np.int64(row[member]) * families.strides[t]
        factors.base[n_factors] = cell
        n_factors += 1
    return n_factors


@kernel(is_part=True)
def plan_elimination(m, n_factors, families, most_cells, factors):
    """Write the order of elimination and return −1, or return a column to drop if the tables exceed most_cells.

    The column to drop is the one whose table has the most cells when the limit is exceeded.
    """
    joined, weight, left = factors.joined, factors.weight, factors.left
    _join_columns(m, n_factors, factors)
    left[:m] = True
    for a in range(m):
        weight[a] = _log_cells(a, m, families, factors)
    total = 0.0
    for step in range(m):
        v = -1
        for a in range(m):
            if left[a] and (v < 0 or weight[a] < weight[v]):
                v = a
        total += 2.0 ** weight[v]
        if total > most_cells:
            for a in range(m):
                if left[a] and weight[a] > weight[v]:
                    v = a
            return v
        factors.turn[step] = v
        left[v] = False
        _join_neighbours(v, m, factors)
        for a in range(m):
            if joined[v, a]:
                weight[a] = _log_cells(a, m, families, factors)
    return -1


@kernel(is_part=True)
def _join_columns(m, n_factors, factors):
    """Set which hidden columns share a factor: the interaction graph."""
    joined = factors.joined
    joined[:m, :m] = False
    for f in range(n_factors):
        for a in range(m):
            if factors.stride[f, a] > 0:
                for b in range(m):
                    joined[a, b] |= b != a and factors.stride[f, b] > 0


@kernel(is_part=True)
def _join_neighbours(v, m, factors):
    """Connect the neighbours of v with each other, because they share its message, and disconnect them from v.

    The row of v stays: it is the scope of the message.
    """
    joined = factors.joined
    for a in range(m):
        if joined[v, a]:
            for b in range(m):
                joined[a, b] |= b != a and joined[v, b]
            joined[a, v] = False


@kernel(is_part=True)
def _log_cells(a, m, families, factors):
    """Return the log2 of the size of the table over a column and the columns that share a factor with it."""
    total = np.log2(families.cardinalities[factors.hidden[a]])
    for b in range(m):
        if factors.joined[a, b]:
            total += np.log2(families.cardinalities[factors.hidden[b]])
    return total


@kernel(is_part=True)
def message_cells(m, families, factors):
    """Return the number of cells of all messages of the plan."""
    total = 0
    for a in range(m):
        total += _cells_around(a, 1, m, families, factors)
    return total


@kernel(is_part=True)
def table_cells(m, families, factors):
    """Return the number of cells of all tables that are summed to messages."""
    total = 0
    for a in range(m):
        total += _cells_around(a, families.cardinalities[factors.hidden[a]], m, families, factors)
    return total


@kernel(is_part=True)
def _cells_around(a, n_cells, m, families, factors):
    """Return n_cells times the cells of the message of a column."""
    for b in range(m):
        if factors.joined[a, b]:
            n_cells *= families.cardinalities[factors.hidden[b]]
    return n_cells


@kernel(is_part=True)
def eliminate(m, n_factors, free, families, factors, tables, pool, out):
    """Add the log of the sum over all hidden columns to out (Z,); messages go to the pool from cell `free` on."""
    factors.spent[:n_factors] = False
    mine = np.empty(n_factors + m, np.int64)
    scope = np.empty(m, np.int64)
    for step in range(m):
        v = factors.turn[step]
        n_mine = 0
        for f in range(n_factors):
            if not factors.spent[f] and factors.stride[f, v] > 0:
                mine[n_mine] = f
                n_mine += 1
                factors.spent[f] = True
        factors.stride[n_factors, :m] = 0
        width, n_cells = 0, 1
        for a in range(m):
            if factors.joined[v, a]:
                scope[width] = a
                width += 1
                factors.stride[n_factors, a] = n_cells
                n_cells *= families.cardinalities[factors.hidden[a]]
        first = pool[free : free + n_cells]
        _sum_out(v, mine[:n_mine], scope[:width], families, factors, tables, pool, first)
        if width:
            factors.base[n_factors] = free
            factors.pooled[n_factors] = True
            factors.spent[n_factors] = False
            n_factors += 1
            free += n_cells
        else:
            for z in range(len(out)):
                out[z] += first[0, z]


@kernel(is_part=True)
def _sum_out(v, mine, scope, families, factors, tables, pool, message):
    """Write log Σ_v exp Σ_f of some factors to a message: (cells of the scope, Z), its first column fastest."""
    n_values, n_components = families.cardinalities[factors.hidden[v]], message.shape[1]
    terms = np.empty((n_values, n_components))
    value = np.zeros(len(scope), np.int64)
    cell = factors.base[mine]
    for c in range(len(message)):
        terms[:] = 0.0
        for position in range(len(mine)):
            f = mine[position]
            step = factors.stride[f, v]
            if factors.pooled[f]:
                for x in range(n_values):
                    for z in range(n_components):
                        terms[x, z] += pool[cell[position] + x * step, z]
            else:
                for x in range(n_values):
                    for z in range(n_components):
                        terms[x, z] += tables[cell[position] + x * step, z]
        for z in range(n_components):
            peak = -np.inf
            for x in range(n_values):
                peak = max(peak, terms[x, z])
            total = 0.0
            if peak > -np.inf:
                for x in range(n_values):
                    total += np.exp(terms[x, z] - peak)
            message[c, z] = peak + np.log(total) if total > 0.0 else -np.inf
        for s in range(len(scope)):
            a = scope[s]
            value[s] += 1
            turned = value[s] == families.cardinalities[factors.hidden[a]]
            change = 1 - value[s] if turned else 1
            for position in range(len(mine)):
                cell[position] += change * factors.stride[mine[position], a]
            if not turned:
                break
            value[s] = 0
