"""Class distributions of leaves that predict best: weights of leaves, learned by conditional likelihood."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from posteriori import kernels
from posteriori.densities.tree_growing import DealtRows, WeighedTrees, threads_for
from posteriori.statistics.forests import LeafCounts, TreeStructure
from posteriori.typing import Array

PENALTY = 1.0  # of the squared change of a log factor, in rows
_PACES = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)  # Newton steps per look at all trees, in sum
_LEAST_GAIN = 0.002  # of the held-out log-loss, by a look at all trees


def conditional_changes(
    dealt: DealtRows, trees: TreeStructure, counts: LeafCounts, strengths: Array, prior: Array, n_jobs: int | None
) -> Array:
    r"""Return what is added to log p(y | leaf) so that the trees predict classes best, (leaves, Z); empty for nothing.

    .. math:: \max_c \sum_i w_i \log p_c(y_i \mid x_i) - \tfrac{\lambda}{2} \sum_{l,y} (c_{ly} / T)^2, \qquad
              p_c(y \mid x) \propto p(y) \exp\Bigl(\frac1T \sum_t \log \frac{p_c(y \mid l_t(x))}{p_{c,t}(y)}\Bigr)

    It starts from counts, c = 0. The trees that leave out one fold are learned together, from the rows outside it, by
    Newton steps in one tree after the other. A row sees a leaf without itself, in the counts and in each step. The
    steps end where the log-loss of the rows in the folds no longer falls, so that a table on which counts predict best
    keeps them. A row that lacks the cell of a split is in one leaf below it, which is drawn with the shares.

    Parameters
    ----------
    dealt : DealtRows
    trees : TreeStructure
    counts : LeafCounts
        Of the rows outside the fold of each tree.
    strengths : ndarray (2, L)
        Of the back-off, in rows (`DealtRows.strengths`).
    prior : ndarray (Z,)
    n_jobs : int, optional

    References
    ----------
    Zaidi, Webb, Carman, Petitjean, Buntine, Hynes & De Sterck, Efficient parameter learning of Bayesian network
    classifiers, Machine Learning 106 (2017): weights that start at the generative solution. Ren, Cao, Wei & Sun, Global
    refinement of random forest, CVPR 2015: leaves that are learned together.
    """
    if len(prior) < 2:
        return np.empty((0, 0), np.float32)
    groups = _groups(dealt, trees, counts, strengths, prior)
    with ThreadPoolExecutor(threads_for(len(groups), n_jobs)) as threads:
        least = sum(threads.map(_Group.start, groups))
        found = [np.empty((0, 0), np.float32)]
        for pace in _PACES:
            loss = sum(threads.map(partial(_Group.improve, pace=pace), groups))
            if not loss < least:
                break
            found = [group.change() for group in groups]
            if loss > least * (1.0 - _LEAST_GAIN):
                break
            least = loss
    return np.concatenate(found)


@dataclass(frozen=True)
class _Group:
    """The trees that leave out one fold, and the state of their learning.

    Attributes
    ----------
    leaf : ndarray (T, n)
        The leaf of each row in each tree.
    component : ndarray (n,)
    weight, held_out : ndarray (n,)
        The weight of each row that is not in the fold, and that of each row that is; 0 for the others.
    log_p : ndarray (leaves, Z)
        log p(y | leaf).
    share : ndarray (leaves,)
        The share of the rows of its tree that are in a leaf.
    bounds : ndarray (T + 1,)
        The first leaf of each tree.
    log_prior : ndarray (Z,)
    place, left_out : ndarray (leaves, Z) and (pairs, Z)
        log p(y | leaf) from the counts without a row of a class, and its place.
    theta : ndarray (leaves, Z)
        What is added to (log p(y | leaf)) / T.
    given : ndarray (leaves, Z)
        log p(y | leaf) − log p_t(y).
    posterior : ndarray (n, Z)
    """

    leaf: Array
    component: Array
    weight: Array
    held_out: Array
    log_p: Array
    share: Array
    bounds: Array
    log_prior: Array
    place: Array
    left_out: Array
    theta: Array
    given: Array
    posterior: Array

    def change(self) -> Array:
        """Return what is added to log p(y | leaf), (leaves, Z)."""
        return (self.theta * len(self.leaf)).astype(np.float32)

    def start(self) -> float:
        """Compute the posterior of all rows from counts, and return the log-loss of those that are held out."""
        kernels.start_posterior(
            self.leaf,
            self.component,
            self.weight,
            self.log_p,
            self.share,
            self.bounds,
            self.log_prior,
            self.place,
            self.left_out,
            self.given,
            self.posterior,
        )
        return self._loss()

    def improve(self, pace: float) -> float:
        """Improve the leaves of one tree after the other, and return the log-loss of the rows that are held out."""
        kernels.improve_leaves(
            self.leaf,
            self.component,
            self.weight,
            self.log_p,
            self.share,
            self.bounds,
            self.log_prior,
            PENALTY,
            pace / len(self.leaf),
            self.theta,
            self.given,
            self.posterior,
        )
        return self._loss()

    def _loss(self) -> float:
        judged = np.flatnonzero(self.held_out)
        return float(-self.held_out[judged] @ np.log(self.posterior[judged, self.component[judged]]))


def _groups(dealt: DealtRows, trees: TreeStructure, counts: LeafCounts, strengths: Array, prior: Array) -> list[_Group]:
    """Return the trees that leave out each fold."""
    rows, folds = dealt.rows, dealt.fold_of_trees(trees.n_trees)
    weighed = WeighedTrees.of(trees, counts)
    log_p, share = weighed.leaf_distributions(strengths, prior), weighed.leaf_shares()
    n_rows, n_classes = len(rows.codes), len(prior)
    groups = []
    for k in np.unique(folds).tolist():
        first, last = np.searchsorted(folds, [k, k + 1]).tolist()
        part, numbers = trees.take(first, last)
        nodes = slice(trees.roots[first], trees.roots[last])
        leaf = np.empty((part.n_trees, n_rows), np.int32)
        kernels.leaves_of_rows(rows.codes, part.nodes, part.roots, part.sides, part.ordered, weighed.share[nodes], leaf)
        per_tree = np.add.reduceat((part.nodes[:, 0] < 0).astype(np.int64), part.roots[:-1])
        is_in_fold = dealt.fold == k
        place = np.empty((part.n_leaves, n_classes), np.int64)
        left_out = np.empty((0, n_classes))
        for _ in range(2):  # first to count the pairs
            n_pairs = kernels.leave_one_out(weighed.weight[nodes], part.nodes, strengths, prior, place, left_out)
            left_out = left_out if len(left_out) == n_pairs else np.empty((n_pairs, n_classes))
        groups.append(
            _Group(
                leaf,
                rows.component,
                np.where(is_in_fold, 0.0, rows.weight),
                np.where(is_in_fold, rows.weight, 0.0),
                log_p[numbers],
                share[numbers],
                np.concatenate([[0], np.cumsum(per_tree)]),
                np.log(prior),
                place,
                left_out,
                np.zeros((part.n_leaves, n_classes)),
                np.empty((part.n_leaves, n_classes)),
                np.empty((n_rows, n_classes)),
            )
        )
    return groups
