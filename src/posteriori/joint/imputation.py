"""Missing cells of a table, filled by their distribution given the known ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import narwhals as nw
import numpy as np

from posteriori.fitting.fitted import FittedValue
from posteriori.joint.answers import columns_of
from posteriori.joint.value import FittedJoint
from posteriori.model.predictive import PredictiveDensity
from posteriori.scoring.rows import RowsToPredict
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.arrays import write_column

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Filled:
    """Values of one column for the rows that lack it."""

    rows: Array  # (m,): the positions of the rows
    values: Array  # (m,)
    certainty: Array  # (m,): the probability of a category, or the standard deviation of a number


@dataclass(frozen=True)
class FittedImputer(FittedValue):
    """The result of a fit of an imputer: a joint model, and what fills a column of numbers that has no other beside."""

    joint: FittedJoint
    mean: float | None = None  # of the training rows, if numbers are the only column of the model

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.joint.schema

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return self.joint.ranges

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the joint model."""
        return self.joint.n_parameters

    @cached_property
    def rows(self) -> RowsToPredict:
        """The reader of rows to fill."""
        return replace(self.joint.rows, model=self.recipe.name)

    def without_rows(self) -> Self:
        """Return a value that fills cells alike, without sums and rows."""
        return replace(self, joint=self.joint.without_rows())

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        return replace(self, record=self.record.for_file(), joint=self.joint.for_file())

    def without_kept_rows(self) -> Self:
        """Return a value that keeps nothing of single rows, except for the pools that fill cells."""
        joint = self.joint.without_kept_rows()
        if self.recipe.parameters["method"] == "pool":
            joint = replace(joint, pools={name: one.without_kept_rows() for name, one in self.joint.pools.items()})
        return replace(super().without_kept_rows(), joint=joint)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        self.joint.check()
        if self.mean is not None:
            require(_only_numbers(self.joint) is not None, "there is a mean of one column, and other columns")
            require(np.isfinite(self.mean), "the mean of the column is not finite")


def _only_numbers(value: FittedJoint) -> int | None:
    """Return the column of numbers that is the only one of a joint model; None if there is no such column."""
    columns = value.law.columns
    return columns[0] if len(columns) == 1 and columns[0] in value.law.grids else None


def mean_of_only_column(value: FittedJoint, source: LabelledSource) -> float | None:
    """Return the mean of training rows if a model has one column, of numbers: its bins know the mean roughly."""
    j = _only_numbers(value)
    if j is None:
        return None
    place = value.schema.of_kind("continuous").index(j)
    return float(np.nanmean(source.with_width(1).map(lambda batch: np.asarray(batch.numbers.values[:, place]))))


def by_mean(value: FittedJoint, mean: float, filled: Mapping[str, Filled]) -> dict[str, Filled]:
    """Return the cells of the only column of a model with the mean of its training rows in place of their values."""
    (j,) = value.law.columns
    return {name: replace(one, values=on_grid(value, j, np.full(len(one.rows), mean))) for name, one in filled.items()}


def array_of(X: Any) -> Array:
    """Return rows as an array; NumPy would make strings alone of a list of numbers and strings."""
    cells = np.asarray(X)
    return np.asarray(X, dtype=object) if cells.dtype.kind == "U" and not hasattr(X, "dtype") else cells


def missing_cells(X: Any, names: list[str]) -> dict[str, Array]:
    """Return which rows lack each column, (n,), of a data frame or an array."""
    if isinstance(X, np.ndarray):
        return {name: _is_missing(X[:, j]) for j, name in enumerate(names)}
    if not nw.dependencies.is_into_dataframe(X):
        raise TypeError(f"X is a {type(X).__name__}; give a data frame or an array, whose missing cells are filled")
    frame = nw.from_native(X, eager_only=True)
    found = {}
    for name in names:
        if name in frame.columns:
            series = frame[name]
            lacks = series.is_null().to_numpy()
            if series.dtype.is_float():
                lacks = lacks | np.isnan(series.cast(nw.Float64).to_numpy())
            found[name] = np.asarray(lacks, np.bool_)
    return found


def _is_missing(column: Array) -> Array:
    if column.dtype.kind == "f":
        return np.isnan(column)
    return np.array([cell is None or cell != cell for cell in column.tolist()], np.bool_)


def filled_table(X: Any, names: list[str], filled: Mapping[str, Filled]) -> Any:
    """Return a copy of a table, of the same type, with values in place of missing cells."""
    if isinstance(X, np.ndarray):
        result = X.copy()
        for j, name in enumerate(names):
            if name in filled:
                result[filled[name].rows, j] = filled[name].values
        return result
    frame = nw.from_native(X, eager_only=True)
    columns = []
    for name, one in filled.items():
        series = frame[name]
        cells = series.to_list()
        for row, value in zip(one.rows.tolist(), one.values.tolist(), strict=True):
            cells[row] = value
        if series.dtype.is_integer():
            greatest = 2**64 - 1 if series.dtype == nw.UInt64 else 2**63 - 1  # which are no floats
            cells = [None if cell is None else min(int(cell), greatest) for cell in cells]
        columns.append(nw.new_series(name, cells, series.dtype, backend=nw.get_native_namespace(frame)))
    return frame.with_columns(*columns).to_native()


def by_law(value: FittedJoint, source: LabelledSource, lacks: Mapping[int, Array]) -> dict[int, Filled]:
    """Return the most probable category, or the mean, of missing cells by the joint model.

    Parameters
    ----------
    value : FittedJoint
    source : LabelledSource
        The rows.
    lacks : mapping from int to ndarray (n,)
        Which rows lack each column, by its position in the schema.
    """
    law = value.law
    places = [j for j in law.columns if j in lacks]

    def of_batch(batch: Batch) -> Array:
        def of_rows(rows: slice) -> Array:
            marginals = law.believe(law.likelihoods(batch.rows(rows))).marginals()
            found = np.empty((rows.stop - rows.start, 2 * len(places)))
            for k, j in enumerate(places):
                found[:, 2 * k : 2 * k + 2] = _best(value, j, marginals[j])
            return found

        return np.concatenate(law.in_blocks(len(batch), of_rows))

    found = source.with_width(2 * len(places)).map(of_batch)
    result = {}
    for k, j in enumerate(places):
        rows = np.flatnonzero(lacks[j])
        result[j] = Filled(rows, _written(value, j, found[rows, 2 * k]), found[rows, 2 * k + 1])
    return result


def _best(value: FittedJoint, j: int, probability: Array) -> Array:
    """Return the best cell of each row, a number or a code from 0 on, and how sure it is, (n, 2)."""
    if j in value.law.grids:
        density = value.law.answer(j, probability).density
        return np.column_stack([density.mean, density.std])
    return np.column_stack([probability.argmax(axis=1), probability.max(axis=1)])


def draws_by_law(
    value: FittedJoint, source: LabelledSource, lacks: Mapping[int, Array], rng: np.random.Generator
) -> dict[int, Filled]:
    """Return missing cells drawn together from their distribution given the known cells of each row."""
    law, within = value.law, {j: [ends] for j, ends in value.bounds.items()}
    places = [j for j in law.columns if j in lacks]
    seed = int(rng.integers(2**31))

    def of_batch(batch: Batch) -> Array:
        own = np.random.default_rng([seed, batch.start])

        def of_rows(rows: slice) -> Array:
            codes = law.believe(law.likelihoods(batch.rows(rows))).draw(own)
            columns = columns_of(value, codes, own, within)
            return np.column_stack([columns[j] - (j not in law.grids) for j in places])

        return np.concatenate(law.in_blocks(len(batch), of_rows))

    found = source.with_width(len(places)).map(of_batch)
    result = {}
    for k, j in enumerate(places):
        rows = np.flatnonzero(lacks[j])
        result[j] = Filled(rows, _written(value, j, found[rows, k]), np.full(len(rows), np.nan))
    return result


def _written(value: FittedJoint, j: int, cells: Array) -> Array:
    """Return numbers on the grid of the column, or categories."""
    if j not in value.law.grids:
        return np.asarray(write_column(value.schema.columns[j])[cells.astype(np.int64)])
    return on_grid(value, j, cells)


def on_grid(value: FittedJoint, j: int, numbers: Array) -> Array:
    """Return the nearest numbers on the grid of a column, and in the range of its training rows."""
    return value.law.grids[j].on_grid(numbers, *value.bounds.get(j, (-np.inf, np.inf)))


def draw_numbers(value: FittedJoint, j: int, density: PredictiveDensity, rng: np.random.Generator) -> Array:
    """Draw a number of a column from each of some densities, (n,), within the range of its training rows."""
    part = density.cells.share_between(*value.bounds.get(j, (-np.inf, np.inf)))
    inside = density.probability * part
    total = inside.sum(axis=1, keepdims=True)
    within = np.where(total > 0, inside / np.maximum(total, _TINY), density.probability)
    return on_grid(value, j, replace(density, probability=within).sample(1, rng)[:, 0])
