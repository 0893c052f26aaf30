"""Cells of a range of numbers: intervals, atoms, and points that are a step apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.support.arrays import Arrays, taken
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array

NEAR = 1e-6  # of a step: a number that near to a point is this point


@dataclass(frozen=True)
class NumberCells:
    """Cells of a range of numbers, in each of which a density is constant.

    Without a step, a cell is an interval with both its ends, or an atom: one point that has a probability of its own.
    With a step, a cell is the points low, low + step, …, high, all equally probable. Between cells there may be gaps.

    Parameters
    ----------
    low, high : ndarray (G,)
        The ends of each cell in units of y, ascending: low[g] ≤ high[g] ≤ low[g + 1]; both are equal for an atom.
    step : float, default 0
        In units of y. 0: numbers are continuous. Above 0: numbers are that far apart; 1 for whole numbers.

    Examples
    --------
    An atom at 0, and two intervals with a gap between them:

    >>> import numpy as np
    >>> cells = NumberCells(np.array([0.0, 0.0, 5.0]), np.array([0.0, 2.0, 6.0]))
    >>> cells.find([0.0, 1.0, 3.0, 6.0])
    array([ 0,  1, -1,  2])
    >>> cells.nearest([-1.0, 3.0, 99.0])
    array([0, 1, 2])

    Whole numbers from 1 to 9 in two cells:

    >>> NumberCells(np.array([1.0, 4.0]), np.array([3.0, 9.0]), step=1.0).find([3.0, 3.5, 4.0])
    array([ 0, -1,  1])
    """

    low: Array
    high: Array
    step: float = 0.0

    def __len__(self) -> int:
        return len(self.low)

    def check(self) -> None:
        """Raise ValueError unless the ends are finite and ascend, and cells with a step hold whole steps."""
        require(self.low.ndim == 1 and len(self.low) > 0, "the cells of numbers have no low end; give one per cell")
        check_numbers("the array of the low ends of cells", self.low, self.low.shape)
        check_numbers("the array of the high ends of cells", self.high, self.low.shape)
        require(0 <= self.step < np.inf, f"the step of the cells is {self.step}; give 0, or a positive number")
        require(bool((self.low <= self.high).all()), "a cell of numbers ends below its low end; exchange its ends")
        if self.step:
            self._check_steps()
            return
        apart = (self.high[:-1] <= self.low[1:]) & (self.low[:-1] < self.high[1:])  # the latter: no atom twice
        require(bool(apart.all()), "two cells of numbers overlap or are not in ascending order; sort and separate them")

    def _check_steps(self) -> None:
        near = self.tolerance
        require(near < 0.25, f"a step of {self.step:g} is lost in the rounding of numbers this large; give no step")
        steps = (self.high - self.low) / self.step
        whole = bool((np.abs(steps - np.rint(steps)) <= near).all())
        require(
            whole, f"a cell of numbers does not hold a whole number of steps of {self.step:g}; move one of its ends"
        )
        apart = bool(((self.low[1:] - self.high[:-1]) / self.step >= 1 - near).all())
        require(apart, f"two cells of numbers are less than a step of {self.step:g} apart; join or separate them")

    @property
    def centre(self) -> Array:
        """The mean of each cell in units of y, (G,)."""
        return np.asarray(self.low + self.width / 2)

    def find(self, y: Any) -> Array:
        """Return the cell that holds each number, −1 where none does: of NaN, in a gap, and outside of all cells.

        An atom holds its point, also where an interval ends there. Of two intervals that touch, the upper one does.
        With a step, a number within a millionth of a step of a point, and within its rounding, is this point.

        Parameters
        ----------
        y : array-like (n,)

        Returns
        -------
        ndarray (n,) of int
        """
        y = np.asarray(y, np.float64)
        place = self.last_below(y)
        if self.step:
            steps = (y - self.low[place]) / self.step
            point = np.rint(steps)
            with np.errstate(invalid="ignore"):  # ∞ − ∞
                held = (np.abs(steps - point) <= self.tolerance) & (point >= 0) & (point < self.count[place])
        else:
            held = (self.low[place] <= y) & (y <= self.high[place])
            place = place - ((place > 0) & (self.high[place - 1] == y) & (self.width[place - 1] == 0))
        return np.where(held, place, -1)

    def nearest(self, y: Any) -> Array:
        """Return the same, but the nearest cell where none holds the number, the lower one of two; −1 for NaN."""
        y = np.asarray(y, np.float64)
        found, below = self.find(y), self.last_below(y)
        above = np.minimum(below + 1, len(self) - 1)
        nearest = np.where(self.low[above] - y < y - self.high[below], above, below)
        return np.where((found >= 0) | np.isnan(y), found, nearest)

    @property
    def width(self) -> Array:
        """The width of each cell in units of y, (G,); 0 of an atom and of one point."""
        return np.asarray(self.high - self.low)

    @property
    def count(self) -> Array:
        """The number of points of each cell, (G,); 1 without a step."""
        return np.rint(self.width / self.step) + 1 if self.step else np.ones(len(self))

    @property
    def tolerance(self) -> float:
        """How far a number may be from its point, in steps: also by the rounding of products such as 0.1 · 3."""
        largest = max(abs(float(self.low[0])), abs(float(self.high[-1])))
        return NEAR + 4 * float(np.finfo(np.float64).eps) * largest / self.step

    @property
    def variance(self) -> Array:
        """The variance within each cell, (G,): w²/12 of an interval, step² (k² − 1)/12 of k points."""
        if self.step:
            return np.asarray(self.step**2 * (self.count**2 - 1) / 12)
        return np.asarray(self.width**2 / 12)

    @property
    def log_size(self) -> Array:
        """The log of the width of each interval, or of its number of points; 0 for an atom, (G,)."""
        width = self.width
        return np.log(self.count if self.step else np.where(width > 0, width, 1.0))

    def last_below(self, y: Array) -> Array:
        """Return the last cell that begins at or below each number, 0 where none does."""
        begin = self.low - self.step / 2
        return np.maximum(np.searchsorted(begin, y, side="right") - 1, 0)

    def share_below(self, y: Array | float, place: Array | slice, strictly: bool = False) -> Array:
        """Return the share of cells that is at or below numbers, or strictly below them."""
        above = y - self.low[place]
        if self.step:
            steps, near, count = above / self.step, self.tolerance, self.count[place]
            points = np.ceil(steps - near) if strictly else np.floor(steps + near) + 1
            return np.asarray(np.clip(points, 0, count) / count)
        width = self.width[place]
        of_atom = np.where(np.isnan(above), above, above > 0 if strictly else above >= 0)
        return np.where(width > 0, np.clip(above, 0, width) / np.where(width > 0, width, 1.0), of_atom)

    def share_between(self, low: float, high: float) -> Array:
        """Return the share of each cell that is between two numbers, both included, (G,)."""
        upto, before = self.share_below(high, slice(None)), self.share_below(low, slice(None), strictly=True)
        return np.asarray(np.clip(upto - before, 0.0, 1.0))

    def number_at(self, place: Arrays, share: Arrays) -> Arrays:
        """Return the smallest number of which a share of its cell is at or below it."""
        xp, low = place.__array_namespace__(), taken(self.low, place)
        if self.step:
            count = taken(self.count, place)
            return self._decimals(low + xp.clip(xp.ceil(share * count) - 1.0, 0.0, count - 1.0) * self.step)
        return xp.minimum(low + xp.clip(share, 0.0, 1.0) * taken(self.width, place), taken(self.high, place))

    def _decimals(self, y: Arrays) -> Arrays:
        """Return points without their rounding where a step is a part of 1: 0.7, and not 0.4 + 3 · 0.1."""
        parts = float(np.rint(1 / self.step))
        if abs(parts * self.step - 1) > 1e-12:
            return y
        xp = y.__array_namespace__()
        exact = xp.round(y * parts) / parts
        return xp.where(xp.abs(exact - y) <= self.tolerance * self.step, exact, y)
