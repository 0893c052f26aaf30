"""Figures of held-out predictions: calibration, ROC, precision-recall and lift curves, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.model_selection.metrics import confusion_matrix
from posteriori.model_selection.ranking import Ranking
from posteriori.plotting.canvas import GREY, INK, TURNED, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.reading import class_numbers
from posteriori.support.formatting import count, shorten
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array

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
    model, X, y, proba, label, ax : as in `plot_roc`
    n_bins : int, default 10
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equally many rows, or of equal width. Empty bins are not drawn.

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape or a parameter is wrong, or label is not a class.

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
    y_true, posterior, drawn = _predictions(model, X, y, proba, label)
    names, colours = class_names(model), class_colours(len(model.classes_))

    ax = open_axes(ax, width=4.8, height=5.0)
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1.0, zorder=1)
    for c in drawn:
        bins = calibration_bins(posterior[:, c], y_true == c, n_bins, strategy)
        _draw_bins(ax, bins, names[c], colours[c])
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    ax.set(xlabel="mean posterior in the bin (dot area: its rows)", ylabel="share of the class in the bin")
    draw_legend(ax)
    return ax


class CalibrationBins(NamedTuple):
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


def calibration_bins(
    posterior: Array, hit: Array, n_bins: int = 10, strategy: _Strategy = "quantile"
) -> CalibrationBins:
    """Assign rows to bins (lower, upper]."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    edges = steps if strategy == "uniform" else np.quantile(posterior, steps)
    position = np.searchsorted(edges[1:-1], posterior)
    count, sure, hits = (np.bincount(position, weight, minlength=n_bins) for weight in (None, posterior, hit))
    some = count > 0
    return CalibrationBins(sure[some] / count[some], hits[some] / count[some], count[some])


def _draw_bins(ax: Axes, bins: CalibrationBins, name: str, colour: str) -> None:
    area = np.maximum(110.0 * bins.rows / bins.rows.max(), 16.0)
    ax.vlines(bins.sure, *bins.interval, color=colour, lw=1.2, alpha=0.5)
    ax.plot(bins.sure, bins.share, color=colour, lw=1.5, label=f"{name}: mean gap {bins.gap:.3f}")
    ax.scatter(bins.sure, bins.share, s=area, color=colour, zorder=3)


_MOST_NUMBERS = 20  # classes of a confusion matrix whose counts are written


def plot_roc(
    model: Any, X: Any = None, y: Any = None, *, proba: Any = None, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the ROC curve of each class: the true positive rate against the false positive rate.

    Every threshold of p(c | x) is one point: the share of the rows of class c above it, against the share of the rows
    of other classes above it. The legend shows the area under the curve (AUC).

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
    label : class label, optional
        Draw only this class against all others. Default: the second of two classes; all classes if there are more.
    ax : matplotlib Axes, optional

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape is wrong, or label is not a class.

    References
    ----------
    Fawcett, An introduction to ROC analysis, Pattern Recognition Letters 27 (2006).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_roc(model, table, "species", label="Gentoo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('false positive rate: share of the other rows', 'recall: share of the rows of the class')
    """
    predicted = _predictions(model, X, y, proba, label)
    ax = _square(ax)
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1.0, zorder=1)
    for ranking, look in _rankings(class_names(model), *predicted):
        look["label"] += f": AUC {ranking.area:.3f}"
        ax.plot(ranking.false_positive_rate, ranking.recall, **look)
    ax.set(xlabel="false positive rate: share of the other rows", ylabel="recall: share of the rows of the class")
    draw_legend(ax)
    return ax


def plot_precision_recall(
    model: Any, X: Any = None, y: Any = None, *, proba: Any = None, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the precision-recall curve of each class; dashed lines mark the share of the class among all rows.

    The legend shows the average precision, Σ_t (recall_t − recall_{t−1})·precision_t.

    Parameters
    ----------
    model, X, y, proba, label, ax : as in `plot_roc`, which raises the same errors

    References
    ----------
    Davis & Goadrich, The relationship between precision-recall and ROC curves, ICML 2006.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_precision_recall(model, table, "species", label="Gentoo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('recall: share of the rows of the class', 'precision: share of correct predictions')
    """
    predicted = _predictions(model, X, y, proba, label)
    ax = _square(ax)
    for ranking, look in _rankings(class_names(model), *predicted):
        look["label"] += f": average precision {ranking.average_precision:.3f}"
        # Recall between two thresholds is reached with the precision of the lower one.
        ax.step(ranking.recall[1:], ranking.precision[1:], where="pre", **look)
        ax.axhline(ranking.positives / ranking.total, ls="--", lw=0.8, color=look["color"], zorder=1)
    ax.set(xlabel="recall: share of the rows of the class", ylabel="precision: share of correct predictions")
    draw_legend(ax)
    return ax


def plot_lift(
    model: Any, X: Any = None, y: Any = None, *, proba: Any = None, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the lift of each class: how much more frequent it is among the rows ranked first than among all rows.

    The rows are ranked by p(c | x). At 0.1 on the horizontal axis, the curve shows the share of class c among the
    10 % of the rows ranked first, divided by its share among all rows. At 1 all curves end at a lift of 1.

    Parameters
    ----------
    model, X, y, proba, label, ax : as in `plot_roc`, which raises the same errors

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_lift(model, table, "species", label="Gentoo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('share of all rows, those of highest probability first', 'lift')
    """
    predicted = _predictions(model, X, y, proba, label)
    ax = open_axes(ax, width=4.8, height=4.4)
    ax.axhline(1.0, ls="--", color=GREY, lw=1.0, zorder=1)
    for ranking, look in _rankings(class_names(model), *predicted):
        ax.plot(ranking.selected[1:], ranking.lift[1:], **look)
    ax.set(xlim=(0.0, 1.02), xlabel="share of all rows, those of highest probability first", ylabel="lift")
    ax.set_ylim(bottom=0.0)
    draw_legend(ax)
    return ax


def plot_confusion(model: Any, X: Any = None, y: Any = None, *, proba: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the confusion matrix: the rows by true and predicted class, shaded by their share of the true class.

    Parameters
    ----------
    model, X, y, proba, ax : as in `plot_roc`

    Returns
    -------
    matplotlib Axes
        Counts are written for up to 20 classes.

    Raises
    ------
    ValueError
        Labels are absent or missing, or a shape is wrong.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_confusion(model, table, "species")
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    y_true, posterior, _ = _predictions(model, X, y, proba)
    counts = confusion_matrix(y_true, posterior)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    n_classes = len(counts)
    size = float(np.clip(1.8 + 0.55 * n_classes, 3.6, 12.0))
    ax = open_axes(ax, width=size + 0.6, height=size)
    ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
    if n_classes <= _MOST_NUMBERS:
        for t, p in np.ndindex(counts.shape):
            colour = "white" if share[t, p] > 0.5 else INK if counts[t, p] else GREY
            ax.text(p, t, count(float(counts[t, p])), ha="center", va="center", color=colour, fontsize="small")
    names = [shorten(label) for label in model.classes_.tolist()]
    turned = sum(map(len, names)) > 8 * size
    ax.set_xticks(range(n_classes), names, **(TURNED if turned else {}))
    ax.set_yticks(range(n_classes), names)
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set(xlabel="predicted class", ylabel="true class")
    return ax


def _square(ax: Axes | None) -> Axes:
    ax = open_axes(ax, width=4.8, height=5.0)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return ax


def _predictions(model: Any, X: Any, y: Any, proba: Any, label: Any = None) -> tuple[Array, Array, Sequence[int]]:
    """Return the class index of each row, p(y | x), and which classes to draw: a label, the second of two, or all.

    Raise ValueError if X and proba are both absent, labels are absent or missing, a shape is wrong, or label is not a
    class.
    """
    check_is_fitted(model, "classes_")
    n_classes = len(model.classes_)
    if X is None and proba is None:
        raise ValueError("give rows X, or the probabilities of their classes, proba")
    posterior = np.asarray(model.predict_proba(X) if proba is None else proba, dtype=np.float64)
    if posterior.ndim != 2 or posterior.shape[1] != n_classes or not np.isfinite(posterior).all():
        raise ValueError(
            f"proba {posterior.shape} must be finite, with one row per row of y and {n_classes} columns, one per class"
        )
    y_true = class_numbers(model.classes_, y, posterior if X is None else X)
    if len(y_true) != len(posterior):
        raise ValueError(f"proba has {len(posterior)} rows, but there are {len(y_true)} labels")
    every = range(1 if n_classes == 2 else 0, n_classes)
    return y_true, posterior, every if label is None else [class_index(label, model.classes_.tolist())]


def _rankings(
    names: Sequence[str], y_true: Array, posterior: Array, drawn: Sequence[int]
) -> Iterator[tuple[Ranking, dict[str, Any]]]:
    """Yield the ranking by each class to draw that occurs, with the name and the colour of its curve."""
    colours = class_colours(len(names))
    for c in drawn:
        ranking = Ranking.of(y_true, posterior, c)
        if 0.0 < ranking.positives < ranking.total:
            yield ranking, {"color": colours[c], "lw": 1.8, "label": names[c], "zorder": 2}
