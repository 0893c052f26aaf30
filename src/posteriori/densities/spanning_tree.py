"""Mutual information of pairs of columns, and the maximum-weight spanning forest over it (Chow–Liu)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori import kernels
from posteriori.statistics.counts import Counts, JointCounts
from posteriori.statistics.pairs import Pairs
from posteriori.support.typing import Array

Penalty = Literal["aic", "bic"] | None
_DIGITS = 11  # after the point, of information that is compared


@dataclass(frozen=True)
class Dependence:
    """Conditional mutual information of each pair of columns, per component.

    Attributes
    ----------
    information : ndarray (Z, d, d)
        Mutual information in nats per row, over the rows in which both cells are present; symmetric, 0 on the diagonal.
    weight : ndarray (Z, d, d)
        The weight of these rows.
    n_parameters : ndarray (d, d)
        The number of parameters of an edge in each component.
    """

    information: Array
    weight: Array
    n_parameters: Array

    def shared(self) -> Dependence:
        """Return I(x_i; x_j | z): the average over components, with the parameters of all of them."""
        total = self.weight.sum(axis=0, keepdims=True)
        share = np.divide(self.weight, total, out=np.zeros_like(self.weight), where=total > 0)
        information = (share * self.information).sum(axis=0, keepdims=True)
        return Dependence(information, total, len(self.weight) * self.n_parameters)

    def edge_weights(self, penalty: Penalty) -> Array:
        """Return the gain of each edge in nats per row minus its penalty, (Z, d, d); −∞ if it is not positive.

        Without a penalty it is −∞ only where no row has both cells. AIC charges one nat of log-likelihood per
        parameter, BIC ½·log n.
        """
        if penalty is None:
            return np.where(self.weight > 0, self.information, -np.inf)
        price = 1.0 if penalty == "aic" else 0.5 * np.log(np.maximum(self.weight, 1.0))
        cost = np.divide(price * self.n_parameters, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0)
        return np.where(self.information > cost, self.information - cost, -np.inf)


def dependence_of_categories(statistics: JointCounts) -> Dependence:
    """Return the dependence of categorical columns from the counts of all their pairs. O(Σ_ij Z·K_i·K_j)."""
    d, n_components = len(statistics.cardinalities), statistics.n_components
    information, weight = np.zeros((2, n_components, d, d))
    cardinalities = np.asarray(statistics.cardinalities, np.int64)
    if d > 1:
        i, j = np.array(statistics.scopes).T
        sums, gain = np.empty((2, len(i), n_components))
        kernels.pair_information(
            statistics.cells, statistics.offsets, cardinalities[i] + 1, cardinalities[j] + 1, n_components, sums, gain
        )
        gain = np.divide(gain, sums, out=np.zeros_like(gain), where=sums > 0)
        information[:, i, j] = information[:, j, i] = gain.T
        weight[:, i, j] = weight[:, j, i] = sums.T
    free = np.maximum(cardinalities - 1, 0)
    return Dependence(information, weight, np.outer(free, free))


def information_about_component(counts: Counts) -> Array:
    """Return I(x_j; z) in nats, (d,), over the rows in which x_j is present: Σ n_zx/n·log(n_zx·n / (n_z·n_x))."""
    information = np.zeros(len(counts.cardinalities))
    for j in range(len(information)):
        table = counts.column(j)
        n = table.sum()
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / (n if n > 0 else 1.0)
        occurring = table > 0  # 0·log 0 is 0
        information[j] = (table[occurring] * np.log(table[occurring] / expected[occurring])).sum() / (
            n if n > 0 else 1.0
        )
    return information


def contents_of(counts: Counts) -> list[tuple[float, ...]]:
    """Return what each column holds, whatever its place and the names of its categories: its counts, sorted."""
    tables = [counts.column(j) for j in range(len(counts.cardinalities))]
    return [tuple(np.sort(table.sum(axis=0)).tolist() + np.sort(table.ravel()).tolist()) for table in tables]


def as_compared(information: Array) -> Array:
    """Return information without its last digits, which depend on the order of a sum: equal values are equal again."""
    return np.asarray(np.round(information, _DIGITS))


def order_of_columns(relevance: Array, shared: Array, contents: Sequence[tuple[float, ...]]) -> Array:
    """Return the columns in an order that depends on what they hold, not on their places.

    First I(x_j; z), the largest first, then Σ_i and the largest of I(x_i; x_j | z), then the counts or moments of the
    column. Columns that agree in all of these keep their order.

    Parameters
    ----------
    relevance : ndarray (d,)
        I(x_j; z) in nats.
    shared : ndarray (d, d) or (Z, d, d)
        I(x_i; x_j | z) in nats, or that of each component.
    contents : sequence of tuple of float (d,)
    """
    relevance = as_compared(relevance)
    total = as_compared(np.atleast_3d(shared.T).sum(axis=(1, 2)))
    most = as_compared(np.atleast_3d(shared.T).max(axis=(1, 2), initial=0.0))
    keys = [(-relevance[j], -total[j], -most[j], contents[j]) for j in range(len(relevance))]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def spanning_forest(weight: Array, root: int) -> tuple[int, ...]:
    """Return the parent of each node in the maximum-weight spanning forest, −1 for roots, by Prim's algorithm.

    Parameters
    ----------
    weight : ndarray (d, d)
        Symmetric. Edges of negative weight, which penalties cause, are omitted.
    root : int
        The root of the first tree. Ties go to the earlier node, so that the result is deterministic.

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).
    """
    d = len(weight)
    parents = np.full(d, -1)
    best = np.full(d, -math.inf)
    outside = np.ones(d, np.bool_)
    node = root
    for _ in range(d - 1):
        outside[node] = False
        closer = outside & (weight[node] > best)
        best[closer], parents[closer] = weight[node, closer], node
        node = int(np.where(outside, best, -math.inf).argmax())
        if not best[node] >= 0.0:  # no edge to any node outside is worth its penalty: start a new tree
            node = int(outside.argmax())
    return tuple(np.where(best >= 0.0, parents, -1).tolist())


def mixed_forest(weight: Array, continuous: Array) -> tuple[int, ...]:
    """Return the parent of each column in the maximum-weight forest in which no category has a number as ancestor.

    The forest of the categories does not depend on the numbers, and a tree of numbers is attached to at most one
    category. So the two parts are solved separately, both as maximum-weight spanning forests. For the numbers, all
    categories are contracted into one node.

    References
    ----------
    Edwards, de Abreu & Labouriau (2010), on forests without forbidden paths.
    """
    numbers, categories = np.flatnonzero(continuous), np.flatnonzero(~continuous)
    parents = np.full(len(weight), -1)
    if len(categories):
        among = spanning_forest(weight[np.ix_(categories, categories)], 0)
        parents[categories] = [categories[p] if p >= 0 else -1 for p in among]
    if not len(numbers):
        return tuple(parents.tolist())
    among_numbers = weight[np.ix_(numbers, numbers)]
    if not len(categories):
        parents[numbers] = [numbers[p] if p >= 0 else -1 for p in spanning_forest(among_numbers, 0)]
        return tuple(parents.tolist())
    to_categories = weight[np.ix_(numbers, categories)]
    contracted = np.zeros((len(numbers) + 1, len(numbers) + 1))
    contracted[1:, 1:] = among_numbers
    contracted[0, 1:] = contracted[1:, 0] = to_categories.max(axis=1)
    for node, parent in enumerate(spanning_forest(contracted, 0)[1:]):
        if parent == 0:
            parents[numbers[node]] = categories[to_categories[node].argmax()]
        elif parent > 0:
            parents[numbers[node]] = numbers[parent - 1]
    return tuple(parents.tolist())


def dependence_of_pairs(statistics: Pairs) -> Dependence:
    r"""Return the dependence of all pairs of columns, categorical and continuous, from their statistics.

    For two numbers it is −½·log(1 − r²). For a number and a category it is ½·(log v − Σ_a n_a/n·log v_a), with v the
    variance of the number and v_a its variance given category a, to which one pseudo-row of variance v is added.
    """
    continuous = np.array(statistics.continuous, np.bool_)
    n_components, d = statistics.codes.n_components, len(continuous)
    numbers, categories = np.flatnonzero(continuous), np.flatnonzero(~continuous)
    among = dependence_of_categories(statistics.codes)
    if not len(numbers):
        return among
    components = np.arange(n_components)
    information, weight = np.zeros((2, n_components, d, d))
    n_parameters = np.zeros((d, d))
    for whole, part in ((information, among.information), (weight, among.weight)):
        whole[np.ix_(components, categories, categories)] = part
    n_parameters[np.ix_(categories, categories)] = among.n_parameters

    both = statistics.together
    spread = both.scatter * both.scatter.swapaxes(1, 2)
    with np.errstate(over="ignore"):  # at most 1 by Cauchy and Schwarz, except in statistics of a crafted file
        correlation = np.divide(both.cross**2, spread, out=np.zeros_like(spread), where=spread > 0)
    # The bound keeps the information of perfectly correlated columns finite, so that edges can still be compared.
    gain = -0.5 * np.log1p(-np.minimum(correlation, 1.0 - 1e-15))
    gain[:, range(len(numbers)), range(len(numbers))] = 0.0
    information[np.ix_(components, numbers, numbers)] = gain
    weight[np.ix_(components, numbers, numbers)] = both.weight
    n_parameters[np.ix_(numbers, numbers)] = 1.0

    for position, category in enumerate(categories):
        gain, total = _information_across(statistics, position)
        information[:, category, numbers] = information[:, numbers, category] = gain
        weight[:, category, numbers] = weight[:, numbers, category] = total
        k = statistics.codes.cardinalities[position]
        n_parameters[category, numbers] = n_parameters[numbers, category] = 2 * max(k - 1, 0)
    return Dependence(information, weight, n_parameters)


def _information_across(statistics: Pairs, position: int) -> tuple[Array, Array]:
    """Return the mutual information of each number with a category and the weight of their rows, (Z, numbers)."""
    across, n_components = statistics.across[position], statistics.codes.n_components
    shape = (n_components, statistics.codes.cardinalities[position] + 1, -1)
    weight = across.weight.reshape(shape)[:, 1:]
    scatter = across.scatter.reshape(shape)[:, 1:]
    centre = statistics.numbers.pooled().mean
    mean = (across.mean - centre).reshape(shape)[:, 1:]
    total = weight.sum(axis=1)
    safe = np.where(total > 0, total, 1.0)
    overall = (weight * mean).sum(axis=1) / safe
    variance = (scatter + weight * (mean - overall[:, np.newaxis]) ** 2).sum(axis=1) / safe
    conditional = (scatter + variance[:, np.newaxis]) / (weight + 1.0)  # one pseudo-row
    ratio = np.divide(
        conditional, variance[:, np.newaxis], out=np.ones_like(conditional), where=variance[:, np.newaxis] > 0
    )
    gain = -0.5 * (weight * np.log(ratio)).sum(axis=1) / safe
    return np.maximum(gain, 0.0), total
