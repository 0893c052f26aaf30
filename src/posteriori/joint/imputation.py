"""Missing cells of a table, filled by their distribution given the known ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from posteriori.joint.answers import columns_of
from posteriori.joint.value import FittedJoint
from posteriori.sources import LabelledSource
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.arrays import write_column


@dataclass(frozen=True)
class Filled:
    """Values of one column for the rows that lack it."""

    rows: Array  # (m,): the positions of the rows
    values: Array  # (m,)
    certainty: Array  # (m,): the probability of a category, or the standard deviation of a number


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
            cells = [None if cell is None else int(cell) for cell in cells]
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
        density = value.law.density(j, probability)
        return np.column_stack([density.mean, density.std])
    return np.column_stack([probability.argmax(axis=1), probability.max(axis=1)])


def draws_by_law(
    value: FittedJoint, source: LabelledSource, lacks: Mapping[int, Array], rng: np.random.Generator
) -> dict[int, Filled]:
    """Return missing cells drawn together from their distribution given the known cells of each row."""
    law = value.law
    places = [j for j in law.columns if j in lacks]
    seed = int(rng.integers(2**31))

    def of_batch(batch: Batch) -> Array:
        own = np.random.default_rng([seed, batch.start])

        def of_rows(rows: slice) -> Array:
            codes = law.believe(law.likelihoods(batch.rows(rows))).draw(own)
            columns = columns_of(value, codes, own, {})
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
    """Return numbers as near as the step of the column allows: whole numbers stay whole."""
    cells = value.law.grids[j].cells
    if not cells.step:
        return numbers
    decimals = max(0, -int(np.floor(np.log10(cells.step) + 1e-9)))
    return np.asarray(np.round(np.round(numbers / cells.step) * cells.step, decimals + 1))
