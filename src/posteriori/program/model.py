"""A fitted posterior as functions of arrays: scores, members of a pool, and what is known of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.model import Extrapolation, GenerativeModel, Pool, Posterior
from posteriori.model.pool import FLOOR, HALF_DISAGREEMENT
from posteriori.program.arrays import log_normalised, log_sum_exp
from posteriori.program.cells import RowCells
from posteriori.program.densities import BlockCells, factors_of
from posteriori.support.arrays import Arrays


def log_posterior(posterior: Posterior, cells: RowCells, names: Sequence[str] = ()) -> Arrays:
    """Return log p(y | x) in nats, (n, C); NaN in a row that no class can produce, or that is refused."""
    log_p = scores(posterior, cells, names)
    log_p = log_normalised(log_p) if posterior.pool is None else log_p
    for rows in cells.refused:
        log_p = cells.xp.where(rows[:, None], cells.xp.asarray(np.nan), log_p)
    return log_p


def scores(posterior: Posterior, cells: RowCells, names: Sequence[str] = ()) -> Arrays:
    """Return log p(y | x) in nats, (n, C), of one model with a constant per row; `names` are of models in messages."""
    pool, names = posterior.pool, names or [f"model {m + 1}" for m in range(len(posterior.models))]
    if pool is None:
        return _scores(posterior.models[0], cells.under(posterior.models[0].schema), names[0])
    used, each = np.flatnonzero(pool.used), []
    for m in used.tolist():
        model = posterior.models[m]
        log_p = log_normalised(_scores(model, cells.under(model.schema), names[m]))
        each.append(_clipped(log_p, model.n_classes))
    return _pooled(pool.of_members(used), each, cells)


def _scores(model: GenerativeModel, cells: RowCells, name: str) -> Arrays:
    """Return log p(y | x) + constant per row in nats, (n, C)."""
    xp, weights = cells.xp, model.weights
    total = cells.zeros() + _start(model, cells)
    for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
        if block.shared:
            continue
        of_block = BlockCells(cells, block.columns, name, weights is not None, block.exposure_in(model.schema))
        columns, factors = factors_of(block.density, of_block, parameters)
        for k, j in enumerate(columns):
            weight = 1.0 if weights is None else float(weights.weight[j])
            if weight > 0:
                total = total + (factors[:, :, k] if weight == 1.0 else weight * factors[:, :, k])
    if not model.of_class:
        return total
    of_class = np.array(model.of_class)
    parts = [xp.take(total, xp.asarray(np.flatnonzero(of_class == y)), axis=1) for y in range(model.n_classes)]
    return xp.stack([log_sum_exp(part) for part in parts], axis=1)


def _start(model: GenerativeModel, cells: RowCells) -> Arrays:
    """Return the constant terms, (1, Z), or (n, Z) of factors with weights: see `GenerativeModel.start`."""
    xp = cells.xp
    if model.weights is None or model.offset is None:
        start = model.log_prior if model.weights is None else model.weights.bias
        return xp.asarray(np.where(np.isneginf(model.log_prior), -np.inf, start)[np.newaxis])
    whole = np.where(np.isneginf(model.log_prior), -np.inf, model.weights.bias)
    known = [cells.known(j) | bool(model.evident[j]) for j in np.flatnonzero(model.sharing).tolist()]
    share = xp.sum(xp.astype(xp.stack(known, axis=1), xp.float64), axis=1, keepdims=True) / max(len(known), 1)
    return xp.where(share == 1.0, xp.asarray(whole[np.newaxis]), model.log_prior + share * model.offset)


def _clipped(log_p: Arrays, n_classes: int) -> Arrays:
    """As `clip_log_posteriors`, of one member."""
    xp = log_p.__array_namespace__()
    uniform = xp.where(xp.isnan(log_p), xp.asarray(-np.log(n_classes)), log_p)
    return xp.maximum(uniform, xp.asarray(FLOOR))


def _pooled(pool: Pool, each: Sequence[Arrays], cells: RowCells) -> Arrays:
    """Return log p(y | x) of a pool from those of its members: see `Pool.log_posterior`."""
    xp, partial, beyond = cells.xp, pool.fading, pool.extrapolation
    weights: list[Any] = [float(weight) for weight in pool.weight]
    bias: Any = pool.bias[np.newaxis]
    if partial is not None:
        columns = range(len(cells.schema.columns))
        known = xp.astype(xp.stack([cells.known(j) for j in columns], axis=1), xp.float64)
        whole, some, nothing = (partial.cells.parts(known)[:, k, None] for k in range(3))
        pairs = zip(pool.weight, partial.weight, partial.nothing_weight, strict=True)
        weights = [whole * float(w) + some * float(v) + nothing * float(e) for w, v, e in pairs]
        bias = whole * bias + some * partial.bias + nothing * partial.nothing_bias
    total = bias
    for weight, log_p in zip(weights, each, strict=True):
        total = total + weight * log_p
    product = log_normalised(total)
    if beyond is None:
        return product
    outside = _outside(beyond, cells)
    if outside is None:
        return product
    members = [m for m, is_in in enumerate(beyond.in_mean.tolist()) if is_in]
    of_mean = xp.stack(
        [xp.zeros_like(product[:, 0]) + weights[m] if partial is None else weights[m][:, 0] for m in members], axis=1
    )
    log_means = xp.stack([each[m] for m in members], axis=2)
    return xp.where(outside[:, None], _mixture(product, log_means, of_mean, beyond.log_ratio, beyond.least), product)


def _outside(beyond: Extrapolation, cells: RowCells) -> Arrays | None:
    """Return which rows have a number beyond its range, or an unseen category, (n,); None if no column can."""
    lowest, highest = beyond.ranges.lowest - beyond.ranges.room, beyond.ranges.highest + beyond.ranges.room
    tests = [cells.is_unseen(j) for j in cells.schema.of_kind("categorical") if cells.schema.columns[j].categories]
    for j in cells.schema.of_kind("continuous"):
        if beyond.ranges.has_numbers[j]:
            tests += [cells.number(j) < float(lowest[j]), cells.number(j) > float(highest[j])]
    return cells.xp.any(cells.xp.stack(tests, axis=1), axis=1) if tests else None


def _mixture(log_product: Arrays, log_p: Arrays, weight: Arrays, log_ratio: Arrays, least: float) -> Arrays:
    """As `Extrapolation.log_mixture`, of the members in the mean."""
    xp = log_product.__array_namespace__()
    whole = xp.sum(weight, axis=1, keepdims=True)
    share = xp.where(whole > 0.0, weight / xp.where(whole > 0.0, whole, 1.0), xp.asarray(1.0 / weight.shape[1]))
    with np.errstate(divide="ignore"):
        log_mean = log_normalised(log_sum_exp(log_p + xp.log(share)[:, None, :]) + log_ratio)
    mean = xp.exp(log_mean)
    with np.errstate(invalid="ignore"):
        apart = xp.where(mean > 0.0, mean * (log_mean - log_product), 0.0)
    fourth = xp.maximum(xp.sum(apart, axis=1, keepdims=True), xp.asarray(0.0)) ** 4.0
    of_mean = least + (1.0 - least) * fourth / (fourth + HALF_DISAGREEMENT**4)
    rest = xp.maximum(1.0 - of_mean, xp.asarray(np.exp(FLOOR)))
    pair = xp.stack([xp.log(rest) + log_product, xp.log(of_mean) + log_mean], axis=2)
    return log_sum_exp(pair)
