"""Feature importance, how each class makes the important columns, and what depends on what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.learning.importance import Importance
from posteriori.plotting import plot_densities, plot_tree
from posteriori.reporting.data import ReportData, take_rows
from posteriori.reporting.density_strips import MOST_SHADES, plot_density_strips
from posteriori.reporting.markup import Html, Section, bar, details, element, joined, paragraph, table
from posteriori.reporting.pictures import draw, draw_own, figure
from posteriori.reporting.writing import cell_text, count, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.tables import Column

_MOST_BARS = 15
_MOST_PICTURES = 6
_MOST_ROWS = 5000  # drawn behind the curves
_MOST_CURVES = 8  # classes in one picture
_MOST_CATEGORIES = 80  # in one picture
_MOST_SIDE_BY_SIDE = 40  # bars in half the width of the page
_LETTERS_IN_A_LINE = 36
_MOST_NODES = 60
_MOST_TREES = 3
_MOST_EDGES = 12
_INFORMS = 1e-3  # nats, below which no picture is drawn


def features_section(subject: ReportData, importance: Importance) -> Section:
    """Return which features are important, and the densities of those."""
    rows_told = f"{count(importance.n_rows)} rows"
    how = (
        f"on {rows_told} that the model had not learned from"
        if importance.held_out
        else f"as the model itself expects, over {rows_told} drawn from it"
    )
    lead = (
        f"By how much the log-loss grows when a column is unknown, {how}: the model leaves the column out of the sum, "
        "and answers from the others. Columns that say the same share their importance, so that each alone may lose "
        "little; below 0 the rows were predicted better without the column. The pictures show how each class makes a "
        "column: where one class stands high and the others low, such a value speaks for it."
    )
    nats, error = importance.information, importance.standard_error
    order = np.argsort(-nats, kind="stable")
    greatest = max(float(nats.max()), 1e-300)
    rows = [
        [subject.names[j], f"{_signed(nats[j])} ± {error[j]:.3f}", bar(max(nats[j], 0.0) / greatest)]
        for j in order[:_MOST_BARS]
    ]
    more = f", the first {len(rows)} of {len(order)}" if len(rows) < len(order) else ""
    chosen = [int(j) for j in order[:_MOST_PICTURES] if nats[j] > _INFORMS]
    contents = [
        table(f"Feature importance{more}", ["column", "nats lost without it", ""], rows),
        *_pictures(subject, chosen, importance),
    ]
    return Section("features", "Feature importance", lead, tuple(contents))


def _signed(nats: float) -> str:
    return f"{nats:.3f}".replace("-", "\N{MINUS SIGN}")


def _pictures(subject: ReportData, chosen: list[int], importance: Importance) -> Iterator[Html]:
    if not chosen:
        yield paragraph("Without any single column the others predict as well.")
        return
    rows = subject.sampled(_MOST_ROWS)
    X, labels = take_rows(subject.X, rows), subject.estimator.classes_[subject.components[rows]]
    drawn = (_density(subject, j, X, labels, position, importance) for position, j in enumerate(chosen))
    yield element("div", *drawn, class_="pictures")
    some = f"{count(len(rows))} rows drawn by chance" if len(rows) < len(subject.labelled) else "the rows"
    mixed = ", the mixture of the members by their weights" if subject.lens_name else ""
    if len(subject.labels) > _MOST_CURVES:
        note = f"The darker, the more of a class’s rows the model expects there{mixed}; the range is that of {some}."
    else:
        note = (
            f"Curves and bars are what the model has learned{mixed}; shades and circles behind them are {some}, as "
            "they are. Where the two look alike, the model fits."
        )
    yield paragraph(note, class_="note")


def _density(subject: ReportData, j: int, X: Any, labels: Any, position: int, importance: Importance) -> Html:
    caption = joined(
        [element("strong", subject.names[j]), f": {importance.information[j]:.3f} nats are lost without it"]
    )
    column = subject.model.schema.columns[j]
    many = len(subject.labels) > _MOST_CURVES
    if len(column.categories) > _MOST_CATEGORIES:
        words = f": {plural(len(column.categories), 'category')}, too many to draw."
        return element("div", paragraph(caption, words), class_="broad")

    def paint(ax: Axes) -> None:
        if many:
            plot_density_strips(subject.estimator, j, X, ax)
        else:
            plot_densities(subject.estimator, j, X=X, y=labels, ax=ax)
            ax.set_ylabel(str(ax.get_ylabel()).split(" ")[0])  # without p(column | class), which may be long
            _turn_names(ax, column)

    broad = many or len(column.categories) * len(subject.labels) > _MOST_SIDE_BY_SIDE
    width = 9.6 if broad else 4.6
    height = 1.0 + 0.16 * min(len(subject.labels), MOST_SHADES) if many else 3.6 if broad else 3.1
    label = f"How each class of {subject.target} makes {column.name}"
    picture = draw(paint, width, height, label, f"density-{position}")
    if broad:
        picture = element("div", picture, class_="scroll", tabindex=0, role="region", aria_label=label)
    return element("div", figure(picture, caption), class_="broad" if broad else None)


def _turn_names(ax: Axes, column: Column) -> None:
    """Turn the names of categories that would run into each other."""
    if sum(len(cell_text(category)) for category in column.categories) > _LETTERS_IN_A_LINE:
        for name in ax.get_xticklabels():
            name.set(rotation=40, ha="right", rotation_mode="anchor")


def tree_section(subject: ReportData) -> Section | None:
    """Return what depends on what given the class, where the model or a member of the pool has learned that."""
    model = subject.member_with("tree_", "parents_")
    if model is None:
        return None
    if subject.lens_name is None or model is subject.estimator:
        whose = ""
    else:
        whose = f" This is the member {_name_in_pool(subject, model)} of the pool."
    lead = (
        "Which columns go together even among rows of one class. An arrow says that the lower column is judged in the "
        "light of the upper one, so that the same evidence is not counted twice"
        f"{'; the wider it is, the more they share' if getattr(model, 'edge_weights_', None) else ''}.{whose}"
    )
    contents = list(_trees(model))
    return Section("tree", "What depends on what", lead, tuple(contents)) if contents else None


def _name_in_pool(subject: ReportData, model: Any) -> str:
    members = subject.estimator.members_
    return next(name for name in members if members[name] is model)


def _trees(model: Any) -> Iterator[Html]:
    if len(model.model_.schema.names) < 2:
        yield paragraph("There is one column only, which can depend on no other.")
        return
    labels = _tree_labels(model)
    if len(model.model_.schema.names) > _MOST_NODES:
        yield paragraph(f"There are {len(model.model_.schema.names)} columns, too many to draw.")
    else:
        for position, label in enumerate(labels[:_MOST_TREES]):
            given = "the class" if label is None else cell_text(label)
            picture = draw_own(
                lambda label=label: plot_tree(model, label),  # type: ignore[misc]
                f"Which column depends on which, given {given}",
                f"tree-{position}",
            )
            yield element("div", picture, class_="scroll", tabindex=0, role="region", aria_label=f"tree given {given}")
        if len(labels) > _MOST_TREES:
            yield paragraph(f"{plural(len(labels) - _MOST_TREES, 'more class')} with trees of their own are not shown.")
    edges = _edges(model, labels[0])
    if edges:
        rows = [
            [f"{child}", f"{parent}", number(nats, 3), bar(nats / max(edges[0][2], 1e-300))]
            for parent, child, nats in edges[:_MOST_EDGES]
        ]
        more = f", {len(rows)} of {len(edges)}" if len(rows) < len(edges) else ""
        yield details(
            "The strongest ties",
            table(f"The strongest ties{more}", ["column", "goes with", "nats shared", ""], rows, text=(0, 1)),
        )


def _tree_labels(model: Any) -> list[Any]:
    """Return the classes that have a tree each, the most frequent first; or None, of the one that all share."""
    tree = getattr(model, "tree_", {})
    if not any(isinstance(one, dict) for one in tree.values()):
        return [None]
    order = np.argsort(-model.model_.class_log_prior, kind="stable")
    return [model.classes_.tolist()[c] for c in order]


def _edges(model: Any, label: Any) -> list[tuple[str, str, float]]:
    weights = getattr(model, "edge_weights_", None)
    if not weights:
        return []
    weights = weights if label is None else weights[label]
    return sorted(((parent, child, nats) for (parent, child), nats in weights.items()), key=lambda edge: -edge[2])
