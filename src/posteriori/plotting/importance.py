"""Feature importance as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posteriori.plotting.canvas import GREY, INK, PALETTE, open_axes
from posteriori.registry import Subject
from posteriori.support.formatting import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.classifier import Classifier
    from posteriori.classifiers.generative_regressor import GenerativeRegressor


def plot_feature_information(
    model: Classifier | GenerativeRegressor, *, most: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw feature importance: the increase of the log-loss without each column, in nats, with 95 % intervals.

    Of a model that predicts a number, it is the increase of the CRPS, in units of the target. It is
    `importance_` of the model: measured on held-out rows after the `fit` of a pool, and otherwise expected under the
    model itself. The label of the axis states which.

    Parameters
    ----------
    model : fitted classifier or GenerativeRegressor
    most : int, default 20
        Number of features, and groups of features that say the same, to draw, the most important first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Nats per row, or units of the target, against the features; lines extend 1.96 standard errors to both sides.

    Raises
    ------
    ValueError
        most is not positive.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_feature_information(model, most=3)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['bill_length_mm', 'island', 'flipper_length_mm']
    """
    if most < 1:
        raise ValueError(f"most is {most}; draw at least one feature")
    found = model.importance_
    of_numbers, modelled = model.subject is Subject.NUMBER, {model.schema_.names[j] for j in model.schema_.modelled}
    chosen = [one for one in found.ranked if not of_numbers or modelled.issuperset(one.columns)][:most]
    names = [str(one) for one in chosen]
    mean, error = (np.array([getattr(one, name) for one in chosen]) for name in ("increase", "standard_error"))
    added = "log-loss added without the column (nats)"
    if of_numbers:
        added = f"CRPS added without the column (units of {shorten(model.target_.name)})"
    ax = open_axes(ax, height=0.9 + 0.28 * len(names))
    positions = np.arange(len(names))
    ax.barh(positions, mean, 0.72, color=PALETTE[0], alpha=0.85)
    ax.errorbar(mean, positions, xerr=1.96 * error, fmt="none", ecolor=INK, elinewidth=1.2, capsize=2.5)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(positions, [shorten(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    rows = f"{found.n_rows:,}"
    how = f"on {rows} held-out rows" if found.held_out else f"expected by the model, over {rows} rows it drew"
    ax.set_xlabel(f"{added}\n{how}")
    return ax
