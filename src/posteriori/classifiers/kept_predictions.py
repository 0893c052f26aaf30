"""Out-of-fold predictions that stay with a model, so that the scores of its training rows are those of new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.training_record import record_of, share_of_seen_rows
from posteriori.model import log_normalised
from posteriori.model_selection import HeldOut
from posteriori.statistics.row_posteriors import with_labels
from posteriori.statistics.row_records import hash_rows
from posteriori.support.typing import Array

_MOSTLY = 0.5  # share of the rows without a kept prediction from which they count as training rows


def keep_predictions(estimator: Classifier, held_out: HeldOut, cells_of: Callable[[Array], Any]) -> None:
    """Record out-of-fold predictions of the training rows in a fitted classifier and its model file.

    A table of more than 20,000 evaluated rows keeps those of a stratified subsample. `fit`, `partial_fit`, `unlearn`
    and `merge` drop the record.

    Parameters
    ----------
    estimator : fitted classifier
    held_out : HeldOut
        With folds and the positions of the rows.
    cells_of : callable
        Returns the features of the rows at these positions, which are ascending.
    """
    place = held_out.place
    assert held_out.fold is not None  # the caller has cross-validated
    assert place is not None
    record = held_out.record(lambda chosen: _hashes(estimator, cells_of(place[chosen]), held_out.y_true[chosen]))
    estimator.fitted_ = estimator.fitted_.with_record(posteriors=record)


def kept_predictions(estimator: Classifier, X: Any, components: Array) -> tuple[Array, Array, Array] | None:
    """Return the kept predictions of training rows among the rows X, if the model has a record of any.

    Parameters
    ----------
    X : features (n, d)
    components : ndarray (n,)
        The class of each row, −1 without a label.

    Returns
    -------
    tuple of ndarray, or None
        Whether each row has a prediction (n,), log p(y | x) in nats (n, C), and p(y) under the model of its fold (n,
        C). Rows without a prediction are NaN.
    """
    record = record_of(estimator).posteriors
    if record is None or not len(record.hashes):
        return None
    labelled = np.flatnonzero(components >= 0)
    position = np.full(len(components), -1)
    position[labelled] = record.find(_hashes(estimator, X, components)[labelled])
    is_kept = position >= 0
    if not is_kept.any():
        return None
    log_posterior, prior = np.full((2, len(components), len(estimator.classes_)), np.nan)
    with np.errstate(invalid="ignore"):  # a row that no class can produce stays NaN
        # Rounded numbers do not sum to 1.
        log_posterior[is_kept] = log_normalised(record.log_posterior[position[is_kept]].astype(np.float64))
    prior[is_kept] = record.class_prior[record.fold[position[is_kept]]]
    return is_kept, log_posterior, prior


@dataclass(frozen=True)
class JudgedRows:
    """Predictions of the labelled rows of a table, out-of-fold where the model was trained on the row.

    Attributes
    ----------
    held_out : HeldOut
        Of the judged rows.
    judged : ndarray of bool (n,)
        Whether each row is judged. Training rows without a kept prediction are not, if they are most of the rows
        that have none.
    n_kept : int
        The number of judged rows with an out-of-fold prediction.
    seen : float or None
        The share of the judged rows on which the model was trained and that have no out-of-fold prediction; None if
        the model has no record of its training rows.
    """

    held_out: HeldOut
    judged: Array
    n_kept: int
    seen: float | None


def judge_rows(estimator: Classifier, X: Any, y_true: Array) -> JudgedRows:
    """Return the predictions of labelled rows X: kept ones of training rows, and those of the model of other rows."""
    every = np.ones(len(y_true), np.bool_)
    given = HeldOut.given(estimator.fitted_, y_true, estimator.predict_log_proba(X))
    found = kept_predictions(estimator, X, y_true)
    if found is None:
        return JudgedRows(given, every, 0, share_of_seen_rows(estimator, X))
    is_kept, log_posterior, prior = found
    n_kept, n_rows = int(np.count_nonzero(is_kept)), len(y_true)
    seen = 0.0
    if n_kept < n_rows:
        # The record of training rows holds the kept ones, too.
        seen = max(0.0, (share_of_seen_rows(estimator, X) or 0.0) * n_rows - n_kept) / (n_rows - n_kept)
    judged = is_kept if seen > _MOSTLY else every
    mixed = replace(
        given,
        log_posterior=np.where(is_kept[:, np.newaxis], log_posterior, given.log_posterior)[judged],
        prior=np.where(is_kept[:, np.newaxis], prior, given.prior)[judged],
        y_true=y_true[judged],
        weight=given.weight[judged],
        how=_how(n_kept, int(np.count_nonzero(judged))),
        rows_are="held-out rows" if seen == 0.0 or judged is is_kept else "rows",
    )
    share = 0.0 if judged is is_kept else seen * (n_rows - n_kept) / n_rows
    return JudgedRows(mixed, judged, n_kept, share)


def _how(n_kept: int, n_judged: int) -> str:
    """Return the sentence on how the rows were held out."""
    if n_kept == n_judged:
        return (
            "These are training rows, and each was predicted by a model trained on the other folds of the "
            "cross-validation of the fit."
        )
    return (
        f"{n_kept:,} of the {n_judged:,} rows are training rows, and each of these was predicted by a model trained on "
        "the other folds of the cross-validation of the fit; the model predicted the others."
    )


def _hashes(estimator: Classifier, X: Any, components: Array) -> Array:
    return with_labels(estimator._source(X).map(hash_rows), components, estimator.target_.categories)
