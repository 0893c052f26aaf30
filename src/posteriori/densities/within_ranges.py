"""Samples within the ranges of columns: a density truncated to a box, with integer columns rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from posteriori.densities.capabilities import ChainedDensity, implements
from posteriori.statistics.sums import ColumnRanges
from posteriori.support.typing import Array
from posteriori.tables.schema import Schema

_MOST_ROUNDS = 50  # of rejection sampling; after these the acceptance rate is too low to continue


@dataclass(frozen=True)
class Box:
    """The cells that a block may draw: numbers, or codes of bins, in [lowest, highest], integers where `whole`."""

    # lowest, highest, whole (d,): −inf and inf mean no bound. The bounds of an integer column are integers.
    lowest: Array
    highest: Array
    whole: Array

    @property
    def is_all(self) -> bool:
        """Whether every cell is allowed, so that nothing needs rounding or rejection."""
        return bool(np.isneginf(self.lowest).all() and np.isposinf(self.highest).all() and not self.whole.any())

    @property
    def edges(self) -> tuple[Array, Array]:
        """The lower and upper ends of the interval whose numbers round into the box, (d,) and (d,)."""
        margin = np.where(self.whole, 0.5, 0.0)
        return self.lowest - margin, self.highest + margin

    def rounded(self, drawn: Array) -> Array:
        """Return drawn numbers (n, d) with integer columns rounded."""
        return np.where(self.whole, np.rint(drawn), drawn)

    def out_of_support(self, drawn: Array) -> Array:
        """Return which rounded cells are outside the box, (n, d) booleans; NaN is inside."""
        return (drawn < self.lowest) | (drawn > self.highest)


def box_of(schema: Schema, columns: Sequence[int], ranges: ColumnRanges, coded: bool) -> Box:
    """Return the box of the ranges of some columns, by their positions.

    A column without any number has no bound. If `coded`, the cells of binned columns are codes, bounded to the bins
    that intersect the range.
    """
    selected = ranges.take(columns)
    known = selected.has_numbers
    lowest, highest = np.where(known, selected.lowest, -np.inf), np.where(known, selected.highest, np.inf)
    whole = selected.whole & known
    for position, j in enumerate(columns):
        cuts = schema.columns[j].cuts
        if coded and cuts is not None:
            ends = np.array([lowest[position], highest[position]])
            lowest[position], highest[position] = np.searchsorted(cuts, ends, side="right") + 1
            whole[position] = False
    return Box(lowest, highest, whole)


@runtime_checkable
class TruncatedDensity(Protocol):
    """A density that can draw within a box without rejection.

    If its columns depend on each other, each is drawn from its truncated conditional given the columns before it.
    """

    def sample_within(self, parameters: Any, component: Array, rng: np.random.Generator, box: Box) -> Array:
        """Draw one row per entry of component (n,), or per row of codes if the density is shared: (n, d).

        Numbers lie within the edges of the box and are not necessarily rounded.
        """


def draw_within(density: Any, parameters: Any, component: Array, rng: np.random.Generator, box: Box) -> Array:
    """Draw a row of a block for each component, from its density truncated to a box: (n, d).

    component is (n,), or for a density that all components share the codes (n, d) that the other block drew.

    A number of an integer column is drawn between lowest − 1/2 and highest + 1/2 and rounded, so that the bounds get
    no extra probability. Rejection sampling draws exactly from the truncated density: cell by cell if columns are
    independent given the component, row by row if they depend on each other. After 50 rejections a row is drawn column
    by column from truncated conditionals (Geweke 1991) if the density supports it, and after that cell by cell.

    References
    ----------
    Geweke, Efficient simulation from the multivariate normal and Student-t distributions subject to linear constraints,
    Computing Science and Statistics 23 (1991).
    """

    def draw(rows: Array) -> Array:
        return box.rounded(density.sample(parameters, component[rows], rng))

    if density.shared and isinstance(density, TruncatedDensity):
        return box.rounded(density.sample_within(parameters, component, rng, box))
    drawn = draw(np.arange(len(component)))
    if box.is_all:
        return drawn
    if implements(density, ChainedDensity):  # dependent columns: a row is accepted or rejected as a whole
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
    # The component has hardly any mass in the box: 50 draws missed it.
    return np.clip(drawn, box.lowest, box.highest)


def truncated_normal(mean: Array, sd: Array, low: Any, high: Any, rng: np.random.Generator) -> Array:
    """Draw from N(mean, sd²) truncated to [low, high], by inversion of its distribution function."""
    from scipy.special import ndtr, ndtri  # imported here, because few predictions need it

    with np.errstate(invalid="ignore"):
        a, b = (low - mean) / sd, (high - mean) / sd
    upper = a > 0.0  # mirror the upper tail: near 1 the distribution function loses digits
    a, b = np.where(upper, -b, a), np.where(upper, -a, b)
    below, up_to = ndtr(a), ndtr(b)
    z = np.clip(ndtri(below + rng.random(len(mean)) * (up_to - below)), a, b)
    z = np.where(up_to > 0.0, z, b)  # so far in the tail that all mass lies at the nearer edge
    return np.asarray(np.clip(mean + sd * np.where(upper, -z, z), low, high))
