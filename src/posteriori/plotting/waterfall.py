"""Waterfall figure of one prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.plotting.canvas import GREY, INK, class_colours, class_name, open_axes
from posteriori.support.formatting import shorten
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.generative_estimator import GenerativeEstimator
    from posteriori.explain import Explanation


def plot_explanation(
    explanation_or_model: Explanation | GenerativeEstimator,
    X: Any = None,
    row: int = 0,
    *,
    label: Any = None,
    against: Any = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw one prediction as a waterfall: prior log-odds, one step per feature, posterior log-odds.

    log p(a | x) / p(b | x) = log p(a) / p(b) + Σ_j log p(x_j | a) / p(x_j | b)

    Parameters
    ----------
    explanation_or_model : Explanation or fitted classifier
    X : array-like or data frame (n, d)
        Rows, if a model is given. All of them are explained, so give only a few.
    row : int, default 0
    label, against : class labels, optional
        The classes a and b. Default: the most and the second most probable class of the row.
    max_features : int, default 12
        Number of largest steps that are drawn separately; the others are summed into one.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Log-odds in nats, from top to bottom; each step has the colour of the class that it favours.

    Raises
    ------
    ValueError
        A class is unknown, there are not two classes, a model is given without X, or a step is infinite.
    IndexError
        There is no such row.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_explanation(model, table, row=0)
    >>> ax.get_xlabel()
    'log-odds of Adelie against Chinstrap (nats)'
    """
    explanation = _explain(explanation_or_model, X)
    n_rows = len(explanation.values)
    if not -n_rows <= row < n_rows:
        raise IndexError(f"row is {row}, but {n_rows} rows are explained, counted from 0")
    if max_features < 1:
        raise ValueError(f"max_features is {max_features}; draw at least one")
    pair = explanation.pair(row, label, against)
    names, steps = _steps(explanation, row, pair, max_features)
    colours = class_colours(len(explanation.classes))
    first, second = (class_name(explanation.classes.tolist()[c]) for c in pair)

    ax = open_axes(ax, height=1.8 + 0.3 * len(steps))
    _draw_steps(ax, steps, colours[pair[0]], colours[pair[1]])
    _write(ax, 0.0, -0.95, f"{first} →", 1, colours[pair[0]])
    _write(ax, 0.0, -0.95, f"← {second}", -1, colours[pair[1]])
    ax.set_yticks(range(len(steps) + 1), ["prior", *names, "posterior"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"log-odds of {first} against {second} (nats)")
    sure = [_probability(p) for p in explanation.posterior[row, list(pair)]]
    ax.set_title(f"p({first} | x) {sure[0]},  p({second} | x) {sure[1]}", loc="left", fontsize="medium")
    return ax


def _explain(explanation_or_model: Any, X: Any) -> Explanation:
    explanation: Explanation = explanation_or_model
    if hasattr(explanation_or_model, "explain"):
        if X is None:
            raise ValueError("X is needed with a model; give the rows to explain")
        explanation = explanation_or_model.explain(X)
    return explanation


def _steps(explanation: Explanation, row: int, pair: tuple[int, int], most: int) -> tuple[list[str], Array]:
    """Return the names and sizes of the steps: the prior, then the features by size."""
    odds = explanation.log_odds(row, *explanation.classes[list(pair)])
    for name, step in (("prior", odds.prior), *odds.factors.items()):
        if not np.isfinite(step):
            raise ValueError(f"{name!r} makes the odds infinite, which cannot be drawn; fit with alpha > 0")
    steps = np.array(list(odds.factors.values()))
    order = np.argsort(-np.abs(steps), kind="stable")
    kept, rest = order[:most], order[most:]
    names = [_step_name(explanation, row, j) for j in kept]
    if not len(rest):
        return names, np.array([odds.prior, *steps[kept]])
    names.append(f"{len(rest)} other{'s' if len(rest) > 1 else ''}")
    return names, np.array([odds.prior, *steps[kept], steps[rest].sum()])


def _step_name(explanation: Explanation, row: int, feature: int) -> str:
    cell, known = explanation.values[row, feature], explanation.known(row, feature)
    name = f"{shorten(explanation.feature_names[feature])} {'missing' if cell is None else f'= {shorten(cell)}'}"
    if cell is None or not known:
        return name
    return f"{name} | {shorten(known[0])}" if len(known) == 1 else f"{name} | {len(known)} others"


def _draw_steps(ax: Axes, steps: Array, towards: str, away: str) -> None:
    """Draw one bar per step, starting where the previous one ended, and a final bar from 0 to the sum."""
    after = steps.cumsum()
    starts, ends = np.append(after - steps, 0.0), np.append(after, after[-1])
    positions = np.arange(len(ends))
    colours = [*(towards if step >= 0 else away for step in steps), INK]
    ax.axvline(0.0, color=GREY, lw=0.8, zorder=0)
    ax.barh(positions, ends - starts, 0.64, left=starts, color=colours)
    ax.vlines(after, positions[:-1] + 0.32, positions[1:] - 0.32, color=GREY, lw=0.8)
    for position, start, end in zip(positions, starts, ends, strict=True):
        number = f"{end - start:+.2f}".replace("-", "−")
        _write(ax, end, float(position), number, 1 if end >= start else -1, INK)
    low, high = min(ends.min(), 0.0), max(ends.max(), 0.0)
    margin = 0.17 * (high - low or 1.0)
    ax.set(xlim=(low - margin, high + margin), ylim=(len(ends) - 0.4, -1.4))


def _write(ax: Axes, x: float, y: float, text: str, side: int, colour: str) -> None:
    """Write text beside a point, to the right (side 1) or to the left (−1)."""
    look: dict[str, Any] = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": "small"}
    ax.annotate(text, (x, y), (4 * side, 0), textcoords="offset points", color=colour, **look)


def _probability(p: float) -> str:
    return "> 0.999" if p > 0.999 else "< 0.001" if p < 0.001 else f"= {p:.3f}"
