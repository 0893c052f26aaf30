"""Figures along one feature: its class-conditional densities, the posterior, and its effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from posteriori.explain.effects import ColumnEffect, column_effect
from posteriori.plotting.canvas import (
    GREY,
    INK,
    OBSERVED,
    PALETTE,
    TURNED,
    class_colours,
    class_name,
    class_names,
    draw_legend,
    histogram_edges,
    open_axes,
)
from posteriori.plotting.reading import (
    Feature,
    Scale,
    cells_of,
    evenly,
    given_class_numbers,
    posterior_of,
    read_batch,
)
from posteriori.support.formatting import shorten
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.classifier import Classifier
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
    component = given_class_numbers(model.classes_, y, X)
    cells = None if X is None else drawn.read(model, X)
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
        ax.set_xticks(points, names, **(TURNED if turned else {}))
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
    model: Classifier, drawn: Feature, points: Array, cells: Array | None, component: Array | None, joint: bool
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


def plot_posterior_along(model: Classifier, feature: Feature, X: Any, y: Any, resolution: int, ax: Axes | None) -> Axes:
    """Draw p(y | x) along one feature, and p(x, y) on axes below; return the upper axes.

    X and y are as in `plot_decision_regions`, and `resolution` is the number of points along a numeric feature.
    """
    cells = feature.read(model, X)
    ax = open_axes(ax, height=6.4)
    below = split(ax)
    plot_densities(model, feature.position, X=X, y=y, joint=True, ax=below)
    legend = below.get_legend()
    if legend is not None:
        legend.remove()  # the upper axes have the same legend
    points = _posterior_points(feature, cells, resolution)
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
    """Move the axes to the upper share of their area, and return new axes on the rest, of the same horizontal axis."""
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


def _posterior_points(feature: Feature, cells: Array, resolution: int) -> Array:
    """Return every category; for numbers, a grid slightly wider than the cells, with points beside each jump."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    return feature.along(np.linspace(*feature.around(cells), resolution))


_ROWS = 100
_POINTS = 40  # of a number
_MOST_JUMPS = 30  # cut points that are drawn as jumps
_UPPER = 0.58  # share of the height
_MOST_BANDS = 3  # classes


def plot_effect(
    model: GenerativeEstimator,
    feature: str | int,
    X: Any = None,
    y: Any = None,
    *,
    label: Any = None,
    against: Any = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the effect of a column: its contribution to the log-odds against its value, above its densities.

    .. math:: f_a(v) - f_b(v),\quad f_c(v) = \mathbb{E}[\log p(c \mid x_j = v, x_{-j}) - \log p(c \mid x_{-j})]

    Where the log-odds are a sum over the columns, as in naive Bayes, this is the factor of the column in `explain`,
    log p(v | a) − log p(v | b), for every row. Elsewhere it is a mean over rows, and a band shows the middle 80 %
    of the rows: the wider it is, the more the effect depends on the other columns. For a `GenerativeClassifier` it is
    the effect on the posterior of the pool.

    Parameters
    ----------
    model : fitted classifier
    feature : str or int
        Its name, or its index among the features.
    X : array-like or data frame (n, d), optional
        Rows of the expectation: at most 100, evenly spaced. All of them set the range and are drawn as histograms
        below. Default: 100 rows that the model samples.
    y : array-like (n,) or str, optional
        Labels, or the column of X that holds them.
    label, against : class labels, optional
        The classes a and b. Default of two classes: the second against the first. Default of more: every class, each
        against the geometric mean of all classes.
    ax : matplotlib Axes, optional
        Axes whose area is divided between the effect and the densities.

    Returns
    -------
    matplotlib Axes
        Nats against the feature in its own unit. The next axes of the figure are those of the densities.

    Raises
    ------
    ValueError
        The model has no such feature or class, has only one class, y is given without X, or X holds no value of the
        feature.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_effect(model, "body_mass_g")
    >>> ax.get_legend_handles_labels()[1]
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    drawn = Feature.of(model, feature)
    classes = model.classes_
    if len(classes) < 2:
        raise ValueError(f"the model has one class only, {classes[0]!r}: there are no odds")
    given_class_numbers(classes, y, X)  # raises errors now instead of after the effect
    pairs = _pairs(classes, label, against)
    rows = read_batch(model, model.sample(_ROWS, random_state=0)[0] if X is None else X)
    cells = cells_of(rows, drawn.position)
    if np.isnan(cells).all():
        raise ValueError(f"column {drawn.column.name!r} has no cell with a value in these rows, so no range")
    scale = Scale() if drawn.whole else Scale.of(cells[~np.isnan(cells)])
    points = effect_points(drawn, cells, scale)
    effect = column_effect(posterior_of(model), rows.rows(evenly(len(rows), _ROWS)), drawn.position, points)

    ax = open_axes(ax, height=5.6)
    below = split(ax, _UPPER)
    plot_densities(model, drawn.position, X=X, y=y, ax=below)
    _draw(ax, effect, pairs, drawn.categorical, model)
    if not drawn.categorical:
        limit_to(below, (float(np.nanmin(cells)), float(np.nanmax(cells))), scale)
    ax.tick_params(labelbottom=False)
    _label(ax, pairs, model)
    below.set_ylabel(below.get_ylabel().split(" ")[0])
    if len(pairs) > 1:
        draw_legend(ax)
        legend = below.get_legend()
        if legend is not None:
            legend.remove()  # the upper axes have the same legend
    return ax


def effect_points(feature: Feature, cells: Array, scale: Scale) -> Array:
    """Return every category; for numbers, a grid over the range of the cells, with points beside each jump."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    ends = float(np.nanmin(cells)), float(np.nanmax(cells))
    return feature.along(scale.grid(*ends, _POINTS), _MOST_JUMPS)


def _pairs(classes: Array, label: Any, against: Any) -> list[tuple[int, int | None]]:
    """Return the classes of the curves, each with the class of its odds; None for the mean of all classes."""
    other = None if against is None else class_index(against, classes.tolist())
    if label is not None:
        chosen = [class_index(label, classes.tolist())]
    else:
        chosen = [1] if len(classes) == 2 and other is None else [c for c in range(len(classes)) if c != other]
    if other is None and len(classes) == 2:
        other = 1 - chosen[0]
    if other in chosen:
        raise ValueError(f"label and against are both {label!r}; give two classes")
    return [(c, other) for c in chosen]


def _draw(
    ax: Axes, effect: ColumnEffect, pairs: list[tuple[int, int | None]], categorical: bool, model: Classifier
) -> None:
    names, colours = class_names(model), class_colours(len(model.classes_))
    ax.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    width = 0.84 / len(pairs)
    for k, (c, against) in enumerate(pairs):
        mean, low, high = effect.log_odds(c, against)
        if categorical:
            at = effect.cells + (k - (len(pairs) - 1) / 2) * width
            ax.bar(at, mean, 0.92 * width, color=colours[c], alpha=0.85, label=names[c])
            ax.vlines(at, low, high, color=INK, lw=1.0)
            continue
        ax.plot(effect.cells, mean, color=colours[c], lw=2.0, label=names[c])
        if len(pairs) <= _MOST_BANDS:
            ax.fill_between(effect.cells, low, high, color=colours[c], alpha=0.15, lw=0)


def _label(ax: Axes, pairs: list[tuple[int, int | None]], model: Any) -> None:
    labels, target = model.classes_.tolist(), model.schema_.target
    c, against = pairs[0]
    if against is None:
        ax.set_ylabel("log-odds against the mean\nof the classes (nats)")
    elif len(pairs) > 1:
        ax.set_ylabel(f"log-odds against\n{class_name(labels[against], target)} (nats)")
    else:
        names = (class_name(labels[k], target) for k in (c, against))
        ax.set_ylabel("log-odds of {}\nagainst {} (nats)".format(*names))
