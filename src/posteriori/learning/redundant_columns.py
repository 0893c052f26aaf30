"""Groups of columns that carry the same information, from the dependence of pairs of columns in a sample of rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import connected_components

from posteriori.support.typing import Array
from posteriori.tables import Batch

_SAME_NUMBERS = 0.95  # |rank correlation| of two columns of numbers
_SAME_CODES = 0.8  # of other pairs: the mutual information as a share of the larger entropy
_BINS = 16  # of a column of numbers, beside categories
_ROWS_PER_VALUE = 10  # with fewer, a column of categories seems to depend on any other
_MOST_COLUMNS = 300  # compared with all others: those with the most information about the label
MOST_GROUPS = 8


def redundant_groups(batch: Batch, label: Array) -> list[tuple[int, ...]]:
    """Return the groups of columns, by their positions, that nearly determine each other, in the order of the columns.

    Two columns of numbers do if their rank correlation is at least 0.95 or at most −0.95, other pairs if their mutual
    information is at least 0.8 of the larger of their entropies. A group is connected by such pairs. Of more than 8
    groups, those with the most informative columns are returned.

    Parameters
    ----------
    batch : Batch
        Its columns of counts are in no group.
    label : ndarray (n,)
        The class index of each row. The mutual information with it chooses 300 columns of more, and the groups. Another
        column joins a group if it and the most informative column of the group nearly determine each other.
    """
    ranks, codes = _ranks(batch), _codes(batch)
    entropy = {j: _entropy(of_column) for j, of_column in codes.items()}
    about_label = {j: _information(codes[j], label, entropy[j], _entropy(label)) for j in codes if entropy[j] > 0}

    def are_same(j: int, k: int) -> bool:
        if j in ranks and k in ranks:
            return abs(float(ranks[j] @ ranks[k])) >= _SAME_NUMBERS
        less, more = sorted((entropy[j], entropy[k]))
        least = _SAME_CODES * more
        return less >= least and _information(codes[j], codes[k], entropy[j], entropy[k]) >= least

    by_information = sorted(about_label, key=lambda j: -about_label[j])
    columns, others = sorted(by_information[:_MOST_COLUMNS]), by_information[_MOST_COLUMNS:]
    same = np.zeros((len(batch.schema.columns),) * 2, np.bool_)
    numbers = [j for j in columns if j in ranks]
    if numbers:
        normed = np.array([ranks[j] for j in numbers])
        same[np.ix_(numbers, numbers)] = np.abs(normed @ normed.T) >= _SAME_NUMBERS
    for j, k in combinations(columns, 2):
        if not (j in ranks and k in ranks):
            same[j, k] = are_same(j, k)
    group = connected_components(same, directed=False)[1]
    found = [np.flatnonzero(group == one).tolist() for one in np.flatnonzero(np.bincount(group) > 1)]
    first = {max(of_group, key=lambda j: about_label[j]): of_group for of_group in found}
    kept = sorted(first, key=lambda j: -about_label[j])[:MOST_GROUPS]
    # Without the copies of its columns that are not compared with all, a group would seem to carry no information.
    for j in others:
        joined = next((k for k in kept if are_same(j, k)), None)
        if joined is not None:
            first[joined].append(j)
    return sorted(tuple(sorted(first[j])) for j in kept)


def average_ranks(values: Array) -> Array:
    """Return the ranks of numbers, (n,), from 1 on; equal ones share the mean of theirs. None is NaN.

    Examples
    --------
    >>> average_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(count) - (count - 1) / 2.0)[place]
    return ranks


def _ranks(batch: Batch) -> dict[int, Array]:
    """Return the ranks in each column of numbers, centred and of norm 1; missing cells and constant columns are 0."""
    found = {}
    for j, values in zip(batch.schema.of_kind("continuous"), batch.numbers.values.T, strict=True):
        known = ~np.isnan(values)
        rank = np.zeros(len(values))
        rank[known] = average_ranks(values[known])
        rank[known] -= rank[known].mean() if known.any() else 0.0
        found[j] = rank / max(float(np.linalg.norm(rank)), 1e-300)
    return found


def _codes(batch: Batch) -> dict[int, Array]:
    """Return the codes of columns of categories and of binned numbers, a missing cell as one more value."""
    schema, found = batch.schema, {}
    for j in schema.of_kind("categorical"):
        values, codes = np.unique(batch.codes.values[:, schema.coded.index(j)], return_inverse=True)
        if len(values) * _ROWS_PER_VALUE <= max(len(batch), 2 * _ROWS_PER_VALUE):
            found[j] = codes
    for j, values in zip(schema.of_kind("continuous"), batch.numbers.values.T, strict=True):
        known = values[~np.isnan(values)]
        cuts = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS)) if len(known) else known
        found[j] = np.searchsorted(cuts, values, side="right")
        found[j][np.isnan(values)] = len(cuts) + 1
    return found


def _entropy(codes: Array) -> float:
    """Return the entropy of codes in nats."""
    share = np.bincount(codes) / max(len(codes), 1)
    share = share[share > 0]
    return float(-(share @ np.log(share)))


def _information(one: Array, other: Array, *entropies: float) -> float:
    """Return the mutual information of two columns of codes in nats, from the entropies of both."""
    return sum(entropies) - _entropy(one * (int(other.max(initial=0)) + 1) + other)
