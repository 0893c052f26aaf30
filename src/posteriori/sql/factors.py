"""Log factors of columns that are independent given the component, as expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sqlglot import exp

from posteriori.densities import (
    CategoricalParameters,
    GaussianParameters,
    MissingnessParameters,
)
from posteriori.sql.dialects import (
    Node,
    cases,
    choice,
    column,
    literal,
    minus,
    missing,
    otherwise,
    plus,
    real,
    square,
    times,
)
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.support.typing import Array

Factor = tuple[int, int, Node]  # the component, the index of the column, and its log density in nats


@dataclass(frozen=True)
class FactorContext:
    """Context in which a density writes its log factors."""

    steps: SelectSteps  # the columns of the SELECT that are defined so far
    cells: CellReader  # the cells of the table as numbers and codes
    model: str  # the name of the model, for error messages
    # whether the factor of each column is multiplied by a weight of its own, so that factors cannot be merged
    weighted: bool
    exposure: int | None = None  # the column of exposures on which the density conditions


class FactorWriter(Protocol):
    """The function that writes a density, in `posteriori.sql.writers`.

    Law (tests/sql/test_to_sql.py): executed, the factors of a row sum up to its log density, up to a term that is the
    same for all components.
    """

    def __call__(self, context: FactorContext, columns: Sequence[int], parameters: Any) -> Iterator[Factor]:
        """Yield log factors of the columns with these indices, each 0 where the cell is missing."""


def gaussian_factors(
    context: FactorContext, columns: Sequence[int], parameters: GaussianParameters
) -> Iterator[Factor]:
    """Yield log N(x_j; mean_zj, variance_zj), or the log of a t, 0 where x_j is missing."""
    return independent_normals(
        context.cells, columns, parameters.mean, parameters.precision, parameters.log_peak, parameters.degrees
    )


def independent_normals(
    cells: CellReader,
    columns: Sequence[int],
    mean: Array,
    precision: Array,
    log_peak: Array,
    degrees: Array | None = None,
) -> Iterator[Factor]:
    """Yield log_peak − ½·precision·(x_j − mean)² of parameters (Z, d), 0 where x_j is missing.

    With degrees of freedom ν: log_peak − (ν + 1)/2·log(1 + precision·(x_j − mean)²/ν).
    """
    for position, j in enumerate(columns):
        x, centre = cells.centred(j, float(mean[:, position].mean()))
        for z in range(len(mean)):

            def apart(x: str = x, m: float = mean[z, position] - centre) -> Node:
                return minus(column(x), literal(m))

            if degrees is None:
                tail = times(literal(0.5 * precision[z, position]), square(apart))
            else:
                nu = float(degrees[z, position])
                tail = log_tail(times(literal(precision[z, position] / nu), square(apart)), nu, 1)
            yield z, j, otherwise(minus(literal(log_peak[z, position]), tail), literal(0.0))


def log_tail(relative_distance: Node, degrees: float, n_columns: int) -> Node:
    """Return (ν + p)/2·log(1 + distance/ν), the negative log of the tail of a t of p columns."""
    return times(literal(0.5 * (degrees + n_columns)), exp.Ln(this=plus(literal(1.0), relative_distance)))


def categorical_factors(
    context: FactorContext, columns: Sequence[int], parameters: CategoricalParameters
) -> Iterator[Factor]:
    """Yield log p(x_j = k | z), 0 where x_j is missing."""
    for position, j in enumerate(columns):
        table = parameters.column(position)
        if not table.shape[1]:
            continue
        code = context.cells.code(j)
        for z, row in enumerate(table.tolist()):
            yield z, j, real(choice(code, [literal(one) for one in row], literal(0.0)))


def missingness_factors(
    context: FactorContext, columns: Sequence[int], parameters: MissingnessParameters
) -> Iterator[Factor]:
    """Yield log p(m_j | z): of a cell that is missing, or of one that is not."""
    for position in np.flatnonzero(parameters.modelled_columns).tolist():
        present = context.cells.present(columns[position])
        for z in range(len(parameters.log_missing)):
            gone, here = parameters.log_missing[z, position], parameters.log_present[z, position]
            yield z, columns[position], real(cases((missing(present), literal(gone)), default=literal(here)))
