"""Pictures of a fitted model. Every function draws on an Axes, by default of a new figure, and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.model import Block, reject_outside
from posteriori.tables import Batch, Codes, Column, Numbers, Schema, quote, read_labels, read_table
from posteriori.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.base import GenerativeEstimator
    from posteriori.explain import Explanation

__all__ = ["plot_calibration", "plot_decision_regions", "plot_densities", "plot_explanation"]

# Okabe & Ito (2008), told apart by readers with any colour vision; yellow is left out, being lost on white.
_PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_MARKERS = "os^DvPX<>"
_INK, _GREY = "#333333", "#8C8C8C"
_OBSERVED = "observed"
_MOST_BARS = 60  # counts spread wider than this are drawn as a curve


def plot_densities(
    model: GenerativeEstimator,
    feature: str | int,
    *,
    X: Any = None,
    y: Any = None,
    joint: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw p(x_j | y), how each class makes one feature: numbers as curves, categories and counts as bars.

    Parameters
    ----------
    model : fitted classifier
    feature : str or int
        Its name, or its index among the features.
    X : array-like or data frame (n, d), optional
        Rows to compare with: histograms behind the curves, circles (observed shares) on the bars.
    y : array-like (n,) or str, optional
        Their labels, or the column of X that holds them. Without them, all rows are shown as one, beside what
        the model says of them, p(x_j) = Σ p(y) p(x_j | y).
    joint : bool, default False
        Draw p(x_j, y) = p(y) p(x_j | y) instead, which adds up to p(x_j).
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The feature in its own unit, against density per unit or probability.

    Raises
    ------
    ValueError
        The model has no such feature, y comes without X, or a label is missing or no class.
    ImportError
        Matplotlib is not installed.
    """
    check_is_fitted(model, "model_")
    if X is None and y is not None:
        raise ValueError("y comes without X; give the rows that it labels too")
    schema = model.model_.schema
    j = _position(schema, feature)
    column, made = schema.columns[j], _made_by(model, j)
    cells = None if X is None else _cells(model, X, j)
    groups = _groups(model, X, y, joint)
    whole = column.kind == "categorical" or bool(made.outside(np.array([0.5]))[0])
    points = _points(made, len(model.classes_), cells, whole)
    shares = np.exp(made.block.density.log_density(made.parameters, made.tile(points)))

    bars = column.kind == "categorical" or (whole and len(points) <= _MOST_BARS)
    names = [_shorten(category) for category in column.categories]
    turn = 45 if sum(map(len, names)) > 60 else 0
    width = min(max(6.4, 2.0 + 0.13 * len(points) * len(groups)), 14.0) if bars else 6.4
    ax = _axes(ax, width, height=5.2 if turn else 4.0)
    (_draw_bars if bars else _draw_curves)(ax, groups, points, shares, cells)
    if names:
        ax.set_xticks(points, names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")
    given = f"{',' if joint else ' |'} {schema.target or 'class'}"
    ax.set(xlabel=column.name, ylabel=f"{'probability' if whole else 'density'} p({column.name}{given})")
    ax.set_ylim(bottom=0.0)
    _legend(ax)
    return ax


class _Group(NamedTuple):
    """One curve: a weighted sum of class-conditional densities, and the rows it stands for."""

    name: str
    colour: str
    weights: Array
    rows: Any


def _groups(model: Any, X: Any, y: Any, joint: bool) -> list[_Group]:
    prior = np.exp(model.model_.log_prior)
    weights = np.diag(prior) if joint else np.eye(len(prior))
    component = None if y is None else _class_numbers(model.classes_, y, X)
    groups = [
        _Group(name, colour, weights[c], slice(0) if component is None else component == c)
        for c, (name, colour) in enumerate(zip(_class_names(model), _colours(len(prior)), strict=True))
    ]
    return groups if X is None or y is not None else [*groups, _Group("all", _INK, prior, slice(None))]


class _Made(NamedTuple):
    """One column and the density that makes it, met only through the protocol that all densities follow."""

    schema: Schema
    block: Block
    parameters: Any
    column: int

    def tile(self, cells: Array) -> Any:
        """Return rows of the block that hold these cells in this column and are missing elsewhere."""
        return _rows_with(self.schema, {self.column: cells}).take(self.block.columns)

    def outside(self, cells: Array) -> Array:
        """Return which cells the density cannot produce, (n,)."""
        return self.block.density.outside(self.tile(cells))[:, self.block.columns.index(self.column)]

    def sample(self, component: Array) -> Array:
        """Draw a cell for each component, (n,)."""
        drawn = self.block.density.sample(self.parameters, component, np.random.default_rng(0))
        return drawn[:, self.block.columns.index(self.column)]


def _made_by(model: Any, j: int) -> _Made:
    pairs = zip(model.model_.blocks, model.model_.parameters, strict=True)
    block, parameters = next(pair for pair in pairs if j in pair[0].columns)
    return _Made(model.model_.schema, block, parameters, j)


def _rows_with(schema: Schema, cells: dict[int, Array]) -> Batch:
    """Return rows that hold the given numbers or codes in some columns and are missing elsewhere."""
    n_rows = len(next(iter(cells.values())))
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers = np.full((n_rows, len(continuous)), np.nan)
    codes = np.zeros((n_rows, len(categorical)), schema.code_dtype)
    for j, values in cells.items():
        if j in continuous:
            numbers[:, continuous.index(j)] = values
        else:
            codes[:, categorical.index(j)] = values
    return Batch(schema, 0, Numbers(numbers), Codes(codes, schema.cardinalities(categorical)), {})


def _points(made: _Made, n_classes: int, cells: Array | None, whole: bool) -> Array:
    """Return where to evaluate: every category or count, or numbers, closely where a class is."""
    column = made.schema.columns[made.column]
    if column.kind == "categorical":
        if not column.categories:
            raise ValueError(f"column {column.name!r} had no category in training; there is nothing to draw")
        return np.arange(1, len(column.categories) + 1)
    drawn = made.sample(np.repeat(np.arange(n_classes), 500))
    low, high = np.quantile(drawn.reshape(n_classes, -1), [0.005, 0.995], axis=1)
    width = high - low
    rows = np.empty(0) if cells is None else cells[~np.isnan(cells)]
    reach = np.concatenate([low - 0.2 * width, high + 0.2 * width, rows])
    if whole:
        points = np.linspace(np.floor(reach.min()), np.ceil(reach.max()), 2000).round()
    else:
        near = np.linspace(low - width, high + width, 400).clip(reach.min(), reach.max())
        points = np.append(near, np.linspace(reach.min(), reach.max(), 400))
    points = np.unique(points)
    return points[~made.outside(points)]


def _edges(seen: Array) -> Array:
    """Return the edges of histogram bins, which hold equally many whole numbers where all cells are whole."""
    edges = np.histogram_bin_edges(seen, int(np.clip(3.0 * len(seen) ** (1 / 3), 10, 60)))
    if not len(seen) or (seen != np.floor(seen)).any():
        return edges
    width = np.ceil(edges[1] - edges[0])
    return np.arange(seen.min() - 0.5, seen.max() + width, width)


def _draw_curves(
    ax: Axes, groups: Sequence[_Group], points: Array, shares: Array, cells: Array | None
) -> None:
    seen = np.empty(0) if cells is None else cells[~np.isnan(cells)]
    edges = _edges(seen)
    for group in groups:
        curve, style = shares @ group.weights, "--" if group.colour == _INK else "-"
        ax.plot(points, curve, style, color=group.colour, lw=2.0, label=group.name)
        mine = np.empty(0) if cells is None else cells[group.rows]
        counts = np.histogram(mine[~np.isnan(mine)], edges)[0]
        if counts.sum():
            height = counts / (counts.sum() * np.diff(edges)) * group.weights.sum()
            ax.stairs(height, edges, fill=True, color=group.colour, alpha=0.22, lw=0)
        elif cells is None and len(groups) <= len(_PALETTE):
            ax.fill_between(points, curve, color=group.colour, alpha=0.12, lw=0)


def _draw_bars(ax: Axes, groups: Sequence[_Group], points: Array, shares: Array, cells: Array | None) -> None:
    width, told = 0.84 / len(groups), False
    for k, group in enumerate(groups):
        at = points + (k - (len(groups) - 1) / 2) * width
        ax.bar(at, shares @ group.weights, 0.92 * width, color=group.colour, alpha=0.85, label=group.name)
        mine = np.empty(0) if cells is None else cells[group.rows]
        counts = np.array([np.count_nonzero(mine == point) for point in points])
        if counts.any():
            observed, some = counts / counts.sum() * group.weights.sum(), counts > 0
            name = None if told else _OBSERVED
            ax.plot(at[some], observed[some], "o", mfc="white", mec=_INK, ms=4.5, zorder=3, label=name)
            told = True
    ax.set_xlim(points[0] - 0.6, points[-1] + 0.6)


def plot_decision_regions(
    model: GenerativeEstimator,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Shade the plane of two features by the class that wins there, the deeper the surer, and draw the rows.

    Other features are missing all over the plane. A generative model integrates missing cells out, so the
    shade is p(y | x_a, x_b) exactly, not a slice at typical values of the rest; what the model answers for a
    whole row, from all its cells, may differ from the region that the row lies in.

    Parameters
    ----------
    model : fitted classifier
    X : array-like or data frame (n, d)
        Rows to draw, which also set the range. One that lacks either feature has no place in the plane.
    y : array-like (n,) or str, optional
        Their labels, or the column of X that holds them.
    features : two names or indices, optional
        The horizontal and the vertical feature. Default: the continuous ones, where the model has two.
    resolution : int, default 200
        Points along an axis; the cost is that of predicting resolution² rows.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        The features in their own units.

    Raises
    ------
    ValueError
        A feature is unknown, categorical or without a value in X, or it is not clear which two are meant.
    ImportError
        Matplotlib is not installed.
    """
    check_is_fitted(model, "model_")
    schema, n_classes = model.model_.schema, len(model.classes_)
    pair = _two_continuous(schema, features)
    if resolution < 2:
        raise ValueError(f"resolution is {resolution}; give at least 2 points along an axis")
    component = None if y is None else _class_numbers(model.classes_, y, X)
    cells = [_cells(model, X, j) for j in pair]
    ticks = [_ticks(_made_by(model, j), values, resolution) for j, values in zip(pair, cells, strict=True)]
    across, up = np.meshgrid(*ticks)
    plane = _rows_with(schema, {pair[0]: across.ravel(), pair[1]: up.ravel()})
    log_joint = model.model_.log_joint(plane).reshape(*across.shape, n_classes)

    ax = _axes(ax, height=4.8)
    ax.pcolormesh(across, up, _shades(log_joint, n_classes), shading="nearest", rasterized=True)
    for c in range(n_classes) if n_classes > 1 else ():
        lead = log_joint[..., c] - np.delete(log_joint, c, axis=2).max(axis=2)
        if np.nanmin(lead) < 0 < np.nanmax(lead):
            ax.contour(across, up, np.ma.masked_invalid(lead), levels=[0.0], colors=_INK, linewidths=1.0)
    names, colours = _class_names(model), _colours(n_classes)
    for c in range(n_classes) if component is not None else ():
        mine, look = component == c, {"color": colours[c], "marker": _MARKERS[c % len(_MARKERS)]}
        _draw_rows(ax, cells[0][mine], cells[1][mine], label=names[c], **look)
    if component is None:
        _draw_rows(ax, *cells, color=_INK, marker="o", label="rows")
    ax.set(xlabel=schema.names[pair[0]], ylabel=schema.names[pair[1]])
    _legend(ax)
    return ax


def _two_continuous(schema: Schema, features: Sequence[str | int] | None) -> tuple[int, int]:
    pair = schema.of_kind("continuous") if features is None else [_position(schema, one) for one in features]
    if features is None and len(pair) != 2:
        raise ValueError(f"the model has {len(pair)} continuous features, not two; choose: features=(…, …)")
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"features={features!r} are not two different features")
    for j in pair:
        if schema.columns[j].kind == "categorical":
            raise ValueError(
                f"column {schema.names[j]!r} is categorical; decision regions take continuous ones"
            )
    return pair[0], pair[1]


def _ticks(made: _Made, cells: Array, resolution: int) -> Array:
    """Return points along an axis: the range of the cells and a little more, whole if nothing else can be."""
    if np.isnan(cells).all():
        raise ValueError(
            f"column {made.schema.names[made.column]!r} of X has no cell with a value, so no range"
        )
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    margin = 0.06 * (high - low) or 1.0
    ticks = np.linspace(low - margin, high + margin, resolution)
    if made.outside(np.array([0.5]))[0]:
        ticks = np.unique(ticks.round())
    return ticks[~made.outside(ticks)]


def _shades(log_joint: Array, n_classes: int) -> Array:
    """Return the winner's colour, as pale as its posterior is near 1/C; white where no class can be."""
    from matplotlib.colors import to_rgb

    best = log_joint.max(axis=2)
    with np.errstate(invalid="ignore"):
        posterior = 1.0 / np.exp(log_joint - best[..., np.newaxis]).sum(axis=2)
    sure = (posterior * n_classes - 1.0) / max(n_classes - 1.0, 1.0)
    strength = np.where(np.isfinite(best), 0.08 + 0.37 * sure, 0.0)[..., np.newaxis]
    colours = np.array([to_rgb(colour) for colour in _colours(n_classes)])
    return 1.0 - strength * (1.0 - colours[log_joint.argmax(axis=2)])


def _draw_rows(ax: Axes, across: Array, up: Array, **look: Any) -> None:
    size = float(np.clip(4000.0 / max(len(across), 1), 8.0, 26.0))
    ax.scatter(across, up, s=size, edgecolors="white", linewidths=0.5, **look)


def plot_calibration(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    proba: Any = None,
    n_bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
    label: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often a class is right against how sure the model was of it: a reliability diagram.

    A dot is a bin of rows: their mean p(y | x), the share of them that are of the class (with Wilson's 95 %
    interval) and, by its area, how many they are. On the diagonal the two agree; the mean distance from it
    over the rows stands in the legend.

    Parameters
    ----------
    model : fitted classifier
        Of this library or of scikit-learn.
    X : array-like or data frame (n, d)
        Rows that the model has not learned from; not needed with proba.
    y : array-like (n,) or str
        Their labels, or the column of X that holds them.
    proba : array-like (n, C), optional
        p(y | x), classes in the order of ``model.classes_``, to be used in place of the model's own: what
        cross-validation predicted, say.
    n_bins : int, default 10
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equally many rows, or of equal width. A bin that no row falls into is left out.
    label : class label, optional
        Draw this class alone. Default: the second of two classes, each of more.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Labels are absent or missing, a shape or a parameter does not fit, or label is not a class.
    ImportError
        Matplotlib is not installed.

    References
    ----------
    Niculescu-Mizil & Caruana, Predicting good probabilities with supervised learning, ICML 2005.
    """
    check_is_fitted(model, "classes_")
    classes = model.classes_
    if X is None and proba is None:
        raise ValueError("give rows X, or the probabilities of their classes, proba")
    if strategy not in ("quantile", "uniform") or n_bins < 1:
        raise ValueError(
            f"strategy={strategy!r}, n_bins={n_bins}: give 'quantile' or 'uniform', and 1 or more"
        )
    posterior = np.asarray(model.predict_proba(X) if proba is None else proba, dtype=np.float64)
    if posterior.ndim != 2 or posterior.shape[1] != len(classes) or not np.isfinite(posterior).all():
        raise ValueError(
            f"proba {posterior.shape} must be finite, a row a row and {len(classes)} classes wide"
        )
    component = _class_numbers(classes, y, posterior if X is None else X)
    if len(component) != len(posterior):
        raise ValueError(f"proba has {len(posterior)} rows, but there are {len(component)} labels")
    several = list(range(1 if len(classes) == 2 else 0, len(classes)))
    drawn = several if label is None else [_class_number(classes, label)]

    ax = _axes(ax, width=4.8, height=5.0)
    ax.plot([0, 1], [0, 1], "--", color=_GREY, lw=1.0, zorder=1)
    for c in drawn:
        sure, share, count = _bins(posterior[:, c], component == c, n_bins, strategy)
        colour, gap = _colours(len(classes))[c], float(np.abs(sure - share) @ count / count.sum())
        ax.vlines(sure, *_wilson(share, count), color=colour, lw=1.2, alpha=0.5)
        ax.plot(sure, share, color=colour, lw=1.5, label=f"{_class_names(model)[c]}: mean gap {gap:.3f}")
        ax.scatter(sure, share, s=np.maximum(110.0 * count / count.max(), 16.0), color=colour, zorder=3)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    ax.set(xlabel="mean posterior in the bin (dot area: its rows)", ylabel="share of the class in the bin")
    _legend(ax)
    return ax


def _bins(sure: Array, hit: Array, n_bins: int, strategy: str) -> tuple[Array, Array, Array]:
    """Return mean posterior, share of hits and number of rows of each bin, (lower, upper], that has any."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    edges = steps if strategy == "uniform" else np.quantile(sure, steps)
    place = np.searchsorted(edges[1:-1], sure)
    count = np.bincount(place, minlength=n_bins)
    some = count > 0
    sums = [np.bincount(place, weight, minlength=n_bins)[some] for weight in (sure, hit)]
    return sums[0] / count[some], sums[1] / count[some], count[some]


def _wilson(share: Array, count: Array) -> tuple[Array, Array]:
    z2 = 1.96**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = np.sqrt(z2 * share * (1 - share) / count + z2**2 / (4 * count**2)) / (1 + z2 / count)
    return centre - half, centre + half


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
    """Draw one prediction as the sum that it is: prior log-odds, a step a feature, posterior log-odds.

    log p(a | x) / p(b | x) = log p(a) / p(b) + Σ_j log p(x_j | a) / p(x_j | b)

    Parameters
    ----------
    explanation_or_model : Explanation or fitted classifier
    X : array-like or data frame (n, d)
        Where a model is given: the rows, all of which it explains, so pass a few.
    row : int, default 0
    label, against : class labels, optional
        The classes a and b. Default: the most probable of the row, and the next.
    max_features : int, default 12
        How many steps, the largest, are drawn one by one; the others are summed into one.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Log-odds in nats, read from the top; a step has the colour of the class that it speaks for.

    Raises
    ------
    ValueError
        A class is unknown, there are not two, a model comes without X, or a step is infinite.
    IndexError
        There is no such row.
    ImportError
        Matplotlib is not installed.
    """
    explanation: Any = explanation_or_model
    if hasattr(explanation, "explain"):
        if X is None:
            raise ValueError("a model comes without X; give the rows that it shall explain")
        explanation = explanation.explain(X)
    if not -len(explanation.values) <= row < len(explanation.values):
        raise IndexError(f"row is {row}, but {len(explanation.values)} rows are explained, counted from 0")
    if max_features < 1:
        raise ValueError(f"max_features is {max_features}; draw at least one")
    a, b = _two_classes(explanation, row, label, against)
    names, steps = _steps(explanation, row, a, b, max_features)
    after = steps.cumsum()
    ends, starts = np.append(after, after[-1]), np.append(after - steps, 0.0)
    places, colours = np.arange(len(ends)), _colours(len(explanation.classes))

    ax = _axes(ax, height=1.5 + 0.3 * len(ends))
    bars = [*(colours[a] if step >= 0 else colours[b] for step in steps), _INK]
    ax.axvline(0.0, color=_GREY, lw=0.8, zorder=0)
    ax.barh(places, ends - starts, 0.64, left=starts, color=bars)
    ax.vlines(after, places[:-1] + 0.32, places[1:] - 0.32, color=_GREY, lw=0.8)
    for place, step, end in zip(places, ends - starts, ends, strict=True):
        _write(ax, end, float(place), f"{step:+.2f}".replace("-", "−"), 1 if step >= 0 else -1, _INK)
    first, second = (_class_name(explanation.classes.tolist()[c]) for c in (a, b))
    _write(ax, 0.0, -0.95, f"{first} →", 1, colours[a])
    _write(ax, 0.0, -0.95, f"← {second}", -1, colours[b])
    reach = np.append(ends, 0.0)
    margin = 0.17 * (np.ptp(reach) or 1.0)
    ax.set(xlim=(reach.min() - margin, reach.max() + margin), ylim=(len(ends) - 0.4, -1.4))
    ax.set_yticks(places, ["prior", *names, "posterior"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"log-odds of {first} against {second} (nats)")
    sure = [_probability(explanation.posterior[row, c]) for c in (a, b)]
    ax.set_title(f"p({first} | x) {sure[0]},  p({second} | x) {sure[1]}", loc="left", fontsize="medium")
    return ax


def _two_classes(explanation: Any, row: int, label: Any, against: Any) -> tuple[int, int]:
    """Return the places of the classes whose odds are meant: by default the most probable, and the next."""
    classes, ranked = explanation.classes, np.argsort(-explanation.log_joint[row], kind="stable").tolist()
    if len(classes) < 2:
        raise ValueError(f"the model knows one class only, {classes[0]!r}: there are no odds")
    b = None if against is None else _class_number(classes, against)
    a = next(c for c in ranked if c != b) if label is None else _class_number(classes, label)
    b = next(c for c in ranked if c != a) if b is None else b
    if a == b:
        raise ValueError(f"label and against are both {label!r}; give two classes")
    return a, b


def _steps(explanation: Any, row: int, a: int, b: int, most: int) -> tuple[list[str], Array]:
    """Return what the features' steps are called, the largest first, and the prior's step before theirs."""
    with np.errstate(invalid="ignore"):
        prior = explanation.log_prior[a] - explanation.log_prior[b]
        steps = explanation.log_factors[row, a] - explanation.log_factors[row, b]
    named = ["prior", *explanation.feature_names]
    infinite = [name for name, step in zip(named, [prior, *steps], strict=True) if not np.isfinite(step)]
    if infinite:
        raise ValueError(
            f"{infinite[0]!r} makes the odds infinite, which cannot be drawn; fit with alpha > 0"
        )
    order = np.argsort(-np.abs(steps), kind="stable")
    kept, rest = order[:most], order[most:]
    names = []
    for j in kept:
        cell = explanation.values[row, j]
        shown = "missing" if cell is None else f"= {_shorten(cell)}"
        names.append(f"{_shorten(explanation.feature_names[j])} {shown}")
    if not len(rest):
        return names, np.array([prior, *steps[kept]])
    names.append(f"{len(rest)} other{'s' if len(rest) > 1 else ''}")
    return names, np.array([prior, *steps[kept], steps[rest].sum()])


def _write(ax: Axes, x: float, y: float, text: str, side: int, colour: str) -> None:
    """Write beside a point, to the right of it (side 1) or to the left (−1)."""
    look: dict[str, Any] = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": "small"}
    ax.annotate(text, (x, y), (4 * side, 0), textcoords="offset points", color=colour, **look)


def _axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plotting needs matplotlib: pip install "posteriori[plot]"') from error
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_GREY)
    ax.tick_params(color=_GREY)
    return ax


def _colours(n: int) -> list[str]:
    if n <= len(_PALETTE):
        return list(_PALETTE[:n])
    import matplotlib as mpl

    return [mpl.colors.to_hex(one) for one in mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n))]


def _legend(ax: Axes) -> None:
    """Name the classes above the axes, or beside it where they are many: never over the data."""
    handles, names = ax.get_legend_handles_labels()
    letters = 11.0 * ax.bbox.width / ax.figure.dpi  # about eleven an inch
    lengths = [len(name) + 5 for name in names]
    columns = len(names) if sum(lengths) <= letters else max(int(letters // max(lengths)), 1)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns}
    if len(names) > 3 * columns:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": 1 + len(names) // 18}
    order = sorted(range(len(names)), key=lambda k: names[k] == _OBSERVED)
    shown = [handles[k] for k in order], [names[k] for k in order]
    legend = ax.legend(*shown, **place, frameon=False, handlelength=1.2, columnspacing=1.4, borderaxespad=0.2)
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([30.0])


def _position(schema: Schema, feature: Any) -> int:
    if feature in schema.names:
        return schema.names.index(feature)
    if isinstance(feature, int | np.integer) and -len(schema.names) <= feature < len(schema.names):
        return int(range(len(schema.names))[feature])
    raise ValueError(
        f"{feature!r} is neither a feature nor the index of one; there are {quote(schema.names)}"
    )


def _cells(model: Any, X: Any, j: int) -> Array:
    """Return the numbers or codes of one column, (n,); raise where its density cannot produce one."""
    block = _made_by(model, j).block

    def read(batch: Batch) -> Array:
        reject_outside(block, batch)
        return batch.take((j,)).values[:, 0]

    return model._source(X).map(read)


def _class_names(model: Any) -> list[str]:
    target = model.model_.schema.target if hasattr(model, "model_") else None
    return [_class_name(label, target) for label in model.classes_.tolist()]


def _class_name(label: Any, target: str | None = None) -> str:
    """Return a label, after what it is a value of where it is a number."""
    return _shorten(label) if isinstance(label, str) else f"{target or 'class'} = {_shorten(label)}"


def _class_number(classes: Array, label: Any) -> int:
    if label not in classes.tolist():
        raise ValueError(f"{label!r} is not a class; the classes are {classes.tolist()}")
    return classes.tolist().index(label)


def _class_numbers(classes: Array, y: Any, X: Any) -> Array:
    """Return the place of each label among the classes, (n,)."""
    table = read_table(X)
    column = Column("y", "categorical", tuple(classes.tolist()))
    return read_labels(y, table).components(column, slice(0, table.n_rows))


def _probability(p: float) -> str:
    return "> 0.999" if p > 0.999 else "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _shorten(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
