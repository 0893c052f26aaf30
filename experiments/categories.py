"""Measure groups and shrinkage on columns with many categories, and put the figures into docs/dependence.md.

Usage: python -m experiments.categories

Tables with a column of more than 30 categories are measured, at most 2,500 rows of each, in five folds. Groups are
chosen from the training rows of each fold.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar
from sklearn.model_selection import StratifiedKFold

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import FOLDS, SEED, Table, data_folder, score, tables
from posteriori.densities import Categorical
from posteriori.densities.categorical import CategoricalParameters
from posteriori.model_cost import MANY_CATEGORIES
from posteriori.model_selection.metrics import accuracy, log_loss
from posteriori.statistics import Counts
from posteriori.statistics.value_grouping import group_values

PAGE = DOCS / "dependence.md"
MOST_ROWS = 2500
LIMITS = (64, MANY_CATEGORIES, 15)  # of the categories of a column that TAN does not group
_WITH_LIMIT = ("posteriori.classifiers.dependence", "posteriori.densities.grouped")


@dataclass(frozen=True)
class ShrunkCategorical(Categorical):
    """p(x | y) = (n_yx + c·p(x)) / (n_y + c), with the strength c of the greatest leave-one-out likelihood per column.

    Without one row, p(x) is n_x / (n − 1 + K), by Laplace's rule, and the log-likelihood of the row is
    log(n_yx − 1 + c·n_x / (n − 1 + K)) − log(n_y − 1 + c).
    """

    def estimate(self, statistics: Counts) -> CategoricalParameters:
        """Return the shrunk frequencies."""
        parameters = super().estimate(statistics)
        log_probability = parameters.log_probability.copy()
        for j, k in enumerate(statistics.cardinalities):
            counts = statistics.column(j)
            c = np.exp(best_log_strength(counts))
            share = (counts.sum(axis=0) + 1.0) / (counts.sum() + k)
            shrunk = np.log((counts + c * share) / (counts.sum(axis=1, keepdims=True) + c))
            log_probability[:, parameters.offsets[j] + 1 : parameters.offsets[j + 1]] = shrunk
        return CategoricalParameters(statistics.cardinalities, log_probability)


def best_log_strength(counts: np.ndarray) -> float:
    """Return log c of the greatest leave-one-out log-likelihood of counts (C, K), between −7 and 12."""
    of_class, share = counts.sum(axis=1), counts.sum(axis=0) / (counts.sum() - 1.0 + counts.shape[1])
    z, x = np.nonzero(counts)
    n = counts[z, x]

    def loss(log_c: float) -> float:
        c = np.exp(log_c)
        return -float(n @ (np.log(n - 1.0 + c * share[x]) - np.log(of_class[z] - 1.0 + c)))

    return float(minimize_scalar(loss, bounds=(-7.0, 12.0), method="bounded").x)


def many(table: Table) -> list[str]:
    """Return the columns with more than 30 categories."""
    strings = [name for name in table.X.columns if table.X[name].dtype == pl.String]
    return [name for name in strings if table.X[name].n_unique() > MANY_CATEGORIES]


def grouped(train: pl.DataFrame, test: pl.DataFrame, y: pl.Series, columns: list[str]) -> list[pl.DataFrame]:
    """Return both parts with the groups of categories that the training rows choose by the MODL criterion."""
    result = [train, test]
    labels = y.cast(pl.String).cast(pl.Categorical).to_physical().to_numpy()
    labels = np.unique(labels, return_inverse=True)[1]
    for name in columns:
        cells = sorted(train[name].drop_nulls().unique().to_list())
        known = train[name].is_not_null().to_numpy()
        code = np.searchsorted(cells, train[name].drop_nulls().to_list())
        counts = np.zeros((labels.max() + 1, len(cells)))
        np.add.at(counts, (labels[known], code), 1.0)
        group = dict(zip(cells, map("g{}".format, group_values(counts).tolist()), strict=True))
        result = [part.with_columns(pl.col(name).replace_strict(group, default=None)) for part in result]
    return result


@contextlib.contextmanager
def grouping_above(limit: int) -> Iterator[None]:
    """Let dependences group the categories of columns with more categories than a limit."""
    modules = [importlib.import_module(name) for name in _WITH_LIMIT]
    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "MANY_CATEGORIES", limit))
        yield


def models(columns: list[str]) -> dict[str, tuple[Callable[[], Any], str]]:
    """Return, by the names of the columns of the page, a function that makes naive Bayes, and what it reads."""
    shrunk: dict[str, Any] = dict.fromkeys(columns, ShrunkCategorical())
    return {
        "naive Bayes": (lambda: po.NaiveBayes(columns=po.Columns(keep=columns)), "cells"),
        "grouped": (lambda: po.NaiveBayes(columns=po.Columns(keep=columns)), "groups"),
        "shrunk": (lambda: po.NaiveBayes(columns=po.Columns(keep=columns), distributions=shrunk), "cells"),
        "without them": (po.NaiveBayes, "other columns"),
    }


def measure(table: Table) -> dict[str, tuple[float, float]]:
    """Return the out-of-fold log-loss and accuracy of each model."""
    columns = many(table)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    y = table.y.to_numpy()
    found = {}
    for name, (make, reads) in models(columns).items():
        posterior = np.zeros((len(y), table.n_classes))
        for train, test in folds.split(y, y):
            parts = [table.X[train.tolist()], table.X[test.tolist()]]
            if reads == "groups":
                parts = grouped(*parts, table.y[train.tolist()], columns)
            elif reads == "other columns":
                parts = [part.drop(columns) for part in parts]
            model = make().fit(parts[0], y[train])
            posterior[test] = model.predict_proba(parts[1])
        codes = np.searchsorted(model.classes_, y)
        found[name] = log_loss(codes, posterior), accuracy(codes, posterior)
    for limit in LIMITS:
        with grouping_above(limit):
            one = score(po.TreeAugmentedNaiveBayes(n_jobs=1), table)
        found[f"TAN, more than {limit}"] = one.log_loss, one.accuracy
    return found


def main() -> None:
    """Measure all tables with many categories, and fill the page."""
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    warnings.simplefilter("ignore", UserWarning)  # of categories that a fold has not met
    rows, names = [], [*models([]), *(f"TAN, more than {limit}" for limit in LIMITS)]
    for table in tables(folder, None):
        if not many(table):
            continue
        kept = np.sort(np.random.default_rng(SEED).permutation(len(table.y))[:MOST_ROWS]).tolist()
        part = Table(table.name, table.X[kept], table.y[kept], table.n_numbers)
        scores = measure(part)
        sizes = ", ".join(str(part.X[name].n_unique()) for name in many(part))
        rows.append([table.name, sizes, *(f"{loss:.3f} · {right:.3f}" for loss, right in scores.values())])
        print(*rows[-1], flush=True)
    replace_block("categories", markdown_table(["set", "categories", *names], rows), PAGE)


if __name__ == "__main__":
    main()
