"""Facts about a joint model: its columns and links, how far each column follows from the others, and answers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from posteriori.classifiers import JointModel
from posteriori.classifiers.estimator import OneModel
from posteriori.facts.model import Facts
from posteriori.fitting.fitted import Fitted
from posteriori.joint.answers import CellFigures, cell_figures
from posteriori.joint.counting import Probability
from posteriori.joint.of_classifier import askable
from posteriori.joint.questions import read_question
from posteriori.joint.value import FittedJoint
from posteriori.model.predictive import PredictiveDensity
from posteriori.registry import Subject
from posteriori.scoring.files import probability_column
from posteriori.support.checks import generator

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_JUDGED = 5000  # rows, of which a part is held out
_SHARE_HELD_OUT = 0.2
_FEWEST_HELD_OUT = 10


def value_of(model: JointModel | OneModel) -> FittedJoint:
    """Return the fitted value of a joint model."""
    return cast(FittedJoint, model.fitted_)


def columns_of(model: JointModel) -> list[str]:
    """Return the names of the columns that can be asked for: those that have values."""
    value = value_of(model)
    return [value.schema.names[j] for j in value.law.columns]


def links(model: JointModel) -> list[Facts]:
    """Return the pairs of columns that the tree links, the one with the most mutual information first.

    Parts of one date, which follow from each other, are no pair.
    """
    member = value_of(model).members.get("tree")
    if member is None:
        return []
    columns = value_of(model).schema.columns
    found = [
        (columns[member.columns[above]], columns[j], nats)
        for j, above, nats in zip(member.columns, member.parents, member.edge_information(), strict=True)
        if above >= 0
    ]
    return [
        {"columns": [one.name, other.name], "nats": nats}
        for one, other, nats in sorted(found, key=lambda edge: -edge[2])
        if nats > 0.0 and one.source != other.source
    ]


def joint_facts(model: JointModel) -> Facts:
    """Return the members with their weights, the columns and the links."""
    value = value_of(model)
    columns: list[Facts] = []
    for j, column in enumerate(value.schema.columns):
        found: Facts = {"name": column.name, "kind": column.shown_kind}
        if column.is_ignored:
            found["reason"] = column.reason
        elif column.kind == "categorical":
            found["n_categories"] = len(column.categories)
        elif (ranges := value.ranges) is not None and j in value.law.grids:
            found |= {"min": float(ranges.lowest[j]), "max": float(ranges.highest[j])}
            found["step"] = float(value.law.grids[j].cells.step)
        columns.append(found)
    return {
        "model": "joint",
        "n_parameters": value.n_parameters,
        "members": [{"member": name, "weight": weight} for name, weight in value.weights.items()],
        "pools": sorted(value.pools),
        "columns": columns,
        "links": links(model),
    }


def explained(model: JointModel, rows: Any) -> Facts:
    """Return how far each column follows from the others, in held-out rows, by a model of other rows.

    Parameters
    ----------
    model : JointModel
        Its parameters are used, and its fit is not.
    rows : Scan
        The training rows; at most 5,000 of them are read.

    Returns
    -------
    dict
        ``explained`` has for each column the share of its entropy (of the bins of numbers) that the other cells of a
        row explain, 0 if they do not help; of categories also the accuracy, and that of the most frequent category.
        Parts of dates, which follow from each other, are left out. It is empty if there are too few rows.
    """
    rng = generator(0)
    places = np.sort(rng.permutation(rows.n_rows)[:_MOST_JUDGED])
    held_out = rng.random(len(places)) < _SHARE_HELD_OUT
    n_judged = int(held_out.sum())
    if n_judged < _FEWEST_HELD_OUT:
        return {"explained": [], "explained_rows": 0}
    judge = JointModel(**{**model.get_params(deep=False), "keep_rows": False, "targets": ()}).fit(
        rows.at(places[~held_out])
    )
    value = value_of(judge)
    figures = cell_figures(value.law, value.rows.source(rows.at(places[held_out]), model.n_jobs))
    known = {name for name in columns_of(model) if value.schema.columns[value.schema.names.index(name)].part is None}
    found = [_explained(value, j, one) for j, one in figures.items() if value.schema.names[j] in known and one.n]
    return {"explained": sorted(found, key=lambda one: -one["share"]), "explained_rows": n_judged}


def _explained(value: FittedJoint, j: int, of_column: CellFigures) -> Facts:
    alone, given = of_column.loss_alone, of_column.loss_given_others
    found: Facts = {"column": value.schema.names[j], "share": max(0.0, 1.0 - given / alone) if alone > 0 else 0.0}
    if j not in value.law.grids:
        found |= {"accuracy": of_column.accuracy, "most_frequent": of_column.accuracy_alone}
    return found


def joint_answer(model: JointModel | OneModel, question: str) -> Facts:
    """Return the probability that a question asks for, or the distribution of each of its columns.

    Of a joint model that keeps its rows there are also ``rows``, the weight of the training rows that are as given and
    know what is asked for, and ``standard_error`` of a probability: of an event one number each, of distributions one
    for each column, and of each category.

    Raises
    ------
    ValueError
        The question cannot be read, or what is known is impossible.
    """
    columns = value_of(model).law if model.subject is Subject.COLUMNS else askable(cast(Fitted, model.fitted_))
    read = read_question(question, columns)
    asked, given = read.asked, read.given
    answer = model.query(question)
    counts = _counts_rows(model)
    if isinstance(answer, float):
        of_rows = (
            {"rows": answer.rows, "standard_error": answer.standard_error} if isinstance(answer, Probability) else {}
        )
        return {"probability": float(answer)} | (of_rows if counts else {})
    each = answer if len(asked) > 1 else {next(iter(asked)): answer}
    by_state = {
        name: {probability_column(state).removeprefix("p_"): p for state, p in one.items()}
        for name, one in each.items()
        if not isinstance(one, PredictiveDensity)
    }
    found: Facts = {
        "marginals": {name: by_state[name] if name in by_state else density_facts(each[name]) for name in each}
    }
    if counts:
        law = value_of(cast(JointModel, model)).law
        of_columns = {name: law.counts(given, {law.place(name): None}) for name in each}
        found["rows"] = {name: one.rows for name, one in of_columns.items() if one is not None}
        errors = {name: {state: p.standard_error for state, p in one.items()} for name, one in by_state.items()}
        found["standard_error"] = errors
    return found


def _counts_rows(model: JointModel | OneModel) -> bool:
    return model.subject is Subject.COLUMNS and value_of(model).counted is not None


def density_facts(density: PredictiveDensity) -> Facts:
    """Return mean, standard deviation and quantiles of the density of one number."""
    quantiles = density.quantile(LEVELS)[0]
    return {
        "mean": float(density.mean[0]),
        "sd": float(density.std[0]),
        "quantiles": dict(zip(map(str, LEVELS), quantiles.tolist(), strict=True)),
    }
