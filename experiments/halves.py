"""Compare candidates for a default with the default, on the half of the tables that tunes it and on the other half.

Usage: python -m experiments.halves {predictive,backoff,forest,cells,bins} [--rows N] [--keep FILE] [--write]

"predictive" compares Gaussian models whose parameters are estimated with those that integrate them out, on the
columns of numbers and categories of every table with numbers. "backoff" compares learned strengths of back-off with
constants. "forest" compares generative forests by their splits and means, and pools without forests, with them, and
with those of the arithmetic mean in addition. "cells" compares naive Bayes with one learned weight per feature and with
one learned number per cell, and pools without and with the latter. "bins" compares bins that follow the rows with those
of fixed rules, on tables of more than 2,500 rows. With --keep, scores are stored in a file, and those already in it
are not measured again. With --write, the figures are put into docs/measured/pool_notebook.md or docs/dependence.md;
without it they are printed.

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository. Where
there is none, nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from sklearn.base import clone

import posteriori as po
from experiments.page import DOCS, POOL_NOTEBOOK, markdown_table, replace_block
from experiments.real_tables import FOLDS, SEED, Table, data_folder, halves, tables
from posteriori.model_selection.metrics import fill_undefined, log_loss

PAGES: dict[str, Path] = {
    "predictive": POOL_NOTEBOOK,
    "backoff": DOCS / "dependence.md",
    "forest": POOL_NOTEBOOK,
    "cells": POOL_NOTEBOOK,
    "bins": POOL_NOTEBOOK,
}
ROWS = {"predictive": 2500, "backoff": 500, "forest": 1000, "cells": 1000, "bins": 8000}
FEWEST_ROWS = {"bins": 2500}
_QDA: dict[str, Any] = {"pooling": "per_class", "n_jobs": 1}
_GAUSSIAN = {
    "naive Bayes": (po.NaiveBayes(n_jobs=1), po.NaiveBayes(predictive=True, n_jobs=1)),
    "LDA": (po.GaussianDiscriminant(n_jobs=1), po.GaussianDiscriminant(predictive=True, n_jobs=1)),
    "QDA": (po.GaussianDiscriminant(**_QDA), po.GaussianDiscriminant(predictive=True, **_QDA)),
}


class PoolOf(po.GenerativeClassifier):
    """The pool with other candidates; without any, the pool itself."""

    @staticmethod
    def chosen(estimators: dict[str, Any]) -> dict[str, Any]:
        """Return the candidates in the place of those that the table asks for."""
        return estimators

    def _fit_candidates(self, fitter: Any, estimators: dict[str, Any], begun: float) -> Any:
        return super()._fit_candidates(fitter, self.chosen(estimators), begun)


class PoolWithoutForests(PoolOf):
    """The pool without the candidates that are forests."""

    @staticmethod
    def chosen(estimators: dict[str, Any]) -> dict[str, Any]:
        """Leave forests out."""
        return {name: one for name, one in estimators.items() if not name.startswith("forest")}


class PoolWithoutCells(PoolOf):
    """The pool without the candidate whose tables are learned."""

    @staticmethod
    def chosen(estimators: dict[str, Any]) -> dict[str, Any]:
        """Leave it out."""
        return {name: one for name, one in estimators.items() if name != "cells"}


class PoolWithArithmeticForests(PoolOf):
    """The pool with forests of the arithmetic mean in addition."""

    @staticmethod
    def chosen(estimators: dict[str, Any]) -> dict[str, Any]:
        """Add them."""
        forests = {name: one for name, one in estimators.items() if name.startswith("forest")}
        means = {f"{name} arithmetic": clone(one).set_params(combine="arithmetic") for name, one in forests.items()}
        return estimators | means


_FORESTS = {
    "random splits": {mean: po.GenerativeForest(combine=mean, n_jobs=1) for mean in ("conditional", "arithmetic")},
    "best splits": {
        mean: po.GenerativeForest(splits="best", combine=mean, n_jobs=1) for mean in ("conditional", "arithmetic")
    },
    "pool": {
        "without forests": PoolWithoutForests(n_jobs=1),
        "with forests": po.GenerativeClassifier(n_jobs=1),
        "and arithmetic means": PoolWithArithmeticForests(n_jobs=1),
    },
}
_CELLS = {
    "naive Bayes, 64 bins": {
        weights: po.NaiveBayes(distributions="binned", bins=64, feature_weights=weights, n_jobs=1)
        for weights in ("conditional", "cells")
    },
    "pool": {"without cells": PoolWithoutCells(n_jobs=1), "with cells": po.GenerativeClassifier(n_jobs=1)},
}
_TABLES: dict[str, Any] = {"distributions": "binned", "feature_weights": "cells", "n_jobs": 1}
_BINS = {
    "learned tables": {f"bins={bins!r}": po.NaiveBayes(bins=bins, **_TABLES) for bins in (64, "fine")},
    "TAN": {f"bins={bins!r}": po.TreeAugmentedNaiveBayes(bins=bins, n_jobs=1) for bins in ("mdlp", "auto")},
    "kDB 2": {f"bins={bins!r}": po.KDependenceBayes(bins=bins, n_jobs=1) for bins in ("mdlp", "auto")},
    "AODE": {f"bins={bins!r}": po.AveragedOneDependence(bins=bins, n_jobs=1) for bins in (8, "coarse")},
}
_STRENGTHS = {
    "TAN": po.TreeAugmentedNaiveBayes(n_jobs=1),
    "kDB 2": po.KDependenceBayes(n_jobs=1),
    "AODE": po.AveragedOneDependence(n_jobs=1),
}


def models_of(what: str) -> dict[str, dict[str, Any]]:
    """Return the estimators to compare by the name of the model and of the variant; the first one is the base."""
    if what == "predictive":
        return {name: {"estimated": base, "predictive": other} for name, (base, other) in _GAUSSIAN.items()}
    if what in ("forest", "cells", "bins"):
        return {"forest": _FORESTS, "cells": _CELLS, "bins": _BINS}[what]
    order = [10.0, 5.0, 20.0, "learned"]
    return {
        name: {f"back-off {one}": clone(model).set_params(backoff=one) for one in order}
        for name, model in _STRENGTHS.items()
    }


def measure(what: str, table: Table) -> dict[tuple[str, str], float]:
    """Return the log-loss of each variant of each model, by the same five folds."""
    pairs = {
        f"{name}/{variant}": one for name, of_model in models_of(what).items() for variant, one in of_model.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular covariances, few EM steps, and categories that a fold has not met
        found = po.cross_validate(pairs, table.X, table.y, folds=FOLDS, random_state=SEED)
    n_classes = len(next(iter(found.posteriors.values()))[0])
    prior = np.full((len(found.y_true), n_classes), 1.0 / n_classes)
    return {
        (name.split("/")[0], name.split("/")[1]): log_loss(found.y_true, fill_undefined(posterior, prior))
        for name, posterior in found.posteriors.items()
    }


def summary(what: str, sets: list[Table], losses: dict[str, dict[tuple[str, str], float]]) -> str:
    """Return a line a variant and half: mean and median log-loss, and on how many tables it beats the base."""
    lines = []
    for name, of_model in models_of(what).items():
        base = next(iter(of_model))
        for variant in of_model:
            cells = []
            for part in halves(sets).values():
                mine = np.array([losses[table.name][name, variant] for table in part])
                others = np.array([losses[table.name][name, base] for table in part])
                better, worse = (mine < others - 5e-4).sum(), (mine > others + 5e-4).sum()
                cells += [
                    f"{mine.mean():.3f}",
                    f"{np.median(mine):.3f}",
                    "–" if variant == base else f"{better} : {worse}",
                ]
            lines.append([name, variant, *cells])
    head = [
        f"{fact}, {half}" for half in ("first half", "second half") for fact in ("mean", "median", "better : worse")
    ]
    return markdown_table(["model", "variant", *head], lines)


def main() -> None:
    """Measure the variants on every table of the folder, and print the summary or fill its block of a page."""
    parser = argparse.ArgumentParser(description="Compare candidates for a default on two halves of the tables.")
    parser.add_argument("what", choices=list(PAGES))
    parser.add_argument("--rows", type=int, help="read at most so many rows of each table")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    most = arguments.rows or ROWS[arguments.what]
    found = tables(folder, None, most)
    fewest = FEWEST_ROWS.get(arguments.what, 0)
    needs_numbers = arguments.what in ("predictive", "bins")
    sets = [table for table in found if len(table.y) >= fewest and (table.n_numbers or not needs_numbers)]
    keep = arguments.keep
    stored = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    for table in sorted(sets, key=lambda table: len(table.y) * table.X.width):
        if table.name not in stored:
            stored[table.name] = [["/".join(pair), loss] for pair, loss in measure(arguments.what, table).items()]
            print(table.name, *(f"{loss:.3f}" for _, loss in stored[table.name]), flush=True)
            if keep is not None:
                keep.write_text(json.dumps(stored))
    losses = {table.name: {tuple(name.split("/")): loss for name, loss in stored[table.name]} for table in sets}
    text = summary(arguments.what, sets, losses)
    if arguments.write:
        replace_block(arguments.what, text, PAGES[arguments.what])
    else:
        print(text)


if __name__ == "__main__":
    main()
