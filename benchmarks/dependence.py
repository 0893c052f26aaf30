"""Features that depend on each other, and the cuts of numbers: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.dependence [--quick]   (--quick: a tenth of the rows, to see that it runs)

pgmpy and pyAgrum predict row by row, so they are given few rows, and every prediction is compared by the row.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report, within
from posteriori.statistics import CountTogether
from posteriori.tables import Assignment, Codes

N_COLUMNS = 20


def dependent_codes(n: int, d: int, k: int, n_classes: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw codes 0 … k − 1 of d columns, each depending on the class and on the column before it."""
    y = rng.integers(0, n_classes, n)
    codes = np.empty((n, d), np.int64)
    codes[:, 0] = rng.integers(0, k, n)
    for j in range(1, d):
        follows = rng.random(n) < 0.4
        codes[:, j] = np.where(follows, (codes[:, j - 1] + y) % k, rng.integers(0, k, n))
    return codes, y


def quietly(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return the same work with the warnings and progress bars of a peer left out."""

    def silent() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()

    return silent


def tan_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Learn a tree over 20 columns of 4 categories, 3 classes, and predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.estimators import TreeSearch
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

    codes, y = dependent_codes(n, N_COLUMNS, 4, 3, rng)
    names = [f"x{j}" for j in range(N_COLUMNS)]
    frame = pd.DataFrame(codes, columns=names).assign(y=y)
    ours = po.TreeAugmentedNaiveBayes(columns=po.Columns(categorical_features=list(range(N_COLUMNS))))

    def by_pgmpy() -> Any:
        tree = TreeSearch(frame, root_node="x0", n_jobs=1).estimate("tan", class_node="y", show_progress=False)
        model = DiscreteBayesianNetwork(tree.edges())
        return model.fit(frame) or model

    processor = DiscreteTypeProcessor(defaultDiscretizationMethod="NoDiscretization", defaultNumberOfBins=None)
    agrum = BNClassifier(learningMethod="TAN", prior="Smoothing", priorWeight=1.0, type_processor=processor)
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_COLUMNS}, 4 categories, 3 classes"
    X = frame[names]
    seconds = alternately(lambda: ours.fit(codes, y), quietly(by_pgmpy), 3)
    rows = [faster(f"TAN fit, {size}", *seconds, 150, "pgmpy TreeSearch on 1 thread + fit")]
    seconds = alternately(lambda: ours.fit(codes, y), quietly(lambda: agrum.fit(X, frame["y"])), 3)
    rows.append(faster(f"TAN fit, {size}", *seconds, 50, "pyAgrum BNClassifier"))

    network = quietly(by_pgmpy)()
    elimination = VariableElimination(network)
    few = X[:100]
    evidence = few.to_dict("records")
    strings = X.astype(str)
    on_strings = po.TreeAugmentedNaiveBayes().fit(strings, frame["y"])

    def pgmpy_predicts() -> None:
        for row in evidence:
            elimination.query(["y"], evidence=row, show_progress=False)

    per_row = seconds_a_row(lambda: ours.predict_proba(codes), len(codes))
    per_string_row = seconds_a_row(lambda: on_strings.predict_proba(strings), len(X))
    by_pgmpy_row = seconds_a_row(quietly(pgmpy_predicts), len(few))
    by_agrum_row = seconds_a_row(quietly(lambda: agrum.predict_proba(few)), len(few))
    work = f"TAN predict_proba a row, {size}"
    rows.append(faster(f"{work}, integers", per_row, by_pgmpy_row, 3000, "pgmpy"))
    rows.append(faster(f"{work}, integers", per_row, by_agrum_row, 500, "pyAgrum"))
    rows.append(faster(f"{work}, strings", per_string_row, by_agrum_row, 100, "pyAgrum, integers"))
    return rows


def seconds_a_row(work: Callable[[], Any], n: int) -> float:
    """Return the median seconds per row of three runs after a warm-up."""
    work()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[1] / n


def aode_row(n: int, rng: np.random.Generator) -> Row:
    """Fit AODE and predict its own rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skbn import AnDE

    codes, y = dependent_codes(n, N_COLUMNS, 4, 3, rng)
    columns = list(range(N_COLUMNS))
    ours = po.AveragedOneDependence(columns=po.Columns(categorical_features=columns))
    theirs = AnDE(n_dependence=1, categorical_features=columns)
    seconds = alternately(
        lambda: ours.fit(codes, y).predict_proba(codes), quietly(lambda: theirs.fit(codes, y).predict_proba(codes)), 3
    )
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_COLUMNS}, 4 categories, 3 classes"
    return faster(f"AODE fit + predict_proba, {size}", *seconds, 15, "scikit-bayes AnDE(1)")


def pair_row(n: int, rng: np.random.Generator) -> Row:
    """Count all pairs of 50 columns of 8 categories in 5 classes, against one increment a nanosecond on one core."""
    d = 50
    codes, y = dependent_codes(n, d, 8, 5, rng)
    X, sufficient_statistics = (codes + 1).astype(np.uint8), CountTogether()
    component, weight = y.astype(np.int32), np.ones(n)

    def count() -> None:
        from concurrent.futures import ThreadPoolExecutor

        def one(start: int) -> Any:
            part = slice(start, start + 62_500)
            return sufficient_statistics.of(Codes(X[part], (8,) * d), Assignment(component[part], weight[part], 5))

        with ThreadPoolExecutor(2) as threads:
            parts = threads.map(one, range(0, n, 62_500))
            total = next(parts)
            for part in parts:
                total = total + part

    ours, _ = alternately(count, lambda: None, 5)
    limit = n * d * (d - 1) / 2 * 1e-9
    return within(
        f"pair counts, {n:.0e}".replace("e+0", "e") + f"×{d}, 8 categories, 5 classes, two threads",
        ours,
        limit,
        0.6,
        "increments at 1 ns each,",
    )


def mdlp_row(n: int, rng: np.random.Generator) -> Row:
    """Cut n × 20 floats of 3 classes, half of them informative; sorting them is the least that an exact cut takes."""
    y = rng.integers(0, 3, n)
    values = rng.normal(size=(n, N_COLUMNS))
    values[:, : N_COLUMNS // 2] += np.outer(y, rng.uniform(0.0, 2.0, N_COLUMNS // 2))
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(N_COLUMNS)])
    ours = po.preprocessing.MDLPDiscretizer()
    seconds = alternately(lambda: ours.fit(table, y), lambda: [table[name].sort_values() for name in table], 5)
    size = f"{n:.0e}".replace("e+0", "e") + f"×{N_COLUMNS} float64, 3 classes"
    return within(f"MDLPDiscretizer.fit, {size}", *seconds, 3, "pandas, a sort of each column")


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    rng = np.random.default_rng(0)
    part = 10 if quick else 1
    return [
        *tan_rows(100_000 // part, rng),
        aode_row(100_000 // part, rng),
        pair_row(1_000_000 // part, rng),
        mdlp_row(1_000_000 // part, rng),
    ]


if __name__ == "__main__":
    report("Dependent features", rows)
