"""The record that a fitted estimator keeps of its training rows, beside their sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posteriori.classifiers.estimator import Estimator, OfClasses
from posteriori.fitting.fitted import FittedValue, TrainingRecord
from posteriori.fitting.held_out_figures import HeldOutFigures
from posteriori.model_selection import in_words
from posteriori.statistics.row_records import RowFingerprints, hash_rows
from posteriori.support.suggestions import class_index


def record_of(estimator: object) -> TrainingRecord:
    """Return the record that a fitted estimator keeps of its training rows; an empty one if it keeps none."""
    value: FittedValue | None = getattr(estimator, "fitted_", None)
    return TrainingRecord() if value is None else value.record


def record_rows(estimator: Estimator, X: Any) -> None:
    """Record the training rows X in a fitted classifier and its model file, as `RowFingerprints`.

    `fit`, `unlearn` and `merge` drop the record, and `partial_fit` keeps it.
    """
    estimator.fitted_ = estimator.fitted_.with_record(
        fingerprints=RowFingerprints.of(estimator._source(X).map(hash_rows))
    )


def share_of_seen_rows(estimator: Estimator, X: Any) -> float | None:
    """Return the share of the rows X that the model was trained on, by its record; None if it has no record of them."""
    record = record_of(estimator).fingerprints
    return None if record is None else record.overlap(estimator._source(X).map(hash_rows))


def kept_figures(estimator: OfClasses, positive: Any = None) -> HeldOutFigures | None:
    """Return the figures of held-out predictions that a classifier keeps, with the class of interest; None without.

    Raises
    ------
    ValueError
        `positive` is not a class.
    """
    found = record_of(estimator).figures
    chosen = chosen_class(estimator, positive)
    return None if found is None else replace(found, positive=chosen)


def kept_sentences(estimator: OfClasses, positive: Any = None) -> list[str]:
    """Return the sentences on held-out predictions that a classifier keeps; none if it keeps none.

    Where rows were held out by another way than folds, the first sentence says which.
    """
    found = kept_figures(estimator, positive)
    if found is None:
        return []
    phrases = in_words.class_phrases(estimator.fitted_.classes.tolist(), estimator.schema_.target)
    return [*([] if found.by_folds else [found.how]), *in_words.sentences(found, phrases)]


def chosen_class(estimator: OfClasses, positive: Any = None) -> int | None:
    """Return the index of the class of interest: the given one, else that of the fit; None without.

    Raises
    ------
    ValueError
        `positive` is not a class.
    """
    if positive is not None:
        return class_index(positive, estimator.fitted_.classes.tolist())
    found = record_of(estimator).figures
    return None if found is None else found.of_interest
