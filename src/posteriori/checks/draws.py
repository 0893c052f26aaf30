"""The laws of a density on the rows that it draws, which need not know of what kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.checks.laws import Law, equal, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Codes, Numbers

_N_DRAWN = 20_000
_STANDARD_ERRORS = 6.0
_SHARE = 0.1  # of the rows that are drawn from the other component
_FAR = 1e4  # in spans of the rows that are drawn
_PROBES = np.array([-1e6, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5, 1e6])


def laws_of_support(density: Any, parameters: Any, tile: Any, rng: np.random.Generator) -> Iterator[Law]:
    """Yield the laws of draws and of the support."""
    shared = density.log_density(parameters, tile.rows(np.arange(1))).shape[1] == 1
    if density.is_normalised and not shared:
        yield (
            "over the rows drawn from a component the mean of p(x | z') / p(x | z) is 1",
            lambda: _check_ratios(density, parameters, tile, rng),
        )
    if isinstance(tile, Codes):
        if density.is_normalised:
            yield "the probabilities of the categories sum to 1", lambda: _check_sums(density, parameters, tile)
        return
    yield "has_full_support agrees with out_of_support", lambda: _check_support(density, tile.values.shape[1])
    yield (
        "far from all rows that are drawn the density is less than at them",
        lambda: _check_tails(density, parameters, tile, rng),
    )


def _drawn(density: Any, parameters: Any, tile: Any, component: int, rng: np.random.Generator) -> Any:
    cells = np.asarray(density.sample(parameters, np.full(_N_DRAWN, component, np.int32), rng))
    shape = (_N_DRAWN, tile.values.shape[1])
    require(cells.shape == shape, f"Drawn rows have the shape {cells.shape}, and {shape} is expected")
    return replace(tile, values=np.ascontiguousarray(cells, tile.values.dtype))


def _check_ratios(density: Any, parameters: Any, tile: Any, rng: np.random.Generator) -> None:
    """Require ∫ p′(x) dx = 1, by rows of which some are drawn from p′ itself, so that the quotient is at most 10.

    Reference: Hesterberg, Weighted average importance sampling and defensive mixture distributions, Technometrics 37
    (1995).
    """
    n_components = density.log_density(parameters, tile.rows(np.arange(1))).shape[1]
    scores = [density.log_density(parameters, _drawn(density, parameters, tile, z, rng)) for z in range(n_components)]
    n_other = round(_SHARE * _N_DRAWN)
    for z in range(n_components):
        require(np.isfinite(scores[z][:, z]).all(), f"A row drawn from component {z} has no finite density there")
        for other in set(range(n_components)) - {z}:
            log_p = np.concatenate([scores[z][n_other:], scores[other][:n_other]])[:, [z, other]]
            log_mixture = np.logaddexp(log_p[:, 0] + np.log1p(-_SHARE), log_p[:, 1] + np.log(_SHARE))
            ratio = np.exp(log_p[:, 1] - log_mixture)
            error = _STANDARD_ERRORS * float(ratio.std()) / np.sqrt(_N_DRAWN) + 1e-9
            apart = abs(float(ratio.mean()) - 1.0)
            require(apart <= error, f"For components {z} and {other} it is {apart:.2g} off, and {error:.2g} is allowed")


def _check_sums(density: Any, parameters: Any, tile: Codes) -> None:
    for j, size in enumerate(tile.cardinalities):
        codes = np.zeros((size, len(tile.cardinalities)), tile.values.dtype)
        codes[:, j] = np.arange(1, size + 1)
        total = np.exp(density.log_density(parameters, replace(tile, values=codes))).sum(axis=0)
        equal(total, np.ones_like(total))


def _check_support(density: Any, n_columns: int) -> None:
    def outside(cells: Array) -> Array:
        return np.asarray(density.out_of_support(Numbers(np.repeat(cells[:, np.newaxis], n_columns, axis=1))))

    require(not outside(np.array([np.nan])).any(), "A missing cell is out of the support")
    require(outside(np.array([-np.inf, np.inf])).all(), "An infinite cell is in the support")
    found = outside(_PROBES)
    if density.has_full_support:
        require(not found.any(), "It is True, and a finite number is out of the support")
    else:
        require(found.any(axis=0).all(), f"It is False, and none of {_PROBES.tolist()} is out of the support")


def _check_tails(density: Any, parameters: Any, tile: Numbers, rng: np.random.Generator) -> None:
    n_components = density.log_density(parameters, tile.rows(np.arange(1))).shape[1]
    for z in range(n_components):
        cells = _drawn(density, parameters, tile, z, rng).values
        low, high = cells.min(axis=0), cells.max(axis=0)
        span = np.maximum(high - low, 1.0)
        for j in range(cells.shape[1]):
            few = np.full((_N_DRAWN + 2, cells.shape[1]), np.nan)
            few[:, j] = [*cells[:, j], np.floor(low[j] - _FAR * span[j]), np.ceil(high[j] + _FAR * span[j])]
            outside = density.out_of_support(Numbers(few))[:, j]
            log_density = np.where(outside, -np.inf, density.log_density(parameters, Numbers(few))[:, z])
            least, far = log_density[:-2].min(), log_density[-2:].max()
            require(far <= least, f"In column {j} it is exp({far:.3g}) far away, and exp({least:.3g}) at a drawn row")
