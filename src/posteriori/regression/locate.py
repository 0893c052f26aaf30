"""The locations of a regression from its training rows: features, amplitudes, scale, landmarks, and their sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from posteriori.model.predictive import NumberCells, PredictiveDensity
from posteriori.regression.amplitudes import learn_amplitudes
from posteriori.regression.features import Features
from posteriori.regression.landmarks import Inputs, Landmarks
from posteriori.regression.least_squares import LeastSquares, Products, positive
from posteriori.regression.locations import Design, Location, Locations, Name, edges_of
from posteriori.regression.rows import NumberRows
from posteriori.regression.scales import Scale, ScaleName, scales_of
from posteriori.regression.target_cells import cells_of
from posteriori.support.typing import Array
from posteriori.tables import Batch

_ROWS_OF_AMPLITUDES = 500
_ROWS_OF_FILLER = 5000
_ROWS_OF_NOISE = 500
_DECADES, _GRID = 4, 100  # how far below the variance of all residuals that of whole rows may be
_USUAL_SHARE = 0.1  # of the variance of residuals: that of one row more, a weak prior where few rows are whole
_LANDMARKS = 600
_JUDGED = 2000  # rows, by which the scale is chosen
BLOCK = 4096  # rows whose features are held at a time


@dataclass(frozen=True)
class Located:
    """The locations, with the sums of all rows, and the sums of the rows outside each fold."""

    whole: Locations
    without: tuple[Products | None, ...]


def locate(rows: NumberRows, names: Sequence[Name], scale_name: ScaleName | Literal["auto"] = "auto") -> Located:
    """Return the locations: their features, amplitudes, and the scale of the target.

    Parameters
    ----------
    rows : NumberRows
    names : sequence of str
        Of the members, of which "forest" is no location.
    scale_name : {"auto", "as_is", "log", "rank"}
        With "auto" the one that predicts best.

    Raises
    ------
    ValueError
        The scale is "log", and some numbers are negative, or all are 0.
    """
    schema, weight = rows.batch.schema, rows.weight
    cells = cells_of(rows.y, weight)
    share = np.bincount(cells.nearest(rows.y), weight, len(cells)) / weight.sum()
    features = Features.of(schema, rows.batch, weight)
    wanted = [name for name in names if name != "forest"] if len(features) else []
    scales = scales_of(rows.y, weight) if scale_name == "auto" else (_stated_scale(rows, scale_name),)
    if not wanted:
        empty = Locations(cells, share, scales[0], Design(features, None, None), None, ())
        return Located(empty, (None,) * rows.folded.folds)
    by_rank = Scale.of("rank", rows.y, weight).forward(rows.y)
    sample = rows.sample_of_groups(_ROWS_OF_AMPLITUDES)
    few, group = rows.batch.rows(sample), None if rows.group is None else rows.group[sample]
    additive = learn_amplitudes(features, features.of_rows(few), by_rank[sample], group)
    rows = rows.correlated(additive.correlation)
    design, counted = Design(features, None, None), 1.0
    if features.unknown(rows.batch).any():
        design, counted = _with_filler(rows, features, additive.penalty(features), by_rank)
    scale = scales[0] if len(scales) == 1 else _best_scale(rows, cells, design, scales, additive.penalty(features))
    target = scale.forward(rows.y)
    penalties: dict[Name, Array] = {"additive": additive.penalty(features)}
    if "kernel" in wanted:
        values, _ = design.of_rows(few)
        inputs = Inputs.of(features, values)
        kernel = learn_amplitudes(features, values, target[sample], group, inputs)
        rows = rows.correlated(kernel.correlation)
        marks = rows.batch.rows(rows.sample(_LANDMARKS, turn=1))
        assert kernel.weight is not None
        landmarks = Landmarks.of(Inputs.of(features, design.of_rows(marks)[0]).values, kernel.weight)
        design = replace(design, landmarks=landmarks)
        of_landmarks = np.full(len(landmarks), kernel.penalty_of_kernel)
        penalties["kernel"] = np.concatenate([kernel.penalty(features), of_landmarks])
    # Amplitudes are relative to the noise of all rows, and sums to that of rows without a gap.
    locations = tuple(Location(name, counted * penalties[name]) for name in wanted)
    return _cross_fitted(rows, Locations(cells, share, scale, design, None, locations))


def _stated_scale(rows: NumberRows, name: ScaleName) -> Scale:
    if name == "log" and ((rows.y < 0).any() or not (rows.y > 0).any()):
        raise ValueError(
            f"scale is {name!r}, and the target {rows.target.name!r} is negative in some row, or 0 in all; "
            'choose "rank" or "as_is"'
        )
    return Scale.of(name, rows.y, rows.weight)


def _with_filler(rows: NumberRows, features: Features, penalty: Array, target: Array) -> tuple[Design, float]:
    """Return the design that expects unknown features by the joint normal distribution of all and of the target.

    The second value is the mean weight of a row in its sums. Each covariance is that of the rows in which both features
    are known. The variance of the target in rows without a gap is the most probable one of a grid, by the
    residuals of some rows.
    """
    sample = rows.sample(_ROWS_OF_FILLER, turn=2)
    batch, weight, targets = rows.batch.rows(sample), rows.weight[sample], target[sample, np.newaxis]
    values, unknown = features.of_rows(batch), features.unknown(batch)
    sums, known = Products.of(values, targets, weight), Products.of((~unknown).astype(np.float64), targets, weight)
    usual = float(weight @ targets[:, 0] / weight.sum())
    squares = positive(_share(sums.squares * weight.sum(), known.squares))
    mixed = _share((sums.mixed - sums.features[:, np.newaxis] * usual) * weight.sum(), known.features[:, np.newaxis])
    zero = np.zeros_like(sums.features)
    whole = replace(sums, squares=squares, mixed=mixed, features=zero)
    # The fewer rows a covariance is learned from, the more the prior counts.
    pairs = np.maximum(known.squares.mean(axis=1) / known.weight, 1.0 / len(sample))
    found = LeastSquares(whole, penalty / pairs)
    few = slice(0, _ROWS_OF_NOISE)
    filled, variance = found.filled(values[few], unknown[few])
    squared = (targets[few] - found.predict(filled)) ** 2
    grid = squared.mean() * np.logspace(-_DECADES, 0, _GRID)
    of_rows = grid + variance
    prior = weight[few].mean() * _USUAL_SHARE * squared.mean() / grid
    noise = float(grid[np.argmin(weight[few] @ (np.log(of_rows) + squared / of_rows) + prior)])
    counted = np.average(1.0 / (1.0 + variance[:, 0] / noise), weights=weight[few])
    return Design(features, found, None, noise), float(counted)


def _share(sums: Array, known: Array) -> Array:
    """Return sums over the rows in which features are known, as if all rows were; 0 where none is."""
    return np.asarray(np.where(known > 0, sums / np.where(known > 0, known, 1.0), 0.0))


def _blocks(rows: NumberRows, design: Design, targets: Array, fold: int) -> Iterator[Products]:
    """Yield the sums of products of the rows of one fold."""
    chosen = np.flatnonzero(rows.fold == fold)
    for first in range(0, len(chosen), BLOCK):
        part = chosen[first : first + BLOCK]
        products = design.products(rows.batch.rows(part), targets[part], rows.weight[part])
        yield replace(products, independent=float(rows.independent[part].sum()))


def _sum(parts: Iterator[Products]) -> Products:
    total = next(parts)
    for one in parts:
        total = total + one
    return total


def _best_scale(
    rows: NumberRows, cells: NumberCells, design: Design, scales: tuple[Scale, ...], penalty: Array
) -> Scale:
    """Return the scale on which the sum of the columns predicts best: of the least held-out CRPS."""
    targets = np.stack([one.forward(rows.y) for one in scales], axis=1)
    folds = range(rows.folded.folds)
    parts = [_sum(_blocks(rows, design, targets, k)) for k in folds]
    total = _sum(iter(parts))
    held_out = np.empty_like(targets)
    for k in folds:
        of_fold = np.flatnonzero(rows.fold == k)
        squares = LeastSquares((total - parts[k]).of_independent_rows, penalty)
        held_out[of_fold] = squares.predict(design.of_rows(rows.batch.rows(of_fold))[0])
    judged = rows.sample(_JUDGED)
    losses = []
    for k, scale in enumerate(scales):
        residual = np.sort(targets[:, k] - held_out[:, k])
        at = scale.forward(edges_of(cells)[1:-1]) - held_out[judged, k][:, np.newaxis]
        below = np.searchsorted(residual, at) / len(residual)
        density = PredictiveDensity(cells, np.diff(below, axis=1, prepend=0.0, append=1.0))
        losses.append(rows.weight[judged] @ density.crps(rows.y[judged]))
    return scales[int(np.argmin(losses))]


def _cross_fitted(rows: NumberRows, found: Locations) -> Located:
    """Return locations with the sums of all rows, and those without each fold."""
    target = found.scale.forward(rows.y)[:, np.newaxis]
    parts = [_sum(_blocks(rows, found.design, target, k)).times(rows.unit) for k in range(rows.folded.folds)]
    whole = _sum_of_all(rows, found).times(rows.unit) if rows.has_others else _sum(iter(parts))
    return Located(replace(found, sums=whole), tuple(whole - part for part in parts))


def _sum_of_all(rows: NumberRows, found: Locations) -> Products:
    """Return the sums of products of all rows, by one pass."""

    def of_batch(batch: Batch) -> Products:
        assert batch.assignment is not None
        return found.products(batch, rows.all_y[batch.start : batch.start + len(batch)], batch.assignment.weight)

    return rows.source.with_width(found.design.width).reduce(of_batch)
