"""Where to cut continuous columns: by quantiles, or by what tells the classes apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from posteriori import kernels
from posteriori.densities.binned import Binned, Bins
from posteriori.model import Block, reject_outside
from posteriori.sources import Source
from posteriori.statistics import Counts
from posteriori.statistics.row_sample import RowSample
from posteriori.tables import Assignment, Batch, Codes, Schema
from posteriori.typing import Array

_CANDIDATES = 1000  # bins of the grid from which cut points are chosen by class
_SAMPLED_ROWS = 50_000  # from which quantiles are taken, and fewer of very wide tables
_SAMPLED_CELLS = 1 << 23
_LARGEST_TABLE = 4  # numbers a row, of which k·log k is looked up rather than computed


@dataclass(frozen=True)
class Candidates:
    """A schema whose columns are cut where that needs no labels, and those that still have to choose.

    Attributes
    ----------
    schema : Schema
        The columns in `supervised` are cut into a fine grid.
    supervised : tuple of int
        Their positions.
    """

    schema: Schema
    supervised: tuple[int, ...]

    def count(self, batch: Batch) -> Counts:
        """Return the weight of each class in the grid, from a batch under the schema of the grid."""
        if batch.assignment is None:
            raise ValueError("the batch has no labels to choose cut points by")
        known = batch.labelled()
        return Counts.of(cast(Codes, known.take(self.supervised, "categorical")), cast(Assignment, known.assignment))

    def chosen(self, counts: Counts) -> Schema:
        """Return the schema with those cuts of the grid that minimum description length chooses."""
        cuts = {}
        for place, j in enumerate(self.supervised):
            grid = np.array(self.schema.columns[j].cuts)
            cuts[j] = grid[mdlp_of_counts(counts.column(place))].tolist()
        return self.schema.with_cuts(cuts)


@dataclass
class Grids:
    """The candidates of several models of the same rows: what they share is read once."""

    source: Source
    rows: dict[tuple[int, ...], RowSample] = field(default_factory=dict)
    found: dict[tuple[tuple[int, Bins], ...], Candidates] = field(default_factory=dict)
    counts: dict[tuple[int, ...], Counts] = field(default_factory=dict)

    def of(self, bins: Mapping[int, Bins]) -> Candidates:
        """Return what `find_candidates` would."""
        key = tuple(sorted(bins.items()))
        if key not in self.found:
            self.found[key] = find_candidates(self.source, bins, self._sampled)
        return self.found[key]

    def count(self, grid: Candidates, how: Callable[[Callable[[Batch], Counts]], Callable[[Batch], Counts]]) -> Counts:
        """Return the weights of the classes in a grid, one of those found, from one pass of `how(grid.count)`."""
        if grid.supervised not in self.counts:
            self.counts[grid.supervised] = self.source.with_schema(grid.schema).of_numbers().reduce(how(grid.count))
        return self.counts[grid.supervised]

    def _sampled(self, columns: tuple[int, ...]) -> RowSample:
        if columns not in self.rows:
            self.rows[columns] = self.source.of_numbers().reduce(_sample(columns)).rows()
        return self.rows[columns]


def bins_of(blocks: Sequence[Block]) -> dict[int, Bins]:
    """Return the bins that the densities of some blocks ask for, by the position of the column."""
    return {j: block.density.bins for block in blocks if isinstance(block.density, Binned) for j in block.columns}


def binned_schema(source: Source, bins: Mapping[int, Bins]) -> Schema:
    """Return the schema of a source in which some continuous columns are binned.

    Parameters
    ----------
    source : Source
        Labelled, where a column's bins are "mdlp".
    bins : mapping
        From the position of a column to a number of bins of equal weight, "mdlp", or cut points: see `Binned`.

    Returns
    -------
    Schema

    Notes
    -----
    Cost: no pass where cut points are given; one, which keeps at most 50,000 rows, for quantiles; a second one, O(n·d),
    for "mdlp". Quantiles are exact up to 50,000 rows (fewer with more than 160 columns), and those of a uniform sample
    beyond; "mdlp" counts all rows on a grid of at most 1000 of them (`MDLPDiscretizer` tries every value).
    """
    candidates = find_candidates(source, bins)
    if not candidates.supervised:
        return candidates.schema
    return candidates.chosen(source.with_schema(candidates.schema).of_numbers().reduce(candidates.count))


def find_candidates(
    source: Source, bins: Mapping[int, Bins], sampled_rows: Callable[[tuple[int, ...]], RowSample] | None = None
) -> Candidates:
    """Return the cut points that the columns have by themselves; the parameters are those of `binned_schema`.

    sampled_rows, where given, returns rows of some columns in place of a pass.
    """
    cuts: dict[int, Sequence[float]] = {j: wanted for j, wanted in bins.items() if isinstance(wanted, tuple)}
    sampled = sorted(set(bins) - set(cuts))
    if sampled:
        places = tuple(sampled)
        rows = source.of_numbers().reduce(_sample(places)).rows() if sampled_rows is None else sampled_rows(places)
        for place, j in enumerate(sampled):
            wanted = bins[j]
            most = wanted if isinstance(wanted, int) else _CANDIDATES
            cuts[j] = quantile_cuts(rows.values[:, place], rows.weight, most).tolist()
    supervised = tuple(j for j in sampled if bins[j] == "mdlp")
    return Candidates(source.schema.with_cuts(cuts), supervised)


def _sample(columns: tuple[int, ...]) -> Callable[[Batch], RowSample]:
    block = Block(Binned(), columns)
    size = min(_SAMPLED_ROWS, max(_SAMPLED_CELLS // len(columns), _CANDIDATES))

    def accumulate(batch: Batch) -> RowSample:
        reject_outside(block, batch)  # an infinite cell, between which and others no cut can lie
        return RowSample.of(batch, columns, size)

    return accumulate


def quantile_cuts(values: Array, weight: Array, bins: int) -> Array:
    """Return the cut points, at most bins − 1, that divide numbers into bins of about equal weight.

    A cut lies midway between two neighbouring distinct values: between those that divide the weight most nearly as
    wanted. Values that are repeated stay together, and cuts that fall on the same place are one.

    Parameters
    ----------
    values : ndarray (n,)
        NaN where missing.
    weight : ndarray (n,)
        The weight of each.
    bins : int

    Returns
    -------
    ndarray
        Strictly increasing.
    """
    counted = ~np.isnan(values) & (weight > 0)
    distinct, place = np.unique(values[counted].astype(np.float64), return_inverse=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= bins:
        return midpoints(distinct[:-1], distinct[1:])
    below = np.cumsum(np.bincount(place, weight[counted]))
    wanted = below[-1] * np.arange(1, bins) / bins
    boundary = below[:-1]
    right = np.clip(np.searchsorted(boundary, wanted), 1, len(boundary) - 1)
    nearer_left = wanted - boundary[right - 1] <= boundary[right] - wanted
    chosen = np.unique(right - nearer_left)
    return midpoints(distinct[chosen], distinct[chosen + 1])


def midpoints(low: Array, high: Array) -> Array:
    """Return the numbers midway between two, low < high: above the lower one, and not above the higher one."""
    middle = low / 2.0 + high / 2.0  # no sum that could overflow
    return np.where(middle > low, np.minimum(middle, high), high)


def mdlp_of_counts(counts: Array) -> Array:
    """Return the bins, of some in order, behind which minimum description length cuts.

    Parameters
    ----------
    counts : ndarray (Z, K)
        The weight of each class in each bin.

    Returns
    -------
    ndarray
        Ascending, in 0 … K − 2.
    """
    place, component = np.nonzero(counts.T)
    return place[mdlp_cuts(place, component, counts.T[place, component], len(counts))]


def mdlp_cuts(values: Array, component: Array, weight: Array, n_components: int) -> Array:
    r"""Return the rows, in order of their values, behind which minimum description length cuts.

    An interval S of N rows and k classes is divided into S₁, S₂ where the class entropy is least, if

    .. math:: H(S) - \tfrac{N_1}{N} H(S_1) - \tfrac{N_2}{N} H(S_2) > \frac{\log_2 (N - 1)}{N}
              + \frac{\log_2 (3^k - 2) - k H(S) + k_1 H(S_1) + k_2 H(S_2)}{N},

    H in bits, and then its parts are divided likewise. Of several places of the least entropy it is the first.

    Parameters
    ----------
    values : ndarray (n,)
        Ascending, none missing.
    component : ndarray (n,)
        The class of each row.
    weight : ndarray (n,)
        A row of weight w counts as w rows; an interval of less than two in all is not divided.
    n_components : int

    Returns
    -------
    ndarray
        Ascending, in 0 … n − 2.

    Notes
    -----
    Cost: O(n) for each level of the recursion.

    References
    ----------
    Fayyad & Irani, Multi-interval discretization of continuous-valued attributes for classification learning, IJCAI
    1993, section 3.
    """
    cut = np.zeros(len(values), np.bool_)
    if len(values) > 1:
        last = np.append(values[1:] != values[:-1], True)
        total = float(weight.sum())
        whole = total <= _LARGEST_TABLE * len(values) and bool((weight == np.floor(weight)).all())
        numbers = np.arange(total + 1.0) if whole else np.empty(0)
        logarithms = numbers * np.log(np.maximum(numbers, 1.0))
        kernels.mdlp(component.astype(np.int32, copy=False), weight, last, n_components, logarithms, cut)
    return np.flatnonzero(cut)
