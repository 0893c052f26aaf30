"""The functions of single columns whose sum is the additive member of a pool of regressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.regression.features import Features
from posteriori.regression.least_squares import LeastSquares
from posteriori.regression.members import Members
from posteriori.support.formatting import cell_text, plural
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema

_POINTS = 60


@dataclass(frozen=True)
class AdditiveEffect:
    """The function of one column in the additive member, on the scale of the target.

    Attributes
    ----------
    column : str
    scale : str
        The scale: "as_is", "log" or "rank", each shifted and divided so that training rows have about mean 0 and
        variance 1.
    cells : ndarray (k,)
        Numbers, with two points at each step, or categories.
    effect : ndarray (k,)
        The amount that the cell adds. Over the training rows with a known cell its mean is near 0. The location of a
        row without missing cells is the sum over the columns plus a constant.
    """

    column: str
    scale: str
    cells: Array
    effect: Array

    def __repr__(self) -> str:
        low, high = (float(end) for end in (self.effect.min(), self.effect.max()))
        points = plural(len(self.cells), "point")
        return f"<AdditiveEffect of {cell_text(self.column)}: {points}, from {low:.3g} to {high:.3g} ({self.scale})>"


def additive_effects(members: Members, schema: Schema) -> dict[str, AdditiveEffect]:
    """Return the function of each column that had more than one value in training, by its name.

    Raises
    ------
    ValueError
        The pool has no additive member.
    """
    squares = _additive(members)
    features = members.design.features
    points = points_of(features, schema)
    return {
        schema.names[j]: AdditiveEffect(
            schema.names[j],
            members.scale.name,
            _as_shown(schema.columns[j], cells),
            effect_of_cells(features, squares, schema, j, cells),
        )
        for j, cells in sorted(points.items())
    }


def points_of(features: Features, schema: Schema) -> dict[int, Array]:
    """Return where the function of each column is drawn, by its position: numbers, or codes of categories."""
    points: dict[int, Array] = {}
    for one in features.numbers:
        grid = np.linspace(one.lowest, one.highest, _POINTS)
        points[one.column] = np.unique(np.concatenate([grid, one.cuts, np.nextafter(one.cuts, -np.inf)]))
    for of in features.categories:
        points[of.column] = np.arange(1, len(schema.columns[of.column].categories) + 1)
    return points


def effect_of_cells(features: Features, squares: LeastSquares, schema: Schema, column: int, cells: Array) -> Array:
    """Return the amounts that cells of a column add to the location, (k,)."""
    values = features.of_rows(_rows_of_one_column(schema, column, cells))
    own = np.flatnonzero(features.columns == column)
    return np.asarray((values[:, own] - squares.mean[own]) @ squares.coefficients[own, 0])


def _additive(members: Members) -> LeastSquares:
    for location, squares in zip(members.locations, members.squares, strict=True):
        if location.name == "additive":
            return squares
    raise ValueError(
        f"the members are {', '.join(members.names)}, and only an additive one has functions of single columns; fit "
        'with members="auto" or name "additive" in members'
    )


def _rows_of_one_column(schema: Schema, column: int, cells: Array) -> Batch:
    """Return a row per cell of a column, in which nothing else is known."""
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers = np.full((len(cells), len(continuous)), np.nan)
    codes = np.zeros((len(cells), len(categorical)), np.int32)
    if column in continuous:
        numbers[:, continuous.index(column)] = cells
    else:
        codes[:, categorical.index(column)] = cells
    return Batch.of(schema, 0, numbers, codes, {}, bags=())


def _as_shown(column: Column, cells: Array) -> Array:
    if column.kind == "continuous":
        return cells
    known: list[Any] = [column.categories[code - 1] for code in cells.tolist()]
    return np.array(known, dtype=object)
