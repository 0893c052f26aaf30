"""A disk that is full while a file is written: the earlier file stays, nothing is left over, one sentence is given."""

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="limits of the size of files exist on POSIX only")

_SCRIPT = r"""
import os, resource, sys, warnings
from pathlib import Path
import numpy as np, polars as pl
import posteriori as po
from posteriori.cli import main

rng = np.random.default_rng(0)
rows = pl.DataFrame({"a": rng.integers(0, 900, 3000).astype(str), "x": rng.normal(size=3000)})
y = np.where(rng.random(3000) < 0.5, "a class of a long name", "another class of a long name")
warnings.simplefilter("ignore")
model = po.NaiveBayes(columns=po.Columns(keep="all")).fit(rows, y)
network = po.BayesianNetwork([("u", "v")])
states = [f"state {k}" for k in range(400)]
network.add_cpt("u", dict(zip(states, np.full(400, 1 / 400))))
network.add_cpt("v", {(state,): {"p": 0.25, "q": 0.75} for state in states})
import matplotlib.pyplot
folder = Path(sys.argv[1])
po.save(model, folder / "input")
rows.write_parquet(folder / "rows.parquet")
written = {
    "m.posteriori": lambda path: po.save(model, path),
    **{f"p{end}": lambda path: po.predict_to(model, rows, path, proba=True)
       for end in (".csv", ".csv.gz", ".ndjson", ".parquet", ".arrow")},
    "r.html": lambda path: po.report(model, rows[:200], y[:200], path, out_of_fold=model.predict_proba(rows[:200])),
    "e.html": lambda path: po.explore(model).save(path),
    **{f"n{end}": lambda path: po.write_network(network, path) for end in (".bif", ".xmlbif", ".net", ".json")},
}
for name in written:
    written[name](folder / name) if name in ("r.html", "e.html") else None  # caches are filled while there is space
    (folder / name).write_text("earlier")
before = {path.name: path.read_bytes() for path in folder.iterdir()}
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for name, write in written.items():
    try:
        write(folder / name)
    except OSError as error:
        assert error.filename == str(folder / name), (name, error)
        assert "\n" not in str(error), (name, error)
    else:
        raise AssertionError(f"{name} was written to a full disk")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, name
assert main(["predict", str(folder / "input"), str(folder / "rows.parquet"), "-o", str(folder / "p.csv")]) != 0
assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
"""


def test_what_is_written_to_a_full_disk_is_not_there(tmp_path):
    run = subprocess.run([sys.executable, "-c", _SCRIPT, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert "Traceback" not in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1  # the command line's sentence
    assert "p.csv" in run.stderr
