"""Rows that trees grow on, in an order by their cells; the structure of the trees, and the weights in their leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.kernels.loops.descent import BOTH, DEEPEST, LEFT, RIGHT
from posteriori.kernels.loops.hashing import splitmix64
from posteriori.statistics.counts import Counts
from posteriori.statistics.sums import Axes, Sums, check_axes, exceeds, gather
from posteriori.support.checks import check_numbers, check_places, require, require_kind
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import Column

MOST_ROWS = 200_000  # that trees grow on
_MOST_CELLS = 1 << 25
_LARGEST_CODE = (1 << 16) - 1
_ROUNDS = 3  # of refinement; two categories that these leave equal have equal rows, or nearly so
_HALF = np.uint64(32)


def codes_of(tile: Codes) -> Array:
    """Return the codes of a tile, (n, d); a category beyond the 65,535th counts as missing."""
    codes = tile.values
    if codes.dtype.itemsize > 2:
        codes = np.where(codes > _LARGEST_CODE, np.uint32(0), codes)
    return np.ascontiguousarray(codes)


@dataclass(frozen=True)
class CodedRows:
    """A sample of coded rows: all of them up to a limit, beyond it those with the smallest hashes.

    The hash is that of the cells and the class. So + is associative and commutative, the sample does not depend on
    where the rows are, and equal rows are kept or left out together.

    Attributes
    ----------
    cardinalities : tuple of int
    n_components : int
    n_rows : int
        The number of rows, kept or not.
    hashes : ndarray (m,)
    codes : ndarray (m, d)
    component : ndarray (m,)
    weight : ndarray (m,)
    """

    KEPT_OF_ROWS: ClassVar = "the cells of up to 200,000 rows, of numbers the place among some hundred of cells"

    cardinalities: tuple[int, ...]
    n_components: int
    n_rows: int
    hashes: Array
    codes: Array
    component: Array
    weight: Array

    @classmethod
    def of(cls, tile: Codes, assignment: Assignment) -> CodedRows:
        """Return the rows of positive weight of a tile."""
        rows = np.flatnonzero(assignment.weight > 0)
        codes = codes_of(tile)[rows]
        component = assignment.component[rows].astype(np.int32)
        hashes = np.zeros(len(rows), np.uint64)
        for column in codes.T:
            hashes = splitmix64(hashes ^ column.astype(np.uint64))
        whole = cls(
            tile.cardinalities, assignment.n_components, len(rows), hashes, codes, component, assignment.weight[rows]
        )
        return whole._smallest()

    @property
    def is_complete(self) -> bool:
        """Whether all rows are kept."""
        return len(self.hashes) == self.n_rows

    def __add__(self, other: CodedRows) -> CodedRows:
        parts = ((getattr(self, name), getattr(other, name)) for name in ("hashes", "codes", "component", "weight"))
        joined = map(np.concatenate, parts)
        return CodedRows(self.cardinalities, self.n_components, self.n_rows + other.n_rows, *joined)._smallest()

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because codes are finite."""
        return np.ones(len(self.cardinalities), np.bool_)

    def is_exact(self) -> bool:
        """Return True: nothing is an expectation."""
        return True

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        present = np.zeros((self.n_components, len(self.cardinalities)))
        np.add.at(present, self.component, (self.codes > 0) * self.weight[:, np.newaxis])
        return present

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> CodedRows:
        """Return the rows of other components, by their indices here, −1 for a new one; categories keep their codes."""
        if columns is not None and tuple(map(len, columns)) != self.cardinalities:
            raise ValueError("the rows that trees grow on cannot take new categories")
        place = np.full(self.n_components, -1, np.int32)
        for new, old in enumerate(components):
            if old >= 0:
                place[old] = new
        moved = replace(self, component=place[self.component], n_components=len(components))
        kept = np.flatnonzero(moved.component >= 0)
        return replace(moved.take(kept), n_rows=len(kept) if self.is_complete else self.n_rows)

    def _smallest(self) -> CodedRows:
        most = min(MOST_ROWS, max(_MOST_CELLS // max(len(self.cardinalities), 1), 1000))
        if len(self.hashes) <= 2 * most:
            return self
        return self.take(np.lexsort((self.component, self.hashes))[:most])

    def take(self, rows: Array) -> CodedRows:
        """Return some of the rows."""
        return replace(
            self,
            hashes=self.hashes[rows],
            codes=self.codes[rows],
            component=self.component[rows],
            weight=self.weight[rows],
        )


@dataclass(frozen=True, eq=False)
class TreeStructure:
    """The splits of several trees.

    Attributes
    ----------
    cardinalities : tuple of int
        The number of categories or bins of each column.
    ordered : ndarray (d,)
        Which columns are numbers, which a cut splits. Others split by two sets of categories.
    roots : ndarray (T + 1,)
        The first node of each tree, and the number of nodes.
    nodes : ndarray (nodes, 3)
        Column, cut, and left child; the right child follows it. The column of a leaf is −1, its child its number. The
        cut is the greatest code that goes left, or the start of the sides of the categories.
    share : ndarray (nodes,)
        The share of the training rows of a node that goes left: the weights by which a row without the cell counts.
    sides : ndarray of uint8
        For each split of categories, from code 0: 1 is left, 2 is right, 0 is both, also for categories that splits
        above keep out, or that are new since the growth.
    change : ndarray of float32 (leaves, Z)
        What is added to log p(y | leaf), up to a constant of the leaf, in nats; empty for nothing.
    """

    cardinalities: tuple[int, ...]
    ordered: Array
    roots: Array
    nodes: Array
    share: Array
    sides: Array
    change: Array = field(default_factory=lambda: np.empty((0, 0), np.float32))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        names = ("ordered", "roots", "nodes", "share", "sides", "change")
        return (
            isinstance(other, TreeStructure)
            and self.cardinalities == other.cardinalities
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
        )

    def __hash__(self) -> int:
        return hash((self.cardinalities, len(self.nodes), len(self.roots)))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without `steps`

    @cached_property
    def steps(self) -> kernels.Steps:
        """The inner nodes as rows read them on their way down. Only leaves and inner nodes have numbers here.

        A split of numbers reads its sides from a ramp of LEFT and then RIGHT, which all of them share: from the
        place where this cut is at the end of the LEFT ones.
        """
        column, cut, child = self.nodes.T
        is_leaf = column < 0
        place = np.where(is_leaf, ~child, np.cumsum(~is_leaf, dtype=np.int32) - np.int32(1))
        inner = np.flatnonzero(~is_leaf)
        column, cut, child = column[inner], cut[inner], child[inner]
        widest = max([0, *(k for k, is_number in zip(self.cardinalities, self.ordered, strict=True) if is_number)])
        ramp = np.repeat(np.array([LEFT, RIGHT], np.uint8), [widest + 1, widest])
        ramp[0] = BOTH
        nodes = np.empty((len(inner), 4), np.int32)
        nodes[:, 0] = np.where(self.ordered[column], widest - cut, len(ramp) + cut)
        nodes[:, 1], nodes[:, 2] = place[child], place[child + 1]
        nodes[:, 3] = column + np.int32(np.iinfo(np.int32).min)
        side = np.array([BOTH, LEFT, RIGHT], np.uint8)
        return kernels.Steps(nodes, np.concatenate([ramp, side[self.sides]]), place[self.roots[:-1]])

    def check(self) -> None:
        """Raise ValueError unless every child comes after its parent, in the same tree."""
        n = len(self.nodes)
        d = len(self.cardinalities)
        require(self.ordered.dtype == np.bool_ and self.ordered.shape == (d,), "the kinds of columns are not booleans")
        require(self.sides.dtype == np.uint8 and self.sides.ndim == 1, "the sides of categories are not bytes")
        require(not self.sides.size or int(self.sides.max()) <= 2, "there is a side other than left and right")
        require(self.nodes.dtype == np.int32 and self.nodes.shape == (n, 3), "the nodes are not triples of int32")
        require(not n or (int(self.nodes.min()) >= -1 and int(self.nodes[:, 1:].min()) >= 0), "a node is negative")
        require(n > 0 and len(self.roots) > 1, "there is no tree")
        check_places("the roots of trees", self.roots, (len(self.roots),), 0, n + 1)
        require(self.roots[0] == 0 and self.roots[-1] == n and bool((np.diff(self.roots) > 0).all()), "trees overlap")
        check_numbers("the shares of nodes", self.share, (n,), 0.0, 1.0)
        column, cut, child = self.nodes.T
        inner = np.flatnonzero(column >= 0)
        require(bool((column < d).all()), "a tree splits a column that does not exist")
        ends = self.roots[1:][np.searchsorted(self.roots, inner, side="right") - 1]
        require(bool((child[inner] > inner).all() and (child[inner] + 1 < ends).all()), "a node has no children")
        leaves = child[column < 0]
        require(bool(np.array_equal(leaves, np.arange(len(leaves)))), "the leaves are not numbered")
        children = np.concatenate([child[inner], child[inner] + 1, self.roots[:-1]])
        require(len(np.unique(children)) == n == len(children), "a node has not one parent")
        require(self.depth() <= DEEPEST, f"a tree is deeper than {DEEPEST} levels")
        require(self.change.dtype == np.float32 and self.change.ndim == 2, "the changes of leaves are not float32")
        require(len(self.change) in (0, len(leaves)), "there is not one change per leaf")
        require(bool(np.isfinite(self.change).all()), "a change of a leaf is not finite")
        for j, size in enumerate(self.cardinalities):
            cuts = cut[column == j]
            if len(cuts) and self.ordered[j]:
                require(bool((cuts >= 1).all() and (cuts < size).all()), "a cut is outside its column")
            elif len(cuts):
                require(bool((cuts + size < len(self.sides)).all()), "a split has not one side per category")

    def depth(self) -> int:
        """Return the number of levels below the root of the deepest tree."""
        level = np.zeros(len(self.nodes), np.int64)
        for depth, (at, _) in enumerate(self.levels(), start=1):
            level[self.nodes[at, 2]] = depth
        return int(level.max())

    def levels(self) -> Any:
        """Yield the inner nodes of each level, the roots first, and the right children of these."""
        at = self.roots[:-1]
        for _ in range(len(self.nodes)):
            at = at[self.nodes[at, 0] >= 0]
            if not len(at):
                return
            children = self.nodes[at, 2]
            yield at, children + 1
            at = np.concatenate([children, children + 1])

    def weights(self, leaves: Array) -> Array:
        """Return the weight of each class in each node, (nodes, Z), from the weights in the leaves."""
        weight = np.empty((len(self.nodes), leaves.shape[1]))
        is_leaf = self.nodes[:, 0] < 0
        weight[is_leaf] = leaves
        for at, right in reversed(list(self.levels())):
            weight[at] = weight[right - 1] + weight[right]
        return weight

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.roots) - 1

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return int(np.count_nonzero(self.nodes[:, 0] < 0))

    def take(self, first: int, last: int) -> tuple[TreeStructure, slice]:
        """Return the trees from first to before last, and the numbers of their leaves."""
        low, high = int(self.roots[first]), int(self.roots[last])
        nodes = self.nodes[low:high].copy()
        inner = nodes[:, 0] >= 0
        before = int(np.count_nonzero(self.nodes[:low, 0] < 0))
        nodes[:, 2] -= np.where(inner, low, before)
        roots = self.roots[first : last + 1] - low
        leaves = slice(before, before + int(np.count_nonzero(~inner)))
        taken = replace(self, roots=roots, nodes=nodes, share=self.share[low:high], change=self.change[leaves])
        return taken, leaves

    def with_components(self, components: Sequence[int]) -> TreeStructure:
        """Return the structure for other components, by their indices here, −1 for a new one."""
        if not len(self.change) or list(components) == list(range(self.change.shape[1])):
            return self
        moved = gather(self.change, components, axis=1)
        return replace(self, change=moved.astype(np.float32, copy=False))

    def reindexed(self, columns: Sequence[Sequence[int]]) -> TreeStructure:
        """Return the structure for other categories, by their indices here, −1 for a new one, which goes both ways."""
        cardinalities = tuple(map(len, columns))
        if all(list(moves) == list(range(k)) for moves, k in zip(columns, self.cardinalities, strict=True)):
            return self
        nodes, sides, n_sides = self.nodes.copy(), [], 0
        for v in np.flatnonzero((nodes[:, 0] >= 0) & ~self.ordered[nodes[:, 0]]).tolist():
            j, cut, _ = nodes[v].tolist()
            former = self.sides[cut : cut + self.cardinalities[j] + 1]
            moved = np.zeros(len(columns[j]) + 1, np.uint8)
            for new, old in enumerate(columns[j]):
                if old >= 0:
                    moved[new + 1] = former[old + 1]
            nodes[v, 1] = n_sides
            n_sides += len(moved)
            sides.append(moved)
        joined = np.concatenate(sides) if sides else np.empty(0, np.uint8)
        return replace(self, cardinalities=cardinalities, nodes=nodes, sides=joined)


@dataclass(frozen=True)
class LeafCounts(Sums):
    """The weight of each class in each leaf of some trees, and of each category.

    Attributes
    ----------
    singles : Counts
        Of the single columns.
    leaves : ndarray (leaves, Z)
    """

    singles: Counts
    leaves: Annotated[Array, Axes("the weights of leaves", "leaf", "z", low=0.0)]

    def would_go_negative(self, other: LeafCounts) -> Array:
        """Return where other holds more than these counts, (Z, d)."""
        over = np.asarray(self.singles.would_go_negative(other.singles))
        of_leaves = np.asarray(exceeds(other.leaves, self.leaves).any(axis=0))
        return np.asarray(over | (of_leaves & ~over.any(axis=1))[:, np.newaxis])

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because codes are finite."""
        return self.singles.finite()

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.singles.observed()

    def column(self, j: int) -> Array:
        """Return the weight of each category of column j: (Z, K)."""
        return self.singles.column(j)


@dataclass(frozen=True)
class CountLeaves:
    """The statistics factory that counts classes in the leaves of trees.

    Factories are equal whatever their trees, so that the statistics of rows before a new category fit those after it.
    """

    structure: TreeStructure = field(compare=False)

    def check_against(self, statistics: LeafCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, LeafCounts)
        statistics.singles.check_cardinalities(tuple(column.cardinality for column in columns), n_components)
        check_axes(statistics, {"leaf": self.structure.n_leaves, "z": n_components})

    def of(self, tile: Codes, assignment: Assignment) -> LeafCounts:
        """Return the counts of the rows of a tile. O(n·T·depth)."""
        return self._count(tile, assignment, np.zeros(len(tile.values)), np.zeros(0), np.empty((0, 0)))

    def with_folds(
        self, tile: Codes, assignment: Assignment, fold: Array, fold_of_tree: Array
    ) -> tuple[LeafCounts, Array]:
        """Return the counts of the rows of a tile, and in each leaf those of the rows outside the fold of its tree."""
        outside = np.zeros((self.structure.n_leaves, assignment.n_components))
        return self._count(tile, assignment, fold, fold_of_tree, outside), outside

    def _count(
        self, tile: Codes, assignment: Assignment, fold: Array, fold_of_tree: Array, outside: Array
    ) -> LeafCounts:
        trees = self.structure
        leaves = np.zeros((trees.n_leaves, assignment.n_components))
        kernels.count_leaves(
            codes_of(tile),
            np.ascontiguousarray(assignment.component, np.int32),
            np.ascontiguousarray(assignment.weight, np.float64),
            trees.steps,
            trees.nodes,
            trees.share,
            trees.sides,
            trees.ordered,
            trees.roots,
            np.ascontiguousarray(fold, np.int32),
            np.ascontiguousarray(fold_of_tree, np.int32),
            leaves,
            outside,
        )
        return LeafCounts(Counts.of(tile, assignment), leaves)


@dataclass(frozen=True)
class CanonicalOrder:
    """The order of classes, columns and categories of some rows, and these rows in their order.

    Rows, classes, columns and categories get hashes. That of a row is a sum over its cells, and that of a class, of a
    category or of a column is a sum over its rows, again and again: the refinement of colours by Weisfeiler & Leman.
    Sums do not depend on an order, and no hash depends on a name. Only the codes of ordered columns have an order of
    their own. Columns that show fewer than two codes are left out.

    What a symmetry of the rows exchanges has equal hashes. Such columns, categories and classes are taken by name, and
    then such rows by their cells.

    Attributes
    ----------
    rows : CodedRows
        The rows by their class, and within it by their hash, weight and cells.
    chosen : ndarray (n,)
        Their former places.
    ordered : ndarray (d,)
        Which columns have ordered codes.
    rank : ndarray (d,)
        The place of each column in the order of their names.
    place : ndarray (Z,)
        The place of each class.
    columns : ndarray (v,)
        The columns that vary, in their order.
    codes : tuple of ndarray
        For each of these, the code in this order of each of its codes, from 0 for a missing cell.
    """

    rows: CodedRows
    chosen: Array
    ordered: Array
    rank: Array
    place: Array
    columns: Array
    codes: tuple[Array, ...]

    @classmethod
    def of(cls, rows: CodedRows, ordered: Array, rank: Array) -> CanonicalOrder:
        """Return the order of these rows. O(n·d)."""
        sizes = zip(rows.codes.T, rows.cardinalities, strict=True)
        counts = [np.bincount(seen, minlength=k + 1) for seen, k in sizes]
        varying = np.array([j for j, n in enumerate(counts) if np.count_nonzero(n[1:]) > 1], np.int64)
        # The codes of the columns that vary stand one after the other, so that all are hashed at once.
        ends = np.cumsum([0, *(len(counts[j]) for j in varying)])
        starts, column_of = ends[:-1], np.repeat(np.arange(len(varying)), np.diff(ends))
        is_ordered = ordered[varying]
        by_place = _hashed(np.arange(ends[-1]) - starts[column_of])
        cells = [np.ascontiguousarray(rows.codes[:, j]) for j in varying]
        total = np.concatenate([np.zeros(0), *(counts[j] for j in varying)])
        of_class = _hashed(np.bincount(rows.component, minlength=rows.n_components))
        for turn in range(_ROUNDS):
            of_total = _hashed(total)
            of_codes = np.where(is_ordered[column_of], by_place, of_total)
            shown = np.where(total > 0, splitmix64(of_codes + of_total), np.uint64(0))
            of_columns = np.add.reduceat(shown, starts) ^ is_ordered.astype(np.uint64)
            terms = splitmix64(of_codes ^ of_columns[column_of])
            terms[starts] = 0  # missing cells
            of_rows = of_class[rows.component]
            for seen, start in zip(cells, starts, strict=True):
                of_rows += terms[start:][seen]
            of_rows = splitmix64(of_rows)
            if turn + 1 < _ROUNDS:
                halves = (of_rows >> _HALF).astype(np.float64)  # their sums are exact
                of_class = _hashed(np.bincount(rows.component, halves, rows.n_components))
                sums = (np.bincount(seen, halves, k) for seen, k in zip(cells, np.diff(ends), strict=True))
                total = np.concatenate([np.zeros(0), *sums])
        place = _ranks(of_class)
        codes = [
            np.arange(len(counts[j])) if ordered[j] else _codes_by_hash(of_codes[start:end], counts[j] > 0)
            for j, start, end in zip(varying, starts, ends[1:], strict=True)
        ]
        by_hash = np.lexsort((rank[varying], of_columns))
        moved = tuple(codes[i].astype(rows.codes.dtype) for i in by_hash)
        of_cells = np.zeros(len(rows.codes), np.uint64)  # depends on the order of columns, unlike a sum
        for i, of_column in zip(by_hash, moved, strict=True):
            of_cells = splitmix64(of_cells ^ of_column[cells[i]].astype(np.uint64))
        chosen = np.lexsort((of_cells, rows.weight, of_rows, place[rows.component]))
        return cls(rows.take(chosen), chosen, ordered, rank, place, varying[by_hash], moved)

    @cached_property
    def _codes_side_by_side(self) -> tuple[Array, Array, Array]:
        """`codes`, one column after the other, where those of each column start, and how many they are."""
        sizes = np.array([len(of_column) for of_column in self.codes], np.int64)
        return np.concatenate([np.zeros(0, np.int64), *self.codes]), np.cumsum(sizes) - sizes, sizes

    def encoded(self) -> Array:
        """Return the codes of the rows and of the columns that vary, (n, v), in this order of categories."""
        codes = np.empty((len(self.rows.codes), len(self.columns)), self.rows.codes.dtype)
        for i, j in enumerate(self.columns):
            codes[:, i] = self.codes[i][self.rows.codes[:, j]]
        return codes

    def restored(self, nodes: Array, share: Array, sides: Array) -> tuple[Array, Array, Array]:
        """Return a tree on these codes (`kernels.grow_tree`) as one on the columns and codes of the rows."""
        nodes, moved = nodes.copy(), sides.copy()
        inner = nodes[:, 0] >= 0
        column, start = nodes[inner, :2].T
        of_categories = ~self.ordered[self.columns[column]]
        column, start = column[of_categories], start[of_categories]
        codes, first, sizes = self._codes_side_by_side
        n_codes = sizes[column]
        of_cut = np.arange(n_codes.sum()) - np.repeat(np.cumsum(n_codes) - n_codes, n_codes)
        start = np.repeat(start, n_codes)
        moved[start + of_cut] = sides[start + codes[np.repeat(first[column], n_codes) + of_cut]]
        nodes[inner, 0] = self.columns[nodes[inner, 0]]
        return nodes, share, moved


def _hashed(numbers: Array) -> Array:
    hashes: Array = splitmix64(numbers.astype(np.uint64))
    return hashes


def _codes_by_hash(hashes: Array, is_present: Array) -> Array:
    """Return the place of each code, from 1; categories that no row shows are one, because only names differ."""
    places = np.concatenate([[0], 1 + _ranks(hashes[1:])])
    absent = 1 + np.flatnonzero(~is_present[1:])
    places[absent] = places[absent].min(initial=len(places))
    return places


def _ranks(hashes: Array) -> Array:
    ranks = np.empty(len(hashes), np.int64)
    ranks[np.argsort(hashes, kind="stable")] = np.arange(len(hashes))
    return ranks
