"""Draw what hidden labels and cells cost, from the scores of experiments/hidden.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from experiments.hidden_scores import ALONE, CHOSEN, LABELLED, SHARES, WEIGHTS, Scores
from posteriori.plotting.canvas import GREY, INK, PALETTE, open_axes

_LINES = {ALONE: (INK, "labelled rows alone"), CHOSEN: (PALETTE[4], "weight chosen")} | {
    f"{weight:g}": (colour, f"weight {weight:g}")
    for weight, colour in zip(WEIGHTS, (PALETTE[5], PALETTE[0]), strict=True)
}
_SET_COLOURS = (*PALETTE, INK, GREY)


def draw_labels(scores: Scores, path: Path) -> None:
    """Draw accuracy against labels per class: the mean over the sets, and below what weight 1 adds on each set."""
    models = scores.models("labels")
    figure, rows = plt.subplots(
        2, len(models), figsize=(16.0, 8.4), layout="constrained", sharex=True, sharey="row", height_ratios=(1.0, 1.35)
    )
    colour_of = dict(zip(scores.sets("labels"), _SET_COLOURS, strict=True))
    ends = {}
    for model, above, below in zip(models, *rows, strict=True):
        n_sets = len(scores.sets("labels", model))
        above.set_title(f"{model}, {n_sets} sets", loc="left", fontweight="bold")
        for variant, (colour, _) in _LINES.items():
            _draw_line(
                above, LABELLED, [scores.mean("accuracy", "labels", model, n, variant) for n in LABELLED], colour
            )
        below.plot((LABELLED[0], LABELLED[-1]), (0.0, 0.0), color=GREY, lw=0.8, zorder=0)
        ends[model] = {}
        for name in scores.sets("labels", model):
            gains = [_percent(*scores.gain("accuracy", name, model, n, f"{max(WEIGHTS):g}")) for n in LABELLED]
            _draw_line(below, LABELLED, gains, colour_of[name])
            ends[model][name] = gains[-1][0]
    rows[0, 0].set_xscale("log")
    rows[0, 0].set_xticks(LABELLED, map(str, LABELLED))
    rows[0, 0].set_xlim(LABELLED[0] * 0.92, LABELLED[-1] * 4.5)
    for ax in rows.flat:
        ax.minorticks_off()
    for model, below in zip(models, rows[1], strict=True):  # now that all lines have settled the limits
        _name_lines(below, LABELLED[-1], ends[model], colour_of, gap=0.05)
    for position, (_, (colour, text)) in enumerate(_LINES.items()):
        rows[0, 0].text(0.98, 0.30 - 0.085 * position, text, transform=rows[0, 0].transAxes, color=colour, ha="right")
    rows[0, 0].set_ylabel("accuracy, mean over the sets")
    rows[1, 0].set_ylabel("what rows without label add at weight 1,\nin points of accuracy")
    figure.supxlabel("labels per class; bands are one standard error")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_cells(scores: Scores, path: Path) -> None:
    """Draw accuracy and log-loss against the share of missing cells, the mean over the sets."""
    figure, axes = plt.subplots(1, 2, figsize=(14.0, 5.6), layout="constrained")
    models = scores.models("cells")
    colour_of = dict(zip(models, (*PALETTE[:4], GREY, INK, PALETTE[4]), strict=True))
    for ax, measured in zip(axes, ("accuracy", "log_loss"), strict=True):
        ends = {}
        for model in models:
            means = [scores.mean(measured, "cells", model, share) for share in SHARES]
            _draw_line(ax, [100 * share for share in SHARES], means, colour_of[model], dashed=_is_peer(model))
            ends[model] = means[-1][0]
        if measured == "log_loss":
            ax.set_yscale("log")
            ax.set_yticks([0.2, 0.3, 0.5, 1.0, 2.0], ["0.2", "0.3", "0.5", "1", "2"])
            ax.minorticks_off()
        ax.set(xlabel="missing cells, %", xlim=(-1.0, 84.0), xticks=[100 * share for share in SHARES])
        ax.set_ylabel("accuracy" if measured == "accuracy" else "log-loss, nats per row")
        _name_lines(ax, 100 * SHARES[-1], ends, colour_of, gap=0.048)
    figure.suptitle(
        f"Mean over {len(scores.sets('cells'))} sets; bands are one standard error; dashed: scikit-learn", fontsize=11
    )
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _is_peer(model: str) -> bool:
    return "logistic" in model or "boosting" in model


def _percent(mean: float, se: float) -> tuple[float, float]:
    return 100.0 * mean, 100.0 * se


def _draw_line(
    ax: Any, x: Sequence[float], means: list[tuple[float, float]], colour: str, dashed: bool = False
) -> None:
    mean, se = np.array(means).T
    open_axes(ax)
    ax.plot(x, mean, "--" if dashed else "-", color=colour, lw=1.9, marker="o", ms=3.5)
    ax.fill_between(x, mean - se, mean + se, color=colour, alpha=0.15, lw=0)


def _name_lines(ax: Any, x: float, ends: dict[str, float], colour_of: dict[str, str], gap: float) -> None:
    """Name each line beside its end, moved up or down by as much as names need; gap is a share of the axes."""
    ax.figure.canvas.draw()  # settles the limits, which names must not move
    ax.autoscale(False)
    to_axes = ax.transData + ax.transAxes.inverted()
    order = sorted(ends, key=lambda name: ends[name])
    wanted = np.array([to_axes.transform((x, ends[name]))[1] for name in order])
    positions = _spread(wanted, gap)
    start = to_axes.transform((x, ends[order[0]]))[0]
    for name, at, position in zip(order, wanted, positions, strict=True):
        ax.plot(
            [start, start + 0.035], [at, position], transform=ax.transAxes, color=colour_of[name], lw=0.8, alpha=0.7
        )
        ax.text(start + 0.042, position, name, transform=ax.transAxes, color=colour_of[name], va="center", fontsize=9.5)


def _spread(wanted: np.ndarray, gap: float) -> np.ndarray:
    """Return places at least a gap apart, in the same order, near those wanted (least squares, by pooling)."""
    shifted = wanted - gap * np.arange(len(wanted))
    groups: list[list[float]] = []
    for value in shifted:
        groups.append([value])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    level = np.concatenate([np.full(len(group), np.mean(group)) for group in groups])
    return level + gap * np.arange(len(wanted))
