"""Measure models on rows of which cells are hidden: the default pool, its members, and discriminative models.

Usage: python -m experiments.hidden_at_prediction [--rows N] [--keep FILE] [--write]

Two folds of at most N rows (default 400) of every table of 40 rows or more. In the rows of the other fold,
0, 25, 50, 80, 95 and 100 % of the cells are hidden, at random and as whole columns. The pool, trained on the rows as
they are, stands beside its best member at each level, which is chosen in hindsight, and beside discriminative
models: logistic regression and a random forest with imputed cells, and histogram boosting, LightGBM and CatBoost, which
take missing cells themselves. Each of these is trained on the rows as they are, and again with two copies of them of
which random cells are hidden. The CPU seconds of each fit are taken, in one thread. LightGBM and CatBoost are in the
`bench` extra; without it they are left out. With
--keep, scores are stored in a file, and those already in it are not measured again. With --write, the tables and the
picture go into docs/pool.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.base import clone

import posteriori as po
from experiments.page import DOCS, PICTURES, markdown_table, replace_block
from experiments.real_tables import SEED, Table, data_folder, in_first_half, tables
from experiments.rivals import NativeClassifier
from posteriori.learning.folds import assign_folds
from posteriori.model_selection.metrics import fill_undefined, log_loss
from posteriori.plotting.canvas import GREY, INK, PALETTE

SHARES = (0.0, 0.25, 0.5, 0.8, 0.95, 1.0)
WAYS = ("cells", "columns")
DISCRIMINATIVE = {
    "logistic regression": "logistic",
    "random forest": "forest",
    "histogram boosting": "boosting",
}
NATIVE = {"LightGBM": "lightgbm", "CatBoost": "catboost"}
TREES_OF_CATBOOST = 100  # its 1,000 take ten times as long; it suits its step to their number
FEWEST_ROWS = 40
COPIES = 2  # of the training rows, with hidden cells
AGAIN = ", trained with hidden cells"
POOL = "pool"
PRIOR = "class prior"
BEST = "best member, in hindsight"
Scores = dict[str, dict[str, list[float]]]  # by table and model: log-losses by the way and the share, and CPU seconds


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


def with_copies(X: pl.DataFrame, y: np.ndarray, seed: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Return rows, and copies of them of which a share of the cells is hidden that is drawn for each row."""
    rng = np.random.default_rng(seed)
    parts = [X]
    for _ in range(COPIES):
        masks = rng.random((X.height, X.width)) < rng.random((X.height, 1))
        parts.append(
            X.with_columns(
                pl.when(pl.Series(masks[:, j])).then(None).otherwise(pl.col(name)).alias(name)
                for j, name in enumerate(X.columns)
            )
        )
    return pl.concat(parts), np.tile(y, len(parts))


def rivals() -> dict[str, Any]:
    """Return the discriminative models by name, those of libraries that are installed."""
    made: dict[str, Any] = {name: po.comparison.discriminative(one) for name, one in DISCRIMINATIVE.items()}
    installed = {name: one for name, one in NATIVE.items() if importlib.util.find_spec(one) is not None}
    return made | {name: NativeClassifier(one, TREES_OF_CATBOOST) for name, one in installed.items()}


def conditions(X: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows as each way and share leaves them."""
    for way in WAYS:
        for number, share in enumerate(SHARES):
            yield hidden(X, share, way, SEED + number)


def measure(table: Table) -> dict[str, list[float]]:
    """Return the log-losses of all models on a table, by way and share, and the CPU seconds of a fit: two folds."""
    y = table.y.to_numpy()
    classes, y_true = np.unique(y, return_inverse=True)
    fold = assign_folds(y_true, 2, seed=SEED)
    sums: dict[str, np.ndarray] = {}
    for k in range(2):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        models, seconds = _fitted(table.X[train], y[train])
        for name, spent in seconds.items():
            sums.setdefault(name, np.zeros(len(WAYS) * len(SHARES) + 1))[-1] += spent / 2
        prior = np.bincount(y_true[train], minlength=len(classes)) / len(train)
        for at, rows in enumerate(conditions(table.X[test])):
            found = {PRIOR: np.broadcast_to(prior, (len(test), len(classes)))}
            for name, model in models.items():
                posterior = np.zeros((len(test), len(classes)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of categories that the training rows lack
                    posterior[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(rows)
                found[name] = fill_undefined(posterior, found[PRIOR])
            losses = {name: log_loss(y_true[test], one) for name, one in found.items()}
            losses[BEST] = min(loss for name, loss in losses.items() if name.startswith("member "))
            for name, loss in losses.items():
                sums.setdefault(name, np.zeros(len(WAYS) * len(SHARES) + 1))[at] += loss / 2
    return {name: losses.tolist() for name, losses in sums.items() if not name.startswith("member ")}


def _fitted(X: pl.DataFrame, y: np.ndarray) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the pool, its members and the discriminative models, fitted to some rows, and CPU seconds of the fits."""
    seconds: dict[str, float] = {}

    def fitted(name: str, model: Any, *data: Any) -> Any:
        begun = time.process_time()
        model.fit(*data)
        seconds[name] = time.process_time() - begun
        return model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear columns, few steps, columns without a value
        pool = fitted(POOL, po.GenerativeClassifier(random_state=SEED, n_jobs=1), X, y)
        models = {POOL: pool} | {f"member {name}": one for name, one in pool.members_.items()}
        for name, model in rivals().items():
            models[name] = fitted(name, clone(model), X, y)
            models[name + AGAIN] = fitted(name + AGAIN, clone(model), *with_copies(X, y, SEED))
    return models, seconds


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
            for model in models if half == "all" else (POOL, BEST):
                title = model if half == "all" else f"{half} ({len(names)} tables): {model}"
                rows.append([title, *(f"{means[model][at]:.3f}" for at in places)])
        parts.append(markdown_table(head, rows))
    above = [name for name, one in scores.items() if max(np.subtract(one[POOL], one[PRIOR])[:-1]) > 0.002]
    forest = np.array([one["random forest" + AGAIN][-1] for one in scores.values()])
    ratios = {
        name: float(np.median([one[name][-1] for one in scores.values()] / forest))
        for name in (POOL, "CatBoost" + AGAIN)
        if name in models
    }
    parts.append(
        f"{len(scores)} tables. The pool is above the class prior by more than 0.002 at some level on {len(above)} of "
        f"them{': ' + ', '.join(above) if above else ''}. "
        "A fit of the random forest to the rows and their copies takes 1 in CPU seconds, that of "
        + " and of ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
        + " (medians)."
    )
    return "\n\n".join(parts)


def draw(scores: Scores, path: Path) -> None:
    """Draw the mean log-loss over the tables against the share of hidden cells, a panel for each way to hide."""
    models = [name for name in next(iter(scores.values())) if name not in (POOL, BEST, PRIOR)]
    kinds = list(dict.fromkeys(name.removesuffix(AGAIN) for name in models))
    colours = dict(zip(kinds, (PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[4], PALETTE[5]), strict=False))
    lines = {PRIOR: (GREY, ":", 1.5), BEST: (INK, ":", 1.5)}
    lines |= {name: (colours[name.removesuffix(AGAIN)], "--" if name.endswith(AGAIN) else "-", 1.2) for name in models}
    lines |= {POOL: (INK, "-", 3.0)}
    figure, panels = plt.subplots(1, 2, figsize=(16.0, 7.4), layout="constrained", sharey=True)
    places = range(len(SHARES))
    for number, (ax, title) in enumerate(zip(panels, ("cells at random", "whole columns"), strict=True)):
        for name, (colour, style, width) in lines.items():
            losses = np.mean([one[name] for one in scores.values()], axis=0)
            ax.plot(places, losses[number * len(SHARES) :][: len(SHARES)], color=colour, ls=style, lw=width, label=name)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(f"hidden: {title}", loc="left", fontweight="bold")
        ax.set_xticks(places, [f"{share:.0%}" for share in SHARES])
    panels[0].set_ylabel(f"log-loss in nats, mean over {len(scores)} tables")
    panels[0].set_ylim(0.0, 2.0 * np.mean([one[PRIOR] for one in scores.values()]))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    """Measure all tables, or take what is kept, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("no folder of tables; name it in POSTERIORI_DATA")
        return
    scores: Scores = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    sets = [one for one in tables(folder, None, options.rows) if len(one.y) >= FEWEST_ROWS]
    wanted = sorted((one for one in sets if one.name not in scores), key=lambda one: -one.X.width * one.n_classes)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:  # threads of polars do not survive a fork
        running = {processes.submit(measure, table): table.name for table in wanted}
        for done in as_completed(running):
            found = scores[running[done]] = done.result()
            print(running[done], [round(loss, 3) for loss in found[POOL][: len(SHARES)]], flush=True)
            if options.keep:
                options.keep.write_text(json.dumps(scores))
    scores = {one.name: scores[one.name] for one in sets}
    text = page_of(scores)
    if options.write:
        replace_block("hidden at prediction", text, DOCS / "pool.md")
        draw(scores, PICTURES / "hidden_at_prediction.png")
    else:
        print(text)


if __name__ == "__main__":
    main()
