"""Measure the pool by rows, columns and classes, what a fit announces, and its log-loss within time budgets.

Usage: python -m experiments.curves --keep FILE [--models NAME …] [--again NAME …] [--tables NAME …] [--limit SECONDS]
       [--write]

The curves are of drawn tables of numbers and strings, with interactions and missing numbers; 10,000 further rows are
predicted. What a fit announces, and the budgets, are measured on real tables too: 70 % of at most 50,000 rows train,
and the others test. Each fit runs in a process of its own and in one thread. Scores are stored in a file, and those
already in it are not measured again, except for the models named by --again. A rival that takes longer than the limit
is left out. With --write, the figures are put into docs/scale.md; without it they are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from sklearn.model_selection import train_test_split

import posteriori as po
from experiments.larger_tables import MOST_ROWS, TEST_SHARE, TUNED, make
from experiments.machine import Moment, limits
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import SEED, data_folder, tables
from experiments.rivals import POOL
from posteriori.model_cost import Work
from posteriori.model_selection.metrics import log_loss

PAGE = DOCS / "scale.md"
ESTIMATE, FOREST = "estimate", "forest mixed"
RIVALS = (TUNED, "CatBoost")
SIZES = {
    "rows": [(n, 20, 2) for n in (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000)],
    "columns": [(5_000, d, 2) for d in (5, 20, 80, 300)],
    "classes": [(10_000, 20, n_classes) for n_classes in (2, 5, 15, 50)],
}
N_TEST = 10_000
N_HIDDEN, GAPS = 6, 0.05
PIECE = 1 << 16  # rows drawn at a time, so that drawing takes little memory
ANNOUNCED = ("satimage", "letter", "adult", "krkopt", "connect_4")
BUDGETED = (*ANNOUNCED, "electricity", "covertype_part", "fars", "diamonds", "magic")
BUDGETS = (1, 3, 10, 30)
WITHIN = {f"pool within {budget} s": budget for budget in BUDGETS}
MODELS = (ESTIMATE, POOL, *RIVALS, *WITHIN)
CLOSE, OVERRUN = 1.5, 1.3  # factors: of an estimate, and of a budget
Scores = dict[str, dict[str, dict[str, Any]]]  # by table and model


def title(size: tuple[int, int, int]) -> str:
    """Return the name of a drawn table of some rows, columns and classes."""
    n, d, n_classes = size
    return f"{n}x{d}x{n_classes}"


DRAWN = {title(size): size for sizes in SIZES.values() for size in sizes}


def draw(n: int, d: int, n_classes: int, seed: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Return n rows of d columns, a third of them strings and the others numbers, and their labels.

    Six hidden numbers make the columns depend on each other; the label depends on products and absolute values of them
    too. Every fourth column of numbers lacks 5 % of its cells.
    """
    rules, rng = np.random.default_rng(12), np.random.default_rng(seed)
    n_strings = d // 3
    of_class = rules.normal(0, 0.7, (3 * N_HIDDEN, n_classes))
    loadings = rules.normal(0, 1.0, (N_HIDDEN, d - n_strings)) * (rules.random((N_HIDDEN, d - n_strings)) < 0.4)
    preferences = [rules.normal(0, 0.7, (N_HIDDEN, int(k))) for k in np.geomspace(3, 40, n_strings)]
    frames, labels = [], []
    for start in range(0, n, PIECE):
        m = min(PIECE, n - start)
        hidden = rng.normal(size=(m, N_HIDDEN))
        known = np.hstack([hidden, hidden * np.roll(hidden, 1, axis=1), np.abs(hidden) - 0.8])
        labels.append((known @ of_class + rng.gumbel(size=(m, n_classes))).argmax(axis=1))
        numbers = hidden @ loadings + rng.normal(0, 1.2, (m, d - n_strings))
        numbers[:, 1::4] = np.exp(0.5 * numbers[:, 1::4])
        numbers[:, 2::4] = np.round(3 * numbers[:, 2::4])
        numbers[:, ::4][rng.random(numbers[:, ::4].shape) < GAPS] = np.nan
        columns = {f"x{j}": pl.Series(column).fill_nan(None) for j, column in enumerate(numbers.T)}
        for j, preference in enumerate(preferences):
            chosen = (hidden @ preference + rng.gumbel(size=(m, preference.shape[1]))).argmax(axis=1)
            columns[f"c{j}"] = "value " + pl.Series(chosen).cast(pl.String)
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames, rechunk=True), np.array([f"class {k}" for k in range(n_classes)])[np.concatenate(labels)]


def read(name: str) -> tuple[pl.DataFrame, np.ndarray, pl.DataFrame, np.ndarray]:
    """Return the cells and labels that train, and those that test."""
    if name in DRAWN:
        return *draw(*DRAWN[name], 0), *draw(N_TEST, *DRAWN[name][1:], 1)
    folder = data_folder()
    assert folder is not None
    (table,) = tables(folder, [name], MOST_ROWS)
    y = table.y.to_numpy()
    train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, random_state=SEED, stratify=y)
    return table.X[train], y[train], table.X[test], y[test]


class _Estimated(Exception):
    """Ends a fit once it has estimated its work."""


def estimated(model: Any, X: pl.DataFrame, y: np.ndarray) -> tuple[float, float]:
    """Return the seconds that a fit announces before it begins, and those without forests."""
    found: list[tuple[float, float]] = []

    def announce(work: Work, what: str, _: str) -> None:
        share = re.search(r"\((\d+)% of it if a trial", what)
        found.append((work.seconds, work.seconds * (int(share[1]) / 100 if share else 1.0)))
        raise _Estimated

    with mock.patch.object(Work, "announce", announce), suppress(_Estimated):
        model.fit(X, y)
    return found[0]


def measure(name: str, table: str) -> dict[str, Any]:
    """Return the log-loss of test rows, wall and CPU seconds of fit and predict_proba, and the peak memory in MB.

    Of the estimate, return its seconds, and those without forests.
    """
    X, y, X_test, y_test = read(table)
    if name == ESTIMATE:
        seconds, without = estimated(make(POOL, 1), X, y)
        return {"seconds": seconds, "without": without}
    model = make(POOL if name in WITHIN else name, 1)
    if name == POOL or name in WITHIN:  # loads the machine code
        make(POOL, 1).fit(X.head(2000), y[:2000]).predict_proba(X_test.head(100))
        model.set_params(time_budget=WITHIN.get(name))
    begun = Moment.now()
    model.fit(X, y)
    fit, peak, then = begun.spent(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, Moment.now()
    posterior = model.predict_proba(X_test)
    found = {"fit": fit, "peak": peak, "predict": then.spent(), "others": begun.others()}
    skipped = {"skipped": model.skipped_} if isinstance(model, po.GenerativeClassifier) else {}
    places = np.searchsorted(model.classes_, y_test)
    return {"loss": log_loss(places, posterior), **found, **skipped}


def measure_apart(name: str, table: str, limit: float) -> dict[str, Any]:
    """Measure in a process of its own, in which every library reads the number of threads when it is loaded."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "experiments.curves", "--one", name, table],
            env=os.environ | limits(1),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=limit if name in RIVALS else None,
        )
    except subprocess.TimeoutExpired:
        return {"stopped": limit}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def jobs() -> list[tuple[str, str]]:
    """Return every model and table that are measured together."""
    curves = [(name, table) for name in (ESTIMATE, POOL, *RIVALS) for table in DRAWN]
    real = [(name, table) for table in BUDGETED for name in (ESTIMATE, *WITHIN, POOL)]
    return curves + real


def fill(scores: Scores, wanted: Iterable[tuple[str, str]], limit: float, keep: Path) -> None:
    """Measure what is not in the scores yet, and store each score at once."""
    for name, table in wanted:
        found = scores.setdefault(table, {})
        if name not in found:
            found[name] = measure_apart(name, table, limit)
            print(name, table, found[name], flush=True)
            keep.write_text(json.dumps(scores, indent=1))


def curve(scores: Scores, sizes: Iterable[tuple[int, int, int]]) -> str:
    """Return one line per size: CPU seconds of each model, the log-loss of new rows, and the memory of the pool."""
    shown, lines = (POOL, *RIVALS), []
    for size in sizes:
        found = scores.get(title(size), {})
        peaks = [_of(found.get(name), lambda one: f"{one['peak'] / 1e3:.2f}") for name in (POOL, TUNED)]
        cpu = [_of(found.get(name), lambda one: f"{one['fit'][1]:.1f}") for name in shown]
        loss = [_of(found.get(name), lambda one: f"{one['loss']:.4f}") for name in shown]
        lines.append([*(f"{count:,}" for count in size), *cpu, *loss, *peaks])
    head = [*(f"CPU s, {name}" for name in shown), *(f"log-loss, {name}" for name in shown)]
    return markdown_table(["rows", "columns", "classes", *head, f"GB, {POOL}", f"GB, {TUNED}"], lines)


def _of(found: dict[str, Any] | None, shown: Callable[[dict[str, Any]], str]) -> str:
    return "–" if found is None or "stopped" in found else shown(found)


def growth(scores: Scores) -> str:
    """Return by which power of the rows the CPU time of the pool grows between adjacent sizes."""
    found = [(size[0], scores.get(title(size), {}).get(POOL)) for size in SIZES["rows"]]
    known = [(n, one["fit"][1]) for n, one in found if one is not None]
    parts, steeper = [], []
    for (n, cpu), (more, longer) in pairwise(known):
        step = f"{n:,} to {more:,} rows"
        parts.append(f"{longer / cpu:.1f}× from {step} ({more / n:.1f}× the rows)")
        if longer / cpu > more / n:
            steeper.append(step)
    rises = f"Its CPU time rises faster than the rows from {', '.join(steeper)}." if steeper else ""
    return f"The pool takes {'; '.join(parts)}. {rises or 'So twice the rows never take more than twice the CPU time.'}"


def announced(scores: Scores) -> str:
    """Return the seconds that fits announce beside those they take."""
    lines = []
    for table in (*DRAWN, *BUDGETED):
        found = scores.get(table, {})
        if ESTIMATE in found and POOL in found:
            forest = FOREST not in found[POOL]["skipped"]
            estimate, taken = found[ESTIMATE]["seconds" if forest else "without"], found[POOL]["fit"][1]
            name = "{:,} × {}, {} classes".format(*DRAWN[table]) if table in DRAWN else table
            cells = [f"{found[ESTIMATE][which]:.1f}" for which in ("seconds", "without")]
            lines.append([name, *cells, "yes" if forest else "no", f"{taken:.1f}", f"{estimate / taken:.2f}"])
    far = [line[0] for line in lines if not 1 / CLOSE <= float(line[-1]) <= CLOSE]
    head = ["table", "announced, s", "without forests, s", "forests joined", "CPU s", "announced / CPU"]
    within = f"{len(lines) - len(far)} of {len(lines)} estimates are within a factor of {CLOSE:g}"
    others = f"; the others are those of {'; '.join(far)}." if far else "."
    return markdown_table(head, lines) + f"\n\n{within}{others}"


def budgets(scores: Scores) -> str:
    """Return the log-loss of test rows and the seconds of the clock within each budget."""
    lines, worse, overrun = [], [], []
    for table in BUDGETED:
        known = {name: scores.get(table, {}).get(name) for name in (*WITHIN, POOL)}
        cells = [_of(one, lambda one: f"{one['loss']:.4f} ({one['fit'][0]:.1f} s)") for one in known.values()]
        lines.append([table, *cells])
        found = [(name, one) for name, one in known.items() if one is not None]
        for (_, before), (name, after) in pairwise(found):
            if after["loss"] > before["loss"] + 5e-5:
                worse.append(f"{table} ({name}: {after['loss'] / before['loss'] - 1:+.1%})")
        for name, one in found:
            if name in WITHIN and one["fit"][0] > OVERRUN * WITHIN[name]:
                overrun.append(f"{table} ({name}: {one['fit'][0] / WITHIN[name]:.1f}×)")
    notes = f"Worse than within less time: {', '.join(worse) or 'none'}."
    notes += f" Longer than {OVERRUN:g} times the budget: {', '.join(overrun) or 'none'}."
    head = ["table", *(f"{budget} s" for budget in BUDGETS), "no budget"]
    return markdown_table(head, lines) + "\n\n" + notes


def blocks(scores: Scores) -> dict[str, str]:
    """Return the text of each block of the page, by its name."""
    curves = {f"pool by {name}": curve(scores, sizes) for name, sizes in SIZES.items()}
    return curves | {"growth": growth(scores), "announced": announced(scores), "budgets": budgets(scores)}


def main() -> None:
    """Measure what is not measured yet, and print the figures or fill the page."""
    parser = argparse.ArgumentParser(description="Measure the pool by rows, columns and classes, and within budgets.")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="NAME", help="only these models")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these models again")
    parser.add_argument("--tables", nargs="*", metavar="NAME", help="measure these tables only")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="of a rival")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/scale.md")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "TABLE"), help="measure one fit and print it")
    arguments = parser.parse_args()
    if data_folder() is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    if arguments.one:
        warnings.simplefilter("ignore")  # of categories that the training rows do not have
        print(json.dumps(measure(*arguments.one)))
        return
    if arguments.keep is None:
        parser.error("name the file of scores: --keep FILE")
    keep: Path = arguments.keep
    scores: Scores = json.loads(keep.read_text()) if keep.exists() else {}
    for found in scores.values():
        for name in arguments.again:
            found.pop(name, None)
    chosen = [
        (name, table)
        for name, table in jobs()
        if name in arguments.models and (arguments.tables is None or table in arguments.tables)
    ]
    fill(scores, chosen, arguments.limit, keep)
    for name, text in blocks(scores).items():
        if arguments.write:
            replace_block(name, text, PAGE)
        else:
            print(f"{name}:\n\n{text}\n")


if __name__ == "__main__":
    main()
