"""Forward sums: the missing columns of a row are summed out on one walk along the chain rule.

The belief p(missing | present so far, z) is a product of tables over groups of missing columns that share no factor.
A present column x_j multiplies the groups of its missing parents by p(x_j | parents, z). The sum of that product is
p(x_j | present before it, z), the factor of the chain rule, and its quotient by that sum is the next belief. So all
factors of a row cost one walk, where variable elimination costs one run for each. A missing column enters when the
first of its children needs it, and is summed out after the last. This is the forward pass of a hidden Markov model with
scaled tables (Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77 (1989), section V.A), for any
graph.

All tables hold probabilities, the Z components of a cell side by side. As each belief sums to 1, only a value that is
less probable than `LEAST` could be lost. It becomes NaN, the walk gives up, and the row is left to sums of logarithms.
"""

from typing import NamedTuple

import numpy as np

from posteriori.kernels.loops.elimination import reads_hidden
from posteriori.kernels.machine.compiling import kernel

LEAST = 1e-150  # the product of two such numbers is no 0 yet


class Walk(NamedTuple):
    """The plan of one row of d columns, and the tables on its way."""

    event: np.ndarray  # (d,) the columns whose factors are multiplied, in turn
    place: np.ndarray  # (d,) for how many columns of the chain rule, at least, each event is needed
    last: np.ndarray  # (d,) the last event that reads a hidden column, by its number
    group: np.ndarray  # (d,) the event that wrote the table with a hidden column, or −1
    stride: np.ndarray  # (d,) cells from one value of a hidden column to the next in that table
    first: np.ndarray  # (d,) the first cell of the table that each event wrote
    cells: np.ndarray  # (d,) how many cells it has
    needed: np.ndarray  # bool (d,): hidden columns that enter next
    entered: np.ndarray  # bool (d,)


class EventProduct(NamedTuple):
    """The axes of the table that an event sums over: one for each hidden column, those of its groups and its own."""

    column: np.ndarray  # (a,) the number of each axis
    width: np.ndarray  # (a,) its number of values
    value: np.ndarray  # (a,) its value on the way over the cells
    # (a, 2 + d): cells from one value to the next in the factor, in the result (0 if the axis is summed over), and in
    # the tables of the groups
    step: np.ndarray
    at: np.ndarray  # (2 + d,) the cells of these tables on the way


@kernel(is_part=True)
def allocate_walk(d):
    """Return the buffers of a walk over d columns."""
    return Walk(
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.zeros(d, np.bool_),
        np.zeros(d, np.bool_),
    ), EventProduct(
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty(d, np.int64),
        np.empty((d, d + 2), np.int64),
        np.empty(d + 2, np.int64),
    )


@kernel(is_part=True)
def plan_walk(row, upto, m, families, factors, most_cells, walk):
    """Write the events of the first columns of a row; return (events, events whose tables are small, cells of these).

    The tables of the small events have at most most_cells cells together.
    """
    n_events = _list_events(row, upto, families, factors, walk)
    for v in range(m):
        walk.group[v] = -1
    total = np.int64(0)
    for e in range(n_events):
        n_cells = _cells_joined(e, m, families, factors, walk)
        if total + n_cells > most_cells:
            return n_events, e, total
        total += np.int64(n_cells)
        for v in range(m):
            if walk.group[v] == e and walk.last[v] == e:
                walk.group[v] = -1
                n_cells /= families.cardinalities[factors.hidden[v]]
        walk.cells[e] = np.int64(n_cells)
    return n_events, n_events, total


@kernel(is_part=True)
def _list_events(row, upto, families, factors, walk):
    """Write the columns whose factors are multiplied: present ones, each after the hidden ones that it needs."""
    n_events = 0
    for j in range(len(walk.entered)):
        walk.entered[j] = False
    for step in range(upto):
        j = families.order[step]
        if row[j] == 0 or not reads_hidden(j, families, factors):
            continue
        if _need_parents(j, families, factors, walk):
            for before in range(step - 1, -1, -1):
                if walk.needed[families.order[before]]:
                    _need_parents(families.order[before], families, factors, walk)
            for before in range(step):
                hidden = families.order[before]
                if walk.needed[hidden]:
                    walk.needed[hidden], walk.entered[hidden] = False, True
                    walk.event[n_events], walk.place[n_events] = hidden, step + 1
                    n_events += 1
        walk.event[n_events], walk.place[n_events] = j, step + 1
        n_events += 1
    for e in range(n_events):
        for t in range(families.starts[walk.event[e]], families.starts[walk.event[e] + 1]):
            if factors.position[families.members[t]] >= 0:
                walk.last[factors.position[families.members[t]]] = e
    return n_events


@kernel(is_part=True)
def _need_parents(j, families, factors, walk):
    """Mark the hidden parents of a column that have not entered; return whether there are some."""
    needs_some = False
    for t in range(families.starts[j], families.starts[j + 1] - 1):
        parent = families.members[t]
        if factors.position[parent] >= 0 and not walk.entered[parent]:
            walk.needed[parent] = needs_some = True
    return needs_some


@kernel(is_part=True)
def _cells_joined(e, m, families, factors, walk):
    """Make one group of those that an event reads; return the cells of its table before columns are summed out."""
    n_cells = 1.0
    for t in range(families.starts[walk.event[e]], families.starts[walk.event[e] + 1]):
        own = factors.position[families.members[t]]
        if own < 0 or walk.group[own] == e:
            continue
        old = walk.group[own]
        walk.group[own] = e
        n_cells *= families.cardinalities[families.members[t]]
        for v in range(m):
            if old >= 0 and walk.group[v] == old:
                walk.group[v] = e
                n_cells *= families.cardinalities[factors.hidden[v]]
    return n_cells


@kernel(is_part=True)
def follow_walk(
    row, upto, m, n_events, n_small, free, families, factors, strides, base, tables, pool, walk, product, summed
):
    """Write the log sums of a row to summed (entries, Z); return the number of entries that were written.

    Entry t is the sum of the first upto[t] columns, the least first. strides holds, for each member of a family, the
    cells from one value to the next in the tables (slots, Z), and base (d,) the cell of value 0 of all hidden members.
    The tables of the walk go to the pool from cell `free` on. Where a value would be lost, 0 is returned, and summed
    is 0.
    """
    n_components = summed.shape[1]
    along, total, scale = np.zeros(n_components), np.empty(n_components), np.empty(n_components)
    for v in range(m):
        walk.group[v] = -1
    entry = 0
    for e in range(n_events):
        while entry < len(summed) and upto[entry] < walk.place[e]:
            for z in range(n_components):
                summed[entry, z] = along[z]
            entry += 1
        if e == n_small:
            return entry
        j = walk.event[e]
        walk.first[e] = free
        n_axes, n_groups = _lay_out_product(e, m, families, factors, strides, base, walk, product)
        belief = pool[free : free + walk.cells[e]]
        free += walk.cells[e]
        _multiply(n_axes, n_groups, tables, pool, product, belief)
        if not _normalise(belief, total, scale):
            for before in range(entry):
                for z in range(n_components):
                    summed[before, z] = 0.0
            return 0
        if row[j] > 0:  # the factors of a missing column sum to 1
            for z in range(n_components):
                along[z] += np.log(total[z]) if total[z] > 0.0 else -np.inf
    while entry < len(summed):
        for z in range(n_components):
            summed[entry, z] = along[z]
        entry += 1
    return entry


@kernel(is_part=True)
def _lay_out_product(e, m, families, factors, strides, base, walk, product):
    """Write the axes of the product of an event, and make its groups one; return the numbers of axes and groups."""
    j, n_axes, n_groups = walk.event[e], 0, 0
    product.at[0], product.at[1] = base[j], 0
    # the groups that the event reads, and then their columns
    for t in range(families.starts[j], families.starts[j + 1]):
        own = factors.position[families.members[t]]
        if own < 0 or walk.group[own] == e:
            continue
        old = walk.group[own]
        walk.group[own] = e
        n_axes = _add_axis(own, n_axes, families, factors, product)
        if old < 0:
            continue
        product.at[2 + n_groups] = walk.first[old]
        product.step[n_axes - 1, 2 + n_groups] = walk.stride[own]
        for v in range(m):
            if walk.group[v] == old:
                walk.group[v] = e
                n_axes = _add_axis(v, n_axes, families, factors, product)
                product.step[n_axes - 1, 2 + n_groups] = walk.stride[v]
        n_groups += 1
    for a in range(n_axes):
        for t in range(families.starts[j], families.starts[j + 1]):
            if factors.position[families.members[t]] == product.column[a]:
                product.step[a, 0] = strides[t]
    stride = 1
    for a in range(n_axes):
        v = product.column[a]
        if walk.last[v] == e:
            walk.group[v] = -1
        else:
            walk.stride[v] = product.step[a, 1] = stride
            stride *= product.width[a]
    return n_axes, n_groups


@kernel(is_part=True)
def _add_axis(v, n_axes, families, factors, product):
    """Write the axis of a hidden column, with no steps; return the number of axes."""
    product.column[n_axes] = v
    product.width[n_axes] = families.cardinalities[factors.hidden[v]]
    product.value[n_axes] = 0
    for table in range(product.step.shape[1]):
        product.step[n_axes, table] = 0
    return n_axes + 1


@kernel(is_part=True)
def _multiply(n_axes, n_groups, tables, pool, product, belief):
    """Write the product of the factor and the groups to belief (cells, Z), summed. The first axis turns the fastest."""
    at, step, value = product.at, product.step, product.value
    n_components = np.uint64(belief.shape[1])  # unsigned, because Numba tests a signed index for being negative
    of_factor, of_belief, of_group = np.uint64(step[0, 0]), np.uint64(step[0, 1]), np.uint64(step[0, 2])
    for c in range(len(belief)):
        for z in range(n_components):
            belief[c, z] = 0.0
    while True:
        cell, to, other = np.uint64(at[0]), np.uint64(at[1]), np.uint64(at[2])
        for x in range(product.width[0]):
            if n_groups == 0:
                for z in range(n_components):
                    belief[to, z] += tables[cell, z]
            elif n_groups == 1:
                for z in range(n_components):
                    belief[to, z] += tables[cell, z] * pool[other, z]
            else:
                for z in range(n_components):
                    term = 1.0
                    for g in range(n_groups):
                        term *= pool[at[2 + g] + x * step[0, 2 + g], z]
                        term = term if term >= LEAST or term == 0.0 else np.nan
                    belief[to, z] += tables[cell, z] * term
            cell += of_factor
            to += of_belief
            other += of_group
        a = 1
        while a < n_axes:
            value[a] += 1
            turned = value[a] == product.width[a]
            change = 1 - value[a] if turned else 1
            for table in range(2 + n_groups):
                at[table] += change * step[a, table]
            if not turned:
                break
            value[a] = 0
            a += 1
        if a >= n_axes:
            return


@kernel(is_part=True)
def _normalise(belief, total, scale):
    """Divide belief (cells, Z) by its sums, and write them to total (Z,); return whether no cell is lost."""
    for z in range(len(total)):
        total[z] = 0.0
    for c in range(len(belief)):
        for z in range(len(total)):
            total[z] += belief[c, z]
    for z in range(len(total)):
        scale[z] = 1.0 / total[z] if total[z] > 0.0 else 0.0
    is_kept = True
    for c in range(len(belief)):
        for z in range(len(total)):
            share = belief[c, z] * scale[z]
            is_kept &= share >= LEAST or belief[c, z] == 0.0  # False for NaN
            belief[c, z] = share
    return is_kept


@kernel(is_part=True)
def mark_least(cells):
    """Replace probabilities (cells, Z) between 0 and `LEAST` by NaN."""
    for c in range(len(cells)):
        for z in range(cells.shape[1]):
            if 0.0 < cells[c, z] < LEAST:
                cells[c, z] = np.nan
