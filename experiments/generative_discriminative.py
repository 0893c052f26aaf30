"""Measure generative against discriminative models, and put the figures into docs/generative_discriminative.md.

Usage: python -m experiments.generative_discriminative

Real tables other than the penguins are looked for in the folder that POSTERIORI_DATA names, or in ../shared/data beside
the repository; where there is none, the block of real tables stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from experiments import generative_discriminative_scores as experiments
from experiments.page import DOCS, PICTURES, replace_block, table_head, table_row
from experiments.real_tables import data_folder
from posteriori.comparison import Comparison

PAGE = DOCS / "generative_discriminative.md"


def efficiency_table() -> str:
    """Return how much more than the best rule LDA and logistic regression err, by distance and rows."""
    sizes = experiments.SIZES
    lines = [table_head(["distance Δ", "least error", *[f"{n} rows" for n in sizes], "Efron, many rows"])]
    for distance in experiments.DISTANCES:
        found = [experiments.excess_errors(distance, n) for n in sizes]
        cells = [
            f"{one.lda:.4f} / {one.logistic:.4f} = **{one.ratio:.3f}** ± {one.ratio_error:.3f}"
            + (f" ({one.separable:.0%} separable)" if one.separable else "")
            for one in found
        ]
        least, limit = experiments.bayes_error(distance), experiments.efron_efficiency(distance)
        lines.append(table_row([f"{distance:g}", f"{least:.3f}", *cells, f"**{limit:.3f}**"]))
    return "\n".join(lines)


def curve_table(found: Comparison, measures: Sequence[str] = ("log_loss", "accuracy")) -> str:
    """Return the means of some measures of each model, by rows; the best by the first measure bold."""
    lines = [table_head(["rows", *found.models])]
    for size in found.sizes:
        rows = {row["model"]: row for row in found.summary.filter(n_rows=size).iter_rows(named=True)}
        best = min(rows[model][measures[0]] for model in found.models)
        cells = []
        for model in found.models:
            first, *others = (f"{rows[model][measure]:.3f}" for measure in measures)
            bold = rows[model][measures[0]] <= best + 5e-4
            cells.append(" · ".join([f"**{first}**" if bold else first, *others]))
        lines.append(table_row([f"{size:,}", *cells]))
    return "\n".join(lines)


def crossing_table(found: Comparison, measures: Sequence[str] = ("accuracy", "log_loss")) -> str:
    """Return who leads whom up to how many rows, for each pair and measure."""
    lines = [table_head(["", *(f"{other}, {m.replace('_', '-')}" for other in found.discriminative for m in measures)])]
    for model in found.generative:
        cells = []
        for other in found.discriminative:
            for measure in measures:
                row = found.crossings.filter(generative=model, discriminative=other, measure=measure)
                cells.append(_crossing(row.row(0, named=True)))
        lines.append(table_row([model, *cells]))
    return "\n".join(lines)


def _crossing(row: dict[str, Any]) -> str:
    if row["n_rows"] is None:
        return f"{row['leads_after'] or 'neither'} throughout"
    doubt = "" if row["sure"] else "?"
    return f"{row['leads_before']}, then from {row['n_rows']:,.0f} rows {row['leads_after']}{doubt}"


def missing_table() -> str:
    """Return the log-loss and the accuracy by the share of cells missing."""
    worlds = [(f"{lost:.0%}", lost) for lost in experiments.LOST]
    few, many = experiments.LOST_BY_CLASS
    worlds.append((f"{few:.0%} of one class, {many:.0%} of the other", None))
    parts = []
    for name, lost in worlds:
        found = experiments.missing_curves(lost)
        head, rule, *lines = curve_table(found).split("\n")
        if not parts:
            parts += [f"| cells missing {head}", f"|-{rule}"]
        parts += [f"| {name} {line}" for line in lines]
    return "\n".join(parts)


def unlabelled_table() -> str:
    """Return the accuracy with and without 1000 rows that have no label, where the model holds and where not."""
    worlds = {
        "independent": experiments.draw_independent,
        f"correlated by {experiments.CORRELATION}": experiments.draw_correlated,
    }
    light = f"the same, each of weight {experiments.LIGHT}"
    models = ["naive Bayes, labels only", "with rows without label", light, "logistic, labels only"]
    lines = [table_head(["features given the class", "labels", *models])]
    for name, draw in worlds.items():
        for n in experiments.LABELLED:
            found = experiments.unlabelled_accuracies(draw, n)
            errors = found.std(axis=0, ddof=1) / np.sqrt(len(found))
            best = found.mean(axis=0).max()
            cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(found.mean(axis=0), errors, strict=True)]
            bold = [f"**{c}**" if m >= best - 5e-4 else c for c, m in zip(cells, found.mean(axis=0), strict=True)]
            lines.append(table_row([name, str(n), *bold]))
    return "\n".join(lines)


def real_parts() -> str:
    """Return the tables of the real sets, and draw their curves."""
    parts, curves = [], {}
    for name, rows, target, repeats in experiments.real_tables():
        found = curves[name] = experiments.real_curves(rows, target, repeats)
        print(f"{name} done", flush=True)
        head = f"**{name}**: {rows.height:,} rows, {rows.width - 1} features, {found.repeats} repeats."
        last = found.summary.filter(n_rows=found.sizes[-1])
        seconds = zip(last["model"], last["fit_seconds"], strict=True)
        times = ", ".join(f"{model} {_seconds(one)}" for model, one in seconds)
        parts += [head, curve_table(found), crossing_table(found), f"To fit {found.sizes[-1]:,} rows: {times}."]
    draw_curves(curves, PICTURES / "learning_curves.png")
    return "\n\n".join(parts)


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def draw_curves(curves: dict[str, Comparison], path: Path) -> None:
    """Draw accuracy above log-loss, a column for each set."""
    figure, panels = plt.subplots(2, len(curves), figsize=(4.5 * len(curves), 7.6), layout="constrained", squeeze=False)
    for position, (name, found) in enumerate(curves.items()):
        column = panels[:, position]
        for ax, measure in zip(column, ("accuracy", "log_loss"), strict=True):
            found.plot(measure, ax).get_legend().remove()
            _zoom(ax, found, measure)
            ax.tick_params(axis="x", labelsize=8)
            if position:
                ax.set_ylabel("")
        column[0].set_title(name, loc="left", fontweight="bold")
        column[0].set_xlabel("")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names), frameon=False)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def _zoom(ax: Any, found: Comparison, measure: str) -> None:
    """Leave out what a few over-confident predictions of few rows cost: it would flatten everything else."""
    values = found.summary[measure].to_numpy()
    if measure == "log_loss":
        counts = found.summary.filter(n_rows=found.sizes[-1])[measure].to_numpy()
        ax.set_ylim(0.0, min(values.max(), max(1.1, 2.5 * np.median(counts))) * 1.02)
    else:
        ax.set_ylim(max(values.min() - 0.02, np.quantile(values, 0.12) - 0.05), min(values.max() + 0.02, 1.005))


def draw_truths(gaussian: Comparison, counts: Comparison, path: Path) -> None:
    """Draw the log-loss where LDA is the truth, and where it is not."""
    figure, axes = plt.subplots(1, 2, figsize=(12.0, 4.6), layout="constrained")
    titles = ("Gaussian, one covariance: LDA is right", "Counts: LDA is wrong, logistic regression right")
    for ax, found, title in zip(axes, (gaussian, counts), titles, strict=True):
        found.plot("log_loss", ax)
        ax.set_title(title, loc="left", fontweight="bold", pad=28)
        ax.set_ylim(0.3, 0.9)
    axes[1].axhline(experiments.least_log_loss(), color="#8C8C8C", lw=1.0, ls=":")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def fill(name: str, text: str) -> None:
    """Put a text into its block of the page, and print how long the run has taken."""
    replace_block(name, text, PAGE)
    print(f"{name}: {time.perf_counter() - START:.0f} s", flush=True)


def main() -> None:
    """Run every experiment."""
    fill("efficiency", efficiency_table())
    gaussian, counts = experiments.gaussian_curves(), experiments.count_curves()
    draw_truths(gaussian, counts, PICTURES / "two_truths.png")
    fill("gaussian curves", f"{curve_table(gaussian)}\n\n{crossing_table(gaussian)}")
    least = f"The true posterior has a log-loss of {experiments.least_log_loss():.3f} nats per row."
    fill("counts", f"{curve_table(counts)}\n\n{least}\n\n{crossing_table(counts)}")
    fill("missing", missing_table())
    fill("unlabelled", unlabelled_table())
    if data_folder() is None:
        print("skipped: the real tables; set POSTERIORI_DATA to their folder, or put it at ../shared/data")
    else:
        fill("real tables", real_parts())


if __name__ == "__main__":
    START = time.perf_counter()
    PICTURES.mkdir(exist_ok=True)
    with threadpool_limits(1):  # so small fits wait for threads longer than they work
        main()
    print(f"took {time.perf_counter() - START:.0f} s")
