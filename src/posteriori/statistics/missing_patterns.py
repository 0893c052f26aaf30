"""Second moments of the rows of each pattern of missing cells: all that EM for a Gaussian needs of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.model_cost import MAX_PATTERN_CELLS
from posteriori.statistics.scatter import Scatter
from posteriori.statistics.sums import gather
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array

_ROWS_PER_GROUP = 2.0  # with fewer rows per pattern and component, a pass over the rows is as fast


@dataclass(frozen=True)
class ComponentPatterns:
    """The moments of the rows of one component, by their pattern of missing cells, p of them.

    Attributes
    ----------
    weight : ndarray (p,)
    mean : ndarray (p, d)
        0 where the column is missing.
    scatter : ndarray (d, d)
        The sum of the scatter matrices of all patterns, with zeros for missing columns.
    incomplete : tuple of (int, ndarray (m,), ndarray (d, d))
        The position, the missing columns and the scatter matrix of each pattern with missing columns.
    """

    weight: Array
    mean: Array
    scatter: Array
    incomplete: tuple[tuple[int, Array, Array], ...]


@dataclass(frozen=True)
class MissingPatterns:
    """For each pattern of missing cells, the second moments of the present columns of its rows.

    The conditional expectation of the missing cells of a Gaussian is linear in the present cells, and the same for all
    rows of a pattern and a component. So an E-step needs these moments only, and its cost is independent of the number
    of rows (Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2).

    Attributes
    ----------
    n_columns : int
        d.
    n_rows : ndarray (Z,)
        Rows of positive weight of each component.
    scatters : dict or None
        By the columns that are present, as a tuple of positions. None if there are too many patterns.
    """

    n_columns: int
    n_rows: Array
    scatters: dict[tuple[int, ...], Scatter] | None

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> MissingPatterns:
        """Return the second moments of the rows of a tile. O(n·d²) in BLAS."""
        counted = np.flatnonzero(assignment.weight > 0)
        values, given = tile.values[counted], assignment.rows(counted)
        d = values.shape[1]
        n_rows = np.bincount(given.component, minlength=given.n_components)
        missing = np.isnan(values)
        pattern, n_patterns = _number_patterns(missing)
        if n_patterns > MAX_PATTERN_CELLS // max(1, given.n_components * d * d):
            return cls(d, n_rows, None)
        order = np.argsort(pattern, kind="stable")
        ends = np.cumsum(np.bincount(pattern, minlength=n_patterns))
        scatters = {}
        for rows in np.split(order, ends[:-1]) if len(order) else []:
            present = np.flatnonzero(~missing[rows[0]])
            part = values[rows] if len(present) == d else np.ascontiguousarray(values[np.ix_(rows, present)])
            scatters[tuple(present.tolist())] = Scatter.of(Numbers(part), given.rows(rows))
        return cls(d, n_rows, scatters)

    def reindexed(self, components: Sequence[int], columns: object = None) -> MissingPatterns:
        """Return the moments of other components, by their indices here, −1 for a new one."""
        del columns  # numbers have no categories
        known = self.scatters
        scatters = None if known is None else {one: scatter.reindexed(components) for one, scatter in known.items()}
        return MissingPatterns(self.n_columns, gather(self.n_rows, components), scatters)

    def __add__(self, other: MissingPatterns) -> MissingPatterns:
        n_rows = self.n_rows + other.n_rows
        if self.scatters is None or other.scatters is None:
            return MissingPatterns(self.n_columns, n_rows, None)
        scatters = dict(self.scatters)
        for present, scatter in other.scatters.items():
            scatters[present] = scatters[present] + scatter if present in scatters else scatter
        n_cells = len(scatters) * self.n_columns**2 * max((len(one.weight) for one in scatters.values()), default=0)
        return MissingPatterns(self.n_columns, n_rows, None if n_cells > MAX_PATTERN_CELLS else scatters)

    def are_few(self) -> bool:
        """Return whether an E-step on these moments costs less than one on the rows."""
        if self.scatters is None:
            return False
        groups = sum(int((scatter.weight > 0).sum()) for scatter in self.scatters.values())
        return bool(groups * _ROWS_PER_GROUP <= self.n_rows.sum())

    @cached_property
    def components(self) -> tuple[ComponentPatterns, ...]:
        """The moments by component, padded to all columns. They are the same in every step of EM."""
        assert self.scatters is not None
        n_components = max((len(scatter.weight) for scatter in self.scatters.values()), default=0)
        return tuple(self._of_component(z) for z in range(n_components))

    def _of_component(self, z: int) -> ComponentPatterns:
        scatters = self.scatters or {}
        patterns = [present for present, scatter in scatters.items() if scatter.weight[z] > 0]
        d = self.n_columns
        weight, mean = np.array([scatters[present].weight[z] for present in patterns]), np.zeros((len(patterns), d))
        whole, incomplete = np.zeros((d, d)), []
        for number, present in enumerate(patterns):
            here = np.array(present, np.int64)
            mean[number, here] = scatters[present].mean[z]
            padded = np.zeros((d, d))
            padded[np.ix_(here, here)] = scatters[present].scatter[z]
            whole += padded
            if len(here) < d:
                incomplete.append((number, np.setdiff1d(np.arange(d), here), padded))
        return ComponentPatterns(weight, mean, whole, tuple(incomplete))


def _number_patterns(missing: Array) -> tuple[Array, int]:
    """Return the number of the pattern of each row, (n,), and the number of patterns."""
    packed = np.packbits(missing[:, missing.any(axis=0)], axis=1)
    if packed.shape[1] <= 8:  # one integer per row is sorted many times faster than a row of bytes
        padded = np.zeros((len(packed), 8), np.uint8)
        padded[:, : packed.shape[1]] = packed
        patterns, pattern = np.unique(padded.view(np.uint64)[:, 0], return_inverse=True)
    else:
        patterns, pattern = np.unique(packed, axis=0, return_inverse=True)
    return pattern.ravel(), len(patterns)


@dataclass(frozen=True)
class PatternsOfBlocks:
    """The patterns of several blocks of columns; + adds up those of the same block."""

    blocks: tuple[MissingPatterns, ...]

    def __add__(self, other: PatternsOfBlocks) -> PatternsOfBlocks:
        return PatternsOfBlocks(tuple(a + b for a, b in zip(self.blocks, other.blocks, strict=True)))
