"""Learning curves: a score or the time of each model against the number of training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.model_selection.measures import MEASURES
from posteriori.plotting.canvas import class_colours, draw_legend, open_axes
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST_MEANS = 8
_USUAL, _ABOVE = 0.75, 1.0  # the axis ends one such range above the upper quartile of the means


def plot_learning_curves(comparison: Any, measure: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a score of each model against the number of training rows.

    Lines are means over the repeats, solid for generative models and dashed for discriminative ones; bands are two
    standard errors of the mean to either side. The axes of rows and of seconds are logarithmic. The axis of a loss ends
    above most of the means; the largest losses, of few training rows, may lie beyond it.

    Parameters
    ----------
    comparison : Comparison
        Result of `posteriori.compare`.
    measure : {"log_loss", "accuracy", "brier", "crps", "rmse", "fit_seconds", "predict_seconds"}, optional
        Default: "log_loss", or "rmse" of numbers.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        The measure is not known.

    References
    ----------
    Ng & Jordan (2002), On discriminative vs. generative classifiers: a comparison of logistic regression and naive
    Bayes, NIPS 14, figure 1.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> comparison = po.compare(["nb", "lda"], table, "species", sizes=[50, 200], repeats=2)
    >>> ax = po.plotting.plot_learning_curves(comparison)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rows learned from', 'log-loss on held-out rows (nats per row)')
    """
    measure = measure or comparison.main_measure
    if measure not in comparison.measures:
        raise ValueError(f"measure is {measure!r}; give one of {', '.join(map(repr, comparison.measures))}")
    is_time, is_loss = MEASURES[measure].is_time, not MEASURES[measure].more_is_better
    ax = open_axes(ax)
    ax.set_xscale("log")
    if is_time:
        ax.set_yscale("log")
    for title, colour in zip(comparison.models, class_colours(len(comparison.models)), strict=True):
        rows = comparison.summary.filter(pl.col("model") == title).sort("n_rows")
        columns = ("n_rows", measure, f"{measure}_error")
        n_rows, mean, error = (rows[name].cast(pl.Float64).to_numpy() for name in columns)
        if np.isnan(mean).all():  # a model without this score
            continue
        style = "-" if title in comparison.generative else "--"
        ax.plot(n_rows, mean, style, color=colour, lw=1.8, marker="o", ms=3.5, label=title)
        if comparison.repeats > 1:
            low, high = _band(mean, error, measure)
            ax.fill_between(n_rows, low, high, color=colour, alpha=0.15, lw=0)
    _mark_sizes(ax, comparison.sizes)
    if is_loss and not is_time:
        _limit_losses(ax)
    ax.set(xlabel="rows learned from", ylabel=MEASURES[measure].line("" if is_time else " on held-out rows"))
    draw_legend(ax)
    return ax


def _band(mean: Array, error: Array, measure: str) -> tuple[Array, Array]:
    """Return two standard errors to either side, clipped to the range of the score."""
    low, high = mean - 2 * error, mean + 2 * error
    if MEASURES[measure].more_is_better:
        return low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    return low.clip(mean / 10 if MEASURES[measure].is_time else 0.0), high


def _limit_losses(ax: Axes) -> None:
    """End the axis above most of the means, so that a model that fails on the fewest rows does not squeeze the rest."""
    means = np.concatenate([np.asarray(line.get_ydata(), np.float64) for line in ax.lines])
    means = means[np.isfinite(means)]
    if len(means) >= _FEWEST_MEANS:
        lowest, usual = means.min(), np.quantile(means, _USUAL)
        top = usual + _ABOVE * (usual - lowest)
        if means.max() > top:
            ax.set_ylim(max(lowest - 0.1 * (top - lowest), 0.0), top)


def _mark_sizes(ax: Axes, sizes: tuple[int, ...]) -> None:
    """Set the ticks at the training sizes instead of powers of ten."""
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xticks([], minor=True)
