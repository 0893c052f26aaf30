"""The pool on wide tables against a random forest; the ratio is of CPU seconds: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.wide [--quick]   (--quick: a tenth of the rows, to see that it runs)

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import posteriori as po
from benchmarks.pool import encoded
from benchmarks.timing import CPU, Row, alternately, report, rival, within
from experiments.machine import on_threads
from experiments.real_tables import data_folder, tables

WIDE = ("arrhythmia", "splice", "fars", "spambase")


def rows(quick: bool) -> list[Row]:
    """Fit the pool and a forest to at most 3,000 rows of each table."""
    warnings.simplefilter("ignore")
    folder = data_folder()
    if folder is None:
        print("all rows are left out: set POSTERIORI_DATA to the folder of tables, or put it at ../shared/data")
        return []
    found = []
    for table in tables(folder, WIDE):
        X, y = table.X, table.y.to_numpy()
        if quick:
            chosen = np.arange(0, len(y), 10)
            X, y = X[chosen.tolist()], y[chosen]
        Z = encoded(X)
        pool, forest = po.GenerativeClassifier(), rival(RandomForestClassifier(200, random_state=0))
        ours, theirs = alternately(
            lambda pool=pool, X=X, y=y: pool.fit(X, y),
            lambda forest=forest, Z=Z, y=y: forest.fit(Z, y),
            1,  # after a warm-up; four tables take minutes
        )
        work = f"fit of GenerativeClassifier, {table.name}, {len(y):,}×{X.width}"
        found.append(within(work, ours, theirs, 1, on_threads("RandomForest(200) fit"), by=CPU))
    return found


if __name__ == "__main__":
    report("Wide tables (CPU seconds)", rows)
