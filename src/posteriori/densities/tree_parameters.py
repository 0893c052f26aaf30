"""Parameters of tree densities: the parents, and the tables and Gaussians along the edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.densities.conditional import ROUNDING, BackOff
from posteriori.densities.families import FamilyTables
from posteriori.densities.gaussian import SMALLEST_VARIANCE, Gaussian
from posteriori.statistics.pairs import Pairs, numbers_and_codes
from posteriori.support.checks import LARGEST_SQUARE, check_equal, check_numbers, check_places, require
from posteriori.support.typing import Array
from posteriori.tables.schema import Column

_FLOOR = 1e-9  # the smallest conditional variance given the parent, as a share of the variance of the column


@dataclass(frozen=True)
class Normals:
    """p(x_j | z) of each column of numbers, to which the Gaussian given a parent backs off."""

    centre: Array  # (m,): the mean of all rows, in data units
    # mean, variance (Z, m): the mean minus the centre, and the variance
    mean: Array
    variance: Array

    @classmethod
    def of(cls, statistics: Pairs, strength: float) -> Normals:
        """Return the Gaussians of the columns, with variances shrunk to the pooled ones by `strength` pseudo-rows."""
        pooled = statistics.numbers.pooled()
        centre = np.where(pooled.weight[0] > 0, pooled.mean[0], 0.0)
        fitted = Gaussian(smoothing=strength).estimate(statistics.numbers)
        return cls(centre, fitted.mean - centre, fitted.variance)


def normals_given(
    normals: Normals, statistics: Pairs, i: int, parent: int, position: Array, smoothing: BackOff
) -> Array:
    """Return intercept, slope and variance of number i, (Z, lines, 3), about the centre.

    The estimates use the rows and s pseudo-rows. In the pseudo-rows x_i has the mean and variance of p(x_i | z) and is
    independent of the parent.

    Parameters
    ----------
    i : int
        The index of the number among the columns of numbers.
    parent : int
        The column of its parent, −1 for none. A categorical parent has K + 1 lines, the first for a missing code.
    position : ndarray (d,)
        The index of each column among the columns of its kind.
    """
    strength = smoothing.strength or 0.0
    mean, variance = normals.mean[:, i], normals.variance[:, i]
    alone = np.stack([mean, np.zeros_like(mean), variance], axis=1)[:, np.newaxis]
    if parent < 0:
        return alone
    if statistics.continuous[parent]:
        return _regression(normals, statistics, i, int(position[parent]), strength)[:, np.newaxis]
    across = statistics.across[position[parent]]
    shape = (len(mean), -1)
    weight, scatter = across.weight[:, i].reshape(shape), across.scatter[:, i].reshape(shape)
    code_mean = (across.shift[:, i] - normals.centre[i] + across.offset[:, i]).reshape(shape)
    total = weight + strength
    seen = total > 0
    share = np.divide(weight, total, out=np.zeros_like(total), where=seen)
    apart = code_mean - mean[:, np.newaxis]
    # Merging n rows and s pseudo-rows adds n·s / (n + s)·apart² = s·share·apart² (Chan et al. 1979).
    spread = scatter + strength * variance[:, np.newaxis] + strength * share * apart**2
    given_variance = np.divide(
        spread, total, out=np.broadcast_to(variance[:, np.newaxis], total.shape).copy(), where=seen
    )
    given_mean = mean[:, np.newaxis] + share * apart
    lines = np.stack(
        [given_mean, np.zeros_like(given_mean), np.maximum(given_variance, _FLOOR * variance[:, np.newaxis])], axis=2
    )
    lines[:, 0] = alone[:, 0]  # a missing parent: the Gaussian without it
    return lines


def _regression(normals: Normals, statistics: Pairs, i: int, p: int, strength: float) -> Array:
    """Return intercept, slope and variance of number i given number p, (Z, 3).

    The least-squares line of the rows and s pseudo-rows, in which the two numbers are uncorrelated: slope
    S_ip / (S_pp + s·v_p), and variance (S_ii + s·v_i − slope·S_ip) / (n + s). The sums are over rows with both present.
    """
    both = statistics.together
    mean_i, mean_p = normals.mean[:, i], normals.mean[:, p]
    variance_i, variance_p = normals.variance[:, i], normals.variance[:, p]
    weight = both.weight[:, i, p]
    total = weight + strength
    spread_i = both.scatter[:, i, p] + strength * variance_i
    spread_p = both.scatter[:, p, i] + strength * variance_p
    slope = np.divide(both.cross[:, i, p], spread_p, out=np.zeros_like(spread_p), where=spread_p > 0)
    left = np.maximum(spread_i - slope * both.cross[:, i, p], 0.0)  # rounding may make a perfect fit negative
    variance = np.divide(left, total, out=variance_i.copy(), where=total > 0)
    return np.stack([mean_i - slope * mean_p, slope, np.maximum(variance, _FLOOR * variance_i)], axis=1)


@dataclass(frozen=True)
class TreeParameters:
    """One tree over the columns of a block, or one per component, and p(x_j | x_parent, z) along it."""

    continuous: tuple[bool, ...]  # whether each column holds numbers
    cardinalities: tuple[int, ...]  # K of each column of codes
    # (T, d): the index of the parent of each column, −1 at a root; T is 1 if the components share the tree, otherwise Z
    parents: Array
    # (T, d): the mutual information of each column with its parent in nats per row minus its penalty; 0 at a root
    edge_weights: Array
    start: Array  # (Z, d): the start of the table of a column: in `table` for codes, in `normal` for numbers
    table: Array  # (slots,): log p(x_j | x_parent, z) in nats; each table is (K_parent + 1, K_j + 1), code 0 is missing
    centre: Array  # (numbers,): subtracted from the numbers to avoid cancellation in their products; in data units
    # (lines, 3): intercept, slope and variance of the numbers minus the centre: one line per code of a categorical
    # parent, or one
    normal: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        continuous, coded = numbers_and_codes(columns)
        check_equal("which columns are numbers", self.continuous, continuous)
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in coded))
        d = len(columns)
        require(len(self.parents) in (1, n_components), "the number of trees is not 1 and not the number of components")
        check_places("the parents", self.parents, (len(self.parents), d), -1, d)
        check_numbers("the weights of edges", self.edge_weights, self.parents.shape)
        require(all(len(parents_first(tree)) == d for tree in self.parents.tolist()), "a column is its own ancestor")
        number = np.array(continuous, np.bool_)
        require(not (number[self.parents] & (self.parents >= 0) & ~number).any(), "a number is parent of a category")
        start, n_slots, n_lines = table_starts(number, self.widths, self.parents, n_components)
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
        """The trees without their tables."""
        return Forest(tuple(map(tuple, self.parents.tolist())), tuple(map(tuple, self.edge_weights.tolist())))

    @cached_property
    def position(self) -> Array:
        """The index of each column among the columns of its kind, (d,)."""
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
        """Return a per-tree array (T, d) repeated per component, (Z, d)."""
        return np.ascontiguousarray(np.broadcast_to(per_tree, self.start.shape))

    @cached_property
    def internal(self) -> Array:
        """Which columns are a parent in some tree, (d,)."""
        return np.isin(np.arange(len(self.continuous)), self.parents)

    @cached_property
    def family_tables(self) -> tuple[FamilyTables, ...]:
        """The tables of each tree side by side, if all columns hold codes; otherwise nothing."""
        if any(self.continuous):
            return ()
        result = []
        for number, tree in enumerate(self.parents.tolist()):
            parents = tuple([() if p < 0 else (p,) for p in tree])
            result.append(FamilyTables.of(parents, [self.conditional(j, number) for j in range(len(parents))]))
        return tuple(result)

    def looked_up(self, codes: Array) -> Array:
        """Return log p(x_j | x_parent, z), (n, Z, d), of rows of codes without missing parents."""
        parents = self.of_each(self.parents)
        above = np.where(parents >= 0, codes[:, np.maximum(parents, 0)], 0).astype(np.int64)
        return self.table[self.start + above * self.widths + codes[:, np.newaxis, :]]

    def conditional(self, j: int, tree: int) -> Array:
        """Return log p(x_j | x_parent, z) of a column of codes, (Z, K_parent + 1, K_j + 1); (Z, K_j + 1) at a root.

        Z are the components of the tree: all, or one.
        """
        parent = int(self.parents[tree, j])
        starts = self.start[:, j] if len(self.parents) == 1 else self.start[tree : tree + 1, j]
        shape = (int(self.widths[j]),) if parent < 0 else (int(self.widths[parent]), int(self.widths[j]))
        size = int(np.prod(shape))
        return np.stack([self.table[start : start + size].reshape(shape) for start in starts.tolist()])

    def marginal_normal(self, z: int, j: int) -> tuple[float, float]:
        """Return the mean and the variance of a column of numbers under component z, without its parent, in data units.

        Marginals follow the path from the root: p(x_j) = Σ_k p(x_j | k)·p(k) for codes; for numbers the laws of total
        expectation and total variance.
        """
        parents = self.of_each(self.parents)[z].tolist()
        path = [j]
        while parents[path[-1]] >= 0:
            path.append(parents[path[-1]])
        probability: Array = np.ones(0)  # p(k) of the column before, while codes come first
        mean, variance = 0.0, 0.0
        for i in reversed(path):
            start, width, n_given = int(self.start[z, i]), int(self.widths[i]), len(probability) + 1
            if not self.continuous[i]:
                rows = 1 if parents[i] < 0 else n_given
                table = np.exp(self.table[start : start + rows * width].reshape(rows, width)[:, 1:])
                probability = table[0] if parents[i] < 0 else probability @ table[1:]
            elif parents[i] >= 0 and self.continuous[parents[i]]:
                intercept, slope, noise = self.normal[start].tolist()
                mean, variance = intercept + slope * mean, noise + slope**2 * variance
            elif len(probability):  # line 0 is that of a missing parent
                lines = self.normal[start + 1 : start + n_given]
                mean = float(probability @ lines[:, 0])
                variance = float(probability @ (lines[:, 2] + (lines[:, 0] - mean) ** 2))
            else:
                mean, _, variance = self.normal[start].tolist()
        return mean + float(self.centre[self.position[j]]), variance


@dataclass(frozen=True)
class Forest:
    """Trees over columns: per tree the parent of every column, −1 at a root, and the gain of the edge to it in nats."""

    parents: tuple[tuple[int, ...], ...]
    edge_weights: tuple[tuple[float, ...], ...]

    def check(self) -> None:
        """Raise ValueError unless all trees have a parent and an edge weight for the same columns."""
        d = len(self.parents[0]) if self.parents else 0
        require(len(self.parents) == len(self.edge_weights) > 0, "there is not one list of edge weights per tree")
        for tree, weights in zip(self.parents, self.edge_weights, strict=True):
            require(len(tree) == len(weights) == d, "a tree lacks a column")
            require(len(parents_first(list(tree))) == d, "a column is its own ancestor, or its parent is no column")
            require(bool(np.isfinite(weights).all()), "the weight of an edge is not finite")


def table_widths(continuous: Array, cardinalities: Sequence[int]) -> Array:
    """Return K + 1 of each column of codes, 1 of a column of numbers, (d,)."""
    widths = np.ones(len(continuous), np.int64)
    widths[~continuous] = np.array(cardinalities, np.int64) + 1
    return widths


def table_starts(continuous: Array, widths: Array, parents: Array, n_components: int) -> tuple[Array, int, int]:
    """Return the start of the table of each component and column, (Z, d), and the numbers of slots and of lines.

    Tables of codes and lines of numbers are stored separately: tree by tree, column by column, component by component.

    Parameters
    ----------
    continuous, widths : ndarray (d,)
    parents : ndarray (T, d)
    """
    given = np.where((parents >= 0) & ~continuous[parents], widths[parents], 1)
    size = given * np.where(continuous, 1, widths)
    per_tree = n_components // len(parents)  # components
    start = np.empty((n_components, len(widths)), np.int64)
    totals = []
    for kind in (~continuous, continuous):
        sizes = np.where(kind, size, 0)
        first = per_tree * (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        positions = first[:, np.newaxis] + np.arange(per_tree)[:, np.newaxis] * sizes[:, np.newaxis]
        start[:, kind] = positions.reshape(n_components, -1)[:, kind]
        totals.append(per_tree * int(sizes.sum()))
    return start, totals[0], totals[1]


def parents_first(parents: list[int]) -> list[int]:
    """Return the nodes of a forest in breadth-first order, every parent before its children."""
    children: dict[int, list[int]] = {}
    for j, parent in enumerate(parents):
        children.setdefault(parent, []).append(j)
    order = list(children.get(-1, []))
    for node in order:
        order.extend(children.get(node, []))
    return order
