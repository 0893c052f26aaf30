"""Randomised trees as a joint distribution, whose leaves are weighted by conditional likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.families import check_rank
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.densities.tree_growing import (
    CELLS_PER_THREAD,
    FOLDS,
    DealtRows,
    Growth,
    WeighedTrees,
    in_threads,
    leaf_values,
    mean_scores,
    smoothed_prior,
    threads_for,
)
from posteriori.kernels.loops.forests import ARITHMETIC, GEOMETRIC
from posteriori.statistics.forests import CodedRows, CountLeaves, LeafCounts, TreeStructure, codes_of
from posteriori.support.checks import LARGEST, check_equal, check_not_negative, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Codes
from posteriori.tables.schema import CellKind, Column

PENALTY = 1.0  # of the squared change of a log factor, in rows
_PACES = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)  # Newton steps per look at all trees, in sum
_STEPS = 256  # per nat
_LEAST_GAIN = 0.002  # of the held-out log-loss, by a look at all trees


def conditional_changes(
    dealt: DealtRows, trees: TreeStructure, counts: LeafCounts, strengths: Array, prior: Array, n_jobs: int | None
) -> Array:
    r"""Return the change of log p(y | leaf) with which the trees predict classes best, (leaves, Z); empty for none.

    .. math:: \max_c \sum_i w_i \log p_c(y_i \mid x_i) - \tfrac{\lambda}{2} \sum_{l,y} (c_{ly} / T)^2, \qquad
              p_c(y \mid x) \propto p(y) \exp\Bigl(\frac1T \sum_t \log \frac{p_c(y \mid l_t(x))}{p_{c,t}(y)}\Bigr)

    It starts from counts, c = 0. The trees that leave out one fold are learned together, from the rows outside it, by
    Newton steps in one tree after the other. A row sees a leaf without itself, in the counts and in each step. The
    steps end where the log-loss of the rows in the folds no longer falls, so that a table on which counts predict best
    keeps them. A row that lacks the cell of a split is in one leaf below it, which is drawn with the shares.

    Parameters
    ----------
    counts : LeafCounts
        Of the rows outside the fold of each tree.
    strengths : ndarray (2, L)
        Of the back-off, in rows (`DealtRows.strengths`).
    prior : ndarray (Z,)

    References
    ----------
    Zaidi, Webb, Carman, Petitjean, Buntine, Hynes & De Sterck, Efficient parameter learning of Bayesian network
    classifiers, Machine Learning 106 (2017): weights that start at the generative solution. Ren, Cao, Wei & Sun, Global
    refinement of random forest, CVPR 2015: leaves that are learned together.
    """
    if len(prior) < 2:
        return np.empty((0, 0), np.float32)
    rows, folds = dealt.rows, dealt.fold_of_trees(trees.n_trees)
    weighed = WeighedTrees.of(trees, counts)
    each = np.unique(folds)
    most = len(rows.codes) * trees.n_trees / CELLS_PER_THREAD
    with in_threads(threads_for(len(each), n_jobs, most)) as map_folds:
        groups = list(map_folds(lambda k: FoldTrees.of(dealt, weighed, k, strengths, prior), each.tolist()))
        least = sum(map_folds(FoldTrees.start, groups))
        found = [np.empty((0, 0), np.float32)]
        for pace in _PACES:
            loss = sum(map_folds(partial(FoldTrees.improve, pace=pace), groups))
            if not loss < least:
                break
            found = [group.change() for group in groups]
            if loss > least * (1.0 - _LEAST_GAIN):
                break
            least = loss
    return np.concatenate(found)


@dataclass(frozen=True)
class FoldTrees:
    """The trees that leave out one fold, and the state of their learning."""

    leaf: Array  # (T, n): the leaf of each row in each tree
    component: Array  # (n,)
    # weight, held_out (n,): the weight of each row that is not in the fold, and that of each row that is; 0 for the
    # others
    weight: Array
    held_out: Array
    log_p: Array  # (leaves, Z): log p(y | leaf)
    share: Array  # (leaves,): the share of the rows of its tree that are in a leaf
    bounds: Array  # (T + 1,): the first leaf of each tree
    log_prior: Array  # (Z,)
    # place, left_out (leaves, Z) and (pairs, Z): log p(y | leaf) from the counts without a row of a class, and its
    # place
    place: Array
    left_out: Array
    theta: Array  # (leaves, Z): what is added to (log p(y | leaf)) / T
    given: Array  # (leaves, Z): log p(y | leaf) − log p_t(y)
    posterior: Array  # (n, Z)

    @classmethod
    def of(cls, dealt: DealtRows, weighed: WeighedTrees, fold: int, strengths: Array, prior: Array) -> FoldTrees:
        """Return the trees that leave out a fold."""
        rows, n_classes = dealt.rows, len(prior)
        part = weighed.take(*np.searchsorted(dealt.fold_of_trees(weighed.trees.n_trees), [fold, fold + 1]).tolist())
        trees = part.trees
        leaf = np.empty((trees.n_trees, len(rows.codes)), np.int32)
        kernels.leaves_of_rows(rows.codes, trees.nodes, trees.roots, trees.sides, trees.ordered, part.share, leaf)
        per_tree = np.add.reduceat((trees.nodes[:, 0] < 0).astype(np.int64), trees.roots[:-1])
        is_in_fold = dealt.fold == fold
        place = np.empty((trees.n_leaves, n_classes), np.int64)
        left_out = np.empty((0, n_classes))
        for _ in range(2):  # first to count the pairs
            n_pairs = kernels.leave_one_out(part.weight, trees.nodes, strengths, prior, place, left_out)
            left_out = left_out if len(left_out) == n_pairs else np.empty((n_pairs, n_classes))
        return cls(
            leaf,
            rows.component,
            np.where(is_in_fold, 0.0, rows.weight),
            np.where(is_in_fold, rows.weight, 0.0),
            part.leaf_distributions(strengths, prior),
            part.leaf_shares(),
            np.concatenate([[0], np.cumsum(per_tree)]),
            np.log(prior),
            place,
            left_out,
            np.zeros((trees.n_leaves, n_classes)),
            np.empty((trees.n_leaves, n_classes)),
            np.empty((len(rows.codes), n_classes)),
        )

    def change(self) -> Array:
        """Return the change of log p(y | leaf), (leaves, Z), in steps of 1/256 nat, which take a third of the space.

        Rounding changes the mean over T trees by about 0.001/√T.
        """
        return (np.round(self.theta * (len(self.leaf) * _STEPS)) / _STEPS).astype(np.float32)

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


@dataclass(frozen=True)
class RandomTreesParameters:
    """The class distributions of the nodes of all trees: functions of the weights in their leaves.

    Model files hold the weights, which are whole numbers for the most part and take a fraction of the space.
    """

    trees: TreeStructure
    geometric: bool  # whether trees are combined by the geometric mean
    counts: LeafCounts
    strengths: Array  # (2, L): the pseudo-rows of back-off (`RandomTrees.strengths`)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of categories or bins of each column."""
        return self.trees.cardinalities

    @property
    def combine(self) -> int:
        """How the trees combine, for kernels."""
        return GEOMETRIC if self.geometric else ARITHMETIC

    @cached_property
    def prior(self) -> Array:
        """p(y) of the training rows, (Z,)."""
        return smoothed_prior(self.counts.leaves.sum(axis=0) / self.trees.n_trees)

    @cached_property
    def _weighed(self) -> WeighedTrees:
        return WeighedTrees.of(self.trees, self.counts)

    @property
    def share(self) -> Array:
        """The share of the rows of a node that goes left, (nodes,)."""
        return self._weighed.share

    @property
    def log_edge(self) -> Array:
        """The log of what the edge into a node multiplies p(x) by, if the cell of the split is present, (nodes,)."""
        return self._weighed.log_edge

    @property
    def mass(self) -> Array:
        """p(x_j) of each code, the columns side by side, (Σ (K + 1),); 0 for a missing cell."""
        return self._weighed.mass

    @cached_property
    def given_node(self) -> Array:
        """Log p(y | node) − log p(y) in nats, with p(y) of the tree, (nodes, Z)."""
        return self._weighed.smoothed(self.strengths, self.prior)

    @cached_property
    def edge(self) -> Array:
        """Factor of p(x) at the edge into each node, if the cell of the split is present, (nodes,)."""
        return np.asarray(np.exp(self.log_edge))

    @cached_property
    def given(self) -> Array:
        """p(y | node) / p(y), with p(y) of the tree, (nodes, Z)."""
        return np.asarray(np.exp(self.given_node))

    @property
    def of_nodes(self) -> tuple[Array, ...]:
        """The arrays of nodes, as kernels take them after the codes."""
        trees = self.trees
        return trees.nodes, trees.roots, trees.sides, trees.ordered, self.share, self.log_edge, self.given_node

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what follows from them

    @cached_property
    def leaf_values(self) -> Array:
        """Contribution of each leaf to the scores of its rows, (leaves, Z − 1) or (leaves, Z): see `leaf_values`."""
        return leaf_values(self.trees, self.given_node, self.prior, self.geometric)

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        CountLeaves(self.trees).check_against(self.counts, columns, n_components)
        check_numbers("the strengths", self.strengths, (2, self.strengths.shape[-1]), 0.0)
        require(self.strengths.size > 0, "there are no strengths")
        check_numbers("the weights of edges", self.log_edge, (len(self.trees.nodes),))
        check_numbers("the class distributions of nodes", self.given_node, (len(self.trees.nodes), n_components))


@dataclass(frozen=True)
class RandomTrees(BaseDensity):
    r"""An ensemble of randomised trees. Each tree is a joint distribution over its leaves, the classes and the cells.

    .. math:: p_t(x, y) = \sum_l p(l) \, p(y \mid l) \prod_j p(x_j \mid l), \qquad
              p(x_j \mid l) = p(x_j) \, [x_j \in l] \, / \, P(x_j \in l)

    The distribution of a column within a leaf is that of all rows, truncated to the leaf. p(y | leaf) is backed off to
    every node above it, p(y | node) = (n_y + s·p(y | parent)) / (n + s), with the strengths s, by the weight of
    the node, that predict best the rows that trees did not see. A missing cell sends a row down both sides, which is
    the exact marginal of p_t.

    The joint distribution is p(x, y) = p(y)·(1/T)·Σ_t p_t(x | y), whatever the prior: that of samples and of p(x). It
    sums to 1, and a missing cell is summed out. The posterior combines the trees otherwise, because that predicts
    better: by the geometric mean of p_t(x | y), p(y | x) ∝ p(y)·Π_t p_t(x | y)^{1/T}, or by the arithmetic mean of
    p_t(y | x). A single tree has the posterior of its joint distribution, and a row without any cell has the prior.

    Parameters
    ----------
    ordered : tuple of int
        The columns of numbers, which a cut splits, by their positions. The others split by two sets of categories.
    n_trees : int, optional
        None for a number that suits the number of rows (`trees_for`).
    splits : {"random", "best", "mixed"}
        Each node tries some columns that vary in it, and takes the split of the greatest information: with one random
        cut per column, or with the best one; "mixed" does each in every second tree. Categories are ordered by a random
        projection of their class distribution (by p(y | category) for two classes), and a cut in this order makes the
        two sets.
    combine : {"geometric", "arithmetic"}
    n_tried : int, optional
        Columns per node; default: √d for the best cuts; d/2 for random cuts, but no more than max(10, √d).
    fewest : float
        The least weight of a node to be split.
    seed : int
    strength : float, optional
        s in rows, the same for all nodes. None: learned by the weight of the node.
    of_weights : tuple of tuple of float
        If learned: s of inner nodes and of leaves, by the whole part of the logarithm to base 4 of their weight, the
        last also of heavier ones.
    leaf_weights : {None, "conditional"}
        With "conditional", log p(y | leaf) is changed so that the trees together predict the classes of the training
        rows best (`conditional_changes`). p(y | leaf) stays a distribution, so that all else is the same.
    structure : TreeStructure, optional
        None until `refine` has grown the trees.
    n_jobs : int, optional
        Threads that grow the trees.
    rank : tuple of int
        The place of each column in the order of their names, by which the last ties are broken; empty for their own
        order.

    References
    ----------
    Correia, Peharz & de Campos, Joints in random forests, NeurIPS 2020. Geurts, Ernst & Wehenkel, Extremely randomized
    trees, Machine Learning 63 (2006). Breiman et al., Classification and regression trees (1984), section 9.4 (the
    order of categories for two classes). Buntine, Learning classification trees, Statistics and Computing 2 (1992)
    (averages of smoothed trees).
    """

    ordered: tuple[int, ...]
    n_trees: int | None = None
    splits: Literal["random", "best", "mixed"] = "random"
    combine: Literal["geometric", "arithmetic"] = "geometric"
    n_tried: int | None = None
    fewest: float = 2.0
    seed: int = 0
    strength: float | None = None
    leaf_weights: Literal["conditional"] | None = None
    structure: TreeStructure | None = None
    n_jobs: int | None = None
    of_weights: tuple[tuple[float, ...], ...] = ()
    rank: tuple[int, ...] = ()
    name = "random trees"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    second_pass = ""
    chosen_once = "the trees"
    fitted = RandomTreesParameters

    def check(self) -> None:
        """Raise ValueError if a number is out of its range."""
        for name, number in (("n_trees", self.n_trees), ("n_tried", self.n_tried)):
            require(number is None or number >= 1, f"{name} is {number}; it must be 1 or more")
        check_not_negative("fewest", self.fewest)
        check_not_negative("seed", self.seed)
        require(
            len(self.of_weights) in {0, 2} and len(set(map(len, self.of_weights))) < 2, "the strengths are no table"
        )
        strength = self.strength
        require(strength is None or 0 < strength <= LARGEST, f"strength is {strength}; it must be above 0 and finite")
        for each in (each for line in self.of_weights for each in line):
            check_not_negative("a strength", each)

    def check_fitted(self, parameters: RandomTreesParameters) -> None:
        """Raise ValueError unless the parameters are those of these trees."""
        check_equal("the trees", parameters.trees, self.structure)
        check_equal("the mean of the trees", parameters.geometric, self.combine == "geometric")
        trees = parameters.trees
        check_rank(self.rank, len(trees.cardinalities))
        check_equal(
            "the columns of numbers", tuple(np.flatnonzero(trees.ordered).tolist()), tuple(sorted(self.ordered))
        )

    @property
    def _trees(self) -> TreeStructure:
        if self.structure is None:
            raise ValueError("the trees are not grown yet; call `refine` on the density first")
        return self.structure

    @property
    def has_factors(self) -> bool:  # type: ignore[override]
        """Whether the posterior is a sum of log factors of the columns: not with the arithmetic mean of the trees."""
        return self.combine == "geometric"

    @property
    def growth(self) -> Growth:
        """How its trees grow."""
        return Growth(self.n_trees, self.splits, self.n_tried, self.fewest, self.seed)

    @property
    def sufficient_statistics(self) -> Any:
        """The rows until the trees are grown, then the weight of each class in each leaf."""
        return CodedRows if self.structure is None else CountLeaves(self.structure)

    def carry_over_structure(self, earlier: RandomTrees) -> RandomTrees:
        """Return the earlier density with its trees."""
        return earlier

    def reindexed(self, columns: Sequence[Sequence[int]]) -> RandomTrees:
        """Return the density for other categories, by their indices here, −1 for a new one."""
        if self.structure is None:
            return self
        return replace(self, structure=self.structure.reindexed(columns))

    def with_components(self, components: Sequence[int]) -> RandomTrees:
        """Return the density for other components, by their indices here, −1 for a new one."""
        return self if self.structure is None else replace(self, structure=self.structure.with_components(components))

    def refine(self, statistics: Any) -> Refinement:
        """Return the density with its trees and its strengths, and the weights in their leaves.

        Leaves count all rows, also those that a tree did not grow on. If the rows are a sample, that takes a second
        pass.
        """
        if self.structure is not None:
            return Refined(self, statistics)
        refined, counts, _ = self.grown(self.deal(statistics))
        if statistics.is_complete:
            return Refined(refined, counts)
        return FurtherPass(refined.sufficient_statistics, partial(Refined, refined))

    def deal(self, rows: CodedRows, fold: Array | None = None, folds: int = FOLDS) -> DealtRows:
        """Return rows to grow the trees on, with their folds; by default these are dealt by the cells."""
        d = len(rows.cardinalities)
        rank = np.array(self.rank or range(d), np.int64)
        return DealtRows.of(rows, np.isin(np.arange(d), self.ordered), rank, fold, folds)

    def grown(self, dealt: DealtRows) -> tuple[RandomTrees, LeafCounts, Array]:
        """Return the density with trees grown on these rows, and its strengths learned from them.

        The other results are the counts of all these rows, and in each leaf those of the rows that are not in the fold
        of its tree.
        """
        rows = dealt.rows
        trees = dealt.grow(self.growth, self.n_jobs)
        counts, outside = dealt.count(trees)
        learned, prior = self, smoothed_prior(np.bincount(rows.component, rows.weight, rows.n_components))
        if self.strength is None:
            found = dealt.strengths(trees, replace(counts, leaves=outside), prior, self.n_jobs)
            learned = replace(self, of_weights=tuple(map(tuple, found.tolist())))
        if self.leaf_weights == "conditional":
            changed = conditional_changes(
                dealt, trees, replace(counts, leaves=outside), learned.strengths, prior, self.n_jobs
            )
            trees = replace(trees, change=changed)
        return replace(learned, structure=trees, n_jobs=None), counts, outside

    @property
    def strengths(self) -> Array:
        """The pseudo-rows of back-off of inner nodes and of leaves, by the size of their weight, (2, L)."""
        return np.array(self.of_weights or [[self.strength or 0.0]] * 2, np.float64)

    def of_trees(self, first: int, last: int) -> tuple[RandomTrees, slice]:
        """Return the density of the trees from first to before last, and the numbers of their leaves."""
        structure, leaves = self._trees.take(first, last)
        return replace(self, structure=structure, n_trees=last - first), leaves

    def estimate(self, statistics: LeafCounts) -> RandomTreesParameters:
        """Return the smoothed class distributions of all nodes."""
        return RandomTreesParameters(self._trees, self.combine == "geometric", statistics, self.strengths)

    def log_density(self, parameters: RandomTreesParameters, tile: Codes) -> Array:
        """Return the log of the mean over the trees of p_t(x | z) in nats, (n, Z)."""
        log_p = np.full((len(tile.values), len(parameters.prior)), -np.inf)
        kernels.forest_density(codes_of(tile), *parameters.of_nodes, log_p)
        log_p += _log_masses(parameters, tile).sum(axis=1, keepdims=True)
        return log_p

    def log_scores(self, parameters: RandomTreesParameters, tile: Codes) -> Array:
        """Return log p(z | x) − log p(z), (n, Z); less that of the first class for the geometric mean."""
        trees, geometric = parameters.trees, parameters.geometric
        means = mean_scores(trees, parameters, parameters.leaf_values, codes_of(tile), slice(0, trees.n_trees))
        return np.pad(means, ((0, 0), (1, 0))) if geometric else np.log(means)

    def log_factors(self, parameters: RandomTreesParameters, tile: Codes) -> Array:
        """Return the contribution of each column to the mean over the trees of log p_t(x | z) in nats, (n, Z, d).

        It is 0 for a missing cell.

        Raises
        ------
        ValueError
            Trees are combined by the arithmetic mean, whose logarithm is no sum over the columns.
        """
        if not parameters.geometric:
            raise ValueError(
                'the arithmetic mean of trees is no sum of log factors; use combine="geometric" to explain predictions'
            )
        n, d = tile.values.shape
        factors = np.zeros((n, len(parameters.prior), d))
        kernels.explain_forest(codes_of(tile), *parameters.of_nodes, False, factors)
        factors += _log_masses(parameters, tile)[:, np.newaxis]
        return factors

    def sample(self, parameters: RandomTreesParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d): a tree, a leaf of it given the class, and the cells within the leaf."""
        trees = parameters.trees
        starts = np.concatenate([[0], np.cumsum(np.array(parameters.cardinalities, np.int64) + 1)])
        given = parameters.given
        codes = np.zeros((len(component), len(parameters.cardinalities)), np.uint32)
        for i, (z, t) in enumerate(
            zip(component.tolist(), rng.integers(trees.n_trees, size=len(component)).tolist(), strict=True)
        ):
            mass = parameters.mass.copy()
            node = int(trees.roots[t])
            while trees.nodes[node, 0] >= 0:
                j, cut, child = trees.nodes[node].tolist()
                left = parameters.share[node] * given[child, z]
                right = (1.0 - parameters.share[node]) * given[child + 1, z]
                side = int(rng.random() * (left + right) >= left)
                cells = mass[starts[j] : starts[j + 1]]
                if trees.ordered[j]:
                    cells[cut + 1 :] *= side
                    cells[: cut + 1] *= 1 - side
                else:  # categories without a side keep their probability on both
                    sides = trees.sides[cut : cut + len(cells)]
                    chosen, other = cells[sides == 1 + side].sum(), cells[sides == 2 - side].sum()
                    cells[sides == 1 + side] *= (chosen + other) / (chosen or 1.0)
                    cells[sides == 2 - side] = 0.0
                node = child + side
            for j in range(len(parameters.cardinalities)):
                cumulative = np.cumsum(mass[starts[j] : starts[j + 1]])
                if cumulative[-1] > 0:
                    codes[i, j] = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
        return codes

    def information_gain(self, statistics: LeafCounts) -> Array:
        """Return the mean over the trees of Σ n_node/n·I(side; y | node) of each column in nats, (d,)."""
        trees = self._trees
        weight = trees.weights(statistics.leaves)
        n = max(float(weight[trees.roots[:-1]].sum()), np.finfo(np.float64).tiny)
        child = trees.nodes[:, 2]
        inner = np.flatnonzero(trees.nodes[:, 0] >= 0)
        entropy = _entropies(weight)
        gained = entropy[inner] - entropy[child[inner]] - entropy[child[inner] + 1]
        return np.bincount(trees.nodes[inner, 0], gained, len(trees.ordered)) / n

    def n_parameters(self, parameters: RandomTreesParameters) -> int:
        """Return the free parameters: p(y, leaf) of each tree, and p(x_j) of each code."""
        n_leaves, z = parameters.trees.n_leaves, len(parameters.prior)
        return n_leaves * z - parameters.trees.n_trees + sum(max(k - 1, 0) for k in parameters.cardinalities)


def _entropies(weight: Array) -> Array:
    """Return n·H(y) in nats of each row of weights (nodes, Z)."""
    n = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(weight > 0, weight * np.log(weight), 0.0).sum(axis=1)
        return np.where(n > 0, n * np.log(np.where(n > 0, n, 1.0)) - terms, 0.0)


def _log_masses(parameters: RandomTreesParameters, tile: Codes) -> Array:
    """Return log p(x_j) of each cell, (n, d), 0 where missing."""
    starts = np.concatenate([[0], np.cumsum(np.array(parameters.cardinalities, np.int64) + 1)])[:-1]
    mass = parameters.mass[starts + tile.values.astype(np.int64)]
    return np.log(np.where(tile.values > 0, mass, 1.0))
