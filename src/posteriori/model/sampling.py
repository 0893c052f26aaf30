"""Rows drawn from a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from posteriori.densities.within_ranges import box_of, draw_within
from posteriori.model.blocks import Block
from posteriori.model.generative_model import GenerativeModel
from posteriori.statistics import ColumnRanges
from posteriori.tables import Bags, Schema, quote
from posteriori.typing import Array


def draw_components(model: GenerativeModel, label: Array, rng: np.random.Generator) -> Array:
    """Draw a component for each row from p(z | y), (n,) from classes (n,)."""
    if not model.of_class:
        return label
    component = np.empty(len(label), np.int64)
    share = np.exp(model.log_share)
    for z in np.unique(label):
        rows, positions = np.flatnonzero(label == z), np.flatnonzero(np.array(model.of_class) == z)
        component[rows] = rng.choice(positions, size=len(rows), p=share[positions] / share[positions].sum())
    return component


def draw_rows(
    model: GenerativeModel, component: Array, rng: np.random.Generator, ranges: ColumnRanges | None = None
) -> list[Any]:
    """Draw one row per entry of component: a list of columns in schema order, of numbers, codes or bags.

    Cells that a missingness block draws as missing are NaN or 0. All cells of ignored columns, and of columns of
    numbers that had no value in training, are NaN. With ranges, the density of each block given the component is
    truncated to them, and integer columns are rounded (`draw_within`); components keep their probabilities.
    """
    schema = model.schema
    for j in set(schema.of_kind("counts")).difference(*(block.columns for block in model.blocks)):
        raise ValueError(
            f"the model has no distribution of {quote([schema.names[j]])}, so that no rows can be drawn; use NaiveBayes"
        )
    columns: list[Any] = [np.empty(0)] * len(schema.columns)
    pairs = list(zip(model.blocks, model.parameters, strict=True))
    values, masks = ([pair for pair in pairs if pair[0].models_missingness == masking] for masking in (False, True))
    # Shared blocks and those with an exposure come last: they draw given the cells of the other blocks.
    for block, parameters in sorted(values, key=lambda pair: (pair[0].shared, pair[0].exposure_in(schema) is not None)):
        drawn = _draw_block(schema, block, parameters, component, columns, rng, ranges)
        for position, j in enumerate(block.columns):
            columns[j] = drawn if isinstance(drawn, Bags) else drawn[:, position]
    for j, read in enumerate(schema.columns):
        if read.kind == "categorical":
            columns[j] = columns[j].astype(read.code_type, copy=False)
        if read.is_ignored or read.valueless:
            columns[j] = np.full(len(component), np.nan)
    for block, parameters in masks:
        missing = block.density.sample(parameters, component, rng)
        for position, j in enumerate(block.columns):
            blank = columns[j].dtype.type(0) if schema.columns[j].kind == "categorical" else np.nan
            columns[j] = np.where(missing[:, position], blank, columns[j])
    return columns


def _draw_block(
    schema: Schema,
    block: Block,
    parameters: Any,
    component: Array,
    columns: Sequence[Any],
    rng: np.random.Generator,
    ranges: ColumnRanges | None,
) -> Any:
    """Draw the cells of a block, (n, d) or the bags of a column of counts, given the columns drawn before."""
    given = np.column_stack([columns[j] for j in block.columns]) if block.shared else component
    exposure = block.exposure_in(schema)
    if exposure is not None:
        drawn = cast(Any, block.density).sample(parameters, given, rng, exposure=columns[exposure])
    elif ranges is None or block.density.kind == "counts":
        drawn = block.density.sample(parameters, given, rng)
    else:
        box = box_of(schema, block.columns, ranges, coded=block.density.kind != "continuous")
        drawn = draw_within(block.density, parameters, given, rng, box)
    if isinstance(drawn, Bags) and schema.columns[block.columns[0]].kind != "counts":
        return drawn.to_array()
    return drawn
