"""Labels to learn from, components, priors and the label model, by the parameters of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.densities.label_model import LabelModel
from posteriori.reading import LabelColumn, PartialLabels
from posteriori.reading.target_cuts import looks_like_a_quantity
from posteriori.support.checks import is_missing
from posteriori.support.typing import Array
from posteriori.tables import Column, Table
from posteriori.tables.polars import LazyTable

_MOST_COMPONENTS = 10_000  # of a class


def reject_quantity(classes: Column, labels: LabelColumn) -> None:
    """Raise ValueError if labels are numbers that look like a quantity, by `looks_like_a_quantity`.

    Labels of a categorical data type are classes.
    """
    declared = classes.dtype in ("category", "ordered", "Categorical", "Enum") or classes.dtype.startswith("dictionary")
    n_rows = labels.table.n_rows
    if not declared and looks_like_a_quantity(classes.categories, n_rows):
        raise ValueError(
            f"y holds {len(classes.categories):,} different numbers in {n_rows:,} rows, from "
            f"{classes.categories[0]:g} to {classes.categories[-1]:g}, and looks like a quantity; cut it into classes "
            "with posteriori.reading.quantile_classes(y, 4), or, if these are names of classes, give them as strings"
        )


def labels_to_learn(
    labels: LabelColumn | PartialLabels, unlabelled: Any, has_parameter: bool, last: bool
) -> LabelColumn | PartialLabels:
    """Return the labels of training rows, and allow missing ones if the parameters do.

    Parameters
    ----------
    labels : LabelColumn
    unlabelled : "error", "learn", "ignore" or a label
        See `Recipe.unlabelled`; a label is the code of a missing label.
    has_parameter : bool
        Whether the estimator has the parameter.
    last : bool
        Whether no more rows follow, because EM needs all of them at once.
    """
    if not (isinstance(unlabelled, str | bool | int | float | np.generic) or is_missing(unlabelled)):
        raise ValueError(f'unlabelled is a {type(unlabelled).__name__}; give "error", "learn", "ignore" or a label')
    if isinstance(labels, PartialLabels):
        if has_parameter and last:
            return labels
        raise ValueError(
            "y is a mask of possible classes, which takes EM over all rows: NaiveBayes, GaussianDiscriminant, "
            "TreeAugmentedNaiveBayes and ChowLiuClassifier learn from it by fit"
        )
    if isinstance(unlabelled, str) and unlabelled in ("error", "ignore"):
        return replace(labels, may_miss=unlabelled == "ignore")
    code = None if unlabelled == "learn" or is_missing(unlabelled) else unlabelled
    if last:
        return replace(labels, code=code, may_miss=True)
    advice = "partial_fit learns from labelled rows, and EM needs all rows at once: drop or label such rows, or use fit"
    return replace(labels, code=code, advice=advice)


def reject_target(table: Table, model: str) -> None:
    """Raise ValueError if files were scanned with a target for a model without labels."""
    if isinstance(table, LazyTable) and table.target is not None:
        raise ValueError(
            f"{model} learns without labels, and the target of the scan is {table.target!r}; scan the files without "
            "target, and name the features in columns"
        )


def components_of(stated: Any, classes: Column) -> tuple[int, ...]:
    """Return the class of each component, ascending; empty if every class is one component.

    Parameters
    ----------
    stated : int, mapping or None
        The parameter `components_per_class` of an estimator: the number of components of every class, or by class.
    classes : Column
    """
    if stated is None:
        return ()
    many = dict.fromkeys(classes.categories, 1)
    if isinstance(stated, Mapping):
        for label, count in stated.items():
            if label not in many:
                raise ValueError(
                    f"components_per_class names {label!r}, which is not a class; they are {list(classes.categories)}"
                )
            many[label] = count
    else:
        many = dict.fromkeys(classes.categories, stated)
    for label, count in many.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= _MOST_COMPONENTS:
            raise ValueError(
                f"components_per_class is {count!r} for class {label!r}; give a whole number, at least 1 and at most "
                f"{_MOST_COMPONENTS:,}"
            )
    if all(count == 1 for count in many.values()):
        return ()
    return tuple(c for c, count in enumerate(many.values()) for _ in range(count))


def make_label_model(noise: Any, of_class: tuple[int, ...], partial: bool, classes: Column) -> LabelModel | None:
    """Return the label model, log p(label | z); None if the label of a row is its component.

    Parameters
    ----------
    noise : None, float, (C, C) or "learn"
        The parameter `label_noise` of an estimator.
    of_class : tuple of int
        The class of each component; empty if every class is one component.
    partial : bool
        Whether a row may carry several possible classes.
    classes : Column
    """
    n_classes = len(classes.categories)
    positions = of_class or tuple(range(n_classes))
    if noise is None:
        return LabelModel(positions) if of_class or partial else None
    if partial:
        raise ValueError("label_noise needs one recorded label per row, and y is a mask; give one or the other")
    if isinstance(noise, str):
        if noise != "learn":
            raise ValueError(f'label_noise is {noise!r}; give "learn", a share of wrong labels, or a matrix')
        return LabelModel.learning(positions)
    return LabelModel(positions, _confusion(noise, classes))


def _confusion(noise: Any, classes: Column) -> Array:
    """Return p(recorded | true), (C, C), from a share of wrong labels, a matrix, or a mapping of mappings."""
    labels, n_classes = classes.categories, len(classes.categories)
    if isinstance(noise, Mapping):
        if not all(isinstance(row, Mapping) for row in noise.values()):
            raise ValueError("label_noise has no mapping of recorded labels of a class; give {true: {recorded: p}}")
        strange = [label for row in (noise, *noise.values()) for label in row if label not in classes.lookup]
        if strange:
            raise ValueError(f"label_noise names {strange[0]!r}, which is not a class; they are {list(labels)}")
        right = {label: {label: 1.0} for label in labels}
        noise = [[(right | dict(noise))[true].get(label, 0.0) for label in labels] for true in labels]
    try:
        confusion = np.asarray(noise, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"label_noise is a {type(noise).__name__}; give a share, a matrix or a mapping") from None
    if confusion.ndim == 0:
        share = float(confusion)
        if not 0 <= share < 1:
            raise ValueError(f"label_noise is {share:g}; as the share of wrong labels it is at least 0 and below 1")
        if n_classes == 1:
            return np.ones((1, 1))
        confusion = np.full((n_classes, n_classes), share / (n_classes - 1))
        np.fill_diagonal(confusion, 1.0 - share)
    if confusion.shape != (n_classes, n_classes):
        raise ValueError(
            f"label_noise is of shape {confusion.shape}; give ({n_classes}, {n_classes}), with one row per true class"
        )
    if (confusion < 0).any() or not np.allclose(confusion.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(
            "label_noise has a row that is not a distribution: give p(recorded | true), with rows that sum to 1"
        )
    normalised: Array = confusion / confusion.sum(axis=1, keepdims=True)
    return normalised
