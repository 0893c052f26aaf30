"""What classifiers that the pool does not have would add to it, on both halves of the tables.

Usage: python -m experiments.ablations [NAME …] [--tables TABLE …] [--rows N] [--keep FOLDER] [--write]

The candidates of the pool and the classifiers of `CANDIDATES` predict the same five folds out of fold. The pool is
weighted by `fit_pool` without each fold in turn, with and without a classifier, and judged on that fold. With --keep,
predictions are stored in a folder, and those in it are not made again. With --write, the summary goes into
docs/measured/pool_notebook.md; without it, it is printed.

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository. Where
there is none, nothing is written.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

import posteriori as po
from experiments.ablation_candidates import discriminant_of_scores, kdb_ensemble, nearest_rows, two_dependence
from experiments.ablation_cells import Cells, binned
from experiments.ablation_kernels import fine_bins, kernel_copula, kernel_naive_bayes, smoothed_bins
from experiments.page import POOL_NOTEBOOK, markdown_table, replace_block
from experiments.real_tables import FOLDS, SEED, Table, data_folder, in_first_half, tables
from posteriori.learning.pool_weights import fit_pool
from posteriori.model import clip_log_posteriors

MOST_ROWS = 1500
_FEW_ROWS = 200  # as in `GenerativeClassifier`
_MOST_SLOTS = 300  # of the codes of all columns side by side, for tables of triples
# fmt: off
TABLES = (
    "adult", "anneal", "autos", "bn_asia", "car", "colic", "covertype_part", "crx", "cylinder_bands", "diabetes_pima",
    "electricity", "email_spam", "german", "glass", "heart_cleveland", "hepatitis", "hmda", "kr_vs_kp", "krkopt",
    "labor", "magic", "marketing", "monks_2", "nursery", "phoneme", "pima_na", "satimage", "segment", "sick", "sonar",
    "soybean", "spambase", "splice", "telco_churn", "tic_tac_toe", "titanic_1309", "vehicle", "vote", "vowel", "wdbc",
)
# fmt: on

Candidate = Callable[[Cells, np.ndarray, int, Cells], np.ndarray]
CANDIDATES: dict[str, Candidate] = {
    "kDB ensemble": kdb_ensemble,
    "A2DE": two_dependence,
    "LDA of normal scores": partial(discriminant_of_scores, pooling="pooled"),
    "QDA of normal scores": partial(discriminant_of_scores, pooling="per_class"),
    "Gaussian copula": partial(kernel_copula, pooled=0.5),
    "kernel densities": kernel_naive_bayes,
    "fine bins": fine_bins,
    "smoothed bins": smoothed_bins,
    "nearest rows": nearest_rows,
}
_OF_ANY = {"kDB ensemble", "nearest rows"}  # columns; A2DE too, and the others are about numbers


def applies(name: str, cells: Cells) -> bool:
    """Return whether a candidate has a use for these columns, and its tables fit into memory."""
    if name == "A2DE":
        return int(binned(cells, cells, 5)[2].sum()) <= _MOST_SLOTS
    return name in _OF_ANY or cells.numbers.shape[1] > 0


def members_of(table: Table) -> dict[str, np.ndarray]:
    """Return the out-of-fold log posteriors (n, C, M) of the candidates of the pool, the classes and the folds."""
    names = po.GenerativeClassifier(folds=2, n_jobs=1).fit(table.X, table.y).cv_results_["member"][:-1]
    found = po.cross_validate(list(names), table.X, table.y, folds=FOLDS, random_state=SEED)
    with np.errstate(divide="ignore"):
        log_posteriors = np.stack([np.log(one) for one in found.posteriors.values()], axis=2)
    return {"L": log_posteriors, "y": found.y_true, "fold": found.fold}


def predicted(candidate: Candidate, cells: Cells, y: np.ndarray, fold: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the out-of-fold log posterior of a candidate, (n, C)."""
    out = np.empty((len(y), n_classes))
    for k in np.unique(fold):
        train = fold != k
        out[~train] = candidate(cells[train], y[train], n_classes, cells[~train])
    return out


def pooled_loss(log_posteriors: np.ndarray, y: np.ndarray, fold: np.ndarray) -> float:
    """Return the log-loss of the pool of some members, weighted without the fold on which it is judged."""
    clipped, penalty = clip_log_posteriors(log_posteriors), max(1.0, _FEW_ROWS / len(y))
    losses = np.empty(len(y))
    for k in np.unique(fold):
        train = fold != k
        pool = fit_pool(clipped[train], y[train], np.ones(train.sum()), penalty)
        held_out = np.flatnonzero(~train)
        losses[held_out] = -pool.log_posterior(clipped[held_out])[np.arange(len(held_out)), y[held_out]]
    return float(losses.mean())


def measure(table: Table, names: list[str], keep: Path | None) -> dict[str, tuple[float, float]]:
    """Return the log-loss of the pool without and with each candidate."""
    stored = keep / f"{table.name}.npz" if keep is not None else None
    if stored is not None and stored.exists():
        with np.load(stored) as file:
            members = {name: file[name] for name in ("L", "y", "fold")}
    else:
        members = members_of(table)
        if stored is not None:
            np.savez(stored, **members)
    log_posteriors, y, fold = members["L"], members["y"], members["fold"]
    cells, base = Cells.of(table.X), pooled_loss(log_posteriors, y, fold)
    losses = dict.fromkeys(names, (base, base))
    for name in names:
        if not applies(name, cells):
            continue
        path = keep / f"{table.name}@{name}.npy" if keep is not None else None
        if path is not None and path.exists():
            found = np.load(path)
        else:
            found = predicted(CANDIDATES[name], cells, y, fold, log_posteriors.shape[1])
            if path is not None:
                np.save(path, found)
        losses[name] = base, pooled_loss(np.concatenate([log_posteriors, found[:, :, None]], axis=2), y, fold)
    return losses


def summary(losses: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return a line per candidate: the change of the mean log-loss of the pool in each half, and the tables.

    A table to which a candidate does not apply counts with the pool as it is.
    """
    lines = []
    for name in CANDIDATES:
        if any(name not in of for of in losses.values()):
            continue
        cells = []
        for first in (True, False):
            part = {table: of[name] for table, of in losses.items() if in_first_half(table) is first}
            before, after = np.array(list(part.values())).T
            gain = before - after
            largest = np.argsort(-gain)[:3]
            cells += [
                f"{100.0 * (after.mean() / before.mean() - 1.0):+.2f} %",
                f"{(gain > 5e-4).sum()} : {(gain < -5e-4).sum()}",
                ", ".join(f"{list(part)[k]} {gain[k]:.3f}" for k in largest if gain[k] > 5e-4) or "–",
            ]
        lines.append([name, *cells])
    halves = ("first half", "second half")
    head = [f"{fact}, {half}" for half in halves for fact in ("pool", "better : worse", "largest gains")]
    return markdown_table(["candidate", *head], lines)


def main() -> None:
    """Measure the candidates on the tables, and print the summary or put it into the page."""
    parser = argparse.ArgumentParser(description="Measure what more candidates would add to the pool.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(CANDIDATES)}")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="read at most so many rows of each table")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="store predictions here, and use those in it")
    parser.add_argument("--write", action="store_true", help="put the summary into docs/measured/pool_notebook.md")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    names, losses = arguments.names or list(CANDIDATES), {}
    for table in tables(folder, arguments.tables, arguments.rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of categories that a fold has not met, and of few steps of EM
            losses[table.name] = measure(table, names, arguments.keep)
        parts = [f"{name} {before:.4f} {after:.4f}" for name, (before, after) in losses[table.name].items()]
        print(table.name, *parts, sep=" | ", flush=True)
    text = summary(losses)
    if arguments.write:
        replace_block("ablations", text, POOL_NOTEBOOK)
    else:
        print(text)


if __name__ == "__main__":
    main()
