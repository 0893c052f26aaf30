"""The answer of a regressor: for each row the density of a number, constant within each of a few cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from posteriori.model.number_cells import NumberCells
from posteriori.support.arrays import Arrays, taken
from posteriori.support.checks import generator, require
from posteriori.support.typing import Array

__all__ = ["NumberCells", "PredictiveDensity"]

_NEAR = 1e-6  # to 1: the sum of the probabilities of a row
_ROUNDING = 1e-13  # relative; sums of a few hundred probabilities are that precise
_BLOCK = 1 << 17  # numbers in an array of rows × cells, so that a few of them fit the cache
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class PredictiveDensity:
    r"""The density of a number given each row, constant within cells.

    .. math:: p(y \mid x) = \frac{p_g(x)}{|g|}, \quad y \in g

    with the probability of cell g, and as its size \|g\| the width of an interval, the number of points of a cell with
    a step, and 1 for an atom. All results are exact, and those of a row do not depend on the other rows. A row of NaN
    has NaN for each of them. Cost: of most methods O(n G).

    Parameters
    ----------
    cells : NumberCells
        The G cells, the same for each row.
    probability : ndarray (n, G)
        That of each cell given each row; each row sums to 1.
    name : str, default "y"
        The name of the target, for messages.

    Raises
    ------
    ValueError
        The probabilities are no table with a column per cell.

    References
    ----------
    Gneiting & Raftery 2007, *Strictly proper scoring rules, prediction, and estimation*, sections 4.1 and 4.2.

    Examples
    --------
    A number that is 0 with probability 1/4, and otherwise uniform from 0 to 2:

    >>> import numpy as np
    >>> cells = NumberCells(np.array([0.0, 0.0]), np.array([0.0, 2.0]))
    >>> density = PredictiveDensity(cells, np.array([[0.25, 0.75]]))
    >>> density.mean, density.cdf(1.0), density.interval(0.5)
    (array([0.75]), array([0.625]), array([[0.        , 1.33333333]]))
    >>> density.crps(1.0)
    array([0.25])
    """

    cells: NumberCells
    probability: Array
    name: str = "y"

    def __post_init__(self) -> None:
        shape = np.shape(self.probability)
        if len(shape) != 2 or shape[1] != len(self.cells):
            raise ValueError(
                f"the probabilities of {self.name!r} are of shape {shape}; give a row per answer and a column for each "
                f"of the {len(self.cells)} cells"
            )

    def check(self) -> None:
        """Raise ValueError unless the cells are valid, and each row is NaN or holds probabilities that sum to 1."""
        self.cells.check()
        for (p,) in self._blocks():
            p = p[~np.isnan(p).all(axis=1)]
            valid = bool((p >= 0).all()) and bool((np.abs(p.sum(axis=1) - 1) <= _NEAR).all())
            require(
                valid, f"a row of probabilities of {self.name!r} has a negative one or does not sum to 1; divide by it"
            )

    def __len__(self) -> int:
        return len(self.probability)

    def __getitem__(self, index: Any) -> PredictiveDensity:
        """Return the density of some rows: of one by its position, or by a slice, positions or a mask."""
        rows = self.probability[index]
        return replace(self, probability=rows[np.newaxis] if rows.ndim == 1 else rows)

    @property
    def mean(self) -> Array:
        """E[y | x] in units of y, (n,)."""
        return self._per_row(partial(mean_of, self.cells))

    @property
    def variance(self) -> Array:
        """Var[y | x] in squared units of y, (n,): that of the centres of the cells, and the mean within cells."""

        def of_block(p: Array) -> Array:
            deviation = _deviations(self.cells, p)
            squares = (deviation - (p * deviation).sum(axis=1, keepdims=True)) ** 2
            return np.asarray((p * (squares + self.cells.variance)).sum(axis=1))

        return self._per_row(of_block)

    @property
    def std(self) -> Array:
        """The standard deviation of y given x in units of y, (n,)."""
        return np.sqrt(self.variance)

    @property
    def median(self) -> Array:
        """The smallest y with P(Y ≤ y | x) ≥ 1/2, (n,)."""
        return self.quantile(0.5)

    @property
    def mode(self) -> Array:
        """The centre of the cell of the highest density, (n,).

        An atom has no density that could be compared with that of an interval: the heaviest atom is the mode where
        atoms hold half of the probability or more, and the densest interval is the mode elsewhere. With a step, it is
        the middle point of the cell whose points are the most probable; the lower one of two.
        """
        cells = self.cells
        atoms = (cells.width == 0) & (cells.step == 0)
        centre = cells.number_at(np.arange(len(cells)), np.full(len(cells), 0.5))

        def of_block(p: Array) -> Array:
            of_atoms = (p * atoms).sum(axis=1) >= 0.5 * p.sum(axis=1)
            kind = np.where(of_atoms[:, np.newaxis], atoms, ~atoms)
            with np.errstate(divide="ignore"):
                place = np.where(kind, np.log(p) - cells.log_size, -np.inf).argmax(axis=1)
            return np.where(np.isnan(p.sum(axis=1)), np.nan, centre[place])

        return self._per_row(of_block)

    def quantile(self, q: float | Sequence[float] | Array) -> Array:
        """Return the smallest y with P(Y ≤ y | x) ≥ q; for q = 0 the smallest possible one.

        Parameters
        ----------
        q : float or sequence of m floats
            Between 0 and 1.

        Returns
        -------
        ndarray (n,) or (n, m)
            In units of y; with a step, points of the cells.

        Raises
        ------
        ValueError
            A q is not between 0 and 1.
        """
        level = _numbers(q, "q")
        wrong = level[~((level >= 0) & (level <= 1))]
        if wrong.size or level.ndim > 1:
            what = str(wrong.flat[0]) if wrong.size else f"of shape {level.shape}"
            raise ValueError(f"q is {what}; give a number from 0 to 1, or a list of such, such as 0.5 for the median")
        levels = np.broadcast_to(level.reshape(1, -1), (len(self), level.size))
        found = self._per_row(partial(quantiles_of, self.cells), levels)
        return found[:, 0] if level.ndim == 0 else found

    def interval(self, coverage: float = 0.9) -> Array:
        """Return the central interval of y, (n, 2): its quantiles (1 − coverage)/2 and (1 + coverage)/2.

        Parameters
        ----------
        coverage : float, default 0.9
            The probability of the interval, between 0 and 1; of atoms and points it is at least that.

        Raises
        ------
        ValueError
            The coverage is not between 0 and 1.
        """
        level = _numbers(coverage, "coverage")
        if level.ndim or not 0 <= level <= 1:
            raise ValueError(f"coverage is {coverage}; give one number from 0 to 1, such as 0.9")
        return self.quantile([(1 - float(level)) / 2, (1 + float(level)) / 2])

    def cdf(self, y: Any) -> Array:
        """Return P(Y ≤ y | x), (n,).

        Parameters
        ----------
        y : float or array-like (n,)
            One number for all rows, or one per row.
        """

        def of_block(p: Array, y: Array) -> Array:
            place = self.cells.last_below(y)
            below, upper = (bound[np.arange(len(p)), place] for bound in _bounds(p))
            return np.asarray(below + (upper - below) * self.cells.share_below(y, place))

        return self._per_row(of_block, self._one_per_row(y, "y"))

    def probability_between(self, low: Any = -np.inf, high: Any = np.inf) -> Array:
        """Return P(low ≤ Y ≤ high | x), (n,): both ends are included; 0 where low is above high.

        Parameters
        ----------
        low, high : float or array-like (n,)
            One number for all rows, or one per row.
        """

        def of_block(p: Array, low: Array, high: Array) -> Array:
            everywhere = slice(None)
            below = self.cells.share_below(low[:, np.newaxis], everywhere, strictly=True)
            share = self.cells.share_below(high[:, np.newaxis], everywhere) - below
            total = p.sum(axis=1)
            return np.asarray((p * np.maximum(share, 0.0)).sum(axis=1) / total)

        return self._per_row(of_block, self._one_per_row(low, "low"), self._one_per_row(high, "high"))

    def log_prob(self, y: Any) -> Array:
        """Return log p(y | x) in nats, (n,): a log density within an interval, a log probability of atoms and points.

        It is −∞ where no cell holds y, and NaN where y is NaN.

        Parameters
        ----------
        y : float or array-like (n,)
            One number for all rows, or one per row.
        """

        def of_block(p: Array, y: Array) -> Array:
            place = self.cells.find(y)
            with np.errstate(divide="ignore"):
                log_density = np.log(p[np.arange(len(p)), place]) - self.cells.log_size[place]
            log_density[(place < 0) & ~np.isnan(log_density)] = -np.inf
            return np.where(np.isnan(y), np.nan, log_density)

        return self._per_row(of_block, self._one_per_row(y, "y"))

    def crps(self, y: Any) -> Array:
        r"""Return the continuous ranked probability score of y in units of y, (n,); less is better.

        .. math:: \mathrm{crps}(F, y) = \int (F(t) - 1[y \le t])^2 \, dt

        in closed form: the sum of the integrals over cells and gaps, none of which is negative. Of a density that is
        certain of one number, it is the distance to y.

        Parameters
        ----------
        y : float or array-like (n,)
            One number for all rows, or one per row; also outside of all cells. NaN gives NaN.
        """
        cells = self.cells
        inside = _crps_of_points if cells.step else _crps_of_intervals

        def of_block(p: Array, y: Array) -> Array:
            below, upper = _bounds(p)
            outside = np.maximum(cells.low[0] - y, 0.0) + np.maximum(y - cells.high[-1], 0.0)
            y = y[:, np.newaxis]
            to_gap, from_gap = (cells.high[:-1], cells.low[1:])
            split, level = np.clip(y, to_gap, from_gap), upper[:, :-1]
            in_gaps = (split - to_gap) * level**2 + (from_gap - split) * (1 - level) ** 2
            return np.asarray(inside(cells, below, upper, y).sum(axis=1) + in_gaps.sum(axis=1) + outside)

        return self._per_row(of_block, self._one_per_row(y, "y"))

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draw numbers from the density of each row, (n, size), in units of y.

        Parameters
        ----------
        size : int, default 1
            The number of draws per row.
        random_state : int, RandomState, Generator or None
            None: other numbers each time.

        Raises
        ------
        ValueError
            The size is not a whole number above 0.
        """
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        require(whole and size > 0, f"size is {size!r}; give the number of draws per row as a whole number above 0")
        return self._per_row(partial(quantiles_of, self.cells), generator(random_state).random((len(self), size)))

    def _one_per_row(self, y: Any, parameter: str) -> Array:
        """Return numbers that are one for all rows or one per row as (n,)."""
        y = _numbers(y, parameter)
        if y.ndim and y.shape != (len(self),):
            raise ValueError(
                f"{parameter} is of shape {y.shape}, and there are {len(self)} rows of {self.name!r}; give one number, "
                "or one per row"
            )
        return np.broadcast_to(y, (len(self),))

    def _per_row(self, of_block: Callable[..., Array], *arguments: Array) -> Array:
        """Return a result per row, from the function of a block of probabilities and of arguments that have n rows."""
        return np.concatenate([of_block(*block) for block in self._blocks(*arguments)])

    def _blocks(self, *arguments: Array) -> Iterator[tuple[Array, ...]]:
        """Yield the probabilities and arguments of a few rows at a time; no row at all is one block."""
        widest = max([len(self.cells), *(argument[:1].size for argument in arguments)])
        length = max(_BLOCK // widest, 1)
        for begin in range(0, max(len(self), 1), length):
            rows = slice(begin, begin + length)
            # in the order of rows, so that sums over a row add in the same order whatever is beside it
            p = np.ascontiguousarray(self.probability[rows], np.float64)
            yield p, *(argument[rows] for argument in arguments)


def _numbers(value: Any, parameter: str) -> Array:
    """Return numbers as float64; text and dates are none, even if NumPy would convert them."""
    values = np.asarray(value)
    try:
        require(values.dtype.kind in "biufO", "text or dates")
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        what = f"is {value!r}" if values.ndim == 0 else f"holds values of type {values.dtype}"
        raise ValueError(f"{parameter} {what}; give numbers") from None


# Functions of arrays, which NumPy runs and ndonnx records -----------------------------------------------------------


def mean_of(cells: NumberCells, p: Arrays) -> Arrays:
    """Return the mean of each row of probabilities, (b,)."""
    xp = p.__array_namespace__()
    return taken(cells.centre, xp.argmax(p, axis=1)) + xp.sum(p * _deviations(cells, p), axis=1)


def _deviations(cells: NumberCells, p: Arrays) -> Arrays:
    """Return the centre of each cell minus that of the most probable one of each row, (b, G).

    They are differences of numbers, so that an offset of all numbers takes no digits of them.
    """
    heaviest = p.__array_namespace__().argmax(p, axis=1)
    low, half = cells.low, cells.width / 2
    return low - taken(low, heaviest)[:, None] + (half - taken(half, heaviest)[:, None])


def quantiles_of(cells: NumberCells, p: Arrays, level: Arrays) -> Arrays:
    """Return the quantiles of each row of probabilities, (b, m), at levels (b, m)."""
    xp, (below, upper) = p.__array_namespace__(), _bounds(p)
    # A level counts as reached by a sum that is less by rounding only: else a quantile leaps over a gap or a point.
    reached = xp.maximum(level * (1 - _ROUNDING), xp.asarray(_TINY))
    place = _first_at_least(upper, reached)
    below, upper = (xp.take_along_axis(bound, place, axis=1) for bound in (below, upper))
    return cells.number_at(place, ((reached if cells.step else level) - below) / (upper - below))


def _bounds(p: Arrays) -> tuple[Arrays, Arrays]:
    """Return P(Y below cell g) and P(Y in cell g or below), both (b, G); the last one is exactly 1."""
    xp = p.__array_namespace__()
    upper = xp.cumulative_sum(p, axis=1)
    upper = upper / upper[:, -1:]
    return xp.concat([xp.zeros_like(upper[:, :1]), upper[:, :-1]], axis=1), upper


def _first_at_least(upper: Arrays, level: Arrays) -> Arrays:
    """Return where each row of ascending numbers, (b, G), first reaches each of its levels, (b, m), by halving."""
    xp = upper.__array_namespace__()
    first = xp.astype(xp.zeros_like(level), xp.int64)
    last = first + (upper.shape[1] - 1)
    for _ in range(upper.shape[1].bit_length()):
        middle = (first + last) // 2
        short = xp.take_along_axis(upper, middle, axis=1) < level
        first, last = xp.where(short, xp.minimum(middle + 1, last), first), xp.where(short, last, middle)
    return first


def _crps_of_intervals(cells: NumberCells, below: Array, upper: Array, y: Array) -> Array:
    """Return ∫ (F(t) − 1[y ≤ t])² dt over each interval, (b, G): F is linear up to y and from y on."""
    left = np.clip(y, cells.low, cells.high) - cells.low
    at_y = below + (upper - below) * cells.share_below(y, slice(None))
    right = cells.high - np.clip(y, cells.low, cells.high)
    return np.asarray(left * _mean_square(below, at_y) + right * _mean_square(1 - at_y, 1 - upper))


def _mean_square(a: Array, b: Array) -> Array:
    """Return the mean square of what goes from a to b on a line."""
    return np.asarray((a * a + a * b + b * b) / 3)


def _crps_of_points(cells: NumberCells, below: Array, upper: Array, y: Array) -> Array:
    """Return ∫ (F(t) − 1[y ≤ t])² dt from the first to the last point of each cell, (b, G).

    F is constant between points: i = 1, …, k − 1 steps of p / k above what is below the cell.
    """
    count = cells.count
    each, steps = (upper - below) / count, np.clip((y - cells.low) / cells.step, 0, count - 1)
    before = np.minimum(np.floor(steps), np.maximum(count - 2, 0))  # whole steps below the one that holds y
    part, level = steps - before, below + each * (before + 1)
    around = part * level**2 + np.where(count > 1, 1 - part, 0.0) * (1 - level) ** 2
    after = _sum_of_squares(1 - upper, each, np.maximum(count - 2 - before, 0))
    return np.asarray(cells.step * (_sum_of_squares(below, each, before) + around + after))


def _sum_of_squares(start: Array, step: Array, n: Array) -> Array:
    """Return (start + step)² + (start + 2 step)² + … of n terms."""
    return np.asarray(n * start**2 + n * (n + 1) * start * step + n * (n + 1) * (2 * n + 1) / 6 * step**2)
