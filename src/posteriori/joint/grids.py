"""The numbers that the bins of a column stand for: cells within each bin, and how the rows are spread over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.model.predictive import NumberCells
from posteriori.regression.target_cells import cells_of
from posteriori.support.checks import check_numbers, check_places, require
from posteriori.support.typing import Array

_PSEUDO = 1.0  # rows for each cell of a bin, which are spread over its cells by their width

_BEYOND = 0.01  # of the width of a usual cell: that of the cells outside of all training rows, in this spreading


@dataclass(frozen=True)
class NumberGrid:
    """Cells of numbers, each within one bin, and p(cell | bin): all rows of a bin share it, whatever else is known.

    Frequent values are cells of their own, and whole numbers, or tenths, stay such.
    """

    cells: NumberCells
    code: Array  # (G,): the bin of each cell, from 0 on, ascending
    share: Array  # (G,): p(cell | bin)

    @classmethod
    def of(cls, values: Array, weight: Array, cuts: tuple[float, ...]) -> NumberGrid:
        """Return the grid of some numbers with the cut points of bins."""
        if values.min() == values.max():
            return cls(NumberCells(values[:1], values[:1]), np.zeros(1, np.int64), np.ones(1))
        cells = _split(cells_of(values, weight), np.asarray(cuts, np.float64))
        code = np.searchsorted(cuts, cells.centre, side="right")
        counts = np.bincount(cells.nearest(values), weight, len(cells))
        of_all = np.where((cells.step > 0) | (cells.width > 0), np.exp(cells.log_size), 0.0)
        seen = (cells.high >= values.min()) & (cells.low <= values.max())
        of_all[~seen] = _BEYOND * float(of_all[seen].mean())  # the tails are far wider
        of_all /= np.maximum(np.bincount(code, of_all, len(cuts) + 1)[code], np.finfo(np.float64).tiny)
        counts = counts + _PSEUDO * np.bincount(code)[code] * of_all
        return cls(cells, code, counts / np.bincount(code, counts, len(cuts) + 1)[code])

    def check_against(self, n_bins: int) -> None:
        """Raise ValueError unless each bin has cells, whose shares sum to 1."""
        self.cells.check()
        check_places("the bins of cells", self.code, (len(self.cells),), 0, n_bins)
        check_numbers("the shares of cells", self.share, (len(self.cells),), 0.0, 1.0 + 1e-9)
        require(np.allclose(np.bincount(self.code, self.share, n_bins), 1.0), "the cells of a bin do not sum to 1")

    @cached_property
    def log_density(self) -> Array:
        """Log p(x | bin) of the numbers of each cell, (G,); of points with a step and of atoms their probability."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.share) - self.cells.log_size)

    def log_within(self, values: Array) -> Array:
        """Return log p(x | its bin) of numbers, (n,); 0 of NaN."""
        place = self.cells.nearest(values)
        return np.asarray(np.where(place < 0, 0.0, self.log_density[np.maximum(place, 0)]))

    def probability(self, of_bins: Array) -> Array:
        """Return the probability of each cell, (n, G), by that of each bin, (n, K)."""
        return np.asarray(of_bins[:, self.code] * self.share)

    def between(self, low: float, high: float) -> Array:
        """Return the share of each cell that is between two numbers, (G,)."""
        every = np.arange(len(self.cells))
        upto = self.cells.share_below(np.full(len(every), high), every)
        before = self.cells.share_below(np.full(len(every), low), every, strictly=True)
        return np.asarray(np.clip(upto - before, 0.0, 1.0))

    def of_bins(self, of_cells: Array) -> Array:
        """Return the share of each bin, (K,), by that of each cell."""
        return np.asarray(np.bincount(self.code, self.share * of_cells))

    def draw(self, code: Array, rng: np.random.Generator, low: float, high: float) -> Array:
        """Draw a number of each bin, (n,), between two numbers."""
        inside = self.between(low, high)
        weight = np.where(self.code == np.arange(self.code[-1] + 1)[:, np.newaxis], self.share * inside, 0.0)
        reached = np.cumsum(weight, axis=1)[code]
        place = (rng.random(len(code))[:, np.newaxis] * reached[:, -1:] >= reached).sum(axis=1)
        first = self.cells.share_below(np.full(len(code), low), place, strictly=True) if low > -np.inf else 0.0
        return np.asarray(self.cells.number_at(place, first + inside[place] * (1.0 - rng.random(len(code)))))


def _split(cells: NumberCells, cuts: Array) -> NumberCells:
    """Return the cells, of which those that a cut point is within are split there."""
    low, high, step = cells.low, cells.high, cells.step
    for cut in cuts.tolist():
        g = int(np.searchsorted(high, cut))
        if g == len(high) or not low[g] < cut <= high[g]:
            continue
        if step:
            first = float(cells.number_at(np.array([g]), np.zeros(1))[0])
            upper = first + np.ceil((cut - first) / step - 1e-9) * step
            ends = (upper - step, upper)
        else:
            ends = (cut, cut)
        if ends[0] < low[g] or ends[1] > high[g]:
            continue
        low, high = np.insert(low, g + 1, ends[1]), np.insert(high, g, ends[0])
        cells = NumberCells(low, high, step)
    return cells
