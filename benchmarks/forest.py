"""The generative forest against a random forest and LightGBM, each of 100 trees: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.forest [--quick]   (--quick: a tenth of the rows, to see that it runs)

100,000 rows of 25 numbers and 25 strings of 3 to 40 categories. The random forest reads the strings as numbers of
categories, LightGBM as pandas categories. LightGBM grows trees of at most as many leaves as ours have on average; it
builds 5 of them, and its time counts 20 times.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from sklearn.ensemble import RandomForestClassifier

import posteriori as po
from benchmarks.timing import CPU, WALL, Row, Seconds, faster, report, rival, spent
from experiments.machine import on_threads

N_TREES, N_NUMBERS, N_STRINGS, N_HIDDEN = 100, 25, 25, 6
ROUNDS = 5  # of LightGBM


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
    theirs = rival(RandomForestClassifier(N_TREES, random_state=0))
    fit, their_fit = least([lambda: ours.fit(frame, y), lambda: theirs.fit(table, y)], 1)
    predict, their_predict = least([lambda: ours.predict_proba(new_frame), lambda: theirs.predict_proba(new_table)], 5)
    leaves = round(ours.n_leaves_ / N_TREES)
    boosted = rival(lightgbm.LGBMClassifier(n_estimators=ROUNDS, num_leaves=leaves, verbose=-1))
    boosted_fit = spent(lambda: boosted.fit(pandas, y)) * (N_TREES / ROUNDS)
    boosted_predict = least([lambda: boosted.predict_proba(new_pandas)], 3)[0] * (N_TREES / ROUNDS)
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_NUMBERS + N_STRINGS}, {N_TREES} trees of {leaves:,} leaves"
    forest = on_threads(f"RandomForest({N_TREES})")
    boosting = on_threads(f"LightGBM, {ROUNDS} rounds × {N_TREES // ROUNDS}")
    found = []
    for by, clock in ((WALL, ""), (CPU, ", ratio of CPU time")):
        found += [
            faster(f"fit, {size}{clock}", fit, their_fit, 5, forest, by),
            faster(f"predict_proba, the same{clock}", predict, their_predict, 3, forest, by),
            faster(f"fit, the same{clock}", fit, boosted_fit, 1, boosting, by),
            faster(f"predict_proba, the same{clock}", predict, boosted_predict, 1, boosting, by),
        ]
    return found


if __name__ == "__main__":
    report("Generative forest", rows)
