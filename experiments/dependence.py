"""Measure the classifiers of dependent features on real tables, and put the figures into docs/dependence.md.

Usage: python -m experiments.dependence [--sweep] [--all]

With --sweep, the settings are measured as well, which `make tables` does. With --all, every table of the folder is
measured and the result is printed; the page, which is about a fixed list of tables, stays as it is.

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the repository. Where
there is none, nothing is written.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.base import clone

import posteriori as po
from experiments.page import DOCS, replace_block, table_head, table_row
from experiments.real_tables import PAGE_TABLES, Table, data_folder, halves, ranks, score, tables

PAGE = DOCS / "dependence.md"
NAIVE = "naive Bayes, binned"
MODELS: dict[str, Any] = {
    "naive Bayes, Gaussian": po.NaiveBayes(n_jobs=1),
    NAIVE: po.NaiveBayes(distributions="binned", n_jobs=1),
    "TAN": po.TreeAugmentedNaiveBayes(n_jobs=1),
    "TAN, Gaussian": po.TreeAugmentedNaiveBayes(bins=None, n_jobs=1),
    "Chow-Liu": po.classifiers.ChowLiuClassifier(n_jobs=1),
    "kDB 1": po.KDependenceBayes(1, n_jobs=1),
    "kDB 2": po.KDependenceBayes(2, n_jobs=1),
    "AODE": po.AveragedOneDependence(n_jobs=1),
}
SWEPT = ("TAN", "Chow-Liu", "kDB 1", "kDB 2", "AODE")
BINS = (4, 5, 8, 10, 16, "mdlp")
STRENGTHS = (None, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
PENALTIES = (None, "aic", "bic")
PARENTS = (0, 1, 2, 3)


def measure(models: dict[str, Any], sets: list[Table]) -> np.ndarray:
    """Return log-loss and accuracy, (sets, models, 2)."""
    result = np.empty((len(sets), len(models), 2))
    for row, table in enumerate(sets):
        for column, model in enumerate(models.values()):
            one = score(model, table)
            result[row, column] = one.log_loss, one.accuracy
        print(".", end="", flush=True)
    print()
    return result


def score_tables(sets: list[Table]) -> str:
    """Return the table of all models on all sets, and the summary of each model."""
    scores = measure(MODELS, sets)
    losses = scores[:, :, 0]
    lines = [table_head(["set", "rows", "features", "classes", *MODELS])]
    for table, of_set in zip(sets, scores, strict=True):
        best = of_set[:, 0].min()
        cells = [_cell(loss, accuracy, loss <= best + 5e-4) for loss, accuracy in of_set]
        numbers = f"{table.X.width} ({table.n_numbers})"
        lines.append(table_row([table.name, str(len(table.y)), numbers, str(table.n_classes), *cells]))
    naive = losses[:, [list(MODELS).index(NAIVE)]]
    better = (losses < naive - 5e-4).sum(axis=0)
    worse = (losses > naive + 5e-4).sum(axis=0)
    facts = ["mean log-loss", "median", "mean rank", "mean accuracy", "better than binned naive Bayes", "worse"]
    summary = [table_head(["model", *facts])]
    for column, name in enumerate(MODELS):
        loss = losses[:, column]
        cells = [f"{loss.mean():.3f}", f"{np.median(loss):.3f}", f"{ranks(losses)[:, column].mean():.1f}"]
        cells += [f"{scores[:, column, 1].mean():.3f}", f"{better[column]} of {len(sets)}", str(worse[column])]
        summary.append(table_row([name, *(cells if name != NAIVE else [*cells[:-2], "–", "–"])]))
    return "\n\n".join(["\n".join(summary), by_half(sets, losses), "\n".join(lines)])


def by_half(sets: list[Table], losses: np.ndarray) -> str:
    """Return the mean log-loss of each model on the tables on which defaults are tuned, and on the others."""
    lines = [table_head(["mean log-loss", *MODELS])]
    for half, part in halves(sets).items():
        names = {table.name for table in part}
        means = losses[[table.name in names for table in sets]].mean(axis=0)
        lines.append(table_row([f"{half} ({len(part)} sets)", *(f"{mean:.3f}" for mean in means)]))
    return "\n".join(lines)


def sweep_tables(sets: list[Table]) -> str:
    """Return the tables of settings: each parameter alone, the others at their defaults."""
    with_numbers = [table for table in sets if table.n_numbers]
    trees = ("TAN", "Chow-Liu")
    swept = [
        ("bins", BINS, SWEPT, with_numbers),
        ("bins", ("mdlp", None), trees, with_numbers),
        ("backoff", STRENGTHS, SWEPT, sets),
        ("penalty", PENALTIES, trees, sets),
        ("k", PARENTS, ("kDB 2",), sets),
    ]
    return "\n\n".join(
        _sweep(parameter, values, names, part, half)
        for parameter, values, names, of_parameter in swept
        for half, part in halves(of_parameter).items()
    )


def evidence_table(sets: list[Table]) -> str:
    """Return, where TAN loses to naive Bayes, what its tree holds, what chance alone would, and stronger back-off."""
    strengths = (2.0, 10.0, 40.0, 160.0)
    head = [f"TAN, back-off {strength:g}" for strength in strengths]
    lines = [table_head(["set", "rows", "nats in the tree", "nats by chance", "naive Bayes, binned", *head])]
    for table in sets:
        naive, plain = score(MODELS[NAIVE], table).log_loss, score(MODELS["TAN"], table).log_loss
        if plain <= naive + 5e-4:
            continue
        tan = type(MODELS["TAN"])(n_jobs=1).fit(table.X, table.y)
        free = {
            column.name: (len(column.cuts) if column.is_binned else len(column.categories) - 1)
            for column in tan.model_.schema.columns
        }
        cells = sum(free[parent] * free[child] for parent, child in tan.edge_information_)
        chance = table.n_classes * cells / (2 * len(table.y))
        losses = [score(type(tan)(backoff=strength, n_jobs=1), table).log_loss for strength in strengths]
        facts = [sum(tan.edge_information_.values()), chance]
        numbers = [f"{fact:.2f}" for fact in facts] + [f"{loss:.3f}" for loss in (naive, *losses)]
        lines.append(table_row([table.name, str(len(table.y)), *numbers]))
    return "\n".join(lines)


def _sweep(parameter: str, values: tuple[Any, ...], names: tuple[str, ...], sets: list[Table], half: str) -> str:
    cells: list[list[str]] = [[f"`{value!r}`".replace("'", '"')] for value in values]
    for name in names:
        models = {str(value): clone(MODELS[name]).set_params(**{parameter: value}) for value in values}
        scores = measure(models, sets)
        losses, rank = scores[:, :, 0], ranks(scores[:, :, 0]).mean(axis=0)
        accuracy = scores[:, :, 1].mean(axis=0)
        for position in range(len(values)):
            loss = losses[:, position]
            known = MODELS[name].get_params()[parameter] == values[position]
            text = f"{loss.mean():.3f} · {np.median(loss):.3f} · {rank[position]:.1f} · {accuracy[position]:.3f}"
            cells[position].append(f"**{text}**" if known else text)
    head = table_head([f"`{parameter}`", *names])
    return f"On the {len(sets)} sets of the {half}:\n\n" + "\n".join([head, *map(table_row, cells)])


def _cell(loss: float, accuracy: float, best: bool) -> str:
    return f"**{loss:.3f}** · {accuracy:.3f}" if best else f"{loss:.3f} · {accuracy:.3f}"


def main() -> None:
    """Measure the scores, the evidence and, if asked for, the settings, and fill the page."""
    parser = argparse.ArgumentParser(description="Measure classifiers of dependent features; write docs/dependence.md.")
    parser.add_argument("--sweep", action="store_true", help="measure the settings as well")
    parser.add_argument("--all", action="store_true", help="print the figures of every table; the page stays as it is")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    start = time.perf_counter()
    sets = list(tables(folder, None if arguments.all else PAGE_TABLES))
    blocks = {"scores": score_tables, "evidence": evidence_table}
    if arguments.sweep:
        blocks["settings"] = sweep_tables
    for name, make in blocks.items():
        text = make(sets)
        if arguments.all:
            print(text)
        else:
            replace_block(name, text, PAGE)
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
