"""Where to cut one column: by quantiles, or by minimum description length given the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori import kernels
from posteriori.typing import Array

_LARGEST_TABLE = 4  # numbers per row, of which k·log k is looked up rather than computed


@dataclass(frozen=True)
class SortedCells:
    """The present cells of a column, sorted once, so that the cut points of each fold take no further sort.

    Attributes
    ----------
    rows : ndarray (n,)
        The row of each cell, ordered by value, then by class, then as the rows are.
    pair : ndarray (n,)
        The number of each cell's pair of value and class.
    value, component : ndarray (m,)
        Of each pair, in that order; the class is −1 where it is unknown.
    """

    rows: Array
    pair: Array
    value: Array
    component: Array

    @classmethod
    def of(cls, values: Array, component: Array) -> SortedCells:
        """Return the cells of a column, NaN where missing, whose rows have these classes. O(n·log n)."""
        rows = np.flatnonzero(~np.isnan(values))
        rows = rows[np.lexsort((component[rows], values[rows]))]
        ordered, classes = values[rows].astype(np.float64), component[rows]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]) | (classes[1:] != classes[:-1])
        return cls(rows, np.cumsum(new) - 1, ordered[new], classes[new])

    def cuts(self, bins: int | Literal["mdlp"], weight: Array) -> Array:
        """Return the cut points of a number of bins of equal weight, or those of minimum description length.

        Rows of weight 0 leave no trace: the cut points are, to the last bit, those of a table without these rows.
        Every distinct value is tried.

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
    distinct, position = np.unique(values[counted].astype(np.float64), return_inverse=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= bins:
        return midpoints(distinct[:-1], distinct[1:])
    below = np.cumsum(np.bincount(position, weight[counted]))
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
    position, component = np.nonzero(counts.T)
    return position[mdlp_cuts(position, component, counts.T[position, component], len(counts))]


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
