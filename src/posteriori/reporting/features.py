"""Feature importance, class-conditional densities of the important columns, and the dependence tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.formatting import cell_text, count, plural
from posteriori.learning.importance import Importance
from posteriori.plotting import plot_densities, plot_tree
from posteriori.reporting.data import ReportData, take_rows
from posteriori.reporting.density_strips import MOST_SHADES, plot_density_strips
from posteriori.reporting.markup import Html, Section, bar, details, element, joined, paragraph, table
from posteriori.reporting.pictures import draw, draw_own, figure
from posteriori.reporting.writing import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.tables import Column

_MOST_BARS = 15
_MOST_PICTURES = 6
_MOST_ROWS = 5000  # drawn behind the curves as histograms
_MOST_CURVES = 8  # classes in one picture
_MOST_CATEGORIES = 80  # in one picture
_MOST_SIDE_BY_SIDE = 40  # bars in half the width of the page
_LETTERS_IN_A_LINE = 36
_MOST_NODES = 60
_MOST_TREES = 3
_MOST_EDGES = 12
_INFORMS = 1e-3  # nats; columns of less importance get no figure


def features_section(subject: ReportData, importance: Importance) -> Section:
    """Return feature importance and the densities of the most important columns."""
    n_rows = count(importance.n_rows)
    how = f"on {n_rows} held-out rows" if importance.held_out else f"expected over {n_rows} rows sampled from the model"
    lead = (
        f"Increase of the log-loss when a column is missing, {how}: the column is integrated out and the class is "
        "predicted from the other columns. Redundant columns share their importance, so each of them may score low. A "
        "negative value means that the rows were predicted better without the column. The figures show the density of "
        "a column in each class: a value is evidence for the classes whose density is high there."
    )
    nats, error = importance.information, importance.standard_error
    modelled = np.array(subject.estimator.schema_.modelled)
    order = modelled[np.argsort(-nats[modelled], kind="stable")]
    greatest = max(float(nats.max()), 1e-300)
    rows = [
        [subject.names[j], f"{_signed(nats[j])} ± {error[j]:.3f}", bar(max(nats[j], 0.0) / greatest)]
        for j in order[:_MOST_BARS]
    ]
    more = f", the first {len(rows)} of {len(order)}" if len(rows) < len(order) else ""
    chosen = [int(j) for j in order[:_MOST_PICTURES] if nats[j] > _INFORMS]
    contents = [
        table(f"Feature importance{more}", ["column", "increase of log-loss (nats)", ""], rows),
        *_pictures(subject, chosen, importance),
    ]
    return Section("features", "Feature importance", lead, tuple(contents))


def _signed(nats: float) -> str:
    return f"{nats:.3f}".replace("-", "\N{MINUS SIGN}")


def _pictures(subject: ReportData, chosen: list[int], importance: Importance) -> Iterator[Html]:
    if not chosen:
        yield paragraph("No single column improves the prediction: each can be replaced by the others.")
        return
    rows = subject.sampled(_MOST_ROWS)
    X, labels = take_rows(subject.X, rows), subject.estimator.classes_[subject.components[rows]]
    drawn = (_density(subject, j, X, labels, position, importance) for position, j in enumerate(chosen))
    yield element("div", *drawn, class_="pictures")
    some = f"a random sample of {count(len(rows))} rows" if len(rows) < len(subject.labelled) else "the observed rows"
    mixed = " (mixture of the members by their weights)" if subject.lens_name else ""
    if len(subject.labels) > _MOST_CURVES:
        note = f"Darker shades are higher densities under the model{mixed}. The range covers {some}."
    else:
        note = (
            f"Curves and bars are the fitted densities{mixed}; shaded histograms and circles behind them show {some}. "
            "Where the two agree, the model fits."
        )
    yield paragraph(note, class_="note")


def _density(subject: ReportData, j: int, X: Any, labels: Any, position: int, importance: Importance) -> Html:
    caption = joined([element("strong", subject.names[j]), f": importance {importance.information[j]:.3f} nats"])
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
            ax.set_ylabel(str(ax.get_ylabel()).split(" ")[0])  # drop "p(column | class)", which can be long
            _turn_names(ax, column)

    broad = many or len(column.categories) * len(subject.labels) > _MOST_SIDE_BY_SIDE
    width = 9.6 if broad else 4.6
    height = 1.0 + 0.16 * min(len(subject.labels), MOST_SHADES) if many else 3.6 if broad else 3.1
    label = f"Density of {column.name} in each class of {subject.target}"
    picture = draw(paint, width, height, label, f"density-{position}")
    if broad:
        picture = element("div", picture, class_="scroll", tabindex=0, role="region", aria_label=label)
    return element("div", figure(picture, caption), class_="broad" if broad else None)


def _turn_names(ax: Axes, column: Column) -> None:
    """Rotate category names that would overlap."""
    if sum(len(cell_text(category)) for category in column.categories) > _LETTERS_IN_A_LINE:
        for name in ax.get_xticklabels():
            name.set(rotation=40, ha="right", rotation_mode="anchor")


def tree_section(subject: ReportData) -> Section | None:
    """Return the dependences among the columns given the class, if the model or a pool member learned any."""
    model = subject.member_with("tree_", "parents_")
    if model is None:
        return None
    if subject.lens_name is None or model is subject.estimator:
        whose = ""
    else:
        whose = f" The figure shows the member {_name_in_pool(subject, model)} of the pool."
    lead = (
        "Columns that depend on each other within a class. An arrow from a parent to a child means that the child is "
        "conditioned on the parent, so that shared information is not counted twice"
        f"{'; wider arrows carry more information' if getattr(model, 'edge_information_', None) else ''}.{whose}"
    )
    contents = list(_trees(model))
    return Section("tree", "Dependences between columns", lead, tuple(contents)) if contents else None


def _name_in_pool(subject: ReportData, model: Any) -> str:
    members: dict[str, Any] = subject.estimator.members_
    return next(name for name in members if members[name] is model)


def _trees(model: Any) -> Iterator[Html]:
    if len(model.model_.schema.names) < 2:
        yield paragraph("There is only one column.")
        return
    labels = _tree_labels(model)
    if len(model.model_.schema.names) > _MOST_NODES:
        yield paragraph(f"There are {len(model.model_.schema.names)} columns, too many to draw.")
    else:
        for position, label in enumerate(labels[:_MOST_TREES]):
            given = "the class" if label is None else cell_text(label)
            picture = draw_own(
                lambda label=label: plot_tree(model, label),  # type: ignore[misc]
                f"Dependence tree given {given}",
                f"tree-{position}",
            )
            yield element("div", picture, class_="scroll", tabindex=0, role="region", aria_label=f"tree given {given}")
        if len(labels) > _MOST_TREES:
            yield paragraph(f"{plural(len(labels) - _MOST_TREES, 'more class')} with separate trees are not shown.")
    edges = _edges(model, labels[0])
    if edges:
        rows = [
            [f"{child}", f"{parent}", number(nats, 3), bar(nats / max(edges[0][2], 1e-300))]
            for parent, child, nats in edges[:_MOST_EDGES]
        ]
        more = f", {len(rows)} of {len(edges)}" if len(rows) < len(edges) else ""
        yield details(
            "Strongest dependences",
            table(f"Strongest dependences{more}", ["column", "parent", "information (nats)", ""], rows, text=(0, 1)),
        )


def _tree_labels(model: Any) -> list[Any]:
    """Return the classes with separate trees, the most frequent first; [None] if all share one tree."""
    tree = getattr(model, "tree_", {})
    if not any(isinstance(one, dict) for one in tree.values()):
        return [None]
    order = np.argsort(-model.model_.class_log_prior, kind="stable")
    return [model.classes_.tolist()[c] for c in order]


def _edges(model: Any, label: Any) -> list[tuple[str, str, float]]:
    weights = getattr(model, "edge_information_", None)
    if not weights:
        return []
    weights = weights if label is None else weights[label]
    return sorted(((parent, child, nats) for (parent, child), nats in weights.items()), key=lambda edge: -edge[2])
