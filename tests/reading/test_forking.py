"""A process forked from one in which polars has started its threads: it answers or says what to do, and never waits."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs fork, and threads with names")

_SCRIPT = """
import os, sys, tempfile, warnings
import numpy as np, polars as pl
import posteriori as po

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n = 60
y = np.arange(n) % 2
frame = pl.DataFrame({
    "x": rng.normal(size=n) + y,
    "gaps": [None if i % 3 == 0 else float(i % 7) for i in range(n)],
    "sky": [("clear", "fog", None)[k] for k in rng.integers(0, 3, n)],
    "many": pl.Series([("a", "b")[k] for k in rng.integers(0, 2, n)], dtype=pl.Categorical),
    "windy": (rng.random(n) < 0.5).tolist(),
})
long = pl.concat([frame] * 20)
places = np.tile(y, 20)
path = os.path.join(tempfile.mkdtemp(), "rows.parquet")
frame.write_parquet(path)
frame.lazy().group_by("sky").agg(pl.len(), pl.col("x").mean()).collect()  # starts the threads of polars
tables = {
    "polars": long, "pandas": long.to_pandas(), "numpy": long.select("x", "gaps").to_numpy(), "arrow": long.to_arrow()
}
kinds = {
    "nb": lambda: po.NaiveBayes(n_jobs=1), "lda": lambda: po.GaussianDiscriminant(n_jobs=1),
    "tan": lambda: po.TreeAugmentedNaiveBayes(n_jobs=1), "pool": lambda: po.GenerativeClassifier(folds=2),
}
what, kind, table = sys.argv[1:]
X = tables[table]
model = kinds[kind]().fit(X, places)
expected = model.predict_proba(X)

def fit():
    assert (kinds[kind]().fit(X, places).predict_proba(X) == expected).all()

def predict():
    assert (model.predict_proba(X) == expected).all()
    assert len(model.predict(X[:5])) == 5

def sample():
    assert len(model.sample(5, random_state=0)[0]) == 5

def scan():
    return po.scan(path).n_rows

child = os.fork()
if child == 0:
    try:
        {"fit": fit, "predict": predict, "sample": sample, "scan": scan,
         "write": lambda: po.predict_to(model, X, path + ".csv")}[what]()
    except RuntimeError as error:
        print(error)
        sys.stdout.flush()
        os._exit(7)
    except BaseException as error:
        print(repr(error))
        sys.stdout.flush()
        os._exit(8)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def end_of(what, kind, table):
    """Return the exit code and the output of what a forked child does."""
    command = [sys.executable, "-c", _SCRIPT, what, kind, table]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        printed, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the child hangs as well
        process.communicate()
        raise
    return process.returncode, printed


@pytest.mark.parametrize(
    ("what", "kind", "table"),
    [
        *((what, kind, "polars") for what in ("fit", "predict") for kind in ("nb", "lda", "tan")),
        ("fit", "pool", "polars"),
        ("predict", "pool", "polars"),
        ("fit", "tan", "pandas"),
        ("fit", "lda", "numpy"),
    ],
)
def test_tables_in_memory_are_read_without_the_threads_of_polars(what, kind, table):
    code, printed = end_of(what, kind, table)
    assert code == 0, printed


@pytest.mark.parametrize(
    ("what", "table"), [("scan", "polars"), ("write", "polars"), ("sample", "polars"), ("fit", "arrow")]
)
def test_what_needs_the_threads_of_polars_says_so(what, table):
    code, printed = end_of(what, "nb", table)
    assert code == 7, printed
    assert printed.count("\n") == 1
    assert "forkserver" in printed
