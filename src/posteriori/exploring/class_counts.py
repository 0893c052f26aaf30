"""How many rows of each class have one, two or three cells: the shares that the page shows beside the posterior.

The sums of a model hold counts of categories and bins, of single columns, and of the sets of columns that its densities
count together. A labelled table adds the pairs of columns that these lack.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.model import Block
from posteriori.statistics.counts import Counts, CountTogether, JointCounts
from posteriori.statistics.forests import LeafCounts
from posteriori.statistics.grouped import GroupedStatistics
from posteriori.statistics.pairs import Pairs
from posteriori.support.typing import Array
from posteriori.tables import Column
from posteriori.tables.batch import Assignment, Codes

FEWEST_ROWS = 5  # a share of fewer is noise, and says too much about single rows
_MOST_COLUMNS = 3  # known at once
_MOST_NUMBERS = 40_000  # in the page, about 150 kB
_MOST_CELLS = 20_000  # of the table of one set of columns
_MOST_COUNTED = 1 << 21  # cells of all pairs of a given table, 16 MB

Scope = tuple[int, ...]


def class_counts(value: FittedClasses, X: Any = None, labels: Array | None = None) -> dict[str, Any] | None:
    """Return the counts of classes by sets of known cells, None where the model and the rows have none.

    Parameters
    ----------
    value : FittedClasses
        Of a classifier.
    X : features (n, d), optional
    labels : ndarray (n,), optional
        The class of each row of X, −1 without a label.

    Returns
    -------
    dict, or None
        ``cuts``, cut points of columns, and ``scopes``: the positions of the ``columns``, for each the position of its
        ``cuts``, None for categories, whether the rows are those of ``training``, and ``cells``, a flat list. For each
        combination of codes of at least 5 rows, it has the codes, 1 for the first category or bin, and the number of
        rows of each class.
    """
    schema = value.schema
    found: dict[Scope, tuple[bool, list[Column], Array]] = {}
    for of_training, columns, scope, table in _all_tables(value, X, labels):
        if not (1 <= len(scope) <= _MOST_COLUMNS and table.size <= _MOST_CELLS and _counts_rows(table)):
            continue
        known = [columns[j] for j in scope]
        if all(schema.columns[j].categories == column.categories for j, column in zip(scope, known, strict=True)):
            before = found.get(scope)
            # The finest bins, and training rows before others.
            if before is None or (before[0] == of_training and before[2].size < table.size):
                found[scope] = of_training, known, table
    if not found:
        return None
    cuts: dict[tuple[float, ...], int] = {}
    scopes, n_numbers = [], 0
    for scope, (of_training, known, table) in sorted(found.items(), key=lambda one: (len(one[0]), one[1][2].size)):
        cells = _cells(table)
        n_numbers += cells.size
        if n_numbers > _MOST_NUMBERS:
            break
        places = [None if column.cuts is None else cuts.setdefault(column.cuts, len(cuts)) for column in known]
        written = {"columns": list(scope), "cuts": places, "training": of_training, "cells": cells.ravel().tolist()}
        scopes.append(written)
    return {"cuts": [list(points) for points in cuts], "scopes": scopes}


def _all_tables(
    value: FittedClasses, X: Any, labels: Array | None
) -> Iterator[tuple[bool, tuple[Column, ...], Scope, Array]]:
    """Yield tables of weights by class and codes, (C, K + 1, …), with their columns, from the model and the rows."""
    parts = value.parts.values()
    summed = [(one.model, one.statistics) for one in parts if one.statistics is not None and not one.statistics.hidden]
    most = max((sums.weight.sum() for _, sums in summed), default=0.0)
    for model, sums in summed:
        if sums.weight.sum() < most:
            continue  # it has seen a part of the rows
        for block, statistics in zip(model.blocks, sums.blocks, strict=True):
            for scope, table in _tables_of(block, statistics):
                yield True, model.schema.columns, scope, _by_class(table, model.of_class, model.n_classes)
    if labels is not None and (labels >= 0).any():
        finest = max(parts, key=lambda one: len(one.model.schema.coded))
        for scope, table in _tables_of_rows(finest, X, labels):
            yield False, finest.model.schema.columns, scope, table


def _tables_of(block: Block, statistics: Any) -> Iterator[tuple[Scope, Array]]:
    """Yield tables of counts of the sums of one block, (Z, K + 1, …), by the positions of the columns in the schema."""
    columns = block.columns
    if isinstance(statistics, Pairs):
        columns = tuple(j for j, is_number in zip(columns, statistics.continuous, strict=True) if not is_number)
        statistics = statistics.codes
    elif isinstance(statistics, GroupedStatistics):
        columns = tuple(columns[place] for place in statistics.coded)
        groups = () if statistics.groups is None else statistics.groups.of_categories
        grouped = {j for j, one in zip(columns, groups, strict=False) if one}
        yield from (one for one in _tables_of(block, statistics.coarse) if grouped.isdisjoint(one[0]))
        statistics = statistics.categories
    elif isinstance(statistics, LeafCounts):
        statistics = statistics.singles
    if isinstance(statistics, Counts) and not block.models_missingness:
        for place, j in enumerate(columns):
            yield (j,), statistics.table[:, statistics.offsets[place] : statistics.offsets[place + 1]]
    elif isinstance(statistics, JointCounts):
        yield from _parts_of(statistics, columns)


def _parts_of(counts: JointCounts, columns: tuple[int, ...]) -> Iterator[tuple[Scope, Array]]:
    """Yield the tables of all parts of the scopes that are counted together, each once."""
    seen = set()
    for scope in counts.scopes:
        table = counts.table(scope)
        for n in range(1, min(len(scope), _MOST_COLUMNS) + 1):
            for axes in itertools.combinations(range(len(scope)), n):
                part = tuple(columns[scope[axis]] for axis in axes)
                order = np.argsort(part)
                if frozenset(part) in seen:
                    continue
                seen.add(frozenset(part))
                others = tuple(axis + 1 for axis in range(len(scope)) if axis not in axes)
                yield tuple(sorted(part)), table.sum(axis=others).transpose(0, *(order + 1))


def _tables_of_rows(member: Fitted, X: Any, labels: Array) -> Iterator[tuple[Scope, Array]]:
    """Yield the counts of single columns and of pairs of columns of labelled rows, in the bins of a model."""
    schema = member.model.schema
    codes = member.rows.source(X).map(lambda batch: batch.codes.values)[labels >= 0]
    cardinalities = tuple(schema.columns[j].cardinality for j in schema.coded)
    sizes = {
        scope: len(member.classes) * int(np.prod([cardinalities[place] + 1 for place in scope]))
        for n in (1, 2)
        for scope in itertools.combinations(range(len(cardinalities)), n)
    }
    wanted, total = [], 0
    for scope, size in sorted(sizes.items(), key=lambda one: one[1]):
        total += size
        if size > _MOST_CELLS or total > _MOST_COUNTED:
            break
        wanted.append(scope)
    component = labels[labels >= 0].astype(np.int32)
    assignment = Assignment(component, np.ones(len(component)), len(member.classes))
    counts = CountTogether(tuple(sorted(wanted))).of(Codes(np.ascontiguousarray(codes), cardinalities), assignment)
    for scope in counts.scopes:
        yield tuple(schema.coded[place] for place in scope), counts.table(scope)


def _by_class(table: Array, of_class: tuple[int, ...] | None, n_classes: int) -> Array:
    """Return the sums over the components of each class, (C, …) from (Z, …)."""
    if not of_class:
        return table
    total = np.zeros((n_classes, *table.shape[1:]))
    np.add.at(total, np.asarray(of_class), table)
    return total


def _counts_rows(table: Array) -> bool:
    """Return whether all weights are whole numbers, as they are of rows without weights, whose classes are known."""
    return bool(np.array_equal(table, np.rint(table)))


def _cells(table: Array) -> Array:
    """Return the codes and the counts by class of the combinations of present cells of enough rows, (n, s + C)."""
    inner = table[(slice(None), *[slice(1, None)] * (table.ndim - 1))]
    codes = np.argwhere(inner.sum(axis=0) >= FEWEST_ROWS)
    counts = inner[(slice(None), *codes.T)]
    return np.concatenate([codes + 1, counts.T], axis=1).astype(np.int64)
