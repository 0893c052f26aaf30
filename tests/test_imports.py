"""What a process imports before it answers: the price of a short command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import posteriori
from posteriori.kernels.machine.compiling import machine_code

PENGUINS = Path(posteriori.__file__).parent / "datasets" / "penguins.csv"

# What takes 20 ms or more to import. A command imports of these what its list has, and no other.
HEAVY = {
    *("numpy", "polars", "pandas", "pyarrow", "narwhals", "matplotlib", "numba", "duckdb", "sqlglot", "rich"),
    *("scipy", "scipy.special", "scipy.linalg", "scipy.sparse", "scipy.optimize", "scipy.spatial", "scipy.stats"),
    *("sklearn", "sklearn.metrics", "sklearn.preprocessing", "sklearn.isotonic", "sklearn.ensemble", "joblib"),
    *("posteriori.networks", "posteriori.comparison", "posteriori.drop_in", "posteriori.classifiers"),
}
SCIKIT_LEARN = {"sklearn", "joblib", "narwhals", "scipy", "scipy.special", "scipy.linalg", "scipy.sparse"}
ESTIMATORS = {"numpy", "posteriori.classifiers", *SCIKIT_LEARN}
# Where the package has no machine code, Numba compiles the loops.
LOOPS = {"numba", "scipy", "scipy.linalg"} if machine_code() is None else set()
ALLOWED = {
    "": {*ESTIMATORS, "pandas", "pyarrow", "scipy.stats", "scipy.optimize", "scipy.spatial"},  # by scikit-learn
    "--help": set(),
    "fit": {*ESTIMATORS, *LOOPS, "polars", "rich"},
    "predict": {"numpy", "polars", *LOOPS},
    "explain": {*ESTIMATORS, *LOOPS, "polars", "rich"},
}

_RUN = """
import sys
if sys.argv[1:]:
    from posteriori.cli import main
    assert main() == 0
else:
    import posteriori as po
    po.NaiveBayes(), po.GenerativeClassifier()
print("imported:", *sys.modules)
"""
_LATER = """
import pandas, scipy.stats
assert scipy.stats.norm.cdf(0.0) == 0.5
import posteriori as po
assert po.NaiveBayes().fit(pandas.DataFrame({"a": [1.0, 2.0]}), ["u", "v"]).feature_names_in_ == ["a"]
from sklearn.utils import fixes
assert fixes.scipy.stats.norm is scipy.stats.norm and fixes.pd.DataFrame is pandas.DataFrame
"""  # what scikit-learn was imported without can be used as usual afterwards


def test_a_command_imports_only_what_it_needs(tmp_path):
    model = tmp_path / "penguins.posteriori"
    commands = [
        [],
        ["--help"],
        ["fit", PENGUINS, "--target", "species", "--output", model],
        ["predict", model, PENGUINS],
        ["explain", model, PENGUINS, "--row", "314"],
    ]
    for words in commands:
        code = _RUN + _LATER if "fit" in words else _RUN
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        imported = set(done.stdout.splitlines()[-1].split()) & HEAVY
        assert imported <= ALLOWED[words[0] if words else ""], words
