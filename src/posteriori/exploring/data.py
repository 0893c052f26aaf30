"""What an explorer needs beside the model: the ranges of columns, and rows to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.classifiers.rows import share_of_seen_rows
from posteriori.classifiers.validation import labels_to_learn
from posteriori.draws import generator
from posteriori.formatting import cell_text
from posteriori.model import GenerativeModel, draw_rows
from posteriori.statistics import ColumnRanges
from posteriori.tables import Batch, Schema, read_labels, read_rows
from posteriori.tables.writing import decode
from posteriori.typing import Array

_DRAWN = 500  # rows of a model without ranges
_SEED = 0  # the same page for the same model and rows


def column_ranges(estimator: Any) -> dict[str, list[Any]]:
    """Return the lowest and the highest number of each column, and whether its numbers are whole, by its name.

    They are those of the training rows; a model that has none, such as one made from parameters, is sampled.
    """
    schema, models = estimator._posterior.schema, estimator._posterior.models
    ranges = _ranges_of(estimator)
    if ranges is None:
        ranges = _drawn_ranges(schema, models[0])
    return {
        column.name: [float(low), float(high), bool(whole)]
        for column, low, high, whole in zip(schema.columns, ranges.lowest, ranges.highest, ranges.whole, strict=True)
        if column.kind == "continuous" and np.isfinite(low)
    }


def _ranges_of(estimator: Any) -> ColumnRanges | None:
    """Return the ranges of the training rows of a model, or of the first member of a pool that has them."""
    members = list(getattr(estimator, "members_", {}).values()) or [estimator]
    known = (member.statistics_.ranges for member in members if hasattr(member, "statistics_"))
    return next((ranges for ranges in known if ranges is not None), None)


def _drawn_ranges(schema: Schema, model: GenerativeModel) -> ColumnRanges:
    rng = generator(_SEED)
    component = rng.choice(model.n_components, size=_DRAWN, p=np.exp(model.log_prior) / np.exp(model.log_prior).sum())
    columns = draw_rows(model, component, rng)
    lowest, highest = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    whole = np.zeros(len(columns), np.bool_)
    for j in schema.of_kind("continuous"):
        numbers = np.asarray(columns[j], np.float64)
        present = numbers[~np.isnan(numbers)]
        if len(present):
            lowest[j], highest[j], whole[j] = present.min(), present.max(), bool((present == np.rint(present)).all())
    return ColumnRanges(lowest, highest, whole)


def dependences(estimator: Any, names: list[str]) -> list[dict[str, Any]]:
    """Return the trees and parents that a classifier or the members of a pool learned among the columns.

    Parameters
    ----------
    estimator : fitted classifier or mixture
    names : list of str
        The members of a pool that the page contains.

    Returns
    -------
    list of dict
        One for each member and, if these have trees of their own, each class: ``member`` and ``given`` (None if there
        is only one), and the ``parents`` of each column, as lists [parent, nats], nats None where no information is
        known.
    """
    members = getattr(estimator, "members_", None)
    if members is None:
        members, names = {None: estimator}, [None]  # type: ignore[list-item]
    found = []
    for name in names:
        member = members[name]
        for given, parents in _parents_by_class(member):
            found.append({"member": name, "given": given, "parents": parents})
    return found


def _parents_by_class(model: Any) -> Iterator[tuple[str | None, dict[str, list[Any]]]]:
    """Yield the name of a class, None for all, and the parents of each column with their information."""
    if hasattr(model, "parents_"):
        yield None, {child: [[parent, None] for parent in of_child] for child, of_child in model.parents_.items()}
        return
    tree = getattr(model, "tree_", {})
    if any(isinstance(one, dict) for one in tree.values()):
        for label, of_class in tree.items():
            given = f"{cell_text(label[0])}, component {label[1]}" if isinstance(label, tuple) else cell_text(label)
            yield given, _parents(of_class, model.edge_information_[label])
    elif tree:
        yield None, _parents(tree, model.edge_information_)


def _parents(tree: dict[str, str | None], information: dict[tuple[str, str], float]) -> dict[str, list[Any]]:
    return {
        child: [] if parent is None else [[parent, float(information[parent, child])]] for child, parent in tree.items()
    }


def sampled_rows(estimator: Any, X: Any, y: Any, most: int) -> dict[str, Any]:
    """Return some rows as the model reads them, their labels and their numbers in the table.

    Raises
    ------
    ValueError
        A label is not one of the classes.
    """
    source = estimator._source(X)
    found: dict[int, Array] = {}

    def read(batch: Batch) -> Array:
        found[batch.start] = decode(batch)
        return np.empty(len(batch))

    source.map(read)
    cells = np.concatenate([found[start] for start in sorted(found)])  # threads may finish in any order
    labels = _labels(estimator, X, y, len(cells))
    chosen = np.arange(len(cells))
    if len(cells) > most:
        chosen = np.sort(generator(_SEED).choice(len(cells), size=most, replace=False))
    held_out = _out_of_fold(estimator, cells, labels)
    return {
        "names": list(estimator._posterior.schema.names),
        "heldOut": None if held_out is None else [_probabilities(row) for row in held_out[chosen]],
        "seen": share_of_seen_rows(estimator, X),
        "cells": [[_plain(cell) for cell in row] for row in cells[chosen].tolist()],
        "labels": None if labels is None else labels[chosen].tolist(),
        "numbers": chosen.tolist(),
        "total": len(cells),
    }


def _labels(estimator: Any, X: Any, y: Any, n_rows: int) -> Array | None:
    """Return the index of the class of each row, −1 without label; None if no labels are known."""
    schema = estimator._posterior.schema
    if not hasattr(estimator, "classes_"):
        return None
    table = read_rows(X, schema, type(estimator).__name__)
    if y is None:
        if schema.target is None or schema.target not in table.names:
            return None
        y = schema.target
    labels = labels_to_learn(read_labels(y, table), "learn", True, True)
    components: Array = labels.components(estimator.target_, slice(0, n_rows))
    return components


def _out_of_fold(estimator: Any, cells: Array, labels: Array | None) -> Array | None:
    """Return p(y | x) of each row by models that were not trained on it, (n, C), NaN without; None if there are none.

    The model keeps such predictions of its training rows and not the rows themselves. The given rows count as these if
    their labels are the same in the same order, and each column of numbers has the same range. Each fold has a class
    prior of its own; the probabilities are moved to that of the model.
    """
    kept = getattr(estimator, "out_of_fold_", None)
    if kept is None or labels is None:
        return None
    labelled = labels >= 0
    if not np.array_equal(kept.y_true, labels[labelled]) or not _same_ranges(estimator, cells):
        return None
    moved = kept.posterior * np.divide(
        estimator.class_prior_, kept.prior, out=np.zeros(kept.prior.shape), where=kept.prior > 0
    )
    found = np.full((len(labels), moved.shape[1]), np.nan)
    with np.errstate(invalid="ignore"):  # a row that no class can produce stays NaN
        found[labelled] = moved / moved.sum(axis=1, keepdims=True)
    return found


def _same_ranges(estimator: Any, cells: Array) -> bool:
    """Return whether the numbers of the rows have the ranges of the training rows, as they have if they are these."""
    schema, ranges = estimator._posterior.schema, _ranges_of(estimator)
    if ranges is None:
        return False
    for j in schema.of_kind("continuous"):
        numbers = cells[:, j].astype(np.float64)  # None becomes NaN
        present = numbers[~np.isnan(numbers)]
        found = [present.min(), present.max()] if len(present) else [np.inf, -np.inf]
        if not np.array_equal(found, [ranges.lowest[j], ranges.highest[j]]):
            return False
    return True


def _probabilities(row: Array) -> list[float] | None:
    return None if np.isnan(row).any() else row.tolist()


def _plain(cell: Any) -> Any:
    if isinstance(cell, dict):
        return {str(word): _plain(count) for word, count in cell.items()}
    return cell.item() if isinstance(cell, np.generic) else cell
