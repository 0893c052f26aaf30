"""Log factors of columns of codes with parents, as functions of arrays: missing parents are summed out line by line."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.densities import FamilyTables
from posteriori.program.arrays import segment_log_sums, where_rows
from posteriori.support.arrays import Arrays, taken


def of_families(codes: Arrays, tables: FamilyTables) -> Arrays:
    """Return log p(x_j | the present ones of the columns before it, z), (n, Z, d), of codes (n, d); 0 where missing."""
    xp, d = codes.__array_namespace__(), len(tables.parents)
    strides = np.eye(d, dtype=np.int64)
    for j in range(d):
        for i, stride in _strides(tables, j):
            strides[i, j] = stride
    slots = codes @ xp.asarray(strides) + np.asarray(tables.offsets)
    direct = xp.permute_dims(taken(tables.log_probability, slots), (0, 2, 1))
    if not len(tables.inner):
        return direct
    gap = xp.any(xp.take(codes, xp.asarray(tables.inner), axis=1) == 0, axis=1)
    return where_rows(gap, lambda rows: _summed(xp.take(codes, rows, axis=0), tables), direct)


def _strides(tables: FamilyTables, j: int) -> list[tuple[int, int]]:
    """Return the parents of a column with the distance of their codes in its table."""
    widths = [tables.cardinalities[i] + 1 for i in (*tables.parents[j][1:], j)]
    return [(i, int(np.prod(widths[k:]))) for k, i in enumerate(tables.parents[j])]


def _summed(codes: Arrays, tables: FamilyTables) -> Arrays:
    """Return the same of rows with missing parents.

    A row starts as one line. At a missing column with a present descendant it becomes a line for each of its values;
    lines are added up as soon as no later column depends on the values in which they differ.
    """
    xp, parents = codes.__array_namespace__(), tables.parents
    below: list[set[int]] = [set() for _ in parents]
    for j in reversed(tables.order):
        for i in parents[j]:
            below[i] |= {j} | below[j]
    last = {i: place for place, j in enumerate(tables.order) for i in parents[j]}
    row = xp.cumulative_sum(xp.ones_like(codes[:, 0]), axis=0) - 1
    of_rows = xp.astype(codes[:, :1], xp.float64) * 0.0 + np.zeros((1, tables.log_probability.shape[1]))
    weight, live, factors = of_rows, dict[int, Any](), [of_rows] * len(parents)
    for place, j in enumerate(tables.order):
        own, width = codes[:, j], tables.cardinalities[j]
        code = xp.take(own, row, axis=0)
        if below[j] and width:
            wanted = xp.any(xp.take(codes, xp.asarray(np.array(sorted(below[j]))), axis=1) > 0, axis=1)
            split = (code == 0) & xp.take(wanted, row, axis=0)
            kept, many = (xp.nonzero(mask)[0] for mask in (~split, split))
            values = xp.reshape(xp.zeros_like(many)[:, None] + np.arange(1, width + 1)[None, :], (-1,))
            copies = xp.reshape(many[:, None] + np.zeros((1, width), np.int64), (-1,))
            code = xp.concat([xp.take(code, kept, axis=0), values], axis=0)
            index = xp.concat([kept, copies], axis=0)
            row, weight = xp.take(row, index, axis=0), xp.take(weight, index, axis=0)
            live = {i: xp.take(value, index, axis=0) for i, value in live.items()}
        slot = code + int(tables.offsets[j])
        for i, stride in _strides(tables, j):
            slot = slot + live[i] * stride
        weight = weight + taken(tables.log_probability, slot)
        if j in last:
            live[j] = code
        gone = [i for i in live if last[i] <= place]
        if gone:
            live = {i: value for i, value in live.items() if i not in gone}
            key = row
            for i, value in live.items():
                key = xp.unique_inverse(key * (tables.cardinalities[i] + 1) + value)[1]
            groups = xp.unique_all(key)
            like = xp.take(weight, groups[1], axis=0)
            weight = segment_log_sums(weight, xp.reshape(groups[2], (-1,)), like)
            row = xp.take(row, groups[1], axis=0)
            live = {i: xp.take(value, groups[1], axis=0) for i, value in live.items()}
        log_p = segment_log_sums(weight, row, of_rows)
        factors[j] = xp.where((own > 0)[:, None], log_p, 0.0)
        weight = weight - xp.take(xp.where(log_p == -np.inf, 0.0, log_p), row, axis=0)
    return xp.stack(factors, axis=2)
