"""Figures in the plane of two features: decision regions, covariance ellipses and discriminants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaincinv
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import OfClasses, estimator_of
from posteriori.classifiers.gaussian_discriminant import GaussianDiscriminant
from posteriori.model import Posterior
from posteriori.plotting.canvas import INK, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.effects import plot_posterior_along
from posteriori.plotting.reading import Feature, class_numbers, given_class_numbers, posterior_of
from posteriori.support.typing import Array
from posteriori.tables import Batch, quote

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.generative_estimator import GenerativeEstimator


_MARKERS = "os^DvPX<>"


def plot_decision_regions(
    model: GenerativeEstimator,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Shade the plane of two features by the most probable class and its posterior, and draw the rows.

    For one feature, ``features=("x",)``, draw the posterior p(y | x) along it, and below it the joint densities
    p(x, y).

    All other features are missing. A generative model integrates missing cells out, so that the shade is exactly
    p(y | x_a, x_b), not a slice at typical values of the other features. The prediction for a complete row may differ
    from the region that it lies in. For a `GenerativeClassifier` the shade is the posterior of the pool. If factors are
    weighted or several models are pooled, the posterior is not the normalized joint density.

    Parameters
    ----------
    model : fitted classifier
    X : array-like or data frame (n, d)
        Rows to draw, which also set the range. Rows that lack one of the features are not drawn.
    y : array-like (n,) or str, optional
        Labels, or the column of X that holds them.
    features : two names or indices, or one, optional
        The horizontal and the vertical feature. Default: the continuous features, if the model has two, or its
        only feature.
    resolution : int, default 200
        Number of points along an axis; the cost is that of predicting resolution² rows.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The features in their own units. For one feature, the axes of the posterior; the next axes of the figure
        are those of the joint densities.

    Raises
    ------
    ValueError
        A feature is unknown, categorical or without a value in X, or the default features are ambiguous.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins().drop("island", "sex")
    >>> model = po.GaussianDiscriminant().fit(table, "species")
    >>> ax = po.plotting.plot_decision_regions(model, table, features=["bill_length_mm", "bill_depth_mm"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('bill_length_mm', 'bill_depth_mm')
    """
    fitted = posterior_of(model)
    if resolution < 2:
        raise ValueError(f"resolution is {resolution}; give at least 2 points along an axis")
    single = _the_only_one(fitted, features)
    if single is not None:
        return plot_posterior_along(model, Feature.of(model, single), X, y, resolution, ax)
    pair = two_continuous(model, features)
    component = given_class_numbers(model.classes_, y, X)
    cells = [feature.read(model, X) for feature in pair]
    ticks = [_ticks(feature, seen, resolution) for feature, seen in zip(pair, cells, strict=True)]
    across, up = np.meshgrid(*ticks)
    log_posterior = _log_posterior(fitted, pair, across, up)

    ax = open_axes(ax, height=4.8)
    ax.pcolormesh(across, up, _shades(log_posterior), shading="nearest", rasterized=True)
    _draw_boundaries(ax, across, up, log_posterior)
    if component is None:
        draw_rows(ax, cells[0], cells[1], color=INK, marker="o", label="rows")
    else:
        draw_classes(ax, cells[0], cells[1], component, model)
    ax.set(xlabel=pair[0].column.name, ylabel=pair[1].column.name)
    draw_legend(ax)
    return ax


def _the_only_one(fitted: Posterior, features: Sequence[str | int] | None) -> str | int | None:
    """Return the feature if there is only one to draw; None for a plane."""
    if features is None:
        return 0 if len(fitted.schema.columns) == 1 else None
    return features[0] if len(features) == 1 and not isinstance(features, str) else None


def two_continuous(model: OfClasses, features: Sequence[str | int] | None) -> tuple[Feature, Feature]:
    """Return the two features of a plane; raise ValueError if they are ambiguous or one is categorical."""
    fitted = posterior_of(model)
    continuous = fitted.schema.of_kind("continuous")
    if features is None and len(continuous) != 2:
        names = quote([fitted.schema.names[j] for j in continuous])
        raise ValueError(
            f"the model has {len(continuous)} continuous features, not two: {names}; choose with features=(…, …)"
        )
    chosen = [Feature.of(model, feature) for feature in (continuous if features is None else features)]
    if len(chosen) != 2 or chosen[0].position == chosen[1].position:
        raise ValueError(f"features={features!r} are not two different features")
    for feature in chosen:
        if feature.categorical:
            raise ValueError(f"column {feature.column.name!r} is categorical; the plane is that of continuous ones")
    return chosen[0], chosen[1]


def _ticks(feature: Feature, cells: Array, resolution: int) -> Array:
    """Return points along an axis, slightly beyond the range of the cells; whole numbers for counts."""
    ticks = np.linspace(*feature.around(cells), resolution)
    if feature.whole:
        ticks = np.unique(ticks.round())
    return ticks[~feature.out_of_support(ticks)]


def _log_posterior(fitted: Posterior, pair: tuple[Feature, Feature], across: Array, up: Array) -> Array:
    """Return log p(y | x_a, x_b) on the grid, (rows, columns, C); −inf where no class can produce the point."""
    schema = fitted.schema
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers = np.full((across.size, len(continuous)), np.nan)
    for feature, cells in zip(pair, (across, up), strict=True):
        numbers[:, continuous.index(feature.position)] = cells.ravel()
    codes = np.zeros((across.size, len(categorical)), schema.code_dtype)
    plane = Batch.of(schema, 0, numbers, codes, {})
    found = fitted.ignore_missingness_except([feature.position for feature in pair]).log_posterior(plane)
    return np.where(np.isnan(found), -np.inf, found).reshape(*across.shape, -1)


def _shades(log_posterior: Array) -> Array:
    """Return the colour of the most probable class, paler for posteriors near 1/C; white if no class is possible."""
    from matplotlib.colors import to_rgb

    n_classes, best = log_posterior.shape[2], log_posterior.max(axis=2)
    with np.errstate(invalid="ignore"):
        posterior = 1.0 / np.exp(log_posterior - best[..., np.newaxis]).sum(axis=2)
    sure = (posterior * n_classes - 1.0) / max(n_classes - 1.0, 1.0)
    strength = np.where(np.isfinite(best), 0.08 + 0.37 * sure, 0.0)[..., np.newaxis]
    colours = np.array([to_rgb(colour) for colour in class_colours(n_classes)])
    shades: Array = 1.0 - strength * (1.0 - colours[log_posterior.argmax(axis=2)])
    return shades


def _draw_boundaries(ax: Axes, across: Array, up: Array, log_posterior: Array) -> None:
    """Draw the boundary of each class: equal posterior with the best other class."""
    n_classes = log_posterior.shape[2]
    if n_classes == 1:
        return
    for c in range(n_classes):
        lead = log_posterior[..., c] - np.delete(log_posterior, c, axis=2).max(axis=2)
        if np.nanmin(lead) < 0 < np.nanmax(lead):
            ax.contour(across, up, np.ma.masked_invalid(lead), levels=[0.0], colors=INK, linewidths=1.0)


def draw_classes(ax: Axes, across: Array, up: Array, component: Array, model: OfClasses) -> None:
    """Draw rows with the colour and marker of their class."""
    names = class_names(model)
    for c, (name, colour) in enumerate(zip(names, class_colours(len(names)), strict=True)):
        mine, marker = component == c, _MARKERS[c % len(_MARKERS)]
        draw_rows(ax, across[mine], up[mine], color=colour, marker=marker, label=name)


def draw_rows(ax: Axes, across: Array, up: Array, **look: Any) -> None:
    """Draw rows as points; smaller points for more rows."""
    size = np.clip(4000.0 / max(len(across), 1), 8.0, 26.0)
    ax.scatter(across, up, s=size, edgecolors="white", linewidths=0.5, **look)


_ANGLES = np.linspace(0.0, 2.0 * np.pi, 181)


def plot_covariances(
    model: GaussianDiscriminant,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    shares: Sequence[float] = (0.5, 0.95),
    ax: Axes | None = None,
) -> Axes:
    """Draw the Gaussian of each class over two features: its mean, and ellipses that contain given shares.

    Parameters
    ----------
    model : fitted GaussianDiscriminant, or GenerativeClassifier
        For a pool, the Gaussian member with the greatest weight is drawn, and the title names it.
    X : array-like or data frame (n, d), optional
        Rows to draw behind the ellipses.
    y : array-like (n,) or str, optional
        Labels, or the column of X that holds them.
    features : two names or indices, optional
        The horizontal and the vertical feature. Default: the continuous features, if the model has two.
    shares : sequence of float, default (0.5, 0.95)
        Probability of each ellipse under the Gaussian of the class, between 0 and 1.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The features in their own units.

    Raises
    ------
    ValueError
        A feature is unknown or categorical, the default features are ambiguous, a share is not between 0 and 1,
        y is given without X, or a pool has no Gaussian member.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins().drop("island", "sex")
    >>> model = po.GaussianDiscriminant().fit(table, "species")
    >>> ax = po.plotting.plot_covariances(model, table, features=["bill_length_mm", "bill_depth_mm"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('bill_length_mm', 'bill_depth_mm')
    """
    model, title = _gaussian_of(model)
    if not all(0.0 < share < 1.0 for share in shares):
        raise ValueError(f"shares={tuple(shares)} must lie between 0 and 1, as 0.95 does")
    pair = two_continuous(model, features)
    continuous = model.model_.schema.of_kind("continuous")
    positions = [continuous.index(feature.position) for feature in pair]
    component = given_class_numbers(model.classes_, y, X)
    cells = None if X is None else [feature.read(model, X) for feature in pair]

    ax = open_axes(ax, height=4.8)
    names, colours = class_names(model), class_colours(len(model.classes_))
    if cells is not None and component is not None:
        draw_classes(ax, cells[0], cells[1], component, model)
    elif cells is not None:
        draw_rows(ax, cells[0], cells[1], color=INK, marker="o", label="rows")
    for c, (name, colour) in enumerate(zip(names, colours, strict=True)):
        mean = model.means_[c, positions]
        covariance = model.covariance_ if model.covariance_.ndim == 2 else model.covariance_[c]
        for share in shares:
            ax.plot(*_ellipse(mean, covariance[np.ix_(positions, positions)], share), color=colour, linewidth=1.6)
        _draw_mean(ax, mean, colour if component is None else INK, None if component is not None else name)
    ax.set(xlabel=pair[0].column.name, ylabel=pair[1].column.name)
    draw_legend(ax)
    _say_which(ax, title)
    return ax


def plot_discriminants(model: GaussianDiscriminant, X: Any, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw rows in the plane of the first two discriminant directions, which separate the classes most.

    The covariance within classes is the identity there. The circle around the mean of each class (a cross) has
    probability 95 % if the classes share their covariance. With two classes or one feature there is only one
    direction, and the rows are drawn along it, with one line per class.

    Parameters
    ----------
    model : fitted GaussianDiscriminant, or GenerativeClassifier
        With two or more classes. For a pool, its Gaussian member with the greatest weight is drawn; the title names
        it.
    X : array-like or data frame (n, d)
    y : array-like (n,) or str, optional
        Labels, or the column of X that holds them. Default: the predicted classes.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Distances in standard deviations within a class.

    Raises
    ------
    ValueError
        The model has one class only, or a pool has no Gaussian member.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins().drop("island", "sex")
    >>> model = po.GaussianDiscriminant().fit(table, "species")
    >>> ax = po.plotting.plot_discriminants(model, table, "species")
    >>> ax.get_xlabel()
    'direction 1 (87.4%)'
    """
    whole = model
    model, title = _gaussian_of(model)
    if len(model.classes_) < 2:
        raise ValueError(f"the model has one class only, {model.classes_[0]!r}: there is nothing to separate")
    component = class_numbers(model.classes_, whole.predict(X) if y is None else y, X)
    rows = model.transform(X)
    means = (model.means_ - model.xbar_) @ model.scalings_
    names, colours = class_names(model), class_colours(len(model.classes_))
    labels = [f"direction {k + 1} ({share:.1%})" for k, share in enumerate(model.explained_variance_ratio_)]

    ax = open_axes(ax, height=4.8)
    if rows.shape[1] == 1:
        jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(rows))
        draw_classes(ax, rows[:, 0], component + jitter, component, model)
        for c, mean in enumerate(means[:, 0]):
            _draw_mean(ax, np.array([mean, c]), INK)
        ax.set(xlabel=labels[0], yticks=range(len(names)), yticklabels=names)
    else:
        draw_classes(ax, rows[:, 0], rows[:, 1], component, model)
        for mean, colour in zip(means[:, :2], colours, strict=True):
            ax.plot(*_ellipse(mean, np.eye(2), 0.95), color=colour, linewidth=1.6)
            _draw_mean(ax, mean, INK)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        ax.set_aspect("equal", adjustable="datalim")
    draw_legend(ax)
    _say_which(ax, title)
    return ax


def _gaussian_of(model: Classifier) -> tuple[Any, str]:
    """Return the model, or for a pool its Gaussian member of greatest weight, and a title that names the member."""
    check_is_fitted(model)
    value = model.fitted_
    if not value.members:
        return model, ""
    members = value.members
    gaussian = [name for name, one in members.items() if one.recipe.family is GaussianDiscriminant]
    if not gaussian:
        raise ValueError(
            f"none of the pool's members ({', '.join(members)}) is a Gaussian discriminant analysis; fit "
            "GaussianDiscriminant() to these rows, and draw that"
        )
    name = max(gaussian, key=lambda one: float(value.weights[one]))
    return estimator_of(members[name]), f"the pool's member {name}, of weight {value.weights[name]:.2g}"


def _say_which(ax: Axes, title: str) -> None:
    """Write the title above the legend."""
    if title:
        ax.set_title(title, loc="right", fontsize="medium", color=INK, pad=26.0)


def _draw_mean(ax: Axes, mean: Array, colour: str, name: str | None = None) -> None:
    ax.plot(*mean, "P", color=colour, markeredgecolor="white", markeredgewidth=1.0, markersize=11, label=name)


def _ellipse(mean: Array, covariance: Array, share: float) -> Array:
    """Return points (2, …) of the ellipse that contains a share of a Gaussian."""
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    points: Array = (
        mean[:, np.newaxis] + np.sqrt(2.0 * gammaincinv(1.0, share)) * np.linalg.cholesky(covariance) @ circle
    )
    return points
