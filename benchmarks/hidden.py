"""EM over hidden labels against scikit-learn and against closed form: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.hidden [--quick]   (--quick: a tenth of the rows, to see that it runs)
"""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report, within

N_STEPS = 20  # of components and classes that overlap, so that no step is the last by itself
N_COMPONENTS = 8
N_CLASSES = 3
KINDS = {"full": "full", "diagonal": "diag"}


def mixture_row(n: int, covariance: str, at_least: float, rng: np.random.Generator) -> Row:
    """Take the same steps from the same start."""
    z = rng.integers(0, N_COMPONENTS, n)
    X = rng.normal(size=(n, 20)) + rng.normal(0, 0.6, (N_COMPONENTS, 20))[z]
    start = np.where(rng.random(n) < 0.5, z, rng.integers(0, N_COMPONENTS, n))
    steps = po.EM(max_iter=N_STEPS, tol=0.0)
    ours = po.MixtureModel(N_COMPONENTS, covariance=covariance, start=start, pseudo_rows=0.0, em=steps)
    theirs = started(X, start, covariance)
    seconds = alternately(lambda: ours.fit(X), lambda: theirs.fit(X), 3)
    assert ours.n_iter_ == theirs.n_iter_ == N_STEPS
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=1e-6)
    work = f"{N_STEPS} EM steps, {written(n)}×20 float64, {N_COMPONENTS} {covariance} components"
    return faster(work, *seconds, at_least, "GaussianMixture, the same steps")


def started(X: np.ndarray, start: np.ndarray, covariance: str) -> GaussianMixture:
    """Return scikit-learn's mixture, to start from the moments of the rows of each component."""
    means = np.stack([X[start == z].mean(axis=0) for z in range(N_COMPONENTS)])
    covariances = np.stack([np.cov(X[start == z].T, bias=True) for z in range(N_COMPONENTS)])
    precisions = np.linalg.inv(covariances)
    if covariance == "diagonal":
        precisions = 1.0 / np.diagonal(covariances, axis1=1, axis2=2)
    return GaussianMixture(
        N_COMPONENTS,
        covariance_type=KINDS[covariance],
        reg_covar=0.0,
        max_iter=N_STEPS,
        tol=0.0,
        weights_init=np.bincount(start, minlength=N_COMPONENTS) / len(start),
        means_init=means,
        precisions_init=precisions,
    )


def unlabelled_row(n: int, rng: np.random.Generator) -> Row:
    """Learn naive Bayes from n × 20 mixed cells, a tenth of them missing, and half of the labels hidden."""
    y = rng.integers(0, N_CLASSES, n)
    numbers = rng.normal(size=(n, 10)) + rng.normal(0, 0.15, (N_CLASSES, 10))[y]
    kinds = np.where(rng.random((n, 10)) < 0.05, 2 * y[:, np.newaxis], rng.integers(0, 6, (n, 10)))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    cells = np.array([*"abcdef"], dtype=object)[kinds]
    cells[rng.random(cells.shape) < 0.1] = None
    columns = {f"x{j}": numbers[:, j] for j in range(10)}
    X = pl.DataFrame(
        columns | {f"c{j}": pl.Series(cells[:, j].tolist(), dtype=pl.Enum([*"abcdef"])) for j in range(10)}
    )
    some = np.where(rng.random(n) < 0.5, y.astype(float), np.nan)
    learning, plain = (
        po.NaiveBayes(labels=po.Labels(unlabelled="learn"), em=po.EM(max_iter=N_STEPS, tol=0.0)),
        po.NaiveBayes(),
    )

    def closed_form() -> None:
        plain.fit(X, y)
        plain.predict_proba(X)

    ours, once = alternately(lambda: learning.fit(X, some), closed_form, 3)
    steps = learning.n_iter_  # fewer, where one of them gains nothing that a double could show
    work = f"{steps} EM steps of naive Bayes, {written(n)}×20 mixed cells, 10 % missing, half of the labels hidden"
    return within(work, ours, steps * once, 1.5, f"{steps} × (fit with all labels + predict_proba)")


def written(n: int) -> str:
    """Write a number of rows."""
    return f"{n:.0e}".replace("e+0", "e")


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # neither side is to stop before its last step
    rng = np.random.default_rng(0)
    n = 20_000 if quick else 200_000
    return [
        mixture_row(n, "full", 2, rng),
        mixture_row(n, "diagonal", 4, rng),
        unlabelled_row(5 * n, rng),
    ]


if __name__ == "__main__":
    report("Hidden labels", rows)
