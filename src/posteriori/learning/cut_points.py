"""Cut points of numeric columns: quantiles, or minimum description length given the classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from posteriori import kernels
from posteriori.densities.categorical import BinRule, Bins
from posteriori.learning.folds import sums_outside_folds, with_pairs
from posteriori.model import Block, bins_of
from posteriori.model_cost import COARSE_BINS, fine_bins
from posteriori.sources import Source
from posteriori.statistics import Counts, JointStatistics, Moments, TailMoments
from posteriori.statistics.row_records import RowSample
from posteriori.support.threads import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema, quote

# A column of so few values keeps them, from so many rows on: tables of pairs then learn what they say together, such as
# the ranks of cards, which no rule for single columns sees (docs/dependence.md).
FEW_VALUES, ROWS_OF_VALUES = 16, 2000
_LARGEST_TABLE = 4  # largest size of the table of k·log k, in entries per row


@dataclass(frozen=True)
class SortedCells:
    """The cells of a column that are not missing, sorted once for the cut points of all folds.

    Attributes
    ----------
    rows : ndarray (n,)
        The row of each cell, sorted by value, then by class, then by row.
    pair : ndarray (n,)
        The index of the distinct pair of value and class of each cell.
    value, component : ndarray (m,)
        The value and the class of each distinct pair, in the same order. The class is −1 if it is unknown.
    """

    rows: Array
    pair: Array
    value: Array
    component: Array

    @classmethod
    def of(cls, values: Array, component: Array) -> SortedCells:
        """Sort the cells of a column, NaN where missing, given the class of each row. Cost: O(n·log n)."""
        rows = np.flatnonzero(~np.isnan(values))
        rows = rows[np.lexsort((component[rows], values[rows]))]
        ordered, classes = values[rows].astype(np.float64), component[rows]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]) | (classes[1:] != classes[:-1])
        return cls(rows, np.cumsum(new) - 1, ordered[new], classes[new])

    @property
    def has_few_values(self) -> bool:
        """Whether the column has so few values that it keeps them."""
        return int(np.count_nonzero(np.diff(self.value))) < FEW_VALUES

    def cuts(self, bins: int | BinRule, weight: Array) -> Array:
        """Return the cut points: quantiles for a number of bins, or those of a rule (`Binned`).

        Rows of weight 0 change nothing: the cut points are, to the last bit, those of a table without these rows.
        Every distinct value is a candidate.

        Parameters
        ----------
        bins : int or str
        weight : ndarray
            The weight of each row of the column, ≥ 0.
        """
        weight = np.bincount(self.pair, weight[self.rows], len(self.value))
        if isinstance(bins, int):
            return quantile_cuts(self.value, weight, bins)
        n_rows = float(weight.sum())
        if bins == "fine":
            return quantile_cuts(self.value, weight, fine_bins(n_rows))
        if bins != "mdlp" and n_rows >= ROWS_OF_VALUES and self.has_few_values:
            return quantile_cuts(self.value, weight, FEW_VALUES)
        if bins == "coarse":
            return quantile_cuts(self.value, weight, COARSE_BINS)
        kept = (weight > 0) & (self.component >= 0)
        value, component = self.value[kept], self.component[kept]
        behind = mdlp_cuts(value, component, weight[kept], int(component.max(initial=-1)) + 1)
        return midpoints(value[behind], value[behind + 1])


def quantile_cuts(values: Array, weight: Array, bins: int) -> Array:
    """Return at most bins − 1 cut points that divide numbers into bins of about equal weight.

    A cut lies midway between two neighbouring distinct values: the pair that divides the weight closest to the
    quantile. Equal values stay in one bin, and equal cuts are merged.

    Parameters
    ----------
    values : ndarray (n,)
        NaN if missing.
    weight : ndarray (n,)
        The weight of each number.
    bins : int

    Returns
    -------
    ndarray
        Strictly increasing.
    """
    counted = ~np.isnan(values) & (weight > 0)
    distinct, position = np.unique(values[counted].astype(np.float64), return_inverse=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= bins:
        return midpoints(distinct[:-1], distinct[1:])
    below = np.cumsum(np.bincount(position, weight[counted]))
    target = below[-1] * np.arange(1, bins) / bins
    boundary = below[:-1]
    right = np.clip(np.searchsorted(boundary, target), 1, len(boundary) - 1)
    nearer_left = target - boundary[right - 1] <= boundary[right] - target
    chosen = np.unique(right - nearer_left)
    return midpoints(distinct[chosen], distinct[chosen + 1])


def midpoints(low: Array, high: Array) -> Array:
    """Return the midpoints of pairs low < high. Rounding keeps them in (low, high]."""
    middle = low / 2.0 + high / 2.0  # low + high could overflow
    return np.where(middle > low, np.minimum(middle, high), high)


def mdlp_of_counts(counts: Array) -> Array:
    """Return the indices of the bins after which minimum description length cuts.

    Parameters
    ----------
    counts : ndarray (Z, K)
        The weight of each class in each bin.

    Returns
    -------
    ndarray
        Ascending, in 0 … K − 2.
    """
    position, component = np.nonzero(counts.T)
    return position[mdlp_cuts(position, component, counts.T[position, component], len(counts))]


def mdlp_cuts(values: Array, component: Array, weight: Array, n_components: int) -> Array:
    r"""Return the indices of the rows after which minimum description length cuts.

    An interval S of N rows and k classes is divided into S₁, S₂ where the class entropy is smallest, if

    .. math:: H(S) - \tfrac{N_1}{N} H(S_1) - \tfrac{N_2}{N} H(S_2) > \frac{\log_2 (N - 1)}{N}
              + \frac{\log_2 (3^k - 2) - k H(S) + k_1 H(S_1) + k_2 H(S_2)}{N},

    H in bits. Then the parts are divided by the same rule. Of several cuts of equal entropy the first is taken.

    Parameters
    ----------
    values : ndarray (n,)
        Ascending, without missing ones.
    component : ndarray (n,)
        The class of each row.
    weight : ndarray (n,)
        A row of weight w counts as w rows. An interval with a total weight below 2 is not divided.
    n_components : int

    Returns
    -------
    ndarray
        Ascending, in 0 … n − 2.

    Notes
    -----
    Cost: O(n) for each level of the recursion.

    References
    ----------
    Fayyad & Irani, Multi-interval discretization of continuous-valued attributes for classification learning, IJCAI
    1993, section 3.
    """
    cut = np.zeros(len(values), np.bool_)
    if len(values) > 1:
        last = np.append(values[1:] != values[:-1], True)  # the last row of each distinct value: cuts lie behind these
        total = float(weight.sum())
        whole = total <= _LARGEST_TABLE * len(values) and bool((weight == np.floor(weight)).all())
        # Entropies of whole counts need only k·log k for k up to N: look it up in a table, unless it is too large.
        counts = np.arange(total + 1.0) if whole else np.empty(0)
        logarithms = counts * np.log(np.maximum(counts, 1.0))
        kernels.mdlp(component.astype(np.int32, copy=False), weight, last, n_components, logarithms, cut)
    return np.flatnonzero(cut)


_GRID = 1000  # bins; in tables with more rows than the sample, "mdlp" chooses among their boundaries
SAMPLED_ROWS = 50_000  # rows in the sample, unless that exceeds _SAMPLED_CELLS
_SAMPLED_CELLS = 1 << 23
_ENOUGH_ROWS = 2000  # below this, starting threads costs more than it saves


@dataclass(frozen=True)
class _FoldedSample:
    """A sample of rows in some columns, with weights that are 0 in each fold in turn, and last with all weights."""

    columns: tuple[int, ...]
    sample: RowSample
    weights: tuple[Array, ...]
    cells: dict[int, SortedCells] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: tuple[int, ...], sample: RowSample, folds: int) -> _FoldedSample:
        outside = (np.where(sample.fold == k, 0.0, sample.weight) for k in range(folds))
        return cls(columns, sample, (*outside, sample.weight))

    def sorted(self, j: int) -> SortedCells:
        """Return the sorted cells of a column, by its position in the schema."""
        if j not in self.cells:
            self.cells[j] = SortedCells.of(self.sample.values[:, self.columns.index(j)], self.sample.component)
        return self.cells[j]


@dataclass(frozen=True)
class _Grid:
    """Candidate cut points of "mdlp", with class counts between them outside each fold, and last of all rows."""

    columns: tuple[int, ...]
    schema: Schema
    counts: list[Counts]

    def cuts(self, j: int) -> list[Sequence[float]]:
        """Return the cut points of a column outside each fold, and last of all rows."""
        grid, position = np.array(self.schema.columns[j].cuts), self.columns.index(j)
        return [grid[mdlp_of_counts(counts.column(position))].tolist() for counts in self.counts]


@dataclass(frozen=True)
class CutPoints:
    """Chooses the cut points for several models of the same rows; reads and sorts each column once.

    Attributes
    ----------
    source : Source
        Labelled, if a column has the bins "mdlp". With folds, its batches hold the fold of each row.
    folds : int
        The number of folds.
    n_jobs : int, optional
        The number of threads, each of which sorts one column at a time; None or −1 for one per core. The result does
        not depend on it.
    """

    source: Source
    folds: int = 0
    n_jobs: int | None = 1
    _samples: dict[tuple[int, ...], _FoldedSample] = field(default_factory=dict)
    _grids: dict[tuple[int, ...], _Grid] = field(default_factory=dict)

    def schemas(self, bins: Mapping[int, Bins]) -> list[Schema]:
        """Return the schema with the cut points of the rows outside each fold, and last with those of all rows.

        If all are equal, they are one object. The parameter and the cost are those of `binned_schema`; each fold adds
        O(n·d).
        """
        cuts: dict[int, list[Sequence[float]]] = {
            j: [given] * (self.folds + 1) for j, given in bins.items() if isinstance(given, tuple)
        }
        columns = tuple(sorted(set(bins) - set(cuts)))
        if columns:
            cuts |= zip(columns, self._chosen(columns, bins), strict=True)
        schemas = [
            self.source.schema.with_cuts({j: of_fold[k] for j, of_fold in cuts.items()}) for k in range(self.folds + 1)
        ]
        equal = all(schema == schemas[-1] for schema in schemas)
        return [schemas[-1]] * len(schemas) if equal else schemas

    def _chosen(self, columns: tuple[int, ...], bins: Mapping[int, Bins]) -> list[list[Sequence[float]]]:
        """Return, for each column, the cut points outside each fold, and last of all rows."""
        rows = self._rows(columns)
        supervised = () if rows.sample.is_complete else tuple(j for j in columns if bins[j] in ("mdlp", "auto"))
        grid = self._grid(rows, supervised) if supervised else None

        def choose(j: int) -> list[Sequence[float]]:
            if grid is not None and j in supervised and not (bins[j] == "auto" and rows.sorted(j).has_few_values):
                return grid.cuts(j)
            rule = bins[j]
            assert not isinstance(rule, tuple)
            cells = rows.sorted(j)
            return [cells.cuts(rule, weight).tolist() for weight in rows.weights]

        n_jobs = min(n_threads(self.n_jobs), len(columns)) if len(rows.sample.number) >= _ENOUGH_ROWS else 1
        return list(in_order(columns, choose, n_jobs))

    def _rows(self, columns: tuple[int, ...]) -> _FoldedSample:
        if columns not in self._samples:
            sample = self.source.numeric_columns().reduce(_sample(columns)).rows()
            self._samples[columns] = _FoldedSample.of(columns, sample, self.folds)
        return self._samples[columns]

    def _grid(self, rows: _FoldedSample, columns: tuple[int, ...]) -> _Grid:
        if columns not in self._grids:
            grid = {j: rows.sorted(j).cuts(_GRID, rows.weights[-1]).tolist() for j in columns}
            schema = self.source.schema.with_cuts(grid)
            count, folds = _count(columns), self.folds
            source = self.source.with_schema(schema).numeric_columns()
            counts = source.reduce(lambda batch: count(with_pairs(batch, folds)))
            self._grids[columns] = _Grid(columns, schema, sums_outside_folds(counts, len(counts.table), folds))
        return self._grids[columns]


def binned_schema(source: Source, bins: Mapping[int, Bins], n_jobs: int | None = 1) -> Schema:
    """Choose cut points, and return the schema of the source with these.

    Parameters
    ----------
    source : Source
        Labelled, if a column has the bins "mdlp".
    bins : mapping
        From the position of a column to a number of bins of equal weight, "mdlp", or cut points; see `Binned`.
    n_jobs : int, optional
        The number of threads, each of which sorts one column at a time; None or −1 for one per core. The result does
        not depend on it.

    Returns
    -------
    Schema

    Notes
    -----
    Up to 50,000 rows (fewer with more than 167 columns) cut points are exact: every distinct value is a candidate. With
    more rows, quantiles are those of a uniform sample of that size. "mdlp" then counts all rows between 1000 quantiles
    of the sample, and chooses among these.

    Cost: no pass if all cut points are given. Otherwise one pass, which holds at most twice the sample in memory, and a
    sort of each column. With more rows than the sample, "mdlp" takes a second pass, O(n·d).
    """
    return CutPoints(source, n_jobs=n_jobs).schemas(bins)[-1]


def _sample(columns: tuple[int, ...]) -> Callable[[Batch], RowSample]:
    size = min(SAMPLED_ROWS, max(_SAMPLED_CELLS // len(columns), _GRID))
    return lambda batch: RowSample.of(batch, columns, size)


def _count(columns: tuple[int, ...]) -> Callable[[Batch], Counts]:
    """Return the function from a batch to the weight of each class in the bins of some columns."""

    def accumulate(batch: Batch) -> Counts:
        known = batch.labelled()
        return Counts.of(cast(Codes, known.take(columns, "categorical")), cast(Assignment, known.assignment))

    return accumulate


def with_missing_cuts(schema: Schema, blocks: Sequence[Block]) -> Schema:
    """Return the schema in which every column that is to be binned and has no cut points is one bin.

    Cut points are chosen on the first call. A column that was entirely missing then has none.
    """
    uncut = [j for j in bins_of(tuple(blocks)) if schema.columns[j].cuts is None]
    return schema.with_cuts(dict.fromkeys(uncut, ())) if uncut else schema


def retyped(
    statistics: JointStatistics, past: Schema, earlier: Sequence[Block], schema: Schema, blocks: Sequence[Block]
) -> JointStatistics:
    """Return the statistics of earlier rows for the blocks of later ones.

    They differ if a column was entirely missing in the earlier rows and has a value now: it may have another kind, and
    therefore be in another block. A new categorical column has no category yet (`JointStatistics.reindexed` adds them).

    Raises
    ------
    ValueError
        The distributions have changed, and blocks differ for this reason; or the statistics of a density cannot be
        converted to other columns.
    """
    recoded = _recoded(past, schema)
    same_blocks = [_needs(block) for block in blocks] == [_needs(block) for block in earlier]
    if same_blocks and not _has_new_cuts(past, schema) and not recoded:
        return statistics
    left = list(zip(earlier, statistics.blocks, strict=True))
    converted = []
    for block in blocks:
        before, sums = _take_counterpart(left, block)
        positions = [before.columns.index(j) if j in before.columns else -1 for j in block.columns]
        changed = set(before.columns) ^ set(block.columns)
        if before.density.sufficient_statistics != block.density.sufficient_statistics or not all(
            past.columns[j].has_no_kind for j in changed
        ):
            raise _changed()
        if block.density.kind == "mixed" and not block.models_missingness:  # it stores numbers apart from codes
            changed |= recoded & set(block.columns)
        converted.append(_rearranged(sums, positions, block, schema, statistics.weight, changed))
    if not all(past.columns[j].has_no_kind for block, _ in left for j in block.columns):
        raise _changed()
    return replace(statistics, blocks=tuple(converted))


def _needs(block: Block) -> tuple[Any, tuple[int, ...]]:
    return block.density.sufficient_statistics, block.columns


def _changed() -> ValueError:
    return ValueError("distributions have changed since the last call; use fit to start over")


def _take_counterpart(left: list[tuple[Block, Any]], block: Block) -> tuple[Block, Any]:
    """Remove the counterpart of a block from the earlier ones, and return it with its statistics.

    It has an equal density, or else one of the same type, and shares the most columns. For a new block it is an empty
    block, and None.
    """
    candidates = [pair for pair in left if pair[0].density == block.density]
    candidates = candidates or [pair for pair in left if type(pair[0].density) is type(block.density)]
    if not candidates:
        return Block(block.density, ()), None
    counterpart = max(candidates, key=lambda pair: len(set(pair[0].columns) & set(block.columns)))
    left[:] = [pair for pair in left if pair is not counterpart]
    return counterpart


def _has_new_cuts(past: Schema, schema: Schema) -> bool:
    """Return whether a column that was entirely missing has other cut points now."""
    pairs = zip(past.columns, schema.columns, strict=True)
    return any(before.has_no_kind and before.cuts != after.cuts for before, after in pairs)


def _recoded(past: Schema, schema: Schema) -> set[int]:
    """Return the columns that changed from numbers to codes, or from codes to numbers."""
    return set(past.coded) ^ set(schema.coded)


def _rearranged(sums: Any, positions: list[int], block: Block, schema: Schema, weight: Array, changed: set[int]) -> Any:
    """Return the statistics of a block with some new columns, whose cells were all missing."""
    cuts = tuple(schema.columns[j].cuts or () for j in block.columns)
    sufficient_statistics = block.density.sufficient_statistics
    if sufficient_statistics is TailMoments:
        return (TailMoments((), _no_moments(weight)) if sums is None else sums).placed(positions, cuts)
    if not changed:
        return sums
    if sufficient_statistics is Moments:
        return (_no_moments(weight) if sums is None else sums).placed(positions)
    if sufficient_statistics is Counts:
        return (Counts((), weight[:, None][:, :0]) if sums is None else sums).placed(positions, weight)
    names = quote(schema.columns[j].name for j in sorted(changed))
    raise ValueError(
        f"{names} had no value in the rows of earlier calls, and the statistics of this model cannot be converted to "
        "the kind of its first values; name it in categorical_features from the first call on, or include a row with a "
        "value in the first call"
    )


def _no_moments(weight: Array) -> Moments:
    nothing = weight[:, None][:, :0]
    return Moments(nothing, nothing, nothing, nothing)
