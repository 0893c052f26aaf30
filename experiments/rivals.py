"""Measure the pool beside logistic regression, forests and boosting on every table of up to 10,000 rows.

Usage: python -m experiments.rivals [--keep FILE] [--models NAME …] [--again NAME …] [--tables NAME …] [--write]

Five folds, all rows, defaults. With --keep, scores are stored in a file, and those already in it are not measured
again, except for the models named by --again. With --write, the means are put into docs/pool.md, and the figures by
table into docs/measured/pool_notebook.md; without it they are printed. CatBoost, LightGBM and interpret (the
explainable boosting machine) are in the `bench` extra; a model whose library is not installed is left out. Tables with
more rows: experiments/larger_tables.py.

CPU seconds are those of all fits and predictions in one thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split

import posteriori as po
from experiments.page import DOCS, POOL_NOTEBOOK, markdown_table, replace_block
from experiments.real_tables import FOLDS, SEED, Table, data_folder, in_first_half, ranks, read_index, tables
from posteriori.model_selection.metrics import accuracy, log_loss

PAGE = DOCS / "pool.md"
MOST_ROWS = 10_000
POOL = "pool"
FOREST = "random forest, 200 trees"
Scores = dict[str, dict[str, list[float]]]  # by table and model: log-loss, accuracy, CPU seconds


class NativeClassifier(ClassifierMixin, BaseEstimator):
    """A boosting library with its own handling of categories and missing cells, for tables of polars.

    Parameters
    ----------
    library : {"catboost", "lightgbm", "interpret"}
    n_trees : int, optional
        Of CatBoost; default: its own, 1,000.
    n_jobs : int, default 1
        Number of threads.
    stops_early : bool
        Of LightGBM: small steps, as many as predict a tenth of the training rows best, as its users fit it.
    """

    def __init__(
        self, library: str = "catboost", n_trees: int | None = None, n_jobs: int = 1, stops_early: bool = False
    ) -> None:
        self.library = library
        self.n_trees = n_trees
        self.n_jobs = n_jobs
        self.stops_early = stops_early

    def fit(self, X: pl.DataFrame, y: Any) -> NativeClassifier:
        """Fit the library's classifier, at its defaults."""
        self.categories_ = {
            name: sorted(X[name].drop_nulls().unique().to_list())
            for name in X.columns
            if not X[name].dtype.is_numeric()
        }
        self.model_ = (
            self._stopped(X, np.asarray(y)) if self.stops_early else self._made().fit(self._read(X), np.asarray(y))
        )
        self.classes_ = np.asarray(self.model_.classes_)
        return self

    def predict_proba(self, X: pl.DataFrame) -> np.ndarray:
        """Return p(y | x), (n, C)."""
        return np.asarray(self.model_.predict_proba(self._read(X)))

    def _stopped(self, X: pl.DataFrame, y: np.ndarray) -> Any:
        """Return LightGBM, with a learning rate of 0.05 and early stopping on a tenth of the rows."""
        from lightgbm import LGBMClassifier, early_stopping

        rest, held_out = train_test_split(np.arange(len(y)), test_size=0.1, random_state=SEED, stratify=_enough(y))
        sampled: dict[str, Any] = {"subsample": 0.8, "subsample_freq": 1, "colsample_bytree": 0.7, "reg_lambda": 1.0}
        made = LGBMClassifier(
            n_estimators=5000, learning_rate=0.05, n_jobs=self.n_jobs, random_state=SEED, verbose=-1, **sampled
        )
        judged = [(self._read(X[held_out]), y[held_out])]
        stop = [early_stopping(40, verbose=False)]
        return made.fit(self._read(X[rest]), y[rest], eval_set=judged, callbacks=stop)

    def _made(self) -> Any:
        if self.library == "catboost":
            from catboost import CatBoostClassifier

            return CatBoostClassifier(
                iterations=self.n_trees,
                thread_count=self.n_jobs,
                verbose=0,
                allow_writing_files=False,
                cat_features=list(self.categories_),
            )
        if self.library == "lightgbm":
            from lightgbm import LGBMClassifier

            return LGBMClassifier(n_jobs=self.n_jobs, verbose=-1)
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=self.n_jobs)

    def _read(self, X: pl.DataFrame) -> Any:
        import pandas as pd

        read = X.to_pandas()
        for name, known in self.categories_.items():
            cells = read[name].astype(object).where(X[name].is_not_null().to_numpy(), None)
            if self.library == "catboost":
                read[name] = cells.map(lambda cell: "missing" if cell is None else str(cell))
            else:
                read[name] = pd.Categorical(cells.where(cells.isin(known), None), categories=known)
        if self.library == "lightgbm":  # it refuses names with some characters
            read.columns = [f"c{position}" for position in range(read.shape[1])]
        return read


def _enough(y: np.ndarray) -> np.ndarray | None:
    """Return the labels if every class has two rows, so that a split can be stratified."""
    return y if np.unique(y, return_counts=True)[1].min() > 1 else None


def _native(library: str) -> Any:
    return NativeClassifier(library) if importlib.util.find_spec(library) is not None else None


def models() -> dict[str, Any]:
    """Return the models by name; None for one whose library is not installed."""
    rivals = {
        "logistic regression": "logistic",
        "logistic regression, tuned": LogisticRegressionCV(
            Cs=10, cv=5, scoring="neg_log_loss", max_iter=1000, l1_ratios=(0.0,), use_legacy_attributes=False
        ),
        FOREST: RandomForestClassifier(200, n_jobs=1),
        "histogram boosting, early stopping": HistGradientBoostingClassifier(early_stopping=True),
    }
    made = {name: po.comparison.discriminative(one).set_params(random_state=SEED) for name, one in rivals.items()}
    native = {"LightGBM": "lightgbm", "CatBoost": "catboost", "explainable boosting": "interpret"}
    return {POOL: po.GenerativeClassifier(n_jobs=1), **made, **{name: _native(one) for name, one in native.items()}}


def measure(model: Any, table: Table) -> list[float]:
    """Return log-loss in nats and accuracy of held-out rows, and CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear columns, categories that a fold has not met, few steps
        found = po.cross_validate({"one": model}, table.X, table.y, folds=FOLDS, random_state=SEED)
    seconds = time.process_time() - start
    y_true, posterior = found.y_true, found.posteriors["one"]
    return [log_loss(y_true, posterior), accuracy(y_true, posterior), seconds]


def small_tables(folder: Path) -> list[str]:
    """Return the names of the tables of at most 10,000 rows, the shortest first."""
    lines = [line for line in read_index(folder) if int(line["rows"]) <= MOST_ROWS]
    return [line["name"] for line in sorted(lines, key=lambda line: int(line["rows"]) * int(line["columns"]))]


def summary(scores: Scores, names: list[str]) -> str:
    """Return one line per model: how it does over all tables that every model was measured on."""
    known = [table for table, found in scores.items() if all(name in found for name in names)]
    values = np.array([[scores[table][name] for name in names] for table in known])
    loss, right, seconds = values[..., 0], values[..., 1], values[..., 2]
    rank = ranks(loss).mean(axis=0)
    first = np.array([in_first_half(table) for table in known])
    pool = names.index(POOL) if POOL in names else None
    ratio = seconds / seconds[:, [names.index(FOREST)]] if FOREST in names else np.full(seconds.shape, np.nan)
    lines = []
    for position in np.argsort(loss.mean(axis=0)):
        better = "–" if pool in (None, position) else f"{(loss[:, pool] < loss[:, position]).mean():.0%}"
        cells = [f"{loss[:, position].mean():.4f}", f"{loss[first, position].mean():.4f}"]
        cells += [f"{loss[~first, position].mean():.4f}", f"{rank[position]:.2f}", f"{right[:, position].mean():.4f}"]
        cells += [better, f"{np.median(ratio[:, position]):.2f}×", f"{ratio[:, position].max():.1f}×"]
        lines.append([names[position], *cells])
    head = ["model", "mean log-loss", "first half", "second half", "mean rank", "mean accuracy", "pool has the lower"]
    return f"{len(known)} tables:\n\n" + markdown_table([*head, "CPU, median", "CPU, most"], lines)


def by_table(scores: Scores, names: list[str]) -> str:
    """Return one line per table: the log-loss of each model, the least bold if every model was measured."""
    lines = []
    for table, found in sorted(scores.items()):
        complete = all(name in found for name in names)
        least = min(found[name][0] for name in names) if complete else -np.inf
        cells = [_cell(found.get(name), least) for name in names]
        lines.append([table, *cells])
    return markdown_table(["table", *names], lines)


def _cell(score: list[float] | None, least: float) -> str:
    if score is None:
        return "–"
    text = f"{score[0]:.3f}"
    return f"**{text}**" if score[0] < least + 5e-4 else text


def main() -> None:
    """Measure what is not measured yet, and print the figures or fill the page."""
    parser = argparse.ArgumentParser(description="Measure the pool beside discriminative models on all small tables.")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="measure these models only")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these models again")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="measure these tables only")
    parser.add_argument("--write", action="store_true", help="put the figures into the two pages")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    keep: Path | None = arguments.keep
    scores: Scores = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    every = {name: model for name, model in models().items() if model is not None}
    wanted = {name: model for name, model in every.items() if not arguments.models or name in arguments.models}
    for found in scores.values():
        for name in arguments.again:
            found.pop(name, None)
    for name in arguments.tables or small_tables(folder):
        (table,) = tables(folder, [name], MOST_ROWS)
        for title, model in wanted.items():
            if title not in scores.setdefault(name, {}):
                scores[name][title] = measure(model, table)
                print(name, title, *(f"{value:.4f}" for value in scores[name][title]), flush=True)
                if keep is not None:
                    keep.write_text(json.dumps(scores))
    shown = [name for name in every if any(name in found for found in scores.values())]
    blocks = {"rivals": summary(scores, shown), "rivals by table": by_table(scores, shown)}
    for name, text in blocks.items():
        if arguments.write:
            replace_block(name, text, PAGE if name == "rivals" else POOL_NOTEBOOK)
        else:
            print(text)


if __name__ == "__main__":
    main()
