"""The laws of the optional methods of densities: each agrees with what it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.checks.laws import Law, equal, require
from posteriori.densities.capabilities import (
    KnownLikelihoodDensity,
    LeaveOneOutDensity,
    LinearDensity,
    SingleColumnDensity,
)
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Numbers
from posteriori.tables.schema import Column

_N_LEFT_OUT = 10
_CLOSE = 1e-6


def laws_of_methods(density: Any, parameters: Any, tile: Any, assignment: Assignment) -> Iterator[Law]:
    """Yield the laws of the optional methods that a density has."""
    if isinstance(density, LinearDensity):
        yield (
            "the differences of linear_terms between components are those of the log density",
            lambda: _check_linear(density, parameters, tile),
        )
    if isinstance(density, LeaveOneOutDensity):
        yield (
            "left_out is the log density under the parameters of the other rows",
            lambda: _check_left_out(density, parameters, tile, assignment),
        )
    if isinstance(density, SingleColumnDensity):
        yield (
            "log_density_of_column is the log density of rows without other cells",
            lambda: _check_columns(density, parameters, tile),
        )
    if isinstance(density, KnownLikelihoodDensity):
        yield (
            "log_likelihood is the sum of the log density over the rows",
            lambda: _check_likelihood(density.plug_in(), tile, assignment),
        )


def _known(tile: Any) -> Array:
    return np.asarray(tile.values > 0 if isinstance(tile, Codes) else ~np.isnan(tile.values))


def _check_linear(density: Any, parameters: Any, tile: Any) -> None:
    d = tile.values.shape[1]
    if isinstance(tile, Codes):
        sizes = tile.cardinalities
        columns = [Column(f"x{j}", "categorical", tuple(map(str, range(1, sizes[j] + 1)))) for j in range(d)]
    else:
        columns = [Column(f"x{j}", "continuous") for j in range(d)]
    try:
        linear = density.linear_terms(parameters, columns)
    except ValueError:  # the log-odds of these parameters are not linear
        return
    whole = tile.rows(np.flatnonzero(_known(tile).all(axis=1)))
    require(len(whole.values) > 0, "No row is complete; give some that are")
    scores = np.repeat(np.asarray(linear.bias)[np.newaxis], len(whole.values), axis=0)
    for position, category, weights in linear.terms:
        cells = whole.values[:, position]
        scores = scores + np.outer(cells if category is None else cells == int(category), weights)
    log_density = density.log_density(parameters, whole)
    equal(scores - scores[:, :1], log_density - log_density[:, :1], _CLOSE)


def _check_left_out(density: Any, parameters: Any, tile: Any, assignment: Assignment) -> None:
    factory, n = density.sufficient_statistics, len(tile.values)
    again = density.with_fixed_structure(parameters)
    rows = np.arange(n)
    if isinstance(tile, Codes):  # a category that no other row has counts as missing
        shared = [np.bincount(column, minlength=1)[column] > 1 for column in tile.values.T]
        rows = np.flatnonzero(np.all(shared, axis=0))
    rows = rows[:_N_LEFT_OUT]
    found = density.left_out(parameters, factory.of(tile, assignment), tile.rows(rows), assignment.rows(rows))
    found = np.asarray(found).sum(axis=2)
    for i, of_row in zip(rows.tolist(), found, strict=True):
        others = np.delete(np.arange(n), i)
        learned = again.estimate(again.sufficient_statistics.of(tile.rows(others), assignment.rows(others)))
        if not np.isnan(of_row).any():  # it has no closed form
            equal(of_row, density.log_density(learned, tile.rows(np.array([i])))[0], _CLOSE)


def _check_columns(density: Any, parameters: Any, tile: Any) -> None:
    for j in range(tile.values.shape[1]):
        alone = np.full_like(tile.values, np.nan)
        alone[:, j] = tile.values[:, j]
        found = density.log_density_of_column(parameters, j, tile.values[:, j])
        equal(found, density.log_density(parameters, Numbers(alone)), _CLOSE)


def _check_likelihood(density: Any, tile: Any, assignment: Assignment) -> None:
    statistics = density.sufficient_statistics.of(tile, assignment)
    if not statistics.is_exact():
        return
    parameters = density.estimate(statistics)
    own = density.log_density(parameters, tile)[np.arange(len(tile.values)), assignment.component]
    equal(density.log_likelihood(parameters, statistics), assignment.weight @ own, _CLOSE)
