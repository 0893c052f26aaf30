"""Naive Bayes against scikit-learn and against the memory limit: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.naive_bayes [--quick]   (--quick: a tenth of the rows, to see that it runs)
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys

import numpy as np
import polars as pl
from sklearn.datasets import load_iris
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OrdinalEncoder

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report, within

N_CLASSES = 5
WORDS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])


def gaussian_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Fit and predict n × 50 floats."""
    X, y = rng.normal(size=(n, 50)), rng.integers(0, N_CLASSES, n)
    ours, theirs = po.NaiveBayes(), GaussianNB()
    size = f"{n:.0e}".replace("e+0", "e") + "×50 float64, 5 classes"
    rows = [
        faster(
            f"fit, {size}",
            *alternately(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), 7),
            15,
            "GaussianNB",
        ),
        within(
            "the same fit",
            *alternately(lambda: ours.fit(X, y), X.sum, 15),
            1.5,
            "one read of the array, `X.sum()`",
        ),
        faster(
            f"predict_proba, {size}",
            *alternately(lambda: ours.predict_proba(X), lambda: theirs.predict_proba(X), 5),
            10,
            "GaussianNB",
        ),
    ]
    narrow = X.astype(np.float32)
    ours32, theirs32 = po.NaiveBayes(), GaussianNB()
    rows.append(
        faster(
            "fit, the same as float32",
            *alternately(lambda: ours32.fit(narrow, y), lambda: theirs32.fit(narrow, y), 5),
            15,
            "GaussianNB",
        )
    )
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.1] = np.nan
    seconds = alternately(lambda: ours.fit(gaps, y), lambda: ours.fit(X, y), 5)
    rows.append(within("fit with 10 % missing cells", *seconds, 2, "the same without"))
    seconds = alternately(lambda: ours.predict_proba(gaps), lambda: ours.predict_proba(X), 5)
    rows.append(within("predict_proba with 10 % missing cells", *seconds, 3, "the same without"))
    return rows


def categorical_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Fit and predict n × 50 integer codes."""
    X, y = rng.integers(0, 8, (n, 50)), rng.integers(0, N_CLASSES, n)
    ours, theirs = po.NaiveBayes(columns=po.Columns(categorical_features=range(50))), CategoricalNB()
    size = f"{n:.0e}".replace("e+0", "e") + "×50 integer codes, K = 8, 5 classes"
    fits = alternately(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), 5)
    predictions = alternately(lambda: ours.predict_proba(X), lambda: theirs.predict_proba(X), 7)
    assert np.allclose(ours.predict_proba(X[:1000]), theirs.predict_proba(X[:1000]))
    return [
        faster(f"fit, {size}", *fits, 10, "CategoricalNB"),
        faster(f"predict_proba, {size}", *predictions, 15, "CategoricalNB"),
    ]


def frame_rows(n: int, rng: np.random.Generator) -> list[Row]:
    """Fit and predict data frames of 30 float and 20 string columns."""
    numbers = {f"number{j}": rng.normal(size=n) for j in range(30)}
    strings = {f"string{j}": WORDS[rng.integers(0, len(WORDS), n)] for j in range(20)}
    y = rng.integers(0, N_CLASSES, n)
    polars = pl.DataFrame({**numbers, **strings})
    rows = []
    for name, table in (("polars", polars), ("pandas", polars.to_pandas())):
        ours = po.NaiveBayes()
        seconds = alternately(
            lambda ours=ours, table=table: ours.fit(table, y).predict_proba(table),
            lambda table=table: two_models_added(table, y, list(numbers), list(strings)),
            1,
        )
        size = f"{n:.0e}".replace("e+0", "e")
        rows.append(
            faster(
                f"fit + predict_proba, {size} rows of 30 float and 20 string columns, {name}",
                *seconds,
                5,
                "OrdinalEncoder + GaussianNB + CategoricalNB",
            )
        )
    return rows


def two_models_added(table: object, y: np.ndarray, numbers: list[str], strings: list[str]) -> np.ndarray:
    """Do with scikit-learn what a mixed naive Bayes does: encode, fit two models, add their log joints."""
    encoder = OrdinalEncoder().fit(table[strings])
    gaussian = GaussianNB().fit(table[numbers], y)
    categorical = CategoricalNB().fit(encoder.transform(table[strings]), y)
    joint = gaussian.predict_joint_log_proba(table[numbers])
    joint += categorical.predict_joint_log_proba(encoder.transform(table[strings])) - categorical.class_log_prior_
    joint -= joint.max(axis=1, keepdims=True)
    np.exp(joint, out=joint)
    return joint / joint.sum(axis=1, keepdims=True)


def small_rows() -> list[Row]:
    """Fit and predict iris, where only overhead counts."""
    X, y = load_iris(return_X_y=True)
    ours, theirs = po.NaiveBayes(), GaussianNB()
    seconds = alternately(
        lambda: [ours.fit(X, y).predict_proba(X) for _ in range(20)],
        lambda: [theirs.fit(X, y).predict_proba(X) for _ in range(20)],
        15,
    )
    return [within("fit + predict_proba, iris", seconds[0] / 20, seconds[1] / 20, 2, "GaussianNB")]


_MEMORY = """
import numpy as np, posteriori as po
X, y = np.random.default_rng(0).normal(size=({n}, 50)), np.random.default_rng(0).integers(0, 5, {n})
model = po.NaiveBayes().fit(X[:100], y[:100])
def status(key):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
model.fit(X, y)
print((status("VmHWM") - before) / 1024)
"""


def memory_row(n: int) -> Row | None:
    """Measure the memory that a fit takes beyond the table, in a process of its own (Linux)."""
    if platform.system() != "Linux":
        return None
    done = subprocess.run([sys.executable, "-c", _MEMORY.format(n=n)], capture_output=True, text=True, check=True)
    megabytes = float(done.stdout)
    size = f"{n:.0e}".replace("e+0", "e")
    return Row(
        f"memory beyond the input, fit {size}×50",
        f"{megabytes:.0f} MB",
        "–",
        "–",
        "< 100 MB",
        megabytes < 100,
    )


def import_rows() -> list[Row]:
    """Measure imports in fresh processes."""

    def seconds(statement: str) -> float:
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        runs = [
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
            for _ in range(7)
        ]
        return statistics.median(runs)

    base = seconds("import sklearn.base")
    rows = []
    for statement in ("import posteriori", "from posteriori import NaiveBayes"):
        extra = seconds(f"import sklearn.base; {statement}") - base
        rows.append(
            Row(
                f"`{statement}`",
                f"{extra:+.3f} s",
                f"on top of `import sklearn.base` {base:.2f} s",
                "–",
                "≤ 0.3 s on top" if statement == "import posteriori" else "–",
                statement != "import posteriori" or extra <= 0.3,
            )
        )
    return rows


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    rng = np.random.default_rng(0)
    n = 100_000 if quick else 1_000_000
    found = [*gaussian_rows(n, rng), *categorical_rows(n, rng), *frame_rows(n, rng), *small_rows()]
    return [*found, *(row for row in (memory_row(n),) if row is not None), *import_rows()]


if __name__ == "__main__":
    report("Naive Bayes", rows)
