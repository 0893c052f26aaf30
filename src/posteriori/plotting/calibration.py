"""Calibration curves (reliability diagrams)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from posteriori.plotting.canvas import GREY, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.predictions import Predictions
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Strategy = Literal["quantile", "uniform"]


def plot_calibration(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    proba: Any = None,
    n_bins: int = 10,
    strategy: _Strategy = "quantile",
    label: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a calibration curve per class: observed frequency against mean predicted probability.

    Each dot is a bin of rows: the share of the class among them, with Wilson's 95 % interval, against their mean
    p(y | x). Its area is proportional to the number of rows. The legend shows the expected calibration error, the mean
    distance from the diagonal over the rows.

    Parameters
    ----------
    model : fitted classifier
        Of this library or of scikit-learn.
    X : array-like or data frame (n, d)
        Rows that the model has not learned from; not needed with proba.
    y : array-like (n,) or str
        Labels, or the column of X that holds them.
    proba : array-like (n, C), optional
        p(y | x) to use instead of that of the model, for example out-of-fold predictions; classes in the order of
        ``model.classes_``.
    n_bins : int, default 10
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equally many rows, or of equal width. Empty bins are not drawn.
    label : class label, optional
        Draw only this class. Default: the second of two classes; all classes if there are more.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape or a parameter is wrong, or label is not a class.
    ImportError
        Matplotlib is not installed.

    References
    ----------
    Niculescu-Mizil & Caruana, Predicting good probabilities with supervised learning, ICML 2005.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_calibration(model, table, "species")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('mean posterior in the bin (dot area: its rows)', 'share of the class in the bin')
    """
    if strategy not in ("quantile", "uniform") or n_bins < 1:
        raise ValueError(f"strategy={strategy!r}, n_bins={n_bins}: give 'quantile' or 'uniform', and 1 or more")
    predicted = Predictions.of(model, X, y, proba, label)
    posterior, names, colours = predicted.posterior, class_names(model), class_colours(len(model.classes_))

    ax = open_axes(ax, width=4.8, height=5.0)
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1.0, zorder=1)
    for c in predicted.drawn:
        bins = _bins(posterior[:, c], predicted.y_true == c, n_bins, strategy)
        _draw_bins(ax, bins, names[c], colours[c])
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    ax.set(xlabel="mean posterior in the bin (dot area: its rows)", ylabel="share of the class in the bin")
    draw_legend(ax)
    return ax


class _Bins(NamedTuple):
    """Mean posterior, share of the class and number of rows of each non-empty bin."""

    sure: Array
    share: Array
    rows: Array

    @property
    def gap(self) -> float:
        """Expected calibration error: mean absolute difference of share and posterior over the rows."""
        return float(np.abs(self.sure - self.share) @ self.rows / self.rows.sum())

    @property
    def interval(self) -> tuple[Array, Array]:
        """Wilson 95 % interval of the share."""
        share, rows, z2 = self.share, self.rows, 1.96**2
        centre = (share + z2 / (2 * rows)) / (1 + z2 / rows)
        half = np.sqrt(z2 * share * (1 - share) / rows + z2**2 / (4 * rows**2)) / (1 + z2 / rows)
        return centre - half, centre + half


def _bins(posterior: Array, hit: Array, n_bins: int, strategy: _Strategy) -> _Bins:
    """Assign rows to bins (lower, upper]."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    edges = steps if strategy == "uniform" else np.quantile(posterior, steps)
    position = np.searchsorted(edges[1:-1], posterior)
    count, sure, hits = (np.bincount(position, weight, minlength=n_bins) for weight in (None, posterior, hit))
    some = count > 0
    return _Bins(sure[some] / count[some], hits[some] / count[some], count[some])


def _draw_bins(ax: Axes, bins: _Bins, name: str, colour: str) -> None:
    area = np.maximum(110.0 * bins.rows / bins.rows.max(), 16.0)
    ax.vlines(bins.sure, *bins.interval, color=colour, lw=1.2, alpha=0.5)
    ax.plot(bins.sure, bins.share, color=colour, lw=1.5, label=f"{name}: mean gap {bins.gap:.3f}")
    ax.scatter(bins.sure, bins.share, s=area, color=colour, zorder=3)
