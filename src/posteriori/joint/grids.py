"""The numbers that the bins of a column stand for: cells within each bin, and how the rows are spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.model.answer import Answer, Categories
from posteriori.model.number_cells import NEAR, NumberCells
from posteriori.regression.target_cells import cells_of, step_of
from posteriori.support.checks import check_numbers, check_places, require
from posteriori.support.typing import Array
from posteriori.tables import Column

_PSEUDO, _IN_OUTER = 1.0, 1.0  # rows spread over a bin by the width of its cells: for each with rows; in outermost bins

_LEAST = float(np.log(np.finfo(np.float64).tiny))

_TAIL, _FEWEST_IN_TAIL = 80, 2.0  # twice the share of the rows in an outermost cell is 1/160, and rows in the last one

_BEYOND, _FALL = 0.1, 0.5  # rows beyond the least and beyond the greatest number, and how they fall from cell to cell

_DECIMALS = 7  # of units: none to six


@dataclass(frozen=True)
class NumberGrid:
    """Cells of numbers, each within one bin, and p(cell | bin): all rows of a bin share it, whatever else is known.

    Frequent values are cells of their own, and whole numbers, or tenths, stay such.
    """

    cells: NumberCells
    code: Array  # (G,): the bin of each cell, from 0 on, ascending
    share: Array  # (G,): p(cell | bin)
    unit: float = 0.0  # of which all numbers are multiples, also where cells have no step; 0 if there is none

    @classmethod
    def of(cls, values: Array, weight: Array, cuts: tuple[float, ...]) -> NumberGrid:
        """Return the grid of some numbers with the cut points of bins."""
        if values.min() == values.max():
            return cls(NumberCells(values[:1], values[:1]), np.zeros(1, np.int64), np.ones(1))
        ends = np.concatenate([np.asarray(cuts, np.float64), tail_cuts(values, weight, _TAIL, _FEWEST_IN_TAIL)])
        cells = _split(_with_greatest_inside(cells_of(values, weight), float(values.max())), np.unique(ends))
        code = np.searchsorted(cuts, cells.centre, side="right")
        if not _is_sound(cells, code, len(cuts)):  # so far from zero that floats are hardly finer than bins
            cells = NumberCells(np.array([values.min(), *cuts]), np.array([*cuts, values.max()]))
            code = np.arange(len(cells))
        unit = cells.step or step_of(values, np.inf) or float((values == np.rint(values)).all())
        counts = np.bincount(cells.nearest(values), weight, len(cells))
        return cls(cells, code, np.zeros(len(cells)), unit).spread_by(counts)

    def spread_by(self, counts: Array) -> NumberGrid:
        """Return the grid in which the cells of each bin share it by the counts of rows, and a little by their width.

        In the outermost bins, whose widest cells hold the fewest rows, width counts the least. Cells beyond all rows
        get a tenth of a row at each end, each half as much as the one before it: some new rows are beyond all others,
        and means and standard deviations hardly depend on it.
        """
        cells, code, place = self.cells, self.code, np.arange(len(self.code))
        seen = np.flatnonzero(counts > 0)
        width = np.where((cells.step > 0) | (cells.width > 0), np.exp(cells.log_size), 0.0)
        width = np.where(np.bincount(code, width)[code] > 0, width, 1.0)
        away = np.maximum(seen[0] - place, place - seen[-1]) if len(seen) else np.zeros_like(place)
        width[away > 0] = 0.0
        pseudo = _PSEUDO * np.maximum(np.bincount(code, counts > 0), 1.0)
        pseudo[[0, -1]] = _IN_OUTER
        spread = counts + (pseudo / np.maximum(np.bincount(code, width), np.finfo(np.float64).tiny))[code] * width
        spread = np.where(away > 0, _BEYOND * _FALL ** np.maximum(away, 0), spread)
        return replace(self, share=spread / np.bincount(code, spread)[code])

    def check_against(self, n_bins: int) -> None:
        """Raise ValueError unless each bin has cells, whose shares sum to 1."""
        self.cells.check()
        check_places("the bins of cells", self.code, (len(self.cells),), 0, n_bins)
        check_numbers("the shares of cells", self.share, (len(self.cells),), 0.0, 1.0 + 1e-9)
        require(np.allclose(np.bincount(self.code, self.share, n_bins), 1.0), "the cells of a bin do not sum to 1")
        require(0 <= self.unit < np.inf, "the unit of numbers is negative or not finite")

    @cached_property
    def log_density(self) -> Array:
        """Log p(x | bin) of the numbers of each cell, (G,); of points with a step and of atoms their probability."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.share) - self.cells.log_size)

    def log_within(self, values: Array) -> Array:
        """Return log p(x | its bin) of numbers, (n,); 0 of NaN. A number beyond all cells is as rare as the rarest."""
        place = self.cells.nearest(values)
        known = np.isfinite(self.log_density)
        least = self.log_density[known].min()
        half = self.cells.step / 2.0
        is_beyond = (values < self.cells.low[0] - half) | (values > self.cells.high[-1] + half)
        found = np.where(is_beyond, least, np.maximum(self.log_density[np.maximum(place, 0)], least))
        return np.asarray(np.where(place < 0, 0.0, found))

    def probability(self, of_bins: Array) -> Array:
        """Return the probability of each cell, (n, G), by that of each bin, (n, K)."""
        return np.asarray(of_bins[:, self.code] * self.share)

    def between(self, low: float, high: float) -> Array:
        """Return the share of each cell that is between two numbers, (G,)."""
        return self.cells.share_between(low, high)

    def of_intervals(self, intervals: Sequence[tuple[float, float]]) -> Array:
        """Return p(number is in the cell and the interval | bin), (I, G), of intervals that do not overlap.

        If they are single continuous numbers, which have no probability, their densities, of which the greatest is 1.
        """
        found = np.stack([self.share * self.between(*one) for one in intervals])
        if found.any() or self.cells.step:
            return np.asarray(found)
        which = [i for i, (low, high) in enumerate(intervals) if low == high]
        if which:
            place = self.cells.nearest([intervals[i][0] for i in which])
            log_density = self.log_density[place]
            found[which, place] = np.exp(log_density - np.maximum(log_density.max(), _LEAST))
        return np.asarray(found)

    def of_findings(self, intervals: Sequence[tuple[float, float]]) -> Array:
        """Return p(number is in one of the intervals | bin), (K,); of single continuous numbers, their densities."""
        return np.asarray(np.bincount(self.code, self.of_intervals(intervals).sum(axis=0)))

    def draw(self, code: Array, rng: np.random.Generator, intervals: Sequence[tuple[float, float]]) -> Array:
        """Draw a number of each bin, (n,), that is in one of some intervals."""
        weight = self.of_intervals(intervals).ravel()
        of_bins = np.where(np.tile(self.code, len(intervals)) == np.arange(self.code[-1] + 1)[:, np.newaxis], weight, 0)
        reached = np.cumsum(of_bins, axis=1)
        drawn = np.empty(len(code))
        ends = np.array(intervals, np.float64)
        for one in np.unique(code).tolist():  # bins are few, and intervals may be many
            rows = np.flatnonzero(code == one)
            found = np.searchsorted(reached[one], rng.random(len(rows)) * reached[one, -1], side="right")
            i, place = np.divmod(found, len(self.cells))
            low, high = ends[i, 0], ends[i, 1]
            first = self.cells.share_below(low, place, strictly=True)
            inside = np.clip(self.cells.share_below(high, place) - first, 0.0, 1.0)
            numbers = self.cells.number_at(place, first + inside * (1.0 - rng.random(len(rows))))
            drawn[rows] = self.on_grid(numbers, low, high)
        return drawn

    def on_grid(self, numbers: Array, low: Array | float, high: Array | float) -> Array:
        """Return the multiples of the unit that are the nearest to some numbers, (n,), and between two others.

        Where no multiple is between these, the nearest number that is.
        """
        unit = self.unit or self.cells.step
        if unit:
            place, near = np.rint(numbers / unit), NEAR * unit
            place = np.where(_multiple(place, unit) < low - near, place + 1.0, place)
            numbers = _multiple(np.where(_multiple(place, unit) > high + near, place - 1.0, place), unit)
        return np.clip(numbers, low, high)


def _multiple(place: Array, unit: float) -> Array:
    """Return multiples of a unit without their rounding: 0.3, and not 3 · 0.1."""
    units = unit * 10.0 ** np.arange(_DECIMALS)
    decimals = int(np.argmax(np.abs(units - np.rint(units)) < NEAR))
    return np.asarray(np.round(place * unit, decimals))


def _with_greatest_inside(cells: NumberCells, greatest: float) -> NumberCells:
    """Return the cells, of which the one beyond the greatest number, where it begins, does not hold it."""
    is_beyond = (cells.low == greatest) & (cells.high > greatest) & (cells.step == 0)
    return replace(cells, low=np.where(is_beyond, np.nextafter(greatest, np.inf), cells.low))


def _is_sound(cells: NumberCells, code: Array, n_cuts: int) -> bool:
    """Return whether cells are valid, and each bin has one."""
    try:
        cells.check()
    except ValueError:
        return False
    return len(np.unique(code)) == n_cuts + 1


def tail_cuts(values: Array, weight: Array, n_cells: float, fewest: float) -> Array:
    """Return cuts within the outermost of cells of equal weight, each of which leaves half of the rows beyond it.

    The last one leaves `fewest` rows or more.
    """
    distinct, place = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(place, weight))[:-1]
    n, found = float(weight.sum()), []
    beyond = n / (2.0 * n_cells)
    while beyond >= fewest and len(distinct) > 1:
        for rows in (beyond, n - beyond):
            k = int(np.clip(np.searchsorted(below, rows), 0, len(distinct) - 2))
            found.append(distinct[k] / 2.0 + distinct[k + 1] / 2.0)
        beyond /= 2.0
    return np.array(found)


def _split(cells: NumberCells, cuts: Array) -> NumberCells:
    """Return the cells, of which those that a cut point is within are split there."""
    low, high, step = cells.low, cells.high, cells.step
    for cut in cuts.tolist():
        g = int(np.searchsorted(high, cut))
        if g == len(high) or not low[g] < cut <= high[g] or (not step and cut == high[g]):
            continue
        if step:
            first = float(cells.number_at(np.array([g]), np.zeros(1))[0])
            upper = first + np.ceil((cut - first) / step - 1e-9) * step
            ends = (upper - step, upper)
        else:
            ends = (cut, cut)
        near = step / 4.0  # sums of steps are rounded
        if ends[0] < low[g] - near or ends[1] > high[g] + near:
            continue
        low = np.insert(low, g + 1, min(ends[1], float(high[g])))
        high = np.insert(high, g, max(ends[0], float(low[g])))
        cells = NumberCells(low, high, step)
    return cells


def answer_of(column: Column, probability: Array, grid: NumberGrid | None) -> Answer:
    """Return the probabilities of the codes of a column as an answer: cells of numbers on a grid, or categories."""
    if grid is not None:
        return Answer(column.name, grid.cells, grid.probability(probability))
    levels = list(column.order) or slice(None)
    return Answer(column.name, Categories.of(column), probability[:, levels])
