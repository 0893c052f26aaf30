"""The effect of one column on the prediction, above its densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.explain.effects import ColumnEffect, column_effect
from posteriori.plotting.canvas import GREY, INK, class_colours, class_name, class_names, draw_legend, open_axes
from posteriori.plotting.densities import limit_to, plot_densities
from posteriori.plotting.posteriors import split
from posteriori.plotting.reading import Feature, class_number, posterior_of
from posteriori.plotting.scales import Scale
from posteriori.tables import Batch
from posteriori.tables.batch import joined
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.generative_estimator import GenerativeEstimator

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
    ImportError
        Matplotlib is not installed.

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
    if X is None and y is not None:
        raise ValueError("y needs X; give the rows that it labels too")
    pairs = _pairs(classes, label, against)
    rows = read_batch(model, model.sample(_ROWS, random_state=0)[0] if X is None else X)
    cells = cells_of(rows, drawn.position)
    if np.isnan(cells).all():
        raise ValueError(f"column {drawn.column.name!r} has no cell with a value in these rows, so no range")
    scale = Scale() if drawn.whole else Scale.of(cells[~np.isnan(cells)])
    points = effect_points(drawn, cells, scale)
    effect = effect_of(model, rows.rows(evenly(len(rows), _ROWS)), drawn.position, points)

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


def effect_of(model: Any, rows: Batch, column: int, cells: Array) -> ColumnEffect:
    """Return the effect of a column of a fitted classifier at some cells, over the rows of a batch."""
    fitted = posterior_of(model)
    others = [j for j in range(len(fitted.schema.columns)) if j != column]
    without = fitted.ignore_missingness_except(others)
    return column_effect(fitted.log_posterior, without.log_posterior, rows, column, cells)


def read_batch(model: Any, X: Any) -> Batch:
    """Return rows as one batch of numbers and codes."""
    batches: dict[int, Batch] = {}

    def keep(batch: Batch) -> Array:
        batches[batch.start] = batch
        return np.empty((len(batch), 0))

    model._source(X).map(keep)
    return joined([batches[start] for start in sorted(batches)]).with_schema(posterior_of(model).schema)


def cells_of(rows: Batch, column: int) -> Array:
    """Return the cells of a column as numbers or codes, NaN where missing; all NaN in another kind of column."""
    schema = rows.schema
    if schema.columns[column].kind not in ("continuous", "categorical"):
        return np.full(len(rows), np.nan)
    if schema.columns[column].kind == "continuous":
        return rows.numbers.values[:, schema.of_kind("continuous").index(column)].astype(np.float64)
    codes = rows.codes.values[:, schema.coded.index(column)]
    return np.where(codes == 0, np.nan, codes)


def evenly(n: int, most: int) -> Array:
    """Return at most so many positions of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def effect_points(feature: Feature, cells: Array, scale: Scale, most: int = _POINTS) -> Array:
    """Return every category; for numbers, a grid over the range of the cells, with points beside each jump."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    ends = float(np.nanmin(cells)), float(np.nanmax(cells))
    points = scale.grid(*ends, most)
    if feature.whole:
        points = np.unique(points.round())
    else:
        cuts = feature.cuts[(feature.cuts > ends[0]) & (feature.cuts < ends[1])]
        cuts = cuts[evenly(len(cuts), _MOST_JUMPS)] if len(cuts) else cuts
        points = np.unique(np.concatenate([points, cuts, np.nextafter(cuts, -np.inf)]))
    return points[~feature.out_of_support(points)]


def _pairs(classes: Array, label: Any, against: Any) -> list[tuple[int, int | None]]:
    """Return the classes of the curves, each with the class of its odds; None for the mean of all classes."""
    other = None if against is None else class_number(classes, against)
    if label is not None:
        chosen = [class_number(classes, label)]
    else:
        chosen = [1] if len(classes) == 2 and other is None else [c for c in range(len(classes)) if c != other]
    if other is None and len(classes) == 2:
        other = 1 - chosen[0]
    if other in chosen:
        raise ValueError(f"label and against are both {label!r}; give two classes")
    return [(c, other) for c in chosen]


def _draw(ax: Axes, effect: ColumnEffect, pairs: list[tuple[int, int | None]], categorical: bool, model: Any) -> None:
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
