"""What an installation and the start of a command cost, beside an earlier commit: fills RESULTS.md.

Usage: python -m benchmarks.installation [--quick]   (--quick: of this state only, and nothing is written)

The commit before machine code was a module (`BEFORE`), which needs Numba at run time, is installed from a clone, and
so is HEAD, in fresh environments, with pip's cache filled. Seconds of pip are those of the clock; of a command, the
least CPU seconds of four runs; of a call of a kernel, the least of twenty runs of ten thousand calls.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.timing import Row, report, show

ROOT = Path(__file__).parents[1]
BEFORE = "9e8a4244"
_CLASSIFIER = "import posteriori as po; po.GenerativeClassifier()"
_FIT = "import posteriori as po, posteriori.datasets as d; po.{}().fit(d.load_penguins(), 'species')"
_CALLS = """
import json, timeit
import numpy as np
from posteriori import kernels
from posteriori.kernels.loops import summing
codes, component, weight = np.ones((1, 2), np.uint8), np.zeros(1, np.int32), np.ones(1)
x, shift, counts = np.ones((1, 2)), np.zeros((2, 2)), np.zeros((2, 6))
calls = {
    "add_counts": lambda: kernels.add_counts(codes, component, weight, np.array([0, 3]), counts),
    "add_moments": lambda: kernels.add_moments(x, component, weight, shift, shift.copy(), shift.copy(), shift.copy()),
    "normalise": lambda: kernels.normalise(x),
}
for call in calls.values():
    kernels.normalise(np.ones((2000, 2)))  # with many rows: in the state before, a few ran without machine code
    call()
print(json.dumps({name: min(timeit.repeat(call, number=10_000, repeat=20)) / 10_000 for name, call in calls.items()}))
"""


def _run(words: list[str], **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_"))}
    done = subprocess.run(words, env=environment | settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[:4]} failed: {done.stderr[-2000:]}")
    return done.stdout


def _cpu(words: list[str]) -> float:
    """Return the least CPU seconds of four runs of a process."""
    taken = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(words, OPENBLAS_NUM_THREADS="1")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def measured(commit: str, folder: Path) -> dict[str, float]:
    """Install a commit, and return seconds and megabytes by what they are of."""
    source, environment = folder / "source", folder / "environment"
    _run(["git", "clone", "--quiet", str(ROOT), str(source)])
    _run(["git", "-C", str(source), "checkout", "--quiet", commit])
    venv.create(environment, with_pip=True)
    python, posteriori = str(environment / "bin" / "python"), str(environment / "bin" / "posteriori")
    begun = time.perf_counter()
    _run([python, "-m", "pip", "install", "--quiet", str(source)])
    found = {"pip install": time.perf_counter() - begun}
    penguins, model = str(source / "src/posteriori/datasets/penguins.csv"), str(folder / "penguins.posteriori")
    fit = [posteriori, "fit", penguins, "--target", "species", "--output", model]
    _run(fit)  # writes the files of bytecode
    files = [path for path in environment.rglob("*") if path.is_file() and not path.is_symlink()]
    found["environment"] = sum(path.stat().st_size for path in files) / 1e6
    found["import and a classifier"] = _cpu([python, "-c", _CLASSIFIER])
    found["naive Bayes: import and fit"] = _cpu([python, "-c", _FIT.format("NaiveBayes")])
    found["pool: import and fit"] = _cpu([python, "-c", _FIT.format("GenerativeClassifier")])
    found["posteriori fit"] = _cpu(fit)
    found["posteriori explain"] = _cpu([posteriori, "explain", model, penguins, "--row", "314"])
    found["posteriori predict"] = _cpu([posteriori, "predict", model, penguins])
    return found | json.loads(_run([python, "-c", _CALLS], OPENBLAS_NUM_THREADS="1"))


_LIMITS = {"import and a classifier": 0.8, "posteriori fit": 2.0, "posteriori explain": 1.5, "posteriori predict": 0.8}


def rows(quick: bool) -> list[Row]:
    """Return the lines of the table."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        now = measured("HEAD", Path(ours))
        before = now if quick else measured(BEFORE, Path(theirs))
    found = []
    for name, figure in now.items():
        text = "{:.0f} MB" if name == "environment" else ""
        ratio = figure / before[name]
        limit = _LIMITS.get(name)
        most = 0.6 if name == "pip install" else 1.0
        cells = [text.format(one) if text else show(one) for one in (figure, before[name])]
        target = f"≤ {show(limit)}" if limit else f"≤ {most:g}×"
        is_met = figure <= limit if limit else ratio <= most
        found.append(Row(name, cells[0], f"commit {BEFORE} {cells[1]}", f"{ratio:.2f}×", target, is_met))
    return found


if __name__ == "__main__":
    report("Installation and start", rows)
