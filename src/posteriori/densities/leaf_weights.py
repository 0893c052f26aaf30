"""Class distributions of leaves that predict best: weights of leaves, learned by conditional likelihood."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.densities.tree_growing import DealtRows, WeighedTrees
from posteriori.statistics.forests import LeafCounts, TreeStructure
from posteriori.typing import Array

PENALTY = 1.0  # of the squared change of a log factor, in rows
_PACES = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)  # Newton steps per look at all trees, in sum
_LEAST_GAIN = 0.002  # of the held-out log-loss, by a look at all trees


def conditional_changes(
    dealt: DealtRows, trees: TreeStructure, counts: LeafCounts, strength: float, prior: Array, n_jobs: int | None
) -> Array:
    r"""Return what is added to log p(y | leaf) so that the trees predict the classes of rows best, (leaves, Z).

    .. math:: \max_c \sum_i w_i \log p_c(y_i \mid x_i) - \tfrac{\lambda}{2} \sum_{l,y} (c_{ly} / T)^2, \qquad
              p_c(y \mid x) \propto p(y) \exp\Bigl(\frac1T \sum_t \log \frac{p_c(y \mid l_t(x))}{p_{c,t}(y)}\Bigr)

    It starts from counts, c = 0. The trees that leave out one fold are learned together, from the rows outside it, by
    Newton steps in one tree after the other. They stop where the log-loss of the rows in the folds no longer falls, so
    that a table on which counts predict best keeps them. A row that lacks the cell of a split is in one leaf below it,
    which is drawn with the shares.

    Parameters
    ----------
    dealt : DealtRows
    trees : TreeStructure
    counts : LeafCounts
        Of the rows outside the fold of each tree.
    strength : float
        Of the back-off, in rows.
    prior : ndarray (Z,)
    n_jobs : int, optional

    References
    ----------
    Zaidi, Webb, Carman, Petitjean, Buntine, Hynes & De Sterck, Efficient parameter learning of Bayesian network
    classifiers, Machine Learning 106 (2017): weights that start at the generative solution. Ren, Cao, Wei & Sun, Global
    refinement of random forest, CVPR 2015: leaves that are learned together.
    """
    if len(prior) < 2:
        return np.zeros((trees.n_leaves, len(prior)), np.float32)
    groups = _groups(dealt, trees, counts, strength, prior)
    n_threads = min(len(groups), (os.cpu_count() or 1) if n_jobs is None or n_jobs < 1 else n_jobs)
    with ThreadPoolExecutor(n_threads) as threads:
        least = sum(threads.map(_Group.start, groups))
        found = [group.change.astype(np.float32) for group in groups]
        for pace in _PACES:
            loss = sum(threads.map(lambda group: group.improve(pace), groups))  # noqa: B023
            if not loss < least:
                break
            found = [group.change.astype(np.float32) for group in groups]
            if loss > least * (1.0 - _LEAST_GAIN):
                break
            least = loss
    return np.concatenate(found)


@dataclass(frozen=True)
class _Group:
    """The trees that leave out one fold, and all rows.

    Attributes
    ----------
    leaf : ndarray (T, n)
    component : ndarray (n,)
    held_out, weight : ndarray (n,)
        The weight of each row that is in the fold, and that of each row that is not; 0 for the others.
    log_start : ndarray (leaves, Z)
        log p(y | leaf) from counts.
    share : ndarray (leaves,)
        The share of the rows of its tree that are in a leaf.
    bounds : ndarray (T + 1,)
        The first leaf of each tree.
    change, given : ndarray (leaves, Z)
    posterior : ndarray (n, Z)
    """

    leaf: Array
    component: Array
    weight: Array
    held_out: Array
    log_start: Array
    share: Array
    bounds: Array
    log_prior: Array
    change: Array
    given: Array
    posterior: Array
    place: Array
    left_out: Array

    def start(self) -> float:
        """Compute the posterior of all rows from counts, and return the log-loss of those that are held out."""
        kernels.start_posterior(
            self.leaf, self.component, self.weight, self.log_start, self.change, self.share, self.bounds, self.log_prior, self.place, self.left_out, self.given, self.posterior
        )
        return self._loss()

    def improve(self, pace: float) -> float:
        """Improve the leaves of one tree after the other, and return the log-loss of the rows that are held out."""
        kernels.improve_leaves(
            self.leaf,
            self.component,
            self.weight,
            self.log_start,
            self.change,
            self.share,
            self.bounds,
            self.log_prior,
            PENALTY,
            pace / len(self.leaf),
            self.given,
            self.posterior,
        )
        return self._loss()

    def _loss(self) -> float:
        judged = np.flatnonzero(self.held_out)
        return float(-self.held_out[judged] @ np.log(self.posterior[judged, self.component[judged]]))


def _groups(
    dealt: DealtRows, trees: TreeStructure, counts: LeafCounts, strength: float, prior: Array
) -> list[_Group]:
    rows, folds = dealt.rows, dealt.fold_of_trees(trees.n_trees)
    weighed = WeighedTrees.of(trees, counts)
    log_start, share = weighed.leaf_distributions(strength, prior), weighed.leaf_shares()
    groups = []
    for k in np.unique(folds).tolist():
        first, last = np.searchsorted(folds, [k, k + 1]).tolist()
        part, numbers = trees.take(first, last)
        leaf = np.empty((last - first, len(rows.codes)), np.int32)
        of_part = weighed.share[trees.roots[first] : trees.roots[last]]
        kernels.leaves_of_rows(rows.codes, part.nodes, part.roots, part.sides, part.ordered, of_part, leaf)
        is_leaf = part.nodes[:, 0] < 0
        bounds = np.concatenate([[0], np.cumsum(np.add.reduceat(is_leaf.astype(np.int64), part.roots[:-1]))])
        mine = dealt.fold == k
        n = numbers.stop - numbers.start
        groups.append(
            _Group(
                leaf,
                rows.component,
                np.where(mine, 0.0, rows.weight),
                np.where(mine, rows.weight, 0.0),
                log_start[numbers],
                share[numbers],
                bounds,
                np.log(prior),
                np.zeros((n, len(prior))),
                np.empty((n, len(prior))),
                np.empty((len(leaf[0]), len(prior))),
                *_loo(weighed.weight[trees.roots[first] : trees.roots[last]], part, strength, prior),
            )
        )
    return groups


def _loo(weight, part, strength, prior):
    import os
    place = np.full((part.n_leaves, len(prior)), -1, np.int64)
    if os.environ.get("LOO", "1") == "0":
        return place, np.empty((0, len(prior)))
    n = kernels.leave_one_out(weight, part.nodes, part.roots, float(strength), prior, place, np.empty((0, len(prior))))
    out = np.empty((n, len(prior)))
    kernels.leave_one_out(weight, part.nodes, part.roots, float(strength), prior, place, out)
    return place, out
