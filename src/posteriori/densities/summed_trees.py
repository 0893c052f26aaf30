"""Trees whose sum corrects other models: each is grown on what the models and the trees before it leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.families import check_rank
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.densities.tree_growing import (
    CELLS_PER_THREAD,
    FOLDS,
    DealtRows,
    in_threads,
    join_trees,
    mean_scores,
    smoothed_prior,
    threads_for,
)
from posteriori.kernels.loops.forests import SUM
from posteriori.statistics.counts import Counts
from posteriori.statistics.forests import CodedRows, TreeStructure, codes_of
from posteriori.support.checks import check_equal, check_not_negative, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind, Column

MOST_TREES = 2000
_PATIENCE = 40  # trees without a lower loss, after which the growth ends
_RATE = 0.05  # of Newton's step
_RIDGE, _SMOOTH = 1.0, 10.0  # added to the Hessian, in rows: of every leaf, and of sets of categories
_LEAVES, _FEWEST = (15, 31), (10.0, 20.0)  # the most leaves of a tree, the fewest rows of a leaf: of few rows, of many
_MANY = 2000  # rows
_LEAST_GAIN = 1e-6  # nats per row by which a tree lowers the loss at least
_SURE = 1.0  # standard errors by which held-out rows have to be predicted better than without trees
_ROWS, _COLUMNS = 0.8, 0.7  # shares that a tree grows on
_FEWEST_COLUMNS = 3  # that a tree grows on: a rule over two columns takes both
_STEPS = 4096  # per nat: values of leaves are rounded, which takes a third of the space


@dataclass(frozen=True)
class SummedTreesParameters:
    """The trees, whose values of leaves are what they add to log p(y | x), up to a constant of the leaf."""

    trees: TreeStructure

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what follows from them

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of categories or bins of each column."""
        return self.trees.cardinalities

    @property
    def share(self) -> Array:
        """The share of the rows of a node that goes left, (nodes,)."""
        return self.trees.share

    @cached_property
    def log_edge(self) -> Array:
        """0 for the edge into each node, (nodes,): a row with the cell of the split is on one side."""
        return np.zeros(len(self.trees.nodes))

    @cached_property
    def edge(self) -> Array:
        """1 for the edge into each node, (nodes,)."""
        return np.ones(len(self.trees.nodes))

    @cached_property
    def given_node(self) -> Array:
        """The change of log p(y | x) by each node, less that of its root, times the number of trees, (nodes, Z).

        That of a node above leaves is the mean over the leaves with their shares.
        """
        trees, value = self.trees, self._value
        of_roots = np.repeat(value[trees.roots[:-1]], np.diff(trees.roots), axis=0)
        return np.asarray((value - of_roots) * trees.n_trees)

    @property
    def constant(self) -> Array:
        """The sum of the values of all roots, (Z,), which is not in f, so that nothing known has f = 0."""
        return np.asarray(self._value[self.trees.roots[:-1]].sum(axis=0))

    @cached_property
    def _value(self) -> Array:
        """The values of nodes, (nodes, Z)."""
        trees = self.trees
        value = np.zeros((len(trees.nodes), trees.change.shape[1]))
        value[trees.nodes[:, 0] < 0] = trees.change
        for at, right in reversed(list(trees.levels())):
            share = self.share[at, np.newaxis]
            value[at] = share * value[right - 1] + (1.0 - share) * value[right]
        return value

    @property
    def given(self) -> Array:
        """The same, which kernels take."""
        return self.given_node

    @cached_property
    def prior(self) -> Array:
        """One entry for each class, (Z,)."""
        return np.ones(self.trees.change.shape[1])

    @cached_property
    def leaf_values(self) -> Array:
        """Contribution of each leaf to the scores of its rows, less that of the first class, (leaves, Z − 1)."""
        value = self.given_node[self.trees.nodes[:, 0] < 0]
        return np.ascontiguousarray(value[:, 1:] - value[:, :1])

    combine: ClassVar[int] = SUM

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        check_equal("the shape of the values of leaves", self.trees.change.shape, (self.trees.n_leaves, n_components))


@dataclass(frozen=True)
class SummedTrees(BaseDensity):
    r"""Scores of the classes that are a sum over trees, grown one after the other on what is left to learn.

    .. math:: p(y \mid x) \propto q(y \mid x) \exp f_y(x), \qquad f_y(x) = \sum_t v_{t,\,l_t(x),\,y}

    q is what other models predict of rows that they have not learned from; by itself the class prior. Tree t is grown
    on the gradient of the log-loss along a random direction u in the space of classes, g_i = u · (p_i − e_{y_i}), and
    each of its leaves takes a shrunken Newton step of every class, v = −η G_y / (H_y C / (C − 1) + λ). So a tree costs
    the same however many classes there are. Trees grow until the rows of the folds, of which each has trees of its own,
    are predicted best.

    A missing cell sends a row down both sides, with their shares: f of such a row is the mean of its leaves, and 0
    where nothing is known. f is no distribution of the columns.

    Parameters
    ----------
    ordered : tuple of int
        The columns of numbers, which a cut splits, by their positions. The others split by two sets of categories.
    n_trees : int, optional
        None for the number that predicts held-out rows best.
    seed : int
    structure : TreeStructure, optional
        None until the trees are grown. Its `change` holds v.
    n_jobs : int, optional
        Threads, one for each fold.
    rank : tuple of int
        The place of each column in the order of their names, by which the last ties are broken; empty for their own
        order.

    References
    ----------
    Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (2001). Chen &
    Guestrin, XGBoost: a scalable tree boosting system, KDD 2016 (the gain, λ). Ke et al., LightGBM, NeurIPS 2017 (the
    leaf of the greatest gain first, sets of categories). Iosipoi & Vakhrushev, SketchBoost, NeurIPS 2022 (random
    directions).
    """

    ordered: tuple[int, ...]
    n_trees: int | None = None
    seed: int = 0
    structure: TreeStructure | None = None
    n_jobs: int | None = None
    rank: tuple[int, ...] = ()
    name = "summed trees"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    second_pass = ""
    chosen_once = "the trees"
    is_normalised = False
    fitted = SummedTreesParameters

    def check(self) -> None:
        """Raise ValueError if a number is out of its range."""
        require(self.n_trees is None or self.n_trees >= 1, f"n_trees is {self.n_trees}; it must be 1 or more")
        check_not_negative("seed", self.seed)

    def check_fitted(self, parameters: SummedTreesParameters) -> None:
        """Raise ValueError unless the parameters are those of these trees."""
        check_equal("the trees", parameters.trees, self.structure)
        trees = parameters.trees
        check_rank(self.rank, len(trees.cardinalities))
        check_equal(
            "the columns of numbers", tuple(np.flatnonzero(trees.ordered).tolist()), tuple(sorted(self.ordered))
        )

    @property
    def sufficient_statistics(self) -> Any:
        """The rows until the trees are grown, then counts of the cells, which change no tree."""
        return CodedRows if self.structure is None else Counts

    def carry_over_structure(self, earlier: SummedTrees) -> SummedTrees:
        """Return the earlier density with its trees."""
        return earlier

    def reindexed(self, columns: Sequence[Sequence[int]]) -> SummedTrees:
        """Return the density for other categories, by their indices here, −1 for a new one."""
        return self if self.structure is None else replace(self, structure=self.structure.reindexed(columns))

    def with_components(self, components: Sequence[int]) -> SummedTrees:
        """Return the density for other components, by their indices here, −1 for a new one."""
        return self if self.structure is None else replace(self, structure=self.structure.with_components(components))

    def refine(self, statistics: Any) -> Refinement:
        """Return the density with its trees, grown from the class prior on, and the counts of the cells."""
        if self.structure is not None:
            return Refined(self, statistics)
        rows: CodedRows = statistics
        dealt = self.deal(rows)
        prior = smoothed_prior(np.bincount(rows.component, rows.weight, rows.n_components))
        refined, _ = self.grown(dealt, np.tile(np.log(prior), (len(rows.codes), 1)))
        if not rows.is_complete:
            return FurtherPass(Counts, partial(Refined, refined))
        assignment = Assignment(rows.component, rows.weight, rows.n_components)
        return Refined(refined, Counts.of(Codes(rows.codes, rows.cardinalities), assignment))

    def deal(self, rows: CodedRows, fold: Array | None = None, folds: int = FOLDS) -> DealtRows:
        """Return rows to grow the trees on, with their folds; by default these are dealt by the cells."""
        d = len(rows.cardinalities)
        rank = np.array(self.rank or range(d), np.int64)
        return DealtRows.of(rows, np.isin(np.arange(d), self.ordered), rank, fold, folds)

    def grown(
        self, dealt: DealtRows, start: Array, in_time: Callable[[], bool] = lambda: True
    ) -> tuple[SummedTrees, tuple[SummedTrees, ...]]:
        """Return the density with trees grown on all rows, and with those grown on the rows outside each fold.

        Parameters
        ----------
        dealt : DealtRows
        start : ndarray (n, Z)
            log q of each row, in the order that the rows had before they were dealt.
        in_time : callable
            Asked before each tree of the folds: whether there is time for it, and for as many trees of all rows.
        """
        dealt = _with_equal_rows_in_order(dealt, start)
        rows = dealt.rows
        one_class = rows.n_components < 2 or not len(dealt.order.columns)
        codes, offset = dealt.order.encoded(), _in_order(dealt, start)
        sums = [_Sum.of(dealt, codes, offset, k) for k in range(dealt.folds)]
        whole = _Sum.of(dealt, codes, offset, None)
        draws = _Draws(len(codes), len(dealt.order.columns), rows.n_components, self.seed)
        most = 0 if one_class else self.n_trees or MOST_TREES
        work = len(sums) * len(codes) * min(codes.shape[1], 10) / CELLS_PER_THREAD
        with in_threads(threads_for(len(sums), self.n_jobs, work)) as map_folds:
            n_trees = _enough(draws, sums, most, map_folds, in_time) if self.n_trees is None else most
            for turn in range(n_trees):
                whole.add_tree(draws.of(turn))
            for _ in map_folds(lambda one: one.grow_to(n_trees, draws), sums):
                pass
        return self._of(whole, n_trees), tuple(self._of(one, n_trees) for one in sums)

    def _of(self, grown: _Sum, n_trees: int) -> SummedTrees:
        return replace(self, structure=grown.structure(n_trees), n_jobs=None)

    def estimate(self, statistics: Any) -> SummedTreesParameters:
        """Return the trees, which statistics do not change."""
        del statistics
        if self.structure is None:
            raise ValueError("the trees are not grown yet; call `refine` on the density first")
        return SummedTreesParameters(self.structure)

    def log_density(self, parameters: SummedTreesParameters, tile: Codes) -> Array:
        """Return f less that of the first class in nats, (n, Z), which is no log density."""
        trees = parameters.trees
        means = mean_scores(trees, parameters, parameters.leaf_values, codes_of(tile), slice(0, trees.n_trees))
        return np.pad(means, ((0, 0), (1, 0)))

    log_scores = log_density

    def log_factors(self, parameters: SummedTreesParameters, tile: Codes) -> Array:
        """Return the contribution of each column to f in nats, (n, Z, d); 0 for a missing cell.

        Along the path of a row, a split adds the change of the value of the node to its column (path-dependent
        contributions, Saabas 2014), of both sides with their shares where the cell of a split is missing.
        """
        factors = np.zeros((len(tile.values), parameters.trees.change.shape[1], len(parameters.cardinalities)))
        trees = parameters.trees
        kernels.explain_forest(
            codes_of(tile),
            trees.nodes,
            trees.roots,
            trees.sides,
            trees.ordered,
            parameters.share,
            parameters.log_edge,
            parameters.given_node,
            True,
            factors,
        )
        return factors

    def sample(self, parameters: SummedTreesParameters, component: Array, rng: np.random.Generator) -> Array:
        """Raise ValueError: a sum of trees is no distribution of the columns."""
        raise ValueError("a sum of trees is no distribution of the columns, so that it has no rows to draw")

    def n_parameters(self, parameters: SummedTreesParameters) -> int:
        """Return the number of values of leaves, of which one for each leaf is free to be 0."""
        return int(parameters.trees.n_leaves * max(parameters.trees.change.shape[1] - 1, 0))


def _in_order(dealt: DealtRows, start: Array) -> Array:
    """Return log q of rows and classes in the canonical order."""
    return np.ascontiguousarray(start[dealt.order.chosen][:, np.argsort(dealt.order.place)])


def _with_equal_rows_in_order(dealt: DealtRows, start: Array) -> DealtRows:
    """Return the rows with equal ones in the order of log q: what they draw must not depend on where they were."""
    order, rows = dealt.order, dealt.rows
    parts = [*rows.codes.T, rows.component, rows.weight]
    differs = np.any([part[1:] != part[:-1] for part in parts], axis=0)
    group = np.concatenate([np.zeros(min(len(rows.codes), 1), np.int64), np.cumsum(differs)])
    place = np.lexsort((*_in_order(dealt, start).T, group))
    moved = replace(order, rows=rows.take(place), chosen=order.chosen[place])
    return replace(dealt, order=moved, fold=dealt.fold[place])


@dataclass(frozen=True)
class _Draws:
    """The draws of each tree, alike for all folds."""

    n: int
    d: int
    n_classes: int
    seed: int

    def of(self, turn: int) -> tuple[Array, Array, Array, np.uint64]:
        """Return a mask of rows, columns, a direction in the space of classes, and the seed of a tree."""
        rng = np.random.default_rng([self.seed, turn])
        direction = np.array([0.0, 1.0]) if self.n_classes == 2 else rng.standard_normal(self.n_classes)
        columns = np.sort(rng.permutation(self.d)[: max(round(_COLUMNS * self.d), min(self.d, _FEWEST_COLUMNS))])
        return rng.random(self.n) < _ROWS, columns, direction, rng.integers(2**63, dtype=np.uint64)


@dataclass(frozen=True)
class _Sum:
    """Trees on the rows outside one fold, or on all of them, and the state of their growth in the canonical order."""

    dealt: DealtRows
    codes: Array  # (n, v)
    component: Array  # (n,)
    # weight, held_out (n,): of the rows that the trees are grown on, and of the others; 0 for the rest
    weight: Array
    held_out: Array
    log_p: Array  # (n, C): log q + f up to a constant
    p: Array  # (n, C)
    gradient: Array  # (n,)
    hessian: Array  # (n,)
    trees: list[tuple[Array, Array, Array, Array]]  # nodes, shares and sides, and values of nodes

    @classmethod
    def of(cls, dealt: DealtRows, codes: Array, offset: Array, fold: int | None) -> _Sum:
        """Return the sum without trees; without a fold there are no held-out rows."""
        rows = dealt.rows
        is_held = np.zeros(len(codes), np.bool_) if fold is None else dealt.fold == fold
        n, held_out = len(codes), np.where(is_held, rows.weight, 0.0)
        component = dealt.order.place[rows.component].astype(np.int32)
        empty = np.zeros(offset.shape), np.zeros(n), np.zeros(n)
        return cls(dealt, codes, component, rows.weight - held_out, held_out, offset.copy(), *empty, [])

    def losses(self) -> Array:
        """Return the weighted log-loss of each held-out row, with the last p."""
        judged = np.flatnonzero(self.held_out)
        of_truth: Array = self.p[judged, self.component[judged]]
        return -self.held_out[judged] * np.log(np.maximum(of_truth, 1e-300))

    def add_tree(self, drawn: tuple[Array, Array, Array, np.uint64]) -> Array:
        """Grow one more tree, and return the log-loss of each held-out row without it."""
        mask, columns, direction, seed = drawn
        of_rows, order = (self.component, self.weight), self.dealt.order
        kernels.take_gradients(self.log_p, *of_rows, direction, self.p, self.gradient, self.hessian)
        losses = self.losses()
        widths = np.array([self.dealt.rows.cardinalities[j] + 1 for j in order.columns[columns]], np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
        rows = np.flatnonzero(mask & (self.weight > 0)).astype(np.int32)
        ordered, is_many = order.ordered[order.columns], int(len(self.codes) >= _MANY)
        nodes, share, sides, ends = kernels.grow_summand(
            self.codes,
            rows,
            columns,
            starts,
            ordered,
            self.gradient,
            self.hessian,
            _LEAVES[is_many],
            _FEWEST[is_many],
            _RIDGE,
            _SMOOTH,
            seed,
        )
        values = np.zeros((len(nodes), self.p.shape[1]))
        kernels.fill_steps(self.p, *of_rows, rows, nodes, ends, _RIDGE, _RATE, values)
        values = np.round(values * _STEPS) / _STEPS
        kernels.add_values(self.codes, nodes, share, sides, ordered, values, self.log_p)
        self.trees.append((nodes, share, sides, values))
        return losses

    def grow_to(self, n_trees: int, draws: _Draws) -> None:
        for turn in range(len(self.trees), n_trees):
            self.add_tree(draws.of(turn))

    def structure(self, n_trees: int) -> TreeStructure:
        """Return the first trees on the columns, categories and classes as they are."""
        order = self.dealt.order
        none = np.array([[-1, 0, 0]], np.int32), np.full(1, 0.5), np.empty(0, np.uint8)
        grown = [order.restored(nodes, share, sides) for nodes, share, sides, _ in self.trees[:n_trees]] or [none]
        joined = join_trees(self.dealt.rows.cardinalities, order.ordered, grown)
        of_leaves = [values[nodes[:, 0] < 0] for nodes, _, _, values in self.trees[:n_trees]]
        change = np.concatenate(of_leaves or [np.zeros((1, len(order.place)))])[:, order.place]
        return replace(joined, change=np.ascontiguousarray(change, np.float32))


def _enough(
    draws: _Draws, sums: Sequence[_Sum], most: int, map_folds: Callable[..., Any], in_time: Callable[[], bool]
) -> int:
    """Return the number of trees with which the rows of all folds are predicted best; grows some more, if in time.

    It is 0 where that is better than no tree by less than a standard error of the sum over the rows.
    """
    best, least, first = 0, np.zeros(0), np.zeros(0)
    for turn in range(most + 1):
        drawn = draws.of(turn)
        losses = np.concatenate(list(map_folds(lambda one, of_turn=drawn: one.add_tree(of_turn), sums)))
        first = losses if turn == 0 else first
        if turn == 0 or losses.sum() < least.sum() - _LEAST_GAIN * len(losses):
            best, least = turn, losses
        if turn - best >= _PATIENCE or not in_time():
            break
    gain = first - least
    return best if gain.sum() > _SURE * np.sqrt(len(gain)) * gain.std() else 0
