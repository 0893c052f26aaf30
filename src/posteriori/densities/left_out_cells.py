"""The cells of conditional tables, each without one of its rows: what the pseudo-rows of back-off are learned from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import with_sums
from posteriori.densities.fixed_point import maximise
from posteriori.typing import Array


@dataclass(frozen=True)
class Family:
    """The counts of a column with its parents.

    Attributes
    ----------
    column : int
    counts : ndarray (Z, K_1 + 1, …, K + 1)
        Weights by the codes of the parents, the most important first, and of the column last; code 0 is missing.
    components : range
        Those that have this table. The table that all components share counts all.
    """

    column: int
    counts: Array
    components: range


@dataclass(frozen=True)
class LeftOutCells:
    r"""The non-empty cells of families, with the counts on their path of back-off without one of their rows.

    A row of weight w counts as w rows of weight 1, of which one is left out.

    Attributes
    ----------
    column, weight, root : ndarray (m,)
        The column, the weight, and p(x) of each cell.
    own, pooled : ndarray (m, 1 + T, 2)
        n_x and N for each number of parents, given the component and of all components; N is −1 where the parent is
        missing.
    n_columns : int
    """

    column: Array
    weight: Array
    root: Array
    own: Array
    pooled: Array
    n_columns: int

    @classmethod
    def of(cls, families: Iterable[Family], alpha: float, n_columns: int, n_parents: int) -> LeftOutCells:
        """Return the cells of some families.

        Parameters
        ----------
        families : iterable of Family
        alpha : float
            The pseudo-count per category of p(x).
        n_columns : int
            d.
        n_parents : int
            T, the most parents of a column.
        """
        parts = [_cells_of(family, alpha, n_parents) for family in families]
        nothing = np.empty(0), np.empty(0), *[np.empty((0, 1 + n_parents, 2))] * 2
        column = [np.full(len(weight), family, np.int64) for family, (weight, *_) in parts]
        weight, root, own, pooled = (
            np.concatenate([nothing[k], *(arrays[k] for _, arrays in parts)]) for k in range(4)
        )
        return cls(np.concatenate([np.empty(0, np.int64), *column]), weight, root, own, pooled, n_columns)

    def sweep(self, pseudo_rows: Array) -> tuple[float, Array, Array]:
        """Return the leave-one-out log-likelihood in nats, and the two sums of an EM step; see the kernel."""
        by_prior, exposure = np.zeros(pseudo_rows.shape), np.zeros(pseudo_rows.shape)
        log_likelihood = kernels.sweep_cells(
            self.column, self.weight, self.root, self.own, self.pooled, pseudo_rows, by_prior, exposure
        )
        return float(log_likelihood), by_prior, exposure

    def learned_pseudo_rows(self, mode: float) -> Array:
        """Return the pseudo-rows of the greatest leave-one-out likelihood, (d, 1 + T); see `maximise`."""
        return maximise(self.sweep, (self.n_columns, self.own.shape[1]), mode)


def _cells_of(family: Family, alpha: float, n_parents: int) -> tuple[int, tuple[Array, Array, Array, Array]]:
    """Return the column of a family; and weight, root, own and pooled counts of its cells."""
    first, last = family.components.start, family.components.stop
    summed = with_sums(family.counts[..., 1:])
    of_all = summed.sum(axis=0)
    z, *parents, x = np.nonzero(family.counts[first:last, ..., 1:])
    z += first
    weight = family.counts[(z, *parents, x + 1)]
    k, none = summed.shape[-1], (0,) * len(parents)
    left = np.minimum(weight, 1.0)
    of_value = of_all[none][x] - left
    shown = of_value > 0  # a category that no other row shows is a missing cell
    z, x, weight, left, of_value = (values[shown] for values in (z, x, weight, left, of_value))
    parents = [codes[shown] for codes in parents]
    root = (of_value + alpha) / (of_all[none].sum() - left + k * alpha)
    own, pooled = np.full((len(x), 1 + n_parents, 2), -1.0), np.full((len(x), 1 + n_parents, 2), -1.0)
    totals, total_of_all = summed.sum(axis=-1), of_all.sum(axis=-1)
    for t in range(1 + len(parents)):
        given = (*parents[:t], *(np.zeros_like(x),) * (len(parents) - t))
        met = parents[t - 1] > 0 if t else np.ones(len(x), np.bool_)
        for out, counts, sums, line in ((own, summed, totals, (z, *given)), (pooled, of_all, total_of_all, given)):
            out[met, t, 0] = np.maximum(counts[(*line, x)] - left, 0.0)[met]
            out[met, t, 1] = np.maximum(sums[line] - left, 0.0)[met]
    return family.column, (weight, root, own, pooled)
