"""A tree: each column depends on one other, given the component."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import logsumexp

from posteriori import kernels
from posteriori.densities.conditional import ROUNDING, BackOff, draw
from posteriori.densities.families import CountsOfFamilies, FamilyTables, lost_cells
from posteriori.densities.gaussian import SMALLEST_VARIANCE
from posteriori.densities.spanning_tree import Penalty, dependence_of_pairs, mixed_forest
from posteriori.densities.tree_tables import Normals, normals_given
from posteriori.densities.within_ranges import Box, truncated_normal
from posteriori.invariants import LARGEST_SQUARE, check_equal, check_numbers, check_places, require
from posteriori.statistics.joint_counts import JointCounts
from posteriori.statistics.pairs import Pairs, numbers_and_codes
from posteriori.tables.batch import Assignment, Codes, Mixed, Numbers, split_by_component
from posteriori.tables.schema import CellKind, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class TreeParameters:
    """A tree over the columns of a block, or one for each component, and p(x_j | x_parent, z) along it.

    Attributes
    ----------
    continuous : tuple of bool
        Of each column, whether it holds numbers.
    cardinalities : tuple of int
        K of each column of codes.
    parents : ndarray (T, d)
        The place of each column's parent, −1 at a root; T is 1 where the components share the tree, and else Z.
    edge_weights : ndarray (T, d)
        The mutual information of each column with its parent in nats a row, less its penalty; 0 at a root.
    start : ndarray (Z, d)
        Where the table of a column begins: in `table` if it holds codes, in `normal` if numbers.
    table : ndarray (slots,)
        log p(x_j | x_parent, z) in nats, each table (K_parent + 1, K_j + 1), code 0 missing.
    centre : ndarray (numbers,)
        Subtracted from the numbers, so that products of them lose no digit; in data units.
    normal : ndarray (lines, 3)
        Intercept, slope and variance of the numbers, about the centre: one line for each code of a parent, or one.
    """

    continuous: tuple[bool, ...]
    cardinalities: tuple[int, ...]
    parents: Array
    edge_weights: Array
    start: Array
    table: Array
    centre: Array
    normal: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters are of these columns and so many components."""
        continuous, coded = numbers_and_codes(columns)
        check_equal("which columns are numbers", self.continuous, continuous)
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in coded))
        d = len(columns)
        require(len(self.parents) in (1, n_components), "the number of trees is neither 1 nor that of the components")
        check_places("the parents", self.parents, (len(self.parents), d), -1, d)
        check_numbers("the weights of edges", self.edge_weights, self.parents.shape)
        require(all(len(parents_first(tree)) == d for tree in self.parents.tolist()), "a column is its own ancestor")
        number = np.array(continuous, np.bool_)
        require(not (number[self.parents] & (self.parents >= 0) & ~number).any(), "a number is parent of a category")
        start, n_slots, n_lines = places_of_tables(number, self.widths, self.parents, n_components)
        check_equal("where tables begin", self.start, start)
        check_numbers("the log-probabilities", self.table, (n_slots,), -np.inf, ROUNDING)
        check_numbers("the centre", self.centre, (int(number.sum()),))
        check_numbers("the regressions", self.normal, (n_lines, 3), high=LARGEST_SQUARE)
        check_numbers("the variances", self.normal[:, 2], (n_lines,), SMALLEST_VARIANCE, LARGEST_SQUARE)

    @property
    def n_components(self) -> int:
        """Z."""
        return len(self.start)

    @property
    def forest(self) -> Forest:
        """The trees alone."""
        return Forest(tuple(map(tuple, self.parents.tolist())), tuple(map(tuple, self.edge_weights.tolist())))

    @cached_property
    def position(self) -> Array:
        """Where each column stands among those of its kind, (d,)."""
        mask = np.array(self.continuous, np.bool_)
        return np.where(mask, np.cumsum(mask), np.cumsum(~mask)) - 1

    @cached_property
    def widths(self) -> Array:
        """K + 1 of each column of codes, 1 of a column of numbers, (d,)."""
        return table_widths(np.array(self.continuous, np.bool_), self.cardinalities)

    @cached_property
    def order(self) -> Array:
        """The columns of each tree, parents before their children, (T, d)."""
        return np.array([parents_first(parents) for parents in self.parents.tolist()], np.int64)

    def of_each(self, per_tree: Array) -> Array:
        """Return what is kept of each tree for each component, (Z, d)."""
        return np.ascontiguousarray(np.broadcast_to(per_tree, self.start.shape))

    @cached_property
    def internal(self) -> Array:
        """Which columns some tree makes a parent, (d,)."""
        return np.isin(np.arange(len(self.continuous)), self.parents)

    @cached_property
    def families(self) -> FamilyTables | None:
        """The tables side by side, where all columns hold codes and the components share the tree."""
        if any(self.continuous) or len(self.parents) > 1:
            return None
        parents = tuple(() if p < 0 else (p,) for p in self.parents[0].tolist())
        return FamilyTables.of(parents, [self.conditional(j) for j in range(len(parents))])

    def looked_up(self, codes: Array) -> Array:
        """Return log p(x_j | x_parent, z), (n, Z, d), of rows of codes that lack no parent."""
        parents = self.of_each(self.parents)
        above = np.where(parents >= 0, codes[:, np.maximum(parents, 0)], 0).astype(np.int64)
        return self.table[self.start + above * self.widths + codes[:, np.newaxis, :]]

    def conditional(self, j: int) -> Array:
        """Return log p(x_j | x_parent, z) of a column of codes, (Z, K_parent + 1, K_j + 1); (Z, K_j + 1) at a root.

        Meant for components that share the tree.
        """
        parent = int(self.parents[0, j])
        shape = (int(self.widths[j]),) if parent < 0 else (int(self.widths[parent]), int(self.widths[j]))
        size = int(np.prod(shape))
        return np.stack([self.table[start : start + size].reshape(shape) for start in self.start[:, j].tolist()])


@dataclass(frozen=True)
class Forest:
    """Trees over columns: of each, the parent of every column, −1 at a root, and what the edge to it gains in nats."""

    parents: tuple[tuple[int, ...], ...]
    edge_weights: tuple[tuple[float, ...], ...]

    def check(self) -> None:
        """Raise ValueError unless all trees are of the same columns, each of which has a parent and a weight."""
        d = len(self.parents[0]) if self.parents else 0
        require(len(self.parents) == len(self.edge_weights) > 0, "there is not one list of edge weights per tree")
        for tree, weights in zip(self.parents, self.edge_weights, strict=True):
            require(len(tree) == len(weights) == d, "a tree lacks a column")
            require(len(parents_first(list(tree))) == d, "a column is its own ancestor, or its parent is no column")
            require(bool(np.isfinite(weights).all()), "the weight of an edge is not finite")


@dataclass(frozen=True)
class Tree:
    r"""p(x | z) = Π_j p(x_j | x_{parent(j)}, z), the parents a spanning tree of most mutual information.

    A category given its parent is a smoothed table; a number given a category is a Gaussian for each value, and
    given a number a linear regression with Gaussian noise. A category never has a number for parent.

    Parameters
    ----------
    smoothing : BackOff
        Of tables; its strength also draws Gaussians and regressions towards p(x_j | z), as that many pseudo-rows.
    one_tree : bool, default True
        One tree for all components, of weights I(x_i; x_j | z), or one for each, of its own I(x_i; x_j).
    penalty : {"aic", "bic"}, optional
        What an edge must gain to be kept.
    expects : bool, default False
        Where cells are missing, whether the tables along the tree are of maximum likelihood by EM, or from the rows in
        which both cells are present. The tree itself always is of the latter. For columns of codes alone.
    forest : Forest, optional
        The trees, once they are known: what settles the density where EM follows.

    Notes
    -----
    Missing cells are summed and integrated out exactly, by messages from the leaves to the roots: O(d·K²) a row and
    component, and O(d) where only leaves are missing.

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
    name = "tree"
    kind: ClassVar[CellKind] = "mixed"
    sufficient_statistics = Pairs
    support = "a category or a finite number"
    has_full_support = True
    fitted = TreeParameters

    def check_fitted(self, parameters: TreeParameters) -> None:
        """Raise ValueError unless the parameters are along the trees of the density."""
        require(self.one_tree == (len(parameters.parents) == 1) or parameters.n_components == 1, "trees are missing")
        if self.forest is not None:
            check_equal("the trees", parameters.forest.parents, self.forest.parents)

    def out_of_support(self, tile: Mixed) -> Array:
        """Return which cells the density cannot produce: infinities."""
        result = np.zeros((len(tile.codes.values), len(tile.continuous)), np.bool_)
        result[:, np.array(tile.continuous, np.bool_)] = np.isinf(tile.numbers.values)
        return result

    @property
    def second_pass(self) -> str:
        """What takes a second look at the rows."""
        return 'missing="em"' if self.expects and self.forest is None else ""

    def carry_over_structure(self, earlier: Tree) -> Tree:
        """Return the density itself, which is settled for all rows or not at all."""
        del earlier
        return self

    def refine(self, statistics: Pairs, look: Callable[[Any], Any]) -> tuple[Tree, Pairs]:
        """Return the density with its trees, and statistics that EM is to expect, where cells are missing."""
        del look
        if not self.expects or self.forest is not None:
            return self, statistics
        forest = self._forest(statistics)
        return replace(self, forest=forest), replace(statistics, exact=not statistics.codes.has_missing())

    def estimate(self, statistics: Pairs) -> TreeParameters:
        """Return the trees of most information, and the tables along them."""
        return self.along(self.forest or self._forest(statistics), statistics)

    def _forest(self, statistics: Pairs) -> Forest:
        dependence = dependence_of_pairs(statistics)
        weights = (dependence.shared() if self.one_tree else dependence).edge_weights(self.penalty)
        continuous = np.array(statistics.continuous, np.bool_)
        parents = np.array([mixed_forest(one, continuous) for one in weights]).reshape(len(weights), len(continuous))
        known = np.maximum(parents, 0)
        edges = np.where(parents < 0, 0.0, np.take_along_axis(weights, known[:, :, np.newaxis], axis=2)[:, :, 0])
        return Forest(tuple(map(tuple, parents.tolist())), tuple(map(tuple, edges.tolist())))

    def along(self, forest: Forest, statistics: Pairs) -> TreeParameters:
        """Return the parameters along given trees."""
        parents, edge_weights = np.array(forest.parents, np.int64), np.array(forest.edge_weights)
        continuous, codes = statistics.continuous, statistics.codes
        n_components = codes.n_components
        mask = np.array(continuous, np.bool_)
        position = np.where(mask, np.cumsum(mask), np.cumsum(~mask)) - 1
        normals = Normals.of(statistics, self.smoothing.strength or 0.0)
        tables, lines = [], []
        groups = [slice(None)] if len(parents) == 1 else [slice(z, z + 1) for z in range(n_components)]
        for tree, group in zip(parents.tolist(), groups, strict=True):
            for j, parent in enumerate(tree):
                if continuous[j]:
                    given = normals_given(normals, statistics, int(position[j]), parent, position, self.smoothing)[
                        group
                    ]
                    lines.append(given.reshape(-1, 3))
                else:
                    counts = (
                        codes.single(position[j]) if parent < 0 else codes.pair(int(position[parent]), int(position[j]))
                    )
                    table = self.smoothing.log_conditional(counts)[group]
                    tables.append(table.ravel())
        start, _, _ = places_of_tables(mask, table_widths(mask, codes.cardinalities), parents, n_components)
        return TreeParameters(
            continuous,
            codes.cardinalities,
            parents,
            edge_weights,
            start,
            np.concatenate([np.empty(0), *tables]),
            normals.centre,
            np.concatenate([np.empty((0, 3)), *lines]),
        )

    def log_density(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        codes = tile.codes.values
        out = np.zeros((len(codes), parameters.n_components))
        families = parameters.families
        if families is None:
            rows = np.arange(len(codes))
        else:
            kernels.add_families(codes, families.families, families.log_probability, out)
            rows = np.flatnonzero((codes[:, parameters.internal] == 0).any(axis=1))
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

    def expect_shares(self, parameters: TreeParameters, tile: Mixed, shares: Array) -> Pairs:
        """Return the expected counts along the trees of rows of which every component has a share, (n, Z)."""
        pairs = split_by_component(tile, shares)
        parts = (self.expect(parameters, cast(Mixed, part), given)[0] for part, given in pairs)
        return functools.reduce(operator.add, parts)

    def expect(self, parameters: TreeParameters, tile: Mixed, assignment: Assignment) -> tuple[Pairs, float]:
        """Return the expected counts along the trees, and the log-likelihood of what is present, in nats."""
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
        """Return the log-probabilities, none below −700, as a vector."""
        del reference
        return np.maximum(parameters.table, -700.0)

    def from_unconstrained(
        self, to_unconstrained: Array, reference: TreeParameters, statistics: Pairs
    ) -> TreeParameters:
        """Return the parameters of these log-probabilities, made to sum to 1."""
        del statistics
        table = np.zeros_like(to_unconstrained)
        for j, width in enumerate(reference.widths.tolist()):
            for z, start in enumerate(reference.start[:, j].tolist()):
                parent = int(reference.of_each(reference.parents)[z, j])
                size = width if parent < 0 else width * int(reference.widths[parent])
                own = to_unconstrained[start : start + size].reshape(-1, width)[:, 1:]
                lines = np.zeros((len(own), width))
                lines[:, 1:] = own - logsumexp(own, axis=1, keepdims=True) if width > 1 else own
                table[start : start + size] = lines.ravel()
        return replace(reference, table=table)

    def log_factors(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return log p(x_j | what is known of the columns before it in the tree, z) in nats, (n, Z, d).

        That is log p(x_j | x_parent, z) wherever the parent is present, and their sum is always log p(x | z).
        """
        if not any(parameters.continuous):
            codes = tile.codes.values
            factors = parameters.looked_up(codes)
            rows = np.flatnonzero((codes[:, parameters.internal] == 0).any(axis=1))
            if len(rows):
                some = replace(tile, codes=replace(tile.codes, values=codes[rows]))
                factors[rows] = self._gains(parameters, replace(some, numbers=Numbers(tile.numbers.values[rows])))
            return factors
        return self._gains(parameters, tile)

    def _gains(self, parameters: TreeParameters, tile: Mixed) -> Array:
        """Return what each column adds to the log density of those before it in the tree, (n, Z, d)."""
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
        """Return what `log_factors` does of each row by the tables without it, along the same trees.

        In closed form where all columns hold codes; NaN elsewhere (see `LeaveOneOutDensity`), and for a row of which
        it is not clear whether an inner cell is missing, or holds a category that no other row shows.
        """
        n, codes, d = len(tile.codes.values), statistics.codes, len(parameters.continuous)
        factors = np.full((n, parameters.n_components, d), np.nan)
        if any(parameters.continuous):
            return factors
        inner = tile.codes.values[:, parameters.internal]
        complete = (inner > 0).all(axis=1)
        lost = lost_cells(np.flatnonzero(parameters.internal), codes, tile.codes, assignment)
        open_rows = np.flatnonzero(~complete & ~lost)
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
                one = Assignment(assignment.component[row], assignment.weight[row], assignment.n_components)
                known.write_tree(self.smoothing, tile.codes.values[i], one, tree, parameters.start, group, table)
                without = replace(parameters, table=table)
                factors[i, group.start : group.stop] = _gains_of_row(without, tile.codes.values[i], number)[group]
        return factors

    def with_fixed_structure(self, parameters: TreeParameters) -> Tree:
        """Return the density with the trees that it has found."""
        return replace(self, forest=parameters.forest)

    def given(self, parameters: TreeParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the place of its parent: of those in the trees of all components."""
        columns = parameters.parents.T.tolist()
        return tuple(tuple(sorted({parent for parent in of_trees if parent >= 0})) for of_trees in columns)

    def sample(self, parameters: TreeParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw rows, (n, d): numbers, and codes from 1; parents before their children."""
        nothing = np.full(len(parameters.continuous), np.inf)
        return self._sample(parameters, component, rng, -nothing, nothing)

    def sample_within(self, parameters: TreeParameters, component: Array, rng: np.random.Generator, box: Box) -> Array:
        """Draw rows, (n, d), each number truncated to the edges of a box given its parent."""
        return self._sample(parameters, component, rng, *box.edges)

    def _sample(
        self, parameters: TreeParameters, component: Array, rng: np.random.Generator, low: Array, high: Array
    ) -> Array:
        rows = np.zeros((len(component), len(parameters.continuous)))
        trees = parameters.of_each(parameters.parents)
        centre = np.zeros(rows.shape[1])
        centre[np.array(parameters.continuous, np.bool_)] = parameters.centre
        for z in np.unique(component).tolist():
            mine = np.flatnonzero(component == z)
            for j in parameters.of_each(parameters.order)[z].tolist():
                parent, start, width = int(trees[z, j]), int(parameters.start[z, j]), int(parameters.widths[j])
                given = rows[mine, parent] if parent >= 0 else np.zeros(len(mine))
                if parameters.continuous[j]:
                    regression = parent >= 0 and parameters.continuous[parent]
                    line = parameters.normal[start + (0 if regression else given.astype(np.int64))]
                    mean = line[..., 0] + line[..., 1] * (given - centre[parent] if regression else 0.0)
                    mean, sd = mean + centre[j], np.sqrt(line[..., 2])
                    if np.isinf(low[j]) and np.isinf(high[j]):
                        rows[mine, j] = rng.normal(mean, sd)
                    else:
                        rows[mine, j] = truncated_normal(mean, sd, low[j], high[j], rng)
                else:
                    size = width if parent < 0 else int(parameters.widths[parent]) * width
                    table = parameters.table[start : start + size].reshape(-1, width)
                    rows[mine, j] = draw(table[given.astype(np.int64), 1:], rng)
        return rows

    def n_parameters(self, parameters: TreeParameters) -> int:
        """Return Σ over components and columns of those of p(x_j | x_parent, z)."""
        total = 0
        for tree in parameters.of_each(parameters.parents).tolist():
            for j, parent in enumerate(tree):
                if parent >= 0 and parameters.continuous[parent]:
                    total += 3
                    continue
                configurations = 1 if parent < 0 else int(parameters.widths[parent]) - 1
                total += configurations * (2 if parameters.continuous[j] else max(int(parameters.widths[j]) - 2, 0))
        return total


def table_widths(continuous: Array, cardinalities: Sequence[int]) -> Array:
    """Return K + 1 of each column of codes, 1 of a column of numbers, (d,)."""
    widths = np.ones(len(continuous), np.int64)
    widths[~continuous] = np.array(cardinalities, np.int64) + 1
    return widths


def places_of_tables(continuous: Array, widths: Array, parents: Array, n_components: int) -> tuple[Array, int, int]:
    """Return where the table of each component and column begins, (Z, d), and how many slots and lines there are.

    Tables of codes and lines of numbers are stored apart: tree by tree, column by column, component by component.

    Parameters
    ----------
    continuous, widths : ndarray (d,)
    parents : ndarray (T, d)
    n_components : int
    """
    given = np.where((parents >= 0) & ~continuous[parents], widths[parents], 1)
    size = given * np.where(continuous, 1, widths)
    of_tree = n_components // len(parents)  # components
    start = np.empty((n_components, len(widths)), np.int64)
    totals = []
    for kind in (~continuous, continuous):
        sizes = np.where(kind, size, 0)
        first = of_tree * (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        positions = first[:, np.newaxis] + np.arange(of_tree)[:, np.newaxis] * sizes[:, np.newaxis]
        start[:, kind] = positions.reshape(n_components, -1)[:, kind]
        totals.append(of_tree * int(sizes.sum()))
    return start, totals[0], totals[1]


def parents_first(parents: list[int]) -> list[int]:
    """Return the nodes of a forest in an order in which every parent comes before its children."""
    children: dict[int, list[int]] = {}
    for j, parent in enumerate(parents):
        children.setdefault(parent, []).append(j)
    order = list(children.get(-1, []))
    for node in order:
        order.extend(children.get(node, []))
    return order


def only(tile: Mixed, shown: Array) -> Mixed:
    """Return the tile with the cells of some columns, the others missing."""
    continuous = np.array(tile.continuous, np.bool_)
    numbers = np.where(shown[continuous], tile.numbers.values, np.nan)
    codes = np.where(shown[~continuous], tile.codes.values, tile.codes.values.dtype.type(0))
    return replace(tile, numbers=Numbers(numbers), codes=Codes(codes, tile.codes.cardinalities))


def _gains_of_row(parameters: TreeParameters, codes: Array, tree: int) -> Array:
    """Return what each column of one row of codes adds to the log density of those before it in a tree, (Z, d)."""
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
