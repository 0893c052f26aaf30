"""Draws within the ranges of columns: a density truncated to a box, its whole-number columns rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr, ndtri

from posteriori.statistics.column_ranges import ColumnRanges
from posteriori.tables.schema import Schema
from posteriori.typing import Array

_MOST_ROUNDS = 50  # of drawing rows again; beyond it too few are accepted


@dataclass(frozen=True)
class Box:
    """The cells that a block may draw: numbers, or codes of bins, in [lowest, highest], whole where `whole` says so.

    Attributes
    ----------
    lowest, highest, whole : ndarray (d,)
        −inf and inf where there is no bound. The bounds of a whole column are whole.
    """

    lowest: Array
    highest: Array
    whole: Array

    @property
    def is_all(self) -> bool:
        """Whether every cell is allowed, so that nothing is to be rounded nor drawn again."""
        return bool(np.isneginf(self.lowest).all() and np.isposinf(self.highest).all() and not self.whole.any())

    @property
    def edges(self) -> tuple[Array, Array]:
        """Return the interval of numbers that become a cell of the box when rounded, (d,) and (d,)."""
        margin = np.where(self.whole, 0.5, 0.0)
        return self.lowest - margin, self.highest + margin

    def rounded(self, drawn: Array) -> Array:
        """Return drawn numbers (n, d), those of whole columns rounded."""
        return np.where(self.whole, np.rint(drawn), drawn)

    def out_of_support(self, drawn: Array) -> Array:
        """Return which cells, rounded already, are not in the box, (n, d) booleans; NaN is."""
        return (drawn < self.lowest) | (drawn > self.highest)


def box_of(schema: Schema, columns: Sequence[int], ranges: ColumnRanges, coded: bool) -> Box:
    """Return the box of the ranges of some columns, by their positions.

    A column without any number has no bound. coded says that cells of binned columns are codes: those of the bins which
    the range meets.
    """
    some = ranges.take(columns)
    known = some.has_numbers
    lowest, highest = np.where(known, some.lowest, -np.inf), np.where(known, some.highest, np.inf)
    whole = some.whole & known
    for position, j in enumerate(columns):
        cuts = schema.columns[j].cuts
        if coded and cuts is not None:
            ends = np.array([lowest[position], highest[position]])
            lowest[position], highest[position] = np.searchsorted(cuts, ends, side="right") + 1
            whole[position] = False
    return Box(lowest, highest, whole)


@runtime_checkable
class TruncatedDensity(Protocol):
    """A density that can draw within a box without drawing again.

    Where its columns depend on each other it draws one after another, each truncated given those before it.
    """

    def sample_within(self, parameters: Any, component: Array, rng: np.random.Generator, box: Box) -> Array:
        """Draw a row for each component (n,), or for its codes where the density is shared: (n, d).

        Numbers lie within the edges of the box, and need not be rounded.
        """


def draw_within(density: Any, parameters: Any, component: Array, rng: np.random.Generator, box: Box) -> Array:
    """Draw a row of a block for each component, from its density truncated to a box: (n, d).

    component is (n,); of a density that all components share, the codes (n, d) of what the other block drew.

    A number of a whole column is drawn between lowest − 1/2 and highest + 1/2 and rounded, so that no bound is more
    likely than the density makes it; nothing is moved to a bound. Columns that are independent given the component
    are drawn again cell by cell, those that depend on each other row by row: both are exact draws from the truncated
    density (rejection sampling). Rows that were rejected 50 times are drawn column by column, each truncated given
    those before it (Geweke 1991), where the density can do so, and after that cell by cell.

    References
    ----------
    Geweke, Efficient simulation from the multivariate normal and Student-t distributions subject to linear constraints,
    Computing Science and Statistics 23 (1991).
    """

    def draw(rows: Array) -> Array:
        return box.rounded(density.sample(parameters, component[rows], rng))

    if isinstance(density, TruncatedDensity) and getattr(density, "shared", False):
        return box.rounded(density.sample_within(parameters, component, rng, box))
    drawn = draw(np.arange(len(component)))
    if box.is_all:
        return drawn
    if hasattr(density, "given"):  # its columns depend on each other: a row is accepted as a whole
        drawn = _redraw_rows(draw, drawn, box)
        left = np.flatnonzero(box.out_of_support(drawn).any(axis=1))
        if len(left) and isinstance(density, TruncatedDensity):
            drawn[left] = box.rounded(density.sample_within(parameters, component[left], rng, box))
    return _redraw_cells(draw, drawn, box)


def _redraw_rows(draw: Callable[[Array], Array], drawn: Array, box: Box) -> Array:
    for _ in range(_MOST_ROUNDS):
        rejected = np.flatnonzero(box.out_of_support(drawn).any(axis=1))
        if not len(rejected):
            break
        drawn[rejected] = draw(rejected)
    return drawn


def _redraw_cells(draw: Callable[[Array], Array], drawn: Array, box: Box) -> Array:
    for _ in range(_MOST_ROUNDS):
        out_of_support = box.out_of_support(drawn)
        rejected = np.flatnonzero(out_of_support.any(axis=1))
        if not len(rejected):
            return drawn
        drawn[rejected] = np.where(out_of_support[rejected], draw(rejected), drawn[rejected])
    # A component with hardly any mass in the box: 50 draws in a row missed it.
    return np.clip(drawn, box.lowest, box.highest)


def truncated_normal(mean: Array, sd: Array, low: Any, high: Any, rng: np.random.Generator) -> Array:
    """Draw from N(mean, sd²) truncated to [low, high], by the inverse of its distribution function."""
    with np.errstate(invalid="ignore"):
        a, b = (low - mean) / sd, (high - mean) / sd
    upper = a > 0.0  # the upper tail is turned over, where the distribution function keeps its digits
    a, b = np.where(upper, -b, a), np.where(upper, -a, b)
    below, up_to = ndtr(a), ndtr(b)
    z = np.clip(ndtri(below + rng.random(len(mean)) * (up_to - below)), a, b)
    z = np.where(up_to > 0.0, z, b)  # so far in the tail that all of its mass lies at the nearer edge
    return np.clip(mean + sd * np.where(upper, -z, z), low, high)
