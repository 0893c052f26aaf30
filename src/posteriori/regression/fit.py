"""The way of a fit of a pool of regressions: rows, locations, neighbours, smoothing and weights, each a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.learning.number_pool import fit_number_pool
from posteriori.model import Pool, clip_log_posteriors
from posteriori.model.predictive import NumberCells, PredictiveDensity
from posteriori.pool.parameters import FEW_ROWS, Data
from posteriori.pool.partial_rows import fit_partial_rows
from posteriori.regression.amplitudes import learn_amplitudes
from posteriori.regression.features import Features
from posteriori.regression.held_out import HeldOutNumbers, scores_of_numbers
from posteriori.regression.held_out_members import FoldMembers
from posteriori.regression.landmarks import Inputs, Landmarks
from posteriori.regression.least_squares import LeastSquares, Products
from posteriori.regression.members import NAMES, Design, Location, Members, Name, Raw, Smoothing, edges_of
from posteriori.regression.neighbours import GROUPS, Neighbours, Placed, grow_neighbours, rank_of
from posteriori.regression.rows import NumberRows, read_number_rows
from posteriori.regression.scales import Scale, scales_of
from posteriori.regression.target_cells import cells_of
from posteriori.regression.value import FittedRegression
from posteriori.support.checks import generator
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch

_ROWS_OF_AMPLITUDES = 500
_LANDMARKS = 600
_PREDICTED = 10_000  # rows whose held-out densities are kept
_JUDGED = 2000  # of them, by which smoothing and weights are chosen
_PARTIAL = 500  # of them, of which cells are hidden
_WIDTHS = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)  # of the blur, in cells
_COMMON = (0.02, 0.1, 0.3, 0.6, 1.0)  # the weights of the distribution of all training rows
_OF_LOG_SCORE = 0.1  # as in `fit_number_pool`
_BLOCK = 4096  # rows whose features are held at a time


def fit(recipe: Recipe, data: Data) -> FittedRegression:
    """Return the pool of regressions of a table, weighed by their held-out predictions.

    Parameters
    ----------
    recipe : Recipe
        Of a `GenerativeRegressor`.
    data : Data
    """
    asked = recipe.parameters
    seed = int(generator(asked["random_state"]).integers(2**31))
    rows = read_number_rows(recipe, data, asked["folds"], seed)
    names = NAMES if isinstance(asked["members"], str) else tuple(asked["members"])
    penalty = float(asked["penalty"]) * max(1.0, FEW_ROWS / len(rows.y))
    with one_blas_thread():
        target = TargetParts.of(rows)
        located = _locate(rows, names)
        folds = _members(rows, target, located, "forest" in names, seed, recipe.n_jobs)
        judged = _smoothed(rows, target, folds)
        return _weighed(recipe, rows, judged, penalty)


@dataclass(frozen=True)
class TargetParts:
    """The cells of the target, and the training rows in them."""

    cells: NumberCells
    cell: Array  # (m,)
    share: Array  # (G,)

    @classmethod
    def of(cls, rows: NumberRows) -> TargetParts:
        """Return the cells of the targets of training rows."""
        cells = cells_of(rows.y, rows.weight)
        cell = cells.nearest(rows.y)
        return cls(cells, cell, np.bincount(cell, rows.weight, len(cells)) / rows.weight.sum())


# Locations ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Located:
    """The locations, their sums of all rows and of those outside each fold, and the residuals of held-out rows."""

    scale: Scale
    design: Design
    locations: tuple[Location, ...] = ()
    whole: Products | None = None
    without: tuple[Products | None, ...] = ()

    def members(self, target: TargetParts, neighbours: Neighbours, has_forest: bool) -> Members:
        """Return the members of all rows, without residuals and not smoothed yet."""
        placed = Placed(target.cell, np.empty((len(target.cell), len(self.locations))))
        usual = (Smoothing(_WIDTHS[1], _COMMON[1]),) * (has_forest + len(self.locations))
        return Members(
            target.cells,
            target.share,
            self.scale,
            self.design,
            self.whole,
            self.locations,
            neighbours,
            placed,
            usual,
            has_forest,
        )


def _locate(rows: NumberRows, names: tuple[Name, ...]) -> _Located:
    """Return the locations: their features, amplitudes, and the scale of the target that predicts best."""
    schema, weight = rows.batch.schema, rows.weight
    features = Features.of(schema, rows.batch, weight)
    wanted = [name for name in names if name != "forest"] if len(features) else []
    scales = scales_of(rows.y, weight)
    if not wanted:
        return _Located(scales[0], Design(features, None, None), without=(None,) * rows.folded.folds)
    by_rank = next(one for one in scales if one.name == "rank").forward(rows.y)
    sample = rows.sample(_ROWS_OF_AMPLITUDES)
    few = rows.batch.rows(sample)
    additive = learn_amplitudes(features, features.of_rows(few), by_rank[sample])
    design = Design(features, None, None)
    if features.gaps:
        sums = _sum(_blocks(rows, design, by_rank[:, np.newaxis]))
        design = Design(features, LeastSquares(sums, additive.penalty(features)), None)
    scale = _best_scale(rows, design, scales, additive.penalty(features))
    target = scale.forward(rows.y)
    penalties: dict[Name, Array] = {"additive": additive.penalty(features)}
    if "kernel" in wanted:
        values, _ = design.of_rows(few)
        inputs = Inputs.of(features, values)
        kernel = learn_amplitudes(features, values, target[sample], inputs)
        marks = rows.batch.rows(rows.sample(_LANDMARKS, turn=1))
        assert kernel.weight is not None
        landmarks = Landmarks(Inputs.of(features, design.of_rows(marks)[0]).values, kernel.weight)
        design = replace(design, landmarks=landmarks)
        of_landmarks = np.full(len(landmarks), kernel.penalty_of_kernel)
        penalties["kernel"] = np.concatenate([kernel.penalty(features), of_landmarks])
    return _cross_fitted(rows, design, scale, {name: penalties[name] for name in wanted})


def _blocks(rows: NumberRows, design: Design, targets: Array, fold: int | None = None) -> Iterator[Products]:
    """Yield the sums of products of the evaluated rows, or of those of one fold."""
    chosen = np.arange(len(rows.y)) if fold is None else np.flatnonzero(rows.fold == fold)
    for first in range(0, len(chosen), _BLOCK):
        part = chosen[first : first + _BLOCK]
        values, _ = design.of_rows(rows.batch.rows(part))
        yield Products.of(values, targets[part], rows.weight[part])


def _sum(parts: Iterator[Products]) -> Products:
    total = next(parts)
    for one in parts:
        total = total + one
    return total


def _best_scale(rows: NumberRows, design: Design, scales: tuple[Scale, ...], penalty: Array) -> Scale:
    """Return the scale on which the sum of the columns predicts best: of the least held-out CRPS."""
    targets = np.stack([one.forward(rows.y) for one in scales], axis=1)
    folds = range(rows.folded.folds)
    parts = [_sum(_blocks(rows, design, targets, k)) for k in folds]
    total = _sum(iter(parts))
    held_out = np.empty_like(targets)
    for k in folds:
        of_fold = np.flatnonzero(rows.fold == k)
        held_out[of_fold] = LeastSquares(total - parts[k], penalty).predict(design.of_rows(rows.batch.rows(of_fold))[0])
    judged = rows.sample(_JUDGED)
    cells = cells_of(rows.y, rows.weight)
    losses = []
    for k, scale in enumerate(scales):
        residual = np.sort(targets[:, k] - held_out[:, k])
        at = scale.forward(edges_of(cells)[1:-1]) - held_out[judged, k][:, np.newaxis]
        below = np.searchsorted(residual, at) / len(residual)
        density = PredictiveDensity(cells, np.diff(below, axis=1, prepend=0.0, append=1.0))
        losses.append(rows.weight[judged] @ density.crps(rows.y[judged]))
    return scales[int(np.argmin(losses))]


def _cross_fitted(rows: NumberRows, design: Design, scale: Scale, penalties: dict[Name, Array]) -> _Located:
    """Return the sums of some members, of all rows and without each fold."""
    target = scale.forward(rows.y)[:, np.newaxis]
    parts = [_sum(_blocks(rows, design, target, k)) for k in range(rows.folded.folds)]
    whole = _sum_of_all(rows, design, scale) if rows.has_others else _sum(iter(parts))
    locations = tuple(Location(name, penalty) for name, penalty in penalties.items())
    return _Located(scale, design, locations, whole, tuple(whole - part for part in parts))


def _sum_of_all(rows: NumberRows, design: Design, scale: Scale) -> Products:
    """Return the sums of products of all rows, by one pass."""
    target = scale.forward(rows.all_y)[:, np.newaxis]

    def of_batch(batch: Batch) -> Products:
        assert batch.assignment is not None
        values, _ = design.of_rows(batch)
        return Products.of(values, target[batch.start : batch.start + len(batch)], batch.assignment.weight)

    return rows.source.with_width(values_per_row(design)).reduce(of_batch)


def values_per_row(design: Design) -> int:
    """Return the number of features of a row."""
    return len(design.features) + (0 if design.landmarks is None else len(design.landmarks))


# Members -----------------------------------------------------------------------------------------------------------


def _members(
    rows: NumberRows, target: TargetParts, located: _Located, has_forest: bool, seed: int, n_jobs: int | None
) -> FoldMembers:
    """Return the members that learned from all rows, and those of the rows outside each fold, not smoothed yet."""
    schema, batch = rows.batch.schema, rows.batch
    rank = rank_of(rows.y, rows.weight)
    neighbours, of_groups, joint = grow_neighbours(schema, batch, rank, rows.weight, rows.fold, seed, n_jobs)
    whole = located.members(target, neighbours, has_forest)
    held_out = [whole.without(sums, of_groups[k % GROUPS]) for k, sums in enumerate(located.without)]
    residual = np.empty_like(whole.placed.residual)
    for k, members in enumerate(held_out):
        places = np.flatnonzero(rows.fold == k)
        for first in range(0, len(places), _BLOCK):
            part = places[first : first + _BLOCK]
            locations, _ = members.located(batch.rows(part))
            residual[part] = located.scale.forward(rows.y[part])[:, np.newaxis] - locations
    placed = Placed(target.cell, residual)
    whole, without = replace(whole, placed=placed), tuple(replace(one, placed=placed) for one in held_out)
    return FoldMembers(whole, without, batch.rows(slice(0, 1)), joint, n_jobs)


@dataclass(frozen=True)
class _Judged:
    """The members with their smoothing, and their held-out predictions of some rows."""

    folds: FoldMembers
    chosen: Array  # the positions of the rows among the evaluated ones
    cell: Array
    log_probability: Array  # (n, G, M)


def _smoothed(rows: NumberRows, target: TargetParts, folds: FoldMembers) -> _Judged:
    """Return the members with the smoothing that predicts held-out rows best, and their predictions."""
    chosen = rows.sample(_PREDICTED)
    raw = _held_out_raw(rows, folds, chosen)
    judged = np.sort(np.argsort(rows.sample_keys[chosen], kind="stable")[:_JUDGED])
    part, y, weight = raw.rows(judged), rows.y[chosen[judged]], rows.weight[chosen[judged]]
    whole, cell = folds.whole, target.cell[chosen[judged]]
    usual = PredictiveDensity(target.cells, np.broadcast_to(target.share, (len(y), len(target.share))))
    unit = float(weight @ usual.crps(y))
    own = np.arange(len(y)), cell

    def loss(m: int, smoothing: Smoothing) -> float:
        p = whole.smoothed(part, m, smoothing)
        crps = weight @ PredictiveDensity(target.cells, p).crps(y)
        return float(crps / unit - _OF_LOG_SCORE * (weight @ np.log(p[own])) / weight.sum())

    options = [Smoothing(width, common) for width in _WIDTHS for common in _COMMON]
    places = range(0 if whole.has_forest else 1, 1 + len(whole.locations))
    best = tuple(min(options, key=lambda one, m=m: loss(m, one)) for m in places)  # type: ignore[misc]
    folds = replace(
        folds,
        whole=replace(whole, smoothings=best),
        without=tuple(replace(one, smoothings=best) for one in folds.without),
    )
    log_probability = clip_log_posteriors(folds.whole.log_probability_of(raw))
    return _Judged(folds, chosen, target.cell[chosen], log_probability)


def _held_out_raw(rows: NumberRows, folds: FoldMembers, chosen: Array) -> Raw:
    """Return the distributions that neighbours and all rows give to held-out rows."""
    n_cells, n_parts = len(folds.whole.cells), 1 + len(folds.whole.locations)
    near, common = np.empty((2, len(chosen), n_parts, n_cells))
    for k, members in enumerate(folds.without):
        places = np.flatnonzero(rows.fold[chosen] == k)
        if len(places):
            batch = rows.batch.rows(chosen[places])
            raw = members.raw(batch, *members.located(batch), folds.n_jobs)
            near[places], common[places] = raw.near, raw.common
    return Raw(near, common)


# Weights -----------------------------------------------------------------------------------------------------------


def _weighed(recipe: Recipe, rows: NumberRows, judged: _Judged, penalty: float) -> FittedRegression:
    """Return the pool of the members, weighed by held-out rows; each is judged by the weights without its fold."""
    folds, chosen, whole = judged.folds, judged.chosen, judged.folds.whole
    weight, fold, y = rows.weight[chosen], rows.fold[chosen], rows.y[chosen]
    widths = np.diff(edges_of(whole.cells))
    few = np.argsort(rows.sample_keys[chosen], kind="stable")[:_JUDGED]

    def pool_of(places: Array, start: Array | None = None) -> Pool:
        log_p, cell = judged.log_probability[places], judged.cell[places]
        return fit_number_pool(log_p, cell, weight[places], widths, penalty, start)

    pool = pool_of(few)
    pooled = np.empty(judged.log_probability.shape[:2])
    for k in range(rows.folded.folds):
        others = pool_of(few[fold[few] != k], pool.weight)
        pooled[fold == k] = others.log_posterior(judged.log_probability[fold == k])
    of_cells = replace(rows.folded, y_true=np.searchsorted(whole.cells.low, rows.y))
    of_cells.y_true[chosen] = judged.cell
    partial = fit_partial_rows(
        folds,
        rows.batch.rows(chosen[few[:_PARTIAL]]),
        of_cells,
        chosen[few[:_PARTIAL]],
        pool,
        penalty,
        np.log(np.maximum(whole.share, np.finfo(np.float64).tiny)),
    )
    pool = replace(pool, partial=partial)
    density = PredictiveDensity(whole.cells, np.exp(pooled), rows.target.name)
    out_of_fold = HeldOutNumbers(density, y, weight, rows.folded.evaluated[chosen])
    results = _results(judged, pool, out_of_fold)
    return FittedRegression(
        recipe, rows.target, rows.batch.schema, whole, pool, folds.joint_trees, results, out_of_fold=out_of_fold
    )


def _results(judged: _Judged, pool: Pool, out_of_fold: HeldOutNumbers) -> dict[str, list[str | float]]:
    """Return the scores of every member and of the pool, as a table."""
    whole, y, weight = judged.folds.whole, out_of_fold.y, out_of_fold.weight
    each = [PredictiveDensity(whole.cells, np.exp(one)) for one in np.moveaxis(judged.log_probability, 2, 0)]
    found = [scores_of_numbers(one, y, weight) for one in each] + [out_of_fold.scores]
    table: dict[str, list[str | float]] = {
        "member": [*whole.names, "pool"],
        "weight": [*pool.weight.tolist(), float(pool.weight.sum())],
    }
    return table | {name: [one[name] for one in found] for name in found[0]}
