"""Figures of Gaussian discriminant analysis: covariance ellipses and discriminant directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.gaussian_discriminant import GaussianDiscriminant
from posteriori.plotting.canvas import INK, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.reading import class_numbers
from posteriori.plotting.regions import draw_classes, draw_rows, two_continuous
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    ImportError
        Matplotlib is not installed.

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
    if X is None and y is not None:
        raise ValueError("y needs X; give the rows of these labels")
    if not all(0.0 < share < 1.0 for share in shares):
        raise ValueError(f"shares={tuple(shares)} must lie between 0 and 1, as 0.95 does")
    pair = two_continuous(model, features)
    continuous = model.model_.schema.of_kind("continuous")
    positions = [continuous.index(feature.position) for feature in pair]
    component = None if y is None else class_numbers(model.classes_, y, X)
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
    ImportError
        Matplotlib is not installed.

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


def _gaussian_of(model: Any) -> tuple[Any, str]:
    """Return the model, or for a pool its Gaussian member of greatest weight, and a title that names the member."""
    if not hasattr(model, "member_weights_") or not hasattr(model, "members_"):
        check_is_fitted(model, "members_" if hasattr(model, "members") else "model_")
        return model, ""
    gaussian = [name for name, one in model.members_.items() if isinstance(one, GaussianDiscriminant)]
    if not gaussian:
        raise ValueError(
            f"none of the pool's members ({', '.join(model.members_)}) is a Gaussian discriminant analysis; fit "
            "GaussianDiscriminant() to these rows, and draw that"
        )
    name = max(gaussian, key=lambda one: float(model.member_weights_[one]))
    return model.members_[name], f"the pool's member {name}, of weight {model.member_weights_[name]:.2g}"


def _say_which(ax: Axes, title: str) -> None:
    """Write the title above the legend."""
    if title:
        ax.set_title(title, loc="right", fontsize="medium", color=INK, pad=26.0)


def _draw_mean(ax: Axes, mean: Array, colour: str, name: str | None = None) -> None:
    ax.plot(*mean, "P", color=colour, markeredgecolor="white", markeredgewidth=1.0, markersize=11, label=name)


def _ellipse(mean: Array, covariance: Array, share: float) -> Array:
    """Return points (2, …) of the ellipse that contains a share of a Gaussian."""
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    points: Array = mean[:, np.newaxis] + np.sqrt(chi2(2).ppf(share)) * np.linalg.cholesky(covariance) @ circle
    return points
