"""Dependences between columns: a figure of a small tree or network, an outline of a large one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posteriori.classifiers import GenerativeEstimator, TreeAugmentedNaiveBayes
from posteriori.classifiers.estimator import estimator_of
from posteriori.facts.members import models_by_weight
from posteriori.plotting.reading import Parents, parents_of
from posteriori.reporting.charts import figure
from posteriori.reporting.data import ReportData
from posteriori.reporting.dependence_charts import dependence_chart
from posteriori.reporting.markup import Section, bar, number, paragraph, scrolled, table
from posteriori.support.formatting import cell_text, listed, plural
from posteriori.support.markup import Html, details, element, joined

_MOST_NODES = 40  # of a figure; a wide one has one column per line
_MOST_TREES = 3
_MOST_EDGES = 12
_MOST_LINES = 400
_MOST_FOLDED = 30  # lines of a table that is not folded


def tree_section(subject: ReportData) -> Section | None:
    """Return the dependences among the columns given the class, if the model or a pool member learned any."""
    each = ((name, estimator_of(one)) for name, one in models_by_weight(subject.estimator.fitted_).items())
    name, model = next(((name, one) for name, one in each if parents_of(one)), (None, None))
    if model is None:
        return None
    is_informed = isinstance(model, TreeAugmentedNaiveBayes) and model.edge_information_
    whose = "" if name is None else f" The figure shows the member {name} of the pool."
    lead = (
        "Columns that depend on each other within a class. An arrow from a parent to a child means that the child is "
        "conditioned on the parent, so that shared information is not counted twice"
        f"{'; wider arrows carry more information' if is_informed else ''}.{whose}"
    )
    contents = list(_trees(model))
    return Section("tree", "Dependences between columns", lead, tuple(contents)) if contents else None


def _trees(model: GenerativeEstimator) -> Iterator[Html]:
    names = model.model_.schema.names
    if len(names) < 2:
        yield paragraph("There is only one column.")
        return
    found = parents_of(model)
    frequent = np.argsort(-model.model_.class_log_prior, kind="stable")
    labels = [None] if None in found else model.classes_[frequent].tolist()
    for label in labels[:_MOST_TREES]:
        given = "the class" if label is None else cell_text(label)
        if len(names) <= _MOST_NODES:
            yield _figure(found[label], given)
        elif label is None:
            yield from _written(found[label])
        else:
            yield details(f"Given {given}", *_written(found[label]))
    if len(labels) > _MOST_TREES:
        yield paragraph(f"{plural(len(labels) - _MOST_TREES, 'more class')} with separate trees are not shown.")
    edges = [
        (parent, child, nats)
        for child, above in found[labels[0]].items()
        for parent, nats in above.items()
        if nats is not None
    ]
    edges.sort(key=lambda edge: -edge[2])
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


def _figure(parents: Parents, given: str) -> Html:
    edges = {(parent, child): nats for child, above in parents.items() for parent, nats in above.items()}
    pairs = "; ".join(f"{child} depends on {listed(list(above), 6)}" for child, above in parents.items() if above)
    label = f"Dependences given {given}: {pairs or 'none'}"
    known = " Numbers are the information in nats." if any(nats is not None for nats in edges.values()) else ""
    picture = dependence_chart(list(parents), edges, label)
    return figure(scrolled(picture, f"tree given {given}"), f"Dependences given {given}.{known}")


def _written(parents: Parents) -> Iterator[Html]:
    """Yield the dependences as text: an outline of a tree, or each column with its parents."""
    if all(len(of_child) <= 1 for of_child in parents.values()):
        yield paragraph("Each column is indented below the column that it depends on.", class_="note")
        yield _outline(parents)
        return
    rows = [[child, listed(list(of_child), 6) if of_child else "only the class"] for child, of_child in parents.items()]
    shown = rows[:_MOST_LINES]
    more = f", the first {len(shown)} of {len(rows)}" if len(shown) < len(rows) else ""
    grid = table(f"Parents of each column{more}", ["column", "depends on"], shown, text=(0, 1))
    yield details("Parents of each column", grid) if len(rows) > _MOST_FOLDED else grid


def _outline(parents: Parents) -> Html:
    """Return a tree as nested lists, the strongest branches first, each with its information in nats."""
    children: dict[str | None, list[tuple[str, float | None]]] = {}
    for child, above in parents.items():
        parent, nats = next(iter(above.items()), (None, None))
        children.setdefault(parent, []).append((child, nats))

    def items(parent: str | None) -> Iterator[Html]:
        for child, nats in sorted(children.get(parent, []), key=lambda one: -(one[1] or 0.0)):
            note = None if nats is None else element("span", f" {number(nats, 2)}", class_="note")
            below = element("ul", *items(child)) if child in children else None
            yield element("li", joined([child, note, below]))

    return element("ul", *items(None), class_="outline")
