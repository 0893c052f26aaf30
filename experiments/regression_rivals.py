"""Regression models of other libraries, each as a function that fits and returns a function that predicts.

A forecast is a table of quantiles at the 99 levels 0.01 … 0.99 and a mean. Every model runs in one thread. Boosting
stops early by a sixth of the training rows, and is then fitted to all of them at the length found. A model that
predicts points only gets the quantiles of its residuals on a quarter of the training rows (split conformal
prediction). LightGBM predicts quantiles at nine levels and CatBoost at 21, because 99 are slow; those between are
interpolated in normal scores. CatBoost learns all its levels in one model, which 21 make better by some per cent than
nine.

Libraries are imported where they are used, so that the module can be read without those of the `bench` extra.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LEVELS = np.arange(1, 100) / 100
FEW_LEVELS = np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99])
MORE_LEVELS = np.array([0.01, *np.arange(1, 20) / 20, 0.99])
MOST_TREES = 1000
PATIENCE = 50  # rounds without a gain after which boosting stops
LEARNING_RATE = 0.05
STOPPING, CALIBRATION = 1 / 6, 1 / 4  # shares of the training rows
SEED = 0


@dataclass(frozen=True)
class Forecast:
    """What a model predicts for n rows.

    Attributes
    ----------
    quantiles : array (n, 99)
        At `LEVELS`, in ascending order.
    mean : array (n,)
    """

    quantiles: np.ndarray
    mean: np.ndarray


Predict = Callable[[pl.DataFrame], Forecast]
Point = Callable[[pl.DataFrame], np.ndarray]
# The last argument of a fit is in how many copies the rows are stacked: copies of a row are held out together.
Fit = Callable[[pl.DataFrame, np.ndarray, int], Predict]
FitPoint = Callable[[pl.DataFrame, np.ndarray, int], Point]


class Columns:
    """The columns of a training table, as the libraries want to read them.

    Parameters
    ----------
    X : DataFrame
        The training rows. Columns that are not numeric are categories; those that these rows lack are read as missing.
    """

    def __init__(self, X: pl.DataFrame) -> None:
        self.categories = {
            name: sorted(X[name].drop_nulls().unique().to_list())
            for name in X.columns
            if not X[name].dtype.is_numeric()
        }

    def native(self, X: pl.DataFrame) -> Any:
        """Return a pandas table of numbers and categoricals, with gaps; LightGBM refuses names with some characters."""
        import pandas as pd

        read = {}
        for position, name in enumerate(X.columns):
            if name in self.categories:
                cells = pd.Series(X[name].to_list(), dtype=object)
                known = cells.where(cells.isin(self.categories[name]), None)
                read[f"c{position}"] = pd.Series(pd.Categorical(known, categories=self.categories[name]))
            else:
                read[f"c{position}"] = pd.Series(_numbers(X[name]))
        return pd.DataFrame(read)

    def strings(self, X: pl.DataFrame) -> Any:
        """Return a pandas table of numbers and strings, where a missing category is a category: for CatBoost."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: X[name].fill_null("missing").to_list() if name in self.categories else _numbers(X[name])
                for name in X.columns
            }
        )

    def matrix(self, X: pl.DataFrame) -> np.ndarray:
        """Return numbers, with NaN for gaps, and an indicator of each category; a missing one shows none."""
        read = []
        for name in X.columns:
            if name in self.categories:
                cells = np.array(X[name].to_list(), dtype=object)
                read += [(cells == category).astype(float) for category in self.categories[name]]
            else:
                read.append(_numbers(X[name]))
        return np.column_stack(read)


def _numbers(column: pl.Series) -> np.ndarray:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _imputer() -> SimpleImputer:
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def held_out(n_rows: int, share: float, copies: int = 1) -> np.ndarray:
    """Return which rows of a training table are held out, (n,), by a fixed seed."""
    n_rows //= copies
    chosen = np.random.default_rng(SEED).permutation(n_rows) < max(round(share * n_rows), 1)
    return np.tile(chosen, copies)


def spread(quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles at `LEVELS`, (n, 99), from those at fewer levels; they are sorted where they cross."""
    weights = [np.interp(ndtri(LEVELS), ndtri(levels), one) for one in np.eye(len(levels))]
    return np.sort(quantiles, axis=1) @ np.array(weights)


def conformal(fit_point: FitPoint) -> Fit:
    """Return the fit whose quantiles are a point forecast plus the quantiles of residuals of held-out rows."""

    def fit(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
        held = held_out(len(y), CALIBRATION, copies)
        residuals = y[held] - fit_point(X.filter(~held), y[~held], copies)(X.filter(held))
        shifts = np.quantile(residuals, LEVELS, method="weibull")  # k-th of m + 1: exact if rows are exchangeable
        point = fit_point(X, y, copies)

        def predict(rows: pl.DataFrame) -> Forecast:
            mean = point(rows)
            return Forecast(mean[:, None] + shifts, mean)

        return predict

    return fit


def hist_boosting(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Point:
    """Fit histogram boosting of scikit-learn, with its own handling of categories and gaps."""
    columns = Columns(X)
    read, held = columns.native(X), held_out(len(y), STOPPING, copies)
    make = partial(HistGradientBoostingRegressor, learning_rate=LEARNING_RATE, random_state=SEED)
    stopped = make(max_iter=MOST_TREES, early_stopping=True, n_iter_no_change=PATIENCE)
    stopped.fit(read[~held], y[~held], X_val=read[held], y_val=y[held])
    best = max(int(np.argmax(stopped.validation_score_)), 1)
    model = make(max_iter=best, early_stopping=False).fit(read, y)
    return lambda rows: model.predict(columns.native(rows))


def lightgbm(X: pl.DataFrame, y: np.ndarray, copies: int = 1, **loss: Any) -> Point:
    """Fit LightGBM, with its own handling of categories and gaps; `loss` are its objective and the level."""
    from lightgbm import LGBMRegressor, early_stopping

    columns = Columns(X)
    read, held = columns.native(X), held_out(len(y), STOPPING, copies)
    make = partial(LGBMRegressor, learning_rate=LEARNING_RATE, random_state=SEED, n_jobs=1, verbose=-1, **loss)
    stopped = make(n_estimators=MOST_TREES).fit(
        read[~held],
        y[~held],
        eval_X=read[held],
        eval_y=y[held],
        callbacks=[early_stopping(PATIENCE, verbose=False)],
    )
    model = make(n_estimators=max(stopped.best_iteration_, 1)).fit(read, y)
    return lambda rows: np.asarray(model.predict(columns.native(rows)))


def lightgbm_quantiles(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
    """Fit LightGBM to each of nine levels, and to the mean."""
    of_levels = [lightgbm(X, y, copies, objective="quantile", alpha=level) for level in FEW_LEVELS]
    mean = lightgbm(X, y, copies)
    return lambda rows: Forecast(spread(np.column_stack([one(rows) for one in of_levels]), FEW_LEVELS), mean(rows))


def catboost(X: pl.DataFrame, y: np.ndarray, copies: int = 1, loss: str = "RMSE") -> Point:
    """Fit CatBoost, with its own handling of categories and gaps."""
    from catboost import CatBoostRegressor

    columns = Columns(X)
    read, held = columns.strings(X), held_out(len(y), STOPPING, copies)
    make = partial(
        CatBoostRegressor,
        loss_function=loss,
        learning_rate=LEARNING_RATE,
        random_seed=SEED,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
        cat_features=list(columns.categories),
    )
    stopped = make(iterations=MOST_TREES)
    stopped.fit(read[~held], y[~held], eval_set=(read[held], y[held]), early_stopping_rounds=PATIENCE)
    model = make(iterations=stopped.get_best_iteration() + 1).fit(read, y)
    return lambda rows: np.asarray(model.predict(columns.strings(rows)))


def catboost_quantiles(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
    """Fit CatBoost to 21 levels at once, and to the mean."""
    levels = ", ".join(f"{level:g}" for level in MORE_LEVELS)
    of_levels, mean = catboost(X, y, copies, loss=f"MultiQuantile:alpha={levels}"), catboost(X, y, copies)
    return lambda rows: Forecast(spread(of_levels(rows), MORE_LEVELS), mean(rows))


def quantile_forest(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
    """Fit a quantile regression forest of 300 trees: medians and indicators for gaps, indicators of categories."""
    from quantile_forest import RandomForestQuantileRegressor

    columns, imputer = Columns(X), _imputer()
    model = RandomForestQuantileRegressor(300, min_samples_leaf=5, max_features=1 / 3, n_jobs=1, random_state=SEED)
    model.fit(imputer.fit_transform(columns.matrix(X)), y)

    def predict(rows: pl.DataFrame) -> Forecast:
        read = imputer.transform(columns.matrix(rows))
        return Forecast(model.predict(read, quantiles=LEVELS.tolist()), model.predict(read, quantiles="mean"))

    return predict


def ngboost(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
    """Fit natural gradient boosting of a normal distribution to indicators of the categories; it takes gaps."""
    from ngboost import NGBRegressor

    columns = Columns(X)
    read, held = columns.matrix(X), held_out(len(y), STOPPING, copies)
    make = partial(NGBRegressor, verbose=False, random_state=SEED)  # at its own rate: a larger one overflows
    stopped = make(n_estimators=MOST_TREES)
    stopped.fit(read[~held], y[~held], X_val=read[held], Y_val=y[held], early_stopping_rounds=PATIENCE)
    model = make(n_estimators=(stopped.best_val_loss_itr or 0) + 1).fit(read, y)

    def predict(rows: pl.DataFrame) -> Forecast:
        normal = model.pred_dist(columns.matrix(rows)).params
        return Forecast(normal["loc"][:, None] + normal["scale"][:, None] * ndtri(LEVELS), normal["loc"])

    return predict


def ridge(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Point:
    """Fit ridge regression to standardised columns: medians and indicators for gaps, indicators of categories."""
    columns = Columns(X)
    model = make_pipeline(_imputer(), StandardScaler(), RidgeCV(alphas=np.logspace(-3, 5, 17)))
    model.fit(columns.matrix(X), y)
    return lambda rows: model.predict(columns.matrix(rows))


def hide(X: pl.DataFrame, shares: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    """Return the rows with cells missing at random: `shares`, (n,) or a number, are the chances of a row's cells."""
    hidden = rng.random(X.shape) < np.broadcast_to(shares, X.height)[:, None]
    return X.select(
        pl.when(pl.lit(pl.Series(~hidden[:, position]))).then(pl.col(name)).alias(name)
        for position, name in enumerate(X.columns)
    )


def with_hidden_cells(fit: Fit) -> Fit:
    """Return the fit to the training rows and as many copies of them whose cells are hidden at random shares."""

    def fit_doubled(X: pl.DataFrame, y: np.ndarray, copies: int = 1) -> Predict:
        rng = np.random.default_rng(SEED)
        doubled = pl.concat([X, hide(X, rng.random(X.height), rng)])
        return fit(doubled, np.concatenate([y, y]), 2 * copies)

    return fit_doubled


HIDDEN = ", hidden cells"
RIVALS: dict[str, Fit] = {
    "ridge": conformal(ridge),
    "histogram boosting": conformal(hist_boosting),
    "LightGBM": lightgbm_quantiles,
    "CatBoost": catboost_quantiles,
    "CatBoost, conformal": conformal(catboost),
    "quantile forest": quantile_forest,
    "NGBoost": ngboost,
}
# The rivals that are also trained with hidden cells.
TRAINED_WITH_HIDDEN_CELLS: dict[str, Fit] = {
    name + HIDDEN: with_hidden_cells(RIVALS[name]) for name in ("LightGBM", "CatBoost", "quantile forest")
}
BOOSTED_TREES = ("histogram boosting", "LightGBM", "CatBoost", "CatBoost, conformal")
