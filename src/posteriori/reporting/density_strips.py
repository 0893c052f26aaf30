"""Class-conditional densities of one feature as shaded strips, for many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.formatting import shorten
from posteriori.plotting.canvas import class_names
from posteriori.plotting.reading import Feature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.typing import Array

MOST_SHADES = 40  # classes; the most frequent are drawn
_POINTS = 200


def plot_density_strips(model: Any, feature: int, X: Any, ax: Axes) -> Axes:
    """Draw p(x_j | y) as one shaded strip per class, each scaled to its own maximum.

    Parameters
    ----------
    model : fitted classifier
    feature : int
        Index of the feature.
    X : table (n, d)
        Rows that determine the range of the axis.
    ax : matplotlib Axes
    """
    drawn = Feature.of(model, feature)
    points = _points(drawn, drawn.read(model, X))
    density = drawn.densities(points).T
    chosen = np.sort(np.argsort(-drawn.fitted.class_log_prior, kind="stable")[:MOST_SHADES])
    density = density[chosen]
    greatest = np.maximum(density.max(axis=1, keepdims=True), 1e-300)
    half = (points[1] - points[0]) / 2.0 if len(points) > 1 else 0.5
    extent = (points[0] - half, points[-1] + half, len(chosen) - 0.5, -0.5)
    ax.imshow(density / greatest, aspect="auto", cmap="Blues", extent=extent, interpolation="nearest")
    ax.set_yticks(range(len(chosen)), [class_names(model)[c] for c in chosen])
    ax.tick_params(axis="y", length=0)
    if drawn.categorical:
        names = [shorten(category) for category in drawn.column.categories]
        ax.set_xticks(points, names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_xlabel(drawn.column.name)
    return ax


def _points(feature: Feature, cells: Array) -> Array:
    """Return the evaluation points: every category, or an even grid over the central 99 % of the values."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    low, high = np.nanquantile(cells, [0.005, 0.995])
    if feature.whole and high - low <= _POINTS:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    points = np.linspace(low, high, _POINTS) if high > low else np.array([low])
    return np.unique(points.round()) if feature.whole else points
