"""Measure a joint model: any column of a table, missing cells, strange rows, and drawn rows.

Usage: python -m experiments.joint --output FILE [--parts NAME …] [--tables NAME …]
       python -m experiments.joint --page FILE

Each table is split once into 70 % of at most 1,200 rows to learn from, and 30 % to test by; its class is a column like
the others. --output names a file of JSON lines, one for each part, table, method and setting; what it has is not
measured again. --page writes the tables of docs/joint.md from such a file. pyAgrum and miceforest are left out where
they are not installed. The parts:

columns   At most six columns of each table in turn, with 0, 30 or 60 % of the other cells of the test rows hidden:
          log-loss of categories, and of numbers the CRPS over that of their distribution in the training rows.
cells     20 % of the cells of the whole table hidden, at random or more often where the first number is large: the
          share of categories that are filled with the true one, and the RMSE of numbers over the standard deviation.
rows      The rarest class is held out of training: the AUC of strangeness for rows of this class among test rows.
drawn     As many rows drawn as there are test rows: the AUC of gradient boosting that tells real from drawn rows,
          trained on one half of both and tested on the other. 0.5 is perfect.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import data_folder, in_first_half, tables

MOST_ROWS, MOST_COLUMNS = 1200, 6
HIDDEN = (0.0, 0.3, 0.6)
GAPS = 0.2
TABLES = [
    "adult",
    "anneal",
    "audiology",
    "autos",
    "car",
    "colic",
    "crx",
    "cylinder_bands",
    "diabetes_pima",
    "diamonds",
    "eucalyptus",
    "german",
    "glass",
    "heart_cleveland",
    "hepatitis",
    "hmda",
    "iris",
    "lymph",
    "magic",
    "nursery",
    "penguins",
    "phoneme",
    "segment",
    "soybean",
    "telco_churn",
    "titanic_1309",
    "vehicle",
    "vote",
    "wine",
    "zoo",
]
_FEW = 1e-6

Line = dict[str, Any]
MISSING = "missing"  # the state of a missing training cell in a network


def methods_left(names: dict[str, str], done: set[str]) -> list[str]:
    """Return the methods, given with the package of each, that are installed and not measured."""
    return [one for one, package in names.items() if one not in done and importlib.util.find_spec(package) is not None]


def hide(frame: pl.DataFrame, share: float, rng: np.random.Generator, kept: str = "") -> pl.DataFrame:
    """Return rows with a share of the cells missing at random, except for one column."""
    return frame.with_columns(
        pl.when(pl.Series(rng.random(len(frame)) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in frame.columns
        if name != kept
    )


def hide_by_first_number(frame: pl.DataFrame, share: float, rng: np.random.Generator) -> pl.DataFrame:
    """Return rows with cells missing more often where the first column of numbers is large, which stays."""
    number = next((name for name in frame.columns if frame[name].dtype.is_numeric()), None)
    if number is None:
        return hide(frame, share, rng)
    rank = frame[number].rank("random", seed=0).fill_null(len(frame) / 2).to_numpy() / len(frame)
    return frame.with_columns(
        pl.when(pl.Series(rng.random(len(frame)) < 2.0 * share * rank)).then(None).otherwise(pl.col(name)).alias(name)
        for name in frame.columns
        if name != number
    )


# Columns -----------------------------------------------------------------------------------------------------------


def score_of(model: po.JointModel, rows: pl.DataFrame, target: str, method: Any, truth: pl.Series) -> float:
    """Return the mean log-loss of a column of categories, or the mean CRPS of one of numbers, of known cells."""
    known = truth.is_not_null().to_numpy()
    if truth.dtype.is_numeric() and target not in categories_of(model):
        density = model.predict_density(rows, target, method)
        return float(density[known].crps(truth.to_numpy()[known].astype(float)).mean())
    probability = model.predict_proba(rows, target, method)
    place = {label: k for k, label in enumerate(model.categories(target))}
    code = np.array([place.get(cell, -1) for cell in truth.to_list()])
    own = np.where(code >= 0, probability[np.arange(len(code)), np.maximum(code, 0)], _FEW)
    return float(-np.log(np.maximum(own[known], _FEW)).mean())


def categories_of(model: po.JointModel) -> list[str]:
    """Return the names of the columns of categories."""
    return [column.name for column in model.schema_.columns if column.kind == "categorical"]


def neighbours(train: pl.DataFrame, rows: pl.DataFrame, target: str, k: int = 20) -> np.ndarray:
    """Return the positions of the nearest training rows that know the target, (n, k), by the cells that both know."""
    known = np.flatnonzero(train[target].is_not_null().to_numpy())
    apart, shared = np.zeros((len(rows), len(known))), np.full((len(rows), len(known)), 1e-9)
    for name in train.columns:
        if name == target:
            continue
        a, b = rows[name], train[name].gather(known)
        both = a.is_not_null().to_numpy()[:, np.newaxis] & b.is_not_null().to_numpy()
        if a.dtype.is_numeric():
            x, y = (one.cast(pl.Float64).fill_null(0.0).to_numpy() for one in (a, b))
            scale = max(float(np.nanstd(train[name].cast(pl.Float64).drop_nulls().to_numpy())) * 2.0, 1e-12)
            differs = np.minimum(np.abs(x[:, np.newaxis] - y) / scale, 1.0)
        else:
            x, y = (one.cast(pl.String).fill_null("").to_numpy() for one in (a, b))
            differs = (x[:, np.newaxis] != y).astype(float)
        apart += np.where(both, differs, 0.0)
        shared += both
    return known[np.argsort(apart / shared, axis=1, kind="stable")[:, :k]]


def score_of_neighbours(
    train: pl.DataFrame, rows: pl.DataFrame, target: str, is_number: bool, truth: pl.Series
) -> float:
    """Return the same score of the values of 20 nearest rows, smoothed by that of all rows."""
    near = neighbours(train, rows, target)
    values, known = train[target].to_numpy(), truth.is_not_null().to_numpy()
    if is_number:
        sample, y = values[near].astype(float), truth.cast(pl.Float64).to_numpy()[:, np.newaxis]
        within = np.abs(sample[:, :, np.newaxis] - sample[:, np.newaxis]).mean(axis=(1, 2))
        return float((np.abs(sample - y).mean(axis=1) - within / 2.0)[known].mean())
    prior = {label: count / len(values) for label, count in train[target].drop_nulls().value_counts().iter_rows()}
    own = [
        (float(np.sum(values[near[i]] == cell)) + prior.get(cell, _FEW)) / (near.shape[1] + 1.0)
        for i, cell in enumerate(truth.to_list())
    ]
    return float(-np.log(np.maximum(np.array(own)[known], _FEW)).mean())


class Network:
    """A Bayesian network of pyAgrum, by hill climbing (BIC), of categories and of the bins of the joint model."""

    def __init__(self, model: po.JointModel, train: pl.DataFrame) -> None:
        import pyagrum

        law = model.fitted_.law
        self._columns = {law.schema.names[j]: law.schema.columns[j] for j in law.columns}
        self._columns = {name: one for name, one in self._columns.items() if name in train.columns}
        self._id = {name: f"c{k}" for k, name in enumerate(self._columns)}
        states = pl.DataFrame({self._id[name]: self._states(train[name]) for name in self._columns})
        table = states.fill_null(MISSING).to_pandas()
        search = pyagrum.BNLearner(table)
        search.useGreedyHillClimbing()
        search.useScoreBIC()
        parameters = pyagrum.BNLearner(table)
        parameters.useSmoothingPrior(1.0)
        self._network = parameters.learnParameters(search.learnDAG())

    def _states(self, cells: pl.Series) -> pl.Series:
        """Return cells as names of states: categories, or bins."""
        column = self._columns[cells.name]
        if not column.is_binned:
            return cells.cast(pl.String)
        bins = np.searchsorted(column.cuts or (), cells.cast(pl.Float64).fill_null(0.0).to_numpy(), side="right")
        return pl.select(pl.when(cells.is_not_null()).then(pl.Series(bins).cast(pl.String))).to_series()

    def score(self, rows: pl.DataFrame, target: str, truth: pl.Series) -> float:
        """Return the mean log-loss of a column of categories, given the known cells of each row."""
        import pyagrum

        known = [
            {"name": self._id[name], "cells": self._states(rows[name])} for name in self._columns if name != target
        ]
        labels = {one: self._network.variable(one).labels() for one in self._id.values()}
        engine = pyagrum.LazyPropagation(self._network)
        engine.addTarget(self._id[target])
        places = {label: k for k, label in enumerate(labels[self._id[target]])}
        found = []
        for i, cell in enumerate(truth.cast(pl.String).to_list()):
            if cell is None:
                continue
            row = {one["name"]: one["cells"][i] for one in known}
            engine.setEvidence({one: state for one, state in row.items() if state in labels[one]})
            engine.makeInference()
            share = np.array(engine.posterior(self._id[target]).toarray())
            total = 1.0 - (share[places[MISSING]] if MISSING in places else 0.0)
            found.append(-np.log(max(share[places[cell]] / total if cell in places else 0.0, _FEW)))
        return float(np.mean(found))


def of_columns(name: str, frame: pl.DataFrame, done: set[str]) -> Iterator[Line]:
    """Yield the scores of every method that is not done, for some columns in turn."""
    rng = np.random.default_rng(0)
    train, test = split(frame)
    model = po.JointModel().fit(train)
    packages = dict.fromkeys(("pool", "joint", "nearest rows"), "posteriori") | {"network of pyAgrum": "pyagrum"}
    methods = methods_left(packages, done)
    network = Network(model, train) if "network of pyAgrum" in methods else None
    names = [column.name for column in model.schema_.columns if column.name in frame.columns]
    for target in rng.permutation(names)[:MOST_COLUMNS].tolist():
        truth, is_number = test[target], target not in categories_of(model)
        nothing = test.head(1).with_columns(pl.lit(None, dtype).alias(one) for one, dtype in test.schema.items())
        blank = pl.concat([nothing] * len(test))
        usual = score_of(model, blank, target, "joint", truth)
        for hidden in HIDDEN:
            rows = hide(test, hidden, np.random.default_rng(1), target)
            for method in methods:
                started = time.process_time()
                if method == "network of pyAgrum":
                    if is_number or network is None:
                        continue
                    score = network.score(rows, target, truth)
                elif method == "nearest rows":
                    score = score_of_neighbours(train, rows, target, is_number, truth)
                else:
                    score = score_of(model, rows, target, method, truth)
                found = {"score": score, "usual": usual, "seconds": time.process_time() - started}
                about = {"target": target, "number": is_number, "hidden": hidden, "method": method}
                yield {"part": "columns", "table": name} | about | found


def split(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return 70 % of the rows, and the others."""
    order = np.random.default_rng(0).permutation(len(frame))
    n = int(0.7 * len(frame))
    return frame[order[:n]], frame[order[n:]]


# Cells -------------------------------------------------------------------------------------------------------------


def encoded(frame: pl.DataFrame) -> tuple[np.ndarray, list[tuple[str, list[Any] | None, slice]]]:
    """Return numbers as they are and categories as indicators, with NaN where a cell is missing."""
    parts, places, at = [], [], 0
    for name in frame.columns:
        series = frame[name]
        lacks = series.is_null().to_numpy()
        if series.dtype.is_numeric():
            cells = series.cast(pl.Float64).to_numpy().copy()[:, np.newaxis]
            scale = np.nanstd(cells) or 1.0
            cells, labels = (cells - np.nanmean(cells)) / scale, None
        else:
            labels = sorted(series.drop_nulls().unique().to_list(), key=str)
            cells = np.array([[cell == one for one in labels] for cell in series.to_list()], float).reshape(
                len(frame), -1
            )
        cells[lacks] = np.nan
        parts.append(cells)
        places.append((name, labels, slice(at, at + cells.shape[1])))
        at += cells.shape[1]
    return np.concatenate(parts, axis=1), places


def filled_by(imputer: Any, frame: pl.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of a table that an imputer of scikit-learn filled."""
    cells, places = encoded(frame)
    found = imputer.fit_transform(cells)
    result = {}
    for name, labels, part in places:
        if labels is None:
            known = frame[name].cast(pl.Float64).to_numpy()
            result[name] = found[:, part.start] * (np.nanstd(known) or 1.0) + np.nanmean(known)
        else:
            result[name] = np.array(labels, dtype=object)[found[:, part].argmax(axis=1)]
    return result


def filled_by_miceforest(frame: pl.DataFrame, n_tables: int = 5) -> dict[str, np.ndarray]:
    """Return the columns that miceforest filled: the mean of five tables, or the most frequent of their categories."""
    import miceforest
    import pandas

    labels, cells = {}, {}
    for k, name in enumerate(frame.columns):
        if frame[name].dtype.is_numeric():
            cells[f"c{k}"] = frame[name].cast(pl.Float64).to_numpy()
        else:
            labels[k] = sorted(frame[name].drop_nulls().unique().to_list(), key=str)
            codes = [None if cell is None else labels[k].index(cell) for cell in frame[name].to_list()]
            cells[f"c{k}"] = pandas.Categorical(codes, range(len(labels[k])))
    # Without matching, a cell is the prediction itself; a matched value is a draw, which is further from the truth.
    # Besides, miceforest 6.0.5 matches by a private method of LightGBM that version 4.7 has changed.
    kernel = miceforest.ImputationKernel(
        pandas.DataFrame(cells), num_datasets=n_tables, random_state=0, mean_match_candidates=0
    )
    kernel.mice(5, num_threads=1, verbosity=-1)
    tables = [kernel.complete_data(m) for m in range(n_tables)]
    result = {}
    for k, name in enumerate(frame.columns):
        found = np.stack([table[f"c{k}"].to_numpy(float) for table in tables])
        if k not in labels:
            result[name] = found.mean(axis=0)
            continue
        votes = (found[:, :, np.newaxis] == np.arange(len(labels[k]))).sum(axis=0)
        result[name] = np.array(labels[k], dtype=object)[votes.argmax(axis=1)]
    return result


def of_cells(name: str, frame: pl.DataFrame, done: set[str]) -> Iterator[Line]:
    """Yield the accuracy and the error of filled cells, by every method that is not done."""
    usable = [one for one in frame.columns if frame[one].n_unique() < 30 or frame[one].dtype.is_numeric()]
    frame = frame.select(usable)
    for kind, gaps in (("at random", hide), ("by a column", hide_by_first_number)):
        table = gaps(frame, GAPS, np.random.default_rng(2))
        methods: dict[str, Callable[[], Any]] = {
            "pool": lambda table=table: po.JointModel().fit(table).impute(table, "pool"),
            "joint": lambda table=table: po.JointModel().fit(table).impute(table, "joint"),
            "nearest rows": lambda table=table: filled_by(KNNImputer(n_neighbors=10), table),
            "iterative": lambda table=table: filled_by(IterativeImputer(max_iter=5, random_state=0), table),
            "miceforest": lambda table=table: filled_by_miceforest(table),
        }
        packages = dict.fromkeys(methods, "posteriori") | {"miceforest": "miceforest"}
        for method in methods_left(packages, done):
            fill = methods[method]
            started = time.process_time()
            found = fill()
            seconds = time.process_time() - started
            right, errors = [], []
            for one in frame.columns:
                asked = (table[one].is_null() & frame[one].is_not_null()).to_numpy()
                truth, cells = frame[one].to_numpy()[asked], np.asarray(found[one])[asked]
                if not asked.any():
                    continue
                if frame[one].dtype.is_numeric():
                    deviation = float(frame[one].cast(pl.Float64).std() or 1.0) or 1.0
                    errors.append(float(np.sqrt(np.mean((truth.astype(float) - cells.astype(float)) ** 2)) / deviation))
                else:
                    right.append(float(np.mean(truth == cells)))
            yield {"part": "cells", "table": name, "gaps": kind, "method": method, "seconds": seconds} | {
                "accuracy": float(np.mean(right)) if right else float("nan"),
                "rmse": float(np.mean(errors)) if errors else float("nan"),
            }


# Rows --------------------------------------------------------------------------------------------------------------


def of_rows(name: str, frame: pl.DataFrame, target: str) -> Iterator[Line]:
    """Yield how well strangeness tells rows of the rarest class, which was held out of training."""
    counts = frame[target].value_counts(sort=True)
    rare = counts.filter(pl.col("count") >= 10)[target].to_list()
    if len(rare) < 2:
        return
    train, test = split(frame)
    train = train.filter(pl.col(target) != rare[-1]).drop(target)
    strange, test = (test[target] == rare[-1]).to_numpy(), test.drop(target)
    if not strange.any():
        return
    both, places = encoded(pl.concat([train, test]))
    del places
    both = np.nan_to_num(both, posinf=0.0, neginf=0.0)
    a, b = both[: len(train)], both[len(train) :]
    methods: dict[str, Callable[[], np.ndarray]] = {
        "joint": lambda: -po.JointModel(keep_rows=False).fit(train).score_samples(test),
        "isolation forest": lambda: -IsolationForest(random_state=0).fit(a).score_samples(b),
        "local outlier factor": lambda: -LocalOutlierFactor(novelty=True).fit(a).score_samples(b),
    }
    for method, score in methods.items():
        started = time.process_time()
        auc = float(roc_auc_score(strange, score()))
        yield {"part": "rows", "table": name, "method": method, "auc": auc, "seconds": time.process_time() - started}


def of_drawn(name: str, frame: pl.DataFrame) -> Iterator[Line]:
    """Yield how well a classifier separates drawn rows from real ones."""
    train, test = split(frame)
    rng = np.random.default_rng(3)
    methods: dict[str, Callable[[], pl.DataFrame]] = {
        "joint": lambda: po.JointModel(keep_rows=False).fit(train).sample(len(test), random_state=0),
        "columns alone": lambda: train.select(
            pl.Series(one, train[one].gather(rng.integers(0, len(train), len(test)))) for one in train.columns
        ),
        "other real rows": lambda: train.sample(len(test), seed=0),
    }
    for method, draw in methods.items():
        started = time.process_time()
        drawn = draw()
        seconds = time.process_time() - started
        schema = {one: pl.Float64 if dtype.is_numeric() else pl.String for one, dtype in test.schema.items()}
        cells, _ = encoded(
            pl.concat([one.select(pl.col(c).cast(t) for c, t in schema.items()) for one in (test, drawn)])
        )
        label, order = np.repeat([0, 1], len(test)), rng.permutation(2 * len(test))
        half = len(order) // 2
        judge = HistGradientBoostingClassifier(random_state=0).fit(cells[order[:half]], label[order[:half]])
        auc = float(roc_auc_score(label[order[half:]], judge.predict_proba(cells[order[half:]])[:, 1]))
        yield {"part": "drawn", "table": name, "method": method, "auc": auc, "seconds": seconds}


# Command line ------------------------------------------------------------------------------------------------------


def measure(output: Path, parts: list[str], names: list[str]) -> None:
    """Measure what the file does not have."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("the tables are absent: set POSTERIORI_DATA")
    lines = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    done: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        done.setdefault((line["part"], line["table"]), set()).add(line["method"])
    for table in tables(folder, names, MOST_ROWS):
        target = table.y.name or "class"
        frame = table.X.with_columns(table.y.alias(target))
        makers: dict[str, Callable[[], Iterator[Line]]] = {
            "columns": lambda table=table, frame=frame: of_columns(
                table.name, frame, done.get(("columns", table.name), set())
            ),
            "cells": lambda table=table, frame=frame: of_cells(
                table.name, frame, done.get(("cells", table.name), set())
            ),
            "rows": lambda table=table, frame=frame, target=target: of_rows(table.name, frame, target),
            "drawn": lambda table=table, frame=frame: of_drawn(table.name, frame),
        }
        for part in parts:
            if part in ("rows", "drawn") and (part, table.name) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(makers[part]())
            with output.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in found)
            print(part, table.name, len(found), flush=True)


def _means(lines: pl.DataFrame, kind: bool) -> list[str]:
    """Return the mean scores of each share of hidden cells, as text."""
    found = []
    for hidden in HIDDEN:
        own = lines.filter(pl.col("hidden") == hidden)
        value = (own["score"] / own["usual"]).mean() if kind else own["score"].mean()
        found.append(f"{value:.3f}")
    return found


def write_page(path: Path) -> None:
    """Write the tables of docs/joint.md."""
    lines = pl.DataFrame([json.loads(line) for line in path.read_text().splitlines()], infer_schema_length=None)
    page = DOCS / "joint.md"
    columns = lines.filter(pl.col("part") == "columns").with_columns(
        half=pl.col("table").map_elements(lambda one: "first" if in_first_half(one) else "second", pl.String)
    )
    columns = columns.filter(pl.col("score").is_finite() & (pl.col("usual") > _FEW))  # others know one value only
    rows = []
    for (kind, half), group in columns.group_by("number", "half", maintain_order=True):
        n = group.filter((pl.col("method") == "pool") & (pl.col("hidden") == 0)).height
        for method in group["method"].unique(maintain_order=True).to_list():
            title = f"{'numbers' if kind else 'categories'}, {half} half ({n} columns)"
            own = group.filter(pl.col("method") == method)
            if own.height == n * len(HIDDEN):
                rows.append([title, method, *_means(own, kind)])
                continue
            # A method that was measured on some columns stands beside the joint model on the same ones.
            same = group.join(own.select("table", "target", "hidden"), on=["table", "target", "hidden"])
            beside = " · ".join(_means(same.filter(pl.col("method") == "joint"), kind))
            rows.append([title, f"{method}, {own.height // len(HIDDEN)} columns (joint: {beside})", *_means(own, kind)])
    head = ["columns", "method", *(f"{hidden:.0%} hidden" for hidden in HIDDEN)]
    replace_block("columns", markdown_table(head, sorted(rows, key=lambda one: one[0])), page)
    cells = lines.filter(pl.col("part") == "cells")
    every = cells.group_by("method").agg(pl.col("table").unique())["table"].to_list()
    common = sorted(set.intersection(*map(set, every)))  # tables that all methods have
    cells = cells.filter(pl.col("table").is_in(common)).group_by("gaps", "method", maintain_order=True)
    means = cells.agg(pl.col("accuracy", "rmse").fill_nan(None).mean(), pl.col("seconds").median())
    table = [[a, m, f"{acc:.3f}", f"{rmse:.3f}", f"{s:.1f}"] for a, m, acc, rmse, s in means.iter_rows()]
    replace_block("cells", markdown_table(["gaps", "method", "accuracy", "RMSE", "seconds"], table), page)
    for part in ("rows", "drawn"):
        of_part = lines.filter(pl.col("part") == part).group_by("method", maintain_order=True)
        means = of_part.agg(pl.len(), pl.col("auc").mean(), pl.col("seconds").median())
        table = [[m, str(n), f"{auc:.3f}", f"{s:.2f}"] for m, n, auc, s in means.iter_rows()]
        replace_block(part, markdown_table(["method", "tables", "AUC", "seconds"], table), page)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--parts", nargs="*", default=["columns", "cells", "rows", "drawn"])
    parser.add_argument("--tables", nargs="*", default=TABLES)
    asked = parser.parse_args()
    if asked.output is not None:
        measure(asked.output, asked.parts, asked.tables)
    if asked.page is not None:
        write_page(asked.page)


if __name__ == "__main__":
    main()
