"""Cut points of all columns of a table, from all rows and from the rows outside each fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from posteriori.densities.binned import Binned, Bins
from posteriori.learning.binning import SortedCells, mdlp_of_counts
from posteriori.learning.fold_sums import components_of_folds, per_fold, sums_without_each
from posteriori.model import Block, reject_outside
from posteriori.sources import Source
from posteriori.sources.threads import in_order, n_threads
from posteriori.statistics import Counts
from posteriori.statistics.row_sample import RowSample
from posteriori.tables import Assignment, Batch, Codes, Schema
from posteriori.typing import Array

_GRID = 1000  # bins; in tables with more rows than the sample, "mdlp" chooses among their boundaries
_SAMPLED_ROWS = 50_000  # rows in the sample, unless that exceeds _SAMPLED_CELLS
_SAMPLED_CELLS = 1 << 23
_ENOUGH_ROWS = 2000  # below this, starting threads costs more than it saves


@dataclass(frozen=True)
class _Rows:
    """A sample of rows in some columns, with weights that are 0 in each fold in turn, and last with all weights."""

    columns: tuple[int, ...]
    sample: RowSample
    weights: tuple[Array, ...]
    cells: dict[int, SortedCells] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: tuple[int, ...], sample: RowSample, folds: int) -> _Rows:
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
    _samples: dict[tuple[int, ...], _Rows] = field(default_factory=dict)
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
        supervised = () if rows.sample.is_complete else tuple(j for j in columns if bins[j] == "mdlp")
        grid = self._grid(rows, supervised) if supervised else None

        def choose(j: int) -> list[Sequence[float]]:
            if grid is not None and j in supervised:
                return grid.cuts(j)
            rule = bins[j]
            assert not isinstance(rule, tuple)
            return [rows.sorted(j).cuts(rule, weight).tolist() for weight in rows.weights]

        n_jobs = min(n_threads(self.n_jobs), len(columns)) if len(rows.sample.number) >= _ENOUGH_ROWS else 1
        return list(in_order(columns, choose, n_jobs))

    def _rows(self, columns: tuple[int, ...]) -> _Rows:
        if columns not in self._samples:
            sample = self.source.numeric_columns().reduce(_sample(columns)).rows()
            self._samples[columns] = _Rows.of(columns, sample, self.folds)
        return self._samples[columns]

    def _grid(self, rows: _Rows, columns: tuple[int, ...]) -> _Grid:
        if columns not in self._grids:
            grid = {j: rows.sorted(j).cuts(_GRID, rows.weights[-1]).tolist() for j in columns}
            schema = self.source.schema.with_cuts(grid)
            counts = self.source.with_schema(schema).numeric_columns().reduce(per_fold(_count(columns), self.folds))
            parts = [counts.reindexed(components) for components in components_of_folds(len(counts.table), self.folds)]
            self._grids[columns] = _Grid(columns, schema, sums_without_each(parts))
        return self._grids[columns]


def bins_of(blocks: Sequence[Block]) -> dict[int, Bins]:
    """Return the bins that the densities of the blocks request, by the position of the column."""
    return {j: block.density.bins for block in blocks if isinstance(block.density, Binned) for j in block.columns}


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
    block = Block(Binned(), columns)
    size = min(_SAMPLED_ROWS, max(_SAMPLED_CELLS // len(columns), _GRID))

    def accumulate(batch: Batch) -> RowSample:
        reject_outside(block, batch)  # infinite cells: no midpoint with another cell exists
        return RowSample.of(batch, columns, size)

    return accumulate


def _count(columns: tuple[int, ...]) -> Callable[[Batch], Counts]:
    """Return the function from a batch to the weight of each class in the bins of some columns."""

    def accumulate(batch: Batch) -> Counts:
        known = batch.labelled()
        return Counts.of(cast(Codes, known.take(columns, "categorical")), cast(Assignment, known.assignment))

    return accumulate
