"""Randomised trees on coded rows: their growth, and the strengths of back-off that predict held-out rows best."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import maximise
from posteriori.kernels.loops.forests import GEOMETRIC
from posteriori.statistics.counts import slot_offsets
from posteriori.statistics.forests import CanonicalOrder, CodedRows, CountLeaves, LeafCounts, TreeStructure
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes

FOLDS = 5  # of the rows, one of which each tree leaves out
LEVELS = 7  # of the weight of nodes, by its logarithm to base 4
_FLOOR = -700.0  # nats; log p(y | leaf) without smoothing may be −∞, which has no difference
_MODE = 1.0  # of the prior of their strengths
_TOLERANCE = 0.03  # of their logarithm
_FACTORS = range(-8, 9)  # quarters of the decimal logarithm of the factors of all strengths
_MOST_PATHS = 1 << 13  # of rows in trees, for the strength of each level
_MOST_TREES, FEWEST_TREES = 100, 25
_ROWS_OF_TREES = 1_000_000  # rows times trees
_MOST_JUDGED = 5_000  # rows, for the factors
CELLS_PER_THREAD = 50_000  # rows in trees, or weights in nodes; with fewer, a thread costs more than it saves
_MOST_CELLS = 1 << 24  # of the table of leaves and classes of all trees; larger nodes become leaves beyond
_FEW_COLUMNS = 10  # tried per node by random cuts, although the table has fewer than 100 columns
_WHOLE = np.concatenate([[0.0], np.arange(1, 4096) * np.log(np.arange(1, 4096))])


def trees_for(n_rows: int, splits: str) -> int:
    """Return the number of trees: 100 up to 10,000 rows, beyond in inverse proportion to the rows, but at least 25.

    The mean over trees reduces their variance, which is less on many rows. Of two kinds of trees there are half as many
    again: in the default pool, 100 mixed trees lose 0.3 % of the log-loss to 150, and 200 gain nothing.
    """
    of_one_kind = min(_MOST_TREES, max(FEWEST_TREES, _ROWS_OF_TREES // max(n_rows, 1)))
    return of_one_kind * 3 // 2 if splits == "mixed" else of_one_kind


def fewest_in_node(fewest: float, n_rows: int, n_trees: int, n_classes: int) -> float:
    """Return the least weight of a node to be split, so large that the table of leaves and classes stays in memory."""
    return max(fewest, n_rows * n_trees * n_classes / _MOST_CELLS)


@dataclass(frozen=True)
class Growth:
    """How trees grow."""

    n_trees: int | None  # None for a number that suits the number of rows
    splits: Literal["random", "best", "mixed"]  # how cuts are chosen; "mixed" is "best" in every second tree
    n_tried: int | None  # columns that a node considers; None for a number that suits the number of columns
    fewest: float  # the least weight of a node to be split
    seed: int

    def at_random(self, tree: int) -> bool:
        """Return whether cuts of a tree are drawn at random, or the best one of a column is taken."""
        return self.splits == "random" or (self.splits == "mixed" and tree % 2 == 1)

    def tried(self, n_columns: int, at_random: bool) -> int:
        """Return the number of columns to try: √d for best cuts, d/2 for random ones, but at most max(10, √d)."""
        if self.n_tried is not None:
            return min(self.n_tried, n_columns)
        root = round(math.sqrt(n_columns))
        return max(1, min((n_columns + 1) // 2, max(_FEW_COLUMNS, root)) if at_random else root)


@dataclass(frozen=True)
class DealtRows:
    """Coded rows in their canonical order, the fold of each (−1: in none), and the number of folds."""

    order: CanonicalOrder
    fold: Array
    folds: int

    @classmethod
    def of(
        cls, rows: CodedRows, ordered: Array, rank: Array, fold: Array | None = None, folds: int = FOLDS
    ) -> DealtRows:
        """Return rows with these folds; by default they are dealt to folds in turn, in the canonical order."""
        order = CanonicalOrder.of(rows, ordered, rank)
        dealt = np.arange(len(rows.hashes)) % folds if fold is None else fold[order.chosen]
        return cls(order, dealt.astype(np.int32), folds)

    @property
    def rows(self) -> CodedRows:
        """The rows."""
        return self.order.rows

    def fold_of_trees(self, n_trees: int) -> Array:
        """Return the fold that each tree leaves out: the same number of consecutive trees each, or one more."""
        return (np.arange(n_trees) * self.folds // n_trees).astype(np.int32)

    def grow(self, growth: Growth, n_jobs: int | None) -> TreeStructure:
        """Grow the trees, each on the rows outside its fold.

        Columns are drawn among those that vary there, in the canonical order of these rows. So the trees do not
        depend on the order of rows and of columns, on threads and on the rows of their fold; on names only where a
        symmetry of the rows exchanges columns, categories or classes.
        """
        rows, n_classes, ordered, rank = self.rows, self.rows.n_components, self.order.ordered, self.order.rank
        n_trees = growth.n_trees or trees_for(len(rows.hashes), growth.splits)
        fewest = fewest_in_node(growth.fewest, len(rows.hashes), n_trees, n_classes)
        parts = [rows.take(np.flatnonzero(self.fold != k)) for k in range(self.folds)]
        orders = [CanonicalOrder.of(part, ordered, rank) for part in parts]
        codes = [order.encoded() for order in orders]
        of_class = [np.bincount(o.place[o.rows.component], minlength=n_classes) for o in orders]
        is_weighted = bool((rows.weight != 1.0).any())
        seeds = np.random.default_rng(growth.seed).integers(2**63, size=n_trees).astype(np.uint64)
        folds = self.fold_of_trees(n_trees)

        def grown(t: int) -> tuple[Array, Array, Array]:
            fold, at_random = int(folds[t]), growth.at_random(t)
            order = orders[fold]
            return order.restored(
                *kernels.grow_tree(
                    codes[fold],
                    order.rows.weight,
                    np.arange(len(codes[fold]), dtype=np.int32),
                    of_class[fold],
                    np.array([rows.cardinalities[j] + 1 for j in order.columns], np.int64),
                    ordered[order.columns],
                    growth.tried(len(order.columns), at_random),
                    at_random,
                    is_weighted,
                    fewest,
                    _WHOLE,
                    seeds[t],
                )
            )

        first = grown(0)  # compiles the kernel
        most = n_trees * len(rows.hashes) / CELLS_PER_THREAD
        with in_threads(threads_for(n_trees, n_jobs, most)) as map_trees:
            return join_trees(rows.cardinalities, ordered, [first, *map_trees(grown, range(1, n_trees))])

    def count(self, trees: TreeStructure) -> tuple[LeafCounts, Array]:
        """Return the counts of all rows, and in each leaf those of the rows outside the fold of its tree."""
        rows = self.rows
        assignment = Assignment(rows.component, rows.weight, rows.n_components)
        codes = Codes(rows.codes, rows.cardinalities)
        return CountLeaves(trees).with_folds(codes, assignment, self.fold, self.fold_of_trees(trees.n_trees))

    def strengths(self, trees: TreeStructure, counts: LeafCounts, prior: Array, n_jobs: int | None) -> Array:
        """Return the pseudo-rows of back-off of inner nodes and of leaves, by the size of the weight, (2, L).

        Those of greatest likelihood of the rows in the trees that did not see them, each tree by itself, are multiplied
        by two factors, of inner nodes and of leaves. These have the lowest log-loss of the mean over the trees, in
        which over-confident leaves do less harm than in a single tree.

        `counts` are those of the rows outside the fold of each tree. M = T/K trees did not see a row. The log-loss L of
        a mean of M trees falls as L∞ + b/M, so that L(M) and the loss of half as many trees, L(M/2), give that of all
        T: L(T) = L(M) − (L(M/2) − L(M))·(1 − M/T).
        """
        folds = self.fold_of_trees(trees.n_trees)
        judged = np.flatnonzero((self.fold >= 0) & np.isin(self.fold, folds))
        judged = judged[:: max(1, -(-len(judged) // _MOST_JUDGED))]
        if not len(judged):
            return np.ones((2, 1))
        weighed = WeighedTrees.of(trees, counts)
        parts = []
        for k in np.unique(folds).tolist():
            mine = judged[self.fold[judged] == k]
            if len(mine):
                parts.append((self.rows.take(mine), weighed.take(*np.searchsorted(folds, [k, k + 1]).tolist())))
        n_paths = len(judged) * len(folds) // self.folds
        own = _of_single_trees(parts, max(-(-n_paths // _MOST_PATHS), 1), prior)
        losses: dict[tuple[int, int], float] = {}

        def scaled(quarters: tuple[int, int]) -> Array:
            return np.asarray(own * 10.0 ** (np.array(quarters) / 4.0)[:, np.newaxis])

        def loss(quarters: tuple[int, int]) -> float:
            if not set(quarters) <= set(_FACTORS):
                return np.inf
            if quarters not in losses:
                strengths = scaled(quarters)

                def of_part(part: tuple[CodedRows, WeighedTrees]) -> Array:
                    return _losses(part[0], part[1], strengths, prior)

                whole, half = np.sum(list(map_parts(of_part, parts)), axis=0).tolist()
                losses[quarters] = float(whole - max(half - whole, 0.0) * (1.0 - 1.0 / self.folds))
            return losses[quarters]

        best = 0, 0
        with in_threads(threads_for(len(parts), n_jobs, weighed.weight.size / CELLS_PER_THREAD)) as map_parts:
            for both, leaves in ((2, 0), (-2, 0), (0, -4), (0, -2), (0, 2), (1, 0), (-1, 0)):
                while loss((best[0] + both, best[1] + both + leaves)) < loss(best):
                    best = best[0] + both, best[1] + both + leaves
        return scaled(best)


def _of_single_trees(parts: Sequence[tuple[CodedRows, WeighedTrees]], step: int, prior: Array) -> Array:
    """Return the strengths with the greatest likelihood of some rows by trees that did not see them, (L,).

    They are every `step`-th row of each part.
    """
    paths = [Paths.of(weighed, rows.take(np.arange(0, len(rows.codes), step)), prior) for rows, weighed in parts]

    def sweep(strengths: Array) -> tuple[float, Array, Array]:
        by_prior, exposure = np.zeros(strengths.shape), np.zeros(strengths.shape)
        total = sum([each.sweep(strengths[0], by_prior[0], exposure[0]) for each in paths])
        return total, by_prior, exposure

    return maximise(sweep, (1, LEVELS), _MODE, _TOLERANCE)


@dataclass(frozen=True)
class WeighedTrees:
    """Trees with the weights in their nodes."""

    trees: TreeStructure
    weight: Array  # (nodes, Z)
    share: Array  # (nodes,): the share of the rows of a node that goes left
    # (nodes,): log of what the edge into a node multiplies p(x) by, if the cell of the split is present
    log_edge: Array
    mass: Array  # (Σ (K + 1),): p(x_j) = (n + 1) / (N + K) of each code, the columns side by side; 0 for a missing cell

    @classmethod
    def of(cls, trees: TreeStructure, counts: LeafCounts) -> WeighedTrees:
        """Add up the weights in the leaves."""
        n, starts = len(trees.nodes), slot_offsets(counts.singles.cardinalities)
        mass = counts.singles.table.sum(axis=0) + 1.0
        mass[starts[:-1]] = 0.0
        if len(starts) > 1:
            totals = np.add.reduceat(mass, starts[:-1])
            mass /= np.repeat(np.where(totals > 0, totals, 1.0), np.diff(starts))
        weight, share, log_edge = np.empty((n, counts.leaves.shape[1])), np.full(n, 0.5), np.zeros(n)
        kernels.weigh_edges(
            counts.leaves,
            trees.nodes,
            trees.roots,
            trees.sides,
            trees.ordered,
            mass,
            starts,
            weight,
            share,
            log_edge,
        )
        return cls(trees, weight, share, log_edge, mass)

    @cached_property
    def edge(self) -> Array:
        """Factor of p(x) at the edge into each node, (nodes,)."""
        return np.asarray(np.exp(self.log_edge))

    def take(self, first: int, last: int) -> WeighedTrees:
        """Return the trees from first to before last."""
        nodes = slice(self.trees.roots[first], self.trees.roots[last])
        trees = self.trees.take(first, last)[0]
        return replace(
            self, trees=trees, weight=self.weight[nodes], share=self.share[nodes], log_edge=self.log_edge[nodes]
        )

    def smoothed(self, strengths: Array, prior: Array, leaves_only: bool = False) -> Array:
        """Return log p(y | node) − log p(y) in nats, (nodes, Z), with p(y) of the tree."""
        return self._smoothed(strengths, prior, self.trees.change, leaves_only)[0]

    def leaf_distributions(self, strengths: Array, prior: Array) -> Array:
        """Return log p(y | leaf) in nats from counts alone, (leaves, Z)."""
        given_node, of_tree = self._smoothed(strengths, prior, np.empty((0, 0), np.float32), True)
        is_leaf = self.trees.nodes[:, 0] < 0
        tree = np.repeat(np.arange(self.trees.n_trees), np.diff(self.trees.roots))[is_leaf]
        found: Array = given_node[is_leaf] + np.log(of_tree)[tree]
        return found

    def leaf_shares(self) -> Array:
        """Return the share of each leaf in its tree, (leaves,)."""
        nodes, share = self.trees.nodes, np.ones(len(self.trees.nodes))
        for at, right in self.trees.levels():
            share[right - 1] = share[at] * self.share[at]
            share[right] = share[at] * (1.0 - self.share[at])
        found: Array = share[nodes[:, 0] < 0]
        return found

    def _smoothed(self, strengths: Array, prior: Array, change: Array, leaves_only: bool) -> tuple[Array, Array]:
        given_node, of_tree = np.empty(self.weight.shape), np.empty((self.trees.n_trees, len(prior)))
        kernels.smooth_nodes(
            self.weight,
            self.trees.nodes,
            self.trees.roots,
            self.share,
            strengths,
            prior,
            change,
            leaves_only,
            given_node,
            of_tree,
        )
        return given_node, of_tree


@dataclass(frozen=True)
class Paths:
    """Rows in the trees of one fold: the nodes on their paths, side by side (see `kernels.follow_paths`)."""

    starts: Array
    level: Array
    own: Array
    total: Array
    weight: Array
    root: Array

    @classmethod
    def of(cls, weighed: WeighedTrees, rows: CodedRows, prior: Array) -> Paths:
        """Return the paths of all these rows in all these trees."""
        trees, n_trees = weighed.trees, weighed.trees.n_trees
        starts = np.zeros(len(rows.codes) * n_trees + 1, np.int64)
        size = 0
        for _ in range(2):  # the first pass counts the nodes
            level, own, total = np.empty(size, np.int8), np.empty(size), np.empty(size)
            kernels.follow_paths(
                rows.codes,
                rows.component,
                trees.nodes,
                trees.roots,
                trees.sides,
                trees.ordered,
                weighed.weight,
                LEVELS,
                starts,
                level,
                own,
                total,
            )
            size = int(starts[-1])
        weight = np.repeat(rows.weight, n_trees)
        return cls(starts, level, own, total, weight, np.repeat(prior[rows.component], n_trees))

    def sweep(self, strengths: Array, by_prior: Array, exposure: Array) -> float:
        """Return the log-likelihood in nats, and add the sums of an EM step to the last two."""
        found: float = kernels.sweep_paths(
            self.starts, self.level, self.own, self.total, self.weight, self.root, strengths, by_prior, exposure
        )
        return found


def smoothed_prior(weight: Array) -> Array:
    """Return p(y) = (n_y + 1/2) / (n + C/2), which the roots back off to."""
    prior: Array = (weight + 0.5) / (weight.sum() + 0.5 * len(weight))
    return prior


def leaf_values(trees: TreeStructure, given_node: Array, prior: Array, geometric: bool) -> Array:
    """Return the contribution of each leaf to the scores of its rows.

    For the geometric mean log p(y | leaf) − log p(y), less that of the first class, without this class,
    (leaves, Z − 1); for the arithmetic one p(y | leaf) / p(y), (leaves, Z).
    """
    given = np.maximum(given_node[trees.nodes[:, 0] < 0], _FLOOR)
    if geometric:
        return np.ascontiguousarray(given[:, 1:] - given[:, :1])
    ratio = np.exp(given)
    return np.asarray(ratio / (ratio @ prior)[:, np.newaxis])


def mean_scores(trees: TreeStructure, smoothed: Any, values: Array, codes: Array, chosen: slice) -> Array:
    """Return the mean over the chosen trees of what they add to the scores of each row, (n, Z − 1) or (n, Z).

    Parameters
    ----------
    smoothed : object
        With `share`, `edge`, `given`, `prior` and `combine`, as `RandomTreesParameters`.
    values : ndarray
        From `leaf_values`.
    codes : ndarray (n, d)
    chosen : slice
        Consecutive trees.
    """
    out = np.zeros((len(codes), values.shape[1]))
    kernels.score_forest(
        codes,
        trees.steps._replace(start=trees.steps.start[chosen]),
        trees.nodes,
        trees.roots[chosen.start : chosen.stop + 1],
        trees.sides,
        trees.ordered,
        smoothed.share,
        smoothed.edge,
        smoothed.given,
        values,
        smoothed.prior,
        smoothed.combine,
        out,
    )
    out /= chosen.stop - chosen.start
    return out


@dataclass(frozen=True)
class _Smoothed:
    """The parameters that `mean_scores` reads."""

    share: Array
    edge: Array
    given: Array
    prior: Array
    combine: int = GEOMETRIC


def _losses(rows: CodedRows, weighed: WeighedTrees, strengths: Array, prior: Array) -> Array:
    """Return the summed log-loss of some rows by trees that did not see them, and by half of these trees."""
    trees, n_trees = weighed.trees, weighed.trees.n_trees
    given_node = weighed.smoothed(strengths, prior, leaves_only=True)
    is_leaf = trees.nodes[:, 0] < 0
    given = np.exp(given_node, where=is_leaf[:, np.newaxis], out=np.zeros_like(given_node))
    smoothed = _Smoothed(weighed.share, weighed.edge, given, prior)
    values = leaf_values(trees, given_node, prior, True)
    middle = n_trees // 2
    bounds = [(0, middle), (middle, n_trees)] if middle > 0 else [(0, n_trees)]
    scores = np.zeros((1 + len(bounds), len(rows.codes), len(prior)))
    for position, (low, high) in enumerate(bounds, start=1):
        scores[position, :, 1:] = mean_scores(trees, smoothed, values, rows.codes, slice(low, high))
    for (low, high), of_half in zip(bounds, scores[1:], strict=True):
        scores[0] += of_half * ((high - low) / n_trees)
    scores += np.log(prior)
    log_evidence = np.empty(scores.shape[:2])
    kernels.log_evidence(scores.reshape(-1, len(prior)), log_evidence.ravel())
    losses = (log_evidence - scores[:, np.arange(len(rows.codes)), rows.component]) @ rows.weight
    return np.array([losses[0], losses[1:].mean()])


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
    categorical = inner.copy()
    categorical[inner] = ~ordered[joined[inner, 0]]
    joined[:, 1] += np.where(categorical, np.repeat(starts[:-1], sizes), 0).astype(np.int32)
    joined[~inner, 2] = np.arange(np.count_nonzero(~inner))
    share = np.concatenate([share for _, share, _ in trees])
    sides = np.concatenate([sides for _, _, sides in trees])
    return TreeStructure(cardinalities, ordered, roots, joined, share, sides)


def threads_for(n: int, n_jobs: int | None, most: float = math.inf) -> int:
    """Return the number of threads for n pieces of work, from 1 to `most`; `n_jobs` None or below 1 is one per core."""
    return max(1, min(n, (os.cpu_count() or 1) if n_jobs is None or n_jobs < 1 else n_jobs, int(min(most, n))))


@contextmanager
def in_threads(n_threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield `map` that works in so many threads, and yields results in the order of the work."""
    if n_threads == 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as threads:
        yield threads.map
