"""The pool, cross-validation and leave-one-out against what they replace: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.pool [--quick]   (--quick: a tenth of the rows, to see that it runs)

The real tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository; the
rows on them are left out where there is none.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import posteriori as po
from benchmarks.timing import Row, Seconds, alternately, faster, ratio_of, report, rival, spent, within
from experiments.machine import on_threads
from experiments.real_tables import data_folder, read_index, read_labelled_rows
from posteriori.comparison import discriminative
from posteriori.densities.covariances import PerClass, Pooled
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.folded_data import FoldedData, judge_and_sample

LARGE = ("adult", "letter")
SMALL = 1000
# Those under 1000 rows of the tables that docs/pool.md is about.
# fmt: off
SMALL_SETS = (
    "iris", "wine", "wdbc", "colic", "crx", "diabetes_pima", "glass", "heart_cleveland", "hepatitis", "lymph",
    "soybean", "vehicle", "vote", "zoo", "pima_na", "titanic_kaggle", "penguins",
)
# fmt: on
REFITS = 20  # of n, from whose time that of all is reckoned


def read(folder: Path, line: dict[str, str]) -> tuple[pl.DataFrame, np.ndarray]:
    """Return the features and the labels of a table."""
    X, y = read_labelled_rows(folder / line["file"], line)
    return X, y.to_numpy()


def encoded(X: pl.DataFrame) -> np.ndarray:
    """Return numbers, and an indicator for each category: what a forest is given, outside the time."""
    numbers = [c for c in X.columns if X[c].dtype.is_numeric()]
    wide = X.with_columns(pl.col(numbers).fill_null(strategy="zero")).to_dummies(
        [c for c in X.columns if c not in numbers]
    )
    return wide.to_numpy().astype(np.float64)


def large_rows(folder: Path, lines: dict[str, dict[str, str]], quick: bool) -> list[Row]:
    """Fit the pool, with its five folds, to two large sets."""
    found = []
    for name in LARGE:
        X, y = read(folder, lines[name])
        if quick:
            X, y = X.head(len(y) // 10), y[: len(y) // 10]
        Z = encoded(X)
        pool, forest = po.GenerativeClassifier(), rival(RandomForestClassifier(200, random_state=0))
        seconds = alternately(lambda pool=pool, X=X, y=y: pool.fit(X, y), lambda f=forest, Z=Z, y=y: f.fit(Z, y), 3)
        work = f"fit of GenerativeClassifier with 5 folds, {name}, {len(y):,} rows"
        found.append(faster(work, *seconds, 4, on_threads("RandomForest(200) fit")))
        judge = partial(cross_val_predict, discriminative("boosting"), X.to_pandas(), y, cv=5, method="predict_proba")
        peer = on_threads("5-fold cross_val_predict of HistGradientBoosting")
        found.append(faster(work, seconds[0], spent(judge), 4, peer))
    return found


def small_rows(folder: Path, lines: dict[str, dict[str, str]], quick: bool) -> list[Row]:
    """Fit the pool to every small set: the median set, and the worst."""
    ratios: dict[str, tuple[float, Seconds, Seconds]] = {}
    for name in SMALL_SETS[:3] if quick else SMALL_SETS:
        X, y = read(folder, lines[name])
        Z = encoded(X)
        pool, forest = po.GenerativeClassifier(), rival(RandomForestClassifier(200, random_state=0))
        ours, theirs = alternately(lambda p=pool, X=X, y=y: p.fit(X, y), lambda f=forest, Z=Z, y=y: f.fit(Z, y), 3)
        ratios[name] = (ratio_of(ours, theirs), ours, theirs)
    ordered = sorted(ratios, key=lambda name: ratios[name][0])
    rows = []
    for what, name in (("median", ordered[len(ordered) // 2]), ("worst", ordered[-1])):
        _, ours, theirs = ratios[name]
        work = f"the same, the {what} of {len(ordered)} sets under {SMALL:,} rows ({name})"
        rows.append(within(work, ours, theirs, 1, on_threads("RandomForest(200) fit")))
    return rows


def cross_validation_row(n: int, rng: np.random.Generator) -> Row:
    """Judge four models together by ten folds."""
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 20)) + rng.normal(0, 0.5, (3, 20))[y]

    def models() -> list[Any]:
        lda, qda = po.GaussianDiscriminant(), po.GaussianDiscriminant(pooling="per_class")
        return [po.NaiveBayes(), lda, qda, po.TreeAugmentedNaiveBayes(bins=8)]

    def together() -> None:
        estimators = models()
        folded = FoldedData.of(read_first_rows(estimators[0].recipe, X, y), 10)
        plans = [one.recipe.plan(folded.source.schema, folded.target) for one in estimators]
        judge_and_sample(plans, folded)

    def once() -> None:
        for estimator in models():
            estimator.fit(X, y)

    work = f"10-fold cross-validation of NB, LDA, QDA and TAN together, {n:.0e}×20".replace("e+0", "e")
    return within(work, *alternately(together, once, 3), 4, "one fit of each")


def leave_one_out_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Leave each row out of LDA and of QDA."""
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 20)) @ rng.normal(size=(20, 20)) + rng.normal(0, 2, (3, 20))[y]
    rows = []
    for name, pooling in (("LDA", Pooled(ddof=1)), ("QDA", PerClass(ddof=1))):
        shares = np.bincount(y) / n
        model = po.GaussianDiscriminant(pooling=pooling, priors=shares).fit(X, y)
        refit = po.GaussianDiscriminant(pooling=pooling, priors=shares)

        def refits(refit: Any = refit) -> None:
            for i in range(REFITS):
                rest = np.arange(n) != i
                refit.fit(X[rest], y[rest])

        ours, theirs = alternately(lambda m=model: po.model_selection.leave_one_out(m, X, y), refits, 3)
        posterior = po.model_selection.leave_one_out(model, X, y).posterior
        apart = max(np.abs(posterior[i] - textbook(X, y, i, shares, pooling)).max() for i in range(REFITS))
        work = f"leave-one-out of {name}, {n:,}×20 (from R's MASS formulas in NumPy: {apart:.0e} apart)"
        rows.append(faster(work, ours, theirs * n / REFITS, 500, f"n refits, from {REFITS}"))
    return rows


def textbook(X: np.ndarray, y: np.ndarray, i: int, shares: np.ndarray, pooling: Any) -> np.ndarray:
    """Return the leave-one-out posterior of row i by lda and qda of MASS: unbiased covariances, given priors."""
    rest = np.arange(len(y)) != i
    groups = [X[rest & (y == c)] for c in range(len(shares))]
    covariances = [np.cov(group.T) for group in groups]
    if isinstance(pooling, Pooled):
        within_classes = sum((len(g) - 1) * s for g, s in zip(groups, covariances, strict=True))
        covariances = [within_classes / (rest.sum() - len(groups))] * len(groups)
    scores = []
    for group, covariance, share in zip(groups, covariances, shares, strict=True):
        apart = X[i] - group.mean(axis=0)
        scores.append(
            np.log(share) - 0.5 * (apart @ np.linalg.solve(covariance, apart) + np.linalg.slogdet(covariance)[1])
        )
    odds = np.exp(np.array(scores) - max(scores))
    return odds / odds.sum()


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    found: list[Row] = []
    folder = data_folder()
    if folder is not None:
        lines = {line["name"]: line for line in read_index(folder)}
        found += large_rows(folder, lines, quick) + small_rows(folder, lines, quick)
    else:
        print("the rows on real tables are left out: set POSTERIORI_DATA to their folder, or put it at ../shared/data")
    found.append(cross_validation_row(100_000 if quick else 1_000_000, rng))
    return found + leave_one_out_rows(1_000 if quick else 10_000, rng)


if __name__ == "__main__":
    report("The pool and cross-validation", rows)
