"""The laws of densities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.checks.draws import laws_of_support
from posteriori.checks.laws import Law, checked, equal, require
from posteriori.checks.optional_methods import laws_of_methods
from posteriori.densities.capabilities import check_base, check_hyperparameters
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Numbers

_N_COMPONENTS = 3
_N_DRAWN = 150
_SINGLE_ROWS = 5
_FEWEST_ROWS = 30


def check_density(density: Any, cells: Any, random_state: int = 0) -> list[str]:
    """Check that a density obeys the laws on which models rely, and return the laws.

    The laws are about what is learned (the statistics are sums over weighted rows, and nothing depends on the order of
    rows and components), about rows (a missing cell is integrated out, and a row is scored alone as among others), and
    about draws: over the rows drawn from a component, the mean of p(x | z') / p(x | z) is 1, within 6 standard errors,
    and they are in the support. `has_full_support` agrees with `out_of_support`. Far from all rows that are drawn, the
    density is less than at them. The probabilities of categories sum to 1. If the density has `linear_terms`,
    `left_out`, `log_density_of_column` or `log_likelihood`, they agree with `log_density`.

    No law finds a factor of p(x | z) that is wrong in the same way for all components and numbers: integrate the
    density in a test of your own.

    Parameters
    ----------
    density : Density
        Of numbers (kind "continuous") or of categories (kind "categorical"), that learns in one pass.
    cells : array-like (n, d)
        At least 30 rows that the density can produce: numbers, NaN where missing; or codes from 1, 0 where missing, if
        the density is of categories. They are dealt to three components at random.
    random_state : int
        Of the components and the rows that are drawn.

    Returns
    -------
    list of str
        The laws, in the order in which they were checked.

    Raises
    ------
    AssertionError
        A law does not hold; the message says which, and by how much.
    ValueError
        The cells are no table of at least 30 rows, or hold a cell that the density cannot produce; or a hyperparameter
        is out of its range.
    TypeError
        The density lacks attributes that models read; `posteriori.densities.BaseDensity` has them.
    """
    check_base(density)
    check_hyperparameters(density)
    tile = _tile(density, cells)
    rng = np.random.default_rng(random_state)
    n = len(tile.values)
    component = (rng.permutation(n) % _N_COMPONENTS).astype(np.int32)
    assignment = Assignment(component, rng.integers(1, 3, n).astype(np.float64), _N_COMPONENTS)
    return checked(_laws_of_density(density, tile, assignment, rng))


def _tile(density: Any, cells: Any) -> Any:
    """Return the cells as the density reads them; raise ValueError if it cannot."""
    values = np.asarray(cells)
    if density.kind not in ("continuous", "categorical"):
        raise ValueError(
            f"the density {density.name!r} is of kind {density.kind!r}, and check_density checks those of kind "
            "'continuous' and 'categorical'; test it in a model by check_model"
        )
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"cells have the shape {values.shape}; give rows and columns, as cells.reshape(-1, 1)")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"cells are of type {values.dtype}; give numbers, or codes of categories")
    if len(values) < _FEWEST_ROWS:
        raise ValueError(f"cells have {len(values)} rows; give at least {_FEWEST_ROWS}")
    if density.kind == "categorical":
        wrong = (values < 0) | (values != np.floor(values)) | (values > np.iinfo(np.uint32).max)
        if wrong.any():
            raise ValueError(f"cells hold {values[wrong][0]}; give codes of categories: 1, 2, …, and 0 where missing")
        sizes = tuple(np.maximum(values.max(axis=0), 1).astype(int).tolist())
        return Codes(np.ascontiguousarray(values, np.uint8 if max(sizes) < 256 else np.uint32), sizes)
    tile = Numbers(np.ascontiguousarray(values, np.float64))
    outside = np.argwhere(density.out_of_support(tile))
    if len(outside):
        i, j = outside[0]
        raise ValueError(
            f"cells hold {values[i, j]:g} in row {i}, column {j}, which the density {density.name!r} cannot produce: "
            f"it is of {density.support}"
        )
    return tile


def _laws_of_density(density: Any, tile: Any, assignment: Assignment, rng: np.random.Generator) -> Iterator[Law]:
    parameters = density.estimate(density.sufficient_statistics.of(tile, assignment))
    log_density = density.log_density(parameters, tile)
    if density.has_factors:
        yield (
            "the log density of a row is the sum of its log factors",
            lambda: equal(density.log_factors(parameters, tile).sum(axis=2), log_density),
        )
    yield from _laws_of_learning(density, tile, assignment, log_density, rng)
    yield from _laws_of_rows(density, parameters, tile, log_density, rng)
    few = rng.permutation(len(log_density))[:_N_DRAWN]  # so that the components differ
    of_few = density.estimate(density.sufficient_statistics.of(tile.rows(few), assignment.rows(few)))
    yield from laws_of_support(density, of_few, tile, rng)
    yield from laws_of_methods(density, parameters, tile, assignment)


def _laws_of_learning(
    density: Any, tile: Any, assignment: Assignment, log_density: Array, rng: np.random.Generator
) -> Iterator[Law]:
    component, weight, n = assignment.component, assignment.weight, len(assignment.component)

    def estimated(of: Any, given: Assignment) -> Any:
        return density.estimate(density.sufficient_statistics.of(of, given))

    def adds_up() -> None:
        halves = [np.arange(n // 2), np.arange(n // 2, n)]
        parts = [density.sufficient_statistics.of(tile.rows(half), assignment.rows(half)) for half in halves]
        equal(density.log_density(density.estimate(parts[0] + parts[1]), tile), log_density)

    yield "the statistics of all rows are the sum of those of the parts", adds_up

    def weights() -> None:
        repeated = np.repeat(np.arange(n), weight.astype(int))
        one = Assignment(component[repeated], np.ones(len(repeated)), _N_COMPONENTS)
        equal(density.log_density(estimated(tile.rows(repeated), one), tile), log_density)

    yield "a row of weight 2 counts as two equal rows", weights

    def order() -> None:
        moved = rng.permutation(n)
        equal(density.log_density(estimated(tile.rows(moved), assignment.rows(moved)), tile), log_density)

    yield "the order of rows changes nothing", order

    def renamed() -> None:
        turned = np.array([2, 0, 1], np.int32)
        other = estimated(tile, Assignment(turned[component], weight, _N_COMPONENTS))
        equal(density.log_density(other, tile)[:, turned], log_density)

    yield "components are exchangeable", renamed

    def without_rows() -> None:
        of_two = Assignment((component % 2).astype(np.int32), weight, _N_COMPONENTS)
        found = density.log_density(estimated(tile, of_two), tile)
        require(not np.isnan(found).any(), "It is NaN")

    yield "a component without rows has a density", without_rows


def _laws_of_rows(
    density: Any, parameters: Any, tile: Any, log_density: Array, rng: np.random.Generator
) -> Iterator[Law]:
    def alone() -> None:
        few = np.arange(min(len(log_density), _SINGLE_ROWS))
        each = [density.log_density(parameters, tile.rows(np.array([i]))) for i in few]
        equal(np.concatenate(each), log_density[few])

    yield "a row is scored alone as among others", alone

    def unknown() -> None:
        empty = np.zeros_like(tile.values[:1]) if isinstance(tile, Codes) else np.full_like(tile.values[:1], np.nan)
        nothing = Codes(empty, tile.cardinalities) if isinstance(tile, Codes) else Numbers(empty)
        equal(density.log_density(parameters, nothing), np.zeros((1, _N_COMPONENTS)))

    yield "a row without cells has the density 1", unknown

    def drawn() -> None:
        cells = density.sample(parameters, np.arange(_N_DRAWN, dtype=np.int32) % _N_COMPONENTS, rng)
        if isinstance(tile, Codes):
            require((cells >= 1).all() and (cells <= np.array(tile.cardinalities)).all(), "A code is out of range")
            return
        require(not np.isnan(cells).any(), "A cell is missing")
        require(not density.out_of_support(Numbers(cells)).any(), "A cell is out of the support")

    yield "drawn cells are present and in the support", drawn
