"""Whether a pool gains by a candidate that reads columns of few whole numbers as codes, beside the others."""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import polars as pl

import posteriori as po
from experiments.page import markdown_table
from experiments.real_tables import data_folder, tables
from posteriori.densities.categorical import Binned

SETS = ("zoo", "heart_cleveland", "titanic_kaggle", "penguins", "german")
FOLDS = 3
MOST_ROWS = 2500
FEWEST, MOST = 3, 10  # distinct whole numbers


def small_integers(X: pl.DataFrame) -> dict[str, list[float]]:
    """Return the distinct values of the columns of numbers that hold from 3 to 10 whole numbers, and no others."""
    found = {}
    for name in X.columns:
        if X[name].dtype.is_numeric():
            values = X[name].drop_nulls().unique().sort().to_list()
            if FEWEST <= len(values) <= MOST and all(value == int(value) for value in values):
                found[name] = [float(value) for value in values]
    return found


def with_codes(X: pl.DataFrame, codes: dict[str, list[float]], y: pl.Series) -> po.GenerativeClassifier:
    """Return the pool of the candidates of the table, with one more: weighted factors, codes in bins of one value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = list(po.GenerativeClassifier(folds=2).fit(X, y).cv_results_["member"][:-1])
    densities: dict[str, object] = {name: "binned" for name in X.columns if X[name].dtype.is_numeric()}
    for name, values in codes.items():
        densities[name] = Binned(tuple(((np.array(values[1:]) + values[:-1]) / 2).tolist()))
    members: dict[str, object] = {name: name for name in names}
    members["binned weighted codes"] = po.NaiveBayes(distributions=densities, feature_weights="conditional")
    return po.GenerativeClassifier(members)


def losses(model: po.GenerativeClassifier, X: pl.DataFrame, y: pl.Series) -> tuple[np.ndarray, float]:
    """Return the loss of each held-out row in nats, and the seconds that it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = po.cross_validate({"pool": model}, X, y, folds=FOLDS, random_state=0)
    p = found.posteriors["pool"][np.arange(len(y)), found.y_true]
    return -np.log(np.maximum(p, 2e-16)), time.perf_counter() - start


def main() -> None:
    """Print the log-loss of the pool with and without codes on each table, and the paired difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET")
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    lines = []
    for table in tables(folder, parser.parse_args().sets):
        X, y = table.X.head(MOST_ROWS), table.y.head(MOST_ROWS)
        codes = small_integers(X)
        if not codes:
            continue
        plain, seconds = losses(po.GenerativeClassifier(), X, y)
        both, more_seconds = losses(with_codes(X, codes, y), X, y)
        gain = plain - both
        error = gain.std() / np.sqrt(len(gain))
        scores = [f"{plain.mean():.4f}", f"{both.mean():.4f}", f"{gain.mean():+.4f} ± {error:.4f}"]
        lines.append([table.name, str(len(y)), str(len(codes)), *scores, f"{more_seconds / seconds:.2f}"])
        print(lines[-1], flush=True)
    print(markdown_table(["set", "rows", "columns", "pool", "with codes", "gain", "time"], lines))


if __name__ == "__main__":
    main()
