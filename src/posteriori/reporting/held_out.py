"""Predictions of the rows of a report, with the true classes, and whether the model was trained on these rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.rows import FINGERPRINTS, share_of_seen_rows
from posteriori.classifiers.validation import labels_of
from posteriori.learning.importance import Importance
from posteriori.model_selection import metrics
from posteriori.model_selection import out_of_fold as cross_validate
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import percent
from posteriori.support.typing import Array


@dataclass(frozen=True)
class HeldOutPredictions:
    """True classes and predictions of the labelled rows, of models that did not see the rows unless they are given.

    Attributes
    ----------
    y_true : ndarray (m,)
        Index of the true class of each row.
    posterior, prior : ndarray (m, C)
        p(y | x), and p(y), the baseline prediction without features.
    weight : ndarray (m,)
    rows : ndarray (m,)
        Positions of the rows in the table.
    how : str
        One sentence on how the predictions were made.
    importance : Importance
        Feature importance, on held-out rows if the models of the folds are available.
    rows_are : {"held-out rows", "training rows", "rows"}
        What the page calls the rows; "rows" if nobody knows whether the model was trained on them.
    """

    y_true: Array
    posterior: Array
    prior: Array
    weight: Array
    rows: Array
    how: str
    importance: Importance
    rows_are: str = "held-out rows"

    @property
    def predictions_are(self) -> str:
        """What the page calls the predictions: held-out predictions, for example."""
        return self.rows_are.replace("rows", "predictions") if self.rows_are != "rows" else "given predictions"

    @property
    def predicted(self) -> Array:
        """Index of the most probable class of each row."""
        predicted: Array = self.posterior.argmax(axis=1)
        return predicted

    @property
    def confidence(self) -> Array:
        """Probability of the predicted class."""
        confidence: Array = self.posterior.max(axis=1)
        return confidence

    @property
    def of_truth(self) -> Array:
        """Probability of the true class."""
        return self.posterior[np.arange(len(self.y_true)), self.y_true]

    @property
    def right(self) -> Array:
        """Whether the predicted class is the true class."""
        right: Array = self.predicted == self.y_true
        return right

    def standard_error(self, losses: Array) -> float:
        """Return the standard error of the weighted mean of the losses, (m,)."""
        share = self.weight / self.weight.sum()
        return float(np.sqrt((share**2) @ (losses - share @ losses) ** 2))


def predict_held_out(subject: ReportData, out_of_fold: Any = None) -> HeldOutPredictions:
    """Return held-out predictions of the labelled rows, by cross-validation if none are given.

    Parameters
    ----------
    subject : ReportData
    out_of_fold : OutOfFold, LeaveOneOut or array-like (n, C), optional

    Raises
    ------
    ValueError
        out_of_fold belongs to other rows, or there are no held-out predictions and none can be made.
    """
    estimator = subject.estimator
    labels = subject.estimator.classes_[subject.components]
    if out_of_fold is None:
        out_of_fold = getattr(estimator, "out_of_fold_", None)
    if out_of_fold is None and hasattr(estimator, "members_"):
        raise ValueError("this pool has no out-of-fold predictions; give that as out_of_fold")
    if out_of_fold is None and not hasattr(subject.main_member, "statistics_"):
        how = "The parameters of the model were given, not learned from these rows, so no refit is needed."
        return replace(_of_array(subject, estimator.predict_proba(subject.X)), how=how, rows_are="held-out rows")
    if out_of_fold is None:
        rows = subject.labelled
        if len(rows) < 2:
            raise ValueError("there is only one labelled row; cross-validation needs at least two")
        absent = np.setdiff1d(np.arange(len(subject.labels)), subject.components[rows])
        if len(absent):
            raise ValueError(
                f"no row is of class {estimator.classes_[absent[0]]!r}, which no refit predicts; give rows of every "
                "class, or out_of_fold"
            )
        out_of_fold = _cross_validated(subject, labels)
    if not hasattr(out_of_fold, "posterior"):
        return _of_array(subject, out_of_fold)
    rows = subject.labelled
    y_true = out_of_fold.y_true
    if not np.array_equal(y_true, subject.components[rows]):
        raise ValueError(
            "out_of_fold is not of these rows: its classes differ from their labels; give the table it was made from"
        )
    posterior = metrics.fill_undefined(out_of_fold.posterior, out_of_fold.prior)
    judged = getattr(out_of_fold, "estimator", estimator)
    if judged.schema_.names != estimator.schema_.names:  # the table reads otherwise than the training rows
        judged = estimator
    importance = judged.importance_
    weight = out_of_fold.weight
    return HeldOutPredictions(y_true, posterior, out_of_fold.prior, weight, rows, _how(out_of_fold), importance)


def _cross_validated(subject: ReportData, labels: Array) -> Any:
    """Cross-validate a copy of the estimator; unlabelled rows are used for training as in `fit`."""
    learner = clone(subject.estimator)
    labels = np.asarray(labels, dtype=object)
    unlabelled = labels_of(learner).unlabelled
    labels[subject.components < 0] = None if unlabelled in ("learn", "error") else unlabelled
    schema = subject.model.schema
    X = subject.X
    if schema.named and schema.target is not None:
        import narwhals as nw

        X = nw.from_native(X, eager_only=True).drop(schema.target, strict=False).to_native()
    return cross_validate(learner, X, labels, folds=min(5, len(subject.labelled)))


def _how(out_of_fold: Any) -> str:
    fold = getattr(out_of_fold, "fold", None)
    if fold is None:
        return "Each row was predicted by a model trained on all others (leave-one-out)."
    return (
        f"The rows were split into {int(np.max(fold)) + 1} folds, and each fold was predicted by a model trained on "
        "the other folds (cross-validation)."
    )


def _of_array(subject: ReportData, proba: Any) -> HeldOutPredictions:
    posterior = np.asarray(proba, dtype=np.float64)
    shape = (len(subject.components), len(subject.labels))
    if posterior.shape != shape:
        raise ValueError(f"out_of_fold is of shape {posterior.shape}; give p(y | x) of each row and class, {shape}")
    rows = subject.labelled
    prior = np.tile(np.exp(subject.model.class_log_prior), (len(rows), 1))
    rows_are, how = _relation_to_training(subject, posterior)
    return HeldOutPredictions(
        subject.components[rows],
        metrics.fill_undefined(posterior[rows], prior),
        prior,
        np.ones(len(rows)),
        rows,
        how,
        subject.estimator.importance_,
        rows_are,
    )


def _relation_to_training(subject: ReportData, posterior: Array) -> tuple[str, str]:
    """Return what to call rows with given probabilities, and the sentence on them, by the record of training rows."""
    estimator = subject.estimator
    seen = seen_rows(estimator, subject.X)
    if seen == 0.0:
        return "held-out rows", "None of the rows is among those that the model was trained on."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given before
        if seen is not None and np.allclose(posterior, estimator.predict_proba(subject.X), atol=1e-9, equal_nan=True):
            return "training rows", (
                f"{percent(seen)} of the rows are among those that the model was trained on, so that the scores are "
                "too optimistic; use other rows."
            )
    return "rows", "The probabilities were given. If their model was trained on these rows, they are too optimistic."


def seen_rows(estimator: Any, X: Any) -> float | None:
    """Return the share of the rows that a model was trained on; None if it has no record of its training rows."""
    if not hasattr(estimator, FINGERPRINTS):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories and columns, given before
        return share_of_seen_rows(estimator, X)
