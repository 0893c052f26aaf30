"""The experiments of docs/generative_discriminative.md: rows drawn from known models, and real tables."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.integrate import quad
from scipy.stats import norm, poisson
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import posteriori as po
from experiments.real_tables import data_folder
from posteriori.comparison import Comparison, discriminative
from posteriori.datasets import load_penguins

SEED = 0
NO_PENALTY = "unpenalised logistic"
Array = np.ndarray


def unpenalised() -> LogisticRegression:
    """Return logistic regression by maximum likelihood."""
    return LogisticRegression(C=np.inf, max_iter=1000)


# Gaussians that share their covariance ----------------------------------------------------------------------------

FEATURES = 5
DISTANCES = (1.0, 2.0, 3.0)
SIZES = (50, 100, 200, 800)


def efron_efficiency(distance: float) -> float:
    """Return the asymptotic relative efficiency of logistic regression to LDA, classes alike frequent.

    (1 + Δ²/4) e^(−Δ²/8) ∫ φ(x) / cosh(Δx/2) dx: Efron (1975), at π₁ = ½.
    """
    integral, _ = quad(lambda x: norm.pdf(x) / np.cosh(distance * x / 2), -12, 12)
    return float((1 + distance**2 / 4) * np.exp(-(distance**2) / 8) * integral)


def bayes_error(distance: float) -> float:
    """Return the error of the best rule there is."""
    return float(norm.cdf(-distance / 2))


def draw_gaussians(n: int, distance: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows of two classes at a distance along the first axis, in units of the shared standard deviation."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, FEATURES))
    X[:, 0] += distance * (y - 0.5)
    return X, y


def error_of(coef: Array, intercept: float, distance: float) -> float:
    """Return the exact probability that the rule w·x + b > 0 is wrong."""
    middle = intercept / np.linalg.norm(coef)
    reach = distance / 2 * coef[0] / np.linalg.norm(coef)
    return float((norm.cdf(-reach - middle) + norm.cdf(-reach + middle)) / 2)


@dataclass(frozen=True)
class Excess:
    """By how much rules learned from n rows err more often than the best rule, in the mean."""

    lda: float
    logistic: float
    ratio_error: float
    separable: float

    @property
    def ratio(self) -> float:
        """The excess of LDA over that of logistic regression: below 1 where LDA needs fewer rows."""
        return self.lda / self.logistic


def excess_errors(distance: float, n: int, repeats: int = 300) -> Excess:
    """Return the excess errors of LDA and of logistic regression without penalty."""
    rng = np.random.default_rng(SEED)
    found, separable = np.empty((repeats, 2)), 0
    for repeat in range(repeats):
        X, y = draw_gaussians(n, distance, rng)
        lda = po.GaussianDiscriminant(n_jobs=1).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of classes that a plane separates
            logistic = unpenalised().fit(X, y)
        separable += logistic.score(X, y) == 1.0
        slope, offset = lda.coef_[1] - lda.coef_[0], lda.intercept_[1] - lda.intercept_[0]
        rules = ((slope, offset), (logistic.coef_[0], logistic.intercept_[0]))
        found[repeat] = [error_of(w, b, distance) - bayes_error(distance) for w, b in rules]
    one, other = found.mean(axis=0)
    spread = (found[:, 0] - one / other * found[:, 1]).std(ddof=1) / np.sqrt(repeats) / other
    return Excess(one, other, spread, separable / repeats)


def gaussian_curves() -> Comparison:
    """Return learning curves where the model of LDA is the truth."""
    X, y = draw_gaussians(20_000, 2.0, np.random.default_rng(SEED))
    models = {"LDA": "lda", NO_PENALTY: discriminative(unpenalised())}
    sizes = (12, 20, 40, 80, 160, 320, 640)
    return po.compare(models, X, y, sizes=sizes, repeats=40, test_share=0.5, random_state=SEED)


# Counts under a Gaussian model ------------------------------------------------------------------------------------

RATES = np.array([[0.3, 0.5, 1.0, 2.0, 4.0], [0.9, 1.2, 2.0, 3.5, 6.0]])

COUNTED = 20_000  # rows


def draw_counts(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows of independent counts given the class."""
    y = rng.permutation(np.arange(n) % 2)
    return rng.poisson(RATES[y]).astype(float), y


def count_curves() -> Comparison:
    """Return learning curves where numbers are counts: logistic regression is right, and so is one of the others."""
    X, y = draw_counts(COUNTED, np.random.default_rng(SEED))
    models = {
        "LDA": "lda",
        NO_PENALTY: discriminative(unpenalised()),
        "Poisson naive Bayes": po.NaiveBayes(distributions=dict.fromkeys(range(RATES.shape[1]), "poisson")),
        "Gaussian naive Bayes": "nb",
    }
    sizes = (12, 25, 50, 100, 400, 1600, 6400)
    return po.compare(models, X, y, sizes=sizes, repeats=40, test_share=0.5, random_state=SEED)


def least_log_loss() -> float:
    """Return the log-loss of the true posterior of the counts that the curves are of, in nats per row."""
    X, y = draw_counts(COUNTED, np.random.default_rng(SEED))
    log_joint = poisson.logpmf(X[:, np.newaxis], RATES).sum(axis=2)
    return float(np.logaddexp(0.0, log_joint[np.arange(len(y)), 1 - y] - log_joint[np.arange(len(y)), y]).mean())


# Missing cells ----------------------------------------------------------------------------------------------------

LOST = (0.0, 0.2, 0.4, 0.6)
CORRELATION = 0.7
LOST_BY_CLASS = (0.2, 0.6)


def draw_correlated(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows of correlated Gaussian features, which tell the classes apart by their differences mostly."""
    y = rng.permutation(np.arange(n) % 2)
    shared = np.sqrt(CORRELATION) * rng.normal(size=(n, 1))
    X = shared + np.sqrt(1 - CORRELATION) * rng.normal(size=(n, FEATURES))
    return X + np.outer(y - 0.5, np.linspace(1.0, -0.5, FEATURES)), y


def missing_curves(lost: float | None) -> Comparison:
    """Return scores where a share of all cells is missing by chance; None: more of one class than of the other."""
    rng = np.random.default_rng(SEED)
    X, y = draw_correlated(8000, rng)
    share = np.full(len(y), lost) if lost is not None else np.take(LOST_BY_CLASS, y)
    X[rng.random(X.shape) < share[:, np.newaxis]] = np.nan
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    models = {
        "LDA, integrated out": "lda",
        "LDA, medians": make_pipeline(medians, po.GaussianDiscriminant()),
        "logistic, medians": "logistic",
        "gradient boosting": "boosting",
    }
    return po.compare(models, X, y, sizes=(100, 2000), repeats=5, test_share=0.5, random_state=SEED)


# Rows without label -----------------------------------------------------------------------------------------------

LABELLED = (10, 20, 50, 200)
UNLABELLED = 1000
LIGHT = 0.02


def draw_independent(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return Gaussian features, independent given the class, the means of which are 2 apart all together."""
    y = rng.permutation(np.arange(n) % 2)
    return rng.normal(size=(n, FEATURES)) + np.outer(y - 0.5, np.full(FEATURES, 2 / np.sqrt(FEATURES))), y


def unlabelled_accuracies(draw: Any, n: int, repeats: int = 30) -> Array:
    """Return the accuracy of four models, (repeats, 4), that learn from n labels and 1000 rows without."""
    rng = np.random.default_rng(SEED)
    found = np.empty((repeats, 4))
    for repeat in range(repeats):
        X, y = draw(n, rng)
        more, _ = draw(UNLABELLED, rng)
        test, truth = draw(4000, rng)
        everything, labels = np.concatenate([X, more]), [*map(int, y), *[None] * UNLABELLED]
        models = [
            po.NaiveBayes(n_jobs=1).fit(X, y),
            po.NaiveBayes(labels=po.Labels(unlabelled="learn"), n_jobs=1).fit(everything, labels),
            po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight=LIGHT), n_jobs=1).fit(
                everything, labels
            ),
            LogisticRegression(max_iter=1000).fit(X, y),
        ]
        found[repeat] = [np.mean(model.predict(test) == truth) for model in models]
    return found


# Real tables ------------------------------------------------------------------------------------------------------

MOST_ROWS = 8000
REAL = {"diabetes_pima": 10, "mushroom": 5, "adult": 5}


def real_tables() -> Iterator[tuple[str, pl.DataFrame, str, int]]:
    """Yield name, rows, target and repeats: the penguins, and of the folder of tables, if there is one, three."""
    yield "penguins", load_penguins(), "species", 10
    folder = data_folder()
    if folder is None:
        print("skipped: the other tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        index = {line["name"]: line for line in csv.DictReader(lines, delimiter="\t")}
    for name, repeats in REAL.items():
        yield name, _read(folder / index[name]["file"], index[name]), index[name]["target"], repeats


def _read(path: Path, line: dict[str, str]) -> pl.DataFrame:
    rows = pl.read_csv(path, infer_schema_length=None)
    target, listed = line["target"], line["categorical_columns"]
    named = {"all": rows.columns, "none": [target]}.get(listed, [*listed.split(";"), target])
    rows = rows.with_columns(pl.col(name).cast(pl.String) for name in named)
    return rows[np.random.default_rng(SEED).permutation(len(rows))[:MOST_ROWS]]


def real_curves(rows: pl.DataFrame, target: str, repeats: int) -> Comparison:
    """Return learning curves of the default models, and of logistic regression without its penalty."""
    models = {
        "naive Bayes": "nb",
        "LDA": "lda",
        "TAN": "tan",
        "logistic": "logistic",
        NO_PENALTY: discriminative(unpenalised()),
        "boosting": "boosting",
    }
    return po.compare(models, rows, target, repeats=repeats, random_state=SEED)
