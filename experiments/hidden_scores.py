"""Scores of models on real tables some of whose labels, or cells, are hidden: what docs/hidden.md is made of."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import posteriori as po
from experiments.real_tables import Table
from posteriori.model_selection import out_of_fold

LABELLED = (5, 10, 20, 50)  # a class
LABEL_SETS = ("diabetes_pima", "german", "mushroom", "satimage", "segment", "vehicle", "vote", "wdbc")
WEIGHTS = (0.1, 1.0)
ALONE, CHOSEN = "alone", "chosen"
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of cells that are missing
CELL_SETS = ("diabetes_pima", "satimage", "segment", "vehicle", "wdbc", "wine")
MOST_ROWS = 1000  # to learn from, and as many to test by
MOST_ROWS_WITH_GAPS = 500
FOLDS = 5
REPETITIONS = {"labels": 5, "cells": 5}

_LIMITS = {"em": po.EM(tol=1e-3, max_iter=100), "n_jobs": 1}


@dataclass(frozen=True)
class Row:
    """One score.

    Attributes
    ----------
    part : "labels" or "cells"
        What is hidden.
    name, model : str
        The set and the model.
    amount : float
        Labels per class, or the share of missing cells.
    variant : str
        What is done with rows without label: their weight, "alone" where they are left out, or "chosen".
    repetition : int
    accuracy, log_loss : float
        Of rows held out; in nats per row.
    """

    part: str
    name: str
    model: str
    amount: float
    variant: str
    repetition: int
    accuracy: float
    log_loss: float


@dataclass(frozen=True)
class Scores:
    """All scores, by what they are of: each entry those of the repetitions, in order."""

    found: dict[tuple[str, str, str, str, float, str], np.ndarray]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Scores:
        """Gather the rows of each cell of the experiments."""
        found: dict[tuple[str, str, str, str, float, str], list[float]] = {}
        for row in sorted(rows, key=lambda row: row.repetition):
            for measured in ("accuracy", "log_loss"):
                key = (measured, row.part, row.name, row.model, row.amount, row.variant)
                found.setdefault(key, []).append(getattr(row, measured))
        return cls({key: np.array(values) for key, values in found.items()})

    def sets(self, part: str, model: str | None = None) -> list[str]:
        """Return the names of the sets, of those that a model was measured on."""
        return sorted({key[2] for key in self.found if key[1] == part and model in (None, key[3])})

    def models(self, part: str, name: str | None = None) -> list[str]:
        """Return the names of the models, of those that were measured on a set."""
        return list(dict.fromkeys(key[3] for key in self.found if key[1] == part and name in (None, key[2])))

    def values(self, measured: str, part: str, name: str, model: str, amount: float, variant: str = "") -> np.ndarray:
        """Return the scores of all repetitions."""
        return self.found[measured, part, name, model, amount, variant]

    def mean(
        self, measured: str, part: str, model: str, amount: float, variant: str = "", against: str | None = None
    ) -> tuple[float, float]:
        """Return the mean over the sets, or its gain against another variant, and its standard error."""
        each = []
        for name in self.sets(part, model):
            values = self.values(measured, part, name, model, amount, variant)
            each.append(
                values if against is None else values - self.values(measured, part, name, model, amount, against)
            )
        return _mean(np.array(each).mean(axis=0))

    def gain(self, measured: str, name: str, model: str, amount: float, variant: str) -> tuple[float, float]:
        """Return what rows without label add on a set to the labelled rows alone, and its standard error."""
        values = self.values(measured, "labels", name, model, amount, variant)
        return _mean(values - self.values(measured, "labels", name, model, amount, ALONE))


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def generative_models(n_numbers: int) -> dict[str, Any]:
    """Return the models of this library that both experiments measure; without numbers LDA and QDA are naive Bayes."""
    naive, tan = po.NaiveBayes(**_LIMITS), po.TreeAugmentedNaiveBayes(bins=5, **_LIMITS)
    if not n_numbers:
        return {"naive Bayes": naive, "TAN": tan}
    return {
        "naive Bayes": naive,
        "LDA": po.GaussianDiscriminant(shrinkage=0.1, **_LIMITS),
        "QDA": po.GaussianDiscriminant(pooling="per_class", shrinkage=0.1, **_LIMITS),
        "TAN": tan,
    }


def imputing_models() -> dict[str, Any]:
    """Return their peers of scikit-learn, which fill gaps in or send them down a branch of their own."""

    def regression(imputer: Any) -> Any:
        return make_pipeline(StandardScaler(), imputer, LogisticRegression(max_iter=2000))

    return {
        "mean + logistic": regression(SimpleImputer()),
        "iterative + logistic": regression(IterativeImputer(random_state=0)),
        "gradient boosting": HistGradientBoostingClassifier(random_state=0),
    }


def measure(sets: Sequence[Table], keep: Path | None) -> list[Row]:
    """Return all scores, those of an earlier run from the file where they are kept."""
    done = list(_read(keep)) if keep is not None and keep.exists() else []
    known = {(row.part, row.name, row.repetition) for row in done}
    wanted = [
        (part, table, repetition)
        for part, names in (("labels", LABEL_SETS), ("cells", CELL_SETS))
        for repetition in range(REPETITIONS[part])
        for table in sets
        if table.name in names and (part, table.name, repetition) not in known
    ]
    # Spawned: the threads of polars do not outlive a fork.
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), multiprocessing.get_context("spawn")) as pool:
        for rows in pool.map(_measure_one, wanted):
            done += rows
            print(".", end="", flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(dataclasses.asdict(row)) + "\n" for row in rows)
    print()
    return done


def _read(path: Path) -> Iterator[Row]:
    """Yield the scores of a file, of repetitions that are wanted."""
    rows = (Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
    yield from (row for row in rows if row.repetition < REPETITIONS[row.part])


def _measure_one(job: tuple[str, Table, int]) -> list[Row]:
    part, table, repetition = job
    rng = np.random.default_rng([repetition, zlib.crc32(table.name.encode())])
    with threadpool_limits(1), warnings.catch_warnings():  # processes run side by side, a core each
        warnings.simplefilter("ignore")  # of few rows: empty columns, singular covariances, steps that ran out
        return list((_hide_labels if part == "labels" else _hide_cells)(table, repetition, rng))


# Labels ----------------------------------------------------------------------------------------------------


def _hide_labels(table: Table, repetition: int, rng: np.random.Generator) -> Iterator[Row]:
    """Yield the scores of each model and number of labels, of some rows without label and none."""
    learnt, tested = _split(table.y, MOST_ROWS, rng)
    X, y = table.X[learnt], table.y[learnt]
    classes = table.y.unique().sort()
    order = {label: np.flatnonzero((y == label).to_numpy()) for label in classes}  # shuffled by the split
    shares = {label: float((table.y == label).mean()) for label in classes}
    for n_labels in LABELLED:
        labelled = np.sort(np.concatenate([rows[:n_labels] for rows in order.values()]))
        some = pl.Series([label if i in set(labelled.tolist()) else None for i, label in enumerate(y)], dtype=y.dtype)
        for name, model in generative_models(table.n_numbers).items():
            fitted, losses = {}, {}
            for weight in (0.0, *WEIGHTS):
                one = _like(model, priors=shares, labels__unlabelled="learn", labels__unlabelled_weight=weight)
                alone = (X[labelled], y[labelled])
                held_out = out_of_fold(one, *(alone if weight == 0.0 else (X, some)), folds=FOLDS)
                fitted[weight] = held_out.estimator
                losses[weight] = _log_loss(held_out.posterior, held_out.y_true)
            scores = {weight: _score(one, table.X[tested], table.y[tested]) for weight, one in fitted.items()}
            best = min(losses, key=lambda weight: losses[weight])
            variants = {ALONE: scores[0.0], CHOSEN: scores[best]} | {f"{w:g}": scores[w] for w in WEIGHTS}
            for variant, (accuracy, loss) in variants.items():
                yield Row("labels", table.name, name, n_labels, variant, repetition, accuracy, loss)


# Cells -----------------------------------------------------------------------------------------------------


def _hide_cells(table: Table, repetition: int, rng: np.random.Generator) -> Iterator[Row]:
    """Yield the scores of each model and share of missing cells, removed completely at random."""
    learnt, tested = _split(table.y, MOST_ROWS_WITH_GAPS, rng)
    X = table.X.select(pl.col(pl.Float64, pl.Int64).cast(pl.Float64)).to_numpy()
    X = X[:, np.nanstd(X, axis=0) > 0]
    threshold = rng.random(X.shape)
    for share in SHARES:
        gappy = np.where(threshold < share, np.nan, X)
        for name, model in (generative_models(table.n_numbers) | imputing_models()).items():
            model.fit(gappy[learnt], table.y[learnt].to_numpy())
            accuracy, loss = _score(model, gappy[tested], table.y[tested])
            yield Row("cells", table.name, name, share, "", repetition, accuracy, loss)


# Both ------------------------------------------------------------------------------------------------------


def _split(y: pl.Series, most: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to learn from, two thirds of each class but no more than some, and rows to test by, shuffled."""
    learnt, tested = [], []
    for label in y.unique().sort():
        rows = rng.permutation(np.flatnonzero((y == label).to_numpy()))
        most_of_class = max(1, round(most * len(rows) / len(y)))
        cut = round(len(rows) * 2 / 3)
        learnt.append(rows[: min(cut, most_of_class)])
        tested.append(rows[cut : cut + most_of_class])
    return rng.permutation(np.concatenate(learnt)), rng.permutation(np.concatenate(tested))


def _like(model: Any, **parameters: Any) -> Any:
    return clone(model).set_params(**parameters)


def _score(model: Any, X: Any, y: pl.Series) -> tuple[float, float]:
    """Return accuracy and log-loss."""
    position = {label: c for c, label in enumerate(model.classes_.tolist())}
    components = np.array([position[label] for label in y])
    log_posterior = _log_posterior(model, X)
    right = log_posterior.argmax(axis=1) == components
    return float(right.mean()), float(-log_posterior[np.arange(len(y)), components].mean())


def _log_posterior(model: Any, X: Any) -> np.ndarray:
    """Return log p(y | x) in nats; boosting, which has its probabilities alone, never says less than 1e-16."""
    if isinstance(model, HistGradientBoostingClassifier):
        return np.log(np.maximum(model.predict_proba(X), 1e-16))
    return model.predict_log_proba(X)


def _log_loss(posterior: np.ndarray, components: np.ndarray) -> float:
    return float(-np.log(np.maximum(posterior[np.arange(len(components)), components], 1e-300)).mean())
