"""Log factors of columns that are independent given the component, as expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sqlglot import exp

from posteriori.densities import (
    CategoricalParameters,
    GaussianParameters,
    MissingnessParameters,
    PoissonParameters,
)
from posteriori.sql.cells import Cells
from posteriori.sql.dialects import (
    Node,
    cases,
    choice,
    column,
    minus,
    missing,
    number,
    otherwise,
    real,
    square,
    times,
)
from posteriori.typing import Array

Factor = tuple[int, int, Node]  # the component, the column by its position, and its log density in nats


def gaussian_factors(cells: Cells, columns: Sequence[int], parameters: GaussianParameters) -> Iterator[Factor]:
    """Yield log N(x_j; mean_zj, variance_zj), 0 where x_j is missing."""
    return independent_normals(cells, columns, parameters.mean, parameters.precision, parameters.log_peak)


def independent_normals(
    cells: Cells, columns: Sequence[int], mean: Array, precision: Array, log_peak: Array
) -> Iterator[Factor]:
    """Yield log_peak − ½·precision·(x_j − mean)² of parameters (Z, d), 0 where x_j is missing."""
    for position, j in enumerate(columns):
        x, centre = cells.centred(j, float(mean[:, position].mean()))
        for z in range(len(mean)):

            def apart(x: str = x, m: float = mean[z, position] - centre) -> Node:
                return minus(column(x), number(m))

            distance = times(number(0.5 * precision[z, position]), square(apart))
            yield z, j, otherwise(minus(number(log_peak[z, position]), distance), number(0.0))


def poisson_factors(cells: Cells, columns: Sequence[int], parameters: PoissonParameters) -> Iterator[Factor]:
    """Yield x_j·log rate_zj − rate_zj, 0 where x_j is missing; log x_j! is the same for all components."""
    for position, j in enumerate(columns):
        x = cells.number(j)
        cells.refuse(exp.LT(this=column(x), expression=number(0.0)))
        cells.refuse(exp.NEQ(this=column(x), expression=exp.Floor(this=column(x))))
        for z, (rate, log_rate) in enumerate(
            zip(parameters.rate[:, position], parameters.log_rate[:, position], strict=True)
        ):
            if rate > 0:
                expected = minus(times(number(log_rate), column(x)), number(rate))
                yield z, j, otherwise(expected, number(0.0))
            else:
                event = exp.GT(this=column(x), expression=number(0.0))
                yield z, j, real(cases((event, number(-np.inf)), default=number(0.0)))


def categorical_factors(cells: Cells, columns: Sequence[int], parameters: CategoricalParameters) -> Iterator[Factor]:
    """Yield log p(x_j = k | z), 0 where x_j is missing."""
    for position, j in enumerate(columns):
        table = parameters.column(position)
        if not table.shape[1]:
            continue
        code = cells.code(j)
        for z, row in enumerate(table.tolist()):
            yield z, j, real(choice(code, [number(one) for one in row], number(0.0)))


def missingness_factors(cells: Cells, columns: Sequence[int], parameters: MissingnessParameters) -> Iterator[Factor]:
    """Yield log p(m_j | z): of a cell that is missing, or of one that is not."""
    for position in np.flatnonzero(parameters.modelled_columns).tolist():
        present = cells.present(columns[position])
        for z in range(len(parameters.log_missing)):
            gone, here = parameters.log_missing[z, position], parameters.log_present[z, position]
            yield z, columns[position], real(cases((missing(present), number(gone)), default=number(here)))
