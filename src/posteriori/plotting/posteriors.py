"""Posterior along one feature, above the joint densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.formatting import shorten
from posteriori.plotting.canvas import class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.densities import plot_densities
from posteriori.plotting.reading import Feature
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_posterior_along(model: Any, feature: Feature, X: Any, y: Any, resolution: int, ax: Axes | None) -> Axes:
    """Draw p(y | x) along one feature, and p(x, y) on axes below; return the upper axes.

    Parameters
    ----------
    model : fitted classifier
    feature : Feature
    X, y : as in `plot_decision_regions`
    resolution : int
        Number of points along a numeric feature.
    ax : matplotlib Axes, optional
        Axes whose area is divided between the two.
    """
    cells = feature.read(model, X)
    ax = open_axes(ax, height=6.4)
    below = split(ax)
    plot_densities(model, feature.position, X=X, y=y, joint=True, ax=below)
    legend = below.get_legend()
    if legend is not None:
        legend.remove()  # the upper axes have the same legend
    points = _points(feature, cells, resolution)
    posterior = feature.posterior(points)
    names, colours = class_names(model), class_colours(posterior.shape[1])
    if feature.categorical:
        top = np.zeros(len(points))
        for c, (name, colour) in enumerate(zip(names, colours, strict=True)):
            ax.bar(points, np.nan_to_num(posterior[:, c]), 0.84, bottom=top, color=colour, alpha=0.85, label=name)
            top += np.nan_to_num(posterior[:, c])
    else:
        for c, (name, colour) in enumerate(zip(names, colours, strict=True)):
            ax.plot(points, posterior[:, c], color=colour, lw=2.0, label=name)
        below.set_xlim(points[0], points[-1])
    given = feature.fitted.schema.target or "class"
    ax.set(ylabel=f"p({given} | {shorten(feature.column.name)})", ylim=(0.0, 1.02))
    below.set_ylabel(f"p({shorten(feature.column.name)}, {given})")
    ax.tick_params(labelbottom=False)
    draw_legend(ax)
    return ax


def split(ax: Axes, upper: float = 0.5) -> Axes:
    """Move the axes to the upper part of their area, and return new axes on the rest, with the same horizontal axis.

    Parameters
    ----------
    ax : matplotlib Axes
    upper : float, default 0.5
        The share of the height for the upper axes.
    """
    figure: Any = ax.figure
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        above, under = 0.92 * upper * box.height, 0.92 * (1.0 - upper) * box.height
        ax.set_position((box.x0, box.y1 - above, box.width, above))
        below: Axes = figure.add_axes((box.x0, box.y0, box.width, under), sharex=ax)
    else:
        parts = spec.subgridspec(2, 1, height_ratios=[upper, 1.0 - upper])
        ax.set_subplotspec(parts[0])
        below = figure.add_subplot(parts[1], sharex=ax)
    return below


def _points(feature: Feature, cells: Array, resolution: int) -> Array:
    """Return every category; for numbers, a grid slightly wider than the cells, with points beside each jump."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    if np.isnan(cells).all():
        raise ValueError(f"column {feature.column.name!r} of X has no cell with a value, so no range")
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    margin = 0.06 * (high - low) or 1.0
    points = np.linspace(low - margin, high + margin, resolution)
    if feature.whole:
        points = np.unique(points.round())
    else:
        cuts = feature.cuts[(feature.cuts > low) & (feature.cuts < high)]
        points = np.unique(np.concatenate([points, cuts, np.nextafter(cuts, -np.inf)]))
    return points[~feature.out_of_support(points)]
