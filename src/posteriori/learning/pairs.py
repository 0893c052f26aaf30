r"""Which pairs of columns count together, and their numbers: further cells of `posteriori.learning.cells`.

.. math:: u_{ijy}(a, b) = \sum_{\ell} \eta_{ij\ell y}(g_\ell(a), g_\ell(b)), \qquad \eta \sim N(0, 1 / \lambda)

The table of a pair is a sum of nested tables, from 4 × 4 groups of bins to 32 × 32, under one penalty λ: few rows move
the coarse numbers first. After the fit the mean of a table given each of its columns goes to the numbers of that column
(a projection, as in a functional analysis of variance), so that a pair of which a cell is missing adds nothing.

References
----------
Lou, Caruana, Gehrke & Hooker, Accurate intelligible models with pairwise interactions, KDD (2013), on the screening of
pairs by their residuals. Lengerich, Tan, Chang, Hooker & Caruana, Purifying interaction effects with the functional
ANOVA, AISTATS (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.learning.cells import (
    SEARCH,
    CellOptimum,
    CellProblem,
    CellTables,
    has_few_rows,
    held_out_share,
    weighing,
)
from posteriori.model.pair_tables import MOST_GROUPS, PairTables
from posteriori.support.typing import Array

MOST_PAIRS = 60
_LEVELS = (4, 8, 16, MOST_GROUPS)  # groups of a column of bins, from the coarsest table to the finest
_ROWS_PER_CELL = 4.0  # of the finest table, in the mean: 2,000 rows have 16 × 16 groups of bins, 4,096 rows 32 × 32
_SCREENED, _FEW = 8, 16  # groups of a column while pairs are screened, and values that it keeps there if it has no more
_SCREENING = (5.0, 20.0, 100.0, 400.0)  # λ of the one step that screens a pair
_MOST_SCREENED = 1 << 28  # additions: rows times pairs times classes
_TOGETHER = 1 << 22  # numbers in the tables of pairs that are screened together
_MOST_SEARCHED = 1 << 17  # rows times classes on which λ is searched
PENALTIES = (400.0, 100.0, 20.0, 5.0, 1.0, 0.2)  # λ of pairs, from which held-out rows choose
MOST_NUMBERS = 1 << 18  # directions times classes, in all pairs
_FINAL = 1e-6  # L-BFGS ends if a step lowers the loss by less, relative to it
SURE = 2.0  # standard errors of its gain, by which the gain of a pair that is sure exceeds 0
_CENTRED = 5.0  # rows by which the means of a table are pulled to 0, for columns that say nearly the same

Pair = tuple[int, int]


@dataclass(frozen=True)
class GroupedColumn:
    """The categories or bins of a column, in groups that get finer from level to level.

    Attributes
    ----------
    levels : tuple of ndarray (K,)
        The group of each category or bin, from 0, at each of the levels.
    screened : ndarray (K,)
        Their groups while pairs are screened.
    """

    levels: tuple[Array, ...]
    screened: Array

    @classmethod
    def of(cls, weight: Array, is_ordered: bool) -> GroupedColumn:
        """Return groups of neighbouring bins of equal weight, or the most frequent categories and one of the others.

        Parameters
        ----------
        weight : ndarray (K,)
            The weight of the rows of each category or bin.
        is_ordered : bool
            Whether they are bins.
        """
        if not is_ordered:
            return cls((_most_frequent(weight, MOST_GROUPS),) * len(_LEVELS), _most_frequent(weight, _SCREENED))
        most = max([size for size in _LEVELS if size * size * _ROWS_PER_CELL <= weight.sum()], default=_LEVELS[0])
        middle = (np.cumsum(weight) - weight / 2.0) / weight.sum()
        place = np.minimum((middle * MOST_GROUPS).astype(np.int64), MOST_GROUPS - 1)
        levels = [_numbered(place * min(size, most) // MOST_GROUPS) for size in _LEVELS]
        screened = levels[_LEVELS.index(_SCREENED)]
        if len(weight) <= most:
            levels[-1] = np.arange(len(weight))
        return cls(tuple(levels), levels[-1] if len(weight) <= _FEW else screened)

    @property
    def groups(self) -> Array:
        """The finest groups, (K,)."""
        return self.levels[-1]

    @cached_property
    def n_groups(self) -> int:
        """The number of the finest groups."""
        return int(self.groups.max(initial=-1)) + 1

    def coarser(self, level: int) -> Array:
        """Return the group at a level of each of the finest groups."""
        parent = np.zeros(self.n_groups, np.int64)
        parent[self.groups] = self.levels[level]
        return parent


def _numbered(labels: Array) -> Array:
    """Return whole numbers as their ranks among the distinct ones, from 0."""
    return np.asarray(np.unique(labels, return_inverse=True)[1].reshape(-1))


def _most_frequent(weight: Array, most: int) -> Array:
    """Return a group for each of the most frequent categories, and one of all others, no matter how they are called."""
    if len(weight) <= most:
        return np.arange(len(weight))
    is_kept = weight > np.sort(weight)[::-1][most - 1]
    group = np.full(len(weight), np.count_nonzero(is_kept))
    group[is_kept] = np.arange(np.count_nonzero(is_kept))
    return group


def screened_pairs(
    columns: Sequence[GroupedColumn], codes: Array, slopes: Array, share: Array, spread: Array, sure: float
) -> list[Pair]:
    r"""Return the pairs of columns whose tables would lower the log-loss of held-out rows, the best ones first.

    A table of 8 × 8 numbers has one Newton step, :math:`\delta = G / (H + \lambda)`, of the sums G of residuals and H
    of curvatures of the other rows; on held-out rows it gains about :math:`\delta G' - \delta^2 H' / 2`, with a
    standard error of :math:`\sqrt{\delta^2 H'}`. The λ of the greatest gain counts.

    Parameters
    ----------
    columns : sequence of GroupedColumn
    codes : ndarray (n, d)
        0 is a missing cell.
    slopes : ndarray (n, 2·C)
        1 − p or −p, and p(1 − p), of each class, times the weight of the row.
    share : ndarray (n,)
        The share of each row that is held out.
    spread : ndarray (d,)
        How much each column moves the scores: of many columns only the pairs of those that move them most are tried.
    sure : float
        The least gain in standard errors.
    """
    tried = np.sort(np.argsort(-spread, kind="stable")[: _most_columns(len(codes) * slopes.shape[1])])
    pairs = np.array(list(combinations(tried.tolist(), 2)), np.int64).reshape(-1, 2)
    if not len(pairs):
        return []
    groups = [np.append(0, column.screened + 1)[codes[:, j]] for j, column in enumerate(columns)]
    cells = np.stack(groups, axis=1).astype(np.uint8)
    parts = [slopes * of_rows[:, np.newaxis] for of_rows in (1.0 - share, share)]
    size = max(1, _TOGETHER // ((_FEW + 1) ** 2 * slopes.shape[1]))
    chunks = [_gains(cells, pairs[first : first + size], *parts) for first in range(0, len(pairs), size)]
    gain, surest = (np.concatenate(of_chunks) for of_chunks in zip(*chunks, strict=True))
    order = [p for p in np.argsort(-gain, kind="stable").tolist() if surest[p] > sure]
    return [(int(pairs[p, 0]), int(pairs[p, 1])) for p in order[:MOST_PAIRS]]


def _most_columns(n_numbers: int) -> int:
    """Return the number of columns all pairs of which are screened on so many numbers of rows."""
    return max(2, int(np.sqrt(2.0 * _MOST_SCREENED / max(n_numbers, 1))))


def _gains(cells: Array, pairs: Array, others: Array, held_out: Array) -> tuple[Array, Array]:
    """Return the gain of each pair in nats, and in standard errors."""
    width = _FEW + 1
    sums = []
    for values in (others, held_out):
        out = np.zeros((len(pairs), width * width, values.shape[1]))
        kernels.add_pairs(cells, pairs, width, values, out)
        sums.append(np.split(out.reshape(len(pairs), width, width, -1)[:, 1:, 1:], 2, axis=3))
    (seen, of_seen), (new, of_new) = sums
    best, surest = np.zeros(len(pairs)), np.zeros(len(pairs))
    for penalty in _SCREENING:
        step = seen / (of_seen + penalty)
        variance = (step**2 * of_new).sum(axis=(1, 2, 3))
        gain = (step * new).sum(axis=(1, 2, 3)) - 0.5 * variance
        best = np.maximum(best, gain)
        surest = np.maximum(surest, gain / np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny)))
    return best, surest


@dataclass(frozen=True)
class PairCells:
    """The cells of the tables of pairs that occur in some rows, and the nested tables whose sums their numbers are.

    Attributes
    ----------
    pairs : sequence of Pair
        By the positions of their columns.
    columns : sequence of GroupedColumn
    codes : ndarray (n, d)
        Of the rows, 0 for a missing cell.
    """

    pairs: Sequence[Pair]
    columns: Sequence[GroupedColumn]
    codes: Array

    @cached_property
    def _cells(self) -> list[tuple[Array, Array]]:
        """For each pair the cells that occur, ascending, and the place of that of each row; −1 if a cell is missing."""
        found = []
        for i, j in self.pairs:
            first, second = (np.append(-1, self.columns[k].groups)[self.codes[:, k]] for k in (i, j))
            known = (first >= 0) & (second >= 0)
            places = np.full(len(first), -1)
            cells, of_known = np.unique((first * self.columns[j].n_groups + second)[known], return_inverse=True)
            places[known] = of_known.reshape(-1)
            found.append((cells, places))
        return found

    @cached_property
    def starts(self) -> Array:
        """The first slot of each pair, that of a missing cell, and the number of slots, (P + 1,)."""
        return np.cumsum([0, *(len(cells) + 1 for cells, _ in self._cells)])

    @cached_property
    def slots(self) -> Array:
        """The slot of each row in each pair, (n, P)."""
        each = zip(self.starts, (places for _, places in self._cells), strict=False)
        return np.stack([start + 1 + places for start, places in each], axis=1)

    def weight(self, pair: int, weight: Array) -> Array:
        """Return the weight of the rows in each cell of a pair, (G_i, G_j)."""
        (i, j), (cells, places) = self.pairs[pair], self._cells[pair]
        out = np.zeros(self.columns[i].n_groups * self.columns[j].n_groups)
        known = places >= 0
        out[cells] = np.bincount(places[known], weight[known], len(cells))
        return out.reshape(self.columns[i].n_groups, self.columns[j].n_groups)

    @cached_property
    def _levels(self) -> list[list[tuple[Array, Array, int]]]:
        """For each pair and distinct level: the direction of each cell (G_i·G_j), those of cells that occur, the first.

        A coarse cell that no row shows has no direction: −1.
        """
        found, first = [], 0
        for (i, j), (cells, _) in zip(self.pairs, self._cells, strict=True):
            of_pair: list[tuple[Array, Array, int]] = []
            for level in range(len(_LEVELS)):
                a, b = self.columns[i].coarser(level), self.columns[j].coarser(level)
                whole = (a[:, np.newaxis] * (int(b.max(initial=0)) + 1) + b).reshape(-1)
                shown, place = np.unique(whole[cells], return_inverse=True)
                if of_pair and len(shown) == len(np.unique(of_pair[-1][1])):
                    continue  # as coarse as the level before
                at = np.minimum(np.searchsorted(shown, whole), max(len(shown) - 1, 0))
                of_all = np.where(shown[at] == whole, first + at, -1) if len(shown) else np.full(len(whole), -1)
                of_pair.append((of_all, first + place.reshape(-1), first))
                first += len(shown)
            found.append(of_pair)
        return found

    @cached_property
    def n_directions(self) -> int:
        """The number of numbers η of a class."""
        return 1 + max((int(of_cells.max(initial=-1)) for one in self._levels for _, of_cells, _ in one), default=-1)

    def basis(self, scale: float) -> Any:
        """Return the sparse matrix (slots, directions) that takes η to the numbers of cells, its entries `scale`."""
        from scipy.sparse import csr_array

        slots = [
            start + 1 + np.arange(len(of_cells))
            for start, of_pair in zip(self.starts, self._levels, strict=False)
            for _, of_cells, _ in of_pair
        ]
        directions = np.concatenate([of_cells for of_pair in self._levels for _, of_cells, _ in of_pair])
        rows = np.concatenate(slots)
        return csr_array(
            (np.full(len(rows), scale), (rows, directions)), shape=(int(self.starts[-1]), self.n_directions)
        )

    def at_most(self, n_directions: int) -> PairCells:
        """Return the first pairs, at least one, whose directions are together at most so many."""
        ends = [1 + int(of_pair[-1][1].max(initial=-1)) for of_pair in self._levels]
        kept = max(1, sum(end <= n_directions for end in ends))
        return self if kept == len(ends) else PairCells(self.pairs[:kept], self.columns, self.codes)

    def tables(self, eta: Array, weight: Array) -> tuple[list[Array], list[Array]]:
        """Return the numbers of all cells of each pair, centred, and what each column gets of them.

        Parameters
        ----------
        eta : ndarray (directions, C)
            In nats: times `scale`.
        weight : ndarray (n,)
            Of the rows.

        Returns
        -------
        tables : list of ndarray (G_i, G_j, C)
        moved : list of ndarray (K, C)
            For each column.
        """
        n_classes = eta.shape[1]
        moved = [np.zeros((len(column.groups), n_classes)) for column in self.columns]
        tables = []
        padded = np.concatenate([eta, np.zeros((1, n_classes))])  # −1 is the last
        for p, (i, j) in enumerate(self.pairs):
            shape = self.columns[i].n_groups, self.columns[j].n_groups
            table = np.sum([padded[of_all] for of_all, _, _ in self._levels[p]], axis=0).reshape(*shape, n_classes)
            first, second = _means(table, self.weight(p, weight))
            tables.append(table - first[:, np.newaxis] - second)
            moved[i] += first[self.columns[i].groups]
            moved[j] += second[self.columns[j].groups]
        return tables, moved


def _means(table: Array, weight: Array) -> tuple[Array, Array]:
    """Return f (A, C) and g (B, C): the weighted squares of table − f − g, and of some rows of 0, are least."""
    n_first, n_second = weight.shape
    normal = np.zeros((n_first + n_second,) * 2)
    normal[:n_first, n_first:], normal[n_first:, :n_first] = weight, weight.T
    normal[np.diag_indices(len(normal))] = np.concatenate([weight.sum(axis=1), weight.sum(axis=0)]) + _CENTRED
    right = np.concatenate([np.einsum("abc,ab->ac", table, weight), np.einsum("abc,ab->bc", table, weight)])
    found = np.linalg.solve(normal, right)
    return found[:n_first], found[n_first:]


@dataclass(frozen=True)
class PairFit:
    """The numbers of pairs, with those of the columns beside which they were learned, in nats.

    Attributes
    ----------
    cells : PairCells
    tables : sequence of ndarray (G_i, G_j, C)
        Of each pair, centred.
    bias : ndarray (C,)
    weight : ndarray (d,) or (0,)
    delta : ndarray (S, C)
        As in `CellOptimum`, with the means of the tables.
    choice : PairChoice
    """

    cells: PairCells
    tables: Sequence[Array]
    bias: Array
    weight: Array
    delta: Array
    choice: PairChoice


@dataclass(frozen=True)
class PairChoice:
    """Choices made on held-out rows: λ, and by how many standard errors the gain of a pair exceeds 0."""

    penalty: float
    sure: float


def fit_pairs(
    found: CellOptimum, columns: Sequence[GroupedColumn], codes: Array, choice: PairChoice | None = None
) -> PairFit | None:
    """Return the numbers of pairs of columns, learned beside those of the columns; None if no pair lowers the log-loss.

    Parameters
    ----------
    found : CellOptimum
        The numbers of the columns alone.
    columns : sequence of GroupedColumn
    codes : ndarray (n, d)
        Of the rows, 0 for missing cells.
    choice : PairChoice, optional
        Default: that of the least log-loss of a third of the rows, learned from the others.
    """
    alone = found.problem
    if choice is None and not has_few_rows(alone.rows):
        choice = _searched(found, columns, codes)
    if choice is None:
        return None
    pairs = _screened(alone, found.position, columns, codes, choice.sure)
    if not pairs:
        return None
    n_classes, n_alone = len(alone.log_prior), len(alone.tables.column)
    cells = PairCells(pairs, columns, codes).at_most(MOST_NUMBERS // n_classes)
    problem = _beside(alone, cells, cells.slots, choice.penalty)
    position = problem.minimum(_started(found.position, cells, n_classes), _FINAL)
    bias, weight, eta = problem.parts(position)
    delta = problem.tables.basis[:n_alone] @ eta
    of_pairs = eta[alone.tables.basis.shape[1] :] * np.sqrt(alone.penalty / choice.penalty)
    tables, moved = cells.tables(of_pairs, alone.rows.weight)
    starts = np.searchsorted(alone.tables.column, np.arange(len(columns)))
    for start, numbers in zip(starts, moved, strict=True):
        delta[start + 1 : start + 1 + len(numbers)] += numbers
    return PairFit(cells, tables, bias, weight, delta, choice)


def _searched(found: CellOptimum, columns: Sequence[GroupedColumn], codes: Array) -> PairChoice | None:
    """Return the choice of the least log-loss of a third of the rows; None if it is least without pairs.

    The pairs are screened without this third: chosen with it, they would seem better than they are.
    """
    alone, n_classes = found.problem, len(found.problem.log_prior)
    share = held_out_share(alone.rows, alone.tables)
    of_new, new = np.flatnonzero(share), replace(alone, rows=weighing(alone.rows, alone.rows.weight * share))
    of_part, part = np.arange(len(share)), alone
    left = alone.rows.weight * (1.0 - share)
    while True:
        kept = np.flatnonzero(left)
        of_part, part = of_part[kept], replace(part, rows=weighing(part.rows, left))
        if len(of_part) * n_classes <= _MOST_SEARCHED:
            break
        left = part.rows.weight * held_out_share(part.rows, part.tables)  # λ is that of a number, not of a row
    begin = part.minimum(found.position, SEARCH)
    least, best = new.log_loss(begin), None
    for sure in (SURE, 0.0):
        pairs = _screened(part, begin, columns, codes[of_part], sure)
        if not pairs:
            continue
        cells = PairCells(pairs, columns, codes).at_most(MOST_NUMBERS // n_classes)
        position, before = _started(begin, cells, n_classes), np.inf
        for penalty in PENALTIES:
            position = _beside(part, cells, cells.slots[of_part], penalty).minimum(position, SEARCH)
            loss = _beside(new, cells, cells.slots[of_new], penalty).log_loss(position)
            if loss < least:
                least, best = loss, PairChoice(penalty, sure)
            if loss >= before:
                break
            before = loss
    return best


def _screened(
    alone: CellProblem, position: Array, columns: Sequence[GroupedColumn], codes: Array, sure: float
) -> list[Pair]:
    """Return the pairs that lower the log-loss of a third of the rows of a problem, of which these are the codes."""
    rows = alone.rows
    posterior = alone.posterior(position)
    residual = -posterior
    residual[np.arange(len(posterior)), rows.component] += 1.0
    slopes = np.concatenate([residual, posterior * (1.0 - posterior)], axis=1) * rows.weight[:, np.newaxis]
    moves = alone.numbers(position)[rows.slots]
    spread = (moves - moves.mean(axis=2, keepdims=True)).var(axis=0).sum(axis=1)
    return screened_pairs(columns, codes, slopes, held_out_share(rows, alone.tables), spread, sure)


def _beside(alone: CellProblem, cells: PairCells, slots: Array, penalty: float) -> CellProblem:
    """Return the problem of the numbers of columns and of pairs, which have a λ of their own.

    `slots` (n, P) are those of the rows of the problem in `cells`.
    """
    from scipy.sparse import block_diag

    tables, n_slots = alone.tables, int(cells.starts[-1])
    basis = block_diag([tables.basis, cells.basis(float(np.sqrt(alone.penalty / penalty)))], format="csr")
    both = CellTables(
        basis,
        np.append(tables.column, np.zeros(n_slots, tables.column.dtype)),
        np.append(tables.is_biased, np.zeros(n_slots, np.bool_)),
        np.concatenate([tables.log_probability, np.zeros((n_slots, tables.log_probability.shape[1]))]),
        tables.weighed,
    )
    all_slots = np.concatenate([alone.rows.slots, len(tables.column) + slots], axis=1)
    return replace(alone, rows=alone.rows._replace(slots=all_slots.astype(np.int32, order="C")), tables=both)


def _started(position: Array, cells: PairCells, n_classes: int) -> Array:
    return np.append(position, np.zeros(cells.n_directions * n_classes))


def pair_tables(
    fitted: PairFit, places: Sequence[int], cardinalities: tuple[int, ...], present: Array, n_components: int
) -> PairTables:
    """Return the tables of a fit as those of a model.

    Parameters
    ----------
    fitted : PairFit
    places : sequence of int
        The columns by their positions among those that have codes.
    cardinalities : tuple of int
        Of all that have codes.
    present : ndarray
        The classes of the fit, among `n_components`.
    """
    group = [np.minimum(np.arange(size + 1), 1) for size in cardinalities]
    numbers = []
    for (i, j), table in zip(fitted.cells.pairs, fitted.tables, strict=True):
        for k in (i, j):
            group[places[k]] = np.append(0, fitted.cells.columns[k].groups + 1)
        of_pair = np.zeros((n_components, 1 + table.shape[0] * table.shape[1]))
        of_pair[present, 1:] = table.reshape(-1, table.shape[2]).T.astype(np.float32)  # files are half as large
        numbers.append(of_pair)
    of_pairs = np.array([[places[i], places[j]] for i, j in fitted.cells.pairs], np.int64)
    choice = fitted.choice
    both = np.concatenate(group), np.concatenate(numbers, axis=1)
    return PairTables(of_pairs, cardinalities, *both, choice.penalty, choice.sure)
