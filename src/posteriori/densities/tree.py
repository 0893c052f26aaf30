"""Tree-augmented densities: given the component, each column depends on at most one other column."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, ConditionalNormal
from posteriori.densities.conditional import BackOff, Family, draw, without_missing
from posteriori.densities.families import CountsOfFamilies, check_rank
from posteriori.densities.refinement import Refined
from posteriori.densities.tree_parameters import (
    Forest,
    Normals,
    TreeParameters,
    normals_given,
    table_starts,
    table_widths,
)
from posteriori.densities.within_ranges import Box, truncated_normal
from posteriori.statistics.counts import JointCounts
from posteriori.statistics.moments import Moments
from posteriori.statistics.pairs import (
    Dependence,
    Pairs,
    Penalty,
    as_compared,
    contents_of,
    dependence_of_pairs,
    information_about_component,
    mixed_forest,
    order_of_columns,
)
from posteriori.support.checks import check_equal, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Mixed, Numbers, split_by_component
from posteriori.tables.schema import CellKind


@dataclass(frozen=True)
class Tree(BaseDensity):
    r"""p(x | z) = Π_j p(x_j | x_{parent(j)}, z), along a maximum-weight spanning tree of mutual information.

    A category given its parent has a smoothed table. A number given a category has one Gaussian per category, and given
    a number a linear regression with Gaussian noise. The parent of a category is never a number.

    Parameters
    ----------
    smoothing : BackOff
        Smoothing of the tables. Its strength also shrinks Gaussians and regressions towards p(x_j | z), in pseudo-rows.
    one_tree : bool, default True
        True: one tree for all components, with weights I(x_i; x_j | z). False: one tree per component, with its own
        I(x_i; x_j).
    penalty : {"aic", "bic"}, optional
        The penalty that the gain of an edge must exceed for the edge to be kept.
    expects : bool, default False
        If cells are missing. True: the tables are maximum-likelihood estimates by EM. False: they are estimated from
        the rows in which both cells are present, from which the tree itself is always learned. For columns of codes
        alone.
    forest : Forest, optional
        The trees, if they are fixed, as `refine` fixes them before EM.
    rank : tuple of int
        The place of each column in the order of their names, by which the last ties are broken; empty for their own
        order.

    Notes
    -----
    The root of a tree is its first column by I(x_j; z) (`order_of_columns`), and equal edges are taken in this order.
    With smoothing the direction of an edge matters, so it must not depend on the order of the columns.

    Missing cells are summed and integrated out exactly, by messages from the leaves to the roots: O(d·K²) per row
    and component, and O(d) if only leaves are missing.

    References
    ----------
    Chow & Liu (1968). Friedman, Geiger & Goldszmidt (1997), section 4. Edwards, de Abreu & Labouriau, Selecting
    high-dimensional mixed graphical models using minimal AIC or BIC forests, BMC Bioinformatics 11 (2010).
    """

    smoothing: BackOff
    one_tree: bool = True
    penalty: Penalty = None
    expects: bool = False
    forest: Forest | None = None
    rank: tuple[int, ...] = ()
    name = "tree"
    kind: ClassVar[CellKind] = "mixed"
    sufficient_statistics = Pairs
    support = "a category or a finite number"
    fitted = TreeParameters

    def check_fitted(self, parameters: TreeParameters) -> None:
        """Raise ValueError unless the parameters have the trees of the density."""
        require(
            self.one_tree == (len(parameters.parents) == 1) or parameters.n_components == 1,
            "the number of trees does not fit the density: one for all components, or one per component",
        )
        self.smoothing.check_columns(len(parameters.continuous))
        check_rank(self.rank, len(parameters.continuous))
        if self.forest is not None:
            check_equal("the trees", parameters.forest.parents, self.forest.parents)

    def out_of_support(self, tile: Mixed) -> Array:
        """Return which cells the density cannot produce: infinities."""
        result = np.zeros((len(tile.codes.values), len(tile.continuous)), np.bool_)
        result[:, np.array(tile.continuous, np.bool_)] = np.isinf(tile.numbers.values)
        return result

    @property
    def second_pass(self) -> str:
        """The parameter that requires a second pass, for messages; empty if none does."""
        return 'missing="em"' if self.expects and self.forest is None else ""

    def carry_over_structure(self, earlier: Tree) -> Tree:
        """Return the density itself: its trees are fixed for all rows or not at all."""
        del earlier
        return self

    def refine(self, statistics: Pairs) -> Refined:
        """Return the density with its trees, and statistics marked as inexact for EM if cells are missing."""
        if not self.expects or self.forest is not None:
            return Refined(self, statistics)
        forest = self._forest(statistics)
        return Refined(replace(self, forest=forest), replace(statistics, exact=not statistics.codes.has_missing()))

    def estimate(self, statistics: Pairs) -> TreeParameters:
        """Return the maximum-weight trees and the tables along them."""
        return self.along(self.forest or self._forest(statistics), statistics)

    def _forest(self, statistics: Pairs) -> Forest:
        dependence = dependence_of_pairs(statistics)
        weights = (dependence.shared() if self.one_tree else dependence).edge_weights(self.penalty)
        continuous = np.array(statistics.continuous, np.bool_)
        constant = _constant(statistics)  # numbers without a unit have no regression, and no other edge has a gain
        weights[:, constant] = weights[:, :, constant] = -np.inf
        order = _order_of(statistics, dependence, self.rank)
        parents = np.full((len(weights), len(continuous)), -1)
        for tree, weight in zip(parents, as_compared(weights), strict=True):
            found = np.array(mixed_forest(weight[np.ix_(order, order)], continuous[order]), np.int64)
            tree[order] = np.where(found >= 0, order[found], -1)
        known = np.maximum(parents, 0)
        edges = np.where(parents < 0, 0.0, np.take_along_axis(weights, known[:, :, np.newaxis], axis=2)[:, :, 0])
        return Forest(tuple(map(tuple, parents.tolist())), tuple(map(tuple, edges.tolist())))

    def along(self, forest: Forest, statistics: Pairs) -> TreeParameters:
        """Return the parameters along given trees."""
        parents, edge_weights = np.array(forest.parents, np.int64), np.array(forest.edge_weights)
        continuous, codes = statistics.continuous, statistics.codes
        mask = np.array(continuous, np.bool_)
        position = np.where(mask, np.cumsum(mask), np.cumsum(~mask)) - 1
        normals = Normals.of(statistics, self.smoothing.strength or 0.0)
        tables, lines = [np.empty(0)], [np.empty((0, 3))]
        # The order of `table_starts`: tree by tree, column by column, component by component.
        for number, tree in enumerate(parents.tolist()):
            components = slice(None) if len(parents) == 1 else slice(number, number + 1)
            for j, parent in enumerate(tree):
                if continuous[j]:
                    regression = normals_given(normals, statistics, int(position[j]), parent, position, self.smoothing)
                    lines.append(regression[components].reshape(-1, 3))
                else:
                    table = self.smoothing.log_conditional(_counts_along(codes, position, parent, j), j)
                    tables.append(table[components].ravel())
        start, _, _ = table_starts(mask, table_widths(mask, codes.cardinalities), parents, codes.n_components)
        return TreeParameters(
            continuous,
            codes.cardinalities,
            parents,
            edge_weights,
            start,
            np.concatenate(tables),
            normals.centre,
            np.concatenate(lines),
        )

    def log_density(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        codes = tile.codes.values
        out = np.empty((len(codes), parameters.n_components))
        rows = np.arange(len(codes))
        if parameters.family_tables:
            lost = np.zeros(len(codes), np.bool_)
            for number, families in enumerate(parameters.family_tables):
                group = slice(None) if len(parameters.family_tables) == 1 else slice(number, number + 1)
                out[:, group], lost_here = families.tree_log_density(codes)
                lost[lost_here] = True
            rows = np.flatnonzero(lost)
        if len(rows):
            kernels.tree_log_density(
                codes,
                tile.numbers.values - parameters.centre,
                parameters.position,
                np.array(parameters.continuous, np.bool_),
                parameters.widths,
                parameters.of_each(parameters.order),
                parameters.of_each(parameters.parents),
                parameters.start,
                parameters.table,
                parameters.normal,
                rows,
                out,
            )
        return out

    def expect_from_responsibilities(self, parameters: TreeParameters, tile: Mixed, responsibilities: Array) -> Pairs:
        """Return the expected counts along the trees of rows weighted by their responsibilities, (n, Z)."""
        pairs = split_by_component(tile, responsibilities)
        parts = (self.expect(parameters, cast(Mixed, part), given)[0] for part, given in pairs)
        return functools.reduce(operator.add, parts)

    def expect(self, parameters: TreeParameters, tile: Mixed, assignment: Assignment) -> tuple[Pairs, float]:
        """Return the expected counts along the trees and the log-likelihood of the present cells, in nats."""
        widths, d = parameters.widths, len(parameters.continuous)
        parents, order = parameters.of_each(parameters.parents), parameters.of_each(parameters.order)
        rows = np.where(parents >= 0, widths[parents], 1)
        ends = np.cumsum(rows * widths).reshape(rows.shape)
        start = ends - rows * widths
        cells = np.zeros(int(ends[-1, -1]))
        log_likelihood = kernels.expect_tree_counts(
            tile.codes.values,
            assignment.component,
            assignment.weight,
            widths,
            order,
            parents,
            parameters.start,
            np.exp(parameters.table),
            start,
            cells,
        )
        edges = sorted({(min(p, j), max(p, j)) for tree in parents.tolist() for j, p in enumerate(tree) if p >= 0})
        scopes: tuple[tuple[int, ...], ...] = (*((j,) for j in range(d)), *edges)
        counts = JointCounts.empty(parameters.cardinalities, scopes, parameters.n_components)
        for z, tree in enumerate(parents.tolist()):
            for j, p in enumerate(tree):
                table = cells[start[z, j] : ends[z, j]].reshape(rows[z, j], widths[j])
                counts.table((j,))[z] = table.sum(axis=0)
                if p >= 0:
                    counts.table((min(p, j), max(p, j)))[z] = table if p < j else table.T
        empty = replace(tile, numbers=Numbers(np.empty((0, 0))), codes=Codes(tile.codes.values[:0], ()))
        none = Pairs.of(empty, Assignment(assignment.component[:0], assignment.weight[:0], assignment.n_components))
        return replace(none, codes=counts, exact=False), log_likelihood

    def to_unconstrained(self, parameters: TreeParameters, reference: TreeParameters) -> Array:
        """Return the log-probabilities as a vector, clipped at −700 so that they stay finite."""
        del reference
        return np.maximum(parameters.table, -700.0)

    def from_unconstrained(self, vector: Array, reference: TreeParameters, statistics: Pairs) -> TreeParameters:
        """Return the parameters of these log-probabilities, normalised."""
        from scipy.special import logsumexp  # imported here, because few predictions need it

        del statistics
        table = np.zeros_like(vector)
        for j, width in enumerate(reference.widths.tolist()):
            for z, start in enumerate(reference.start[:, j].tolist()):
                parent = int(reference.of_each(reference.parents)[z, j])
                size = width if parent < 0 else width * int(reference.widths[parent])
                logits = vector[start : start + size].reshape(-1, width)[:, 1:]
                lines = np.zeros((len(logits), width))
                lines[:, 1:] = logits - logsumexp(logits, axis=1, keepdims=True) if width > 1 else logits
                table[start : start + size] = lines.ravel()
        return replace(reference, table=table)

    def log_factors(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return log p(x_j | the present columns before it in the tree, z) in nats, (n, Z, d).

        This is log p(x_j | x_parent, z) if the parent is present. The factors always add up to log p(x | z).
        """
        if not any(parameters.continuous):
            codes = tile.codes.values
            factors = parameters.looked_up(codes)
            rows = np.flatnonzero((codes[:, parameters.internal] == 0).any(axis=1))
            if len(rows):
                incomplete = replace(
                    tile,
                    codes=replace(tile.codes, values=codes[rows]),
                    numbers=Numbers(tile.numbers.values[rows]),
                )
                factors[rows] = self._gains(parameters, incomplete)
            return factors
        return self._gains(parameters, tile)

    def _gains(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return the increase in log density that each column adds to the columns before it in the tree, (n, Z, d)."""
        factors = np.empty((len(tile.codes.values), parameters.n_components, len(parameters.continuous)))
        for number, order in enumerate(parameters.order):
            group = slice(None) if len(parameters.order) == 1 else slice(number, number + 1)
            shown = np.zeros(len(order), np.bool_)
            before = np.zeros((len(factors), parameters.n_components))
            for j in order:
                shown[j] = True
                upto = self.log_density(parameters, only(tile, shown))
                with np.errstate(invalid="ignore"):
                    gain = upto - before
                factors[:, group, j] = np.where(np.isneginf(before), 0.0, gain)[:, group]
                before = upto
        return factors

    def left_out(self, parameters: TreeParameters, statistics: Pairs, tile: Mixed, assignment: Assignment) -> Array:
        """Return `log_factors` of each row under the tables without it, along the same trees.

        There is a closed form only if all columns hold codes; otherwise NaN (see `LeaveOneOutDensity`).
        """
        n, codes, d = len(tile.codes.values), statistics.codes, len(parameters.continuous)
        factors = np.full((n, parameters.n_components, d), np.nan)
        if any(parameters.continuous):
            return factors
        inner = tile.codes.values[:, parameters.internal]
        complete = (inner > 0).all(axis=1)
        open_rows = np.flatnonzero(~complete)
        rows = replace(tile.codes, values=tile.codes.values[complete])
        given = Assignment(assignment.component[complete], assignment.weight[complete], assignment.n_components)
        table = np.empty_like(parameters.table)
        for number, tree in enumerate(parameters.parents):
            parents = tuple(() if p < 0 else (p,) for p in tree.tolist())
            tables = [codes.single(j) if p < 0 else codes.pair(p, j) for j, p in enumerate(tree.tolist())]
            group = range(parameters.n_components) if len(parameters.parents) == 1 else range(number, number + 1)
            known = CountsOfFamilies.of(parents, tables)
            factors[complete, group.start : group.stop] = known.left_out(self.smoothing, rows, given, group)
            table[:] = parameters.table
            for i in open_rows.tolist():
                row = np.array([i])
                given_row = Assignment(assignment.component[row], assignment.weight[row], assignment.n_components)
                known.write_tree(self.smoothing, tile.codes.values[i], given_row, tree, parameters.start, group, table)
                without = replace(parameters, table=table)
                factors[i, group.start : group.stop] = _gains_of_row(without, tile.codes.values[i], number)[group]
        return factors

    def summed_columns(self, parameters: TreeParameters) -> Array:
        """Return the columns that are parents; none beside columns of numbers, where no row has a closed form."""
        return np.flatnonzero(parameters.internal & (not any(parameters.continuous)))

    most_parents: ClassVar[int] = 1

    def counted_families(self, parameters: TreeParameters, statistics: Pairs) -> Iterator[Family]:
        """Return the counts of each column with its parent, in the tree of each component; all columns hold codes."""
        position = np.arange(len(parameters.continuous))
        for number, tree in enumerate(parameters.parents.tolist()):
            shared = len(parameters.parents) == 1
            components = range(parameters.n_components) if shared else range(number, number + 1)
            for j, parent in enumerate(tree):
                yield Family(j, _counts_along(statistics.codes, position, parent, j), components)

    def with_fixed_structure(self, parameters: TreeParameters) -> Tree:
        """Return the density with its trees fixed."""
        return replace(self, forest=parameters.forest)

    def given(self, parameters: TreeParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of its parents in the trees of all components."""
        columns = parameters.parents.T.tolist()
        return tuple(tuple(sorted({parent for parent in of_trees if parent >= 0})) for of_trees in columns)

    def sample(self, parameters: TreeParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw rows, (n, d), of numbers and codes from 1, parents before children (ancestral sampling)."""
        nothing = np.full(len(parameters.continuous), np.inf)
        return self._sample(parameters, component, rng, -nothing, nothing)

    def sample_within(self, parameters: TreeParameters, component: Array, rng: np.random.Generator, box: Box) -> Array:
        """Draw rows, (n, d), with each number truncated to the edges of a box given its parent."""
        return self._sample(parameters, component, rng, *box.edges)

    def _sample(
        self, parameters: TreeParameters, component: Array, rng: np.random.Generator, low: Array, high: Array
    ) -> Array:
        rows = np.zeros((len(component), len(parameters.continuous)))
        trees = parameters.of_each(parameters.parents)
        centre = np.zeros(rows.shape[1])
        centre[np.array(parameters.continuous, np.bool_)] = parameters.centre
        for z in np.unique(component).tolist():
            drawn = np.flatnonzero(component == z)
            for j in parameters.of_each(parameters.order)[z].tolist():
                parent, start, width = int(trees[z, j]), int(parameters.start[z, j]), int(parameters.widths[j])
                given = rows[drawn, parent] if parent >= 0 else np.zeros(len(drawn))
                if parameters.continuous[j]:
                    regression = parent >= 0 and parameters.continuous[parent]
                    line = parameters.normal[start + (0 if regression else given.astype(np.int64))]
                    mean = line[..., 0] + line[..., 1] * (given - centre[parent] if regression else 0.0)
                    mean, sd = mean + centre[j], np.sqrt(line[..., 2])
                    if np.isinf(low[j]) and np.isinf(high[j]):
                        rows[drawn, j] = rng.normal(mean, sd)
                    else:
                        rows[drawn, j] = truncated_normal(mean, sd, low[j], high[j], rng)
                else:
                    size = width if parent < 0 else int(parameters.widths[parent]) * width
                    table = parameters.table[start : start + size].reshape(-1, width)
                    rows[drawn, j] = draw(table[given.astype(np.int64), 1:], rng)
        return rows

    def n_parameters(self, parameters: TreeParameters) -> int:
        """Return the number of parameters of p(x_j | x_parent, z), summed over components and columns."""
        total = 0
        for tree in parameters.of_each(parameters.parents).tolist():
            for j, parent in enumerate(tree):
                if parent >= 0 and parameters.continuous[parent]:
                    total += 3
                    continue
                configurations = 1 if parent < 0 else int(parameters.widths[parent]) - 1
                total += configurations * (2 if parameters.continuous[j] else max(int(parameters.widths[j]) - 2, 0))
        return total

    def describe(self, parameters: TreeParameters, position: int) -> dict[str, Array]:
        """Return the marginal mean and variance of a column of numbers, each (Z,); nothing for a column of codes."""
        if not parameters.continuous[position]:
            return {}
        marginals = [parameters.marginal_normal(z, position) for z in range(parameters.n_components)]
        mean, variance = np.array(marginals).T
        return {"mean": mean, "variance": variance}

    def conditional_tables(self, parameters: TreeParameters) -> list[tuple[tuple[int, ...], Array]]:
        """Return the parent of each column and log p(x_j | z, parent); the table of a column of numbers is empty."""
        above = _one_tree(parameters)
        return [
            (of_j, np.empty(0) if parameters.continuous[j] else without_missing(parameters.conditional(j, 0)))
            for j, of_j in enumerate(above)
        ]

    def conditional_normals(self, parameters: TreeParameters) -> dict[int, ConditionalNormal]:
        """Return the normal density of each column of numbers given its parent."""
        normals = {}
        for j, above in enumerate(_one_tree(parameters)):
            if not parameters.continuous[j]:
                continue
            coded = tuple(p for p in above if not parameters.continuous[p])
            n_lines = int(parameters.widths[coded[0]]) if coded else 1
            lines = np.stack([parameters.normal[start : start + n_lines] for start in parameters.start[:, j].tolist()])
            lines = lines[:, 1:] if coded else lines[:, 0]  # line 0 is that of a missing parent
            numbers = tuple(p for p in above if parameters.continuous[p])
            slopes = lines[..., 1:2] if numbers else np.zeros((*lines.shape[:-1], 0))
            shift = sum(slopes[..., 0] * parameters.centre[parameters.position[p]] for p in numbers)
            intercept = lines[..., 0] + parameters.centre[parameters.position[j]] - shift
            normals[j] = ConditionalNormal(coded, numbers, intercept, slopes, lines[..., 2])
        return normals

    def moments_of_numbers(self, statistics: Pairs) -> tuple[tuple[int, ...], Moments]:
        """Return the positions of the columns of numbers and their moments."""
        return tuple(j for j, number in enumerate(statistics.continuous) if number), statistics.numbers


def _one_tree(parameters: TreeParameters) -> list[tuple[int, ...]]:
    """Return the parent of each column; ValueError if the components have trees of their own."""
    if len(parameters.parents) > 1:
        raise ValueError(
            "each class has a tree of its own, so there is no one graph; TreeAugmentedNaiveBayes shares one"
        )
    return [() if p < 0 else (p,) for p in parameters.parents[0].tolist()]


def _constant(statistics: Pairs) -> Array:
    """Return the columns that show one number or one category, or none."""
    codes = statistics.codes
    shown = [np.count_nonzero(codes.column(j).any(axis=0)) for j in range(len(codes.cardinalities))]
    is_constant = np.empty(len(statistics.continuous), np.bool_)
    continuous = np.array(statistics.continuous, np.bool_)
    is_constant[continuous] = statistics.numbers.pooled().scatter[0] <= 0.0
    is_constant[~continuous] = np.array(shown, np.int64) < 2
    return np.flatnonzero(is_constant)


def _order_of(statistics: Pairs, dependence: Dependence, rank: tuple[int, ...]) -> Array:
    """Return the columns by what they hold; the I(x_j; z) of a number is that of Gaussians of one variance."""
    continuous = np.array(statistics.continuous, np.bool_)
    singles, numbers = statistics.codes.singles, statistics.numbers
    pooled = numbers.pooled()
    within = numbers.scatter.sum(axis=0)
    explained = np.divide(within, pooled.scatter[0], out=np.ones_like(within), where=pooled.scatter[0] > 0)
    relevance = np.empty(len(continuous))
    relevance[~continuous] = information_about_component(singles)
    relevance[continuous] = -0.5 * np.log(np.maximum(explained, 1e-15))
    of_codes, of_numbers = iter(contents_of(singles)), iter(pooled.weight[0].tolist())
    contents = [(next(of_numbers),) if number else next(of_codes) for number in statistics.continuous]
    return order_of_columns(relevance, dependence.information, contents, rank)


def _counts_along(codes: JointCounts, position: Array, parent: int, j: int) -> Array:
    """Return the weights of the codes of column j, with those of its parent if it has one, (Z, …, K_j + 1)."""
    return codes.single(position[j]) if parent < 0 else codes.pair(int(position[parent]), int(position[j]))


def only(tile: Mixed, shown: Array) -> Mixed:
    """Return the tile with the cells of the other columns missing."""
    continuous = np.array(tile.continuous, np.bool_)
    numbers = np.where(shown[continuous], tile.numbers.values, np.nan)
    codes = np.where(shown[~continuous], tile.codes.values, tile.codes.values.dtype.type(0))
    return replace(tile, numbers=Numbers(numbers), codes=Codes(codes, tile.codes.cardinalities))


def _gains_of_row(parameters: TreeParameters, codes: Array, tree: int) -> Array:
    """Return the log-density gains of `_gains` for one row of codes, (Z, d)."""
    d = len(codes)
    order = parameters.order[tree]
    rank = np.empty(d, np.int64)
    rank[order] = np.arange(d)
    shown = np.where(rank <= np.arange(d)[:, np.newaxis], codes, codes.dtype.type(0))
    upto = np.zeros((d, parameters.n_components))
    kernels.tree_log_density(
        shown,
        np.empty((d, 0)),
        parameters.position,
        np.zeros(d, np.bool_),
        parameters.widths,
        parameters.of_each(parameters.order),
        parameters.of_each(parameters.parents),
        parameters.start,
        parameters.table,
        parameters.normal,
        np.arange(d),
        upto,
    )
    before = np.concatenate([np.zeros((1, parameters.n_components)), upto[:-1]])
    with np.errstate(invalid="ignore"):
        gains = np.where(np.isneginf(before), 0.0, upto - before)
    return gains[rank].T
