"""The explorer of a model or a network: its data, and one HTML file, which needs no server."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import sys
import zlib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import OfClasses, estimator_of
from posteriori.classifiers.kept_predictions import kept_predictions
from posteriori.classifiers.training_record import chosen_class, kept_sentences, share_of_seen_rows
from posteriori.exploring.axes import axes_of_columns, axis_of_target, ranges_of_features, width_of_axis
from posteriori.exploring.class_counts import class_counts
from posteriori.exploring.drawn_rows import rows_to_compare
from posteriori.facts.ranges import drawn_ranges, known_ranges, range_of
from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.fitting.label_parameters import labels_to_learn
from posteriori.javascript import javascript_evaluator
from posteriori.javascript.export import javascript_object, joined, page_json
from posteriori.model import Posterior, draw_rows
from posteriori.model_selection import HeldOut, in_words
from posteriori.plotting.reading import parents_of
from posteriori.reading import read_labels, read_rows
from posteriori.registry import Subject
from posteriori.reporting.held_out import seen_rows
from posteriori.reporting.markup import HtmlPage, document_head
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import generator
from posteriori.support.formatting import cell_text
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array
from posteriori.tables.writing import decode

_DRAWN = 500  # rows, by which the axis of a column is chosen
_SEED = 0  # the same page for the same model and rows


def column_ranges(estimator: OfClasses, rows: Any = None) -> dict[str, list[Any]]:
    """Return the lowest and the highest number, whether all are whole, and the width of a logarithmic axis, by column.

    The first three are those of the training rows; a model that has none, such as one made from parameters, is sampled.
    The width, in data units, is None where the axis is linear. It is chosen by the given rows, the result of
    `sampled_rows`, or by rows drawn from the model.
    """
    posterior = estimator.fitted_.posterior
    schema, ranges = posterior.schema, known_ranges(estimator)
    if ranges is None:
        ranges = drawn_ranges(schema, posterior.models[0])
    found: dict[str, list[Any]] = {
        column.name: [float(low), float(high), bool(whole), None]
        for column, low, high, whole in zip(schema.columns, ranges.lowest, ranges.highest, ranges.whole, strict=True)
        if column.kind == "continuous" and np.isfinite(low)
    }
    tables = _drawn_tables(posterior, ranges) if rows is None else [list(zip(*rows["cells"], strict=True))]
    for column in found:
        j = schema.names.index(column)
        widths = (width_of_axis(table[j], *found[column][:3]) for table in tables if len(table))
        found[column][3] = next((width for width in widths if width is not None), None)
    return found


def _drawn_tables(posterior: Posterior, ranges: ColumnRanges) -> list[list[Any]]:
    """Return rows drawn from each model that describes whole rows, as lists of columns."""
    tables = []
    for model in posterior.models:
        rng = generator(_SEED)
        prior = np.exp(model.log_prior)
        component = rng.choice(model.n_components, size=_DRAWN, p=prior / prior.sum())
        try:
            tables.append(draw_rows(model, component, rng, ranges))
        except (ValueError, NotImplementedError):  # it has no distribution of some columns
            continue
    return tables


def dependences(value: FittedClasses, names: list[str]) -> list[dict[str, Any]]:
    """Return the trees and parents that a classifier, or the named members of a pool, learned among the columns.

    There is one entry for each member and, if these have trees of their own, each class: ``member`` and ``given`` (None
    if there is only one), and the ``parents`` of each column, as lists [parent, nats], nats None where unknown.
    """
    each: dict[str | None, Fitted]
    each = {name: value.members[name] for name in names} if value.members else {None: value.first}
    found = []
    for name, member in each.items():
        for label, parents in parents_of(estimator_of(member)).items():
            of_columns = {child: [[one, nats] for one, nats in above.items()] for child, above in parents.items()}
            found.append({"member": name, "given": _given(label), "parents": of_columns})
    return found


def _given(label: Any) -> str | None:
    if isinstance(label, tuple):
        return f"{cell_text(label[0])}, component {label[1]}"
    return None if label is None else cell_text(label)


def sampled_rows(estimator: OfClasses, X: Any, y: Any, most: int) -> dict[str, Any]:
    """Return some rows as the model reads them, their labels and their numbers in the table.

    Raises
    ------
    ValueError
        A label is not one of the classes.
    """
    cells = estimator._source(X).map(decode)
    labels = _labels(estimator, X, y, len(cells))
    held_out = _out_of_fold(estimator, X, cells, labels) if estimator.subject is Subject.CLASS else None
    chosen = np.arange(len(cells))
    if len(cells) > most:
        # Of training rows, those with an out-of-fold prediction are a random part themselves.
        known = chosen if held_out is None else np.flatnonzero(~np.isnan(held_out).all(axis=1))
        chosen = known if len(known) >= most else chosen
        chosen = np.sort(generator(_SEED).choice(chosen, size=most, replace=False))
    if held_out is not None and labels is not None and _lacks_some(held_out[chosen], labels[chosen]):
        held_out = None
    return {
        "names": list(estimator._posterior.schema.names),
        "heldOut": None if held_out is None else [_probabilities(row) for row in held_out[chosen]],
        "seen": share_of_seen_rows(estimator, X) or 0.0,
        "cells": [[_plain(cell) for cell in row] for row in cells[chosen].tolist()],
        "labels": None if labels is None else labels[chosen].tolist(),
        "numbers": chosen.tolist(),
        "total": len(cells),
    }


def _labels(estimator: OfClasses, X: Any, y: Any, n_rows: int) -> Array | None:
    """Return the index of the class of each row, −1 without label; None if no labels are known."""
    schema = estimator._posterior.schema
    if estimator.subject is not Subject.CLASS:
        return None
    table = read_rows(X, schema, type(estimator).__name__)
    if y is None:
        if schema.target is None or schema.target not in table.names:
            return None
        y = schema.target
    labels = labels_to_learn(read_labels(y, table), "learn", True, True)
    components: Array = labels.components(estimator.target_, slice(0, n_rows))
    return components


def _out_of_fold(estimator: Classifier, X: Any, cells: Array, labels: Array | None) -> Array | None:
    """Return p(y | x) of each row by models that were not trained on it, (n, C), NaN without; None if there are none.

    A model file of fit keeps such predictions, which each row finds by its cells. A pool that was fitted in this
    process keeps them without the rows: the given rows count as these if their labels are the same in the same order,
    and each column of numbers has the same range. Each fold has a class prior of its own; the probabilities are moved
    to that of the model.
    """
    if labels is None:
        return None
    recorded = kept_predictions(estimator, X, labels)
    if recorded is not None:
        known, log_posterior, prior = recorded
        return _moved(known, np.exp(log_posterior[known]), prior[known], estimator.class_prior_)
    kept = estimator.fitted_.out_of_fold
    labelled = labels >= 0
    if kept is None or not np.array_equal(kept.y_true, labels[labelled]) or not _same_ranges(estimator, cells):
        return None
    return _moved(labelled, kept.posterior, kept.prior, estimator.class_prior_)


def _moved(known: Array, posterior: Array, prior: Array, other: Array) -> Array:
    """Return posteriors of the known rows under another prior, (n, C); NaN in other rows."""
    moved = posterior * np.divide(other, prior, out=np.zeros(prior.shape), where=prior > 0)
    found = np.full((len(known), moved.shape[1]), np.nan)
    with np.errstate(invalid="ignore"):  # a row that no class can produce stays NaN
        found[known] = moved / moved.sum(axis=1, keepdims=True)
    return found


def _lacks_some(held_out: Array, labels: Array) -> bool:
    """Return whether more than a tenth of the labelled rows have no held-out prediction."""
    labelled = labels >= 0
    return bool(np.isnan(held_out[labelled]).all(axis=1).mean() > 0.1) if labelled.any() else False


def _same_ranges(estimator: OfClasses, cells: Array) -> bool:
    """Return whether the numbers of the rows have the ranges of the training rows, as they have if they are these."""
    schema, ranges = estimator._posterior.schema, known_ranges(estimator)
    return ranges is not None and all(
        range_of(cells[:, j])[:2] == (ranges.lowest[j], ranges.highest[j]) for j in schema.of_kind("continuous")
    )


def verdict(
    estimator: Classifier, rows: dict[str, Any] | None, X: Any = None, y: Any = None, positive: Any = None
) -> list[str]:
    """Return how good held-out predictions are, in sentences; none where the model and the rows offer no such ones.

    Such predictions are those of which the model keeps figures, or of labelled rows that the model has not seen.
    """
    kept = kept_sentences(estimator, positive)
    if kept or rows is None or rows["labels"] is None or seen_rows(estimator, X) != 0.0:
        return kept
    labels = _labels(estimator, X, y, rows["total"])
    labelled = None if labels is None else labels >= 0
    if labels is None or labelled is None or not labelled.any():
        return []
    try:
        posterior = np.asarray(estimator.predict_proba(X))[labelled]
    except ValueError:  # a number that the model does not predict, such as infinity, which the page shows
        return []
    with np.errstate(divide="ignore"):
        log_posterior = np.log(posterior)
    given = HeldOut.given(estimator.fitted_, labels[labelled], log_posterior)
    judged = replace(given, rows_are="held-out rows", positive=chosen_class(estimator, positive))
    target = estimator._posterior.schema.target
    return in_words.sentences(judged.figures, in_words.class_phrases(estimator.classes_.tolist(), target))


def class_asked_for(estimator: Classifier, positive: Any = None) -> int:
    """Return the class with which the section on decisions begins: that of interest, else the rarer of two or first."""
    chosen = chosen_class(estimator, positive)
    if chosen is None and len(estimator.classes_) == 2:
        chosen = int(np.argmin(estimator.class_prior_))
    return chosen or 0


def _probabilities(row: Array) -> list[float] | None:
    return None if np.isnan(row).any() else row.tolist()


def _plain(cell: Any) -> Any:
    if isinstance(cell, dict):
        return {str(word): _plain(count) for word, count in cell.items()}
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, float) and math.isinf(cell):  # JSON has no infinity; the largest number is in the same bin
        return math.copysign(sys.float_info.max, cell)
    return cell


MOST_ROWS = 2000
_MOST_CELLS = 1 << 20  # of the rows together, about 20 MB
_FEWEST_PACKED = 1 << 19  # characters of data: fewer stay legible


class Explorer(HtmlPage):
    """Interactive page about a classifier, a mixture, a regressor, a joint model or a network.

    Attributes
    ----------
    title : str
    html : str
        The complete document: model, evaluator, style and script. It loads nothing.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> page = po.explore(model)
    >>> page.title
    'species'
    """


def explore(
    model: Any,
    X: Any = None,
    y: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    positive: Any = None,
    title: str | None = None,
    embed: bool = False,
) -> Explorer:
    """Write a page that answers what-if questions about a model, with any input unknown.

    The page of a classifier begins with sentences on its held-out predictions, if the model keeps them or the given
    rows are labelled and new to it. It has a control for every column, the posterior with its sum of log factors, the
    share of each class among the training rows with the same one, two or three cells where the model counts them, the
    value of asking each unknown column, the smallest change of one column that changes the prediction, the members of a
    pool, the dependences between columns that trees and k-dependence models learned, and, given labelled rows, the rows
    with the largest log-loss and sliders for prevalence and costs. The page of a network has all variables with their
    marginals, evidence by click, the most probable states, the information of each arrow, and the trails that are
    active between two variables. The page of an `AdditiveRegressor` has the density of the number as columns become
    known, its mean, median and interval, the probability of a range, and the sum of what each column adds. The page of
    a `JointModel` has the distribution of every column, and a value, a set of values or a range of any can be known.

    Parameters
    ----------
    model : fitted classifier, mixture, AdditiveRegressor or JointModel of posteriori, or BayesianNetwork
    X : array-like or data frame (n, d), optional
        Rows to look at. **The page contains their cells**, of at most 2,000 rows drawn at random, and of fewer if these
        have more than about a million cells and posteriors: leave X out if the page goes to readers who may not see
        them.
    y : array-like (n,) or str, optional
        The labels of the rows, or the name of their column. Default: the column of the target, if X has it.
    path : path, optional
        File to write the page to. Default: write no file.
    positive : class, optional
        The class of interest, whose recall the first sentences give and with which the decisions begin. Default: that
        of the fit, else the rarer of two classes.
    title : str, optional
        Default: the target; without one, the name of a network, or what the model is.
    embed : bool, default False
        Write the first section alone, without header and contents, for a frame within another page: what if and its
        sum, the columns of a joint model, or the graph of a network.

    Returns
    -------
    Explorer

    Raises
    ------
    TypeError, ValueError
        As `to_javascript`; or rows are given with a network, a regressor or a joint model, or `positive` with these or
        a mixture; or a label or `positive` is not one of the classes.
    OSError
        The path is not writable.

    Notes
    -----
    The page works from a file, offline, and under a content security policy that allows its own script and nothing
    else. All numbers are computed in the browser, and equal those of Python up to rounding.

    Confusion matrix, cost and calibration of the rows that a `GenerativeClassifier` was trained on are those of its
    ``out_of_fold_``. Rows count as these if they have the same labels in the same order and the same ranges of numbers.
    Files of the command ``fit`` keep these predictions, which rows find by their cells, in any order. Without them, the
    page says that the figures of training rows are too good.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> model = po.NaiveBayes().fit(load_penguins(), "species")
    >>> po.explore(model).html.startswith("<!DOCTYPE html>")
    True
    """
    subject = getattr(model, "subject", None)
    classifies = subject is Subject.CLASS
    if positive is not None and not classifies:
        raise ValueError(f"positive is a class of a classifier; explore a {kind_of(model)} without it")
    if X is not None and subject not in (Subject.CLASS, Subject.COMPONENT):
        raise ValueError(f"rows are shown for classifiers; explore a {kind_of(model)} without rows")
    written = javascript_object(model)
    shown: dict[str, Any] = {"model": written, "title": title or title_of(model)}
    if subject is Subject.NUMBER:
        shown |= {"ranges": ranges_of_features(model.fitted_), "axis": axis_of_target(model.fitted_)}
    elif subject is Subject.COLUMNS:
        shown["axes"] = axes_of_columns(model.fitted_.law)
    elif subject is not Subject.VARIABLES:
        rows = None
        if X is not None:
            rows = sampled_rows(model, X, y, most_rows(len(written["columns"]), len(written["classes"])))
        shown["ranges"] = column_ranges(model, rows)
        shown["verdict"] = verdict(model, rows, X, y, positive) if classifies else []
        labels = None if X is None or not classifies else _labels(model, X, y, rows["total"])  # type: ignore[index]
        shown["counts"] = class_counts(model.fitted_, X, labels) if classifies else None
        shown["drawn"] = rows_to_compare(model.fitted_.posterior)
        shown["trained"] = known_ranges(model) is not None
        shown["dependences"] = dependences(model.fitted_, [one["name"] for one in written["models"]])
        if rows is not None:
            shown["rows"] = rows | {"positive": class_asked_for(model, positive) if classifies else 0}
    explorer = Explorer(shown["title"], _document(shown, embed))
    if path is not None:
        explorer.save(path)
    return explorer


def title_of(model: Any) -> str:
    """Return the title of the page about a model: its target, or the name of a network, else what it is."""
    target = None if model.subject is Subject.VARIABLES else model.schema_.target
    return str(target or getattr(model, "name", "") or kind_of(model).capitalize())


def kind_of(model: Any) -> str:
    """Return in a word what a model is that is no classifier."""
    return {
        Subject.VARIABLES: "network",
        Subject.COLUMNS: "joint model",
        Subject.NUMBER: "regressor",
        Subject.CLASS: "classifier",
        Subject.ROWS: "tree",
    }.get(model.subject, "mixture")


def most_rows(n_columns: int, n_classes: int) -> int:
    """Return how many rows a page holds: their cells and posteriors are at most `_MOST_CELLS`."""
    return max(1, min(MOST_ROWS, _MOST_CELLS // (n_columns + n_classes)))


def _document(shown: dict[str, Any], embed: bool) -> str:
    """Return the page with its data, its style and its script; in a frame, its first section alone."""
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash_of(script)}'; style-src '{_hash_of(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    body = element(
        "body",
        element("noscript", element("p", "This page computes in the browser; allow its script to run.")),
        element("div", id="page"),
        _data(shown),
        Html(f'<script type="module">{script}</script>'),
        class_="embed" if embed else None,
    )
    return f"<!DOCTYPE html>\n{element('html', document_head(shown['title'], style, policy), body, lang='en')}\n"


def _data(shown: dict[str, Any]) -> Html:
    """Return the element of the data: JSON in which no cell or name can end the element, or that text compressed."""
    text = page_json(shown)
    if len(text) > _FEWEST_PACKED:
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        return Html(f'<script type="text/plain" id="shown">{packed}</script>')
    return Html(f'<script type="application/json" id="shown">{text}</script>')


@cache
def _style() -> str:
    of_report = files("posteriori.reporting").joinpath("page.css").read_text(encoding="utf-8")
    return of_report + files(__package__).joinpath("page", "explorer.css").read_text(encoding="utf-8")


@cache
def _script() -> str:
    evaluator = javascript_evaluator()
    return evaluator + joined(files(__package__).joinpath("page"), "main", known=evaluator)


def _hash_of(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
