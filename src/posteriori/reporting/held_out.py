"""What a model says of rows that it has not learned from, beside what they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.learning import metrics
from posteriori.learning.importance import Importance
from posteriori.learning.out_of_fold import out_of_fold as cross_validate
from posteriori.reporting.data import ReportData
from posteriori.typing import Array


@dataclass(frozen=True)
class HeldOutPredictions:
    """Rows with their classes, and what was predicted of each by a model that had not learned from it.

    Attributes
    ----------
    components : ndarray (m,)
        The number of each row's class.
    posterior, prior : ndarray (m, C)
        p(y | x), and p(y), the prediction that looks at no feature.
    weight : ndarray (m,)
    rows : ndarray (m,)
        Their places in the table.
    how : str
        A sentence on how they were predicted.
    importance : Importance
        Feature importance: on held-out rows where the models of the folds are at hand.
    """

    components: Array
    posterior: Array
    prior: Array
    weight: Array
    rows: Array
    how: str
    importance: Importance

    @property
    def predicted(self) -> Array:
        """The number of the most probable class of each row."""
        return self.posterior.argmax(axis=1)

    @property
    def confidence(self) -> Array:
        """The probability of that class."""
        return self.posterior.max(axis=1)

    @property
    def of_truth(self) -> Array:
        """The probability of each row's true class."""
        return self.posterior[np.arange(len(self.components)), self.components]

    @property
    def right(self) -> Array:
        """Which rows the most probable class is true of."""
        return self.predicted == self.components

    def standard_error(self, losses: Array) -> float:
        """Return the standard error of the weighted mean of a loss over the rows, (m,)."""
        share = self.weight / self.weight.sum()
        return float(np.sqrt((share**2) @ (losses - share @ losses) ** 2))


def predict_held_out(subject: ReportData, out_of_fold: Any = None) -> HeldOutPredictions:
    """Return what was said of the labelled rows of a subject, by cross-validation where nothing else is given.

    Parameters
    ----------
    subject : ReportData
    out_of_fold : OutOfFold, LeaveOneOut or array-like (n, C), optional

    Raises
    ------
    ValueError
        It is not of these rows.
    """
    estimator = subject.estimator
    labels = subject.estimator.classes_[subject.components]
    if out_of_fold is None:
        out_of_fold = getattr(estimator, "out_of_fold_", None)
    if out_of_fold is None and hasattr(estimator, "members_"):
        raise ValueError("this pool does not know what it said of rows left out; give that as out_of_fold")
    if out_of_fold is None and not hasattr(subject.main_member, "statistics_"):
        how = "The model was given, not learned from these rows; each row is predicted by it as it is."
        return replace(_of_array(subject, estimator.predict_proba(subject.X)), how=how)
    if out_of_fold is None:
        rows = subject.labelled
        if len(rows) < 2:
            raise ValueError("there is one row with a label only; cross-validation needs two at least")
        out_of_fold = _cross_validated(subject, labels)
    if not hasattr(out_of_fold, "y_true"):
        return _of_array(subject, out_of_fold)
    rows = subject.labelled
    if not np.array_equal(out_of_fold.y_true, subject.components[rows]):
        raise ValueError("out_of_fold is not of these rows: its classes are not theirs; give the table it is of")
    posterior = metrics.fill_undefined(out_of_fold.posterior, out_of_fold.prior)
    importance = getattr(out_of_fold, "estimator", estimator).importance_
    weight = out_of_fold.weight
    return HeldOutPredictions(
        out_of_fold.y_true, posterior, out_of_fold.prior, weight, rows, _how(out_of_fold), importance
    )


def _cross_validated(subject: ReportData, labels: Array) -> Any:
    """Return what copies of the estimator say of rows left out; those without label teach as they did."""
    learner = clone(subject.estimator)
    labels = np.asarray(labels, dtype=object)
    unlabelled = getattr(learner, "unlabelled", "error")
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
        return "Each row was predicted by a model that had learned from all others."
    return (
        f"The rows were dealt into {int(np.max(fold)) + 1} parts, and each part was predicted by a model that had "
        "learned from the others only (cross-validation)."
    )


def _of_array(subject: ReportData, proba: Any) -> HeldOutPredictions:
    posterior = np.asarray(proba, dtype=np.float64)
    shape = (len(subject.components), len(subject.labels))
    if posterior.shape != shape:
        raise ValueError(f"out_of_fold is of shape {posterior.shape}; give p(y | x) of each row and class, {shape}")
    rows = subject.labelled
    prior = np.tile(np.exp(subject.model.class_log_prior), (len(rows), 1))
    return HeldOutPredictions(
        subject.components[rows],
        metrics.fill_undefined(posterior[rows], prior),
        prior,
        np.ones(len(rows)),
        rows,
        "What is judged are probabilities of rows that the model is said not to have learned from.",
        subject.estimator.importance_,
    )
