"""Statistics of pairs of columns, their mutual information, and the spanning forest of its maximum (Chow–Liu)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from posteriori import kernels
from posteriori.statistics.counts import Counts, CountTogether, JointCounts, all_pairs
from posteriori.statistics.moments import Moments, less, moments_without
from posteriori.statistics.sums import (
    Axes,
    Sums,
    check_axes,
    difference,
    exceeds,
    ratio,
    slack_of,
    squares_exceed,
    squares_left,
    variance_of_all,
)
from posteriori.support.checks import LARGEST_SQUARE, check_equal, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Mixed, Numbers
from posteriori.tables.schema import Column

Penalty = Literal["aic", "bic"] | None
_DIGITS = 11  # after the point, of information that is compared


@dataclass(frozen=True)
class PairMoments(Sums):
    """Per component and pair (i, j) of columns, over the rows in which both cells are present.

    As with `Moments`, sums are taken about a shift and merged by the update of Chan, Golub & LeVeque (1979).

    Attributes
    ----------
    weight : ndarray (Z, d, d)
        In rows.
    shift : ndarray (Z, d)
        In data units.
    offset : ndarray (Z, d, d)
        The mean of x_i over the rows of the pair is shift[i] + offset[i, j].
    scatter : ndarray (Z, d, d)
        Σ w·(x_i − mean_ij)².
    cross : ndarray (Z, d, d)
        Σ w·(x_i − mean_ij)(x_j − mean_ji).
    """

    weight: Annotated[Array, Axes("the weight of pairs", "z", "number", "number", low=0.0)]
    shift: Annotated[Array, Axes("the shift of pairs", "z", "number")]
    offset: Annotated[Array, Axes("the offset of pairs", "z", "number", "number")]
    scatter: Annotated[Array, Axes("the scatter of pairs", "z", "number", "number", low=0.0, high=LARGEST_SQUARE)]
    cross: Annotated[
        Array, Axes("the products of pairs", "z", "number", "number", low=-LARGEST_SQUARE, high=LARGEST_SQUARE)
    ]

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> PairMoments:
        """Return the moments of the rows of a tile. O(n·d²) in BLAS: one product, or four if cells are missing."""
        n_components, d = assignment.n_components, tile.values.shape[1]
        shift = np.zeros((n_components, d))
        kernels.first_numbers(tile.values, assignment.component, assignment.weight, shift)
        weight, first, second, cross = np.zeros((4, n_components, d, d))
        for z in np.unique(assignment.component).tolist() if d else ():
            rows = assignment.component == z
            w = assignment.weight[rows, np.newaxis]
            with np.errstate(invalid="ignore", over="ignore"):
                deviation = tile.values[rows] - shift[z]
                absent = np.isnan(deviation)
                deviation[absent] = 0.0
                weighted = w * deviation
                cross[z] = weighted.T @ deviation
                if absent.any():
                    present = (~absent).astype(np.float64)
                    weight[z] = (w * present).T @ present
                    first[z] = weighted.T @ present
                    second[z] = (weighted * deviation).T @ present
                else:
                    weight[z] = w.sum()
                    first[z] = weighted.sum(axis=0)[:, np.newaxis]
                    second[z] = np.diagonal(cross[z])[:, np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):
            offset = first / np.where(weight > 0, weight, 1.0)
            scatter = np.maximum(second - first * offset, 0.0)
            return cls(weight, shift, offset, scatter, cross - first * offset.swapaxes(1, 2))

    def __add__(self, other: PairMoments) -> PairMoments:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        seen = np.diagonal(self.weight, axis1=1, axis2=2) > 0
        shift = np.where(seen, self.shift, other.shift)
        mine, theirs = (
            part.offset + (part.shift - shift)[:, :, np.newaxis] * (part.weight > 0) for part in (self, other)
        )
        delta = np.where((self.weight > 0) & (other.weight > 0), theirs - mine, 0.0)
        offset = np.where(self.weight > 0, mine + delta * share, theirs)
        with np.errstate(over="ignore", invalid="ignore"):
            between = self.weight * share
            scatter = self.scatter + other.scatter + delta**2 * between
            cross = self.cross + other.cross + delta * delta.swapaxes(1, 2) * between
        return PairMoments(weight, shift, offset, scatter, cross)

    def __sub__(self, other: PairMoments) -> PairMoments:
        weight, delta, share = self._downdate_terms(other)
        left, between = weight > 0, self.weight * share
        scatter = np.where(left, squares_left(self.scatter, other.scatter + between * delta**2), 0.0)
        cross = (self.cross - other.cross) - between * delta * delta.swapaxes(1, 2)
        varying = (scatter > 0) & (scatter.swapaxes(1, 2) > 0)
        seen = np.diagonal(weight, axis1=1, axis2=2) > 0
        offset = np.where(left, self.offset - share * delta, 0.0)
        return PairMoments(weight, np.where(seen, self.shift, 0.0), offset, scatter, np.where(varying, cross, 0.0))

    def would_go_negative(self, other: PairMoments) -> Array:
        """Return where other holds more than these moments, (Z, d): weight, deviations, or their products."""
        weight, delta, share = self._downdate_terms(other)
        with np.errstate(over="ignore"):
            removed = other.scatter + self.weight * np.where(weight > 0, share, 1.0) * delta**2
        mean = self.shift[:, :, np.newaxis] + self.offset
        single = (np.diagonal(part, axis1=1, axis2=2) for part in (self.weight, mean, self.scatter))
        slack = slack_of(self.weight, mean, variance_of_all(*single)[:, np.newaxis])
        over = exceeds(other.weight, self.weight) | squares_exceed(removed, self.scatter, slack)
        rest = self - other
        largest, before, rounding = (  # bounds on the magnitude of a cross product, by Cauchy–Schwarz
            np.sqrt(part * part.swapaxes(1, 2)) for part in (rest.scatter, self.scatter, slack)
        )
        beyond = squares_exceed(np.abs(rest.cross) - largest + before, before, rounding)
        return np.asarray((over | beyond).any(axis=2))

    def _downdate_terms(self, other: PairMoments) -> tuple[Array, Array, Array]:
        """Return the remaining weight, δ = other's means − these means, and other's weight / the remaining weight."""
        weight = difference(self.weight, other.weight)
        shift, others = self.shift[:, :, np.newaxis], other.shift[:, :, np.newaxis]
        delta = np.where(other.weight > 0, (others - shift) + (other.offset - self.offset), 0.0)
        return weight, delta, ratio(other.weight, weight)

    def without(self, tile: Numbers, assignment: Assignment) -> PairMoments:
        """Return the moments without one of their rows."""
        z, w = int(assignment.component[0]), float(assignment.weight[0])
        parts = [part.copy() for part in (self.weight, self.offset, self.scatter, self.cross)]
        deviation = (tile.values[0] - self.shift[z])[:, np.newaxis] - self.offset[z]
        present = ~np.isnan(deviation) & ~np.isnan(deviation.T)
        deviation = np.where(present, deviation, 0.0)
        before = self.weight[z]
        rest = less(before, w * present)
        step = w * deviation / np.where(rest > 0, rest, 1.0)
        parts[0][z] = rest
        parts[1][z] -= step
        parts[2][z] = np.where(rest > 0, less(self.scatter[z], before * step * deviation), 0.0)
        parts[3][z] = np.where(rest > 0, self.cross[z] - before * step * deviation.T, 0.0)
        return PairMoments(parts[0], self.shift, *parts[1:])


@dataclass(frozen=True)
class Pairs(Sums):
    """The statistics of all pairs of columns, which include those of single columns.

    Attributes
    ----------
    continuous : tuple of bool
        Whether each column holds numbers; the others hold codes.
    codes : JointCounts
        The counts of every pair of columns of codes.
    numbers : Moments
        The moments of the single columns of numbers.
    across : tuple of Moments
        Per column of codes: the moments of the numbers given each code, as K + 1 components per component.
    together : PairMoments
        The moments of every pair of columns of numbers.
    exact : bool
        True: missing cells are omitted from their pairs. False: EM takes the expectation over them.
    """

    continuous: tuple[bool, ...]
    codes: JointCounts
    numbers: Moments
    across: tuple[Moments, ...]
    together: PairMoments
    exact: bool = True

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        continuous, coded = numbers_and_codes(columns)
        check_equal("which columns are numbers in the counts of pairs", self.continuous, continuous)
        pairs = all_pairs(len(coded))
        edges = tuple(scope for scope in self.codes.scopes if len(scope) == 2)
        known = set(edges) <= set(pairs) and len(set(edges)) == len(edges)
        require(self.exact or known, "expected counts are of pairs that the columns do not have")
        # EM computes expected counts only of single columns and along the edges of trees.
        expected = (*((j,) for j in range(len(coded))), *edges)
        kept = expected if not self.exact and self.codes.scopes != pairs else pairs
        self.codes.check_scopes(kept, coded, n_components)
        n_numbers = sum(continuous)
        self.numbers.check_shape(n_components, n_numbers)
        check_axes(self.together, {"z": n_components, "number": n_numbers})
        check_equal("the number of tables of numbers", len(self.across), len(coded) if n_numbers else 0)
        for moments, column in zip(self.across, coded, strict=False):
            moments.check_shape(n_components * (column.cardinality + 1), n_numbers)

    @classmethod
    def of(cls, tile: Mixed, assignment: Assignment) -> Pairs:
        """Return the statistics of the rows of a tile. O(n·d²)."""
        across = []
        for j, k in enumerate(tile.codes.cardinalities if any(tile.continuous) else ()):
            component = assignment.component * np.int32(k + 1) + tile.codes.values[:, j]
            split = replace(assignment, component=component, n_components=assignment.n_components * (k + 1))
            across.append(Moments.of(tile.numbers, split))
        return cls(
            tile.continuous,
            CountTogether().of(tile.codes, assignment),
            Moments.of(tile.numbers, assignment),
            tuple(across),
            PairMoments.of(tile.numbers, assignment),
        )

    def would_go_negative(self, other: Pairs) -> Array:
        """Return where other holds more than these statistics, (Z, d)."""
        numbers = self.numbers.would_go_negative(other.numbers) | self.together.would_go_negative(other.together)
        for mine, theirs, k in zip(self.across, other.across, self.codes.cardinalities, strict=False):
            numbers |= mine.would_go_negative(theirs).reshape(len(numbers), k + 1, -1).any(axis=1)
        return self._interleaved(numbers, self.codes.would_go_negative(other.codes))

    def without(self, tile: Mixed, assignment: Assignment) -> Pairs:
        """Return the statistics without one of their rows."""
        across = []
        for j, (sums, k) in enumerate(zip(self.across, self.codes.cardinalities, strict=False)):
            component = assignment.component * np.int32(k + 1) + tile.codes.values[:, j]
            across.append(moments_without(sums, tile.numbers, replace(assignment, component=component)))
        return replace(
            self,
            codes=self.codes.without(tile.codes, assignment),
            numbers=moments_without(self.numbers, tile.numbers, assignment),
            across=tuple(across),
            together=self.together.without(tile.numbers, assignment),
        )

    def _interleaved(self, numbers: Array, codes: Array) -> Array:
        """Return arrays of numbers and of codes interleaved in the order of the columns (last axis)."""
        result = np.empty((*numbers.shape[:-1], len(self.continuous)), np.result_type(numbers, codes))
        mask = np.array(self.continuous)
        result[..., mask], result[..., ~mask] = numbers, codes
        return result

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): no cell is infinite or has a square that overflows."""
        usable = self.numbers.finite() & (np.abs(self.together.cross) <= LARGEST_SQUARE).all(axis=(0, 1))
        return self._interleaved(usable, self.codes.finite())

    def is_exact(self) -> bool:
        """Return whether the sums are exact, with missing cells omitted from their pairs."""
        return self.exact

    def independent(self) -> Pairs:
        """Return the sums over available pairs, from which EM starts."""
        return self

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self._interleaved(self.numbers.observed(), self.codes.observed())

    def column(self, j: int) -> Array:
        """Return the weight of each category of the j-th column of codes: (Z, K)."""
        return self.codes.column(j)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Pairs:
        """Return the statistics of other components or categories, by their indices here, −1 for a new one."""
        cardinalities = self.codes.cardinalities
        coded = [range(k) for k in cardinalities] if columns is None else columns
        across = []
        for sums, k, positions in zip(self.across, cardinalities, coded if self.across else (), strict=False):
            slots = [-1 if position < 0 else position + 1 for position in positions]
            across.append(
                sums.reindexed(
                    [z * (k + 1) + slot if z >= 0 and slot >= 0 else -1 for z in components for slot in (0, *slots)]
                )
            )
        return replace(super().reindexed(components, columns), across=tuple(across))


def numbers_and_codes(columns: Sequence[Column]) -> tuple[tuple[bool, ...], list[Column]]:
    """Return whether each column is read as numbers, and the columns that are read as codes."""
    continuous = tuple(column.kind == "continuous" and not column.is_binned for column in columns)
    return continuous, [column for column, number in zip(columns, continuous, strict=True) if not number]


@dataclass(frozen=True)
class Dependence:
    """Conditional mutual information of each pair of columns, per component.

    Attributes
    ----------
    information : ndarray (Z, d, d)
        Mutual information in nats per row, over the rows in which both cells are present; symmetric, 0 on the diagonal.
    weight : ndarray (Z, d, d)
        The weight of these rows.
    n_parameters : ndarray (d, d)
        The number of parameters of an edge in each component.
    """

    information: Array
    weight: Array
    n_parameters: Array

    def shared(self) -> Dependence:
        """Return I(x_i; x_j | z): the average over components, with the parameters of all of them."""
        total = self.weight.sum(axis=0, keepdims=True)
        share = np.divide(self.weight, total, out=np.zeros_like(self.weight), where=total > 0)
        information = (share * self.information).sum(axis=0, keepdims=True)
        return Dependence(information, total, len(self.weight) * self.n_parameters)

    def edge_weights(self, penalty: Penalty) -> Array:
        """Return the gain of each edge in nats per row minus its penalty, (Z, d, d); −∞ if it is not positive.

        Without a penalty it is −∞ only where no row has both cells. AIC charges one nat of log-likelihood per
        parameter, BIC ½·log n.
        """
        if penalty is None:
            return np.where(self.weight > 0, self.information, -np.inf)
        price = 1.0 if penalty == "aic" else 0.5 * np.log(np.maximum(self.weight, 1.0))
        cost = np.divide(price * self.n_parameters, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0)
        return np.where(self.information > cost, self.information - cost, -np.inf)


def dependence_of_categories(statistics: JointCounts) -> Dependence:
    """Return the dependence of categorical columns from the counts of all their pairs. O(Σ_ij Z·K_i·K_j)."""
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


def information_about_component(counts: Counts) -> Array:
    """Return I(x_j; z) in nats, (d,), over the rows in which x_j is present: Σ n_zx/n·log(n_zx·n / (n_z·n_x))."""
    information = np.zeros(len(counts.cardinalities))
    for j in range(len(information)):
        table = counts.column(j)
        n = table.sum()
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / (n if n > 0 else 1.0)
        occurring = table > 0  # 0·log 0 is 0
        information[j] = (table[occurring] * np.log(table[occurring] / expected[occurring])).sum() / (
            n if n > 0 else 1.0
        )
    return information


def contents_of(counts: Counts) -> list[tuple[float, ...]]:
    """Return the content of each column, whatever its place and the names of its categories: its counts, sorted."""
    tables = [counts.column(j) for j in range(len(counts.cardinalities))]
    return [tuple(np.sort(table.sum(axis=0)).tolist() + np.sort(table.ravel()).tolist()) for table in tables]


def as_compared(information: Array) -> Array:
    """Return information without its last digits, which depend on the order of a sum: equal values are equal again."""
    return np.asarray(np.round(information, _DIGITS))


def order_of_columns(
    relevance: Array, shared: Array, contents: Sequence[tuple[float, ...]], rank: Sequence[int] = ()
) -> Array:
    """Return the columns in an order that depends on what they hold, not on their places.

    First I(x_j; z), the largest first, then Σ_i and the largest of I(x_i; x_j | z), then the counts or moments of the
    column. Columns that agree in all of these are taken by their rank.

    Parameters
    ----------
    relevance : ndarray (d,)
        I(x_j; z) in nats.
    shared : ndarray (d, d) or (Z, d, d)
        I(x_i; x_j | z) in nats, or that of each component.
    contents : sequence of tuple of float (d,)
    rank : sequence of int (d,), optional
        The place of each column in the order of their names; default: their own order. What columns hold cannot
        distinguish those that a symmetry of the table exchanges.
    """
    relevance = as_compared(relevance)
    total = as_compared(np.atleast_3d(shared.T).sum(axis=(1, 2)))
    most = as_compared(np.atleast_3d(shared.T).max(axis=(1, 2), initial=0.0))
    last = rank or range(len(relevance))
    keys = [(-relevance[j], -total[j], -most[j], contents[j], last[j]) for j in range(len(relevance))]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def spanning_forest(weight: Array, root: int) -> tuple[int, ...]:
    """Return the parent of each node in the maximum-weight spanning forest, −1 for roots, by Prim's algorithm.

    Parameters
    ----------
    weight : ndarray (d, d)
        Symmetric. Edges of negative weight, which penalties cause, are omitted.
    root : int
        The root of the first tree. Ties go to the earlier node, so that the result is deterministic.

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
        if not best[node] >= 0.0:  # no edge to any node outside is worth its penalty: start a new tree
            node = int(outside.argmax())
    return tuple(np.where(best >= 0.0, parents, -1).tolist())


def mixed_forest(weight: Array, continuous: Array) -> tuple[int, ...]:
    """Return the parent of each column in the maximum-weight forest in which no category has a number as ancestor.

    The forest of the categories does not depend on the numbers, and a tree of numbers is attached to at most one
    category. So the two parts are solved separately, both as maximum-weight spanning forests. For the numbers, all
    categories are contracted into one node.

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
    r"""Return the dependence of all pairs of columns, categorical and continuous, from their statistics.

    For two numbers it is −½·log(1 − r²). For a number and a category it is ½·(log v − Σ_a n_a/n·log v_a), with v the
    variance of the number and v_a its variance given category a, to which one pseudo-row of variance v is added.
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
    deviation = np.sqrt(both.scatter)  # the product of two scatters may overflow or underflow
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = both.cross / deviation / deviation.swapaxes(1, 2)
        # at most 1 by Cauchy and Schwarz, except in statistics of a crafted file
        correlation = np.where((deviation > 0) & (deviation.swapaxes(1, 2) > 0), ratio**2, 0.0)
    # The bound keeps the information of perfectly correlated columns finite, so that edges can still be compared.
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
    """Return the mutual information of each number with a category and the weight of their rows, (Z, numbers)."""
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
    conditional = (scatter + variance[:, np.newaxis]) / (weight + 1.0)  # one pseudo-row
    ratio = np.divide(
        conditional, variance[:, np.newaxis], out=np.ones_like(conditional), where=variance[:, np.newaxis] > 0
    )
    gain = -0.5 * (weight * np.log(ratio)).sum(axis=1) / safe
    return np.maximum(gain, 0.0), total
