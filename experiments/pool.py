"""Measure the pool of generative models beside its members and discriminative models, for docs/pool.md.

Usage: python -m experiments.pool [--keep FILE] [--all]
       python -m experiments.pool --without NAME … [--rows N]
       python -m experiments.pool --only NAME … [--rows N]
       python -m experiments.pool --members [--rows N]

With --without or --only, the pool of the default candidates is compared with the pool of fewer or of other ones: two
folds of at most N rows of every table, whole and with half of the cells hidden. With --members, the pool is compared
with its best candidate, which is chosen in hindsight, by five assignments of at most N rows to two folds. With
--keep, scores are stored in a file, and those already in it are not measured again. With --all, every table of the
folder is measured and the result is printed; the page, which is about a fixed list of tables, stays as it is.

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository. Where
there is none, nothing is written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # two sets at a time, a thread each

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

import posteriori as po
from experiments.hidden_at_prediction import hidden
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import FOLDS, PAGE_TABLES, SEED, Table, data_folder, halves, in_first_half, ranks, tables
from posteriori.learning.folds import assign_folds
from posteriori.model_cost import ColumnSummary, TableSummary
from posteriori.model_selection.metrics import accuracy, fill_undefined, log_loss
from posteriori.registry import MODELS, pool_candidates

PAGE = DOCS / "pool.md"
POOL = "pool"
PEERS = {
    "logistic regression": "logistic",
    "random forest": "forest",
    "gradient boosting": "boosting",
    "scikit-learn GaussianNB": GaussianNB(),
    "scikit-learn LDA": LinearDiscriminantAnalysis(),
    "scikit-learn QDA": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
}
_CATEGORIES = TableSummary((ColumnSummary("one", "categorical", 2, 0, np.inf, -np.inf, True),), 100, 2, 0)
REPEATS = 5  # assignments of rows to folds
SHOWN = (POOL, "logistic regression", "random forest", "gradient boosting")


def models_for(table: Table) -> dict[str, Any]:
    """Return what is measured on a set: the pool, each member alone, and the peers."""
    members = {
        name: spec.make(n_jobs=1)
        for name, spec in pool_candidates().items()
        if table.n_numbers or spec.decline(_CATEGORIES) is None
    }
    peers = {name: po.comparison.discriminative(one).set_params(random_state=SEED) for name, one in PEERS.items()}
    return {POOL: po.GenerativeClassifier(n_jobs=1), **members, **peers}


def measure(table: Table) -> dict[str, tuple[float, float]]:
    """Return log-loss in nats and accuracy of each model, by the same five folds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear columns, categories that a fold has not met, few steps
        found = po.cross_validate(models_for(table), table.X, table.y, folds=FOLDS, random_state=SEED)
    return {
        name: (log_loss(found.y_true, posterior), accuracy(found.y_true, posterior))
        for name, posterior in found.posteriors.items()
    }


def summary(scores: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return a line a model: how it does over all sets that it was measured on."""
    names = list(dict.fromkeys(name for of_set in scores.values() for name in of_set))
    losses = np.array([[of_set.get(name, (np.nan, np.nan))[0] for name in names] for of_set in scores.values()])
    right = np.array([[of_set.get(name, (np.nan, np.nan))[1] for name in names] for of_set in scores.values()])
    everywhere = [position for position in range(len(names)) if not np.isnan(losses[:, position]).any()]
    rank = dict(zip(everywhere, ranks(losses[:, everywhere]).mean(axis=0), strict=True))
    measures = ["mean log-loss", "median", "mean rank", "mean accuracy", "pool has the lower log-loss"]
    lines = []
    pool = losses[:, names.index(POOL)]
    for position in sorted(range(len(names)), key=lambda position: np.nanmean(losses[:, position])):
        known = ~np.isnan(losses[:, position])
        n = known.sum()
        loss, share = losses[known, position], right[known, position]
        spread = share.std(ddof=1) / np.sqrt(n)
        better = "–" if names[position] == POOL else f"{(pool[known] < loss - 5e-4).mean():.0%}"
        order = f"{rank[position]:.1f}" if position in rank else "–"
        cells = [names[position], str(n), f"{loss.mean():.3f}", f"{np.median(loss):.3f}", order]
        lines.append([*cells, f"{share.mean():.3f} ± {spread:.3f}", better])
    return markdown_table(["model", "sets", *measures], lines)


def by_set(sets: list[Table], scores: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return log-loss · accuracy on each set, of the pool, its best member alone, and the strongest peers."""
    head = ["set", "rows", "features", "classes", "pool", "best member", *SHOWN[1:]]
    lines = []
    for table in sets:
        of_set = scores[table.name]
        best = min((name for name in pool_candidates() if name in of_set), key=lambda name: of_set[name][0])
        least = min(loss for loss, _ in of_set.values())
        cells = [_cell(of_set[POOL], least), f"{_cell(of_set[best], least)} ({best})"]
        cells += [_cell(of_set[name], least) for name in SHOWN[1:]]
        lines.append([table.name, str(len(table.y)), str(table.X.width), str(table.n_classes), *cells])
    return markdown_table(head, lines)


def by_half(sets: list[Table], scores: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return a line a model: its mean log-loss on the tables on which defaults are tuned, and on the others."""
    parts = halves(sets)
    head = [f"{half} ({len(part)} sets)" for half, part in parts.items()]
    lines = [
        [name, *(f"{np.mean([scores[table.name][name][0] for table in part]):.3f}" for part in parts.values() if part)]
        for name in SHOWN
    ]
    return markdown_table(["mean log-loss", *head], lines)


def _cell(score: tuple[float, float], least: float) -> str:
    text = f"{score[0]:.3f} · {score[1]:.3f}"
    return f"**{text}**" if score[0] <= least + 5e-4 else text


def measure_all(sets: list[Table], keep: Path | None) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the scores of each set, and measure those that the file does not have."""
    scores: dict[str, Any] = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    wanted = sorted((table for table in sets if table.name not in scores), key=lambda table: -len(table.y))
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:  # threads of polars do not survive a fork
        for table, found in zip(wanted, processes.map(measure, wanted), strict=True):
            scores[table.name] = found
            print(table.name, f"{found[POOL][0]:.3f}", flush=True)
            if keep is not None:
                keep.write_text(json.dumps(scores))
    return {table.name: {name: tuple(pair) for name, pair in scores[table.name].items()} for table in sets}


@dataclass(frozen=True)
class Choice:
    """Candidates of a pool: those named and no others, or the default ones without one; by default all of these."""

    only: tuple[str, ...] = ()
    without: str = ""

    def made(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which a pool tries these candidates."""
        changed = {}
        for name, spec in MODELS.items():
            if self.only and (spec.in_pool or name in self.only):
                changed[name] = replace(spec, in_pool=name in self.only, stands_in_for=())
            elif name == self.without:
                changed[name] = replace(spec, in_pool=False)
        return mock.patch.dict(MODELS, changed)


def measure_candidates(arguments: tuple[Table, Choice]) -> list[float]:
    """Return log-loss of whole rows and with half of the cells hidden, CPU seconds of a fit, and members: two folds."""
    table, choice = arguments
    y = table.y.to_numpy()
    classes, y_true = np.unique(y, return_inverse=True)
    fold = assign_folds(y_true, 2, seed=SEED)
    found = []
    for k in range(2):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        with choice.made(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            pool = po.GenerativeClassifier(n_jobs=1).fit(table.X[train], y[train])
            seconds = time.process_time() - start
        losses = []
        for rows in (table.X[test], hidden(table.X[test], 0.5, "cells", SEED)):
            posterior = np.zeros((len(test), len(classes)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of categories that the training rows lack
                posterior[:, np.searchsorted(classes, pool.classes_)] = pool.predict_proba(rows)
            losses.append(log_loss(y_true[test], fill_undefined(posterior, np.full(len(classes), 1 / len(classes)))))
        found.append([*losses, seconds, len(pool.members_)])
    return list(np.mean(found, axis=0))


def compare_candidates(sets: list[Table], choices: Mapping[str, Choice]) -> str:
    """Return a line per choice of candidates, relative to the first, as a Markdown table."""
    head = ["candidates", "log-loss", "first half", "second half", "fewer than 300 rows", "half hidden", "worst table"]
    halves_of = np.array([in_first_half(table.name) for table in sets])
    small = np.array([len(table.y) < 300 for table in sets])
    lines, first = [], None
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for title, choice in choices.items():
            found = np.array(list(processes.map(measure_candidates, [(table, choice) for table in sets])))
            first = found if first is None else first
            change = found[:, 0] - first[:, 0]
            worst = int(change.argmax())
            parts = (np.full(len(sets), True), halves_of, ~halves_of, small)
            means = [f"{found[part, 0].mean() / first[part, 0].mean() - 1:+.1%}" for part in parts]
            hidden_cells = f"{found[:, 1].mean() / first[:, 1].mean() - 1:+.1%}"
            cost, members = found[:, 2].sum() / first[:, 2].sum(), found[:, 3].mean()
            where = f"{sets[worst].name} {change[worst]:+.3f}"
            lines.append([title, *means, hidden_cells, where, f"{cost:.2f}", f"{members:.1f}"])
            print(lines[-1], flush=True)
    return markdown_table([*head, "CPU of the fits", "members kept"], lines)


def measure_members(table: Table) -> tuple[str, str, int, float, float, float]:
    """Return the set, its best candidate, rows, log-loss of that candidate, and the pool's minus it with its error."""
    models: dict[str, Any] = {name: spec.make(n_jobs=1) for name, spec in pool_candidates().items()}
    models[POOL] = po.GenerativeClassifier(n_jobs=1)
    losses = []
    for seed in range(REPEATS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = po.cross_validate(models, table.X, table.y, folds=2, random_state=seed)
        losses.append({name: log_loss(found.y_true, posterior) for name, posterior in found.posteriors.items()})
    of = {name: np.array([one[name] for one in losses]) for name in losses[0] if all(name in one for one in losses)}
    best = min(of.keys() - {POOL}, key=lambda name: of[name].mean())
    excess = of[POOL] - of[best]
    return table.name, best, len(table.y), of[best].mean(), excess.mean(), excess.std(ddof=1) / np.sqrt(REPEATS)


def compare_with_members(sets: list[Table]) -> str:
    """Return a line per set on which the pool has a higher log-loss than its best candidate, and a line on all."""
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        found = sorted(processes.map(measure_members, sets), key=lambda one: -one[4])
    beyond = [one for one in found if one[4] > one[5]]
    pool, best = (np.mean([one[3] + of_pool * one[4] for one in found]) for of_pool in (1, 0))
    lines = [
        [name, str(n), f"{best} {loss:.3f}", f"{excess:+.4f} ± {error:.4f}"]
        for name, best, n, loss, excess, error in found
        if excess > 0
    ]
    worse = sum(one[4] > 2 * one[5] and one[4] > 0 for one in found)
    text = f"{len(found)} sets: mean log-loss of the pool {pool:.4f}, of the best candidate in hindsight {best:.4f}; "
    text += f"the pool is lower on {sum(one[4] < 0 for one in found)}, higher by more than one standard error on "
    text += f"{len(beyond)}, by more than two on {worse}"
    return markdown_table(["set", "rows", "best candidate", "pool minus it"], lines) + "\n\n" + text


def main() -> None:
    """Measure what is not measured yet, and fill the page."""
    parser = argparse.ArgumentParser(description="Measure the pool of generative models, and write docs/pool.md.")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    parser.add_argument("--all", action="store_true", help="print the figures of every table; the page stays as it is")
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME", help="candidates to leave out, one by one")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="the candidates to try")
    parser.add_argument("--members", action="store_true", help="compare the pool with its best candidate")
    parser.add_argument("--rows", type=int, default=600, metavar="N", help="rows of a table, but for the page")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    if arguments.members:
        print(compare_with_members([one for one in tables(folder, None, arguments.rows) if len(one.y) >= 40]))
        return
    if arguments.without or arguments.only:
        choices = {"all": Choice()}
        choices |= {"only " + ", ".join(arguments.only): Choice(only=tuple(arguments.only))} if arguments.only else {}
        choices |= {f"without {one}": Choice(without=one) for one in arguments.without}
        wide = [table for table in tables(folder, None, arguments.rows) if len(table.y) >= 40]
        print(compare_candidates(wide, choices))
        return
    start = time.perf_counter()
    sets = list(tables(folder, None if arguments.all else PAGE_TABLES))
    scores = measure_all(sets, arguments.keep)
    blocks = {"summary": summary(scores), "by half": by_half(sets, scores), "by set": by_set(sets, scores)}
    for name, text in blocks.items():
        if arguments.all:
            print(text)
        else:
            replace_block(name, text, PAGE)
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
