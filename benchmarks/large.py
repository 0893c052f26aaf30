"""The default pool against LightGBM on large mixed tables in a file: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.large [--quick] [--full]   (--quick: 50,000 rows; --full: 1,600,000 rows, some minutes)

Each fit runs in a process of its own, from the Parquet file to the fitted model, so that its largest resident size and
its CPU seconds (user and system, all threads) are those of the work alone. The kernels of posteriori are compiled
before the clock starts. LightGBM builds 100 trees on the strings as pandas categories. Both predict the same new rows
from a frame in memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.timing import CPU, Row, report, within
from experiments.machine import on_threads

N_NUMBERS, N_STRINGS, N_GAPPY, GAPS = 34, 16, 7, 0.05
N_HIDDEN = 6
ROW_GROUP = 1 << 18
_WORK = """
import json, resource, sys, time, warnings
import numpy as np
import polars as pl

path, test_path, library = sys.argv[1:]
warnings.simplefilter("ignore")


def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([time.perf_counter(), usage.ru_utime + usage.ru_stime])


def losses(posterior):
    y = (test["y"] == "yes").to_numpy().astype(int)
    return -float(np.log(posterior[np.arange(len(y)), y]).mean())


test = pl.read_parquet(test_path)
if library == "posteriori":
    import posteriori as po

    po.GenerativeClassifier().fit(pl.scan_parquet(path).head(5000).collect(), "y")
    few = po.GenerativeClassifier().fit(test.head(5000), "y").predict_proba(test.drop("y").head(100))
    begun = spent()
    model = po.GenerativeClassifier().fit(po.scan(path), "y")
    fitted = spent()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    cells = test.drop("y")
    ready = spent()
    posterior = model.predict_proba(cells)
    done = spent()
    members, skipped = list(model.members_), list(model.skipped_)
else:
    import lightgbm

    from benchmarks.timing import rival

    begun = spent()
    rows = pl.read_parquet(path).to_pandas()
    strings = [name for name in rows if name.startswith("c")]
    rows[strings] = rows[strings].astype("category")
    kinds = rows[strings].dtypes
    model = rival(lightgbm.LGBMClassifier(n_estimators=100, verbose=-1))
    model.fit(rows.drop(columns="y"), rows["y"] == "yes")
    fitted = spent()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    cells = test.drop("y").to_pandas()
    ready = spent()
    posterior = model.predict_proba(cells.astype(kinds))
    done = spent()
    members, skipped = [], []
found = {"fit": (fitted - begun).tolist(), "peak": peak, "predict": (done - ready).tolist()}
print(json.dumps(found | {"loss": losses(posterior), "members": members, "skipped": skipped}))
"""


def write_rows(path: Path, n: int, seed: int) -> None:
    """Write n rows of 34 numbers, 16 strings and a target of two classes; 7 columns lack 5 % of their numbers.

    Six hidden numbers make the columns depend on each other; the label depends on a product and an absolute value too.
    """
    rules, rng = np.random.default_rng(12), np.random.default_rng(seed)
    loadings = rules.normal(0, 1.0, (N_HIDDEN, N_NUMBERS)) * (rules.random((N_HIDDEN, N_NUMBERS)) < 0.4)
    preferences = [rules.normal(0, 0.7, (N_HIDDEN, int(k))) for k in np.geomspace(3, 60, N_STRINGS)]
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, n, ROW_GROUP):
        rows = _drawn(min(ROW_GROUP, n - start), loadings, preferences, rng).to_arrow()
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def _drawn(n: int, loadings: np.ndarray, preferences: list[np.ndarray], rng: np.random.Generator) -> pl.DataFrame:
    hidden = rng.normal(size=(n, N_HIDDEN))
    score = 0.7 * hidden[:, 0] + 0.6 * hidden[:, 1] * hidden[:, 2] + 0.5 * np.abs(hidden[:, 3]) - 0.4
    numbers = hidden @ loadings + rng.normal(0, 1.2, (n, N_NUMBERS))
    numbers[:, 10:20] = np.exp(0.5 * numbers[:, 10:20])
    numbers[:, 20:26] = np.round(3 * numbers[:, 20:26])
    numbers[:, :N_GAPPY][rng.random((n, N_GAPPY)) < GAPS] = np.nan
    columns = {f"x{j}": pl.Series(numbers[:, j]).fill_nan(None) for j in range(N_NUMBERS)}
    for j, preference in enumerate(preferences):
        k = preference.shape[1]
        chosen = (hidden @ preference + rng.gumbel(0, 1, (n, k))).argmax(axis=1)
        names = np.array([f"value {i}" for i in range(k)], dtype=object)
        columns[f"c{j}"] = pl.Series(names[chosen], dtype=pl.String)
    label = rng.random(n) < 1 / (1 + np.exp(-1.3 * score))
    return pl.DataFrame(columns | {"y": pl.Series(np.where(label, "yes", "no"))})


def measure(path: Path, test: Path, library: str) -> dict[str, Any]:
    """Fit and predict in a process of its own; return wall and CPU seconds, the peak in GB, and the log-loss."""
    done = subprocess.run(
        [sys.executable, "-c", _WORK, path, test, library], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {work: np.array(found[work]) for work in ("fit", "predict")}


def rows_of_size(n: int, folder: Path, test: Path, n_test: int) -> list[Row]:
    """Compare the two on a table of n rows."""
    path = folder / f"{n}.parquet"
    write_rows(path, n, 0)
    ours, theirs = (measure(path, test, library) for library in ("posteriori", "lightgbm"))
    path.unlink()
    size = f"{n:,}×{N_NUMBERS + N_STRINGS}"
    memory, peer = ours["peak"], on_threads("LightGBM")
    return [
        within(f"fit of the pool from Parquet, {size}", ours["fit"], theirs["fit"], 0.5, peer),
        within("the same, ratio of CPU time", ours["fit"], theirs["fit"], 0.5, peer, CPU),
        within(f"predict_proba, {n_test:,} rows", ours["predict"], theirs["predict"], 1, peer),
        within("the same, ratio of CPU time", ours["predict"], theirs["predict"], 1, peer, CPU),
        Row(
            f"peak memory of fit, {size}",
            f"{memory:.2f} GB",
            f"LightGBM {theirs['peak']:.2f} GB",
            f"{memory / theirs['peak']:.2f}×",
            "< 2 GB",
            memory < 2.0,
        ),
        Row(
            f"log-loss of new rows, {size}",
            f"{ours['loss']:.4f}",
            f"LightGBM {theirs['loss']:.4f}",
            f"{ours['loss'] / theirs['loss']:.3f}×",
            "≤ 1.02×",
            ours["loss"] <= 1.02 * theirs["loss"],
        ),
    ]


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    full = "--full" in sys.argv[1:]
    sizes, n_test = ([50_000], 20_000) if quick else ([200_000, 1_600_000] if full else [200_000], 400_000)
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        test = folder / "test.parquet"
        write_rows(test, n_test, 1)
        for n in sizes:
            found += rows_of_size(n, folder, test, n_test)
    return found


if __name__ == "__main__":
    report("Large tables", rows)
