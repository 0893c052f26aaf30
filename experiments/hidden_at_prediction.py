"""Measure models that were trained on whole rows on rows of which cells are hidden.

Usage: python -m experiments.hidden_at_prediction [--rows N] [--keep FILE] [--write]

Two folds of every table of up to 3,000 rows, of which the first N (default 600) are taken. In the rows of the other
fold, 0, 25, 50, 80, 95 and 100 % of the cells are hidden, at random and as whole columns. The pool stands beside its
best member at each level, which is chosen in hindsight, beside logistic regression and a random forest with imputed
cells, and beside histogram boosting, which takes missing cells itself. With --write, the tables go into docs/pool.md.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from sklearn.base import clone

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import SEED, Table, data_folder, in_first_half, tables
from posteriori.learning.folds import assign_folds
from posteriori.model_selection.metrics import fill_undefined, log_loss

SHARES = (0.0, 0.25, 0.5, 0.8, 0.95, 1.0)
WAYS = ("cells", "columns")
RIVALS = ("logistic", "forest", "boosting")
BEST = "best member, in hindsight"
Scores = dict[str, dict[str, list[float]]]  # by table and model: log-losses, by the way and the share


def hidden(X: pl.DataFrame, share: float, way: str, seed: int) -> pl.DataFrame:
    """Return rows of which a share of the cells is hidden, at random or as whole columns."""
    rng = np.random.default_rng(seed)
    if way == "columns":
        masks = np.zeros((X.height, X.width), np.bool_)
        masks[:, rng.permutation(X.width)[: round(share * X.width)]] = True
    else:
        masks = rng.random((X.height, X.width)) < share
    return X.with_columns(
        pl.when(pl.Series(masks[:, j])).then(None).otherwise(pl.col(name)).alias(name)
        for j, name in enumerate(X.columns)
    )


def conditions(X: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows as each way and share leaves them."""
    for way in WAYS:
        for number, share in enumerate(SHARES):
            yield hidden(X, share, way, SEED + number)


def measure(table: Table, rivals: dict[str, Any]) -> dict[str, list[float]]:
    """Return the log-losses of all models on a table: two folds, each way, each share."""
    y = table.y.to_numpy()
    classes, y_true = np.unique(y, return_inverse=True)
    fold = assign_folds(y_true, 2, seed=SEED)
    sums: dict[str, np.ndarray] = {}
    for k in range(2):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        pool = po.GenerativeClassifier(random_state=SEED).fit(table.X[train], y[train])
        models = {"pool": pool} | {f"member {name}": one for name, one in pool.members_.items()}
        models |= {name: clone(model).fit(table.X[train], y[train]) for name, model in rivals.items()}
        prior = np.bincount(y_true[train], minlength=len(classes)) / len(train)
        for at, rows in enumerate(conditions(table.X[test])):
            found = {"class prior": np.broadcast_to(prior, (len(test), len(classes)))}
            for name, model in models.items():
                posterior = np.zeros((len(test), len(classes)))
                posterior[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(rows)
                found[name] = fill_undefined(posterior, found["class prior"])
            losses = {name: log_loss(y_true[test], one) for name, one in found.items()}
            losses[BEST] = min(loss for name, loss in losses.items() if name.startswith("member "))
            for name, loss in losses.items():
                sums.setdefault(name, np.zeros(len(WAYS) * len(SHARES)))[at] += loss / 2
    return {name: losses.tolist() for name, losses in sums.items() if not name.startswith("member ")}


def page_of(scores: Scores) -> str:
    """Return the mean log-losses of all tables and of both halves as Markdown tables."""
    parts = []
    halves = {"all": list(scores), "first half": [], "second half": []}
    for name in scores:
        halves["first half" if in_first_half(name) else "second half"].append(name)
    models = list(next(iter(scores.values())))
    for way_number, way in enumerate(WAYS):
        places = range(way_number * len(SHARES), (way_number + 1) * len(SHARES))
        head = ["", *(f"{share:.0%} of the {way} hidden" for share in SHARES)]
        rows = []
        for half, names in halves.items():
            means = {model: np.mean([scores[name][model] for name in names], axis=0) for model in models}
            for model in models if half == "all" else ("pool", BEST):
                title = model if half == "all" else f"{half} ({len(names)} tables): {model}"
                rows.append([title, *(f"{means[model][at]:.3f}" for at in places)])
        parts.append(markdown_table(head, rows))
    above = [name for name, one in scores.items() if max(np.subtract(one["pool"], one["class prior"])) > 0.002]
    parts.append(
        f"{len(scores)} tables. The pool is above the class prior by more than 0.002 at some level on {len(above)} of "
        f"them{': ' + ', '.join(above) if above else ''}."
    )
    return "\n\n".join(parts)


def main() -> None:
    """Measure all tables, or take what is kept, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("no folder of tables; name it in POSTERIORI_DATA")
        return
    scores: Scores = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    from posteriori.comparison import discriminative

    rivals = {name: discriminative(name) for name in RIVALS}
    for table in tables(folder, None, options.rows):
        if table.name in scores or len(table.y) < 40:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores[table.name] = measure(table, rivals)
        print(table.name, [round(loss, 3) for loss in scores[table.name]["pool"][: len(SHARES)]], flush=True)
        if options.keep:
            options.keep.write_text(json.dumps(scores))
    text = page_of(scores)
    if options.write:
        replace_block("hidden at prediction", text, DOCS / "pool.md")
    else:
        print(text)


if __name__ == "__main__":
    main()
