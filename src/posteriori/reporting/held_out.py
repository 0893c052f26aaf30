"""Predictions of the rows of a report, and whether the model was trained on these rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.estimator import OfClasses
from posteriori.classifiers.kept_predictions import judge_rows
from posteriori.classifiers.training_record import record_of, share_of_seen_rows
from posteriori.learning.importance import Importance
from posteriori.model_selection import HeldOut
from posteriori.model_selection import out_of_fold as cross_validate
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import percent
from posteriori.support.typing import Array


def predict_held_out(subject: ReportData, out_of_fold: Any = None) -> HeldOut:
    """Return held-out predictions of the labelled rows, by cross-validation if none are given.

    Parameters
    ----------
    out_of_fold : HeldOut or array-like (n, C), optional

    Raises
    ------
    ValueError
        out_of_fold belongs to other rows, or there are no held-out predictions and none can be made.
    """
    estimator, rows = subject.estimator, subject.labelled
    if out_of_fold is None:
        of_fit = estimator.fitted_.out_of_fold
        out_of_fold = _kept(subject) if of_fit is None else replace(of_fit, estimator=estimator)
    if out_of_fold is None and estimator.fitted_.members:
        raise ValueError("this pool has no out-of-fold predictions; give that as out_of_fold")
    if out_of_fold is None and subject.main_member.statistics is None:
        how = "The parameters of the model were given, not learned from these rows, so no refit is needed."
        return replace(_of_array(subject, estimator.predict_proba(subject.X)), how=how, rows_are="held-out rows")
    if out_of_fold is None:
        if len(rows) < 2:
            raise ValueError("there is only one labelled row; cross-validation needs at least two")
        absent = np.setdiff1d(np.arange(len(subject.labels)), subject.components[rows])
        if len(absent):
            raise ValueError(
                f"no row is of class {estimator.classes_[absent[0]]!r}, which no refit predicts; give rows of every "
                "class, or out_of_fold"
            )
        out_of_fold = _cross_validated(subject)
    if not isinstance(out_of_fold, HeldOut):
        return _of_array(subject, out_of_fold)
    if not np.array_equal(out_of_fold.y_true, subject.components[rows]):
        raise ValueError(
            "out_of_fold is not of these rows: its classes differ from their labels; give the table it was made from"
        )
    return out_of_fold


def _kept(subject: ReportData) -> HeldOut | None:
    """Return the out-of-fold predictions that the model keeps of the labelled rows; None unless it has all of them."""
    record = record_of(subject.estimator).posteriors
    if record is None or not len(record.hashes):
        return None
    rows = subject.labelled
    found = judge_rows(subject.estimator, subject.X[rows], subject.components[rows])
    return found.held_out if found.n_kept == len(rows) else None


def importance_of(subject: ReportData, evaluated: HeldOut) -> Importance:
    """Return the feature importance, on held-out rows if the models of the folds are available."""
    judged = evaluated.estimator
    if judged is None or judged.schema_.names != subject.estimator.schema_.names:  # the table reads otherwise
        judged = subject.estimator
    importance: Importance = judged.importance_
    return importance


def _cross_validated(subject: ReportData) -> HeldOut:
    """Cross-validate a copy of the estimator; unlabelled rows are used for training as in `fit`."""
    learner = clone(subject.estimator)
    labels = np.asarray(subject.estimator.classes_[subject.components], dtype=object)
    unlabelled = learner.recipe.labels.unlabelled
    labels[subject.components < 0] = None if unlabelled in ("learn", "error", "ignore") else unlabelled
    schema = subject.model.schema
    X = subject.X
    if schema.named and schema.target is not None:
        import narwhals as nw

        X = nw.from_native(X, eager_only=True).drop(schema.target, strict=False).to_native()
    return cross_validate(learner, X, labels, folds=min(5, len(subject.labelled)))


def _of_array(subject: ReportData, proba: Any) -> HeldOut:
    posterior = np.asarray(proba, dtype=np.float64)
    shape = (len(subject.components), len(subject.labels))
    if posterior.shape != shape:
        raise ValueError(f"out_of_fold is of shape {posterior.shape}; give p(y | x) of each row and class, {shape}")
    rows = subject.labelled
    prior = np.tile(np.exp(subject.model.class_log_prior), (len(rows), 1))
    rows_are, how = _relation_to_training(subject, posterior)
    with np.errstate(divide="ignore"):
        log_posterior = np.log(posterior[rows])
    y_true, weight = subject.components[rows], np.ones(len(rows))
    return HeldOut(log_posterior, prior, y_true, weight, subject.estimator.classes_, how, rows_are=rows_are)


def _relation_to_training(subject: ReportData, posterior: Array) -> tuple[str, str]:
    """Return the name of rows with given probabilities, and the sentence on them, by the record of training rows."""
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


def seen_rows(estimator: OfClasses, X: Any) -> float | None:
    """Return the share of the rows that a model was trained on; None if it has no record of its training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories and columns, given before
        return share_of_seen_rows(estimator, X)
