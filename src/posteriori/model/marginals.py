"""The distribution of one column of a model, with the others missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posteriori.densities import MarginDensity
from posteriori.model.generative_model import GenerativeModel
from posteriori.tables import Batch, Numbers, Schema
from posteriori.typing import Array


def log_marginal(model: GenerativeModel, column: int, cells: Array) -> Array:
    """Return log p(x_j | y) in nats, (n, C), of cells of one column, by its position, with the others missing.

    The cells are numbers or codes of categories. The missingness density is omitted.
    """
    return _log_density(model, column, batch_of_column(model.schema, column, cells))


def log_marginal_of_codes(model: GenerativeModel, column: int) -> Array:
    """Return log p(x_j = k | y) in nats, (K, C), of the categories or bins of one column, by its position."""
    k = model.schema.columns[column].cardinality
    nothing = _batch_without_cells(model.schema, k)
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
        if isinstance(block.density, MarginDensity) and isinstance(tile, Numbers):
            total += block.density.log_density_of_column(parameters, position, tile.values[:, position])
        else:
            total += block.density.log_density(parameters, tile)
    return model.by_class(total + model.log_share) if model.of_class else total


def batch_of_column(schema: Schema, column: int, cells: Array) -> Batch:
    """Return rows in which all columns but one, by its position, are missing."""
    nothing = _batch_without_cells(schema, len(cells))
    if schema.columns[column].kind == "categorical":
        codes = nothing.codes.values.copy()
        codes[:, schema.coded.index(column)] = cells
        return replace(nothing, codes=replace(nothing.codes, values=codes))
    numbers = nothing.numbers.values.copy()
    numbers[:, schema.of_kind("continuous").index(column)] = cells
    categories = np.zeros((len(cells), len(schema.of_kind("categorical"))), schema.code_dtype)
    return Batch.of(schema, 0, numbers, categories, {})


def _batch_without_cells(schema: Schema, n: int) -> Batch:
    """Return n rows in which every cell is missing."""
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers, codes = np.full((n, len(continuous)), np.nan), np.zeros((n, len(categorical)), schema.code_dtype)
    return Batch.of(schema, 0, numbers, codes, {})
