"""Learning curves: a score or the time of each model against the number of training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.plotting.canvas import class_colours, draw_legend, open_axes
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOSSES = ("log_loss", "brier")
_FEWEST_MEANS = 8
_USUAL, _ABOVE = 0.75, 1.0  # the axis ends one such range above the upper quartile of the means
_AXES = {
    "accuracy": "accuracy on held-out rows",
    "log_loss": "log-loss on held-out rows (nats per row)",
    "brier": "Brier score on held-out rows",
    "fit_seconds": "seconds to fit",
    "predict_seconds": "seconds to predict the held-out rows",
}


def plot_learning_curves(comparison: Any, measure: str = "log_loss", *, ax: Axes | None = None) -> Axes:
    """Draw a score of each model against the number of training rows.

    Lines are means over the repeats, solid for generative models and dashed for discriminative ones; bands are two
    standard errors of the mean to either side. The axes of rows and of seconds are logarithmic. The axis of a loss ends
    above most of the means; the largest losses, of few training rows, may lie beyond it.

    Parameters
    ----------
    comparison : Comparison
        Result of `posteriori.compare`.
    measure : {"log_loss", "accuracy", "brier", "fit_seconds", "predict_seconds"}, default "log_loss"
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        The measure is not known.
    ImportError
        Matplotlib is not installed.

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
    if measure not in _AXES:
        raise ValueError(f"measure is {measure!r}; give one of {', '.join(map(repr, _AXES))}")
    ax = open_axes(ax)
    ax.set_xscale("log")
    if measure.endswith("seconds"):
        ax.set_yscale("log")
    for title, colour in zip(comparison.models, class_colours(len(comparison.models)), strict=True):
        rows = comparison.summary.filter(pl.col("model") == title).sort("n_rows")
        n_rows, mean, error = (rows[name].to_numpy() for name in ("n_rows", measure, f"{measure}_error"))
        style = "-" if title in comparison.generative else "--"
        ax.plot(n_rows, mean, style, color=colour, lw=1.8, marker="o", ms=3.5, label=title)
        if comparison.repeats > 1:
            low, high = _band(mean, error, measure)
            ax.fill_between(n_rows, low, high, color=colour, alpha=0.15, lw=0)
    _mark_sizes(ax, comparison.sizes)
    if measure in _LOSSES:
        _limit_losses(ax)
    ax.set(xlabel="rows learned from", ylabel=_AXES[measure])
    draw_legend(ax)
    return ax


def _band(mean: Array, error: Array, measure: str) -> tuple[Array, Array]:
    """Return two standard errors to either side, clipped to the range of the score."""
    low, high = mean - 2 * error, mean + 2 * error
    if measure == "accuracy":
        return low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    return low.clip(mean / 10 if measure.endswith("seconds") else 0.0), high


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
