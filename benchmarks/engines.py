"""A million rows in other engines than Python: a query of polars, and a graph of ONNX beside that of LightGBM.

Usage: python -m benchmarks.engines [--quick]   (--quick: a fiftieth of the rows, to see that it runs)

The rows have ten numbers and four columns of categories, a tenth of the cells missing. Graphs score batches of 10,000
rows, in which each thread keeps its arrays in the cache. The graph of LightGBM has 100 trees, single precision, and
codes in place of categories.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import polars as pl

import posteriori as po
from benchmarks.timing import Row, alternately, report, rival, show
from experiments.machine import threads

N_ROWS, N_TRAINING, BATCH = 1_000_000, 5_000, 10_000
MODELS = {
    "naive Bayes": po.NaiveBayes,
    "TAN": po.TreeAugmentedNaiveBayes,
    "pool of nb, lda and tan": lambda: po.GenerativeClassifier(
        [po.NaiveBayes(), po.GaussianDiscriminant(), po.TreeAugmentedNaiveBayes()], folds=2
    ),
    "the default pool": po.GenerativeClassifier,
}


def rows_of(n: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Return rows that depend on three classes, and these."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    numbers = {f"x{j}": rng.normal(size=n) + y * (j % 3) / 2 for j in range(10)}
    codes = {f"c{j}": np.array(list("abcdef"))[(rng.integers(5, size=n) + y) % 6] for j in range(4)}
    frame = pl.DataFrame({**numbers, **codes})
    gaps = (pl.when(pl.Series(rng.random(n) > 0.1)).then(pl.col(name)).alias(name) for name in frame.columns)
    return frame.with_columns(gaps), y


def session_of(graph: Any) -> onnxruntime.InferenceSession:
    """Return a session on the threads of the run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    return onnxruntime.InferenceSession(graph.SerializeToString(), options)


def scored(session: onnxruntime.InferenceSession, cells: dict[str, np.ndarray], n: int) -> None:
    """Score rows in batches."""
    for start in range(0, n, BATCH):
        session.run(None, {name: column[start : start + BATCH] for name, column in cells.items()})


def of_lightgbm(X: pl.DataFrame, y: np.ndarray) -> Any:
    """Return the graph of a LightGBM of 100 trees."""
    import lightgbm
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    model = rival(lightgbm.LGBMClassifier(n_estimators=100, verbose=-1)).fit(codes_of(X), y)
    return convert_lightgbm(model, initial_types=[("X", FloatTensorType([None, X.width]))], zipmap=False)


def codes_of(X: pl.DataFrame) -> np.ndarray:
    """Return the rows as numbers of single precision, categories as codes."""
    codes = [pl.col(name).cast(pl.Enum(list("abcdef"))).to_physical() for name in X.columns if name.startswith("c")]
    return X.with_columns(codes).cast(pl.Float32).to_numpy()


def engine_rows(quick: bool) -> list[Row]:
    """Return the lines of the table."""
    n, repeats = (N_ROWS // 50, 1) if quick else (N_ROWS, 3)
    X, y = rows_of(n)
    train, labels = X[:N_TRAINING], y[:N_TRAINING]
    cells = {
        name: column.fill_null(np.nan).to_numpy() if column.dtype == pl.Float64 else column.fill_null("").to_numpy()
        for name, column in zip(X.columns, X.get_columns(), strict=True)
    }
    boosted = session_of(of_lightgbm(train, labels))
    floats = {"X": codes_of(X)}
    lines = []
    for name, make in MODELS.items():
        model = make().fit(train, labels)
        expression, session = po.to_polars(model).alias("answer"), session_of(model.to_onnx())

        def by_polars(expression: pl.Expr = expression) -> None:
            X.lazy().select(expression).collect(engine="streaming")

        def by_onnx(session: onnxruntime.InferenceSession = session) -> None:
            scored(session, cells, n)

        ours, python = alternately(by_polars, lambda model=model: model.predict_proba(X), repeats)
        lines.append(_line(f"{name}, {n:,} rows, query of polars", ours, "predict_proba", python, 2.0))
        ours, python = alternately(by_onnx, lambda model=model: model.predict_proba(X), repeats)
        lines.append(_line(f"{name}, {n:,} rows, onnxruntime", ours, "predict_proba", python, 10.0))
        ours, boosting = alternately(by_onnx, lambda: scored(boosted, floats, n), repeats)
        lines.append(_line(f"{name}, {n:,} rows, onnxruntime", ours, "LightGBM of 100 trees", boosting, 10.0))
    return lines


def _line(work: str, ours: np.ndarray, against: str, theirs: np.ndarray, most: float) -> Row:
    ratio = float(ours[0] / theirs[0])
    return Row(work, show(ours), f"{against} {show(theirs)}", f"{ratio:.2f}×", f"≤ {most:g}×", ratio <= most)


if __name__ == "__main__":
    report("Engines", engine_rows)
