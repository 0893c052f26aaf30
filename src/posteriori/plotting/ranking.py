"""ROC, precision-recall and lift curves, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.formatting import count, shorten
from posteriori.model_selection.metrics import confusion_matrix
from posteriori.model_selection.ranking import Ranking
from posteriori.plotting.canvas import GREY, INK, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.predictions import Predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape is wrong, or label is not a class.
    ImportError
        Matplotlib is not installed.

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
    predicted = Predictions.of(model, X, y, proba, label)
    ax = _square(ax)
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1.0, zorder=1)

    def draw(ranking: Ranking, look: dict[str, Any]) -> None:
        look["label"] += f": AUC {ranking.area:.3f}"
        ax.plot(ranking.false_positive_rate, ranking.recall, **look)

    _draw_classes(predicted, draw)
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
    model, X, y, proba, label, ax : as in `plot_roc`

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape is wrong, or label is not a class.
    ImportError
        Matplotlib is not installed.

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
    predicted = Predictions.of(model, X, y, proba, label)
    ax = _square(ax)

    def draw(ranking: Ranking, look: dict[str, Any]) -> None:
        look["label"] += f": average precision {ranking.average_precision:.3f}"
        # Recall between two thresholds is reached with the precision of the lower one.
        ax.step(ranking.recall[1:], ranking.precision[1:], where="pre", **look)
        ax.axhline(ranking.positives / ranking.total, ls="--", lw=0.8, color=look["color"], zorder=1)

    _draw_classes(predicted, draw)
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
    model, X, y, proba, label, ax : as in `plot_roc`

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape is wrong, or label is not a class.
    ImportError
        Matplotlib is not installed.

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
    predicted = Predictions.of(model, X, y, proba, label)
    ax = open_axes(ax, width=4.8, height=4.4)
    ax.axhline(1.0, ls="--", color=GREY, lw=1.0, zorder=1)

    def draw(ranking: Ranking, look: dict[str, Any]) -> None:
        ax.plot(ranking.selected[1:], ranking.lift[1:], **look)

    _draw_classes(predicted, draw)
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
    ImportError
        Matplotlib is not installed.

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
    predicted = Predictions.of(model, X, y, proba)
    counts = confusion_matrix(predicted.y_true, predicted.posterior)
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
    look: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(range(n_classes), names, **look)
    ax.set_yticks(range(n_classes), names)
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set(xlabel="predicted class", ylabel="true class")
    return ax


def _square(ax: Axes | None) -> Axes:
    ax = open_axes(ax, width=4.8, height=5.0)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return ax


def _draw_classes(predicted: Predictions, draw: Callable[[Ranking, dict[str, Any]], None]) -> None:
    """Draw the curve of the chosen classes that occur, with the name and the colour of each class."""
    names, colours = class_names(predicted.model), class_colours(len(predicted.model.classes_))
    for c in predicted.drawn:
        ranking = Ranking.of(predicted.y_true, predicted.posterior, c)
        if 0.0 < ranking.positives < ranking.total:
            draw(ranking, {"color": colours[c], "lw": 1.8, "label": names[c], "zorder": 2})
