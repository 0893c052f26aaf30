"""Input of a report on a regressor: its predictions of rows whose numbers are known, and figures of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.estimator import Estimator
from posteriori.classifiers.regressor import Regressor
from posteriori.classifiers.training_record import share_of_seen_rows
from posteriori.learning.importance import Importance
from posteriori.model.predictive import PredictiveDensity
from posteriori.plotting.reading import cells_of
from posteriori.reading import read_labels, read_table
from posteriori.regression.held_out import COVERAGE, HeldOutNumbers
from posteriori.regression.importance import MOST_ROWS, importance_of
from posteriori.regression.rows import numbers_of
from posteriori.sources.table_source import warn_of_unseen
from posteriori.support.formatting import cell_text, count, plural
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.batch import joined
from posteriori.tables.rows import take_rows

_MOST_PREDICTED = 10_000  # rows
_MOSTLY = 0.5  # share of the rows that the model has learned from, with which they are its training rows
_BINS = 8  # of numbers
_MOST_CATEGORIES = 12  # of a column
_OFF = 3.0  # standard errors, from which a mean residual is marked
_FEWEST = 5  # rows of a group that may be marked
NOMINAL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


@dataclass(frozen=True)
class NumberReport:
    """A fitted regressor and its predictions of rows of a table."""

    model: Regressor
    X: Any
    n_rows: int  # of the table
    predicted: HeldOutNumbers  # rows of the table, by their positions
    held_out: bool  # whether the rows were held out from the models that predicted them
    how: str  # a sentence on this
    scores_of_fit: Mapping[str, float] | None = None  # in held-out rows, if these rows are those of the fit

    @classmethod
    def of(cls, model: Regressor, X: Any, y: Any) -> NumberReport:
        """Read the numbers of the rows, and take the held-out predictions of the fit if it was to these rows.

        Raises
        ------
        ValueError
            No y is given and X has no column of the target, y holds no numbers, or no row has one.
        """
        check_is_fitted(model)
        table, target = read_table(X), model.target_.name
        if y is None:
            if target not in table.names:
                raise ValueError(f"a report needs the true numbers: give y, or X with the column {target!r}")
            y = target
        true = numbers_of(read_labels(y, table), may_miss=True)
        if len(true) != table.n_rows:
            raise ValueError(f"y has {plural(len(true), 'number')}, and X {plural(table.n_rows, 'row')}")
        kept: HeldOutNumbers | None = model.fitted_.out_of_fold
        if kept is not None and _is_of(kept, true):
            some = "" if len(kept.y) == len(true) else f" {count(len(kept.y))} of {count(len(true))} rows are shown."
            how = f"Each row was predicted by models that had not learned from it.{some}"
            return cls(model, X, len(true), kept, True, how)
        rows = np.flatnonzero(~np.isnan(true))
        if not len(rows):
            raise ValueError(f"the target {target!r} is missing in every row; give rows whose number is known")
        if len(rows) > _MOST_PREDICTED:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_PREDICTED, replace=False))
        some = take_rows(X, rows)
        predicted = HeldOutNumbers(model.predict_density(some), true[rows], np.ones(len(rows)), rows)
        learned = model.cv_results_ if (share_of_seen_rows(model, some) or 0.0) > _MOSTLY else None
        usual = None if learned is None else {name: column[-1] for name, column in learned.items()}
        return cls(model, X, len(true), predicted, False, _how(kept is not None, usual, rows, true), usual)

    @property
    def scores(self) -> Mapping[str, float]:
        """The scores in rows that the model has not learned from, as far as it is known."""
        return self.predicted.scores if self.scores_of_fit is None else self.scores_of_fit

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.model.target_.name

    @cached_property
    def batch(self) -> Batch:
        """The cells of the predicted rows."""
        return read_rows(self.model, take_rows(self.X, self.predicted.rows))

    @cached_property
    def median(self) -> Array:
        """The medians of the densities, (n,)."""
        return self.predicted.density.median

    @cached_property
    def interval(self) -> Array:
        """The central 90 % intervals, (n, 2)."""
        return self.predicted.density.interval(COVERAGE)

    def sampled(self, most: int) -> Array:
        """Return places of at most `most` predicted rows, at random with a fixed seed, ascending."""
        n = len(self.predicted.y)
        return np.sort(np.random.default_rng(0).permutation(n)[:most])

    @cached_property
    def importance(self) -> Importance:
        """The increase of the score when a column is hidden: that of held-out rows, if these rows were held out."""
        if self.held_out and self.model.fitted_.with_importance().importance is not None:
            of_pool: Importance = self.model.importance_
            return of_pool
        some, value = self.sampled(MOST_ROWS), self.model.fitted_

        def predict(batch: Batch) -> PredictiveDensity:
            return value.answer(batch, self.model.n_jobs).density

        return importance_of(predict, self.batch.rows(some), self.predicted.y[some], self.predicted.weight[some])

    @cached_property
    def residuals(self) -> list[ColumnResiduals]:
        """The mean residuals along each column, those that are off by most standard errors first."""
        residual = self.predicted.y - self.predicted.density.mean
        schema = self.batch.schema
        found = [residuals_along(self.batch, j, residual, self.predicted.weight) for j in schema.dense]
        return sorted(found, key=lambda one: -one.most_off)

    def surprising(self, most: int) -> tuple[Array, Array]:
        """Return the places of the rows with the greatest distance from the median in widths of the 90 % interval.

        Returns
        -------
        places, ratio : ndarray
            A row at its median has the ratio 0, also if its interval has no width.
        """
        distance = np.abs(self.predicted.y - self.median)
        width = np.diff(self.interval, axis=1)[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(distance > 0, distance / width, 0.0)
        order = np.argsort(-ratio, kind="stable")[:most]
        return order, ratio[order]


@dataclass(frozen=True)
class ColumnResiduals:
    """The mean of y − E[y | x] in groups of rows by a column: bins of a number, or categories, and missing cells."""

    column: str
    names: tuple[str, ...]
    n_rows: Array
    mean: Array
    standard_error: Array  # NaN of a single row

    @property
    def is_off(self) -> Array:
        """Which means are more than three standard errors from 0."""
        off = np.abs(self.mean) > _OFF * self.standard_error
        return np.asarray(off & (self.n_rows >= _FEWEST))

    @property
    def most_off(self) -> float:
        """The greatest distance of a mean from 0, in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.abs(self.mean) / self.standard_error
        judged = errors[(self.n_rows >= _FEWEST) & np.isfinite(errors)]
        return float(judged.max(initial=0.0))


def residuals_along(batch: Batch, column: int, residual: Array, weight: Array) -> ColumnResiduals:
    """Return the mean residuals of rows by the cells of a column."""
    cells = cells_of(batch, column)
    group, names = _groups(batch, column, cells)
    n_rows, mean, error = (np.zeros(len(names)) for _ in range(3))
    for k in range(len(names)):
        chosen = group == k
        share = weight[chosen] / weight[chosen].sum()
        n_rows[k] = n = int(chosen.sum())
        mean[k] = share @ residual[chosen]
        spread = np.sqrt(share**2 @ (residual[chosen] - mean[k]) ** 2)
        error[k] = spread * np.sqrt(n / (n - 1)) if n > 1 else np.nan
    return ColumnResiduals(batch.schema.names[column], tuple(names), n_rows.astype(np.int64), mean, error)


def _groups(batch: Batch, column: int, cells: Array) -> tuple[Array, list[str]]:
    """Return the group of each row, (n,), and the names of the groups, of which each has rows."""
    missing, group = np.isnan(cells), np.full(len(cells), -1, np.int64)
    names: list[str] = []
    known = cells[~missing]
    if batch.schema.columns[column].kind == "continuous":
        edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _BINS + 1))) if len(known) else known
        group[~missing] = np.searchsorted(edges[1:-1], known, side="right")
        filled = np.unique(group[~missing])
        group[~missing] = np.searchsorted(filled, group[~missing])
        names = [_range_text(known[group[~missing] == k]) for k in range(len(filled))]
    else:
        codes, counts = np.unique(known.astype(np.int64), return_counts=True)
        shown = codes[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]
        for k, code in enumerate(shown.tolist()):
            group[cells == code] = k
        names = [cell_text(batch.schema.columns[column].categories[code - 1]) for code in shown.tolist()]
        others = ~missing & (group < 0)
        if others.any():
            group[others] = len(names)
            names.append(plural(len(codes) - len(shown), "rarer category"))
    if missing.any():
        group[missing] = len(names)
        names.append("missing")
    return group, names


def _range_text(cells: Array) -> str:
    low, high = (f"{float(end):.4g}".replace("-", "\N{MINUS SIGN}", 1) for end in (cells.min(), cells.max()))
    return low if low == high else f"{low} to {high}"


def coverage_of(predicted: HeldOutNumbers) -> Array:
    """Return the share of the numbers within central intervals of each coverage of `NOMINAL`, (10,)."""
    share, y = predicted.weight / predicted.weight.sum(), predicted.y
    return np.array([share @ _within(predicted.density.interval(level), y) for level in NOMINAL.tolist()])


def _within(interval: Array, y: Array) -> Array:
    return np.asarray((interval[:, 0] <= y) & (y <= interval[:, 1]), np.float64)


def pit_shares(predicted: HeldOutNumbers, n_bins: int) -> Array:
    """Return the share of the rows in equal bins of the probability integral transform P(Y ≤ y | x), (n_bins,).

    A number of positive probability is spread over its range of the transform, as Czado, Gneiting & Held do
    (Biometrics 65, 2009): so the shares of a calibrated model are equal also where y has atoms.
    """
    density, y = predicted.density, predicted.y
    upper = density.cdf(y)
    lower = np.clip(upper - density.probability_between(y, y), 0.0, upper)
    share, edges = predicted.weight / predicted.weight.sum(), np.linspace(0.0, 1.0, n_bins + 1)
    size = np.maximum(upper - lower, 1e-12)
    lower = np.minimum(lower, 1.0 - size)
    below = np.clip((edges - lower[:, np.newaxis]) / size[:, np.newaxis], 0.0, 1.0)
    return np.asarray(share @ np.diff(below, axis=1))


def read_rows(model: Estimator, X: Any) -> Batch:
    """Return rows as one batch; warn of categories unseen in training."""
    batch = joined(list(model._source(X).stream(lambda batch: batch, "reading")))
    if batch.unseen:
        warn_of_unseen(batch.unseen)
    return batch


def _is_of(kept: HeldOutNumbers, true: Array) -> bool:
    """Return whether held-out predictions are of rows with these numbers."""
    return bool(kept.rows.max(initial=-1) < len(true)) and np.array_equal(true[kept.rows], kept.y)


def _how(keeps: bool, usual: Mapping[str, float] | None, rows: Array, true: Array) -> str:
    why = (
        "The model has learned from these rows: these figures are of rows that were held out when it was fitted, and "
        "the pictures show the fitted model."
        if usual is not None
        else "These are not the rows that the model was fitted to, so the fitted model predicted them."
        if keeps
        else "The model keeps no held-out predictions, so the fitted model predicted the rows; if it has learned from "
        "them, the scores are too optimistic."
    )
    known = int((~np.isnan(true)).sum())
    missing = "" if known == len(true) else f" Left out: {plural(len(true) - known, 'row')} without a number."
    return why + missing + (f" {count(len(rows))} of {count(known)} rows are shown." if len(rows) < known else "")
