"""Scales of a numeric axis: linear, or inverse hyperbolic sine for heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEAVY = 8.0  # times the usual distance from 0
_FEWEST = 20  # cells, to judge the tails
_NARROWEST = 1e-200  # of the largest number, so that quotients stay finite
_WIDEST_OF_WHOLE = 1e6
_LARGEST = 1e308  # a margin beyond it would be infinite
_LARGEST_SINH = 710.0  # sinh of more overflows
_LARGEST_HALF = 1e15  # halves between larger whole numbers are not exact


@dataclass(frozen=True)
class Scale:
    """Axis on which a number x is at u(x): x itself, or arsinh(x / w), linear near 0 and logarithmic beyond w.

    Attributes
    ----------
    width : float or None
        w, in data units; None for a linear axis.
    """

    width: float | None = None

    @classmethod
    def of(cls, cells: Array) -> Scale:
        """Choose the scale for the cells of a column, without missing ones.

        It is linear unless the greatest absolute value is more than 8 times the sum of the interquartile range and
        the absolute median, or, where more than three quarters of the cells are 0, 8 times a small value other than
        0 (their 10 % quantile).
        """
        size = np.abs(cells)
        nonzero = size[size > 0]
        if len(cells) < _FEWEST or len(np.unique(nonzero)) < _FEWEST:
            return cls()
        low, middle, high = np.quantile(cells, [0.25, 0.5, 0.75])
        small = float(np.quantile(nonzero, 0.1))
        usual = float(high - low + abs(middle)) or small
        small = max(small, float(size.max()) * _NARROWEST)
        return cls(small) if size.max() > _HEAVY * usual else cls()

    def position(self, x: Array) -> Array:
        """Return u(x)."""
        return x if self.width is None else np.arcsinh(x / self.width)

    def number(self, u: Array) -> Array:
        """Return the number x at a position u; beyond ±1e308 it is that."""
        if self.width is None:
            return u
        most = min(math.log(2.0) + math.log(_LARGEST) - math.log(self.width), _LARGEST_SINH)
        number: Array = self.width * np.sinh(np.clip(u, -most, most))
        return number

    def grid(self, low: float, high: float, points: int) -> Array:
        """Return numbers that are evenly spaced along the axis, from low to high."""
        ends = self.position(np.array([low, high]))
        return np.clip(self.number(np.linspace(float(ends[0]), float(ends[1]), points)), low, high)

    def per_unit_of_axis(self, x: Array, density: Array) -> Array:
        """Convert a density per data unit to one per unit of the axis, p(x)·dx/du, so that areas are probabilities."""
        return density if self.width is None else density * np.hypot(x, self.width)

    def apply(self, ax: Axes) -> None:
        """Give the horizontal axis this scale."""
        if self.width is None:
            return
        from matplotlib.ticker import AsinhLocator, FuncFormatter

        ax.set_xscale("asinh", linear_width=self.width)
        ax.xaxis.set_major_locator(AsinhLocator(self.width, numticks=8, base=10))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}".replace("-", "\N{MINUS SIGN}")))


def histogram_edges(position: Array, bins: int, whole: bool) -> Array:
    """Return the edges of about as many histogram bins; of whole numbers each bin holds equally many."""
    low, high = (float(position.min()), float(position.max())) if len(position) else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    resolution = 2.0 * bins * float(np.spacing(largest))
    if high - low < resolution:  # too close for so many edges
        margin = max(resolution, 0.5)
        return np.linspace(low - margin, high + margin, bins + 1)
    if not whole or high - low > _WIDEST_OF_WHOLE or largest > _LARGEST_HALF:
        return np.linspace(low, high, bins + 1)
    width = max(np.ceil((high - low) / bins), 1.0)
    return np.arange(np.floor(low) - 0.5, high + width, width)
