"""Counts of words against scikit-learn's MultinomialNB: `make bench` fills RESULTS.md.

Usage: python -m benchmarks.text [--quick]   (--quick: a tenth of the rows, to see that it runs)

The documents are drawn from a Zipf law, p(word of rank r) ∝ 1 / (r + 10), as a CSR matrix of 64-bit integers, which is
what CountVectorizer returns.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn import naive_bayes

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report
from posteriori import drop_in

N_WORDS = 100_000
WORDS_PER_DOCUMENT = 150  # of which about 100 differ
MB = 1 << 20


def documents(n: int, seed: int = 0) -> csr_array:
    """Return the counts of the words of n documents, (n, 1e5)."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1.0 / (np.arange(N_WORDS) + 10.0))
    words = np.searchsorted(cumulative, rng.random(n * WORDS_PER_DOCUMENT) * cumulative[-1])
    row = np.repeat(np.arange(n, dtype=np.int32), WORDS_PER_DOCUMENT)
    counts = coo_array((np.ones(len(row), np.int64), (row, words.astype(np.int32))), (n, N_WORDS)).tocsr()
    counts.sum_duplicates()
    return counts


def size_of(X: csr_array) -> int:
    """Return the bytes of a CSR matrix."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def peak_beyond_input(n: int, n_classes: int, ours: bool) -> int:
    """Return the bytes by which a process grows at most in fit and predict_log_proba."""
    name, module = ("NaiveBayes", "posteriori") if ours else ("MultinomialNB", "sklearn.naive_bayes")
    arguments = 'distributions="multinomial"' if ours else ""
    code = f"""
import threading, time
import numpy as np
from benchmarks.text import documents
from {module} import {name}
X = documents({n})
y = np.arange({n}) % {n_classes}
model = {name}({arguments})
model.fit(X[:500], y[:500]).predict_log_proba(X[:500])  # imports and compiles
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
start, most, done = resident(), [0], threading.Event()
def watch():
    while not done.is_set():
        most[0] = max(most[0], resident())
        time.sleep(0.001)
watcher = threading.Thread(target=watch)
watcher.start()
model.fit(X, y)
model.predict_log_proba(X)
done.set()
watcher.join()
print(most[0] - start)
"""
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def rows(quick: bool) -> list[Row]:
    """Measure fit, prediction and memory, with 2 and with 20 classes."""
    n = 10_000 if quick else 100_000
    X = documents(n)
    found = []
    size = f"{n:.0e}×1e5, {X.nnz / 1e6:.1f}e6 stored cells".replace("e+0", "e")
    for n_classes in (2, 20):
        y = np.arange(n) % n_classes
        theirs, what = naive_bayes.MultinomialNB().fit(X, y), f"{size}, {n_classes} classes"
        for name, ours in (
            ("NaiveBayes", po.NaiveBayes(distributions="multinomial").fit(X, y)),
            ("drop_in.MultinomialNB", drop_in.MultinomialNB().fit(X, y)),
        ):
            seconds = alternately(lambda ours=ours, y=y: ours.fit(X, y), lambda theirs=theirs, y=y: theirs.fit(X, y), 5)
            found.append(faster(f"{name}.fit, {what}", *seconds, 3, "MultinomialNB"))
            seconds = alternately(
                lambda ours=ours: ours.predict_log_proba(X), lambda theirs=theirs: theirs.predict_log_proba(X), 5
            )
            found.append(faster(f"{name}.predict_log_proba, {what}", *seconds, 2, "MultinomialNB"))
        held, grown = size_of(X), peak_beyond_input(n, n_classes, ours=True)
        other = peak_beyond_input(n, n_classes, ours=False)
        found.append(
            Row(
                f"peak memory of fit and predict_log_proba beyond the input, {what}",
                f"{grown / MB:.0f} MB",
                f"MultinomialNB {other / MB:.0f} MB; input {held / MB:.0f} MB",
                f"{1 + grown / held:.2f}× the input",
                "≤ 1.2×",
                grown <= 0.2 * held,
            )
        )
    return found


if __name__ == "__main__":
    report("Counts of words", rows)
