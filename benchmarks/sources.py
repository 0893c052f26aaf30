"""Rows in files and on workers: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.sources [--quick]   (--quick: a tenth of the rows, to see that it runs)

Every measurement is taken in a process of its own, whose largest resident size is that of the work alone; polars reads
the same columns of the same file, part after part, and counts the rows. Text is predicted to text, and polars copies it
from file to file. Dask's rows are in the memory of two worker processes before the clock starts; the threads' are in
that of one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import Row, report, show, within

N_NUMBERS, N_STRINGS, ROW_GROUP = 16, 4, 1 << 18
_TIMED = """
import json, resource, sys, time
import polars as pl
import posteriori as po

path, work, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])

def count():
    return sum(part.height for part in pl.scan_parquet(path).collect_batches(lazy=True, engine="streaming"))

def fit():
    return getattr(po, work)().fit(po.scan(path, target="y"))

if work != "count":  # compile the kernels
    few = pl.scan_parquet(path).head(10_000).collect()
    getattr(po, work)().fit(few, "y")
seconds = []
for _ in range(repeats):
    start = time.perf_counter()
    count() if work == "count" else fit()
    seconds.append(time.perf_counter() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"seconds": sorted(seconds)[len(seconds) // 2], "peak": peak}))
"""


_PREDICTED = """
import json, sys, time
import polars as pl
import posteriori as po

model, source, out, work = sys.argv[1:]
few = pl.scan_csv(source).head(10_000).collect()
few.write_csv(out + ".few.csv")
fitted = po.load(model)
po.predict_to(fitted, po.scan(out + ".few.csv", categorical=[]), out)
start = time.perf_counter()
if work == "copy":
    pl.scan_csv(source).sink_csv(out)
else:
    po.predict_to(fitted, po.scan(source), out, proba=work == "probabilities")
print(json.dumps({"seconds": time.perf_counter() - start}))
"""

_SPREAD = """
import json, sys, time
import pandas as pd
import posteriori as po

path, partitions, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def timed(rows):
    po.NaiveBayes().fit(rows, "y")
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        po.NaiveBayes().fit(rows, "y")
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[repeats // 2]

def main():
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    frame = pd.read_parquet(path, dtype_backend="numpy_nullable")
    frame = frame.astype({name: "float64" if name.startswith("x") else "str" for name in frame})
    threads = timed(frame)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        rows = dd.read_parquet(path, split_row_groups=1).persist()
        wait(rows)
        workers = timed(rows)
    print(json.dumps({"threads": threads, "workers": workers, "partitions": rows.npartitions}))

if __name__ == "__main__":
    main()
"""


def write_rows(path: Path, n: int, rng: np.random.Generator) -> None:
    """Write n rows of 16 floats, 4 strings and a target of 3 classes, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, n, ROW_GROUP):
        m = min(ROW_GROUP, n - start)
        y = rng.integers(0, 3, m)
        columns = {f"x{j}": rng.normal(0.3 * y, 1.0) for j in range(N_NUMBERS)}
        for j in range(N_STRINGS):
            k = 5 * (j + 1)
            names = np.array([f"category {c}" for c in range(k)])
            columns[f"s{j}"] = names[(rng.integers(0, k, m) + y) % k]
        table = pl.DataFrame({**columns, "y": np.array(["a", "b", "c"])[y]}).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(pa.table(table))
    assert writer is not None
    writer.close()


def measured(path: Path, work: str, repeats: int) -> dict[str, float]:
    """Return the median seconds of some work, and the gigabytes that its process has held at most."""
    command = [sys.executable, "-c", _TIMED, str(path), work, str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def predicted(work: str, model: Path, source: Path, repeats: int = 3) -> dict[str, float]:
    """Return the median seconds of copying, or predicting, a text file."""
    command = [sys.executable, "-c", _PREDICTED, str(model), str(source), str(source.parent / "out.csv"), work]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(repeats)
    ]
    return sorted(found, key=lambda one: one["seconds"])[repeats // 2]


def spread(path: Path) -> dict[str, float]:
    """Return the seconds of a fit of rows in memory, by threads and by two worker processes of Dask."""
    program = path.parent / "spread.py"  # a file, because worker processes import it
    program.write_text(_SPREAD)
    command = [sys.executable, str(program), str(path), "40", "5"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory(work: str, peak: float) -> Row:
    """Return the row that says how much memory some work has taken."""
    return Row(f"{work}, peak memory", f"{peak:.2f} GB", "—", "—", "≤ 1.5 GB", peak <= 1.5)


def rows(quick: bool) -> list[Row]:
    """Run every benchmark."""
    part = 10 if quick else 1
    rng = np.random.default_rng(0)
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (20_000_000 // part, 50_000_000 // part):
            path = Path(folder) / "rows.parquet"
            write_rows(path, n, rng)
            size = f"{n:.0e}".replace("e+0", "e") + "×21 of Parquet"
            count = measured(path, "count", 3)
            naive = measured(path, "NaiveBayes", 3)
            work = f"naive Bayes fit, {size}"
            found.append(within(work, naive["seconds"], count["seconds"], 4, "polars, a read that counts"))
            found.append(memory(work, naive["peak"]))
            if n == 20_000_000 // part:
                tree = measured(path, "TreeAugmentedNaiveBayes", 1)
                work = f"TAN fit, {size}"
                found.append(within(work, tree["seconds"], naive["seconds"], 4, "naive Bayes"))
                found.append(memory(work, tree["peak"]))
            path.unlink()
            print(f"{size}: {show(naive['seconds'])}", file=sys.stderr)
        found += text_rows(Path(folder), 5_000_000 // part, rng)
        path = Path(folder) / "spread.parquet"
        n = 10_000_000 // part
        write_rows(path, n, rng)
        both = spread(path)
        work = f"naive Bayes fit, {n:.0e}".replace("e+0", "e") + "×21 in the memory of 2 workers of Dask"
        found.append(within(work, both["workers"], both["threads"], 1.5, "two threads"))
    return found


def text_rows(folder: Path, n: int, rng: np.random.Generator) -> list[Row]:
    """Measure the prediction of a text file of n rows."""
    import posteriori as po

    source, model = folder / "rows.csv", folder / "model.posteriori"
    write_rows(folder / "rows.parquet", n, rng)
    pl.scan_parquet(folder / "rows.parquet").sink_csv(source)
    po.save(po.NaiveBayes().fit(po.scan(folder / "rows.parquet", "y")), model)
    (folder / "rows.parquet").unlink()
    copy = predicted("copy", model, source)
    found: list[Row] = []
    for work in ("prediction", "probabilities"):
        one = predicted(work, model, source)
        title = f"naive Bayes predict ({work}), {n:.0e}×21 of CSV to CSV".replace("e+0", "e")
        found.append(within(title, one["seconds"], copy["seconds"], 4, "polars scan and sink of the same rows"))
    return found


if __name__ == "__main__":
    report("Where rows live", rows)
