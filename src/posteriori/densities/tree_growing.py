"""Randomised trees on coded rows: their growth, and the strength of back-off that predicts held-out rows best."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.statistics.counts import Counts, slot_offsets
from posteriori.statistics.forests import CodedRows, CountLeaves, TreeStructure
from posteriori.tables.batch import Assignment, Codes
from posteriori.typing import Array

FOLDS = 5  # of the rows, one of which each tree leaves out
_STRENGTHS = tuple(float(10.0**e) for e in np.arange(-1.5, 2.1, 0.5))
_MOST_JUDGED = 20_000  # rows, for the strength
_MOST_CELLS = 1 << 24  # of the table of leaves and classes of all trees; larger nodes become leaves beyond
_FEW_COLUMNS = 10  # tried per node by random cuts, although the table has fewer than 100 columns
_WHOLE = np.concatenate([[0.0], np.arange(1, 4096) * np.log(np.arange(1, 4096))])


@dataclass(frozen=True)
class Growth:
    """How trees grow.

    Attributes
    ----------
    n_trees : int
    at_random : bool
        Whether cuts are drawn at random, or the best one of a column is taken.
    n_tried : int, optional
        Columns that a node considers; None for a number that suits the number of columns.
    fewest : float
        The least weight of a node to be split.
    seed : int
    """

    n_trees: int
    at_random: bool
    n_tried: int | None
    fewest: float
    seed: int

    def tried(self, n_columns: int) -> int:
        """Return how many columns a node considers: √d for best cuts, and for random cuts d/2, if d is small."""
        if self.n_tried is not None:
            return min(self.n_tried, n_columns)
        root = round(n_columns**0.5)
        return max(1, min((n_columns + 1) // 2, max(_FEW_COLUMNS, root)) if self.at_random else root)


@dataclass(frozen=True)
class DealtRows:
    """Coded rows, the fold of each (−1: in none), and the number of folds."""

    rows: CodedRows
    fold: Array
    folds: int

    @classmethod
    def by_rank(cls, rows: CodedRows) -> DealtRows:
        """Deal rows to folds by their rank within the class, in the order of their hashes."""
        ordered = rows.sorted()
        return cls(ordered, (np.arange(len(ordered.hashes)) % FOLDS).astype(np.int32), FOLDS)

    def fold_of_trees(self, n_trees: int) -> Array:
        """Return the fold that each tree leaves out: the same number of consecutive trees each, or one more."""
        return (np.arange(n_trees) * self.folds // n_trees).astype(np.int32)

    def grow(self, ordered: Array, growth: Growth, n_jobs: int | None) -> TreeStructure:
        """Grow the trees, each on the rows outside its fold. Threads share the work; the result does not depend on them."""
        rows, n_classes = self.rows, self.rows.n_components
        columns = np.ascontiguousarray(rows.codes.T)
        widths = np.asarray(rows.cardinalities, np.int64) + 1
        fewest = max(growth.fewest, len(rows.hashes) * growth.n_trees * n_classes / _MOST_CELLS)
        outside = [np.flatnonzero(self.fold != k).astype(np.int32) for k in range(self.folds)]
        seeds = np.random.default_rng(growth.seed).integers(2**63, size=growth.n_trees).astype(np.uint64)
        folds = self.fold_of_trees(growth.n_trees)

        def grown(t: int) -> tuple[Array, Array, Array]:
            tree: tuple[Array, Array, Array] = kernels.grow_tree(
                columns,
                rows.component,
                rows.weight,
                outside[folds[t]].copy(),
                widths,
                ordered,
                n_classes,
                growth.tried(len(widths)),
                growth.at_random,
                fewest,
                _WHOLE,
                seeds[t],
            )
            return tree

        return join_trees(rows.cardinalities, ordered, _in_threads(grown, growth.n_trees, n_jobs))

    def strength(self, trees: TreeStructure, prior: Array) -> float:
        """Return the pseudo-rows of back-off with the lowest log-loss of rows by the trees that did not see them.

        These are 1/K of the trees, M. The log-loss L of a mean of M trees falls as L∞ + b/M, so that L(M) and the
        loss of half as many trees, L(M/2), give that of all T: L(T) = L(M) − (L(M/2) − L(M))·(1 − M/T).
        """
        rows, folds = self.rows, self.fold_of_trees(trees.n_trees)
        judged = np.flatnonzero((self.fold >= 0) & np.isin(self.fold, folds))
        judged = judged[:: max(1, -(-len(judged) // _MOST_JUDGED))]
        if not len(judged):
            return 1.0
        assignment = Assignment(rows.component, rows.weight, rows.n_components)
        counts = CountLeaves(trees).outside_folds(Codes(rows.codes, rows.cardinalities), assignment, self.fold, folds)
        mass = masses(counts.singles)
        losses = []
        for strength in _STRENGTHS:
            smoothed = SmoothedTrees.of(trees, counts.leaves, mass, strength, prior)
            loss = np.zeros(2)
            for k in np.unique(folds).tolist():
                mine = judged[self.fold[judged] == k]
                first, last = np.searchsorted(folds, [k, k + 1])
                if len(mine):
                    loss += _losses(smoothed, rows, mine, int(first), int(last), prior)
            whole, half = loss
            losses.append(whole - max(half - whole, 0.0) * (1.0 - 1.0 / self.folds))
        return _STRENGTHS[int(np.argmin(losses))]


@dataclass(frozen=True)
class SmoothedTrees:
    """Trees with smoothed class distributions.

    Attributes
    ----------
    trees : TreeStructure
    share : ndarray (nodes,)
        The share of the rows of a node that goes left.
    log_edge : ndarray (nodes,)
        log of what the edge into a node multiplies p(x) by, if the cell of the split is present.
    given_node : ndarray (nodes, Z)
        log p(y | node) − log p(y) in nats, with p(y) of the tree.
    """

    trees: TreeStructure
    share: Array
    log_edge: Array
    given_node: Array

    @classmethod
    def of(cls, trees: TreeStructure, leaves: Array, mass: Array, strength: float, prior: Array) -> SmoothedTrees:
        """Estimate the trees from the weights in their leaves (leaves, Z) and p(x_j) of each code."""
        n = len(trees.nodes)
        share, log_edge = np.full(n, 0.5), np.zeros(n)
        given_node = np.empty((n, len(prior)))
        sizes, starts = mass[0], mass[1]
        kernels.smooth_leaves(
            leaves,
            trees.nodes,
            trees.roots,
            trees.sides,
            trees.ordered,
            sizes,
            starts,
            float(strength),
            prior,
            share,
            log_edge,
            given_node,
        )
        return cls(trees, share, log_edge, given_node)


def masses(singles: Counts) -> tuple[Array, Array]:
    """Return p(x_j) = (n + 1) / (N + K) of each code, the columns side by side, and the start of each column."""
    counts = singles.table.sum(axis=0) + 1.0
    starts = slot_offsets(singles.cardinalities)
    counts[starts[:-1]] = 0.0
    if len(starts) > 1:
        totals = np.add.reduceat(counts, starts[:-1])
        counts /= np.repeat(np.where(totals > 0, totals, 1.0), np.diff(starts))
    return counts, starts


def smoothed_prior(weight: Array) -> Array:
    """Return p(y) = (n_y + 1/2) / (n + C/2), which the roots back off to."""
    prior: Array = (weight + 0.5) / (weight.sum() + 0.5 * len(weight))
    return prior


def _losses(
    smoothed: SmoothedTrees, rows: CodedRows, judged: Array, first: int, last: int, prior: Array
) -> Array:
    """Return the summed log-loss of some rows by the trees from first to before last, and by half of them."""
    middle = (first + last) // 2
    bounds = [(first, middle), (middle, last)] if middle > first else [(first, last)]
    codes, component = rows.codes[judged], rows.component[judged]
    parts, sizes = [], []
    for low, high in bounds:
        out = np.zeros((len(judged), len(prior)))
        kernels.score_forest(
            codes,
            smoothed.trees.nodes,
            smoothed.trees.roots[low : high + 1],
            smoothed.trees.sides,
            smoothed.trees.ordered,
            smoothed.share,
            smoothed.log_edge,
            smoothed.given_node,
            prior,
            True,
            out,
            np.empty(0),
        )
        parts.append(out)
        sizes.append(high - low)
    whole = sum(size * part for size, part in zip(sizes, parts, strict=True)) / sum(sizes)
    weight = rows.weight[judged]
    halves = np.mean([_loss(part, component, weight, prior) for part in parts])
    return np.array([_loss(whole, component, weight, prior), halves])


def _loss(scores: Array, component: Array, weight: Array, prior: Array) -> float:
    log_joint = np.ascontiguousarray(scores + np.log(prior))
    log_evidence = np.empty(len(scores))
    kernels.log_evidence(log_joint, log_evidence)
    return float(weight @ (log_evidence - log_joint[np.arange(len(scores)), component]))


def join_trees(
    cardinalities: tuple[int, ...], ordered: Array, trees: list[tuple[Array, Array, Array]]
) -> TreeStructure:
    """Return several trees as one structure, with leaves numbered."""
    sizes = [len(nodes) for nodes, _, _ in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum([len(sides) for _, _, sides in trees])])
    joined = np.concatenate([nodes for nodes, _, _ in trees])
    inner = joined[:, 0] >= 0
    joined[:, 2] += np.where(inner, np.repeat(roots[:-1], sizes), 0).astype(np.int32)
    categorical = inner & ~ordered[joined[:, 0]]
    joined[:, 1] += np.where(categorical, np.repeat(starts[:-1], sizes), 0).astype(np.int32)
    joined[~inner, 2] = np.arange(np.count_nonzero(~inner))
    share = np.concatenate([share for _, share, _ in trees])
    sides = np.concatenate([sides for _, _, sides in trees])
    return TreeStructure(cardinalities, ordered, roots, joined, share, sides)


def _in_threads(
    work: Callable[[int], tuple[Array, Array, Array]], n: int, n_jobs: int | None
) -> list[tuple[Array, Array, Array]]:
    n_threads = min(n, (os.cpu_count() or 1) if n_jobs is None or n_jobs < 1 else n_jobs)
    first = work(0)  # compiles the kernel
    if n_threads == 1:
        return [first, *map(work, range(1, n))]
    with ThreadPoolExecutor(n_threads) as threads:
        return [first, *threads.map(work, range(1, n))]
