"""Joint second moments of numbers, of all rows or per pattern of missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.model_cost import MAX_PATTERN_CELLS
from posteriori.statistics.moments import (
    Moments,
    constant_left,
    less,
    moments_without,
    sums_from_responsibilities,
    weights_left,
)
from posteriori.statistics.sums import Axes, Sums, difference, gather, indefinite, ratio, squares_left, variance_of_all
from posteriori.support.checks import LARGEST, LARGEST_SQUARE, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import Column

_BLOCK_CELLS = 1 << 17  # deviations per block, so that BLAS reads them from the cache
_SHARED_CELLS = 1 << 15  # the same, if rows are read once per component
_ASYMMETRY = 1e-6  # of a correlation: more than rounding


@dataclass(frozen=True)
class Scatter(Sums):
    """Per component: the weight of the rows, their mean, and their scatter matrix Σ w·(x − mean)(x − mean)ᵀ.

    As with `Moments`, sums are taken about a shift and merged by the update of Chan, Golub & LeVeque (1979).

    If cells are missing, mean and scatter are expectations: from an E-step under a model, or, before the first E-step,
    under independent columns. `cells` holds the moments of the present cells alone. They show whether the sums are
    exact, and the variance of each column without any expectation.

    Attributes
    ----------
    weight : ndarray (Z,)
        In rows.
    shift, offset : ndarray (Z, d)
        In data units; the mean is shift + offset.
    scatter : ndarray (Z, d, d)
        In squared data units times rows.
    cells : Moments
        The moments of the present cells, (Z, d).
    """

    weight: Annotated[Array, Axes("the weight of rows", "z", low=0.0)]
    shift: Annotated[Array, Axes("the shift of rows", "z", "column")]
    offset: Annotated[Array, Axes("the offset of rows", "z", "column")]
    scatter: Annotated[
        Array, Axes("the scatter of rows", "z", "column", "column", low=-LARGEST_SQUARE, high=LARGEST_SQUARE)
    ]
    cells: Moments

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the sums fit these columns and this number of components."""
        super().check_against(columns, n_components)
        self.cells.check_against(columns, n_components)
        with np.errstate(over="ignore"):
            covariance = self.scatter / np.where(self.weight > 0, self.weight, 1.0)[:, np.newaxis, np.newaxis]
        check_numbers("the covariance of rows", covariance, covariance.shape, -LARGEST_SQUARE, LARGEST_SQUARE)
        for scatter, weight in zip(self.scatter, self.weight.tolist(), strict=True):
            squares = np.maximum(np.diagonal(scatter), 0.0)
            lengths = np.sqrt(squares)
            apart = np.abs(scatter - scatter.T) > _ASYMMETRY * np.outer(lengths, lengths)
            wrong = apart.any() or indefinite(scatter, squares, weight, self.variance_of_cells).any()
            require(not wrong, "the scatter of rows is not symmetric and positive semidefinite")

    @property
    def mean(self) -> Array:
        """The mean, (Z, d), in data units."""
        return self.shift + self.offset

    @cached_property
    def variance_of_cells(self) -> Array:
        """The variance of the present cells of all components together, (d,)."""
        pooled = self.cells.pooled()
        return np.asarray(pooled.scatter[0] / np.where(pooled.weight[0] > 0, pooled.weight[0], 1.0))

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> Scatter:
        """Return the second moments of the rows of a tile. O(n·d²) in BLAS."""
        with np.errstate(invalid="ignore", over="ignore"):  # reported by finite()
            complete = cls._of_complete(tile.values, assignment)
            return cls._of_incomplete(tile, assignment) if complete is None else complete

    @classmethod
    def _of_complete(cls, values: Array, assignment: Assignment) -> Scatter | None:
        """Return the second moments in one read of the tile, or None if a cell is missing."""
        n_components, d = assignment.n_components, values.shape[1]
        shift, offset, weight = np.zeros((n_components, d)), np.zeros((n_components, d)), np.zeros(n_components)
        kernels.first_numbers(values, assignment.component, assignment.weight, shift)
        scatter, begun = np.zeros((n_components, d, d)), np.zeros(n_components, np.bool_)
        size = max(1, _BLOCK_CELLS // max(1, d), n_components * d)  # rows: a product should cost more than its addition
        for start in range(0, len(values), size):
            rows = slice(start, start + size)
            component, w = assignment.component[rows], assignment.weight[rows]
            ends = np.cumsum(np.bincount(component, minlength=n_components))
            position = np.concatenate([[0], ends[:-1]])
            deviation = np.empty((len(component), d))
            kernels.deviations_by_component(values[rows], component, w, shift, position.copy(), deviation, offset)
            if np.isnan(offset).any():
                return None
            for z in np.flatnonzero(ends > position).tolist():
                block = deviation[position[z] : ends[z]]
                # NumPy detects AᵀA and does half the work (syrk). Unlike SciPy's dsyrk it releases the GIL.
                if begun[z]:
                    scatter[z] += block.T @ block
                else:
                    np.matmul(block.T, block, out=scatter[z])
                    begun[z] = True
            weight += np.bincount(component, w, n_components)
        offset /= np.where(weight > 0, weight, 1.0)[:, np.newaxis]
        return cls._about(weight, shift, offset, scatter)

    @classmethod
    def _about(cls, weight: Array, shift: Array, offset: Array, scatter: Array) -> Scatter:
        """Return the second moments of complete rows from their scatter about a shift, which is modified in place."""
        for z in range(len(weight)):
            apart = np.sqrt(weight[z]) * offset[z]
            scatter[z] -= np.outer(apart, apart)
        variation = np.maximum(np.diagonal(scatter, axis1=1, axis2=2), 0.0)
        cells = Moments(np.repeat(weight[:, np.newaxis], offset.shape[1], axis=1), shift, offset, variation)
        return cls(weight, shift, offset, scatter, cells)

    @classmethod
    def from_responsibilities(cls, tile: Numbers, responsibilities: Array) -> Scatter:
        """Return the second moments of rows weighted by their responsibilities, (n, Z). O(n·Z·d²) in BLAS."""
        with np.errstate(invalid="ignore", over="ignore"):  # reported by finite()
            complete = cls._from_complete_responsibilities(tile.values, responsibilities)
            if complete is not None:
                return complete
            counted = np.asarray(responsibilities.any(axis=1))
            if not counted.all():
                return cls.from_responsibilities(tile.rows(counted), responsibilities[counted])
            return cls._of_cells(
                sums_from_responsibilities(responsibilities), Moments.from_responsibilities(tile, responsibilities)
            )

    @classmethod
    def _from_complete_responsibilities(cls, values: Array, responsibilities: Array) -> Scatter | None:
        """Return the second moments, or None if a cell is missing."""
        (n, d), n_components = values.shape, responsibilities.shape[1]
        shift, sums = np.zeros((n_components, d)), np.zeros((n_components, d + 1, d + 1))
        kernels.weightiest_numbers(values, responsibilities, shift)
        size = max(1, _SHARED_CELLS // (d + 1), 2 * d)
        deviation, product = np.empty((min(size, n), d + 1)), np.empty((d + 1, d + 1))
        for start in range(0, n, size):
            rows = slice(start, start + size)
            for z in range(n_components):
                n_rows = kernels.shared_deviations(values[rows], responsibilities[rows], z, shift, deviation)
                block = deviation[:n_rows]
                sums[z] += np.matmul(block.T, block, out=product)
            if np.isnan(sums[:, d, :d]).any():
                return None
        weight = sums_from_responsibilities(responsibilities)
        offset = sums[:, d, :d] / np.where(weight > 0, weight, 1.0)[:, np.newaxis]
        return cls._about(weight, shift, offset, sums[:, :d, :d].copy())

    @classmethod
    def _of_incomplete(cls, tile: Numbers, assignment: Assignment) -> Scatter:
        """Return second moments if a cell is missing: exact for components whose weighted rows are complete."""
        counted = assignment.weight > 0
        if not counted.all():
            weighted = Assignment(assignment.component[counted], assignment.weight[counted], assignment.n_components)
            return cls.of(Numbers(tile.values[counted]), weighted)
        weight = np.bincount(assignment.component, assignment.weight, assignment.n_components)
        sums = cls._of_cells(weight, Moments.of(tile, assignment))
        lacking = np.zeros(assignment.n_components, np.bool_)
        lacking[assignment.component[np.isnan(tile.values).any(axis=1)]] = True
        whole = np.flatnonzero(~lacking[assignment.component])
        if len(whole) in (0, len(tile.values)):  # all of them if cells are infinite, which finite() reports
            return sums
        exact = cls.of(tile.rows(whole), assignment.rows(whole))
        positions = np.where(lacking | (weight == 0), -1, np.arange(len(weight)))
        rest = np.where(positions < 0, np.arange(len(weight)), -1)
        return sums.reindexed(rest.tolist()) + exact.reindexed(positions.tolist())

    @classmethod
    def _of_cells(cls, weight: Array, cells: Moments) -> Scatter:
        """Return the expected second moments of independent columns, from the moments of their present cells.

        A column without a present cell in a component takes the moments of all components there.
        """
        pooled = cells.pooled()
        seen = cells.weight > 0
        within = cells.scatter.sum(axis=0) / np.where(pooled.weight[0] > 0, pooled.weight[0], 1.0)
        variance = np.where(seen, cells.scatter / np.where(seen, cells.weight, 1.0), within)
        shift, offset = (
            np.where(seen, of_component, of_all)
            for of_component, of_all in ((cells.shift, pooled.shift), (cells.offset, pooled.offset))
        )
        scatter = (weight[:, np.newaxis] * variance)[:, :, np.newaxis] * np.eye(variance.shape[1])
        return cls(weight, shift, offset, scatter, cells)

    def independent(self) -> Scatter:
        """Return the expected second moments under independent columns, from which EM starts."""
        return self._of_cells(self.weight, self.cells)

    def __add__(self, other: Scatter) -> Scatter:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        known = (self.weight > 0)[:, np.newaxis]
        delta = np.where(known, (other.shift - self.shift) + (other.offset - self.offset), 0.0)
        offset = np.where(known, self.offset + delta * share[:, np.newaxis], other.offset)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by finite()
            scatter = self.scatter + other.scatter
            for z in np.flatnonzero(share > 0):  # one d×d matrix at a time, because d may be large
                apart = np.sqrt(self.weight[z] * share[z]) * delta[z]
                scatter[z] += np.outer(apart, apart)
        return Scatter(weight, np.where(known, self.shift, other.shift), offset, scatter, self.cells + other.cells)

    def __sub__(self, other: Scatter) -> Scatter:
        weight = difference(self.weight, other.weight)
        share = ratio(other.weight, weight)
        delta = (other.shift - self.shift) + (other.offset - self.offset)
        left = (weight > 0)[:, np.newaxis]
        scatter = np.zeros_like(self.scatter)
        for z in np.flatnonzero(weight > 0):  # one d×d matrix at a time, because d may be large
            step = np.sqrt(self.weight[z] * share[z]) * delta[z]
            scatter[z] = self.scatter[z] - other.scatter[z] - np.outer(step, step)
            before = np.diagonal(self.scatter[z])
            constant = squares_left(before, before - np.diagonal(scatter[z])) <= 0
            scatter[z][constant] = 0.0
            scatter[z][:, constant] = 0.0
        offset = np.where(left, self.offset - share[:, np.newaxis] * delta, 0.0)  # share is 0 where other has no row
        return Scatter(weight, np.where(left, self.shift, 0.0), offset, scatter, self.cells - other.cells)

    def would_go_negative(self, other: Scatter) -> Array:
        """Return where other holds more than these moments of complete rows, (Z, d)."""
        negative = self.cells.would_go_negative(other.cells) | (other.cells.weight < other.weight[:, np.newaxis])
        if not negative.any():
            rest = (self - other).scatter
            variance = variance_of_all(self.cells.weight, self.cells.mean, self.cells.scatter)
            for z in np.flatnonzero(other.weight > 0):
                negative[z] = indefinite(rest[z], np.diagonal(self.scatter[z]), self.weight[z], variance)
        return negative

    def without(self, tile: Numbers, assignment: Assignment) -> Scatter:
        """Return the second moments without one of their rows, which has no missing cell."""
        z, w = int(assignment.component[0]), float(assignment.weight[0])
        offset, scatter = self.offset.copy(), self.scatter.copy()
        weight = weights_left(self.weight, assignment)[0]
        if weight[z] > 0:
            deviation = (tile.values[0] - self.shift[z]) - self.offset[z]
            step = w / weight[z] * deviation
            offset[z] -= step
            scatter[z] -= self.weight[z] * np.outer(step, deviation)
            before = np.diagonal(self.scatter[z])
            constant = less(before, before - np.diagonal(scatter[z])) <= 0
            scatter[z][constant] = 0.0
            scatter[z][:, constant] = 0.0
        else:
            scatter[z] = 0.0
        constant, value = constant_left(self.cells, tile, assignment)
        scatter[:, constant], scatter[:, :, constant] = 0.0, 0.0
        shift, offset = np.where(constant, value, self.shift), np.where(constant, 0.0, offset)
        return Scatter(weight, shift, offset, scatter, moments_without(self.cells, tile, assignment))

    def finite(self) -> Array:
        """Return which columns had no infinite cell and none so large that squared differences overflow."""
        sizes = np.maximum(np.abs(self.shift), np.abs(self.offset)).max(axis=0)
        squares = np.maximum(self.scatter.max(axis=(0, 1)), -self.scatter.min(axis=(0, 1)))  # no copy of all sums
        return np.asarray(self.cells.finite() & (sizes <= LARGEST) & (squares <= LARGEST_SQUARE))

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.cells.weight

    def is_exact(self) -> bool:
        """Return whether no row of positive weight had a missing cell."""
        return bool((self.cells.weight == self.weight[:, np.newaxis]).all())


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
    place : ndarray (q,)
        The positions of the patterns with missing columns.
    is_missing : ndarray of bool (q, d)
        Their missing columns.
    scatters : ndarray (q, d, d)
        Their scatter matrices.
    """

    weight: Array
    mean: Array
    scatter: Array
    place: Array
    is_missing: Array
    scatters: Array


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
        padded = np.zeros((len(patterns), d, d))
        is_missing = np.ones((len(patterns), d), np.bool_)
        for number, present in enumerate(patterns):
            here = np.array(present, np.int64)
            mean[number, here] = scatters[present].mean[z]
            padded[number][np.ix_(here, here)] = scatters[present].scatter[z]
            is_missing[number, here] = False
        place = np.flatnonzero(is_missing.any(axis=1))
        return ComponentPatterns(weight, mean, padded.sum(axis=0), place, is_missing[place], padded[place])


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
