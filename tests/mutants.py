"""Change one sign, index or axis of the source at a time, and see whether the tests notice.

``python -m tests.mutants`` tries each mutant of `MUTANTS` with the tests of its folders, in a copy of the checkout. A
mutant that survives there is tried with all quick tests (``--all`` does so at once). It exits with 1 if one survives.

``python -m tests.mutants --sampled 200 --from FOLDER`` draws mutants from all lines that the notes of `tests.quick`
know tests of, and tries each with these tests: quick ones first, then the others, in both the cheapest first, up to
`_PATIENCE` seconds. It prints which are caught by a quick test, which by another one only, and which by none.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.quick import NOTES, Notes, listed

_ROOT = Path(__file__).parents[1]
_PATIENCE = 30.0  # seconds of tests, as noted, for a sampled mutant: of quick ones, and of others


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
    Mutant("program/densities.py", "0.5 * (nu + counts)", "0.5 * (nu - counts)", "sql"),
    Mutant("kernels/loops/bayes.py", "term = log_peak[z, j] - 0.5", "term = log_peak[z, j] + 0.5", "kernels densities"),
)


def survives(mutant: Mutant, checkout: Path, tests: list[str]) -> bool:
    """Return whether tests pass although the mutant is in a copy of the checkout."""
    file = checkout / "src" / "posteriori" / mutant.path
    before = file.read_text("utf-8")
    if before.count(mutant.old) != 1:
        raise ValueError(f"{mutant.path}: {mutant.old!r} occurs {before.count(mutant.old)} times")
    return passes_as(file, before.replace(mutant.old, mutant.new), checkout, tests)


def passes_as(file: Path, text: str, checkout: Path, tests: list[str], *options: str) -> bool:
    """Return whether tests pass while a file of the checkout has another text."""
    before = file.read_text("utf-8")
    file.write_text(text, "utf-8")
    try:
        path = os.pathsep.join([str(checkout / "src"), str(checkout)])
        cache = os.environ.get("NUMBA_CACHE_DIR", str(_ROOT / "build" / "kernels"))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, *tests]
        done = subprocess.run(
            command,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            check=False,
            timeout=600,
        )
    except subprocess.TimeoutExpired:  # it runs for ever: noticed
        return False
    finally:
        file.write_text(before, "utf-8")
    output = done.stdout + done.stderr
    if done.returncode != 0 and b" failed" not in output and b"rror" not in output:  # nothing was run
        raise RuntimeError(output.decode())
    return done.returncode == 0


# --- Sampled mutants

_SWAPPED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


def mutants_of(source: str) -> list[tuple[int, str, str]]:
    """Return the mutants of a file: the line, the change in words, and the text of the file with it."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(row, column):  # of ast, which counts bytes
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    found = []

    def swap(operator, left, right):
        old, new = _SWAPPED[type(operator)]
        begin, end = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
        place = re.search(rf"(?<![\w=<>!*/+-]){re.escape(old)}(?![\w=<>*/])", source[begin:end])
        if place:
            text = source[: begin + place.start()] + new + source[begin + place.end() :]
            row = source.count("\n", 0, begin + place.start()) + 1
            found.append((row, f"{old} → {new}", text))

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
            if not any(
                isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
            ):
                swap(node.op, node.left, node.right)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
            swap(node.ops[0], node.left, node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            swap(node.op, *node.values[:2])
        elif isinstance(node, ast.keyword) and node.arg == "axis" and isinstance(node.value, ast.Constant):
            begin = at(node.value.lineno, node.value.col_offset)
            end = at(node.value.end_lineno, node.value.end_col_offset)
            other = "1" if source[begin:end] == "0" else "0"
            found.append(
                (node.value.lineno, f"axis={source[begin:end]} → {other}", source[:begin] + other + source[end:])
            )
    return found


def sample(n: int, notes: Notes, seed: int) -> list[tuple[str, int, str, str]]:
    """Draw mutants from the lines of functions that tests reach: file, line, words, text."""
    reached = notes.lines()
    drawn = [
        (file, row, words, text)
        for file in sorted({file for file, _ in reached})
        if (_ROOT / file).exists()
        for row, words, text in mutants_of((_ROOT / file).read_text("utf-8"))
        if (file, row) in reached
    ]
    return random.Random(seed).sample(drawn, min(n, len(drawn)))


def try_sampled(n: int, notes: Notes, checkout: Path, seed: int) -> int:
    """Try sampled mutants, print what became of each and of all, and return how many survive."""
    full, mutants = listed().of(notes.tests), sample(n, notes, seed)
    reached = notes.tests_by_line([(path, row) for path, row, _, _ in mutants])
    counts = {"quick": 0, "full": 0, "SURVIVES": 0}
    for number, (path, row, words, text) in enumerate(mutants, 1):
        tests = sorted(reached[path, row], key=lambda i: notes.seconds[i])
        fate = "SURVIVES"
        for kind in ("quick", "full"):
            of_kind = [i for i in tests if (notes.tests[i] in full) == (kind == "full")]
            spent, chosen = 0.0, []
            for i in of_kind:
                spent += notes.seconds[i]
                if spent > _PATIENCE and chosen:
                    break
                chosen.append(notes.tests[i])
            if chosen and not passes_as(checkout / path, text, checkout, chosen, "-n", "0", "-m", ""):
                fate = kind
                break
        counts[fate] += 1
        print(f"{number:3d} {fate:8s} {path}:{row}: {words}", flush=True)
    print("caught by a quick test: {quick}, by another one only: {full}, by none: {SURVIVES}".format(**counts))
    return counts["SURVIVES"]


def main() -> int:
    """Try every mutant, print what became of it, and return 1 if one survives."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run all quick tests for each mutant")
    parser.add_argument("--sampled", type=int, metavar="N", help="draw so many mutants from all lines")
    parser.add_argument("--from", dest="folder", type=Path, help="the notes of tests.quick", default=NOTES)
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--first", type=int, default=1, help="the number of the first mutant to try")
    options = parser.parse_args()
    survivors = 0
    checkout = _ROOT / "build" / f"mutants{options.seed or ''}"  # a fixed place, for which compiled kernels are kept
    shutil.rmtree(checkout, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "build", ".hypothesis", ".mypy_cache")
    shutil.copytree(_ROOT, checkout, ignore=ignored)
    if options.sampled:
        return int(try_sampled(options.sampled, Notes(options.folder), checkout, options.seed) > 0)
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
