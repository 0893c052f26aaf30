"""Cut points of one column: quantiles, or minimum description length given the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori import kernels
from posteriori.typing import Array

_LARGEST_TABLE = 4  # largest size of the table of k·log k, in entries per row


@dataclass(frozen=True)
class SortedCells:
    """The cells of a column that are not missing, sorted once for the cut points of all folds.

    Attributes
    ----------
    rows : ndarray (n,)
        The row of each cell, sorted by value, then by class, then by row.
    pair : ndarray (n,)
        The index of the distinct pair of value and class of each cell.
    value, component : ndarray (m,)
        The value and the class of each distinct pair, in the same order. The class is −1 if it is unknown.
    """

    rows: Array
    pair: Array
    value: Array
    component: Array

    @classmethod
    def of(cls, values: Array, component: Array) -> SortedCells:
        """Sort the cells of a column, NaN where missing, given the class of each row. Cost: O(n·log n)."""
        rows = np.flatnonzero(~np.isnan(values))
        rows = rows[np.lexsort((component[rows], values[rows]))]
        ordered, classes = values[rows].astype(np.float64), component[rows]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]) | (classes[1:] != classes[:-1])
        return cls(rows, np.cumsum(new) - 1, ordered[new], classes[new])

    def cuts(self, bins: int | Literal["mdlp"], weight: Array) -> Array:
        """Return the cut points: quantiles for a number of bins, or those of minimum description length.

        Rows of weight 0 change nothing: the cut points are, to the last bit, those of a table without these rows.
        Every distinct value is a candidate.

        Parameters
        ----------
        bins : int or "mdlp"
        weight : ndarray
            The weight of each row of the column, ≥ 0.
        """
        weight = np.bincount(self.pair, weight[self.rows], len(self.value))
        if bins != "mdlp":
            return quantile_cuts(self.value, weight, bins)
        kept = (weight > 0) & (self.component >= 0)
        value, component = self.value[kept], self.component[kept]
        behind = mdlp_cuts(value, component, weight[kept], int(component.max(initial=-1)) + 1)
        return midpoints(value[behind], value[behind + 1])


def quantile_cuts(values: Array, weight: Array, bins: int) -> Array:
    """Return at most bins − 1 cut points that divide numbers into bins of about equal weight.

    A cut lies midway between two neighbouring distinct values: the pair that divides the weight closest to the
    quantile. Equal values stay in one bin, and equal cuts are merged.

    Parameters
    ----------
    values : ndarray (n,)
        NaN if missing.
    weight : ndarray (n,)
        The weight of each number.
    bins : int

    Returns
    -------
    ndarray
        Strictly increasing.
    """
    counted = ~np.isnan(values) & (weight > 0)
    distinct, position = np.unique(values[counted].astype(np.float64), return_inverse=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= bins:
        return midpoints(distinct[:-1], distinct[1:])
    below = np.cumsum(np.bincount(position, weight[counted]))
    target = below[-1] * np.arange(1, bins) / bins
    boundary = below[:-1]
    right = np.clip(np.searchsorted(boundary, target), 1, len(boundary) - 1)
    nearer_left = target - boundary[right - 1] <= boundary[right] - target
    chosen = np.unique(right - nearer_left)
    return midpoints(distinct[chosen], distinct[chosen + 1])


def midpoints(low: Array, high: Array) -> Array:
    """Return the midpoints of pairs low < high. Rounding keeps them in (low, high]."""
    middle = low / 2.0 + high / 2.0  # low + high could overflow
    return np.where(middle > low, np.minimum(middle, high), high)


def mdlp_of_counts(counts: Array) -> Array:
    """Return the indices of the bins after which minimum description length cuts.

    Parameters
    ----------
    counts : ndarray (Z, K)
        The weight of each class in each bin.

    Returns
    -------
    ndarray
        Ascending, in 0 … K − 2.
    """
    position, component = np.nonzero(counts.T)
    return position[mdlp_cuts(position, component, counts.T[position, component], len(counts))]


def mdlp_cuts(values: Array, component: Array, weight: Array, n_components: int) -> Array:
    r"""Return the indices of the rows after which minimum description length cuts.

    An interval S of N rows and k classes is divided into S₁, S₂ where the class entropy is smallest, if

    .. math:: H(S) - \tfrac{N_1}{N} H(S_1) - \tfrac{N_2}{N} H(S_2) > \frac{\log_2 (N - 1)}{N}
              + \frac{\log_2 (3^k - 2) - k H(S) + k_1 H(S_1) + k_2 H(S_2)}{N},

    H in bits. Then the parts are divided by the same rule. Of several cuts of equal entropy the first is taken.

    Parameters
    ----------
    values : ndarray (n,)
        Ascending, without missing ones.
    component : ndarray (n,)
        The class of each row.
    weight : ndarray (n,)
        A row of weight w counts as w rows. An interval with a total weight below 2 is not divided.
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
        last = np.append(values[1:] != values[:-1], True)  # the last row of each distinct value: cuts lie behind these
        total = float(weight.sum())
        whole = total <= _LARGEST_TABLE * len(values) and bool((weight == np.floor(weight)).all())
        # Entropies of whole counts need only k·log k for k up to N: look it up in a table, unless it is too large.
        counts = np.arange(total + 1.0) if whole else np.empty(0)
        logarithms = counts * np.log(np.maximum(counts, 1.0))
        kernels.mdlp(component.astype(np.int32, copy=False), weight, last, n_components, logarithms, cut)
    return np.flatnonzero(cut)
