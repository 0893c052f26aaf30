"""One sum of features with a density of Student's t around it, which learns and forgets rows by sums alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.learning.equal_rows import merged_weight
from posteriori.learning.importance import Importance
from posteriori.model.predictive import NumberCells, PredictiveDensity
from posteriori.pool.parameters import Data
from posteriori.reading import read_labels
from posteriori.regression.held_out import MOST_PREDICTED, HeldOutNumbers
from posteriori.regression.importance import MOST_KEPT, importance_of, most_rows
from posteriori.regression.landmarks import Inputs
from posteriori.regression.least_squares import LeastSquares, Products
from posteriori.regression.locate import locate
from posteriori.regression.locations import Locations, Name
from posteriori.regression.rows import NumberRows, learnable_numbers, read_number_rows
from posteriori.regression.value import FittedNumbers, FittedRegression
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import generator, require
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.user_warnings import warn


@dataclass(frozen=True)
class FittedGaussian(FittedNumbers):
    r"""The joint Gaussian of the features of a row and of the target on its scale, t.

    .. math:: t \mid x \sim t_\nu\Bigl(\bar t + \beta^T (\phi - \bar\phi),\;
              \sigma^2 \bigl(1 + \tfrac1n + (\phi - \bar\phi)^T (S + \Lambda)^{-1} (\phi - \bar\phi)\bigr) + v\Bigr)

    with the variance v of what is unknown (`LeastSquares.filled`), and σ² = RSS / ν of the ν = n − 2 − tr S (S + Λ)⁻¹
    degrees of freedom, of which Student's t knows that σ² is an estimate.
    """

    found: Locations  # one

    @property
    def cells(self) -> NumberCells:
        """The cells of the target."""
        return self.found.cells

    @property
    def squares(self) -> LeastSquares:
        """The least squares."""
        return self.found.squares[0]

    @cached_property
    def ranges(self) -> ColumnRanges:
        """Ranges of the columns in the training rows; none of a column of one value."""
        found = ColumnRanges.empty(len(self.of_columns.columns))
        for one in self.found.design.features.numbers:
            found.lowest[one.column], found.highest[one.column] = one.lowest, one.highest
            found.whole[one.column] = False
        return found

    @property
    def n_parameters(self) -> int:
        """The number of coefficients, and the variance of the noise."""
        return len(self.squares.penalty) + 1

    @property
    def noise(self) -> float:
        """σ², on the scale of the target."""
        return self.squares.noise

    def probability(self, batch: Batch, n_jobs: int | None = 1) -> Array:
        """Return the probability of each cell of the target, (n, G)."""
        del n_jobs
        with one_blas_thread():  # as in the fit, so that a model that was loaded rounds in the same way
            return self.found.student_probability(batch)

    @cached_property
    def usual_variance(self) -> float:
        """The mean variance of training rows without unknown cells, σ² (1 + (1 + tr S (S + Λ)⁻¹)/n)."""
        squares = self.squares
        return self.noise * (1.0 + (1.0 + squares.used) / squares.products.weight)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        require(self.target.kind == "continuous", "the target is not a column of numbers")
        require(len(self.found.locations) == 1, "there is not one location")
        if self.importance is not None:
            self.importance.check_against(len(self.of_columns.columns))
        self.found.check_locations(self.of_columns)


@dataclass(frozen=True)
class HeldOutSums:
    """Held-out rows with their numbers, and the sums without each fold: what the importance is measured by."""

    without: tuple[Locations, ...]
    batch: Batch
    fold: Array
    y: Array
    weight: Array
    n_all: int  # rows of which these are a sample

    @property
    def is_large(self) -> bool:
        """Whether the sums are too large to be stored until the importance is requested."""
        return sum(len(one.squares[0].penalty) ** 2 for one in self.without) > MOST_KEPT

    def importance(self) -> Importance:
        """Return the increase of the score when each column is hidden, each row by the sums without its fold."""

        def predict(batch: Batch) -> PredictiveDensity:
            own, cells = np.resize(self.fold, len(batch)), self.without[0].cells
            probability = np.empty((len(batch), len(cells)))
            for k in np.unique(own).tolist():
                places = np.flatnonzero(own == k)
                probability[places] = self.without[k].student_probability(batch.rows(places))
            return PredictiveDensity(cells, probability)

        n_folds = len(self.without)
        with one_blas_thread():
            n_trained = self.n_all * (n_folds - 1) / n_folds
            return importance_of(predict, self.batch, self.y, self.weight, n_trained=n_trained)


def fit(recipe: Recipe, name: Name, data: Data) -> FittedGaussian:
    """Return the joint Gaussian of a table: of the features of columns, or of the similarities to landmarks too."""
    seed = int(generator(recipe.parameters["random_state"]).integers(2**31))
    rows = read_number_rows(recipe, data, recipe.parameters["folds"], seed)
    with one_blas_thread():
        located = locate(rows, [name], recipe.parameters["scale"])
        if not located.whole.locations:
            raise ValueError("no column of X has two different values; give the regressor a column to learn from")
        found = FittedGaussian(recipe, rows.target, rows.batch.schema, located.whole)
        return _with_held_out(found, rows, located.without)


def _with_held_out(value: FittedGaussian, rows: NumberRows, without: Sequence[Products | None]) -> FittedGaussian:
    """Return the value with predictions of training rows from the sums without their folds, and their scores."""
    found, chosen = value.found, rows.sample(MOST_PREDICTED)
    probability = np.empty((len(chosen), len(found.cells)))
    others: list[Locations] = []
    for k, sums in enumerate(without):
        of_fold, places = np.flatnonzero(rows.fold == k), np.flatnonzero(rows.fold[chosen] == k)
        share = _share_with(found, rows.y[of_fold], rows.weight[of_fold] * rows.unit, -1.0)
        others.append(replace(found, sums=sums, share=share))
        if len(places):
            probability[places] = others[k].student_probability(rows.batch.rows(chosen[places]))
    density = PredictiveDensity(value.cells, probability, value.target.name)
    few = rows.sample(most_rows(len(rows.batch.schema.modelled)))
    part = rows.batch.rows(few), rows.fold[few], rows.y[few], rows.weight[few] * rows.unit
    to_measure = HeldOutSums(tuple(others), *part, len(rows.y))
    held_out = HeldOutNumbers(
        density, rows.y[chosen], rows.weight[chosen] * rows.unit, rows.folded.places[chosen], rows.fold[chosen]
    )
    (one,) = found.locations
    results: dict[str, list[Any]] = {"member": [one.name], **{name: [score] for name, score in held_out.scores.items()}}
    measured = replace(value, results=results, out_of_fold=held_out, held_out=to_measure)
    return measured.with_importance() if to_measure.is_large else measured


def add(value: FittedGaussian, data: Data) -> FittedGaussian:
    """Return the joint Gaussian of the rows of a value and of further ones: their sums are added."""
    return _with_sums(value, data, 1.0)


def additive_of(value: FittedRegression, recipe: Recipe) -> FittedGaussian:
    """Return the additive member of a pool with Student's t around it, by the recipe of an `AdditiveRegressor`.

    Raises ValueError if the pool has none.
    """
    members = value.members
    location = next((one for one in members.locations if one.name == "additive"), None)
    if location is None or members.sums is None:
        raise ValueError("the pool has no additive member; fit an AdditiveRegressor")
    locations = Locations(
        members.cells,
        members.share,
        members.scale,
        replace(members.design, landmarks=None),
        members.sums.first(len(members.design.features)),
        (location,),
    )
    return FittedGaussian(recipe, value.target, value.of_columns, locations)


def remove(value: FittedGaussian, data: Data) -> FittedGaussian:
    """Return the joint Gaussian without some rows, whose sums are subtracted.

    Raises
    ------
    ValueError
        Less weight is left than one row, or the value cannot have learned from these rows.
    """
    return _with_sums(value, data, -1.0)


def _with_sums(value: FittedGaussian, data: Data, sign: float) -> FittedGaussian:
    found, source = value.found, value.rows.source(data.X, value.recipe.n_jobs)
    labels = read_labels(value.target.name if data.y is None else data.y, source.table)
    y, weight = learnable_numbers(labels, data.sample_weight)
    weight = np.ones(len(y)) if weight is None else weight

    def of_batch(batch: Batch) -> Any:
        part = slice(batch.start, batch.start + len(batch))
        return found.products(batch, y[part], weight[part])

    if sign > 0 and (found.cells.find(y) < 0).any():
        warn(
            f"{int((found.cells.find(y) < 0).sum()):,} targets lie outside of the range of the first call, from "
            f"{found.cells.low[0]:g} to {found.cells.high[-1]:g}, in which all predictions stay; fit to all rows"
        )
    _, unit = merged_weight(source.with_weight(weight), y)
    with one_blas_thread():
        other = source.with_width(found.design.width).reduce(of_batch)
    other = replace(other, independent=other.rows / unit)
    assert found.sums is not None
    sums = found.sums + other if sign > 0 else found.sums - other
    if sign < 0:
        before, after = (np.append(np.diag(one.squares), one.target_squares) for one in (found.sums, sums))
        means = np.append(sums.features, sums.targets) / max(sums.weight, 1.0)
        if sums.weight < 1.0 or (after - sums.weight * means**2 < -1e-9 * before).any():
            raise ValueError(
                "the model cannot have learned from these rows, or none would be left; unlearn takes rows that fit or "
                "partial_fit has seen"
            )
    share = _share_with(found, y, weight, sign)
    found = replace(found, sums=sums, share=share)
    if sign < 0 and found.design.landmarks is not None:
        found = _without_landmarks(found, source)
    # Held-out scores are of the rows before.
    return replace(value, found=found, results={}, out_of_fold=None, importance=None, held_out=None)


def _without_landmarks(found: Locations, source: LabelledSource) -> Locations:
    """Return the locations without the landmarks that are among some rows, so that nothing stays of these."""
    landmarks, additive = found.design.landmarks, found.additive
    assert landmarks is not None

    def of_batch(batch: Batch) -> Array:
        values, _ = found.design.filled(batch, additive)
        return landmarks.are_among(Inputs.of(found.design.features, values).values)

    dropped = np.logical_or.reduce(list(source.stream(of_batch, "reading")))
    if dropped.all():
        raise ValueError(
            "these rows are all those that the similarities of the kernel are made of; fit to the rows that are left"
        )
    return found.without_landmarks(dropped) if dropped.any() else found


def _share_with(found: Locations, y: Array, weight: Array, sign: float) -> Array:
    """Return the share of the training rows in each cell, (G,), with further ones, or without some."""
    assert found.sums is not None
    counts = found.share * found.sums.rows + sign * np.bincount(found.cells.nearest(y), weight, len(found.cells))
    return np.asarray(np.maximum(counts, 0.0) / np.maximum(counts, 0.0).sum())
