"""Estimated and measured seconds of cross-fitting (`posteriori.learning.work_bounds`), on one core.

Run as ``python -m benchmarks.costs``; it takes about five minutes. The constants of the estimate are fitted to it,
except those of trees, which are fitted to whole pools (experiments/curves.py): the estimate of a forest includes that a
pool grows it once more.
"""

import time
import warnings

import numpy as np

from posteriori.fitting.rows import read_first_rows
from posteriori.learning import work_bounds
from posteriori.learning.cross_fitting import cross_fit
from posteriori.learning.folded_data import FoldedData
from posteriori.registry import find_model

MODELS = (
    "nb",
    "binned weighted",
    "cells",
    "lda",
    "tan",
    "tan 5",
    "kdb",
    "kdb weighted",
    "aode",
    "aode 8 bins",
    "forest mixed",
)
SHAPES = ((20_000, 20, 2, 5), (500, 8, 3, 100), (1_000, 8, 300, 5), (1_000, 300, 2, 5))


def table(n, d, n_classes):
    """Return numbers (n, d) and n labels; the classes differ in their means."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y], y


def main():
    """Print a line per model and shape: estimated seconds, measured seconds, and their ratio."""
    warnings.simplefilter("ignore")
    for n, d, n_classes, folds in SHAPES:
        X, y = table(n, d, n_classes)
        for name in MODELS:
            model = find_model(name).make()
            if "n_jobs" in model.get_params():
                model.set_params(n_jobs=1)
            for size in (100, n):  # the first fit compiles
                rows = read_first_rows(model.recipe, X[:size], y[:size].astype(str), None)
                folded = FoldedData.of(rows, min(folds, 3 if size < n else folds))
                plan = model.recipe.plan(rows.source.schema, rows.target)
                begun = time.process_time()
                estimate = work_bounds.estimate_work(plan, rows.source.schema, folded.work_counts).seconds
                if estimate > 60:
                    break
                cross_fit(rows.source, folded.fold_of_rows, folded.folds, [plan], leave_trees_out=True)
            seconds = time.process_time() - begun if estimate <= 60 else float("nan")
            print(f"{n:7} × {d:4}, {n_classes:3} classes, {folds:3} folds, {name:16}", end=" ")
            print(f"{estimate:8.2f} s estimated {seconds:8.2f} s measured {estimate / seconds:6.2f}", flush=True)


if __name__ == "__main__":
    main()
