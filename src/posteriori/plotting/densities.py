"""Class-conditional densities of one feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from posteriori.formatting import shorten
from posteriori.plotting.canvas import (
    INK,
    OBSERVED,
    PALETTE,
    class_colours,
    class_names,
    draw_legend,
    open_axes,
)
from posteriori.plotting.reading import Feature, class_numbers
from posteriori.plotting.scales import Scale, histogram_edges
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.generative_estimator import GenerativeEstimator

_MARGIN = 0.03  # of the range of the numbers
_SPIKE = 1.6  # times the highest bar of the histograms; the axis ends there
_MOST_BARS = 60  # counts with a wider range are drawn as a curve


def plot_densities(
    model: GenerativeEstimator,
    feature: str | int,
    *,
    X: Any = None,
    y: Any = None,
    joint: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the class-conditional density p(x_j | y): numbers as curves, categories and counts as bars.

    For a `GenerativeClassifier` it is the mixture Σ_m s_m p_m(x_j | y) of its members, with the shares s_m ∝ w_m of
    `score_samples` and `sample`: the density of rows of class y that the pool samples. The posterior of the pool is not
    that of this mixture; `plot_decision_regions` and `plot_effect` draw it.

    Numbers are drawn over the range of X, or of the training rows. In a column with heavy tails the axis is linear near
    0 and logarithmic beyond, and the density is that per unit of this axis, so that areas remain probabilities.

    Parameters
    ----------
    model : fitted classifier
    feature : str or int
        Its name, or its index among the features.
    X : array-like or data frame (n, d), optional
        Rows to compare with: histograms behind the curves, circles (observed shares) on the bars.
    y : array-like (n,) or str, optional
        Labels, or the column of X that holds them. Without labels, all rows are shown as one group, with their
        density under the model, p(x_j) = Σ p(y) p(x_j | y).
    joint : bool, default False
        Draw p(x_j, y) = p(y) p(x_j | y) instead, which adds up to p(x_j).
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The feature in its own unit, against density per unit, per unit of a logarithmic axis, or probability.

    Raises
    ------
    ValueError
        The model has no such feature, y is given without X, or a label is missing or not a class.
    ImportError
        Matplotlib is not installed.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_densities(model, "body_mass_g")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('body_mass_g', 'density p(body_mass_g | species)')
    """
    drawn = Feature.of(model, feature)
    if X is None and y is not None:
        raise ValueError("y needs X; give the rows that it labels too")
    cells = None if X is None else drawn.read(model, X)
    component = None if y is None else class_numbers(model.classes_, y, X)
    seen = _known(cells)
    scale = Scale() if drawn.whole else Scale.of(seen)
    points = _points(drawn, len(model.classes_), seen, scale)
    groups = _groups(model, drawn, points, cells, component, joint)

    bars = drawn.categorical or (drawn.whole and len(points) <= _MOST_BARS)
    names = [shorten(category) for category in drawn.column.categories]
    turned = sum(map(len, names)) > 60
    width = np.clip(2.0 + 0.13 * len(points) * len(groups), 6.4, 14.0) if bars else 6.4
    ax = open_axes(ax, width, height=5.2 if turned else 4.0)
    if bars:
        _draw_bars(ax, groups, points)
    else:
        _draw_curves(ax, groups, points, scale)
        ends = drawn.training_range(model) if not len(seen) else (float(seen.min()), float(seen.max()))
        limit_to(ax, ends, scale)
    if drawn.categorical:
        look: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        ax.set_xticks(points, names, **look)
    name, given = shorten(drawn.column.name), shorten(drawn.fitted.schema.target or "class")
    what = f"p({name}, {given})" if joint else f"p({name} | {given})"
    per = "" if scale.width is None else "\nper unit of the axis"
    ax.set(xlabel=drawn.column.name, ylabel=f"{'probability' if drawn.whole else 'density'} {what}{per}")
    ax.set_ylim(bottom=0.0)
    draw_legend(ax)
    return ax


class _Group(NamedTuple):
    """A class, or all rows: its density at the points, the total area, and the observed cells."""

    name: str
    colour: str
    curve: Array
    area: float
    cells: Array


def _groups(
    model: Any, drawn: Feature, points: Array, cells: Array | None, component: Array | None, joint: bool
) -> list[_Group]:
    densities, prior = drawn.densities(points), np.exp(drawn.fitted.class_log_prior)
    areas = prior if joint else np.ones(len(prior))
    names, colours = class_names(model), class_colours(len(prior))
    groups = []
    for c, area in enumerate(areas):
        mine = None if cells is None or component is None else cells[component == c]
        groups.append(_Group(names[c], colours[c], area * densities[:, c], area, _known(mine)))
    if cells is not None and component is None:
        groups.append(_Group("all", INK, densities @ prior, 1.0, _known(cells)))
    return groups


def _known(cells: Array | None) -> Array:
    return np.empty(0) if cells is None else cells[~np.isnan(cells)]


def limit_to(ax: Axes, ends: tuple[float, float] | None, scale: Scale) -> None:
    """Limit the horizontal axis to a range of numbers, with a small margin."""
    scale.apply(ax)
    if ends is not None and ends[0] < ends[1]:
        low, high = scale.position(np.array(ends))
        ax.set_xlim(*scale.number(np.array([low - _MARGIN * (high - low), high + _MARGIN * (high - low)])))


def _points(feature: Feature, n_classes: int, seen: Array, scale: Scale) -> Array:
    """Return the evaluation points: every category or count; for numbers, a grid that is dense near the classes."""
    if feature.categorical:
        return _category_points(feature)
    drawn = feature.sample(np.repeat(np.arange(n_classes), 500)).reshape(-1, 500)  # one line per model and class
    low, high = np.nanquantile(drawn, [0.005, 0.995], axis=1)
    width = high - low
    reach = np.concatenate([low - 0.2 * width, high + 0.2 * width, seen])
    first, last = reach.min(), reach.max()
    if feature.whole:
        points = np.linspace(np.floor(first), np.ceil(last), 2000).round()
    else:
        near = np.linspace(low - width, high + width, 400).clip(first, last)
        cuts = feature.cuts
        steps = np.append(
            cuts, np.nextafter(cuts, -np.inf)
        )  # two points per cut, just below and at it, draw a vertical step
        even = scale.grid(float(first), float(last), 400)
        points = np.concatenate([near.ravel(), even, steps])
    points = np.unique(points)
    return points[~feature.out_of_support(points)]


def _category_points(feature: Feature) -> Array:
    categories = feature.column.categories
    if not categories:
        raise ValueError(f"column {feature.column.name!r} had no category in training; there is nothing to draw")
    return np.arange(1, len(categories) + 1)


def _draw_curves(ax: Axes, groups: Sequence[_Group], points: Array, scale: Scale) -> None:
    seen = np.concatenate([group.cells for group in groups])
    bins = int(np.clip(3.0 * len(seen) ** (1 / 3), 10, 60))
    whole = scale.width is None and bool((seen == np.floor(seen)).all())
    edges = histogram_edges(scale.position(seen), bins, whole)
    tallest = highest = 0.0
    for group in groups:
        style = "--" if group.colour == INK else "-"
        curve = scale.per_unit_of_axis(points, group.curve)
        ax.plot(points, curve, style, color=group.colour, lw=2.0, label=group.name)
        highest = max(highest, float(curve.max(initial=0.0)))
        if len(group.cells):
            counts = np.histogram(scale.position(group.cells), edges)[0]
            height = group.area * counts / (counts.sum() * np.diff(edges))
            tallest = max(tallest, float(height.max()))
            ax.stairs(height, scale.number(edges), fill=True, color=group.colour, alpha=0.22, lw=0)
        elif not len(seen) and len(groups) <= len(PALETTE):
            ax.fill_between(points, curve, color=group.colour, alpha=0.12, lw=0)
    if 0.0 < _SPIKE * tallest < highest:  # a spike of a narrow bin would squeeze everything else
        ax.set_ylim(top=_SPIKE * tallest)


def _draw_bars(ax: Axes, groups: Sequence[_Group], points: Array) -> None:
    from matplotlib.ticker import MaxNLocator

    width = 0.84 / len(groups)
    circles: list[Any] = []
    for k, group in enumerate(groups):
        at = points + (k - (len(groups) - 1) / 2) * width
        ax.bar(at, group.curve, 0.92 * width, color=group.colour, alpha=0.85, label=group.name)
        if len(group.cells):
            counts = np.array([np.count_nonzero(group.cells == point) for point in points])
            some = counts > 0
            share = group.area * counts[some] / counts.sum()
            circles += ax.plot(at[some], share, "o", mfc="white", mec=INK, ms=4.5, zorder=3)
    for circle in circles[:1]:  # one legend entry
        circle.set_label(OBSERVED)
    ax.set_xlim(points[0] - 0.6, points[-1] + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
