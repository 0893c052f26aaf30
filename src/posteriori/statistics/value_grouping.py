"""Grouping of the categories of a column: by class distribution (MODL), or by frequency where there are no classes."""

from __future__ import annotations

import functools

import numpy as np

from posteriori import kernels
from posteriori.model_cost import MOST_GROUPS
from posteriori.support.typing import Array

_MOST_VALUES = 128  # groups that the greedy search starts from; its cost is quadratic in them
_EXACT_STIRLING = 4096  # number of categories above which S(n, k) is replaced by its leading term kⁿ / k!


def group_values(counts: Array, most: int = MOST_GROUPS) -> Array:
    """Return the group of each category, (K,), from 0; a category of weight 0 joins the group of most categories.

    With two components or more, the groups minimise the MODL cost, log B(K, G) + Σ_g [log Γ(n_g + C) − log Γ(C) −
    Σ_c log Γ(n_gc + 1)] (see `log_partitions`), along a greedy path: the merge that costs least is made until one group
    is left, and the best partition on the way is returned. A single component has no class distribution: then the most
    frequent categories are groups of their own, and the others are one group.

    Parameters
    ----------
    counts : ndarray (Z, K)
        The weight of each category in each component.
    most : int
        The largest number of groups.

    Notes
    -----
    Categories with equal class distributions are merged before the search. If more than 128 remain, the rarer half is
    merged in chunks of similar class distribution and of about equal weight. Cost: O(K·log K + 128²·Z).

    References
    ----------
    Boullé, A Bayes optimal approach for partitioning the values of categorical attributes, JMLR 6 (2005): the
    criterion is theorem 1, the search section 3.
    """
    observed = np.flatnonzero(counts.sum(axis=0) > 0)
    group = np.zeros(counts.shape[1], np.int64)
    if len(observed):
        seen = counts[:, observed]
        found = _by_class(seen, most) if len(counts) > 1 else _by_frequency(seen[0], most)
        group[:] = np.bincount(found).argmax()
        group[observed] = found
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


@functools.lru_cache(maxsize=256)
def log_partitions(n: int, most: int) -> Array:
    """Return log B(n, g), g = 1 … most: the numbers of partitions of n categories into at most g groups."""
    if n <= _EXACT_STIRLING:
        log_exactly = np.empty(most)
        kernels.log_stirling(n, log_exactly)
    else:
        g = np.arange(1, most + 1)
        log_exactly = n * np.log(g) - np.cumsum(np.log(g))
    return np.asarray(np.logaddexp.accumulate(log_exactly))


def _by_frequency(weight: Array, most: int) -> Array:
    """Return the group of each category: the most frequent ones alone, the rest together."""
    rank = np.empty(len(weight), np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(len(weight))
    return np.minimum(rank, most - 1)


def _by_class(counts: Array, most: int) -> Array:
    """Return the group of each category (Z, K) of positive weight by the greedy MODL search."""
    start = _similar(counts)
    n_start = int(start.max()) + 1
    sums = np.stack([np.bincount(start, row, n_start) for row in counts], axis=1)
    first, second = np.zeros((2, n_start - 1), np.int64)
    increase = np.zeros(n_start - 1)
    kernels.merge_values(sums, first, second, increase)
    # The cost after s merges, relative to none: n_start − s groups are left.
    log_b = log_partitions(counts.shape[1], n_start)[::-1]
    cost = np.concatenate([[0.0], np.cumsum(increase)]) + log_b
    cost[: max(n_start - most, 0)] = np.inf
    merged = np.arange(n_start)
    for a, b in zip(first[: int(cost.argmin())].tolist(), second.tolist(), strict=False):
        merged[merged == b] = a
    return np.unique(merged, return_inverse=True)[1][start]


def _similar(counts: Array) -> Array:
    """Return groups of categories (Z, K) to start from: at most about 128, of equal or similar class distribution."""
    # Rounding must not separate equal distributions, such as 1 of 3 and 2 of 6.
    group = _equal(np.round(counts / counts.sum(axis=0), 12))
    n_groups = int(group.max()) + 1
    if n_groups <= _MOST_VALUES:
        return group
    sums = np.stack([np.bincount(group, row, n_groups) for row in counts])
    weight = sums.sum(axis=0)
    kept = _MOST_VALUES // 2
    order = np.argsort(-weight, kind="stable")
    rare = order[kept:]
    majority = sums[:, rare].argmax(axis=0)
    by_share = np.lexsort((sums[majority, rare] / weight[rare], majority))
    rare, majority = rare[by_share], majority[by_share]
    before = np.cumsum(weight[rare]) - weight[rare]
    chunk = np.floor(before * (_MOST_VALUES - kept) / weight[rare].sum()).astype(np.int64)
    chunk = np.cumsum(np.diff(chunk + majority * _MOST_VALUES, prepend=-1) != 0)
    start = np.empty(n_groups, np.int64)
    start[order[:kept]] = np.arange(kept)
    start[rare] = kept - 1 + chunk
    return start[group]


def _equal(shares: Array) -> Array:
    """Return the number of each distinct column of an array (Z, K), (K,); the columns are numbered in their order.

    This is `numpy.unique` along axis 1, which sorts whole columns as bytes and takes 20 times as long.
    """
    order = np.lexsort(shares[::-1])
    ordered = shares[:, order]
    number = np.empty(len(order), np.int64)
    number[order] = np.concatenate([[0], np.cumsum((ordered[:, 1:] != ordered[:, :-1]).any(axis=0))])
    return number
