"""Which columns depend on which: mutual information of pairs, and the tree that holds most of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori import kernels
from posteriori.statistics.joint_counts import JointCounts
from posteriori.statistics.pairs import Pairs
from posteriori.typing import Array

Penalty = Literal["aic", "bic"] | None


@dataclass(frozen=True)
class Dependence:
    """How much each pair of columns depends on each other within the components.

    Attributes
    ----------
    information : ndarray (Z, d, d)
        Mutual information in nats a row, over the rows in which both cells are present; symmetric, 0 on the diagonal.
    weight : ndarray (Z, d, d)
        The weight of those rows.
    n_parameters : ndarray (d, d)
        How many parameters an edge takes in each component.
    """

    information: Array
    weight: Array
    n_parameters: Array

    def shared(self) -> Dependence:
        """Return I(x_i; x_j | z): that of the components, weighted by their rows, with the parameters of all."""
        total = self.weight.sum(axis=0, keepdims=True)
        share = np.divide(self.weight, total, out=np.zeros_like(self.weight), where=total > 0)
        information = (share * self.information).sum(axis=0, keepdims=True)
        return Dependence(information, total, len(self.weight) * self.n_parameters)

    def edge_weights(self, penalty: Penalty) -> Array:
        """Return (Z, d, d) what an edge gains in nats a row, less its penalty; −∞ where that leaves nothing.

        So it is where no row has both cells: nothing can be conditional on a column without a value. AIC takes one nat
        of the log-likelihood a parameter, BIC ½·log n.
        """
        if penalty is None:
            return np.where(self.weight > 0, self.information, -np.inf)
        price = 1.0 if penalty == "aic" else 0.5 * np.log(np.maximum(self.weight, 1.0))
        cost = np.divide(price * self.n_parameters, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0)
        return np.where(self.information > cost, self.information - cost, -np.inf)


def dependence_of_categories(statistics: JointCounts) -> Dependence:
    """Return the dependence of columns of categories from the counts of all their pairs. O(Σ_ij Z·K_i·K_j)."""
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


def spanning_forest(weight: Array, root: int) -> tuple[int, ...]:
    """Return the parent of each node in the spanning forest of most weight, −1 for roots: Prim's algorithm.

    Parameters
    ----------
    weight : ndarray (d, d)
        Symmetric; an edge of negative weight is left out, which a penalty brings about.
    root : int
        Of the first tree. Ties go to the earlier node, so that the result is the same everywhere.

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
        if not best[node] >= 0.0:  # no edge to it is worth its price: it starts a tree of its own
            node = int(outside.argmax())
    return tuple(int(parent) for parent in np.where(best >= 0.0, parents, -1))


def mixed_forest(weight: Array, continuous: Array) -> tuple[int, ...]:
    """Return the parent of each column in the forest of most weight in which no category has a number above it.

    The categories' forest does not touch the numbers, and a tree of numbers hangs on one category at most. So the two
    parts are found apart, the categories being one node for the numbers; both are spanning forests of most weight.

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
    r"""Return the dependence of all pairs of columns, categories and numbers, from their statistics.

    For numbers it is −½·log(1 − r²); for a number and a category ½·(log v − Σ_a n_a/n·log v_a), v the variance of the
    number and v_a that where the category is a, one pseudo-row of variance v added to each.
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
    correlation = np.divide(both.cross**2, spread, out=np.zeros_like(spread), where=spread > 0)
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
    """Return the information of each number with a category, and the weight of their rows, (Z, numbers)."""
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
    own = (scatter + variance[:, np.newaxis]) / (weight + 1.0)
    ratio = np.divide(own, variance[:, np.newaxis], out=np.ones_like(own), where=variance[:, np.newaxis] > 0)
    gain = -0.5 * (weight * np.log(ratio)).sum(axis=1) / safe
    return np.maximum(gain, 0.0), total
