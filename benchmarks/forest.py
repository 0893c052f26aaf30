"""The generative forest against a random forest and LightGBM, each of 100 trees: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.forest [--quick]   (--quick: a tenth of the rows, to see that it runs)

100,000 rows of 25 numbers and 25 strings of 3 to 40 categories. The random forest reads the strings as numbers of
categories, LightGBM as pandas categories. LightGBM grows trees of at most as many leaves as ours have on average; it
builds 5 of them, and its time counts 20 times. CPU seconds are those of all threads.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from sklearn.ensemble import RandomForestClassifier

import posteriori as po
from benchmarks.timing import Row, faster, report

N_TREES, N_NUMBERS, N_STRINGS, N_HIDDEN = 100, 25, 25, 6
ROUNDS = 5  # of LightGBM
Seconds = np.ndarray  # of wall time and of CPU time


def draw_rows(n: int, seed: int) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Draw n rows and their classes: as a frame, and as numbers in which strings are numbers of categories.

    Six hidden numbers make the columns depend on each other; the class depends on a product and an absolute value too.
    """
    rules, rng = np.random.default_rng(12), np.random.default_rng(seed)
    loadings = rules.normal(size=(N_HIDDEN, N_NUMBERS)) * (rules.random((N_HIDDEN, N_NUMBERS)) < 0.4)
    preferences = [rules.normal(0, 0.7, (N_HIDDEN, int(k))) for k in np.geomspace(3, 40, N_STRINGS)]
    hidden = rng.normal(size=(n, N_HIDDEN))
    numbers = hidden @ loadings + rng.normal(size=(n, N_NUMBERS))
    strings = [(hidden @ each + rng.gumbel(size=(n, each.shape[1]))).argmax(axis=1) for each in preferences]
    score = hidden[:, 0] * hidden[:, 1] + np.abs(hidden[:, 2]) - 0.8 + 0.7 * numbers[:, 0] - 0.5 * (strings[3] == 1)
    y = (score + 0.5 * rng.logistic(size=n) > 0).astype(int)
    columns = {f"n{j}": numbers[:, j] for j in range(N_NUMBERS)}
    names = [np.array([f"v{k}" for k in range(each.shape[1])]) for each in preferences]
    columns |= {f"c{j}": names[j][codes] for j, codes in enumerate(strings)}
    return pl.DataFrame(columns), np.column_stack([numbers, *strings]).astype(np.float32), y


def spent(work: Callable[[], object]) -> Seconds:
    """Return the wall and CPU seconds of some work."""
    gc.collect()
    begun = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - begun


def least(works: list[Callable[[], object]], repeats: int) -> list[Seconds]:
    """Return the least wall and CPU seconds of each of several works, run in turn."""
    return list(np.min([[spent(work) for work in works] for _ in range(repeats)], axis=0))


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    warnings.simplefilter("ignore")
    import lightgbm

    n = 10_000 if quick else 100_000
    (frame, table, y), (new_frame, new_table, _) = draw_rows(n, 0), draw_rows(n, 1)
    strings = [name for name in frame.columns if name.startswith("c")]
    pandas, new_pandas = frame.to_pandas(), new_frame.to_pandas()
    pandas[strings] = pandas[strings].astype("category")
    new_pandas[strings] = new_pandas[strings].astype(pandas[strings].dtypes)
    ours = po.GenerativeForest(N_TREES)
    ours.fit(frame[:2000], y[:2000]).predict_proba(new_frame[:2000])  # compiles the kernels
    theirs = RandomForestClassifier(N_TREES, n_jobs=2, random_state=0)
    fit, their_fit = least([lambda: ours.fit(frame, y), lambda: theirs.fit(table, y)], 1)
    predict, their_predict = least([lambda: ours.predict_proba(new_frame), lambda: theirs.predict_proba(new_table)], 5)
    leaves = round(ours.n_leaves_ / N_TREES)
    boosted = lightgbm.LGBMClassifier(n_estimators=ROUNDS, num_leaves=leaves, n_jobs=2, verbose=-1)
    boosted_fit = spent(lambda: boosted.fit(pandas, y)) * (N_TREES / ROUNDS)
    boosted_predict = least([lambda: boosted.predict_proba(new_pandas)], 3)[0] * (N_TREES / ROUNDS)
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_NUMBERS + N_STRINGS}, {N_TREES} trees of {leaves:,} leaves"
    found = []
    for k, clock in enumerate(("", ", CPU time")):
        forest, boosting = "RandomForest(n_jobs=2)", f"LightGBM, {ROUNDS} rounds × {N_TREES // ROUNDS},"
        found += [
            faster(f"fit{clock}, {size}", fit[k], their_fit[k], 5, forest),
            faster(f"predict_proba{clock}, the same", predict[k], their_predict[k], 3, forest),
            faster(f"fit{clock}, the same", fit[k], boosted_fit[k], 1, boosting),
            faster(f"predict_proba{clock}, the same", predict[k], boosted_predict[k], 1, boosting),
        ]
    return found


if __name__ == "__main__":
    report("Generative forest", rows)
