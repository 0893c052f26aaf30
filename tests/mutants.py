"""Change one sign, index or axis of the source at a time, and see whether the quick tests notice.

``python -m tests.mutants`` tries each mutant with the tests of its folders, in a copy of the checkout. A mutant that
survives there is tried with all quick tests (``--all`` does so at once). It exits with 1 if one survives.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """A text of a file of the package, which occurs once, what takes its place, and the tests that should notice."""

    path: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant(
        "statistics/moments.py",
        "self.scatter.sum(axis=0) + between",
        "self.scatter.sum(axis=0) - between",
        "statistics",
    ),
    Mutant(
        "statistics/moments.py",
        "share = other.weight / np.where(weight > 0",
        "share = self.weight / np.where(weight > 0",
        "statistics",
    ),
    Mutant(
        "statistics/counts.py",
        "axis=1) - self.table[:, starts]",
        "axis=1) + self.table[:, starts]",
        "statistics densities",
    ),
    Mutant(
        "densities/categorical.py", "+ (widths - 1) * float(self.alpha)", "+ widths * float(self.alpha)", "densities"
    ),
    Mutant(
        "densities/categorical.py",
        "np.minimum(position, cardinality - 1) + 1",
        "np.minimum(position, cardinality - 1)",
        "densities",
    ),
    Mutant(
        "densities/gaussian.py", "known = np.maximum(weight - 1.0, 0.0)", "known = np.maximum(weight, 0.0)", "densities"
    ),
    Mutant(
        "densities/multivariate.py",
        "total -= 0.5 * (distance + weight",
        "total -= 0.5 * (distance - weight",
        "densities classifiers",
    ),
    Mutant(
        "densities/multivariate_parameters.py",
        "return np.asarray(peak - 0.5 * distance)",
        "return np.asarray(peak - distance)",
        "densities",
    ),
    Mutant("learning/importance.py", "@ share**2 * (1.0", "@ share * (1.0", "learning"),
    Mutant(
        "learning/weights.py",
        "np.where(known.values[0] == 0, codes",
        "np.where(known.values[0] != 0, codes",
        "learning",
    ),
    Mutant("learning/backoff.py", "+ np.log(multiplier) - multiplier", "- np.log(multiplier) - multiplier", "learning"),
    Mutant(
        "model/pool.py",
        "score -= score.max(axis=1, keepdims=True)",
        "score -= score.max(axis=0, keepdims=True)",
        "classifiers laws",
    ),
    Mutant(
        "model/marginals.py",
        "np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])",
        "np.cumsum(terms[:0:-1], axis=0, out=after[1:])",
        "learning explain plotting",
    ),
    Mutant(
        "model_selection/metrics.py",
        "cell = y_true * n_classes + posterior",
        "cell = y_true + n_classes * posterior",
        "model_selection",
    ),
    Mutant(
        "model_selection/metrics.py",
        "correct = posterior.argmax(axis=1) == y_true",
        "correct = posterior.argmin(axis=1) == y_true",
        "model_selection",
    ),
    Mutant(
        "networks/learning/family_scores.py",
        "return 0.5 * math.log(max(n, 1.0))",
        "return math.log(max(n, 1.0))",
        "networks",
    ),
    Mutant("networks/graph/dag.py", "- {x})", ")", "networks"),
    Mutant("tables/schema.py", "past.lookup.get(cell, 0) - 1", "past.lookup.get(cell, 0)", "tables classifiers"),
    Mutant(
        "explain/sums.py",
        "return self.prior + sum(self.factors.values())",
        "return sum(self.factors.values())",
        "explain",
    ),
    Mutant(
        "javascript/evaluator/arrays.js", "return peak + Math.log(total)", "return peak - Math.log(total)", "javascript"
    ),
    Mutant("sql/factors.py", "literal(0.5 * (degrees + n_columns))", "literal(0.5 * (degrees - n_columns))", "sql"),
    Mutant("kernels/loops/bayes.py", "term = log_peak[z, j] - 0.5", "term = log_peak[z, j] + 0.5", "kernels densities"),
)


def survives(mutant: Mutant, checkout: Path, tests: list[str]) -> bool:
    """Return whether tests pass although the mutant is in a copy of the checkout."""
    file = checkout / "src" / "posteriori" / mutant.path
    before = file.read_text("utf-8")
    if before.count(mutant.old) != 1:
        raise ValueError(f"{mutant.path}: {mutant.old!r} occurs {before.count(mutant.old)} times")
    file.write_text(before.replace(mutant.old, mutant.new), "utf-8")
    try:
        path = os.pathsep.join([str(checkout / "src"), str(checkout)])
        cache = os.environ.get("NUMBA_CACHE_DIR", str(_ROOT / "build" / "kernels"))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(
            command,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            check=False,
        )
    finally:
        file.write_text(before, "utf-8")
    if done.returncode != 0 and b" failed" not in done.stdout and b" error" not in done.stdout:  # nothing was run
        raise RuntimeError(done.stdout.decode() + done.stderr.decode())
    return done.returncode == 0


def main() -> int:
    """Try every mutant, print what became of it, and return 1 if one survives."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run all quick tests for each mutant")
    parser.add_argument("--first", type=int, default=1, help="the number of the first mutant to try")
    options = parser.parse_args()
    survivors = 0
    checkout = _ROOT / "build" / "mutants"  # a fixed place, for which compiled kernels are kept
    shutil.rmtree(checkout, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "build", ".hypothesis", ".mypy_cache")
    shutil.copytree(_ROOT, checkout, ignore=ignored)
    for number, mutant in list(enumerate(MUTANTS, 1))[options.first - 1 :]:
        begun = time.monotonic()
        folders = [f"tests/{name}" for name in mutant.tests.split()]
        lives = survives(mutant, checkout, [] if options.all else folders)
        if lives and not options.all:
            lives = survives(mutant, checkout, [])
        survivors += lives
        seconds = time.monotonic() - begun
        fate = "SURVIVES" if lives else "caught"
        print(f"{number:2d} {fate:8s} {seconds:4.0f} s  {mutant.path}: {mutant.old} → {mutant.new}", flush=True)
    print(f"{survivors} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
