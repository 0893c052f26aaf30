"""Where the columns of a table are cut, from all rows and from those outside each fold."""

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

_GRID = 1000  # bins, between which "mdlp" cuts tables of more rows than are sampled
_SAMPLED_ROWS = 50_000  # rows that cut points are chosen from, and fewer in very wide tables
_SAMPLED_CELLS = 1 << 23
_ENOUGH_ROWS = 2000  # for threads to be worth their start


@dataclass(frozen=True)
class _Rows:
    """Sampled rows of some columns, and their weights outside each fold and, last, in all folds."""

    columns: tuple[int, ...]
    sample: RowSample
    weights: tuple[Array, ...]
    cells: dict[int, SortedCells] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: tuple[int, ...], sample: RowSample, folds: int) -> _Rows:
        outside = (np.where(sample.fold == k, 0.0, sample.weight) for k in range(folds))
        return cls(columns, sample, (*outside, sample.weight))

    def sorted(self, j: int) -> SortedCells:
        """Return the cells of a column, by its position in the schema."""
        if j not in self.cells:
            self.cells[j] = SortedCells.of(self.sample.values[:, self.columns.index(j)], self.sample.component)
        return self.cells[j]


@dataclass(frozen=True)
class _Grid:
    """Cut points from which "mdlp" chooses, and the weight of each class in between: outside each fold, and in all."""

    columns: tuple[int, ...]
    schema: Schema
    counts: list[Counts]

    def chosen(self, j: int) -> list[Sequence[float]]:
        """Return the cut points of a column, outside each fold and last of all rows."""
        grid, position = np.array(self.schema.columns[j].cuts), self.columns.index(j)
        return [grid[mdlp_of_counts(one.column(position))].tolist() for one in self.counts]


@dataclass(frozen=True)
class CutPoints:
    """Chooses the cut points of several models of the same rows; what they share is read and sorted once.

    Attributes
    ----------
    source : Source
        Labelled, where a column's bins are "mdlp". Its batches say the fold of each row, where there are folds.
    folds : int
        The number of folds.
    n_jobs : int, optional
        Threads, which take a column each; None or −1 for one per core. The result does not depend on it.
    """

    source: Source
    folds: int = 0
    n_jobs: int | None = 1
    _samples: dict[tuple[int, ...], _Rows] = field(default_factory=dict)
    _grids: dict[tuple[int, ...], _Grid] = field(default_factory=dict)

    def schemas(self, bins: Mapping[int, Bins]) -> list[Schema]:
        """Return the schema with the cut points of the rows outside each fold, and last that of all rows.

        They are one object where all are equal. The parameter and the cost are those of `binned_schema`; each fold
        adds O(n·d).
        """
        cuts: dict[int, list[Sequence[float]]] = {
            j: [wanted] * (self.folds + 1) for j, wanted in bins.items() if isinstance(wanted, tuple)
        }
        columns = tuple(sorted(set(bins) - set(cuts)))
        if columns:
            cuts |= zip(columns, self._chosen(columns, bins), strict=True)
        schemas = [
            self.source.schema.with_cuts({j: of_fold[k] for j, of_fold in cuts.items()}) for k in range(self.folds + 1)
        ]
        alike = all(one == schemas[-1] for one in schemas)
        return [schemas[-1]] * len(schemas) if alike else schemas

    def _chosen(self, columns: tuple[int, ...], bins: Mapping[int, Bins]) -> list[list[Sequence[float]]]:
        """Return, for each column, the cut points outside each fold and last of all rows."""
        rows = self._rows(columns)
        supervised = () if rows.sample.is_complete else tuple(j for j in columns if bins[j] == "mdlp")
        grid = self._grid(rows, supervised) if supervised else None

        def choose(j: int) -> list[Sequence[float]]:
            if grid is not None and j in supervised:
                return grid.chosen(j)
            wanted = bins[j]
            assert not isinstance(wanted, tuple)
            return [rows.sorted(j).cuts(wanted, weight).tolist() for weight in rows.weights]

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
            parts = [counts.reindexed(some) for some in components_of_folds(len(counts.table), self.folds)]
            self._grids[columns] = _Grid(columns, schema, sums_without_each(parts))
        return self._grids[columns]


def bins_of(blocks: Sequence[Block]) -> dict[int, Bins]:
    """Return the bins that the densities of some blocks ask for, by the position of the column."""
    return {j: block.density.bins for block in blocks if isinstance(block.density, Binned) for j in block.columns}


def binned_schema(source: Source, bins: Mapping[int, Bins], n_jobs: int | None = 1) -> Schema:
    """Return the schema of a source in which some continuous columns are binned.

    Parameters
    ----------
    source : Source
        Labelled, where a column's bins are "mdlp".
    bins : mapping
        From the position of a column to a number of bins of equal weight, "mdlp", or cut points: see `Binned`.
    n_jobs : int, optional
        Threads, which take a column each; None or −1 for one per core. The result does not depend on it.

    Returns
    -------
    Schema

    Notes
    -----
    Up to 50,000 rows (fewer with more than 167 columns) cut points are exact: every distinct value is tried. Beyond,
    quantiles are those of a uniform sample of that many rows; "mdlp" counts all rows between 1000 quantiles of the
    sample, and cuts at some of these.

    Cost: no pass where cut points are given; otherwise one pass, which keeps at most twice that many rows, and a sort
    of each column; a second pass, O(n·d), for "mdlp" of more rows.
    """
    return CutPoints(source, n_jobs=n_jobs).schemas(bins)[-1]


def _sample(columns: tuple[int, ...]) -> Callable[[Batch], RowSample]:
    block = Block(Binned(), columns)
    size = min(_SAMPLED_ROWS, max(_SAMPLED_CELLS // len(columns), _GRID))

    def accumulate(batch: Batch) -> RowSample:
        reject_outside(block, batch)  # an infinite cell, between which and others no cut can lie
        return RowSample.of(batch, columns, size)

    return accumulate


def _count(columns: tuple[int, ...]) -> Callable[[Batch], Counts]:
    """Return what takes a batch to the weight of each class in the bins of some columns."""

    def accumulate(batch: Batch) -> Counts:
        known = batch.labelled()
        return Counts.of(cast(Codes, known.take(columns, "categorical")), cast(Assignment, known.assignment))

    return accumulate
