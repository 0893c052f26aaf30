"""Predicted probabilities and true classes of rows, as figures of evaluation take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.plotting.reading import class_number, class_numbers
from posteriori.typing import Array


@dataclass(frozen=True)
class Predictions:
    """p(y | x) and the true class of rows.

    Attributes
    ----------
    model : fitted classifier
    y_true : ndarray (n,)
        The class index of each row.
    posterior : ndarray (n, C)
    drawn : sequence of int
        The indices of the classes to draw.
    """

    model: Any
    y_true: Array
    posterior: Array
    drawn: Sequence[int]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, proba: Any, label: Any = None) -> Predictions:
        """Predict rows, unless their probabilities are given; draw a label, or the second of two classes, or all.

        Raises
        ------
        ValueError
            X and proba are both absent, labels are absent or missing, a shape is wrong, or label is not a class.
        """
        check_is_fitted(model, "classes_")
        if X is None and proba is None:
            raise ValueError("give rows X, or the probabilities of their classes, proba")
        posterior = _finite(model.predict_proba(X) if proba is None else proba, len(model.classes_))
        y_true = class_numbers(model.classes_, y, posterior if X is None else X)
        if len(y_true) != len(posterior):
            raise ValueError(f"proba has {len(posterior)} rows, but there are {len(y_true)} labels")
        n_classes = len(model.classes_)
        every = range(1 if n_classes == 2 else 0, n_classes)
        return cls(model, y_true, posterior, every if label is None else [class_number(model.classes_, label)])


def _finite(proba: Any, n_classes: int) -> Array:
    posterior = np.asarray(proba, dtype=np.float64)
    if posterior.ndim != 2 or posterior.shape[1] != n_classes or not np.isfinite(posterior).all():
        raise ValueError(
            f"proba {posterior.shape} must be finite, with one row per row of y and {n_classes} columns, one per class"
        )
    return posterior
