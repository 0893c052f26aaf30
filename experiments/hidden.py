"""Measure what hidden labels and cells cost on real tables; put the figures into docs/hidden.md, and draw them.

Usage: python -m experiments.hidden [--keep FILE | --informative | --all]

Takes about ten minutes on two cores. With --keep, scores are kept in a file as they come, and those in it are not
measured again. With --informative, only the comparison of gaps at random and informative gaps is measured again and
put into the page. With --all, that comparison is measured on every table of the folder and printed; the page, which is
about a fixed list of tables, stays as it is.

The tables are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside the
repository. Where there is none, nothing is written.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.base import clone

import posteriori as po
from experiments.hidden_pictures import draw_cells, draw_labels
from experiments.hidden_scores import ALONE, CHOSEN, LABELLED, SHARES, WEIGHTS, Row, Scores, measure
from experiments.page import DOCS, PICTURES, replace_block, table_head, table_row
from experiments.real_tables import PAGE_TABLES, Table, data_folder, score, tables

PAGE = DOCS / "hidden.md"
FULL = f"{max(WEIGHTS):g}"
LEAST_MISSING = 0.01
VARIANTS = (*(f"{weight:g}" for weight in WEIGHTS), CHOSEN)


def summary_of_labels(scores: Scores) -> str:
    """Return, for each model and number of labels, the mean over the sets and what rows without label add to it."""
    lines = []
    for measured, better in (("accuracy", 1.0), ("log_loss", -1.0)):
        head = ["model", "labels per class", f"{_words(measured)}, labelled rows alone"]
        lines += ["", table_head([*head, *map(_named, VARIANTS), "sets helped, hurt by weight 1", "by the choice"])]
        for model in scores.models("labels"):
            for n_labels in LABELLED:
                alone, se = scores.mean(measured, "labels", model, n_labels, ALONE)
                cells = [model, f"{n_labels}", f"{alone:.3f} ± {se:.3f}"]
                for variant in VARIANTS:
                    gain, se = scores.mean(measured, "labels", model, n_labels, variant, against=ALONE)
                    cells.append(_signed(gain, se))
                for variant in (FULL, CHOSEN):
                    signs = [
                        _sign(*scores.gain(measured, name, model, n_labels, variant), better)
                        for name in scores.sets("labels", model)
                    ]
                    cells.append(f"{signs.count(1)}, {signs.count(-1)} of {len(signs)}")
                lines.append(table_row(cells))
    return "\n".join(lines[1:])


def labels_by_set(scores: Scores) -> str:
    """Return what rows without label add on each set, by weight 1 and by the choice."""
    parts = []
    for measured, better in (("accuracy", 1.0), ("log_loss", -1.0)):
        lines = [table_head(["set", "model", *(f"{n} labels per class" for n in LABELLED)])]
        for name in scores.sets("labels"):
            for model in scores.models("labels", name):
                cells = []
                for n_labels in LABELLED:
                    alone = scores.values(measured, "labels", name, model, n_labels, ALONE).mean()
                    gains = [scores.gain(measured, name, model, n_labels, variant) for variant in (FULL, CHOSEN)]
                    marked = [_marked(*gain, better) for gain in gains]
                    cells.append(f"{alone:.3f}, {' · '.join(marked)}")
                lines.append(table_row([name, model, *cells]))
        parts.append(f"{_words(measured).capitalize()}:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def summary_of_cells(scores: Scores) -> str:
    """Return the mean over the sets of each model at each share of missing cells."""
    parts = []
    for measured in ("accuracy", "log_loss"):
        lines = [table_head([_words(measured), *(f"{share:.0%}" for share in SHARES)])]
        means = {
            model: [scores.mean(measured, "cells", model, share) for share in SHARES]
            for model in scores.models("cells")
        }
        best = [
            (max if measured == "accuracy" else min)(means[model][k][0] for model in means) for k in range(len(SHARES))
        ]
        for model, values in means.items():
            cells = [
                f"**{mean:.3f}** ± {se:.3f}" if mean == top else f"{mean:.3f} ± {se:.3f}"
                for (mean, se), top in zip(values, best, strict=True)
            ]
            lines.append(table_row([model, *cells]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def cells_by_set(scores: Scores) -> str:
    """Return accuracy and log-loss of each model on each set at each share of missing cells."""
    lines = [table_head(["set", "model", *(f"{share:.0%}" for share in SHARES)])]
    for name in scores.sets("cells"):
        for model in scores.models("cells"):
            pairs = [
                [scores.values(measured, "cells", name, model, share).mean() for measured in ("accuracy", "log_loss")]
                for share in SHARES
            ]
            lines.append(table_row([name, model, *(f"{accuracy:.3f} · {loss:.2f}" for accuracy, loss in pairs)]))
    return "\n".join(lines)


def informative_table(sets: Sequence[Table]) -> str:
    """Return log-loss and accuracy with missing="at_random" and missing="informative" on sets with missing cells."""
    models = {
        "naive Bayes, binned": po.NaiveBayes(distributions="binned", n_jobs=1),
        "LDA": po.GaussianDiscriminant(shrinkage=0.1, n_jobs=1),
        "TAN": po.TreeAugmentedNaiveBayes(n_jobs=1),
    }
    lines = [table_head(["set", "missing", *models, "TAN, missing as a category"])]
    for table in sets:
        missing = sum(table.X.null_count().row(0)) / (table.X.width * len(table.X))
        if missing < LEAST_MISSING:
            continue
        cells = [table.name, f"{missing:.0%}"]
        for model in models.values():
            told = clone(model).set_params(**{"missing": "informative"})
            plain, heeding = score(model, table), score(told, table)
            cells.append(
                f"{plain.log_loss:.3f} → {heeding.log_loss:.3f} · {plain.accuracy:.3f} → {heeding.accuracy:.3f}"
            )
        to_observed_codes = dataclasses.replace(table, X=table.X.with_columns(pl.col(pl.String).fill_null("(missing)")))
        one = score(models["TAN"], to_observed_codes)
        lines.append(table_row([*cells, f"{one.log_loss:.3f} · {one.accuracy:.3f}"]))
    return "\n".join(lines)


def _sign(gain: float, se: float, better: float) -> int:
    """Return 1 for a help of more than two standard errors, −1 for such a harm, 0 for neither."""
    return int(np.sign(gain) * better) if abs(gain) > 2.0 * se else 0


def _marked(gain: float, se: float, better: float) -> str:
    """Return a gain: bold where it helps by more than two standard errors, in italics where it hurts so."""
    mark = {1: "**", -1: "*", 0: ""}[_sign(gain, se, better)]
    return f"{mark}{gain:+.3f}{mark}".replace("-", "−")


def _signed(gain: float, se: float) -> str:
    return f"{gain:+.3f} ± {se:.3f}".replace("-", "−")


def _named(variant: str) -> str:
    return "weight chosen" if variant == CHOSEN else f"weight {variant}"


def _words(measured: str) -> str:
    return measured.replace("_", "-")


def write(rows: list[Row], sets: Sequence[Table]) -> None:
    """Put all tables into the page, and draw the pictures."""
    replace_block("informative", informative_table(sets), PAGE)
    scores = Scores.of(rows)
    for name, make in {
        "labels": summary_of_labels,
        "labels by set": labels_by_set,
        "cells": summary_of_cells,
        "cells by set": cells_by_set,
    }.items():
        replace_block(name, make(scores), PAGE)
    draw_labels(scores, PICTURES / "hidden_labels.png")
    draw_cells(scores, PICTURES / "hidden_cells.png")


def main() -> None:
    """Measure what is asked for, and fill the page."""
    parser = argparse.ArgumentParser(description="Measure hidden labels and cells, and write docs/hidden.md.")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--keep", type=Path, metavar="FILE", help="keep scores here, and go on from those in it")
    only.add_argument("--informative", action="store_true", help="measure the table of informative gaps only")
    only.add_argument("--all", action="store_true", help="print the table of informative gaps for every table")
    arguments = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("skipped: no tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
        return
    start = time.perf_counter()
    found = list(tables(folder, None if arguments.all else PAGE_TABLES))
    if arguments.all:
        print(informative_table(found))
    elif arguments.informative:
        replace_block("informative", informative_table(found), PAGE)
    else:
        write(measure(found, arguments.keep), found)
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
