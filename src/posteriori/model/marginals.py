"""Columns of a model alone or unknown: the other factors are left out or integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from posteriori.densities import ChainedDensity, ColumnDroppingDensity, ScoredDensity, SingleColumnDensity, implements
from posteriori.model.generative_model import GenerativeModel
from posteriori.support.typing import Array
from posteriori.tables import Bags, Batch, Numbers, Schema
from posteriori.tables.table import joined_rows


def log_marginal(model: GenerativeModel, column: int, cells: Array) -> Array:
    """Return log p(x_j | y) in nats, (n, C), of cells of one column, by its position, with the others missing.

    The cells are numbers or codes of categories. The missingness density is omitted.
    """
    return _log_density(model, column, batch_of_column(model.schema, column, cells))


def log_marginal_of_codes(model: GenerativeModel, column: int) -> Array:
    """Return log p(x_j = k | y) in nats, (K, C), of the categories or bins of one column, by its position."""
    k = model.schema.columns[column].cardinality
    nothing = batch_without_cells(model.schema, k)
    codes = nothing.codes.values.copy()
    codes[:, model.schema.coded.index(column)] = np.arange(1, k + 1)
    return _log_density(model, column, replace(nothing, codes=replace(nothing.codes, values=codes)))


def cannot_hold(model: GenerativeModel, column: int, cells: Array) -> Array:
    """Return which cells of one column, by its position, no component can produce, (n,)."""
    batch = batch_of_column(model.schema, column, cells)
    out_of_support = np.zeros(len(batch), np.bool_)
    for block in model.blocks:
        if column in block.columns:
            tile = block.tile(batch)
            out_of_support |= block.density.out_of_support(tile)[:, block.columns.index(column)]
    return out_of_support


def _log_density(model: GenerativeModel, column: int, batch: Batch) -> Array:
    total = np.zeros((len(batch), model.n_components))
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if column not in block.columns or block.models_missingness:
            continue
        tile, position = block.tile(batch), block.columns.index(column)
        if isinstance(block.density, SingleColumnDensity) and isinstance(tile, Numbers):
            total += block.density.log_density_of_column(parameters, position, tile.values[:, position])
        else:
            total += block.density.log_density(parameters, tile)
    return model.by_class(total + model.log_share) if model.of_class else total


def batch_of_column(schema: Schema, column: int, cells: Array) -> Batch:
    """Return rows in which all columns but one, by its position, are missing."""
    nothing = batch_without_cells(schema, len(cells))
    if schema.columns[column].kind == "categorical":
        codes = nothing.codes.values.copy()
        codes[:, schema.coded.index(column)] = cells
        return replace(nothing, codes=replace(nothing.codes, values=codes))
    numbers = nothing.numbers.values.copy()
    numbers[:, schema.of_kind("continuous").index(column)] = cells
    categories = np.zeros((len(cells), len(schema.of_kind("categorical"))), schema.code_dtype)
    return Batch.of(schema, 0, numbers, categories, {})


def batch_without_cells(schema: Schema, n: int) -> Batch:
    """Return n rows in which every cell is missing."""
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers, codes = np.full((n, len(continuous)), np.nan), np.zeros((n, len(categorical)), schema.code_dtype)
    return Batch.of(schema, 0, numbers, codes, {})


def scores_without_each(model: GenerativeModel, batch: Batch) -> Array:
    """Return log p(y | x₋ⱼ) in nats for each column j, (d, n, C), up to a constant per row.

    If a column is independent of the others given the component, its factor is left out of the sum. A
    `ColumnDroppingDensity` computes its log-density without each of its columns. Any other column is made missing, and
    the model integrates it out: also those of an ensemble, whose factors depend on each other. The batch is in the
    codes of the model.
    """
    d = len(model.schema.columns)
    chained = [block for block in model.blocks if not block.shared and implements(block.density, ChainedDensity)]
    if model.weights is not None and chained:  # a missing parent changes the factors that weights multiply
        masked = set(range(d))
    else:
        masked = {j for block in chained if not implements(block.density, ColumnDroppingDensity) for j in block.columns}
    # A factor of a forest depends on the columns that its trees asked before.
    masked |= {j for block in model.blocks if implements(block.density, ScoredDensity) for j in block.columns}
    exposures = {block.exposure_in(model.schema) for block in model.blocks}
    masked |= {j for j in exposures if j is not None}
    scores = np.empty((d, len(batch), model.n_classes))
    if len(masked) < d:
        scores[:] = _sums_without_each(model, batch)
    columns = sorted(masked)
    if any(block.models_missingness for block in model.blocks):
        for j in columns:
            scores[j] = scores_without(model, batch, [j])
    elif columns:
        known = _without(model.known(batch), columns)
        scores[columns] = model.scores(unknown_in_turn(batch, columns), known).reshape(len(columns), len(batch), -1)
    return scores


def scores_without(model: GenerativeModel, batch: Batch, columns: Sequence[int]) -> Array:
    """Return log p(y | x without some columns) in nats, (n, C), up to a constant per row."""
    known = model.known(batch)
    known[:, list(columns)] = False
    # A density of missingness would take the cells made missing here as evidence: ignore it for these columns.
    others = [k for k in range(len(model.schema.columns)) if k not in columns]
    for j in columns:
        batch = unknown_in_turn(batch, [j])
    return model.ignore_missingness_except(others).scores(batch, known)


def depends_on_others(model: GenerativeModel, column: int) -> bool:
    """Return whether what a cell of a column adds to the scores of a row depends on the other cells of the row."""
    if model.of_class:
        return True
    return any(
        column == block.exposure_in(model.schema)
        or (column in block.columns and any(implements(block.density, one) for one in (ChainedDensity, ScoredDensity)))
        for block in model.blocks
    )


def _without(known: Array, columns: Sequence[int]) -> Array:
    """Return which cells are known, (n, d), once for each of some columns without it, one after the other."""
    result = np.tile(known, (len(columns), 1, 1))
    result[np.arange(len(columns)), :, columns] = False
    return result.reshape(-1, known.shape[1])


def _sums_without_each(model: GenerativeModel, batch: Batch) -> Array:
    """Return the scores without each column, (d, n, C); wrong for columns that have to be made missing."""
    d, weights = len(model.schema.columns), model.weights
    total = np.tile(model.log_prior, (d, len(batch), 1))
    if weights is not None and model.offset is not None:
        known = model.known(batch)
        total = np.stack([np.broadcast_to(model.start(_without(known, [j])), total.shape[1:]) for j in range(d)])
    for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
        if block.shared:
            continue
        columns, others = list(block.columns), np.delete(np.arange(d), block.columns)
        tile = block.tile(batch)
        if implements(block.density, ScoredDensity) and not block.density.has_factors:
            total[others] += block.density.log_scores(parameters, tile)
            continue
        if implements(block.density, ChainedDensity):
            total[others] += block.density.log_density(parameters, tile)
            if implements(block.density, ColumnDroppingDensity):
                total[columns] += block.density.without_each(parameters, tile)
            continue
        factors = np.moveaxis(block.density.log_factors(parameters, tile), 2, 0)
        if weights is not None:
            of_block = weights.weight[columns, np.newaxis, np.newaxis]
            with np.errstate(invalid="ignore"):  # 0 · −inf
                factors = np.where(of_block > 0, of_block * factors, 0.0)
        total[others] += factors.sum(axis=0)
        total[columns] += _sums_of_others(factors)
    return model.by_class(total) if weights is None else total


def _sums_of_others(terms: Array) -> Array:
    """Return, for each index of the first axis, the sum over all other indices.

    The sums before and after it are added. Subtracting it from the total would give NaN for terms of −inf.
    """
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    return before + after


def with_cells(batch: Batch, column: int, cells: Array | None) -> Batch:
    """Return one copy of the rows for each value of a column, in which all rows have this value.

    Parameters
    ----------
    column : int
        Its position.
    cells : ndarray (P,) or None
        Numbers, or codes of categories; None for one copy in which the cells are missing.
    """
    schema, n = batch.schema, len(batch)
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    copies = 1 if cells is None else len(cells)
    numbers = np.tile(batch.numbers.values, (copies, 1))
    codes = np.tile(batch.codes.values[:, [schema.coded.index(j) for j in categorical]], (copies, 1))
    if column in continuous:
        numbers[:, continuous.index(column)] = np.nan if cells is None else np.repeat(cells, n)
    else:
        codes[:, categorical.index(column)] = 0 if cells is None else np.repeat(cells, n)
    bags = tuple(one.rows(np.tile(np.arange(n), copies)) for one in batch.bags)
    others = {name: rows for name, rows in batch.unseen_rows.items() if name != schema.names[column]}
    unseen = joined_rows([(n, others)] * copies)
    return Batch.of(schema, 0, numbers, np.ascontiguousarray(codes), unseen, bags=bags)


def unknown_in_turn(batch: Batch, columns: Sequence[int]) -> Batch:
    """Return one copy of the rows for each of the columns, in which the cells of that column are missing."""
    schema, n = batch.schema, len(batch)
    numbers, codes = (np.tile(cells, (len(columns), 1)) for cells in (batch.numbers.values, batch.codes.values))
    for position, j in enumerate(columns):
        rows = slice(position * n, (position + 1) * n)
        if schema.columns[j].kind == "continuous":
            numbers[rows, schema.of_kind("continuous").index(j)] = np.nan
        if j in schema.coded:
            codes[rows, schema.coded.index(j)] = 0
    tiles = replace(batch.numbers, values=numbers), replace(batch.codes, values=codes)
    row_numbers = np.tile([batch.number(i) for i in range(n)], len(columns))
    bags = tuple(
        Bags.joined([Bags.empty(n, cells.n_words) if j == column else cells for column in columns])
        for j, cells in zip(schema.of_kind("counts"), batch.bags, strict=True)
    )
    return replace(batch, numbers=tiles[0], codes=tiles[1], assignment=None, fold=None, chosen=row_numbers, bags=bags)
