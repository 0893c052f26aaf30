"""What is known of each row beyond its cells: label, weight and fold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.tables import Assignment, Column, LabelModel, Labels, PartialLabels, Table
from posteriori.tables.labels import KnownLabels
from posteriori.typing import Array


@dataclass(frozen=True)
class Labelling:
    """Labels, weights and folds of the rows of a table.

    Attributes
    ----------
    labels : Labels, PartialLabels or KnownLabels, optional
        The label of each row. Without labels but with classes, every row is unlabelled.
    classes : Column, optional
        The classes of the labels; None where no rows are to be learned from.
    weight : ndarray (n,), optional
        The weight of each row; 1 where absent.
    folds : ndarray (n,), optional
        The fold of each row, for statistics that are kept per fold.
    unlabelled_weight : float
        A factor on the weight of unlabelled rows.
    label_model : LabelModel, optional
        log p(label | component), where components are not the classes, or where labels may be wrong or partial.
    components : ndarray (n,), optional
        The class index of each row, where the labels were encoded before (`TableSource.cached`).
    """

    labels: Labels | PartialLabels | KnownLabels | None = None
    classes: Column | None = None
    weight: Array | None = None
    folds: Array | None = None
    unlabelled_weight: float = 1.0
    label_model: LabelModel | None = None
    components: Array | None = None

    def assignment(self, rows: slice, n_rows: int) -> Assignment | None:
        """Return the components and weights of some rows; None where there are no classes.

        Raises
        ------
        ValueError
            A label is missing where it must not be, or is not one of the classes.
        """
        if self.classes is None:
            return None
        weight = np.ones(n_rows) if self.weight is None else self.weight[rows]
        component = self._encoded(self.classes, rows, n_rows)
        allowed = self.labels.allowed(rows) if self.labels else None
        unlabelled = component < 0 if allowed is None else allowed.all(axis=1)
        if self.unlabelled_weight != 1.0 and unlabelled.any():
            weight = np.where(unlabelled, self.unlabelled_weight * weight, weight)
        if self.label_model is not None:
            return self.label_model.assignment(component, allowed, weight)
        return Assignment(component, weight, len(self.classes.categories))

    def _encoded(self, classes: Column, rows: slice, n_rows: int) -> Array:
        if self.components is not None:
            return self.components[rows]
        return self.labels.components(classes, rows) if self.labels else np.full(n_rows, -1, np.int32)

    def fold(self, rows: slice) -> Array | None:
        """Return the folds of some rows; None where there are none."""
        return None if self.folds is None else self.folds[rows]

    def column_of(self, table: Table) -> Labels | None:
        """Return the labels if they are a column of this table, which is then read along with the features."""
        return self.labels if isinstance(self.labels, Labels) and self.labels.table is table else None

    def with_labels(self, labels: Labels, classes: Column | None = None) -> Labelling:
        """Replace the labels, and the classes too unless they are None."""
        return replace(self, labels=labels, classes=classes or self.classes, components=None)

    def reweighted(self, factor: Array) -> Labelling:
        """Multiply the weights of the rows by factors (n,)."""
        return replace(self, weight=factor * (1.0 if self.weight is None else self.weight))
