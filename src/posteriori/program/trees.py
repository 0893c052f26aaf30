"""Log factors along a tree of categories and numbers, as functions of arrays.

Messages pass from the leaves to the root, as in `kernels/loops/families.py`. A column whose cell is missing collects
the messages of its children, and sums or integrates over its own values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.densities import TreeParameters
from posteriori.program.arrays import at_code, log_sum_exp, needed_where, where_rows
from posteriori.program.cells import RowCells
from posteriori.support.arrays import Arrays, taken

_LOG_TWO_PI = math.log(2.0 * math.pi)


def of_tree(cells: RowCells, columns: Sequence[int], parameters: TreeParameters, codes: dict[int, Arrays]) -> Arrays:
    """Return the term of each column in log p(x | z), (n, Z, d); 0 where its parent is missing, whose term includes it.

    `codes` are those of the columns of categories, by their positions in the block.
    """
    xp, d = cells.xp, len(columns)
    values = {j: codes[j] for j in codes}
    for j in range(d):
        if parameters.continuous[j]:
            values[j] = cells.number(columns[j]) - float(parameters.centre[parameters.position[j]])
    gaps = [
        _is_missing(values[j], parameters.continuous[j])[:, None] for j in np.flatnonzero(parameters.internal).tolist()
    ]
    shared = len(parameters.parents) == 1
    components = [list(range(parameters.n_components))] if shared else [[z] for z in range(parameters.n_components)]

    def summed(some: dict[int, Arrays]) -> Arrays:
        each = [_TreeOfRows(some, parameters, tree, of_tree).factors() for tree, of_tree in enumerate(components)]
        return xp.concat([xp.stack(factors, axis=2) for factors in each], axis=1)

    if hasattr(xp, "needed_where"):  # messages are columns of their own, which rows without gaps leave out
        return summed(values)
    parts = []
    for tree, of_components in enumerate(components):
        whole = _TreeOfRows(values, parameters, tree, of_components)
        parts.append(xp.stack([whole.given_parent(j) for j in range(d)], axis=2))
    direct = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
    if not gaps:
        return direct

    def of_rows(rows: Arrays) -> Arrays:
        return summed({j: xp.take(x, rows, axis=0) for j, x in values.items()})

    return where_rows(xp.any(xp.concat(gaps, axis=1), axis=1), of_rows, direct)


def _is_missing(value: Arrays, is_number: bool) -> Arrays:
    return value.__array_namespace__().isnan(value) if is_number else value == 0


class _TreeOfRows:
    """The components of one tree, and the cells of some rows by column."""

    def __init__(
        self, values: dict[int, Arrays], parameters: TreeParameters, tree: int, components: Sequence[int]
    ) -> None:
        self._values = values
        self._parameters = parameters
        self._components = components
        self._parents = parameters.parents[tree].tolist()
        self._order = parameters.order[tree].tolist()
        self._xp: Any = values[0].__array_namespace__()
        self._messages: dict[int, Any] = {}  # per category: log λ of each value, (n, Z, K); per number: g, h, k

    def _is_number(self, j: int) -> bool:
        return bool(self._parameters.continuous[j])

    def _missing(self, j: int) -> Arrays:
        return _is_missing(self._values[j], self._is_number(j))[:, None]

    def _width(self, j: int) -> int:
        return int(self._parameters.widths[j])

    def _n_given(self, j: int) -> int:
        """Return the number of codes of a categorical parent with categories; 0 of a column without one."""
        parent = self._parents[j]
        return 0 if parent < 0 or self._is_number(parent) else self._width(parent) - 1

    def _lines(self, j: int) -> Any:
        """Return intercept, slope and variance of a number for each code of its parent, (3, Z, A)."""
        starts = self._parameters.start[list(self._components), j]
        codes = np.arange(1, self._n_given(j) + 1) if self._n_given(j) else np.zeros(1, np.int64)
        return np.moveaxis(self._parameters.normal[starts[:, np.newaxis] + codes], 2, 0)

    def _table(self, j: int) -> Any:
        """Return log p(x_j | a, z) for each code a of the parent, (K + 1, Z, A)."""
        starts, width = self._parameters.start[list(self._components), j], self._width(j)
        codes = np.arange(1, self._n_given(j) + 1) if self._n_given(j) else np.zeros(1, np.int64)
        slots = starts[:, np.newaxis] + codes * width
        table = self._parameters.table[slots[np.newaxis] + np.arange(width)[:, np.newaxis, np.newaxis]]
        table[0] = 0.0
        return table

    def _chosen(self, of_codes: Arrays, j: int) -> Arrays:
        """Return the entry of the code of the parent, (n, Z) of (n, Z, A)."""
        if not self._n_given(j):
            return of_codes[:, :, 0]
        return at_code(of_codes, self._values[self._parents[j]])

    def _mean(self, j: int, intercept: Any, slope: Any) -> Arrays:
        parent = self._parents[j]
        if parent < 0 or not self._is_number(parent):
            return intercept
        return intercept + slope * self._values[parent][:, None, None]

    def _log_normal(self, j: int) -> Arrays:
        """Return log N(x_j; mean, variance), (n, Z, A)."""
        intercept, slope, variance = self._lines(j)
        apart = self._values[j][:, None, None] - self._mean(j, intercept, slope)
        return -0.5 * (_LOG_TWO_PI + np.log(variance)) - apart * apart * (0.5 / variance)

    def given_parent(self, j: int) -> Arrays:
        """Return log p(x_j | x_parent, z), (n, Z), of rows in which parents are known."""
        if self._is_number(j):
            return self._xp.where(self._missing(j), 0.0, self._chosen(self._log_normal(j), j))
        if not self._n_given(j):
            return taken(self._table(j)[:, :, 0], self._values[j])
        table = self._table(j)
        none = np.zeros((1, *table.shape[:2]))  # of a parent that is missing
        lines = np.concatenate([none, table.transpose(2, 0, 1)]).reshape(-1, len(self._components))
        return taken(lines, self._values[self._parents[j]] * self._width(j) + self._values[j])

    # Rows with missing parents ------------------------------------------------------------------------------------

    def factors(self) -> list[Arrays]:
        """Return the term of each column, children before their parents, (n, Z) each."""
        terms: dict[int, Arrays] = {}
        children: dict[int, list[int]] = {}
        for j, parent in enumerate(self._parents):
            if parent >= 0:
                children.setdefault(parent, []).append(j)
        for j in reversed(self._order):
            if j in children:
                self._collect(j, children[j])
            parent, message = self._parents[j], self._chosen(self._message(j), j)
            hidden = parent >= 0 and (self._is_number(parent) or self._width(parent) > 1)
            terms[j] = self._xp.where(self._missing(parent), 0.0, message) if hidden else message
        return [terms[j] for j in range(len(self._parents))]

    def _collect(self, j: int, children: Sequence[int]) -> None:
        """Add up the messages of the children of a column, for rows where it is missing."""
        if self._is_number(j):  # products of Gaussians: the canonical parameters g, h and k of the children add up
            each = [self._canonical(c) for c in children]
            sums = [sum(parts[1:], start=parts[0]) for parts in zip(*each, strict=True)]
            self._messages[j] = tuple(needed_where(self._missing(j), message) for message in sums)
        elif self._width(j) > 1:
            of_children = [self._message(c) for c in children]
            message = sum(of_children[1:], start=of_children[0])
            self._messages[j] = needed_where(self._missing(j)[:, :, None], message)

    def _message(self, j: int) -> Arrays:
        """Return log p(x_j | a, z), and of a missing cell the message of its subtree, (n, Z, A)."""
        xp = self._xp
        if self._is_number(j):
            seen, unknown = self._log_normal(j), 0.0
            if j in self._messages:
                intercept, slope, variance = self._lines(j)
                unknown = self._integral(j, self._mean(j, intercept, slope), variance)
        else:
            seen, unknown = taken(self._table(j), self._values[j]), 0.0
            if j in self._messages:
                table = np.moveaxis(self._table(j)[1:], 0, 2)  # (Z, A, K)
                unknown = log_sum_exp(self._messages[j][:, :, None, :] + table)
        return xp.where(self._missing(j)[:, :, None], unknown, seen)

    def _integral(self, j: int, mean: Any, variance: Any) -> Arrays:
        """Return log ∫ N(x; m, v)·exp(g + h·x − ½·k·x²) dx, (n, Z, A).

        It is g − ½·log(1 + v·k) + (h·m + ½·v·h² − ½·k·m²) / (1 + v·k).
        """
        g, h, k = (x[:, :, None] for x in self._messages[j])
        spread = 1.0 + variance * k
        return g - 0.5 * self._xp.log(spread) + (h * mean + 0.5 * variance * h * h - 0.5 * k * mean * mean) / spread

    def _canonical(self, j: int) -> tuple[Arrays, Arrays, Arrays]:
        """Return the message g + h·u − ½·k·u² of a number to its missing parent u, (n, Z) each."""
        xp, (intercept, slope, variance) = self._xp, self._lines(j)[:, :, 0]
        apart = self._values[j][:, None] - intercept
        seen = (
            -0.5 * (_LOG_TWO_PI + np.log(variance)) - apart * apart * (0.5 / variance),
            apart * (slope / variance),
            slope * slope / variance,
        )
        unknown: tuple[Any, Any, Any] = (0.0, 0.0, 0.0)
        if j in self._messages:
            _, h, k = self._messages[j]
            spread = 1.0 + variance * k
            integral = self._integral(j, intercept[:, np.newaxis], variance[:, np.newaxis])[:, :, 0]
            unknown = integral, (h - k * intercept) * slope / spread, k * slope * slope / spread
        missing = self._missing(j)
        first, second, third = (
            xp.where(missing, if_missing, xp.zeros_like(apart) + if_seen)
            for if_missing, if_seen in zip(unknown, seen, strict=True)
        )
        return first, second, third
