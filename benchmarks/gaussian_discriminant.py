"""Gaussian discriminant analysis against scikit-learn, scipy and the flops: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.gaussian_discriminant [--quick]   (--quick: a tenth of the rows, to see that it runs)
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report, within

N_CLASSES = 5


def fit_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Fit and predict n × 50 floats."""
    X, y = rng.normal(size=(n, 50)), rng.integers(0, N_CLASSES, n)
    lda, qda = po.GaussianDiscriminant(), po.GaussianDiscriminant(pooling="per_class")
    theirs = QuadraticDiscriminantAnalysis()
    size = f"{n:.0e}".replace("e+0", "e") + "×50 float64, 5 classes"
    rows = []
    for solver, at_least in (("svd", 20), ("lsqr", 6)):
        other = LinearDiscriminantAnalysis(solver=solver)
        seconds = alternately(lambda: lda.fit(X, y), lambda other=other: other.fit(X, y), 3)
        rows.append(faster(f"LDA fit, {size}", *seconds, at_least, f"LinearDiscriminantAnalysis, {solver}"))
    seconds = alternately(lambda: qda.fit(X, y), lambda: theirs.fit(X, y), 3)
    rows.append(faster(f"QDA fit, {size}", *seconds, 12, "QuadraticDiscriminantAnalysis"))
    seconds = alternately(lambda: qda.predict_proba(X), lambda: theirs.predict_proba(X), 5)
    rows.append(faster(f"QDA predict_proba, {size}", *seconds, 6, "QuadraticDiscriminantAnalysis"))

    def limit() -> None:
        X.T @ X  # which NumPy does as a symmetric update
        X.sum()

    for name, model in (("LDA", lda), ("QDA", qda)):
        seconds = alternately(lambda model=model: model.fit(X, y), limit, 7)
        rows.append(within(f"{name} fit, the same", *seconds, 3, "symmetric rank-n update and one read"))
    return rows


def ledoit_wolf_rows(n: int, d: int, rng: np.random.Generator) -> list[Row]:
    """Fit n × d floats of many columns, shrunk by Ledoit and Wolf; measure the memory that this takes."""
    X, y = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)), rng.integers(0, N_CLASSES, n)
    ours = po.GaussianDiscriminant(shrinkage="ledoit_wolf")
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    size = f"{n:.0e}".replace("e+0", "e") + f"×{d}, 5 classes"
    seconds = alternately(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), 3)
    name = f"LDA fit with Ledoit-Wolf, {size}"
    peaks = []
    for fit in (lambda: ours.fit(X, y), lambda: theirs.fit(X, y)):
        tracemalloc.start()
        fit()
        peaks.append(tracemalloc.get_traced_memory()[1] / (8 * d * d))
        tracemalloc.stop()
    most = 10 * N_CLASSES
    shown = f"{peaks[0]:.0f} d×d in all", f"the same fit of scikit-learn {peaks[1]:.0f} d×d", "–", f"≤ {most} d×d"
    return [
        faster(name, *seconds, 3, "LinearDiscriminantAnalysis, lsqr, shrinkage auto"),
        Row(f"memory beyond the input, {name}", *shown, peaks[0] <= most),
    ]


def missing_row(n: int, rng: np.random.Generator) -> Row:
    """Predict n × 30 floats, a tenth of them missing."""
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 30)) @ rng.normal(size=(30, 30)) + y[:, np.newaxis]
    model = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    X[rng.random(X.shape) < 0.1] = np.nan
    some = X[: n // 50]
    model.predict_proba(X)
    start = time.perf_counter()
    ours = model.predict_joint_log_proba(X)
    middle = time.perf_counter()
    theirs = loop_over_patterns(model, some)
    seconds = (time.perf_counter() - middle) * 50
    np.testing.assert_allclose(ours[: len(some)], theirs, rtol=1e-6)
    size = f"{n:.0e}".replace("e+0", "e")
    return faster(
        f"prediction with 10 % missing cells, {size}×30",
        middle - start,
        seconds,
        20,
        "a loop over patterns with scipy.stats.multivariate_normal (50 times its time for a fiftieth of the rows)",
    )


def loop_over_patterns(model: po.GaussianDiscriminant, X: np.ndarray) -> np.ndarray:
    """Return log p(x, y) as one would write it with scipy."""
    patterns, pattern_of = np.unique(np.isnan(X), axis=0, return_inverse=True)
    log_joint = np.empty((len(X), len(model.classes_)))
    for number, missing in enumerate(patterns):
        rows, present = np.flatnonzero(pattern_of == number), ~missing
        for c in range(len(model.classes_)):
            density = multivariate_normal(model.means_[c][present], model.covariance_[c][np.ix_(present, present)])
            log_joint[rows, c] = model.class_log_prior_[c] + density.logpdf(X[np.ix_(rows, present)])
    return log_joint


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    rng = np.random.default_rng(0)
    n = 50_000 if quick else 500_000
    return [*fit_rows(n, rng), *ledoit_wolf_rows(n // 25, 200 if quick else 1000, rng), missing_row(n // 5, rng)]


if __name__ == "__main__":
    report("Gaussian discriminant analysis", rows)
