"""The way of a fit of a pool of regressions: rows, locations, neighbours, smoothing and weights, each a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.learning.number_pool import NumberScore, fit_number_pool
from posteriori.model import Extrapolation, Pool, clip_log_posteriors
from posteriori.model.pool import MEAN_SHARE_OF_NUMBERS
from posteriori.model.predictive import PredictiveDensity
from posteriori.pool.parameters import FEW_ROWS, Data
from posteriori.pool.partial_rows import fit_partial_rows
from posteriori.regression.held_out import MOST_PREDICTED, HeldOutNumbers, scores_of_numbers
from posteriori.regression.held_out_members import FoldMembers
from posteriori.regression.importance import HeldOutRows, most_rows
from posteriori.regression.locate import BLOCK, Located, locate
from posteriori.regression.locations import NAMES, edges_of
from posteriori.regression.members import Members, Raw, Smoothing
from posteriori.regression.neighbours import Placed, grow_neighbours, rank_of
from posteriori.regression.rows import GROUPS, NumberRows, read_number_rows
from posteriori.regression.spread import grow_spread
from posteriori.regression.value import FittedRegression
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import generator
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables.progress import Step, plan_steps, start_progress, step, without_passes

_JUDGED = 2000  # of the rows whose held-out densities are kept, by which smoothing and weights are chosen
_PARTIAL = 500  # of them, of which cells are hidden
_LOCATING, _GROWING, _JUDGING, _WEIGHING = "fitting sums", "growing trees", "predicting held-out rows", "weighing"
_STEPS = [Step(_LOCATING, 2.0), Step(_GROWING, 1.0), Step(_JUDGING, 2.0), Step(_WEIGHING, 2.0)]
_WIDTHS = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)  # of the blur, in cells
_COMMON = (0.02, 0.1, 0.3, 0.6, 1.0)  # the weights of the distribution of all training rows


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
    plan_steps(_STEPS)
    with one_blas_thread():
        with _stage(_LOCATING):
            located = locate(rows, names)
        with _stage(_GROWING):
            folds = _members(rows, located, "forest" in names, seed, recipe.n_jobs)
            held_out = _held_out_locations(rows, folds)
            folds = _with_residuals(rows, folds, held_out, seed)
        with _stage(_JUDGING):
            judged = _smoothed(rows, folds, held_out)
        with _stage(_WEIGHING):
            return _weighed(recipe, rows, judged, penalty)


@contextmanager
def _stage(name: str) -> Iterator[None]:
    """Report a stage of the fit as one step, with all passes that begin in it."""
    with step(name):
        done = start_progress(name, 1)
        yield
        done(1)


# Members -----------------------------------------------------------------------------------------------------------


def _members(rows: NumberRows, located: Located, has_forest: bool, seed: int, n_jobs: int | None) -> FoldMembers:
    """Return the members that learned from all rows, and those of the rows outside each fold, not smoothed yet."""
    batch, found = rows.batch, located.whole
    rank = rank_of(rows.y, rows.weight)
    neighbours, of_groups, joint = grow_neighbours(batch.schema, batch, rank, rows.weight, rows.fold, seed, n_jobs)
    parts = {one.name: getattr(found, one.name) for one in fields(found)}
    n_rows, n_locations = len(rows.y), len(found.locations)
    placed = Placed(found.cells.nearest(rows.y), np.zeros((n_rows, n_locations)), np.ones(n_rows))
    usual = (Smoothing(_WIDTHS[1], _COMMON[1]),) * (has_forest + n_locations)
    whole = Members(**parts, neighbours=neighbours, spread=None, placed=placed, smoothings=usual, has_forest=has_forest)
    without = tuple(whole.without(sums, of_groups[k % GROUPS]) for k, sums in enumerate(located.without))
    return FoldMembers(whole, without, batch.rows(slice(0, 1)), joint, n_jobs)


def _held_out_locations(rows: NumberRows, folds: FoldMembers) -> tuple[Array, Array]:
    """Return `Locations.located` of the rows, each by the members without its fold."""
    location, deviation = np.empty((len(rows.y), len(folds.whole.locations))), np.empty(len(rows.y))
    for part, members in _in_blocks(rows, folds):
        location[part], deviation[part] = members.located(rows.batch.rows(part))
    return location, deviation


def _with_residuals(rows: NumberRows, folds: FoldMembers, held_out: tuple[Array, Array], seed: int) -> FoldMembers:
    """Return the members with the residuals of held-out rows, and the size of residuals that is expected in a row."""
    whole, (location, deviation) = folds.whole, held_out
    if not whole.locations:
        return folds
    residual, expected = whole.scale.forward(rows.y)[:, np.newaxis] - location, np.empty(len(rows.y))
    for part, members in _in_blocks(rows, folds):
        assert members.additive is not None
        # The residuals are those of whole rows: a row with unknown cells deviates more.
        residual[part] /= np.sqrt(1.0 + deviation[part] ** 2 / members.additive.noise)[:, np.newaxis]
    size = np.abs(residual).mean(axis=1)
    spread, of_groups = grow_spread(whole.neighbours, rows.batch, size, rows.weight, rows.fold, seed, folds.n_jobs)
    for g, one in enumerate(of_groups):
        places = np.flatnonzero(rows.fold % GROUPS == g)
        expected[places] = one.of_rows(whole.neighbours, rows.batch.rows(places))
    placed = Placed(whole.placed.cell, residual, expected)
    each = enumerate(folds.without)
    without = tuple(one.with_densities(placed=placed, spread=of_groups[k % GROUPS]) for k, one in each)
    return replace(folds, whole=whole.with_densities(placed=placed, spread=spread), without=without)


def _in_blocks(rows: NumberRows, folds: FoldMembers) -> Iterator[tuple[Array, Members]]:
    """Yield the positions of some rows of one fold, and the members without it."""
    for k, members in enumerate(folds.without):
        places = np.flatnonzero(rows.fold == k)
        for first in range(0, len(places), BLOCK):
            yield places[first : first + BLOCK], members


@dataclass(frozen=True)
class _Judged:
    """The members with their smoothing, and their held-out predictions of some rows."""

    folds: FoldMembers
    chosen: Array  # the positions of the rows among the evaluated ones
    cell: Array
    log_probability: Array  # (n, G, M)


def _smoothed(rows: NumberRows, folds: FoldMembers, held_out: tuple[Array, Array]) -> _Judged:
    """Return the members with the smoothing that predicts held-out rows best, and their predictions."""
    chosen = rows.sample(MOST_PREDICTED)
    raw = _held_out_raw(rows, folds, held_out, chosen)
    judged = np.sort(np.argsort(rows.sample_keys[chosen], kind="stable")[:_JUDGED])
    part, whole = raw.rows(judged), folds.whole
    places = chosen[judged]
    score = NumberScore.of(whole.placed.cell[places], rows.weight[places], np.diff(edges_of(whole.cells)))

    def best_of(m: int) -> Smoothing:
        losses = {
            Smoothing(width, common): score.of_rows(p, score.apart(p))
            for width in np.hypot(_WIDTHS, whole.width_of_few).tolist()
            for common, p in zip(_COMMON, whole.each_smoothed(part, m, width, _COMMON), strict=True)
        }
        return min(losses, key=losses.__getitem__)

    best = tuple(best_of(m) for m in range(0 if whole.has_forest else 1, 1 + len(whole.locations)))
    without = tuple(one.with_densities(smoothings=best) for one in folds.without)
    folds = replace(folds, whole=whole.with_densities(smoothings=best), without=without)
    log_probability = clip_log_posteriors(folds.whole.log_probability_of(raw))
    return _Judged(folds, chosen, whole.placed.cell[chosen], log_probability)


def _held_out_raw(rows: NumberRows, folds: FoldMembers, held_out: tuple[Array, Array], chosen: Array) -> Raw:
    """Return the distributions that neighbours and all rows give to held-out rows."""
    n_cells, n_parts = len(folds.whole.cells), 1 + len(folds.whole.locations)
    near, common = np.empty((2, len(chosen), n_parts, n_cells))
    for k, members in enumerate(folds.without):
        places = np.flatnonzero(rows.fold[chosen] == k)
        if len(places):
            part = chosen[places]
            raw = members.raw(rows.batch.rows(part), held_out[0][part], held_out[1][part], folds.n_jobs)
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
    out_of_fold = HeldOutNumbers(density, y, weight * rows.unit, rows.folded.places[chosen], fold)
    results = _results(judged, pool, out_of_fold)
    some = few[: most_rows(len(rows.batch.schema.columns))]
    with without_passes():
        ranges = rows.source.reduce(ColumnRanges.of)
    every, moved = np.ones(len(pool.weight), np.bool_), np.zeros(len(whole.cells))
    to_measure = HeldOutRows(folds, pool, rows.batch.rows(chosen[some]), fold[some], y[some], weight[some], len(rows.y))
    found = FittedRegression(
        recipe,
        rows.target,
        rows.batch.schema,
        whole.in_no_order(),
        replace(pool, extrapolation=Extrapolation(ranges, every, moved, MEAN_SHARE_OF_NUMBERS)),
        folds.joint_trees,
        results=results,
        out_of_fold=out_of_fold,
        held_out=to_measure,
    )
    return found.with_importance() if to_measure.is_large else found


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
